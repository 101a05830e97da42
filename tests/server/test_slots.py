"""Slots without processes: overruns, the pause, failures at ticks, and the turn of each analyst."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from engine_plug import Plug
from server.served_folder import ask
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.server.clock import Clock, Overruns
from sordino.server.link import Ask, Reply
from sordino.server.slots import Slots
from sordino.session import Session

T = 0.2


class Bench:
    """Slots over a few rows; `before` is called before each statement."""

    def __init__(self) -> None:
        column = {"age": {"type": "int", "min": 0, "max": 110}}
        data = Dataset(
            pa.table({"age": [1, 2, 3]}),
            name="visits",
            unit="row",
            columns=column,
            budget=Budget(100),
        )
        self.plug = Plug()
        self.ticks: list[float] = []
        self.session = Session(data, engine=self.plug)
        # what is loaded once is loaded now
        self.session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        self.slots = Slots(
            self.session,
            Clock(T, time.monotonic()),
            Overruns(),
            at_tick=lambda: self.ticks.append(time.monotonic()),
        )
        self.thread = threading.Thread(target=self.slots.run)
        self.thread.start()

    def ask(self, *asked: Ask) -> list[Reply]:
        found: dict[int, Reply] = {}
        done = threading.Semaphore(0)

        def tell(place: int) -> Callable[[Reply], None]:
            def told(reply: Reply) -> None:
                found[place] = reply
                done.release()

            return told

        for place, one in enumerate(asked):
            self.slots.submit(one, tell(place))
        for _ in asked:
            assert done.acquire(timeout=20)
        return [found[place] for place in range(len(asked))]

    def slow(self, *seconds: float) -> None:
        """The next statements take so long."""
        waits = list(seconds)
        self.plug.before = lambda _: time.sleep(waits.pop(0) if waits else 0)

    def close(self) -> None:
        self.slots.close()
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.session.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def grid(reply: Reply, bench: Bench) -> int:
    place = (reply.tick - bench.slots.clock.origin) / T
    assert abs(place - round(place)) < 1e-6
    return round(place)


def test_work_of_any_length_within_a_slot_is_told_at_the_same_tick(bench: Bench) -> None:
    for seconds in (0.0, 0.2 * T, 0.4 * T):
        bench.slow(seconds)
        before, overran = len(bench.ticks), bench.slots.overruns.ever
        (reply,) = bench.ask(ask(f"took {seconds}"))
        assert reply.status == "answered"
        began = int((bench.ticks[before] - bench.slots.clock.origin) / T + 1e-6)
        time.sleep(2 * T)
        # on a machine that is busy otherwise even this may overrun
        if bench.slots.overruns.ever == overran:
            assert grid(reply, bench) == began + 2


def test_overruns_double_are_counted_and_pause_for_the_owner(bench: Bench) -> None:
    bench.slow(1.3 * T, 1.3 * T, 2.5 * T)
    replies = [bench.ask(ask(f"late {i}"))[0] for i in range(3)]
    assert [reply.status for reply in replies] == ["answered"] * 3
    for reply in replies:
        grid(reply, bench)
    until = time.monotonic() + 5
    while not bench.slots.overruns.is_paused and time.monotonic() < until:
        time.sleep(0.01)
    assert bench.slots.overruns.since_resumed >= 3
    spent = bench.session.ledger.spent
    (refused,) = bench.ask(ask("paused"))
    assert refused.status == "refused"
    assert refused.problem is not None
    assert "paused until its owner" in str(refused.problem["message"])
    assert bench.session.ledger.spent == spent
    bench.slots.resume()
    assert bench.ask(ask("paused"))[0].status == "answered"
    assert bench.slots.overruns.ever >= 3


def test_what_has_no_end_is_stopped_and_its_failure_leaves_at_a_tick(bench: Bench) -> None:
    """A statement past its deadline fails, its charge is forfeited, and the slot is one overrun."""
    running = bench.session.deadline
    assert running is not None
    assert running < 8 * T

    def until_stopped(_: Any) -> None:
        time.sleep(running)
        raise RuntimeError("a cell: 4711")

    bench.plug.before = until_stopped
    (reply,) = bench.ask(ask("endless"))
    assert reply.status == "failed"
    assert "4711" not in str(reply)
    grid(reply, bench)
    payment = bench.session.ledger.payment("endless")
    assert payment is not None
    assert payment.status == "forfeited"
    assert bench.slots.overruns.ever >= 1


def test_each_analyst_has_a_turn(bench: Bench) -> None:
    """Who asks much does not keep others waiting for all of it."""
    many = [ask(f"many {i}", analyst="ana") for i in range(6)]
    replies = bench.ask(*many, ask("one", analyst="bob"), ask("other", analyst="eve"))
    order = sorted(range(8), key=lambda place: replies[place].tick)
    assert set(order[:4]) >= {6, 7}


def test_the_order_of_entries_is_that_of_the_slots(bench: Bench) -> None:
    """First the answer of the slot before, then the next charge: nothing else, whatever each took."""
    bench.slow(0.04, 0, 0.03, 0.01, 0.05)
    bench.ask(*(ask(f"r{i}") for i in range(5)))
    lines = [line for line in bench.session.ledger.export() if '"kind":"declare"' not in line]
    kinds = ["charge" if '"kind":"charge"' in line else "answer" for line in lines]
    assert kinds == ["charge", "answer"] * 6


def test_facts_are_told_at_ticks_only(bench: Bench) -> None:
    bench.ask(*(ask(f"r{i}") for i in range(4)))
    for tick in bench.ticks:
        place = (tick - bench.slots.clock.origin) / T
        # late by what the machine is busy with, never early
        assert place - int(place + 0.01) < 0.35
    assert len(bench.ticks) >= 4


def test_closing_stores_what_is_due_and_refuses_what_waits(bench: Bench) -> None:
    found: list[Reply] = []
    for i in range(4):
        bench.slots.submit(ask(f"r{i}"), found.append)
    time.sleep(1.5 * T)
    bench.slots.close()
    bench.thread.join(20)
    assert len(found) == 4
    statuses = {reply.status for reply in found}
    assert statuses <= {"answered", "refused"}
    assert all(payment.status == "answered" for payment in bench.session.ledger.payments)
    assert bench.session.ledger.verify()
