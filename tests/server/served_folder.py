"""A folder of one declaration, an engine process over it, and short ways to ask it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from sordino.query.dataset import Dataset
from sordino.server.engine_link import EngineLink
from sordino.server.link import Ask, Reply
from sordino.server.settings import ServedDataset, served
from sordino.server.supervisor import engine_command, socket_of

__all__ = ["COUNT", "Served", "ask", "declare", "run"]

COUNT = "SELECT COUNT(*) AS n FROM visits"
T = TypeVar("T")
TOML = """
[tables.visits]
source = "visits.parquet"
unit = "row"
[tables.visits.columns.age]
type = "int"
min = 0
max = 110
[tables.visits.columns.city]
type = "text"
[budget]
epsilon = {epsilon}
delta = {delta}
{ledger}
"""


def declare(
    folder: Path, *, epsilon: float = 1000, answer_time: float = 0.1, table: pa.Table | None = None,
    ledger: str = "", delta: float = 1e-6, **settings: Any,
) -> Path:  # fmt: skip
    """A folder that can be served."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.table(
        {"age": [i % 100 for i in range(2000)], "city": [f"city {i % 7}" for i in range(2000)]}
    )
    pq.write_table(rows if table is None else table, folder / "visits.parquet")
    told = f'[ledger]\npath = "{ledger}"' if ledger else ""
    (folder / "visits.toml").write_text(TOML.format(epsilon=epsilon, delta=delta, ledger=told))
    lines = "\n".join(f"{name} = {str(value).lower()}" for name, value in settings.items())
    (folder / "serve.toml").write_text(f"[datasets.visits]\nanswer_time = {answer_time}\n{lines}\n")
    return folder


def ask(
    name: str,
    question: str = COUNT,
    analyst: str | None = None,
    epsilon: object = "0.01",
    **more: Any,
) -> Ask:
    return Ask(analyst, "sql", question, {"epsilon": epsilon, **more}, name)  # type: ignore[dict-item]


def run(work: Callable[[], Awaitable[T]], seconds: float = 60) -> T:
    async def timed() -> T:
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(timed())


class PatientLink(EngineLink):
    """The link of an owner who looks: on a machine that is busy otherwise slots overrun, and the dataset pauses."""

    async def ask(self, ask: Ask) -> Reply:
        for _ in range(20):
            reply = await super().ask(ask)
            if "paused until its owner" not in str(reply.problem):
                break
            await self.resume()
        return reply


class Served:
    """The engine process of a folder, which can be killed and started again."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.sockets = Path(tempfile.mkdtemp(prefix="sordino-test-"))
        self.state = folder / ".server"
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.one: ServedDataset = served(folder)[0]
        self.socket = socket_of(self.sockets, self.one.name)
        self.environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> None:
        command = engine_command(self.folder, self.one, self.sockets, self.state)
        with (self.folder / "engine.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, env={**self.environment, **environment}, stderr=log
            )

    def kill(self, how: int = signal.SIGKILL) -> int:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        return self.process.wait(30)

    @property
    def log(self) -> str:
        return (self.folder / "engine.log").read_text()

    @property
    def dataset(self) -> Dataset:
        return Dataset.load(self.one.declaration)

    @contextlib.asynccontextmanager
    async def link(self) -> AsyncIterator[EngineLink]:
        link = PatientLink(self.one.name, self.socket)
        try:
            await link.ready(60)
            yield link
        finally:
            await link.close()

    def __enter__(self) -> Served:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)
        for path in self.sockets.glob("*"):
            path.unlink()
        self.sockets.rmdir()


async def held(reply: Reply) -> Reply:
    """A reply as web shows it: at its tick."""
    await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
    return reply


def python(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def served_engine(folder: Path, **environment: str) -> Iterator[Served]:
    with Served(folder, environment) as served_:
        yield served_
