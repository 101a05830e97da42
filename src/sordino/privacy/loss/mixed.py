"""The loss of one of several releases, drawn by a coin that everybody sees; a Poisson sample that is cut to size is
one.

Proofs in sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball, certified, upper
from sordino.privacy.exact import decimal_reading, float_upper, readable, show
from sordino.privacy.loss.base import Floats, Loss
from sordino.privacy.loss.by_profile import ProfileLoss
from sordino.privacy.loss.finite import FiniteLoss
from sordino.privacy.loss.gaussian import GaussianLoss
from sordino.privacy.loss.laplace import LaplaceLoss
from sordino.privacy.loss.law import Law
from sordino.privacy.loss.subsampled import SubsampledLoss
from sordino.privacy.neighbors import Neighbors

__all__ = ["MixedLoss", "truncated_poisson"]


@dataclass(frozen=True, repr=False)
class MixedLoss(ProfileLoss):
    """The loss of one release out of several: `parts` are (probability, loss), and which one is made is told.

    Privacy: holds if the coin does not depend on the data. `rdp` takes the worse direction of each part.

    Source: sampling.md, Theorem 3.

    Example:
        >>> half = Fraction(1, 2)
        >>> MixedLoss(((half, LaplaceLoss(Fraction(1))), (half, LaplaceLoss(Fraction(2))))).maximum()
        2.0
    """

    parts: tuple[tuple[Fraction, Loss], ...]

    def __post_init__(self) -> None:
        parts = tuple((decimal_reading("probability", w), loss) for w, loss in self.parts)
        hint = "Pass pairs (probability, loss) whose probabilities sum to exactly 1, as Fractions."
        if not parts or min(w for w, _ in parts) <= 0 or sum(w for w, _ in parts) != 1:
            rule = "the probabilities must be above 0 and sum to exactly 1"
            raise InvalidInput(f"{len(parts)} parts", rule, hint)
        for _, loss in parts:
            if (
                not isinstance(loss, Loss)
                or loss.by_moments
                or loss.idealized
                or _turns_alone(loss)
            ):
                rule = "a part must be a loss with a law of its own, and a finite one symmetric"
                raise InvalidInput(
                    show(loss),
                    rule,
                    "Pass losses of single releases; for a sampled pair, SampledFiniteLoss.",
                )
            loss.laws()  # a sum of losses refuses
        if len({loss.relation for _, loss in parts if loss.relation is not None}) > 1:
            rule = "parts must be of one relation of neighbours: add_remove or replace"
            raise InvalidInput(
                f"{len(parts)} parts", rule, "Build all of them for the same relation."
            )
        object.__setattr__(self, "parts", parts)

    @property
    def relation(self) -> Neighbors | None:
        return next((loss.relation for _, loss in self.parts if loss.relation is not None), None)

    def delta_ball(self, epsilon: Fraction) -> arb:
        return sum((ball(w) * loss.delta_ball(epsilon) for w, loss in self.parts), arb(0))

    def _epsilon_guess(self, delta: Fraction) -> float:
        return max(loss._epsilon_guess(delta) for _, loss in self.parts)

    def rdp_ball(self, alpha: Fraction) -> arb:
        if alpha == 1:
            return sum((ball(w) * loss.rdp_ball(alpha) for w, loss in self.parts), arb(0))
        order = ball(alpha - 1)
        return (
            sum(
                (ball(w) * (order * loss.rdp_ball(alpha)).expm1() for w, loss in self.parts), arb(0)
            ).log1p()
            / order
        )

    def infinite(self) -> Fraction:
        return sum((w * loss.infinite() for w, loss in self.parts), Fraction(0))

    def maximum(self) -> float:
        return max(loss.maximum() for _, loss in self.parts)

    def rho(self) -> float:
        """An upper bound: the largest of the parts."""
        return max(loss.rho() for _, loss in self.parts)

    def mu(self) -> float:
        """An upper bound: the largest of the parts."""
        return max(loss.mu() for _, loss in self.parts)

    def laws(self) -> tuple[Law, ...]:
        laws = [(float_upper(w), loss.laws()) for w, loss in self.parts]
        sides = max(len(each) for _, each in laws)
        return tuple(
            _mixed([(w, each[side % len(each)]) for w, each in laws]) for side in range(sides)
        )

    def to_json(self) -> str:
        parts = [
            {"probability": str(w), "loss": json_form.nested(loss.to_json())}
            for w, loss in self.parts
        ]
        return json_form.dump("mixed", 1, {"parts": parts})

    def __repr__(self) -> str:
        return "MixedLoss({})".format(
            ", ".join(f"{readable(w)}: {loss!r}" for w, loss in self.parts)
        )


def truncated_poisson(
    base: LaplaceLoss | GaussianLoss, rate: Fraction, most: int, persons: int
) -> MixedLoss:
    """The loss of noise on a Poisson sample from which, if it is larger than `most`, that many are drawn at random.

    `base.shift` is how far one person's presence moves the result, over the scale; one person is added or removed.
    Wherever at least `most` others are in the sample, a person can only take another's place, which moves twice as far.

    Privacy: holds for data of at most `persons` persons, if the sample is drawn afresh and stays secret.

    Source: sampling.md, Theorem 4.

    Example:
        >>> step = truncated_poisson(GaussianLoss(Fraction(1)), Fraction(1, 100), most=150, persons=10_000)
        >>> round(step.epsilon(1e-5), 4)
        0.1995
    """
    for name, value in (("most", most), ("persons", persons)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            rule = f"{name} must be a whole number of at least 1"
            raise InvalidInput(
                f"{name}={show(value)}", rule, "Pass most=150, persons=10_000, for example."
            )
    poisson = SubsampledLoss(base, rate)
    others, full = int(persons) - 1, int(most)
    if others < full:
        return MixedLoss(((Fraction(1), poisson),))
    replacing = SubsampledLoss(type(base)(2 * base.shift), rate)
    if poisson.rate == 1:
        return MixedLoss(((Fraction(1), replacing),))
    # P[Binomial(others, rate) >= most]
    found = upper(
        certified(
            lambda: ball(poisson.rate).beta_lower(arb(full), arb(others - full + 1), regularized=1)
        )
    )
    chance = Fraction(min(1.0, found))
    return (
        MixedLoss(((chance, replacing),))
        if chance == 1
        else MixedLoss(((1 - chance, poisson), (chance, replacing)))
    )


def _turns_alone(loss: Loss) -> bool:
    return isinstance(loss, FiniteLoss) and len(loss.laws()) > 1


def _mixed(laws: Sequence[tuple[float, Law]]) -> Law:
    """The law of a loss drawn from one of several laws."""
    atoms: dict[float, float] = {}
    for w, law in laws:
        for value, probability in law.atoms:
            atoms[value] = atoms.get(value, 0.0) + w * probability
    smooth = [(w, law) for w, law in laws if law.high > law.low]
    infinite = sum(w * law.infinite for w, law in laws)

    def cells(edges: Floats) -> tuple[Floats, Floats]:
        both = [(w, law.cells(edges)) for w, law in smooth]
        p, q = (sum((w * side[i] for w, side in both), np.zeros(len(edges) - 1)) for i in (0, 1))
        return p, q

    low = min((law.low for _, law in smooth), default=0.0)
    high = max((law.high for _, law in smooth), default=0.0)
    spread = max(
        math.sqrt(sum(w * law.spread**2 for w, law in smooth)),
        min((law.spread for _, law in smooth), default=1.0),
    )
    return Law(
        tuple(sorted(atoms.items())),
        low,
        high,
        spread,
        cells,
        infinite,
        max(law.error for _, law in laws),
    )


def _load(fields: dict[str, Any]) -> MixedLoss:
    rule = 'a stored mixture holds "parts", each with a "probability" and a "loss"'
    try:
        parts = [
            (json_form.rational(part, "probability"), part["loss"]) for part in fields["parts"]
        ]
    except (KeyError, TypeError, AttributeError):
        raise InvalidInput(show(fields), rule, "Pass a text made by to_json().") from None
    return MixedLoss(tuple((w, json_form.loaded(stored, Loss.from_json)) for w, stored in parts))


Loss.kinds["mixed", 1] = _load
