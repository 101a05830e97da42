"""What people can do with the datasets of a server: one place for all doors, HTTP, pages and agents.

A question is kept before anything else happens, asked once, and its outcome is shown at the tick that came with it,
never before. Nothing that is shown earlier depends on data: prices come from the declaration, and budgets change with
charges, which are made before data are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeVar

from sordino.accounting.budget_share import left_share
from sordino.accounting.filters import TwoMeterFilter
from sordino.answer.answer import Answer
from sordino.errors import InvalidInput, LedgerUnavailable, RequestRefused, SordinoError
from sordino.ledger.officer_report import Account, Spent, officer_report
from sordino.ledger.receipt import checked_name
from sordino.ledger.terms import charge_facts, read_charge
from sordino.plan.cost import Cost
from sordino.privacy.exact import readable
from sordino.query.dataset import Column, Table
from sordino.server.accounts.people import Principal, Role
from sordino.server.accounts.policy import Caps, NeedsApproval, Policy, over_cap
from sordino.server.accounts.secrets_of_people import new_id
from sordino.server.accounts.store import Question, Store
from sordino.server.link import ANYBODY, JSON, Ask, Facts, Link, Reply
from sordino.server.offers import number
from sordino.server.offers import offer as read_offer
from sordino.server.web.drawing import drawn
from sordino.server.web.planning import Planner, Priced
from sordino.server.web.refusals import Refused
from sordino.server.web.workers import Workers

__all__ = ["Desk", "meter_view", "price_limit", "question_view", "table_view"]

T = TypeVar("T")
_MOST_PENDING = 32
_MOST_POINTS = 50
_MOST_PLANS = 128
_LONGEST_WAIT = 60.0
_MOST_COMBINED = 2**20
"""Bytes of stored answers that are combined: about ten thousand rows."""
_SMALL, _MOST_DRAWN = 2**16, 4
"""Bytes of stored answers that are shown at once, without another process; and larger ones of one person at a time."""
_RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between tries, if the engine process ended before it said what became of a question."""


class Desk:
    """The datasets that are served, by name, and what was asked of them."""

    def __init__(self, links: Sequence[Link], store: Store, planner: Planner | None = None) -> None:
        self.links = {link.name: link for link in links}
        self.store, self.planner = store, planner or Planner()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.late: list[float] = []
        """By how many seconds the last answers left after their ticks."""
        self._planning: Counter[str] = Counter()
        self._drawer, self._drawing = (
            Workers("page", min(1, self.planner.processes)),
            Counter[str](),
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: set[str] = set()
        self._events: dict[str, asyncio.Event] = {}

    def start(self) -> None:
        """Take up what was accepted before a restart: the same request ids are asked,
        so that nothing is charged twice.
        """
        for link in self.links.values():
            if (
                begin := getattr(link, "start", None)
            ) is not None:  # a link to another process keeps a connection
                begin()
        self.planner.warm()
        for question in self.store.waiting(status="accepted"):
            if question.dataset in self.links:
                self._begin(question)

    async def close(self) -> None:
        """End all waiting; what is accepted is taken up at the next start."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for link in self.links.values():
            if (end := getattr(link, "close", None)) is not None:
                await end()
        self.planner.close()
        self._drawer.close()

    # what there is

    def link(self, who: Principal, dataset: str) -> Link:
        """A dataset that somebody has to do with; one that is not theirs looks like one that is not there."""
        link = self.links.get(dataset)
        if link is None or not who.sees(dataset):
            raise Refused(
                404,
                "not-found",
                "there is no such dataset, or it is not open to you",
                value=repr(dataset),
            )
        return link

    def datasets(self, who: Principal) -> list[JSON]:
        """The datasets that somebody has to do with."""
        return [
            self._summary(name, link) for name, link in sorted(self.links.items()) if who.sees(name)
        ]

    def describe(self, who: Principal, dataset: str) -> dict[str, JSON]:
        """What is declared about a dataset, all of it public."""
        link = self.link(who, dataset)
        tables: list[JSON] = [table_view(table) for table in link.facts().dataset.tables.values()]
        return {**self._summary(dataset, link), "tables": tables}

    def _summary(self, name: str, link: Link) -> dict[str, JSON]:
        try:
            facts = link.facts()
        except LedgerUnavailable:
            return {"name": name, "state": "starting"}
        told = (
            "Made-up rows: answers are for trying out code, and are about nobody."
            if facts.dry_run
            else ""
        )
        state = (
            "suspended"
            if facts.state == "open" and self.store.policy(name).suspended
            else facts.state
        )
        return {
            "name": name, "state": state, "dry_run": facts.dry_run, "answer_time": facts.answer_time,
            "tables": list(facts.dataset.tables), "remark": told,
        }  # fmt: skip

    # prices

    async def preview(
        self,
        who: Principal,
        dataset: str,
        kind: Literal["sql", "suggest"],
        text: str,
        offer: Mapping[str, JSON],
        shown: str,
    ) -> dict[str, JSON]:
        """What a question would cost and be like; free."""
        facts = self.link(who, dataset).facts()
        with self._one_more_plan(who):
            priced = await self.planner.priced(
                dataset, facts, _meter_of(who), kind, text, offer, shown
            )
        policy = self.store.policy(dataset)
        before = self.store.answered_before(
            dataset,
            self._same(dataset, facts, kind, priced),
            lambda one: policy.shares(one, who.name),
        )
        refusal = over_cap(
            priced.epsilon,
            self.store.spent_today(dataset, who.name),
            self._caps(who, dataset, policy),
        )
        own: dict[str, JSON] = {
            "dataset": dataset, "dry_run": facts.dry_run, "needs_approval": policy.waits(priced.epsilon),
            "beyond_cap": None if refusal is None else str(refusal), "answered_before": before is not None,
        }  # fmt: skip
        return {**own, **priced.view}

    async def curve(
        self,
        who: Principal,
        dataset: str,
        sql: str,
        offer: Mapping[str, JSON],
        epsilons: Sequence[str] | None,
    ) -> list[JSON]:
        """Error against price: at the epsilons named, or at twenty up to what is left."""
        facts = self.link(who, dataset).facts()
        if epsilons is not None and not 0 < len(epsilons) <= _MOST_POINTS:
            raise InvalidInput(
                f"{len(epsilons)} points",
                f"a curve has 1 to {_MOST_POINTS}",
                "Name fewer epsilons.",
            )
        if {"epsilon", "error"} & offer.keys():
            rule = "a curve goes through prices of its own"
            raise InvalidInput(
                "an offer with a price",
                rule,
                "Leave out epsilon and error; name epsilons beside the offer.",
            )
        whose = _meter_of(who)
        points = epsilons or _ladder(facts.meter(whose).budget.epsilon)
        with self._one_more_plan(who):
            return await self.planner.curve(dataset, facts, whose, sql, offer, points)

    async def sketch(self, who: Principal, dataset: str, sql: str) -> JSON:
        """What an answer would look like, over rows that are made up from the declaration; free, and about nobody."""
        facts = self.link(who, dataset).facts()
        with self._one_more_plan(who):
            return await self.planner.sketch(dataset, facts, sql)

    @contextlib.contextmanager
    def _one_more_plan(self, who: Principal) -> Iterator[None]:
        """One person does not keep all others from planning."""
        if self._planning[who.name] >= _MOST_PLANS:
            rule = f"at most {_MOST_PLANS} prices are worked out for one person at once"
            raise Refused(
                429,
                "too-many-requests",
                rule,
                "Wait for some of them.",
                headers={"Retry-After": "1"},
            )
        self._planning[who.name] += 1
        try:
            yield
        finally:
            self._planning[who.name] -= 1

    def budget(self, who: Principal, dataset: str) -> dict[str, JSON]:
        """What is left for somebody; for those who answer for the dataset also the whole, and everybody's part."""
        facts, policy = self.link(who, dataset).facts(), self.store.policy(dataset)
        told: dict[str, JSON] = {
            "dataset": dataset,
            "dry_run": facts.dry_run,
            **self.account(who, dataset),
        }
        if who.person.roles & {Role.analyst, Role.agent}:
            caps = self._caps(who, dataset, policy)
            told |= meter_view(facts.meter(who.name))
            told |= {"per_question": _said(caps.per_question), "per_day": _said(caps.per_day)}
            told["spent_today"] = str(self.store.spent_today(dataset, who.name))
        return told

    def account(self, who: Principal, dataset: str) -> dict[str, JSON]:
        """For those who answer for a dataset: the whole budget, and everybody's part; nothing for others."""
        meters = self.link(who, dataset).facts().meters
        if not who.person.roles & {Role.owner, Role.auditor}:
            return {}
        parts: dict[str, JSON] = {
            name: meter_view(meter) for name, meter in meters.items() if name is not None
        }
        return {"whole": meter_view(meters[None]), "by_analyst": parts}

    def _caps(self, who: Principal, dataset: str, policy: Policy) -> Caps:
        return self.store.caps(dataset, who.name) or policy.caps

    # questions

    async def ask(
        self,
        who: Principal,
        dataset: str,
        kind: Literal["sql", "suggest"],
        text: str,
        offer: Mapping[str, JSON],
        *,
        key: str | None = None,
        reason: str = "",
        fresh: bool = False,
    ) -> Question:
        """Accept a question: it is kept, and asked. The same key stands for the same question, which is asked once.

        If it was answered before, to somebody who may share it, the stored answer is given and nothing is charged,
        unless `fresh`; if the same person's same question is still on its way, that one is meant. Above the owner's
        price it waits for approval. All refusals here come before any charge.
        """
        facts = self.link(who, dataset).facts()
        if key is not None:
            checked_name(
                "Idempotency-Key",
                key,
                "Pass a text of your own such as 'march-report-1', or nothing.",
            )
            before = self.store.question_of(dataset, who.name, key)
            given = (kind, text, dict(offer))
            if (
                before is not None
                and (before.kind, before.question, before.offer) == given
                and not _uncharged(before)
            ):
                return before
        with self._one_more_plan(who):
            priced = await self.planner.priced(dataset, facts, who.name, kind, text, offer)
        same, now, id_ = self._same(dataset, facts, kind, priced), self.store.clock(), new_id()
        wanted = Question(
            id_,
            dataset,
            who.name,
            key or id_,
            kind,
            text,
            dict(offer),
            same,
            priced.epsilon,
            reason[:2000],
            "accepted",
            now,
        )
        # From here on nothing waits, so that no other request comes between check and entry.
        before = self.store.question_of(dataset, who.name, wanted.key)
        if before is not None:
            self._repeated(before, wanted)
            if not _uncharged(before):
                return before
        policy = self.store.policy(dataset)
        known = None
        if not fresh:
            known = self.store.answered_before(
                dataset, same, lambda one: policy.shares(one, who.name)
            )
        if known is not None and before is None:
            return self._given_again(wanted, known)
        if (
            not fresh
            and before is None
            and (on_its_way := self.store.open_question(dataset, who.name, same)) is not None
        ):
            return on_its_way
        wanted = self._within_rules(who, wanted, facts, policy)
        if before is not None:  # it cost nothing before, and is asked again under its key
            wanted = replace(wanted, id=before.id)
            self.store.reopen(wanted)
        kept = self.store.add_question(wanted)
        if kept.id != wanted.id:  # another process was quicker
            return self._repeated(kept, wanted)
        if kept.status == "accepted" and kept.id not in self._running:
            self._begin(kept)
        return kept

    @staticmethod
    def _repeated(before: Question, wanted: Question) -> Question:
        if (before.kind, before.same) != (wanted.kind, wanted.same):
            rule = "it stands for another question or another price"
            raise RequestRefused(
                wanted.key, rule, "Use a new key for a new question. Nothing was charged."
            )
        return before

    def _same(self, dataset: str, facts: Facts, kind: str, priced: Priced) -> str:
        parts = (self.planner.edition(dataset, facts), kind, priced.question, priced.offer)
        return _digest(*parts)

    def _given_again(self, wanted: Question, known: Question) -> Question:
        """The stored bytes, for nothing; whose they were is told to themselves only."""
        receipt = dict(known.receipt or {})
        if known.analyst != wanted.analyst:
            receipt |= {"request_id": "", "analyst": None}
        own = replace(
            wanted, status="answered", settled=wanted.created, source=known.id, body=known.body, receipt=receipt
        )  # fmt: skip
        self.outcomes[wanted.dataset, "given again"] += 1
        return self.store.add_question(own)

    def _within_rules(
        self, who: Principal, wanted: Question, facts: Facts, policy: Policy
    ) -> Question:
        """Refuse what caps forbid; what needs approval waits."""
        if policy.suspended:
            raise _suspended(wanted.dataset)
        caps = self._caps(who, wanted.dataset, policy)
        if who.is_agent and (who.name not in facts.meters or caps.per_question is None):
            rule = (
                "an agent asks within a sub-budget of its own, and within a cap for each question"
            )
            raise InvalidInput(
                f"agent {who.name!r}", rule, "Let the owner give it both: PUT .../allotments/NAME."
            )
        if self.store.pending(wanted.dataset, who.name) >= _MOST_PENDING:
            rule = f"at most {_MOST_PENDING} questions of one person wait at once"
            raise Refused(
                429,
                "too-many-requests",
                rule,
                "Wait for the answers.",
                headers={"Retry-After": "5"},
            )
        refusal = over_cap(wanted.price, self.store.spent_today(wanted.dataset, who.name), caps)
        if refusal is not None:
            raise refusal
        if policy.waits(wanted.price):
            if not wanted.reason.strip():
                raise NeedsApproval(wanted.price, policy.approval_above or Fraction(0))
            return replace(wanted, status="waiting")
        return wanted

    def _begin(self, question: Question) -> None:
        self._events.setdefault(question.id, asyncio.Event())
        self._running.add(question.id)
        task = asyncio.get_running_loop().create_task(self._settled(question))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settled(self, question: Question) -> None:
        """Ask, hold the outcome until its tick, keep it, and let those know who wait."""
        reply = await self._reply(question)
        wait = reply.tick - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        status = reply.status
        self.store.settle(
            question, status, reply.body if status == "answered" else None, reply.receipt, reply.problem
        )  # fmt: skip
        if reply.tick:
            self.late = [*self.late[-999:], time.monotonic() - reply.tick]
        self._running.discard(question.id)
        self.outcomes[question.dataset, status] += 1
        event = self._events.pop(question.id, None)
        if event is not None:
            event.set()

    async def _reply(self, question: Question) -> Reply:
        link = self.links[question.dataset]
        ask = Ask(question.analyst, question.kind, question.question, question.offer, question.key)
        for pause in (*_RETRIES, None):
            try:
                reply = await link.ask(ask)
            except Exception as error:  # a fault of ours: its text may be anything
                code = (
                    "ledger-unavailable"
                    if isinstance(error, LedgerUnavailable)
                    else "engine-failed"
                )
                rule = "the engine process did not answer"
                reply = Reply(
                    "failed", problem={"code": code, "exit": 4, "message": rule, "rule": rule}
                )
            unknown = (
                reply.problem is not None and reply.problem.get("code") == "ledger-unavailable"
            )
            if not unknown or pause is None:
                return reply
            await asyncio.sleep(pause)
        raise AssertionError

    def question(self, who: Principal, dataset: str, id_: str) -> Question:
        """A question of one's own."""
        self.link(who, dataset)
        found = self.store.question(id_)
        if found is None or found.analyst != who.name or found.dataset != dataset:
            raise Refused(
                404, "not-found", "there is no such question of yours", value=repr(id_[:80])
            )
        return found

    async def wait(self, question: Question, seconds: float) -> Question:
        """The question when it has an outcome, or after this many seconds as it is."""
        if not question.open or seconds <= 0:
            return question
        event = self._events.setdefault(question.id, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), min(seconds, _LONGEST_WAIT))
        return self.store.question(question.id) or question

    async def shown_answer(
        self, who: Principal, question: Question, draw: Callable[[Answer], T]
    ) -> tuple[T, list[Question]]:
        """An answer of one's own as it is best shown: combined with all that were paid for the same question of the
        same data; and those questions, the dearest last. `draw` makes of it what is shown, for large answers in
        another process.
        """
        if question.body is None:
            raise Refused(404, "not-found", f"this question has no answer: it is {question.status}")
        alike = (
            self._answers_to_same(self.link(who, question.dataset).facts(), question)
            if question.kind == "sql"
            else []
        )
        bodies, fixed, note = [question.body], frozenset[str](), ""
        if len(alike) < 2:
            alike = [question]
        elif (found := self.store.bodies([one.id for one in alike], _MOST_COMBINED)) is not None:
            bodies, fixed = found, await self.known_beforehand(who, question)
        else:
            note = f"This is the dearest of your {len(alike)} answers to this question: they are too large to be combined."
            alike = alike[-1:]
            bodies = self.store.bodies([alike[0].id]) or bodies
        make = partial(drawn, bodies, fixed, note, draw)
        if sum(map(len, bodies)) <= _SMALL:
            await asyncio.sleep(0)  # others come in between, where many are shown
            return make(), alike
        if self._drawing[who.name] >= _MOST_DRAWN:
            rule = f"at most {_MOST_DRAWN} large answers are shown to one person at once"
            raise Refused(
                429, "too-many-requests", rule, "Wait for them.", headers={"Retry-After": "2"}
            )
        self._drawing[who.name] += 1
        try:
            return await self._drawer.run(make), alike
        finally:
            self._drawing[who.name] -= 1

    async def known_beforehand(self, who: Principal, question: Question) -> frozenset[str]:
        """The numbers of an answer whose precision follows from its price alone, so that several can be mixed."""
        facts = self.link(who, question.dataset).facts()
        try:
            with self._one_more_plan(who):
                return await self.planner.known_beforehand(
                    question.dataset, facts, question.question, question.offer
                )
        except SordinoError:  # the declaration is another one by now; the answer stays what it was
            return frozenset()

    def _answers_to_same(self, facts: Facts, question: Question) -> list[Question]:
        """What the asker paid for the same question of the same data, at whatever prices, the dearest last.

        Two releases have independent noise. An answer that was given again is the same release, and does not count
        twice.
        """
        text, edition = (
            str((question.receipt or {}).get("question")),
            self.planner.edition(question.dataset, facts),
        )
        found = [
            one for one in self.store.answered(question.dataset, question.analyst, text)
            if one.kind == "sql" and _quantity(one) == _quantity(question)
            and one.same == _digest(edition, "sql", text, str(Cost.offered(**read_offer(one.offer))))
        ]  # fmt: skip
        ids = {one.id for one in found}
        return (
            sorted(found, key=lambda one: (one.price, one.created))
            if {question.id, question.source} & ids
            else []
        )

    # what owners do

    def decide(
        self, who: Principal, dataset: str, id_: str, *, approve: bool, note: str
    ) -> Question:
        """Approve or deny a question that waits. Who asked cannot approve it."""
        self.link(who, dataset)
        found = self.store.question(id_)
        if found is None or found.dataset != dataset:
            raise Refused(404, "not-found", "there is no such question", value=repr(id_[:80]))
        if found.analyst == who.name and approve:
            raise Refused(
                403,
                "forbidden",
                "nobody approves a question of their own",
                "Let another owner look at it.",
            )
        if approve and self.store.policy(dataset).suspended:
            raise _suspended(dataset)
        decided = self.store.decide(id_, "accepted" if approve else "denied", who.name, note[:2000])
        if decided is None:
            raise Refused(409, "conflict", f"it does not wait: it is {found.status}")
        if approve:
            self._begin(decided)
        else:
            event = self._events.pop(id_, None)
            if event is not None:
                event.set()
        return decided

    async def allot(
        self,
        who: Principal,
        dataset: str,
        analyst: str,
        epsilon: JSON,
        delta: JSON,
        caps: Caps | None,
    ) -> None:
        """Give somebody a part of the budget, and caps; epsilon None takes both back."""
        link = self.link(who, dataset)
        reply = await link.allot(analyst, epsilon, delta)
        if reply.problem is not None:
            from sordino.server.problems import error_of

            raise error_of(reply.problem)
        await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
        facts = link.facts()
        until = time.monotonic() + 2 * facts.answer_time + 1
        while (analyst in link.facts().meters) != (
            epsilon is not None
        ) and time.monotonic() < until:
            # until the copy here has it, so that the next request of whoever it is does
            await asyncio.sleep(0.01)
        if analyst != ANYBODY or caps is None:
            self.store.set_caps(dataset, analyst, caps)

    async def suspend(self, who: Principal, dataset: str) -> None:
        """Refuse all new questions for now, before anything is charged; what was accepted is still answered."""
        self.link(who, dataset)
        await asyncio.to_thread(
            self.store.update_policy, dataset, lambda rules: replace(rules, suspended=True)
        )

    async def resume(self, who: Principal, dataset: str) -> None:
        """Let people ask again: after a suspension, or after a pause for answers that took too long."""
        link = self.link(who, dataset)
        await asyncio.to_thread(
            self.store.update_policy, dataset, lambda rules: replace(rules, suspended=False)
        )
        await link.resume()

    def rules(self, who: Principal, dataset: str) -> Policy:
        """The rules, as somebody may see them: names of others are for owners and auditors, and for those named."""
        self.link(who, dataset)
        policy = self.store.policy(dataset)
        return policy if who.person.roles & {Role.owner, Role.auditor} else policy.told_to(who.name)

    async def set_rules(self, who: Principal, dataset: str, rules: Policy) -> Policy:
        """Put rules in force; a suspension stays as it is."""
        self.link(who, dataset)
        return await asyncio.to_thread(
            self.store.update_policy,
            dataset,
            lambda before: replace(rules, suspended=before.suspended),
        )

    async def receipts(
        self, who: Principal, dataset: str, after: int, limit: int, *, everybody: bool
    ) -> list[JSON]:
        """Charges, oldest first: one's own, or of everybody.

        What became of a charge is told after its tick, not before.
        """
        link = self.link(who, dataset)
        found = await link.payments(None if everybody else who.name, after, limit)
        return [self._told(dataset, dict(one)) for one in found]

    def _told(self, dataset: str, payment: dict[str, JSON]) -> dict[str, JSON]:
        known = self.store.question_of(
            dataset, str(payment.get("analyst")), str(payment.get("request_id"))
        )
        if known is not None and known.open:
            return {**payment, "status": "accepted", "answer": ""}
        return payment

    async def receipt(self, who: Principal, question: Question, since: int | None) -> str:
        """The document that proves a question of one's own was recorded."""
        if question.source is not None or question.receipt is None:
            rule = "nothing was charged for this question: a stored answer was given, or none yet"
            raise Refused(404, "not-found", rule, "Whoever paid for an answer has its receipt.")
        return await self.link(who, question.dataset).proof(
            question.analyst, str(question.receipt["request_id"]), since
        )

    async def report_page(self, who: Principal, dataset: str) -> str:
        """The page for the data-protection officer."""
        link = self.link(who, dataset)
        payments: list[Mapping[str, JSON]] = []
        while found := await link.payments(
            None, int(str(payments[-1]["number"])) if payments else 0, 1000
        ):
            payments += [self._told(dataset, dict(one)) for one in found]
        facts, log = link.facts(), await link.checkpoint(None)
        if facts.dataset.budget is None:
            raise AssertionError("a served dataset has a budget")
        meters = {name: meter for name, meter in facts.meters.items() if name != ANYBODY}
        charges = [_spent(one) for one in payments]
        rules = [
            f"An answer leaves at a tick: every {facts.answer_time:g} seconds.",
            *self.store.policy(dataset).words,
        ]
        signed, key = str(log["checkpoint"]), str(log["key"])
        account = Account(
            dataset,
            facts.dataset,
            facts.dataset.budget,
            meters,
            charges,
            signed,
            key,
            rules,
            served=True,
        )
        return await asyncio.to_thread(officer_report, account)


def _suspended(dataset: str) -> InvalidInput:
    rule = "its owner has suspended it: nobody asks for now"
    return InvalidInput(f"the dataset {dataset!r}", rule, "Ask the owner. Nothing was charged.")


def price_limit(name: str, value: int | float | str | None) -> Fraction | None:
    """A price of a rule, read exactly, from zero on."""
    if value is None:
        return None
    read = Fraction(str(number(name, value)))
    if not 0 <= read <= 10**6:
        raise InvalidInput(
            f"{name}={value}",
            "a price is an epsilon from 0 to a million",
            "Pass a number such as 0.1.",
        )
    return read


def _digest(*parts: str) -> str:
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def _quantity(question: Question) -> tuple[str, ...]:
    """What an offer says but for its price, and whether the noise is Gaussian: another bound, or bounds that suit
    another noise, make another number, and numbers are mixed only with their like.
    """
    price = {"epsilon", "error", "rows", "delta", "mechanism"}
    rest = [
        f"{name}={value}"
        for name, value in sorted(question.offer.items())
        if name not in price and value is not None
    ]
    charge: Any = (question.receipt or {}).get("charge") or {}
    return (
        str(Cost.offered(**read_offer(question.offer)).confidence),
        str(charge.get("pure") is None),
        *rest,
    )


def _spent(payment: Mapping[str, Any]) -> Spent:
    charge, status = read_charge(payment["charge"]), str(payment["status"])
    return Spent(
        payment["number"], payment["time"], payment["analyst"], payment["question"], charge, status
    )


def question_view(question: Question) -> dict[str, JSON]:
    """A question as its asker sees it."""
    base = f"/v1/datasets/{question.dataset}"
    return {
        "id": question.id, "dataset": question.dataset, "status": question.status, "kind": question.kind,
        "question": question.question, "offer": dict(question.offer), "key": question.key, "price": str(question.price),
        "reason": question.reason, "note": question.note, "created": question.created, "settled": question.settled,
        "free": question.source is not None, "receipt": question.receipt, "problem": question.problem,
        "location": f"{base}/questions/{question.id}",
        "answer": f"{base}/answers/{question.id}" if question.status == "answered" else None,
    }  # fmt: skip


def _uncharged(question: Question) -> bool:
    """Whether it was refused for nothing, or nobody knows what became of it:
    then its key asks again, as in a session.
    """
    if question.status == "failed":
        return (question.problem or {}).get("code") == "ledger-unavailable"
    return question.status == "refused"


def _meter_of(who: Principal) -> str | None:
    """Whose budget previews are about: one's own, or for those who do not ask the whole."""
    return who.name if who.person.roles & {Role.analyst, Role.agent} else None


def _ladder(most: Fraction) -> list[str]:
    """Twenty epsilons from a thousandth of a budget to all of it, each about half as much again as the one before."""
    return [f"{float(most) * 1000 ** (i / 19 - 1):.3g}" for i in range(20)]


def meter_view(meter: TwoMeterFilter) -> dict[str, JSON]:
    """A budget, what was spent of it and what is left, in exact numbers."""
    rest = meter.remaining
    left = {name: getattr(rest, name) for name in ("pure", "mu_squared", "rho", "delta")}
    return {
        "epsilon": str(meter.budget.epsilon), "delta": str(meter.budget.delta), "key_delta": str(meter.reserved_delta),
        "left": {name: None if amount is None else str(amount) for name, amount in left.items()},
        "spent": dict(charge_facts(meter.spent)), "left_share": float(left_share(meter)),
    }  # fmt: skip


def _said(number: Fraction | None) -> str | None:
    return None if number is None else readable(number)


def table_view(table: Table) -> dict[str, JSON]:
    """What is declared of a table."""
    return {
        "name": table.name, "public": table.public, "unit": "nobody" if table.public else table.unit,
        "person": table.person, "neighbors": table.neighbors.value, "bounds": dict(table.bounds.given),
        "key": list(table.key), "columns": {name: _column(column) for name, column in table.columns.items()},
    }  # fmt: skip


def _column(column: Column) -> dict[str, JSON]:
    facts: dict[str, JSON] = {"type": column.kind}
    for name, word in (
        ("lower", "min"),
        ("upper", "max"),
        ("step", "step"),
        ("longest", "max_length"),
    ):
        value = getattr(column.type, name, None)
        if value is not None:
            facts[word] = (
                value.isoformat()
                if isinstance(value, date)
                else value
                if isinstance(value, int)
                else readable(value)
            )
    values = getattr(column.type, "values", None)
    if values is not None:
        facts["values"] = list(values[:1000])
        facts["number_of_values"] = len(values)
    return facts


def _limit(value: date | int | Fraction) -> JSON:
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, int) else readable(value)
