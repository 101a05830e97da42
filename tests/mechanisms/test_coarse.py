"""Large noise on a coarser lattice: round((k + Z)/2^j) 2^j, exactly, and nothing of k's last digits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest

from sordino import Gaussian, Laplace
from sordino.mechanisms.additive import Additive
from sordino.mechanisms.combination import Noise
from sordino.mechanisms.rounded import LAPLACE, NORMAL, Parts, RoundedNoise, Shape, coarseness
from sordino.privacy.ball import working
from statistics_of_draws import ACCEPT, REJECT, p_value
from tape import Script, Tape, replay

KINDS = (Laplace, Gaussian)
SCALES = (Fraction(2**31), Fraction(2**41, 3), Fraction(3 * 2**70), Fraction(10**40, 7))


def test_coarseness_is_the_least_that_brings_the_scale_below_two_to_the_thirtieth() -> None:
    for scale in (
        Fraction(1, 7),
        Fraction(2**30),
        Fraction(2**30) + Fraction(1, 3),
        Fraction(2**31),
        *SCALES,
    ):
        j = coarseness(scale)
        assert scale <= 2 ** (30 + j)
        assert j == 0 or scale > 2 ** (29 + j)
        if j:
            assert Fraction(2 ** (j - 1)) < scale / 10**9  # what rounding adds to the error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [1, 3000])
def test_what_is_released_is_the_rounded_sum_of_value_and_noise(
    kind: type[Additive], scale: Fraction, count: int
) -> None:
    """The same bits as noise on the fine lattice: both are rounded from one k + Z."""
    m, unit = kind(scale), 2 ** coarseness(scale)
    values = [int(v) for v in np.random.default_rng(count).integers(-(2**62), 2**62, count)]
    with replay(Tape(3)):
        released = m.release(values)
    fine = (
        RoundedNoise(m.shape, scale).draw(count, Tape(3), always_refine=True) if count > 8 else None
    )
    if fine is None:
        source = Tape(3)
        fine = np.array(
            [RoundedNoise(m.shape, scale).draw_one(source) for _ in range(count)], object
        )
    for value, noise, out in zip(values, fine.tolist(), released, strict=True):
        assert out % unit == 0
        assert abs(out - value - noise) <= Fraction(unit + 1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_lists_and_arrays_are_treated_alike(kind: type[Additive]) -> None:
    m = kind(Fraction(2**45))
    for values in ([7], list(range(-4, 4)), list(range(-500, 500)), [2**62, -(2**62), 2**70]):
        outs: list[list[int]] = []
        for form in (values, np.array(values, object)):
            with replay(Tape(5)):
                out = m.release(form)
            outs.append([int(x) for x in out])
        assert outs[0] == outs[1]
        if len(values) == 1:
            with replay(Tape(5)):
                assert m.release(values[0]) == outs[0][0]


@pytest.mark.parametrize(
    ("shape", "scale", "bits"),
    list(product((LAPLACE, NORMAL), (2**30, 1000, Fraction(7, 3)), (1, 40, 90))),
)
def test_the_slow_path_with_parts_is_the_same_function_of_the_bits(
    shape: Shape, scale: Any, bits: int
) -> None:
    noise = RoundedNoise(shape, Fraction(scale))
    chance = np.random.default_rng(2)
    parts = Parts(
        np.array([int(chance.integers(2**62)) * 2**bits // 2**62 for _ in range(2000)], object),
        bits,
    )
    assert (
        noise.draw(2000, Tape(5), parts).tolist()
        == noise.draw(2000, Tape(5), parts, always_refine=True).tolist()
    )
    few = Parts(parts.numerators[:8], bits)
    words = [int(w) for w in Tape(6).words(8)]
    exact = noise.draw(8, Script(list(words)), few, always_refine=True)
    assert noise.draw(8, Script(list(words)), few).tolist() == exact.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0, 1, 2**15 - 1, -(2**15)])
def test_draws_have_the_law_and_no_other(kind: type[Additive], value: int) -> None:
    m = kind(Fraction(2**46))
    unit = 2 ** coarseness(m.scale)
    draws = m.release(np.full(100_000, value)) // unit

    def tail(factor: Fraction, shift: int = 0) -> Any:
        law = RoundedNoise(m.shape, m.scale / unit * factor)

        def probability(k: int) -> float:
            with working(96):
                return float(law.tail_ball(k - shift - Fraction(value, unit)))

        return probability

    scale = float(m.scale / unit)
    assert p_value(draws, tail(Fraction(1)), scale) > ACCEPT
    assert p_value(draws, tail(Fraction(108, 100)), scale) < REJECT
    assert p_value(draws, tail(Fraction(1), shift=round(scale / 10)), scale) < REJECT


@pytest.mark.parametrize("distance", [1, 2**14, 2**15, 2**20, 2**40])
def test_laplace_of_neighbours_differs_by_no_more_than_epsilon_anywhere(distance: int) -> None:
    """Also for a distance far below the coarse lattice, wherever the value lies on it."""
    m = Laplace(Fraction(2**45))
    unit = 2 ** coarseness(m.scale)
    most = math.exp(distance / 2**45) * (1 + 1e-12)
    for value in (0, 1, unit // 2 - 1, unit // 2, unit - 1, -unit):
        for out in (-(2**46) // unit * unit, -unit, 0, unit, 5 * unit, 2**45):
            assert m.pmf(out, value) <= most * m.pmf(out, value + distance)
            assert m.pmf(out, value + distance) <= most * m.pmf(out, value)


def test_pmf_and_cdf_are_of_the_coarse_lattice() -> None:
    m = Laplace(Fraction(2**33))
    unit = 2 ** coarseness(m.scale)
    assert unit == 8
    assert m.pmf(3, 0) == 0.0 < m.pmf(8, 0)
    assert m.cdf(15, 5) == m.cdf(8, 5) < m.cdf(16, 5)
    assert m.cdf(16, 5) - m.cdf(8, 5) == pytest.approx(m.pmf(16, 5), rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_allow_for_the_rounding(kind: type[Additive]) -> None:
    m = kind(Fraction(2**41))
    unit = 2 ** coarseness(m.scale)
    width = m.interval(0.95)
    for value in (0, unit // 2, unit - 1):
        within = m.cdf(value + int(width), value) - m.cdf(value - int(width) - 1, value)
        assert within >= 0.95
        assert within == pytest.approx(0.95, abs=1e-6)
    family: Literal["laplace", "gaussian"] = "laplace" if kind is Laplace else "gaussian"
    noise = Noise(family, m.scale)
    bare = Noise(family, 2**20).half_width([[1.0]], 0.95)[0] * 2**21
    assert noise.rounding == unit / 2
    assert noise.half_width([[1.0]], 0.95)[0] >= m.interval(0.95) - 1
    assert noise.half_width([[1.0]], 0.95)[0] == pytest.approx(bare, rel=1e-4)
    assert noise.norm([[1.0, 1.0]], 0.95)[0] >= noise.half_width([[1.0, 1.0]], 0.95)[0]


def test_ordinary_scales_are_as_they_were() -> None:
    for scale in (Fraction(1, 3), Fraction(2**30)):
        m = Laplace(scale)
        with replay(Tape(1)):
            released = m.release(np.arange(100))
        assert (released - np.arange(100)).tolist() == RoundedNoise(LAPLACE, scale).draw(
            100, Tape(1)
        ).tolist()
        assert Noise("laplace", scale).rounding == 0.5
