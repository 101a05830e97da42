"""What every mechanism offers, and how a stored one is read back."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.randomized_response import RandomizedResponse
from sordino.privacy import json_form
from sordino.privacy.loss import Loss

__all__ = ["Mechanism", "mechanism_from_json"]


@runtime_checkable
class Mechanism(Protocol):
    """One way to release exact values with noise, and the privacy loss of one such release."""

    def release(self, value: Any) -> Any:
        """The values with noise."""

    def loss(self, sensitivity: Any) -> Loss:
        """The privacy loss of one release."""

    def pmf(self, k: Any, value: Any) -> Any:
        """The exact probability of one output."""

    def cdf(self, k: Any, value: Any) -> Any:
        """The exact probability of all outputs up to one."""

    def to_json(self) -> str:
        """The exact stored form."""


_KINDS = {
    ("laplace", 1): Laplace.from_fields,
    ("gaussian", 1): Gaussian.from_fields,
    ("randomized_response", 1): RandomizedResponse.from_fields,
}


def mechanism_from_json(text: str) -> Mechanism:
    """The mechanism that `to_json` stored."""
    build, fields = json_form.load(text, _KINDS)
    mechanism: Mechanism = build(fields)
    return mechanism
