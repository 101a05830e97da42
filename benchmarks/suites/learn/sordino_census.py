"""Models without deep nets on census data, and the error of streams."""

import math
from statistics import fmean
from typing import Any

import numpy as np
from benchmarks.suites.learn.settings import (
    CLUSTERS,
    COMPONENTS,
    DELTA,
    EPSILONS,
    LONGEST,
    SPLITS,
    STEPS,
    census,
    kept_variance,
    spread,
)
from benchmarks.timing import row

import sordino as so
from sordino.learn import PCA, KMeans, LinearRegression, LogisticRegression, NaiveBayes


def least_error(steps: int) -> float:
    """Of any noise added to a linear map of the numbers, as the mean over steps: (nuclear norm / steps)^2.

    The singular values of the matrix of running sums are 1 / (2 sin((2k - 1) pi / (4n + 2))).
    """
    angles = ((2 * k - 1) * math.pi / (4 * steps + 2) for k in range(1, steps + 1))
    return (sum(1 / (2 * math.sin(angle)) for angle in angles) / steps) ** 2


def main() -> None:
    given: dict[str, Any] = {"bounds": (0, 1)}
    for epsilon in EPSILONS:
        classifiers = {
            "logistic regression": LogisticRegression(epsilon, DELTA, classes=[0, 1], **given),
            "naive Bayes": NaiveBayes(epsilon, DELTA, classes=[0, 1], row_norm=LONGEST, **given),
        }
        for name, model in classifiers.items():
            with row("census", name, epsilon=epsilon) as fields:
                made = []
                for split in SPLITS:
                    x, y, test_x, test_y, _ = census("income>50K", split)
                    made.append(float(model.fit(x, y).score(test_x, test_y)))
                fields |= {"value": float(np.mean(made)), "values": made}
        for target in ("age", "hours-per-week"):
            with row("census", f"R2 of {target}", epsilon=epsilon) as fields:
                made = []
                for split in SPLITS:
                    x, y, test_x, test_y, size = census(target, split)
                    regression = LinearRegression(
                        epsilon, DELTA, target_bounds=(0, size - 1), row_norm=LONGEST, **given
                    )
                    made.append(float(regression.fit(x, y).score(test_x, test_y)))
                fields |= {"value": float(np.mean(made)), "values": made}
        with row("census", "variance kept by PCA", epsilon=epsilon) as fields:
            made = []
            for split in SPLITS:
                x, _, test_x, _, _ = census("income>50K", split)
                pca = PCA(COMPONENTS, epsilon, DELTA, row_norm=LONGEST, **given).fit(x)
                made.append(kept_variance(pca.components_, test_x))
            fields |= {"value": float(np.mean(made)), "values": made}
        with row("census", "variance left by k-means", epsilon=epsilon) as fields:
            made = []
            for split in SPLITS:
                x, _, test_x, _, _ = census("income>50K", split)
                found = KMeans(CLUSTERS, epsilon, DELTA, row_norm=LONGEST, **given).fit(x)
                made.append(spread(found.cluster_centers_, test_x))
            fields |= {"value": float(np.mean(made)), "values": made}
    for steps in STEPS:
        stream = so.Stream(epsilon=1, delta=DELTA, horizon=steps)
        with row("stream", "known horizon", steps=steps) as fields:
            fields["value"] = (stream.sd_at(steps) * float(stream.mu)) ** 2
        with row("stream", "known horizon, mean of all steps", steps=steps) as fields:
            squares = [stream.add(0).sd ** 2 for _ in range(steps)]
            fields["value"] = fmean(squares) * float(stream.mu) ** 2
        with row("stream", "no mechanism has less, mean of all steps", steps=steps) as fields:
            fields["value"] = least_error(steps)
        with row("stream", "no horizon", steps=steps) as fields:
            fields["value"] = (
                so.Stream(epsilon=1, delta=DELTA).sd_at(steps) * float(stream.mu)
            ) ** 2
        with row("stream", "noise on each step", steps=steps) as fields:
            fields["value"] = float(steps)
        with row("stream", "binary tree", steps=steps) as fields:
            levels = math.ceil(math.log2(steps)) + 1
            fields["value"] = float(levels * max(bin(t).count("1") for t in range(1, steps + 1)))


if __name__ == "__main__":
    main()
