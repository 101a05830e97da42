"""Bad input through the public face: said clearly in the report or refused, never a crash, never a false "passed"."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.audit.reporting.report import Report, Verdict
from sordino.errors import InvalidInput

WORKERS = pytest.mark.parametrize("workers", [1, 2])
UNDECIDED, VIOLATED = Verdict.UNDECIDED, Verdict.VIOLATED


def noise() -> float:
    """On a grid, so that floats by themselves betray nothing."""
    return round(RNG.laplace() * 8) / 8


RNG = np.random.default_rng(5)


def audit(mechanism: Any, *data: Any, **named: Any) -> Report:
    report = so.audit(
        mechanism, *data, **{"epsilon": 1, "samples": 1000, "workers": 1, "seconds": 30, **named}
    )
    assert isinstance(report, Report)
    assert report.summary
    assert Report.from_json(report.to_json()).verdict is report.verdict
    assert report.to_text()
    assert report.to_html()
    return report


class Raising:
    """Not comparable, not printable, not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __repr__(self) -> str:
        raise RuntimeError("not printable")


def generator(x: Any) -> Iterator[float]:
    yield x + noise()


async def coroutine(x: Any) -> float:
    return float(x + noise())


def endless(x: Any) -> Any:
    return endless(x)


def fails(error: BaseException) -> Callable[[Any], Any]:
    def mechanism(_: Any) -> Any:
        raise error

    return mechanism


def one_short(x: Any, size: int) -> Any:
    return RNG.laplace(x, 1, size - 1)


def ignores_size(x: Any, size: int) -> Any:
    return x + noise()


NOTHING_TO_SEE: dict[str, tuple[Any, str]] = {
    "raises": (fails(ValueError("out of range")), "ValueError: out of range"),
    "raises without a text": (fails(MemoryError()), "MemoryError"),
    "never returns from itself": (endless, "RecursionError"),
    "stops an iteration": (fails(StopIteration()), "StopIteration"),
    "takes no data": (lambda: 1, "TypeError"),
    "takes more than data": (lambda x, y: 1, "TypeError"),
    "leaves": (lambda x: sys.exit(2), "SystemExit"),
    "NaN": (lambda x: math.nan, "always gives the same output"),
    "None": (lambda x: None, "always gives the same output"),
    "constant": (lambda x: 5, "always gives the same output"),
    "empty": (lambda x: [], "always gives the same output"),
    "generator": (generator, "generator"),
    "coroutine": (coroutine, "coroutine"),
    "one output too few": (one_short, "size=1"),
    "takes size and ignores it": (ignores_size, "size=1"),
    "unusable objects": (lambda x: Raising(), ""),
}


@WORKERS
@pytest.mark.parametrize("name", NOTHING_TO_SEE)
def test_mechanisms_that_cannot_be_audited(name: str, workers: int) -> None:
    mechanism, words = NOTHING_TO_SEE[name]
    report = audit(mechanism, 0, 1, workers=workers)
    assert report.verdict is UNDECIDED
    assert not report.passed
    assert words in report.summary


BETRAYED: dict[str, Callable[[Any], Any]] = {
    "raises on one input": lambda x: noise() if x == 0 else 1 // 0,
    "NaN on one input": lambda x: noise() if x == 0 else math.nan,
    "another type": lambda x: noise() if x == 0 else str(noise()),
    "another shape": lambda x: [noise()] * (x + 1),
    "no randomness": lambda x: x,
    "an infinity": lambda x: math.inf if x else -math.inf,
    "a missing value": lambda x: None if x else noise(),
    "raises more often": lambda x: noise() if RNG.random() > 0.02 + 0.8 * x else 1 // 0,
}


@WORKERS
@pytest.mark.parametrize("name", BETRAYED)
def test_trouble_on_one_input_only_is_evidence(name: str, workers: int) -> None:
    report = audit(BETRAYED[name], 0, 1, workers=workers)
    assert report.verdict is VIOLATED
    assert report.epsilon_lower > 1
    assert report.witness


def test_processes_that_die_are_reported() -> None:
    for death, words in (
        (lambda x: os._exit(3), "exit code 3"),
        (lambda x: os.kill(os.getpid(), 11), "SIGSEGV"),
    ):
        report = audit(death, 0, 1, workers=2)
        assert report.verdict is UNDECIDED
        assert words in report.summary


@WORKERS
def test_a_mechanism_that_hangs_is_cut_off(workers: int) -> None:
    report = audit(lambda x: time.sleep(600), 0, 1, seconds=0.5, workers=workers)
    assert report.verdict is UNDECIDED
    assert "in time" in report.summary


@pytest.mark.parametrize(
    ("d1", "d2", "neighbors", "words"),
    [
        (0, 5, None, "at most 1 apart"),
        (3, 3, None, "equal"),
        ([1, 2], [1, 2], "unchecked", "equal"),
        ([1, 2], [7, 8, 9], None, "one in all may differ"),
        ([1, 2], [7, 8], "replace", "one on each side"),
        ([1, 2], [1], "replace", "one on each side"),
        ([1, 2], [1, 9], "answers", "entry 1"),
        (0, 1, lambda a, b: False, "not neighbours"),
        (0, 1, lambda a, b: "yes", "True or False"),
        (0, 1, lambda a, b: 1 // 0, "ZeroDivisionError"),
        (Raising(), Raising(), None, "could not be compared"),
        (iter([1]), iter([1, 2]), "unchecked", "only once"),
        (object(), 3, None, "no relation"),
    ],
)
def test_inputs_that_are_not_neighbours_are_never_passed(
    d1: Any, d2: Any, neighbors: Any, words: str
) -> None:
    """The mechanism is as private as can be; it must not pass on a pair that proves nothing."""
    report = audit(lambda x: noise(), d1, d2, neighbors=neighbors)
    assert report.verdict is UNDECIDED
    assert words in report.summary


def test_a_mechanism_may_not_learn_from_what_it_did_to_its_input() -> None:
    """Each run gets the data as they were: otherwise this mechanism would hide behind its own changes."""

    def forgets(rows: list[float]) -> float:
        first = rows.pop() if rows else 0.0
        return 50 * first + noise()

    data: tuple[list[float], list[float]] = [0.0], [1.0]
    report = audit(forgets, *data, neighbors="replace")
    assert report.verdict is not Verdict.HOLDS
    assert data == ([0.0], [1.0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": "1"}, {"epsilon": None},
        {"epsilon": True},        {"delta": -0.1}, {"delta": 1.1}, {"delta": math.nan}, {"delta": "small"},
        {"samples": 0}, {"samples": 3}, {"samples": -5}, {"samples": 2.5}, {"samples": "many"}, {"samples": True},
        {"samples": math.nan}, {"samples": 10**30},
        {"confidence": 0}, {"confidence": 1}, {"confidence": 2}, {"confidence": math.nan}, {"confidence": "high"},
        {"seconds": 0}, {"seconds": -1}, {"seconds": math.nan}, {"seconds": "long"},
        {"workers": 0}, {"workers": 1.5}, {"workers": "all"},
        {"neighbors": "next door"}, {"neighbors": 3},
    ],
    ids=lambda x: str(x).partition(" at 0x")[0],
)  # fmt: skip
def test_bad_arguments_are_refused_before_anything_runs(wrong: dict[str, Any]) -> None:
    def never(_: Any) -> Any:
        raise AssertionError("it ran")

    with pytest.raises(InvalidInput) as refusal:
        so.audit(never, 0, 1, **{"epsilon": 1, **wrong})
    assert next(iter(wrong)) in str(refusal.value)


def test_what_is_no_mechanism_is_refused() -> None:
    for mechanism in (None, 5, "laplace", [1]):
        with pytest.raises(InvalidInput, match="mechanism"):
            so.audit(mechanism, 0, 1, epsilon=1)
    with pytest.raises(InvalidInput, match="d1 and d2"):
        so.audit(lambda x: noise(), 0, epsilon=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"neighbors": "unchecked"}, {"neighbors": lambda a, b: True}, {"neighbors": "nonsense"}, {"length": 0},
        {"length": 1.5}, {"domain": (3, 1)}, {"domain": "ab"}, {"neighbors": "histogram", "domain": ["a"]},
    ],
    ids=lambda x: str(x).partition(" at 0x")[0],
)  # fmt: skip
def test_a_search_that_cannot_be_made_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        so.audit(lambda x: noise(), epsilon=1, **wrong)


def test_a_search_over_inputs_that_all_fail_is_undecided() -> None:
    for mechanism in (fails(ValueError("no")), lambda x: 1):
        report = audit(mechanism, neighbors="answers")
        assert report.verdict is UNDECIDED


def test_a_search_finds_what_one_pair_hides() -> None:
    """The sum of rows without a clip is betrayed by a row that nobody excluded; inside a domain it is private."""

    def total(rows: Any) -> Any:
        return (
            round(float(np.sum(rows)) + 10 * RNG.laplace())
            if np.isfinite(np.sum(rows))
            else math.nan
        )

    assert audit(total, neighbors="add_remove", samples=4000).verdict is VIOLATED
    assert audit(total, neighbors="add_remove", samples=4000, domain=(0, 1)).passed


def test_the_other_checks_are_functions_whichever_module_was_imported_first() -> None:
    import sordino.audit.computed.exact
    import sordino.audit.computed.law
    import sordino.audit.known_truth
    import sordino.audit.replayed.replay  # noqa: F401

    for name in ("exact", "law", "replay", "zoo"):
        assert isinstance(getattr(so.audit, name), FunctionType), name
    assert so.audit.exact(so.Laplace(1), epsilon=1).passed


@pytest.mark.parametrize("wrong", [-1, math.nan, "1", None, True])
def test_exact_checks_refuse_the_same_claims(wrong: Any) -> None:
    from sordino.audit.computed.exact import exact

    with pytest.raises(InvalidInput, match="epsilon"):
        exact(so.Laplace(1), epsilon=wrong)
    with pytest.raises(InvalidInput, match="delta"):
        exact(so.Laplace(1), epsilon=1, delta=wrong)


def test_what_an_adversary_found() -> None:
    """Leaks that once passed, and numbers that once crashed."""
    masked = so.audit(
        lambda d: np.ma.array([float(RNG.integers(3)), 0.0], mask=[0, d]),
        0,
        1,
        epsilon=1,
        samples=2000,
        workers=1,
    )
    assert masked.verdict is Verdict.VIOLATED
    left = iter(range(200))

    def exhausted(d: int) -> int:
        next(left)  # a budget that is spent in training
        return d + 5 * int(RNG.integers(2))

    report = so.audit(exhausted, 0, 1, epsilon=0.1, samples=2000, workers=1)
    assert report.verdict is Verdict.UNDECIDED, report.summary
    assert so.audit(so.Laplace(1), 0, 1, epsilon=np.float32(1), samples=2000).passed
    with pytest.raises(InvalidInput, match="too near to 1"):
        so.audit(so.Laplace(1), 0, 1, epsilon=1, confidence=Fraction(10**400 - 1, 10**400))

    def leaves(rows: Any) -> Any:
        raise SystemExit(len(rows))

    assert not so.audit.replay(leaves, [1, 2], [1], epsilon=1).passed
    undeclared = so.audit.replay(lambda rows: so.Laplace(1).release(sum(rows)), [1000, 1], [1])
    assert undeclared.verdict is Verdict.UNDECIDED
    assert "1000" in undeclared.summary

    class Carrying(str):
        n: int

    def carries(rows: Any) -> Any:
        told = Carrying(so.Laplace(1).release(len(rows)))
        told.n = len(rows)
        return told

    def masks(rows: Any) -> Any:
        return np.ma.array([so.Laplace(1).release(len(rows)), 0], mask=[False, len(rows) % 2 == 1])

    for leak in (carries, masks):
        assert so.audit.replay(leak, [1, 2], [1], epsilon=1).verdict is Verdict.VIOLATED
