"""The same models of diffprivlib, which are of pure epsilon, on the same splits; and models without noise.

Logistic regression also has the settings that are best for it among those of a grid, chosen on the test part.
"""

import signal
import warnings
from collections.abc import Callable
from typing import Any

import diffprivlib.models as models
import numpy as np
from benchmarks.suites.learn.settings import (
    CLUSTERS,
    COMPONENTS,
    EPSILONS,
    LONGEST,
    SPLITS,
    census,
    kept_variance,
    spread,
)
from benchmarks.timing import row
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge

SECONDS = 30
"""Of the processor, for one fit: its PCA draws by rejection, which need not end."""
STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1, 10)

Score = Callable[..., float]


def measured(case: str, target: str, score: Score, **about: Any) -> None:
    """One row: a figure for each split, and their mean."""
    with row("census", case, **about) as fields:
        fields |= on_splits(target, score)


def on_splits(target: str, score: Score) -> dict[str, Any]:
    made = [_in_time(score, *census(target, split)) for split in SPLITS]
    return {"value": float(np.mean(made)), "values": made}


def _in_time(score: Score, *split: Any) -> float:
    def late(*_: Any) -> None:
        raise TimeoutError(f"one fit did not end in {SECONDS} seconds of the processor")

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        return float(score(*split))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def best_logistic(epsilon: float) -> None:
    """The best mean of the test parts, over how strongly it is regularised."""
    with row("census", "logistic regression, best settings", epsilon=epsilon) as fields:
        splits = [census("income>50K", split) for split in SPLITS]
        found = {}
        for strength in STRENGTHS:
            found[strength] = [
                models.LogisticRegression(
                    epsilon=epsilon, data_norm=LONGEST, C=strength, max_iter=1000, tol=1e-6
                )
                .fit(x, y)
                .score(test_x, test_y)
                for x, y, test_x, test_y, _ in splits
            ]
        best = max(found, key=lambda strength: float(np.mean(found[strength])))
        fields |= {"value": float(np.mean(found[best])), "values": found[best], "C": best}
        fields["by C"] = {str(strength): float(np.mean(made)) for strength, made in found.items()}


def private(epsilon: float) -> None:
    def bayes(x: Any, y: Any, test_x: Any, test_y: Any, _: int) -> float:
        model = models.GaussianNB(epsilon=epsilon, bounds=(0, 1))
        return float(model.fit(x, y).score(test_x, test_y))

    def logistic(x: Any, y: Any, test_x: Any, test_y: Any, _: int) -> float:
        model = models.LogisticRegression(epsilon=epsilon, data_norm=LONGEST, max_iter=1000)
        return float(model.fit(x, y).score(test_x, test_y))

    def linear(x: Any, y: Any, test_x: Any, test_y: Any, size: int) -> float:
        model = models.LinearRegression(epsilon=epsilon, bounds_X=(0, 1), bounds_y=(0, size - 1))
        return float(model.fit(x, y).score(test_x, test_y))

    def means(x: Any, _y: Any, test_x: Any, _t: Any, _: int) -> float:
        model = models.KMeans(CLUSTERS, epsilon=epsilon, bounds=(0, 1))
        return spread(model.fit(x).cluster_centers_, test_x)

    measured("naive Bayes", "income>50K", bayes, epsilon=epsilon)
    measured("logistic regression", "income>50K", logistic, epsilon=epsilon)
    best_logistic(epsilon)
    for target in ("age", "hours-per-week"):
        measured(f"R2 of {target}", target, linear, epsilon=epsilon)
    measured("variance left by k-means", "income>50K", means, epsilon=epsilon)


def components(epsilon: float) -> None:
    def pca(x: Any, _y: Any, test_x: Any, _t: Any, _: int) -> float:
        model = models.PCA(COMPONENTS, epsilon=epsilon, data_norm=LONGEST, bounds=(0, 1))
        return kept_variance(model.fit(x).components_, test_x)

    measured("variance kept by PCA", "income>50K", pca, epsilon=epsilon)


def without_noise() -> None:
    def logistic(x: Any, y: Any, test_x: Any, test_y: Any, _: int) -> float:
        return float(LogisticRegression(C=1000, max_iter=2000).fit(x, y).score(test_x, test_y))

    def linear(x: Any, y: Any, test_x: Any, test_y: Any, _: int) -> float:
        return float(Ridge(1.0).fit(x, y).score(test_x, test_y))

    def pca(x: Any, _y: Any, test_x: Any, _t: Any, _: int) -> float:
        return kept_variance(PCA(COMPONENTS).fit(x).components_, test_x)

    def means(x: Any, _y: Any, test_x: Any, _t: Any, _: int) -> float:
        model = KMeans(CLUSTERS, n_init=3, random_state=0)
        return spread(model.fit(x).cluster_centers_, test_x)

    measured("logistic regression without noise", "income>50K", logistic)
    for target in ("age", "hours-per-week"):
        measured(f"R2 of {target} without noise", target, linear)
    measured("variance kept by PCA without noise", "income>50K", pca)
    measured("variance left by k-means without noise", "income>50K", means)


def main() -> None:
    warnings.simplefilter("ignore")
    without_noise()
    for epsilon in EPSILONS:
        private(epsilon)
    for epsilon in EPSILONS:
        components(epsilon)


if __name__ == "__main__":
    main()
