"""Whatever is wrong with the place of a ledger: nothing is granted,
nothing overwritten, and the message says what to do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sordino as so
from ledger.visits import declare, pay, quick_folder, script, spent, terms
from sordino.errors import (
    InvalidInput,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    LedgerUnavailable,
    LedgerWarning,
    SordinoError,
)
from sordino.ledger import sqlite
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.ledger.witness import Seen, Witness
from sordino.query.dataset import Dataset


def files(folder: Path) -> dict[str, object]:
    """Everything in a folder, as far as this user may look."""
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        readable = path.is_file() and os.access(path, os.R_OK)
        found[str(path)] = path.read_bytes() if readable else (status.st_mode, status.st_size)
    return found


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Nothing in the folder is made, removed or changed."""
    before = files(folder)
    yield
    assert files(folder) == before


def refusal(call: Callable[[], object]) -> LedgerError:
    """What refuses a call, in words that can be read."""
    with pytest.raises(LedgerError) as caught:
        call()
    error = caught.value
    assert error.__cause__ is None
    # no words of SQLite or of the system
    assert error.__suppress_context__ or error.__context__ is None
    for part in (error.rule, error.hint):
        assert part
        assert not re.search(
            r"None|Error\b|Traceback|0x|  |\.\.$", part.replace("SQLITE_IOERR", "")
        ), part
    assert not error.rule.endswith(".")
    assert error.hint.endswith(".")
    assert error.hint[0].isupper()
    assert str(error) == f"ledger {error.place}: {error.rule}. {error.hint} {error.outcome}".strip()
    return error


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """A declaration without a ledger."""
    return declare(tmp_path / "data")


@pytest.fixture
def used(dataset: Dataset) -> Dataset:
    """A declaration whose ledger was used."""
    with Ledger.open(dataset) as ledger:
        pay(ledger, "first", "1/10", b"an answer")
        pay(ledger, "second", "1/10", b"an answer")
    return dataset


def at(dataset: Dataset) -> Path:
    """Where the ledger of a dataset is."""
    return Path(str(Ledger.place_of(dataset)))


def _database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE patients (name)")
    connection.execute("INSERT INTO patients VALUES ('Ann')")
    connection.commit()
    connection.close()


def _journal(content: bytes) -> Callable[[Path], object]:
    return lambda path: Path(f"{path}-journal").write_bytes(content)


COPY, FILE = "Put it back from a copy", "Put the file back"
PLACES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "empty": (lambda path: path.touch(), "the file is empty", COPY),
    "folder": (lambda path: path.mkdir(), "it is not a file", FILE),
    "text": (lambda path: path.write_text("a page of text\n" * 99), "not a ledger", COPY),
    "short text": (lambda path: path.write_text("hello"), "not a ledger", COPY),
    "half a header": (
        lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(40)),
        "not a ledger",
        COPY,
    ),
    "database": (_database, "it is not a ledger of Sordino", "Check the path"),
    "dangling link": (
        lambda path: path.symlink_to("nowhere"),
        "it is a link to a file that is gone",
        FILE,
    ),
    "link to itself": (
        lambda path: path.symlink_to(path),
        "it is a link to a file that is gone",
        FILE,
    ),
    "pipe": (os.mkfifo, "it is not a file", FILE),
    "journal": (_journal(b""), "its journal is there, but the file is gone", FILE),
    "journal with content": (
        _journal(b"x" * 600),
        "its journal is there, but the file is gone",
        FILE,
    ),
}


@pytest.mark.parametrize("what", PLACES)
def test_something_else_in_its_place_is_refused_and_left_alone(what: str, dataset: Dataset) -> None:
    make, rule, hint = PLACES[what]
    make(at(dataset))
    with untouched(at(dataset).parent):
        error = refusal(lambda: Ledger.open(dataset))
        assert refusal(lambda: so.Session(dataset)).args == error.args
    assert rule in error.rule
    assert hint in error.hint
    assert error.place == str(at(dataset))
    assert isinstance(error, LedgerDamaged)


def test_a_socket_in_its_place_is_refused(dataset: Dataset) -> None:
    with quick_folder() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.ledger"))
        assert (
            "it is not a file"
            in refusal(lambda: Ledger.open(dataset, str(folder / "socket.ledger"))).rule
        )


def test_a_missing_folder_is_not_made(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "no" / "x.ledger", tmp_path / "file" / "x.ledger"):
        with untouched(tmp_path):
            error = refusal(lambda place=place: Ledger.open(dataset, str(place)))  # type: ignore[misc]
        assert isinstance(error, LedgerUnavailable)
        assert (error.rule, error.hint) == (
            "its folder does not exist",
            "Make the folder, or correct the path.",
        )


@pytest.mark.parametrize("name", ["x" * 250, "x" * 300, "x" * 5000])
def test_names_that_are_too_long_are_refused(name: str, dataset: Dataset, tmp_path: Path) -> None:
    with untouched(tmp_path):
        assert isinstance(
            refusal(lambda: Ledger.open(dataset, str(tmp_path / name))), LedgerUnavailable
        )


ODD = [
    "a?b.ledger",
    "a#b.ledger",
    "a%20b.ledger",
    "a&mode=ro.ledger",
    " a .ledger",
    "ä\u4e2d\U0001f98a",
    ":memory:",
    "'a'",
    "a\\b",
    "~",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_names(name: str, dataset: Dataset, tmp_path: Path) -> None:
    place = tmp_path / "odd" / name
    place.parent.mkdir()
    for count in (1, 2):
        with Ledger.open(dataset, str(place)) as ledger:
            pay(ledger, str(count), "1/10", b"x")
            assert len(ledger.payments) == count
    assert [path.name for path in place.parent.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a\0b", "\0", "a\udcffb", "\ud800"])
def test_names_that_are_none_are_refused(name: str, dataset: Dataset, tmp_path: Path) -> None:
    # once a bug: a ValueError, and a file under a part of the name; a UnicodeEncodeError
    with untouched(tmp_path), pytest.raises(SordinoError):
        Ledger.open(dataset, str(tmp_path / "data" / name))


@pytest.mark.parametrize("value", [b"visits.ledger", 5, 1.5, object(), ["visits.ledger"]])
def test_places_that_are_no_text_are_refused(value: Any, dataset: Dataset, tmp_path: Path) -> None:
    # once a bug: a TypeError
    with untouched(tmp_path), pytest.raises(InvalidInput):
        so.Session(dataset, ledger=value)


@pytest.mark.parametrize(
    "address", ["mysql://ann:hush@db/x", "sqlite:///x.ledger", "file:///x", "://x", "http://x"]
)
def test_other_databases_are_refused_without_showing_a_password(
    address: str, dataset: Dataset, tmp_path: Path
) -> None:
    with (
        untouched(tmp_path),
        pytest.raises(InvalidInput, match="a ledger is a file, or in PostgreSQL") as caught,
    ):
        Ledger.open(dataset, address)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("where", ["127.0.0.1:1", "no-such-host.invalid:5432", ""])
def test_a_missing_postgres_is_refused_without_showing_a_password(
    where: str, dataset: Dataset, tmp_path: Path
) -> None:
    address = f"postgresql://ann:hush-hush@{where}/hospital?ledger=visits&connect_timeout=2" + (
        "" if where else f"&host={tmp_path}"
    )
    with untouched(tmp_path):
        error = refusal(lambda: Ledger.open(dataset, address))
    assert isinstance(error, LedgerUnavailable)
    assert "Check that the server runs" in error.hint
    assert "hush" not in f"{error} {error!r} {error.args}"


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(used: Dataset) -> None:
    connection = sqlite3.connect(at(used))
    connection.execute("PRAGMA user_version = 2")
    connection.execute("CREATE TABLE novelties (x)")
    connection.close()
    with untouched(at(used).parent):
        error = refusal(lambda: Ledger.open(used))
    assert isinstance(error, LedgerUnavailable)
    assert error.rule == "it has form 2, and this version of Sordino knows form 1"
    assert error.hint == "Use the newer Sordino that wrote it."


def test_an_entry_of_a_newer_version_is_refused(used: Dataset) -> None:
    """Two versions at work at once: the older one stops when it meets what it does not know."""
    from sordino.ledger.chain import Entry

    with Ledger.open(used) as ledger:
        link = ledger.anchor().link
        ledger._journal.store.begin()
        ledger._journal.store.append(
            Entry(link.sequence + 1, link.hash, "novelty", "now", {}).row, link
        )
        ledger._journal.store.commit()
        error = refusal(lambda: pay(ledger, "third", "1/10"))
    assert "a kind that this version of Sordino does not know" in error.rule
    assert (
        "a kind that this version of Sordino does not know"
        in refusal(lambda: Ledger.open(used)).rule
    )


def test_a_corrupt_file_is_refused_and_left_alone(used: Dataset) -> None:
    content = bytearray(at(used).read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    at(used).write_bytes(content)
    with untouched(at(used).parent):
        error = refusal(lambda: Ledger.open(used))
    assert isinstance(error, LedgerDamaged)
    assert error.rule.startswith("the file is damaged")
    assert "Put it back from a copy" in error.hint


@pytest.fixture
def other(used: Dataset, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Another process at the same file; nobody waits for it long."""
    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    with closing(sqlite3.connect(at(used), isolation_level=None)) as connection:
        yield connection


def test_a_locked_file_is_waited_for_and_then_refused(
    used: Dataset, other: sqlite3.Connection
) -> None:
    with Ledger.open(used) as ledger:
        for lock in ("IMMEDIATE", "EXCLUSIVE"):
            other.execute(f"BEGIN {lock}")
            error = refusal(lambda: pay(ledger, "while locked", "1/10"))
            assert isinstance(error, LedgerUnavailable)
            assert error.rule.startswith("another process is writing to it")
            assert error.hint == "Try again, or look for a process that hangs."
            assert error.outcome == "Nothing was granted."
            if lock == "EXCLUSIVE":
                assert refusal(lambda: Ledger.open(used)).rule == error.rule
            other.execute("ROLLBACK")
        pay(ledger, "when it is free", "1/10")
        assert [payment.receipt.request_id for payment in ledger.payments] == [
            "first",
            "second",
            "when it is free",
        ]


def test_a_second_name_of_the_file_is_refused_unless_a_crash_left_it(used: Dataset) -> None:
    # once a bug: who is killed while it makes a ledger leaves a second name, and nobody can open it then
    left = at(used).with_name(".visits.ledger.123-0123456789abcdef0123456789abcdef")
    os.link(at(used), left)
    with Ledger.open(used) as ledger:
        pay(ledger, "third", "1/10", b"x")
    assert not left.exists()
    os.link(at(used), at(used).with_name("second.ledger"))
    error = refusal(lambda: Ledger.open(used))
    assert isinstance(error, LedgerUnavailable)
    assert "several names" in error.rule


def test_a_ledger_that_cannot_be_read_is_not_called_damaged(
    used: Dataset, other: sqlite3.Connection
) -> None:
    # once a bug: that it is locked, or closed, was reported as a finding
    with Ledger.open(used) as ledger:
        other.execute("BEGIN EXCLUSIVE")
        assert isinstance(refusal(ledger.verify), LedgerUnavailable)
        other.execute("ROLLBACK")
        assert ledger.verify()
    assert isinstance(refusal(ledger.verify), LedgerUnavailable)


def test_a_file_that_somebody_put_into_another_mode_is_used_or_refused(
    used: Dataset, other: sqlite3.Connection
) -> None:
    """With a write-ahead log a copy of the file alone would lack charges,
    so the ledger leaves that mode when it can.
    """
    assert other.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
    other.execute("SELECT * FROM head").fetchall()
    assert isinstance(refusal(lambda: Ledger.open(used)), LedgerUnavailable)
    other.close()
    with Ledger.open(used) as ledger:
        pay(ledger, "third", "1/10", b"x")
        assert ledger.verify()
    assert sorted(path.name for path in at(used).parent.iterdir()) == [
        "visits.csv",
        "visits.ledger",
        "visits.toml",
    ]
    assert at(used).read_bytes()[18:20] == b"\x01\x01"  # a rollback journal again


def _stranger(dataset: Dataset, **options: Any) -> dict[str, list[str]]:
    return script("stranger", {"declaration": str(dataset.file), **options}, timeout=120)


@contextmanager
def _shared(mode: int = 0o777) -> Iterator[Dataset]:
    """A used ledger in a folder that other users can reach, which has a mode of its own while they try."""
    with quick_folder() as folder:
        folder.chmod(0o755)
        made = declare(folder / "data")
        with Ledger.open(made) as ledger:
            pay(ledger, "first", "1/10", b"an answer")
        (folder / "data").chmod(mode)
        try:
            yield made
        finally:
            (folder / "data").chmod(0o755)


def test_a_ledger_that_may_only_be_read_grants_nothing() -> None:
    with _shared() as dataset:
        at(dataset).chmod(0o444)
        with untouched(at(dataset).parent):
            found = _stranger(dataset)
    assert found["open"][0] == "ok"  # to look at what is left
    assert found["charge"][0] == found["charge again"][0] == "LedgerUnavailable"
    assert "it cannot be written to" in found["charge"][1]
    assert (
        "Make the file and its folder writable for you. Nothing was granted." in found["charge"][1]
    )


def test_a_folder_that_may_only_be_read_grants_nothing() -> None:
    with _shared(0o555) as dataset:
        at(dataset).chmod(0o666)
        with untouched(at(dataset).parent):
            found = _stranger(dataset)
    assert found["charge"][0] == found["charge again"][0] == "LedgerUnavailable"
    assert (
        "Make the file and its folder writable for you. Nothing was granted." in found["charge"][1]
    )


def test_a_ledger_that_may_not_be_read_is_refused() -> None:
    with _shared() as dataset:
        at(dataset).chmod(0)
        with untouched(at(dataset).parent):
            found = _stranger(dataset)
    assert found["open"][0] == "LedgerUnavailable"
    assert "Check the path, and that you may write to the file and its folder" in found["open"][1]


def test_a_ledger_in_a_folder_that_may_not_be_entered_is_refused() -> None:
    with _shared(0) as dataset:
        with untouched(at(dataset).parent):
            found = _stranger(dataset)
        assert found["open"][0] == "LedgerUnavailable"


def test_no_ledger_is_made_in_a_folder_that_may_only_be_read() -> None:
    with quick_folder() as folder:
        folder.chmod(0o555)
        dataset = declare(folder)
        with untouched(folder):
            found = _stranger(dataset)
    assert found["open"][0] == "LedgerUnavailable"
    assert re.search("permissions|may write", found["open"][1])


def test_notes_that_cannot_be_written_or_read_do_not_matter(own_state: Path) -> None:
    with _shared() as dataset:
        at(dataset).chmod(0o666)
        own_state.chmod(0o500)
        found = _stranger(dataset)
    assert {key: kind for key, (kind, _) in found.items()} == dict.fromkeys(
        ("open", "charge", "charge again"), "ok"
    )


def test_another_ledger_that_this_user_may_not_see_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # once a bug: a PermissionError, as whether the other ledger is still there was asked without care
    with quick_folder() as folder:
        state, hidden = folder / "state", folder / "hidden"
        monkeypatch.setenv("SORDINO_STATE", str(state))
        with _shared() as dataset:
            Ledger.open(declare(hidden, rows="80 81")).close()
            notes = list(state.glob("*.json"))
            assert len(notes) == 2
            hidden.chmod(0)
            for path in (folder, state, *state.iterdir(), at(dataset)):
                path.chmod(0o777)
            found = _stranger(dataset)
    assert {key: kind for key, (kind, _) in found.items()} == dict.fromkeys(
        ("open", "charge", "charge again"), "ok"
    )


@pytest.mark.parametrize("space", [0, 500, 4096, 9000])
def test_on_a_full_disk_no_ledger_is_made(space: int, tmp_path: Path) -> None:
    dataset = declare(tmp_path / "data")
    with untouched(tmp_path / "data"):
        found = _stranger(dataset, space=space)
    assert found["open"][0] == "LedgerUnavailable"
    assert "the disk" in found["open"][1]


def test_on_a_full_disk_nothing_is_granted(used: Dataset) -> None:
    """The charge fits, its answer does not: it is not shown, and the charge stays."""
    space = at(used).stat().st_size + 16 * 1024
    found = _stranger(used, space=space, answer=4 * space)
    assert found["open"][0] == "ok"
    assert found["charge"][0] == "LedgerUnavailable"
    assert "the disk" in found["charge"][1]
    assert found["charge again"][0] == "LedgerUnavailable"
    assert "it failed before" in found["charge again"][1]
    assert (
        "Nothing more is granted here; mend the cause and open a new session."
        in found["charge again"][1]
    )
    with Ledger.open(used) as ledger:
        assert ledger.verify()
        assert [(p.receipt.request_id, p.status) for p in ledger.payments][2:] == [
            ("stranger", "unanswered")
        ]
        pay(ledger, "with space again", "1/10", b"x" * 4 * space)


def test_a_ledger_that_is_gone_is_never_replaced_by_a_new_one(used: Dataset) -> None:
    at(used).unlink()
    for _ in range(2):
        with untouched(at(used).parent):
            error = refusal(lambda: Ledger.open(used))
        assert isinstance(error, LedgerUnavailable)
        assert re.fullmatch(
            r"it is gone: when it was last used here it had [45] entries", error.rule
        )
        assert error.hint.startswith("Put it back; nothing is granted without it.")
        assert error.hint.endswith(
            "If that is as it should be, let the owner run `sordino ledger accept`."
        )
    with Ledger.accept(used) as ledger:
        kinds = [json.loads(line) for line in ledger.export()]
        assert [entry["kind"] for entry in kinds] == ["declare", "accept"]
        assert kinds[1]["facts"]["seen"]["count"] in (4, 5)  # what is lost is on record
    with Ledger.open(used) as ledger:
        pay(ledger, "new", "1/10", b"x")
        assert ledger.verify()


def test_another_ledger_in_its_place_is_refused(used: Dataset, tmp_path: Path) -> None:
    other = declare(tmp_path / "other", rows="1 2")
    Ledger.open(other).close()
    shutil.move(at(other), at(used))
    error = refusal(lambda: Ledger.open(used))
    assert isinstance(error, LedgerDamaged)
    assert error.rule == "another ledger is in its place"


def _old_copy(dataset: Dataset) -> None:
    """Put the ledger back to where it was a charge ago."""
    old = at(dataset).read_bytes()
    with Ledger.open(dataset) as ledger:
        pay(ledger, "since then", "1/10", b"x")
    at(dataset).write_bytes(old)


def test_an_old_copy_put_back_is_refused_until_the_owner_accepts_it(used: Dataset) -> None:
    _old_copy(used)
    error = refusal(lambda: Ledger.open(used))
    assert isinstance(error, LedgerDamaged)
    assert error.rule.startswith("an older copy was put back: it had ")
    with Ledger.accept(used) as ledger:
        assert json.loads(list(ledger.export())[-1])["facts"]["seen"]["ledger"] == ledger.id
    with Ledger.open(used) as ledger:
        assert [payment.receipt.request_id for payment in ledger.payments] == ["first", "second"]


@pytest.mark.parametrize(
    "way", ["link to the file", "link to the folder", "dots", "moved", "moved with its declaration"]
)
def test_an_old_copy_is_refused_whatever_it_is_called(
    way: str, used: Dataset, tmp_path: Path
) -> None:
    # once a bug: notes were looked up by the path as it was written, and those on the same ledger elsewhere not
    # compared
    _old_copy(used)
    folder, place = at(used).parent, None
    match way:
        case "link to the file":
            (tmp_path / "link.ledger").symlink_to(at(used))
            place = tmp_path / "link.ledger"
        case "link to the folder":
            (tmp_path / "link").symlink_to(folder)
            used = Dataset.load(tmp_path / "link" / "visits.toml")
        case "dots":
            place = folder / ".." / folder.name / "visits.ledger"
        case "moved":
            place = at(used).rename(tmp_path / "moved.ledger")
        case _:
            used = Dataset.load(folder.rename(tmp_path / "moved") / "visits.toml")
    error = refusal(lambda: Ledger.open(used, None if place is None else str(place)))
    assert re.search("an older (copy|or another copy)", error.rule)


def test_a_ledger_is_the_same_by_whatever_path(used: Dataset, tmp_path: Path) -> None:
    (tmp_path / "link.ledger").symlink_to(at(used))
    (tmp_path / "folder").symlink_to(at(used).parent)
    paths = [
        at(used),
        tmp_path / "link.ledger",
        tmp_path / "folder" / "visits.ledger",
        at(used).parent / ".." / "data" / "visits.ledger",
    ]
    for number, path in enumerate(paths):
        with Ledger.open(used, str(path)) as ledger:
            assert len(ledger.payments) == 2 + number
            pay(ledger, str(number), "1/100", b"x")
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".ledger"] == ["link.ledger"]


def test_a_ledger_may_move_with_its_declaration(used: Dataset, tmp_path: Path) -> None:
    moved = Dataset.load(at(used).parent.rename(tmp_path / "new home") / "visits.toml")
    with Ledger.open(moved) as ledger:
        assert len(ledger.payments) == 2
        pay(ledger, "there", "1/10", b"x")


def test_a_copy_used_beside_the_original_is_refused(used: Dataset, tmp_path: Path) -> None:
    shutil.copytree(at(used).parent, tmp_path / "copy")
    copy = Dataset.load(tmp_path / "copy" / "visits.toml")
    error = refusal(lambda: Ledger.open(copy))
    assert isinstance(error, LedgerMismatch)
    assert (
        error.rule
        == f"it is a copy of the one at {at(used)}, and two copies would spend the budget twice"
    )
    assert error.hint.startswith("Use that one, or remove it.")
    Ledger.open(used).close()
    with Ledger.accept(copy) as ledger:
        pay(ledger, "on the copy", "1/10", b"x")
    # one of the two, never both
    assert isinstance(refusal(lambda: Ledger.open(used)), LedgerMismatch | LedgerDamaged)


def test_an_acceptance_that_fails_accepts_nothing(used: Dataset) -> None:
    # once a bug: the notes were dropped before the acceptance was on record
    old = at(used).read_bytes()
    with Ledger.open(used) as ledger:
        pay(ledger, "since then", "1/10", b"x")
    at(used).write_bytes(b"not a ledger")
    refusal(lambda: Ledger.accept(used))
    at(used).write_bytes(old)
    assert "an older copy was put back" in refusal(lambda: Ledger.open(used)).rule


def test_the_same_data_under_two_ledgers_are_warned_about(used: Dataset, tmp_path: Path) -> None:
    again = declare(at(used).parent, name="again")
    with pytest.warns(
        LedgerWarning,
        match=f"also guarded by the ledger {re.escape(str(at(used)))}: their budgets add up",
    ):
        Ledger.open(again).close()
    shutil.copytree(at(used).parent, tmp_path / "copy", ignore=shutil.ignore_patterns("*.ledger"))
    with pytest.warns(LedgerWarning, match="their budgets add up. Use one ledger for one table"):
        so.Session(Dataset.load(tmp_path / "copy" / "visits.toml")).close()
    other = declare(tmp_path / "other", rows="1 2 3")
    Ledger.open(other).close()  # other data: no warning, which would be an error here


def test_the_same_data_in_a_file_and_in_postgres_are_warned_about(
    used: Dataset, postgres_address: str, tmp_path: Path
) -> None:
    # once a bug, the other way round: of ledgers in PostgreSQL it was taken for granted that they are gone
    with pytest.warns(LedgerWarning, match="their budgets add up"):
        Ledger.open(used, postgres_address).close()
    with pytest.warns(
        LedgerWarning, match=r"also guarded by the ledger postgresql://.*their budgets add up"
    ):
        Ledger.open(used).close()


def test_another_budget_is_refused_until_the_owner_declares_it(used: Dataset) -> None:
    other = declare(at(used).parent, 2)
    error = refusal(lambda: so.Session(other))
    assert isinstance(error, LedgerMismatch)
    assert (
        error.rule
        == "it holds a budget of epsilon 1, delta 0, and the declaration says epsilon 2, delta 0"
    )
    assert (
        error.hint
        == "Declare the recorded budget, or let the owner put the new one in force: sordino budget set."
    )
    with Ledger.open(other, as_declared=False) as ledger:
        assert ledger.declare(terms(other, 2))
    with so.Session(other) as session:
        assert session.remaining.pure == Fraction(9, 5)
    assert isinstance(refusal(lambda: Ledger.open(declare(at(used).parent, 1))), LedgerMismatch)


def test_another_unit_is_refused(used: Dataset) -> None:
    (at(used).parent / "visits.toml").write_text(
        '[budget]\nepsilon = 1\n[tables.visits]\nsource = "visits.csv"\nunit = "pid"\nmax_rows = 3\n'
        '[tables.visits.columns]\nage = { type = "int", min = 0, max = 110 }\n'
    )
    error = refusal(lambda: Ledger.open(Dataset.load(at(used).parent / "visits.toml")))
    assert isinstance(error, LedgerMismatch)
    assert "it guards visits by row (add_remove)" in error.rule
    assert "the declaration says visits by pid (add_remove)" in error.rule


@pytest.mark.parametrize("state", ["", "a file", "a file/below", "/proc/nowhere", "\udcff"])
def test_without_a_place_for_notes_all_works(
    state: str, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("x")
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / state) if state.startswith("a") else state)
    monkeypatch.chdir(tmp_path / "data")
    for count in (1, 2):
        with Ledger.open(dataset) as ledger:
            pay(ledger, str(count), "1/10", b"x")
            assert len(ledger.payments) == count
            assert ledger.payments[-1].sources  # the ledger's own fingerprints need no notes
    assert (tmp_path / "a file").read_text() == "x"


def test_without_a_home_all_works(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SORDINO_STATE", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", _homeless)
    with Ledger.open(dataset) as ledger:
        pay(ledger, "first", "1/10", b"x")
    assert Witness().recall(str(at(dataset))) is None


def _homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


NOTE: dict[str, Any] = {"place": "a", "ledger": "x", "count": 1, "hash": "h", "sources": {}}
ODD_NOTES: list[dict[str, Any]] = [
    {"place": 5}, {"place": None}, {"place": "\0"}, {"count": "x"}, {"count": None}, {"ledger": 5}, {"hash": []},
    {"sources": []}, {"sources": {"visits": [1]}},
]  # fmt: skip
NOTES = ["", "null", "[]", "5", "{}", "[" * 100_000, json.dumps(NOTE).replace("1", "1e999")]
NOTES += [json.dumps({**NOTE, **odd}) for odd in ODD_NOTES]


@pytest.mark.parametrize("note", NOTES, ids=range(len(NOTES)))
def test_notes_that_are_none_do_not_matter(note: str, used: Dataset, own_state: Path) -> None:
    # once a bug: a TypeError, OverflowError or RecursionError
    (own_state / "other.json").write_text(note)
    Ledger.open(used).close()
    for path in own_state.glob("*.json"):
        path.write_text(note)
    with suppress(LedgerError):  # it may be taken for a note on another ledger
        Ledger.open(used).close()


def test_an_older_note_never_replaces_a_newer_one() -> None:
    # once a bug: it did if the data had changed in between
    newer, older = (
        Seen("here", "x", 11, "h", {"visits": "new"}),
        Seen("here", "x", 10, "g", {"visits": "old"}),
    )
    for first, second in ((newer, older), (older, newer)):
        Witness().forget("here")
        Witness().remember(first)
        Witness().remember(second)
        seen = Witness().recall("here")
        assert seen is not None
        assert seen.link == newer.link


def test_a_fingerprint_changes_with_the_data_and_not_with_their_time(dataset: Dataset) -> None:
    source = at(dataset).with_name("visits.csv")
    found = []
    with Ledger.open(dataset) as ledger:
        for number, change in enumerate(("", "time", "row", "time", "row")):
            if change == "time":
                os.utime(source, (10**9 + number, 10**9 + number))
            elif change == "row":
                source.write_text(source.read_text() + f"{50 + number},{50 + number}\n")
            pay(ledger, str(number), "1/100", b"x")
            found.append(ledger.payments[-1].sources["visits"])
    assert found[0] == found[1] != found[2] == found[3] != found[4]
    assert len(set(found)) == 3


def test_a_fingerprint_tells_nothing_without_the_key(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ledgers of the same file have other fingerprints, so that nobody can try out what is in the file."""
    monkeypatch.setenv("SORDINO_STATE", "")
    found = []
    for name in ("a", "b"):
        with Ledger.open(dataset, str(tmp_path / name)) as ledger:
            pay(ledger, "x", "1/100", b"x")
            found.append(ledger.payments[-1].sources["visits"])
    assert found[0] != found[1]


def test_the_key_is_shown_nowhere(dataset: Dataset, own_state: Path) -> None:
    with so.Session(dataset) as session:
        ledger = session.ledger
        answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1, request_id="shown")
        key, sources = ledger._journal.store.key(), ledger.payments[0].sources["visits"]
        things = [
            ledger,
            session,
            ledger._journal.store,
            ledger.payments,
            ledger.anchor(),
            ledger.verify(),
            ledger.terms,
            ledger.meter(),
        ]
        given = [
            answer.to_json(),
            answer,
            answer.receipt,
            vars(answer.receipt),
            session.receipts,
            session.remaining,
        ]
        for request, amount in (("shown", 1), ("much", 9)):
            with pytest.raises(SordinoError) as caught:
                pay(ledger, request, amount)
            given.append(caught.value)
        said = [f"{thing} {thing!r}" for thing in (*ledger.export(), *things, *given)]
    at(dataset).write_bytes(at(dataset).read_bytes()[:5000])
    said.append(str(refusal(lambda: Ledger.open(dataset))))
    shown = "\n".join(said).encode() + b"".join(path.read_bytes() for path in own_state.iterdir())
    assert len(key) == 32
    for form in (key, key.hex().encode(), key[:16].hex().encode(), repr(key)[2:-1].encode()):
        assert form not in shown
    assert sources.encode() in shown  # in the entries, keyed
    # not in what analysts get
    assert sources not in "".join(f"{thing} {thing!r}" for thing in given)


def test_what_is_closed_can_still_be_shown(dataset: Dataset) -> None:
    # once a bug: the repr of a closed session asked the ledger what remains
    with so.Session(dataset) as session:
        pass
    assert "visits" in repr(session)
    assert "visits.ledger" in repr(session.ledger)


@pytest.mark.parametrize(
    "amount", [Fraction(1, 3**10_000), Fraction(1, 10**5000), Fraction(10**4000, 10**5000 + 1)]
)
def test_a_charge_with_any_number_of_digits_is_counted_in_full(
    amount: Fraction, used: Dataset
) -> None:
    with Ledger.open(used) as ledger:
        before = spent(ledger)
        pay(ledger, "fine", amount, b"x")
        after = spent(ledger)
        assert before + amount <= after <= before + amount + Fraction(1, 10**60)
    with Ledger.open(used) as ledger:
        assert spent(ledger) == after


def test_a_budget_with_any_number_of_digits_is_kept_or_refused_in_words(dataset: Dataset) -> None:
    # once a bug: Python refuses to write down whole numbers of more than 4,300 digits
    budget = so.Budget(Fraction(3**10_000, 3**10_000 + 1))
    with suppress(SordinoError), Ledger.open(dataset.with_budget(budget)) as ledger:
        assert ledger.terms.allowance.budget == budget
    with suppress(SordinoError), Ledger.open(dataset, as_declared=False) as ledger:
        ledger.allot("ana", so.Budget(Fraction(3**9_999, 3**10_000 + 1)))


def test_after_it_is_closed_nothing_is_granted(used: Dataset) -> None:
    ledger = Ledger.open(used)
    ledger.close()
    ledger.close()
    for call in (
        lambda: pay(ledger, "late", "1/10"),
        lambda: ledger.payments,
        lambda: ledger.stored(Request("first", "q")),
    ):
        error = refusal(call)
        assert (error.rule, error.hint) == ("it is closed", "Open a new session.")


@pytest.mark.parametrize(
    "name", ["", " ", "a ", " a", "x" * 201, "a\nb", "\0", "\ud800", 5, None, b"a"]
)
def test_requests_and_analysts_have_short_names(name: Any, dataset: Dataset) -> None:
    with Ledger.open(dataset) as ledger:
        with pytest.raises(InvalidInput):
            Request(name, "q")
        if name is not None:
            with pytest.raises(InvalidInput):
                Request("fine", "q", "", name)
        with pytest.raises(InvalidInput):
            ledger.allot(name, so.Budget(Fraction(1, 2)))
        assert ledger.anchor().count == 1
