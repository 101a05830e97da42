"""The server suite as Markdown and as a picture."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import mark, table

Row = dict[str, Any]
TITLE = "Server: answers at ticks, charges in groups"

HOW_TO_READ = """
**How to read this.** *Charges* are durable debits of one SQLite ledger on the disk of the repository, made by threads of
one process; those that wait are written by one transaction (group commit). *Answers* are counts over a million rows of
200,000 persons, by an engine process behind its link, with the clock set as said: each is charged, run, stored and told at
its tick. *Lateness* is how much later than its tick an answer arrived. *Previews* and *pages* are those of `sordino serve`,
asked by 16 clients on the same two cores. *Load* is how many processes wanted a core in the minute before, so that a load
of 2 leaves none free on two cores: then a second on the clock says little, and *by processor time* is what counts: how many
a second two cores (for answers one core) would do that had nothing else to do. It is too low where others work, too, as
these also use the caches.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "by processor time", "verdict"], targets(rows)),
        "### Durable charges per second\n",
        table(
            ["threads", "charges per second"],
            ([r["case"], f"{r['value']:,.0f}"] for r in _of(rows, "charges")),
        ),
        "### Answers\n",
        _rates("question", _of(rows, "slots")),
        table(
            ["lateness", "milliseconds"],
            ([r["case"], f"{r['value']:,.1f}"] for r in _of(rows, "lateness")),
        ),
        table(
            ["refused in a pause, until the owner resumed", "times"],
            ([r["case"], str(r["value"])] for r in _of(rows, "pauses")),
        ),
        "### Previews\n",
        _rates("preview", _of(rows, "previews")),
        "### Pages\n",
        _rates("request", _of(rows, "pages")),
        *(f"**{row['error']}**\n" for row in rows if "error" in row),
    )
    return "\n".join(parts)


def _rates(what: str, rows: list[Row]) -> str:
    head = [what, "per second", "processor, ms each", "per second by processor time", "load"]
    cells = (
        [r["case"], *(f"{r[name]:,.1f}" for name in ("value", "processor", "possible", "load"))]
        for r in rows
    )
    return table(head, cells)


def _of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row.get("part") == part and "value" in row]


TARGETS = (
    ("charges", "", "durable charges per second with group commit", 500.0),
    ("slots", "", "COUNT over a million rows per second, clock set low", 15.0),
    (
        "previews",
        "another question",
        "previews per second, two cores, another question each time",
        150.0,
    ),
    (
        "previews",
        "same question at another price",
        "previews per second, two cores, another price each time",
        150.0,
    ),
    ("pages", "", "pages per second, two cores", 1000.0),
)


def targets(rows: list[Row]) -> Iterator[list[str]]:
    """What issue 18 asks."""
    for part, case, what, least in TARGETS:
        found = [row for row in _of(rows, part) if case in row["case"]]
        if not found:
            yield [what, f"≥ {least:,.0f}", "not measured", "", mark(False)]
            continue
        best = max(row["value"] for row in found)
        possible = max((row["possible"] for row in found if "possible" in row), default=None)
        yield [
            what,
            f"≥ {least:,.0f}",
            f"{best:,.1f}",
            "" if possible is None else f"{possible:,.1f}",
            mark(best >= least),
        ]
    late = min((row["value"] for row in _of(rows, "lateness")), default=None)
    found_late = "not measured" if late is None else f"{late:.1f} ms"
    yield [
        "answers after their tick (99 %)",
        "≤ 10 ms",
        found_late,
        "",
        mark(late is not None and late <= 10),
    ]


def chart(rows: list[Row]) -> Any:
    """Charges per second by threads."""
    data = [{"threads": row["threads"], "value": row["value"]} for row in _of(rows, "charges")]
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X("threads:Q", title="threads that charge", scale=alt.Scale(type="log")),
        y=alt.Y("value:Q", title="durable charges per second", scale=alt.Scale(type="log")),
    )
    heading = alt.TitleParams(
        "Group commit: one sync for all that wait", anchor="start", fontSize=16, offset=14
    )
    picture = base.mark_line(color="#0b6e6e") + base.mark_point(
        filled=True, size=90, color="#0b6e6e"
    )
    return picture.properties(width=520, height=240, title=heading, padding=20, background="white")
