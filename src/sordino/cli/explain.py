"""`sordino explain`: one mechanism in words, numbers and a picture of its worst neighbouring pair, in the terminal.

Every number is a view of the library's `Loss` or `Mechanism`, and is shown rounded in the safe direction. Surveys and
adaptive questions have pages of their own: survey.py and adaptivity.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli import adaptivity, survey
from sordino.cli.loss_sections import (
    CONFIDENCE,
    Output,
    WholeBudget,
    budgets,
    epsilon_of,
    new_page,
    plain,
    show_attack,
    show_costs,
    show_counts,
    write_picture,
)
from sordino.cli.numbers import exact, positive, rounded_up, tiny
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.cli.page import Page
    from sordino.mechanisms.additive import Additive
    from sordino.privacy.budget import Budget
    from sordino.privacy.loss import Loss

__all__ = ["app"]

app = typer.Typer(
    help="Explain a mechanism: what it promises, its numbers, and a picture.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_MOST_SAMPLES = 1000
_FARTHEST = 10**6
"""Further from zero than this many scales the axis counts from the true value."""

Epsilon = Annotated[
    str, typer.Option(metavar="NUMBER", help="The epsilon of one answer, such as 0.5.")
]
Sensitivity = Annotated[
    str, typer.Option(metavar="NUMBER", help="How far one person can move the exact value.")
]
Value = Annotated[
    str,
    typer.Option(metavar="NUMBER", help="A made-up true value, for the picture and the samples."),
]
Samples = Annotated[int, typer.Option(help="How many noisy answers to draw.")]


@app.command(short_help="Laplace noise, for one number.")
def laplace(
    epsilon: Epsilon,
    sensitivity: Sensitivity = "1",
    delta: Annotated[
        str, typer.Option(metavar="NUMBER", help="The delta of the budget that answers share.")
    ] = "1e-6",
    value: Value = "42",
    samples: Samples = 5,
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Laplace noise: pure epsilon-differential privacy for a number.

    Example: sordino explain laplace --sensitivity 1 --epsilon 0.5
    """
    from sordino.mechanisms.laplace import Laplace

    asked = _Asked.read(epsilon_of(epsilon), sensitivity, delta, value, samples, budget)
    mechanism = Laplace.calibrated(
        sensitivity=asked.sensitivity, epsilon=asked.epsilon, step=asked.step
    )
    loss = mechanism.loss(asked.sensitivity)
    title = f"Laplace noise: sensitivity {plain(asked.sensitivity)}, epsilon {plain(asked.epsilon)}"
    write_picture(loss, title, output)
    page = new_page(title)
    page.say(
        f"The exact value gets random noise of scale {rounded_up(mechanism.scale)}: the sensitivity divided by epsilon. "
        f"Whoever joins or leaves the table, every possible answer stays as likely as before up to a factor of e^epsilon = "
        f"{_factor(asked.epsilon)}, whatever else is known. This is pure privacy: there is no delta, and no exception."
    )
    deviation = float(mechanism.scale) * math.sqrt(2)
    _show_noise(page, mechanism, asked, [("standard deviation", rounded_up(deviation))])
    show_costs(page, loss, asked.delta)
    show_attack(page, loss, "is in the table", "are not in it", "are")
    show_counts(page, loss, asked.budgets, output)


@app.command(short_help="Gaussian noise, for many numbers.")
def gaussian(
    epsilon: Epsilon,
    sensitivity: Sensitivity = "1",
    delta: Annotated[
        str, typer.Option(metavar="NUMBER", help="The delta of one answer, such as 1e-6.")
    ] = "1e-6",
    value: Value = "42",
    samples: Samples = 5,
    budget: WholeBudget = None,
    output: Output = None,
) -> None:
    """Gaussian noise: (epsilon, delta)-privacy, best for many numbers or many questions.

    Example: sordino explain gaussian --sensitivity 1 --epsilon 1 --delta 1e-6
    """
    from sordino.mechanisms.gaussian import Gaussian

    asked = _Asked.read(epsilon_of(epsilon), sensitivity, delta, value, samples, budget)
    calibrated = partial(
        Gaussian.calibrated,
        sensitivity=asked.sensitivity,
        epsilon=asked.epsilon,
        delta=asked.delta,
        step=asked.step,
    )
    mechanism = calibrated()
    loss = mechanism.loss(asked.sensitivity)
    promise = f"epsilon {plain(asked.epsilon)}, delta {plain(asked.delta)}"
    title = f"Gaussian noise: sensitivity {plain(asked.sensitivity)}, {promise}"
    write_picture(loss, title, output)
    page = new_page(title)
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
        rows = [
            ("scale by the classic formula", f"{rounded_up(classic)} ({ratio:.3g} times as much)")
        ]
    _show_noise(page, mechanism, asked, rows)
    show_costs(page, loss, asked.delta)
    show_attack(page, loss, "is in the table", "are not in it", "are")
    show_counts(page, loss, asked.budgets, output)


app.command(short_help="A survey without trust.")(survey.randomized_response)
app.command(short_help="Many questions to one sample.")(adaptivity.adaptivity)


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
    def read(
        epsilon: Fraction,
        sensitivity: str,
        delta: str,
        value: str,
        samples: int,
        budget: str | None,
    ) -> _Asked:
        if not 0 <= samples <= _MOST_SAMPLES:
            raise InvalidInput(
                f"--samples {samples}", f"it must be 0 to {_MOST_SAMPLES:,}", "Write --samples 5."
            )
        true = exact(value, "--value")
        if abs(true) > 10**30:
            raise InvalidInput(f"--value {value!r}", "it must be at most 1e30", "Write --value 42.")
        small = tiny(delta, "--delta")
        shared = budgets(epsilon, small, budget)
        return _Asked(epsilon, positive(sensitivity, "--sensitivity"), small, true, samples, shared)

    @property
    def step(self) -> Fraction:
        """A lattice that holds both the value and its neighbour's."""
        return Fraction(1, math.lcm(self.value.denominator, self.sensitivity.denominator))


def _show_noise(
    page: Page, mechanism: Additive, asked: _Asked, rows: list[tuple[str, str]]
) -> None:
    """The noise, the two curves of the worst pair, and some draws."""
    from sordino.answer.text_plot import curves

    page.heading("The noise")
    noise = [("scale", rounded_up(mechanism.scale)), *rows]
    page.table(
        ["", ""],
        [
            *noise,
            ("95 % of the answers are within", f"±{rounded_up(mechanism.interval(CONFIDENCE))}"),
        ],
    )
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
            page.say(
                f"{name} the person, true value {plain(value)}: {'  '.join(f'{x:.10g}' for x in drawn)}"
            )


def _beyond(loss: Loss, epsilon: Fraction) -> float:
    """The probability that the loss exceeds epsilon."""
    return float(loss.pmf([epsilon])[-1])


def _factor(epsilon: Fraction) -> str:
    return rounded_up(math.exp(epsilon)) if epsilon < 700 else "more than 1e300"
