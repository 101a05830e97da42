"""What must hold of a ledger whatever happened to it: all that a client asked and saw, compared with what is on the
disk.

An `Asker` is one process's way to ask: a bare ledger with drawn bytes for answers, or a whole session. It tells what
it does to whoever listens. A `Client` hears it, also from processes that die, and the oracle judges the ledger by it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from unittest import mock

import pyarrow as pa

import sordino as so
from engine_plug import Plug
from sordino.accounting.charge import Charge
from sordino.errors import BudgetExceeded, RequestRefused, SordinoError
from sordino.ledger.chain import digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt, Request

__all__ = [
    "CAP", "DATA", "Asker", "BareAsker", "Client", "Event", "Findings", "Open", "SessionAsker", "Tell", "judge", "own_state",
    "prepared", "price", "quick_folder",
]  # fmt: skip

CAP = Fraction(1)
DATA = so.Dataset(
    pa.table({"age": [31, 47, 65, 80]}),
    unit="row",
    columns={"age": {"type": "int", "min": 0, "max": 110}},
    budget=so.Budget(CAP, Fraction(1, 10**6)),
)
_PRICES = (Fraction(1, 7), Fraction(1, 20), Fraction(3, 40), Fraction(1, 9))

Event: TypeAlias = tuple[str, ...]
Tell: TypeAlias = Callable[..., None]
"""Takes the words of an event: asked ID; read ID (data were read,
bits were drawn); answer ID DIGEST; refused ID ERROR.
"""


def price(request: str) -> Fraction:
    """What a request costs: odd parts of the budget, which floats would not add up exactly."""
    return _PRICES[sum(request.encode()) % len(_PRICES)]


class Asker(Protocol):
    """One process's way to ask."""

    ledger: Ledger

    def ask(self, request: str, *, failing: bool = False) -> bytes:
        """The bytes that a client is shown; `failing` lets the engine fail after the charge."""

    def close(self) -> None:
        """Give back what is held."""


Open: TypeAlias = Callable[[str, Tell], Asker]
"""Opens the ledger at a place for asking."""


class BareAsker:
    """A ledger without data: its answers are fresh random bytes, so that a second draw could not go unseen."""

    def __init__(self, place: str, tell: Tell) -> None:
        self.ledger = Ledger.open(DATA, place)
        self.size = 24
        self._tell = tell

    def ask(self, request: str, *, failing: bool = False) -> bytes:
        """The same order of steps as in a session."""
        body = Request(request, f"question {request}")
        paid = self.ledger.stored(body)
        if paid is None:
            paid = self.ledger.charge(Charge(price(request)), body)
        if paid.answer is not None:
            return paid.answer
        self._tell("read", request)
        if failing:
            self.ledger.forfeit(paid.receipt)
            raise so.errors.EngineFailed
        return self.stored(paid.receipt, os.urandom(self.size))

    def stored(self, receipt: Receipt, drawn: bytes) -> bytes:
        """The answer, once it is stored."""
        self.ledger.store(receipt, drawn)
        return drawn

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()


class SessionAsker:
    """A whole session over a file of four rows beside the ledger."""

    def __init__(self, place: str, tell: Tell) -> None:
        source = Path(place).with_name("people.csv")
        if not source.exists():
            source.write_text("age\n31\n47\n65\n80\n")
        columns = {"age": {"type": "int", "min": 0, "max": 110}}
        people = so.Dataset(str(source), unit="row", columns=columns, budget=DATA.budget)
        self._session = so.Session(people, ledger=place, engine=Plug(self._before, threads=1))
        self.ledger = self._session.ledger
        self._tell, self._request, self._failing = tell, "", False

    def _before(self, _: object) -> None:
        self._tell("read", self._request)
        if self._failing:
            raise so.errors.EngineFailed

    def ask(self, request: str, *, failing: bool = False) -> bytes:
        """The answer in its stored form."""
        self._request, self._failing = request, failing
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {sum(request.encode()) % 50}"
        return self._session.sql(sql, epsilon=price(request), request_id=request).to_json().encode()

    def close(self) -> None:
        """Close the session."""
        self._session.close()


@dataclass
class Client:
    """What was asked, in all processes together, and what came back."""

    asked: set[str] = field(default_factory=set)
    read: Counter[str] = field(default_factory=Counter)
    answers: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def hear(self, *event: str) -> None:
        """Take in one event."""
        match event:
            case ("asked", request):
                self.asked.add(request)
            case ("read", request):
                self.read[request] += 1
                if self.read[request] > 1:
                    self.problems.append(f"{request}: drawn twice")
            case ("answer", request, answer):
                if self.answers.setdefault(request, answer) != answer:
                    self.problems.append(f"{request}: answered with other bytes than before")

    def copy(self) -> Client:
        """The same memory, to go on from."""
        return Client(set(self.asked), Counter(self.read), dict(self.answers), list(self.problems))


@dataclass(frozen=True)
class Findings:
    """What is wrong, and the counts of the ledger that was judged."""

    problems: tuple[str, ...]
    charges: int = 0
    answers: int = 0
    forfeits: int = 0
    spent: Fraction = Fraction(0)
    refused: int = 0
    """Retries that were refused, since their charge has no answer."""


def judge(open_: Open, place: str, client: Client, fresh: str, cap: Fraction = CAP) -> Findings:
    """Whether the ledger holds what the client saw and not more,
    spends within its cap, repeats itself and still works.
    """
    problems = list(client.problems)
    client.problems.clear()
    told: list[Event] = []
    asker = None
    try:
        asker = open_(place, lambda *event: told.append(event))
        entries = _entries(asker.ledger)
        charges, answers, spent = _compare(entries, client, cap, problems)
        refused = _repeat(asker, client, charges, answers, problems)
        if _entries(asker.ledger) != entries or any(event[0] == "read" for event in told):
            problems.append("asking again charged or drew again")
        _check(asker.ledger, len(charges), len(answers), problems)
        spent = _go_on(asker, client, fresh, spent, cap, problems)
        for event in told:
            client.hear(*event)
        forfeits = asker.ledger.forfeited
    except SordinoError as error:
        return Findings((*problems, f"it cannot be used: {error}"))
    finally:
        if asker is not None:
            asker.close()
    return Findings(tuple(problems), len(charges), len(answers), forfeits, spent, refused)


def _entries(ledger: Ledger) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger.export()]


def _compare(
    entries: list[dict[str, Any]], client: Client, cap: Fraction, problems: list[str]
) -> tuple[dict[str, int], dict[int, str], Fraction]:
    """The charges by request and the answers by charge,
    read from the exported lines without the ledger's own folding.
    """
    charges: dict[str, int] = {}
    answers: dict[int, str] = {}
    spent = Fraction(0)
    for entry in entries:
        facts = entry["facts"]
        if entry["kind"] == "charge":
            if facts["request"] in charges:
                problems.append(f"{facts['request']}: charged twice")
            charges[facts["request"]] = entry["sequence"]
            spent += Fraction(facts["charge"]["pure"])
        elif entry["kind"] == "answer":
            if facts["charge"] in answers:
                problems.append(f"entry {facts['charge']}: answered twice")
            answers[facts["charge"]] = facts["answer"]
    if spent > cap:
        problems.append(f"spent {spent} of {cap}")
    problems += [
        f"{request}: charged but never asked" for request in charges if request not in client.asked
    ]
    problems += [
        f"{request}: data were read without a debit"
        for request in client.read
        if request not in charges
    ]
    for request, seen in client.answers.items():
        if request not in charges:
            problems.append(f"{request}: the client has an answer without a debit")
        elif answers.get(charges[request]) != seen:
            problems.append(f"{request}: the client has an answer that is not stored")
    return charges, answers, spent


def _repeat(
    asker: Asker,
    client: Client,
    charges: dict[str, int],
    answers: dict[int, str],
    problems: list[str],
) -> int:
    """Ask again all that was charged: what was answered comes back as it was, all else is refused."""
    refused = 0
    for request, number in charges.items():
        try:
            again = digest(asker.ask(request))
        except RequestRefused:
            refused += 1
            if number in answers:
                problems.append(f"{request}: answered before, and refused now")
            continue
        if again != answers.get(number):
            problems.append(f"{request}: asked again, it has other bytes")
        client.hear("answer", request, again)
    return refused


def _check(ledger: Ledger, charges: int, answers: int, problems: list[str]) -> None:
    verdict = ledger.verify()
    problems += [f"verify: {finding}" for finding in verdict.findings]
    counted = verdict.charges, verdict.answers, verdict.forfeited, ledger.forfeited
    if counted != (charges, answers, charges - answers, charges - answers):
        problems.append(
            f"the ledger counts {counted}, and there are {charges} charges with {answers} answers"
        )


def _go_on(
    asker: Asker, client: Client, fresh: str, spent: Fraction, cap: Fraction, problems: list[str]
) -> Fraction:
    """A request that nobody asked before is answered, if and only if it fits."""
    client.hear("asked", fresh)
    fits = spent + price(fresh) <= cap
    try:
        answer = asker.ask(fresh)
    except BudgetExceeded:
        if fits:
            problems.append(f"{fresh}: refused, though {cap - spent} is left")
        return spent
    client.hear("answer", fresh, digest(answer))
    if not fits:
        problems.append(f"{fresh}: granted, though {cap - spent} is left")
    if digest(asker.ask(fresh)) != digest(answer):
        problems.append(f"{fresh}: asked again, it has other bytes")
    return spent + price(fresh)


@contextmanager
def own_state(folder: Path) -> Iterator[None]:
    """What this machine has seen of ledgers is kept in this folder:
    copies of one ledger must not know of each other.
    """
    with mock.patch.dict(os.environ, {"SORDINO_STATE": str(folder)}):
        yield


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one.

    A killed process loses nothing that it wrote, whatever the file system is.
    """
    base = Path("/dev/shm")
    folder = Path(
        tempfile.mkdtemp(
            prefix="sordino-", dir=base if base.is_dir() and os.access(base, os.W_OK) else None
        )
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepared(folder: Path, *requests: str) -> tuple[bytes, Client]:
    """The file of a ledger in which these were asked, and what their client knows;
    "!" before a request lets it fail.
    """
    client = Client()
    place = folder / "prepared.ledger"
    with own_state(folder / "prepared-state"):
        asker = BareAsker(str(place), client.hear)
        for request in requests:
            name = request.lstrip("!")
            client.hear("asked", name)
            try:
                client.hear("answer", name, digest(asker.ask(name, failing=name != request)))
            except so.errors.EngineFailed:
                continue
        asker.close()
    content = place.read_bytes()
    place.unlink()
    shutil.rmtree(folder / "prepared-state")
    return content, client
