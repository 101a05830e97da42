"""The same models of diffprivlib, which are of pure epsilon."""

import warnings

import diffprivlib.models as models
import numpy as np
from benchmarks.suites.learn.settings import EPSILONS, census
from benchmarks.timing import row


def main() -> None:
    warnings.simplefilter("ignore")
    x, y, test_x, test_y, _ = census("income>50K")
    for epsilon in EPSILONS:
        with row("census", "naive Bayes", epsilon=epsilon) as fields:
            made = [
                models.GaussianNB(epsilon=epsilon, bounds=(0, 1)).fit(x, y).score(test_x, test_y)
                for _ in range(3)
            ]
            fields["value"] = float(np.mean(made))
        with row("census", "logistic regression", epsilon=epsilon) as fields:
            model = models.LogisticRegression(epsilon=epsilon, data_norm=3.3, max_iter=100)
            fields["value"] = float(model.fit(x, y).score(test_x, test_y))


if __name__ == "__main__":
    main()
