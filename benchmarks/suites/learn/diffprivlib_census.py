"""The same models of diffprivlib, which are of pure epsilon, on the same splits."""

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
from sklearn.linear_model import LogisticRegression


def measured(case: str, epsilon: float, target: str, score: Callable[..., float]) -> None:
    """One row: a figure for each split, and their mean."""
    with row("census", case, epsilon=epsilon) as fields:
        made = [float(score(*census(target, split))) for split in SPLITS]
        fields |= {"value": float(np.mean(made)), "values": made}


def main() -> None:
    warnings.simplefilter("ignore")
    for epsilon in EPSILONS:

        def bayes(x: Any, y: Any, test_x: Any, test_y: Any, _: int, e: float = epsilon) -> float:
            model = models.GaussianNB(epsilon=e, bounds=(0, 1))
            return float(model.fit(x, y).score(test_x, test_y))

        def logistic(x: Any, y: Any, test_x: Any, test_y: Any, _: int, e: float = epsilon) -> float:
            model = models.LogisticRegression(epsilon=e, data_norm=LONGEST, max_iter=100)
            return float(model.fit(x, y).score(test_x, test_y))

        def linear(
            x: Any, y: Any, test_x: Any, test_y: Any, size: int, e: float = epsilon
        ) -> float:
            model = models.LinearRegression(epsilon=e, bounds_X=(0, 1), bounds_y=(0, size - 1))
            return float(model.fit(x, y).score(test_x, test_y))

        def pca(x: Any, _y: Any, test_x: Any, _t: Any, _: int, e: float = epsilon) -> float:
            model = models.PCA(COMPONENTS, epsilon=e, data_norm=LONGEST, bounds=(0, 1))
            return kept_variance(model.fit(x).components_, test_x)

        def means(x: Any, _y: Any, test_x: Any, _t: Any, _: int, e: float = epsilon) -> float:
            model = models.KMeans(CLUSTERS, epsilon=e, bounds=(0, 1))
            return spread(model.fit(x).cluster_centers_, test_x)

        measured("naive Bayes", epsilon, "income>50K", bayes)
        measured("logistic regression", epsilon, "income>50K", logistic)
        for target in ("age", "hours-per-week"):
            measured(f"R2 of {target}", epsilon, target, linear)
        measured("variance kept by PCA", epsilon, "income>50K", pca)
        measured("variance left by k-means", epsilon, "income>50K", means)
    with row("census", "logistic regression without noise") as fields:
        made = []
        for split in SPLITS:
            x, y, test_x, test_y, _ = census("income>50K", split)
            model = LogisticRegression(C=1000, max_iter=500)
            made.append(float(model.fit(x, y).score(test_x, test_y)))
        fields |= {"value": float(np.mean(made)), "values": made}


if __name__ == "__main__":
    main()
