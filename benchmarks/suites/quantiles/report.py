"""The quantiles suite as Markdown and as a picture."""

from collections.abc import Iterator
from statistics import median
from typing import Any

import altair as alt
from benchmarks.markdown import mark, table
from benchmarks.suites.quantiles.settings import AT_ONCE, MOST, SHAPES, SIZES, TRIALS
from scipy.special import betaincinv

Row = dict[str, Any]
TITLE = "Quantiles: how wide intervals are beside the real errors"
CERTAIN = 0.99
VERDICTS = ("impossible", "by chance", "left")

HOW_TO_READ = f"""
**How to read this.** Of each table the levels 0.05, 0.25, 0.5, 0.75, 0.9 and 0.99 are asked, one by one and all six at
once, with epsilon 0.1, 1 and 3, for persons of one row and of ten; {TRIALS} answers to each. A *cell* is one level of one
table, epsilon and kind of person. Its *error* is the 95 % quantile, over the answers, of the distance between the
estimate and the nearest true quantile of that very table; its *ratio* is the mean of the printed half-widths over that
error. Where the error is less than one step of the grid there is no ratio. An interval holds if it holds every true
quantile. Shapes lie on a grid of 100,001 points, years on one of 111.
"""
ABOVE = """
**Impossible** are cells in which no interval that is as private, and honest on all tables, has a mean half-width within
3 times the error: Theorem 9 of `src/sordino/query/aggregates/quantiles.md`, computed from the very table by
`benchmarks/suites/quantiles/bounds.py`. **By chance** are those that would be within 3 if the true 95 % error were the
largest but one of the 100 that were seen; in one of 27 cells it is larger still. That does not say that they are within
3, only that 100 answers do not show them above. **Left** is what remains, *coarse* those of them with an error of one
to three steps of the grid, where a step more or less decides.
"""
WHY_MORE = """
### Why not 3 everywhere

An interval must hold on every table, so it reaches at least some persons far to both sides, whatever the data are; the
95 % error is that of one table, and of ranks about a third as far. Where values grow faster than ranks, the ratio is
above 3:

- at 0.9 and 0.99 of small tables, where the interval reaches beyond the last rows and the estimate does not;
- around jumps: humps, tens, powers of ten, the edge of many zeros. Of six levels one may be an exception, which makes
  all intervals almost twice as wide; where two levels are beside jumps, none helps;
- where a table happens to have its rows close together at the level and far apart beside it. Of two tables of one shape
  one then has 2, the other 5;
- where many neighbouring values are all quantiles: an estimate among them has no error, and the interval holds them all.

`quantiles.md` has what was tried to narrow them, and shows that a proof about one table by itself cannot call many more
cells impossible.
"""


def section(rows: list[Row]) -> str:
    found = [row for row in rows if "held" in row]
    parts = [
        HOW_TO_READ.lstrip(),
        "### Target\n",
        table(["target", "asked", "measured", "verdict"], _targets(found)),
        f"### Cells above {MOST}\n",
        table(["asked", "above", *VERDICTS, "coarse"], _above(found)),
        ABOVE.lstrip(),
    ]
    for case in AT_ONCE:
        own = [row for row in found if row["part"] == case]
        parts += [
            f"### {case.capitalize()}: median ratio, cells above 3, widest\n",
            table(["numbers", *(f"{size:,} rows" for size in SIZES)], _by_size(own)),
            f"### {case.capitalize()}, by level\n",
            table(["numbers", *_levels(own)], _by_level(own)),
        ]
    parts.append(WHY_MORE.lstrip())
    parts += [f"**{row['error']}**\n" for row in rows if "error" in row]
    return "\n".join(parts)


def _levels(rows: list[Row]) -> list[str]:
    return [f"{level:g}" for level in sorted({row["level"] for row in rows})]


def _targets(rows: list[Row]) -> Iterator[list[str]]:
    for case in AT_ONCE:
        own = [row for row in rows if row["part"] == case]
        draws = sum(row["cells"] for row in own) * TRIALS
        held = sum(row["held"] for row in own)
        if not draws:
            continue
        lower = float(betaincinv(held, draws - held + 1, 1 - CERTAIN))
        least = min(row["least"] for row in own)
        shown = f"{held / draws:.2%} of {draws:,}, {CERTAIN:.0%} sure of {lower:.2%}; worst cell {least} of {TRIALS}"
        yield [f"coverage, {case}", "≥ 95 %", shown, mark(lower >= 0.95 and least >= 84)]
        inexact, above = (sum(row[key] for row in own) for key in ("inexact", "above"))
        widest = max(row["widest"] or 0 for row in own)
        shown = f"{inexact - above:,} of {inexact:,} cells; widest {widest:.3g}"
        yield [f"half-width over error, {case}", "≤ 3 in every cell", shown, mark(above == 0)]


def _above(rows: list[Row]) -> Iterator[list[str]]:
    for case in AT_ONCE:
        own = [row for row in rows if row["part"] == case]
        names = ("above", "impossible", "chance", "left", "grain")
        yield [case, *(f"{sum(row[name] for row in own):,}" for name in names)]


def _text(rows: list[Row]) -> str:
    inexact = [row for row in rows if row["inexact"]]
    if not inexact:
        return "exact"
    above, cells = (sum(row[key] for row in inexact) for key in ("above", "inexact"))
    middle = median(row["middle"] for row in inexact)
    return f"{middle:.2g}, {above} of {cells}, {max(row['widest'] for row in inexact):.2g}"


def _by_size(rows: list[Row]) -> Iterator[list[str]]:
    for shape in SHAPES:
        own = [row for row in rows if row["case"] == shape]
        yield [shape, *(_text([row for row in own if row["rows"] == size]) for size in SIZES)]


def _by_level(rows: list[Row]) -> Iterator[list[str]]:
    for shape in SHAPES:
        own = [row for row in rows if row["case"] == shape]
        levels = sorted({row["level"] for row in rows})
        yield [shape, *(_text([row for row in own if row["level"] == level]) for level in levels)]


def chart(rows: list[Row]) -> alt.Chart:
    """The median ratio of each shape against the size of the table."""
    shown = [
        {key: row[key] for key in ("part", "case", "rows", "middle")}
        for row in rows
        if row.get("middle")
    ]
    return (
        alt.Chart(alt.Data(values=shown), width=330, height=260)
        .mark_line(point=True)
        .encode(
            x=alt.X("rows:Q", scale=alt.Scale(type="log"), title="rows"),
            y=alt.Y(
                "median(middle):Q", scale=alt.Scale(type="log"), title="half-width over 95 % error"
            ),
            color=alt.Color("case:N", title="numbers"),
            column=alt.Column("part:N", title=None),
        )
    )
