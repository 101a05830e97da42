"""After the charge nothing of ours fails: extreme offers, numbers and levels are refused before it, or answered."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.plan.explain import _factor
from sordino.query.aggregates.quantiles import noisy_quantiles
from tape import Tape

_KINDS = {
    "p": pa.int64(),
    "age": pa.int64(),
    "wide": pa.int64(),
    "cost": pa.float64(),
    "big": pa.float64(),
}
_KINDS |= {"tiny": pa.float64(), "free": pa.float64(), "ward": pa.string(), "city": pa.string()}
_KINDS |= {"ok": pa.bool_(), "day": pa.date32(), "at": pa.timestamp("us")}
_SCHEMA = pa.schema(list(_KINDS.items()))
_COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "int", "min": 0, "max": 110},
    "wide": {"type": "int", "min": -(2**51), "max": 2**51},
    "cost": {"type": "float", "min": -5000, "max": 5000},
    "big": {"type": "float", "min": -1e140, "max": 1e140, "step": 1e134},
    "tiny": {"type": "float", "min": 0, "max": 1e-290, "step": 1e-296},
    "free": {"type": "float"},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
    "ok": {"type": "bool"},
    "day": {"type": "date", "min": "2020-01-01", "max": "2020-02-01"},
    "at": {"type": "datetime", "min": "2020-01-01T00:00:00", "max": "2020-01-03T00:00:00"},
}
_WORLDS: list[dict[str, Any]] = [
    {"unit": "p", "max_rows_per_group": 3, "max_groups": 2},
    {"unit": "p", "max_rows_per_group": 2**20, "max_groups": 2**19, "neighbors": "replace"},
    {"unit": "row"},
    {"unit": "row", "neighbors": "replace"},
    {"public": True},
]
_NUMBERS: tuple[str, ...] = (
    "0",
    "1",
    "-1",
    "0.1",
    "1e-300",
    "1e-200",
    "1e300",
    "9e307",
    "1e308",
    "4611686018427387904",
    "5e-324",
    "1e150",
)
_NUMBERS += ("1e-308", "123456789012345678901234567890", "7", "2.5", "1e100")
_LEVELS = (
    "0",
    "1",
    "0.5",
    "1e-300",
    "0.9999999999999999999999",
    "0.3333333333333333333333333333333333333",
)
_CONFIDENCES = (5e-324, 1e-300, 1e-9, 0.5, 0.95, 1 - 1e-9, 1 - 2**-53)
_KEYS: tuple[list[str], ...] = (
    [],
    [],
    ["ward"],
    ["city"],
    ["ok"],
    ["day"],
    ["DATE_TRUNC('hour', at)"],
    ["ward", "ok"],
    ["ROUND(cost, -3)"],
)


def _table(rows: int) -> pa.Table:
    def cells(i: int) -> tuple[Any, ...]:
        day = dt.datetime(2020, 1, 1 + i % 30, i % 24)
        numbers = (i * 37.5 - 500, i * 1e139, i * 1e-292, (-1) ** i * 10.0 ** (i * 10))
        return (
            i % 7,
            None if i % 9 == 0 else 5 * i,
            (-1) ** i * 4**i,
            *numbers,
            "ABCD"[i % 4],
            "x" * (i % 3),
            i % 2 == 0,
            day,
            day,
        )

    columns = [list(column) for column in zip(*map(cells, range(rows)), strict=True)] or [[]] * len(
        _SCHEMA
    )
    return pa.table(
        [pa.array(c, field.type) for c, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )


@pytest.fixture(scope="module")
def sessions() -> Iterator[list[so.Session]]:
    with ExitStack() as stack:
        budgets = so.Budget(10**6, 0.5), so.Budget(10**6)
        yield [
            stack.enter_context(
                so.Session(
                    so.Dataset(_table(rows), name="v", columns=_COLUMNS, budget=budget, **world)
                )
            )
            for world, rows, budget in itertools.product(_WORLDS, (25, 1, 0), budgets)
        ]


class _Questions:
    """Random questions with numbers of extreme size in every function and aggregate, and random offers for them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def number(self) -> str:
        c = self.chance
        return (
            c.choice(_NUMBERS)
            if c.random() < 0.7
            else f"{c.choice(['1', '9.99', '4.5', '-3'])}e{c.randint(-320, 308)}"
        )

    def value(self, depth: int = 0) -> str:
        c, n = self.chance, self.number

        def x() -> str:
            return self.value(depth + 1)

        if depth > 3 or c.random() < 0.35:
            return c.choice(["age", "cost", "big", "tiny", "free", "wide"])
        forms: list[Callable[[], str]] = [
            n,
            lambda: f"({x()} {c.choice('+-*/')} {x()})",
            lambda: f"({x()} {c.choice('+-*/')} {n()})",
            lambda: f"({x()} * {n()} * {n()})",
            lambda: f"LEAST({x()}, {n()})",
            lambda: f"GREATEST({x()}, {n()})",
            lambda: f"LEAST(GREATEST({x()}, {n()}), {n()})",
            lambda: f"ROUND({x()}, {c.randint(-18, 15)})",
            lambda: f"{c.choice(['FLOOR', 'CEIL', 'ABS', 'ROUND', '-'])}({x()})",
            lambda: f"BUCKET({x()}, {n()})",
            lambda: f"CASE WHEN {x()} > {n()} THEN {x()} ELSE {x()} END",
            lambda: f"COALESCE({x()}, {x()})",
            lambda: f"({x()} % {n()})",
            lambda: f"NULLIF({x()}, {n()})",
        ]
        return c.choice(forms)()

    def aggregate(self) -> str:
        c, x = self.chance, self.value()
        forms = [
            "COUNT(*)",
            "COUNT(DISTINCT p)",
            f"MEDIAN({x})",
            f"QUANTILE({x}, {c.choice(_LEVELS)})",
        ]
        forms += [
            f"SUM({x} > {self.number()})",
            f"AVG(LEAST(GREATEST({x}, {self.number()}), {self.number()}))",
        ]
        names = ("COUNT", "SUM", "AVG", "VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")
        pairs = ("COVAR_SAMP", "COVAR_POP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
        forms += [f"{name}({x}, {self.value()})" for name in pairs]
        return c.choice([*forms, *(f"{name}({x})" for name in names)])

    def question(self) -> str:
        c = self.chance
        bucket = [f"BUCKET(age, {self.number()})"]
        keys = c.choice([*_KEYS, bucket, [f"LEAST(GREATEST(FLOOR({self.value()}), 0), 5)"]])
        text = f"SELECT {', '.join([*keys, *(f'{self.aggregate()} AS a{i}' for i in range(c.randint(1, 3)))])} FROM v"
        if c.random() < 0.3:
            text += f" WHERE {self.value()} {c.choice(['<', '=', '<>', '>='])} {self.value()}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        if c.random() < 0.3:
            text += f" HAVING ROUND(a0 * {self.number()}, 3) <> {self.number()}"
        return text + (" ORDER BY a0 DESC" if c.random() < 0.3 else "")

    def amount(self) -> float:
        c = self.chance
        near = c.choice([1e-300, 5e-324, 1e-15, 709, 710, 999_999, 1e6, 1e30, 0.1])
        return c.choice([10 ** c.uniform(-16, 31), 10 ** c.uniform(-3, 6.2), float(near)])

    def offer(self) -> dict[str, Any]:
        c = self.chance
        offer: dict[str, Any] = {"epsilon" if c.random() < 0.8 else "error": self.amount()}
        for name, draw in (
            ("rows", self.amount),
            ("confidence", lambda: c.choice(_CONFIDENCES)),
            ("mechanism", lambda: c.choice(["laplace", "gaussian"])),
            ("delta", lambda: c.choice([1e-300, 1e-100, 1e-8, 0.2])),
            ("nonnegative", lambda: True),
        ):
            if c.random() < 0.3:
                offer[name] = draw()
        return offer


def _campaign(sessions: list[so.Session], seed: int, answers: int) -> None:
    asked, answered = _Questions(seed), 0
    while answered < answers:
        session, question, offer = asked.chance.choice(sessions), asked.question(), asked.offer()
        before = session.remaining
        try:
            plan = session.preview(question, **offer)
            text = str(plan)
            answer = session.sql(question, **offer)
        except (
            InvalidInput,
            BudgetExceeded,
        ):  # all that may come before the charge; EngineFailed comes after it
            assert session.remaining == before, (question, offer)
            continue
        assert text
        assert str(answer)
        answered += 1


def test_extreme_offers_and_numbers_are_answered_or_refused_before_the_charge(
    sessions: list[so.Session],
) -> None:
    _campaign(sessions, seed=1, answers=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_many_extreme_offers_and_numbers(sessions: list[so.Session], seed: int) -> None:
    _campaign(sessions, seed=100 + seed, answers=1000)


@pytest.mark.parametrize("epsilon", [709, 710, 10**6])
def test_a_very_large_epsilon_is_answered_with_its_promise(
    sessions: list[so.Session], epsilon: int
) -> None:
    """The sentence about e^epsilon once overflowed after the charge."""
    with so.Session(sessions[0].dataset) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM v", epsilon=epsilon)
    assert f"at most e^{epsilon} times" in answer.privacy


def test_an_epsilon_beyond_every_budget_is_refused(sessions: list[so.Session]) -> None:
    with pytest.raises(InvalidInput, match="epsilon must lie between 1e-15 and 1e6"):
        sessions[0].preview("SELECT COUNT(*) FROM v", epsilon=1_000_001)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**15), Fraction(1, 10), Fraction(1, 2), 1, 5, 99, 100]
)
def test_the_promised_factor_is_never_below_the_true_one(epsilon: Fraction) -> None:
    from flint import arb

    assert (
        arb(_factor(Fraction(epsilon)))
        >= (arb(Fraction(epsilon).numerator) / Fraction(epsilon).denominator).exp()
    )


@pytest.mark.parametrize(
    "level", [Fraction(1, 10**22), 1 - Fraction(1, 10**37), Fraction(1, 10**300)]
)
@pytest.mark.parametrize("weights", [[], [3, 5], [2**61, 2**61]])
def test_levels_of_many_digits_are_drawn_whatever_a_group_holds(
    level: Fraction, weights: list[int]
) -> None:
    """Whether numbers fit into 64 bits once depended on the weights:
    an empty group failed, which told that it was empty.
    """
    cells = np.arange(len(weights), dtype=np.int64)
    drawn = noisy_quantiles(
        cells, np.array(weights, np.int64), positions=5, levels=(level, Fraction(1, 2)), rate=Fraction(1),
        bits=Tape(1),
    )  # fmt: skip
    assert all(0 <= one.low <= one.value <= one.high < 5 for one in drawn)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(LEAST(age * 1e-300 * 1e-200, 10)) FROM v",
        "SELECT AVG(LEAST(GREATEST(0, 0), 9e307)) FROM v",
        "SELECT MEDIAN(CASE WHEN ok THEN 5e-324 ELSE age END) FROM v",
        "SELECT VAR_SAMP(big - cost * 1e-300) FROM v",
    ],
)
def test_numbers_beyond_floats_are_planned_or_refused_in_words(
    sessions: list[so.Session], question: str
) -> None:
    for session in sessions:
        before = session.remaining
        with contextlib.suppress(InvalidInput):  # which has a value, a rule and a hint
            session.preview(question, epsilon=1, rows=1000)
        assert session.remaining == before


def test_what_cannot_be_finished_is_found_before_the_charge(
    sessions: list[so.Session], monkeypatch: Any
) -> None:
    """Whatever fails while an answer is made fails in the rehearsal already; it tells neither data nor a charge."""

    def fails(*_: object) -> Any:
        raise OverflowError

    session = sessions[0]
    for place in (
        "sordino.release.noisy_groups",
        "sordino.release.finished",
        "sordino.answer.answer.Answer.to_json",
    ):
        before = session.remaining
        with monkeypatch.context() as patch:
            patch.setattr(place, fails)
            with pytest.raises(InvalidInput, match="OverflowError"):
                session.sql("SELECT COUNT(*) FROM v", epsilon=1)
        assert session.remaining == before
