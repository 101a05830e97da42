"""The bounds suite as Markdown and as a picture."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import mark, table, times
from benchmarks.suites.bounds.settings import EPSILON, SHAPES, SIZES

Row = dict[str, Any]
TITLE = "Bounds: sums and means of numbers without declared limits"
PEERS = ("PyDP", "OpenDP", "Tumult")

HOW_TO_READ = f"""
**How to read this.** Nobody declared limits; each row is a person, and epsilon is {EPSILON:g} for bounds and answer
together. Sordino is asked with `bounds="private"`. PyDP divides epsilon by itself, Tumult gets half of it for
`get_bounds`. OpenDP finds no bounds by itself: it is given the recipe of two private quantiles, at levels that were
tried out for it. The error is the root mean squared error over all runs, bias and noise together, with the median of
the absolute error behind it. A ratio above 1x says that the peer's is larger. Of few runs one that went astray decides
the first; Tumult takes seconds for an answer and has few.
"""
WHY_LESS = """
### Why a peer can be below

- Tumult and PyDP find powers of two, and spend half of epsilon on them: Laplace noise of a sum has an error of √8 times
  the bound there. Sordino's bounds have three digits and cost 30 %: √2/0.7, twice the bound.
- Numbers on both sides of zero forgive clipping, as what is cut off at the two ends cancels. The power 2048 is two
  standard deviations of the normal ones and cuts 4 % of them off; it costs noise of 5,800 and a bias of 3,100 in this
  sample of 1,000. PyDP found it there, and 4096 (11,600) among 10,000. Sordino does not know that errors will cancel. It
  looks for the bound beyond which one or two rows lie, which is best where they do not, and has about 8,000 in both.
- Six releases of Tumult are few. Where its bounds are 128 its law has an error of 362, above Sordino's: six such
  releases have 239 or less one time in four.
"""


def section(rows: list[Row]) -> str:
    known = {
        (row["tool"], row["case"], row["shape"], row["rows"]): row for row in rows if "rmse" in row
    }
    parts = [
        HOW_TO_READ.lstrip(),
        "### Target\n",
        table(["target", "asked", "measured", "verdict"], _targets(known)),
    ]
    for case in ("sum", "mean"):
        parts += [
            f"### {case.capitalize()}\n",
            table(["numbers", "rows", "Sordino", *PEERS], _lines(known, case)),
        ]
    parts.append(WHY_LESS.lstrip())
    parts += [f"**{row['tool']}, {row.get('case', '')} of {row.get('shape', '')}: {row['error']}**\n"
              for row in rows if "error" in row]  # fmt: skip
    return "\n".join(parts)


def _cells() -> Iterator[tuple[str, int]]:
    for shape in SHAPES:
        for size in SIZES:
            yield shape, size


def _targets(known: dict[Any, Row]) -> Iterator[list[str]]:
    for figure in ("rmse", "median"):
        ratios = []
        for (tool, *cell), row in known.items():
            ours = known.get(("Sordino", *cell))
            if tool != "Sordino" and ours is not None:
                ratios.append((row[figure] / ours[figure], tool, cell))
        if ratios:
            worst, tool, cell = min(ratios)
            least = sum(ratio >= 1 for ratio, *_ in ratios)
            shown = f"{least} of {len(ratios)} cells; worst {times(worst)} ({tool}, {cell[0]}, {cell[1]}, {cell[2]:,} rows)"
            yield [f"error ({figure}) at most each peer's", "every cell", shown, mark(worst >= 1)]


def _lines(known: dict[Any, Row], case: str) -> Iterator[list[str]]:
    for shape, size in _cells():
        ours = known.get(("Sordino", case, shape, size))
        if ours is None:
            continue
        line = [shape, f"{size:,}", f"{ours['rmse']:.3g} ({ours['median']:.3g})"]
        for tool in PEERS:
            row = known.get((tool, case, shape, size))
            ratio = (
                ""
                if row is None
                else f"{times(row['rmse'] / ours['rmse'])} ({times(row['median'] / ours['median'])})"
            )
            line.append(ratio)
        yield line


def chart(rows: list[Row]) -> alt.FacetChart:
    shown = [{"tool": row["tool"], "case": row["case"], "error": max(row["rmse"], 1e-6),
              "cell": f"{row['shape']}, {row['rows']:,}"} for row in rows if "rmse" in row]  # fmt: skip
    points = alt.Chart(alt.Data(values=shown)).mark_point(filled=True, size=60)
    drawn = points.encode(
        x=alt.X("error:Q", scale=alt.Scale(type="log"), title="root mean squared error"),
        y=alt.Y("cell:N", title=None),
        color=alt.Color("tool:N", title=None),
        shape=alt.Shape("tool:N", title=None),
    )
    return (
        drawn.properties(width=420)
        .facet(column=alt.Column("case:N", title=None))
        .resolve_scale(x="independent")
    )
