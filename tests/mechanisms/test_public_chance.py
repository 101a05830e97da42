"""Chance for post-processing: in its range, evenly spread, and seen by an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import kstest

from sordino.mechanisms.observer import watching
from sordino.mechanisms.public_chance import PublicChance


def test_numbers_are_even() -> None:
    found = PublicChance().evenly(200_000)
    assert found.min() >= 0
    assert found.max() < 1
    assert kstest(found, "uniform").pvalue > 1e-9
    assert kstest(found**1.05, "uniform").pvalue < 1e-9


def test_whole_numbers_reach_both_ends_and_no_further() -> None:
    first, last = np.full(20_000, -3), np.full(20_000, 3)
    found, counts = np.unique(PublicChance().between(first, last), return_counts=True)
    assert found.tolist() == list(range(-3, 4))
    assert counts.min() > 2_600
    one = np.array([5, -7])
    assert PublicChance().between(one, one).tolist() == [5, -7]
    assert len(PublicChance().evenly(0)) == 0


def test_an_audit_sees_it() -> None:
    seen: list[Any] = []

    def watch(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
        seen.append((mechanism, operation, value))
        return draw()

    with watching(watch):
        PublicChance().evenly(3)
    assert seen == [(PublicChance(), "evenly", 3)]
