"""Three bounds of one person: what follows from them, what a question may tighten, and what a preview says of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.plan.sensitivity import Contribution, Quota
from sordino.privacy.neighbors import Neighbors
from sordino.query.bounds import NAMES, Bounds
from sordino.query.front.sql import parse
from sordino.release import exact_groups

COLUMNS: dict[str, dict[str, Any]] = {
    "month": {"type": "category", "values": list(range(1, 13))},
    "city": {"type": "text"},
    "x": {"type": "int", "min": 0, "max": 10},
}
MONTHS = "SELECT month, COUNT(*) AS n FROM flights GROUP BY month"


def table(rows: list[tuple[int, int, str, int]]) -> pa.Table:
    plane, month, city, x = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {"plane": pa.array(plane, pa.int64()), "month": pa.array(month, pa.int64())}
    return pa.table({**columns, "city": pa.array(city, pa.string()), "x": pa.array(x, pa.int64())})


def flights(rows: pa.Table | None = None, **own: Any) -> so.Dataset:
    source = table([]) if rows is None else rows
    declared = {"unit": "plane", "columns": COLUMNS, "budget": so.Budget(1000, 1e-6), **own}
    return so.Dataset(source, name="flights", **declared)


def planned(sql: str, data: so.Dataset, **offer: Any) -> Plan:
    assert data.budget is not None
    meter = TwoMeterFilter(data.budget, data.reserved_delta or Fraction(0))
    return make_plan(
        parse(sql), data, Cost.offered(**{"epsilon": 1, "bias": False, **offer}), meter
    )


def numbers_of_rows(bounds: Bounds, groups: int, most: int) -> Iterator[tuple[int, ...]]:
    """All numbers of rows by group that a person may have under the bounds."""
    for counts in itertools.product(range(most + 1), repeat=groups):
        rows = bounds.rows is None or sum(counts) <= bounds.rows
        each = bounds.per_group is None or max(counts) <= bounds.per_group
        if rows and each and (bounds.groups is None or sum(map(bool, counts)) <= bounds.groups):
            yield counts


@pytest.mark.parametrize("possible", [1, 3, 4])
def test_quotas_are_the_largest_that_the_bounds_allow(possible: int) -> None:
    """By enumeration: nobody within the bounds is beyond the quota, and somebody reaches it in each norm."""
    compared = 0
    for rows, each, groups in itertools.product((None, 1, 3, 5), (None, 1, 2, 3), (None, 1, 2, 3)):
        who = Contribution(Neighbors.ADD_REMOVE, Bounds(rows, each, groups), possible, grouped=True)
        quota, pure = who.quota("clip", "l2"), who.quota("clip", "l1")
        if quota is None or pure is None:
            assert (rows, each) == (None, None)
            continue
        found = list(numbers_of_rows(who.bounds, possible, 5))
        assert quota.each == max(map(max, found))
        assert quota.total == max(map(sum, found))
        assert quota.squares == max(sum(n * n for n in counts) for counts in found)
        assert quota.scaled or quota.total == possible * quota.each
        assert pure.total == quota.total
        assert pure.each == (pure.total if pure.total == rows else quota.each)
        assert pure.scaled or pure.total == possible * pure.each
        compared += 1
    assert compared > 50


def test_flights_by_month() -> None:
    """What a new user tried: 400 rows a plane, in the whole answer instead of in each month."""
    wide = planned(MONTHS, flights(max_rows_per_group=400, max_groups=12)).sums[0]
    whole = planned(MONTHS, flights(max_rows=400)).sums[0]
    assert (wide.quota, whole.quota) == (Quota(400, 4800, 12, False), Quota(400, 400, None, True))
    assert whole.sensitivity.l1 == 400 * 2**16
    all_three = planned(
        MONTHS, flights(max_rows=400, max_rows_per_group=60, max_groups=12), mechanism="gaussian"
    ).sums[0]
    assert all_three.sensitivity.l2_squared == (6 * 60**2 + 40**2) * 2**32


def test_persons_are_bounded_by_rows_and_groups() -> None:
    persons = "SELECT month, COUNT(DISTINCT plane) AS n FROM flights GROUP BY month"
    totals = [
        planned(persons, flights(**own)).sums[0].quota.total
        for own in ({"max_rows": 400}, {"max_rows": 5}, {})
    ]
    assert totals == [12, 5, 12]


def test_keys_are_selected_by_persons_divided_among_their_groups() -> None:
    """However many groups a person may be in, its weights add up to one person."""
    cities = "SELECT city, COUNT(*) AS n FROM flights GROUP BY city"
    rows = [(1, 1, city, 0) for city in "abcd"] + [(2, 1, "a", 0)]
    data = flights(table(rows), max_rows=400)
    plan = planned(cities, data)
    assert plan.selection is not None
    assert plan.selection.l1 == plan.selection.linf == 2**16
    with so.Session(data) as session:
        groups = exact_groups(
            plan, [session._engine.run(statement) for statement in plan.statements]
        )
    assert groups.found is not None
    assert dict(zip([key for (key,) in groups.keys], groups.found, strict=True)) == {
        "a": 5 * 2**14,
        **dict.fromkeys("bcd", 2**14),
    }


def test_different_values_are_bounded_in_all_groups_together() -> None:
    rows = [(1, month, "a", x) for month in range(1, 5) for x in range(6)]
    text = "SELECT month, COUNT(DISTINCT x) AS n FROM flights GROUP BY month"
    for own, mechanism, most in (
        ({"max_rows": 7}, "gaussian", 7),
        ({"max_rows": 7, "max_rows_per_group": 2}, "gaussian", 7),
        ({"max_rows": 7, "max_groups": 1}, "gaussian", 6),
        # to choose one group would lower no sensitivity
        ({"max_rows": 7, "max_groups": 1}, "laplace", 7),
        ({"max_rows": 12, "max_rows_per_group": 1}, "laplace", 12),
        ({"max_rows_per_group": 4, "max_groups": 2}, "laplace", 8),
        ({"max_rows": 3, "max_rows_per_group": 2, "max_groups": 3}, "gaussian", 3),
    ):
        data = flights(table(rows), **own)
        plan = planned(text, data, mechanism=mechanism)
        with so.Session(data) as session:
            groups = exact_groups(
                plan, [session._engine.run(statement) for statement in plan.statements]
            )
        counts = groups.vectors["s0"][:, 0]
        assert sum(counts) == most, own
        assert max(counts) <= plan.sums[0].quota.each, own


def test_only_bounds_that_lower_the_noise_are_applied() -> None:
    """Twelve rows in one month are within max_rows: Laplace noise hides them as they are, and nothing else is said."""
    data = flights(table([(1, 1, "a", 5)] * 12 + [(2, month, "a", 5) for month in range(1, 13)]), max_rows=12,
                   max_rows_per_group=3, max_groups=4)  # fmt: skip
    for select, whole, cut in (
        ("COUNT(*)", 13, 4),
        ("SUM(x)", 13 * 5, 3 * 10 + 5),
        ("AVG(x)", 13 * 5, 4 * 5),
    ):
        for mechanism, counted in (("laplace", whole), ("gaussian", cut)):
            plan = planned(
                f"SELECT month, {select} AS n FROM flights GROUP BY month",
                data,
                mechanism=mechanism,
            )
            with so.Session(data) as session:
                groups = exact_groups(
                    plan, [session._engine.run(statement) for statement in plan.statements]
                )
            january = groups.vectors["s0"][0][-1] / plan.sums[0].unit
            assert january == counted, (select, mechanism)
            assert ("max_rows_per_group" in str(plan.notes)) == (mechanism == "gaussian")
    loose, wide = (
        planned(MONTHS, flights(max_rows=12, **own), mechanism="laplace")
        for own in ({"max_rows_per_group": 3}, {})
    )
    assert loose.sums[0].sensitivity == wide.sums[0].sensitivity


# A question's own bounds


def test_a_question_may_tighten() -> None:
    data = flights(max_rows_per_group=400, max_groups=12)
    tight = planned(MONTHS, data, max_groups=1)
    assert tight.sums[0].quota.total == 400
    assert tight.who.bounds == Bounds(None, 400, 1)
    assert planned(MONTHS, data, max_rows=30).sums[0].quota == Quota(30, 30, None, True)
    assert planned(MONTHS, flights(), max_rows=30).who.bounds == Bounds(30)
    rows = [(plane, month, "a", 1) for plane in range(50) for month in range(1, 13)]
    with so.Session(flights(table(rows), max_rows_per_group=400, max_groups=12)) as session:
        for answer in (
            session.sql("SELECT COUNT(*) AS n FROM flights", epsilon=100, max_rows=2),
            session.table("flights").agg(n=so.count()).run(epsilon=100, max_rows=2),
        ):
            (n,) = answer.to_dict()["n"]
            assert n == pytest.approx(100, abs=5)


@pytest.mark.parametrize("name", NAMES)
def test_a_question_never_widens(name: str) -> None:
    data = flights(max_rows=40, max_rows_per_group=40, max_groups=40)
    assert planned(MONTHS, data, **{name: 40})
    with pytest.raises(
        InvalidInput,
        match=rf"{name}=41: a question may tighten the owner's bounds, never widen them",
    ):
        planned(MONTHS, data, **{name: 41})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, True, "3", 10**9 + 1, Fraction(1, 2)])
def test_bad_bounds_are_refused(name: str, value: Any) -> None:
    with so.Session(flights(max_rows=40)) as session:
        with pytest.raises(InvalidInput, match=f"{name}=.*whole number from 1 to a billion"):
            session.sql(MONTHS, epsilon=1, **{name: value})
        assert session.receipts == ()


@pytest.mark.parametrize("name", NAMES)
def test_where_everybody_has_one_row_there_is_nothing_to_bound(name: str) -> None:
    one_row = (
        "SELECT COUNT(*) AS n FROM (SELECT plane, MAX(x) AS x FROM flights GROUP BY plane) AS p"
    )
    for data, sql in ((flights(unit="row"), MONTHS), (flights(max_rows=5), one_row)):
        with pytest.raises(InvalidInput, match=f"{name}=1: every person has one row here"):
            planned(sql, data, **{name: 1})
    public = so.Dataset(
        table([]), name="flights", public=True, columns=COLUMNS, budget=so.Budget(1)
    )
    with pytest.raises(InvalidInput, match=f"{name}=1: .*protect nobody"):
        planned(MONTHS, public, **{name: 1})


def test_previews_say_what_tighter_bounds_would_do() -> None:
    """Each line is what a plan under that bound says of its error."""
    data = flights(max_rows_per_group=400, max_groups=12)
    text = str(planned(MONTHS, data))
    assert "max_groups = 1: n ± 1,198 instead of ± 11,860" in text
    lines = [line.split() for line in text.splitlines() if line.startswith("  tighter")]
    assert {line[1] for line in lines} == set(NAMES)
    for _, name, _, value, *rest in lines:
        bound = int(value.rstrip(":").replace(",", ""))
        error = planned(MONTHS, data, **{name: bound}).errors()["n"]
        assert error is not None
        assert float(rest[2].replace(",", "")) == pytest.approx(error, rel=1e-3)
    assert "tighter" not in str(planned(MONTHS, flights(unit="row")))
