"""Reports as audits make them, and some that are odd on purpose."""

from __future__ import annotations

import math
from dataclasses import replace

from sordino.audit.reporting.report import Dossier, Figure, Grid, Report, Series, Verdict

EDGES = tuple(k / 4 for k in range(-40, 41))


def laplace(x: float, centre: float, scale: float = 2.0) -> float:
    return math.exp(-abs(x - centre) / scale) / (2 * scale) / 4


OUTPUTS = Figure(
    "The outputs on the two inputs",
    "output",
    "share of the runs",
    (
        Series("with", EDGES, tuple(laplace(x, 1) for x in EDGES)),
        Series("without", EDGES, tuple(laplace(x, 0) for x in EDGES)),
    ),
    kind="bars",
)
PLACES = tuple(k / 10 for k in range(31))
PROFILE = Figure(
    "Privacy profile",
    "epsilon",
    "delta",
    (
        Series("at least (certified)", PLACES, tuple(0.4 * math.exp(-1.5 * x) for x in PLACES)),
        Series("claimed", PLACES, tuple(0.2 * math.exp(-3 * x) for x in PLACES)),
        Series("estimate", PLACES, tuple(0.42 * math.exp(-1.4 * x) for x in PLACES)),
    ),
    log_y=True,
)
NAMED = Figure(
    "Which answer wins",
    "answer",
    "share of the runs",
    (
        Series("with", (0.0, 1.0, 2.0), (0.5, 0.3, 0.2)),
        Series("without", (0.0, 1.0, 2.0), (0.25, 0.25, 0.5)),
    ),
    kind="bars",
    ticks=("first query", "second query", "a third query with a very long name indeed"),
)
VIOLATED = Report(
    name="laplace-by-inversion",
    method="black box",
    epsilon=0.1,
    delta=0.0,
    verdict=Verdict.VIOLATED,
    summary="Floats give the input away: some outputs can come from one input only.",
    epsilon_lower=1.8765432,
    confidence=0.999,
    witness="the last bit of the output is 0 and the output is above 3.5: 31 % of the runs with, 4.6 % without",
    pair=("1", "0"),
    relation="numbers that differ by at most 1 (assumed)",
    facts=(("runs", "1,000,000"), ("events tried", "42"), ("seconds", "3.1")),
    notes=("The mechanism was called in batches.",),
    grids=(
        Grid(
            "Bounds",
            ("event", "with", "without"),
            (("last bit 0", "0.31", "0.046"), ("above 3.5", "0.2", "0.19")),
        ),
    ),
    figures=(OUTPUTS, PROFILE, NAMED),
    version="0.1.0",
    created="2025-11-15",
)
HOLDS = replace(
    VIOLATED,
    name="laplace",
    epsilon=1.0,
    verdict=Verdict.HOLDS,
    epsilon_lower=0.97123,
    summary="No violation found.",
    witness="",
)
UNDECIDED = Report(
    name="broken",
    method="black box",
    epsilon=1.0,
    delta=1e-6,
    verdict=Verdict.UNDECIDED,
    summary="The mechanism raised ZeroDivisionError: division by zero.",
)
REPLAYED = Report(
    name="mean of ages",
    method="record and replay",
    epsilon=1.0,
    delta=0.0,
    verdict=Verdict.VIOLATED,
    summary="The number of rows is used without noise.",
    witness="call 2: 41 values on one input, 40 on the other",
    pair=("41 rows", "40 rows"),
)
EXACT = Report(
    name="randomized response",
    method="exact law",
    epsilon=1.0,
    delta=0.01,
    verdict=Verdict.HOLDS,
    summary="The exact epsilon at delta 0.01 is 0.98.",
    epsilon_lower=0.98,
)
NO_EPSILON = replace(
    EXACT,
    name="n leaks",
    verdict=Verdict.VIOLATED,
    epsilon_lower=math.inf,
    delta_lower=0.5,
    figures=(NAMED,),
)
SCRIPT = "<script>alert('x')</script>"
HOSTILE = Report(
    name=f"{SCRIPT}\x1b[31m",
    method="black box",
    epsilon=1.0,
    delta=0.0,
    verdict=Verdict.VIOLATED,
    summary=f'{SCRIPT} & "quoted"\nsecond line\x07',
    epsilon_lower=2.0,
    confidence=0.99,
    witness=SCRIPT,
    pair=(SCRIPT, "\x1b]0;x\x07"),
    relation=SCRIPT,
    facts=((SCRIPT, SCRIPT),),
    notes=(SCRIPT,),
    grids=(Grid(SCRIPT, (SCRIPT,), ((SCRIPT,),)),),
    figures=(
        Figure(
            SCRIPT,
            SCRIPT,
            SCRIPT,
            (Series(SCRIPT, (0.0, 1.0), (1.0, math.inf)),),
            ticks=(SCRIPT, SCRIPT),
        ),
        Figure("none", "x", "y", ()),
        Figure("one point", "x", "y", (Series("s", (3.0,), (2.0,)),), kind="bars"),
        Figure("flat", "x", "y", (Series("s", (1.0, 2.0), (0.0, 0.0)),), log_y=True),
    ),
    version="\x1b",
    created=SCRIPT,
)
REPORTS = (VIOLATED, HOLDS, UNDECIDED, REPLAYED, EXACT, NO_EPSILON, HOSTILE)
PLAIN = Dossier("All checks", (HOLDS, EXACT, UNDECIDED), (("seconds", "12"),), ("A note.",))
ZOO = Dossier(
    "The zoo",
    (HOLDS, VIOLATED, replace(HOLDS, name="missed", epsilon_lower=0.5), NO_EPSILON),
    expected=(True, False, False, False),
)
