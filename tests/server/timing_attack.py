"""Four attacks on the time of an answer: two tables that differ in one row, the same question, and a stopwatch.

The attacker asks both tables and tells them apart by when answers are shown. 0.5 is a guess. `naive` answers as soon
as it can; `served_times` is the engine process behind its link; `campaign` is all of `sordino serve`, over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from server.served_folder import Served, ask, declare
from sordino.engines.duckdb import engine as duckdb_engine
from sordino.query.dataset import Dataset
from sordino.server.clock import Clock
from sordino.server.engine_link import EngineLink
from sordino.session import Session

__all__ = ["ATTACKS", "Attack", "Outcome", "auc", "campaign", "naive", "served_times"]


@dataclass(frozen=True)
class Attack:
    """A question, and the row that one of two tables of so many rows has in the place of an ordinary one."""

    rows: int
    name: str
    question: str
    age: int
    city: str


_HUGE = "abcde fghij " * 80_000
"""About a megabyte: the longest cell that a session opens."""
_FUNCTIONS = "SELECT COUNT(*) AS n FROM visits WHERE UPPER(LOWER(UPPER(LOWER(UPPER(LOWER(city)))))) LIKE '%A%B%C%X%Y%'"
_RARE = "SELECT COUNT(*) AS n FROM visits WHERE city = 'Zwieselberg'"
_LIKE = "SELECT COUNT(*) AS n FROM visits WHERE city LIKE '%a%b%c%d%e%z%'"
ATTACKS = (
    Attack(
        1_000_000,
        "the only match of a number",
        "SELECT COUNT(*) AS n FROM visits WHERE age >= 105",
        107,
        "city 1",
    ),
    Attack(1_000_000, "the only match of a text", _RARE, 30, "Zwieselberg"),
    Attack(100_000, "a huge cell under LIKE", _LIKE, 30, _HUGE),
    Attack(100_000, "a huge cell in functions", _FUNCTIONS, 30, _HUGE),
)


def table(rows: int, attack: Attack | None) -> pa.Table:
    """Ordinary rows; the first is the attack's, if there is one."""
    places = np.arange(rows)
    ages, cities = (
        places * 7 % 100,
        pa.array([f"city {i}" for i in range(97)]).take(pa.array(places % 97)),
    )
    if attack is not None:
        ages[0], cities = attack.age, pa.concat_arrays([pa.array([attack.city]), cities[1:]])
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
    folder: Path,
    attack: Attack,
    rows: int,
    pairs: int,
    tries: int = 1,
    stopwatch: Callable[[], float] = time.process_time,
) -> float:
    """The area under the curve of an endpoint that answers as soon as it can.

    It has DuckDB as it comes, with all optimizers. Its time is that of the processor, which is what the clock shows on
    a machine that does nothing else.
    """
    settings = tuple(
        each for each in duckdb_engine._SETTINGS if not each.startswith("disabled_optimizers")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_engine, "_SETTINGS", settings)
        return _naive(folder, attack, rows, pairs, tries, stopwatch)


def _naive(
    folder: Path, attack: Attack, rows: int, pairs: int, tries: int, stopwatch: Callable[[], float]
) -> float:
    sessions, memory = [], Path("/dev/shm")  # what is measured does not wait for a disk
    ledgers = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    for name, planted in (("without", None), ("with", attack)):
        place = declare(folder / f"naive {name}", table=table(rows, planted), epsilon=10_000)
        sessions.append(
            Session(
                Dataset.load(place / "visits.toml"), threads=1, ledger=ledgers / f"{name}.ledger"
            )
        )
    times: tuple[list[float], list[float]] = ([], [])
    draws = random.Random(1)
    for _ in range(pairs * tries + 2):
        for session, taken in draws.sample(list(zip(sessions, times, strict=True)), 2):
            began = stopwatch()
            session.sql(attack.question, epsilon=0.01)
            taken.append(stopwatch() - began)
    for session in sessions:
        session.close()
    shutil.rmtree(ledgers)
    return auc(fastest(times[0][2:], tries), fastest(times[1][2:], tries))


_DRAWS = random.Random(0)
"""Which table comes first, and at which phase of the clock: anew for each pair,
so that nothing beside it is in step.
"""


async def _time(
    link: EngineLink, attack: Attack, number: int, answer_time: float
) -> tuple[float, float]:
    """How long an answer takes until it is shown, and by how much it misses its tick."""
    # at every phase of the clock alike, so that where its grid lies does not matter
    await asyncio.sleep(answer_time * _DRAWS.random())
    began = time.monotonic()
    reply = await link.ask(ask(f"{attack.name} {number}", attack.question))
    await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
    shown = time.monotonic()
    assert reply.status == "answered", reply.problem
    return shown - began, shown - reply.tick


def served_times(
    folder: Path,
    attack: Attack | None,
    asked: Attack,
    rows: int,
    pairs: int,
    answer_time: float,
    tries: int = 1,
) -> tuple[float, float, float]:
    """The areas under the curves of a served dataset, by the wait and by how late answers are; and the 99 % of the
    latter.

    `attack` is the planted row (None: a control, in which the tables are equal).
    """
    places = [
        declare(
            folder / f"served {name}",
            table=table(rows, planted),
            epsilon=10_000,
            answer_time=answer_time,
        )
        for name, planted in (("without", None), ("with", attack))
    ]
    with Served(places[0]) as one, Served(places[1]) as other:

        async def work() -> None:
            async with one.link() as first, other.link() as second:
                for number in range(pairs * tries + 2):
                    for link, taken in _DRAWS.sample([(first, times[0]), (second, times[1])], 2):
                        taken.append(await _time(link, asked, number, answer_time))

        times: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
        asyncio.run(work())
    areas = []
    for place in (0, 1):
        without, with_ = ([each[place] for each in taken[2:]] for taken in times)
        areas.append(auc(fastest(without, tries), fastest(with_, tries)))
    return areas[0], areas[1], float(np.quantile([late for _, late in times[0] + times[1]], 0.99))


# The whole server, over HTTP.


@dataclass(frozen=True)
class Outcome:
    """What a stopwatch over HTTP says of one attack: the area by the wait, and by how long after its tick an answer
    came.

    Both are means over the turns, and `error` is the standard error of the latter, from how far the means of a turn
    and its exchange differ. `late` are the median delay and its 99 %, in seconds; `seen` is the least delay of one
    table that the second area would show as 0.53. Pairs with an answer that was refused or failed, in a pause say,
    were asked again.
    """

    by_wait: float
    by_lateness: float
    error: float
    late: tuple[float, float]
    seen: float
    again: int

    def __str__(self) -> str:
        middle, most = (1000 * each for each in self.late)
        return (
            f"{self.by_wait:.3f} by the wait, {self.by_lateness:.3f} by lateness, "
            f"standard error {self.error:.3f} (half within {middle:.1f} ms, 99 % within "
            f"{most:.1f} ms; a delay of {1000 * self.seen:.2f} ms would be seen); {self.again} pairs asked again"
        )


class _Connection:
    """One client, over a connection of its own."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            with contextlib.suppress(OSError):
                await self._streams[1].wait_closed()
            self._streams = None

    async def send(
        self, method: str, path: str, body: object = None
    ) -> tuple[int, dict[str, object]]:
        for _ in range(1800):
            try:
                return await self._send(method, path, body)
            # it is starting, or the connection was idle for too long
            except (OSError, asyncio.IncompleteReadError):
                await self.close()
                await asyncio.sleep(0.1)
        raise AssertionError("the server is not there")

    async def _send(self, method: str, path: str, body: object) -> tuple[int, dict[str, object]]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        told = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", told.lower())
        text = await reader.readexactly(0 if length is None else int(length[1]))
        return int(told.split(b" ", 2)[1]), json.loads(text or b"{}")


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[tuple[int, str]]:
    """The port of `sordino serve`, and the token of its owner."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = int(found.getsockname()[1])
    command = [sys.executable, "-m", "sordino", "serve", str(folder), "--port", str(port)]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as it,
    ):
        try:
            assert it.stdout is not None
            yield port, it.stdout.readline().strip()
        finally:
            it.terminate()


_TURNS = (0, 1) * 12
"""Whether the tables of a pair have exchanged their places. Each place has a name, and with it ticks of its own, and
each turn new processes. So one is always a little later than the other, whatever rows it has: 0.56 was seen where both
tables are equal, and 0.62 with one name where the exchanged turn had 0.35. Exchanges cancel what follows the name; how
far the means of a turn and its exchange differ says what follows the process.
"""


def _name(number: int, place: int) -> str:
    return f"{'ab'[place]}_{number}"


def _folder(
    folder: Path,
    tables: Path,
    attacks: list[tuple[Attack | None, Attack]],
    exchanged: int,
    answer_time: float,
) -> list[str]:
    """A folder that serves all tables; the names of its datasets."""
    names = []
    toml = declare(folder / "parts", epsilon=100_000) / "visits.toml"
    for number in range(len(attacks)):
        for planted in (0, 1):
            name = _name(number, planted ^ exchanged)
            names.append(name)
            (folder / f"{name}.parquet").hardlink_to(tables / f"{number}_{planted}.parquet")
            text = toml.read_text().replace("visits.parquet", f"{name}.parquet")
            (folder / f"{name}.toml").write_text(text)
    settings = "".join(f"[datasets.{name}]\nanswer_time = {answer_time}\n" for name in names)
    (folder / "serve.toml").write_text(settings)
    return names


Times = tuple[float, float]
"""How long an answer took until it was shown, and how long after its tick that was."""


@dataclass
class _Lane:
    """What is measured of one attack, of each table."""

    number: int
    asked: Attack
    answer_time: float
    times: list[tuple[list[Times], list[Times]]]
    """Turn by turn."""
    again: int = 0

    async def ask(self, port: int, owner: str, token: str, exchanged: int, pairs: int) -> None:
        """Ask both tables, pair by pair, anew where one of them did not answer."""
        client, keeper = _Connection(port, token), _Connection(port, owner)
        taken: tuple[list[Times], list[Times]] = ([], [])
        warm = 2
        self.times.append(taken)
        while len(taken[0]) < pairs:
            found: dict[int, Times] = {}
            for planted in _DRAWS.sample((0, 1), 2):
                name = _name(self.number, planted ^ exchanged)
                await asyncio.sleep(self.answer_time * _DRAWS.random())
                began = time.monotonic()
                body = {
                    "kind": "sql",
                    "question": self.asked.question,
                    "offer": {"epsilon": "0.01"},
                    "fresh": True,
                }
                status, told = await client.send("POST", f"/v1/datasets/{name}/questions", body)
                if status == 202:
                    _, told = await client.send("GET", f"{told['location']}?wait=60")
                shown = time.monotonic()
                if told.get("status") != "answered":
                    await keeper.send("POST", f"/v1/datasets/{name}/resume")
                    await asyncio.sleep(1)
                    break
                grid = Clock.of(name, self.answer_time, shown)
                found[planted] = shown - began, (shown - grid.origin) % self.answer_time
            if len(found) == 2 and warm:
                warm -= 1
            elif len(found) == 2:
                for planted in (0, 1):
                    taken[planted].append(found[planted])
            else:
                self.again += 1
        await client.close()
        await keeper.close()

    def outcome(self) -> Outcome:
        """What the stopwatch says."""
        areas = [
            [auc(*([one[place] for one in taken] for taken in turn)) for turn in self.times]
            for place in (0, 1)
        ]
        late = [[one[1] for turn in self.times for one in turn[planted]] for planted in (0, 1)]
        seen = next(
            ms / 100_000
            for ms in range(1, 10_000)
            if auc(late[0], [x + ms / 100_000 for x in late[0]]) > 0.53
        )
        middle, most = (float(np.quantile(late[0] + late[1], p)) for p in (0.5, 0.99))
        by_wait, by_lateness = (float(np.mean(each)) for each in areas)
        exchanged = np.reshape(areas[1], (-1, 2)).mean(axis=1)
        error = float(exchanged.std(ddof=1)) / math.sqrt(len(exchanged))
        return Outcome(by_wait, by_lateness, error, (middle, most), seen, self.again)


def campaign(
    folder: Path, attacks: list[tuple[Attack | None, Attack]], pairs: int, answer_time: float
) -> list[Outcome]:
    """All attacks side by side, each a planted row (None: a control without one) and whose question is asked."""
    for number, (attack, asked) in enumerate(attacks):
        for planted, row in enumerate((None, attack)):
            made = declare(folder / "made", table=table(asked.rows, row)) / "visits.parquet"
            made.rename(folder / f"{number}_{planted}.parquet")
    lanes = [_Lane(number, asked, answer_time, []) for number, (_, asked) in enumerate(attacks)]

    async def work(port: int, owner: str, exchanged: int, names: list[str]) -> None:
        keeper = _Connection(port, owner)
        await keeper.send(
            "POST", "/v1/people", {"name": "eve", "roles": ["analyst"], "datasets": ["*"]}
        )
        _, made = await keeper.send("POST", "/v1/tokens", {"person": "eve"})
        for name in names:
            while (await keeper.send("GET", f"/v1/datasets/{name}"))[1].get("state") != "open":
                await asyncio.sleep(0.2)
        await keeper.close()
        token = str(made["secret"])
        share = math.ceil(pairs / len(_TURNS))
        await asyncio.gather(*(lane.ask(port, owner, token, exchanged, share) for lane in lanes))

    for turn, exchanged in enumerate(_TURNS):
        place = folder / f"turn {turn}"
        names = _folder(place, folder, attacks, exchanged, answer_time)
        with _serving(place) as (port, owner):
            asyncio.run(work(port, owner, exchanged, names))
    return [lane.outcome() for lane in lanes]
