"""A Link over a Session in the same process, for tests of the web process:
slots and ticks as an engine process has them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import EngineFailed, InvalidInput, SordinoError
from sordino.ledger.receipt import Receipt
from sordino.ledger.terms import charge_facts
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.server.link import JSON, Ask, Facts, Reply
from sordino.server.offers import number, offer
from sordino.server.problems import problem_of
from sordino.session import Session

__all__ = ["InProcessLink"]


class InProcessLink:
    """Each analyst has a session over one ledger; request ids are put into a namespace of the analyst."""

    def __init__(
        self, name: str, session: Session, answer_time: float = 0.0, edition: str = "1"
    ) -> None:
        self.name, self.session, self.answer_time, self.edition = (
            name,
            session,
            answer_time,
            edition,
        )
        self.state: Any = "open"
        self.asked: list[Ask] = []
        self.delay = 0.0
        self._lock = threading.Lock()

    def facts(self) -> Facts:
        ledger = self.session.ledger
        meters: dict[str | None, TwoMeterFilter] = {
            None: ledger.terms.allowance.meter(ledger.spent)
        }
        for analyst in ledger.allotments:
            meters[analyst] = ledger.meter(analyst)
        tables = {
            name: replace(table, source=replace(table.source, frame=None))
            for name, table in self.session.dataset.tables.items()
        }
        dataset = (
            self.session.dataset.with_tables(tables)
            if not hasattr(self, "_dataset")
            else self._dataset
        )
        self._dataset: Dataset = dataset
        count = ledger.anchor().count
        return Facts(
            dataset,
            "duckdb",
            self.answer_time,
            self.state,
            False,
            count,
            meters,
            edition=self.edition,
        )

    async def ask(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        tick = time.monotonic() + self.answer_time
        reply = await asyncio.to_thread(self._ask, ask)
        return replace(reply, tick=tick) if reply.status != "refused" else reply

    def _ask(self, ask: Ask) -> Reply:
        time.sleep(self.delay)
        with self._lock:
            self.session.analyst = ask.analyst
            request = f"{ask.analyst}/{ask.request_id}"[:200]
            given: Any = offer(ask.offer)
            try:
                if ask.kind == "sql":
                    found: Any = self.session.sql(ask.question, request_id=request, **given)
                else:
                    found = self.session.suggest(ask.question or None, request_id=request, **given)
            except EngineFailed as error:
                return Reply("failed", problem=problem_of(error))
            except SordinoError as error:
                return Reply("refused", problem=problem_of(error))
            return Reply("answered", found.to_json().encode(), self._receipt(found.receipt))

    @staticmethod
    def _receipt(receipt: Receipt) -> dict[str, JSON]:
        return {
            "number": receipt.number, "charge": dict(charge_facts(receipt.charge)), "question": receipt.question,
            "request_id": receipt.request_id.partition("/")[2], "analyst": receipt.analyst, "time": receipt.time,
        }  # fmt: skip

    async def answer(self, analyst: str | None, request_id: str) -> Reply:
        raise NotImplementedError

    async def payments(
        self, analyst: str | None, after: int, limit: int
    ) -> Sequence[Mapping[str, JSON]]:
        found = [p for p in self.session.ledger.payments if p.receipt.number > after]
        kept = [p for p in found if analyst in (None, p.receipt.analyst)][:limit]
        return [{**self._receipt(p.receipt), "status": p.status, "answer": p.answer} for p in kept]

    async def proof(self, analyst: str | None, request_id: str, since: int | None) -> str:
        return self.session.ledger.proof(
            f"{analyst}/{request_id}"[:200], analyst, since=since
        ).to_json()

    async def checkpoint(self, since: int | None) -> Mapping[str, JSON]:
        log = self.session.ledger.public_log()
        signed, path = log.signed(since)
        return {"key": str(log.key), "checkpoint": str(signed), "path": [one.hex() for one in path]}

    async def allot(self, analyst: str, epsilon: JSON, delta: JSON) -> Reply:
        try:
            budget = None
            if epsilon is not None:
                budget = Budget(
                    Fraction(str(number("epsilon", epsilon))), Fraction(str(number("delta", delta)))
                )
            self.session.ledger.allot(analyst, budget)
        except (SordinoError, InvalidInput) as error:
            return Reply("refused", problem=problem_of(error))
        return Reply("answered")

    async def resume(self) -> None:
        self.state = "open"
