"""The persons suite as Markdown and as a picture."""

from collections.abc import Iterator
from math import hypot, sqrt
from typing import Any

import altair as alt
from benchmarks.markdown import mark, short, table, times
from benchmarks.suites.persons.settings import (
    CASES,
    EPSILON,
    GIANT_ROWS,
    GROUPS,
    PERSONS,
    SHAPES,
    Shape,
)

Row = dict[str, Any]
Cells = dict[tuple[str, str, str], Row]
"""By tool, shape and case."""
TITLE = "Persons: error where some have many rows"
PEERS = ("OpenDP", "Tumult", "PipelineDP", "PyDP", "SmartNoise")
FEW = 10
CERTAIN = 2
"""Standard errors from which on a difference is not called chance."""

HOW_TO_READ = f"""
**How to read this.** {PERSONS:,} persons with rows in {len(GROUPS)} public groups and a value from 0 to 100; epsilon is
{EPSILON:g} for each answer, a person is protected with all rows. Everybody gets the same public bounds:

BOUNDS

Zipf: the person of rank r has 200/√r rows. The giant has {GIANT_ROWS:,}, everybody else 1 to 10. By group, Sordino
uses all three bounds; OpenDP, Tumult and PipelineDP the first alone, which gives them less noise than the other two
together; SmartNoise knows only the first, PyDP only the others, and trusts that its caller samples persons' rows.
Sordino is asked with `bias=False`, because no peer measures bias. SmartNoise refuses medians, and is asked for means
with half of epsilon, because its account charges double. All are pure, but SmartNoise, which has a delta of 1e-6.

The error is the root mean squared error from the exact answer without bounds, over releases and groups: what bounding
takes away counts. Behind it is the noise alone, which tells tools apart where all give the giant away. A ratio above
1x says that the peer's is larger. Its standard error is about 110 % over the root of the number of releases (times
{len(GROUPS)} by group). *Italic*: fewer than {FEW} numbers, which say little; Tumult takes seconds for an answer.
**Bold**: Sordino's error is larger, by more than {CERTAIN} standard errors.
"""
WHAT_THE_LAWS_SAY = """
Some differences are smaller than chance here, but follow from the laws of the noise:

- Count, one row each: Sordino rounds Laplace noise to whole numbers (error 1.44), OpenDP's and Tumult's is geometric
  (1.36). With 10 rows of a person or more this is below 0.1 %. Rounded noise takes less of a Gaussian meter: for the
  same charge there its variance is 21 % smaller (docs/decisions/0005-counts-have-rounded-noise.md).
- Median: Sordino draws a 95 % interval with it, which peers do not state, and which costs 8 to 19 %. OpenDP's noisy
  maximum, if it is permute and flip, is a tenth better where few points of the grid are near: in the first and the last
  shape. In the last the law of the exponential mechanism, summed over the table, has an error of 0.0111, that of permute
  and flip on the points of the grid 0.0100; Sordino's 0.0133 is the first with an interval, OpenDP's 0.0083 has a
  standard error of 16 %. Permute and flip costs more of a Gaussian meter, as its loss has twice the range. Tumult draws
  by the same law as Sordino without its interval.
- Count and sum without groups: all draw the same noise, or nearly so.
"""
ROUNDED = (
    "Sordino rounds Laplace noise to whole numbers (variance 2.08), the peer's is geometric (1.84)"
)
INTERVAL = (
    "Sordino draws a 95 % interval with the median, from the same epsilon; the peer states none"
)
DIVIDED = (
    "the 10 rows left of the giant count evenly in its four groups, each cut to 10 first; "
    "the peer's in proportion: 738"
)
REASONS = {
    ("one row each", "count"): ROUNDED,
    ("one row each", "count by group"): ROUNDED,
    **{(shape.name, "median"): INTERVAL for shape in SHAPES},
    ("one giant", "count by group"): DIVIDED,
}


def section(rows: list[Row]) -> str:
    cells: Cells = {(row["tool"], row["shape"], row["case"]): row for row in rows if "rmse" in row}
    parts = [HOW_TO_READ.lstrip().replace("BOUNDS\n", _bounds())]
    parts += ["### Target\n", table(["target", "asked", "measured", "verdict"], [_target(cells)])]
    for shape in SHAPES:
        parts += [
            f"### {shape.name.capitalize()}\n",
            table(["", "Sordino", *PEERS], _lines(cells, shape)),
        ]
    parts += [
        "### Where a peer's error is below Sordino's\n",
        _above(cells),
        WHAT_THE_LAWS_SAY.lstrip(),
    ]
    return "\n".join([*parts, *_failed(rows)])


def _bounds() -> str:
    lines = (
        [s.name, str(s.max_rows), str(s.max_rows_per_group), str(s.max_groups)] for s in SHAPES
    )
    return table(["", "rows of a person", "rows in one group", "groups of a person"], lines)


def _target(cells: Cells) -> list[str]:
    pairs = [
        (cells["Sordino", shape, case], its)
        for (tool, shape, case), its in cells.items()
        if tool != "Sordino"
    ]
    larger = sum(_is_larger(ours, its) for ours, its in pairs)
    shown = f"{len(pairs) - larger} of {len(pairs)} cells, or within chance"
    return ["error at most each peer's", "every cell", shown, mark(not larger)]


def _lines(cells: Cells, shape: Shape) -> Iterator[list[str]]:
    for case in CASES:
        ours = cells["Sordino", shape.name, case]
        line = [case, f"{short(ours['rmse'])} ({short(ours['noise'])})"]
        for tool in PEERS:
            its = cells.get((tool, shape.name, case))
            if its is None:
                line.append("")
                continue
            ratio = f"{times(its['rmse'] / ours['rmse'])} ({times(its['noise'] / ours['noise'])})"
            few = its["releases"] * its["numbers"] < FEW
            line.append(f"**{ratio}**" if _is_larger(ours, its) else f"*{ratio}*" if few else ratio)
        yield line
    tools = ("Sordino", *PEERS)
    asked = {
        tool: [cells[key]["releases"] for key in cells if key[:2] == (tool, shape.name)]
        for tool in tools
    }
    yield ["releases", *(_span(numbers) for numbers in asked.values())]


def _span(numbers: list[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _is_larger(ours: Row, its: Row) -> bool:
    """Whether Sordino's error is larger by more than chance; few lucky releases count as noisy as Sordino's."""
    chance = hypot(_chance(ours, ours["noise"]), _chance(its, max(its["noise"], ours["noise"])))
    return bool(ours["rmse"] - its["rmse"] > CERTAIN * chance)


def _chance(row: Row, noise: float) -> float:
    """The standard error of a root mean square of Laplace noise (fourth moment 6) around a bias."""
    squares = noise * sqrt(
        (4 * row["bias"] ** 2 + 5 * noise**2) / (row["releases"] * row["numbers"])
    )
    return squares / (2 * hypot(row["bias"], noise))


def _above(cells: Cells) -> str:
    lines = []
    for (tool, shape, case), its in cells.items():
        ours = cells["Sordino", shape, case]
        if tool != "Sordino" and _is_larger(ours, its):
            reason = REASONS.get((shape, case), "not understood")
            lines.append(
                [f"{shape}, {case}: {tool}", short(ours["rmse"]), short(its["rmse"]), reason]
            )
    return table(["", "Sordino", "it", "why"], lines) if lines else "Nowhere.\n"


def _failed(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        if "error" in row:
            yield f"**{row['tool']}, {row.get('shape', '')}, {row.get('case', 'the script')}: {row['error']}**\n"


def chart(rows: list[Row]) -> alt.FacetChart:
    cells: Cells = {(row["tool"], row["shape"], row["case"]): row for row in rows if "rmse" in row}
    shown = [
        {
            "tool": tool,
            "case": case,
            "shape": shape,
            "ratio": row["rmse"] / cells["Sordino", shape, case]["rmse"],
        }
        for (tool, shape, case), row in cells.items()
        if row["releases"] * row["numbers"] >= FEW
    ]
    points = alt.Chart(alt.Data(values=shown)).mark_point(filled=True, size=60)
    drawn = points.encode(
        x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="error over Sordino's"),
        y=alt.Y("case:N", title=None, sort=list(CASES)),
        color=alt.Color("tool:N", title=None),
        shape=alt.Shape("tool:N", title=None),
    )
    order = [shape.name for shape in SHAPES]
    return drawn.properties(width=300).facet(column=alt.Column("shape:N", title=None, sort=order))
