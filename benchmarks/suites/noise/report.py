"""The noise suite as Markdown: how to read it, verdicts on the targets, tables."""

from collections.abc import Callable, Iterator
from operator import ge, le, lt
from typing import Any

from benchmarks.markdown import duration, mark, short, table, times
from benchmarks.suites.noise.chart import chart
from benchmarks.suites.noise.rows import Row, failures, label, of_part, sordino
from benchmarks.suites.noise.settings import GUARANTEES, SCALES

__all__ = ["TITLE", "chart", "section"]

TITLE = "Noise: speed, size and cost of a release"

HOW_TO_READ = """
**How to read this.** *Integer* and *float* say what is released; Sordino's floats lie on a lattice of step 2^-10. Floats are
compared with floats and integers with integers. NumPy is no peer but a yardstick: floating-point draws from a predictable
generator, what noise costs when nobody defends it, measured turn by turn with Sordino's integers in one process. OpenDP is
given Python lists. diffprivlib and PyDP answer one number per call, so their vectors are loops. diffprivlib's integer
Gaussian takes only a guarantee, so its scales are 0.95 and 998. An empty cell was not measured.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        "The worst figure over mechanisms and scales is the one that counts.\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        "### Vectors: released numbers per second\n",
        "*S ÷ it* is Sordino's rate over the other's: above 1x Sordino is faster.\n",
        *(_vectors(rows, case) for case in ("Laplace", "Gaussian")),
        "### One release\n",
        *(_durations(rows, "scalar", case, 1e-6) for case in ("Laplace", "Gaussian")),
        "### Calibration: from a guarantee to a mechanism\n",
        "Laplace at ε = 0.5, Gaussian at ε = 1 and δ = 1e-06; sensitivity 1.\n",
        *(_durations(rows, "calibrate", case, 1e-6) for case in ("Laplace", "Gaussian")),
        "### Gaussian noise at the same guarantee\n",
        "The standard deviation for sensitivity 1, and its ratio to Sordino's: above 1x the other adds more noise.\n"
        "On integers a discrete Gaussian needs a little less than a rounded one when ε is large.\n",
        _deviations(rows),
        "### Memory\n",
        "How far the peak rises during one release of ten million integers at scale 1000, the output included.\n",
        _memory(rows),
        "### Import\n",
        "A fresh interpreter less a bare one. *First release* imports and releases once with each mechanism.\n",
        _imports(rows),
    )
    return "\n".join(parts)


def targets(rows: list[Row]) -> Iterator[list[str]]:
    def rates(tool: str, **wanted: object) -> list[float]:
        others = of_part(rows, "vector", tool=tool, **wanted)
        return sorted(ours / row["value"] for row in others if (ours := sordino(rows, row)))

    def figures(part: str, **wanted: object) -> list[float]:
        return sorted(
            (row["value"] for row in of_part(rows, part, tool="Sordino", **wanted)), reverse=True
        )

    asked: tuple[
        tuple[str, list[float], str, Callable[[Any, Any], bool], float, Callable[[float], str]], ...
    ] = (
        (
            "Laplace vector beside NumPy's `laplace`",
            rates("NumPy", case="Laplace"),
            "≥ 0.5x",
            ge,
            0.5,
            times,
        ),
        (
            "Gaussian vector beside NumPy's `normal`",
            rates("NumPy", case="Gaussian"),
            "≥ 0.35x",
            ge,
            0.35,
            times,
        ),
        (
            "vector of integers beside OpenDP's",
            rates("OpenDP", values="integer"),
            "≥ 100x",
            ge,
            100,
            times,
        ),
        (
            "vector of floats beside OpenDP's",
            rates("OpenDP", values="float"),
            "≥ 100x",
            ge,
            100,
            times,
        ),
        ("one release", figures("scalar"), "< 30 µs", lt, 30, lambda value: duration(value / 1e6)),
        ("peak memory over the output's size", figures("memory"), "≤ 6x", le, 6, times),
        (
            "`import sordino`",
            figures("import", case="import"),
            "< 120 ms",
            lt,
            120,
            lambda value: duration(value / 1e3),
        ),
    )
    for name, worst_first, text, compare, bound, show in asked:
        worst = worst_first[0] if worst_first else None
        measured = "not measured" if worst is None else show(worst)
        yield [name, text, measured, mark(worst is not None and compare(worst, bound))]
    looked = next((row for row in rows if row.get("part") == "loaded" and "found" in row), None)
    heavy = "not measured" if looked is None else ", ".join(looked["found"]) or "none"
    yield ["heavy modules loaded after a first release", "none", heavy, mark(heavy == "none")]


def _vectors(rows: list[Row], case: str) -> str:
    chosen = of_part(rows, "vector", case=case)
    header = [
        case,
        *(f"scale {scale:,}" for scale in SCALES),
        *(f"S ÷ it, {scale:,}" for scale in SCALES),
    ]
    lines = []
    for name in dict.fromkeys(map(label, chosen)):
        at = {row["scale"]: row for row in chosen if label(row) == name}
        rates = [short(at[scale]["value"]) if scale in at else "" for scale in SCALES]
        ours = [sordino(rows, at[scale]) if scale in at else None for scale in SCALES]
        ratios = [
            times(our / at[s]["value"]) if our else "" for s, our in zip(SCALES, ours, strict=True)
        ]
        lines.append([name, *rates, *ratios])
    return table(header, lines + _no_figure(failures(rows, "vector", case=case), len(header)))


def _durations(rows: list[Row], part: str, case: str, unit: float) -> str:
    lines = []
    for row in sorted(of_part(rows, part, case=case), key=lambda row: float(row["value"])):
        ours = sordino(rows, row)
        lines.append(
            [label(row), duration(row["value"] * unit), times(row["value"] / ours) if ours else ""]
        )
    return table(
        [case, "time", "it ÷ Sordino"], lines + _no_figure(failures(rows, part, case=case), 3)
    )


def _deviations(rows: list[Row]) -> str:
    chosen = of_part(rows, "sigma")
    lines = []
    for name in dict.fromkeys(map(label, chosen)):
        at = {(row["epsilon"], row["delta"]): row for row in chosen if label(row) == name}
        cells = []
        for guarantee in GUARANTEES:
            row = at.get(guarantee)
            ours = sordino(rows, row) if row else None
            cells.append(
                f"{row['value']:.4f}" + (f" ({row['value'] / ours:.3f}x)" if ours else "")
                if row
                else ""
            )
        lines.append([name, *cells])
    header = ["", *(f"ε = {epsilon:g}, δ = {delta:g}" for epsilon, delta in GUARANTEES)]
    return table(header, lines + _no_figure(failures(rows, "sigma"), len(header)))


def _memory(rows: list[Row]) -> str:
    lines = [
        [row["case"], f"{row['bytes'] / 2**20:.0f} MiB", times(row["value"])]
        for row in of_part(rows, "memory")
    ]
    failed = [row for row in failures(rows, "memory") if row["tool"] == "Sordino"]
    return table(["", "peak", "over the output's size"], lines + _no_figure(failed, 3))


def _imports(rows: list[Row]) -> str:
    chosen = of_part(rows, "import")
    cells: dict[str, dict[str, str]] = {label(row): {} for row in chosen}
    for row in sorted(chosen, key=lambda row: float(row["value"])):
        ours = sordino(rows, row)
        ratio = f" ({times(row['value'] / ours)})" if ours else ""
        cells[label(row)][row["case"]] = duration(row["value"] / 1e3) + ratio
    lines = [
        [name, cell.get("import", ""), cell.get("first release", "")]
        for name, cell in cells.items()
    ]
    return table(
        ["", "import (it ÷ Sordino)", "first release"],
        lines + _no_figure(failures(rows, "import"), 3),
    )


def _no_figure(failed: list[Row], width: int) -> list[list[str]]:
    """Lines for what failed, so that nothing is left out in silence."""
    lines = []
    for row in failed:
        where = [f"{key} {row[key]:g}" for key in ("scale", "epsilon", "delta") if key in row]
        lines.append(
            [", ".join([label(row), *where]), f"no figure: {row['error']}", *[""] * (width - 2)]
        )
    return lines
