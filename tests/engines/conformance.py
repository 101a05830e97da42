"""What every engine is held to: random worlds, data and questions of one and of several tables; the same whole numbers.

An engine takes part by an adapter: a file `adapter_NAME.py` beside this one, with a class `Adapter` that has the
methods of `Bench` in tests/engine_reference.py: it loads rows as the declared tables, and runs a plan's statements.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute
from sqlglot import exp

import query_cases
import relation_cases
import test_neighbor_replay
import test_relation_replay
from engine_reference import Bench
from sordino.audit.replayed.distances import Exactly
from sordino.engines.engine import Exact
from sordino.errors import EngineFailed, InvalidInput
from sordino.plan.fragments import column, named, select, source
from sordino.plan.plan import Plan
from sordino.plan.statement import Statement
from sordino.query import dataset
from sordino.query.dataset import Dataset, Source, Table
from sordino.query.types import Number

__all__ = [
    "ENGINES",
    "Adapter",
    "cell_differences",
    "differences",
    "of_library",
    "opened",
    "plain",
    "plans_of_relations",
    "plans_of_tables",
]

ENGINES = sorted(
    path.stem.removeprefix("adapter_") for path in Path(__file__).parent.glob("adapter_*.py")
)
"""The engines beside DuckDB, by their adapters."""


class Adapter(Protocol):
    """An engine that can be given rows."""

    def load(self, declared: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """From now on these are the rows of the declared tables."""

    def run(self, plan: Plan) -> Exactly:
        """The sums of a plan; InvalidInput if the engine refuses it before the charge."""

    def exact(self, statement: Statement) -> Exact:
        """What one statement gives."""

    def close(self) -> None:
        """End what was started."""


def opened(engine: str) -> Adapter:
    """The adapter of an engine."""
    adapter: Adapter = import_module(f"engines.adapter_{engine}").Adapter()
    return adapter


def plain(frame: pa.Table) -> pa.Table:
    """The rows without NUL, which not every engine has in texts."""
    columns = []
    for cells in frame.columns:
        kind = cells.type
        if pa.types.is_dictionary(kind):
            cells = cells.cast(kind.value_type)
        if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
            cells = pyarrow.compute.replace_substring(cells, "\x00", "\x01")
        columns.append(cells)
    return pa.table(columns, names=frame.column_names)


def plans_of_tables(seed: int, queries: int) -> tuple[Dataset, dict[str, pa.Table], Iterator[Plan]]:
    """A declaration of one table and a public one, its rows, and questions about them."""
    rng = random.Random(seed)
    world = query_cases.random_world(rng)
    frame = world.table(query_cases.random_rows(rng, world))
    dataset = world.dataset(frame)
    frames = {"data": plain(frame), "wards": plain(dataset.tables["wards"].source.frame)}
    return dataset, frames, test_neighbor_replay.random_plans(rng, world, dataset, queries)


def plans_of_relations(
    seed: int, queries: int
) -> tuple[Dataset, dict[str, pa.Table], Iterator[Plan]]:
    """A declaration of two to four tables, their rows, and nested questions about them."""
    rng = random.Random(seed)
    world = relation_cases.random_world(rng)
    (data,) = test_relation_replay.star(rng, world, 0)
    dataset = world.dataset(data)
    frames = {name: plain(frame) for name, frame in world.frames(data).items()}
    return (
        dataset,
        frames,
        test_relation_replay.random_plans(rng, world, dataset, queries, Counter()),
    )


def differences(
    adapter: Adapter,
    bench: Bench,
    made: Any,
    seed: int,
    queries: int,
    seen: Counter[str],
    longest: int | None = None,
) -> Iterator[str]:
    """What an engine computes otherwise than DuckDB, over one world of a generator of plans,
    but for those of longer SQL.
    """
    dataset, frames, plans = made(seed, queries)
    loaded = False
    for plan in plans:
        if (
            longest is not None
            and sum(len(statement.text()) for statement in plan.statements) > longest
        ):
            seen["left out"] += 1
            continue
        if not loaded:
            bench.load(dataset.tables, frames)
            adapter.load(dataset.tables, frames)
            seen["worlds"] += 1
            loaded = True
        wanted = bench.run(plan)
        seen["plans"] += 1
        try:
            found = adapter.run(plan)
        except InvalidInput as error:
            seen["refused"] += 1
            yield f"{seed}: refused: {error}: {plan.query}"
        except EngineFailed:
            yield f"{seed}: failed: {plan.query}"
        else:
            if found != wanted:
                yield f"{seed}: {found} is not {wanted}: {plan.query}"


def cell_differences(
    adapter: Adapter,
    bench: Bench,
    columns: Mapping[str, dataset.Column],
    frame: pa.Table,
    expressions: Mapping[str, exp.Expression],
) -> Iterator[str]:
    """Where expressions over the declared columns of a frame with an `id` give other cells than with DuckDB."""
    declared = {
        "id": dataset.Column("int", Number(Fraction(0), Fraction(2**40), Fraction(1))),
        **columns,
    }
    table = Table("rows", Source("frame", frame=frame), declared)
    bench.load({"rows": table}, {"rows": plain(frame)})
    adapter.load({"rows": table}, {"rows": plain(frame)})
    texts = list(expressions)
    for start in range(0, len(texts), 20):
        some = texts[start : start + 20]
        items = [named(column("id", "rows"), "k0")]
        items += [named(expressions[text].copy(), f"k{i + 1}") for i, text in enumerate(some)]
        statement = Statement(select(items, source("rows")), len(items), 0)
        wanted = _by_id(bench.engine.run(statement))
        try:
            found = _by_id(adapter.exact(statement))
        except EngineFailed:
            yield f"failed on one of {some}"
            continue
        for i, text in enumerate(some):
            for key, cells in wanted.items():
                if not _same(
                    found[key][i],
                    cells[i],
                    any(f"'{name}'" in text for name in of_library(adapter)),
                ):
                    yield f"{text}: {found[key][i]!r} is not {cells[i]!r} in row {key}"


def _by_id(exact: Exact) -> dict[int, tuple[Any, ...]]:
    ids, *cells = exact.keys
    return dict(zip(ids, zip(*cells, strict=True), strict=True))


def of_library(adapter: Adapter) -> frozenset[str]:
    """The functions that an engine takes from another mathematics library than DuckDB: their last digits may differ."""
    return getattr(adapter, "of_library", frozenset())


def _same(found: Any, wanted: Any, nearly: bool = False) -> bool:
    """Equal, of one type; NaN is itself, and the two zeros are one number to every comparison."""
    if (
        nearly
        and isinstance(wanted, float)
        and isinstance(found, float)
        and math.isclose(wanted, found, rel_tol=1e-14)
    ):
        return True
    if isinstance(wanted, float) and isinstance(found, float) and math.isnan(wanted):
        return math.isnan(found)
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)
