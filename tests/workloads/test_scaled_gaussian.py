"""Normal noise with a scale for each number: its law, its two paths, and what a move of the numbers costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sordino.errors import InvalidInput
from sordino.mechanisms import scaled_gaussian
from sordino.mechanisms.rounded import NORMAL, RoundedNoise
from sordino.mechanisms.scaled_gaussian import ScaledGaussian
from statistics_of_draws import ACCEPT, REJECT, p_value
from tape import Script, Tape, replay


def test_every_scale_has_its_own_law() -> None:
    """The right law is accepted for each of two mixed scales, and one that is 5 % off is rejected."""
    scales = np.tile([3.25, 40.5], 300_000)
    draws = ScaledGaussian(scales).release(np.zeros(len(scales), np.int64))
    for k, scale in enumerate((3.25, 40.5)):
        own = draws[k::2]
        for factor, wrong in ((1.0, False), (1.05, True)):
            law = RoundedNoise(NORMAL, Fraction(scale * factor))
            p = p_value(own, lambda x, law=law: float(law.tail_ball(x).mid()), scale)  # type: ignore[misc]
            assert (p < REJECT) if wrong else (p > ACCEPT)


def test_both_paths_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """What floats decide is what ball arithmetic finds for the same bits."""
    scales = np.geomspace(0.01, 2.0**29, 400)

    def draw() -> list[int]:
        with replay(Tape(3)):
            return list(ScaledGaussian(scales).release(np.zeros(400, np.int64)).tolist())

    fast = draw()
    monkeypatch.setattr(scaled_gaussian, "_decided", lambda w, *_: np.arange(len(w)))
    assert draw() == fast


def test_large_scales_round_value_and_noise_together() -> None:
    """Above 2^30 steps results are multiples of 2^j, whatever the value is: its last digits do not show."""
    found = ScaledGaussian(np.full(1000, 2.0**40)).release(np.arange(1000) + 7)
    assert not np.any(found % 2**10)
    wide = ScaledGaussian(np.full(50, 2.0**90)).release(np.full(50, 3, object))
    assert wide.dtype == object
    assert len(set(wide.tolist())) == 50
    deviation = np.std([float(x) for x in found]) / 2.0**40
    assert 0.9 < deviation < 1.1


def test_cost_is_the_sum_over_scales() -> None:
    noise = ScaledGaussian(np.array([2.0, 4.0, 5.0]))
    assert noise.mu_squared(np.array([1, -2, 0])) == Fraction(1, 4) + Fraction(1, 4)
    assert 0 <= noise.mu_squared(np.array([0, 0, 1])) - Fraction(1, 25) < Fraction(1, 2**299)


@pytest.mark.parametrize("scales", [[0.0], [float("nan")], [float("inf")], [-1.0], [1e-9]])
def test_scales_must_be_positive(scales: list[float]) -> None:
    with pytest.raises(InvalidInput, match="standard deviations"):
        ScaledGaussian(np.array(scales))


def test_values_must_be_whole_and_as_many() -> None:
    noise = ScaledGaussian(np.array([1.0, 2.0]))
    for values in (np.array([1]), np.array([1.5, 2.0])):
        with pytest.raises(InvalidInput):
            noise.release(values)


def test_the_far_tail_is_there() -> None:
    """A uniform below 2^-18 is refined with more bits: a draw of 8 standard deviations comes out as one."""
    word = 2**63 // 10**15  # a tail probability of about 1e-15, which is 8 deviations
    with replay(Script([word] * 3, then=7)):
        found = ScaledGaussian(np.full(3, 1000.0)).release(np.zeros(3, np.int64))
    assert (found > 7900).all()
