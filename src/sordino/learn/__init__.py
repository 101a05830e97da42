"""Training by exact noisy sums: `so.learn.Trainer` for PyTorch models, and estimators in scikit-learn's interface.

Names are resolved on first use: nothing of PyTorch or scikit-learn is imported before it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sordino.learn.attention import SelfAttention
    from sordino.learn.k_means import KMeans
    from sordino.learn.linear_regression import LinearRegression
    from sordino.learn.logistic_regression import LogisticRegression
    from sordino.learn.naive_bayes import NaiveBayes
    from sordino.learn.pca import PCA
    from sordino.learn.run_plan import RunPlan
    from sordino.learn.trainer import Trainer, TrainingResult

_HOME = {
    "KMeans": "k_means",
    "LinearRegression": "linear_regression",
    "LogisticRegression": "logistic_regression",
    "NaiveBayes": "naive_bayes",
    "PCA": "pca",
    "RunPlan": "run_plan",
    "SelfAttention": "attention",
    "Trainer": "trainer",
    "TrainingResult": "trainer",
}

__all__ = [
    "PCA",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "NaiveBayes",
    "RunPlan",
    "SelfAttention",
    "Trainer",
    "TrainingResult",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sordino.learn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"sordino.learn.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
