"""The ledger suite as Markdown and as a picture."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import duration, mark, table, times

Row = dict[str, Any]
TITLE = "Ledger: durable charges and answers"

HOW_TO_READ = """
**How to read this.** A *cycle* is what a query pays to the ledger: the charge, made durable, then the answer of 1,000 bytes,
made durable, with every check in between. SQLite runs with a rollback journal and synchronous=EXTRA on the disk of the
repository, PostgreSQL 18 with its defaults over a socket. *Two bare SQLite transactions* write rows of the same size with
the same settings and do nothing else: what the disk alone costs. No peer has a durable budget to compare with. Opening a
ledger checks every entry.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        "### Cycles per second\n",
        table(["where", "cycles per second", "beside bare SQLite"], _cycles(rows)),
        "### Long ledgers\n",
        table(["charges, each answered", "open", "verify", "one more cycle"], _opening(rows)),
        "### Commands\n",
        table(
            ["command", "time"],
            ([r["case"], duration(r["value"] / 1e3)] for r in _of(rows, "commands")),
        ),
        *(f"**{row['error']}**\n" for row in rows if "error" in row),
    )
    return "\n".join(parts)


def _of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row.get("part") == part and "value" in row]


def _value(rows: list[Row], part: str, case: str) -> float | None:
    return next((row["value"] for row in _of(rows, part) if row["case"] == case), None)


def targets(rows: list[Row]) -> Iterator[list[str]]:
    cycles, budget = _value(rows, "cycles", "SQLite"), _value(rows, "commands", "sordino budget")
    found = "not measured" if cycles is None else f"{cycles:,.0f}"
    yield [
        "durable cycles per second on SQLite",
        "≥ 150",
        found,
        mark(cycles is not None and cycles >= 150),
    ]
    found = "not measured" if budget is None else duration(budget / 1e3)
    yield ["`sordino budget`", "< 200 ms", found, mark(budget is not None and budget < 200)]


def _cycles(rows: list[Row]) -> Iterator[list[str]]:
    base = _value(rows, "cycles", "two bare SQLite transactions")
    for row in _of(rows, "cycles"):
        yield [row["case"], f"{row['value']:,.0f}", times(row["value"] / base) if base else ""]


def _opening(rows: list[Row]) -> Iterator[list[str]]:
    for charges in sorted({row["charges"] for row in _of(rows, "opening")}):
        found = {
            row["case"]: row["value"] for row in _of(rows, "opening") if row["charges"] == charges
        }
        figures = (found.get(case) for case in ("open", "verify", "one more cycle"))
        yield [f"{charges:,}", *("" if x is None else duration(x / 1e3) for x in figures)]


def chart(rows: list[Row]) -> Any:
    """Cycles per second, one bar each."""
    data = [
        {"case": row["case"], "value": row["value"], "text": f"{row['value']:,.0f}"}
        for row in _of(rows, "cycles")
    ]
    base = alt.Chart(alt.Data(values=data)).encode(
        y=alt.Y(
            "case:N",
            sort=None,
            title=None,
            axis=alt.Axis(labelLimit=240, domain=False, ticks=False),
        ),
        x=alt.X(
            "value:Q",
            title="durable charge and answer cycles per second",
            scale=alt.Scale(type="log"),
        ),
    )
    bars = base.mark_point(filled=True, size=90, color="#0b6e6e")
    words = base.mark_text(align="left", dx=10, color="#24292f").encode(text="text:N")
    heading = alt.TitleParams(
        "Ledger: what a query pays for durability", anchor="start", fontSize=16, offset=14
    )
    return (bars + words).properties(
        width=520, height=150, title=heading, padding=20, background="white"
    )
