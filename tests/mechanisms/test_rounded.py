"""The sampler: its float errors, its decisions at the boundaries, its law."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb

from sordino.mechanisms.bits import SecureBits
from sordino.mechanisms.inverse_normal import half_normal, half_normal_one
from sordino.mechanisms.rounded import DOUBT, FLOOR, LAPLACE, NORMAL, RoundedNoise, Shape
from sordino.privacy.ball import ball, normal_tail, normal_tail_inverse, working
from statistics_of_draws import ACCEPT, REJECT, p_value
from tape import Script, Tape


def _id(value: object) -> str:
    return value.name if isinstance(value, Shape) else str(value)


SHAPES = (LAPLACE, NORMAL)
SCALES = (
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 2),
    Fraction(1000),
    Fraction(10**6, 7),
    Fraction(2**38),
)

LOG_ALLOWED = 2.0**-46
LOG_SAFETY = 8
RATIONAL_ALLOWED = 2.0**-45


def uniforms() -> npt.NDArray[np.float64]:
    """Random and adversarial arguments of the logarithm: near 1, near powers of two, near FLOOR."""
    rng = np.random.default_rng(1)
    spread = np.concatenate([rng.random(3000), np.exp(rng.uniform(math.log(FLOOR), 0, 3000))])
    powers = [2.0**-k for k in range(18)]
    near = [p * (1 + sign * j * 2.0**-52) for p in powers for j in range(40) for sign in (-1, 1)]
    ends = [1 - j * 2.0**-53 for j in range(200)] + [FLOOR * (1 + j * 2.0**-52) for j in range(200)]
    x = np.concatenate([spread, near, ends])
    return x[(x >= FLOOR) & (x <= 1)]


def largest_log_error(logarithms: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> float:
    with working(160):
        return max(
            float(abs(arb(y) - arb(u).log()))
            for y, u in zip(logarithms.tolist(), x.tolist(), strict=True)
        )


def test_vector_and_scalar_logarithms_are_eight_times_better_than_assumed() -> None:
    x = uniforms()
    assert largest_log_error(np.log(x), x) * LOG_SAFETY <= LOG_ALLOWED
    assert (
        largest_log_error(np.array([math.log(u) for u in x.tolist()]), x) * LOG_SAFETY
        <= LOG_ALLOWED
    )


KERNEL_PROBE = """
import json, numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as f, __cpu_dispatch__ as d
x = np.array(json.load(open(0)))
print(json.dumps([np.log(x).tolist(), [n for n in d if f.get(n)]]))
"""


def test_every_kernel_of_numpy_on_this_machine_keeps_the_logarithm_bound() -> None:
    """NumPy picks its kernel by the processor: switch the wide ones off, one after the other."""
    x = uniforms()
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
        logarithms, on = json.loads(answer.stdout)
        assert largest_log_error(np.array(logarithms), x) * LOG_SAFETY <= LOG_ALLOWED, off
        if not on:
            break
        off.append(on[-1])


def test_the_rational_quantile_is_as_close_as_assumed() -> None:
    v = np.linspace(0, -math.log(FLOOR), 20_001)
    y = half_normal(v, np.empty_like(v), np.empty_like(v))
    with working(160):
        worst = max(
            float(abs(arb(a) - normal_tail_inverse((-arb(b)).exp() / 2)))
            for a, b in zip(y[1:].tolist(), v[1:].tolist(), strict=True)
        )
    assert y[0] == 0
    assert worst <= RATIONAL_ALLOWED * 0.75 + 0.75 * 2.0**-45  # the fit and its evaluation together
    assert [half_normal_one(b) for b in v[::500].tolist()] == y[::500].tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_float_magnitudes_are_within_half_the_doubt_of_every_uniform_they_stand_for(
    shape: Shape,
) -> None:
    rng = np.random.default_rng(2)
    words = np.concatenate(
        [rng.integers(2**45, 2**63 - 1, 3000), 2 ** rng.uniform(45.01, 62.99, 3000)]
    ).astype(np.int64)
    words = np.concatenate([words, ~words])
    v = -np.log(np.abs(words.astype(float)) * 2.0**-63)
    y = shape.magnitude(v, np.empty_like(v), np.empty_like(v))
    for word, magnitude in zip(words.tolist(), y.tolist(), strict=True):
        m = ~word if word < 0 else word
        with working(192):
            true = shape.magnitude_ball(arb(2 * m + 1) / 2**64).union(
                shape.magnitude_ball(arb(m) / 2**63)
            )
            true = true.union(shape.magnitude_ball(arb(m + 1) / 2**63))
            assert abs(true - arb(magnitude)) < DOUBT / 2


def boundary_words(shape: Shape, scale: Fraction) -> list[int]:
    """Words whose uniform lies at, beside and at graded distances from a jump of round(scale g(u))."""
    words: list[int] = []
    top = int(scale * 13)
    for k in sorted({0, 1, 2, 3, top // 7, top // 3, top // 2, top}):
        with working(256):
            edge = ball((k + Fraction(1, 2)) / scale)
            uniform = (-edge).exp() if shape is LAPLACE else 2 * normal_tail(edge)
            center = int((uniform * 2**63).floor().unique_fmpz() or 0)
        offsets = [0, 1, 2, 3, 5, *(2**j for j in range(3, 62, 3))]
        words += [
            center + sign * o for o in offsets for sign in (-1, 1) if 0 <= center + sign * o < 2**63
        ]
    words += [0, 1, 2**44, 2**45 - 1, 2**45, 2**45 + 1, 2**63 - 1]
    return words + [~w for w in words]


@pytest.mark.parametrize(("shape", "scale"), list(product(SHAPES, SCALES)), ids=_id)
def test_what_floats_decide_is_what_balls_decide_for_every_continuation(
    shape: Shape, scale: Fraction
) -> None:
    """All-zero and all-one continuations are the two ends of the word's interval,
    and the law is monotone in between.
    """
    noise = RoundedNoise(shape, scale)
    words = np.array(boundary_words(shape, scale), np.int64)
    out = np.empty(len(words), np.int64)
    doubtful = set(noise._decide(words, out, np.empty((3, len(words)))).tolist())
    decided = 0
    for i, word in enumerate(words.tolist()):
        one = noise._decide_one(word)
        if i in doubtful and one is None:
            continue
        ends = {noise._refine(word, Script([], then=t)) for t in (0, 2**64 - 1)}
        assert one is None or ends == {one}
        assert i in doubtful or ends == {int(out[i])}
        decided += 1
    if 1 <= scale <= 1000:
        assert decided > len(words) // 4


@pytest.mark.parametrize(("shape", "scale"), list(product(SHAPES, SCALES)), ids=_id)
def test_the_slow_path_is_the_same_function_of_the_bits(shape: Shape, scale: Fraction) -> None:
    noise = RoundedNoise(shape, scale)
    fast = noise.draw(2000, Tape(5))
    assert fast.tolist() == noise.draw(2000, Tape(5), always_refine=True).tolist()


def tail(noise: RoundedNoise, factor: float = 1.0, shift: int = 0) -> Callable[[int], float]:
    law = RoundedNoise(noise.shape, noise.scale * Fraction(factor))

    def probability(k: int) -> float:
        with working(96):
            return float(law.tail_ball(k - shift))

    return probability


def assert_law(noise: RoundedNoise, draws: npt.NDArray[np.int64], shift: int) -> None:
    scale = float(noise.scale)
    assert p_value(draws, tail(noise), scale) > ACCEPT
    assert p_value(draws, tail(noise, 1.05), scale) < REJECT
    assert p_value(draws, tail(noise, 1 / 1.05), scale) < REJECT
    assert p_value(draws, tail(noise, shift=shift), scale) < REJECT


@pytest.mark.parametrize(
    ("shape", "scale"), list(product(SHAPES, (Fraction(3, 2), Fraction(100)))), ids=_id
)
def test_a_million_draws_have_the_law_and_no_other(shape: Shape, scale: Fraction) -> None:
    noise = RoundedNoise(shape, scale)
    assert_law(noise, noise.draw(10**6, SecureBits()), shift=max(1, int(scale / 50)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "scale"), list(product(SHAPES, (Fraction(1, 2), Fraction(1000)))), ids=_id
)
def test_ten_million_draws_have_the_law_and_no_other(shape: Shape, scale: Fraction) -> None:
    noise = RoundedNoise(shape, scale)
    assert_law(noise, noise.draw(10**7, SecureBits()), shift=max(1, int(scale / 100)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_the_slow_path_alone_has_the_law(shape: Shape) -> None:
    noise = RoundedNoise(shape, Fraction(5, 2))
    assert_law(
        noise, noise.draw(300_000, SecureBits(), always_refine=True).astype(np.int64), shift=1
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_few_draws_one_by_one_have_the_law(shape: Shape) -> None:
    noise, bits = RoundedNoise(shape, Fraction(2)), SecureBits()
    assert_law(noise, np.array([noise.draw_one(bits) for _ in range(200_000)]), shift=1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_no_tail_is_cut_off(shape: Shape) -> None:
    """A uniform with 63 + 64 j leading zeros gives the magnitude of its true size, on either side."""
    for j in (0, 1, 5, 40):
        for word, sign in ((0, 1), (2**64 - 1, -1)):
            k = RoundedNoise(shape, Fraction(1000)).draw_one(
                Script([word, *([0] * j), 1 << 63, 12345])
            )
            with working(9000):
                true = 1000 * shape.magnitude_ball(arb(2) ** -(64 + 64 * j))
            assert abs(k - sign * float(true)) <= 1


@pytest.mark.parametrize("exponent", [30, 400])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_huge_scales_give_python_integers_of_the_right_size(shape: Shape, exponent: int) -> None:
    draws = RoundedNoise(shape, Fraction(10**exponent)).draw(400, SecureBits())
    assert draws.dtype == object
    sizes = sorted(abs(k) for k in draws.tolist())
    assert 10**exponent // 10 < sizes[200] < 10**exponent * 3
    assert len({k % 1000 for k in sizes}) > 250  # the low digits are as random as the high ones


def test_tiny_scales_never_move_the_value_and_never_fail() -> None:
    for scale in (Fraction(1, 10**9), Fraction(1, 10**400)):
        assert set(RoundedNoise(LAPLACE, scale).draw(1000, SecureBits()).tolist()) == {0}


def test_a_draw_beyond_int64_turns_the_array_into_python_integers() -> None:
    noise = RoundedNoise(LAPLACE, Fraction(2**38))
    with mock.patch.object(RoundedNoise, "_refine", return_value=2**70):
        draws = noise.draw(200_000, Tape(1))
    assert draws.dtype == object
    assert 2**70 in draws.tolist()
    assert max(k for k in draws.tolist() if k != 2**70) < 2**50


def test_probabilities_sum_to_one_and_match_the_tails() -> None:
    for shape, scale in product(SHAPES, (Fraction(1, 3), Fraction(5))):
        noise = RoundedNoise(shape, scale)
        with working(128):
            for k in range(-20, 20):
                assert (noise.tail_ball(k - 1) - noise.tail_ball(k)).overlaps(noise.pmf_ball(k))
            total = sum(
                (noise.pmf_ball(k) for k in range(-200, 201)), arb(0)
            ) + 2 * noise.tail_ball(200)
            assert abs(total - 1) < 2.0**-100
