"""Four attacks on the time of an answer: two tables that differ in one row, the same question, and a stopwatch.

The attacker asks both tables, several times each, and tells them apart by when the fastest answer is shown. 0.5 is a
guess. `naive` answers as soon as it can; `served` is the engine process behind its link, shown at the tick as web does it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from server.served_folder import Served, ask, declare
from sordino.engines.duckdb import engine as duckdb_engine
from sordino.query.dataset import Dataset
from sordino.server.engine_link import EngineLink
from sordino.session import Session

__all__ = ["ATTACKS", "Attack", "auc", "naive", "served_times"]


@dataclass(frozen=True)
class Attack:
    """A question, and the row that one of two tables has in the place of an ordinary one."""

    name: str
    question: str
    age: int
    city: str


_HUGE = "abcde fghij " * 80_000
"""About a megabyte: the longest cell that a session opens."""
_FUNCTIONS = "SELECT COUNT(*) AS n FROM visits WHERE UPPER(LOWER(UPPER(LOWER(UPPER(LOWER(city)))))) LIKE '%A%B%C%X%Y%'"
ATTACKS = (
    Attack("the only match of a number", "SELECT COUNT(*) AS n FROM visits WHERE age >= 105", 107, "city 1"),
    Attack("the only match of a text", "SELECT COUNT(*) AS n FROM visits WHERE city = 'Zwieselberg'", 30, "Zwieselberg"),
    Attack("a huge cell under LIKE", "SELECT COUNT(*) AS n FROM visits WHERE city LIKE '%a%b%c%d%e%z%'", 30, _HUGE),
    Attack("a huge cell in functions", _FUNCTIONS, 30, _HUGE),
)


def table(rows: int, attack: Attack | None) -> pa.Table:
    """Ordinary rows; the first is the attack's, if there is one."""
    ages, cities = [i * 7 % 100 for i in range(rows)], [f"city {i % 97}" for i in range(rows)]
    if attack is not None:
        ages[0], cities[0] = attack.age, attack.city
    return pa.table({"age": pa.array(ages, pa.int64()), "city": cities})


def auc(without: list[float], with_: list[float]) -> float:
    """How probable it is that an answer with the row takes longer than one without; a tie counts half."""
    one, other = np.asarray(without), np.sort(np.asarray(with_))
    below = np.searchsorted(other, one, "left")
    equal = np.searchsorted(other, one, "right") - below
    return float((len(other) - below - equal / 2).mean() / len(other))


def fastest(times: list[float], tries: int) -> list[float]:
    """Of so many tries in a row the fastest: what else the machine does makes answers late, never early."""
    return [min(times[i : i + tries]) for i in range(0, len(times), tries)]


def naive(
    folder: Path, attack: Attack, rows: int, pairs: int, tries: int = 1, stopwatch: Callable[[], float] = time.process_time
) -> float:
    """The area under the curve of an endpoint that answers as soon as it can.

    It has DuckDB as it comes, with all optimizers. Its time is that of the processor, which is what the clock shows on a
    machine that does nothing else.
    """
    settings = tuple(each for each in duckdb_engine._SETTINGS if not each.startswith("disabled_optimizers"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_engine, "_SETTINGS", settings)
        return _naive(folder, attack, rows, pairs, tries, stopwatch)


def _naive(folder: Path, attack: Attack, rows: int, pairs: int, tries: int, stopwatch: Callable[[], float]) -> float:
    sessions = []
    for name, planted in (("without", None), ("with", attack)):
        place = declare(folder / f"naive {name}", table=table(rows, planted), epsilon=10_000)
        sessions.append(Session(Dataset.load(place / "visits.toml"), threads=1, ledger=folder / f"{name}.ledger"))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs * tries + 2):
        for session, taken in zip(sessions, times, strict=True):
            began = stopwatch()
            session.sql(attack.question, epsilon=0.01)
            taken.append(stopwatch() - began)
    for session in sessions:
        session.close()
    return auc(fastest(times[0][2:], tries), fastest(times[1][2:], tries))


async def _time(link: EngineLink, attack: Attack, number: int, answer_time: float) -> tuple[float, float]:
    """How long an answer takes until it is shown, and by how much it misses its tick."""
    # at every phase of the clock alike, so that where its grid lies does not matter
    await asyncio.sleep(answer_time * (number * 0.6180339887 % 1))
    began = time.monotonic()
    reply = await link.ask(ask(f"{attack.name} {number}", attack.question))
    await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
    shown = time.monotonic()
    assert reply.status == "answered", reply.problem
    return shown - began, shown - reply.tick


def served_times(
    folder: Path, attack: Attack | None, asked: Attack, rows: int, pairs: int, answer_time: float, tries: int = 1
) -> tuple[float, float, float]:
    """The areas under the curves of a served dataset, by the wait and by how late answers are; and the 99 % of the latter.

    `attack` is the planted row (None: a control, in which the tables are equal).
    """
    places = [
        declare(folder / f"served {name}", table=table(rows, planted), epsilon=10_000, answer_time=answer_time)
        for name, planted in (("without", None), ("with", attack))
    ]
    with Served(places[0]) as one, Served(places[1]) as other:

        async def work() -> None:
            async with one.link() as first, other.link() as second:
                for number in range(pairs * tries + 2):
                    turns = [(first, times[0]), (second, times[1])]
                    for link, taken in turns if number % 2 else turns[::-1]:  # who comes first matters to nobody
                        taken.append(await _time(link, asked, number, answer_time))

        times: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
        asyncio.run(work())
    areas = []
    for place in (0, 1):
        without, with_ = ([each[place] for each in taken[2:]] for taken in times)
        areas.append(auc(fastest(without, tries), fastest(with_, tries)))
    return areas[0], areas[1], float(np.quantile([late for _, late in times[0] + times[1]], 0.99))
