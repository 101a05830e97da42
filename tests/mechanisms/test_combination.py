from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from sordino.errors import InvalidInput
from sordino.mechanisms.combination import (
    _GAP,
    EXACT,
    Family,
    Floats,
    Noise,
    _alpha,
    _apart,
    half_width,
    reach,
)
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace

FAMILIES: tuple[Family, ...] = ("laplace", "gaussian")
SHAPES = [(1.0, 1.0), (1.0, 0.5), (1.0, 0.999999), (-1.0, 1e-9), (2.0, -1.0, 0.5), (1.0, 1.0, 1.0), (1.0, 0.9995, 0.3),
          (0.0, 3.0, 2.0), (1.0, 1.0, 1.0, 1.0), (4.0, 3.0, 2.0, 1.0), (1.0, 1e-3, 1e-6, 1e-200),
          (1.0, 0.9999, 0.9998, 0.1), (1.0,) * 5, (1.0,) * 6, (1.0,) * 7, (1.0,) * 8, (1.0,) * 9, (1.0,) * 10,
          (1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25), (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0),
          (1.0, 0.99, 0.98, 0.97, 0.5, 1e-9), (1.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)]  # fmt: skip


def laplace_tail(coefficients: tuple[float, ...], x: float) -> Decimal:
    """P[|sum of c*Z| > x] by partial fractions in 300 digits; equal scales differ by 10^-30 there."""
    with localcontext() as context:
        context.prec = 300
        scales = [
            Decimal(abs(c)) * (1 + Decimal(j) * Decimal(10) ** -30)
            for j, c in enumerate(coefficients)
            if c
        ]
        total = Decimal(0)
        for j, a in enumerate(scales):
            weight = Decimal(1)
            for i, b in enumerate(scales):
                if i != j:
                    weight *= a * a / (a * a - b * b)
            total += weight * (-Decimal(x) / a).exp()
        return total


def gaussian_tail(coefficients: tuple[float, ...], x: float) -> float:
    return math.erfc(x / math.hypot(*coefficients) / math.sqrt(2))


def rounded_pmf(family: Family, scale: float, reach_to: int) -> Floats:
    """P[round(scale*Z) = k] for k = -reach_to..reach_to,
    from the two distribution functions as textbooks print them.
    """
    edges = (np.arange(-reach_to, reach_to + 2) - 0.5) / scale
    if family == "laplace":
        cdf = [math.exp(e) / 2 if e < 0 else 1 - math.exp(-e) / 2 for e in edges.tolist()]
    else:
        cdf = [math.erfc(-e / math.sqrt(2)) / 2 for e in edges.tolist()]
    return np.diff(cdf)


def draws(family: Family, scale: float, shape: tuple[int, ...], seed: int) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    z = rng.laplace(size=shape) if family == "laplace" else rng.normal(size=shape)
    return np.rint(scale * z).astype(np.int64)


@pytest.mark.parametrize("coefficients", SHAPES)
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999, Fraction(10**12 - 1, 10**12)])
def test_laplace_reach_is_never_too_small_and_a_hair_too_large(
    coefficients: tuple[float, ...], confidence: float | Fraction
) -> None:
    alpha = Decimal(1) - Decimal(Fraction(confidence).numerator) / Decimal(
        Fraction(confidence).denominator
    )
    x = float(reach("laplace", [coefficients], confidence)[0])
    hair = {1: 1.0001, 2: 1.0001, 10: 1.015}.get(len([c for c in coefficients if c]), 1.01)
    assert laplace_tail(coefficients, x) <= alpha
    assert laplace_tail(coefficients, x / hair) > alpha


def test_spread_scales_reach_farther() -> None:
    """Theorem 6: moving scales apart, with their geometric mean kept, makes every tail larger; so does a majorant."""
    rng = np.random.default_rng(8)
    for d in (3, 5, 9):
        close = np.sort(np.exp(0.05 * rng.normal(size=(4, d))))[:, ::-1]
        apart = _apart(close)
        assert (np.log(apart[:, :-1] / apart[:, 1:]) >= _GAP[d] * (1 - 1e-9)).all()
        assert np.allclose(np.log(apart).sum(axis=1), np.log(close).sum(axis=1), atol=1e-10)
        for c, b in zip(close.tolist(), apart.tolist(), strict=True):
            for x in (0.3, 1.0, 4.0, 12.0):
                assert laplace_tail(tuple(c), x) <= laplace_tail(tuple(b), x)
    wide = np.array([[64.0, 8.0, 1.0, 1e-3, 1e-200]])
    assert np.allclose(_apart(wide), wide, rtol=1e-11)


@pytest.mark.parametrize("coefficients", [(1.0,), *SHAPES])
@pytest.mark.parametrize("confidence", [0.01, 0.95, 1 - 1e-9])
def test_gaussian_reach_is_the_quantile(coefficients: tuple[float, ...], confidence: float) -> None:
    x = float(reach("gaussian", [coefficients], confidence)[0])
    assert gaussian_tail(coefficients, x) <= (1 - confidence) * (1 + 1e-9)
    assert gaussian_tail(coefficients, x * (1 - 1e-6)) > 1 - confidence


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [0.2, 0.7, 3.0, 11.5])
@pytest.mark.parametrize(
    "coefficients", [(1,), (3,), (1, 1), (2, -1), (5, 3), (1, 2, 3), (2, 0, 2)]
)
def test_covers_the_rounded_law_exactly(
    family: Family, scale: float, coefficients: tuple[int, ...]
) -> None:
    """Against the convolution of the laws of rounded noise, integer by integer."""
    span = int(60 * scale) + 10
    law = np.ones(1)
    for c in coefficients:
        if c:
            spread = np.zeros(2 * span * abs(c) + 1)
            spread[:: abs(c)] = rounded_pmf(family, scale, span)
            law = np.convolve(law, spread)
    middle = len(law) // 2
    inside = np.cumsum(
        np.concatenate([law[middle : middle + 1], law[middle + 1 :] + law[:middle][::-1]])
    )
    smallest = int(np.argmax(inside >= 0.95))
    q = float(half_width(family, scale, [coefficients], 0.95)[0])
    assert inside[min(int(q), middle)] >= 0.95
    if len([c for c in coefficients if c]) == 1:
        assert q == smallest
    else:
        assert q <= smallest * 1.01 + sum(map(abs, coefficients)) + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("coefficients", [(1.0,), (1.0, -1.0), (0.3, -0.7), (0.25, -0.1, 0.4)])
def test_coverage_by_simulation_rejects_a_width_too_small_by_a_twentieth(
    family: Family, coefficients: tuple[float, ...]
) -> None:
    n, scale = 400_000, 200.0
    sums = np.abs(draws(family, scale, (n, len(coefficients)), 7) @ np.array(coefficients))
    q = float(half_width(family, scale, [coefficients], 0.95)[0])
    error = math.sqrt(0.95 * 0.05 / n)
    assert np.mean(sums <= q) >= 0.95 - 4 * error
    assert np.mean(sums <= q) <= 0.953
    assert np.mean(sums <= 0.95 * q) < 0.95 - 8 * error


def test_one_noise_has_the_interval_of_its_mechanism() -> None:
    for scale in (Fraction(1, 3), Fraction(2), Fraction(77, 2), Fraction(10**9)):
        for confidence in (0.5, 0.9, 0.95, 0.999):
            assert half_width("laplace", scale, [[1.0]], confidence)[0] == Laplace(scale).interval(
                confidence
            )
            assert half_width("gaussian", scale, [[-1.0]], confidence)[0] == Gaussian(
                scale
            ).interval(confidence)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("confidence", [0.3, 0.95, 1 - 1e-9])
def test_it_is_a_norm_that_grows_with_each_coefficient(family: Family, confidence: float) -> None:
    rng = np.random.default_rng(3)
    noise = Noise(family, 5.0)
    for d in (2, 3, 4, 6, 9):
        a, b = (
            rng.normal(size=(3000, d)) * np.exp(2 * rng.normal(size=(3000, d))) for _ in range(2)
        )
        qa, qb = noise.norm(a, confidence), noise.norm(b, confidence)
        assert (noise.norm(a + b, confidence) <= (qa + qb) * 1.003).all()
        assert np.allclose(noise.norm(-3 * a, confidence), 3 * qa)
        larger = a * (1 + rng.random((3000, d)))
        assert (noise.norm(larger, confidence) >= qa * (1 - 1e-3)).all()
        assert (noise.norm(a, confidence) >= half_width(family, 5.0, a, confidence)).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_many_vectors_are_their_single_answers(family: Family) -> None:
    rng = np.random.default_rng(5)
    c = rng.normal(size=(4, 50, 3)) * (rng.random((4, 50, 3)) < 0.7)
    together = half_width(family, 3.0, c, 0.9)
    assert together.shape == (4, 50)
    for i, j in ((0, 0), (1, 7), (3, 49)):
        assert together[i, j] == pytest.approx(half_width(family, 3.0, c[i, j], 0.9), rel=1e-9)
    assert half_width(family, 3.0, np.zeros((2, 3)), 0.9).tolist() == [0, 0]
    assert half_width(family, 3.0, np.zeros((0, 3)), 0.9).shape == (0,)


def test_noise_that_is_not_rounded_and_no_noise() -> None:
    assert half_width("laplace", 2.0, [[1.0]], 0.95, rounding=0)[0] == pytest.approx(
        -2 * math.log(0.05)
    )
    assert EXACT.half_width([[1.0, 2.0]], 0.95).tolist() == [0]
    assert EXACT.norm([[1.0, 2.0]], 0.95).tolist() == [0]
    assert half_width("gaussian", 1e300, [[1e5, 1e5]], 0.95)[0] == pytest.approx(
        1.96e305 * math.sqrt(2), rel=1e-3
    )


@pytest.mark.parametrize(
    ("scale", "coefficients", "confidence"),
    [(0, [[1.0]], 0.95), (-1.0, [[1.0]], 0.95), (math.inf, [[1.0]], 0.95), (math.nan, [[1.0]], 0.95),
     (1.0, [[math.nan]], 0.95), (1.0, [[math.inf, 1.0]], 0.95), (1.0, 3.0, 0.95), (1.0, [[]], 0.95),
     (1.0, [[1.0] * 11], 0.95), (1.0, [[1.0]], 1.0), (1.0, [[1.0]], 0)],
)  # fmt: skip
def test_refuses_what_has_no_half_width(
    scale: float, coefficients: object, confidence: float
) -> None:
    with pytest.raises(InvalidInput):
        half_width("laplace", scale, coefficients, confidence)  # type: ignore[arg-type]


def test_a_float_and_the_fraction_it_equals_are_not_confused() -> None:
    """What was typed may be the decimal number; the fraction is just what it is. Neither order of asking matters."""
    for first, second in ((0.95, Fraction(0.95)), (Fraction(0.7), 0.7)):
        found = {type(one): _alpha(one) for one in (first, second)}
        assert found[float] < found[Fraction]
