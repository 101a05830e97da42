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
200,000 persons, by an engine process behind its link, with the clock set as said: each is charged, run, stored and shown at
its tick. *Lateness* is how much later than its tick an answer was shown, by a process that does what web does. Pages,
previews and abuse are measured with the web process.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        "### Durable charges per second\n",
        table(["threads", "charges per second"], ([r["case"], f"{r['value']:,.0f}"] for r in _of(rows, "charges"))),
        "### Answers\n",
        table(["question", "answers per second"], ([r["case"], f"{r['value']:,.1f}"] for r in _of(rows, "slots"))),
        table(["lateness", "milliseconds"], ([r["case"], f"{r['value']:,.1f}"] for r in _of(rows, "lateness"))),
        table(
            ["refused in a pause, until the owner resumed", "times"],
            ([r["case"], str(r["value"])] for r in _of(rows, "pauses")),
        ),
        *(f"**{row['error']}**\n" for row in rows if "error" in row),
    )
    return "\n".join(parts)


def _of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row.get("part") == part and "value" in row]


def targets(rows: list[Row]) -> Iterator[list[str]]:
    """What issue 18 asks of this part."""
    for part, what, asked, least in (
        ("charges", "durable charges per second with group commit", "≥ 500", 500.0),
        ("slots", "COUNT over a million rows per second, clock set low", "≥ 15", 15.0),
    ):
        best = max((row["value"] for row in _of(rows, part)), default=None)
        found = "not measured" if best is None else f"{best:,.1f}"
        yield [what, asked, found, mark(best is not None and best >= least)]
    late = min((row["value"] for row in _of(rows, "lateness")), default=None)
    found = "not measured" if late is None else f"{late:.1f} ms"
    yield ["answers after their tick (99 %)", "≤ 10 ms", found, mark(late is not None and late <= 10)]


def chart(rows: list[Row]) -> Any:
    """Charges per second by threads."""
    data = [{"threads": row["threads"], "value": row["value"]} for row in _of(rows, "charges")]
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X("threads:Q", title="threads that charge", scale=alt.Scale(type="log")),
        y=alt.Y("value:Q", title="durable charges per second", scale=alt.Scale(type="log")),
    )
    heading = alt.TitleParams("Group commit: one sync for all that wait", anchor="start", fontSize=16, offset=14)
    picture = base.mark_line(color="#0b6e6e") + base.mark_point(filled=True, size=90, color="#0b6e6e")
    return picture.properties(width=520, height=240, title=heading, padding=20, background="white")
