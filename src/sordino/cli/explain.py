"""`sordino explain`: one mechanism in words, numbers and a picture of its worst neighbouring pair, in the terminal.

Every number is a view of the library's `Loss` or `Mechanism`, and is shown rounded in the safe direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sordino.cli.numbers import exact, positive, rounded_down, rounded_up, tiny
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.cli.page import Page
    from sordino.mechanisms.additive import Additive
    from sordino.privacy.budget import Budget
    from sordino.privacy.loss import Loss

__all__ = ["app"]

app = typer.Typer(
    help="Explain a mechanism: what it promises, its numbers, and a picture.", no_args_is_help=True, rich_markup_mode=None
)

_CONFIDENCE = Fraction(95, 100)
_DELTAS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**3))
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**6), 1000
_MOST_SAMPLES = 1000
_FARTHEST = 10**6
"""Further from zero than so many scales the axis counts from the true value."""

Epsilon = Annotated[str, typer.Option(metavar="NUMBER", help="The epsilon of one answer, such as 0.5.")]
Sensitivity = Annotated[str, typer.Option(metavar="NUMBER", help="How far one person can move the exact value.")]
Value = Annotated[str, typer.Option(metavar="NUMBER", help="A made-up true value, for the picture and the samples.")]
Samples = Annotated[int, typer.Option(help="How many noisy answers to draw.")]
WholeBudget = Annotated[
    str | None, typer.Option("--budget", metavar="NUMBER", help="Count how many answers fit into this epsilon.")
]
Output = Annotated[Path | None, typer.Option(help="Write a picture: .png, .svg, .html or .json.")]


@app.command(short_help="Laplace noise, for one number.")
def laplace(
    epsilon: Epsilon,
    sensitivity: Sensitivity = "1",
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="The delta of the budget that answers share.")] = "1e-6",
    value: Value = "42",
    samples: Samples = 5,
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Laplace noise: pure epsilon-differential privacy for a number.

    Example: sordino explain laplace --sensitivity 1 --epsilon 0.5
    """
    from sordino.mechanisms.laplace import Laplace

    asked = _Asked.read(_epsilon(epsilon), sensitivity, delta, value, samples, budget)
    mechanism = Laplace.calibrated(sensitivity=asked.sensitivity, epsilon=asked.epsilon, step=asked.step)
    loss = mechanism.loss(asked.sensitivity)
    title = f"Laplace noise: sensitivity {_plain(asked.sensitivity)}, epsilon {_plain(asked.epsilon)}"
    _write(loss, title, output)
    page = _page(title)
    page.say(
        f"The exact value gets random noise of scale {rounded_up(mechanism.scale)}: the sensitivity divided by epsilon. "
        f"Whoever joins or leaves the table, every possible answer stays as likely as before up to a factor of e^epsilon = "
        f"{_factor(asked.epsilon)}, whatever else is known. This is pure privacy: there is no delta, and no exception."
    )
    deviation = float(mechanism.scale) * math.sqrt(2)
    _show_noise(page, mechanism, asked, [("standard deviation", rounded_up(deviation))])
    _show_costs(page, loss, asked)
    _show_attack(page, loss, "is in the table", "are not in it", "are")
    _show_counts(page, loss, asked, output)


@app.command(short_help="Gaussian noise, for many numbers.")
def gaussian(
    epsilon: Epsilon,
    sensitivity: Sensitivity = "1",
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="The delta of one answer, such as 1e-6.")] = "1e-6",
    value: Value = "42",
    samples: Samples = 5,
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Gaussian noise: (epsilon, delta)-privacy, best for many numbers or many questions.

    Example: sordino explain gaussian --sensitivity 1 --epsilon 1 --delta 1e-6
    """
    from sordino.mechanisms.gaussian import Gaussian

    asked = _Asked.read(_epsilon(epsilon), sensitivity, delta, value, samples, budget)
    calibrated = partial(
        Gaussian.calibrated, sensitivity=asked.sensitivity, epsilon=asked.epsilon, delta=asked.delta, step=asked.step
    )
    mechanism = calibrated()
    loss = mechanism.loss(asked.sensitivity)
    promise = f"epsilon {_plain(asked.epsilon)}, delta {_plain(asked.delta)}"
    title = f"Gaussian noise: sensitivity {_plain(asked.sensitivity)}, {promise}"
    _write(loss, title, output)
    page = _page(title)
    page.say(
        f"The exact value gets normal noise with standard deviation {rounded_up(mechanism.scale)}, the least that keeps the "
        f"promise: whoever joins or leaves the table, every event stays as likely as before up to a factor of e^epsilon = "
        f"{_factor(asked.epsilon)} and an excess of at most delta. An answer more telling than that factor comes with "
        f"probability {rounded_up(_beyond(loss, asked.epsilon))} at most."
    )
    rows = [("scale by the classic formula", "no proof for epsilon above 1 or delta above 1/2")]
    if asked.epsilon <= 1 and asked.delta <= Fraction(1, 2):
        classic = calibrated(method="classic").scale
        ratio = float(classic / mechanism.scale)
        rows = [("scale by the classic formula", f"{rounded_up(classic)} ({ratio:.3g} times as much)")]
    _show_noise(page, mechanism, asked, rows)
    _show_costs(page, loss, asked)
    _show_attack(page, loss, "is in the table", "are not in it", "are")
    _show_counts(page, loss, asked, output)


@app.command(short_help="A survey without trust.")
def randomized_response(
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="The epsilon of one person's answer.")] = None,
    truth: Annotated[str | None, typer.Option(metavar="NUMBER", help="Or the probability of a true answer: 3/4.")] = None,
    categories: Annotated[int, typer.Option(help="How many answers there are to choose from.")] = 2,
    persons: Annotated[int, typer.Option(help="How many persons will answer.")] = 1000,
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="The delta of the budget that answers share.")] = "1e-6",
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Randomized response: a survey in which nobody has to trust the one who asks.

    Example: sordino explain randomized-response --truth 3/4 --persons 1000
    """
    from sordino.mechanisms.proportions import half_width
    from sordino.mechanisms.randomized_response import RandomizedResponse

    if (epsilon is None) == (truth is None):
        said = "neither --epsilon nor --truth" if epsilon is None else "both --epsilon and --truth"
        raise InvalidInput(said, "a survey is designed from one of them", "Write --epsilon 1, or --truth 3/4.")
    if truth is not None:
        response = RandomizedResponse(exact(truth, "--truth"), categories)
    else:
        response = RandomizedResponse.calibrated(epsilon=_epsilon(epsilon or ""), categories=categories)
    loss = response.loss()
    slope, offset = response.coefficients
    error = response.interval(_CONFIDENCE, answers=persons)
    asked = _Asked.read(Fraction(loss.maximum()), "1", delta, "0", 0, budget)
    title = f"Randomized response: truth {_share(response.truth)}, {categories} categories, {persons:,} persons"
    _write(loss, title, output)
    page = _page(title)
    other = "the other one" if categories == 2 else f"one of the {categories - 1:,} others, all equally likely"
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
    page.heading("The survey")
    page.table(["", ""], [
        ("truth probability", _share(response.truth)),
        ("probability of each other answer", _share(response.other)),
        ("estimate of a proportion", f"{float(slope):.4g} * share of the answers - {float(-offset):.4g}"),
        ("95 % error of the estimate", f"±{_percent(error)}"),
        ("the same if everybody told the truth", f"±{_percent(half_width(persons, Fraction(1), _CONFIDENCE))}"),
        ("as good as so many true answers", f"{math.floor(persons / slope**2):,}"),
    ])  # fmt: skip
    page.heading("One person's answer under two truths")
    _draw_bars(page, loss)
    _show_costs(page, loss, asked)
    _show_attack(page, loss, "has truth A or truth B", "have truth B", "have truth A")
    _show_counts(page, loss, asked, output)


@dataclass(frozen=True)
class _Asked:
    """The options that mechanisms share, as exact numbers."""

    epsilon: Fraction
    sensitivity: Fraction
    delta: Fraction
    value: Fraction
    samples: int
    budgets: tuple[Budget, ...]

    @staticmethod
    def read(epsilon: Fraction, sensitivity: str, delta: str, value: str, samples: int, budget: str | None) -> _Asked:
        from sordino.privacy.budget import Budget

        if not 0 <= samples <= _MOST_SAMPLES:
            raise InvalidInput(f"--samples {samples}", f"it must be 0 to {_MOST_SAMPLES:,}", "Write --samples 5.")
        true = exact(value, "--value")
        if abs(true) > 10**30:
            raise InvalidInput(f"--value {value!r}", "it must be at most 1e30", "Write --value 42.")
        small = tiny(delta, "--delta")
        unit = max(1, math.ceil(epsilon))
        wholes = [Fraction(unit * k) for k in (1, 3, 10)] if budget is None else [positive(budget, "--budget")]
        budgets = tuple(Budget(whole, small) for whole in wholes)
        return _Asked(epsilon, positive(sensitivity, "--sensitivity"), small, true, samples, budgets)

    @property
    def step(self) -> Fraction:
        """A lattice that holds both the value and its neighbour's."""
        return Fraction(1, math.lcm(self.value.denominator, self.sensitivity.denominator))


def _epsilon(text: str) -> Fraction:
    epsilon = positive(text, "--epsilon")
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        rule = "epsilon must be between 1e-6, where noise is all there is, and 1000, where nothing is promised"
        raise InvalidInput(f"--epsilon {text!r}", rule, "Write --epsilon 0.5.")
    return epsilon


def _page(title: str) -> Page:
    from sordino.cli.page import Page

    page = Page()
    page.heading(title)
    return page


def _show_noise(page: Page, mechanism: Additive, asked: _Asked, rows: list[tuple[str, str]]) -> None:
    """The noise, the two curves of the worst pair, and some draws."""
    from sordino.answer.text_plot import curves

    page.heading("The noise")
    noise = [("scale", rounded_up(mechanism.scale)), *rows]
    page.table(["", ""], [*noise, ("95 % of the answers are within", f"±{rounded_up(mechanism.interval(_CONFIDENCE))}")])
    page.heading("The answer with a person (filled) and without (o)")
    loss = mechanism.loss(asked.sensitivity)
    pair = loss.outputs()
    near = abs(asked.value) <= _FARTHEST * mechanism.scale
    start = float((asked.value if near else 0) - asked.sensitivity)
    if pair is not None:
        places = [start + float(mechanism.scale) * float(x) for x in pair.outcomes]
        page.draw(curves(places, pair.under_p, pair.under_q, width=page.width))
    if not near:
        page.say("The axis is the answer minus the true value.")
    if asked.samples:
        page.heading("Some answers")
        for name, value in (("with", asked.value), ("without", asked.value - asked.sensitivity)):
            drawn = mechanism.release([value] * asked.samples)
            page.say(f"{name} the person, true value {_plain(value)}: {'  '.join(f'{x:.10g}' for x in drawn)}")


def _draw_bars(page: Page, loss: Any) -> None:
    from sordino.answer.text_plot import Bar, bars

    names = ["answer A", "answer B", "any other"]
    lines = [
        Bar(f"{names[i]}, truth {truth}", float(side[i]), _share(side[i]), filled=truth == "A")
        for i in range(len(loss.p))
        for truth, side in (("A", loss.p), ("B", loss.q))
    ]
    page.draw(bars(lines, width=page.width))


def _show_costs(page: Page, loss: Loss, asked: _Asked) -> None:
    page.heading("What one answer costs")
    deltas = sorted({*_DELTAS, asked.delta} - {Fraction(0)})
    page.table(["", ""], [
        ("pure epsilon", rounded_up(loss.maximum())),
        *((f"epsilon at delta {_plain(d)}", rounded_up(max(0.0, loss.epsilon(d)))) for d in deltas),
        ("total variation (delta at epsilon 0)", rounded_up(loss.total_variation())),
        ("rho (zero-concentrated privacy)", rounded_up(loss.rho())),
        ("mu (Gaussian privacy)", rounded_up(loss.mu())),
    ])  # fmt: skip


def _show_attack(page: Page, loss: Loss, secret: str, innocent: str, guilty: str) -> None:
    """How much better one can guess a person's secret, from the trade-off curve and the largest loss."""
    page.heading("What an attacker gains who knows everybody else")
    right = _percent((1 + loss.total_variation()) / 2)
    found = _percent(1 - loss.trade_off(Fraction(5, 100)))
    page.say(f"- Guessing whether a person {secret}, at 50:50 before: right at most {right} of the time.")
    page.say(f"- A test that falsely names 5 % of those who {innocent} finds at most {found} of those who {guilty}.")
    largest = loss.maximum()
    if math.isfinite(largest):
        even, rare = (_percent(1 / (1 + (1 - p) / p * math.exp(-largest))) for p in (0.5, 0.01))
        page.say(f"- No answer raises a belief of 50 % above {even}, nor one of 1 % above {rare}.")
    else:
        page.say("- There is no largest belief: very rare answers tell more, and delta bounds how rare they are.")


def _show_counts(page: Page, loss: Loss, asked: _Asked, output: Path | None) -> None:
    from sordino.cli.plan import counts

    page.heading("How many such answers fit into a budget")
    found = [counts(loss, budget) for budget in asked.budgets]
    page.table(["epsilon", "delta", *found[0]], [
        [rounded_down(budget.epsilon), _plain(budget.delta), *("left out" if n is None else f"{n:,}" for n in fits.values())]
        for budget, fits in zip(asked.budgets, found, strict=True)
    ])  # fmt: skip
    page.say("The ledger lets questions depend on earlier answers; a fixed list must be complete before the first answer.")
    if output is not None:
        page.heading(f"Picture: {output}")


def _write(loss: Loss, title: str, output: Path | None) -> None:
    """The picture, before anything is printed: a path that cannot be written is a refusal."""
    if output is None:
        return
    from sordino.privacy.loss.plot import save

    picture = loss.plot()
    picture.title.text = title  # the loss's own name can be longer than the picture
    try:
        save(picture, output)
    except OSError as error:
        rule = f"the picture cannot be written: {error.strerror or 'the file system refuses'}"
        raise InvalidInput(f"--output {str(output)!r}", rule, "Name a file in a folder that exists.") from None


def _beyond(loss: Loss, epsilon: Fraction) -> float:
    """The probability that the loss exceeds epsilon."""
    return float(loss.pmf([epsilon])[-1])


def _factor(epsilon: Fraction) -> str:
    return rounded_up(math.exp(epsilon)) if epsilon < 700 else "more than 1e300"


def _percent(share: float) -> str:
    return f"{rounded_up(min(100.0, 100 * share))} %"


def _share(probability: Fraction) -> str:
    text = str(probability)
    return text if len(text) <= 7 else f"{float(probability):.4g}"


def _plain(value: Fraction) -> str:
    from sordino.privacy.exact import readable

    return readable(value)
