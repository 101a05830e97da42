"""Laplace and Gaussian noise: release, interval, exact law, calibration, refusals."""

from __future__ import annotations

import math
import random
import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sordino as so
from first_of import first_of
from sordino.accounting.charge import Charge
from sordino.errors import InvalidInput
from sordino.mechanisms.additive import Additive
from sordino.privacy.loss import DiscreteLaplaceLoss, LaplaceLoss
from tape import Script, Tape, replay

KINDS: tuple[type[Additive], ...] = (so.Laplace, so.Gaussian)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_lists_and_arrays_come_back_as_they_came(kind: type[Additive]) -> None:
    m = kind(scale=2)
    assert type(m.release(42)) is int
    assert type(m.release(42.0)) is int
    assert type(m.release(np.int32(42))) is int
    assert [type(x) for x in m.release([1, 2, 3])] == [int] * 3
    assert m.release(np.zeros((2, 5), np.int8)).dtype == np.int64
    assert m.release(np.zeros((2, 5))).shape == (2, 5)
    cents = kind(scale=2, step=0.01)
    assert type(cents.release(0.29)) is float
    assert cents.release(np.array([0.29, 7])).dtype == np.float64
    assert type(kind(scale=20, step=5).release(10)) is int


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_does_not_depend_on_the_value(kind: type[Additive]) -> None:
    """Neighbour replay: on the same tape two inputs give outputs that differ exactly as the inputs do."""
    m = kind(scale=Fraction(50, 3))
    for n in (1, 3, 8, 9, 5000):
        a = np.arange(n)
        b = a + np.random.default_rng(n).integers(-(10**9), 10**9, n)
        with replay(Tape(n)):
            x = m.release(a)
        with replay(Tape(n)):
            y = m.release(b)
        with replay(Tape(n)):
            z = m.release(b.tolist())
        assert (y - x == b - a).all()
        assert y.tolist() == z


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1, -1, 7, Fraction(0), np.int64(0), 2**70])
def test_the_noise_on_one_number_does_not_depend_on_it(kind: type[Additive], value: Any) -> None:
    """Zero is a number like any other: an empty cell must not show."""
    m = kind(scale=Fraction(50, 3))
    with replay(Tape(1)):
        noise = [m.release(3) - 3 for _ in range(100)]
    with replay(Tape(1)):
        assert [m.release(value) - int(value) for _ in range(100)] == noise
    assert len(set(noise)) > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [Fraction(1, 100), Fraction(1, 3), Fraction(1, 1024), 5, 1])
def test_every_output_lies_on_the_public_lattice_whatever_the_input(
    kind: type[Additive], step: Any
) -> None:
    """The precision attack: the granularity of the output must not tell the input."""
    m = kind(scale=10, step=step)
    for steps in (0, 1, -7, 10**6, 12345678):
        out = m.release(
            np.full(200, steps) * 1.0 * float(step) if step != 1 else np.full(200, steps),
            round_to_lattice=True,
        )
        for y in out.tolist():
            k = round(Fraction(y) / Fraction(step))
            assert y == (k * step if isinstance(step, int) else float(k * step))


def trailing_zeros(
    values: np.ndarray[Any, np.dtype[np.float64]],
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """How many outputs are multiples of 2^-k, for k = 40 .. 55: the pattern that float noise leaks."""
    return np.array(
        [int((np.ldexp(values, k) == np.rint(np.ldexp(values, k))).sum()) for k in range(40, 56)]
    )


def test_the_bit_pattern_attack_breaks_float_noise_and_not_ours() -> None:
    n = 200_000
    rng = np.random.default_rng(3)
    textbook = [trailing_zeros(v + rng.laplace(0, 1, n)) for v in (0.0, 1.0)]
    assert np.abs(textbook[0] - textbook[1]).max() > 20 * math.sqrt(n)
    m = so.Laplace(scale=1, step=Fraction(1, 2**45))
    ours = [trailing_zeros(m.release(np.full(2000, v))) for v in (0.0, 1.0)]
    assert (ours[0][5:] == 2000).all()
    assert (ours[1][5:] == 2000).all()
    assert np.abs(ours[0] - ours[1]).max() < 7 * math.sqrt(2000)


@pytest.mark.parametrize("kind", KINDS)
def test_every_integer_is_reachable_from_every_value(kind: type[Additive]) -> None:
    m = kind(scale=Fraction(3, 10))
    for k in (0, 1, -1, 5, 100, -(10**3)):
        for value in (0, 1, -40):
            assert m._noise.pmf_ball(k - value) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_interval_is_the_smallest_that_covers(kind: type[Additive]) -> None:
    for scale in (Fraction(1, 5), 1, Fraction(7, 3), 250):
        m = kind(scale=scale)
        for confidence in (0.01, 0.5, 0.95, 0.999999, Fraction(99, 100)):
            half = m.interval(confidence)
            assert isinstance(half, int)
            covered = m.cdf(half) - m.cdf(-half - 1)
            assert covered >= float(confidence) - 1e-15
            if half:
                assert m.cdf(half - 1) - m.cdf(-half) < float(confidence)
    assert kind(scale=1, step=0.01).interval(0.95) == pytest.approx(
        {so.Laplace: 2.9957, so.Gaussian: 1.96}[kind], abs=0.01
    )


def test_pmf_and_cdf_are_the_closed_forms() -> None:
    m, g = so.Laplace(scale=2), so.Gaussian(scale=2)
    assert m.pmf(0) == -math.expm1(-1 / 4)
    assert m.pmf(3) == pytest.approx(math.exp(-3 / 2) * math.sinh(1 / 4), rel=1e-15)
    assert m.pmf(3) == m.pmf(-3) == m.pmf(8, value=5)
    assert g.pmf(1) == pytest.approx(
        0.5 * (math.erf(1.5 / 2**1.5) - math.erf(0.5 / 2**1.5)), rel=1e-14
    )
    for x in (m, g):
        ks = list(range(-60, 61))
        assert float(x.pmf(ks).sum()) == pytest.approx(1, abs=1e-12)
        assert np.allclose(np.cumsum(x.pmf(ks)), x.cdf(ks), rtol=0, atol=1e-12)
        assert x.cdf(-70) > 0  # tails without underflow or cancellation
        assert x.pmf(np.array([[0, 1], [2, 3]])).shape == (2, 2)
        with pytest.raises(InvalidInput, match="whole number of steps"):
            x.pmf(0.5)  # type: ignore[arg-type]


def random_parameters(n: int) -> list[tuple[float, float]]:
    rng = random.Random(7)
    extreme = [
        5e-324,
        2.2e-308,
        1e-300,
        1e-12,
        0.1,
        0.3,
        1 / 3,
        0.7,
        1.0,
        3.0,
        1e12,
        1e300,
        1.7e308,
    ]
    pairs = [(s, e) for s in extreme for e in extreme]
    wide = [math.ldexp(rng.random(), rng.randint(-1070, 1020)) for _ in range(n)]
    pairs += list(zip(wide[::2], wide[1::2], strict=True))
    pairs += [(rng.random() * 10, rng.random()) for _ in range(n // 2)]
    return [(s, e) for s, e in pairs if s > 0 and e > 0]


def test_rounded_noise_on_counts_is_as_good_as_decided() -> None:
    """The figures of docs/decisions/0005: a little more error than geometric noise, for less of the Gaussian meter.

    And what a geometric draw would be: rounded noise whose draws other than 0 are kept with probability
    1/cosh(epsilon/2).
    """
    page = Path(__file__).parents[2] / "docs" / "decisions" / "0005-counts-have-rounded-noise.md"
    lines = [
        line.strip("| ").split(" | ")
        for line in page.read_text().splitlines()
        if re.match(r"\| [\d.]+ \|", line)
    ]
    assert len(lines) == 6
    for epsilon, *told in lines:
        rounded, q = so.Laplace(scale=1 / Fraction(epsilon)), math.exp(-float(epsilon))
        law = {k: rounded.pmf(k) for k in range(1, math.ceil(40 / float(epsilon)))}
        variance, geometric = sum(2 * k * k * p for k, p in law.items()), 2 * q / (1 - q) ** 2
        price, dearer = (
            Charge.of(LaplaceLoss(Fraction(epsilon))),
            Charge.of(DiscreteLaplaceLoss(1, 1 / Fraction(epsilon))),
        )
        assert float(dearer.pure or 0) == pytest.approx(float(price.pure or 0))
        assert price.mu_squared is not None
        assert dearer.mu_squared is not None
        more = float(dearer.mu_squared / price.mu_squared)
        found = math.sqrt(variance / geometric), more, variance / geometric / more
        assert [f"{found[0]:.3f}", *(f"{x:.2f}" for x in found[1:])] == told
        kept = 1 / math.cosh(float(epsilon) / 2)
        assert all(
            p * kept == pytest.approx((1 - q) / (1 + q) * q**k) for k, p in law.items() if k < 20
        )


@pytest.mark.parametrize("count", first_of(1, [20_000, 100_000]))
def test_laplace_scale_is_never_below_sensitivity_over_epsilon(count: int) -> None:
    """In exact arithmetic, under both readings of each float, and never more than a rounding above."""
    below_in_floats = 0
    for sensitivity, epsilon in random_parameters(count):
        scale = so.Laplace.calibrated(sensitivity=sensitivity, epsilon=epsilon).scale
        ratio = Fraction(sensitivity) / Fraction(epsilon)
        assert scale >= ratio
        if sensitivity > 1e-290 and epsilon > 1e-290:
            assert scale <= ratio * (1 + Fraction(1, 10**15))
        if math.isfinite(sensitivity / epsilon):
            below_in_floats += Fraction(sensitivity / epsilon) < ratio
    # a plain float division would have been too small that often
    assert below_in_floats > count / 10


def test_decimal_readings_are_covered_too() -> None:
    for s in ("0.29", "0.07", "1.1", "3"):
        for e in ("0.1", "0.3", "0.7", "1.1"):
            assert so.Laplace.calibrated(sensitivity=float(s), epsilon=float(e)).scale >= Fraction(
                s
            ) / Fraction(e)
    assert so.Laplace.calibrated(sensitivity=1, epsilon=0.1).scale == 10
    assert so.Laplace.calibrated(sensitivity=Decimal("0.3"), epsilon=Decimal("0.1")).scale == 3


def test_calibration_and_loss_agree_to_the_float() -> None:
    for sensitivity, epsilon in random_parameters(300):
        if 1e-12 < epsilon < 1e3:
            m = so.Laplace.calibrated(sensitivity=sensitivity, epsilon=epsilon)
            assert m.loss(sensitivity).maximum() <= epsilon


@pytest.mark.parametrize("name", ["sensitivity", "epsilon", "delta", "scale", "step"])
@pytest.mark.parametrize(
    "bad",
    [
        0,
        -1,
        0.0,
        -0.5,
        math.nan,
        math.inf,
        -math.inf,
        "1",
        None,
        True,
        1j,
        [1],
        np.array([1.0]),
        Decimal("NaN"),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused_by_name(name: str, bad: Any) -> None:
    good: dict[str, Any] = {"sensitivity": 1, "epsilon": 1, "delta": 1e-6}
    calls: list[Any] = []
    if name in good:
        calls.append(lambda: so.Gaussian.calibrated(**{**good, name: bad}))
        if name != "delta":
            calls.append(
                lambda: so.Laplace.calibrated(**{"sensitivity": 1, "epsilon": 1, name: bad})
            )
        if name == "sensitivity":
            calls += [lambda: so.Laplace(1).loss(bad), lambda: so.Gaussian(1).loss(bad)]
    else:
        calls += [lambda kind=kind: kind(**{"scale": 1, name: bad}) for kind in KINDS]
    for call in calls:
        with pytest.raises(InvalidInput, match=name) as caught:
            call()
        assert caught.value.rule
        assert caught.value.hint


@pytest.mark.parametrize("bad", [0, 1, -1, 2, math.nan, "0.95", None])
def test_bad_confidence_is_refused(bad: Any) -> None:
    for kind in KINDS:
        with pytest.raises(InvalidInput, match="confidence"):
            kind(scale=1).interval(bad)


def test_nothing_is_drawn_when_a_value_is_refused() -> None:
    script = Script([])
    with replay(script):
        for bad in (math.nan, 0.5, [1, math.inf], np.array([]), "x"):
            with pytest.raises(InvalidInput):
                so.Laplace(scale=1).release(bad)
    assert script.asked == 0


def test_memory_stays_within_six_output_arrays() -> None:
    value = np.zeros(10**6, np.int64)
    for kind in KINDS:
        m = kind(scale=1000)
        m.release(value)
        tracemalloc.start()
        m.release(value)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 6 * value.nbytes


def test_repr_equality_and_hash() -> None:
    assert repr(so.Laplace(scale=2)) == "Laplace(scale=2)"
    assert repr(so.Laplace(scale=Fraction(10, 3), step=0.01)) == "Laplace(scale=10/3, step=0.01)"
    assert repr(so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6)).startswith(
        "Gaussian(scale=4.22467888"
    )
    assert so.Laplace(2) == so.Laplace(2.0)
    assert len({so.Laplace(2), so.Laplace(2), so.Gaussian(2)}) == 2
    with pytest.raises(AttributeError):
        so.Laplace(2).scale = 3  # type: ignore[misc, assignment]
