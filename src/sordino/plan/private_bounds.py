"""Bounds found inside a question: the arguments of aggregates that have none are searched first, for a share of
epsilon.

Then the question is planned again with CLAMP(x, lower, upper) in place of x. One charge covers both, and does not
depend on what is found: the kind of noise is chosen before. The proof is in query/bounds_search.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput
from sordino.plan.bind import Asked, ask
from sordino.plan.cost import Cost
from sordino.plan.explain import promise
from sordino.plan.plan import Plan, make_plan
from sordino.plan.searches import Searched, numbers
from sordino.plan.statement import Statement
from sordino.privacy.exact import four_digits, readable
from sordino.query import tree
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.registry import kind_of
from sordino.query.bounds_search import Found, NumberSearch, Price
from sordino.query.dataset import Dataset
from sordino.query.meaning.expressions import typed
from sordino.query.three_digits import LARGEST, SMALLEST
from sordino.query.types import Number

__all__ = ["PrivateBounds", "plan_private_bounds"]

_SHARE, _MOST = Fraction(3, 10), Fraction(1, 2)
"""The part of epsilon for one search, and for all of them together at most."""
_COUNTING = Fraction(1, 10)
_VAGUE = 0.25
"""A share that is not known better than this is no reason to trust the bounds."""

Limits = tuple[Fraction, Fraction]
_UNIT = Fraction(0), Fraction(1)
_EXTREMES: tuple[Limits, ...] = (
    (-LARGEST, LARGEST), (Fraction(0), SMALLEST / 20), (-SMALLEST / 20, Fraction(0)), (LARGEST * 19 / 20, LARGEST),
    (-LARGEST, -LARGEST * 19 / 20),
)  # fmt: skip
"""The widest bounds that can be found, and the narrowest near zero and far from it."""


@dataclass(frozen=True)
class PrivateBounds(Plan):
    """A question with searches before it. What it inherits is its plan for the bounds 0 to 1, from which the one that
    runs differs in these alone; `settled` makes that.
    """

    asked: tree.Query
    dataset: Dataset
    meter: TwoMeterFilter
    arguments: tuple[tree.Expression, ...]
    searched: tuple[Searched, ...]

    @property
    def share(self) -> Fraction:
        """What all searches spend."""
        return sum((one.price.epsilon for one in self.searched), Fraction(0))

    @property
    def epsilon(self) -> Fraction:
        """What all of it spends."""
        return self.share + self.price.epsilon

    @cached_property
    def charge(self) -> Charge:
        """What both stages take from the meters."""
        return sum((one.charge for one in self.searched), NOTHING) + self.price.charge

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What runs first, and what would run then if 0 and 1 were found."""
        return (*self.first_statements, *super().statements)

    @property
    def first_statements(self) -> tuple[Statement, ...]:
        """What the searches run."""
        return tuple(one.statement for one in self.searched)

    @cached_property
    def promise(self) -> str:
        """What is promised about the answer, in plain words."""
        return promise(self.whose, self.epsilon, self.price.delta)

    def settled(self, found: Sequence[Limits]) -> Plan:
        """The plan of the question with the bounds that were found; its charge is the one that was made."""
        second = replace(self.cost, mechanism=self.price.family)
        plan = _planned(
            self.asked,
            dict(zip(self.arguments, found, strict=True)),
            self.dataset,
            second,
            self.meter,
        )
        if plan.charge != self.price.charge:
            raise AssertionError("what is found must not change the charge")
        return plan

    @property
    def rehearsals(self) -> list[Plan]:
        """The plans for bounds of all kinds, to be tried before anything is charged."""
        return [
            self.settled([_inside(one, limits) for one in self.searched])
            for limits in (_UNIT, *_EXTREMES)
        ]

    def remarks(self, found: Sequence[Found]) -> tuple[str, ...]:
        """What a reader of the answer should know about the bounds."""
        part = readable(self.share / self.epsilon * 100) if self.epsilon else "0"
        said = []
        for one, bounds in zip(self.searched, found, strict=True):
            beyond = max(bounds.below + bounds.above, 0.0) / max(bounds.all, bounds.margin, 1.0)
            around = bounds.margin / max(bounds.all, bounds.margin, 1.0)
            doubt = (
                " TOO UNCERTAIN to rely on: epsilon is small for so few persons."
                if around > _VAGUE
                else ""
            )
            said.append(
                f"Bounds of {one.search.what} found privately: {readable(bounds.lower)} to {readable(bounds.upper)}; about "
                f"{_percent(beyond)} % (± {_percent(around)}) of the values lie beyond and "
                f"were moved to them.{doubt}"
            )
        return (*said, f"Finding bounds took {part} % of epsilon {readable(self.epsilon)}.")

    def __repr__(self) -> str:
        return f"PrivateBounds({len(self.searched)} searches, then {super().__repr__()})"


def plan_private_bounds(
    query: tree.Query, dataset: Dataset, cost: Cost, meter: TwoMeterFilter
) -> PrivateBounds | None:
    """The plan of a question whose bounds are found; None if it needs none, so that it can be planned as it is."""
    rows = ask(query, dataset)
    arguments = _unbounded(query, rows)
    if not arguments:
        return None
    if cost.epsilon is None:
        rule = (
            "the error depends on bounds that are still to be found, so it has no price beforehand"
        )
        raise InvalidInput(
            'bounds="private" with an error', rule, "Pass epsilon=0.1 or the like instead of error."
        )
    if rows.whose.public:
        rule = "this question is about public tables, whose bounds need no noise"
        raise InvalidInput('bounds="private"', rule, "Declare min and max of the columns.")
    share = cost.epsilon * min(_SHARE * len(arguments), _MOST)
    rest = cost.epsilon - share
    price = Price(share / len(arguments), _COUNTING, rest)
    sums = _only_summed(query)
    searched = tuple(
        numbers(name, typed(one, rows.read), rows, price, summed=one in sums)
        for one, name in arguments.items()
    )
    second = replace(cost, epsilon=rest, private_bounds=False)
    inside = {one: _inside(search, _UNIT) for one, search in zip(arguments, searched, strict=True)}
    assumed = _planned(query, inside, dataset, second, meter)
    own = {field.name: getattr(assumed, field.name) for field in fields(Plan)}
    return PrivateBounds(
        **own,
        asked=query,
        dataset=dataset,
        meter=meter,
        arguments=tuple(arguments),
        searched=searched,
    )


def _inside(searched: Searched, limits: Limits) -> Limits:
    """Limits such as can be found: within what is known, and apart."""
    search = searched.search
    if not isinstance(search, NumberSearch):
        raise TypeError
    lower = limits[0] if search.lower is None else max(limits[0], search.lower)
    upper = limits[1] if search.upper is None else min(limits[1], search.upper)
    if lower < upper:
        return lower, upper
    # what was tried lies beyond what is known: as near to it as can be
    if search.upper is not None:
        return (
            search.upper - 1 if search.lower is None else min(search.lower, search.upper - 1)
        ), search.upper
    return lower, lower + 1


def _planned(
    query: tree.Query,
    limits: Mapping[tree.Expression, Limits],
    dataset: Dataset,
    cost: Cost,
    meter: TwoMeterFilter,
) -> Plan:
    outputs = tuple(
        replace(output, value=_clamped(output.value, limits)) for output in query.outputs
    )
    return make_plan(replace(query, outputs=outputs), dataset, cost, meter)


def _percent(part: float) -> str:
    """A part of all, to a tenth of a percent."""
    return four_digits(round(100 * min(part, 1.0), 1))


def _clamped(value: tree.Expression, limits: Mapping[tree.Expression, Limits]) -> tree.Expression:
    """Arithmetic of aggregates, with bounds around the arguments that need them."""
    match value:
        case tree.Aggregate():
            return replace(
                value, arguments=tuple(_clamp(one, limits.get(one)) for one in value.arguments)
            )
        case tree.Call(_, parts) if tree.aggregates_in(value):
            return replace(value, arguments=tuple(_clamped(part, limits) for part in parts))
    return value


def _clamp(argument: tree.Expression, limits: Limits | None) -> tree.Expression:
    if limits is None:
        return argument
    ends = (tree.Literal(int(end) if end.denominator == 1 else end) for end in limits)
    return tree.Call("clamp", (argument, *ends))


def _unbounded(query: tree.Query, rows: Asked) -> dict[tree.Expression, str]:
    """The arguments without bounds of aggregates that need them, each with a name for people."""
    found: dict[tree.Expression, str] = {}
    for output in query.outputs:
        for aggregate in tree.aggregates_in(output.value):
            for one in _lacking(aggregate, rows):
                found.setdefault(
                    one,
                    one.name if isinstance(one, tree.Column) else f"the argument of {output.name}",
                )
    return found


def _only_summed(query: tree.Query) -> set[tree.Expression]:
    """The arguments of which nothing but sums is asked for."""
    asked = [
        aggregate for output in query.outputs for aggregate in tree.aggregates_in(output.value)
    ]
    others = {
        one for aggregate in asked if aggregate.function != "sum" for one in aggregate.arguments
    }
    return {one for aggregate in asked for one in aggregate.arguments} - others


def _lacking(aggregate: tree.Aggregate, rows: Asked) -> list[tree.Expression]:
    kind = kind_of(aggregate)
    if kind.of_persons or not aggregate.arguments:
        return []
    read = [(one, typed(one, rows.read)) for one in aggregate.arguments]
    open_ = [
        one for one, known in read if isinstance(known.type, Number) and not known.type.bounded
    ]
    if not open_ or _works([Argument("x", known) for _, known in read], aggregate):
        return []
    return open_


def _works(arguments: list[Argument], aggregate: tree.Aggregate) -> bool:
    """Whether an aggregate can be asked as it is, without bounds of its arguments."""
    kind = kind_of(aggregate)
    try:
        if kind.draws is not None:
            kind.draws(tuple(arguments), (aggregate.parameter or Fraction(0),))
        elif kind.partial is not None:
            kind.partial(tuple(arguments))
    except InvalidInput:
        return False
    return True
