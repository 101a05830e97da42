"""What every engine is held to: random worlds, data and questions of one and of several tables; the same whole numbers.

An engine takes part by an adapter: a file `adapter_NAME.py` beside this one, with a class `Adapter` that has the methods of
`Bench` in tests/engine_reference.py: it loads rows as the declared tables, and runs a plan's statements.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute

import query_cases
import relation_cases
import test_neighbor_replay
import test_relation_replay
from engine_reference import Bench
from sordino.audit.replayed.distances import Exactly
from sordino.errors import EngineFailed, InvalidInput
from sordino.plan.plan import Plan
from sordino.query.dataset import Dataset, Table

__all__ = ["ENGINES", "Adapter", "differences", "opened", "plans_of_relations", "plans_of_tables"]

ENGINES = sorted(path.stem.removeprefix("adapter_") for path in Path(__file__).parent.glob("adapter_*.py"))
"""The engines beside DuckDB, by their adapters."""


class Adapter(Protocol):
    """An engine that can be given rows."""

    def load(self, declared: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """From now on these are the rows of the declared tables."""

    def run(self, plan: Plan) -> Exactly:
        """The sums of a plan; InvalidInput if the engine refuses it before the charge."""

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


def plans_of_relations(seed: int, queries: int) -> tuple[Dataset, dict[str, pa.Table], Iterator[Plan]]:
    """A declaration of two to four tables, their rows, and nested questions about them."""
    rng = random.Random(seed)
    world = relation_cases.random_world(rng)
    (data,) = test_relation_replay.star(rng, world, 0)
    dataset = world.dataset(data)
    frames = {name: plain(frame) for name, frame in world.frames(data).items()}
    return dataset, frames, test_relation_replay.random_plans(rng, world, dataset, queries, Counter())


def differences(adapter: Adapter, bench: Bench, made: Any, seed: int, queries: int, seen: Counter[str]) -> Iterator[str]:
    """What an engine computes otherwise than DuckDB, over one world of a generator of plans."""
    dataset, frames, plans = made(seed, queries)
    bench.load(dataset.tables, frames)
    adapter.load(dataset.tables, frames)
    for plan in plans:
        wanted = bench.run(plan)
        seen["plans"] += 1
        try:
            found = adapter.run(plan)
        except InvalidInput as error:
            seen["refused"] += 1
            if not any(reason in str(error) for reason in getattr(adapter, "refusals", ())):
                yield f"{seed}: refused: {error}: {plan.query}"
        except EngineFailed:
            yield f"{seed}: failed: {plan.query}"
        else:
            if found != wanted:
                yield f"{seed}: {found} is not {wanted}: {plan.query}"
