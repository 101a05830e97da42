"""Record and replay sees every public mechanism: right uses pass,
a leak beside them is found, none can be forgotten.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino import local
from sordino.audit.replayed.recording import record
from sordino.audit.replayed.replay import replay
from sordino.audit.reporting.report import Verdict
from sordino.errors import BudgetExceeded
from sordino.mechanisms import observer

PACKAGE = Path(so.__file__).parent
AGES = [31, 47, 65, 80, 22, 54]
FEWER = AGES[:-1]
WORDS = ["well", "ill", "well"]
OTHER = ["well", "ill", "ill"]
KINDS = ["well", "ill", "away"]


@dataclass(frozen=True)
class Use:
    """A right use of a public mechanism on two neighbours, and what it costs there."""

    name: str
    function: Callable[[Any], Any]
    one: Any
    other: Any
    epsilon: float
    delta: float = 0
    calls: int = 1


def alarms(rows: list[int], most: int = 2, monotone: bool = False) -> list[bool]:
    alarm = so.AboveThreshold.calibrated(epsilon=1, threshold=3, most=most, monotone=monotone)
    questions = (sum(x > limit for x in rows) for limit in (70, 50, 40, 30, 20))
    return [alarm.ask(value) for value in questions if alarm.left]


def corrected(rows: Any) -> list[tuple[float, bool]]:
    holdout = so.Holdout(np.asarray(rows), epsilon=1, threshold=0.1, most=2)
    found = [holdout.check(value, lambda some: some) for value in (0.5, 0.9)]
    return [(one.value, one.overfit) for one in found]


def means(rows: Any) -> list[float]:
    oracle = so.StatisticalQueries(
        np.asarray(rows), questions=2, budget=so.Budget(1), noise="laplace"
    )
    return [oracle.ask(lambda some: some).value, oracle.ask(lambda some: 1 - some).value]


def diary(rows: list[str]) -> list[Any]:
    client = local.Repeated.calibrated(permanent=1, first=0.5, categories=KINDS).client()
    return [client.report(rows[0]) for _ in range(3)]


def diaries(rows: list[str]) -> Any:
    protocol = local.Repeated.calibrated(permanent=1, first=0.5, categories=KINDS)
    memory = protocol.memoise(rows)
    return [protocol.refresh(memory).column for _ in range(2)]


def frequency(kind: Any) -> Callable[[Any], Any]:
    protocol = kind.calibrated(epsilon=1, categories=KINDS)
    return lambda rows: (protocol.randomize(rows).column, protocol.randomize_one("ill"))


def one_bit(rows: list[float]) -> Any:
    protocol = local.OneBitMean.calibrated(epsilon=1, low=0, high=10)
    return protocol.randomize(rows).column, protocol.randomize_one(3)


def prefixes(rows: list[str]) -> Any:
    protocol = local.HeavyHitters.calibrated(epsilon=1, persons=100_000, bits=16)
    return protocol.randomize(rows).column, protocol.randomize_one(5)


SAMPLE = [i % 2 for i in range(20_000)]
USES = [
    Use("Laplace", lambda rows: so.Laplace.calibrated(sensitivity=1, epsilon=1).release(len(rows)), AGES, FEWER, 1),
    Use("Gaussian", lambda rows: so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6).release([len(rows)]),
        AGES, FEWER, 1, 1e-6),
    Use("RandomizedResponse", so.RandomizedResponse.calibrated(epsilon=1, categories=KINDS).release, WORDS, OTHER, 1),
    Use("KeySelection", lambda rows: so.KeySelection.calibrated(epsilon=1, delta=0.01, l1=1, linf=1)
        .select([sum(x // 20 == i for x in rows) for i in range(5)]).tolist(), AGES, FEWER, 1, 0.01),
    Use("NoisyMax", lambda rows: so.NoisyMax.calibrated(epsilon=1).release([sum(x > i for x in rows) for i in (20, 50, 70)]),
        AGES, FEWER, 1),
    Use("AboveThreshold", alarms, AGES, FEWER, 1, calls=0),
    Use("AboveThreshold", lambda rows: alarms(rows, monotone=True), AGES, FEWER, 1, calls=0),
    Use("AboveThreshold", lambda rows: [alarms(rows), alarms(rows)], AGES, FEWER, 2, calls=0),
    Use("Holdout", corrected, SAMPLE, [1, *SAMPLE[1:]], 1, calls=0),
    Use("StatisticalQueries", means, SAMPLE, [1, *SAMPLE[1:]], 1, calls=2),
    *(Use(kind.__name__, frequency(kind), WORDS, OTHER, 1, calls=2)
      for kind in (local.Direct, local.Unary, local.LocalHashing, local.Subset, local.AffineSubset, local.Hadamard)),
    Use("OneBitMean", one_bit, [1.0, 9.0], [1.0, 0.0], 1, calls=2),
    Use("HeavyHitters", prefixes, [3, 70], [3, 71], 1, calls=2),
    Use("Client", diary, ["well"], ["ill"], 1, calls=4),
    Use("Repeated", diaries, WORDS, OTHER, 1, calls=3),
]  # fmt: skip
OPERATIONS = {"release", "ask", "randomize", "randomize_one", "refresh", "report", "check"}
"""By these names a class puts out something random. `Total.report` is a table of methods."""

MECHANISMS = {"KeySelection", "NoisyMax"} | {
    name
    for room in (so, local)
    for name in room.__all__
    if isinstance(kind := getattr(room, name), type)
    and not getattr(kind, "_is_protocol", False)
    and any(callable(vars(base).get(one)) for base in kind.__mro__ for one in OPERATIONS)
} - {"Total"}


def test_every_public_mechanism_is_in_the_list() -> None:
    assert {use.name for use in USES} == MECHANISMS


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_a_right_use_passes_and_is_seen(use: Use) -> None:
    for _ in range(3):
        report = replay(
            use.function,
            use.one,
            use.other,
            epsilon=use.epsilon,
            delta=use.delta,
            neighbors="unchecked",
        )
        assert report.verdict is Verdict.HOLDS, report.summary
    assert not use.calls or dict(report.facts)["calls of mechanisms"] == str(use.calls)
    assert "It called no mechanism." not in report.notes


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_no_right_use_can_claim_half(use: Use) -> None:
    """Refuted where the loss is known exactly, else not supported; never passed."""
    report = replay(
        use.function,
        use.one,
        use.other,
        epsilon=use.epsilon / 2,
        delta=use.delta / 2,
        neighbors="unchecked",
    )
    assert report.verdict in (Verdict.VIOLATED, Verdict.UNDECIDED), report.summary
    assert "the calls cost" in report.summary


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_a_leak_beside_it_is_found(use: Use) -> None:
    report = replay(
        lambda rows: (use.function(rows), list(rows)),
        use.one,
        use.other,
        epsilon=9,
        neighbors="unchecked",
    )
    assert report.verdict is (Verdict.UNDECIDED if use.name == "KeySelection" else Verdict.VIOLATED)
    assert "ith the same noise the results differ" in report.summary


def test_all_that_is_random_is_in_the_calls() -> None:
    """Run again with the frozen outputs, every use gives the same result: no draw goes past the watcher."""
    for use in USES:
        known = record(use.function, use.one)
        outputs = iter(known.calls)
        with observer.watching(lambda *_, outputs=outputs: next(outputs).output):
            again = use.function(use.one)
        assert repr(again) == repr(known.result), use.name


ALLOWED = {
    "mechanisms/observer.py": "the door itself",
    "mechanisms/bits.py": "where bits come from",
    "adaptive/attack.py": "made-up data for a demonstration",
    "adaptive/freedman.py": "made-up data for a demonstration",
    "audit/replayed/query_replay.py": "which persons an audit tries",
    "audit/sampled/findings.py": "the order in which runs are paired",
    "learn/canaries.py": "which canaries an audit puts in, and their order",
    "learn/secret_seeds.py": "seeds of generators of others",
    "server/accounts/secrets_of_people.py": "tokens and ids, which no data enter",
    "audit/known_truth/noise.py": "the zoo's mechanisms of its own",
    "audit/known_truth/vocabulary.py": "the zoo's mechanisms of its own",
}


def test_bits_are_had_at_one_door_only() -> None:
    """A mechanism that asks for bits itself would not be watched."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if "bits" not in text.lower():  # parsing is what takes long
            continue
        for node in ast.walk(ast.parse(text)):
            named = (
                isinstance(node, ast.Attribute)
                and node.attr == "source"
                and ast.unparse(node.value).endswith("bits")
            )
            made = isinstance(node, ast.Name) and node.id == "SecureBits"
            taken = isinstance(node, ast.ImportFrom) and node.module == "sordino.mechanisms.bits"
            names = (
                {alias.name for alias in node.names}
                if isinstance(node, ast.ImportFrom) and taken
                else set()
            )
            if named or made or {"source", "SecureBits"} & names:
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found <= set(ALLOWED), found - set(ALLOWED)


class TestAboveThreshold:
    """It remembers: all answers of one object are one cost, and which object is asked must not depend on the data."""

    def test_questions_are_one_row_with_the_largest_distance(self) -> None:
        report = replay(alarms, AGES, FEWER, epsilon=1)
        (row,) = report.grids[0].rows
        assert row[0] == "1"
        assert row[3:6] == ("1 (Linf)", "1", "100.0%")
        assert row[6] == "at most epsilon 1"

    def test_a_value_that_moves_too_far_is_named(self) -> None:
        def careless(rows: list[int]) -> bool:
            return so.AboveThreshold.calibrated(epsilon=1, threshold=100).ask(sum(rows))

        report = replay(careless, AGES, FEWER)
        assert report.verdict is Verdict.VIOLATED
        assert "54 apart (Linf), declared are 1" in report.witness

    def test_monotone_values_that_move_both_ways_are_named(self) -> None:
        def both_ways(rows: list[int]) -> list[bool]:
            alarm = so.AboveThreshold.calibrated(epsilon=1, threshold=50, most=9, monotone=True)
            return [alarm.ask(len(rows)), alarm.ask(9 - len(rows))]

        assert "2 apart (Linf), declared are 1" in replay(both_ways, AGES, FEWER).witness

    def test_a_threshold_from_the_data_is_named(self) -> None:
        def moving(rows: list[int]) -> bool:
            return so.AboveThreshold.calibrated(epsilon=1, threshold=len(rows)).ask(5)

        assert "a parameter depends on the data" in replay(moving, AGES, FEWER, epsilon=1).witness

    def test_which_object_is_asked_must_not_depend_on_the_data(self) -> None:
        def one_of_two(rows: list[int]) -> list[bool]:
            first, second = (so.AboveThreshold.calibrated(epsilon=1, threshold=3) for _ in range(2))
            first.ask(0)
            second.ask(0)
            return [(first if len(rows) % 2 else second).ask(-100)]

        found = {replay(one_of_two, AGES, FEWER, epsilon=9).witness for _ in range(5)}
        assert any("which mechanism is called depends on the data" in one for one in found)

    def test_frozen_answers_use_it_up_as_drawn_ones_do(self) -> None:
        def until_the_end(rows: list[int]) -> list[Any]:
            alarm = so.AboveThreshold.calibrated(epsilon=1, threshold=-1000)
            answers: list[Any] = [alarm.ask(len(rows)), alarm.left]
            try:
                alarm.ask(len(rows))
            except BudgetExceeded:
                answers.append("spent")
            return answers

        report = replay(until_the_end, AGES, FEWER, epsilon=1)
        assert report.verdict is Verdict.HOLDS, report.summary
        assert record(until_the_end, AGES).result == [True, 0, "spent"]

    def test_one_that_is_older_than_the_run_is_state(self) -> None:
        alarm = so.AboveThreshold.calibrated(epsilon=1, threshold=-1000)
        report = replay(lambda rows: alarm.ask(len(rows)), AGES, FEWER, epsilon=1)
        assert report.verdict is Verdict.UNDECIDED
        assert "state of its own" in report.summary

    def test_its_noise_on_the_threshold_is_drawn_once(self) -> None:
        class Counted:
            draws = 0

            def steps(self, source: Any) -> int:
                del source
                self.draws += 1
                return 0

        alarm = so.AboveThreshold(1, 0, 100)
        alarm.threshold_noise = threshold = Counted()  # type: ignore[assignment]
        alarm.question_noise = question = Counted()  # type: ignore[assignment]
        threads = [threading.Thread(target=alarm.ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (threshold.draws, question.draws, alarm.left) == (1, 8, 92)


def test_a_report_made_again_of_no_permanent_answer_is_named() -> None:
    protocol = local.Repeated.calibrated(permanent=1, first=0.5, categories=KINDS, kind="direct")

    def skips_the_memory(rows: list[str]) -> Any:
        return protocol.refresh_one(KINDS.index(rows[0]))

    report = replay(skips_the_memory, ["well"], ["ill"], epsilon=1, neighbors="unchecked")
    assert report.verdict is Verdict.VIOLATED
    assert "was not made by a protocol" in report.witness
