"""Whoever edits a ledger is found out, or has changed nothing that matters.

Harmless means that everything still holds, and that terms, charges and stored answers are the same as before.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ledger.tampering import (
    Campaign,
    changed,
    changes,
    edited,
    judge,
    judge_open,
    leaves,
    pack,
    relinked,
)
from ledger.visits import Told, declare, fill, pay, pure, quick_folder, terms, told
from sordino.errors import InvalidInput, LedgerDamaged, LedgerError
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Entry, Row, digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.ledger.sqlite import SqliteStore
from sordino.ledger.verify import Verdict, verify_rows
from sordino.query.dataset import Dataset


@dataclass(frozen=True)
class Victim:
    """A small ledger with an entry of every kind, and what it said before anybody touched it."""

    dataset: Dataset
    path: Path
    before: Told
    anchor: Anchor
    content: bytes
    small: bytes

    def campaign(self, name: str, *, anchored: bool = False) -> Campaign:
        return Campaign(name, self.before, self.anchor if anchored else None)

    def put_back(self) -> None:
        self.path.write_bytes(self.content)

    def seen(self) -> None:
        """Let the machine note its state."""
        Ledger.open(self.dataset, as_declared=False).close()


@pytest.fixture(scope="module")
def original() -> Iterator[Victim]:
    with quick_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SORDINO_STATE", "")
        dataset = declare(folder)
        with Ledger.open(dataset) as ledger:
            fill(ledger)
            before, anchor = told(ledger), ledger.anchor()
            assert ledger.verify(anchor)
        path = folder / "visits.ledger"
        yield Victim(
            dataset, path, before, anchor, path.read_bytes(), pack(path, folder / "small.ledger")
        )


@pytest.fixture
def victim(original: Victim) -> Iterator[Victim]:
    with quick_folder() as folder:
        copy = replace(original, dataset=declare(folder), path=folder / "visits.ledger")
        copy.put_back()
        yield copy


def _flip_bytes(victim: Victim, step: int, content: bytes, *, both: bool) -> Campaign:
    campaign = victim.campaign(f"bytes changed, of {len(content)}")
    for name, place, byte in changes(content, step, both=both):
        victim.path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
        campaign.judge(victim.path, name)
    return campaign


def _cut(victim: Victim, step: int, content: bytes) -> Campaign:
    campaign = victim.campaign(f"lengths, of {len(content)}")
    for length in sorted({*range(0, len(content), step), *range(0, len(content), 512)}):
        victim.path.write_bytes(content[:length])
        assert campaign.judge(victim.path, f"cut to {length}") == "detected"
    return campaign


def test_the_small_copy_is_the_same_ledger(victim: Victim) -> None:
    victim.path.write_bytes(victim.small)
    assert len(victim.small) < len(victim.content)
    assert judge(victim.path, victim.before, victim.anchor) == "harmless"


def test_a_changed_byte_is_found_or_harmless(victim: Victim) -> None:
    campaign = _flip_bytes(victim, 11, victim.small, both=False)
    campaign.report()
    assert campaign.counts["detected"] > campaign.counts["harmless"]


@pytest.mark.slow
def test_every_changed_byte_is_found_or_harmless(victim: Victim) -> None:
    for content, step in ((victim.small, 1), (victim.content, 7)):
        _flip_bytes(victim, step, content, both=content is victim.small).report()


def test_a_shorter_file_is_found(victim: Victim) -> None:
    _cut(victim, 61, victim.small).report()


@pytest.mark.slow
def test_every_shorter_file_is_found(victim: Victim) -> None:
    _cut(victim, 1, victim.small).report()
    _cut(victim, 31, victim.content).report()


def test_garbage_at_the_end_is_found_or_harmless(victim: Victim) -> None:
    campaign = victim.campaign("garbage appended")
    garbage = random.Random(1)
    for content in (victim.small, victim.content):
        for size in (1, 2, 511, 512, 513, 4095, 4096, 4097, 3 * 4096):
            for tail in (bytes(size), garbage.randbytes(size), content[-size:], content[:size]):
                victim.path.write_bytes(content + tail)
                campaign.judge(victim.path, f"{size} bytes appended")
    campaign.report()


def test_whole_blocks_lost_or_swapped_are_found(victim: Victim) -> None:
    """What a disk does that loses a write, or puts it in the wrong place."""
    campaign = victim.campaign("blocks lost, doubled or swapped")
    blocks = [victim.small[start : start + 512] for start in range(0, len(victim.small), 512)]
    for one, other in combinations(range(len(blocks)), 2):
        swapped = list(blocks)
        swapped[one], swapped[other] = blocks[other], blocks[one]
        doubled = [*blocks[:one], blocks[other], *blocks[one + 1 :]]
        for what, content in (("swapped", swapped), ("doubled", doubled)):
            victim.path.write_bytes(b"".join(content))
            campaign.judge(victim.path, f"blocks {one} and {other} {what}")
    for one in range(len(blocks)):
        for what, content in (
            ("zero", [*blocks[:one], bytes(512), *blocks[one + 1 :]]),
            ("gone", blocks[:one] + blocks[one + 1 :]),
        ):
            victim.path.write_bytes(b"".join(content))
            campaign.judge(victim.path, f"block {one} {what}")
    campaign.report()


Edit = list[tuple[str, tuple[Any, ...]]]
"""Statements of SQL, with their values."""


def _row_edits(rows: list[Row]) -> Iterator[tuple[str, Edit]]:
    """Everything that one can do to single rows, and to pairs of them."""
    for number, text, hash_ in rows:
        yield f"row {number} deleted", [("DELETE FROM entries WHERE sequence = ?", (number,))]
        gone: Edit = [
            (f"DELETE FROM {table} WHERE sequence = ?", (number,))
            for table in ("answers", "entries")
        ]
        yield f"row {number} deleted with its answer", gone
        yield (
            f"row {number} doubled",
            [("INSERT INTO entries VALUES (?, ?, ?, NULL)", (len(rows) + 1, text, hash_))],
        )
        for what, other in (
            ("emptied", ""),
            ("not JSON", "{"),
            ("a number", "5"),
            ("a list", "[]"),
            ("spaced", f"{text} "),
        ):
            for kept in (hash_, digest(other)):
                yield f"row {number} {what}", [_written(Row(number, other, kept))]
    for one, two in combinations(rows, 2):
        moves = ((-1, one.sequence), (one.sequence, two.sequence), (two.sequence, -1))
        yield (
            f"rows {one.sequence} and {two.sequence} swapped",
            [("UPDATE entries SET sequence = ? WHERE sequence = ?", move) for move in moves],
        )
        yield f"texts of {one.sequence} and {two.sequence} swapped", _swapped(one, two)


def _written(row: Row) -> tuple[str, tuple[Any, ...]]:
    return "UPDATE entries SET text = ?, hash = ? WHERE sequence = ?", (
        row.text,
        row.hash,
        row.sequence,
    )


def _swapped(one: Row, two: Row) -> Edit:
    return [_written(one._replace(text=two.text)), _written(two._replace(text=one.text))]


def _field_edits(rows: list[Row]) -> Iterator[tuple[str, Row]]:
    """Every single value in every entry, changed; with a hash that fits."""
    for row in rows:
        fields = json.loads(row.text)
        for path in leaves(fields):
            text = json.dumps(
                changed(fields, path), ensure_ascii=False, sort_keys=True, separators=(",", ":")
            )
            assert text != row.text
            yield (
                f"entry {row.sequence}: {'.'.join(map(str, path))}",
                Row(row.sequence, text, digest(text)),
            )


def _rows(victim: Victim) -> list[Row]:
    with Ledger(SqliteStore(victim.path)) as ledger:
        return list(ledger._journal.store.rows())


def _apply(victim: Victim, edit: Edit, *, forge: bool = False) -> None:
    victim.put_back()
    with edited(victim.path) as connection:
        for statement, values in edit:
            connection.execute(statement, values)
        if forge:
            relinked(connection)


def test_rows_that_were_deleted_moved_or_added_are_found(victim: Victim) -> None:
    campaign = victim.campaign("rows deleted, swapped or replaced")
    for name, edit in _row_edits(_rows(victim)):
        _apply(victim, edit)
        campaign.judge(victim.path, name)
    campaign.report()
    assert campaign.counts["harmless"] == 0


def test_edited_fields_are_found(victim: Victim) -> None:
    campaign = victim.campaign("fields edited, with and without a hash that fits")
    rows = _rows(victim)
    for name, row in _field_edits(rows):
        for hash_ in (row.hash, rows[row.sequence - 1].hash):
            _apply(victim, [_written(row._replace(hash=hash_))])
            campaign.judge(victim.path, name)
    campaign.report()
    assert campaign.counts["harmless"] == 0


def test_a_chain_that_was_forged_as_a_whole_is_found_by_an_anchor(victim: Victim) -> None:
    rows = _rows(victim)
    forged_back = (": sequence", ": previous", ": format")
    edits: list[tuple[str, Edit]] = [
        (name, [_written(row)])
        for name, row in _field_edits(rows)
        if not name.endswith(forged_back)
    ]
    edits += [
        (f"{row.sequence} deleted", [("DELETE FROM entries WHERE sequence = ?", (row.sequence,))])
        for row in rows
    ]
    edits += [
        (f"{one.sequence} and {two.sequence} swapped", _swapped(one, two))
        for one, two in combinations(rows, 2)
    ]
    campaign = victim.campaign(
        "chain forged from an edited field or row on, with an anchor", anchored=True
    )
    alone = victim.campaign("the same without an anchor")
    for name, edit in edits:
        _apply(victim, edit, forge=True)
        alone.judge(victim.path, name)
        campaign.judge(victim.path, name)
    campaign.report()
    print(f"{alone.name}: {dict(alone.counts)}")
    assert campaign.counts["harmless"] == 0
    # charges beyond the budget and answers to nothing are found by what the entries mean; the rest needs the anchor
    assert alone.counts["detected"]
    assert alone.counts["UNDETECTED"]
    assert set(alone.counts) <= {"detected", "UNDETECTED", "harmless"}


def test_a_receipt_is_an_anchor(victim: Victim) -> None:
    receipt = victim.before.payments[0].receipt
    cheaper = "UPDATE entries SET text = replace(text, '1/10', '1/11') WHERE sequence = 2"
    _apply(victim, [(cheaper, ())], forge=True)
    with Ledger(SqliteStore(victim.path)) as ledger:
        assert ledger.verify()
        assert not ledger.verify(Anchor(ledger.id, *receipt.link))


def test_a_tail_removed_together_with_its_note_is_found_by_an_anchor_and_by_the_machine(
    victim: Victim,
) -> None:
    with Ledger.open(victim.dataset, as_declared=False) as ledger:
        pay(ledger, "later", "1/64", b"x", "ana")
        ledger.declare(terms(victim.dataset, 1))
        rows, anchor = list(ledger._journal.store.rows()), ledger.anchor()
    newest = replace(victim, content=victim.path.read_bytes())
    for kept in rows[:-1]:
        cut: Edit = [
            (f"DELETE FROM {table} WHERE sequence > ?", (kept.sequence,))
            for table in ("answers", "entries")
        ]
        _apply(
            newest, [*cut, ("UPDATE head SET sequence = ?, hash = ?", (kept.sequence, kept.hash))]
        )
        with Ledger(SqliteStore(victim.path)) as ledger:
            assert ledger.verify()  # it is a good ledger, of some time ago
            (finding,) = ledger.verify(anchor).findings
            assert "an older copy was put back" in finding
        # once a bug, after the last charge: answers, budgets and sub-budgets were not noted by the machine
        with pytest.raises(LedgerDamaged, match="an older copy was put back"):
            Ledger.open(victim.dataset, as_declared=False).close()


OTHERS = {
    "head of another number": "UPDATE head SET sequence = sequence - 1",
    "head beyond the end": "UPDATE head SET sequence = sequence + 1",
    "head with another hash": f"UPDATE head SET hash = '{START.hash}'",
    "head of an earlier entry": "UPDATE head SET (sequence, hash) = (SELECT sequence, hash FROM entries WHERE sequence = 5)",
    "head of no entry": f"UPDATE head SET sequence = 0, hash = '{START.hash}'",
    "no head": "DELETE FROM head",
    "two heads": "INSERT INTO head SELECT 2, sequence, hash FROM head",
    "answer edited": "UPDATE answers SET bytes = x'00' WHERE sequence = 3",
    "answer emptied": "UPDATE answers SET bytes = x'' WHERE sequence = 3",
    "answer deleted": "DELETE FROM answers WHERE sequence = 3",
    "answers deleted": "DELETE FROM answers",
    "answers swapped": "UPDATE answers SET bytes = (SELECT bytes FROM answers AS b WHERE b.sequence <> answers.sequence)",
    "answer moved": "UPDATE answers SET sequence = 2 WHERE sequence = 3",
    "answer added": "INSERT INTO answers VALUES (2, x'00')",
    "answer to a failed charge": "INSERT INTO answers VALUES (5, x'00')",
    "key changed": "UPDATE secret SET key = zeroblob(32)",
    "key shortened": "UPDATE secret SET key = substr(key, 1, 31)",
    "key deleted": "DELETE FROM secret",
    "entries deleted": "DELETE FROM entries",
    "entry after the head": "INSERT INTO entries VALUES (99, '{}', 'x', NULL)",
    "entry before the first": "INSERT INTO entries VALUES (0, '{}', 'x', NULL)",
    "entry with a negative number": "INSERT INTO entries VALUES (-5, '{}', 'x', NULL)",
    "request renamed": "UPDATE entries SET request = 'other' WHERE sequence = 2",
    "request taken away": "UPDATE entries SET request = NULL WHERE sequence = 2",
    "request added": "UPDATE entries SET request = 'next' WHERE sequence = 3",
    "table added": "CREATE TABLE more (x)",
    "index added": "CREATE INDEX more ON entries (hash)",
    "view added": "CREATE VIEW more AS SELECT * FROM entries",
    "trigger added": "CREATE TRIGGER more AFTER INSERT ON entries BEGIN UPDATE head SET sequence = 1; END",
    "column added": "ALTER TABLE entries ADD COLUMN more TEXT",
    "newer version": "PRAGMA user_version = 2",
    "older version": "PRAGMA user_version = 0",
    "of another program": "PRAGMA application_id = 7",
}


@pytest.mark.parametrize("what", OTHERS)
def test_everything_else_that_was_edited_is_found(what: str, victim: Victim) -> None:
    # once a bug: rows before the first, and the column `request`, were compared with nothing
    _apply(victim, [(OTHERS[what], ())])
    assert judge(victim.path, victim.before) == "detected"


TABLES = [
    "DROP TRIGGER entries_update", "DROP TRIGGER entries_delete", "DROP TRIGGER answers_update",
    "DROP TRIGGER answers_delete", "DROP TABLE answers", "DROP TABLE secret", "ANALYZE",
    "ALTER TABLE answers RENAME TO replies",
]  # fmt: skip
CARE = [
    "VACUUM", "REINDEX", "PRAGMA page_size = 8192; VACUUM", "PRAGMA auto_vacuum = FULL; VACUUM", "PRAGMA journal_mode = WAL",
    "PRAGMA encoding = 'UTF-16'; VACUUM",
]  # fmt: skip


@pytest.mark.parametrize("statement", TABLES)
def test_a_ledger_with_other_tables_or_triggers_is_found(statement: str, victim: Victim) -> None:
    connection = sqlite3.connect(victim.path)
    connection.execute(statement)
    connection.close()
    assert judge(victim.path, victim.before) == "detected"


@pytest.mark.parametrize("statement", CARE)
def test_care_of_the_file_is_harmless(statement: str, victim: Victim) -> None:
    connection = sqlite3.connect(victim.path)
    connection.executescript(statement)
    connection.close()
    assert judge(victim.path, victim.before, victim.anchor) == "harmless"


def test_answers_that_were_edited_are_not_given_out(victim: Victim) -> None:
    request = Request("first", "SELECT 'first'", "epsilon")
    for name in ("answer edited", "answer emptied", "answer deleted", "answers swapped"):
        _apply(victim, [(OTHERS[name], ())])
        with (
            Ledger(SqliteStore(victim.path)) as ledger,
            pytest.raises(LedgerDamaged, match="the answer to entry 2 was changed"),
        ):
            ledger.stored(request)


@pytest.mark.parametrize("what", ["key changed", "key shortened", "key deleted"])
def test_nothing_is_charged_under_a_changed_key(what: str, victim: Victim) -> None:
    # once a bug: without its key, a ledger wrote fingerprints of the data that anybody could confirm
    (victim.path.parent / "visits.csv").touch()
    _apply(victim, [(OTHERS[what], ())])
    with pytest.raises(LedgerDamaged), Ledger.open(victim.dataset, as_declared=False) as ledger:
        pay(ledger, "new", "1/64", analyst="ana")


@pytest.mark.parametrize("facts", [5, "ab", None, [], [["a", 1]], {}, {"a": []}])
def test_entries_of_any_form_are_found_without_a_raw_error(facts: object) -> None:
    # once a bug: a TypeError or ValueError for facts that are no table
    entry = json.loads(Entry(1, START.hash, "declare", "now", {}).text)
    text = json.dumps({**entry, "facts": facts}, sort_keys=True, separators=(",", ":"))
    assert not verify_rows([Row(1, text, digest(text))])


ANY = [
    "[" * 100_000,
    '{"facts":' * 100_000,
    "",
    "\0",
    "NaN",
    '{"format":"sordino-ledger/1"}',
    '"' + "9" * 5000,
    "9" * 5000,
]


@pytest.mark.parametrize("text", ANY, ids=range(len(ANY)))
def test_texts_of_any_form_are_found_without_a_raw_error(text: str) -> None:
    # once a bug: a RecursionError for deep ones
    assert not verify_rows([Row(1, text, digest(text))])
    with pytest.raises(InvalidInput, match="this is not an anchor"):
        Anchor.from_json(text)


@pytest.mark.parametrize("kind", ["accept", "allot", "charge", "answer", "forfeit", "other"])
def test_a_chain_that_does_not_start_with_a_declaration_is_found(kind: str) -> None:
    # once a bug: exported lines that start with accept or allot held
    facts = {"analyst": "ana", "allowance": None}
    assert not verify_rows([Entry(1, START.hash, kind, "now", facts).row])


def _exported(content: bytes) -> list[Row]:
    lines = content.decode().split("\n")
    return [
        Row(number, line, digest(line))
        for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1)
    ]


def _read_exported(content: bytes, anchor: Anchor | None) -> str:
    try:
        rows = _exported(content)
    except UnicodeDecodeError:
        return "detected"
    return "UNDETECTED" if verify_rows(rows, anchor) else "detected"


def _flip_exported(victim: Victim, step: int) -> None:
    with Ledger(SqliteStore(victim.path)) as ledger:
        lines = list(ledger.export())
    content = "".join(f"{line}\n" for line in lines).encode()
    assert verify_rows(_exported(content), victim.anchor)
    last = len(content) - len(lines[-1].encode()) - 1
    campaign = victim.campaign(
        f"bytes and lengths of {len(content)} exported bytes, with an anchor"
    )
    alone = victim.campaign(
        f"bytes of {last} exported bytes before the last line, without an anchor"
    )
    for name, place, byte in changes(content, step, both=step == 1):
        touched = content[:place] + bytes([byte]) + content[place + 1 :]
        campaign.count(_read_exported(touched, victim.anchor), name)
        if place < last:  # the hash of the last line is in the anchor only
            alone.count(_read_exported(touched, None), name)
    for length in range(0, len(content) - 1, step):
        campaign.count(_read_exported(content[:length], victim.anchor), f"cut to {length}")
    campaign.report()
    alone.report()


def test_exported_lines_hold_what_was_written(victim: Victim) -> None:
    _flip_exported(victim, 7)


@pytest.mark.slow
def test_every_byte_of_exported_lines_holds_what_was_written(victim: Victim) -> None:
    _flip_exported(victim, 1)


def test_exported_lines_hold_texts_of_all_kinds(victim: Victim) -> None:
    victim.put_back()
    with Ledger.open(victim.dataset, as_declared=False) as ledger:
        for number, text in enumerate(("a\u2028b", "a\u0085b", "a\nb\r\n", "\U0001f98a", "\x00")):
            ledger.charge(pure("1/1000"), Request(f"text {number}", f"SELECT '{text}'", "", "ana"))
        content = "".join(f"{line}\n" for line in ledger.export()).encode()
        assert content.count(b"\n") == len(_exported(content)) == ledger.anchor().count
        assert verify_rows(_exported(content), ledger.anchor())


def test_every_change_of_an_anchor_is_found(victim: Victim) -> None:
    text = victim.anchor.to_json().encode()
    rows = _rows(victim)
    campaign = victim.campaign(f"bytes of an anchor of {len(text)}")
    touched = [
        (name, text[:place] + bytes([byte]) + text[place + 1 :])
        for name, place, byte in changes(text, 1, both=True)
    ]
    for name, content in [
        *touched,
        *((f"cut to {length}", text[:length]) for length in range(len(text))),
    ]:
        try:
            found = not verify_rows(
                rows, Anchor.from_json(content.decode(errors="surrogateescape"))
            )
        except InvalidInput:
            found = True
        campaign.count("detected" if found else "UNDETECTED", name)
    campaign.report()


def _flip_while_open(victim: Victim, step: int) -> Campaign:
    """A session has read the file; somebody changes it, so that SQLite reads it again or not; the session goes on."""
    campaign = victim.campaign(
        "bytes changed while a session is open, with and without a new change counter"
    )
    content = victim.small
    counter = int.from_bytes(content[24:28], "big") + 1
    fresh = {24 + i: byte for i, byte in enumerate(counter.to_bytes(4, "big"))}
    # else SQLite trusts what it has read
    fresh |= {92 + i: byte for i, byte in enumerate(counter.to_bytes(4, "big"))}
    for name, place, byte in changes(content, step, both=False):
        for change in ({place: byte}, {**fresh, place: byte}):
            campaign.count(judge_open(victim.path, content, change), name)
    return campaign


def test_a_byte_changed_while_a_session_is_open_grants_nothing_more(victim: Victim) -> None:
    campaign = _flip_while_open(victim, 89)
    campaign.report()
    assert campaign.counts["detected"]
    assert campaign.counts["harmless"]


@pytest.mark.slow
def test_many_bytes_changed_while_a_session_is_open_grant_nothing_more(victim: Victim) -> None:
    _flip_while_open(victim, 11).report()


CELLS = [
    "head SET sequence = 'x'", "head SET hash = 7", "head SET sequence = NULL", "head SET sequence = 1e300",
    "secret SET key = 'x'", "secret SET key = 7", "secret SET key = NULL", "answers SET bytes = 'x'",
    "answers SET bytes = 7", "entries SET text = x'00'", "entries SET hash = 7",
]  # fmt: skip


@pytest.mark.parametrize("change", CELLS)
def test_cells_of_other_types_while_a_session_is_open_are_refused(
    change: str, victim: Victim
) -> None:
    # once a bug, a TypeError: the tables are STRICT, but whoever writes bytes is not bound by that
    with Ledger.open(victim.dataset, as_declared=False) as ledger:
        with edited(victim.path) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            loose = "replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')"
            connection.execute(f"UPDATE sqlite_schema SET sql = {loose} WHERE type = 'table'")
        with edited(victim.path) as connection:  # which has the loose tables
            connection.execute(f"UPDATE {change}")
        found = 0
        for call in (
            lambda: told(ledger),
            lambda: pay(ledger, "new", "1/64", analyst="ana"),
            lambda: _expect(ledger.verify()),
        ):
            try:
                call()
            except LedgerError:
                found += 1
        assert found  # at the latest by verify


def _expect(verdict: Verdict) -> None:
    if not verdict:
        raise LedgerError("here", verdict.findings[0], "")


def test_a_journal_of_an_earlier_time_cannot_take_charges_back(victim: Victim) -> None:
    """SQLite plays back a journal that it finds; whoever keeps one could undo what came after it."""
    victim.seen()
    victim.path.write_bytes(victim.small)
    journal = Path(f"{victim.path}-journal")
    connection = sqlite3.connect(victim.path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE wide (x)")
    # more than the cache: pages are written out
    connection.executemany("INSERT INTO wide VALUES (zeroblob(400))", [()] * 40)
    assert journal.stat().st_size > 512
    kept = journal.read_bytes()
    connection.execute("ROLLBACK")
    connection.close()
    with Ledger.open(victim.dataset, as_declared=False) as ledger:
        for number in range(5):
            pay(ledger, f"later {number}", "1/64", b"x" * 300, "ana")
    newest = victim.path.read_bytes()
    journal.write_bytes(kept)
    with pytest.raises(LedgerDamaged):
        Ledger.open(victim.dataset, as_declared=False).close()
    assert victim.path.read_bytes() != newest  # it was played back, and noticed


def test_an_old_write_ahead_log_cannot_take_charges_back(victim: Victim) -> None:
    log = Path(f"{victim.path}-wal")
    connection = sqlite3.connect(victim.path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("UPDATE head SET one = 2")
    connection.execute("UPDATE head SET one = 1")
    kept = log.read_bytes()
    assert kept
    connection.close()
    with Ledger.open(victim.dataset, as_declared=False) as ledger:
        for number in range(5):
            pay(ledger, f"later {number}", "1/64", b"x" * 300, "ana")
        after = told(ledger)
    log.write_bytes(kept)
    try:
        with Ledger.open(victim.dataset, as_declared=False) as ledger:
            assert ledger.verify()
            assert told(ledger) == after
    except LedgerDamaged:
        pass


@pytest.mark.parametrize("leftover", ["-journal", "-wal"])
def test_what_a_ledger_leaves_behind_is_not_played_into_a_new_one(
    leftover: str, victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    # once a bug, for -wal: a new ledger was made beside it
    monkeypatch.setenv("SORDINO_STATE", "")
    victim.path.unlink()
    left = Path(f"{victim.path}{leftover}")
    left.write_bytes(b"something")
    with pytest.raises(LedgerError, match="is there, but the file is gone"):
        Ledger.open(victim.dataset).close()
    assert not victim.path.exists()
    assert left.read_bytes() == b"something"


def test_a_file_replaced_while_a_session_is_open_takes_no_more_charges(victim: Victim) -> None:
    """The session would write into a file without a name, and its charges would be forgotten."""
    old = victim.path.parent / "old"
    shutil.copy(victim.path, old)
    for how in ("replaced", "removed", "moved"):
        with Ledger.open(victim.dataset, as_declared=False) as ledger:
            newest = victim.path.read_bytes()
            if how == "replaced":
                old.replace(victim.path)
            elif how == "removed":
                victim.path.unlink()
            else:
                victim.path.rename(old)
            with pytest.raises(LedgerError):
                pay(ledger, f"after it was {how}", "1/64", analyst="ana")
            with pytest.raises(LedgerError):
                pay(ledger, f"once more after it was {how}", "1/64", analyst="ana")
        victim.path.write_bytes(newest)


def test_an_old_copy_written_over_an_open_ledger_is_found(victim: Victim) -> None:
    with Ledger.open(victim.dataset, as_declared=False) as ledger:
        pay(ledger, "later", "1/64", analyst="ana")
        victim.put_back()
        with pytest.raises(LedgerDamaged, match="cut short or put back"):
            pay(ledger, "after that", "1/64", analyst="ana")
        # once a bug: what the open session has seen is an anchor that verify did not use
        assert not ledger.verify()
