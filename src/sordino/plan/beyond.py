"""What lies beyond the bounds: how many persons have more than counts, how much of theirs was left out, how many have
values at the ends of a column, how many rows name nobody.

All of it is measured person by person, over the whole answer, and released with Laplace noise of its own. The proof is
in beyond.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.plan.fragments import column, named, not_null, select, whole
from sordino.plan.scaling import Term, size
from sordino.plan.sensitivity import WEIGHT
from sordino.privacy.exact import four_digits
from sordino.privacy.wording import a_or_an, counted
from sordino.query.meaning.neutral import WideDiv
from sordino.query.types import LARGEST

__all__ = ["MEASURED_ONLY", "NODES", "Excess", "Measure", "Total", "each", "excess", "remarks"]

NODES = (0, 1, 4, 16)
"""How much a person has beyond the bound, in multiples of the bound: each person is divided between two of these."""
MEASURED_ONLY = "m"
"""The name of a term that is not released, only measured."""
_MARKED = 31
"""Of how many grids one whole number of 64 bits tells both ends."""
_SURE = Fraction(9, 10)
"""How much of the noise the weight of a node must exceed, before it counts."""
_PART = 4
"""Who has a value at an end counts there with this part of a weight:
it is less urgent, and mostly concerns more persons.
"""


@dataclass(frozen=True)
class Measure:
    """What is measured: of `terms` what persons have beyond the bounds, of `ends` who has values at the ends of a grid,
    and, where `nobody`, the rows that name no person. `by_row` says that each row is another person.
    """

    terms: tuple[Term, ...]
    ends: tuple[Term, ...]
    nobody: bool
    by_row: bool

    @property
    def width(self) -> int:
        """How many numbers it has: for each term those of the nodes, for each grid two, and that of nobody's rows."""
        return len(NODES) * len(self.terms) + 2 * len(self.ends) + self.nobody

    @property
    def unit(self) -> int:
        """The weight of one person."""
        return 1 if self.by_row else WEIGHT

    @property
    def l1(self) -> int:
        """How far one person, added or removed, moves all of them together (beyond.md, Theorem 1)."""
        return (
            len(self.ends)
            if self.by_row
            else WEIGHT * len(self.terms) + 2 * WEIGHT // _PART * len(self.ends)
        )

    def selects(self, lines: exp.Select, keys: Sequence[str]) -> list[exp.Select]:
        """What finds the numbers, in order: SELECTs with one row each, over `lines` or over what `of_persons` finds."""
        if self.by_row:
            found = [named(_summed(_is(column(term.columns[0]), end)), f"v{2 * i + j}")
                     for i, term in enumerate(self.ends) for j, end in enumerate(_ends(term))]  # fmt: skip
            return [select(found, lines, "lines", where=[not_null(key) for key in keys])]
        beyond, numbers = list[exp.Expr](), list[exp.Expr]()
        for i, term in enumerate(self.terms):
            bound = term.quota.total * size(term)[1]
            beyond.append(named(_beyond(term, i, NODES[-1] * bound), f"y{i}"))
            numbers += [_at_node(column(f"y{i}"), j, bound) for j in range(len(NODES))]
        beyond += map(column, self._marks)
        for i in range(len(self.ends)):
            name, place = self._marks[i // _MARKED], i % _MARKED
            numbers += [_marked(column(name), 1 << 2 * place + end) for end in (0, 1)]
        found = [named(_summed(number), f"v{i}") for i, number in enumerate(numbers)]
        selects = [select(found, select(beyond, "persons"), "beyond")]
        if self.nobody:
            rows = exp.Mul(this=column("rows"), expression=whole(WEIGHT))
            absent = exp.Is(this=column("u"), expression=exp.Null())
            selects.append(
                select([named(_summed(rows), f"v{len(numbers)}")], "shares", where=[absent])
            )
        return selects

    def of_persons(self) -> list[exp.Expr]:
        """What is needed of each person, over its shares: what it has,
        what of it is within bounds, who is at the ends.
        """
        found: list[exp.Expr] = []
        for i, term in enumerate(self.terms):
            found += [
                named(_counted(term, _own(term)), f"o{i}"),
                named(_counted(term, _within(term)), f"c{i}"),
            ]
        marks = (named(exp.BitwiseOrAgg(this=column(name)), name) for name in self._marks)
        return [*found, *marks]

    def shares(self) -> list[exp.Expr]:
        """What the shares must have besides what is summed anyway."""
        found: list[exp.Expr] = []
        for i, name in enumerate(self._marks):
            few = self.ends[i * _MARKED : (i + 1) * _MARKED]
            marks = [_marks(term, 2 * place) for place, term in enumerate(few)]
            together = reduce(lambda one, more: exp.Add(this=one, expression=more), marks)
            found.append(named(exp.BitwiseOrAgg(this=together), name))
        return [*found, named(exp.Count(this=exp.Star()), "rows")] if self.nobody else found

    @property
    def _marks(self) -> list[str]:
        """The whole numbers whose bits say who has a value at which end, two bits for each grid."""
        return [f"e{i}" for i in range(-(-len(self.ends) // _MARKED))]


def _counted(term: Term, share: exp.Expr) -> exp.Expr:
    """A sum over the groups of a person; rows of a table fit into 64 bits, values may not."""
    return (
        exp.Sum(this=share)
        if term.partial.bounding == "clip" and term.partial.grids
        else _long(exp.Sum(this=share))
    )


def _within(term: Term) -> exp.Expr:
    """What of a person's share of one group is within the bounds; nothing of groups that are not chosen."""
    own = size(term)[0]
    if term.groups is None:
        return own
    chosen = exp.LTE(this=column(f"g{term.name}"), expression=whole(term.groups))
    return exp.Case(ifs=[exp.If(this=chosen, true=own)], default=whole(0))


def _long(number: exp.Expr) -> exp.Expr:
    return exp.cast(number, "BIGINT")


def _beyond(term: Term, i: int, most: int) -> exp.Expr:
    """What a person has beyond what counts, up to a bound."""
    own, counts = column(f"o{i}"), column(f"c{i}")
    nothing: exp.Expr = exp.EQ(this=own, expression=counts)
    left: exp.Expr = counts.copy()
    if term.partial.bounding == "choose":
        left = exp.func("LEAST", left, whole(term.quota.total))
        nothing = exp.EQ(this=own, expression=left.copy())
    elif term.quota.scaled:
        weight = column(f"w{term.name}")
        scaled = exp.Mul(this=left, expression=weight)
        left = exp.Paren(this=WideDiv(this=exp.Paren(this=scaled), expression=whole(WEIGHT)))
        full = exp.EQ(this=weight.copy(), expression=whole(WEIGHT))
        nothing = exp.And(this=nothing, expression=full)
    beyond: exp.Expr = exp.func("LEAST", exp.Sub(this=own.copy(), expression=left), whole(most))
    if most * WEIGHT < LARGEST:
        beyond = _long(beyond)
    # most persons have nothing beyond: for them no wide numbers are divided
    return exp.Case(ifs=[exp.If(this=nothing, true=whole(0))], default=beyond)


def _summed(number: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Sum(this=number), expressions=[whole(0)])


def _ends(term: Term) -> tuple[int, int]:
    (grid,) = term.partial.grids
    return grid.first, grid.last


def _is(value: exp.Expr, end: int) -> exp.Expr:
    return exp.Case(
        ifs=[exp.If(this=exp.EQ(this=value, expression=whole(end)), true=whole(1))],
        default=whole(0),
    )


def _marks(term: Term, place: int) -> exp.Expr:
    """The bit of the end at which a value is, if it is at one: its ends differ, or the first one counts."""
    ifs = [
        exp.If(
            this=exp.EQ(this=column(term.columns[0]), expression=whole(end)),
            true=_long(whole(1 << place + i)),
        )
        for i, end in enumerate(_ends(term))
    ]
    return exp.Case(ifs=ifs, default=_long(whole(0)))


def _marked(marks: exp.Expr, bit: int) -> exp.Expr:
    """What a person weighs at an end: nothing where its bit is not set."""
    above = exp.Paren(this=exp.IntDiv(this=marks, expression=whole(bit)))
    last = exp.Mod(this=above, expression=whole(2))
    there = exp.EQ(this=exp.Paren(this=last), expression=whole(1))
    return exp.Case(ifs=[exp.If(this=there, true=whole(WEIGHT // _PART))], default=whole(0))


def _own(term: Term) -> exp.Expr:
    """What a person has in one group, not bounded, in the unit of `size`."""
    match term.partial.bounding:
        case "once":
            return whole(1)
        case "scale":
            return column(f"n{term.name}")
        case _:
            own = exp.Coalesce(this=column(term.names[0]), expressions=[whole(0)])
            return exp.Abs(this=own) if any(grid.first < 0 for grid in term.partial.grids) else own


def _at_node(beyond: exp.Expr, j: int, bound: int) -> exp.Expr:
    """A person's weight at a node: it falls from WEIGHT there to 0 at the next ones, so that weights add up to WEIGHT.

    Who has nothing beyond the bound has no weight anywhere.
    """
    cases = []
    if j:
        low, high = NODES[j - 1] * bound, NODES[j] * bound
        cases.append(exp.If(this=_between(beyond, low, high), true=_part(beyond, low, high)))
    if j + 1 < len(NODES):
        low, high = NODES[j] * bound, NODES[j + 1] * bound
        falling = exp.Sub(this=whole(WEIGHT), expression=_part(beyond, low, high))
        cases.append(exp.If(this=_between(beyond, low, high), true=falling))
    return exp.Case(ifs=cases, default=whole(0))


def _between(value: exp.Expr, low: int, high: int) -> exp.Expr:
    above, below = (
        exp.GT(this=value.copy(), expression=whole(low)),
        exp.LTE(this=value.copy(), expression=whole(high)),
    )
    return exp.And(this=above, expression=below)


def _part(value: exp.Expr, low: int, high: int) -> exp.Expr:
    """WEIGHT times how far a value is on the way from one number to the next, rounded down."""
    way = exp.Mul(
        this=exp.Paren(this=exp.Sub(this=value.copy(), expression=whole(low))),
        expression=whole(WEIGHT),
    )
    return exp.Paren(this=WideDiv(this=exp.Paren(this=way), expression=whole(high - low)))


@dataclass(frozen=True)
class Excess:
    """Estimates from the nodes of one term, each with its half-width: how many persons, and how much in bounds.

    What persons have beyond `most` times the bound is not in it.
    """

    persons: tuple[float, float]
    bounds: tuple[float, float]
    most: int


def each(confidence: Fraction) -> Fraction:
    """The confidence of one of the intervals of which noise chooses the one that is told (beyond.md, Theorem 2)."""
    return 1 - (1 - confidence) / len(NODES)


def excess(noisy: Sequence[int], unit: int, noise: Noise, confidence: Fraction) -> Excess | None:
    """What the noisy weights of the nodes say; None if they do not tell that anybody has more than counts.

    With the confidence what is said of persons holds, and so does what is said of bounds.
    """
    sure = float(noise.half_width([[1.0]], _SURE)[0])
    filled = [j for j, weight in enumerate(noisy) if weight > sure]
    if not filled:
        return None
    last = max(1, *filled)

    def total(values: Sequence[int]) -> tuple[float, float]:
        value = sum(v * n for v, n in zip(values, noisy, strict=False)) / unit
        return value, float(
            noise.half_width([[v / unit for v in values if v] or [0.0]], each(confidence))[0]
        )

    return Excess(total([1] * (last + 1)), total(NODES[: last + 1]), NODES[last])


Total: TypeAlias = tuple[float, float]
"""The noisy total of a term over all groups, in rows or in the column's own unit, and how far it may be off with the
confidence of `each`."""


def remarks(
    measure: Measure,
    noisy: Sequence[int],
    noise: Noise,
    confidence: Fraction,
    totals: Mapping[str, Total],
    who: str,
) -> list[str]:
    """What the noisy numbers say, in words; `totals` are known of some terms, by name."""
    said, rest, unit = [], list(noisy), measure.unit
    for term in measure.terms:
        own, rest = rest[: len(NODES)], rest[len(NODES) :]
        said.append(
            _given_away(
                term,
                excess(own, unit, noise, confidence),
                own,
                noise,
                confidence,
                totals.get(term.name),
            )
        )
    part = unit if measure.by_row else unit // _PART
    near = float(noise.half_width([[1 / part]], confidence)[0])
    for term in measure.ends:
        (grid,) = term.partial.grids
        for word, steps in (("lower", grid.first), ("upper", grid.last)):
            number = rest.pop(0) / part
            if number > near:
                end = f"the {word} bound of {getattr(term.partial, 'what', 'the column')}, {four_digits(steps * grid.step)}"
                who_has = "values are" if measure.by_row else "persons have values"
                said.append(f"About {_count(number, near)} {who_has} at {end}, or beyond it.")
    if measure.nobody:
        number, near = rest.pop(0) / unit, float(noise.half_width([[1 / unit]], confidence)[0])
        most = math.ceil(max(number, 0) + near)
        said.append(
            f"About {_count(number, near)} rows name no {who} and are left out."
            if number > near
            else f"Rows without {a_or_an(who)} name nobody and are left out: at most about {most:,}."
        )
    return said


def _given_away(
    term: Term,
    found: Excess | None,
    noisy: Sequence[int],
    noise: Noise,
    confidence: Fraction,
    total: Total | None,
) -> str:
    """What the nodes of one term say."""
    if found is None or found.bounds[0] <= 0 or found.persons[0] <= found.persons[1]:
        reach = float(noise.half_width([[1 / WEIGHT] * len(NODES)], each(confidence))[0])
        most = max(sum(noisy) / WEIGHT, 0) + reach
        persons = counted(math.ceil(most), "person has", "persons have")
        return (
            f"No sign that bounds cut off much of the {_what(term)}: at most about {persons} more."
        )
    row = size(term)[1] * (float(term.partial.unit) if term.partial.bounding == "clip" else 1.0)
    amount, off = (x * term.quota.total * row for x in found.bounds)
    if term.partial.bounding == "choose":
        return (
            f"Beyond the bounds: about {_count(*found.persons)} persons have more different {_values(term)} than count, and "
            f"about {_count(amount, off)} of theirs are left out, not counting what lies over {found.most} times the bound: "
            "what counts for nobody else is missing, so that true numbers may be higher by up to as many."
        )
    text = f"Beyond the bounds: about {_count(*found.persons)} persons have more than counts"
    if total is not None and (low := total[0] - total[1]) > 0:
        less, more = max(amount - off, 0), amount + off
        share = 100 * amount / (amount + total[0])
        ends = 100 * less / (less + total[0] + total[1]), 100 * more / (more + low)
        text += f", which leaves out about {share:.0f} % of the {_what(term)} ({ends[0]:.0f} to {ends[1]:.0f} %)"
    else:
        text += f", which leaves out about {four_digits(amount)} ± {four_digits(off)} of the {_what(term)}"
    return f"{text}, not counting what lies over {found.most} times the bound: {_meaning(term)}."


def _meaning(term: Term) -> str:
    """What it does to what is asked."""
    if term.partial.bounding == "scale" or term.name == MEASURED_ONLY:
        return "who has many rows counts for fewer of them"
    grids = term.partial.grids
    if any(grid.first < 0 < grid.last for grid in grids):
        return "true totals are likely farther from zero"
    return (
        f"true totals are likely {'lower' if any(grid.last <= 0 for grid in grids) else 'higher'}"
    )


def _count(number: float, off: float) -> str:
    return f"{round(number):,} ± {math.ceil(off):,}"


def _values(term: Term) -> str:
    return f"values of {getattr(term.partial, 'what', 'the column')}"


def _what(term: Term) -> str:
    """What is bounded, in words."""
    if term.partial.bounding == "choose":
        return f"different {_values(term)}"
    if term.partial.bounding == "once":
        return "number of persons by group"
    if term.partial.bounding == "scale" or not term.partial.grids:
        return "rows"
    return term.partial.label
