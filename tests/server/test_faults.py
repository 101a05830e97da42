"""Faults of the engine process: it is killed at every step, its disk fills up, its ledger is locked or away.

Whatever happens: no answer without a charge, no charge twice, no second draw, and the ledger verifies.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server import killed_engine
from server.served_folder import Served, ask, declare, held, run
from sordino.ledger.ledger import Ledger
from sordino.server.clock import Overruns
from sordino.server.engine_link import EngineLink
from sordino.server.link import Reply
from sordino.server.supervisor import Child, Supervisor, engine_command, state_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    return declare(tmp_path / "served", answer_time=0.4)


def expect_sound(served: Served, replies: dict[str, Reply]) -> None:
    """What the ledger holds is what was told, once each."""
    with Ledger.open(served.dataset) as ledger:
        assert ledger.verify()
        payments = {p.receipt.request_id: p for p in ledger.payments}
        assert len(payments) == len(ledger.payments)
        for name, reply in replies.items():
            match reply.status:
                case "answered":
                    assert payments[name].status == "answered"
                    assert ledger._journal.store.answer(payments[name].settled) == reply.body
                case "failed":
                    assert payments[name].status in ("unanswered", "forfeited")
                case "refused":
                    assert name not in payments


def start_killed(served: Served, step: str) -> None:
    command = engine_command(served.folder, served.one, served.sockets, served.state)[3:]
    script = [sys.executable, str(Path(killed_engine.__file__)), step, *command]
    with (served.folder / "engine.log").open("ab") as log:
        served.process = subprocess.Popen(script, env=served.environment, stderr=log)


QUICK = ("charged", "store commit")


@pytest.mark.parametrize(
    "step",
    [
        step if step in QUICK else pytest.param(step, marks=pytest.mark.slow)
        for step in killed_engine.STEPS
    ],
)
def test_killed_at_a_step(folder: Path, step: str) -> None:
    served = Served(folder)
    try:
        start_killed(served, step)

        async def work() -> dict[str, Reply]:
            async with served.link() as link:
                first = await link.ask(ask("first"))
                questions = [
                    asyncio.ensure_future(link.ask(ask(name))) for name in ("killed", "next")
                ]
                while served.process is not None and served.process.poll() is None:
                    await asyncio.sleep(0.02)
                assert served.process is not None
                assert served.process.returncode == -signal.SIGKILL
                assert link.facts().state == "starting" or await _lost(link)
                served.start()
                killed, after = await asyncio.gather(*questions)
                await held(after)
                return {"first": first, "killed": killed, "next": after}

        replies = run(work, 90)
        assert served.kill(signal.SIGTERM) == 0
        expect_sound(served, replies)
        assert replies["first"].status == "answered"
        # the transaction that stores an answer charges for the next question, which is then lost with the process
        assert replies["next"].status in (
            "answered",
            "failed" if step in killed_engine.LATER else "answered",
        )
        kept = step in {
            "planning",
            "snapshot",
            "charging",
            "charge commit",
            "stored",
            "telling",
            "told",
        }
        assert replies["killed"].status == ("answered" if kept else "failed")
        lost = Overruns.at(state_of(served.state, "visits"))
        assert kept or lost.since_resumed >= 1  # a crash amid a question is an overrun
    finally:
        served.__exit__()


async def _lost(link: EngineLink) -> bool:
    for _ in range(50):
        if link.facts().state == "starting":
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.slow
def test_a_ledger_that_is_locked_refuses_and_the_process_starts_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program keeps the file for longer than a writer waits: refused, and nothing charged."""
    served = Served(folder)
    try:
        script = [
            sys.executable, "-c",
            "import sys; from sordino.ledger import sqlite; sqlite.PATIENCE = 1.0; "
            "sqlite._connect.__globals__['PATIENCE'] = 1.0; "
            "from sordino.server.engine_worker import main; sys.exit(main(sys.argv[1:]))",
            *engine_command(served.folder, served.one, served.sockets, served.state)[3:],
        ]  # fmt: skip
        served.process = subprocess.Popen(script, env=served.environment)

        async def work() -> dict[str, Reply]:
            async with served.link() as link:
                first = await link.ask(ask("first"))
                await asyncio.sleep(0.6)
                with sqlite3.connect(folder / "visits.ledger", isolation_level=None) as other:
                    other.execute("BEGIN IMMEDIATE")
                    refused = await link.ask(ask("locked out"))
                    other.execute("ROLLBACK")
                assert served.process is not None
                assert await asyncio.to_thread(served.process.wait, 20) == 70
                served.start()
                return {
                    "first": first,
                    "locked out": refused,
                    "later": await held(await link.ask(ask("later"))),
                }

        replies = run(work, 90)
        assert [reply.status for reply in replies.values()] == ["answered", "refused", "answered"]
        served.kill(signal.SIGTERM)
        expect_sound(served, replies)
    finally:
        served.__exit__()


def test_a_full_disk_grants_nothing(folder: Path) -> None:
    """SQLite may use no more pages: what is charged when the disk is full is refused, and the answer is not shown."""
    served = Served(folder)
    try:
        script = [
            sys.executable, "-c",
            "import sys\n"
            "from sordino.ledger.sqlite import SqliteStore\n"
            "append, count = SqliteStore.append, [0]\n"
            "def full(self, *arguments):\n"
            "    count[0] += 1\n"
            "    if count[0] == 4:\n"
            "        self._connection.execute('PRAGMA max_page_count = 1')\n"
            "        for i in range(400):\n"
            "            self._run('CREATE TABLE filler%d (x)' % i)\n"
            "    append(self, *arguments)\n"
            "SqliteStore.append = full\n"
            "from sordino.server.engine_worker import main; sys.exit(main(sys.argv[1:]))",
            *engine_command(served.folder, served.one, served.sockets, served.state)[3:],
        ]  # fmt: skip
        served.process = subprocess.Popen(script, env=served.environment)

        async def work() -> dict[str, Reply]:
            async with served.link() as link:
                first = await link.ask(ask("first"))
                await held(first)
                late = await link.ask(ask("full"))
                assert served.process is not None
                assert await asyncio.to_thread(served.process.wait, 20) == 70
                served.start()
                after = await link.ask(ask("after"))
                return {"first": first, "full": late, "after": await held(after)}

        replies = run(work, 90)
        assert replies["first"].status == replies["after"].status == "answered"
        assert replies["full"].status == "failed"
        assert "disk is full" in json.dumps(replies["full"].problem)
        served.kill(signal.SIGTERM)
        expect_sound(served, replies)
    finally:
        served.__exit__()


def test_the_supervisor_brings_both_back_within_five_seconds(folder: Path) -> None:
    served = Served(folder)
    said: list[str] = []
    web = [sys.executable, "-c", "import time; time.sleep(60)"]
    engine = Child(
        "dataset visits", engine_command(folder, served.one, served.sockets, served.state)
    )
    supervisor = Supervisor([engine, Child("web", web)], said.append)
    import threading

    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:

        async def work() -> None:
            async with served.link() as link:
                assert (await link.ask(ask("before"))).status == "answered"
                for child in supervisor.children:
                    assert child.process is not None
                    pid, child_began = child.process.pid, time.monotonic()
                    child.process.kill()
                    while child.process is None or child.process.pid == pid:
                        await asyncio.sleep(0.02)
                        assert time.monotonic() - child_began < 5
                reply = await link.ask(ask("after"))
                assert reply.status == "answered"

        run(work)
        assert [line.split(" ended")[0] for line in said] == ["dataset visits", "web"]
    finally:
        supervisor.stop()
        thread.join(30)
        served.__exit__()
    assert all(
        child.process is not None and child.process.poll() is not None
        for child in supervisor.children
    )


@pytest.mark.slow
def test_wall_clocks_that_jump_change_no_tick(folder: Path) -> None:
    """The day and hour of the machine, set back and forth, are for people only: all waits go by the monotonic clock."""
    served = Served(folder)
    try:
        script = [
            sys.executable, "-c",
            "import itertools, sys, time, datetime\n"
            "jumps = itertools.cycle((0, 4e9, -1e9, 1e6))\n"
            "real = time.time\n"
            "time.time = lambda: max(real() + next(jumps), 0)\n"
            "import sordino.ledger.chain as chain\n"
            "at = lambda: datetime.datetime.fromtimestamp(time.time(), datetime.UTC)\n"
            "chain._now = lambda: at().isoformat(timespec='seconds')\n"
            "from sordino.server.engine_worker import main; sys.exit(main(sys.argv[1:]))",
            *engine_command(served.folder, served.one, served.sockets, served.state)[3:],
        ]  # fmt: skip
        served.process = subprocess.Popen(script, env=served.environment)

        async def work() -> dict[str, Reply]:
            async with served.link() as link:
                replies = {f"r{i}": await link.ask(ask(f"r{i}")) for i in range(4)}
                await held(replies["r3"])
                ticks = [reply.tick for reply in replies.values()]
                assert all(
                    abs((tick - ticks[0]) / 0.4 - round((tick - ticks[0]) / 0.4)) < 1e-3
                    for tick in ticks
                )
                return replies

        replies = run(work)
        served.kill(signal.SIGTERM)
        expect_sound(served, replies)
        times = [json.loads(line)["time"] for line in _lines(served)]
        assert times != sorted(times)
    finally:
        served.__exit__()


def _lines(served: Served) -> list[str]:
    with Ledger.open(served.dataset) as ledger:
        return list(ledger.export())
