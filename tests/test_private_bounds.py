"""Questions with bounds="private": one charge for both stages, whatever is found; what is found is said and used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from first_of import first_of
from sordino.errors import EngineFailed, InvalidInput, RequestRefused
from sordino.mechanisms.interval_draw import IntervalDraw
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.observer import watching
from sordino.plan.private_bounds import PrivateBounds
from sordino.plan.sensitivity import WEIGHT
from sordino.query.bounds_search import NumberSearch
from sordino.query.front.sql import parse
from tape import Tape, replay

RNG = np.random.default_rng(6)
N = 5000
TABLE = pa.table(
    {
        "p": np.arange(N) // 4,
        "cost": RNG.lognormal(4, 1, N),
        "dose": RNG.uniform(-3, 3, N),
        "age": RNG.integers(18, 90, N),
        "ward": RNG.choice(list("ABC"), N),
        "city": RNG.choice(["Bern", "Thun"], N),
    }
)
COLUMNS: dict[str, Any] = {
    "cost": {"type": "float"},
    "dose": {"type": "float"},
    "age": {"type": "int", "min": 0, "max": 110},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
}
BOUNDED = re.compile(r"Bounds of (.+) found privately: (\S+) to ([^\s;]+);")


def opened(unit: str = "p", **more: Any) -> so.Session:
    more = {"max_rows": 8, **more} if unit == "p" else more
    return so.Session(
        so.Dataset(
            TABLE, unit=unit, columns=COLUMNS, budget=so.Budget(500, 1e-6), name="visits", **more
        )
    )


@pytest.fixture(scope="module", params=["p", "row"])
def session(request: pytest.FixtureRequest) -> Iterator[so.Session]:
    with opened(request.param) as found:
        yield found


def found_in(answer: so.Answer) -> dict[str, tuple[float, float]]:
    return {
        name: (float(low), float(high))
        for note in answer.notes
        for name, low, high in BOUNDED.findall(note)
    }


QUESTIONS = {
    "SELECT AVG(cost) AS x FROM visits": ["cost"],
    "SELECT SUM(cost) AS x, AVG(cost) AS y, COUNT(*) AS n FROM visits WHERE age > 40": ["cost"],
    "SELECT ward, MEDIAN(cost) AS x FROM visits GROUP BY ward ORDER BY x": ["cost"],
    "SELECT city, SUM(cost) / COUNT(*) AS x FROM visits GROUP BY city": ["cost"],
    "SELECT VARIANCE(dose) AS x, STDDEV(cost) AS y FROM visits": ["dose", "cost"],
    "SELECT CORR(cost, dose) AS x FROM visits": ["cost", "dose"],
    "SELECT CORR(cost, age) AS x FROM visits": ["cost"],
    "SELECT AVG(ABS(dose) * 2) AS x FROM visits": ["the argument of x"],
    "SELECT AVG(cost) FILTER (WHERE ward = 'A') AS x FROM visits HAVING x > 0": [
        "the argument of x"
    ],
    "SELECT SUM(cost) AS x, COUNT(DISTINCT cost) AS d, COUNT(dose) AS k FROM visits": ["cost"],
}


@pytest.mark.parametrize("question", first_of(5, QUESTIONS))
def test_it_is_answered_and_says_what_was_found(session: so.Session, question: str) -> None:
    with pytest.raises(InvalidInput, match='bounds="private"'):
        session.sql(question, epsilon=6)
    before = session.remaining
    with replay(Tape(5)):
        answer = session.sql(question, epsilon=6, bounds="private")
    assert list(found_in(answer)) == QUESTIONS[question]
    for low, high in found_in(answer).values():
        assert low < high
    share = 30 if len(QUESTIONS[question]) == 1 else 50
    assert any(f"Finding bounds took {share} % of epsilon 6." in note for note in answer.notes)
    assert "(epsilon = 6" in answer.privacy
    spent = (before.mu_squared or 0) - (session.remaining.mu_squared or 0)
    assert answer.receipt is not None
    assert spent == answer.receipt.charge.mu_squared


def test_means_come_out_right() -> None:
    exact = float(np.mean(TABLE["cost"].to_numpy()))
    with opened("row") as session, replay(Tape(8)):
        answers = [
            session.sql("SELECT AVG(cost) AS x FROM visits", epsilon=5, bounds="private")
            for _ in range(10)
        ]
    assert np.median([abs(answer.to_arrow()["x"][0].as_py() - exact) for answer in answers]) < 2


def test_too_little_epsilon_is_said(session: so.Session) -> None:
    answer = session.sql("SELECT AVG(cost) AS x FROM visits", epsilon=0.001, bounds="private")
    assert any("TOO UNCERTAIN" in note for note in answer.notes)


def test_one_charge_whatever_is_found(session: so.Session) -> None:
    """The plan for bounds of any size costs what was charged; with either noise, and with private keys."""
    for mechanism in ("laplace", "gaussian"):
        for question in ("SELECT city, SUM(cost) AS s, MEDIAN(dose) AS m FROM visits GROUP BY city",
                         "SELECT AVG(cost) AS s, VARIANCE(dose) AS m FROM visits"):  # fmt: skip
            plan = session.preview(question, epsilon=1, mechanism=mechanism, bounds="private")
            assert isinstance(plan, PrivateBounds)
            # the meters move on
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1, mechanism=mechanism)
            searches = [one.search for one in plan.searched if isinstance(one.search, NumberSearch)]
            for low, high in ((0, 1), (2, 60), (70, 71), (100, -1), (0, -1)):
                limits = [one.fine(one.coarse[low], one.coarse[high]) for one in searches]
                for ends in ((0, 1), (0, -1), (-2, -1)):
                    settled = plan.settled(
                        [(points[ends[0]], points[ends[1]]) for points in limits]
                    )
                    assert settled.charge == plan.price.charge
            parts = sum((one.charge.pure or Fraction(0) for one in plan.searched), Fraction(0))
            assert parts == plan.share == Fraction(1, 2)
            if mechanism == "laplace":
                assert plan.charge.pure is not None
                assert plan.charge.pure >= parts + plan.price.epsilon == 1


def test_what_runs_costs_what_was_charged(session: so.Session) -> None:
    """Every mechanism that is called, at its declared sensitivity, sums to the epsilon of the question."""
    weight = 1 if session.dataset.tables["visits"].person is None else WEIGHT
    spent: list[Fraction] = []

    def watcher(mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
        if isinstance(mechanism, IntervalDraw):
            spent.append(mechanism.whole_rate * weight)
        elif isinstance(mechanism, Laplace):
            spent.append(weight / mechanism.scale)
        elif operation == "release":
            spent.append(mechanism.charge.pure)
        return draw()

    with watching(watcher):
        session.sql(
            "SELECT AVG(cost) AS x FROM visits", epsilon=1, mechanism="laplace", bounds="private"
        )
    assert len(spent) == 4
    assert sum(spent) == 1


def test_what_is_declared_is_used_and_nothing_is_searched(session: so.Session) -> None:
    plain = session.preview("SELECT AVG(age) AS x FROM visits", epsilon=1)
    same = session.preview("SELECT AVG(age) AS x FROM visits", epsilon=1, bounds="private")
    assert type(same) is type(plain)
    assert same.charge == plain.charge


def test_the_preview_tells_the_share(session: so.Session) -> None:
    text = str(session.preview("SELECT AVG(cost) AS x FROM visits", epsilon=1, bounds="private"))
    assert "bounds of cost first, for epsilon 0.3 of 1" in text
    assert "private with epsilon 1" in text
    assert session.fits("SELECT AVG(cost) AS x FROM visits", epsilon=1, bounds="private") > 0


def test_python_questions_take_it_too(session: so.Session) -> None:
    answer = session.table("visits").agg(x=so.mean("cost")).run(epsilon=1, bounds="private")
    assert list(found_in(answer)) == ["cost"]


def test_the_same_request_gives_the_same_bytes(session: so.Session) -> None:
    name = f"again {session.dataset.tables['visits'].unit}"
    one = session.sql(
        "SELECT AVG(cost) AS x FROM visits", epsilon=1, bounds="private", request_id=name
    )
    two = session.sql(
        "SELECT AVG(cost) AS x FROM visits", epsilon=1, bounds="private", request_id=name
    )
    assert one.to_json() == two.to_json()
    with pytest.raises(RequestRefused):
        session.sql("SELECT AVG(CLAMP(cost, 0, 9)) AS x FROM visits", epsilon=1, request_id=name)


@pytest.mark.parametrize(
    ("question", "asked", "words"),
    [
        (
            "SELECT AVG(cost) AS x FROM visits",
            {"epsilon": 1, "bounds": "public"},
            "bounds='public'",
        ),
        ("SELECT AVG(cost) AS x FROM visits", {"epsilon": 1, "bounds": True}, "bounds=True"),
        ("SELECT AVG(cost) AS x FROM visits", {"epsilon": 1, "bounds": (0, 5)}, "bounds="),
        (
            "SELECT AVG(cost) AS x FROM visits",
            {"error": 5, "bounds": "private"},
            "no price beforehand",
        ),
        (
            "SELECT AVG(city) AS x FROM visits",
            {"epsilon": 1, "bounds": "private"},
            "needs a number",
        ),
        ("SELECT AVG(costs) AS x FROM visits", {"epsilon": 1, "bounds": "private"}, "Did you mean"),
        (
            "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost",
            {"epsilon": 1, "bounds": "private"},
            "GROUP BY cost",
        ),
        ("SELECT MODE(cost) AS x FROM visits", {"epsilon": 1, "bounds": "private"}, "MODE"),
    ],
)
def test_bad_input_costs_nothing(
    session: so.Session, question: str, asked: dict[str, Any], words: str
) -> None:
    before = session.remaining
    with pytest.raises(InvalidInput, match=re.escape(words)):
        session.sql(question, **asked)
    assert session.remaining == before


def test_public_tables_have_their_own_bounds() -> None:
    """Nothing has to be found, and nothing is charged."""
    table = {"source": TABLE, "public": True, "columns": {"cost": {"type": "float"}}}
    protected = {"source": TABLE, "unit": "row", "columns": {"age": {"type": "int"}}}
    both = so.Dataset(tables={"t": table, "u": protected}, budget=so.Budget(1))
    with so.Session(both) as session:
        answer = session.sql("SELECT AVG(cost) AS x FROM t", epsilon=1, bounds="private")
    assert answer.receipt is not None
    assert answer.receipt.charge.pure == 0
    assert not found_in(answer)


def test_a_failure_in_the_second_stage_is_forfeited(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("row") as session:
        run, calls = session._engine.run, []

        def fails_later(statement: Any) -> Any:
            calls.append(statement)
            if len(calls) > 1:
                raise ValueError("secret")
            return run(statement)

        monkeypatch.setattr(session._engine, "run", fails_later)
        before = session.remaining.pure or 0
        with pytest.raises(EngineFailed):
            session.sql(
                "SELECT AVG(cost) AS x FROM visits",
                epsilon=1,
                mechanism="laplace",
                bounds="private",
            )
        assert before - (session.remaining.pure or 0) == 1
        assert len(calls) == 2


def test_the_offer_is_part_of_the_request() -> None:
    from sordino.plan.cost import Cost

    assert "private_bounds=True" in str(Cost.offered(epsilon=1, bounds="private"))
    assert "bounds" not in str(Cost.offered(epsilon=1))
    assert parse("SELECT COUNT(*) AS n FROM visits").outputs


@pytest.mark.parametrize(("function", "argument"), first_of(3, [
    ("SUM", "LEAST(cost, 0)"), ("AVG", "-ABS(dose)"), ("SUM", "GREATEST(cost, 7)"), ("AVG", "LEAST(dose, -0.0000001)"),
    ("AVG", "LEAST(cost, 0)"), ("SUM", "-ABS(dose)"), ("AVG", "GREATEST(cost, 7)"), ("SUM", "LEAST(dose, -0.0000001)"),
]))  # fmt: skip
def test_arguments_with_one_known_end_are_answered(
    session: so.Session, argument: str, function: str
) -> None:
    """Bounds are tried within what is known: a sum of what is never above 0 was refused by a failed check."""
    answer = session.sql(
        f"SELECT {function}({argument}) AS s FROM visits", epsilon=1, bounds="private"
    )
    assert found_in(answer)
