"""kill -9: at every named failpoint, inside every write, at random times, in recovery, among others.

Nothing is granted twice, nothing that a client saw is missing, and what was charged stays charged.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg
import pytest

from ledger.oracle import (
    CAP,
    BareAsker,
    Client,
    Findings,
    SessionAsker,
    judge,
    own_state,
    prepared,
    price,
    quick_folder,
)
from ledger.postgres_server import PostgresServer
from ledger.zygote import BUGS, Death, Job, Kind, Zygote
from sordino.ledger import sqlite
from sordino.ledger.chain import Row
from sordino.ledger.journal import Journal
from sordino.ledger.sqlite import SqliteStore

ASKED = ("a", "!b", "c", "a")
"""A question, one on which the engine fails, another one, and the first again."""
SEVENTHS = ("d", "h", "l", "p", "t", "x")


def around(*steps: str) -> set[str]:
    """The failpoints on both sides of steps."""
    return {f"{when} {step}" for when in ("before", "after") for step in steps}


CODE = around(
    *(
        "catch_up",
        "expect_known",
        "remember",
        "_append",
        "stored",
        "charge",
        "store",
        "forfeit",
        "append",
    ),
    *("_prepare", "_fill", "_name", "_write", "link", "fsync", "replace", "the client"),
)
SESSION = around(
    "parse",
    "stored",
    "make_plan",
    "charge",
    "run",
    "release",
    "to_json",
    "store",
    "forfeit",
    "from_json",
)
SQL = around(
    *(
        "BEGIN IMMEDIATE",
        "COMMIT",
        "UPDATE head",
        "INSERT entries",
        "INSERT answers",
        "INSERT head",
        "INSERT secret",
    ),
    *(
        "SELECT head",
        "SELECT entries",
        "SELECT answers",
        "SELECT secret",
        "SELECT changes",
        "SELECT sqlite_schema",
    ),
    *("CREATE entries", "CREATE answers", "CREATE head", "CREATE secret", "CREATE entries_update"),
    *("PRAGMA synchronous", "PRAGMA journal_mode", "PRAGMA integrity_check", "PRAGMA user_version"),
)
DISK = around(
    "write journal",
    "write file",
    "sync journal",
    "sync file",
    "open journal",
    "open file",
    "delete journal",
) | {
    "halfway write journal",
    "halfway write file",
}
POSTGRES = around(
    *(
        "BEGIN ISOLATION",
        "COMMIT",
        "UPDATE sordino.heads",
        "SELECT sordino.heads",
        "SELECT sordino.entries",
    ),
    *(f"INSERT sordino.{table}" for table in ("heads", "secrets", "entries", "answers")),
)
LATE = 400
"""More system calls of one kind than a child makes."""
BETWEEN = {"before charge", "after charge", "before store", "after store", "after the client"}


@dataclass(frozen=True)
class Scene:
    """A ledger as a child finds it, and what its clients know; without content there is none yet."""

    content: bytes = b""
    client: Client = field(default_factory=Client)


@dataclass
class Campaign:
    """Kills, and what was found after each."""

    zygote: Zygote
    folder: Path
    server: PostgresServer | None = None
    """Where the ledgers are, if not in files."""
    excused: frozenset[str] = frozenset({"EngineFailed", "RequestRefused", "BudgetExceeded"})
    """What a client may be told while others die."""
    kills: int = 0
    seen: int = 0
    forfeits: int = 0
    refused: int = 0
    died_at: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    homes: Iterator[int] = field(default_factory=itertools.count)

    def home(self, scene: Scene) -> Path:
        """A folder of its own with the ledger of the scene."""
        home = self.folder / f"home{next(self.homes)}"
        home.mkdir()
        if scene.content:
            (home / "it.ledger").write_bytes(scene.content)
        return home

    def place(self, home: Path) -> str:
        """The ledger of a home."""
        return str(home / "it.ledger") if self.server is None else self.server.address(f"{home}")

    def strike(self, scene: Scene, job: Job) -> tuple[Death, Findings]:
        """Let a child die in the scene, and judge what it leaves behind."""
        home, client = self.home(scene), scene.client.copy()
        try:
            (death,) = self.run(home, client, job)
            return death, self.judge(home, client, job.kind, death.at)
        finally:
            shutil.rmtree(home)

    def run(self, home: Path, client: Client, *jobs: Job) -> list[Death]:
        """Children, at once, in one home."""
        known = len(client.answers)
        placed = [replace(job, place=self.place(home), state=str(home / "state")) for job in jobs]
        deaths = self.zygote.run(*placed, client=client)
        for death in deaths:
            died = bool(death.at) or death.killed
            self.kills += died
            self.died_at.update([death.at] if death.at else [])
            odd = [error for error in death.errors if error.split()[0] not in self.excused]
            self.problems += [f"a client was refused: {error}" for error in odd]
        self.seen += len(client.answers) - known
        return deaths

    def judge(self, home: Path, client: Client, kind: Kind, at: str) -> Findings:
        """What the oracle says."""
        if self.server is not None:
            ready(self.server)
        with own_state(home / "state"):
            fresh = f"fresh{len(client.asked)}"
            findings = judge(
                BareAsker if kind == "bare" else SessionAsker, self.place(home), client, fresh
            )
        self.forfeits += findings.forfeits
        self.refused += findings.refused
        self.problems += [f"{at}: {problem}" for problem in findings.problems]
        return findings

    def each(
        self, scene: Scene, job: Job, *, once: bool, only: Container[str] | None = None
    ) -> set[str]:
        """Die at each failpoint of a job; `once`: at one of those with the same name. Says which names there are."""
        death, _ = self.strike(scene, job)
        assert not death.killed
        places = [
            (n, name)
            for n, name in enumerate(death.passed, start=1)
            if only is None or name in only
        ]
        if once:
            random.Random(0).shuffle(places)
            places = list({name: (number, name) for number, name in places}.values())
        for number, name in places:
            dead, _ = self.strike(scene, replace(job, die_at=number))
            assert dead.killed or job.server
            assert dead.at == name
        return set(death.passed)

    def at_random(self, kind: Kind, kills: int, seed: int) -> None:
        """Die at times uniform over a life, several deaths in one ledger."""
        draw = random.Random(seed)
        job = Job("", "", ASKED, kind)
        usual = min(self.strike(Scene(), job)[0].seconds for _ in range(3))
        goal = self.kills + kills
        for _ in range(5 * kills):
            home, client = self.home(Scene()), Client()
            for number in range(4):
                names = tuple(f"{name}{number}" for name in ASKED)
                self.run(
                    home, client, replace(job, requests=names, die_after=draw.uniform(0, usual))
                )
                self.judge(home, client, kind, "at random")
                if self.kills >= goal:
                    break
            shutil.rmtree(home)
            if self.kills >= goal:
                return
        raise AssertionError("too many children were faster than their death")

    def report(self, name: str) -> None:
        """Print the figures."""
        forfeits = f"{self.forfeits} forfeits ({self.refused} refused again)"
        print(
            f"\n{name}: {self.kills} kills, {self.seen} answers seen, {forfeits}, {len(self.problems)} problems"
        )


def ready(server: PostgresServer) -> None:
    """Wait until the server has recovered from a crash; it does so by itself."""
    for _ in range(600):
        try:
            server.run("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not recover")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as process:
        yield process


@pytest.fixture
def campaign(zygote: Zygote) -> Iterator[Campaign]:
    with quick_folder() as folder:
        yield Campaign(zygote, folder)


def scenes(folder: Path) -> dict[str, Scene]:
    """None yet; one in use, with answers and a forfeit; one where exactly one more seventh fits."""
    used = Scene(*prepared(folder, "u", "!v", "w"))
    spent = Scene(*prepared(folder, *SEVENTHS))
    assert sum(map(price, SEVENTHS), Fraction(0)) + price("dd") == CAP
    return {"none yet": Scene(), "in use": used, "nearly spent": spent}


def test_a_ledger_survives_a_kill_at_each_named_failpoint(campaign: Campaign) -> None:
    names = set()
    for points in ("code", "sql", "disk"):
        names |= campaign.each(Scene(), Job("", "", ASKED, points=(points,)), once=True)
    campaign.report("named failpoints")
    assert campaign.problems == []
    assert names >= CODE | SQL | DISK
    assert names <= set(campaign.died_at)
    assert campaign.kills >= 110
    assert campaign.seen
    assert campaign.forfeits > 0


def test_a_session_survives_a_kill_at_each_named_failpoint(campaign: Campaign) -> None:
    names = campaign.each(
        Scene(), Job("", "", ASKED, "session", ("code",)), once=True, only=SESSION
    )
    campaign.report("named failpoints of a session")
    assert campaign.problems == []
    assert names >= CODE | SESSION
    assert set(campaign.died_at) >= SESSION
    assert campaign.seen
    assert campaign.forfeits


def test_a_ledger_survives_kills_at_random_times(campaign: Campaign) -> None:
    campaign.at_random("bare", 40, seed=1)
    campaign.report("random times")
    assert campaign.problems == []
    assert campaign.kills >= 40


def among(campaign: Campaign, rounds: int, seed: int) -> None:
    """Three processes at once, of which two die; one question is asked by all of them."""
    draw = random.Random(seed)
    job = Job("", "", ASKED)
    usual = min(campaign.strike(Scene(), job)[0].seconds for _ in range(3))
    for number in range(rounds):
        home, client = campaign.home(Scene()), Client()
        after = (draw.uniform(0, 2 * usual), draw.uniform(0, 2 * usual), None)
        jobs = [
            replace(job, requests=(f"a{i}", "same", f"!b{i}"), die_after=seconds)
            for i, seconds in enumerate(after)
        ]
        *_, last = campaign.run(home, client, *jobs)
        assert not last.killed
        campaign.judge(home, client, "bare", f"round {number}")
        shutil.rmtree(home)


def test_others_go_on_when_a_process_is_killed(campaign: Campaign) -> None:
    among(campaign, 8, seed=2)
    campaign.report("among others")
    assert campaign.problems == []
    assert campaign.kills
    assert campaign.seen


@pytest.mark.parametrize(
    "moment",
    [(Journal, "catch_up"), (SqliteStore, "exists"), (sqlite, "_fill")],
    ids=lambda m: m[1],
)
def test_another_process_makes_and_uses_the_ledger_meanwhile(moment: tuple[Any, str]) -> None:
    """Right after the moment another one has made the ledger, been charged and begun to write: that is no damage."""
    owner, name = moment
    with quick_folder() as folder, own_state(folder / "state"), contextlib.ExitStack() as stack:
        place = str(folder / "it.ledger")
        if name == "catch_up":
            stack.enter_context(contextlib.closing(BareAsker(place, print)))
        sound = getattr(owner, name)
        others: list[BareAsker] = []

        def slow(*arguments: Any, **options: Any) -> Any:
            found = sound(*arguments, **options)
            if not others:
                patch.stop()
                others.append(BareAsker(place, print))
                others[0].ask("a")
                others[0].ledger._journal.store.begin()
                others[0].ledger._journal.store.append(
                    Row(4, "", ""), others[0].ledger._journal.store.head()
                )
            return found

        patch = mock.patch.object(owner, name, staticmethod(slow) if owner is SqliteStore else slow)
        patch.start()
        asker = BareAsker(place, print)
        others[0].ledger._journal.store.rollback()
        assert asker.ask("b")
        assert asker.ledger.verify().charges == 2
        for one in (asker, *others):
            one.close()


def twice(campaign: Campaign, most: int) -> int:
    """A kill while a commit is half written, and another at each step of the next process's recovery from it."""
    scene = scenes(campaign.folder)["in use"]
    job = Job("", "", ("a",), points=("disk",))
    again = replace(job, requests=("e",))
    passed = campaign.strike(scene, job)[0].passed
    middle = [number for number, name in enumerate(passed, start=1) if name == "halfway write file"]
    recoveries = 0
    for first in middle[-most:]:
        steps = 0  # of the recovery: the first of these lives, and tells
        for second in itertools.count():
            if second > steps:
                break
            home, client = campaign.home(scene), scene.client.copy()
            campaign.run(home, client, replace(job, die_at=first))
            assert (home / "it.ledger-journal").exists()
            (death,) = campaign.run(home, client, replace(again, die_at=second))
            steps = steps or death.passed.index("after delete journal") + 1
            campaign.judge(home, client, "bare", f"twice, {death.at}")
            shutil.rmtree(home)
            recoveries += death.killed
    return recoveries


def test_a_kill_in_the_recovery_from_a_kill(campaign: Campaign) -> None:
    recoveries = twice(campaign, most=1)
    campaign.report("in recovery")
    assert campaign.problems == []
    assert recoveries >= 10
    assert {
        "before write file",
        "halfway write file",
        "after sync file",
        "before delete journal",
    } <= set(campaign.died_at)


@pytest.mark.parametrize(
    ("bug", "found"),
    [
        ("shown first", "the client has an answer that is not stored"),
        ("late charge", "data were read without a debit"),
        ("drawn again", "answered with other bytes than before"),
    ],
)
def test_a_planted_bug_is_found(campaign: Campaign, bug: str, found: str) -> None:
    """The oracle can fail: each bug is invisible without a kill, or at once, and is found."""
    assert bug in BUGS
    campaign.each(
        scenes(campaign.folder)["in use"],
        Job("", "", ("a", "a"), points=("code",), bug=bug),
        once=True,
        only=BETWEEN,
    )
    assert any(problem.endswith(found) for problem in campaign.problems)


@pytest.fixture
def in_postgres(campaign: Campaign, postgres_server: PostgresServer) -> Campaign:
    """A campaign against ledgers in a database; the first makes the tables, and passes more failpoints than others."""
    campaign.server = postgres_server
    campaign.strike(Scene(), Job("", "", ()))
    return campaign


def test_a_ledger_in_postgres_survives_kills(in_postgres: Campaign) -> None:
    in_postgres.each(Scene(), Job("", "", ASKED, points=("sql",)), once=True, only=POSTGRES)
    in_postgres.report("named failpoints, PostgreSQL")
    assert in_postgres.problems == []
    assert set(in_postgres.died_at) == POSTGRES
    assert in_postgres.seen
    assert in_postgres.forfeits


def test_a_ledger_survives_its_postgres(in_postgres: Campaign) -> None:
    """The server is killed around the commits, and recovers; the client lives on, and is told no more than is so."""
    around = {"before COMMIT", "after COMMIT"}
    in_postgres.excused |= {"LedgerUnavailable"}
    in_postgres.each(
        Scene(), Job("", "", ASKED, points=("sql",), server=True), once=True, only=around
    )
    in_postgres.report("crashes of PostgreSQL")
    assert in_postgres.problems == []
    assert set(in_postgres.died_at) == around


@pytest.mark.slow
def test_many_kills_with_postgres(in_postgres: Campaign) -> None:
    in_postgres.each(Scene(), Job("", "", ASKED, points=("sql",)), once=False)
    in_postgres.at_random("bare", 60, seed=6)
    in_postgres.report("every failpoint and random times, PostgreSQL")
    assert in_postgres.problems == []
    assert in_postgres.forfeits


@pytest.mark.slow
def test_many_crashes_of_postgres(in_postgres: Campaign) -> None:
    in_postgres.excused |= {"LedgerUnavailable"}
    in_postgres.each(
        Scene(), Job("", "", ASKED, points=("sql",), server=True), once=True, only=POSTGRES
    )
    in_postgres.report("crashes of PostgreSQL at each named failpoint")
    assert in_postgres.problems == []
    assert set(in_postgres.died_at) == POSTGRES


@pytest.mark.slow
@pytest.mark.parametrize("points", ["code", "sql", "disk"])
@pytest.mark.parametrize("scene", ["none yet", "in use", "nearly spent"])
def test_a_kill_at_every_failpoint(campaign: Campaign, scene: str, points: str) -> None:
    asked = ASKED if scene != "nearly spent" else ("dd", "a", "dd")
    names = campaign.each(
        scenes(campaign.folder)[scene], Job("", "", asked, points=(points,)), once=False
    )
    campaign.report(f"every failpoint, {scene}, {points}")
    assert campaign.problems == []
    assert names <= set(campaign.died_at)
    assert campaign.seen


@pytest.mark.slow
def test_a_session_and_a_kill_at_every_failpoint(campaign: Campaign) -> None:
    campaign.each(Scene(), Job("", "", ASKED, "session", ("code",)), once=False)
    campaign.report("every failpoint of a session")
    assert campaign.problems == []
    assert campaign.seen
    assert campaign.forfeits


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "kills"), [("bare", 500), ("session", 100)])
def test_many_kills_at_random_times(campaign: Campaign, kind: Kind, kills: int) -> None:
    campaign.at_random(kind, kills, seed=3)
    campaign.report(f"random times, {kind}")
    assert campaign.problems == []
    assert campaign.kills >= kills
    assert campaign.forfeits


@pytest.mark.slow
def test_many_kills_among_others_and_in_recovery(campaign: Campaign) -> None:
    among(campaign, 150, seed=4)
    recoveries = twice(campaign, most=100)
    campaign.report("among others and in recovery")
    assert campaign.problems == []
    assert recoveries >= 60


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("call", ["fdatasync", "fsync", "unlink", "pwrite64"])
def test_a_system_call_of_the_process_fails(call: str, fault: str) -> None:
    """One layer below: the SQLite of the standard library, and real calls that fail, each of one kind in turn.

    Not every failure is a refusal: SQLite lets the sync of the folder pass when it has made a journal there, and notes
    of the witness are a help only.
    """
    if shutil.which("strace") is None:
        if os.environ.get("CI"):
            pytest.fail("strace is missing; get it with: apt-get install strace", pytrace=False)
        pytest.skip("strace is missing")
    with quick_folder() as folder:
        log = folder / "calls"
        inject = f"inject={call}:error={fault}:when={LATE}"
        with Zygote(
            "strace", "-f", "--seccomp-bpf", "-o", str(log), "-e", f"trace={call}", "-e", inject
        ) as zygote:
            campaign = Campaign(zygote, folder)
            campaign.excused |= {"LedgerUnavailable"}
            refused = 0
            for number in range(1, LATE):
                death, _ = campaign.strike(
                    Scene(), Job("", "", ("a", "c"), idle=(call, LATE - number))
                )
                refused += bool(death.errors)
                if log.read_text().count("(INJECTED)") < number:
                    break
    print(
        f"\n{call}, {fault}: {number - 1} calls, {refused} refusals, {len(campaign.problems)} problems"
    )
    assert campaign.problems == []
    assert 1 < number < LATE - 1
    assert refused
