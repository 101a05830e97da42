"""The delta of private keys: what is left of it lasts as long as the meters do, and is never overspent."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from first_of import first_of
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.query.front.sql import parse

CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
WARD = "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT id) AS p FROM people GROUP BY ward"
"""As many releases, and as much a release, as CITY has with its keys."""


def people() -> so.Dataset:
    columns: dict[str, dict[str, Any]] = {
        "city": {"type": "text"},
        "ward": {"type": "category", "values": ["A", "B"]},
    }
    rows = pa.table({"id": [1], "city": ["Bern"], "ward": ["A"]})
    budget = {"epsilon": 1, "delta": 1e-6}
    return so.Dataset(
        rows,
        name="people",
        unit="id",
        max_rows_per_group=1,
        max_groups=1,
        columns=columns,
        budget=budget,
    )


def planned(sql: str, meter: TwoMeterFilter, **offer: Any) -> Plan:
    return make_plan(parse(sql), people(), Cost.offered(**offer), meter)


def fresh() -> TwoMeterFilter:
    return TwoMeterFilter(so.Budget(1, 1e-6), Fraction(1, 2 * 10**6))


def spent_up(sql: str, most: int = 10**6, **offer: float) -> list[TwoMeterFilter]:
    """The filter before the first question, and after each one that fits."""
    seen = [fresh()]
    for _ in range(most):
        charge = planned(sql, seen[-1], **offer).charge
        if not seen[-1].allows(charge):
            break
        seen.append(seen[-1].spend(charge))
    return seen


@pytest.mark.parametrize("epsilon", first_of(3, [0.5, 0.1, 0.05, 0.3, 0.02]))
def test_delta_is_never_what_ends_first(epsilon: float) -> None:
    with_keys = spent_up(CITY, epsilon=epsilon)
    without = spent_up("SELECT ward, COUNT(*) AS n FROM people GROUP BY ward", epsilon=epsilon)
    left = with_keys[-1].remaining
    assert len(with_keys) > 1
    assert left.delta > 0
    again = planned(CITY, with_keys[-1], epsilon=epsilon).charge
    assert again.delta <= left.delta  # the meters refused it
    assert len(with_keys) >= len(without) / 2  # half of each epsilon is that of the keys


def test_equal_questions_that_use_the_budget_up_get_equal_deltas() -> None:
    seen = spent_up(CITY, epsilon=0.05)
    deltas = [after.spent.delta - before.spent.delta for before, after in itertools.pairwise(seen)]
    assert len(deltas) > 20
    assert max(deltas) < 3 * min(deltas)
    assert sum(deltas) <= seen[0].reserved_delta


def test_very_cheap_questions_get_a_thousandth_of_the_rest_and_never_end_it() -> None:
    seen = spent_up(CITY, most=50, epsilon=1e-6)
    assert len(seen) == 51
    deltas = [after.spent.delta - before.spent.delta for before, after in itertools.pairwise(seen)]
    assert all(
        Fraction(99, 10**5) < d / before.remaining.delta <= Fraction(1, 1000)
        for d, before in zip(deltas, seen, strict=False)
    )


def test_one_question_for_all_of_epsilon_leaves_half_of_delta() -> None:
    assert planned(CITY, fresh(), epsilon=1).charge.delta == fresh().reserved_delta / 2


def test_what_is_asked_for_is_spent_exactly_and_told() -> None:
    plan = planned(CITY, fresh(), epsilon=0.1, delta=1e-9)
    assert plan.charge.delta == Fraction(1, 10**9)
    assert plan.selection is not None
    assert plan.selection.mechanism is not None
    assert plan.selection.mechanism.delta == Fraction(1, 10**9)
    assert planned(WARD, fresh(), epsilon=0.1, delta=1e-9).charge.delta == 0


def test_without_any_left_the_refusal_says_so_before_anything_is_read() -> None:
    with so.Session(people()) as session:
        session.sql(CITY, epsilon=0.1, delta=5e-7)
        with pytest.raises(
            BudgetExceeded,
            match=r"nothing of the delta 5e-07 that is kept for them.*key_delta in \[budget\]",
        ):
            session.preview(CITY, epsilon=0.1)
        with pytest.raises(BudgetExceeded, match="smaller delta"):
            session.sql(CITY, epsilon=0.1, delta=1e-9)
        assert len(session.receipts) == 1


def test_more_than_is_left_is_refused_and_the_plan_says_so() -> None:
    plan = planned(CITY, fresh(), epsilon=0.1, delta=1e-6)
    assert "IT DOES NOT FIT" in plan.note
    with pytest.raises(BudgetExceeded, match="smaller delta"):
        fresh().spend(plan.charge)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 1e-301])
def test_a_delta_is_a_small_probability(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        planned(CITY, fresh(), epsilon=0.1, delta=delta)
