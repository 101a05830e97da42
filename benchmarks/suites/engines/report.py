"""The engines suite as Markdown and as a picture."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import duration, mark, table, times

Row = dict[str, Any]
TITLE = "Engines: questions where the data are"
FIXED = ", fixed cost"
MOST = {"PostgreSQL": 50, "Spark": 2000}
"""What a question on a tiny table may cost, in milliseconds."""
PEERS = [
    "tool",
    "engine, question",
    "time",
    "over ours",
    "with bias",
    "processor",
    "over ours",
    "with bias",
]
LEAST = {"Qrlew": 1, "Tumult": 3, "PipelineDP": 3}
"""How many times a question's time a peer should take at least."""

HOW_TO_READ = """
**How to read this.** The same declaration and questions on each engine, over rows of persons with ten rows each on
average. *By hand* is SQL of the same shape on the same engine: rows are summed by person and group, cut or scaled to 30
rows, and added up. *With bias* also measures what the bounds cut off, as a question does by default, for which nobody
writes SQL by hand. All of it is in a question's time: planning, the charge, one transaction, noise. The fixed cost is a
question's time on a table of 50 rows. Ours and SQL by hand run in turn; peers run after them, so they are compared by
processor time, of all processes together (workers, the Java machine, the database's backends).
"""


def section(rows: list[Row]) -> str:
    heads = ["engine, question", "rows", "by hand", "question", "ratio", "with bias", "ratio"]
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        "### Beside SQL written by hand\n",
        table(heads, _ratios(rows)),
        "### Beside peers on the same engine\n",
        table(PEERS, _peers(rows)),
        "### Fixed cost of a question\n",
        table(
            ["engine, question", "time"],
            ([_name(r), duration(r["value"] / 1e3)] for r in _fixed(rows)),
        ),
        *(f"**{row['error']}**\n" for row in rows if "error" in row),
    )
    return "\n".join(parts)


def _name(row: Row) -> str:
    return f"{row['part']}, {row['case'].removesuffix(FIXED)}"


def _measured(rows: list[Row]) -> list[Row]:
    return [row for row in rows if "by_hand" in row]


def _fixed(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.get("case", "").endswith(FIXED) and "value" in row]


def targets(rows: list[Row]) -> Iterator[list[str]]:
    for engine in dict.fromkeys(row["part"] for row in rows if "part" in row):
        ratios = [row["value"] / row["by_hand"] for row in _measured(rows) if row["part"] == engine]
        if ratios:
            yield [
                f"{engine}: time over SQL by hand",
                "≤ 1.5x",
                times(max(ratios)),
                mark(max(ratios) <= 1.5),
            ]
        costs = [row["value"] for row in _fixed(rows) if row["part"] == engine]
        if costs and engine in MOST:
            asked = duration(MOST[engine] / 1e3)
            yield [
                f"{engine}: fixed cost",
                f"< {asked}",
                duration(max(costs) / 1e3),
                mark(max(costs) < MOST[engine]),
            ]
    for tool, least in LEAST.items():
        ratios = [
            row["processor"] / own["processor"] for row, own in _beside(rows) if row["tool"] == tool
        ]
        if ratios:
            yield [
                f"{tool}'s processor time over a question's",
                f"≥ {times(least)}",
                times(min(ratios)),
                mark(min(ratios) >= least),
            ]


def _ratios(rows: list[Row]) -> Iterator[list[str]]:
    for row in _measured(rows):
        hand, ours, measured = row["by_hand"], row["value"], row.get("measured")
        more = ["", ""] if measured is None else [duration(measured / 1e3), times(measured / hand)]
        yield [
            _name(row),
            f"{row['rows']:,}",
            duration(hand / 1e3),
            duration(ours / 1e3),
            times(ours / hand),
            *more,
        ]


def _beside(rows: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Rows of peers, each with ours of the same engine, question and size."""
    ours = {(row["part"], row["case"], row["rows"]): row for row in _measured(rows)}
    for row in rows:
        if row.get("tool") != "Sordino" and "rows" in row and "value" in row:
            own = ours.get((row["part"], row["case"], row["rows"]))
            if own is not None:
                yield row, own


def _peers(rows: list[Row]) -> Iterator[list[str]]:
    for row, own in _beside(rows):
        clock = [
            duration(row["value"] / 1e3),
            times(row["value"] / own["value"]),
            times(row["value"] / own["measured"]),
        ]
        used, ours, with_bias = row["processor"], own["processor"], own["measured_processor"]
        processor = [duration(used / 1e3), times(used / ours), times(used / with_bias)]
        yield [row["tool"], _name(row), *clock, *processor]


def chart(rows: list[Row]) -> Any:
    """Time over SQL by hand, one bar for each question."""
    data = [{"case": _name(row), "value": row["value"] / row["by_hand"]} for row in _measured(rows)]
    base = alt.Chart(alt.Data(values=data)).encode(
        y=alt.Y(
            "case:N",
            sort=None,
            title=None,
            axis=alt.Axis(labelLimit=240, domain=False, ticks=False),
        ),
        x=alt.X("value:Q", title="time over SQL of the same shape, written by hand"),
    )
    bars = base.mark_bar(color="#0b6e6e", height=14)
    words = base.mark_text(align="left", dx=6, color="#24292f").encode(
        text=alt.Text("value:Q", format=".2f")
    )
    heading = alt.TitleParams(
        "Questions where the data are", anchor="start", fontSize=16, offset=14
    )
    return (bars + words).properties(
        width=520, height=150, title=heading, padding=20, background="white"
    )
