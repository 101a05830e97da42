"""Sordino: one session on the Parquet file, one SQL text for each case."""

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.suites.queries.settings import (
    CITIES,
    DELTA,
    EPSILON,
    LOWER,
    MAX_GROUPS,
    MAX_ROWS,
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
from sordino.query.aggregates.quantiles import noisy_quantiles, rates
from sordino.query.dataset import Dataset
from sordino.release import exact_groups, release
from sordino.session import Session

ENDLESS = 10**6
"""The epsilon of the whole session: a benchmark asks more often than any owner would allow."""


def session(rows: int, delta: float) -> Session:
    """A session whose releases are pure, or may use this delta each."""
    columns = {
        "city": {"type": "category", "values": list(CITIES)},
        "age": {"type": "int", "min": 0, "max": 110},
        "amount": {"type": "float", "min": LOWER, "max": UPPER, "step": STEP},
    }
    data = Dataset(
        table_path(rows), name="t", unit="user_id", max_rows=MAX_ROWS, max_groups=MAX_GROUPS, columns=columns,
        budget=Budget(ENDLESS, delta),
    )  # fmt: skip
    return Session(data, threads=2)


def repeated(rows: int) -> Iterator[Question]:
    """Each case at both guarantees; the engine runs once and only the release is repeated, since the rest is exact."""
    for delta in (0.0, DELTA):
        opened = session(rows, delta)
        for case, sql in SQL.items():
            plan = opened.preview(sql, epsilon=EPSILON)
            exacts = [opened._engine.run(statement) for statement in plan.statements]
            how = f"{plan.price.family} noise" if plan.channels else ""
            bounds = SAME_BOUNDS if plan.keys else ""
            again = partial(_numbers, plan, exacts)
            yield Question(case, again, how or "with interval", float(plan.price.delta) and delta, bounds=bounds)
            if plan.quantiles:
                yield Question(case, partial(_bare_median, plan, exacts), "without interval, not in SQL")
        opened.close()


def numbers(answer: Answer) -> Answers:
    """The released numbers as the questions of this suite give them back."""
    rows = answer.to_dicts()
    return by_city((row["city"], row["answer"]) for row in rows) if "city" in rows[0] else float(rows[0]["answer"])


def _numbers(plan: Plan, exacts: Sequence[Exact]) -> Answers:
    return numbers(release(exacts, plan, None))


def _bare_median(plan: Plan, exacts: Sequence[Exact]) -> float:
    """The median that all of epsilon buys: an answer spends a tenth of it on the interval."""
    points, ((values, weights),) = plan.quantiles[0].points, exact_groups(plan, exacts).cells[0]
    rate, _ = rates(plan.price.quantile_epsilons[0], plan.moved, interval=False)
    (found,) = noisy_quantiles(
        values, weights, positions=points.cells + 1, levels=plan.quantiles[0].levels, rate=rate, bits=bits.source()
    )
    return float(points.step * (points.first + found.value))
