"""Numbers that are typed are read exactly, or refused at once."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction

import pytest

from sordino import Budget, Laplace
from sordino.errors import InvalidInput
from sordino.plan.cost import Cost
from sordino.privacy.exact import bounds, closed_unit, decimal_reading, open_unit, positive


@pytest.mark.parametrize(
    "text", ["1e9999999", "-1e9999999", "1e-9999999", "1e999999999999", "1." + "3" * 20000]
)
def test_a_decimal_that_would_take_minutes_to_write_down_is_refused_at_once(text: str) -> None:
    begun = time.process_time()
    value = Decimal(text)
    for read in (bounds, decimal_reading, positive, open_unit, closed_unit):
        with pytest.raises(InvalidInput, match="digits"):
            read("epsilon", value)
    for call in (
        lambda: Budget(value),
        lambda: Laplace(scale=value),
        lambda: Laplace(scale=2).release(value),
        lambda: Laplace(scale=2).loss(sensitivity=value),
        lambda: Cost.offered(epsilon=value),
        lambda: Cost.offered(error=value),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert time.process_time() - begun < 2


def test_long_decimals_within_reason_are_read_exactly() -> None:
    assert decimal_reading("delta", Decimal("1e-4000")) == Fraction(1, 10**4000)
