"""What every page of `sordino explain` says of a loss: its cost, an attacker's gain, how often it fits, its picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.numbers import as_typed, exact, rounded_down, rounded_up
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.cli.page import Page
    from sordino.privacy.budget import Budget
    from sordino.privacy.loss import Loss

__all__ = [
    "CONFIDENCE", "Output", "WholeBudget", "budgets", "epsilon_of", "new_page", "percent", "plain", "show_attack",
    "show_costs", "show_counts", "write_picture",
]  # fmt: skip

CONFIDENCE = Fraction(95, 100)
_DELTAS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**3))
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**6), 1000
_LEAST_BUDGET, _MOST_BUDGET = Fraction(1, 10**12), 10**6

WholeBudget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="NUMBER", help="Count how many answers fit into this epsilon."
    ),
]
Output = Annotated[Path | None, typer.Option(help="Write a picture: .png, .svg, .html or .json.")]


def epsilon_of(text: str) -> Fraction:
    """The epsilon that was typed, if it is of a size that means something."""
    epsilon = exact(text, "--epsilon")
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        rule = "epsilon must be between 1e-6, where noise is all there is, and 1000, where nothing is promised"
        raise InvalidInput(as_typed("--epsilon", text), rule, "Write --epsilon 0.5.")
    return epsilon


def budgets(epsilon: Fraction, delta: Fraction, whole: str | None) -> tuple[Budget, ...]:
    """The budget that was typed, or some that suit answers of this epsilon."""
    from sordino.privacy.budget import Budget

    unit = max(1, math.ceil(epsilon))
    wholes = (
        [Fraction(unit * k) for k in (1, 3, 10)] if whole is None else [exact(whole, "--budget")]
    )
    if whole is not None and not _LEAST_BUDGET <= wholes[0] <= _MOST_BUDGET:
        rule = "a budget's epsilon must be between 1e-12 and 1e6"
        raise InvalidInput(as_typed("--budget", whole), rule, "Write --budget 3.")
    return tuple(Budget(each, delta) for each in wholes)


def new_page(title: str) -> Page:
    """A page that begins with its title."""
    from sordino.cli.page import Page

    page = Page()
    page.heading(title)
    return page


def show_costs(page: Page, loss: Loss | Mapping[str, Loss], delta: Fraction) -> None:
    """The views of a loss, or of several by name."""
    page.heading("What one answer costs")
    losses = loss if isinstance(loss, Mapping) else {"": loss}
    views = [_views(each, delta) for each in losses.values()]
    page.table(["", *losses], [(label, *(view[label] for view in views)) for label in views[0]])


def _views(loss: Loss, delta: Fraction) -> dict[str, str]:
    deltas = sorted({*_DELTAS, delta} - {Fraction(0)})
    return {
        "pure epsilon": rounded_up(loss.maximum()),
        **{f"epsilon at delta {plain(d)}": rounded_up(max(0.0, loss.epsilon(d))) for d in deltas},
        "total variation (delta at epsilon 0)": rounded_up(loss.total_variation()),
        "rho (zero-concentrated privacy)": rounded_up(loss.rho()),
        "mu (Gaussian privacy)": rounded_up(loss.mu()),
    }


def show_attack(
    page: Page, loss: Loss, secret: str, innocent: str, guilty: str, *, by: str = ""
) -> None:
    """How much better one can guess a person's secret, from the trade-off curve and the largest loss."""
    page.heading(f"What an attacker gains who knows everybody else{by}")
    right = percent((1 + loss.total_variation()) / 2)
    found = percent(1 - loss.trade_off(Fraction(5, 100)))
    page.say(
        f"- Guessing whether a person {secret}, at 50:50 before: right at most {right} of the time."
    )
    page.say(
        f"- A test that falsely names 5 % of those who {innocent} finds at most {found} of those who {guilty}."
    )
    largest = loss.maximum()
    if math.isfinite(largest):
        even, rare = (percent(1 / (1 + (1 - p) / p * math.exp(-largest))) for p in (0.5, 0.01))
        page.say(f"- No answer raises a belief of 50 % above {even}, nor one of 1 % above {rare}.")
    else:
        page.say(
            "- There is no largest belief: very rare answers tell more, and delta bounds how rare they are."
        )


def show_counts(
    page: Page, loss: Loss, wholes: Sequence[Budget], output: Path | None, *, by: str = ""
) -> None:
    """How many answers fit into each budget; the page ends with where the picture is."""
    from sordino.cli.plan import counts

    page.heading(f"How many such answers fit into a budget{by}")
    found = [counts(loss, budget) for budget in wholes]
    page.table(["epsilon", "delta", *found[0]], [
        [rounded_down(budget.epsilon), plain(budget.delta), *("left out" if n is None else f"{n:,}" for n in fits.values())]
        for budget, fits in zip(wholes, found, strict=True)
    ])  # fmt: skip
    page.say(
        "The ledger lets questions depend on earlier answers; a fixed list must be complete before the first answer."
    )
    if output is not None:
        page.heading(f"Picture: {output}")


def write_picture(loss: Loss, title: str, output: Path | None) -> None:
    """The picture, before anything is printed: a path that cannot be written is a refusal."""
    if output is None:
        return
    from sordino.privacy.loss.plot import picture
    from sordino.privacy.picture import drawn

    value = as_typed("--output", str(output))
    try:
        # the loss's own name can be longer than the picture
        drawn(lambda: picture(loss, title), output)
    except InvalidInput as error:
        raise InvalidInput(value, error.rule, error.hint) from None
    except OSError as error:
        rule = f"the picture cannot be written: {error.strerror or 'the file system refuses'}"
        raise InvalidInput(value, rule, "Name a file in a folder that exists.") from None


def percent(share: float) -> str:
    """A share in percent, at most 100, rounded up."""
    return f"{rounded_up(min(100.0, 100 * share))} %"


def plain(value: Fraction) -> str:
    """A number as one would type it."""
    from sordino.privacy.exact import readable

    return readable(value)
