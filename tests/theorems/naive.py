"""The slow and obvious versions that claims are checked with:
all small distributions, all events, integrals in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise, product

from flint import acb, arb

from sordino.privacy.ball import ball, certified, holds, working

Law = tuple[Fraction, ...]
Event = tuple[int, ...]

EPSILONS = tuple(Fraction(e) for e in ("0", "1/100", "1/3", "7/10", "1", "2"))


def laws(outcomes: int, parts: int) -> list[Law]:
    """Every distribution over so many outcomes whose probabilities are multiples of 1/parts."""
    counts = (c for c in product(range(parts + 1), repeat=outcomes) if sum(c) == parts)
    return [tuple(Fraction(n, parts) for n in c) for c in counts]


def pairs(*shapes: tuple[int, int]) -> Iterator[tuple[Law, Law]]:
    """Every ordered pair of such distributions, for each (outcomes, parts)."""
    for shape in shapes:
        every = laws(*shape)
        yield from product(every, every)


def events(outcomes: int) -> list[Event]:
    """Every set of outcomes."""
    return list(chain.from_iterable(combinations(range(outcomes), k) for k in range(outcomes + 1)))


def chance(law: Law, event: Iterable[int]) -> Fraction:
    return sum((law[y] for y in event), Fraction(0))


def largest_ratio(chances: Iterable[tuple[Fraction, Fraction]]) -> Fraction | float:
    """The smallest factor c with a <= c b for all given (a, b)."""
    return max(a / b if b else math.inf if a else Fraction(0) for a, b in chances)


def ratio_of_events(p: Law, q: Law) -> Fraction | float:
    """The smallest factor c with p(E) <= c q(E) for every event E."""
    return largest_ratio((chance(p, e), chance(q, e)) for e in events(len(p)))


def factor_between(p: Law, q: Law) -> Fraction | float:
    """e to the multiplicative distance: the factor that serves every event in both orders."""
    return max(ratio_of_events(p, q), ratio_of_events(q, p))


def exceeds(a: Fraction, b: Fraction, epsilon: Fraction, more: Fraction | int = 0) -> bool:
    """Whether a > e^epsilon b + more, exactly: for rational epsilon other than 0 the two sides differ unless b = 0."""
    if epsilon == 0 or b == 0:
        return a > b + more

    def compare() -> bool | None:
        gap = ball(a - more) - ball(epsilon).exp() * ball(b)
        return True if gap > 0 else False if gap < 0 else None

    return holds(compare)


def largest_gap(p: Law, q: Law, epsilon: Fraction) -> arb:
    """The largest p(E) - e^epsilon q(E) over all events E."""
    factor = ball(epsilon).exp()
    gap = arb(0)
    for event in events(len(p)):
        gap = gap.max(ball(chance(p, event)) - factor * ball(chance(q, event)))
    return gap


def agree(a: arb, b: arb, tolerance: float = 1e-25) -> bool:
    """Whether two balls of one number overlap, and are narrow enough for this to mean something."""
    return bool(a.overlaps(b)) and float(a.rad()) + float(b.rad()) <= tolerance * max(
        1e-300, float(abs(a.mid()))
    )


def logarithm(ratio: Fraction) -> arb:
    """log(ratio) to 128 bits."""
    return certified(lambda: ball(ratio).log(), 128)


def just_above(value: float, truth: arb) -> bool:
    """Whether a float is at or above a number, and the float two places down is below it."""
    with working(256):
        below = math.nextafter(math.nextafter(value, -math.inf), -math.inf)
        return not ball(Fraction(value)) < truth and bool(ball(Fraction(below)) < truth)


def integral(f: Callable[[acb], acb], ends: Sequence[arb]) -> arb:
    """The integral of f from the first to the last of `ends`, piece by piece; f is analytic inside each piece."""
    total = arb(0)
    for a, b in pairwise(ends):
        total += acb.integral(lambda x, _: f(x), a, b, abs_tol=arb(2) ** -100_000).real
    return total


def laplace_density(y: acb, scale: acb, *, right: bool) -> acb:
    """The density of Laplace(scale) on the side of its centre that `y` is known to lie on."""
    return (-(y if right else -y) / scale).exp() / (2 * scale)


def normal_density(y: acb, scale: acb) -> acb:
    """The density of N(0, scale^2)."""
    return (-((y / scale) ** 2) / 2).exp() / (scale * (2 * acb.pi()).sqrt())


def release_gap(pmf: Callable[[int], arb], shift: int, epsilon: Fraction, outcomes: range) -> arb:
    """The sum over `outcomes` of how much P[k - shift] exceeds e^epsilon P[k]."""
    factor = ball(epsilon).exp()
    excess = ((pmf(k - shift) - factor * pmf(k)).max(arb(0)) for k in outcomes)
    return sum(excess, arb(0))
