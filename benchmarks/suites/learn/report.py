"""The learning suite as Markdown; figures of a GPU are measured by hand and kept beside this file."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import altair as alt
from benchmarks.markdown import table
from benchmarks.suites.learn.settings import EPSILONS, STEPS, TRAININGS

Row = dict[str, Any]
TITLE = "Learning: models, streams, and noise on a GPU"
GPU = Path(__file__).with_name("gpu_results.json")

HOW_TO_READ = """
**How to read this.** Census income (UCI Adult, 91 columns in [0, 1] by public domains, 80/20): accuracy on the test
part, or R²; for PCA the part of the variance that five components keep, for k-means the part that eight centres leave.
Means of five splits with one run each, and their standard errors; *ours less theirs* is of the same splits. Ours are
(epsilon, 1e-6)-private, with their defaults; diffprivlib's of pure epsilon, with the bounds that ours have and
iterations enough, else its defaults; its *best settings* are the best of six strengths of regularisation, chosen on
the test parts themselves. One fit may take 30 seconds of the processor. Streams: the squared error of the last
running total at mu = 1. The GPU is measured by hand: `python -m benchmarks.suites.learn.gpu`, which first checks
that every number is that of the CPU's sampler. *Private* is a whole step: passes, exact clipped sums, exact noise,
optimizer. A plain step of the transformer in TF32 is bound by how fast Python launches kernels: on machines of this
kind 2,500 to 5,100 samples a second were seen. Ours is recorded once, so that plain steps recorded in the same way
would leave a lower ratio.

Trainings have the same network, batches, steps and clipping norm (`settings.py`), and the noise that Sordino's
accountant asks for at that epsilon (delta 1e-5); Opacus also has the noise that its own accountant asks for.
Accuracy on the test part, mean of five runs, least and most in brackets. Speed is of whole steps on one thread, in
samples per processor second; Sordino's physical batches have room for 576, so that one holds nearly every sample.
"""


def section(rows: list[Row]) -> str:
    parts = [
        HOW_TO_READ.lstrip(),
        "### Census\n",
        table(["model", *(f"epsilon {e:g}" for e in EPSILONS)], _census(rows)),
        "### Streams, squared error\n",
        table(["", *(f"{n:,} steps" for n in STEPS)], _streams(rows)),
    ]
    parts += [
        "### Trainings, accuracy\n",
        table(
            ["", *(f"{one.name}, epsilon {e}" for one in TRAININGS for e in one.sigmas)],
            _accuracies(rows),
        ),
        "### Training on one thread, samples per processor second\n",
        table(["", *_SPEEDS], _speeds(rows)),
    ]
    if GPU.exists():
        found = json.loads(GPU.read_text())
        parts += [
            f"### On one {found['device']} (torch {found['torch']}, CUDA {found['cuda']})\n",
            table(
                ["noise, 2^28 numbers", "G/s"],
                ([n, f"{v:.0f}"] for n, v in found["noise, G/s"].items()),
            ),
            table(
                ["training", "plain samples/s", "private", "ratio", "memory"],
                (
                    [
                        f"{r['model']}, {r['parameters'] / 1e6:.1f} M{', TF32' if r['tf32'] else ''}",
                        f"{r['plain samples/s']:,.0f}",
                        f"{r['private samples/s']:,.0f}",
                        f"{r['ratio']:.2f}",
                        f"{r['memory ratio']:.2f}",
                    ]
                    for r in found["training"]
                ),
            ),
        ]
    parts += [f"**{row.get('case', '')} {row['error']}**\n" for row in rows if "error" in row]
    return "\n".join(parts)


def _census(rows: list[Row]) -> Iterator[list[str]]:
    found = {
        (row["tool"], row["case"], row.get("epsilon")): row
        for row in rows
        if row.get("part") == "census"
    }
    for case in dict.fromkeys(case for tool, case, _ in found if tool == "Sordino"):
        ours = [_values(found.get(("Sordino", case, e))) for e in EPSILONS]
        yield [f"Sordino: {case}", *map(_with_error, ours)]
        for name, asked in (("defaults", case), ("best settings", f"{case}, best settings")):
            peers = [found.get(("diffprivlib", asked, e)) for e in EPSILONS]
            if any(peers):
                yield [f"diffprivlib, {name}", *map(_cell, peers)]
                yield ["ours less theirs", *_apart(ours, [_values(peer) for peer in peers])]
        if bare := _values(found.get(("diffprivlib", f"{case} without noise", None))):
            yield [f"scikit-learn without noise: {_with_error(bare)}", *("" for _ in EPSILONS)]
            yield ["ours less that", *_apart(ours, [bare for _ in EPSILONS])]


def _values(row: Row | None) -> list[float]:
    return [] if row is None else row.get("values", [])


def _cell(row: Row | None) -> str:
    return "did not end" if row and "error" in row else _with_error(_values(row))


def _apart(ours: list[list[float]], theirs: list[list[float]]) -> Iterator[str]:
    """What the splits differ by; nothing where one of them was not measured."""
    for some, others in zip(ours, theirs, strict=True):
        same = len(some) == len(others)
        yield _with_error([a - b for a, b in zip(some, others, strict=True)] if same else [])


def _with_error(values: list[float]) -> str:
    """The mean and its standard error; only the size of what is far off."""
    if len(values) < 2:
        return "-"
    mean = fmean(values)
    if abs(mean) >= 100:
        return f"{mean:.0e}"
    return f"{mean:.4f} ± {stdev(values) / math.sqrt(len(values)):.4f}"


_SPEEDS = ("network of 91-128-64-2", "convolutions, 3 x 32 x 32")


def _accuracies(rows: list[Row]) -> Iterator[list[str]]:
    some = [
        row for row in rows if row.get("part") == "training" and row["case"].startswith("accuracy")
    ]
    for tool, case in dict.fromkeys((row["tool"], row["case"]) for row in some):
        found = {
            (row["data"], row["epsilon"]): row
            for row in some
            if (row["tool"], row["case"]) == (tool, case)
        }
        cells = [found.get((one.name, e), {}) for one in TRAININGS for e in one.sigmas]
        name = tool if case == "accuracy" else f"{tool}, at the noise it asks for"
        yield [
            name,
            *(
                f"{c['value']:.3f} ({c['least']:.3f} to {c['most']:.3f})" if "value" in c else "-"
                for c in cells
            ),
        ]


def _speeds(rows: list[Row]) -> Iterator[list[str]]:
    some = [
        row
        for row in rows
        if row.get("part") == "training" and row["case"] == "samples per CPU second"
    ]
    for tool, mode in dict.fromkeys((row["tool"], row.get("mode", "")) for row in some):
        found = {
            row["data"]: row for row in some if (row["tool"], row.get("mode", "")) == (tool, mode)
        }
        cells = [found.get(name, {}) for name in _SPEEDS]
        yield [
            f"{tool} {mode}".strip(),
            *(f"{c['value']:,.0f}" if "value" in c else "-" for c in cells),
        ]


def _streams(rows: list[Row]) -> Iterator[list[str]]:
    for case in dict.fromkeys(row["case"] for row in rows if row.get("part") == "stream"):
        found = {
            row["steps"]: row["value"] for row in rows if row.get("case") == case and "value" in row
        }
        yield [case, *(f"{found[n]:.2f}" if n in found else "-" for n in STEPS)]


def chart(rows: list[Row]) -> Any:
    """Accuracy on census data, by epsilon."""
    found = [
        row
        for row in rows
        if row.get("part") == "census"
        and "value" in row
        and row["case"] in ("logistic regression", "naive Bayes")
    ]
    return (
        alt.Chart(alt.Data(values=found))
        .mark_line(point=True)
        .encode(
            x=alt.X("epsilon:Q", scale=alt.Scale(type="log")),
            y=alt.Y("value:Q", title="accuracy", scale=alt.Scale(zero=False)),
            color="tool:N",
            strokeDash="case:N",
        )
        .properties(width=460, height=260)
    )
