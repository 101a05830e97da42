"""The search for inputs: it finds pairs that show what is wrong, and prefers no event because it never happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from first_of import first_of
from sordino.audit.reporting.report import Verdict
from sordino.audit.sampled.black_box import black_box
from sordino.audit.sampled.bounds import predicted


def sparse_vector(
    epsilon: float, limit: float, answer: float, seed: int, threshold: float = 1
) -> Any:
    """The first of ten noisy answers above a noisy threshold, as DP-Sniper has it: 1, 0, and -1 behind the first 1."""
    rng = np.random.default_rng(seed)

    def mechanism(data: Any, size: int) -> Any:
        exact = np.asarray(data, float)
        noisy = exact + rng.laplace(scale=answer / epsilon, size=(size, exact.size))
        found = noisy >= threshold + rng.laplace(scale=limit / epsilon, size=(size, 1))
        return np.where(np.cumsum(found, axis=1) - found < 1, found, -1).astype(np.int8)

    return mechanism


@pytest.mark.parametrize("seed", first_of(1, [0, 1]))
def test_a_broken_sparse_vector_is_found_without_its_worst_pair(seed: int) -> None:
    """DP-Sniper's variant 4, whose truth is 1.75 times the claim; the worst pairs are two of fourteen."""
    mechanism = sparse_vector(0.5, 4, 4 / 3, seed)
    report = black_box(
        mechanism, epsilon=0.5, samples=200_000, neighbors="answers", length=10, workers=1
    )
    assert report.verdict is Verdict.VIOLATED, report.summary


@pytest.mark.slow
@pytest.mark.parametrize("samples", [4_000_000, 10_000_000])
def test_the_same_at_a_small_epsilon_with_any_number_of_runs(samples: int) -> None:
    mechanism = sparse_vector(0.1, 4, 4 / 3, 0)
    report = black_box(mechanism, epsilon=0.1, samples=samples, neighbors="answers", length=10)
    assert report.verdict is Verdict.VIOLATED, report.summary


SNIPER = {
    "variant 1": (sparse_vector(0.1, 2, 4, 1, 0.5), 0.086),
    "variant 2": (sparse_vector(0.1, 2, 4, 2), 0.086),
    "variant 4": (sparse_vector(0.1, 4, 4 / 3, 3), 0.170),
}
"""Mechanisms of DP-Sniper with a generator of their own, and its bounds from 400 million runs on the worst pair."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SNIPER)
def test_variants_of_the_sparse_vector_with_a_hundredth_of_the_runs(name: str) -> None:
    """With 4 million runs, at the same confidence; a bound on each probability, since the generator is not ours.

    With the best event one expects 0.78 to 0.9 of what is listed, with a standard deviation of 0.05 to 0.1 (variant 2,
    one answer above, has the law of variant 1 at another threshold).
    """
    mechanism, listed = SNIPER[name]
    pair = np.ones(10), np.repeat([2.0, 0.0], 5)
    bounds = [
        black_box(
            mechanism, *pair, epsilon=0.1, samples=4_000_000, confidence=0.9, neighbors="answers"
        ).epsilon_lower
        for _ in range(3)
    ]
    assert np.mean(bounds) >= 0.65 * listed, bounds


def test_what_never_happens_promises_least() -> None:
    """Where nothing can be certified yet, evidence counts, and not how near to zero the probabilities are."""
    final = 10_000, 10_000
    never, weak, strong = (
        float(predicted(hits, misses, (1000, 1000), final, 0.001, 0.0))
        for hits, misses in ((0, 0), (60, 50), (80, 50))
    )
    assert never == -1
    assert never < weak < strong < 0
    assert float(predicted(200, 50, (1000, 1000), final, 0.001, 0.0)) > 0


def test_runs_of_the_search_are_used_again() -> None:
    """No more runs than were asked for, and those on the chosen pair are part of its training."""
    calls = 0
    rng = np.random.default_rng(4)

    def mechanism(data: Any, size: int) -> Any:
        nonlocal calls
        calls += size
        return np.sum(data) + rng.laplace(size=size)

    report = black_box(
        mechanism, epsilon=2, samples=100_000, neighbors="answers", length=3, workers=1
    )
    made = {
        name: int(text.replace(",", ""))
        for name, text in report.facts
        if name in ("training runs", "final runs")
    }
    assert sum(made.values()) == 100_000
    assert 100_000 <= calls <= 100_300
