"""`sordino explain randomized-response`: the design of a survey in which nobody has to trust the one who asks.

Truth probability, epsilon and error; how many answers are needed; which protocol is best for many categories. The
survey is that of `so.local.Direct`; figures of another protocol are named after it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.loss_sections import (
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
from sordino.cli.numbers import as_typed, rounded_up, share, tiny, whole
from sordino.errors import InvalidInput
from sordino.privacy.wording import counted

if TYPE_CHECKING:
    from sordino.cli.page import Page
    from sordino.local.choose import Choice
    from sordino.local.frequency import Frequency
    from sordino.mechanisms.randomized_response import RandomizedResponse
    from sordino.privacy.loss import FiniteLoss

__all__ = ["randomized_response"]

_OTHERS = tuple(Fraction(e, 4) for e in (1, 2, 4, 8, 12, 16))
"""Epsilons to compare a survey with."""
_MOST_COMPARED = 100
_MOST_CATEGORIES, _MOST_PERSONS, _MOST_SHUFFLED = 2**31, 10**12, 10**9
_BY = ", by Direct"
_HONEST = Fraction(1, 4)
"""The largest variance of one true answer."""


def randomized_response(
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The epsilon of one person's answer.")
    ] = None,
    truth: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Or the probability of a true answer: 3/4.")
    ] = None,
    categories: Annotated[
        str, typer.Option(metavar="INTEGER", help="How many answers there are to choose from.")
    ] = "2",
    persons: Annotated[
        str, typer.Option(metavar="INTEGER", help="How many persons will answer.")
    ] = "1000",
    error: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Count how many answers keep this error: 0.01, 1%."),
    ] = "0.01",
    delta: Annotated[
        str, typer.Option(metavar="NUMBER", help="The delta of the budget that answers share.")
    ] = "1e-6",
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Randomized response: a survey in which nobody has to trust the one who asks.

    Example: sordino explain randomized-response --truth 3/4 --persons 1000
    """
    if (epsilon is None) == (truth is None):
        said = "neither --epsilon nor --truth" if epsilon is None else "both --epsilon and --truth"
        raise InvalidInput(
            said, "a survey is designed from one of them", "Write --epsilon 1, or --truth 3/4."
        )
    wanted = share(error, "--error")
    if not Fraction(1, 10**6) <= wanted < 1:
        rule = "the error of a share must be at least 1e-6 and below 1"
        raise InvalidInput(as_typed("--error", error), rule, "Write --error 0.01 for 1 %.")
    asked = whole(persons, "--persons", 1, _MOST_PERSONS, 1000)
    response = _response(epsilon, truth, whole(categories, "--categories", 2, _MOST_CATEGORIES, 2))
    loss = response.loss()
    small = tiny(delta, "--delta")
    shared = budgets(Fraction(loss.maximum()), small, budget)
    kinds = f"{response.categories:,} categories"
    title = f"Randomized response (Direct): truth {_share(response.truth)}, {kinds}, {counted(asked, 'person')}"
    write_picture(loss, title, output)
    page = new_page(title)
    choice = _choice(response, asked)
    best = (
        None
        if isinstance(choice, str) or type(choice.protocol).__name__ == "Direct"
        else choice.protocol
    )
    _introduce(page, response, best)
    page.heading(f"The survey{_BY}")
    page.table(["", ""], _rows(response, asked, wanted))
    page.say(
        "Errors and numbers of answers are for a share of the population from which the persons are drawn, whatever it is, "
        "by the normal law."
    )
    page.heading(f"One person's answer under two truths{_BY}")
    _draw_answers(page, loss)
    page.heading(f"The 95 % error at other epsilons{_BY}")
    _draw_errors(page, response, asked)
    among = "" if isinstance(choice, str) else ": errors among those who answer"
    page.heading(f"Protocols for {kinds} at this epsilon{among}")
    _show_protocols(page, choice, wanted)
    _show_shuffled(page, response, best, asked, small)
    show_costs(page, {"Direct": loss} | ({} if best is None else {_name(best): best.loss()}), small)
    show_attack(page, loss, "has truth A or truth B", "have truth B", "have truth A", by=_BY)
    show_counts(page, loss, shared, output, by=_BY)


def _response(epsilon: str | None, truth: str | None, categories: int) -> RandomizedResponse:
    from sordino.mechanisms.randomized_response import RandomizedResponse

    if truth is None:
        return RandomizedResponse.calibrated(
            epsilon=epsilon_of(epsilon or ""), categories=categories
        )
    kept, chance = share(truth, "--truth"), Fraction(1, categories)
    if not chance < kept < 1:
        rule = f"over {categories:,} categories it must be above 1/{categories}, which is pure chance, and below 1"
        meant = plain(kept / 100) if 1 < kept < 100 and chance < kept / 100 else "3/4"
        raise InvalidInput(as_typed("--truth", truth), rule, f"Write --truth {meant}.")
    return RandomizedResponse(kept, categories)


def _introduce(page: Page, response: RandomizedResponse, best: Frequency | None) -> None:
    count = response.categories
    other = (
        "the other one" if count == 2 else f"one of the {count - 1:,} others, all equally likely"
    )
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
    if best is not None:
        page.say(
            f"This is the protocol Direct. For this many categories {_name(best)} has a smaller error at the same epsilon: "
            f"see the protocols below."
        )


def _rows(response: RandomizedResponse, persons: int, wanted: Fraction) -> list[tuple[str, str]]:
    """The design in numbers. Errors and numbers of answers are for a share of the population, whatever it is."""
    slope, offset = response.coefficients
    spread = _spread(response)
    as_good = math.floor(persons * _HONEST / spread)
    return [
        ("truth probability", _share(response.truth)),
        ("probability of each other answer", _share(response.other)),
        (
            "estimate of a proportion",
            f"{float(slope):.4g} * share of the answers - {float(-offset):.4g}",
        ),
        ("95 % error in the population", _error(_half_width(spread, persons))),
        ("the same if everybody told the truth", _error(_half_width(_HONEST, persons))),
        ("as good as this many true answers", f"{as_good:,}" if as_good else "less than 1"),
        (
            f"answers for ±{plain(100 * wanted)} % in the population",
            f"{_answers(spread, wanted):,}",
        ),
        ("this many if everybody told the truth", f"{_answers(_HONEST, wanted):,}"),
    ]


def _spread(response: RandomizedResponse) -> Fraction:
    """The largest variance that one answer gives to a share of the population: the law of `Frequency.persons_needed`.

    The share of answers in a category lies between `other` and `truth`, whatever the truth.
    """
    likely = min(max(Fraction(1, 2), response.other), response.truth)
    return likely * (1 - likely) * response.coefficients[0] ** 2


def _half_width(spread: Fraction, persons: int) -> float:
    """The 95 % error of this many answers."""
    return _z() * math.sqrt(spread / persons)


def _answers(spread: Fraction, error: Fraction) -> int:
    """The least number of answers whose 95 % error is this."""
    return math.ceil(spread * (Fraction(_z()) / error) ** 2)


def _z() -> float:
    from sordino.local.intervals import level, normal_quantile

    return normal_quantile(level(CONFIDENCE))


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
    others = (
        RandomizedResponse.calibrated(epsilon=e, categories=response.categories) for e in _OTHERS
    )
    surveys = {
        e: other
        for e, other in zip(map(float, _OTHERS), others, strict=True)
        if not math.isclose(e, own)
    }
    surveys[own] = response
    errors = {e: min(1.0, _half_width(_spread(surveys[e]), persons)) for e in sorted(surveys)}
    top = max(errors.values())
    page.draw(bars([
        Bar(f"epsilon {rounded_up(e)} (truth {_share(surveys[e].truth)})", size / top, _error(size), filled=e == own)
        for e, size in errors.items()
    ], width=page.width))  # fmt: skip


def _show_protocols(page: Page, choice: Choice | str, wanted: Fraction) -> None:
    """The protocols that could ask this question with the same epsilon, the best first."""
    if isinstance(choice, str):
        page.say(choice)
        return
    page.table(["protocol", "95 % error", "largest", f"answers for ±{plain(100 * wanted)} %", "bits", ""], [
        [
            _name(one.protocol),
            _error(_z() * one.error),
            _error(_z() * math.sqrt(one.worst_variance)),
            f"{one.protocol.persons_needed(wanted, CONFIDENCE):,}",
            f"{one.bits:,}",
            "best" if one.protocol == choice.protocol else one.objection or "",
        ]
        for one in choice.candidates
    ])  # fmt: skip
    page.say(
        "Here errors and numbers of answers are for a share of those who answer: what randomizing adds. The first is the "
        "root mean square over the categories, the second that of the worst share, which the answers are counted for. Best "
        f"is the least; of equals, the shortest report. In Python: so.local.{_name(choice.protocol)}, or so.local.choose."
    )


def _show_shuffled(
    page: Page, response: RandomizedResponse, best: Frequency | None, persons: int, delta: Fraction
) -> None:
    """What the loss becomes towards a reader of mixed reports, where that is less."""
    from sordino.local.direct import Direct
    from sordino.local.shuffled import shuffled

    own = response.loss().maximum()
    if not (
        delta
        and own < _MOST_COMPARED
        and persons <= _MOST_SHUFFLED
        and response.categories <= Direct.most
    ):
        return
    direct = Direct(response.truth / response.other, response.categories)
    losses = {_name(one): shuffled(one, persons) for one in (direct, best) if one is not None}
    mixed = {
        name: rounded_up(max(0.0, min(own, loss.epsilon(delta)))) for name, loss in losses.items()
    }
    if any(shown != rounded_up(own) for shown in mixed.values()):
        told = " and ".join(f"{shown} by {name}" for name, shown in mixed.items())
        page.heading("If the reports are shuffled")
        page.say(
            f"Towards somebody who sees {counted(persons, 'report')}, but not whose is whose, epsilon at delta "
            f"{plain(delta)} is {told}, instead of {rounded_up(own)}. Towards the one who shuffles it stays what it is."
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
            "No protocol counts this many categories for this many persons in reasonable time. Look for frequent ones only, "
            "by prefixes: so.local.HeavyHitters."
        )


def _error(size: float) -> str:
    return f"±{percent(size)}" if size < 1 else "over 100 %"


def _name(protocol: Frequency) -> str:
    return type(protocol).__name__


def _share(probability: Fraction) -> str:
    text = str(probability)
    return text if len(text) <= 7 else f"{float(probability):.4g}"
