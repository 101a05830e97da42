"""Under a time limit runs are planned from the measured speed, and a report says what was made, and claims no more."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from first_of import first_of
from sordino.audit.reporting.report import Report, Verdict
from sordino.audit.sampled.black_box import black_box
from sordino.audit.sampled.contest import settled
from sordino.audit.sampled.events import Gauge, Reading
from sordino.audit.sampled.findings import certify
from sordino.audit.sampled.outputs import Table
from sordino.audit.sampled.train import Found, train
from sordino.audit.sampled.workers import Alone


def fact(report: Report, name: str) -> int:
    return int(dict(report.facts)[name].replace(",", ""))


class Slow:
    """An event of probability 0.6 against 0, a run at a time; counts its calls."""

    def __init__(self, seconds: float) -> None:
        self.rng, self.seconds, self.calls = np.random.default_rng(5), seconds, 0

    def __call__(self, data: int) -> bool:
        self.calls += 1
        time.sleep(self.seconds)
        return bool(self.rng.random() < 0.6 * data)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_mechanism_is_judged_by_the_runs_that_fit(workers: int) -> None:
    start = time.monotonic()
    report = black_box(
        Slow(0.02), 0, 1, epsilon=0.5, seconds=8, workers=workers, neighbors="number"
    )
    assert time.monotonic() - start < 10
    made = fact(report, "training runs") + fact(report, "final runs")
    assert 100 < made < 2 * 8 / 0.02
    assert report.verdict is Verdict.VIOLATED, report.summary
    assert any(
        f"In 8 seconds there was time for {made:,} of 1,000,000 runs" in note
        for note in report.notes
    )


def test_slow_batches_are_kept_small() -> None:
    sizes = []

    def mechanism(data: int, size: int) -> Any:
        sizes.append(size)
        time.sleep(0.01 * size)
        return np.random.default_rng().random(size) < 0.1 + 0.1 * data

    start = time.monotonic()
    report = black_box(mechanism, 0, 1, epsilon=1, seconds=2, workers=1, neighbors="number")
    assert time.monotonic() - start < 3
    assert max(sizes) <= 64
    assert "In 2 seconds there was time for" in report.summary


def test_training_runs_are_those_that_were_made() -> None:
    slow = Slow(0.002)
    report = black_box(
        slow, 0, 1, epsilon=1, samples=300_000, seconds=3, workers=1, neighbors="number"
    )
    made = fact(report, "training runs") + fact(report, "final runs")
    assert made <= slow.calls <= made + 40


def test_without_a_limit_all_runs_are_made() -> None:
    slow = Slow(0)
    report = black_box(slow, 0, 1, epsilon=1, samples=4000, workers=1, neighbors="number")
    assert fact(report, "training runs") + fact(report, "final runs") == 4000
    assert 4000 <= slow.calls <= 4040


def test_so_few_runs_that_no_outcome_could_refute_the_claim_are_no_pass() -> None:
    rng = np.random.default_rng(1)

    def coin(_: int) -> bool:
        time.sleep(0.01)
        return bool(rng.random() < 0.5)

    report = black_box(coin, 0, 1, epsilon=4, seconds=1.5, workers=1, neighbors="number")
    assert report.verdict is Verdict.UNDECIDED
    assert "so few could not have refuted epsilon 4" in report.summary


@pytest.mark.parametrize("samples", [10**6, 10**8])
def test_more_runs_asked_for_under_one_limit_never_hide_a_violation(samples: int) -> None:
    """A rare event: a few final runs that are not made in time would weigh more than all that were in it."""
    rng = np.random.default_rng(3)

    def mechanism(data: int, size: int) -> Any:
        return rng.random(size) < (0.004 if data else 0.0001)

    report = black_box(
        mechanism, 0, 1, epsilon=1, samples=samples, seconds=3, workers=1, neighbors="number"
    )
    assert report.verdict is Verdict.VIOLATED, report.summary


def test_a_final_round_that_is_cut_keeps_its_whole_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last stage loses one run in ten; what the stages before show is still certain."""
    rng = np.random.default_rng(3)
    stages: list[int] = []
    whole = Alone.tally

    def cut(
        self: Any, pair: int, gauge: Any, counts: tuple[int, int], *rest: Any
    ) -> tuple[Reading, Reading]:
        if not isinstance(gauge, Gauge):  # the contest, before the final round
            return whole(self, pair, gauge, counts, *rest)
        stages.append(counts[0])
        if len(stages) == 4:
            counts = counts[0] * 9 // 10, counts[1] * 9 // 10
        return whole(self, pair, gauge, counts, *rest)

    monkeypatch.setattr(Alone, "tally", cut)

    def mechanism(data: int, size: int) -> Any:
        return rng.random(size) < (0.01 if data else 0.0005)

    report = black_box(
        mechanism, 0, 1, epsilon=1, samples=200_000, seconds=60, workers=1, neighbors="number"
    )
    assert len(stages) == 4
    assert report.verdict is Verdict.VIOLATED, report.summary
    assert fact(report, "final runs") == 2 * sum(stages[:3])


def test_pairs_that_were_not_tried_are_named() -> None:
    rng = np.random.default_rng(2)

    def mechanism(data: Any) -> float:
        time.sleep(0.05)
        return float(np.sum(data) + rng.laplace())

    report = black_box(mechanism, epsilon=1, seconds=3, workers=1, neighbors="answers", length=4)
    (grid,) = [grid for grid in report.grids if grid.title == "Inputs tried"]
    untried = sum(row[-1].startswith("Not tried") for row in grid.rows)
    assert untried
    if report.verdict is not Verdict.UNDECIDED:
        assert any(f"before {untried} of" in note for note in report.notes)


@pytest.mark.parametrize("events", [1, 2])
def test_each_stage_and_event_has_its_part_of_the_chance_of_error(
    events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements that hold together: their chances of error are no more than alpha in sum."""
    chances: list[float] = []
    whole, choice = certify, settled

    def noted(
        gauge: Gauge, readings: tuple[Reading, Reading], runs: int, claim: Any, alpha: float
    ) -> Any:
        chances.append(alpha)
        return whole(gauge, readings, runs, claim, alpha)

    def chosen(*given: Any) -> Found:
        found = choice(*given)
        alone = replace(found.gauge, beside=None)
        return replace(found, gauge=replace(alone, beside=alone if events == 2 else None))

    monkeypatch.setattr("sordino.audit.sampled.black_box.certify", noted)
    monkeypatch.setattr("sordino.audit.sampled.black_box.settled", chosen)
    black_box(
        Slow(0),
        0,
        1,
        epsilon=9,
        samples=4000,
        seconds=60,
        confidence=0.99,
        workers=1,
        neighbors="number",
    )
    assert len(chances) == 4 * events
    assert 0.0098 < sum(chances) < 0.01
    chances.clear()
    black_box(
        Slow(0), 0, 1, epsilon=9, samples=4000, confidence=0.99, workers=1, neighbors="number"
    )
    assert len(chances) == events
    assert sum(chances) == pytest.approx(0.01)


@pytest.mark.parametrize("samples", first_of(1, [1_000_000, 100_000_000]))
def test_time_that_learning_takes_is_measured(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine learning from all training runs once left no time for final runs: more runs, no verdict."""
    rng = np.random.default_rng(3)

    def slow(first: Table, second: Table, goal: Any, **options: Any) -> Any:
        time.sleep(1e-4 * first.size)
        return train(first, second, goal, **options)

    def mechanism(data: int, size: int) -> Any:
        return rng.random((size, 12)) < 0.3 + 0.1 * data

    monkeypatch.setattr("sordino.audit.sampled.black_box.train", slow)
    start = time.monotonic()
    report = black_box(
        mechanism, 0, 1, epsilon=0.1, samples=samples, seconds=8, workers=1, neighbors="number"
    )
    assert time.monotonic() - start < 9
    assert report.verdict is Verdict.VIOLATED, report.summary
    assert fact(report, "final runs") > 10_000
