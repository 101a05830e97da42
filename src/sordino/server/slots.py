"""One question in one slot: charge, run, and in the next slot store and tell.

Each slot is one transaction of the ledger: it stores the answer of the slot before and charges for its own question.
So the order of entries follows from the order of questions alone, and one sync of the disk serves both.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sordino.errors import EngineFailed, InvalidInput, LedgerError, LedgerUnavailable, SordinoError
from sordino.ledger.ledger import Paid
from sordino.ledger.receipt import Receipt, Request
from sordino.ledger.terms import charge_facts
from sordino.query.front.sql import parse
from sordino.server.clock import DOUBLINGS, Clock, Overruns
from sordino.server.link import JSON, Ask, Reply
from sordino.server.offers import number, offer
from sordino.server.problems import problem_of
from sordino.session import Asking, Planned, Session

__all__ = ["Slots", "receipt_facts"]

_MOST_WAITING = 1000
_SUGGESTION = {"epsilon", "columns", "keys", "query_epsilon"}


@dataclass(eq=False)
class _Job:
    """A question that waits or is being answered, and those who want to hear of it."""

    ask: Ask
    tell: list[Callable[[Reply], None]]


@dataclass(frozen=True)
class _Due:
    """A charge whose answer (None: it failed) is stored in the next slot."""

    job: _Job
    receipt: Receipt
    answer: bytes | None


@dataclass
class _Line:
    """Who waits: each analyst in turn, each one's questions in the order in which they came."""

    by_analyst: dict[str | None, deque[_Job]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.by_analyst.values()))

    def add(self, job: _Job) -> None:
        self.by_analyst.setdefault(job.ask.analyst, deque()).append(job)

    def take(self) -> _Job | None:
        if not self.by_analyst:
            return None
        analyst = next(iter(self.by_analyst))
        jobs = self.by_analyst.pop(analyst)
        job = jobs.popleft()
        if jobs:
            self.by_analyst[analyst] = jobs  # at the end: others come first
        return job

    def take_all(self) -> list[_Job]:
        found = [job for jobs in self.by_analyst.values() for job in jobs]
        self.by_analyst.clear()
        return found


class Slots:
    """The questions of one dataset, one for each slot of its clock.

    `at_tick` is called at the beginning of each slot that does anything: what is public then may be told.
    `broken` is called if the ledger fails: nothing more is granted by this process.
    """

    def __init__(
        self,
        session: Session,
        clock: Clock,
        overruns: Overruns,
        *,
        at_tick: Callable[[], None] = lambda: None,
        broken: Callable[[], None] = lambda: None,
    ) -> None:
        self.session, self.clock, self.overruns = session, clock, overruns
        session.deadline = clock.answer_time * (2**DOUBLINGS - 0.5)
        self._at_tick, self._broken = at_tick, broken
        self._changed = threading.Condition()
        self._line = _Line()
        self._in_flight: dict[tuple[str | None, str], _Job] = {}
        self._due: _Due | None = None
        self._ticks: dict[tuple[str | None, str], float] = {}
        """When what became of recent questions may be told; infinite while that is not known."""
        self._closing = False
        self._nudged = False
        self._began: float | None = None

    # What other threads call.

    def submit(self, ask: Ask, tell: Callable[[Reply], None]) -> None:
        """Put a question in the line; `tell` is called once, when there is a reply to hold until its tick."""
        key = ask.analyst, ask.request_id
        with self._changed:
            job = self._in_flight.get(key)
            # the same question again, while it is on its way
            if job is not None and job.ask == ask:
                job.tell.append(tell)
                return
            refusal = self._refusal(job)
            if refusal is None:
                job = self._in_flight[key] = _Job(ask, [tell])
                self._line.add(job)
                self._changed.notify()
                return
        tell(Reply("refused", problem=problem_of(refusal), tick=self.tick_for_others()))

    def _refusal(self, job: _Job | None) -> SordinoError | None:
        if job is not None:
            rule = "another question under this id is on its way"
            return InvalidInput(
                job.ask.request_id, rule, "Use a new id for a new question. Nothing was charged."
            )
        if self.overruns.is_paused:
            rule = "answers took longer than declared several times, which could tell something about the data"
            return InvalidInput(
                "this dataset",
                rule,
                "It is paused until its owner has looked. Nothing was charged.",
            )
        if self._closing or len(self._line) >= _MOST_WAITING:
            return LedgerUnavailable(
                "of this dataset", "too many questions wait, or it is closing", "Ask again later."
            )
        return None

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        with self._changed:
            return len(self._line)

    def tick_for_others(self) -> float:
        """When something may be told that belongs to no slot: a whole slot from now at least, and at a tick."""
        return self.clock.next_start(time.monotonic() + self.clock.answer_time)

    def is_out(self, analyst: str | None, request_id: str) -> bool:
        """Whether what became of a question may be told now: its tick has passed, or it is of another time."""
        with self._changed:
            return self._ticks.get((analyst, request_id), 0.0) <= time.monotonic()

    def tick_of(self, analyst: str | None, request_id: str) -> float:
        """When what became of a question may be told; infinite if that is not known yet."""
        with self._changed:
            return self._ticks.get((analyst, request_id), 0.0)

    def nudge(self) -> None:
        """Let the next tick tell what is public, though nobody asks."""
        with self._changed:
            self._nudged = True
            self._changed.notify()

    def resume(self) -> None:
        """The owner has looked."""
        with self._changed:
            self.overruns = self.overruns.resumed()
        self.nudge()

    def close(self) -> None:
        """Answer what is due, refuse what waits, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    @property
    def late_by(self) -> float:
        """By how many seconds the running slot is past the moment at which its work should have been stopped."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - self.clock.limit(began)

    # The thread of the slots.

    def run(self) -> None:
        """Work until closed."""
        free = self.clock.origin
        while True:
            with self._changed:
                while not (self._line or self._due or self._closing or self._nudged):
                    self._changed.wait()
                if self._closing and self._due is None:
                    break
            start = self.clock.next_start(max(time.monotonic(), free))
            _sleep_until(start)
            with self._changed:
                self._nudged = False
                paused = self.overruns.is_paused or self._closing
                job = None if paused else self._line.take()
                left = self._line.take_all() if paused else []
            self._at_tick()
            self._began = start
            try:
                self._slot(start, job)
            except LedgerError as error:
                self._fail(start, job, error)
                return
            except Exception:  # a bug; its text may quote data
                self._fail(
                    start,
                    job,
                    LedgerUnavailable(
                        "of this dataset", "something failed inside", "Ask again later."
                    ),
                )
                return
            finally:
                self._began = None
            done = time.monotonic()
            free = self.clock.end(start, done)
            if self.clock.doublings(start, done):
                with self._changed:
                    self.overruns = self.overruns.one_more()
            for one in left:
                self._tell(
                    one,
                    Reply("refused", problem=problem_of(self._refusal(None) or _CLOSING)),
                    start,
                    start,
                )
        with self._changed:
            left = self._line.take_all()
        for one in left:
            self._tell(one, Reply("refused", problem=problem_of(_CLOSING)), free, free)

    def _slot(self, start: float, job: _Job | None) -> None:
        """Store what is due, and charge and run one question."""
        asking: Asking | None = None
        planned: Planned | None = None
        with contextlib.ExitStack() as stack:
            if job is not None:
                try:
                    asking = _asking(self.session, job.ask)
                    paid = asking.stored()
                    if paid is None:
                        planned = asking.plan()
                        run = stack.enter_context(self.session.snapshot(planned.statements))
                    else:
                        self._tell(job, _answered(paid), start)
                except LedgerError:
                    raise
                except SordinoError as error:
                    self._tell(job, Reply("refused", problem=problem_of(error)), start)
            if job is None or asking is None or planned is None:
                self._store(start)
                return
            charged = self._charge(start, asking.request, planned)
            if isinstance(charged, SordinoError):
                self._tell(job, Reply("refused", problem=problem_of(charged)), start)
            elif charged.answer is not None:
                self._tell(job, _answered(charged), start)
            else:
                with self._changed:
                    self._ticks[job.ask.analyst, job.ask.request_id] = float("inf")
                answer = asking.answer(planned, charged.receipt, run)
                with self._changed:
                    self._due = _Due(job, charged.receipt, answer)

    def _charge(self, start: float, request: Request, planned: Planned) -> Paid | SordinoError:
        """Charge for a question, and store what is due, together."""
        due, ledger = self._due, self.session.ledger
        if due is None:
            try:
                return ledger.charge(planned.charge, request)
            except LedgerError:
                raise
            except SordinoError as error:
                return error
        kept, charged = ledger.store_and_charge(due.receipt, due.answer, planned.charge, request)
        for outcome in (kept, charged):
            if isinstance(outcome, LedgerError):
                raise outcome
        self._out(due, start, kept)
        return charged

    def _store(self, start: float) -> None:
        """Store what is due."""
        due = self._due
        if due is None:
            return
        if due.answer is None:
            self.session.ledger.forfeit(due.receipt)
        else:
            self.session.ledger.store(due.receipt, due.answer)
        self._out(due, start, None)

    def _out(self, due: _Due, start: float, kept: SordinoError | None) -> None:
        """What is stored may be told, at the end of the slot that stored it."""
        with self._changed:
            self._due = None
        if due.answer is None or kept is not None:
            self._tell(
                due.job,
                Reply("failed", b"", receipt_facts(due.receipt), problem_of(EngineFailed())),
                start,
            )
        else:
            self._tell(due.job, Reply("answered", due.answer, receipt_facts(due.receipt)), start)

    def _tell(self, job: _Job, reply: Reply, start: float, done: float | None = None) -> None:
        tick = self.clock.end(start, time.monotonic() if done is None else done)
        key, now = (job.ask.analyst, job.ask.request_id), time.monotonic()
        with self._changed:
            self._in_flight.pop(key, None)
            self._ticks = {name: at for name, at in self._ticks.items() if at > now}
            self._ticks[key] = tick
            listeners = list(job.tell)
        for tell in listeners:
            tell(Reply(reply.status, reply.body, reply.receipt, reply.problem, tick))

    def _fail(self, start: float, job: _Job | None, error: LedgerError) -> None:
        """The ledger has failed: whether the last entries are kept is unknown, so nobody gets an answer from here."""
        with self._changed:
            self._closing, due, self._due = True, self._due, None
            left = self._line.take_all()
        if due is not None:
            self._tell(
                due.job, Reply("failed", b"", receipt_facts(due.receipt), problem_of(error)), start
            )
        for one in [each for each in (job, *left) if each is not None]:
            self._tell(one, Reply("refused", problem=problem_of(error)), start)
        self._broken()


_CLOSING = LedgerUnavailable(
    "of this dataset", "its engine process is closing", "Ask again in a moment."
)


def _asking(session: Session, ask: Ask) -> Asking:
    own = session if ask.analyst is None else session.as_analyst(ask.analyst)
    if ask.kind == "sql":
        return own.asking(parse(ask.question), request_id=ask.request_id, **offer(ask.offer))
    unknown = set(ask.offer) - _SUGGESTION
    if unknown or "epsilon" not in ask.offer:
        rule = f"a suggestion takes {', '.join(sorted(_SUGGESTION))}, and needs an epsilon"
        raise InvalidInput(", ".join(sorted(unknown)) or "no epsilon", rule, "Pass epsilon=0.1.")
    given: dict[str, Any] = {"epsilon": number("epsilon", ask.offer["epsilon"])}
    if ask.offer.get("query_epsilon") is not None:
        given["query_epsilon"] = number("query_epsilon", ask.offer["query_epsilon"])
    for name in ("columns", "keys"):
        if ask.offer.get(name) is not None:
            given[name] = _names(name, ask.offer[name])
    return own.asking_suggestion(ask.question or None, request_id=ask.request_id, **given)


def _names(what: str, value: JSON) -> list[str]:
    if (
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not all(isinstance(name, str) for name in value)
    ):
        raise InvalidInput(what, "it is a list of names", f'Pass {what}=["age"].')
    return [str(name) for name in value]


def _answered(paid: Paid) -> Reply:
    return Reply("answered", paid.answer or b"", receipt_facts(paid.receipt))


def receipt_facts(receipt: Receipt) -> Mapping[str, JSON]:
    """A receipt as plain values, without its hash in the chain,
    on which others' entries before it could be tried out.
    """
    return {
        "number": receipt.number, "charge": dict(charge_facts(receipt.charge)), "question": receipt.question,
        "request_id": receipt.request_id, "analyst": receipt.analyst, "time": receipt.time,
    }  # fmt: skip


def _sleep_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
