"""`sordino explain adaptivity`: how a holdout is fooled by many questions, how it is not, and how many a sample bears.

The demonstration is Freedman's paradox, drawn anew each time; the bounds are those of `sordino.adaptive.transfer`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.loss_sections import new_page, percent, plain
from sordino.cli.numbers import as_typed, rounded_down, share, whole
from sordino.errors import InvalidInput
from sordino.privacy.wording import counted

if TYPE_CHECKING:
    from sordino.adaptive.freedman import Curve, Freedman
    from sordino.cli.page import Page

__all__ = ["adaptivity"]

_THRESHOLD, _MOST_CORRECTED = 0.05, 30
_LEAST_ROWS, _LEAST_FEATURES, _MOST = 1_117, 100, 10**6
"""Of fewer rows nothing would follow for the population if the holdout made all its corrections, and it is refused."""
_ERRORS = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))
_SHOWN, _MANY = 5, 10**8
_SCALE, _DEVIATIONS = Fraction(5, 100), 3
"""Bars end at a multiple of the first, but not before 60 %; this many standard deviations are no chance."""
_TRY = "--rows 10000 --features 5000"
_MOST_CELLS = 2 * 10**8
"""Rows times features; three times as many bytes are drawn."""


def adaptivity(
    rows: Annotated[
        str,
        typer.Option(
            metavar="INTEGER", help="How many rows to train on, to hold out, and to test on."
        ),
    ] = "10000",
    features: Annotated[
        str, typer.Option(metavar="INTEGER", help="How many features of pure noise there are.")
    ] = "5000",
    confidence: Annotated[
        str, typer.Option(metavar="NUMBER", help="How sure the bounds must be.")
    ] = "0.95",
) -> None:
    """Adaptive questions: a holdout that is asked again and again is fitted too, unless its answers are private.

    Example: sordino explain adaptivity --rows 10000 --features 2000
    """
    sure = share(confidence, "--confidence")
    if not 0 < sure < 1:
        rule = "a confidence must be above 0 and below 1"
        raise InvalidInput(as_typed("--confidence", confidence), rule, "Write --confidence 0.95.")
    count = whole(rows, "--rows", _LEAST_ROWS, _MOST, 10_000)
    width = whole(features, "--features", _LEAST_FEATURES, _MOST, 5_000)
    found, table = _drawn(count, width), _bearable(count, sure)
    page = new_page(f"Adaptive questions: {count:,} rows, {width:,} features of pure noise")
    page.say(
        "Labels are coin tosses, and features are too: no classifier can be right more than half of the time. An analyst "
        "keeps the features that agree with the label on the training rows and on the holdout, and lets the best of them "
        "vote. Each step looks sound. But the holdout has helped to choose: does it still tell the truth?"
    )
    top = _top(found)
    page.heading("A plain holdout: what it says (filled) and fresh rows (shaded)")
    _draw(page, found.plain, top)
    page.heading("The same through so.Holdout")
    _draw(page, found.guarded, top)
    page.say(
        f"Bars run from 50 % to {plain(100 * top)} %. so.Holdout lets a training value pass while it is within about "
        f"{percent(_THRESHOLD)} of its own, and else answers its own with noise; it had to correct "
        f"{counted(found.corrected, 'value')} here, of at most {_MOST_CORRECTED}."
    )
    page.heading("What came of it")
    _judge(page, found, count)
    page.heading(f"How many questions can {count:,} rows answer?")
    page.table(
        ["method", "proved by", *(f"±{plain(100 * error)} %" for error in _ERRORS)], table, left=2
    )
    page.say(
        "The table shows how many questions one sample can answer, each chosen after all answers before it, so that with "
        f"probability {plain(sure)} all answers are within the error of the population. Splitting gives each question "
        "separate rows; the methods below it add Gaussian noise of the best scale to each answer. In Python: "
        "so.StatisticalQueries."
    )


def _drawn(rows: int, features: int) -> Freedman:
    from sordino.adaptive.freedman import freedman

    if rows * features > _MOST_CELLS:
        rule = f"rows times features must be at most {_MOST_CELLS:,}"
        raise InvalidInput(
            f"--rows {rows} --features {features}", rule, f"Write --features {_MOST_CELLS // rows}."
        )
    found = freedman(rows=rows, features=features, threshold=_THRESHOLD, most=_MOST_CORRECTED)
    if not found.guarded.sizes:
        rule = (
            f"a guarded holdout of so few rows cannot answer questions about {features:,} features"
        )
        raise InvalidInput(
            f"--rows {rows} --features {features}", rule, f"Write {_TRY}, or fewer features."
        )
    if not found.plain.sizes:
        rule = "no feature seemed to agree with the label, so that there is nothing to show"
        raise InvalidInput(f"--features {features}", rule, f"Write {_TRY}.")
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


def _judge(page: Page, found: Freedman, rows: int) -> None:
    """How far each holdout was off when the analyst stopped, and whether that is more than chance."""
    chance = _DEVIATIONS * math.sqrt(0.5 / rows)
    plain_off = _tell(page, "The plain holdout", found.plain)
    guarded_off = _tell(page, "so.Holdout", found.guarded)
    page.say(
        f"- By chance alone two samples of {rows:,} rows differ by up to about {100 * chance:.1f} points."
    )
    if plain_off <= chance:
        page.say(
            f"So there is nothing to see here: the plain holdout is off by no more than chance, since among so few features "
            f"there is little to choose. To see it fooled, write {_TRY}."
        )
    else:
        page.say(
            "The plain holdout is off by more than chance: it was fitted to, and no longer tells the truth."
        )
    if guarded_off > chance:
        passed = found.guarded.train[-1] == found.guarded.holdout[-1]
        cause = (
            "what it let pass was the training value" if passed else "so few rows need much noise"
        )
        page.say(f"so.Holdout is off by more than chance at its last step: {cause}.")
    elif plain_off > chance:
        page.say(
            "so.Holdout is not: its answers are private, and what is private can hardly be fitted to."
        )


def _tell(page: Page, name: str, curve: Curve) -> float:
    """Say how far a holdout is off at its last step, to the digits that are shown."""
    off = [
        abs(round(told, 3) - round(true, 3))
        for told, true in zip(curve.holdout, curve.fresh, strict=True)
    ]
    page.say(
        f"- {name}, at its last step ({_features(curve.sizes[-1])}), says {_accuracy(curve.holdout[-1])}, and fresh rows "
        f"{_accuracy(curve.fresh[-1])}: it is off by {100 * off[-1]:.1f} points, and was by {100 * max(off):.1f} at most."
    )
    return off[-1]


def _top(found: Freedman) -> Fraction:
    """The accuracy at which bars end."""
    most = max(max(curve.holdout + curve.fresh) for curve in (found.plain, found.guarded))
    return max(Fraction(6, 10), _SCALE * math.ceil(most / float(_SCALE) - 1e-9))


def _accuracy(value: float) -> str:
    return f"{100 * round(value, 3):.1f} %"


def _draw(page: Page, curve: Curve, top: Fraction) -> None:
    """For some sizes of classifier, what the holdout says beside the truth."""
    from sordino.answer.text_plot import Bar, bars

    count = len(curve.sizes)
    places = (
        sorted({round(i * (count - 1) / (_SHOWN - 1)) for i in range(_SHOWN)})
        if count > _SHOWN
        else range(count)
    )
    page.draw(bars([
        Bar(label, (value - 0.5) / float(top - Fraction(1, 2)), _accuracy(value), filled=filled)
        for i in places
        for label, value, filled in (
            (f"{_features(curve.sizes[i])}, holdout", curve.holdout[i], True), ("fresh rows", curve.fresh[i], False))
    ], width=page.width))  # fmt: skip


def _features(count: int) -> str:
    return counted(count, "feature")
