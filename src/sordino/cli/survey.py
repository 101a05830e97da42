"""`sordino explain randomized-response`: the design of a survey in which nobody has to trust the one who asks.

Truth probability, epsilon and error; how many answers are needed; which protocol is best for many categories.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.numbers import exact, rounded_up, tiny
from sordino.cli.shown_loss import (
    CONFIDENCE,
    Output,
    WholeBudget,
    budgets,
    epsilon_of,
    new_page,
    percent,
    plain,
    show_attack,
    show_costs,
    show_counts,
    write_picture,
)
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.cli.page import Page
    from sordino.local.choose import Choice
    from sordino.mechanisms.randomized_response import RandomizedResponse
    from sordino.privacy.loss import FiniteLoss

__all__ = ["randomized_response"]

_OTHERS = tuple(Fraction(e, 4) for e in (1, 2, 4, 8, 12, 16))
"""Epsilons to compare a survey with."""
_MOST_COMPARED = 100
_MOST_SHUFFLED = 10**9


def randomized_response(
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="The epsilon of one person's answer.")] = None,
    truth: Annotated[str | None, typer.Option(metavar="NUMBER", help="Or the probability of a true answer: 3/4.")] = None,
    categories: Annotated[int, typer.Option(help="How many answers there are to choose from.")] = 2,
    persons: Annotated[int, typer.Option(help="How many persons will answer.")] = 1000,
    error: Annotated[str, typer.Option(metavar="NUMBER", help="Count how many answers keep this error.")] = "0.01",
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="The delta of the budget that answers share.")] = "1e-6",
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Randomized response: a survey in which nobody has to trust the one who asks.

    Example: sordino explain randomized-response --truth 3/4 --persons 1000
    """
    from sordino.mechanisms.randomized_response import RandomizedResponse

    if (epsilon is None) == (truth is None):
        said = "neither --epsilon nor --truth" if epsilon is None else "both --epsilon and --truth"
        raise InvalidInput(said, "a survey is designed from one of them", "Write --epsilon 1, or --truth 3/4.")
    wanted = exact(error, "--error")
    if not Fraction(1, 10**6) <= wanted < 1:
        rule = "the error of a share must be at least 1e-6 and below 1"
        raise InvalidInput(f"--error {error!r}", rule, "Write --error 0.01 for 1 %.")
    if truth is not None:
        response = RandomizedResponse(exact(truth, "--truth"), categories)
    else:
        response = RandomizedResponse.calibrated(epsilon=epsilon_of(epsilon or ""), categories=categories)
    loss = response.loss()
    survey = _rows(response, persons, wanted)
    small = tiny(delta, "--delta")
    shared = budgets(Fraction(loss.maximum()), small, budget)
    title = f"Randomized response: truth {_share(response.truth)}, {categories:,} categories, {persons:,} persons"
    write_picture(loss, title, output)
    page = new_page(title)
    _introduce(page, response)
    page.heading("The survey")
    page.table(["", ""], survey)
    page.heading("One person's answer under two truths")
    _draw_answers(page, loss)
    page.heading("The 95 % error at other epsilons")
    _draw_errors(page, response, persons)
    _show_protocols(page, response, persons, wanted)
    _show_shuffled(page, response, persons, small)
    show_costs(page, loss, small)
    show_attack(page, loss, "has truth A or truth B", "have truth B", "have truth A")
    show_counts(page, loss, shared, output)


def _introduce(page: Page, response: RandomizedResponse) -> None:
    count = response.categories
    other = "the other one" if count == 2 else f"one of the {count - 1:,} others, all equally likely"
    kept, factor = _share(response.truth), rounded_up(response.truth / response.other)
    page.say(
        f"Before an answer leaves a person's hands it is kept with probability {kept}, and otherwise replaced by {other}. "
        f"Nobody sees the true answers, not even who collects them. Whatever the truth is, every answer is as likely as "
        f"under another truth up to a factor of e^epsilon = {factor}."
    )
    page.say(
        f"Plausible deniability: if all truths were equally likely beforehand, the truth behind an answer is another one "
        f"with probability {_share(1 - response.truth)}. Everybody can say: that was the coin."
    )


def _rows(response: RandomizedResponse, persons: int, wanted: Fraction) -> list[tuple[str, str]]:
    """The design in numbers. Errors and numbers of answers are for a share of the population, whatever it is."""
    from sordino.local.direct import Direct
    from sordino.local.intervals import level, normal_quantile
    from sordino.mechanisms.proportions import half_width

    slope, offset = response.coefficients
    error = response.interval(CONFIDENCE, answers=persons)
    needed = "left out"
    if response.categories <= Direct.most:
        direct = Direct(response.truth / response.other, response.categories)
        needed = f"{direct.persons_needed(wanted, CONFIDENCE, population=True):,}"
    honest = math.ceil((Fraction(normal_quantile(level(CONFIDENCE))) / wanted) ** 2 / 4)
    return [
        ("truth probability", _share(response.truth)),
        ("probability of each other answer", _share(response.other)),
        ("estimate of a proportion", f"{float(slope):.4g} * share of the answers - {float(-offset):.4g}"),
        ("95 % error of the estimate", f"±{percent(error)}"),
        ("the same if everybody told the truth", f"±{percent(half_width(persons, Fraction(1), CONFIDENCE))}"),
        ("as good as so many true answers", f"{math.floor(persons / slope**2):,}"),
        (f"answers for an error of ±{plain(100 * wanted)} %", needed),
        ("so many if everybody told the truth", f"{honest:,}"),
    ]


def _draw_answers(page: Page, loss: FiniteLoss) -> None:
    from sordino.answer.text_plot import Bar, bars

    names = ["answer A", "answer B", "any other"]
    lines = [
        Bar(f"{names[i]}, truth {truth}", float(side[i]), _share(side[i]), filled=truth == "A")
        for i in range(len(loss.p))
        for truth, side in (("A", loss.p), ("B", loss.q))
    ]
    page.draw(bars(lines, width=page.width))


def _draw_errors(page: Page, response: RandomizedResponse, persons: int) -> None:
    """The error of the same survey by epsilon, the survey's own filled; beyond 100 % a survey says nothing."""
    from sordino.answer.text_plot import Bar, bars
    from sordino.mechanisms.randomized_response import RandomizedResponse

    own = response.loss().maximum()
    others = (RandomizedResponse.calibrated(epsilon=e, categories=response.categories) for e in _OTHERS)
    surveys = {e: other for e, other in zip(map(float, _OTHERS), others, strict=True) if not math.isclose(e, own)}
    surveys[own] = response
    errors = {e: min(1.0, surveys[e].interval(CONFIDENCE, answers=persons)) for e in sorted(surveys)}
    top = max(errors.values())
    page.draw(bars([
        Bar(f"epsilon {rounded_up(e)} (truth {_share(surveys[e].truth)})", size / top, _error(size), filled=e == own)
        for e, size in errors.items()
    ], width=page.width))  # fmt: skip


def _show_protocols(page: Page, response: RandomizedResponse, persons: int, wanted: Fraction) -> None:
    """The protocols that could ask this question with the same epsilon, the best first."""
    from sordino.local.intervals import level, normal_quantile

    page.heading(f"Protocols for {response.categories:,} categories at this epsilon")
    choice = _choice(response, persons)
    if isinstance(choice, str):
        page.say(choice)
        return
    z = normal_quantile(level(CONFIDENCE))
    page.table(["protocol", "typical error", "largest", f"answers for ±{plain(100 * wanted)} %", "bits", ""], [
        [
            type(one.protocol).__name__,
            _error(z * one.error),
            _error(z * math.sqrt(one.worst_variance)),
            f"{one.protocol.persons_needed(wanted, CONFIDENCE):,}",
            f"{one.bits:,}",
            "best" if one.protocol == choice.protocol else one.objection or "",
        ]
        for one in choice.candidates
    ])  # fmt: skip
    page.say(
        "Errors are 95 % errors of a share among those who answer: what randomizing adds. Best is the least typical error; "
        f"of equals, the shortest report. In Python: so.local.{type(choice.protocol).__name__}, or so.local.choose."
    )


def _show_shuffled(page: Page, response: RandomizedResponse, persons: int, delta: Fraction) -> None:
    """What the loss becomes towards a reader of mixed reports, where that is less."""
    from sordino.local.direct import Direct
    from sordino.local.shuffled import shuffled

    own = response.loss().maximum()
    if not (delta and own < _MOST_COMPARED and persons <= _MOST_SHUFFLED and response.categories <= Direct.most):
        return
    mixed = shuffled(Direct(response.truth / response.other, response.categories), persons).epsilon(delta)
    if mixed < own:
        page.heading("If the reports are shuffled")
        page.say(
            f"Towards somebody who sees all {persons:,} reports, but not whose is whose, epsilon is "
            f"{rounded_up(max(0.0, mixed))} at delta {plain(delta)} instead of {rounded_up(own)}. Towards the one who "
            f"shuffles it stays what it is."
        )


def _choice(response: RandomizedResponse, persons: int) -> Choice | str:
    """The comparison, or why there is none."""
    from sordino.local.choose import choose

    epsilon = response.loss().maximum()
    if epsilon > _MOST_COMPARED:
        return "At such an epsilon every answer is the true one: there is nothing to compare."
    try:
        return choose(epsilon, response.categories, persons)
    except InvalidInput:
        return (
            "No protocol counts so many categories for so many persons in reasonable time. Look for the frequent ones only, "
            "by prefixes: so.local.HeavyHitters."
        )


def _error(size: float) -> str:
    return f"±{percent(size)}" if size < 1 else "over 100 %"


def _share(probability: Fraction) -> str:
    text = str(probability)
    return text if len(text) <= 7 else f"{float(probability):.4g}"
