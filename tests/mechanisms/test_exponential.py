"""The exponential mechanism: its law, its decisions at the boundaries, its privacy."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

from sordino.errors import InvalidInput
from sordino.mechanisms import exponential
from sordino.mechanisms.bits import SecureBits
from sordino.mechanisms.exponential import bounded_range, draw, happens
from sordino.privacy.ball import ball, working
from statistics_of_draws import ACCEPT, REJECT
from tape import Script, Tape


def law(sizes: list[int], distances: list[int], rate: Fraction) -> list[arb]:
    """The probabilities by their definition, at the working precision."""
    weights = [
        size * ball(-rate * (d - min(distances))).exp()
        for size, d in zip(sizes, distances, strict=True)
    ]
    total = sum(weights, arb(0))
    return [w / total for w in weights]


def chi_squared(observed: npt.NDArray[np.int64], expected: npt.NDArray[np.float64]) -> float:
    keep = expected >= 5
    return float(
        chdtrc(keep.sum() - 1, float(((observed - expected)[keep] ** 2 / expected[keep]).sum()))
    )


SIZES, DISTANCES, RATE = (
    [1 + i % 3 for i in range(40)],
    [(7 * i) % 40 for i in range(40)],
    Fraction(1, 10),
)


def test_draws_have_the_law_and_no_other() -> None:
    bits, count = SecureBits(), 20_000
    observed = np.bincount(
        [draw(SIZES, DISTANCES, RATE, bits) for _ in range(count)], minlength=len(SIZES)
    )

    def expected(sizes: list[int], rate: Fraction) -> npt.NDArray[np.float64]:
        with working(96):
            return np.array([float(p) for p in law(sizes, DISTANCES, rate)]) * count

    assert chi_squared(observed, expected(SIZES, RATE)) > ACCEPT
    for off in (Fraction(110, 100), Fraction(100, 110)):
        assert chi_squared(observed, expected(SIZES, RATE * off)) < 1e-5
    assert chi_squared(observed, expected([2, *SIZES[1:]], RATE)) < REJECT


PROBLEMS: list[tuple[list[int], list[int], Fraction]] = [
    (SIZES, DISTANCES, RATE),
    ([1, 1], [0, 0], Fraction(1)),
    ([1, 1, 1], [5, 5, 5], Fraction(0)),
    ([1] * 1500, list(range(1500)), Fraction(1, 700)),
    ([2**62, 1, 2**62], [40, 0, 41], Fraction(1)),
    ([1, 10**18, 7], [0, 41 * 10**6, 3 * 10**6], Fraction(1, 10**6)),
    ([1, 3], [10**18, 10**18 + 1], Fraction(1)),
    ([1, 3, 1], [10**30, 10**30 + 2, 10**40], Fraction(1, 2)),
    ([2, 3], [0, 1], Fraction(1, 10**400)),
    ([2, 3], [0, 1], Fraction(1, 10**18)),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
def test_floats_and_balls_are_the_same_function_of_the_bits(
    problem: tuple[list[int], list[int], Fraction],
) -> None:
    fast = [draw(*problem, Tape(seed)) for seed in range(40)]
    assert fast == [draw(*problem, Tape(seed), always_refine=True) for seed in range(40)]


@pytest.mark.parametrize("problem", PROBLEMS[:7], ids=range(7))
def test_what_floats_decide_beside_a_boundary_is_what_balls_decide_for_every_continuation(
    problem: tuple[list[int], list[int], Fraction],
) -> None:
    """All-zero and all-one continuations are the two ends of the word's interval."""
    sizes, distances, rate = problem
    counts, gaps = np.array(sizes), np.array(distances, object)
    gaps = (gaps - gaps.min()).astype(np.int64)
    with working(256):
        probabilities = law(sizes, distances, rate)[:6]
        edges = [sum(probabilities[:i], arb(0)) for i in range(1, len(probabilities))]
        words = [int((edge * 2**64).floor().unique_fmpz() or 0) for edge in edges]
    decided = refined = 0
    for word, offset, sign in product(words, [0, 1, 2, *(2**j for j in range(4, 62, 6))], (-1, 1)):
        near = word + sign * offset
        if not 0 <= near < 2**64:
            continue
        place = exponential._decide(near, counts, gaps, float(rate))
        if place is None:
            refined += 1
            assert draw(sizes, distances, rate, Script([near], then=7)) in range(len(sizes))
            continue
        decided += 1
        ends = {
            exponential._refine(near, sizes, gaps.tolist(), rate, Script([], then=t))
            for t in (0, 2**64 - 1)
        }
        assert ends == {place}
    assert decided
    assert refined


def test_a_word_on_the_boundary_itself_is_decided_by_later_words() -> None:
    """Two equal candidates: the boundary is exactly 1/2, so the first words 0111.. and 1000.. are doubtful."""
    ones = 2**64 - 1
    low, high = Script([ones >> 1, ones, ones, 0]), Script([1 << 63, 0, 0, 1])
    assert draw([1, 1], [4, 4], Fraction(3), low) == 0
    assert draw([1, 1], [4, 4], Fraction(3), high) == 1
    assert low.asked > 1
    assert high.asked > 1


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2**63 - 1), st.integers(0, 10**20)), min_size=1, max_size=8),
    st.fractions(0, 100),
    st.integers(0, 2**64 - 1),
)
def test_any_problem_gives_a_place_and_the_same_on_both_roads(
    candidates: list[tuple[int, int]], rate: Fraction, word: int
) -> None:
    sizes, distances = [s for s, _ in candidates], [d for _, d in candidates]
    place = draw(sizes, distances, rate, Script([word], then=12345))
    assert 0 <= place < len(sizes)
    assert place == draw(sizes, distances, rate, Script([word], then=12345), always_refine=True)


def test_float_weights_keep_the_bound_of_the_proof() -> None:
    """Lemma 2: relative error below 2300 units of 2^-53, wherever the weight counts."""
    gaps = np.concatenate([np.arange(2000), np.random.default_rng(3).integers(0, 2**40, 2000)])
    for rate in (Fraction(1, 3), Fraction(1, 10**9), Fraction(7, 10**10)):
        weights = np.exp(gaps.astype(float) * -float(rate))
        with working(160):
            for gap, weight in zip(gaps.tolist(), weights.tolist(), strict=True):
                if rate * gap < 700:
                    assert abs(arb(weight) / ball(-rate * gap).exp() - 1) < 2300 * 2.0**-53


KERNEL_PROBE = """
import json, numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as f, __cpu_dispatch__ as d
x = np.array(json.load(open(0)))
print(json.dumps([np.exp(x).tolist(), np.expm1(x).tolist(), [n for n in d if f.get(n)]]))
"""


def test_every_kernel_of_numpy_on_this_machine_is_four_times_better_than_the_eight_units_assumed() -> (
    None
):
    """Of exp and expm1; NumPy picks its kernel by the processor: switch the wide ones off, one after the other."""
    rng = np.random.default_rng(5)
    x = -np.concatenate(
        [
            rng.random(500) * 700,
            2.0 ** rng.uniform(-60, 9, 500),
            [math.log(2) * k for k in range(1, 300)],
        ]
    )
    with working(160):
        truth = [(arb(v).exp(), arb(v).expm1()) for v in x.tolist()]
    off: list[str] = []
    while True:
        answer = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", KERNEL_PROBE],
            input=json.dumps(x.tolist()),
            env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(off)},
            capture_output=True,
            text=True,
            check=True,
        )
        exps, expm1s, on = json.loads(answer.stdout)
        for a, b, (true_a, true_b) in zip(exps, expm1s, truth, strict=True):
            assert abs(arb(a) / true_a - 1) < 4 * 2.0**-53, off
            assert abs(arb(b) / true_b - 1) < 4 * 2.0**-53, off
        if not on:
            break
        off.append(on[-1])
    assert all(
        abs(arb(math.exp(v)) / t - 1) < 4 * 2.0**-53
        for v, (t, _) in zip(x.tolist(), truth, strict=True)
    )


def test_a_million_candidates_and_one() -> None:
    distances = np.abs(np.arange(10**6) - 400_000)
    found = draw(np.ones(10**6, np.int64), distances, Fraction(1, 10), SecureBits())
    assert abs(found - 400_000) < 700
    script = Script([])
    assert draw([5], [10**50], Fraction(1), script) == 0
    assert script.asked == 0


@pytest.mark.parametrize(
    ("sizes", "distances", "rate"),
    [([], [], Fraction(1)), ([0, 1], [0, 0], Fraction(1)), ([1, 1], [0, -1], Fraction(1)), ([1], [0, 0], Fraction(1)),
     ([2**63, 1], [0, 0], Fraction(1)), ([1, 1], [0, 0], Fraction(-1)), ([0.5, 1], [0, 0], Fraction(1))],
)  # fmt: skip
def test_refusals(sizes: Any, distances: Any, rate: Fraction) -> None:
    with pytest.raises(InvalidInput):
        draw(sizes, distances, rate, SecureBits())


def test_draws_are_private_for_every_small_change_of_the_distances() -> None:
    """Theorem 1, exhaustively: all pairs of distances in 0 .. 3 over three candidates; and it is tight."""
    rate, sizes = Fraction(1, 2), [1, 2, 1]
    probabilities = {}
    with working(96):
        for d in product(range(4), repeat=3):
            probabilities[d] = [float(p) for p in law(sizes, list(d), rate)]
    tightest = 0.0
    for d, e in product(probabilities, repeat=2):
        changes = [x - y for x, y in zip(d, e, strict=True)]
        epsilon = float(rate) * (max(changes) - min(changes))
        losses = [
            abs(math.log(p / q)) for p, q in zip(probabilities[d], probabilities[e], strict=True)
        ]
        assert max(losses) <= epsilon + 1e-12
        tightest = max(tightest, max(losses) / epsilon if epsilon else 0)
    assert tightest > 0.9


def test_events_of_exponential_probability() -> None:
    bits = SecureBits()
    for exponent in (Fraction(1, 20), Fraction(1), Fraction(3)):
        count, p = 40_000, math.exp(-exponent)
        hits = sum(happens(exponent, bits) for _ in range(count))
        assert abs(hits - count * p) < 6.5 * math.sqrt(count * p * (1 - p))
        assert abs(hits - count * p * 1.25) > 4 * math.sqrt(count * p * (1 - p))
    assert happens(Fraction(0), Script([]))
    assert not happens(Fraction(10**400), Script([1]))
    assert happens(Fraction(10**2), Script([0, 0, 0, 1]))
    # the first word is that of 1/e itself: the next ones decide
    with working(300):
        digits = int(((-arb(1)).exp() * 2**128).floor().unique_fmpz() or 0)
    top, rest = digits >> 64, digits & (2**64 - 1)
    assert happens(Fraction(1), Script([top, rest - 1]))
    assert not happens(Fraction(1), Script([top, rest + 1]))


def _pair(t: float, epsilon: float) -> tuple[float, float]:
    """The two-outcome pair with losses t and t - epsilon, the worst of those with bounded range."""
    q = (1 - math.exp(t - epsilon)) / (math.exp(t) - math.exp(t - epsilon))
    return math.exp(t) * q, q


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 2), Fraction(2), Fraction(9)])
def test_bounded_range_bounds_hold_for_the_worst_pairs_and_are_tight(epsilon: Fraction) -> None:
    from scipy.special import ndtri

    mu_squared, rho = bounded_range(epsilon)
    e = float(epsilon)
    worst_mu = worst_rho = 0.0
    for t in np.linspace(0, e, 201)[1:-1].tolist():
        p, q = _pair(t, e)
        worst_mu = max(worst_mu, float(ndtri(p) - ndtri(q)))
        for alpha in (1.001, 1.5, 2, 5, 20):
            renyi = math.log(
                p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
            ) / (alpha - 1)
            worst_rho = max(worst_rho, renyi / alpha)
    assert worst_mu**2 <= float(mu_squared) * (1 + 1e-6)
    assert worst_mu**2 >= float(mu_squared) * 0.999
    assert worst_rho <= float(rho) * (1 + 1e-3)
    if epsilon <= 1:
        assert worst_rho >= float(rho) * 0.95
    parts = [bounded_range(epsilon / 3), bounded_range(2 * epsilon / 3)]
    assert sum((m for m, _ in parts), Fraction(0)) <= mu_squared
    assert sum((r for _, r in parts), Fraction(0)) <= rho
    assert bounded_range(Fraction(0)) == (Fraction(0), Fraction(0))
