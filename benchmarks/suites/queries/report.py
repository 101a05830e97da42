"""The queries suite as Markdown: how to read it, verdicts on the targets, tables."""

from collections.abc import Iterator

from benchmarks.markdown import duration, mark, short, table, times
from benchmarks.suites.queries.chart import chart
from benchmarks.suites.queries.rows import (
    ENOUGH,
    HAND,
    Row,
    at_guarantee,
    excess,
    failures,
    label,
    of_part,
    one,
)
from benchmarks.suites.queries.settings import CASES, DELTA, ERROR_ROWS, SMALL, SPEED_ROWS

__all__ = ["TITLE", "chart", "section"]

TITLE = "Queries: time and error of an answer about persons"
RATIOS = {"count": 1.3, "sum": 1.3, "group-by count": 2.0}
FIXED_MILLISECONDS = 25

HOW_TO_READ = f"""
**How to read this.** A table of persons with 1 to 10 rows each: user_id, one of 100 cities (Zipf), age, amount in
[0, 1000]. A person is protected with all rows, neighbours differ by one person added or removed; at most 10 rows of a
person count, and by city 10 rows in each of 3 cities. Everything is asked at ε = 1, δ = 1e-06; whoever answers with pure
noise keeps that, too. Tables are Parquet files; 2 threads.

- **DuckDB by hand** has no noise: two-level SQL that bounds persons (count, sum, mean), `count(DISTINCT user_id)` by city,
  and an unbounded median. It is measured turn by turn with Sordino in one process.
- **OpenDP** reads the file lazily; it keeps a person's first 3 cities by name, because a sample of them, its default,
  fails. A mean is its noisy sum over its noisy count.
- **PipelineDP** gets Python tuples, already in memory. **SmartNoise** has copied the table into SQLite beforehand, and
  counts 10 rows of a person in all, also by city; where its own account says that a query spent more than ε = 1, it is
  asked again with less. **Qrlew** rewrites SQL, which DuckDB runs, and clips norms of persons' sums. **Tumult** runs on
  Spark with two cores.
- **diffprivlib** and **PyDP** have no tables: their errors trust that the bounds hold. diffprivlib protects rows, so a
  person gets a tenth of ε.
- A count that is cut off at the true number of rows, which the tool was told, is *not compared*: that hides half its noise.

**Error** is the root of the mean square over the releases, at {ERROR_ROWS:,} rows, from the exact answer without any
bounds; by city it is also a mean over cities. ± is its standard error. *Bias* is the mean of released less exact: by city it
tells what bounding to 3 cities takes away, as no person has more than 10 rows. **Bold** is the
smallest of those with {ENOUGH} releases or more.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        *(part for size in SPEED_ROWS for part in _speed(rows, size)),
        "### Where Sordino's time goes\n",
        "Steps measured alone: *plan* is parsing, typing and pricing; *engine* is DuckDB; *release* adds noise.\n",
        _steps(rows),
        "### What the first question waits for\n",
        table(
            [f"{SMALL} rows", "time"],
            ([row["case"], duration(row["value"])] for row in of_part(rows, "first")),
        ),
        "### Before a peer can answer\n",
        _loads(rows),
        *(part for delta in (0.0, DELTA) for part in _errors(rows, delta)),
        "### Where a peer's error is below Sordino's\n",
        "*By chance* if the difference is within two standard errors.\n",
        _above(rows),
        *_failed(rows),
    )
    return "\n".join(parts)


def targets(rows: list[Row]) -> Iterator[list[str]]:
    for size in SPEED_ROWS:
        for case, most in RATIOS.items():
            ratio = beside_hand(rows, case, size)
            shown, met = ("not measured", False) if ratio is None else (times(ratio), ratio <= most)
            yield [
                f"{case}, {size:,} rows, over DuckDB by hand",
                f"≤ {most:g}x",
                shown,
                mark(met),
            ]
    fixed = [1e3 * row["value"] for row in of_part(rows, "fixed")]
    slowest = f"{min(fixed):.1f} to {max(fixed):.1f} ms" if fixed else "not measured"
    yield [
        f"a query on {SMALL} rows",
        f"< {FIXED_MILLISECONDS} ms",
        slowest,
        mark(bool(fixed) and max(fixed) < FIXED_MILLISECONDS),
    ]
    for delta in (0.0, DELTA):
        for case in CASES:
            compared = at_guarantee(rows, case, delta)
            ours = _ours(compared)
            others = [row for row in compared if row["tool"] != "Sordino"]
            name = f"error of {case} at {_guarantee(delta)}"
            if ours is None or not others:
                yield [name, "≤ every peer's", "not measured", mark(False)]
                continue
            best = min(others, key=lambda row: float(row["value"]))
            beyond = [found for other in others if (found := excess(ours, other)) and found[1]]
            shown = f"{short(ours['value'])}; best peer {short(best['value'])} ({label(best)})"
            chance = " within chance" if ours["value"] > best["value"] and not beyond else ""
            yield [name, "≤ every peer's", shown, mark(not beyond) + chance]


def beside_hand(rows: list[Row], case: str, size: int) -> float | None:
    """Sordino's time over that of SQL by hand."""
    ours, hand = (one(rows, "speed", tool=tool, case=case, rows=size) for tool in ("Sordino", HAND))
    return ours["value"] / hand["value"] if ours and hand else None


def _guarantee(delta: float) -> str:
    return f"ε = 1, δ = {delta:g}" if delta else "ε = 1, pure"


def _ours(rows: list[Row]) -> Row | None:
    """Sordino's row as a session answers, not the variant that SQL does not offer."""
    return next(
        (
            row
            for row in rows
            if row["tool"] == "Sordino" and "not in SQL" not in row.get("how", "")
        ),
        None,
    )


def _speed(rows: list[Row], size: int) -> Iterator[str]:
    chosen = of_part(rows, "speed", rows=size)
    yield f"### Time at {size:,} rows, and its ratio to Sordino's\n"
    lines = []
    for tool in dict.fromkeys(row["tool"] for row in chosen):
        cells = []
        for case in CASES:
            row, ours = (one(chosen, "speed", tool=name, case=case) for name in (tool, "Sordino"))
            ratio = (
                f", {times(row['value'] / ours['value'])}"
                if row and ours and tool != "Sordino"
                else ""
            )
            fewer = f" ({row['runs']})" if row and row["runs"] < 5 else ""
            cells.append(duration(row["value"]) + fewer + ratio if row else "")
        lines.append([f"{tool} by hand" if tool == HAND else tool, *cells])
    yield table(["", *CASES], lines) + "\n(n): fewer than five runs.\n"


def _steps(rows: list[Row]) -> str:
    lines = []
    for row in of_part(rows, "step"):
        cells = (
            f"{duration(row[step])}, {row[step] / row['value']:.0%}"
            for step in ("plan", "engine", "release")
        )
        lines.append([f"{row['case']}, {row['rows']:,} rows", duration(row["value"]), *cells])
    return table(["", "all", "plan", "engine", "release"], lines)


def _loads(rows: list[Row]) -> str:
    found = of_part(rows, "load")
    return table(
        ["", "time"],
        ([f"{r['tool']}: {r['case']}, {r['rows']:,} rows", duration(r["value"])] for r in found),
    )


def _errors(rows: list[Row], delta: float) -> Iterator[str]:
    yield f"### Error at {_guarantee(delta)}\n"
    for case in CASES:
        found = at_guarantee(rows, case, delta, fair=False)
        fair = (row["value"] for row in found if "unfair" not in row and row["releases"] >= ENOUGH)
        best = min(fair, default=None)
        lines = []
        for row in found:
            value = f"{row['value']:.4g}"
            shown = f"**{value}**" if row["value"] == best else value
            name = f"{label(row)}: {row['unfair']}, not compared" if "unfair" in row else label(row)
            uncertain = f"{row['uncertain']:.2g}" if row.get("uncertain") else ""
            lines.append([name, shown, uncertain, f"{row['bias']:.3g}", str(row["releases"])])
        yield table([case, "error", "±", "bias", "releases"], lines)


def _above(rows: list[Row]) -> str:
    lines = []
    for delta in (0.0, DELTA):
        for case in CASES:
            found = at_guarantee(rows, case, delta)
            ours = _ours(found)
            for other in found:
                over = excess(ours, other) if ours and other["tool"] != "Sordino" else None
                if ours and over:
                    verdict = "**above**" if over[1] else "by chance"
                    cells = [
                        f"{ours['value']:.4g}",
                        f"{other['value']:.4g}",
                        times(over[0]),
                        verdict,
                    ]
                    lines.append([f"{case}, {_guarantee(delta)}: {label(other)}", *cells])
    return table(["", "Sordino", "it", "S ÷ it", ""], lines) if lines else "Nowhere.\n"


def _failed(rows: list[Row]) -> Iterator[str]:
    lines = []
    for part in ("speed", "error", "step", "fixed"):
        for row in failures(rows, part):
            where = [
                row["tool"],
                part,
                row.get("case", "the script"),
                f"{row['rows']:,} rows" if "rows" in row else "",
            ]
            line = [", ".join(word for word in where if word), row["error"]]
            if "part" in row or part == "speed":
                lines.append(line)
    if lines:
        yield "### No figure\n"
        yield table(["", "why"], lines)
