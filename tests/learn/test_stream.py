"""Streams: one person moves what is released by at most what is paid for, and the error is that of the square root."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sordino as so
from forked import refused_in_a_child
from sordino.errors import InvalidInput
from sordino.learn.stream import coefficients
from sordino.mechanisms import observer


def released(
    stream: Any, values: list[Any], outputs: list[Any] | None = None
) -> list[tuple[Any, Any, Any]]:
    calls: list[tuple[Any, Any, Any]] = []

    def watcher(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
        calls.append((mechanism, value, draw() if outputs is None else outputs[len(calls)]))
        return calls[-1][2]

    with observer.watching(watcher):
        for value in values:
            stream.add(value)
    return calls


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"horizon": 200}, [0]),
        ({"horizon": 200}, [150]),
        ({"horizon": 200, "max_steps": 3}, [0, 1, 2]),
        ({"horizon": 200, "max_steps": 4, "bands": 10, "spacing": 10}, [0, 10, 20, 30]),
        ({"max_steps": 3}, [0, 65, 199]),
        ({}, [63]),
    ],
)
def test_a_person_moves_all_that_is_released_by_at_most_mu(
    settings: dict[str, Any], changes: list[int]
) -> None:
    """In exact fractions, over all steps and blocks."""
    values = [int(v) for v in np.random.default_rng(0).integers(0, 1000, 200)]
    other = [v + (i in changes) for i, v in enumerate(values)]
    whole = released(so.Stream(epsilon=1, delta=1e-6, **settings), values)
    less = released(
        so.Stream(epsilon=1, delta=1e-6, **settings), other, [out for _, _, out in whole]
    )
    spent = sum(
        (
            (Fraction(int(a) - int(b)) / m.scale) ** 2
            for (m, a, _), (_, b, _) in zip(whole, less, strict=True)
        ),
        Fraction(0),
    )
    mu = so.Stream(epsilon=1, delta=1e-6).mu
    assert Fraction(1, 20) * mu**2 < spent <= mu**2


def test_the_worst_person_reaches_what_is_paid_for() -> None:
    values = [0] * 300
    whole = released(so.Stream(epsilon=1, delta=1e-6, horizon=300), values)
    less = released(so.Stream(epsilon=1, delta=1e-6, horizon=300), [1, *values[1:]])
    spent = sum(
        (Fraction(int(a) - int(b)) / m.scale) ** 2
        for (m, a, _), (_, b, _) in zip(whole, less, strict=True)
    )
    assert spent > Fraction(999, 1000) * so.Stream(epsilon=1, delta=1e-6).mu ** 2


@pytest.mark.parametrize(("steps", "squared"), [(1000, 10.66), (4096, 13.79)])
def test_the_error_is_that_of_the_square_root(steps: int, squared: float) -> None:
    stream = so.Stream(epsilon=1, delta=1e-6, horizon=steps)
    assert (stream.sd_at(steps) * float(stream.mu)) ** 2 == pytest.approx(squared, rel=0.002)


def test_what_it_costs_not_to_know_the_end() -> None:
    """As docs/learning.md tells; after 1,000 steps a tree with a known end has a variance of 90 (max), ours 37."""
    endless = so.Stream(epsilon=1, delta=1e-6)
    for steps, ratio in ((1000, 1.87), (4096, 2.11)):
        known = so.Stream(epsilon=1, delta=1e-6, horizon=steps)
        assert endless.sd_at(steps) / known.sd_at(steps) == pytest.approx(ratio, abs=0.01)


def test_measured_errors_are_as_told() -> None:
    errors = []
    for _ in range(60):
        stream = so.Stream(epsilon=2, delta=1e-5, width=50)
        for _ in range(100):
            reading = stream.add(np.full(50, 3))
        errors.extend((reading.total - 300) / reading.sd)
        assert reading.sd == pytest.approx(stream.sd_at(100))
    assert abs(np.mean(errors)) < 5 / math.sqrt(3000)
    assert 0.93 < np.std(errors) < 1.07


def test_readings_add_up_and_noise_is_what_remains() -> None:
    stream = so.Stream(epsilon=10**5, delta=1e-6, horizon=500, sensitivity=1)
    readings = [stream.add(k) for k in range(100)]
    assert [round(r.increment) for r in readings] == list(range(100))
    assert readings[-1].total == pytest.approx(sum(range(100)), abs=1)
    assert readings[-1].total == pytest.approx(sum(r.increment for r in readings))
    assert str(readings[-1]).startswith("step 100: ")


def test_bands_cost_little_error_and_bound_memory() -> None:
    stream = so.Stream(epsilon=1, delta=1e-6, horizon=400, bands=32)
    for _ in range(50):
        stream.add(1)
    assert len(stream._block._past.exact) == 32
    full = so.Stream(epsilon=1, delta=1e-6, horizon=400).sd_at(400)
    assert full < stream.sd_at(400) < 1.8 * full
    assert coefficients(5) == [2**24, 2**23, 3 * 2**21, 5 * 2**20, 4587520]


def test_a_stream_is_paid_for_when_it_begins() -> None:
    from sordino.learn.payment import ledger_for
    from sordino.learn.run_plan import RunPlan

    ledger = ledger_for(RunPlan.within(epsilon=1, delta=1e-6, rate=1, steps=1), None, None)
    stream = so.Stream(epsilon=1, delta=1e-6, ledger=ledger)
    assert stream.receipt is not None
    assert ledger.spent.mu_squared == stream.mu**2
    with pytest.raises(so.errors.BudgetExceeded):
        so.Stream(epsilon=1, delta=1e-6, ledger=ledger)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({"horizon": 0}, 1), ({"horizon": 2**30}, 1), ({"max_steps": 0}, 1), ({"sensitivity": 0.5}, 1), ({"epsilon": 0}, 1),
        ({"delta": 0}, 1), ({"bands": True}, 1), ({}, 1.5), ({}, True), ({}, np.array([1])), ({"width": 2}, 1),
        ({"width": 2}, np.array([0.5, 1.0])), ({"width": 2}, [[1], [2, 3]]), ({}, 2**63), ({}, -(10**400)),
        ({"ledger": 5}, 1),
    ],
)  # fmt: skip
def test_bad_input_is_refused(settings: dict[str, Any], value: Any) -> None:
    with pytest.raises(InvalidInput):
        so.Stream(**{"epsilon": 1, "delta": 1e-6, **settings}).add(value)


@pytest.mark.parametrize(("horizon", "step"), [(None, 0), (None, -1), (None, 1.5), (365, 366)])
def test_deviations_are_those_of_steps_that_can_be(horizon: int | None, step: Any) -> None:
    with pytest.raises(InvalidInput, match="step="):
        so.Stream(epsilon=1, delta=1e-6, horizon=horizon).sd_at(step)


def test_a_stream_is_never_told_twice() -> None:
    """A copy, or a forked child, would tell of what it remembers once more, with new noise, for one charge."""
    stream = so.Stream(epsilon=1, delta=1e-6, horizon=100)
    stream.add(1)
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput, match="what it remembers must not be told"):
            make(stream)
    assert refused_in_a_child(lambda: stream.add(1))
    assert stream.add(1).step == 2


@pytest.mark.parametrize("settings", [{"horizon": 200}, {}])
def test_an_interrupted_step_is_in_it_once_or_not_at_all(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a number that is added again would count twice, for one step of a person."""

    class Stop(BaseException):
        pass

    values = list(range(100))
    whole = released(so.Stream(epsilon=1, delta=1e-6, **settings), values)
    stream, calls = so.Stream(epsilon=1, delta=1e-6, **settings), list[Any]()

    def stopping(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
        raise Stop

    for place, value in enumerate(values):
        if place in (3, 64, 65):
            with observer.watching(stopping), pytest.raises(Stop):
                stream.add(value)
            assert stream.step == place
        calls += released(stream, [value], [whole[place][2]])
    assert [value for _, value, _ in calls] == [value for _, value, _ in whole]
    assert stream.step == 100


def test_steps_are_added_one_at_a_time() -> None:
    stream = so.Stream(epsilon=1, delta=1e-6, horizon=100)
    order, readings = list[int](), list[Any]()
    second = threading.Thread(target=lambda: readings.append(stream.add(2)))

    def watcher(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
        order.append(int(value))
        second.start()
        second.join(0.2)
        assert second.is_alive()
        return draw()

    with observer.watching(watcher):
        readings.append(stream.add(1))
    second.join()
    assert order == [2**24]
    assert [one.step for one in readings] == [1, 2]


def test_a_stream_ends_at_its_horizon() -> None:
    stream = so.Stream(epsilon=1, delta=1e-6, horizon=2)
    stream.add(1)
    stream.add(1)
    with pytest.raises(InvalidInput, match="horizon"):
        stream.add(1)
