"""The engine process of one dataset: the only one that holds its data and its ledger.

It listens on a private socket, answers one question a slot, and pushes what is public. Whatever fails in the ledger
ends it: nothing is granted until it was started anew, and has read what the disk really holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import itertools
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Opener
from sordino.engines.openers import dialect_of
from sordino.engines.public_tables import completed
from sordino.errors import EngineFailed, InvalidInput, SordinoError
from sordino.ledger.receipt import Request
from sordino.ledger.state import ANYBODY, Payment
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset, Source
from sordino.server.clock import Clock, Overruns
from sordino.server.garbage import forget_old_garbage
from sordino.server.link import JSON, Ask, Reply
from sordino.server.offers import number
from sordino.server.problems import problem_of
from sordino.server.settings import ServedDataset
from sordino.server.slots import Slots, receipt_facts
from sordino.server.warm_up import warm_up
from sordino.server.wire import LARGEST_REQUEST, Closed, is_own_user, listen, pack, receive
from sordino.session import Session

__all__ = ["EngineWorker", "hollow", "main", "opener"]

_MOST_UNREAD = 10_000
_LOOK = 0.0437
"""Seconds between looks at the slot that runs: no round part of a slot, so that no tick is always beside one."""
_TURN = 0.0005
"""Seconds after which a thread that works lets another one go on:
replies leave at their tick, whatever begins there.
"""
_FAREWELL = 2.0
"""Seconds for replies whose ticks come when the process is ending; later ones are asked for again."""
_FAILED = 70
"""The exit code of a process that must be started anew."""


def hollow(dataset: Dataset) -> Dataset:
    """The declaration with sources that lead nowhere: what web may know."""
    tables = {}
    for name, table in dataset.tables.items():
        source = Source(
            table.source.kind, table=table.source.table, materialized=table.source.materialized
        )
        tables[name] = replace(table, source=source)
    return Dataset(tables=tables, budget=dataset.budget, reserved_delta=dataset.reserved_delta)


def opener(dataset: Dataset, served: ServedDataset) -> Opener | None:
    """What opens the tables of a served dataset: files as copies in memory with fixed threads; databases as always."""
    if dialect_of(dataset.tables.values()) != "duckdb":
        return None
    return partial(
        DuckDB, threads=served.threads, memory=served.memory, longest_text=served.longest_text
    )


def edition(dataset: Dataset) -> str:
    """Which writing of its files a dataset is: answers that were stored for an earlier one are not given again.

    Privacy: it is when each file was written, by whoever exports it. A hash of what is in it would tell those who ask
    the same question twice whether anything about anybody has changed.
    """
    written = []
    for table in sorted(dataset.tables.values(), key=lambda table: table.name):
        if table.source.path is not None:
            with contextlib.suppress(OSError):
                status = table.source.path.stat()
                written.append((table.name, status.st_ino, status.st_mtime_ns))
    return hashlib.sha256(repr(written).encode()).hexdigest() if written else ""


class _Peer:
    """A web process that is connected. What it is sent waits here until its moment, and delays nobody if it is not
    read.

    Privacy: web gets a reply at its tick, not when its work was done. So nothing that web does before, and not how its
    timers are rounded, depends on how long the work took.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._due: list[tuple[float, int, bytes]] = []
        self._changed, self._numbers, self._closed = threading.Condition(), itertools.count(), False
        threading.Thread(target=self._write, name="peer", daemon=True).start()

    def send(self, message: Mapping[str, Any], body: bytes = b"", at: float = 0.0) -> None:
        """Send a message at a moment of the monotonic clock, or now; one who has not read thousands is given up."""
        packed = pack(message, body)
        with self._changed:
            heapq.heappush(self._due, (at, next(self._numbers), packed))
            self._changed.notify()
            unread = len(self._due)
        if unread > _MOST_UNREAD:
            self.close()

    def close(self) -> None:
        """Let it go."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    @property
    def waits(self) -> bool:
        """Whether there is something that it was not sent yet."""
        return bool(self._due) and not self._closed

    def _next(self) -> bytes | None:
        with self._changed:
            while not self._closed:
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(left)
        return None

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (message := self._next()) is not None:
                self.connection.sendall(message)


class EngineWorker:
    """One dataset, served at a socket."""

    def __init__(
        self, dataset: Dataset, served: ServedDataset, at: Path, overruns: Overruns
    ) -> None:
        if served.answer_time is None:
            rule = "an owner declares how long an answer takes"
            hint = (
                "Write answer_time in serve.toml; `sordino serve FOLDER --calibrate` proposes one."
            )
            raise InvalidInput(f"the dataset {served.name!r}", rule, hint)
        self._served, self._at = served, at
        self._session = Session(dataset, engine=opener(dataset, served))
        self._peers: list[_Peer] = []
        self._pushes = 0
        self._ended = threading.Event()
        self._code = 0
        try:
            self._dataset = pickle.dumps(hollow(self._with_public_tables()))
            self._edition = edition(dataset)
            warm_up(dataset)
            clock = Clock.of(served.name, served.answer_time, time.monotonic())
            overruns = self._after_crash(overruns)
            self._log = self._session.ledger.public_log()
            self.slots = Slots(
                self._session,
                clock,
                overruns,
                at_tick=self._push,
                broken=partial(self.end, _FAILED),
            )
            self._listening = listen(at)
            forget_old_garbage()
        except BaseException:
            self._session.close()
            raise

    def _with_public_tables(self) -> Dataset:
        """The declaration with what public tables hold, as far as they can be read."""
        run, dataset = self._session._engine.run, self._session.dataset
        found = {t.name: completed(t, run) for t in dataset.tables.values() if t.public}
        self._session._public.update(
            {n: t for n, t in found.items() if not (t.contents and t.contents.failed)}
        )
        return dataset.with_tables({**dataset.tables, **found}) if found else dataset

    def _after_crash(self, overruns: Overruns) -> Overruns:
        """A process that ended amid a question may have done so because of the data: that is an overrun."""
        open_ = [
            p.receipt.number for p in self._session.ledger.recent(4) if p.status == "unanswered"
        ]
        newest = max(open_, default=0)
        return overruns.one_more(newest) if newest > overruns.noted else overruns

    def run(self) -> int:
        """Serve until told to end; the exit code."""
        threads = [
            threading.Thread(target=self.slots.run, name="slots", daemon=True),
            threading.Thread(target=self._accept, name="accept", daemon=True),
            threading.Thread(target=self._watch, name="watch", daemon=True),
        ]
        for thread in threads:
            thread.start()
        self._ended.wait()
        self.slots.close()
        threads[0].join(4 * self.slots.clock.answer_time + 2)
        until = time.monotonic() + _FAREWELL
        while any(peer.waits for peer in list(self._peers)) and time.monotonic() < until:
            time.sleep(0.01)
        self._listening.close()
        with contextlib.suppress(OSError):
            self._at.unlink(missing_ok=True)
        self._session.close()
        return self._code

    def end(self, code: int = 0) -> None:
        """Let `run` come to its end."""
        self._code = code
        self._ended.set()

    def _watch(self) -> None:
        """A statement that cannot be stopped ends the process: its charge stays, and its owner is asked."""
        parent = os.getppid()
        while not self._ended.wait(_LOOK):
            if os.getppid() != parent:  # nobody looks after it any more
                self.end()
            if self.slots.late_by > 0.25 * self.slots.clock.answer_time:
                os._exit(_FAILED)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            if not is_own_user(connection):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(_Peer(connection),), daemon=True).start()

    def _serve(self, peer: _Peer) -> None:
        peer.send({"kind": "dataset"}, self._dataset)
        peer.send(*self._facts())
        self._peers.append(peer)
        self.slots.nudge()
        try:
            while True:
                message, _ = receive(peer.connection, LARGEST_REQUEST)
                self._handle(peer, message)
        except Closed:
            pass
        finally:
            self._peers.remove(peer)
            peer.close()

    def _handle(self, peer: _Peer, message: Mapping[str, Any]) -> None:
        number_ = message.get("id")
        if type(number_) is not int:
            raise Closed

        def tell(reply: Reply, more: JSON = None) -> None:
            told = {
                "kind": "reply",
                "id": number_,
                "status": reply.status,
                "receipt": reply.receipt,
                "more": more,
            }
            peer.send(
                {**told, "problem": reply.problem, "tick": reply.tick}, reply.body, reply.tick
            )

        handlers: dict[str, Callable[[Mapping[str, Any]], tuple[Reply, JSON]]] = {
            "answer": self._answer, "payments": self._payments, "allot": self._allot, "resume": self._resume,
            "proof": self._proof, "checkpoint": self._checkpoint,
        }  # fmt: skip
        kind, tick = message.get("kind"), self.slots.tick_for_others()
        try:
            if kind == "ask":
                self.slots.submit(_ask(message), tell)
                return
            if kind not in handlers:
                raise Closed
            reply, more = handlers[kind](message)
        except SordinoError as error:
            reply, more = Reply("refused", problem=problem_of(error)), None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Closed from None
        tell(replace(reply, tick=max(tick, reply.tick)), more)

    def _answer(self, message: Mapping[str, Any]) -> tuple[Reply, JSON]:
        analyst, request_id = _name(message["analyst"]), str(message["request_id"])
        payment = self._session.ledger.payment(request_id, analyst)
        # in this order: one that is stored has a tick by now
        tick = self.slots.tick_of(analyst, request_id)
        if payment is None:
            hint = "Check the id; each analyst has ids of their own."
            raise InvalidInput(f"request {request_id!r}", "nothing was asked under this id", hint)
        if tick == float("inf") or payment.status == "unanswered":
            rule = "its query is running, or ended before its answer was stored"
            raise InvalidInput(
                f"request {request_id!r}", rule, "Wait; if nothing comes, its charge is forfeited."
            )
        receipt = receipt_facts(payment.receipt)
        answer = self._session.ledger.answer_to(payment)
        if answer is None:
            return Reply("failed", b"", receipt, problem_of(EngineFailed()), tick), None
        return Reply("answered", answer, receipt, None, tick), None

    def _payments(self, message: Mapping[str, Any]) -> tuple[Reply, JSON]:
        analyst, after, limit = (
            _name(message["analyst"]),
            int(message["after"]),
            int(message["limit"]),
        )
        ledger = self._session.ledger
        with ledger._journal.current() as state, ledger._journal.reading():
            newest = []
            for payment in state.newest():
                if payment.receipt.number <= after:
                    break
                if analyst in (None, payment.receipt.analyst):
                    newest.append(payment)
        return Reply("answered"), [self._told(payment) for payment in newest[::-1][: max(limit, 0)]]

    def _told(self, payment: Payment) -> dict[str, JSON]:
        """A payment as it may be told: one whose tick has not come is still on its way."""
        receipt = payment.receipt
        out = self.slots.is_out(receipt.analyst, receipt.request_id)
        told = {**receipt_facts(receipt), "status": payment.status if out else "unanswered"}
        return {**told, "digest": payment.answer if out else "", "size": payment.size if out else 0}

    def _proof(self, message: Mapping[str, Any]) -> tuple[Reply, JSON]:
        """A receipt, of the log as it was at the last tick: how long it is now would tell when an answer was stored."""
        analyst, request_id, since = (
            _name(message["analyst"]),
            str(message["request_id"]),
            _size(message["since"]),
        )
        payment = self._session.ledger.payment(request_id, analyst)
        if payment is None:
            hint = "Check the id; each analyst has ids of their own."
            raise InvalidInput(f"request {request_id!r}", "nothing was asked under this id", hint)
        if not self.slots.is_out(analyst, request_id) or payment.status == "unanswered":
            raise InvalidInput(
                f"request {request_id!r}", "it has no answer yet", "Ask for its receipt afterwards."
            )
        if payment.settled > self._log.size:
            self.slots.nudge()  # the next tick takes it in
            return Reply("answered"), "wait"
        answer = self._session.ledger.answer_to(payment)
        return Reply("answered", self._log.proof(payment, answer, since).to_json().encode()), None

    def _checkpoint(self, message: Mapping[str, Any]) -> tuple[Reply, JSON]:
        """The log as it was at the last tick."""
        since = _size(message["since"])
        signed, path = self._log.signed(since)
        more: JSON = {
            "key": str(self._log.key),
            "checkpoint": str(signed),
            "path": [one.hex() for one in path],
        }
        return Reply("answered"), more

    def _allot(self, message: Mapping[str, Any]) -> tuple[Reply, JSON]:
        epsilon, delta = message["epsilon"], message["delta"]
        budget = None
        if epsilon is not None:
            budget = Budget(
                number("epsilon", epsilon), 0 if delta is None else number("delta", delta)
            )
        self._session.ledger.allot(str(message["analyst"]), budget)
        self.slots.nudge()
        return Reply("answered"), None

    def _resume(self, _: Mapping[str, Any]) -> tuple[Reply, JSON]:
        self.slots.resume()
        return Reply("answered"), None

    def _push(self) -> None:
        """Tell all peers what is public now; called at ticks only."""
        self._log = self._session.ledger.public_log()
        if self._peers:
            message, body = self._facts()
            for peer in list(self._peers):
                peer.send(message, body)

    def _facts(self) -> tuple[dict[str, Any], bytes]:
        ledger = self._session.ledger
        with ledger._journal.current() as state:
            meters: dict[str | None, Any] = {None: ledger.terms.allowance.meter(state.spent)}
            if state.allotments:
                names = {
                    *state.allotments,
                    *(name for name in state.tallies if name is not None),
                } - {ANYBODY}
                for name in names:
                    with contextlib.suppress(InvalidInput):
                        meters[name] = state.meter(name)
                if ANYBODY in state.allotments:
                    meters[ANYBODY] = state.meter("\x1fnobody")
        self._pushes += 1
        facts = {
            "kind": "facts", "dialect": self._session._engine.dialect, "answer_time": self._served.answer_time,
            "state": "paused" if self.slots.overruns.is_paused else "open", "dry_run": self._served.dry_run,
            "sequence": self._pushes, "queue": self.slots.waiting, "edition": self._edition,
        }  # fmt: skip
        return facts, pickle.dumps(meters)


def _ask(message: Mapping[str, Any]) -> Ask:
    kind, offered = message["offer_kind"], message["offer"]
    if kind not in ("sql", "suggest") or not isinstance(offered, dict):
        raise TypeError
    ask = Ask(
        _name(message["analyst"]),
        kind,
        str(message["question"]),
        offered,
        str(message["request_id"]),
    )
    # refuses names that a ledger does not take
    Request(ask.request_id, ask.question, "", ask.analyst)
    return ask


def _size(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError
    return value


def _name(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value


def main(arguments: list[str] | None = None) -> int:
    """`python -m sordino.server.engine_worker FOLDER NAME SOCKET STATE`: started by the supervisor."""
    from sordino.server.made_up_rows import made_up
    from sordino.server.settings import served

    folder, name, at, state = sys.argv[1:] if arguments is None else arguments
    one = next(each for each in served(Path(folder)) if each.name == name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor says when to end
    try:
        dataset = Dataset.load(one.declaration)
        if one.dry_run:
            dataset = made_up(dataset, one.rows)
        worker = EngineWorker(dataset, one, Path(at), Overruns.at(Path(state)))
    except SordinoError as error:
        print(f"sordino: dataset {name}: {error}", file=sys.stderr)
        return _FAILED
    signal.signal(signal.SIGTERM, lambda *_: worker.end())
    sys.setswitchinterval(_TURN)
    print(f"sordino: dataset {name} is open", file=sys.stderr)
    return worker.run()


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # threads that wait for peers end with it, and DuckDB's binding does not complain about them
    os._exit(code)
