"""The worked examples of CONTRIBUTING.md obey the laws of the parts that come along: nobody copies a wrong one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from contextlib import closing
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import sordino as so
from engine_plug import Plug
from ledger import test_conformance as conformance
from local_laws import Law, Walk
from page_examples import run_page
from sordino.audit.replayed.distances import exactly
from sordino.engines.duckdb import DuckDB
from sordino.ledger.opening import first_entry
from sordino.ledger.place import Place
from sordino.ledger.terms import Terms
from sordino.query.aggregates.registry import register
from sordino.release import exact_groups
from tape import Tape, replay

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What the page defines."""
    return run_page(PAGE)


def test_the_mechanism_is_exactly_as_private_as_it_says(made: dict[str, Any]) -> None:
    for ratio in (Fraction(1, 2), Fraction(9, 10)):
        mechanism = made["TruncatedGeometric"](ratio, most=6)
        laws = [[mechanism.pmf(k, value) for k in range(7)] for value in range(7)]
        for p, q in pairwise(laws):
            assert sum(p) == 1
            assert max(max(a / b, b / a) for a, b in zip(p, q, strict=True)) == 1 / ratio
            for epsilon in (0, 0.1, 0.5):
                found = so.FiniteLoss(tuple(p), tuple(q)).delta(epsilon)
                assert abs(found - mechanism.loss().delta(epsilon)) < 1e-12
        assert mechanism.cdf(6, 2) == 1


def test_the_mechanism_draws_the_law_that_it_states_and_not_one_that_is_a_little_off(
    made: dict[str, Any],
) -> None:
    mechanism = made["TruncatedGeometric"](Fraction(3, 4), most=8)
    with replay(Tape(3)):
        found = Counter(mechanism.release(2) for _ in range(15_000))
    for ratio, right in ((Fraction(3, 4), True), (Fraction(3, 4) * Fraction(19, 20), False)):
        other = made["TruncatedGeometric"](ratio, most=8)
        expected = [float(other.pmf(k, 2)) * 15_000 for k in range(9)]
        fits = chisquare([found[k] for k in range(9)], expected).pvalue
        assert fits > 0.01 if right else fits < 1e-6


def test_an_audit_sees_the_mechanism_draw(made: dict[str, Any]) -> None:
    """It goes through the one door, so that a replay freezes it."""
    mechanism = made["TruncatedGeometric"](Fraction(1, 2), most=9)
    calls = list[Any]()

    def watcher(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
        calls.append((mechanism, operation, value))
        return draw()

    from sordino.mechanisms.observer import watching

    with watching(watcher):
        mechanism.release(4)
    assert calls == [(mechanism, "release", 4)]
    with pytest.raises(so.errors.InvalidInput, match="from 0 to 9"):
        mechanism.release(10)
    with pytest.raises(so.errors.InvalidInput, match="between 0 and 1"):
        made["TruncatedGeometric"](Fraction(1), most=9)


@pytest.fixture
def squares(made: dict[str, Any]) -> Iterator[None]:
    unregister = register(made["SQUARES"])
    yield
    unregister()


@pytest.mark.usefixtures("squares")
def test_the_aggregate_moves_no_further_than_its_plan_says() -> None:
    ages = [3, 110, 0, 57, -4, 250, 110, 19]  # two are outside of the bounds
    found = {}
    for left_out in (None, *range(len(ages))):
        rows = [age for place, age in enumerate(ages) if place != left_out]
        data = so.Dataset(
            pa.table({"age": rows}), name="people", unit="row", budget=so.Budget(10),
            columns={"age": {"type": "int", "min": 0, "max": 110}},
        )  # fmt: skip
        plug = Plug()
        with so.Session(data, engine=plug) as session:
            plan = session.preview(
                "SELECT SUM_OF_SQUARES(age) AS s FROM people", epsilon=1, bias=False
            )
            sums = plug.duckdb.run(plan.statements[0]).sums
        found[left_out] = int(sums[0][0])
    clamped = [min(max(age, 0), 110) for age in ages]
    assert found[None] == sum(age**2 for age in clamped)
    moved = [found[None] - found[place] for place in range(len(ages))]
    assert moved == [age**2 for age in clamped]
    assert max(moved) == 110**2  # the reach that the example declares, and no more


def test_the_engine_returns_the_integers_of_duckdb(made: dict[str, Any]) -> None:
    rows = pa.table({"id": [1, 1, 2, 3], "x": [5, 6, 7, 100], "g": ["a", "b", "a", "a"]})
    columns: dict[str, dict[str, Any]] = {
        "x": {"type": "int", "min": 0, "max": 9},
        "g": {"type": "category", "values": ["a", "b"]},
    }
    data = so.Dataset(rows, name="t", unit="id", max_rows=2, columns=columns, budget=so.Budget(10))
    questions = (
        "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g",
        "SELECT AVG(x) AS m FROM t WHERE x > 5",
    )
    with so.Session(data, engine=made["Noted"]) as session:
        plans = [session.preview(question, epsilon=1, bias=False) for question in questions]
        for question in questions:
            session.sql(question, epsilon=1, bias=False)
    tables = list(data.tables.values())
    with closing(made["Noted"](tables)) as noted, closing(DuckDB(tables)) as duckdb:
        for plan in plans:
            found, wanted = (
                exactly(exact_groups(plan, [engine.run(one) for one in plan.statements]))
                for engine in (noted, duckdb)
            )
            assert found == wanted
        assert noted.count == sum(len(plan.statements) for plan in plans)


LAWS = (
    conformance.test_a_charge_has_a_receipt_and_then_an_answer,
    conformance.test_a_repeated_request_gets_the_same_bytes_and_is_charged_once,
    conformance.test_an_open_charge_is_neither_answered_nor_charged_again,
    conformance.test_a_forfeited_charge_stays_spent_and_cannot_be_answered,
    conformance.test_three_thirds_are_exactly_one_and_then_nothing_is_left,
    conformance.test_sub_budgets_bind_each_analyst_and_the_whole_binds_all,
    conformance.test_verify_and_anchors,
    conformance.test_a_large_answer_comes_back_whole,
    conformance.test_threads_share_one_ledger,
    conformance.test_a_store_refuses_a_row_after_another_head_and_a_second_request,
    conformance.test_a_ledger_is_made_once,
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_store_obeys_the_laws_of_stores(
    law: Any, made: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, known = made["LinesStore"], Place.of

    def of(where: str) -> Place:
        if not where.startswith("lines://"):
            return known(where)
        path = where.removeprefix("lines://")
        return Place(
            where,
            Path(path).exists,
            lambda first, key: store.create(path, first, key),
            lambda: store(path),
        )

    monkeypatch.setattr(Place, "of", staticmethod(of))
    with closing(conformance.Home(f"lines://{tmp_path}/visits.lines")) as home:
        law(home)


def test_the_store_forgets_a_line_that_was_cut_off(made: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "visits.lines"
    first, key = first_entry(Terms.of(conformance.data()))
    assert made["LinesStore"].create(str(path), first, key)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"row": [2, "half of a')
    with closing(made["LinesStore"](str(path))) as store:
        assert list(store.rows()) == [first]
        store.begin()
        store.append(conformance.following(store), store.head())
        store.commit()
        assert [row.sequence for row in store.rows()] == [1, 2]
        assert store.key() == key
    assert path.read_bytes().startswith(whole + b'{"row": [2,')


def walked(made: dict[str, Any], run: Any) -> Law:
    """The law of a function of the page, by walking all branches of its draws."""
    law, walk = defaultdict[Hashable, Fraction](Fraction), Walk()
    draws = {name: getattr(walk, name) for name in ("bernoulli", "uniform")}
    with mock.patch.dict(made, draws):
        while True:
            law[run()] += walk.weight
            if not walk.advance():
                return dict(law)


@pytest.mark.parametrize(("odds", "categories"), [(Fraction(3), 2), (Fraction(5, 2), 4)])
def test_the_protocol_has_the_law_that_it_states(
    made: dict[str, Any], odds: Fraction, categories: int
) -> None:
    protocol = made["NegativeSurvey"](odds, categories)
    one = [walked(made, lambda x=x: protocol.randomize_one(x)) for x in range(categories)]
    many = [
        walked(made, lambda x=x: int(protocol.randomize(np.array([x])).column[0]))
        for x in range(categories)
    ]
    assert one == many
    for p, q in permutations(one, 2):
        assert sum(p.values()) == 1
        assert max(p[y] / q[y] for y in p) == odds == protocol.loss().p[0] / protocol.loss().q[0]
    for x, law in enumerate(one):
        speaks = [sum(chance for y, chance in law.items() if y != j) for j in range(categories)]
        assert speaks == [protocol.own if j == x else protocol.other for j in range(categories)]
