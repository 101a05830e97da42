"""Every engine gives the same whole numbers as DuckDB, on random plans over random rows, before any noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

import pytest

from engine_reference import Bench
from engines.conformance import ENGINES, Adapter, differences, opened, plans_of_relations, plans_of_tables

KINDS = {"tables": plans_of_tables, "relations": plans_of_relations}


@cache
def bench() -> Bench:
    return Bench()


@pytest.fixture(scope="module", params=ENGINES)
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    found = opened(request.param)
    yield found
    found.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_integers(kind: str, adapter: Adapter) -> None:
    """150 plans of each kind."""
    assert _wrong(kind, adapter, range(30), 5) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_integers_campaign(kind: str, part: int, adapter: Adapter) -> None:
    """10,000 plans in all."""
    assert _wrong(kind, adapter, range(1000 + part * 50, 1050 + part * 50), 10) == []


def _wrong(kind: str, adapter: Adapter, seeds: range, queries: int) -> list[str]:
    seen: Counter[str] = Counter()
    made: Any = KINDS[kind]
    found = list(chain(*(differences(adapter, bench(), made, seed, queries, seen) for seed in seeds)))
    print(dict(seen))
    assert seen["plans"] == len(seeds) * queries
    return found
