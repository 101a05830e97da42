"""A session: the straight line from a question to an answer.

query   = parse(text)                      what is asked, or a refusal
plan    = make_plan(query, dataset, cost)  what runs and what it costs; every error of a user is raised up to here
receipt = ledger.charge(plan.charge)       debited, durably, before data are read
exacts  = engine.run(plan.statements)      whole numbers
answer  = release(exacts, plan, receipt)   noise
          ledger.store(receipt, answer)    kept, durably, before it is shown
"""

from __future__ import annotations

import contextlib
import copy
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from sordino.accounting.budget_share import left_share, percent
from sordino.accounting.charge import Charge
from sordino.accounting.filters import Remaining
from sordino.answer.answer import Answer
from sordino.answer.notebook_progress import notebook_bar
from sordino.answer.suggestion import Suggestion
from sordino.bounds_release import found_bounds, rehearse_searches, rehearse_suggestion, suggested
from sordino.engines.engine import Engine, Exact, Opener, Run
from sordino.engines.gate import pinned
from sordino.engines.interruptible import interruptible
from sordino.engines.openers import opener_of
from sordino.engines.public_tables import completed, public_tables
from sordino.errors import EngineFailed, InvalidInput, SordinoError, no_attribute
from sordino.ledger.ledger import Ledger, Paid
from sordino.ledger.receipt import Receipt, Receipts, Request, checked_analyst
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.plan.private_bounds import PrivateBounds, plan_private_bounds
from sordino.plan.statement import Statement
from sordino.plan.suggestion import SuggestionPlan, plan_suggestion
from sordino.privacy.budget import Budget
from sordino.privacy.exact import Number, positive, show
from sordino.privacy.notebook import card
from sordino.query import tree
from sordino.query.dataset import Column, Dataset, Table
from sordino.query.declaration import python_ledger
from sordino.query.front.python import Question
from sordino.query.front.sql import parse
from sordino.query.front.terms import ColumnLike
from sordino.query.front.text import sql_text
from sordino.query.offer import Offer, takes_offer
from sordino.query.tree import Join, Query, Rows, Source, Subquery, UnionAll
from sordino.release import rehearse, release
from sordino.workloads.grouping_sets import GroupingSetsPlan, plan_grouping_sets, rehearse_rows
from sordino.workloads.marginals import Marginals
from sordino.workloads.plan import MarginalsOffer, MarginalsPlan, plan_workload
from sordino.workloads.release import rehearse_marginals, release_marginals
from sordino.workloads.synthesis import rehearse_synthesis, synthesize
from sordino.workloads.synthesis_plan import SynthesisOffer, SynthesisPlan, plan_synthesis
from sordino.workloads.synthetic import Synthetic

if TYPE_CHECKING:
    from sordino.ledger.public_log import Proof

__all__ = ["Asking", "Planned", "Session"]


@dataclass(frozen=True)
class Planned:
    """What a question costs, the statements that are known by then, and what makes its answer after the charge."""

    charge: Charge
    statements: Sequence[Statement]
    made: Callable[[Receipt, Run], str]


@dataclass(frozen=True)
class Asking:
    """One question on its way: stored, plan, snapshot, charge, answer, store. Any step up to the charge may refuse."""

    session: Session
    request: Request
    plan: Callable[[], Planned]
    """What runs and what it costs; every error of a user is raised up to here."""

    def stored(self) -> Paid | None:
        """What was answered before under this id."""
        return self.session.ledger.stored(self.request)

    @staticmethod
    def answer(planned: Planned, receipt: Receipt, run: Run) -> bytes | None:
        """The answer to a charge; None if anything fails: data have been touched, so that no error may speak."""
        with contextlib.suppress(Exception):
            return planned.made(receipt, run).encode()
        return None

    def paid(self) -> Paid:
        """All steps, one after the other."""
        paid = self.stored()
        if paid is not None:
            return paid
        # before plans, which may import: a child forked amid an import of another thread would wait for ever
        self.session._expect_open()
        planned, ledger = self.plan(), self.session.ledger
        with self.session.snapshot(planned.statements) as run:
            paid = ledger.charge(planned.charge, self.request)
            return paid if paid.answer is not None else self._answered(planned, paid.receipt, run)

    def _answered(self, planned: Planned, receipt: Receipt, run: Run) -> Paid:
        """The answer to an open charge, stored."""
        stored: bytes | None = None
        try:
            stored = self.answer(planned, receipt, run)
        finally:
            if stored is None:  # also if interrupted
                with contextlib.suppress(Exception):
                    self.session.ledger.forfeit(receipt)
        if stored is None:
            raise EngineFailed
        self.session.ledger.store(receipt, stored)
        return Paid(receipt, stored)


_OTHER_WORDS = {
    **dict.fromkeys(
        ("query", "execute", "ask", "select", "read_sql"),
        'Write session.sql("SELECT ...", epsilon=0.1).',
    ),
    **dict.fromkeys(("tables", "columns", "schema"), "What is declared is session.dataset."),
    **dict.fromkeys(
        ("budget", "left", "remaining_budget", "epsilon"), "What is left is session.remaining."
    ),
    **dict.fromkeys(
        ("explain", "cost", "price", "estimate"),
        'Write session.preview("SELECT ...", epsilon=0.1).',
    ),
    **dict.fromkeys(("history", "log", "spent"), "All charges are session.receipts."),
}


class Session:
    """Questions about one dataset, within one budget.

    Budget and ledger are by default those of the dataset. The ledger of a declaration file is by default beside it,
    and outlives the session; only that of a dataset declared in Python without one is kept in memory. `analyst` is who
    asks, where the owner gave sub-budgets. Tables of PostgreSQL or Spark are asked there, all others by DuckDB;
    `memory` ("2GB") and `threads` bound what it uses; with `held` the declared columns are read and cleaned once, into
    memory, which answers faster and opens slower. Another `engine` is a function that opens the tables, such as a
    class with the methods of `Engine`. What a question reads is stopped after `deadline` seconds: it fails, and its
    charge is forfeited.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"age": [31, 47, 65, 80]})
        >>> data = Dataset(table, unit="row", columns={"age": {"type": "int", "min": 0, "max": 110}}, budget=Budget(1))
        >>> with Session(data) as session:
        ...     answer = session.sql("SELECT COUNT(*) AS n FROM data", epsilon=0.5)
        ...     left = session.remaining.pure
        >>> answer.names, left
        (('n',), Fraction(1, 2))
    """

    def __init__(
        self,
        dataset: Dataset,
        budget: Budget | None = None,
        *,
        ledger: str | os.PathLike[str] | None = None,
        analyst: str | None = None,
        memory: str | None = None,
        threads: int | None = None,
        held: bool = False,
        engine: Opener | None = None,
        deadline: Number | None = None,
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise _no_dataset(dataset)
        self.dataset = dataset if budget is None else dataset.with_budget(budget)
        opener = _opener(self.dataset, engine, memory, threads, held)
        self.analyst = None if analyst is None else checked_analyst(analyst)
        self.deadline = None if deadline is None else float(positive("deadline", deadline).upper)
        self._process: int | None = os.getpid()
        self._opened: Session = self
        """The session that opened engine and ledger; another one for those made by `as_analyst`."""
        self._planned = _clean(self.dataset, self.dataset) if held else self.dataset
        """The declaration as plans see it: of tables that are held every cell is clean already."""
        self._public: dict[str, Table] = {}
        self._done: float | None = None
        self._steps = 0, 1
        """Which statement of a question is running, and how many it has."""
        # a source that is no plain file is refused before a ledger is made for it
        pinned(self.dataset.tables.values())
        self.ledger = Ledger.open(self.dataset, python_ledger(ledger))
        with contextlib.ExitStack() as stack:
            stack.callback(self.ledger.close)
            self._engine: Engine = opener(tuple(self.dataset.tables.values()))
            stack.pop_all()

    def as_analyst(self, name: str) -> Session:
        """The same session as another analyst sees it: it has the sub-budget and the request ids of that name.

        Engine, ledger and what was read of public tables are shared, so that it costs nothing to have many, also in
        several threads. To close it ends that one only; to close the session that opened the data ends all.
        """
        self._expect_open()
        other = copy.copy(self)
        other.analyst = checked_analyst(name)
        return other

    if not TYPE_CHECKING:  # else every attribute would be one

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, _OTHER_WORDS)

    @takes_offer
    def sql(self, query: str, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Answer:
        """The noisy answer to one SELECT, for an `epsilon`, or for an `error` that it may have.

        `error` is the half-width that all numbers (or each named one) may have, `confidence` of the time; `rows` is
        the number of rows to assume where the error depends on it. `mechanism` is "laplace" or "gaussian", by default
        the one with the smaller error; `nonnegative` raises numbers to zero. `delta` is what selecting private keys
        spends of the part that the owner keeps for it; by default as large a share of what is left as the question
        takes of epsilon. With `bias` a tenth of epsilon measures what bounds of persons cut off, by default where
        there are such bounds; `max_rows`, `max_rows_per_group` and `max_groups` tighten those of the owner. With
        `bounds="private"` numbers without declared limits get bounds that are found first, for a part of epsilon.

        With a `request_id` of your own the question can be asked again after a crash: it is charged and drawn once, and
        answered with the same bytes.
        """
        return self.run(parse(query), request_id=request_id, **offer)

    def table(self, name: str) -> Question:
        """A question built in Python, about one table."""
        return Question(name, session=self)

    def person_of(self, name: str, source: Source) -> str | None:
        """The column that names the person in the first table of a source, as far as that is a declared table."""
        del name
        while not isinstance(source, tree.Table):
            match source:
                case Join(left):
                    source = left
                case Subquery(Rows(inner)) | Subquery(UnionAll((Rows(inner), *_))):
                    source = inner
                case _:
                    return None
        table = self.dataset.tables.get(source.table)
        return None if table is None else table.person

    @takes_offer
    def run(self, query: Query, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Answer:
        """The noisy answer to a query tree."""
        paid = self.asking(query, request_id=request_id, **offer).paid()
        return Answer.from_json((paid.answer or b"").decode(), paid.receipt)

    @takes_offer
    def asking(
        self, query: Query, *, request_id: str | None = None, **offer: Unpack[Offer]
    ) -> Asking:
        """A question step by step, for those who decide when each of its steps is taken; `run` takes them all."""
        cost = Cost.offered(**offer)
        request = self._request(request_id, sql_text(query), str(cost))

        def planned() -> Planned:
            if query.sets is not None:
                sets = self._plan_sets(query, cost)
                return Planned(sets.charge, sets.statements, partial(self._answered_sets, sets))
            plan = self._plan(query, cost)
            first = plan.first_statements if isinstance(plan, PrivateBounds) else plan.statements
            return Planned(
                plan.charge,
                first,
                lambda receipt, run: self._released(plan, receipt, run).to_json(),
            )

        return Asking(self, request, planned)

    def _request(self, request_id: str | None, question: str, offer: str) -> Request:
        return Request(
            uuid.uuid4().hex if request_id is None else request_id, question, offer, self.analyst
        )

    def _released(self, plan: Plan, receipt: Receipt, run: Run) -> Answer:
        """The answer to a plan; where bounds are found first, to the plan that follows from them."""
        if not isinstance(plan, PrivateBounds):
            return release(self._exacts(plan.statements, run), plan, receipt)
        found = found_bounds(plan.searched, self._exacts(plan.first_statements, run))
        settled = plan.settled([(one.lower, one.upper) for one in found])
        answer = release(self._exacts(settled.statements, run), settled, receipt)
        return replace(answer, privacy=plan.promise, notes=(*plan.remarks(found), *answer.notes))

    def suggest(
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        columns: Sequence[str] | None = None,
        keys: Sequence[ColumnLike] = (),
        query_epsilon: Number | None = None,
        request_id: str | None = None,
    ) -> Suggestion:
        """Bounds found privately: how many rows and groups one person has, and limits of columns; lines for the owner.

        `columns` are those whose limits are searched, by default all numbers and dates without limits; `keys` are what
        later questions group by, for `max_groups` and `max_rows_per_group`. Bounds are chosen to be good for later
        questions at `query_epsilon`, by default a tenth of the budget. It is charged and stored like any question;
        `preview_suggest` says beforehand what would be searched and what it would cost.

        Privacy: all that is found together is epsilon-differentially private, for the unit of the table and whatever
        number of rows a person has (bounds_search.md).
        """
        paid = self.asking_suggestion(
            table,
            epsilon=epsilon,
            columns=columns,
            keys=keys,
            query_epsilon=query_epsilon,
            request_id=request_id,
        ).paid()
        return Suggestion.from_json((paid.answer or b"").decode(), paid.receipt)

    def asking_suggestion(
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        columns: Sequence[str] | None = None,
        keys: Sequence[ColumnLike] = (),
        query_epsilon: Number | None = None,
        request_id: str | None = None,
    ) -> Asking:
        """A suggestion step by step, as `asking`."""
        plan = self._plan_suggestion(table, epsilon, columns, keys, query_epsilon)
        request = self._request(request_id, plan.question, plan.offer)

        def planned() -> Planned:
            rehearse_suggestion(plan, self._engine.dialect)
            return Planned(plan.charge, plan.statements, partial(self._suggested, plan))

        return Asking(self, request, planned)

    def preview_suggest(
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        columns: Sequence[str] | None = None,
        keys: Sequence[ColumnLike] = (),
        query_epsilon: Number | None = None,
    ) -> SuggestionPlan:
        """What `suggest` would search, how exactly, and what it would cost; free, and no data are read."""
        plan = self._plan_suggestion(table, epsilon, columns, keys, query_epsilon)
        rehearse_suggestion(plan, self._engine.dialect)
        return plan

    def _plan_suggestion(
        self,
        table: str | None,
        epsilon: Number,
        columns: Sequence[str] | None,
        keys: Sequence[ColumnLike],
        query_epsilon: Number | None,
    ) -> SuggestionPlan:
        meter = self.ledger.meter(self.analyst)
        return plan_suggestion(
            self.dataset,
            meter,
            table,
            epsilon=epsilon,
            columns=columns,
            keys=keys,
            query_epsilon=query_epsilon,
        )

    def _suggested(self, plan: SuggestionPlan, receipt: Receipt, run: Run) -> str:
        return suggested(
            found_bounds(plan.searched, self._exacts(plan.statements, run)), plan, receipt
        ).to_json()

    def marginals(
        self,
        columns: Sequence[ColumnLike] | Mapping[str, ColumnLike],
        *,
        request_id: str | None = None,
        **asked: Unpack[MarginalsOffer],
    ) -> Marginals:
        """All tables of `ways` columns, or the given `tables`, from one charge and one pass over the rows; they agree.

        `columns` are names, or expressions by name such as {"decade": bucket("age", 10)}; all their values must be
        public. `weights` say how much the variance of a table counts: numbers by table, or a function of its names and
        number of cells. Of the columns in `ranges` or `prefixes` sums of neighbouring values are asked for: their
        noise is spread over a hierarchy. `max_rows` is how many rows of one person count, in all tables together.

        Privacy: all tables together satisfy (epsilon, the ledger's delta), by Gaussian noise (workloads/residuals.md).
        """
        plan = plan_workload(self.dataset, self.ledger.meter(self.analyst), columns, **asked)
        request = self._request(request_id, plan.question, plan.offer)

        def planned() -> Planned:
            rehearse_marginals(plan, self._engine.dialect)
            return Planned(
                plan.charge, plan.statements, lambda _, run: self._marginals(plan, run).to_json()
            )

        paid = Asking(self, request, planned).paid()
        return Marginals.from_json((paid.answer or b"").decode(), paid.receipt)

    def preview_marginals(
        self,
        columns: Sequence[ColumnLike] | Mapping[str, ColumnLike],
        **asked: Unpack[MarginalsOffer],
    ) -> MarginalsPlan:
        """What `marginals` would run and cost, and the error of every cell; free, and no data are read."""
        plan = plan_workload(self.dataset, self.ledger.meter(self.analyst), columns, **asked)
        rehearse_marginals(plan, self._engine.dialect)
        return plan

    def synthesize(
        self,
        table: str | Question | None = None,
        *,
        request_id: str | None = None,
        **asked: Unpack[SynthesisOffer],
    ) -> Synthetic:
        """Synthetic rows of a table with the declared columns, types and ranges, and a report of their own quality.

        `rows` is their number, about that of the table by default; `columns` those wanted, all by default. Numbers and
        dates with many values are modelled in buckets and drawn evenly within them. The report has a noisy error, with
        an interval, for every column, every pair and some triples. `table` may also be rows made of tables, such as
        one for each person: session.table("visits").per_person(age=so.max("age")).

        Privacy: rows and report together satisfy (epsilon, the ledger's delta), by Gaussian noise
        (workloads/synthesis.md). A person with several rows counts with at most `max_rows` of them.
        """
        plan = plan_synthesis(self.dataset, self.ledger.meter(self.analyst), table, **asked)
        request = self._request(request_id, plan.question, plan.offer)

        def planned() -> Planned:
            rehearse_synthesis(plan, self._engine.dialect)
            return Planned(
                plan.charge, plan.statements, lambda _, run: self._synthesized(plan, run)
            )

        paid = Asking(self, request, planned).paid()
        return Synthetic.from_json((paid.answer or b"").decode(), paid.receipt)

    def preview_synthesize(
        self, table: str | Question | None = None, **asked: Unpack[SynthesisOffer]
    ) -> SynthesisPlan:
        """What `synthesize` would measure and cost; free, and no data are read."""
        plan = plan_synthesis(self.dataset, self.ledger.meter(self.analyst), table, **asked)
        rehearse_synthesis(plan, self._engine.dialect)
        return plan

    def _synthesized(self, plan: SynthesisPlan, run: Run) -> str:
        def tell(done: float) -> None:
            self._done = done

        try:
            return synthesize(
                plan, lambda statements: self._exacts(statements, run), tell
            ).to_json()
        finally:
            self._done = None

    def _plan_sets(self, query: Query, cost: Cost) -> GroupingSetsPlan:
        plan = plan_grouping_sets(
            query, self._completed(query), cost, self.ledger.meter(self.analyst)
        )
        rehearse_marginals(plan.workload, self._engine.dialect)
        rehearse_rows(plan)
        return plan

    def _answered_sets(self, plan: GroupingSetsPlan, receipt: Receipt, run: Run) -> str:
        return plan.answer(self._marginals(plan.workload, run), receipt).to_json()

    def _marginals(self, plan: MarginalsPlan, run: Run) -> Marginals:
        return release_marginals(self._exacts(plan.statements, run)[0], plan)

    def snapshot(self, statements: Sequence[Statement]) -> AbstractContextManager[Run]:
        """One question to the engine; refuses, before anything is charged, where it could not answer."""
        self._expect_open()
        if self.deadline is None:
            return self._engine.snapshot(statements)
        return self._engine.snapshot(statements, self.deadline)

    def _expect_open(self) -> None:
        """Refuse a closed session, and one of the process from which this one was forked."""
        if self._process is None or self._opened._process is None:
            raise InvalidInput(
                "a closed session", "it answers no more questions", "Open a new session."
            )
        if self._process != os.getpid():
            rule = (
                "its engine belongs to the process that opened it, from which this one was forked"
            )
            raise InvalidInput(
                "a session of another process",
                rule,
                "Open a session in each process; they share the ledger.",
            )

    def _exacts(self, statements: Sequence[Statement], run: Run) -> list[Exact]:
        """The exact numbers of statements; signals reach the caller amid one, and a notebook shows how far it is."""

        def work() -> list[Exact]:
            found = []
            for place, statement in enumerate(statements):
                self._steps = place, len(statements)
                found.append(run(statement))
            return found

        bar = notebook_bar(lambda: self.progress)
        try:
            return interruptible(work, self._engine.interrupt, None if bar is None else bar.tick)
        finally:
            self._steps = 0, 1
            if bar is not None:
                bar.close()

    @takes_offer
    def preview(self, query: str | Query, **offer: Unpack[Offer]) -> Plan:
        """What a query would run and cost; free, and no data are read but public tables."""
        asked, cost = parse(query) if isinstance(query, str) else query, Cost.offered(**offer)
        if asked.sets is not None:
            # it says the same of itself, in the same words
            return cast("Plan", self._plan_sets(asked, cost))
        return self._plan(asked, cost)

    def _plan(self, query: Query, cost: Cost) -> Plan:
        meter, dialect, complete = (
            self.ledger.meter(self.analyst),
            self._engine.dialect,
            self._completed(query),
        )
        found_first = (
            plan_private_bounds(query, complete, cost, meter) if cost.private_bounds else None
        )
        if found_first is not None:
            rehearse_searches(found_first.searched, dialect)
            for plan in found_first.rehearsals:
                rehearse(plan, dialect)
            return found_first
        plan = make_plan(query, complete, cost, meter)
        rehearse(plan, dialect)
        return plan

    def _completed(self, query: Query) -> Dataset:
        """The declaration with what the public tables of a question hold,
        each of which is read once, if that succeeds.
        """
        found: dict[str, Table] = {}
        # else there is no engine, and nothing is answered
        if self._process == self._opened._process == os.getpid():
            for table in public_tables(self.dataset, query):
                if table.name not in self._public:
                    held = self._planned is not self.dataset
                    read = partial(completed, table, self._engine.run, held=held)
                    found[table.name] = interruptible(read, self._engine.interrupt)
        self._public |= {
            name: table
            for name, table in found.items()
            if not (table.contents and table.contents.failed)
        }
        known = {**self._public, **found}
        if not known:
            return self._planned
        complete = self.dataset.with_tables({**self.dataset.tables, **known})
        return complete if self._planned is self.dataset else _clean(complete, self.dataset)

    @property
    def remaining(self) -> Remaining:
        """What each meter still has."""
        return self.ledger.meter(self.analyst).remaining

    def proof(self, request_id: str, *, since: int | None = None) -> Proof:
        """The receipt that proves a question was charged and what became of it; `proof.to_json()` is a file to keep.

        Anybody can check it offline (`sordino receipt verify`); it tells nothing of others' questions.
        """
        return self.ledger.proof(request_id, self.analyst, since=since)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """All charges so far, of everybody."""
        return Receipts(payment.receipt for payment in self.ledger.payments)

    @takes_offer
    def fits(self, query: str | Query, **offer: Unpack[Offer]) -> int:
        """How many more answers like this one the budget allows."""
        return self.ledger.meter(self.analyst).fits(self.preview(query, **offer).charge)

    @property
    def progress(self) -> float | None:
        """How far the query is that another thread is running, from 0 to 1; None if nothing is known of it."""
        if self._done is not None:
            return self._done
        part, (done, steps) = self._engine.progress, self._steps
        return None if part is None and not done else (done + (part or 0.0)) / steps

    def interrupt(self) -> None:
        """Stop the query that another thread is running: it fails, and its charge is forfeited."""
        self._engine.interrupt()

    def close(self) -> None:
        """Close the engine, which stops what other threads are asking, and the ledger.

        A session made by `as_analyst` ends alone: what it asks goes on, and the others keep engine and ledger.
        """
        owned, self._process = self._process == os.getpid(), None
        if self._opened is not self:
            return
        try:
            if owned:
                self._engine.close()
        finally:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            left = f"{percent(left_share(self.ledger.meter(self.analyst)), up=False)} of the budget is left"
        except SordinoError:  # closed, or its ledger cannot be read
            left = "nothing can be asked"
        return f"Session({', '.join(self.dataset.tables)}; {left})"

    def _repr_html_(self) -> str:
        tables = ("table", "protects", "columns"), _tables_of(self.dataset)
        try:
            share = left_share(self.ledger.meter(self.analyst))
            facts = {
                "left": f"{percent(share, up=False)} of {self.dataset.budget}",
                "charges": f"{len(self.receipts):,}",
            }
            return card(
                "Session" if self._process else "Session (closed)",
                facts,
                table=tables,
                left=float(share),
            )
        except SordinoError:  # closed, or its ledger cannot be read
            return card("Session", {"left": "nothing can be asked"}, table=tables)


def _tables_of(dataset: Dataset) -> list[tuple[str, str, str]]:
    """Each table, whom it protects, and its columns."""
    return [
        (
            table.name,
            "nobody: public"
            if table.public
            else "each row"
            if table.unit == "row"
            else f"each {table.unit}",
            ", ".join(f"{name} ({column.kind})" for name, column in table.columns.items())
            or "none declared",
        )
        for table in dataset.tables.values()
    ]


def _no_dataset(given: object) -> InvalidInput:
    """The refusal of something else in the place of a dataset; says how to make one of it."""
    if isinstance(given, str | os.PathLike):
        declared = f"{os.fspath(given)!r}" if str(given).lower().endswith(".toml") else None
        hint = (
            f"Pass so.Dataset.load({declared})."
            if declared
            else f"Declare it: so.Dataset({str(given)!r}, unit=...)."
        )
        return InvalidInput(show(str(given)), "a session needs a Dataset", hint)
    hint = "Declare who is protected: so.Dataset(table, unit=..., columns=...), or so.Dataset.load('visits.toml')."
    return InvalidInput(
        f"an object of type {type(given).__name__}", "a session needs a Dataset", hint
    )


def _clean(dataset: Dataset, held: Dataset) -> Dataset:
    """The dataset with cells that are clean where they are held in the same type: a public table may give another."""

    def columns(table: Table) -> dict[str, Column]:
        own = held.tables[table.name].columns
        return {
            name: replace(column, clean=column.type == own[name].type)
            for name, column in table.columns.items()
        }

    tables = dataset.tables
    return dataset.with_tables(
        {name: replace(table, columns=columns(table)) for name, table in tables.items()}
    )


def _opener(
    dataset: Dataset, engine: Opener | None, memory: str | None, threads: int | None, held: bool
) -> Opener:
    """What opens the tables: the engine of their sources, DuckDB within its limits, or what was given."""
    if engine is None:
        return opener_of(dataset.tables.values(), memory, threads, held=held)
    if not callable(engine):
        rule = "an engine is given as a function that opens tables, so that it holds those of the session"
        raise InvalidInput(
            f"engine = {show(type(engine).__name__)}", rule, "Pass engine=DuckDB or the like."
        )
    if memory is not None or threads is not None or held:
        rule = "memory, threads and held are those of the default engine"
        raise InvalidInput(
            "an engine with memory, threads or held",
            rule,
            "Pass engine=partial(DuckDB, memory=..., threads=...).",
        )
    return engine
