"""Prices without data: plans made from the pushed facts of a dataset, as the engine process would make them.

Everything here is a function of public facts, so that it may take the time it takes. It can run in processes of its
own, so that a hostile question does not delay the ticks of others: arguments and results are plain values.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import pickle
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

from sordino.accounting.budget_share import BudgetShare
from sordino.accounting.filters import TwoMeterFilter
from sordino.bounds_release import rehearse_searches, rehearse_suggestion
from sordino.errors import InvalidInput
from sordino.ledger.terms import charge_facts
from sordino.plan.cost import Cost
from sordino.plan.plan import BoundQuestion, Plan, bind_question
from sordino.plan.private_bounds import plan_private_bounds
from sordino.plan.releases import Family
from sordino.plan.suggestion import plan_suggestion
from sordino.privacy.budget import Budget
from sordino.query.bounds import Bounds
from sordino.query.dataset import Dataset
from sordino.query.front.sql import parse
from sordino.query.front.text import sql_text
from sordino.query.tree import Query
from sordino.release import rehearse
from sordino.server.link import JSON, Facts
from sordino.server.made_up_rows import made_up
from sordino.server.offers import offer as read_offer
from sordino.server.web.workers import Workers
from sordino.session import Session
from sordino.workloads.grouping_sets import GroupingSetsPlan, plan_grouping_sets, rehearse_rows
from sordino.workloads.release import rehearse_marginals

__all__ = ["Planner", "Priced", "curve", "preview", "sketch", "suggestion"]

_KEPT = 1000
_MADE_UP = 2000
_LITTLE_NOISE = 100
_TURNS = 100
_turns = itertools.count()
_SUGGEST = {"epsilon", "columns", "keys", "query_epsilon"}


@dataclass(frozen=True)
class Priced:
    """What a question would cost and be like, in plain values. `question` and `offer` are the same texts for whatever
    is the same question at the same offer; `epsilon` is what the answer alone satisfies.
    """

    question: str
    offer: str
    epsilon: Fraction
    view: Mapping[str, JSON]


def preview(
    data: bytes,
    dialect: str,
    meter: TwoMeterFilter,
    sql: str,
    given: Mapping[str, JSON],
    shown: str = "text",
) -> Priced:
    """The price of one SELECT; `shown` are the longer texts to write: "text", "details", "sql"."""
    with _located(sql):
        cost = Cost.offered(**read_offer(given))
        question = _asked(data, sql, cost)
        plan = _planned(question, cost, meter, dialect)
    view: dict[str, JSON] = {
        "errors": _finite(plan.errors()), "confidence": float(cost.confidence), "mechanism": _family(plan),
        "private_keys": isinstance(plan, Plan) and plan.private_keys, "promise": plan.promise, "notes": list(plan.notes),
        "charge": dict(charge_facts(plan.charge)), **_share(plan.budget),
    }  # fmt: skip
    if "text" in shown:
        view["text"] = plan.explain()
    if "details" in shown:
        view["details"] = plan.explain(details=True)
    if "sql" in shown:
        view["sql"] = plan.sql(dialect)
    return Priced(
        sql_text(question.query), str(cost), plan.epsilon, {"epsilon": str(plan.epsilon), **view}
    )


def suggestion(
    data: bytes,
    dialect: str,
    meter: TwoMeterFilter,
    table: str,
    given: Mapping[str, JSON],
    shown: str = "text",
) -> Priced:
    """The price of a search for bounds."""
    del shown
    if unknown := set(given) - _SUGGEST:
        rule = f"a suggestion takes {', '.join(sorted(_SUGGEST))}"
        raise InvalidInput(sorted(unknown)[0], rule, "Leave it out.")
    asked: dict[str, Any] = dict(read_offer(given))
    if "epsilon" not in asked:
        raise InvalidInput("no epsilon", "a suggestion has a price", "Pass epsilon 0.1.")
    plan = plan_suggestion(_dataset(data), meter, table or None, **asked)
    rehearse_suggestion(plan, dialect)
    view: dict[str, JSON] = {
        "errors": {}, "promise": plan.promise, "notes": [], "text": plan.explain(),
        "charge": dict(charge_facts(plan.charge)), **_share(plan.budget),
    }  # fmt: skip
    return Priced(plan.question, plan.offer, plan.epsilon, {"epsilon": str(plan.epsilon), **view})


def curve(
    data: bytes,
    dialect: str,
    meter: TwoMeterFilter,
    sql: str,
    given: Mapping[str, JSON],
    epsilons: Sequence[str],
) -> list[JSON]:
    """Error against price: the errors to expect at each epsilon, and which part of the budget that takes."""
    with _located(sql):
        return _curve(data, sql, dialect, meter, given, epsilons)


def _curve(
    data: bytes,
    sql: str,
    dialect: str,
    meter: TwoMeterFilter,
    given: Mapping[str, JSON],
    epsilons: Sequence[str],
) -> list[JSON]:
    costs = [Cost.offered(**read_offer({**given, "epsilon": epsilon})) for epsilon in epsilons]
    question = _asked(data, sql, costs[0])
    first = _planned(question, costs[0], meter, dialect)
    if costs[0].private_bounds or isinstance(first, GroupingSetsPlan):
        # bounds that are searched for a part of epsilon are others at each epsilon, and so are tables that agree
        plans = [
            first,
            *(_planned(question, cost, meter, dialect, rehearsed=False) for cost in costs[1:]),
        ]
        points = [(_spent(plan), _family(plan), plan.errors(), plan.budget) for plan in plans]
    else:
        found = question.bound.points(costs, meter)
        points = [(one.price.epsilon, one.price.family, one.errors, one.budget) for one in found]
    return [
        {"epsilon": str(epsilon), "errors": _finite(errors), "mechanism": family, **_share(budget)}
        for epsilon, family, errors, budget in points
    ]


def _spent(plan: Plan | GroupingSetsPlan) -> Fraction:
    """The epsilon of the answer itself, without searches for bounds."""
    return plan.price.epsilon if isinstance(plan, Plan) else plan.epsilon


def _family(plan: Plan | GroupingSetsPlan) -> Family:
    return plan.price.family if isinstance(plan, Plan) else "gaussian"


def sketch(data: bytes, sql: str) -> JSON:
    """The question's answer over made-up rows with next to no noise: what an answer would look like, about nobody."""
    with _located(sql):
        answer = _rehearsal(data, next(_turns) // _TURNS).sql(sql, epsilon=_LITTLE_NOISE)
    return {"rows": _MADE_UP, "epsilon": _LITTLE_NOISE, "answer": json.loads(answer.to_json())}


@lru_cache(maxsize=4)
def _rehearsal(data: bytes, turn: int) -> Session:
    """A session over made-up rows, kept for some questions: what it charges is about nobody."""
    del turn
    dataset = made_up(_dataset(data), _MADE_UP)
    budget = Budget(_LITTLE_NOISE * _TURNS * 10, Fraction(1, 1000))
    return Session(Dataset(tables=dataset.tables, budget=budget, reserved_delta=Fraction(1, 2000)))


def known_beforehand(
    data: bytes, dialect: str, meter: TwoMeterFilter, sql: str, given: Mapping[str, JSON]
) -> frozenset[str]:
    """The outputs of a question whose precision follows from its price alone, whatever the data are.

    None where bounds are found in the data, or rows are chosen by their noisy numbers: those that are shown again and
    again are the ones whose noise was large.
    """
    rest = {
        name: value for name, value in given.items() if name not in ("epsilon", "error", "rows")
    }
    query = parse(sql)
    if rest.get("bounds") or query.having is not None or query.limit is not None or query.offset:
        return frozenset()
    point: Any = _curve(data, sql, dialect, meter, rest, ["1"])[0]
    return frozenset(name for name, error in point["errors"].items() if error is not None)


@contextlib.contextmanager
def _located(sql: str) -> Iterator[None]:
    """Refusals say where in the question they are, also where only the word is known."""
    try:
        yield
    except InvalidInput as error:
        if error.place is None and error.word:
            quoted = error.word.startswith("'")
            pattern = (
                re.escape(error.word)
                if quoted
                else rf"(?<![\w'])\"?{re.escape(error.word)}\"?(?![\w'])"
            )
            found = re.search(pattern, sql, re.IGNORECASE)
            if found is not None:
                error.place = found.span()
        raise


@dataclass(frozen=True)
class _Question:
    """A question about a declaration, by the bounds and measures of an offer: what is the same at every price."""

    data: bytes
    sql: str
    bounds: Bounds
    bias: bool | None

    @cached_property
    def query(self) -> Query:
        """What is asked."""
        return parse(self.sql)

    @cached_property
    def bound(self) -> BoundQuestion:
        """It bound to the declaration."""
        return bind_question(self.query, _dataset(self.data), self.bounds, self.bias)


class _Lately:
    """The questions that were planned lately, the newest last, as long as all together are small."""

    def __init__(self, most: int) -> None:
        self._most, self._size, self._lock = most, 0, threading.Lock()
        self._found: dict[_Question, tuple[_Question, int]] = {}

    def same(self, question: _Question) -> _Question:
        """The question as it was planned before, or as it is."""
        with self._lock:
            return self._found.get(question, (question, 0))[0]

    def keep(self, question: _Question, size: int) -> None:
        """Keep what was worked out for a question of about this many characters of SQL; forget the oldest instead."""
        with self._lock:
            self._size -= self._found.pop(question, (question, 0))[1]
            if size > self._most // 4:
                return
            self._found[question] = question, size
            self._size += size
            while self._size > self._most:
                self._size -= self._found.pop(next(iter(self._found)))[1]


_lately = _Lately(1_000_000)  # about 50,000 nodes of trees, or 40 MB


def _asked(data: bytes, sql: str, cost: Cost) -> _Question:
    return _lately.same(_Question(data, sql, cost.bounds, cost.bias))


def _planned(
    question: _Question, cost: Cost, meter: TwoMeterFilter, dialect: str, *, rehearsed: bool = True
) -> Plan | GroupingSetsPlan:
    """As a session plans, without an engine."""
    query, dataset = question.query, _dataset(question.data)
    if query.sets is not None:
        sets = plan_grouping_sets(query, dataset, cost, meter)
        if rehearsed:
            rehearse_marginals(sets.workload, dialect)
            rehearse_rows(sets)
        return sets
    first = plan_private_bounds(query, dataset, cost, meter) if cost.private_bounds else None
    if first is not None:
        rehearse_searches(first.searched, dialect)
        for plan in first.rehearsals if rehearsed else ():
            rehearse(plan, dialect)
        return first
    plan = question.bound.plan(cost, meter)
    if rehearsed:
        rehearse(plan, dialect)
    _lately.keep(
        question,
        20 * len(question.sql) + 2 * sum(statement.rough_size for statement in plan.statements),
    )
    return plan


def _finite(errors: Mapping[str, float | None]) -> dict[str, JSON]:
    """None where an error depends on data and nothing was assumed, or has no bound."""
    return {
        name: None if error is None or not math.isfinite(error) else error
        for name, error in errors.items()
    }


def _share(budget: BudgetShare) -> dict[str, JSON]:
    taken = None if budget.taken is None else float(budget.taken)
    return {"takes": taken, "left": float(budget.left), "fits": budget.fits}


@lru_cache(maxsize=64)
def _dataset(data: bytes) -> Dataset:
    """Written by this server itself, from what its engine process pushed."""
    found: Dataset = pickle.loads(data)  # noqa: S301
    return found


def _warm() -> None:
    """A question about nothing: whatever is loaded at first use is loaded."""
    import pyarrow as pa

    rows = pa.table({"who": [1], "x": [0]})
    columns = {"x": {"type": "int", "min": 0, "max": 9}}
    budget = Budget(1, Fraction(1, 10**6))
    tables = Dataset(rows, name="rows", unit="who", max_rows=1, columns=columns, budget=budget)
    sql = "SELECT x, COUNT(*) AS n, AVG(x) AS m FROM rows GROUP BY x"
    data = pickle.dumps(tables)
    curve(data, "duckdb", TwoMeterFilter(budget), sql, {}, ["0.1", "0.2"])
    sketch(data, sql)


class Planner:
    """Where plans are made: in this many processes of their own, or, with none, in threads of this one."""

    def __init__(self, processes: int = 0) -> None:
        self.processes = processes
        self._workers = Workers("plan", processes, _warm)
        self._pickled: dict[str, tuple[Dataset, bytes, str]] = {}
        self._made: dict[tuple[Any, ...], Priced] = {}
        """Prices that were worked out: the same question has the same price until something is charged."""

    def warm(self) -> None:
        """Let the first question be no slower than others: the processes start now."""
        self._workers.warm()

    def _known(self, name: str, facts: Facts) -> tuple[Dataset, bytes, str]:
        found = self._pickled.get(name)
        if found is None or found[0] is not facts.dataset:
            data = pickle.dumps(facts.dataset)
            declared = hashlib.sha256(
                repr((dict(facts.dataset.tables), facts.dry_run)).encode()
            ).hexdigest()
            found = self._pickled[name] = (facts.dataset, data, declared)
        return found

    def edition(self, name: str, facts: Facts) -> str:
        """What answers depend on beside question and offer: the declaration, and which data it is about."""
        return f"{self._known(name, facts)[2]}:{facts.edition}"

    async def priced(
        self,
        name: str,
        facts: Facts,
        analyst: str | None,
        kind: Literal["sql", "suggest"],
        text: str,
        given: Mapping[str, JSON],
        shown: str = "",
    ) -> Priced:
        """The price of a question of somebody, by the newest facts."""
        make, data, meter = (
            preview if kind == "sql" else suggestion,
            self._known(name, facts)[1],
            facts.meter(analyst),
        )
        key = (
            self.edition(name, facts),
            name,
            meter,
            kind,
            text,
            repr(sorted(given.items())),
            shown,
        )
        found = self._made.get(key)
        if found is None:
            found = await self._workers.run(
                partial(make, data, facts.dialect, meter, text, given, shown)
            )
            if len(self._made) >= _KEPT:
                self._made.clear()
            self._made[key] = found
        return found

    async def curve(
        self,
        name: str,
        facts: Facts,
        analyst: str | None,
        sql: str,
        given: Mapping[str, JSON],
        epsilons: Sequence[str],
    ) -> list[JSON]:
        """Error against price."""
        data, meter = self._known(name, facts)[1], facts.meter(analyst)
        return await self._workers.run(
            partial(curve, data, facts.dialect, meter, sql, given, epsilons)
        )

    async def known_beforehand(
        self, name: str, facts: Facts, sql: str, given: Mapping[str, JSON]
    ) -> frozenset[str]:
        """The outputs whose precision follows from the price alone:
        as if nothing had been spent, which does not matter.
        """
        data, whole = self._known(name, facts)[1], facts.meters[None]
        unspent = TwoMeterFilter(whole.budget, whole.reserved_delta)
        return await self._workers.run(
            partial(known_beforehand, data, facts.dialect, unspent, sql, dict(given))
        )

    async def sketch(self, name: str, facts: Facts, sql: str) -> JSON:
        """What an answer would look like, over made-up rows."""
        return await self._workers.run(partial(sketch, self._known(name, facts)[1], sql))

    def close(self) -> None:
        """End the processes."""
        self._workers.close()
