"""The clock decides nothing: whatever it says between two entries,
a ledger does the same, and differs in its times only.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

import sordino
from ledger.visits import declare, fill, pay, quick_folder, spent
from sordino.errors import BudgetExceeded
from sordino.ledger import chain as entries
from sordino.ledger.chain import Entry
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt

SOURCE = Path(sordino.__file__).parent
NOW, EARLIER, LATER = (
    "2026-03-29T01:59:59+00:00",
    "2025-03-29T01:59:59+00:00",
    "2027-03-29T01:59:59+00:00",
)
CLOCKS: dict[str, Callable[[], Iterator[str]]] = {
    "frozen": lambda: repeat(NOW),
    "before the epoch": lambda: repeat("1969-12-31T23:59:59+00:00"),
    "at the end of time": lambda: repeat("9999-12-31T23:59:59+00:00"),
    "broken": lambda: repeat("no time at all"),
    "backwards": lambda: (f"20{99 - i % 80}-01-01T00:00:00+00:00" for i in chain(range(10**6))),
    **{
        f"back a year at {n}": lambda n=n: chain(repeat(NOW, n), repeat(EARLIER))  # type: ignore[misc]
        for n in range(1, 15)
    },
    **{f"on a year at {n}": lambda n=n: chain(repeat(NOW, n), repeat(LATER)) for n in range(1, 15)},  # type: ignore[misc]
    "to and fro": lambda: chain.from_iterable(repeat((LATER, EARLIER, NOW))),
}


def _history(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: Iterator[str] | None
) -> tuple[list[str], list[dict[str, Any]]]:
    """The times and all else of the entries of one history, which ends with what must be refused and repeated."""
    with monkeypatch.context() as patch:
        if times is not None:
            patch.setattr(entries, "_now", lambda: next(times))
        dataset = declare(folder)
        with Ledger.open(dataset) as ledger:
            fill(ledger)
        with Ledger.open(dataset, as_declared=False) as ledger:  # as a later session finds it
            with pytest.raises(BudgetExceeded):
                pay(ledger, "too much", 2, analyst="ana")
            again = pay(ledger, "first", "1/10")
            assert again.number == 2
            assert again.time == ledger.payments[0].receipt.time
            verdict = ledger.verify(ledger.anchor())
            assert verdict, verdict.findings
            assert str(spent(ledger)) == "59/160"
            lines = [json.loads(line) for line in ledger.export()]
    for line in lines:
        (
            line["facts"].pop("key", None),
            line["facts"].pop("name", None),
            line["facts"].pop("sources", None),
            line.pop("previous"),
        )
    return [line.pop("time") for line in lines], lines


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_changes_nothing_but_times(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORDINO_STATE", "")  # two ledgers for one table are wanted here
    with quick_folder() as folder:
        _, plain = _history(folder / "plain", monkeypatch, None)
        times, same = _history(folder / "other", monkeypatch, CLOCKS[clock]())
    expected = CLOCKS[clock]()
    assert times == [next(expected) for _ in times]  # it was the clock of every entry
    assert same == plain


def test_files_of_another_time_are_the_same_files(tmp_path: Path) -> None:
    """Times of files decide nothing: those of the source tell only when to look again."""
    dataset = declare(tmp_path)
    found = []
    for number, year in enumerate((0, -1, 1, -50)):
        for path in tmp_path.iterdir():
            seconds = 1_790_000_000 + year * 31_557_600
            os.utime(path, (seconds, seconds))
        with Ledger.open(dataset) as ledger:
            pay(ledger, str(number), "1/100", b"x")
            found.append(ledger.payments[-1].sources)
            assert ledger.verify()
    assert found[0].keys() == {"visits"}
    assert all(each == found[0] for each in found)


def test_a_time_is_written_once_and_decides_nothing() -> None:
    """One function reads the clock, and the only use of a stored time is to be shown."""
    clocks, uses = set(), set()
    for path in [
        *sorted((SOURCE / "ledger").glob("*.py")),
        SOURCE / "session.py",
        SOURCE / "accounting" / "filters.py",
    ]:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.ImportFrom(module="time" | "calendar" | "datetime" as name, names=names):
                    clocks |= {(path.name, f"{name}.{each.name}") for each in names}
                case ast.Attribute(
                    value=ast.Name(id="time" | "calendar" | "datetime" as name), attr=attribute
                ):
                    clocks.add((path.name, f"{name}.{attribute}"))
                case ast.Attribute(
                    attr="time" | "st_mtime_ns" | "st_mtime" | "st_ctime" | "st_atime" as name
                ):
                    uses.add((path.name, name))
    clocks -= {
        ("sqlite.py", "time.sleep"),
        ("chain.py", "datetime.UTC"),
        ("chain.py", "datetime.datetime"),
        *(("officer_report.py", f"datetime.{name}") for name in ("UTC", "datetime")),
    }
    clocks.remove(("officer_report.py", "datetime.now"))  # a page says when it was made
    assert clocks == {("chain.py", "datetime.now")}
    # a text that goes from an entry to its receipt and its leaf; and whether a source must be read again
    shown = {("chain.py", "time"), ("state.py", "time"), ("public_log.py", "time")}
    shown |= {("receipt.py", "time"), ("officer_report.py", "time")}  # in a card and on a page
    assert uses == {*shown, ("fingerprint.py", "st_mtime_ns")}
    assert Entry.__annotations__["time"] == Receipt.__annotations__["time"] == "str"
