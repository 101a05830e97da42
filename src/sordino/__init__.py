"""Sordino: differential privacy with exact noise and an honest privacy loss.

Names are resolved on first use, so that `import sordino` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sordino import errors

if TYPE_CHECKING:
    from sordino.mechanisms.gaussian import Gaussian
    from sordino.mechanisms.laplace import Laplace
    from sordino.mechanisms.mechanism import Mechanism, mechanism_from_json
    from sordino.mechanisms.proportions import Estimate
    from sordino.mechanisms.randomized_response import RandomizedResponse
    from sordino.privacy import divergence
    from sordino.privacy.loss import FiniteLoss, GaussianLoss, LaplaceLoss, Loss
    from sordino.privacy.neighbors import Neighbors
    from sordino.privacy.sensitivity import SensitivityWitness, global_sensitivity, rounded_sensitivity

__version__ = "0.1.0"

_HOME = {
    "Estimate": "mechanisms.proportions",
    "FiniteLoss": "privacy.loss",
    "Gaussian": "mechanisms.gaussian",
    "GaussianLoss": "privacy.loss",
    "Laplace": "mechanisms.laplace",
    "LaplaceLoss": "privacy.loss",
    "Loss": "privacy.loss",
    "Mechanism": "mechanisms.mechanism",
    "Neighbors": "privacy.neighbors",
    "RandomizedResponse": "mechanisms.randomized_response",
    "SensitivityWitness": "privacy.sensitivity",
    "divergence": "privacy",
    "global_sensitivity": "privacy.sensitivity",
    "mechanism_from_json": "mechanisms.mechanism",
    "rounded_sensitivity": "privacy.sensitivity",
}

__all__ = [
    "Estimate",
    "FiniteLoss",
    "Gaussian",
    "GaussianLoss",
    "Laplace",
    "LaplaceLoss",
    "Loss",
    "Mechanism",
    "Neighbors",
    "RandomizedResponse",
    "SensitivityWitness",
    "divergence",
    "errors",
    "global_sensitivity",
    "mechanism_from_json",
    "rounded_sensitivity",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sordino' has no attribute {name!r}")
    if name == "divergence":
        value: Any = import_module("sordino.privacy.divergence")
    else:
        value = getattr(import_module(f"sordino.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
