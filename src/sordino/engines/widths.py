"""How far the whole numbers of a statement reach, found from its tree: not every engine has fast integers of 128 bits.

A sum is taken in 64 bits where its terms are so small that MOST_ROWS of them fit, and in decimals elsewhere: the tree
says how small, as every value is cut to written-out bounds before it is summed. spark/engine.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sordino.query.meaning.neutral import Doubles, Fits, Indicator, Let, PlaceIn, WideDiv

__all__ = ["MOST_ROWS", "Widths"]

MOST_ROWS = 2**42
"""Rows of a table, persons, groups of a person: with more, a sum may fail (and never wraps around)."""

_LONG = 2**63
Reach: TypeAlias = tuple[int, int] | None
"""The least and the greatest that a whole number can be, where it is not NULL; None if that is not known."""

_SAME = (
    exp.Paren,
    exp.Alias,
    exp.Min,
    exp.Max,
    exp.FirstValue,
    exp.Lag,
    exp.Lead,
    exp.Window,
)
"""What yields one of the values of its argument."""
_DOUBLES = (Doubles, exp.Div, exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Floor, exp.Ceil, exp.Round)


@dataclass(frozen=True)
class _Fact:
    """An expression that is known to be at least or at most a number, or NULL."""

    what: exp.Expr
    least: int | None
    most: int | None


@dataclass
class Widths:
    """What is known of the numbers in one tree."""

    tree: exp.Expr
    _named: dict[str, exp.Query] = field(init=False)
    _wide: dict[int, bool] = field(init=False, default_factory=dict)
    _reaches: dict[int, Reach] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._named = {cte.alias: cte.this for cte in self.tree.find_all(exp.CTE)}

    def short(self, term: exp.Expr) -> bool:
        """Whether the sum of a term fits into 64 bits."""
        reach = self.reach(term)
        return reach is not None and max(abs(end) for end in reach) * MOST_ROWS < _LONG

    def wide(self, node: exp.Expr) -> bool:
        """Whether an expression may be a decimal, not a whole number of 64 bits."""
        if id(node) not in self._wide:
            self._wide[id(node)] = False  # a column that is made of itself adds nothing
            self._wide[id(node)] = self._is_wide(node)
        return self._wide[id(node)]

    def _is_wide(self, node: exp.Expr) -> bool:
        match node:
            case exp.Sum():
                return not self.short(node.this)
            case exp.Literal():
                return not node.is_string and node.this.isdecimal() and int(node.this) >= _LONG
            case exp.Case():
                return any(map(self.wide, _values(node)))
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.IntDiv() | WideDiv():
                return self.wide(node.this) or self.wide(node.expression)
            case exp.Coalesce() | exp.Least() | exp.Greatest():
                return any(map(self.wide, (node.this, *node.expressions)))
            case exp.Column() | exp.Identifier():
                return any(map(self.wide, self._definitions(node)))
            case Let():
                return self.wide(node.expression)
            case exp.Neg() | exp.Abs():
                return self.wide(node.this)
            case _:
                return isinstance(node, _SAME) and self.wide(node.this)

    def double(self, node: exp.Expr, depth: int = 100) -> bool:
        """Whether an expression is a double; False where it is not known."""
        match node:
            case exp.Cast():
                return node.to.this is exp.DType.DOUBLE
            case exp.Literal():
                return not node.is_string and not node.this.isdecimal()
            case exp.Case():
                return any(self.double(value, depth) for value in _values(node))
            case (
                exp.Add()
                | exp.Sub()
                | exp.Mul()
                | exp.Coalesce()
                | exp.Least()
                | exp.Greatest()
                | exp.Neg()
                | exp.Abs()
            ):
                return self.double(node.this, depth)
            case exp.Column() | exp.Identifier():
                return depth > 0 and any(
                    self.double(one, depth - 1) for one in self._definitions(node)
                )
            case Let():
                return self.double(node.expression, depth)
            case _:
                return isinstance(node, _DOUBLES) or (
                    isinstance(node, _SAME) and self.double(node.this, depth)
                )

    def reach(self, node: exp.Expr, facts: Sequence[_Fact] = ()) -> Reach:
        """How far an expression reaches."""
        if facts:
            return _known(node, facts) or self._reach(node, facts)
        if id(node) not in self._reaches:
            self._reaches[id(node)] = None
            self._reaches[id(node)] = self._reach(node, ())
        return self._reaches[id(node)]

    def _reach(self, node: exp.Expr, facts: Sequence[_Fact]) -> Reach:
        match node:
            case exp.Literal():
                return (
                    (int(node.this),) * 2 if not node.is_string and node.this.isdecimal() else None
                )
            case exp.Neg():
                inner = self.reach(node.this, facts)
                return None if inner is None else (-inner[1], -inner[0])
            case exp.Abs():
                inner = self.reach(node.this, facts)
                return None if inner is None else (0, max(map(abs, inner)))
            case exp.Count():
                return 0, MOST_ROWS
            case PlaceIn():
                return 0, MOST_ROWS
            case Indicator():
                return 0, 1
            case Fits():
                return None  # a double, whose reach only facts tell
            case exp.Sum():
                inner = self.reach(node.this, facts)
                return (
                    None
                    if inner is None
                    else (min(0, inner[0]) * MOST_ROWS, max(0, inner[1]) * MOST_ROWS)
                )
            case exp.Cast():
                return self.reach(node.this, facts) if node.to.this is exp.DType.BIGINT else None
            case exp.Case():
                return self._cases(node, facts)
            case exp.Coalesce():
                return _hull([self.reach(one, facts) for one in (node.this, *node.expressions)])
            case exp.Least() | exp.Greatest():
                return self._extreme(node, facts)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Mod() | WideDiv():
                return _computed(
                    node, self.reach(node.this, facts), self.reach(node.expression, facts)
                )
            case exp.Column() | exp.Identifier():
                return _hull([self.reach(one) for one in self._definitions(node)] or [None])
            case Let():
                return self.reach(node.expression)
            case _:
                return self.reach(node.this, facts) if isinstance(node, _SAME) else None

    def _cases(self, node: exp.Case, facts: Sequence[_Fact]) -> Reach:
        """All branches together, each with what its condition and those before it say."""
        found, known = list[Reach](), list(facts)
        for branch in node.args["ifs"]:
            if not isinstance(branch.args["true"], exp.Null) and not _is_null(branch.args["true"]):
                found.append(self.reach(branch.args["true"], [*known, *_true(branch.this)]))
            known += _false(branch.this)
        default = node.args.get("default")
        if default is not None and not _is_null(default):
            found.append(self.reach(default, known))
        return _hull(found) if found else (0, 0)

    def _extreme(self, node: exp.Expr, facts: Sequence[_Fact]) -> Reach:
        """LEAST is no greater than each argument that is known, since NULLs are skipped;
        the other end needs all of them.
        """
        parts = [self._ends(one, facts) for one in (node.this, *node.expressions)]
        low, high = zip(*parts, strict=True)
        pick = min if isinstance(node, exp.Least) else max
        certain, other = (high, low) if pick is min else (low, high)
        literal = [end for end, one in zip(certain, (node.this, *node.expressions), strict=True)
                   if end is not None and _is_written(one)]  # fmt: skip
        ends = [end for end in other if end is not None]
        if not literal or len(ends) < len(other):
            return None
        return (pick(ends), pick(literal)) if pick is min else (pick(literal), pick(ends))

    def _ends(self, node: exp.Expr, facts: Sequence[_Fact]) -> tuple[int | None, int | None]:
        """Both ends, of which one may be known alone: LEAST and GREATEST within one another cut one end each."""
        node = node.unnest()
        if isinstance(node, exp.Least | exp.Greatest):
            parts = [self._ends(one, facts) for one in (node.this, *node.expressions)]
            low, high = zip(*parts, strict=True)
            literal = [reach[0] for one in (node.this, *node.expressions)
                       if _is_written(one) and (reach := self.reach(one)) is not None]  # fmt: skip
            if isinstance(node, exp.Least):
                return (None if None in low else min(low)), (min(literal) if literal else None)
            return (max(literal) if literal else None), (None if None in high else max(high))
        return self.reach(node, facts) or (None, None)

    def _definitions(self, name: exp.Expr) -> list[exp.Expr]:
        """What makes a column, or the value that a Let names; nothing where that is a cell of a table."""
        if isinstance(name, exp.Identifier):
            node: exp.Expr | None = name
            while node is not None:
                above = node.parent
                if isinstance(above, Let) and node.arg_key == "expression":
                    return [above.this]
                node = above
            return []
        inside = name.find_ancestor(exp.Select)
        return [] if inside is None else list(self._from(inside, name.name, name.text("table")))

    def _from(self, query: exp.Select, name: str, table: str) -> Iterator[exp.Expr]:
        """The definitions of a name in what a SELECT reads."""
        parts = [query.args["from_"].this] if query.args.get("from_") else []
        parts += [join.this for join in query.args.get("joins") or ()]
        for part in parts:
            if not table or part.alias_or_name == table:
                inner = part.this if isinstance(part, exp.Subquery) else self._named.get(part.name)
                if inner is not None and not (isinstance(part, exp.Table) and part.args.get("db")):
                    yield from self._of(inner, name)

    def _of(self, query: exp.Expr, name: str) -> Iterator[exp.Expr]:
        """The definitions of a column of a query."""
        if isinstance(query, exp.Union):
            yield from self._of(query.this, name)
            yield from self._of(query.expression, name)
        elif isinstance(query, exp.Subquery):
            yield from self._of(query.this, name)
        elif isinstance(query, exp.Select):
            for item in query.expressions:
                if isinstance(item, exp.Star):
                    yield from self._from(query, name, "")
                elif item.alias_or_name == name:
                    yield item.this if isinstance(item, exp.Alias) else item


def _values(node: exp.Case) -> list[exp.Expr]:
    default = node.args.get("default")
    return [
        *(branch.args["true"] for branch in node.args["ifs"]),
        *([] if default is None else [default]),
    ]


def _is_written(node: exp.Expr) -> bool:
    """Whether it is a number that is written out, and so never NULL."""
    while isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal)


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Null) or (
        isinstance(node, exp.Cast) and isinstance(node.this, exp.Null)
    )


def _known(node: exp.Expr, facts: Sequence[_Fact]) -> Reach:
    """What facts say of an expression; of a number as a whole one, what they say of the number."""
    if isinstance(node, Fits) or (isinstance(node, exp.Cast) and node.to.this is exp.DType.BIGINT):
        node = node.this
    of = [fact for fact in facts if fact.what == node]
    least = [fact.least for fact in of if fact.least is not None]
    most = [fact.most for fact in of if fact.most is not None]
    return (max(least), min(most)) if least and most else None


def _true(condition: exp.Expr) -> list[_Fact]:
    """What holds where a condition is true."""
    match condition:
        case exp.And():
            return [*_true(condition.this), *_true(condition.expression)]
        case exp.GT() | exp.GTE():
            return _fact(condition, lower=True)
        case exp.LT() | exp.LTE():
            return _fact(condition, lower=False)
        case _:
            return []


def _false(condition: exp.Expr) -> list[_Fact]:
    """What holds of whatever is not NULL where a condition is not true; NaN is above everything."""
    match condition:
        case exp.GT() | exp.GTE():
            return _fact(condition, lower=False)
        case exp.LT() | exp.LTE():
            return _fact(condition, lower=True)
        case _:
            return []


def _fact(condition: exp.Expr, *, lower: bool) -> list[_Fact]:
    """A comparison with a number, rounded outwards to a whole one."""
    number = _number(condition.expression)
    if number is None:
        return []
    whole = math.floor(number) if lower else math.ceil(number)
    return [_Fact(condition.this, whole if lower else None, None if lower else whole)]


def _number(node: exp.Expr) -> Fraction | None:
    """A number that is written out."""
    match node:
        case exp.Paren():
            return _number(node.this)
        case exp.Neg():
            inner = _number(node.this)
            return None if inner is None else -inner
        case exp.Literal() if not node.is_string:
            return Fraction(node.this)
        case _:
            return None


def _hull(parts: Sequence[Reach]) -> Reach:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return min(part[0] for part in known), max(part[1] for part in known)


def _computed(node: exp.Expr, left: Reach, right: Reach) -> Reach:
    if isinstance(node, exp.Mod):
        return None if right is None else (-max(map(abs, right)), max(map(abs, right)))
    if left is None or right is None:
        return None
    match node:
        case exp.Add():
            return left[0] + right[0], left[1] + right[1]
        case exp.Sub():
            return left[0] - right[1], left[1] - right[0]
        case exp.Mul():
            corners = [a * b for a in left for b in right]
            return min(corners), max(corners)
        case _:  # a whole quotient is no larger than what is divided
            most = max(map(abs, left))
            return (-most, most) if left[0] < 0 or right[0] < 0 else (0, most)
