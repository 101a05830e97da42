"""`sordino ledger`: what holds is said to hold, what does not is found and listed,
and nothing is changed on the way.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sordino import Charge, Dataset
from sordino.ledger.anchor import Anchor
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request


def spend(name: str) -> None:
    with Ledger.open(Dataset.load("visits.toml")) as book:
        book.store(
            book.charge(Charge(Fraction(1, 10)), Request(name, f"SELECT {name}")).receipt, b"{}"
        )


@pytest.fixture
def spent(folder: Path) -> Path:
    """A ledger with five entries."""
    spend("a")
    spend("b")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def edit(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "visits.ledger", isolation_level=None)
    triggers = [
        row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
    ]
    for name in ("entries_update", "entries_delete", "answers_update", "answers_delete"):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in (*statements, *triggers):
        connection.execute(statement)
    connection.close()


class TestVerify:
    def test_a_ledger_that_holds(self, run: Any, spent: Path) -> None:
        before = contents(spent)
        shown = run("ledger", "verify", "visits.toml")
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert "holds: 5 entries, 2 charges, 2 answered and 0 without an answer." in shown.stdout
        with Ledger.open(Dataset.load("visits.toml")) as book:
            assert f"It ends with entry 5, hash {book.anchor().hash}." in shown.stdout
        assert contents(spent) == before

    @pytest.mark.parametrize(
        ("change", "finding"),
        [
            (
                "UPDATE entries SET text = replace(text, 'SELECT a', 'SELECT c') WHERE sequence = 2",
                "entry 2 was changed",
            ),
            ("DELETE FROM entries WHERE sequence = 3", "entry 3 is missing"),
            (
                "UPDATE answers SET bytes = x'7b7d20' WHERE sequence = 3",
                "the answer to entry 2 was changed",
            ),
            ("UPDATE head SET sequence = 9", "it was cut short"),
            ("UPDATE secret SET key = x'00'", "the secret of the ledger was changed"),
        ],
    )
    def test_what_was_edited_is_found(
        self, run: Any, spent: Path, change: str, finding: str
    ) -> None:
        edit(spent, change)
        before = contents(spent)
        shown = run("ledger", "verify", "visits.toml")
        assert shown.exit_code == 6
        assert f"{spent / 'visits.ledger'} does NOT hold:\n  - " in shown.stdout
        assert finding in shown.stdout
        assert contents(spent) == before

    @pytest.mark.parametrize(
        "content",
        [b"", b"not a ledger", b"SQLite format 3\0" + bytes(4096)],
        ids=["empty", "text", "zeros"],
    )
    def test_what_is_no_ledger_is_a_finding(self, run: Any, spent: Path, content: bytes) -> None:
        (spent / "visits.ledger").write_bytes(content)
        shown = run("ledger", "verify", "visits.toml")
        assert shown.exit_code == 6
        assert "does NOT hold" in shown.stdout
        assert (spent / "visits.ledger").read_bytes() == content

    def test_a_cut_file_is_a_finding(self, run: Any, spent: Path) -> None:
        whole = (spent / "visits.ledger").read_bytes()
        (spent / "visits.ledger").write_bytes(whole[: len(whole) // 2])
        assert run("ledger", "verify", "visits.toml").exit_code == 6

    def test_none_is_made(self, run: Any, folder: Path) -> None:
        before = contents(folder)
        shown = run("ledger", "verify", "visits.toml")
        assert (shown.exit_code, shown.stdout) == (4, "")
        assert "there is none yet" in shown.stderr
        assert contents(folder) == before

    def test_one_that_is_gone_is_missed(self, run: Any, spent: Path) -> None:
        (spent / "visits.ledger").unlink()
        shown = run("ledger", "verify", "visits.toml")
        assert (shown.exit_code, shown.stdout) == (4, "")
        assert "it is gone" in shown.stderr
        assert not (spent / "visits.ledger").exists()

    def test_a_copy_holds_with_a_warning(
        self, run: Any, spent: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (spent / "backup").mkdir()
        for name in ("visits.toml", "visits.ledger"):
            shutil.copy(spent / name, spent / "backup")
        shown = run("ledger", "verify", "backup/visits.toml")
        assert shown.exit_code == 0
        assert "holds: 5 entries" in shown.stdout
        assert "warning: " in shown.stderr
        assert "it is a copy of the one at" in shown.stderr


class TestAnchors:
    def test_one_line_that_fits_what_follows(self, run: Any, spent: Path) -> None:
        line = run("ledger", "anchor", "visits.toml").stdout
        assert Anchor.from_json(line).count == 5
        assert run("ledger", "anchor", "visits.toml", "--output", "x.anchor").stdout == ""
        assert (spent / "x.anchor").read_text() == line
        spend("c")
        for anchor in ("x.anchor", line.strip()):
            shown = run("ledger", "verify", "visits.toml", "--anchor", anchor)
            assert shown.exit_code == 0
            assert "It continues the anchor, which was taken at entry 5." in shown.stdout

    def test_an_older_copy_is_found_elsewhere_too(
        self, run: Any, spent: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copy("visits.ledger", "old")
        spend("c")
        run("ledger", "anchor", "visits.toml", "--output", "x.anchor")
        shutil.copy("old", "visits.ledger")
        monkeypatch.setenv("SORDINO_STATE", "")  # a machine that has not seen it
        assert run("ledger", "verify", "visits.toml").exit_code == 0
        shown = run("ledger", "verify", "visits.toml", "--anchor", "x.anchor")
        assert shown.exit_code == 6
        assert (
            "an older copy was put back: the anchor knows 7 entries, and there are 5"
            in shown.stdout
        )

    @pytest.mark.parametrize(
        ("anchor", "said"),
        [
            ("nowhere", "cannot be read there"),
            ("{}", "this is not an anchor"),
            ("visits.csv", "this is not an anchor"),
        ],
    )
    def test_bad_ones_are_bad_input(self, run: Any, spent: Path, anchor: str, said: str) -> None:
        shown = run("ledger", "verify", "visits.toml", "--anchor", anchor)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert said in shown.stderr


class TestExports:
    def test_every_line_is_an_entry_and_can_be_verified(self, run: Any, spent: Path) -> None:
        lines = run("ledger", "export", "visits.toml").stdout
        assert [json.loads(line)["sequence"] for line in lines.splitlines()] == [1, 2, 3, 4, 5]
        assert run("ledger", "export", "visits.toml", "--output", "x.jsonl").stdout == ""
        assert (spent / "x.jsonl").read_text() == lines
        shown = run("ledger", "verify", "x.jsonl")
        assert shown.exit_code == 0
        assert "x.jsonl holds: 5 entries" in shown.stdout
        assert "can only be told with an anchor" in shown.stdout

    def test_changes_are_found(self, run: Any, spent: Path) -> None:
        run("ledger", "anchor", "visits.toml", "--output", "x.anchor")
        run("ledger", "export", "visits.toml", "--output", "x.jsonl")
        lines = (spent / "x.jsonl").read_text().splitlines(keepends=True)
        edits = {
            "changed": [lines[0], lines[1].replace("SELECT a", "SELECT c"), *lines[2:]],
            "removed": [lines[0], *lines[2:]],
            "swapped": [lines[0], lines[2], lines[1], *lines[3:]],
            "blank": [lines[0], "\n", *lines[1:]],
            "nothing": [],
            "not UTF-8": ["\udcff"],
        }
        for name, edited in edits.items():
            (spent / "y.jsonl").write_bytes("".join(edited).encode(errors="surrogateescape"))
            assert run("ledger", "verify", "y.jsonl").exit_code == 6, name
        (spent / "y.jsonl").write_text("".join(lines[:-1]))
        assert run("ledger", "verify", "y.jsonl").exit_code == 0
        assert run("ledger", "verify", "y.jsonl", "--anchor", "x.anchor").exit_code == 6
        assert run("ledger", "verify", "nowhere.jsonl").exit_code == 2

    def test_files_of_the_dataset_are_not_written_to(self, run: Any, spent: Path) -> None:
        before = contents(spent)
        for command in ("export", "anchor"):
            assert run("ledger", command, "visits.toml", "--output", "visits.ledger").exit_code == 2
        assert contents(spent) == before

    def test_without_a_ledger_there_is_nothing(self, run: Any, folder: Path) -> None:
        for command in ("export", "anchor"):
            shown = run("ledger", command, "visits.toml")
            assert (shown.exit_code, shown.stdout) == (4, "")


class TestAccept:
    def test_nothing_to_accept(self, run: Any, spent: Path) -> None:
        before = contents(spent)
        assert "There is nothing to accept" in run("ledger", "accept", "visits.toml").stdout
        assert contents(spent) == before

    def test_an_older_copy_goes_on_once_the_owner_says_so(self, run: Any, spent: Path) -> None:
        shutil.copy("visits.ledger", "old")
        spend("c")
        shutil.copy("old", "visits.ledger")
        shown = run("ledger", "verify", "visits.toml")
        assert shown.exit_code == 6
        assert "an older copy was put back: it had " in shown.stdout
        assert run("budget", "visits.toml").exit_code == 4
        shown = run("ledger", "accept", "visits.toml")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert "no longer be counted" in shown.stderr
        assert run("budget", "visits.toml").exit_code == 4
        shown = run("ledger", "accept", "visits.toml", "--yes")
        assert shown.exit_code == 0
        assert "goes on with entry 6" in shown.stdout
        assert run("budget", "visits.toml").exit_code == 0
        assert '"kind":"accept"' in run("ledger", "export", "visits.toml").stdout

    def test_one_that_is_gone_begins_anew_once_the_owner_says_so(
        self, run: Any, spent: Path
    ) -> None:
        (spent / "visits.ledger").unlink()
        shown = run("ledger", "accept", "visits.toml")
        assert shown.exit_code == 2
        assert "A new, empty ledger would be made" in shown.stderr
        assert not (spent / "visits.ledger").exists()
        assert run("ledger", "accept", "visits.toml", "--yes").exit_code == 0
        assert run("ledger", "verify", "visits.toml").exit_code == 0

    def test_a_damaged_one_is_not_accepted_and_not_forgotten(
        self, run: Any, spent: Path, own_state: Path
    ) -> None:
        notes = contents(own_state)
        edit(
            spent,
            "UPDATE entries SET text = replace(text, 'SELECT a', 'SELECT c') WHERE sequence = 2",
        )
        shown = run("ledger", "accept", "visits.toml", "--yes")
        assert (shown.exit_code, shown.stdout) == (4, "")
        (spent / "visits.ledger").write_bytes(b"")
        assert run("ledger", "accept", "visits.toml", "--yes").exit_code == 4
        assert contents(own_state) == notes
