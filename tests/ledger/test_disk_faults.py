"""A disk that fails at its Nth call, for every N: errors, no space, half a write, a sync that did not happen.

Whatever fails, the caller gets a LedgerError and nothing to use. Once a write has failed that ledger grants nothing
more, and opened again on a sound disk it holds all that it held.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from ledger.faulty_disk import CALLS, FAULTS, Call, Disk, Do, Fault
from ledger.oracle import BareAsker, Client, judge, own_state, prepared, price, quick_folder
from sordino.accounting.charge import Charge
from sordino.errors import LedgerDamaged, LedgerError, LedgerUnavailable
from sordino.ledger.chain import digest
from sordino.ledger.journal import Journal
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.ledger.sqlite import SqliteStore

MAIN = ("EIO", "ENOSPC", "short write, EIO", "done, but EIO")
CHANGES = ("write", "truncate", "sync", "delete")


def request(name: str) -> Request:
    return Request(name, f"question {name}")


@dataclass
class Trial:
    """One ledger on one disk, for one fault."""

    place: str
    client: Client
    disk: Disk = field(default_factory=Disk)
    asker: BareAsker | None = None
    befell: tuple[Call, ...] = ()
    """The calls of the operation that failed."""

    @property
    def ledger(self) -> Ledger:
        assert self.asker is not None
        return self.asker.ledger

    def open(self) -> None:
        self.asker = BareAsker(self.place, self.client.hear)

    def charge(self, name: str) -> None:
        """What is charged counts as read: whoever has a receipt goes on to the data."""
        self.client.hear("asked", name)
        self.ledger.charge(Charge(price(name)), request(name))
        self.client.hear("read", name)

    def store(self) -> None:
        answer = os.urandom(24)
        self.ledger.store(self.ledger.payments[-1].receipt, answer)
        self.client.hear("answer", "a", digest(answer))

    def forfeit(self) -> None:
        self.ledger.forfeit(self.ledger.payments[-1].receipt)

    def ask(self, name: str) -> None:
        self.client.hear("asked", name)
        assert self.asker is not None
        self.client.hear("answer", name, digest(self.asker.ask(name)))

    def repeat(self) -> None:
        paid = self.ledger.stored(request("u"))
        assert paid is not None
        self.client.hear("answer", "u", digest(paid.answer or b""))

    def verify(self) -> None:
        verdict = self.ledger.verify()
        if not verdict:
            raise LedgerDamaged(self.place, verdict.findings[0], "It was found.")


@dataclass(frozen=True)
class Operation:
    """What the fault befalls, what comes before it, and whether there is a ledger before,
    or one that a kill left half.
    """

    run: Callable[[Trial], None]
    before: tuple[Callable[[Trial], None], ...] = (Trial.open,)
    exists: bool = True
    half: bool = False


def charge_a(trial: Trial) -> None:
    trial.charge("a")


OPERATIONS = {
    "create": Operation(Trial.open, (), exists=False),
    "open": Operation(Trial.open, ()),
    "recover": Operation(Trial.open, (), half=True),
    "charge": Operation(charge_a),
    "store": Operation(Trial.store, (Trial.open, charge_a)),
    "forfeit": Operation(Trial.forfeit, (Trial.open, charge_a)),
    "ask": Operation(lambda trial: trial.ask("a")),
    "repeat": Operation(Trial.repeat),
    "verify": Operation(Trial.verify),
}


@dataclass
class Loop:
    """Faults at all calls of operations, and what was found."""

    folder: Path
    content: bytes = b""
    client: Client = field(default_factory=Client)
    half: dict[str, bytes] = field(default_factory=dict)
    faults: int = 0
    refused: int = 0
    survived: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def run(self, operation: str, kind: str, *, lasting: bool) -> None:
        """Fail the first call, the second, and so on, until the operation makes no more calls."""
        for number in itertools.count(1):
            home = self.folder / "home"
            home.mkdir()
            trial = Trial(
                str(home / "it.ledger"),
                self.client.copy() if OPERATIONS[operation].exists else Client(),
            )
            try:
                found = list(
                    self.suffer(home, trial, OPERATIONS[operation], Fault(kind, number, lasting))
                )
            finally:
                shutil.rmtree(home)
            self.problems += [
                f"{operation}, {kind} {number}, lasting {lasting}: {problem}" for problem in found
            ]
            if not trial.befell:
                return
            self.faults += 1
            self.calls[trial.befell[0].kind] += 1

    def suffer(self, home: Path, trial: Trial, operation: Operation, fault: Fault) -> Iterator[str]:
        """One fault, and what is wrong after it."""
        if operation.exists:
            Path(trial.place).write_bytes(self.content)
        if operation.half:
            trial.client.hear("asked", "a")
            for name, content in self.half.items():
                (home / name).write_bytes(content)
        with own_state(home / "state"):
            with mock.patch.object(sqlite3, "connect", trial.disk.connect):
                for step in operation.before:
                    step(trial)
                trial.disk.hook = fault
                yield from self.attempt(trial, operation, fault)
            trial.disk.close()
            if any(path.name.startswith(".") for path in home.iterdir()):
                yield "something was left behind"
            yield from judge(BareAsker, trial.place, trial.client, "fresh").problems

    def attempt(self, trial: Trial, operation: Operation, fault: Fault) -> Iterator[str]:
        """The operation on the failing disk; then two more questions, the last when it is mended."""
        raised = None
        try:
            operation.run(trial)
        except LedgerError as error:
            raised = error
        except Exception as error:
            yield f"raised {error!r}"
        trial.befell = tuple(fault.befell)
        if not fault.lasting:
            trial.disk.mend()
        broken = [call.kind for call in trial.befell if call.kind in CHANGES]
        if raised is None and trial.befell:
            self.survived[trial.befell[0].kind] += 1
        if raised is None and broken:
            yield f"granted after a failed {broken[0]}"
        self.refused += raised is not None
        if trial.asker is None:
            return
        for name in ("g", "k"):
            try:
                trial.ask(name)
            except LedgerError:
                pass
            except Exception as error:
                yield f"raised {error!r} when it was asked again"
            else:
                if raised is not None and broken:
                    yield f"granted {name} though a {broken[0]} had failed before"
            if name == "g" and fault.lasting:
                trial.disk.mend()
        trial.ledger.close()

    def report(self, name: str) -> None:
        """Print the figures."""
        survived = f"{self.survived.total()} harmless ({', '.join(self.survived) or 'none'})"
        print(
            f"\n{name}: {self.faults} faults, {self.refused} refusals, {survived}, {len(self.problems)} problems"
        )


def half_written(folder: Path, content: bytes) -> dict[str, bytes]:
    """The files of a ledger in the middle of a commit: all is written to it, and the journal can still undo it."""
    home = folder / "half"
    home.mkdir()
    (home / "it.ledger").write_bytes(content)
    taken: dict[str, bytes] = {}

    def take(call: Call, do: Do) -> object:
        if call.kind == "sync" and call.path.endswith(".ledger"):
            taken.update({path.name: path.read_bytes() for path in home.glob("it.ledger*")})
        return do(call.data)

    trial = Trial(str(home / "it.ledger"), Client(), Disk(take))
    with own_state(home / "state"), mock.patch.object(sqlite3, "connect", trial.disk.connect):
        trial.open()
        long = "so that the file grows, and is cut when it is undone; " * 200
        trial.ledger.charge(Charge(price("a")), Request("a", long))
        trial.ledger.close()
    trial.disk.close()
    shutil.rmtree(home)
    return taken


@pytest.fixture
def loop() -> Iterator[Loop]:
    with quick_folder() as folder:
        content, client = prepared(folder, "u", "!v", "w")
        yield Loop(folder, content, client, half_written(folder, content))


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_charge_and_its_answer_on_a_failing_disk(loop: Loop, lasting: bool) -> None:
    for kind in MAIN:
        loop.run("ask", kind, lasting=lasting)
    loop.report(f"failing disk, lasting {lasting}")
    assert loop.problems == []
    assert loop.faults >= 150
    assert set(loop.calls) >= {"open", "read", "write", "sync", "delete", "size", "lock", "access"}
    assert loop.refused == loop.faults - loop.survived.total()


@pytest.mark.parametrize("operation", ["create", "open", "recover"])
def test_a_ledger_is_made_and_opened_on_a_failing_disk(loop: Loop, operation: str) -> None:
    loop.run(operation, "EIO", lasting=False)
    loop.report(f"failing disk, {operation}")
    assert loop.problems == []
    assert loop.faults >= 40
    if operation == "recover":
        assert set(loop.calls) >= {"write", "truncate", "sync", "delete"}


def test_a_ledger_that_was_found_damaged_is_not_written_to(loop: Loop) -> None:
    """What was read wrongly may still be in its memory, and would be written into the file."""
    loop.run("repeat", "short read", lasting=True)
    assert loop.problems == []
    assert loop.refused


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_with_every_fault(loop: Loop, operation: str) -> None:
    for kind, lasting in itertools.product(FAULTS, (False, True)):
        # a journal that seems shorter than it is, without an error, undoes less than it should, and nobody could know
        if (operation, kind) != ("recover", "short read"):
            loop.run(operation, kind, lasting=lasting)
    loop.report(f"every fault, {operation}")
    assert loop.problems == []
    assert loop.faults >= 20
    assert loop.refused


@pytest.mark.parametrize(
    ("owner", "name", "found"),
    [
        (SqliteStore, "commit", "granted after a failed delete"),
        (Journal, "_usable", "had failed before"),
    ],
)
def test_a_planted_bug_is_found(loop: Loop, owner: type, name: str, found: str) -> None:
    """An error of a commit that is swallowed, and a ledger that goes on after one."""
    sound = getattr(owner, name)

    def careless(self: object) -> None:
        with contextlib.suppress(LedgerError):
            sound(self)

    with mock.patch.object(owner, name, careless):
        loop.run("charge", "done, but EIO", lasting=False)
    assert any(found in problem for problem in loop.problems)


@pytest.mark.parametrize("name", ["link", "fsync", "open", "replace"])
def test_the_folder_of_a_new_ledger_fails(loop: Loop, name: str) -> None:
    """The steps that give a finished file its name: whole, or not at all, and nothing is left aside."""
    home = loop.folder / "home"
    home.mkdir()
    place = home / "it.ledger"
    sound = getattr(os, name)

    def failing(path: object, *rest: object, **options: object) -> object:
        if name == "open" and path != home:
            return sound(path, *rest, **options)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with own_state(home / "state"):
        with mock.patch.object(os, name, failing), contextlib.suppress(LedgerUnavailable):
            BareAsker(str(place), print).close()
        assert {path.name for path in home.iterdir()} <= {"it.ledger", "state"}
        assert not place.exists() or place.stat().st_size > 0
        assert judge(BareAsker, str(place), Client(), "fresh").problems == ()


def test_every_call_can_fail() -> None:
    """The faults and the calls fit together: none is left out by a slip of the pen."""
    assert {call for calls in FAULTS.values() for call in calls} == set(CALLS)
    assert set(CHANGES) < set(CALLS)
