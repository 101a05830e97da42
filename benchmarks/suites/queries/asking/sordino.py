"""Sordino: one session on the Parquet file, one SQL text for each case."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks.suites.queries.settings import (
    CITIES,
    DELTA,
    EPSILON,
    LOWER,
    MAX_GROUPS,
    MAX_ROWS,
    ROWS_IN_ALL,
    SAME_BOUNDS,
    SQL,
    STEP,
    UPPER,
    Answers,
    Question,
    by_city,
    table_path,
)

from sordino.answer.answer import Answer
from sordino.engines.engine import Exact
from sordino.mechanisms import bits
from sordino.plan.plan import Plan
from sordino.privacy.budget import Budget
from sordino.query.aggregates.quantile_column import QuantileColumn
from sordino.query.aggregates.quantiles import noisy_quantiles
from sordino.query.dataset import Dataset
from sordino.release import exact_groups, release
from sordino.session import Session

ENDLESS = 10**6
"""The epsilon of the whole session: a benchmark asks more often than any owner would allow."""


def session(rows: int, delta: float, max_groups: int = MAX_GROUPS) -> Session:
    """A session whose releases are pure, or may use this delta each."""
    columns: dict[str, dict[str, Any]] = {
        "city": {"type": "category", "values": list(CITIES)},
        "age": {"type": "int", "min": 0, "max": 110},
        "amount": {"type": "float", "min": LOWER, "max": UPPER, "step": STEP},
    }
    data = Dataset(
        table_path(rows), name="t", unit="user_id", max_rows_per_group=MAX_ROWS, max_groups=max_groups, columns=columns,
        budget=Budget(ENDLESS, delta),
    )  # fmt: skip
    return Session(data, threads=2)


def repeated(rows: int) -> Iterator[Question]:
    """Each case pure, and with a delta where that makes another plan;
    the engine runs once and the release is repeated.
    """
    for delta, max_groups, bounds in (
        (0.0, MAX_GROUPS, SAME_BOUNDS),
        (DELTA, MAX_GROUPS, SAME_BOUNDS),
        (0.0, 1, ROWS_IN_ALL),
    ):
        with session(rows, delta, max_groups) as opened:
            for case, sql in SQL.items():
                if bounds == ROWS_IN_ALL and "GROUP BY" not in sql:
                    continue
                plan = opened.preview(sql, epsilon=EPSILON)
                if delta and not plan.price.delta:
                    continue  # the pure release was the better one
                exacts = [opened._engine.run(statement) for statement in plan.statements]
                how = "with interval" if plan.drawn else f"{plan.price.family.capitalize()} noise"
                yield Question(
                    case,
                    partial(_numbers, plan, exacts),
                    how,
                    delta,
                    bounds=bounds if plan.keys else "",
                )
                if plan.drawn:
                    yield Question(
                        case, partial(_bare_median, plan, exacts), "without interval, not in SQL"
                    )


def numbers(answer: Answer) -> Answers:
    """The released numbers as the questions of this suite give them back."""
    if "city" in answer.names:
        return by_city(zip(answer["city"], answer["answer"], strict=True))
    value: Any = answer.value()
    return float(value)


def _numbers(plan: Plan, exacts: Sequence[Exact]) -> Answers:
    return numbers(release(exacts, plan, None))


def _bare_median(plan: Plan, exacts: Sequence[Exact]) -> float:
    """The median by itself: drawn together with its interval it is a tenth worse."""
    drawn = plan.drawn[0]
    ((values, weights),), draws = exact_groups(plan, exacts).cells[drawn.name], drawn.column.draws
    assert isinstance(draws, QuantileColumn)
    (found,) = noisy_quantiles(
        values, weights, positions=draws.positions, levels=draws.levels, rate=drawn.epsilon / drawn.moved,
        confidence=None, bits=bits.source(),
    )  # fmt: skip
    return float(draws.points.step * (draws.points.first + found.value))
