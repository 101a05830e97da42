"""Record and replay of functions: right pipelines pass, broken ones are found and named, trouble never passes."""

from __future__ import annotations

import itertools
import math
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sordino import (
    Dataset,
    Gaussian,
    KeySelection,
    Laplace,
    NoisyMax,
    RandomizedResponse,
    Session,
    mechanism_from_json,
)
from sordino.accounting.bracket import Bracket
from sordino.audit.inputs.neighbors import Checked
from sordino.audit.replayed import function_replay
from sordino.audit.replayed.cost import Cost
from sordino.audit.replayed.recording import Record, record, replay_on
from sordino.audit.replayed.replay import replay
from sordino.audit.replayed.result_difference import Opaque, difference
from sordino.audit.reporting.report import Report, Verdict
from sordino.errors import InvalidInput
from sordino.mechanisms import bits, observer
from sordino.query.aggregates.quantiles import noisy_quantiles
from tape import Tape
from tape import replay as on_tape

AGES = [31, 47, 65, 80, 22, 54]
FEWER = AGES[:-1]
WARDS = ("A", "B", "C")


@pytest.fixture(autouse=True)
def _same_bits() -> Iterator[None]:
    with on_tape(Tape(20240611)):
        yield


def count(rows: Any, epsilon: Any = 1) -> Any:
    return Laplace.calibrated(sensitivity=1, epsilon=epsilon).release(len(rows))


def clipped_sum(rows: Any, epsilon: Any = 1, high: int = 100) -> Any:
    return Laplace.calibrated(sensitivity=high, epsilon=epsilon).release(
        sum(min(max(x, 0), high) for x in rows)
    )


def mean(rows: list[int]) -> dict[str, float]:
    total, n = clipped_sum(rows, Fraction(1, 2)), count(rows, Fraction(1, 2))
    return {"total": total, "mean": total / max(n, 1)}


def public_mean(rows: list[int]) -> float:
    return float(clipped_sum(rows)) / 6


def by_ward(rows: list[str]) -> dict[str, int]:
    noisy = Laplace.calibrated(sensitivity=1, epsilon=1).release(
        np.array([rows.count(ward) for ward in WARDS])
    )
    return dict(zip(WARDS, noisy.tolist(), strict=True))


def adaptive(rows: list[int]) -> tuple[int, int]:
    """The second question depends on the first noisy answer."""
    first = count(rows, Fraction(1, 2))
    limit = 50 if first > 5 else 60
    return first, count([x for x in rows if x > limit], Fraction(1, 2))


def gaussians(rows: list[int]) -> list[int]:
    noise = Gaussian.calibrated(sensitivity=math.sqrt(3), epsilon=1, delta=1e-6)
    return list(noise.release([len(rows), sum(x > 50 for x in rows), sum(x > 20 for x in rows)]))


def survey(answers: list[bool]) -> list[int]:
    return [int(x) for x in RandomizedResponse.calibrated(epsilon=1).release(answers)]


def fine_step(rows: list[float]) -> float:
    noise = Laplace.calibrated(sensitivity=1, epsilon=1, step=0.01)
    return float(noise.release(sum(min(max(x, 0.0), 1.0) for x in rows), round_to_lattice=True))


def lazy(rows: list[int]) -> Iterator[int]:
    return (count([x for x in rows if x > limit], Fraction(1, 3)) for limit in (20, 50, 90))


def partitioned(rows: list[int]) -> list[int]:
    """One person is in one part only: the parts together cost what one of them costs."""
    parts = [[x for x in rows if x // 50 == part] for part in range(3)]
    return [count(part) for part in parts]


RIGHT: list[tuple[Callable[[Any], Any], Any, Any, float, float]] = [
    (mean, AGES, FEWER, 1, 0),
    (public_mean, [*FEWER, 0], [*FEWER, 150], 1, 0),
    (by_ward, ["A", "B", "A", "C"], ["A", "B", "C"], 1, 0),
    (adaptive, AGES, FEWER, 1, 0),
    (gaussians, AGES, FEWER, 1, 1e-6),
    (survey, [True, False, True], [True, False, False], 1, 0),
    (fine_step, [0.25, 0.5, 3.0], [0.25, 0.5], 1, 0),
    (lazy, AGES, FEWER, 1, 0),
    (partitioned, AGES, FEWER, 1, 0),
    (
        lambda rows: RandomizedResponse(0.75, ["yes", "no"]).release(np.array(rows)),
        ["yes", "no"],
        ["yes", "yes"],
        1.1,
        0,
    ),
]


@pytest.mark.parametrize(("function", "one", "other", "epsilon", "delta"), RIGHT)
def test_right_functions_pass(
    function: Any, one: Any, other: Any, epsilon: float, delta: float
) -> None:
    report = replay(function, one, other, epsilon=epsilon, delta=delta)
    assert report.verdict is Verdict.HOLDS, report.summary
    assert report.passed
    assert not report.witness
    assert report.grids[0].rows


@pytest.mark.parametrize(("function", "one", "other", "epsilon", "delta"), RIGHT)
def test_no_right_function_can_claim_half(
    function: Any, one: Any, other: Any, epsilon: float, delta: float
) -> None:
    """The costs are not too large either: all of these pairs reach what is claimed, and half of it is refuted."""
    report = replay(function, one, other, epsilon=epsilon / 2, delta=delta)
    assert report.verdict is Verdict.VIOLATED
    assert "the calls cost" in report.witness


@dataclass(frozen=True)
class Broken:
    """A pipeline with a known bug, a pair that shows it, and words that its report must say."""

    function: Callable[[Any], Any]
    one: Any
    other: Any
    words: str
    epsilon: float | None = 1
    sensitivity: Any = None


def n_leaks(rows: list[int]) -> float:
    return float(clipped_sum(rows)) / len(rows)


def keys_from_data(rows: list[str]) -> list[int]:
    return list(
        Laplace.calibrated(sensitivity=1, epsilon=1).release(
            [rows.count(ward) for ward in sorted(set(rows))]
        )
    )


def bounds_from_data(rows: list[int]) -> int:
    return int(Laplace.calibrated(sensitivity=max(rows), epsilon=1).release(sum(rows)))


def scale_from_data(rows: list[int]) -> int:
    return int(Laplace(scale=len(rows)).release(sum(rows)))


def clip_forgotten(rows: list[int]) -> int:
    return int(Laplace.calibrated(sensitivity=10, epsilon=1).release(sum(rows)))


def nan_passes_the_clip(rows: list[float]) -> Any:
    return Laplace.calibrated(sensitivity=1, epsilon=1).release(
        float(np.clip(rows, 0, 1).sum()), round_to_lattice=True
    )


def spends_twice(rows: list[int]) -> tuple[int, int]:
    return count(rows), count(rows)


def off_by_one(rows: list[int]) -> list[int]:
    cells = np.bincount(np.array(rows) // 10)
    return list(Laplace.calibrated(sensitivity=1, epsilon=1).release(cells).tolist())


def early_exit(rows: list[int]) -> int:
    old = [x for x in rows if x > 50]
    return count(old) if old else 0


def error_quotes_a_cell(rows: list[int]) -> int:
    for x in rows:
        if x > 100:
            raise ValueError(f"{x} is no age")
    return int(count(rows))


def type_from_data(rows: list[Any]) -> Any:
    return np.asarray([count(rows)]).astype(np.asarray(rows).dtype)


def dictionary_in_order_of_rows(rows: list[str]) -> dict[str, int]:
    noisy = by_ward(rows)
    return {ward: noisy[ward] for ward in [*dict.fromkeys(rows), *WARDS]}


def rounds_after_measuring(rows: list[float]) -> list[int]:
    """One person moves five numbers by a fifth, which is 1 in L1; rounded to whole numbers it can be 5."""
    shares = [sum(x >= k for x in rows) / 5 + 0.3 for k in range(5)]
    return list(Laplace.calibrated(sensitivity=1, epsilon=1).release(shares, round_to_lattice=True))


def looks_again(rows: list[int]) -> int:
    return max(int(count(rows)), len(rows) - 10, max(rows))


def order_of_calls(rows: list[int]) -> list[int]:
    steps = [count, clipped_sum] if len(rows) % 2 else [clipped_sum, count]
    return [int(step(rows, Fraction(1, 2))) for step in steps]


def seeded(rows: list[int]) -> float:
    return len(rows) + float(np.random.default_rng(1).laplace())


def more_calls(rows: list[int]) -> list[int]:
    return [int(count([x], Fraction(1, 100))) for x in rows]


def many_answers(rows: list[tuple[bool, bool]]) -> list[int]:
    return [
        int(x) for row in rows for x in RandomizedResponse.calibrated(epsilon=1).release(list(row))
    ]


def truth_or_number(rows: list[Any]) -> Any:
    return RandomizedResponse.calibrated(epsilon=1).release(np.array(rows))


BROKEN = [
    Broken(n_leaks, AGES, FEWER, "with the same noise the results differ"),
    Broken(
        keys_from_data,
        ["A", "B", "B"],
        ["B", "B"],
        "of a list of 1 number (the size of what is released depends",
    ),
    Broken(
        bounds_from_data,
        AGES,
        [x for x in AGES if x != 80],
        "Laplace(scale=80).release of one number, on D' Laplace(s",
    ),
    Broken(scale_from_data, AGES, FEWER, "a parameter depends on the data"),
    Broken(
        clip_forgotten, AGES, FEWER, "the exact values are 54 apart (L1), declared are 10", None
    ),
    Broken(
        nan_passes_the_clip, [0.5, 1.0], [0.5, math.nan], "on D' it raises InvalidInput: got nan"
    ),
    Broken(spends_twice, AGES, FEWER, "claimed is epsilon 1, and the calls cost epsilon 2"),
    Broken(off_by_one, [5, 99], [5, 9], "an array of 10 numbers, on D' of an array of 1 number"),
    Broken(
        early_exit, [30, 65], [30], "on D' it makes no such call (when it ends depends on the data)"
    ),
    Broken(
        error_quotes_a_cell,
        [30, 120],
        [30, 121],
        "on D it raises ValueError: 120 is no age, on D' ValueError: 121",
    ),
    Broken(
        error_quotes_a_cell,
        [30, 120],
        [30],
        "but D makes no call and raises ValueError: 120 is no age",
    ),
    Broken(
        error_quotes_a_cell,
        [30],
        [30, 120],
        "call 1: on D it is Laplace(scale=1).release of one number, on D' it raises",
    ),
    Broken(
        type_from_data,
        [1, 2, 3],
        [1, 2, 3.5],
        "the result is int64 of shape (1,) on D and float64 of shape (1,)",
    ),
    Broken(
        dictionary_in_order_of_rows,
        ["B", "A"],
        ["A"],
        "the result has its keys in the order ['B', 'A', 'C'] on D",
    ),
    Broken(rounds_after_measuring, [4.0], [], "the exact values are 5 apart (L1), declared are 1"),
    Broken(looks_again, AGES, [31, 22], "the result is 80 on D and", 1),
    Broken(order_of_calls, AGES, FEWER, "a parameter depends on the data"),
    Broken(seeded, AGES, FEWER, "with the same noise the results differ"),
    Broken(more_calls, AGES, FEWER, "on D' it makes no such call"),
    Broken(
        more_calls,
        FEWER,
        AGES,
        "on D' it is Laplace(scale=100).release of one number, but D makes only 5 calls",
    ),
    Broken(
        many_answers,
        [(True, True)],
        [(False, False)],
        "claimed is epsilon 1, and the calls cost epsilon 2",
    ),
    Broken(
        truth_or_number,
        [True, False],
        [1, 0],
        "an array of 2 numbers of truth values, on D' of an array of 2 numbers",
    ),
    Broken(truth_or_number, True, 1, "of one truth value, on D' of one number", 2),
    Broken(
        lambda rows: Laplace(scale=9).release(sum(rows)),
        [9, 3],
        [9],
        "3 apart (L1), declared are 2",
        9,
        2,
    ),
    Broken(
        lambda rows: [Laplace(9).release(x) for x in rows], [9, 3], [9, 5], "call 2", 9, [None, 1]
    ),
    Broken(
        lambda rows: Gaussian(3).release(len(rows)),
        [9, 3],
        [9],
        "the calls cost more than any epsilon",
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: getattr(case.function, "__name__", "?"))
def test_broken_functions_are_found_and_named(case: Broken) -> None:
    relation = "unchecked" if case.function in (looks_again, early_exit, truth_or_number) else None
    report = replay(
        case.function,
        case.one,
        case.other,
        epsilon=case.epsilon,
        sensitivity=case.sensitivity,
        neighbors=relation,
    )
    assert report.verdict is Verdict.VIOLATED, report.summary
    assert case.words in report.witness
    assert not report.passed


def own_noise(rows: list[int]) -> float:
    return float(np.random.default_rng().laplace()) + len(rows)


class Counting:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.asked = itertools.count()

    def __call__(self, rows: list[int]) -> tuple[int, int]:
        return count(rows), next(self.asked)


def in_a_thread(rows: list[int]) -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(count(rows, 1e-6)))
    thread.start()
    thread.join()
    return found[0]


def always_fails(rows: list[int]) -> int:
    raise RuntimeError("no luck")


def selects(rows: list[str]) -> list[str]:
    keys = sorted(set(rows))
    shown = KeySelection.calibrated(epsilon=1, delta=0.01, l1=1, linf=1).select(
        [rows.count(key) for key in keys]
    )
    return [key for key, seen in zip(keys, shown, strict=True) if seen]


def opaque(rows: list[int]) -> Any:
    n = count(rows)
    return lambda: n


def medians(rows: list[int]) -> list[int]:
    cells, weights = np.unique(np.clip(rows, 0, 100), return_counts=True)
    draws = [
        noisy_quantiles(
            cells,
            weights,
            positions=101,
            levels=(Fraction(1, 2),),
            rate=Fraction(1),
            bits=bits.source(),
        )
        for _ in range(2)
    ]
    return [draw[0].value for draw in draws]


UNDECIDED: list[tuple[Callable[[Any], Any], Any, Any, str]] = [
    (own_noise, AGES, FEWER, "randomness or state of its own"),
    (Counting(), AGES, FEWER, "the results differ: [1] is 0 on D and 1 on D again"),
    (in_a_thread, AGES, FEWER, "in one thread"),
    (always_fails, AGES, FEWER, "raises RuntimeError: no luck on both inputs"),
    (selects, ["A", "B", "B"], ["B", "B"], "Which key is which on the two inputs cannot be told"),
    (opaque, AGES, FEWER, "which cannot be compared"),
    (mean, AGES, AGES, "equal"),
    (mean, AGES, AGES[:3], "may differ"),
    (medians, AGES, FEWER, "neither refuted nor supported"),
]


@pytest.mark.parametrize(("function", "one", "other", "words"), UNDECIDED)
def test_trouble_is_said_and_never_passes(function: Any, one: Any, other: Any, words: str) -> None:
    report = replay(function, one, other, epsilon=1)
    assert report.verdict is Verdict.UNDECIDED
    assert words in report.summary
    assert not report.passed


def test_upper_bounds_support_a_claim_that_they_meet() -> None:
    assert replay(medians, AGES, FEWER, epsilon=2).passed


def test_an_error_on_some_tapes_is_noted() -> None:
    def careful(rows: list[int]) -> int:
        n = int(count(rows))
        if n < 6:
            raise ValueError("too few")
        return n

    report = replay(careful, AGES, FEWER, epsilon=1, tapes=20)
    assert report.passed
    assert any("ValueError: too few" in note for note in report.notes)


def test_a_function_that_always_raises_after_a_noisy_look_may_not_tell_more() -> None:
    def telling(rows: list[int]) -> int:
        count(rows)
        raise ValueError(f"{len(rows)} rows")

    report = replay(telling, AGES, FEWER, epsilon=1)
    assert report.verdict is Verdict.VIOLATED
    assert "what an error says depends on the data" in report.witness


def test_branches_that_only_the_other_input_takes_are_seen() -> None:
    """Recorded on D nothing is wrong at all: D' asks first, and asks more only if told more."""

    def curious(rows: list[int]) -> list[int]:
        first = int(count(rows, Fraction(1, 2)))
        return [first, int(count(rows, Fraction(1, 2)))] if len(rows) < 6 else [first]

    report = replay(curious, AGES, FEWER, epsilon=1)
    assert report.verdict is Verdict.VIOLATED
    assert "call 2" in report.witness


def test_without_a_claim_it_is_what_the_calls_were_made_for() -> None:
    report = replay(mean, AGES, FEWER)
    assert report.passed
    assert report.epsilon == 1
    assert any("No epsilon was claimed" in note for note in report.notes)
    unknown = replay(lambda rows: Laplace(4).release(len(rows)), AGES, FEWER)
    assert unknown.verdict is Verdict.UNDECIDED
    assert "pass epsilon= or sensitivity=" in unknown.summary
    assert unknown.epsilon == 0.25
    assert dict(unknown.facts)["epsilon observed"] == "epsilon 0.25"


def test_the_report_has_the_facts() -> None:
    report = replay(mean, AGES, FEWER, epsilon=1, name="our mean")
    assert report.name == "our mean"
    assert report.method == "record and replay"
    assert report.confidence is None
    assert dict(report.facts)["calls of mechanisms"] == "2"
    rows = report.grids[0].rows
    assert rows[0][1:6] == ("Laplace(scale=200).release", "one number", "54 (L1)", "100", "54.0%")
    assert rows[1][3:] == ("1 (L1)", "1", "100.0%", "epsilon 0.5")
    assert Report.from_json(report.to_json()) == report


TABLE = pa.table(
    {
        "id": [i // 2 for i in range(40)],
        "age": [20 + i for i in range(40)],
        "city": ["oslo", "rome"] * 20,
    }
)
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "int", "min": 0, "max": 110},
    "city": {"type": "text"},
}


def dataset(table: Any) -> Dataset:
    return Dataset(
        table,
        unit="id",
        max_rows_per_group=2,
        max_groups=2,
        columns=COLUMNS,
        budget={"epsilon": 20, "delta": 1e-3},
    )


def asks(*questions: str, **cost: Any) -> Callable[[Any], Any]:
    def ask(table: Any) -> list[Any]:
        with Session(dataset(table), threads=1) as session:
            return [*(session.sql(question, **cost) for question in questions), session.remaining]

    return ask


def test_sessions_inside_a_function() -> None:
    questions = (
        "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM data GROUP BY city HAVING n > 1 ORDER BY a DESC LIMIT 5",
        "SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM data WHERE age > 30",
    )
    ask = asks(*questions, epsilon=1, delta=1e-4)
    report = replay(
        ask, TABLE, TABLE.slice(2), epsilon=2, delta=1e-3, neighbors="unchecked", tapes=1
    )
    assert report.verdict is Verdict.HOLDS, report.summary
    assert [row[0] for row in report.grids[0].rows if row[0]] == ["1", "2"]
    assert any(row[3].endswith("(Keys L1)") for row in report.grids[0].rows)


def test_a_session_that_spends_more_than_claimed() -> None:
    ask = asks(
        "SELECT COUNT(*) AS n FROM data", "SELECT COUNT(*) AS n FROM data WHERE age > 20", epsilon=1
    )
    one = replay(ask, TABLE, TABLE.slice(0, 38), epsilon=1, neighbors="unchecked", tapes=1)
    assert one.verdict is Verdict.VIOLATED
    # nobody of them is beyond the bounds, which took a tenth
    assert "the calls cost epsilon 1.8" in one.witness


def test_a_question_made_from_data_is_found() -> None:
    def ask(table: Any) -> Any:
        oldest = max(table.column("age").to_pylist())
        return asks(f"SELECT COUNT(*) AS n FROM data WHERE age < {oldest}", epsilon=1)(table)

    report = replay(ask, TABLE, TABLE.slice(0, 38), epsilon=1, neighbors="unchecked")
    assert report.verdict is Verdict.VIOLATED
    assert "depends on the data" in report.witness


def test_a_budget_made_from_data_is_found() -> None:
    def ask(table: Any) -> Any:
        with Session(dataset(table), threads=1) as session:
            return session.sql("SELECT COUNT(*) AS n FROM data", epsilon=len(table) / 10)

    report = replay(ask, TABLE, TABLE.slice(2), epsilon=4, neighbors="unchecked")
    assert report.verdict is Verdict.VIOLATED


def test_what_is_calibrated_remembers_for_what_and_nothing_else_changes() -> None:
    made = (
        Laplace.calibrated(sensitivity=3, epsilon=1),
        Gaussian.calibrated(sensitivity=2, epsilon=1, delta=1e-6),
    )
    for mechanism, sensitivity in zip(made, (3, 2), strict=True):
        plain = type(mechanism)(mechanism.scale)
        assert mechanism.calibrated_for == sensitivity
        assert plain.calibrated_for is None
        assert mechanism == plain
        assert hash(mechanism) == hash(plain)
        assert repr(mechanism) == repr(plain)
        assert mechanism.to_json() == plain.to_json()
        assert mechanism_from_json(mechanism.to_json()) == mechanism
        assert pickle.loads(pickle.dumps(mechanism)).calibrated_for == sensitivity


def test_nobody_watches_outside_of_an_audit() -> None:
    assert observer._current.get() is None
    replay(mean, AGES, FEWER, epsilon=1)
    assert observer._current.get() is None
    with pytest.raises(KeyboardInterrupt):
        replay(_interrupted, AGES, FEWER, epsilon=1)
    assert observer._current.get() is None


def _interrupted(rows: list[int]) -> int:
    raise KeyboardInterrupt


def test_frozen_outputs_cannot_be_changed_by_the_function() -> None:
    def careless(rows: list[int]) -> list[int]:
        noisy = Laplace.calibrated(sensitivity=1, epsilon=1).release(np.array([len(rows), 0]))
        noisy += 1
        rows.append(0)
        return list(noisy.tolist())

    assert replay(careless, AGES, FEWER, epsilon=1).passed
    assert len(AGES) == 6


def test_the_first_difference_ends_a_run_even_if_it_is_caught() -> None:
    def stubborn(rows: list[int]) -> int:
        try:
            return int(Laplace(len(rows)).release(1))
        except BaseException:
            return 0

    assert "a parameter depends on the data" in replay(stubborn, AGES, FEWER, epsilon=1).witness


def test_calls_inside_a_call_are_part_of_it() -> None:
    table = dataset(TABLE)

    def ask(data: Any) -> Any:
        with Session(data, threads=1) as session:
            return session.sql("SELECT city, COUNT(*) AS n FROM data GROUP BY city", epsilon=1)

    known = record(ask, table)
    assert [call.operation for call in known.calls] == ["release"]
    assert str(known.calls[0]).startswith("the answer to SELECT city")
    assert replay_on(ask, table, known).difference is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((mean, AGES, FEWER), {"epsilon": -1}),
        ((mean, AGES, FEWER), {"epsilon": math.nan}),
        ((mean, AGES, FEWER), {"delta": 1}),
        ((mean, AGES, FEWER), {"delta": -0.1}),
        ((mean, AGES, FEWER), {"tapes": 0}),
        ((mean, AGES, FEWER), {"tapes": True}),
        ((mean, AGES, FEWER), {"sensitivity": -1}),
        ((mean, AGES, FEWER), {"sensitivity": [1, "a"]}),
        ((mean, AGES, FEWER), {"neighbors": "add"}),
        ((mean, AGES, FEWER), {"error": 3}),
        ((mean, AGES), {}),
        ((7, AGES, FEWER), {}),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        replay(*arguments, **named)


@dataclass
class Point:
    x: float
    y: Any = None


class Plain:
    def __init__(self, x: Any) -> None:
        self.x = x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x


SAME: list[tuple[Any, Any]] = [
    (1, 1),
    (math.nan, math.nan),
    ([1, (2.0, {"a": None})], [1, (2.0, {"a": None})]),
    (np.array([1.0, math.nan]), np.array([1.0, math.nan])),
    (np.array([1, None], object), np.array([1, None], object)),
    (pa.table({"a": [1, 2]}), pa.table({"a": [1, 2]})),
    (Point(1.0, [2]), Point(1.0, [2])),
    (Plain(3), Plain(3)),
    (Slotted(3), Slotted(3)),
    ({3, 4}, {4, 3}),
    ([10**5000], [10**5000]),
]
DIFFERENT: list[tuple[Any, Any, str]] = [
    (1, 1.0, "type"),
    (True, 1, "type"),
    (0.0, -0.0, "-0.0"),
    (np.float32(1), np.float64(1), "type"),
    ([1], [1, 2], "entries"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "order"),
    ({"a": 1}, {"b": 1}, "the key 'a'"),
    (np.zeros(2), np.zeros(3), "shape"),
    (np.zeros(2), np.zeros(2, int), "int64"),
    (np.zeros(2), -np.zeros(2), "[0]"),
    (pa.table({"a": [1]}), pa.table({"a": pa.array([1], pa.int8())}), "int8"),
    (Point(1.0), Point(2.0), "['x'] is 1.0"),
    (Plain([1]), Plain([2]), "['x'][0]"),
    (Slotted(3), Slotted(4), "on D'"),
    ({1}, {1.0}, "on D'"),
    (1j, complex(-0.0, 1), "on D'"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_is_the_same(one: Any, other: Any) -> None:
    assert difference(one, other) is None


@pytest.mark.parametrize(("one", "other", "words"), DIFFERENT)
def test_what_differs(one: Any, other: Any, words: str) -> None:
    found = difference(one, other)
    assert found is not None
    assert words in found
    assert difference(other, one) is not None


def test_frames_are_compared_by_cells_types_and_index() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert difference(frame, frame.copy()) is None
    assert difference(frame, frame.astype({"a": float})) is not None
    assert difference(frame, frame.set_index(pandas.Index([5, 6]))) is not None


def test_what_cannot_be_compared_is_no_reason_to_pass() -> None:
    loops: list[list[Any]] = [[], []]
    for loop in loops:
        loop.append(loop)
    for one, other in ((threading.Lock(), threading.Lock()), loops, (lambda: 1, lambda: 1)):
        with pytest.raises(Opaque):
            difference(one, other)


def test_a_hundred_small_losses_compose_to_less_than_their_sum() -> None:
    def often(rows: list[int]) -> list[int]:
        return [count(rows, Fraction(1, 20)) for _ in range(100)]

    for epsilon, delta, verdict in (
        (2.2, 1e-5, Verdict.HOLDS),
        (1.6, 1e-5, Verdict.VIOLATED),
        (5, 0, Verdict.HOLDS),
        (4.99, 0, Verdict.VIOLATED),
    ):
        assert replay(often, AGES, FEWER, epsilon=epsilon, delta=delta, tapes=1).verdict is verdict


def test_many_different_distances() -> None:
    """They are weighed as one: exactly at delta 0, elsewhere only as an upper bound, by which nothing is refuted."""

    def spread(rows: list[int]) -> list[int]:
        return [int(x) for x in Laplace(1000).release([sum(rows) * k for k in range(30)])]

    for epsilon, delta, verdict in (
        (0.435, 0, Verdict.HOLDS),
        (0.434, 0, Verdict.VIOLATED),
        (0.435, 0.01, Verdict.HOLDS),
        (0.2, 0.01, Verdict.UNDECIDED),
    ):
        assert replay(spread, [1, 2], [2], epsilon=epsilon, delta=delta, tapes=1).verdict is verdict


def test_no_calls_cost_nothing() -> None:
    assert Cost().within(Fraction(0), Fraction(0)) is True
    report = replay(lambda rows: 7, AGES, FEWER, epsilon=0)
    assert report.passed
    assert "It called no mechanism." in report.notes


@pytest.mark.parametrize("method", ["exponential", "permute_and_flip"])
def test_choices_cost_what_their_scores_move(method: str) -> None:
    def best(scores: Any, **how: Any) -> Any:
        return NoisyMax(1, method=method, **how).release(scores)

    assert replay(best, [3, 1, 2], [2, 2, 2], epsilon=1, neighbors="answers").passed
    far = replay(best, [3, 1, 2], [1, 1, 2], epsilon=1, neighbors="unchecked")
    assert far.verdict is Verdict.VIOLATED
    assert "2 apart (Linf), declared are 1" in far.witness

    def one_way(scores: Any) -> Any:
        return best(scores, monotone=True)

    assert replay(one_way, [3, 1, 2], [2, 0, 2], epsilon=1, neighbors="answers").passed
    assert (
        replay(one_way, [3, 1, 2], [2, 2, 2], epsilon=1, neighbors="answers").verdict
        is Verdict.VIOLATED
    )
    assert not replay(best, [3, 1, 2], [2, 2, 2], epsilon=0.5, neighbors="answers").passed


@dataclass(frozen=True)
class KnownBetween:
    """A cost of which two ends are known."""

    lower: float
    upper: float

    def epsilon_bounds(self, delta: Fraction) -> Bracket:
        return Bracket(self.lower, self.upper)

    def within(self, epsilon: Fraction, delta: Fraction) -> bool | None:
        return True if self.upper <= epsilon else False if self.lower > epsilon else None


@pytest.mark.parametrize(
    ("other", "verdict"), [(KnownBetween(2, 2), "VIOLATED"), (KnownBetween(0.5, 2), "UNDECIDED")]
)
def test_a_neighbour_that_refutes_the_claim_is_told_beside_one_with_larger_bounds(
    other: KnownBetween, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = {"loose": KnownBetween(0.5, 9), "known": other}
    monkeypatch.setattr(function_replay._Run, "cost", property(lambda run: costs[run.neighbour]))
    sides = ("D", "D'")
    runs = [function_replay._Run(name, sides, Record((), 1)) for name in costs]
    claim = function_replay.Claim(Fraction(1), Fraction(0))
    audit = function_replay.FunctionReplay(
        len, [1], {"D'": []}, Checked(True, "rows"), claim, lambda _: None, "f", 1, asked=True
    )
    assert audit._judged(runs).verdict is Verdict[verdict]
