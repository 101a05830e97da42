"""The accounting suite as Markdown: how to read it, verdicts on the targets, tables."""

from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any

from benchmarks.markdown import duration, mark, table, times
from benchmarks.suites.accounting.chart import chart
from benchmarks.suites.accounting.rows import TOOLS, Row, excess, failures, of_part, one, speed
from benchmarks.suites.accounting.settings import DELTAS, PLANS, TRAINING

__all__ = ["TITLE", "chart", "section"]

TITLE = "Accounting: the epsilon of a plan, and how long it takes to find"
FASTER = 5
PLD = "dp-accounting PLD"

HOW_TO_READ = """
**How to read this.** Laplace and Gaussian have scale 10 at sensitivity 1; *sampled* is a Gaussian of scale 1 on Poisson
samples of rate 1/100, neighbours by adding or removing; *different* are 50 Laplace of scales 20 to 69 and 50 Gaussian of
scales 15 to 64. Sordino's time covers both certified ends, all objects built anew. dp-accounting's PLD accountant uses the
grid it comes with, 1e-4; prv-accountant may err by 0.01 in ε and δ/1000 in δ, and its figure is its upper end; OpenDP adds
up zCDP.

The **reference** is an interval that holds the true ε: for Gaussians the closed form; elsewhere *certified* by Sordino's
own accountant at a hundredth (*different* and *sampled*: a tenth) of the width it usually asks for, so it is no independent
witness: the peers are. Percentages are relative to its lower end; a bound **below** that end promises too much.

Times are medians of 5 runs after one to warm up; (n) tells of fewer, because a run was slow. *Processor* time leaves out
what else the machine was doing.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        "The worst figure over all cases and both δ is the one that counts.\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        *(part for delta in DELTAS for part in _tables(rows, delta)),
        "### Beside dp-accounting's PLD accountant\n",
        "How many times Sordino's time it takes.\n",
        _beside(rows),
        "### Bounds and estimates below the certified lower end\n",
        _below(rows),
        "### Training: small rates, many steps, small deltas\n",
        "Sampled Gaussians; both certified ends beside the upper end of dp-accounting's PLD accountant, which says infinite"
        " where its grid ends.\n",
        _training(rows),
        "### Ten thousand different losses\n",
        _large(rows),
    )
    return "\n".join(parts)


def targets(rows: list[Row]) -> Iterator[list[str]]:
    every = len(PLANS) * len(DELTAS)
    ours = [
        away
        for row in of_part(rows, "epsilon", tool="Sordino")
        if (away := excess(rows, row)) is not None
    ]
    slower = {
        clock: [
            ratio
            for row in of_part(rows, "epsilon", tool=PLD)
            if (ratio := speed(rows, row, clock)) is not None
        ]
        for clock in ("value", "processor")
    }
    pairs = [(ours, peer) for ours, peer in _training_pairs(rows) if ours and peer]
    widths = [ours["epsilon"] / ours["lower"] - 1 for ours, _ in pairs]
    ahead = [peer["processor"] / ours["processor"] for ours, peer in pairs]
    large = of_part(rows, "large", tool="Sordino")
    seconds, gigabytes = [row["value"] for row in large], [row["bytes"] / 1e9 for row in large]
    asked: tuple[
        tuple[
            str,
            list[float],
            int,
            Callable[[list[float]], float],
            str,
            Callable[[Any, Any], bool],
            float,
            Any,
        ],
        ...,
    ] = (
        ("upper end above the reference", ours, every, max, "≤ 0.1 %", le, 0.001, percent),
        ("upper end never below the reference", ours, every, min, "≥ 0", ge, 0, percent),
        (f"time of {PLD} over Sordino's", slower["value"], every, min, "≥ 5x", ge, FASTER, times),
        ("the same in processor time", slower["processor"], every, min, "≥ 5x", ge, FASTER, times),
        ("training: certified width", widths, len(TRAINING), max, "≤ 0.1 %", le, 0.001, percent),
        (
            f"training: processor time of {PLD} over Sordino's",
            ahead,
            len(TRAINING),
            min,
            "> 1x",
            gt,
            1,
            times,
        ),
        ("10,000 different losses, time", seconds, 1, max, "< 30 s", lt, 30, duration),
        (
            "10,000 different losses, peak memory",
            gigabytes,
            1,
            max,
            "< 2 GB",
            lt,
            2,
            lambda value: f"{value:.2f} GB",
        ),
    )
    for name, found, count, worst, text, compare, bound, show in asked:
        figure = show(worst(found)) if found else "not measured"
        met = sum(bool(compare(value, bound)) for value in found)
        tally = f", {met} of {count} within" if count > 1 else ""
        yield [name, text, figure + tally, mark(met == count)]
    unsafe = sorted(
        {
            row["tool"]
            for row, end, _ in _too_low(rows)
            if end == "epsilon" and row["tool"] != "Sordino"
        }
    )
    yield ["peers whose bound lies below the reference", "", ", ".join(unsafe) or "none", ""]


def percent(value: float) -> str:
    return (
        "0 %"
        if abs(value) < 1e-11
        else f"{100 * value:+.0f} %"
        if abs(value) >= 0.1
        else f"{100 * value:+.2g} %"
    )


def _tables(rows: list[Row], delta: float) -> Iterator[str]:
    epsilons, durations = [], []
    for plan in PLANS:
        reference = one(rows, "reference", case=plan.name, delta=delta)
        kind = (
            "closed form"
            if all(part.noise == "Gaussian" and part.rate == 1 for part in plan.parts)
            else "certified"
        )
        known = (
            f"{reference['lower']:.6f} to {reference['value']:.6f}, {kind}"
            if reference
            else "no figure"
        )
        found = [one(rows, "epsilon", tool=tool, case=plan.name, delta=delta) for tool in TOOLS]
        epsilons.append(
            [plan.name, known, *(_epsilon(rows, row) if row else "no figure" for row in found)]
        )
        durations.append(
            [plan.name, *(_duration(rows, row) if row else "no figure" for row in found)]
        )
    yield f"### δ = {delta:g}: ε\n"
    yield table(["", "reference", *TOOLS], epsilons)
    yield f"### δ = {delta:g}: time, and its ratio to Sordino's\n"
    yield table(["", *TOOLS], durations)
    failed = [row for row in failures(rows, delta=delta) if row.get("part") != "large"]
    if failed:
        yield "No figure:\n"
        yield table(
            ["", "why"],
            ([f"{row['tool']}, {row.get('case', 'all')}", row["error"]] for row in failed),
        )


def _epsilon(rows: list[Row], row: Row) -> str:
    away = excess(rows, row)
    if away is None:
        return f"{row['epsilon']:.4f}"
    return f"{row['epsilon']:.4f} ({percent(away)})" + (" **below**" if away < 0 else "")


def _duration(rows: list[Row], row: Row) -> str:
    ratio = speed(rows, row, "value")
    fewer = f" ({row['runs']})" if row["runs"] < 5 else ""
    return (
        duration(row["value"])
        + fewer
        + (f", {times(ratio)}" if ratio and row["tool"] != "Sordino" else "")
    )


def _beside(rows: list[Row]) -> str:
    lines = []
    for row in of_part(rows, "epsilon", tool=PLD):
        wall, processor = speed(rows, row, "value"), speed(rows, row, "processor")
        if wall is not None and processor is not None:
            verdict = mark(min(wall, processor) >= FASTER)
            lines.append(
                [f"{row['case']}, δ = {row['delta']:g}", times(wall), times(processor), verdict]
            )
    return table(["", "time", "processor time", f"at least {FASTER}x by both"], lines)


def _too_low(rows: list[Row]) -> Iterator[tuple[Row, str, float]]:
    for row in of_part(rows, "epsilon"):
        for end in ("epsilon", "estimate"):
            away = excess(rows, row, end) if end in row else None
            if away is not None and away < 0:
                yield row, end, away


def _below(rows: list[Row]) -> str:
    words = {"epsilon": "bound", "estimate": "estimate"}
    lines = [
        [
            f"{row['tool']}, {row['case']}, δ = {row['delta']:g}",
            words[end],
            f"{row[end]:.6f}",
            percent(away),
        ]
        for row, end, away in _too_low(rows)
    ]
    return table(["", "what", "ε", "from the lower end"], lines) if lines else "None.\n"


def _training_pairs(rows: list[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Sordino's row and dp-accounting's of each case."""
    for plan, delta in TRAINING:
        ours, peer = (
            one(rows, "training", tool=tool, case=plan.name, delta=delta)
            for tool in ("Sordino", PLD)
        )
        yield ours, peer


def _training(rows: list[Row]) -> str:
    lines = []
    for (plan, delta), (ours, peer) in zip(TRAINING, _training_pairs(rows), strict=True):
        name = f"{plan.name}, δ = {delta:g}"
        if ours is None or peer is None:
            lines.append([name, *(["no figure"] * 5)])
            continue
        theirs = "infinite" if peer["epsilon"] is None else f"{peer['epsilon']:.5g}"
        clocks = [duration(ours["processor"]), times(peer["processor"] / ours["processor"])]
        ends = f"{ours['lower']:.5g} to {ours['epsilon']:.5g}"
        lines.append([name, ends, percent(ours["epsilon"] / ours["lower"] - 1), theirs, *clocks])
    return table(
        ["", "Sordino's ε", "width", f"{PLD}'s", "Sordino's processor time", f"{PLD} over it"],
        lines,
    )


def _large(rows: list[Row]) -> str:
    lines = []
    for row in of_part(rows, "large"):
        clocks = [duration(row[clock]) for clock in ("value", "processor", "build")]
        lines.append(
            [
                row["case"],
                f"{row['lower']:.4f} to {row['epsilon']:.4f}",
                *clocks,
                f"{row['bytes'] / 1e9:.2f} GB",
            ]
        )
    failed = [row for row in rows if "error" in row and row.get("part") == "large"]
    lines += [[row["case"], f"no figure: {row['error']}", "", "", "", ""] for row in failed]
    header = [
        "Sordino, one run",
        "ε at δ = 1e-06",
        "time",
        "processor time",
        "of it adding up the losses",
        "peak memory",
    ]
    return table(header, lines)
