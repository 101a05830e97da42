"""Exact audits: where a law is known, the true epsilon and delta are computed and compared with the claim.

A mechanism of ours is computed twice, from the probabilities of its outputs and from its privacy loss, which share no
formula; if the two contradict each other nothing is passed. Why the numbers are exact is in exact.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from sordino.audit.claim import Claim
from sordino.audit.computed.finite_pair import FinitePair
from sordino.audit.computed.key_pair import KeyPair
from sordino.audit.computed.noise_pair import NoisePair
from sordino.audit.computed.truth import LossPair, Truth
from sordino.audit.reporting.report import Figure, Report, Series, Verdict
from sordino.errors import InvalidInput
from sordino.mechanisms.additive import Additive
from sordino.mechanisms.key_selection import KeySelection
from sordino.mechanisms.randomized_response import RandomizedResponse
from sordino.mechanisms.rounded import RoundedNoise
from sordino.privacy.ball import certified, lower, upper
from sordino.privacy.divergence import Distribution
from sordino.privacy.exact import Number, positive, show
from sordino.privacy.loss import Loss

__all__ = ["exact"]

_POINTS = 25
_FEW = 50


class _Subject(NamedTuple):
    """What is audited: its law, its loss where it has one, its name, and what was taken for granted."""

    truth: Truth
    loss: Loss | None
    name: str
    notes: tuple[str, ...] = ()


def exact(
    mechanism_or_law: Any,
    other: Distribution | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    sensitivity: Number = 1,
    name: str | None = None,
) -> Report:
    """Whether a claim holds for a Sordino mechanism at a sensitivity, for a loss, or for two laws: by computation.

    A law is a mapping output -> probability, or a sequence of probabilities; `sordino.audit.law` makes them of
    functions.

    Example:
        >>> report = exact({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75}, epsilon=1)
        >>> report.verdict.name, round(report.epsilon_lower, 6)
        ('VIOLATED', 1.098612)
    """
    claim = Claim.read(epsilon, delta)
    subject = _subject(mechanism_or_law, other, sensitivity)
    truth, loss = subject.truth, subject.loss
    needed_delta = certified(lambda: truth.delta_ball(claim.epsilon))
    least, most = truth.epsilon_bounds(claim.delta)
    epsilons = _grid(claim, most)
    profile = truth.profile(epsilons)
    conflict = _conflict(subject, claim)
    broken = truth.exceeds(claim.epsilon, claim.delta)
    verdicts = {True: Verdict.VIOLATED, False: Verdict.HOLDS, None: Verdict.UNDECIDED}
    distance = certified(lambda: truth.delta_ball(Fraction(0)))
    facts = [
        (f"epsilon needed at delta {claim.shown_delta:.6g}", _between(least, most)),
        (f"delta needed at epsilon {claim.shown_epsilon:.6g}", _ends(needed_delta)),
        ("total variation distance", f"{float(distance.mid()):.6g}"),
        *_loss_facts(loss, claim),
    ]
    if (summed := truth.summed(claim.epsilon)) is not None:
        facts.append((f"delta summed over {summed[1]:,} outputs", _ends(summed[0])))
    table, laws = truth.table(), truth.outputs()
    return Report(
        name=name or subject.name,
        method="exact law",
        epsilon=claim.shown_epsilon,
        delta=claim.shown_delta,
        verdict=verdicts[None if conflict else broken],
        summary=conflict or _summary(claim, broken, least, needed_delta),
        epsilon_lower=least,
        delta_lower=min(1.0, max(0.0, lower(needed_delta))),
        witness=truth.witness(claim.epsilon, claim.delta),
        relation=truth.relation,
        facts=tuple(facts),
        notes=subject.notes,
        grids=() if table is None else (table,),
        figures=(*(() if laws is None else (laws,)), _profile_figure(claim, epsilons, profile)),
    )


def _subject(given: Any, other: Any, sensitivity: Any) -> _Subject:
    known = isinstance(given, Additive | RandomizedResponse | KeySelection | Loss)
    if known == (other is not None):
        rule = "a law needs a second one to compare with"
        if known:
            rule = "a mechanism or a loss is audited alone"
        hint = "Pass two laws, or one Sordino mechanism with its sensitivity, or one loss."
        raise InvalidInput(show(given), rule, hint)
    if isinstance(given, Additive):
        return _noise(given, sensitivity)
    if isinstance(given, RandomizedResponse):
        return _Subject(_responses(given), given.loss(sensitivity), repr(given))
    if isinstance(given, KeySelection):
        note = "For a person who moves one key; keys are decided independently of each other."
        return _Subject(KeyPair(given), None, repr(given), (note,))
    if isinstance(given, Loss):
        note = "The loss was taken as true; audit the mechanism to check it."
        return _Subject(LossPair(given), None, repr(given), (note,))
    note = "A claim about a mechanism needs all pairs of neighbours; this is one."
    return _Subject(FinitePair.read(given, other), None, "two laws", (note,))


def _noise(mechanism: Additive, sensitivity: Any) -> _Subject:
    loss = mechanism.loss(sensitivity)
    reach = positive("sensitivity", sensitivity).upper / mechanism.step
    steps = math.floor(reach)
    noise = RoundedNoise(mechanism.shape, mechanism.scale / mechanism.step)
    whole = f"Values on the lattice move by whole steps, here at most {steps}; for rounded ones pass rounded_sensitivity."
    notes = () if reach == steps else (whole,)
    return _Subject(NoisePair(noise, steps, mechanism.step), loss, repr(mechanism), notes)


def _responses(mechanism: RandomizedResponse) -> FinitePair:
    """The answers of two persons with different truths; where there are many categories, the others as one output."""
    count = mechanism.categories
    names: tuple[Any, ...] = mechanism.names or tuple(range(min(count, _FEW)))
    shown = names if count <= _FEW else names[:2]
    laws = [{y: mechanism.pmf(y, truth) for y in shown} for truth in names[:2]]
    if len(shown) < count:
        for law, truth in zip(laws, names[:2], strict=True):
            law["any other"] = (count - 2) * mechanism.pmf(names[2], truth)
    p, q = laws
    sides = (f"truth {show(names[0])}", f"truth {show(names[1])}")
    return FinitePair(p, q, "one person's answer, any two truths", sides)


def _conflict(subject: _Subject, claim: Claim) -> str:
    """What the law certainly reveals above what the loss promises; "" if the two agree, as they must."""
    truth, loss = subject.truth, subject.loss
    if loss is None:
        return ""
    for epsilon in {Fraction(0), claim.epsilon / 2, claim.epsilon, 2 * claim.epsilon}:
        promised = loss.delta(epsilon)
        if truth.exceeds(epsilon, Fraction(promised)):
            shown = lower(certified(lambda e=epsilon: truth.delta_ball(e)))  # type: ignore[misc]
            return (
                f"The loss of {subject.name} promises delta {promised:.6g} at epsilon {float(epsilon):.6g}, but its outputs "
                f"need {shown:.6g}: one of the two is wrong. Please report this."
            )
    return ""


def _summary(claim: Claim, broken: bool | None, least: float, needed_delta: arb) -> str:
    if broken is None:
        return "The truth is only known within a bracket, and the claim lies inside it."
    at = f"at delta {claim.shown_delta:.6g}"
    if not broken:
        return f"The claim holds for these laws, by computation: {at} they need epsilon {_number(least)}."
    enough = "no epsilon is enough" if math.isinf(least) else f"epsilon {_number(least)} is needed"
    delta = f"delta {max(0.0, lower(needed_delta)):.6g} at epsilon {claim.shown_epsilon:.6g}"
    return f"The claim is false, by computation: {enough} {at}, or {delta}."


def _loss_facts(loss: Loss | None, claim: Claim) -> list[tuple[str, str]]:
    if loss is None:
        return []
    pure = claim.delta == 0
    epsilon = loss.maximum() if pure else loss.epsilon(claim.delta)
    return [
        ("epsilon promised by its loss", _number(max(0.0, epsilon))),
        ("delta promised by its loss", _number(loss.delta(claim.epsilon))),
    ]


def _grid(claim: Claim, most: float) -> list[float]:
    """Epsilons to draw: from 0 to somewhat beyond both the claim and what is needed."""
    ends = [x for x in (claim.shown_epsilon, most) if math.isfinite(x)]
    top = min(700.0, 1.5 * max([*ends, 0.1]))
    return [top * i / (_POINTS - 1) for i in range(_POINTS)]


def _profile_figure(claim: Claim, epsilons: list[float], profile: list[float]) -> Figure:
    """The true delta(epsilon), and the most that the claim allows: that of the worst mechanism that keeps it."""
    x = tuple(epsilons)
    series = (
        Series("by the law", x, tuple(profile)),
        Series("allowed by the claim", x, tuple(map(claim.allows, epsilons))),
    )
    return Figure("Privacy profile", "epsilon", "delta", series)


def _ends(value: arb) -> str:
    return _between(max(0.0, lower(value)), upper(value))


def _between(low: float, high: float) -> str:
    a, b = _number(low), _number(high)
    return a if a == b else f"{a} to {b}"


def _number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.6g}"
