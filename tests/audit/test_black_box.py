"""The black box finds what is broken, certifies no more than is true, and says so clearly when it cannot tell.

Mechanisms draw from seeded generators; what could still differ from run to run fails with a chance below 1e-9.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
import os
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.audit.reporting.report import Report, Verdict
from sordino.audit.sampled.black_box import black_box
from sordino.errors import InvalidInput

SURE = 1 - 1e-9
Batch = Callable[..., Any]


def seeded(make: Callable[[np.random.Generator], Batch]) -> Batch:
    return make(np.random.default_rng(6))


def lattice_laplace(epsilon: float, seed: int = 6) -> Batch:
    """Two-sided geometric noise: exactly epsilon-private on neighbouring whole numbers, and on no smaller epsilon."""
    rng = np.random.default_rng(seed)

    def mechanism(data: Any, *, size: int) -> Any:
        draws = rng.geometric(-math.expm1(-epsilon), (2, size))
        return data + draws[0] - draws[1]

    return mechanism


def audit(
    mechanism: Any,
    d1: Any = 0,
    d2: Any = 1,
    *,
    epsilon: Any = 1,
    samples: int = 40_000,
    **more: Any,
) -> Report:
    return black_box(
        mechanism, d1, d2, epsilon=epsilon, samples=samples, workers=more.pop("workers", 1), **more
    )


def test_a_right_mechanism() -> None:
    report = audit(lattice_laplace(1.0), samples=200_000, confidence=SURE)
    assert report.passed
    assert 0.85 < report.epsilon_lower <= 1
    assert "output" in report.witness.lower()
    assert report.pair == ("0", "1")
    assert report.relation
    assert {name for name, _ in report.facts} >= {
        "training runs",
        "final runs",
        "seconds",
        "workers",
    }
    assert [figure.title for figure in report.figures] == [
        "Outputs on the two inputs",
        "Privacy profile",
    ]
    assert "not a proof" in report.summary
    assert report.confidence == SURE


def test_five_per_cent_too_much_is_found() -> None:
    report = audit(lattice_laplace(1.05), samples=600_000, workers=2)
    assert report.verdict is Verdict.VIOLATED
    assert 1 < report.epsilon_lower <= 1.05
    assert "1.0" in report.summary


@pytest.mark.parametrize(
    "mechanism", [so.Laplace(1), so.RandomizedResponse(Fraction(1, 2)), so.Laplace(1, step=0.5)]
)
def test_a_sordino_mechanism_itself(mechanism: Any) -> None:
    report = audit(mechanism, confidence=SURE)
    assert report.passed
    assert audit(mechanism, [0, 0], [1, 1], epsilon=2, confidence=SURE, neighbors="answers").passed
    assert report.name == repr(mechanism)


def test_names_as_answers() -> None:
    report = audit(so.RandomizedResponse(0.9, ["yes", "no"]), "yes", "no", confidence=SURE)
    assert report.verdict is Verdict.VIOLATED
    assert report.witness in ("The output is yes", "The output is no")


def shared_noise(rng: np.random.Generator) -> Batch:
    return lambda d, *, size: rng.normal(0, 50, (size, 1)) + np.array([0, 10 + d])


def cancelling_noise(rng: np.random.Generator) -> Batch:
    def mechanism(d: int, *, size: int) -> Any:
        noise = rng.normal(0, 50, size)
        return np.stack([noise, d - noise], axis=1)

    return mechanism


def flags(rng: np.random.Generator) -> Batch:
    def mechanism(d: int, *, size: int) -> Any:
        hidden = (rng.random((size, 3)) < 0.1) ^ [False, True, bool(d)]
        return np.where(hidden, -1000.0, rng.normal(size=(size, 3)))

    return mechanism


def interaction(rng: np.random.Generator) -> Batch:
    """Each coordinate alone has the same law on both inputs; only the sign of their product differs."""

    def mechanism(d: int, *, size: int) -> Any:
        x = rng.normal(size=(size, 2))
        return np.where((x[:, :1] * x[:, 1:] > 0) == bool(d), x, x * [-1, 1])

    return mechanism


BROKEN: dict[str, tuple[Batch, str]] = {
    "parity": (seeded(lambda g: lambda d: 2 * int(g.integers(500)) + d), "odd number"),
    "none": (
        seeded(lambda g: lambda d: None if d and g.random() < 0.1 else float(g.integers(9))),
        "None",
    ),
    "text": (
        seeded(lambda g: lambda d: "high" if g.random() < 0.2 + 0.6 * d else "low"),
        "The output is",
    ),
    "nan": (
        seeded(lambda g: lambda d: math.nan if d and g.random() < 0.1 else float(g.integers(9))),
        "NaN",
    ),
    "length": (seeded(lambda g: lambda d: [1] * (int(g.integers(1, 4)) + 2 * d)), ""),
    "type": (seeded(lambda g: lambda d: 1.0 if d and g.random() < 0.5 else 1), "type"),
    "keys": (
        seeded(lambda g: lambda d: {"a": 1, **({"b": 1} if d and g.random() < 0.3 else {})}),
        "",
    ),
    "raises": (seeded(lambda g: lambda d: 1 / (g.random() > 0.1 * d)), ""),
    "difference": (seeded(shared_noise), "distance of"),
    "sum": (seeded(cancelling_noise), "um of the numbers"),
    "wide ints": (
        seeded(lambda g: lambda d, *, size: (g.integers(0, 2**40, size) << 20) + 2**60 + d),
        "",
    ),
    "fractions": (seeded(lambda g: lambda d: Fraction(int(g.integers(900)), 2 + d)), ""),
    "pattern": (seeded(flags), ""),
    "uniform shift": (seeded(lambda g: lambda d, *, size: d + g.uniform(0, 4, size)), "output"),
    "interaction": (seeded(interaction), "learned"),
    "float laplace": (seeded(lambda g: lambda d, *, size: d + g.laplace(0, 1, size)), "digit"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_tells_inputs_apart(name: str) -> None:
    mechanism, words = BROKEN[name]
    report = audit(mechanism, epsilon=1, samples=30_000)
    assert report.verdict is Verdict.VIOLATED, report.summary
    assert words in report.witness


def test_independent_coordinates_add_up() -> None:
    rng = np.random.default_rng(1)
    report = audit(
        lambda d, *, size: rng.random((size, 20)) < 0.5 + 0.1 * d, epsilon=1, samples=60_000
    )
    assert report.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("truth", ["randomized response", "laplace"])
def test_false_alarms_are_rarer_than_allowed(truth: str) -> None:
    """60 audits of a tight mechanism at confidence 0.8: more than 36 alarms have a chance below 1e-11 under 0.2."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mechanism: Batch = lattice_laplace(1.0, seed)
        if truth == "randomized response":
            share = math.e / (1 + math.e)
            mechanism = lambda d, *, size, g=rng, p=share: (g.random(size) < p) ^ bool(d)  # noqa: E731
        report = audit(mechanism, samples=600, confidence=0.8)
        assert report.verdict is not Verdict.UNDECIDED
        alarms += report.verdict is Verdict.VIOLATED
    assert alarms <= 36


def test_the_search_cannot_be_fooled_by_training() -> None:
    """Nothing tells these inputs apart but chance, and there is much of it: a thousand rare outputs."""
    rngs = [np.random.default_rng(i) for i in range(2)]
    for workers in (1, 2):
        report = audit(
            lambda d, *, size: rngs[d].integers(1000, size=size),
            epsilon=0,
            workers=workers,
            confidence=SURE,
        )
        assert report.epsilon_lower == 0
        assert report.passed


def test_delta() -> None:
    rng = np.random.default_rng(3)

    def leaks(d: int, *, size: int) -> Any:
        return np.where(rng.random(size) < 0.05, 100 + d, rng.integers(9, size=size))

    assert audit(leaks, epsilon=0.5, samples=100_000).verdict is Verdict.VIOLATED
    assert audit(leaks, epsilon=0.5, delta=0.06, samples=100_000, confidence=SURE).passed
    report = audit(leaks, epsilon=0.5, delta=0.04, samples=100_000)
    assert report.verdict is Verdict.VIOLATED
    assert 0.04 < report.delta_lower <= 0.05
    assert audit(leaks, epsilon=0, delta=1, samples=1000).passed


@pytest.mark.parametrize("epsilon", [0, 5, 1e6, 1e300, Fraction(1, 3)])
def test_claims_of_any_size(epsilon: Any) -> None:
    report = audit(lattice_laplace(1.0), epsilon=epsilon, samples=4000, confidence=SURE)
    assert report.verdict is (Verdict.VIOLATED if epsilon < 0.5 else Verdict.HOLDS)


def test_the_search_for_neighbours() -> None:
    rng = np.random.default_rng(5)

    def only_the_last(data: Any, *, size: int) -> Any:
        return data[-1] + rng.geometric(0.9, size) - rng.geometric(0.9, size)

    report = black_box(
        only_the_last, epsilon=1, samples=60_000, neighbors="answers", length=4, workers=1
    )
    assert report.verdict is Verdict.VIOLATED
    tried = {grid.title: grid for grid in report.grids}["Inputs tried"]
    assert len(tried.rows) >= 8
    assert report.pair is not None


class Ended(BaseException):
    """Not an Exception."""


UNDECIDED: dict[str, tuple[Any, str]] = {
    "raises": (lambda d: 1 / 0, "ZeroDivisionError: division by zero"),
    "constant": (lambda d: 7, "same output"),
    "wrong size": (lambda d, *, size: np.zeros(size + 1), "returned"),
    "no array": (lambda d, *, size: "text", "not an array"),
    "coroutine": (lambda d: asyncio.sleep(0), "coroutine"),
    "generator": (lambda d: (x for x in [d]), "generator"),
    "end": (lambda d: (_ for _ in ()).throw(Ended("over")), "Ended"),
    "opaque": (lambda d: (object(), int(np.random.default_rng().integers(5))), "not looked into"),
    "exit": (lambda d: exec("raise SystemExit"), "SystemExit"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", UNDECIDED)
def test_what_cannot_be_audited(name: str, workers: int) -> None:
    mechanism, words = UNDECIDED[name]
    report = audit(mechanism, samples=2000, workers=workers)
    assert report.verdict is Verdict.UNDECIDED
    assert not report.passed
    assert words in report.summary


def test_no_randomness_but_a_difference() -> None:
    assert audit(lambda d: d, epsilon=1).verdict is Verdict.VIOLATED
    report = audit(lambda d: d, epsilon=30)
    assert report.verdict is Verdict.UNDECIDED
    assert "no randomness" in report.summary


def test_one_input_raises() -> None:
    report = audit(lambda d: 1 / d, samples=2000)
    assert report.verdict is Verdict.VIOLATED
    assert "type" in report.witness.lower() or "raises" in report.witness


@pytest.mark.parametrize(("d1", "d2"), [(0, 0), (0, 5), ([1, 2], [1, 2]), ([1, 2, 3], [4, 5, 6])])
def test_inputs_that_are_no_neighbours(d1: Any, d2: Any) -> None:
    report = audit(lambda d: 1, d1, d2)
    assert report.verdict is Verdict.UNDECIDED
    assert "cannot be compared" in report.summary


def test_a_worker_that_dies_and_a_mechanism_that_hangs() -> None:
    report = audit(lambda d: os._exit(1), workers=2)
    assert report.verdict is Verdict.UNDECIDED
    assert "exit code 1" in report.summary
    for workers in (1, 2):
        report = audit(lambda d: time.sleep(3600), workers=workers, seconds=0.3)
        assert report.verdict is Verdict.UNDECIDED
        assert "time" in report.summary


def test_a_time_limit_gives_a_report() -> None:
    def slow(d: int) -> int:
        time.sleep(0.0005)
        return d + int(np.random.default_rng().integers(3))

    report = audit(slow, samples=10**7, seconds=2, epsilon=20, workers=2)
    assert report.verdict is not Verdict.VIOLATED


def test_a_mechanism_that_works_in_this_process_only() -> None:
    parent = os.getpid()
    rng = np.random.default_rng(0)

    def local(d: int) -> int:
        if os.getpid() != parent:
            raise RuntimeError("not here")
        return d + int(rng.integers(3))

    report = audit(local, workers=2, samples=4000)
    assert dict(report.facts)["workers"] == "1"
    assert report.verdict is Verdict.VIOLATED


def test_inputs_are_left_alone() -> None:
    rng = np.random.default_rng(0)

    def shuffles(data: list[int]) -> int:
        data.append(9)
        return len(data) + int(rng.integers(50))

    d1, d2 = [1, 2], [1, 2, 3]
    report = audit(shuffles, d1, d2, samples=4000)
    assert (d1, d2) == ([1, 2], [1, 2, 3])
    assert any("fresh copy" in note for note in report.notes)


def test_progress_is_told_and_rises() -> None:
    told = list[tuple[float, str]]()
    audit(
        lattice_laplace(1.0),
        samples=20_000,
        progress=lambda done, words: told.append((done, words)),
    )
    shares = [done for done, _ in told]
    assert shares == sorted(shares)
    assert 0 <= shares[0]
    assert shares[-1] == 1
    assert all(words for _, words in told)


def test_what_a_mechanism_prints_is_not_shown() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        audit(lambda d: print("secret"), samples=1000)
    assert shown.getvalue() == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": "1"}, {"delta": 2}, {"delta": -0.1},
        {"confidence": 2}, {"confidence": 1}, {"confidence": 0}, {"samples": 3}, {"samples": 1500.5}, {"samples": "many"},
        {"samples": True}, {"seconds": 0}, {"seconds": -1}, {"workers": 0}, {"workers": 9}, {"neighbors": "cousins"},
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        black_box(lambda d: d, 0, 1, **{"epsilon": 1, **wrong})


def test_inputs_come_in_pairs_and_mechanisms_can_be_called() -> None:
    with pytest.raises(InvalidInput):
        black_box(abs, 0, epsilon=1)
    with pytest.raises(InvalidInput):
        black_box(3, 0, 1, epsilon=1)


def test_the_profile_lies_below_what_the_claim_allows() -> None:
    report = audit(lattice_laplace(1.0), samples=200_000, confidence=SURE)
    allowed, shown, sure = report.figures[1].series
    assert all(a >= c for a, c in zip(allowed.y, sure.y, strict=True))
    assert all(s >= c for s, c in zip(shown.y, sure.y, strict=True))
    assert max(sure.y) > 0.3
    broken = audit(lattice_laplace(2.0), samples=200_000)
    allowed, _, sure = broken.figures[1].series
    assert any(c > a for a, c in zip(allowed.y, sure.y, strict=True))
