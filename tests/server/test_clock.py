"""What ticks can tell: nothing without overruns, and little with a few (clock.md)."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest

from sordino.errors import InvalidInput
from sordino.server.clock import (
    DOUBLINGS,
    OVERRUNS,
    Clock,
    Overruns,
    bits_told,
    checked_answer_time,
)


def test_the_end_of_a_slot_says_only_how_often_it_doubled() -> None:
    """Every moment within the same doubling has the same end, whatever the data did to it."""
    clock = Clock(0.5, origin=12.25)
    ends = {0: 0.5, 1: 1.0, 2: 2.0, 3: 4.0}
    for start in (12.25, 12.75, 100.25):
        for place in range(1, 800):
            done = start + place * 0.005
            exponent = clock.doublings(start, done)
            assert clock.end(start, done) == start + ends[exponent]
            assert clock.end(start, done) >= done
            assert exponent == 0 or done > start + ends[exponent - 1]


def test_work_without_end_is_cut_at_the_last_doubling() -> None:
    clock = Clock(0.5, origin=0)
    assert clock.end(0, 1e9) == clock.limit(0) == 0.5 * 2**DOUBLINGS


def test_starts_and_ends_lie_on_one_grid() -> None:
    clock = Clock(0.3, origin=7.7)
    for now in (7.7, 7.70001, 9.1, 1234.5, 1e6):
        start = clock.next_start(now)
        assert now - 1e-6 <= start < now + 0.3 + 1e-6
        assert math.isclose((start - 7.7) / 0.3, round((start - 7.7) / 0.3), abs_tol=1e-6)
        assert math.isclose(
            clock.next_start(clock.end(start, start + 0.7)), start + 1.2, abs_tol=1e-6
        )


def test_the_grid_does_not_follow_from_when_the_process_was_ready() -> None:
    """How long rows take to load would show in every tick; and two datasets do not work at the same moments."""
    for answer_time in (0.01, 0.1, 0.37, 5.0, 3600.0):
        starts = {
            Clock.of("visits", answer_time, ready).next_start(2e5)
            for ready in (0.0, 1.25, 777.7, 1e5, 1.5e5)
        }
        assert max(starts) - min(starts) < 1e-6 * answer_time + 1e-9
        assert abs(Clock.of("visits", answer_time, 5.0).next_start(2e5) - 2e5) <= answer_time
    phases = {round(Clock.of(f"dataset {i}", 1.0, 0.0).origin, 3) for i in range(50)}
    assert len(phases) > 40
    assert all(0 <= phase < 1 for phase in phases)


def schedule(
    arrivals: tuple[float, ...], work: tuple[float, ...], clock: Clock
) -> tuple[float, ...]:
    """The ticks of questions that arrive then and take so long: the rules of slots.py, written down a second time."""
    free, ticks = clock.origin, []
    for arrival, took in zip(arrivals, work, strict=True):
        start = clock.next_start(max(arrival, free))
        free = clock.end(start, start + took)
        # it is stored in the next slot, and told at its end
        ticks.append(clock.next_start(free) + clock.answer_time)
    return tuple(ticks)


def test_without_overruns_ticks_are_a_function_of_arrivals() -> None:
    clock, arrivals = Clock(1.0, origin=0.0), (0.1, 0.2, 3.3, 3.4, 9.0)
    times = (0.001, 0.5, 0.999, 1.0)
    assert (
        len({schedule(arrivals, work, clock) for work in itertools.product(times, repeat=5)}) == 1
    )


@pytest.mark.parametrize("most", [0, 1, 2])
def test_with_overruns_there_are_at_most_as_many_schedules_as_the_bound_says(most: int) -> None:
    clock, arrivals = Clock(1.0, origin=0.0), (0.1, 0.2, 0.3, 3.4)
    seen = set()
    for work in itertools.product((0.3, 1.5, 3.0, 7.0), repeat=4):
        if sum(took > 1 for took in work) <= most:
            seen.add(schedule(arrivals, work, clock))
    assert math.log2(len(seen)) <= bits_told(4, most) + 1e-12
    assert (len(seen) == 1) == (most == 0)


def test_the_bound_is_the_one_of_the_page() -> None:
    assert bits_told(10**6, 0) == 0
    assert 32 < bits_told(1000, 3) < 33
    assert bits_told(2, 5) == math.log2(1 + 2 * DOUBLINGS + DOUBLINGS**2)
    assert bits_told(700, 700) > 1000


def test_overruns_outlive_a_crash_and_pause(tmp_path: Path) -> None:
    path = tmp_path / "visits.overruns"
    overruns = Overruns.at(path)
    for number in range(1, OVERRUNS + 1):
        assert not overruns.is_paused
        overruns = overruns.one_more()
        assert Overruns.at(path) == overruns
        assert overruns.since_resumed == number
    assert Overruns.at(path).is_paused
    overruns = Overruns.at(path).resumed()
    assert (overruns.is_paused, overruns.ever) == (False, OVERRUNS)
    assert Overruns.at(path) == overruns


@pytest.mark.parametrize(
    "content", ["", "{", "[]", json.dumps({"since_resumed": -1, "ever": 0, "noted": 0}), "{}"]
)
def test_a_count_that_cannot_be_read_pauses(tmp_path: Path, content: str) -> None:
    path = tmp_path / "visits.overruns"
    path.write_text(content)
    assert Overruns.at(path).is_paused


@pytest.mark.parametrize("value", [0, -1, True, "1", math.nan, math.inf, 1e-3, 1e5, None])
def test_answer_times_that_mean_nothing_are_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="answer_time"):
        checked_answer_time(value)
