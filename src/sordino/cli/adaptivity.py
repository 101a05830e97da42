"""`sordino explain adaptivity`: how a holdout is fooled by many questions, how it is not, and how many a sample bears.

The demonstration is Freedman's paradox, drawn anew each time; the bounds are those of `sordino.adaptive.transfer`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.numbers import exact, rounded_down
from sordino.cli.shown_loss import new_page, percent, plain
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.adaptive.freedman import Curve, Freedman
    from sordino.cli.page import Page

__all__ = ["adaptivity"]

_THRESHOLD, _MOST_CORRECTED = 0.05, 30
_ERRORS = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))
_SHOWN, _MANY = 5, 10**8
_MOST_CELLS = 2 * 10**8
"""Rows times features; three times as many bytes are drawn."""


def adaptivity(
    rows: Annotated[int, typer.Option(help="How many rows to train on, to hold out, and to test on.")] = 10_000,
    features: Annotated[int, typer.Option(help="How many features of pure noise there are.")] = 5_000,
    confidence: Annotated[str, typer.Option(metavar="NUMBER", help="How sure the bounds must be.")] = "0.95",
) -> None:
    """Adaptive questions: a holdout that is asked again and again is fitted too, unless its answers are private.

    Example: sordino explain adaptivity --rows 10000 --features 2000
    """
    sure = exact(confidence, "--confidence")
    if not 0 < sure < 1:
        rule = "a confidence must be above 0 and below 1"
        raise InvalidInput(f"--confidence {confidence!r}", rule, "Write --confidence 0.95.")
    found, table = _drawn(rows, features), _bearable(rows, sure)
    page = new_page(f"Adaptive questions: {rows:,} rows, {features:,} features of pure noise")
    page.say(
        "Labels are coin tosses, and features are too: no classifier can be right more than half of the time. An analyst "
        "keeps the features that agree with the label on the training rows and on the holdout, and lets the best of them "
        "vote. Each step looks sound. But the holdout has helped to choose, so it no longer tells the truth."
    )
    top = max(max(curve.holdout + curve.fresh) for curve in (found.plain, found.guarded))
    page.heading("A plain holdout: what it says (filled) and fresh rows (shaded)")
    _draw(page, found.plain, top)
    page.heading("The same through so.Holdout")
    _draw(page, found.guarded, top)
    page.say(
        f"Bars begin at 50 %. so.Holdout lets a training value pass while it is within about {percent(_THRESHOLD)} of its "
        f"own, and else answers its own with noise; it had to correct {found.corrected} values here, of at most "
        f"{_MOST_CORRECTED}. Its answers are private, and what is private can hardly be fitted to."
    )
    page.heading(f"How many questions do {rows:,} rows bear?")
    page.table(["method", "proved by", *(f"±{plain(100 * error)} %" for error in _ERRORS)], table, left=2)
    page.say(
        f"So many questions, each chosen after all answers before it, can be asked of one sample, so that with probability "
        f"{plain(sure)} all answers are within the error of the population. Splitting gives each question rows of its own; "
        f"the methods below it add Gaussian noise of the best scale to each answer. In Python: so.StatisticalQueries."
    )


def _drawn(rows: int, features: int) -> Freedman:
    from sordino.adaptive.freedman import freedman

    if rows > 0 and features > 0 and rows * features > _MOST_CELLS:
        rule = f"rows times features must be at most {_MOST_CELLS:,}"
        raise InvalidInput(f"--rows {rows} --features {features}", rule, "Write --rows 10000 --features 10000.")
    found = freedman(rows=rows, features=features, threshold=_THRESHOLD, most=_MOST_CORRECTED)
    if not found.guarded.sizes:
        rule = f"a guarded holdout of so few rows cannot bear questions about {features:,} features"
        raise InvalidInput(f"--rows {rows}", rule, "Write --rows 10000, or fewer features.")
    if not found.plain.sizes:
        rule = "no feature seemed to agree with the label, so that there is nothing to show"
        raise InvalidInput(f"--features {features}", rule, "Write --features 2000.")
    return found


def _bearable(rows: int, confidence: Fraction) -> list[list[str]]:
    """How many questions each method bears, for each error."""
    from sordino.adaptive.transfer import most_questions, plan

    counts = [most_questions(rows, error, confidence) for error in _ERRORS]
    ways = plan(rows, 1, confidence, noises=("gaussian",)).ways
    return [
        [way.method, way.source if way.adaptive else f"{way.source}; fixed questions only"]
        + [_count(bearable[way.method]) for bearable in counts]
        for way in ways
    ]


def _count(questions: int) -> str:
    return f"{questions:,}" if questions < _MANY else f"over {rounded_down(Fraction(_MANY))}"


def _draw(page: Page, curve: Curve, top: float) -> None:
    """For some sizes of classifier, what the holdout says beside the truth."""
    from sordino.answer.text_plot import Bar, bars

    count = len(curve.sizes)
    places = sorted({round(i * (count - 1) / (_SHOWN - 1)) for i in range(_SHOWN)}) if count > _SHOWN else range(count)
    page.draw(bars([
        Bar(label, (value - 0.5) / (top - 0.5), f"{100 * value:.1f} %", filled=filled)
        for i in places
        for label, value, filled in (
            (f"{_features(curve.sizes[i])}, holdout", curve.holdout[i], True), ("fresh rows", curve.fresh[i], False))
    ], width=page.width))  # fmt: skip


def _features(count: int) -> str:
    return "1 feature" if count == 1 else f"{count:,} features"
