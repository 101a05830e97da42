"""Ctrl-C and forks in library use, in processes of their own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from first_of import first_of
from ledger.visits import declare, pay
from sordino.engines.interruptible import interruptible
from sordino.errors import EngineFailed, LedgerUnavailable
from sordino.ledger import fork_gate
from sordino.ledger.ledger import Ledger
from sordino.ledger.sqlite import SqliteStore
from sordino.session import Session

ASKING = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told its background jobs to ignore it
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
import numpy as np, pyarrow as pa
import sordino as so
from sordino.engines.duckdb import DuckDB

ages = pa.table({"age": np.arange(20) % 90})
data = so.Dataset(ages, unit="row", columns={"age": {"type": "int", "min": 0, "max": 110}}, budget=so.Budget(100))
session = so.Session(data)
run = DuckDB.run


def slow(self, statement):  # a real statement of DuckDB that takes minutes, in the middle of a question
    print("running", flush=True)
    with self._lock:
        self._connection.execute("SELECT SUM(HASH(a.range * b.range)::HUGEINT) FROM range(1000000) a, range(1000000) b")
    return run(self, statement)


DuckDB.run = slow
asked = 0
try:
    while True:
        asked += 1
        try:
            session.sql("SELECT COUNT(*) AS n FROM data", epsilon=0.1)
        except so.errors.SordinoError as error:
            print("swallowed", type(error).__name__, flush=True)  # a loop that catches our errors must not go on spending
except KeyboardInterrupt:
    print("interrupted", asked, session.ledger.payments[0].status, flush=True)
except SystemExit as error:
    print("exit", error.code, asked, session.ledger.payments[0].status, flush=True)
session.close()
"""


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, "interrupted 1 forfeited"), (signal.SIGTERM, "exit 7 1 forfeited")],
)
def test_a_signal_in_the_middle_of_a_query_reaches_the_caller(number: int, said: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", ASKING], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.5)
        process.send_signal(number)
        assert process.communicate(timeout=60)[0].strip() == said
        assert process.returncode == 0
    finally:
        process.kill()


def test_what_the_work_raises_is_raised_and_what_it_gives_is_given() -> None:
    assert interruptible(lambda: 3, lambda: None) == 3
    with pytest.raises(EngineFailed):
        interruptible(lambda: (_ for _ in ()).throw(EngineFailed()), lambda: None)


def test_work_goes_on_in_its_own_thread_elsewhere() -> None:
    found: list[int] = []
    thread = threading.Thread(
        target=lambda: found.append(interruptible(threading.get_ident, lambda: None))
    )
    thread.start()
    ident = thread.ident
    thread.join()
    assert found == [ident]


def test_a_disk_that_is_full_after_the_charge_does_not_say_that_nothing_was_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = declare(tmp_path)
    appended = SqliteStore.append

    def full(
        self: SqliteStore,
        row: Any,
        head: Any,
        request: str | None = None,
        answer: bytes | None = None,
    ) -> None:
        if answer is not None:
            raise LedgerUnavailable(
                self.place,
                "the disk is full (SQLITE_FULL)",
                "Free some space.",
                "Nothing was granted.",
            )
        appended(self, row, head, request, answer)

    with Session(dataset) as session:
        monkeypatch.setattr(SqliteStore, "append", full)
        with pytest.raises(LedgerUnavailable) as caught:
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    assert "Nothing was granted" not in str(caught.value)
    assert "The charge, entry 2, stays spent" in str(caught.value)
    monkeypatch.setattr(SqliteStore, "append", appended)
    with Session(dataset) as session:
        assert session.remaining.pure == session.dataset.budget.epsilon / 2  # type: ignore[union-attr]


def _child(act: Any) -> tuple[int, float]:
    """How a forked child ended that did this and left as Python does, and after how many seconds."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 9
        try:
            code = act()
        except BaseException:
            traceback.print_exc()  # pytest shows it with a failure
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun


FORKING = """
import gc, os, sys, threading, time
import pyarrow as pa
import sordino as so

ages = pa.table({"age": list(range(1000))})
data = so.Dataset(ages, unit="row", columns={"age": {"type": "int", "min": 0, "max": 110}}, budget=so.Budget(100))
question = "SELECT SUM(age) AS n FROM data"
session = so.Session(data)
session.sql(question, epsilon=0.1)
if sys.argv[1] == "amid a statement":
    slow = "SELECT SUM(HASH(a.range * b.range)::HUGEINT) FROM range(1000000) a, range(1000000) b"
    threading.Thread(target=lambda: session._engine._connection.execute(slow), daemon=True).start()
    while (session.progress or 0) <= 0:
        time.sleep(0.01)
child = os.fork()
if child == 0:
    match sys.argv[1]:
        case "closes":
            session.close()
        case "drops":
            del session
            gc.collect()
        case "asks anew":
            with so.Session(data) as fresh:
                fresh.sql(question, epsilon=0.1)
    print("done", flush=True)
    sys.exit(3)  # as Python does, and not by os._exit
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
if sys.argv[1] == "amid a statement":
    os._exit(0)
session.sql(question, epsilon=0.1)
session.close()
print("answered", flush=True)
"""


@pytest.mark.parametrize(
    "does", first_of(3, ["leaves", "asks anew", "amid a statement", "closes", "drops"])
)
def test_a_child_forked_from_an_open_session_ends_as_it_says(does: str) -> None:
    """What it inherits of DuckDB has lost its threads: to close it there would crash."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, does]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    answered = [] if does == "amid a statement" else ["answered"]
    assert done.stdout.splitlines() == ["done", "child 3", *answered], done.stderr[-2000:]
    assert done.returncode == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_writes_can_use_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it inherits a lock of SQLite that nobody gives back, and waits in vain, also in a new session."""
    dataset = declare(tmp_path)
    writing = threading.Event()
    appended = SqliteStore.append

    def slowly(self: SqliteStore, *values: Any) -> None:
        appended(self, *values)
        if threading.current_thread() is not threading.main_thread():
            writing.set()
            time.sleep(0.5)

    monkeypatch.setattr(SqliteStore, "append", slowly)
    with Ledger.open(dataset) as ledger:
        for i in range(3):
            writing.clear()
            thread = threading.Thread(target=pay, args=(ledger, f"other {i}", "1/100", b"x"))
            thread.start()

            def act(i: int = i) -> int:
                with Ledger.open(dataset) as fresh:
                    pay(fresh, f"child {i}", "1/100", b"x")
                pay(ledger, f"child {i} again", "1/100", b"x")
                ledger.close()
                return 0

            assert writing.wait(30)
            code, seconds = _child(act)
            thread.join()
            assert code == 0
            assert seconds < 20
        assert ledger.verify()
        assert len(ledger.payments) == 9


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_that_could_not_wait_leaves_a_child_that_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = declare(tmp_path)
    Ledger.open(dataset).close()
    monkeypatch.setattr(fork_gate, "PATIENCE", 0.1)
    inside, over = threading.Event(), threading.Event()

    def stay() -> None:
        with fork_gate.entered():
            inside.set()
            over.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()

    def act() -> int:
        try:
            Ledger.open(dataset)
        except LedgerUnavailable as error:
            return 0 if "forked while another thread was using a ledger" in str(error) else 8
        return 7

    code, seconds = _child(act)
    over.set()
    thread.join()
    assert code == 0
    assert seconds < 10
    Ledger.open(dataset).close()  # the parent goes on


def test_connections_that_nobody_closes_close_by_themselves(tmp_path: Path) -> None:
    """Python 3.13 warns of each that is left to the collector."""
    closed: list[str] = []

    class Connection:
        def __init__(self, uri: str) -> None:
            import sqlite3

            self._real = sqlite3.connect(uri, uri=True, isolation_level=None)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def close(self) -> None:
            closed.append("closed")
            self._real.close()

    dataset = declare(tmp_path)
    Ledger.open(dataset).close()
    store = SqliteStore(tmp_path / "visits.ledger", Connection)
    del store
    assert closed == ["closed"]


def test_a_transaction_that_was_dropped_does_not_keep_forks_waiting(tmp_path: Path) -> None:
    """Who forgets a store amid a transaction, or fails to undo it, leaves SQLite all the same."""
    dataset = declare(tmp_path)
    with Ledger.open(dataset):
        pass
    store = SqliteStore(dataset.file.with_suffix(".ledger"))  # type: ignore[union-attr]
    before = set(fork_gate._inside)
    store.begin()
    assert fork_gate._inside != before
    del store
    gc.collect()
    assert fork_gate._inside == before


def _at_step(number: int, act: Callable[[], None], during: Callable[[], object]) -> int:
    """Act in the middle of something, after so many steps of Python, as the garbage collector may; how many it took."""
    taken = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal taken
        frame.f_trace_opcodes = True
        if event == "opcode":
            taken += 1
            if taken == number:
                act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        during()
    finally:
        sys.settrace(before)
    return taken


def test_the_collector_may_come_by_at_every_step_of_the_gate() -> None:
    """It closes a connection, which goes in and out, and ends a transaction that went in before."""
    before = set(fork_gate._inside)

    def in_and_out() -> None:
        with fork_gate.entered():
            pass

    number, taken = 0, 1
    while number < taken:
        number += 1
        dropped = fork_gate.enter()

        def collect(dropped: Any = dropped) -> None:
            in_and_out()
            fork_gate.leave(dropped)

        taken = _at_step(number, collect, in_and_out)
        assert set(fork_gate._inside) == before, f"at step {number}"
    assert taken > 50
