"""The time of an answer tells nothing through the server, and the same attacks catch an endpoint that does not wait."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from server.timing_attack import ATTACKS, Attack, auc, campaign, naive, served_times


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))


def test_the_stopwatch_itself() -> None:
    """Equal times are a guess; times that differ by a little always, or by nothing often, are seen."""
    assert auc([1, 1, 1], [1, 1, 1]) == 0.5
    assert auc([1, 2, 3], [4, 5, 6]) == 1
    assert auc([4, 5, 6], [1, 2, 3]) == 0
    draws = np.random.default_rng(1)
    same = auc(list(draws.normal(size=2000)), list(draws.normal(size=2000)))
    shifted = auc(list(draws.normal(size=2000)), list(draws.normal(0.2, size=2000)))
    assert abs(same - 0.5) < 0.03 < shifted - 0.5


def test_a_huge_cell_is_seen_without_the_clock_and_not_with_it(tmp_path: Path) -> None:
    attack = ATTACKS[3]
    assert naive(tmp_path, attack, 2000, 20, tries=3) > 0.75
    by_wait, by_lateness, _ = served_times(tmp_path, attack, attack, 2000, 30, 0.12)
    assert abs(by_wait - 0.5) < 0.25  # more than three standard errors
    assert abs(by_lateness - 0.5) < 0.25


@pytest.mark.slow
@pytest.mark.alone
def test_no_attack_over_http_tells_more_than_a_guess(tmp_path: Path) -> None:
    """2,000 pairs: a standard error of the wait is 0.009. A machine that does nothing else takes half an hour.

    Delays after ticks are ten thousand times shorter than the wait: there processes differ from each other, by some
    0.04 even with equal tables, and 12 exchanges are compared. So an area may miss 0.5 by four standard errors of
    those (by chance once in 500 areas), where that is more than 0.03. SORDINO_TIMING_PAIRS: another number of pairs,
    with three of its standard errors allowed.
    """
    pairs = int(os.environ.get("SORDINO_TIMING_PAIRS", "2000"))
    attacks = [*((attack, attack) for attack in ATTACKS), (None, ATTACKS[0])]
    found = campaign(tmp_path, attacks, pairs, 0.08)
    for (attack, _), outcome in zip(attacks, found, strict=True):
        print(f"{'control' if attack is None else attack.name}: {outcome}")
    most = 0.03 if pairs >= 2000 else 3 * math.sqrt(1 / (6 * pairs))
    for outcome in found:
        assert abs(outcome.by_wait - 0.5) < most
        assert abs(outcome.by_lateness - 0.5) < max(most, 4 * outcome.error)
        assert outcome.error < max(0.02, 2 * most / 3)  # or nothing would be known


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_same_attacks_catch_the_naive_endpoint(tmp_path: Path, attack: Attack) -> None:
    found = naive(tmp_path, attack, attack.rows, 200, tries=3)
    print(f"{attack.name}: {found:.3f} without the clock")
    assert found > 0.6  # more than three standard errors beside a guess
