"""Workers: one continuing stream for each input, nothing repeated,
nothing left behind, no death or silence that hangs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sordino import Laplace
from sordino.audit.claim import Claim
from sordino.audit.known_truth import ZOO_ENTRIES
from sordino.audit.sampled.events import Event, Gauge, Reading
from sordino.audit.sampled.features import Value, Whole
from sordino.audit.sampled.findings import certify
from sordino.audit.sampled.outputs import Table, encode
from sordino.audit.sampled.runs import OutOfTime, Runner, Trouble, in_batches
from sordino.audit.sampled.scores import Bins, TableScore
from sordino.audit.sampled.workers import Alone, Forked, Team, team
from tape import Tape, replay

LATER = 1e18
ZOO = {specimen.name: specimen for specimen in ZOO_ENTRIES}


def nothing(_: Any) -> None:
    """No progress is shown."""


@contextlib.contextmanager
def crew(
    kind: Callable[..., Team], mechanism: Any, first: Any = 0, second: Any = 1
) -> Iterator[Team]:
    made = kind(mechanism, [first], [second])
    try:
        yield made
    finally:
        made.close()


def seen_before(table: Table) -> Gauge:
    """Counts outputs that are in the table."""
    atoms = Whole(("",)).column(table).atoms
    assert atoms is not None
    bins = Bins(Whole(("",)), np.empty(0), np.unique(atoms))
    score = TableScore(bins, np.array([0.0, *[1.0] * len(bins.atoms), 0.0]))
    return Gauge(Event(score, 1, 0.5, False, 0.0), score, np.array([0.5]), False)


BOTH = pytest.mark.parametrize("kind", [Alone, Forked])


@BOTH
def test_final_runs_go_on_where_training_stopped(kind: Any) -> None:
    """A fork copies a generator in the mechanism's closure: forking again for the final round would replay training."""
    streams = [np.random.default_rng(i) for i in range(2)]
    with crew(kind, lambda d: int(streams[d].integers(2**60))) as team_:
        a, b = team_.draw(0, 500, LATER, nothing)
        again, _ = team_.draw(0, 500, LATER, nothing)
        for drawn in (a, b, again):
            assert drawn.table.size == 500
        for table in (a.table, b.table, again.table):
            first, second = team_.tally(0, seen_before(table), (600, 600), LATER, nothing)
            assert (first.runs, first.hits, second.runs, second.hits) == (600, 0, 600, 0)


def test_a_replay_would_be_seen() -> None:
    """The check above has teeth: workers forked anew for the final round repeat what training saw."""
    streams = [np.random.default_rng(i) for i in range(2)]

    def mechanism(d: int) -> int:
        return int(streams[d].integers(2**60))

    with crew(Forked, mechanism) as before:
        drawn, _ = before.draw(0, 500, LATER, nothing)
    with crew(Forked, mechanism) as anew:
        reading, _ = anew.tally(0, seen_before(drawn.table), (500, 500), LATER, nothing)
    assert reading.hits > 450


@BOTH
def test_each_side_gets_its_input(kind: Any) -> None:
    with crew(kind, lambda d, *, size: np.full(size, d), "left", "right") as team_:
        a, b = team_.draw(0, 300, LATER, nothing)
        assert [t.table.names[int(t.table.columns[""].atoms[0])] for t in (a, b)] == [  # type: ignore[index]
            "left",
            "right",
        ]
        gauge = seen_before(a.table)
        first, second = team_.tally(0, gauge, (1000, 2000), LATER, nothing)
        assert (first.hits, second.runs, second.hits) == (1000, 2000, 0)


@pytest.mark.parametrize(
    "wrong",
    [lambda d, size: np.zeros(size + 1), lambda d, size: 3.0, lambda d, size: np.float64(3)],
)
@BOTH
def test_the_wrong_number_of_outputs(kind: Any, wrong: Any) -> None:
    with crew(kind, wrong) as team_, pytest.raises(Trouble, match="took size="):
        team_.draw(0, 100, LATER, nothing)


async def awaited(_: Any) -> float:
    return 1.0


def generated(_: Any) -> Iterator[float]:
    yield 1.0


async def awaited_batch(_: Any, *, size: int) -> float:
    return float(size)


@pytest.mark.parametrize("odd", [awaited, generated, awaited_batch])
@BOTH
def test_no_output_yet(kind: Any, odd: Any) -> None:
    with crew(kind, odd) as team_, pytest.raises(Trouble, match="plain function"):
        team_.draw(0, 100, LATER, nothing)


@BOTH
def test_exceptions_are_outputs(kind: Any) -> None:
    def sometimes(d: int, *, size: int) -> Any:
        if d == 1 and size > 1:
            raise ValueError("too many")
        return np.zeros(size)

    with crew(kind, sometimes) as team_:
        a, b = team_.draw(0, 200, LATER, nothing)
        assert a.batches_failed == ""
        assert "too many" in b.batches_failed
        assert b.table.size == 200
        assert not any(
            "raises" in b.table.names.get(int(s), "") for s in set(b.table.shape.tolist())
        )
    with crew(kind, lambda d: 1 / d) as team_:
        a, b = team_.draw(0, 200, LATER, nothing)
        assert {a.table.names[int(s)] for s in a.table.shape} == {"raises ZeroDivisionError"}
        assert a.table.size == b.table.size == 200


@BOTH
def test_a_batch_that_fails_in_the_final_round_hides_its_runs(kind: Any) -> None:
    calls = []

    def later(d: int, *, size: int) -> Any:
        calls.append(size)
        if len(calls) > 8:
            raise ValueError
        return np.zeros(size)

    with crew(kind, later) as team_:
        drawn, _ = team_.draw(0, 10, LATER, nothing)
        first, _ = team_.tally(0, seen_before(drawn.table), (10**6, 10**6), LATER, nothing)
        assert 0 < first.runs < 10**6


@BOTH
def test_inputs_that_are_changed(kind: Any) -> None:
    def shifts(data: list[float]) -> float:
        data[0] += 1
        return data[0]

    mine = [0.0, 5.0]
    with crew(kind, shifts, mine, [1.0, 5.0]) as team_:
        a, _ = team_.draw(0, 100, LATER, nothing)
        assert a.changes_input
        assert set(a.table.columns[""].numbers.tolist()) == {1.0}
    assert mine == [0.0, 5.0]

    count = [0]

    def later(data: Any) -> float:
        count[0] += 1
        if count[0] > 50:
            data[0] += 1
        return float(data[0])

    with (
        crew(kind, later, np.zeros(2), np.ones(2)) as team_,
        pytest.raises(Trouble, match="changed its input"),
    ):
        team_.draw(0, 100, LATER, nothing)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda d: os._exit(3), "exit code 3"),
        (lambda d: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda d: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda d: sys.exit(1), "SystemExit"),
    ],
)
def test_a_worker_that_dies(end: Any, words: str) -> None:
    with crew(Forked, end) as team_, pytest.raises(Trouble, match=words):
        team_.draw(0, 100, LATER, nothing)


@BOTH
def test_a_mechanism_that_hangs_is_cut(kind: Any) -> None:
    with crew(kind, lambda d: time.sleep(3600)) as team_, pytest.raises(OutOfTime):
        team_.draw(0, 100, time.monotonic() + 0.1, nothing)


@BOTH
def test_a_hang_in_the_final_round_keeps_what_was_counted(kind: Any) -> None:
    count = [0]

    def stops(d: int) -> float:
        count[0] += 1
        if count[0] > 2000:
            time.sleep(3600)
        return float(d)

    with crew(kind, stops) as team_:
        drawn, _ = team_.draw(0, 100, LATER, nothing)
        first, second = team_.tally(
            0, seen_before(drawn.table), (10**6, 10**6), time.monotonic() + 0.5, nothing
        )
    assert first.runs < 10**6
    assert second.runs < 10**6
    assert first.hits == first.runs
    assert second.hits == 0


def test_workers_end_with_the_team_and_on_interrupt() -> None:
    made = Forked(lambda d: time.sleep(0.001), [0], [1])
    pids = [pid for pid, _ in made._children]

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.draw(0, 10**6, LATER, interrupt)
    made.close()
    made.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits for its parent to notice its end does not."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_workers_end_with_a_parent_that_is_killed() -> None:
    script = (
        "import time\n"
        "from sordino.audit.sampled.workers import Forked\n"
        "team = Forked(lambda d: time.sleep(3600), [0], [1])\n"
        "print(*[pid for pid, _ in team._children], flush=True)\n"
        "team.draw(0, 10, 1e18, print)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(alive(pid) for pid in pids)
        parent.kill()
    until = time.monotonic() + 60
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in pids)


def test_what_is_printed_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    def loud(d: int) -> float:
        print("secret")
        os.write(1, b"secret") if os.getpid() != parent else None
        return float(d)

    parent = os.getpid()
    for kind in (Alone, Forked):
        with crew(kind, loud) as team_:
            team_.draw(0, 50, LATER, nothing)
    assert capfd.readouterr() == ("", "")


def test_which_team() -> None:
    with contextlib.closing(team(abs, [0], [1], 1)) as one:
        assert one.workers == 1
    with contextlib.closing(team(abs, [0], [1], 2)) as two:
        assert two.workers == 2


def test_what_takes_size() -> None:
    assert in_batches(lambda d, *, size: d)
    assert in_batches(lambda d, size: d)
    assert not in_batches(lambda size: size)
    assert not in_batches(lambda d: d)
    assert not in_batches(lambda d, **named: d)
    assert not in_batches(max)


def test_batches_grow_and_stay_bounded() -> None:
    sizes = []

    def wide(d: int, *, size: int) -> Any:
        sizes.append(size)
        return np.zeros((size, 100))

    Runner(wide, [0]).draw(0, 100_000, LATER, nothing)
    assert max(sizes) <= (1 << 22) // 100
    assert sum(sizes[1:]) == 100_000
    assert encode(np.zeros((1, 100))).columns[Value("[3]").name].numbers.tolist() == [0.0]


def test_only_what_is_surely_independent_is_taken_so() -> None:
    """Two forked workers share the state of a generator that the mechanism closes over."""
    generator = np.random.default_rng(0)

    def closes_over(data: Any, *, size: int) -> Any:
        return data + generator.normal(size=size)

    class Mine(Laplace):
        pass

    forked: list[Any] = [
        Laplace(1),
        Laplace(1).release,
        closes_over,
        Mine(1),
        Mine(1).release,
        generator.normal,
        len,
    ]
    teams = [Forked(mechanism, [0], [1]) for mechanism in forked]
    try:
        assert [team.independent for team in teams] == [
            True,
            True,
            False,
            False,
            False,
            False,
            False,
        ]
        drawn = teams[2].draw(0, 50, LATER, nothing)
        assert (
            drawn[1].table.columns[""].numbers - drawn[0].table.columns[""].numbers == 1
        ).mean() > 0.5
    finally:
        for team in teams:
            team.close()
    wrapped = functools.wraps(Laplace.release)(closes_over)
    mechanisms: list[Any] = [closes_over, wrapped, Laplace(1), ZOO["double-spending"].mechanism]
    assert [Alone(mechanism, [0], [1]).independent for mechanism in mechanisms] == [
        False,
        False,
        True,
        True,
    ]


def test_missing_marks_count_against_a_violation() -> None:
    profile = np.zeros(3, np.int64)
    reading = Reading(4, 2, profile, marks=(np.array([True, False]), np.array([True, False])))
    assert reading.marked(6, False).tolist() == [True, False, True, False, False, False]
    assert (reading + reading).marked(9, True).sum() == 5
    told = Reading(4, 2, profile)  # a worker that hangs: its last news has no marks
    assert told.marked(5, True).all()


def test_pairs_do_not_depend_on_the_order_of_runs() -> None:
    """Sorted batches would align the hits of both inputs: all discordant pairs would be of one kind."""
    n, hits, misses = 64_000, 3400, 3200
    gauge = dataclasses.replace(seen_before(encode([0, 1])), pairs=True)
    claim = Claim.read(1, 0)
    first, second = (np.arange(n) < count for count in (hits, misses))
    profile = np.zeros(2, np.int64)
    with replay(Tape(5)):
        found = certify(
            gauge,
            (Reading(n, hits, profile, 0, (first,)), Reading(n, misses, profile, 0, (second,))),
            n,
            claim,
            0.1,
        )
    assert found.epsilon < math.log(hits / misses)
