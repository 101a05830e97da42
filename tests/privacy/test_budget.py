from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sordino.errors import InvalidInput
from sordino.privacy.budget import Budget


def test_a_float_is_read_at_the_smaller_of_its_readings() -> None:
    assert Budget(0.1, 1e-10) == Budget(Fraction(1, 10), Fraction(1, 10**10))
    assert Budget(0.3).epsilon == Fraction(0.3) < Fraction(3, 10)
    assert Budget(np.float64(0.1)).epsilon == Fraction(1, 10)
    assert Budget(Decimal("0.3")).epsilon == Fraction(3, 10)


def test_delta_is_zero_unless_given() -> None:
    assert Budget(Fraction(1)).delta == 0


def test_it_is_frozen_and_equal_by_value() -> None:
    budget = Budget(Fraction(1), Fraction(1, 100))
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = Fraction(2)  # type: ignore[misc]
    assert budget == Budget(Fraction(1), Fraction(1, 100))
    assert len({budget, Budget(Fraction(1), Fraction(1, 100))}) == 1


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 0), (-1, 0), (float("nan"), 0), (float("inf"), 0), ("1", 0), (True, 0), (None, 0), (10**7, 0),
     (Fraction(1, 10**301), 0), (1, 1), (1, -0.1), (1, 1.5), (1, float("nan")), (1, "0"), (1, None), (-0.0, 0)],
)  # fmt: skip
def test_what_is_no_budget_is_refused(epsilon: Any, delta: Any) -> None:
    with pytest.raises(InvalidInput, match=r"got .*: .* must be .*\. Pass"):
        Budget(epsilon, delta)


@given(st.fractions(Fraction(1, 10**9), 1000), st.fractions(0, Fraction(999, 1000)))
def test_it_survives_storage_exactly(epsilon: Fraction, delta: Fraction) -> None:
    budget = Budget(epsilon, delta)
    assert Budget.from_json(budget.to_json()) == budget


def test_the_stored_form_never_changes() -> None:
    text = '{"kind": "budget", "v": 1, "epsilon": "1/3", "delta": "1/1000000"}'
    assert Budget(Fraction(1, 3), Fraction(1, 10**6)).to_json() == text
    assert Budget.from_json(text) == Budget(Fraction(1, 3), Fraction(1, 10**6))


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"kind": "budget", "v": 2}', '{"kind": "laplace", "v": 1, "shift": "1"}', '{"kind": "budget", "v": 1}',
     '{"kind": "budget", "v": 1, "epsilon": "0", "delta": "0"}', '{"kind": "budget", "v": 1, "epsilon": 1, "delta": 0}'],
)  # fmt: skip
def test_texts_that_hold_no_budget_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Budget.from_json(text)


def test_its_text_can_be_read() -> None:
    assert repr(Budget(Fraction(1, 2), Fraction(1, 10**6))) == "Budget(epsilon=0.5, delta=1e-06)"
    assert repr(Budget(Fraction(1, 3))) == "Budget(epsilon=1/3, delta=0)"
