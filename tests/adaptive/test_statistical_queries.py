"""The oracle: exact on its lattice, charged before it reads, counted, and silent about rows."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from forked import refused_in_a_child
from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.adaptive.guard import GRID
from sordino.adaptive.noise_of_answers import NoiseName
from sordino.adaptive.predicate import Predicate
from sordino.adaptive.statistical_queries import Answered, StatisticalQueries
from sordino.adaptive.transfer import guarantee, plan
from sordino.errors import BudgetExceeded, InvalidInput, SordinoError
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.budget import Budget
from tape import Tape, replay

ROWS = np.arange(1_000) % 4


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_an_answer_is_the_mean_on_the_lattice_plus_the_noise_of_the_tape(noise: str) -> None:
    with replay(Tape(7)):
        oracle = StatisticalQueries(ROWS, questions=5, scale=0.01, noise=noise)  # type: ignore[arg-type]
        told = oracle.ask(lambda rows: rows == 0).value
    kind = Laplace if noise == "laplace" else Gaussian
    with replay(Tape(7)):
        drawn = kind(Fraction(1, 100), Fraction(1, 1_000 * GRID)).release(Fraction(1, 4))
    assert told == drawn


def test_half_widths_are_the_guarantees() -> None:
    oracle = StatisticalQueries(ROWS, questions=5, scale=0.01)
    answer = oracle.ask(lambda rows: rows == 0)
    promise = guarantee(oracle.mechanism, 1_000, 5)
    assert (answer.half_width, answer.noise) == (promise.population, promise.sample)
    assert (
        oracle.guarantee(0.5).population
        < promise.population
        < oracle.guarantee(method="posterior").population
    )


def test_answers_stay_within_the_noise_they_state() -> None:
    with replay(Tape(3)):
        oracle = StatisticalQueries(ROWS, questions=200)
        found = [oracle.ask(lambda rows: rows / 3).value for _ in range(200)]
    assert max(abs(value - 0.5) for value in found) <= oracle.guarantee().sample  # type: ignore[operator]


@pytest.mark.parametrize(
    ("noise", "budget"),
    [("gaussian", Budget(1, 1e-6)), ("laplace", Budget(1)), ("laplace", Budget(1, 1e-6))],
)
def test_a_budget_is_what_all_questions_need_and_is_used_up(noise: str, budget: Budget) -> None:
    oracle = StatisticalQueries(ROWS, questions=40, budget=budget, noise=noise)  # type: ignore[arg-type]
    assert oracle.loss().delta(budget.epsilon) <= budget.delta
    assert TwoMeterFilter(budget).fits(Charge.of(oracle._each)) == 40
    for left in reversed(range(40)):
        assert oracle.ask(lambda rows: rows == 1).left == left
    assert oracle.meter is not None
    assert not oracle.meter.allows(Charge.of(oracle._each))
    with pytest.raises(BudgetExceeded, match="40 questions"):
        oracle.ask(lambda rows: rows == 1)
    assert (oracle.asked, oracle.left) == (40, 0)


def test_a_meter_pays_for_all_questions_at_once_and_what_is_left_for_no_more() -> None:
    meter = TwoMeterFilter(Budget(1))
    oracle = StatisticalQueries(
        ROWS, questions=2, scale=Fraction(1, 250), noise="laplace", meter=meter
    )
    assert oracle.meter is not None
    assert oracle.meter.remaining.pure == Fraction(1, 2)
    oracle.ask(lambda rows: rows == 1)
    assert oracle.meter.remaining.pure == Fraction(1, 2)
    for questions, payer in ((5, meter), (3, oracle.meter)):
        with pytest.raises(BudgetExceeded):
            StatisticalQueries(
                ROWS, questions=questions, scale=Fraction(1, 250), noise="laplace", meter=payer
            )
    for wrong in (Budget(1, 1e-6), 1):
        with pytest.raises(InvalidInput, match="a filter that pays"):
            StatisticalQueries(ROWS, questions=2, scale=1, meter=wrong)  # type: ignore[arg-type]


def test_a_forked_child_cannot_ask() -> None:
    oracle = StatisticalQueries(ROWS, questions=3, budget=Budget(1, 1e-6))
    assert refused_in_a_child(lambda: oracle.ask(lambda rows: rows == 1))
    assert oracle.left == 3


@pytest.mark.parametrize("scale", [10**300, 10**400, Fraction(1, 10**400)])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_noise_of_any_size_gives_an_answer(scale: int | Fraction, noise: NoiseName) -> None:
    answer = StatisticalQueries(ROWS, questions=3, scale=scale, noise=noise).ask(
        lambda rows: rows == 1
    )
    assert answer.half_width == 1.0
    assert (answer.noise == 1.0) == (scale > 1)
    assert 0 <= answer.value <= 1


def test_a_refused_question_costs_nothing() -> None:
    oracle = StatisticalQueries(ROWS, questions=2, budget=Budget(1, 1e-6))
    before = oracle.meter
    for bad in (lambda rows: 1 / 0, lambda rows: rows * np.nan, lambda rows: "yes", "rows > 1", 3):
        with pytest.raises(SordinoError):
            oracle.ask(bad)  # type: ignore[arg-type]
    assert (oracle.left, oracle.meter) == (2, before)


@pytest.mark.parametrize(
    "phi",
    [
        lambda rows: np.where(rows == 3, np.nan, 0.25),
        lambda rows: np.where(rows == 3, 17.0, -4.0),
        lambda rows: [1 / (3 - int(row)) for row in rows],
    ],
    ids=["missing", "outside", "raises"],
)
def test_failing_on_the_rows_has_the_same_status_as_not(phi: object) -> None:
    """NaN and errors count 0, values outside are clamped: the status tells nothing of the rows."""
    with replay(Tape(1)):
        told = [
            StatisticalQueries(sample, questions=3, scale=0.001).ask(phi)  # type: ignore[arg-type]
            for sample in (ROWS, ROWS % 3)
        ]
    for answer in told:
        assert (answer.half_width, answer.noise, answer.left) == (
            told[0].half_width,
            told[0].noise,
            2,
        )
        assert 0 <= answer.value <= 1


def test_the_charge_is_made_before_the_rows_are_read() -> None:
    oracle = StatisticalQueries(ROWS, questions=3, budget=Budget(1, 1e-6))
    seen = []

    def phi(rows: np.ndarray) -> object:
        seen.append((len(rows), oracle.left))
        return rows == 0

    oracle.ask(phi)
    assert seen == [(4, 3), *[(1, 3)] * 4, (1_000, 2)]


def test_conditions_in_sql() -> None:
    table = pa.table(
        {
            "age": [70, 30, None, 90],
            "ward": ["A", "B", "A", None],
            "cost": [1.5, float("nan"), 2.5, 9.0],
            "smoker": [True, False, None, True],
            "since": pa.array([0, 1, 2, None], pa.date32()),
            "blob": [b"x", b"y", b"z", b"w"],
        }
    )
    cases = {
        "age >= 65": [1, 0, 0, 1],
        "ward = 'A' OR age > 80": [1, 0, 1, 1],
        "cost > 2": [0, 0, 1, 1],
        "smoker": [1, 0, 0, 1],
        "NOT smoker": [0, 1, 0, 0],
        "age / (age - 70) > 0": [0, 0, 0, 1],
        "since < DATE '1970-01-02'": [1, 0, 0, 0],
        "ward IS NULL": [0, 0, 0, 1],
    }
    for text, found in cases.items():
        assert Predicate.of(text, table)(table).tolist() == found, text
    frames = table.select(["age", "cost"])
    for rows in (frames.to_pandas(), {"age": np.array([70, 30, 0, 90]), "cost": np.ones(4)}):
        assert Predicate.of("age >= 65", rows)(rows).tolist() == [1, 0, 0, 1]
    for bad in (
        "age",
        "nothing > 1",
        "blob = 'x'",
        "age > (SELECT 1)",
        "age >= 65; DROP TABLE rows",
        "COUNT(*) > 1",
        "read_csv('x') = 1",
        "",
    ):
        with pytest.raises(SordinoError):
            Predicate.of(bad, table)


def test_a_condition_is_asked_like_a_function() -> None:
    sample = pa.table({"age": np.arange(10_000) % 100, "ward": ["A", "B"] * 5_000})
    with replay(Tape(9)):
        answer = StatisticalQueries(sample, questions=10).ask("age >= 65 AND ward = 'A'")
    assert abs(answer.value - 0.17) <= answer.noise
    with pytest.raises(InvalidInput, match="named columns"):
        StatisticalQueries(ROWS, questions=1).ask("age > 1")
    with pytest.raises(InvalidInput, match="one table"):
        StatisticalQueries((ROWS, ROWS), questions=1).ask("age > 1")


def test_so_far_can_be_read_at_any_time() -> None:
    """Its failures over all moments sum to at most the one that was allowed."""
    oracle = StatisticalQueries(ROWS, questions=100, scale=0.02)
    errors = []
    for _ in range(20):
        oracle.ask(lambda rows: rows == 1)
        errors.append(oracle.so_far().population)
    assert errors == sorted(errors)
    assert len(set(errors)) == 6  # 1, 2, 4, 8, 16, 32 questions
    assert sum(Fraction(1, (j + 1) * (j + 2)) for j in range(100)) < 1
    failure = 1 - (1 - Fraction("0.05") / (3 * 4))
    assert errors[2] == errors[3] == guarantee(oracle.mechanism, 1_000, 4, 1 - failure).population


@pytest.mark.parametrize(
    "bad",
    [
        {"questions": 0},
        {"questions": True},
        {"questions": 5, "noise": "cauchy"},
        {"questions": 5, "scale": 0},
        {"questions": 5, "scale": 1, "budget": Budget(1, 1e-6)},
        {"questions": 5, "budget": Budget(1)},
        {"questions": 5, "meter": TwoMeterFilter(Budget(1)), "budget": Budget(1, 1e-6)},
        {"questions": 5, "confidence": 1},
        {"questions": 5, "confidence": 1 - Fraction(1, 10**400)},
    ],
)
def test_bad_input_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        StatisticalQueries(ROWS, **bad)  # type: ignore[arg-type]


def test_it_cannot_be_copied_and_shows_no_rows() -> None:
    oracle = StatisticalQueries(ROWS, questions=5, scale=0.01)
    for take in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput):
            take(oracle)
    assert (
        repr(oracle)
        == "StatisticalQueries(1,000 rows, gaussian noise of scale 0.01, 5 of 5 questions left)"
    )


def test_an_oracle_that_promises_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one half or more") as refused:
        StatisticalQueries([1, 0, 1], questions=10)
    assert "about 192 rows" in refused.value.hint
    assert StatisticalQueries(np.ones(192), questions=10).guarantee().population < 0.5
    with pytest.raises(InvalidInput, match="questions=62"):
        StatisticalQueries(np.ones(300), questions=1_000)
    assert StatisticalQueries(np.ones(300), questions=62).guarantee().population < 0.5
    assert StatisticalQueries([1, 0, 1], questions=10, scale=0.1).left == 10
    assert StatisticalQueries([1, 0, 1], questions=10, budget=Budget(1, 1e-6)).left == 10


def test_answers_and_guarantees_read_well() -> None:
    answer = Answered(0.11047302246, 0.0310643139, 0.0117253734, 99)
    assert (
        str(answer)
        == "0.1105, within 0.0311 of the population and 0.0118 of the sample; 99 questions left"
    )
    assert float(answer) == 0.11047302246
    fine = Answered(0.11047302246, 0.000310643139, 1.17e-5, 1)
    assert (
        str(fine)
        == "0.110473, within 0.000311 of the population and 0.0000117 of the sample; 1 question left"
    )
    found = StatisticalQueries(ROWS, questions=5, budget=Budget(1, 1e-6))
    told = "all within 0.1797 of the population and 0.0243 of the sample (conditional, gaussian noise of scale 0.009447)"
    assert str(found.guarantee()) == told
    assert (
        repr(found)
        == "StatisticalQueries(1,000 rows, gaussian noise of scale 0.009447, 5 of 5 questions left)"
    )
    union, splitting = map(str, plan(1_000, 10).ways[:2])
    assert union.endswith(
        "and 0 of the sample; only for questions fixed beforehand (union, no noise)"
    )
    assert splitting == "all within 0.1731 of the population (splitting, no noise)"


def test_a_sample_is_one_argument_and_a_question_a_function_or_a_text() -> None:
    with pytest.raises(InvalidInput, match=r"in a tuple: \(X, y\)"):
        StatisticalQueries(ROWS, ROWS, questions=5)
    with pytest.raises(InvalidInput, match="a condition in SQL"):
        StatisticalQueries(ROWS, questions=5).ask(5)  # type: ignore[arg-type]
