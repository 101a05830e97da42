"""Sordino: differential privacy with exact noise and an honest privacy loss.

Names are resolved on first use, so that `import sordino` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sordino import errors

if TYPE_CHECKING:
    from sordino.accounting.calibrate import largest_count, smallest_scale
    from sordino.accounting.charge import Charge
    from sordino.accounting.filters import TwoMeterFilter, ZcdpFilter
    from sordino.accounting.odometer import Odometer
    from sordino.accounting.total import Total, total
    from sordino.mechanisms.gaussian import Gaussian
    from sordino.mechanisms.laplace import Laplace
    from sordino.mechanisms.mechanism import Mechanism, mechanism_from_json
    from sordino.mechanisms.proportions import Estimate
    from sordino.mechanisms.randomized_response import RandomizedResponse
    from sordino.privacy import divergence
    from sordino.privacy.budget import Budget
    from sordino.privacy.loss import FiniteLoss, GaussianLoss, LaplaceLoss, Loss, SubsampledLoss
    from sordino.privacy.neighbors import Neighbors
    from sordino.privacy.sensitivity import SensitivityWitness, global_sensitivity, rounded_sensitivity

__version__ = "0.1.0"

_HOME = {
    "Budget": "privacy.budget",
    "Charge": "accounting.charge",
    "Estimate": "mechanisms.proportions",
    "FiniteLoss": "privacy.loss",
    "Gaussian": "mechanisms.gaussian",
    "GaussianLoss": "privacy.loss",
    "Laplace": "mechanisms.laplace",
    "LaplaceLoss": "privacy.loss",
    "Loss": "privacy.loss",
    "Mechanism": "mechanisms.mechanism",
    "Neighbors": "privacy.neighbors",
    "Odometer": "accounting.odometer",
    "RandomizedResponse": "mechanisms.randomized_response",
    "SensitivityWitness": "privacy.sensitivity",
    "SubsampledLoss": "privacy.loss",
    "Total": "accounting.total",
    "TwoMeterFilter": "accounting.filters",
    "ZcdpFilter": "accounting.filters",
    "divergence": "privacy",
    "global_sensitivity": "privacy.sensitivity",
    "largest_count": "accounting.calibrate",
    "mechanism_from_json": "mechanisms.mechanism",
    "rounded_sensitivity": "privacy.sensitivity",
    "smallest_scale": "accounting.calibrate",
    "total": "accounting.total",
}

__all__ = [
    "Budget",
    "Charge",
    "Estimate",
    "FiniteLoss",
    "Gaussian",
    "GaussianLoss",
    "Laplace",
    "LaplaceLoss",
    "Loss",
    "Mechanism",
    "Neighbors",
    "Odometer",
    "RandomizedResponse",
    "SensitivityWitness",
    "SubsampledLoss",
    "Total",
    "TwoMeterFilter",
    "ZcdpFilter",
    "divergence",
    "errors",
    "global_sensitivity",
    "largest_count",
    "mechanism_from_json",
    "rounded_sensitivity",
    "smallest_scale",
    "total",
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
