"""Processes that ask a ledger and die: a helper process imports everything once, and forks a child for each death.

A child asks what its job says and tells its client, through a pipe, what it does. Its failpoints are planted here,
around the steps of a session, of the ledger and of its store, and around each call to the disk: the package knows
nothing of them.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self, TypeAlias

import psycopg

from ledger.faulty_disk import Call, Disk, Do
from ledger.oracle import DATA, Asker, BareAsker, Client, SessionAsker, Tell, price
from sordino.accounting.charge import Charge
from sordino.errors import SordinoError
from sordino.ledger import old_entries
from sordino.ledger.chain import digest
from sordino.ledger.ledger import Ledger, Paid
from sordino.ledger.receipt import Receipt, Request

__all__ = ["BUGS", "Death", "Job", "Zygote"]

Kind: TypeAlias = Literal["bare", "session"]


@dataclass(frozen=True)
class Job:
    """What one child does: questions in order ("!" before one lets the engine fail), and when it dies.

    It dies at the failpoint with number `die_at`, or after `die_after` seconds, or not at all. `points` are the kinds
    of failpoints that it plants: "code", "sql", "disk". With `server` it lives on, and its server process in
    PostgreSQL dies there, which takes the whole server down. `bug` is a mistake that is planted to see whether it is
    found. `idle` are system calls that it makes first, by name and number, so that whoever counts them strikes later.
    """

    place: str
    state: str
    requests: tuple[str, ...]
    kind: Kind = "bare"
    points: tuple[str, ...] = ()
    die_at: int = 0
    die_after: float | None = None
    server: bool = False
    bug: str = ""
    idle: tuple[str, int] = ("", 0)


@dataclass
class Death:
    """How a child ended: killed or not, at which failpoint, the failpoints that it passed, and how long it lived."""

    killed: bool = False
    at: str = ""
    passed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    """Errors that were shown to the client, by name; any that Sordino does not raise on purpose is a find."""


class Zygote:
    """The helper process; under another program, if one is given."""

    def __init__(self, *under: str) -> None:
        self._under = under

    def __enter__(self) -> Self:
        tests = os.pathsep.join(
            filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")])
        )
        # one thread, as only that may fork safely
        environment = {
            **os.environ,
            "PYTHONPATH": tests,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [*self._under, sys.executable, "-m", "ledger.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            _stream(self._process.stdin).close()

    def run(self, *jobs: Job, client: Client) -> list[Death]:
        """Run the jobs at once, and let the client hear them."""
        for job in jobs:
            for request in job.requests:
                client.hear("asked", request.lstrip("!"))
        print(
            json.dumps([asdict(job) for job in jobs]), file=_stream(self._process.stdin), flush=True
        )
        deaths = [Death() for _ in jobs]
        for line in _stream(self._process.stdout):
            index, *event = json.loads(line)
            if event[0] == "end":
                return deaths
            _note(deaths[index], event, client)
        raise AssertionError("the zygote has died")


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _note(death: Death, event: list[Any], client: Client) -> None:
    match event:
        case ["dead", status, seconds]:
            death.killed, death.seconds = (
                os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
                seconds,
            )
            assert death.killed or status == 0, f"a child ended with status {status}"
        case ["dying", name]:
            death.at = name
        case ["passed", *names]:
            death.passed += names
        case ["refused", _, name]:
            death.errors.append(name)
        case _:
            client.hear(*event)


class _Points:
    """Failpoints, counted as they are passed; at the one with the number given this process,
    or its server, is killed.
    """

    def __init__(self, job: Job, tell: Tell) -> None:
        self._job, self._tell = job, tell
        self._server = 0
        self.passed: list[str] = []

    def reach(self, name: str) -> None:
        """Pass a failpoint, or die there."""
        self.passed.append(name)
        if len(self.passed) == self._job.die_at:
            self._tell("dying", name)
            os.kill(self._server if self._job.server else os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        """Plant a failpoint before and after a function or method."""
        found = vars(owner)[name]
        inner = found.__func__ if isinstance(found, staticmethod) else found

        def outer(*arguments: Any, **options: Any) -> Any:
            self.reach(f"before {name}")
            result = inner(*arguments, **options)
            self.reach(f"after {name}")
            return result

        setattr(owner, name, staticmethod(outer) if isinstance(found, staticmethod) else outer)

    def plant_in_code(self, kind: Kind) -> None:
        """Around the steps of a session, of the ledger and of the making of its file."""
        from sordino.ledger import journal, ledger, recognition, sqlite, witness

        for owner, names in (
            (ledger.Ledger, ("stored", "charge", "store", "forfeit")),
            (journal.Journal, ("catch_up", "_append")),
            (recognition.Recognition, ("expect_known", "remember")),
            (sqlite.SqliteStore, ("_prepare", "append")),
            (sqlite, ("_fill", "_name")),
            (witness.Witness, ("_write",)),
            (os, ("link", "fsync", "replace")),
        ):
            for name in names:
                self.around(owner, name)
        if kind == "session":
            from sordino import session
            from sordino.answer.answer import Answer
            from sordino.engines.duckdb import DuckDB

            for name in ("parse", "make_plan", "release"):
                self.around(session, name)
            self.around(DuckDB, "run")
            self.around(Answer, "to_json")
            self.around(Answer, "from_json")

    def plant_in_sql(self) -> None:
        """Around each statement that the store runs."""
        connect, reach = sqlite3.connect, self.reach

        class Deadly(sqlite3.Connection):
            def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
                name = _short(statement)
                reach(f"before {name}")
                cursor = super().execute(statement, *values)
                reach(f"after {name}")
                return cursor

        def deadly(address: str, **options: Any) -> sqlite3.Connection:
            return connect(address, factory=Deadly, **options)

        sqlite3.connect = deadly  # type: ignore[assignment]
        execute = psycopg.Connection.execute

        def deadly_execute(connection: Any, statement: Any, *values: Any) -> Any:
            self._server = connection.info.backend_pid
            name = _short(
                statement if isinstance(statement, str) else statement.as_string(connection)
            )
            reach(f"before {name}")
            cursor = execute(connection, statement, *values)
            reach(f"after {name}")
            return cursor

        psycopg.Connection.execute = deadly_execute  # type: ignore[method-assign,assignment]

    def plant_in_disk(self) -> None:
        """Around each call of SQLite to its disk that can change something."""

        def hook(call: Call, do: Do) -> Any:
            if call.kind not in ("open", "write", "truncate", "sync", "delete"):
                return do(call.data)
            name = f"{call.kind} {'journal' if call.path.endswith('-journal') else 'file'}"
            self.reach(f"before {name}")
            if call.kind == "write":
                do(call.data[: len(call.data) // 2])
                self.reach(f"halfway {name}")
            result = do(call.data)
            self.reach(f"after {name}")
            return result

        sqlite3.connect = Disk(hook).connect  # type: ignore[assignment]


def _short(statement: str) -> str:
    """A name for a statement: its verb and what it is about."""
    words = statement.replace("(", " (").split()
    match words[0]:
        case "INSERT":
            return f"INSERT {words[2]}"
        case "SELECT":
            return (
                f"SELECT {words[words.index('FROM') + 1]}" if "FROM" in words else "SELECT changes"
            )
        case "CREATE":
            return f"CREATE {words[2]}"
    return " ".join(words[:2])


def _shown_first(asker: Asker, tell: Tell) -> None:
    """Bug: the answer is shown before it is stored."""
    assert isinstance(asker, BareAsker)
    store = asker.ledger.store

    def early(receipt: Any, answer: bytes) -> None:
        tell("answer", receipt.request_id, digest(answer))
        store(receipt, answer)

    asker.ledger.store = early  # type: ignore[method-assign]


def _late_charge(asker: Asker, tell: Tell) -> None:
    """Bug: the charge is written together with the answer, so that a crash between refunds it."""
    charge, store = asker.ledger.charge, asker.ledger.store
    waiting: dict[str, Callable[[], Receipt]] = {}

    def promise(amount: Any, request: Any) -> Paid:
        waiting[request.id] = lambda: charge(amount, request).receipt
        return Paid(Receipt(0, amount, request.question, request.id))

    def late(receipt: Receipt, answer: bytes) -> None:
        store(waiting[receipt.request_id](), answer)

    asker.ledger.charge = promise  # type: ignore[method-assign,assignment]
    asker.ledger.store = late  # type: ignore[method-assign]


def _drawn_again(asker: Asker, tell: Tell) -> None:
    """Bug: whatever is stored, the client gets fresh bytes."""
    ask = asker.ask

    def again(request: str, *, failing: bool = False) -> bytes:
        ask(request, failing=failing)
        return os.urandom(24)

    asker.ask = again  # type: ignore[method-assign]


BUGS: dict[str, Callable[[Asker, Tell], None]] = {
    "shown first": _shown_first,
    "late charge": _late_charge,
    "drawn again": _drawn_again,
}
"""Mistakes that the oracle must find."""


def _live(job: Job, tell: Tell) -> None:
    """The life of a child."""
    os.environ["SORDINO_STATE"] = job.state
    _idle(*job.idle, Path(job.state).with_name("idle"))
    points = _Points(job, tell)
    if "disk" in job.points:
        points.plant_in_disk()
    if "sql" in job.points:
        points.plant_in_sql()
    if "code" in job.points:
        points.plant_in_code(job.kind)
    try:
        asker: Asker = (BareAsker if job.kind == "bare" else SessionAsker)(job.place, tell)
    except SordinoError as error:
        tell("refused", "all", f"{type(error).__name__} at opening: {error}")
        return
    if job.bug:
        BUGS[job.bug](asker, tell)
    for request in job.requests:
        name = request.lstrip("!")
        try:
            answer = asker.ask(name, failing=name != request)
        except SordinoError as error:
            tell("refused", name, type(error).__name__)
            continue
        points.reach("before the client")
        tell("answer", name, digest(answer))
        points.reach("after the client")
    asker.close()
    points.reach("after close")
    if not job.die_at:
        tell("passed", *points.passed)


def _idle(call: str, count: int, path: Path) -> None:
    if not call:
        return
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    calls: dict[str, Callable[[], object]] = {
        "fdatasync": lambda: os.fdatasync(file),
        "fsync": lambda: os.fsync(file),
        "pwrite64": lambda: os.pwrite(file, b" ", 0),
        "unlink": lambda: path.unlink(missing_ok=True),
    }
    for _ in range(count):
        calls[call]()
    os.close(file)


def _fork(index: int, job: Job) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        # a line is shorter than what a pipe takes at once, so the client gets the whole of it or nothing
        _live(job, lambda *event: _write([index, *event]))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _write(words: list[Any]) -> None:
    line = f"{json.dumps(words)}\n".encode()
    while line:
        line = line[os.write(1, line) :]


def _end(child: int, start: float, after: float | None) -> tuple[int, float]:
    """Wait for a child; kill it when its time is over."""
    if after is not None:
        time.sleep(max(start + after - time.perf_counter(), 0))
        # if it has ended it is not reaped yet, and its number is nobody else's
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1], time.perf_counter() - start


def _main() -> None:
    """Fork children, for each line of jobs, until there are no more."""
    old_entries.EVERY, old_entries._BY_ANALYST = 3, 0  # so that checkpoints are written, too
    _warm()
    for line in sys.stdin:
        jobs = [Job(**fields) for fields in json.loads(line)]
        start = time.perf_counter()
        children = [_fork(index, job) for index, job in enumerate(jobs)]
        for index, job in sorted(
            enumerate(jobs), key=lambda numbered: numbered[1].die_after or math.inf
        ):
            _write([index, "dead", *_end(children[index], start, job.die_after)])
        _write([0, "end"])


def _warm() -> None:
    """Do once what is only slow the first time, with a ledger in memory."""
    import sordino.ledger.postgres
    import sordino.session

    assert sordino.session
    assert sordino.ledger.postgres
    with Ledger.open(DATA) as ledger:
        ledger.charge(Charge(price("warm")), Request("warm", "question"))


if __name__ == "__main__":
    _main()
