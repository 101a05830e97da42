"""Processes that race for a ledger: run as a script of its own, which forks before it has opened anything or has
threads.

Each racer waits at a gate of its own, which the master opens with the number of the round, and then puts one line on a
board that all share.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from ledger.visits import pure, spent, terms
from sordino.accounting.charge import Charge
from sordino.errors import SordinoError
from sordino.ledger import old_entries
from sordino.ledger.ledger import Ledger, Paid
from sordino.ledger.receipt import Request
from sordino.ledger.state import State
from sordino.query.dataset import Dataset

Turn = Callable[[int, int], Any]
"""What a racer does: its number and the round, to what is put on the board."""


class Racers:
    """Forked processes, each of which prepares once and then takes a turn whenever the gate opens."""

    def __init__(self, count: int, prepare: Callable[[], Turn]) -> None:
        board, self._board = os.pipe()
        self._lines = os.fdopen(board)
        self._gates: list[int] = []
        self._pids = [self._fork(number, prepare) for number in range(count)]
        os.close(self._board)
        self._heard()  # all are ready

    def _fork(self, number: int, prepare: Callable[[], Turn]) -> int:
        gate, opener = os.pipe()
        self._gates.append(opener)
        pid = os.fork()
        if pid == 0:
            for other in self._gates:  # a gate ends when its last opener is closed
                os.close(other)
            self._race(number, gate, prepare)
        os.close(gate)
        return pid

    def _race(self, number: int, gate: int, prepare: Callable[[], Turn]) -> NoReturn:
        try:
            turn = prepare()
            self._put(number, "ready")
            for lap in iter(lambda: os.read(gate, 2), b""):
                self._put(number, turn(number, int.from_bytes(lap, "big")))
        except BaseException:
            traceback.print_exc()
            self._put(number, "died")
            os._exit(1)
        os._exit(0)

    def _put(self, number: int, result: Any) -> None:
        # short: it is written whole
        os.write(self._board, json.dumps({"racer": number, "result": result}).encode() + b"\n")

    def _heard(self) -> list[Any]:
        lines = [json.loads(self._lines.readline()) for _ in self._gates]
        results = [line["result"] for line in sorted(lines, key=lambda line: int(line["racer"]))]
        assert "died" not in results
        return results

    def round(self, lap: int) -> list[Any]:
        """Let all take a turn at once; what each put on the board, by number."""
        for gate in self._gates:
            os.write(gate, lap.to_bytes(2, "big"))
        return self._heard()

    def close(self) -> None:
        """Send them home."""
        for gate in self._gates:
            os.close(gate)
        for pid in self._pids:
            os.waitpid(pid, 0)


@contextmanager
def racing(count: int, prepare: Callable[[], Turn]) -> Iterator[Racers]:
    """Racers that are sent home in the end."""
    racers = Racers(count, prepare)
    try:
        yield racers
    finally:
        racers.close()


def tried(attempt: Callable[[], Any]) -> str:
    """What became of an attempt: granted, the answer that it got, or the name of what refused it."""
    try:
        answer = attempt()
    except SordinoError as error:
        return type(error).__name__
    except Exception as error:  # a raw error is a finding
        return f"raw {type(error).__name__}: {error}"
    return "granted" if answer is None else f"answer {answer.decode()}"


def last_epsilon(dataset: Dataset, place: str | None, racers: int, rounds: int) -> dict[str, Any]:
    """Each round has room for one: how many got it."""
    Ledger.open(dataset, place).close()

    def prepare() -> Turn:
        ledger = Ledger.open(dataset, place, as_declared=False)

        def turn(number: int, lap: int) -> str:
            def attempt() -> None:
                paid = ledger.charge(pure(1), Request(f"{lap}-{number}", "q"))
                ledger.store(paid.receipt, b"an answer while the others still try")

            return tried(attempt)

        return turn

    found: list[dict[str, int]] = []
    with racing(racers, prepare) as crew, Ledger.open(dataset, place, as_declared=False) as owner:
        for lap in range(rounds):
            owner.declare(terms(dataset, lap + 1))
            found.append(Counter(crew.round(lap)))
        return {"rounds": found, "spent": str(spent(owner)), "findings": owner.verify().findings}


def mixed(dataset: Dataset, place: str | None, racers: int, rounds: int) -> dict[str, Any]:
    """Everybody tries a size of their own: what was granted,
    and what was refused though it would fit even in the end.
    """
    Ledger.open(dataset, place).close()
    sizes = random.Random(5)
    plan = [[Fraction(sizes.randrange(1, 60), 100) for _ in range(racers)] for _ in range(rounds)]

    def prepare() -> Turn:
        ledger = Ledger.open(dataset, place, as_declared=False)
        return lambda number, lap: tried(
            lambda: ledger.charge(pure(plan[lap][number]), Request(f"{lap}-{number}", "q")).answer
        )

    over, wronged, granted, odd = 0, 0, 0, Counter[str]()
    with racing(racers, prepare) as crew, Ledger.open(dataset, place, as_declared=False) as owner:
        for lap in range(rounds):
            owner.declare(terms(dataset, spent(owner) + 1))
            results = crew.round(lap)
            paid = sum(
                (
                    size
                    for size, result in zip(plan[lap], results, strict=True)
                    if result == "granted"
                ),
                Fraction(0),
            )
            over += spent(owner) > owner.terms.allowance.budget.epsilon or paid > 1
            refused = [
                size
                for size, result in zip(plan[lap], results, strict=True)
                if result == "BudgetExceeded"
            ]
            wronged += sum(owner.meter().allows(pure(size)) for size in refused)
            granted += results.count("granted")
            odd.update(result for result in results if result not in ("granted", "BudgetExceeded"))
        return {"over": over, "wronged": wronged, "granted": granted, "odd": odd, "charges": len(owner.payments),
                "findings": owner.verify().findings}  # fmt: skip


def same_request(dataset: Dataset, place: str | None, racers: int, rounds: int) -> dict[str, Any]:
    """Everybody asks the same under the same id, at once and once more when all is over."""
    Ledger.open(dataset, place).close()

    def prepare() -> Turn:
        ledger = Ledger.open(dataset, place)

        def turn(number: int, lap: int) -> str:
            def attempt() -> bytes | None:
                paid = ledger.charge(pure("1/1000"), Request(f"round {lap // 2}", "q"))
                if paid.answer is None:
                    ledger.store(paid.receipt, f"drawn by {number}".encode())
                return paid.answer

            return tried(attempt)

        return turn

    at_once, later = [], []
    with racing(racers, prepare) as crew, Ledger.open(dataset, place) as owner:
        for lap in range(rounds):
            at_once.append(Counter(crew.round(2 * lap)))
            later.append(Counter(crew.round(2 * lap + 1)))
        return {
            "at once": at_once,
            "later": later,
            "charges": len(owner.payments),
            "findings": owner.verify().findings,
        }


def come_and_go(dataset: Dataset, place: str | None, racers: int, rounds: int) -> dict[str, Any]:
    """Everybody makes the ledger, or finds it made, and charges it; then opens and charges it again and again."""

    def prepare() -> Turn:
        def turn(number: int, lap: int) -> list[str]:
            seen = []
            for visit in range(4):

                def attempt(visit: int = visit) -> bytes:
                    with Ledger.open(dataset, place) as ledger:
                        ledger.charge(pure("1/10000"), Request(f"{lap}-{number}-{visit}", "q"))
                        return ledger.id[:8].encode()

                seen.append(tried(attempt))
            return seen

        return turn

    with racing(racers, prepare) as crew:
        laps = [
            Counter(result for results in crew.round(lap) for result in results)
            for lap in range(rounds)
        ]
    with Ledger.open(dataset, place, create=False) as owner:
        first = [entry for entry in owner.export() if '"kind":"declare"' in entry]
        return {"rounds": laps, "id": owner.id[:8], "first": len(first), "charges": len(owner.payments),
                "findings": owner.verify().findings}  # fmt: skip


def stopped(dataset: Dataset, place: str | None, racers: int, rounds: int) -> dict[str, Any]:
    """One is stopped while it holds the write lock: the others are refused in the end, and go on when it goes on."""
    Ledger.open(dataset, place).close()

    def holder() -> NoReturn:
        ledger = Ledger.open(dataset, place)
        ledger._prints.under = _stop_here  # type: ignore[method-assign]  # asked for in the middle of a charge
        result = tried(lambda: ledger.charge(pure("1/4"), Request("holder", "q")).answer)
        os._exit(["granted", "LedgerUnavailable"].index(result))

    def prepare() -> Turn:
        ledger = Ledger.open(dataset, place)
        return lambda number, lap: tried(
            lambda: ledger.charge(pure("1/100"), Request(f"{lap}-{number}", "q")).answer
        )

    with racing(racers, prepare) as crew:
        pid = os.fork()
        if pid == 0:
            holder()
        _, status = os.waitpid(pid, os.WUNTRACED)
        during = Counter(crew.round(0))
        os.kill(pid, signal.SIGCONT)
        _, ended = os.waitpid(pid, 0)
        after = Counter(crew.round(1))
    with Ledger.open(dataset, place) as owner:
        return {"stopped": os.WIFSTOPPED(status), "ended": os.waitstatus_to_exitcode(ended), "during": during,
                "after": after, "spent": str(spent(owner)), "findings": owner.verify().findings}  # fmt: skip


def _stop_here(key: bytes) -> dict[str, str]:
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}


def _careless(self: Ledger, charge: Charge, request: Request) -> Paid:
    """A charge as it must not be: decided first, and written then, without a look at what happened in between."""
    self.meter().spend(charge)
    with mock.patch.object(State, "meter"):  # which allows everything
        return _charge(self, charge, request)


_charge = Ledger.charge


def main() -> None:
    """Run the scene that is told on the command line."""
    old_entries.EVERY, old_entries._BY_ANALYST = 3, 0  # so that checkpoints are written, too
    told = json.loads(sys.argv[1])
    if told.get("careless"):
        Ledger.charge = _careless  # type: ignore[method-assign]
    if "patience" in told:
        for store in ("sqlite", "postgres"):
            import_module(f"sordino.ledger.{store}").PATIENCE = told["patience"]  # type: ignore[attr-defined]
    scenes = {
        scene.__name__: scene for scene in (last_epsilon, mixed, same_request, come_and_go, stopped)
    }
    dataset = Dataset.load(Path(told["declaration"]))
    print(json.dumps(scenes[told["scene"]](dataset, told["place"], told["racers"], told["rounds"])))


if __name__ == "__main__":
    main()
