"""A plan: what runs and what it costs, made together from the query and the declaration alone, so that they cannot
disagree.

Every error that a user can make is raised here, before anything is spent or any data are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial

from sqlglot import exp

from sordino.accounting.budget_share import BudgetShare
from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput, TooLarge
from sordino.plan import arithmetic
from sordino.plan.beyond import MEASURED_ONLY, Measure
from sordino.plan.bind import Asked, ask
from sordino.plan.channels import Channel, Column, channels_of
from sordino.plan.cost import Cost
from sordino.plan.dialects import DEFAULT
from sordino.plan.keys import Key, all_keys, bind_keys
from sordino.plan.price import Price, price
from sordino.plan.pricing import best_price
from sordino.plan.relations import Whose
from sordino.plan.releases import Beyond, Drawn, Family, Keys, Release, Sums
from sordino.plan.scaling import Term
from sordino.plan.sensitivity import WEIGHT, Contribution, Norm
from sordino.plan.statement import Statement, cell_sums, chosen_values, group_sums
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query import tree
from sordino.query.aggregates.count import Rows
from sordino.query.aggregates.partial import Bounding
from sordino.query.bounds import Bounds
from sordino.query.dataset import Dataset
from sordino.query.having import check_having, check_order
from sordino.query.meaning.expressions import typed
from sordino.query.meaning.unlisted_values import expect_listed_keys

__all__ = ["BoundQuestion", "Plan", "PricePoint", "bind_question", "make_plan"]

_MOST_ROWS, _MOST_GROUPS = 2**20, 2**19
_MOST_SQL = 2**22
_MOST_DRAWS = 50_000
_NORMS: dict[Family, Norm] = {"gaussian": "l2", "laplace": "l1"}


@dataclass(frozen=True)
class Plan:
    """What runs, what it costs and how its numbers become an answer; printing it explains it.

    Nothing here is from data.
    """

    query: tree.Query
    whose: Whose
    cost: Cost
    keys: tuple[Key, ...]
    who: Contribution
    price: Price
    statement: Statement | None
    note: str
    budget: BudgetShare
    unread: tuple[str, ...]
    """Public tables of the dataset that could not be read, so that their columns are as declared."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """All that leaves, each whole."""
        return self.price.releases

    @property
    def sums(self) -> tuple[Sums, ...]:
        """The releases of noisy sums."""
        return self.price.sums

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """The releases of draws, each found by its own statement."""
        return tuple(release for release in self.releases if isinstance(release, Drawn))

    @property
    def selection(self) -> Keys | None:
        """The release of keys that are not public."""
        return next((release for release in self.releases if isinstance(release, Keys)), None)

    @property
    def beyond(self) -> Beyond | None:
        """The release of what lies beyond the bounds, if that is measured."""
        return next((release for release in self.releases if isinstance(release, Beyond)), None)

    def answering(self, aggregate: tree.Aggregate) -> Sums | Drawn:
        """The release that answers an aggregate."""
        return _answering(self.releases, aggregate)

    @property
    def epsilon(self) -> Fraction:
        """What the answer alone satisfies."""
        return self.price.epsilon

    @property
    def charge(self) -> Charge:
        """What it takes from each meter."""
        return self.price.charge

    @property
    def private_keys(self) -> bool:
        """Whether keys are selected with noise."""
        return self.selection is not None

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that runs."""
        own = (getattr(release, "statement", None) for release in self.releases)
        return tuple(statement for statement in (self.statement, *own) if statement is not None)

    def sql(self, dialect: str = DEFAULT) -> str:
        """The SQL that runs, in the dialect of one engine; InvalidInput for any other."""
        return ";\n\n".join(statement.pretty(dialect) for statement in self.statements)

    @cached_property
    def promise(self) -> str:
        """What is promised about the answer, in plain words."""
        from sordino.plan.explain import privacy_statement

        return privacy_statement(self)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know about its numbers."""
        from sordino.plan.explain import reading_notes

        return reading_notes(self)

    def errors(self) -> dict[str, float | None]:
        """The half-width to expect of each aggregate;
        None where it depends on data and no number of rows was assumed.
        """
        return _errors(self.query, self.cost)(self.price)

    def under(self, bounds: Bounds) -> dict[str, float | None]:
        """The errors to expect under tighter bounds, at the same epsilon;
        pure noise is tried as well, where it may be.
        """
        who, now, share = replace(self.who, bounds=bounds), self.price, self.releases[0].spent
        asked = [replace(release, who=who, share=None) for release in self.releases]
        families = {now.family} if self.cost.mechanism else {now.family, "laplace"}
        offers = [
            price(asked, family, now.epsilon, now.noise_delta, share.delta)
            for family in sorted(families)
        ]
        errors = map(_errors(self.query, self.cost), offers)
        return min(
            errors,
            key=lambda each: _geometric_mean([error for error in each.values() if error] or [1.0]),
        )

    def explain(self, *, details: bool = False) -> str:
        """The plan in words; with `details` also what it takes from each meter of the budget."""
        from sordino.plan.explain import explain

        return explain(self, details=details)

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        from sordino.plan.explain import plan_card

        return plan_card(self.explain())

    def __repr__(self) -> str:
        tables = ", ".join(self.whose.tables)
        parts = f"{counted(len(self.sums), 'sum')}, {counted(len(self.drawn), 'column')} of draws"
        return f"Plan({tables}, {parts}, {self.charge})"


@dataclass(frozen=True)
class BoundQuestion:
    """A query bound to the declaration: all that a plan has before it has a price, so that many prices can be tried.

    Offers for it may differ in all but the bounds and the measures that it was bound by.
    """

    by: tuple[Bounds, bool | None]
    query: tree.Query
    rows: Asked
    keys: tuple[Key, ...]
    who: Contribution
    others: list[Release]
    sums: dict[Norm, _Summed]
    asked: dict[Family, list[Release]]
    unread: tuple[str, ...]
    _statements: dict[Norm, Statement | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What runs, for noise of each norm, once it was needed: the price changes nothing in it."""

    def priced(self, cost: Cost, meter: TwoMeterFilter) -> tuple[Price, str]:
        """The best price for an offer, and in words why."""
        if (cost.bounds, cost.bias) != self.by:
            raise ValueError("this offer has other bounds or measures")
        return best_price(
            self.asked, cost, meter, _errors(self.query, cost), _widths(self.query, cost)
        )

    def plan(self, cost: Cost, meter: TwoMeterFilter) -> Plan:
        """The plan at a cost, for what the meter still allows."""
        best, note = self.priced(cost, meter)
        statement, share = self._statement(_NORMS[best.family]), BudgetShare.of(best.charge, meter)
        plan = Plan(
            self.query,
            self.rows.whose,
            cost,
            self.keys,
            self.who,
            best,
            statement,
            note,
            share,
            self.unread,
        )
        _expect_small(plan)
        return plan

    def points(self, costs: Sequence[Cost], meter: TwoMeterFilter) -> list[PricePoint]:
        """What it would cost and be like at many offers."""
        priced = [(self.priced(cost, meter)[0], _errors(self.query, cost)) for cost in costs]
        return [
            PricePoint(best, errors(best), BudgetShare.of(best.charge, meter))
            for best, errors in priced
        ]

    def _statement(self, norm: Norm) -> Statement | None:
        if norm not in self._statements:
            terms, measure = self.sums[norm].terms, self.sums[norm].measure
            selections = [release.quota for release in self.others if isinstance(release, Keys)]
            made = None
            if terms or selections or measure is not None:
                values = {name: value.copy() for name, value in self.sums[norm].values.items()}
                nobody = measure is not None and measure.nobody
                lines = self.rows.lines([key.sql for key in self.keys], values, with_nobody=nobody)
                found = selections[0] if selections else None
                made = group_sums(lines, terms, norm=norm, found=found, measure=measure)
            self._statements[norm] = made
        return self._statements[norm]


@dataclass(frozen=True)
class PricePoint:
    """What a question would cost and be like at one offer."""

    price: Price
    errors: dict[str, float | None]
    budget: BudgetShare


def make_plan(query: tree.Query, dataset: Dataset, cost: Cost, meter: TwoMeterFilter) -> Plan:
    """The plan of a query at a cost, for what the meter still allows."""
    return bind_question(query, dataset, cost.bounds, cost.bias).plan(cost, meter)


def bind_question(
    query: tree.Query, dataset: Dataset, asked_bounds: Bounds, bias: bool | None
) -> BoundQuestion:
    """A query bound to the declaration, with the bounds and measures of an offer;
    whatever is wrong with it is refused.
    """
    if query.sets is not None:
        rule = "CUBE, ROLLUP and GROUPING SETS are planned as a workload"
        raise InvalidInput("sets of keys", rule, "Ask a session, or group by a plain list of keys.")
    rows = ask(query, dataset)
    whose = rows.whose
    _check_names(query)
    keys = bind_keys(
        [(_key_name(query, key), typed(key, rows.read), rows.looked_up(key)) for key in query.keys]
    )
    if query.having is not None:
        expect_listed_keys(query.having, _listed(query, keys))
    _expect_values(keys, whose)
    private = any(key.private for key in keys)
    possible = None if private else len(all_keys(keys)) if keys else 1
    replaced = not keys and not whose.public and whose.neighbors is Neighbors.REPLACE
    certain = (
        whose.owner == "row" and whose.every and whose.neighbors is Neighbors.REPLACE and not keys
    )
    channels, columns = channels_of(_asked(query), rows, certain=certain, replaced=replaced)
    _expect_few_draws(columns, possible)
    bounds = _tightened(whose, asked_bounds)
    who = Contribution(
        whose.neighbors, bounds, possible, bool(keys), whose.by_row, certain, whose.public
    )
    _expect_bounded(
        whose, who, [channel.partial.bounding for channel in channels] + ["scale"] * bool(columns)
    )
    key_cells = [key.sql for key in keys]
    weight = 1 if whose.by_row else WEIGHT
    drawn = []
    for i, column in enumerate(columns):
        lines = rows.lines(key_cells, {"q": column.value})
        drawn.append(
            Drawn(
                f"q{i}",
                who,
                weight,
                None,
                column,
                cell_sums(lines, "q", who.expect_quota("scale", "l1")),
            )
        )
    others: list[Release] = [*drawn, *([Keys("keys", who, weight, None)] if private else [])]
    sums: dict[Norm, _Summed] = {}
    for norm in _NORMS.values():
        same = all(who.applied(channel.partial.bounding, norm) == bounds for channel in channels)
        sums[norm] = (
            sums["l2"]
            if same and sums
            else _summed(rows, who, channels, key_cells, bias, norm, drawn=bool(drawn))
        )
    asked: dict[Family, list[Release]] = {}
    for family, norm in _NORMS.items():
        measure = sums[norm].measure
        beyond = [] if measure is None else [Beyond("beyond", who, measure.unit, None, measure)]
        all_ = [*sums[norm].releases, *others, *beyond]
        asked[family] = [
            _divided(release, query, all_) if isinstance(release, Drawn) else release
            for release in all_
        ]
    unread = tuple(
        table.name for table in dataset.tables.values() if table.contents and table.contents.failed
    )
    return BoundQuestion((asked_bounds, bias), query, rows, keys, who, others, sums, asked, unread)


@dataclass(frozen=True)
class _Summed:
    """What is summed, under the bounds that suit noise of one norm: the releases, the terms of the statement that most
    of them share, the values in its lines, and what is measured beside them.
    """

    releases: list[Sums]
    terms: list[Term]
    values: dict[str, exp.Expr]
    measure: Measure | None


def _summed(
    rows: Asked,
    who: Contribution,
    channels: Sequence[Channel],
    keys: Sequence[exp.Expr],
    bias: bool | None,
    norm: Norm,
    *,
    drawn: bool,
) -> _Summed:
    releases: list[Sums] = []
    terms: list[Term] = []
    values: dict[str, exp.Expr] = {}
    chosen: dict[Term, dict[str, exp.Expr]] = {}
    for i, channel in enumerate(channels):
        several, bounding = len(channel.values) > 1, channel.partial.bounding
        own = {f"v{i}_{j}" if several else f"v{i}": value for j, value in enumerate(channel.values)}
        quota = who.expect_quota(bounding, norm)
        term = Term(channel.partial, str(i), tuple(own), quota)
        if bounding == "choose":
            few = who.applied(bounding, norm).groups
            term = replace(
                term,
                groups=few
                if few is not None and (who.possible is None or few < who.possible)
                else None,
            )
            chosen[term] = own
            copied = {name: value.copy() for name, value in own.items()}
            releases.append(
                Sums(f"s{i}", who, 1, None, channel, chosen_values(rows.lines(keys, copied), term))
            )
            continue
        unit = WEIGHT if not who.by_row and (quota.scaled or bounding == "scale") else 1
        releases.append(Sums(f"s{i}", who, unit, None, channel))
        terms.append(term)
        values |= own
    measure = _measured(rows, who, [*terms, *chosen], bias, drawn=drawn)
    for own in (
        chosen[term] for term in (() if measure is None else measure.terms) if term in chosen
    ):
        values |= own
    return _Summed(releases, terms, values, measure)


def _measured(
    rows: Asked, who: Contribution, terms: Sequence[Term], bias: bool | None, *, drawn: bool
) -> Measure | None:
    """What is measured of that which lies beyond the bounds. Default: where there are bounds of persons."""
    if who.public or bias is False or (who.by_row and not bias):
        return None
    ends = tuple(
        term for term in terms if len(term.partial.grids) == 1 and term.partial.grids[0].cells > 1
    )
    if who.by_row:
        return Measure((), ends, nobody=False, by_row=True) if ends else None
    biting = tuple(term for term in terms if term.partial.bounding != "once" or term.quota.scaled)
    if drawn and not biting:
        biting = (Term(Rows(), MEASURED_ONLY, (), who.expect_quota("clip", "l1")),)
    return Measure(biting, ends, rows.keeps_nobody, by_row=False) if biting else None


def _expect_values(keys: Sequence[Key], whose: Whose) -> None:
    """Refuse keys that a public table lists, where it lists none: there would be no group to answer, for a price."""
    for key in keys:
        looked_up = key.looked_up
        contents = None if looked_up is None else looked_up.table.contents
        if (
            looked_up is None
            or contents is None
            or whose.public
            or looked_up.column not in contents.empty
        ):
            continue
        rule = f"its values are those of the public table {looked_up.table.name}, which has none there: no group is possible"
        raise InvalidInput(
            f"GROUP BY {key.name}", rule, "Fill the table, or group by another column."
        )


def _expect_few_draws(columns: list[Column], groups: int | None) -> None:
    """Refuse draws for very many public groups: each is drawn by itself, whether or not anybody is in the group."""
    draws = (groups or 0) * sum(column.draws.draws for column in columns)
    if draws > _MOST_DRAWS:
        first = columns[0].draws
        these = f"{draws:,} in {counted(groups or 0, 'group')}"
        rule = (
            f"at most {_MOST_DRAWS:,} {first.noun} can be drawn for one answer; these are {these}"
        )
        hint = "Use wider buckets, declare narrower min and max of the keys, or ask for AVG."
        raise TooLarge(f"{first.noun} of {first.what}", rule, hint)


def _expect_small(plan: Plan) -> None:
    """Refuse a plan that would take the engine very long whatever the data are."""
    if sum(statement.rough_size for statement in plan.statements) < _MOST_SQL // 4:
        return  # it is not written in a dialect that may not be the engine's
    size = 0
    for done, statement in enumerate(plan.statements, 1):
        size += len(statement.text())
        if size > _MOST_SQL:
            parts = f"{done} of {len(plan.statements)} parts"
            rule = f"it may become at most {_MOST_SQL:,} characters of SQL, and {parts} have more"
            hint = "Ask for fewer quantiles or shorter conditions at once, or compute a column beforehand."
            raise TooLarge("a question with very much SQL", rule, hint)


def _asked(query: tree.Query) -> dict[tree.Aggregate, str]:
    """The aggregates, each with the name of the first output that asks for it."""
    found: dict[tree.Aggregate, str] = {}
    for output in query.outputs:
        for aggregate in tree.aggregates_in(output.value):
            found.setdefault(aggregate, output.name)
    return found


def _divided(release: Drawn, query: tree.Query, asked: Sequence[Release]) -> Drawn:
    """Draws whose intervals leave room for those that arithmetic combines with them."""
    values = [output.value for output in query.outputs]
    own = [
        value
        for value in values
        if any(aggregate in release.answers for aggregate in tree.aggregates_in(value))
    ]
    if not release.column.draws.is_number and any(
        not isinstance(value, tree.Aggregate) for value in own
    ):
        rule = "arithmetic is of numbers, and this is a value"
        what = f"{release.column.draws.noun} of {release.column.draws.what}"
        raise InvalidInput(what, rule, "Ask for it separately.")
    return replace(
        release,
        pieces=max(
            (arithmetic.pieces(value, partial(_answering, asked)) for value in own), default=1
        ),
    )


def _answering(releases: Sequence[Release], aggregate: tree.Aggregate) -> Sums | Drawn:
    return next(
        one for one in releases if isinstance(one, Sums | Drawn) and aggregate in one.answers
    )


def _key_name(query: tree.Query, key: tree.Expression) -> str:
    return next(
        (output.name for output in query.outputs if output.value == key),
        getattr(key, "name", "an expression"),
    )


def _listed(query: tree.Query, keys: tuple[Key, ...]) -> dict[str, tuple[tree.Value, ...]]:
    """The values of the answer's columns that are public keys."""
    found = zip(query.keys, keys, strict=True)
    values = [(key, bound.values) for key, bound in found if bound.values is not None]
    return {
        output.name: known
        for output in query.outputs
        for key, known in values
        if output.value == key
    }


def _check_names(query: tree.Query) -> None:
    names = [output.name for output in query.outputs]
    if not _asked(query):
        what = "a query without aggregates"
        raise InvalidInput(what, "rows are never shown", "Add COUNT(*) or another aggregate.")
    if query.having is not None:
        check_having(query.having, names)
    check_order(query.order, names)


def _tightened(whose: Whose, own: Bounds) -> Bounds:
    """The owner's bounds, tightened by those of the question."""
    owned, asked = whose.bounds.given, own.given
    for name, bound in asked.items():
        if whose.owner == "nobody":
            rule, hint = (
                "this question is about public tables, which protect nobody",
                f"Leave out {name}.",
            )
            raise InvalidInput(f"{name}={bound}", rule, hint)
        if whose.by_row:
            rule = "every person has one row here, so that there is nothing to bound"
            raise InvalidInput(f"{name}={bound}", rule, f"Leave out {name}.")
        if name in owned and bound > owned[name]:
            rule = f"a question may tighten the owner's bounds, never widen them, and {name} is {owned[name]}"
            raise InvalidInput(
                f"{name}={bound}", rule, f"Pass at most {name}={owned[name]}, or leave it out."
            )
    return whose.bounds.within(own)


def _expect_bounded(whose: Whose, who: Contribution, boundings: Sequence[Bounding]) -> None:
    """Refuse where nothing bounds how much of one person counts, or where a bound in use is very large."""
    if whose.by_row:
        return
    if any(who.quota(bounding, "l2") is None for bounding in boundings):
        table = whose.tables[0]
        rule = "this query needs to know how many rows of one person count, and bounds are never guessed"
        hint = f"Add the line `max_rows = 10` under [tables.{table}], or pass max_rows=10 with the question."
        raise InvalidInput(f"tables.{table} without max_rows", rule, hint)
    for name, bound in who.bounds.given.items():
        most = _MOST_GROUPS if name == "max_groups" else _MOST_ROWS
        if bound > most and (name != "max_groups" or who.possible is None or bound < who.possible):
            hint = "Choose a smaller bound: noise grows with it."
            raise InvalidInput(f"{name} = {bound}", f"it can be at most {most}", hint)


def _errors(query: tree.Query, cost: Cost) -> Callable[[Price], dict[str, float | None]]:
    """The errors to expect of each aggregate, as a function of the price."""
    rows = None if cost.rows is None else float(cost.rows)

    def errors(price: Price) -> dict[str, float | None]:
        find, found = partial(_answering, price.releases), {}
        for output in query.outputs:
            if isinstance(output.value, tree.Aggregate):
                found[output.name] = find(output.value).error(
                    output.value, float(cost.confidence), rows
                )
            elif tree.aggregates_in(output.value):
                found[output.name] = arithmetic.error(output.value, find, cost.confidence)
        return found

    return errors


def _widths(query: tree.Query, cost: Cost) -> Callable[[Price, float], list[float]]:
    """The half-widths of all aggregates; of arithmetic whose error depends on data, in the mean those of its parts."""
    confidence = float(cost.confidence)

    def widths(price: Price, rows: float) -> list[float]:
        find, found = partial(_answering, price.releases), []
        for output in query.outputs:
            if not (parts := tree.aggregates_in(output.value)):
                continue
            alone = isinstance(output.value, tree.Aggregate)
            whole = None if alone else arithmetic.error(output.value, find, cost.confidence)
            if whole is None:
                each = [
                    find(part).error(part, confidence, float(cost.rows or rows)) for part in parts
                ]
                known = [width for width in each if width is not None and math.isfinite(width)]
                whole = _geometric_mean(known) if known else math.inf
            found.append(whole)
        return found

    return widths


def _geometric_mean(widths: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, widths)) / len(widths)) if all(widths) else 0.0
