"""The power goes off at any moment: what was not synced is gone, kept or torn, and all that was granted is there.

A run is recorded call by call. Each beginning of the record is played onto an imagined disk, which is then opened for
real.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from unittest import mock

import pytest

from ledger.faulty_disk import Call, Disk, Do
from ledger.oracle import BareAsker, Client, judge, own_state, quick_folder
from sordino.errors import EngineFailed
from sordino.ledger.chain import digest
from sordino.ledger.witness import Witness

SECTOR = 512
Mode: TypeAlias = Literal["lost", "kept", "torn", "garbled"]
"""What became of all that was not synced: nothing of it is there, all is, some sectors are, some of them as rubbish."""
Files: TypeAlias = dict[str, bytes]
"""Contents by name; names of one file share one object."""


class Step(NamedTuple):
    """Something that happened: to the file of that name, to the folder, or to the client (in `words`)."""

    kind: str
    name: str = ""
    place: int = 0
    data: bytes = b""
    words: tuple[str, ...] = ()


@dataclass
class Record:
    """A run, step by step, from the files that were there."""

    files: Files = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = set(self.files)

    def hook(self, call: Call, do: Do) -> Any:
        """Stands under SQLite."""
        name = Path(call.path).name
        result = do(call.data)
        if call.kind == "open" and name not in self._names:
            self._names.add(name)
            self.steps.append(Step("make", name))
        elif call.kind == "delete":
            self.remove(name)
            if call.place:
                self.steps.append(Step("sync folder"))
        elif call.kind in ("write", "truncate"):
            self.steps.append(Step(call.kind, name, call.place, call.data))
        elif call.kind == "sync":
            self.steps.append(Step("sync", name))
            # the unix layer of SQLite syncs the folder with the first sync of a journal; later ones change nothing here
            if name.endswith("-journal"):
                self.steps.append(Step("sync folder"))
        return result

    def remove(self, name: str) -> None:
        """A name is taken away."""
        self._names.discard(name)
        self.steps.append(Step("remove", name))

    def hear(self, *words: str) -> None:
        """What a client asks and sees."""
        self.steps.append(Step("client", words=words))

    def watch(self, stack: ExitStack, connect: Callable[..., Any]) -> None:
        """Take note also of what the ledger does to its folder by itself, and of the notes of its witness."""
        link, unlink, fsync, write = os.link, os.unlink, os.fsync, Witness._write

        def linked(source: Path, target: Path) -> None:
            link(source, target)
            self._names.add(target.name)
            self.steps.append(Step("link", target.name, data=source.name.encode()))

        def unlinked(path: Path) -> None:
            unlink(path)
            if Path(path).name in self._names:
                self.remove(Path(path).name)

        def synced(descriptor: int) -> None:
            fsync(descriptor)
            self.steps.append(Step("sync folder"))

        def noted(witness: Witness, path: Path, content: bytes) -> None:
            write(witness, path, content)
            self.steps.append(Step("note", path.name, data=content))

        stack.enter_context(mock.patch.object(os, "link", linked))
        stack.enter_context(mock.patch.object(os, "unlink", unlinked))
        stack.enter_context(mock.patch.object(os, "fsync", synced))
        stack.enter_context(mock.patch.object(Witness, "_write", noted))
        stack.enter_context(mock.patch.object(sqlite3, "connect", connect))


@dataclass
class Inode:
    """The content of a file: what is on the disk for good, and what was done to it since."""

    content: bytes = b""
    since: list[Step] = field(default_factory=list)

    def after(self, mode: Mode, draw: random.Random) -> bytes:
        """What is found when the power is back."""
        content = bytearray(self.content)
        for step in [] if mode == "lost" else self.since:
            if step.kind == "truncate":
                if mode == "kept" or draw.random() < 0.5:
                    content[step.place :] = bytes(max(step.place - len(content), 0))
                continue
            for start, part in _sectors(step.place, step.data):
                if mode != "kept" and draw.random() < 0.5:
                    continue
                rubbish = mode == "garbled" and draw.random() < 0.3
                content.extend(bytes(max(start + len(part) - len(content), 0)))
                content[start : start + len(part)] = draw.randbytes(len(part)) if rubbish else part
        return bytes(content)


def _sectors(place: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The parts of a write that reach the disk together."""
    end = place + len(data)
    cuts = [place, *range((place // SECTOR + 1) * SECTOR, end, SECTOR), end]
    for start, stop in pairwise(cuts):
        yield start, data[start - place : stop - place]


class Platter:
    """An imagined disk with one folder: names and contents for good, and what was done since the last sync of each."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._names = {name: Inode(content) for name, content in files.items()}
        self._kept = dict(self._names)
        self._since: list[tuple[str, Inode | None]] = []
        self.notes: Files = {}
        self.client = Client()

    def play(self, step: Step) -> None:
        """Let a step happen."""
        match step.kind:
            case "make":
                self._rename(step.name, Inode())
            case "link":
                self._rename(step.name, self._names[step.data.decode()])
            case "remove":
                self._rename(step.name, None)
            case "write" | "truncate":
                self._names[step.name].since.append(step)
            case "sync":
                inode = self._names[step.name]
                inode.content, inode.since = inode.after("kept", random.Random()), []
            case "sync folder":
                self._kept, self._since = dict(self._names), []
            case "note":
                self.notes[step.name] = step.data
            case "client":
                self.client.hear(*step.words)

    def _rename(self, name: str, inode: Inode | None) -> None:
        self._since.append((name, inode))
        _put(self._names, name, inode)

    def after(self, mode: Mode, draw: random.Random) -> Files:
        """The files that are found when the power is back; those with several names have one content."""
        names = dict(self._kept)
        for name, inode in [] if mode == "lost" else self._since:
            if mode == "kept" or draw.random() < 0.5:
                _put(names, name, inode)
        contents = {id(inode): inode.after(mode, draw) for inode in names.values()}
        return {name: contents[id(inode)] for name, inode in names.items()}


def _put(names: dict[str, Inode], name: str, inode: Inode | None) -> None:
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode


@dataclass
class Outage:
    """Power cuts, and what was found after each."""

    home: Path
    cuts: int = 0
    granted: int = 0
    recovered: int = 0
    forfeits: int = 0
    problems: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def record(
        self, run: Callable[[str, Record], None], files: Files, syncing: str = "synchronous = EXTRA"
    ) -> Record:
        """Let something run from these files, and note its steps;
        `syncing` is run in place of the store's own pragma.
        """
        record = Record(files)
        self._lay(files, {})
        disk = Disk(record.hook)

        def connect(address: str, **_: Any) -> Any:
            connection = disk.connect(address)
            execute = connection.execute

            def swapped(statement: str, values: tuple[Any, ...] = ()) -> Any:
                return execute(statement.replace("synchronous = EXTRA", syncing), values)

            connection.execute = swapped  # type: ignore[method-assign]
            return connection

        with ExitStack() as stack, own_state(self.home / "state"):
            record.watch(stack, connect)
            run(str(self.home / "it.ledger"), record)
        disk.close()
        return record

    def _lay(self, files: Files, notes: Files) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "state").mkdir(parents=True)
        laid: dict[int, Path] = {}
        for folder, contents in ((self.home, files), (self.home / "state", notes)):
            for name, content in contents.items():
                path = folder / name
                if content and id(content) in laid:
                    path.hardlink_to(laid[id(content)])
                    continue
                laid[id(content)] = path
                path.write_bytes(content)

    def cut(
        self, record: Record, mode: Mode, seed: int, known: Client | None = None
    ) -> list[tuple[Files, Client]]:
        """Cut the power after each beginning of a record, and judge;
        says what was on the disks, and known to clients.
        """
        draw = random.Random(seed)
        platter = Platter(record.files)
        platter.client = Client() if known is None else known.copy()
        found = []
        for number, step in enumerate(record.steps):
            platter.play(step)
            files = platter.after(mode, draw)
            client = platter.client
            heard = (
                sorted(client.asked),
                sorted(client.read.items()),
                sorted(client.answers.items()),
            )
            same = digest(repr((sorted(files.items()), heard, sorted(platter.notes.items()))))
            if same not in self._seen:
                self._seen.add(same)
                self._judge(files, platter, f"{mode} after {number} {step.kind} {step.name}")
                found.append((files, platter.client.copy()))
        return found

    def _judge(self, files: Files, platter: Platter, when: str) -> None:
        self.cuts += 1
        self._lay(files, platter.notes)
        self.recovered += len(files.get("it.ledger-journal", b"")) > 0
        client = platter.client.copy()
        if client.asked and "it.ledger" not in files:
            self.problems.append(f"{when}: the ledger is gone")
            return
        self.granted += len(client.answers)
        with own_state(self.home / "state"):
            findings = judge(BareAsker, str(self.home / "it.ledger"), client, "fresh")
        self.forfeits += findings.forfeits
        self.problems += [f"{when}: {problem}" for problem in findings.problems]

    def report(self, name: str) -> None:
        """Print the figures."""
        undone = f"{self.recovered} with a journal left"
        figures = f"{self.granted} answers looked for, {self.forfeits} forfeits, {len(self.problems)} problems"
        print(f"\n{name}: {self.cuts} power cuts, {undone}, {figures}")


def use(*requests: str, size: int = 24) -> Callable[[str, Record], None]:
    """Open the ledger, ask, and close it; "!" before a request lets it fail."""

    def run(place: str, record: Record) -> None:
        asker = BareAsker(place, record.hear)
        asker.size = size
        for request in requests:
            name = request.lstrip("!")
            record.hear("asked", name)
            try:
                answer = asker.ask(name, failing=name != request)
            except EngineFailed:
                continue
            record.hear("answer", name, digest(answer))
        asker.close()

    return run


@pytest.fixture
def outage() -> Iterator[Outage]:
    with quick_folder() as folder:
        yield Outage(folder / "home")


def test_nothing_granted_is_lost(outage: Outage) -> None:
    record = outage.record(use("a", "!b"), {})
    for mode in ("lost", "kept", "torn"):
        outage.cut(record, mode, seed=1)
    outage.report("power loss")
    assert outage.problems == []
    assert outage.cuts >= 150
    assert outage.recovered >= 20
    assert outage.granted
    assert outage.forfeits


@pytest.mark.parametrize(
    ("syncing", "mode", "found"),
    [
        ("synchronous = OFF", "lost", "the file is empty"),
        ("synchronous = NORMAL", "lost", "an older copy was put back"),
        ("synchronous = FULL", "lost", "an older copy was put back"),
        ("journal_mode = MEMORY", "torn", "the file is damaged"),
    ],
)
def test_a_planted_bug_is_found(outage: Outage, syncing: str, mode: Mode, found: str) -> None:
    """Less than the strictest syncing loses what was granted, and a journal that is not on the disk loses the file."""
    outage.cut(outage.record(use("a"), {}, syncing), mode, seed=2)
    assert any(found in problem for problem in outage.problems)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["lost", "kept", "torn", "garbled"])
def test_nothing_granted_is_lost_in_a_longer_life(outage: Outage, mode: Mode) -> None:
    record = outage.record(use("a", "!b", "c", "a", "e", size=9000), {})
    for seed in range(1 if mode in ("lost", "kept") else 6):
        outage.cut(record, mode, seed)
    outage.report(f"power loss, {mode}")
    assert outage.problems == []
    assert outage.cuts >= 50
    assert outage.granted


@pytest.mark.slow
def test_the_power_goes_off_again_while_a_ledger_recovers(outage: Outage) -> None:
    first = outage.record(use("a"), {})
    platter = Platter(first.files)
    for step in first.steps:
        platter.play(step)
    second = outage.record(use("c", size=9000), platter.after("kept", random.Random()))
    found = outage.cut(second, "torn", seed=5, known=platter.client)
    before = outage.cuts
    left = [
        (files, known) for files, known in found if len(files.get("it.ledger-journal", b"")) > 0
    ]
    for number, (files, known) in enumerate(left[:: max(len(left) // 12, 1)]):
        again = outage.record(use("e"), files)
        for mode in ("lost", "torn", "garbled"):
            outage.cut(again, mode, seed=number, known=known)
    outage.report("power loss in recovery")
    assert outage.problems == []
    assert outage.cuts > before + 600
