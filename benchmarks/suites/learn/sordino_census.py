"""Models without deep nets on census data, and the error of streams."""

import math

import numpy as np
from benchmarks.suites.learn.settings import DELTA, EPSILONS, RUNS, STEPS, census
from benchmarks.timing import row

import sordino as so
from sordino.learn import LinearRegression, LogisticRegression, NaiveBayes


def main() -> None:
    x, y, test_x, test_y, _ = census("income>50K")
    for epsilon in EPSILONS:
        for name, model in (
            (
                "logistic regression",
                LogisticRegression(epsilon, DELTA, bounds=(0, 1), classes=[0, 1]),
            ),
            (
                "naive Bayes",
                NaiveBayes(epsilon, DELTA, bounds=(0, 1), classes=[0, 1], row_norm=3.5),
            ),
        ):
            with row("census", name, epsilon=epsilon) as fields:
                fields["value"] = float(
                    np.mean([model.fit(x, y).score(test_x, test_y) for _ in range(RUNS)])
                )
    for target in ("age", "hours-per-week"):
        x, y, test_x, test_y, size = census(target)
        for epsilon in EPSILONS:
            regression = LinearRegression(
                epsilon, DELTA, bounds=(0, 1), target_bounds=(0, size - 1), row_norm=3.5
            )
            with row("census", f"R2 of {target}", epsilon=epsilon) as fields:
                fields["value"] = float(
                    np.mean([regression.fit(x, y).score(test_x, test_y) for _ in range(RUNS)])
                )
    for steps in STEPS:
        stream = so.Stream(epsilon=1, delta=DELTA, horizon=steps)
        with row("stream", "known horizon", steps=steps) as fields:
            fields["value"] = (stream.sd_at(steps) * float(stream.mu)) ** 2
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
