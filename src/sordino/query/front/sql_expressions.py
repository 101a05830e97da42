"""From sqlglot's tree to ours, for expressions and aggregates: by allow-list, exact in class and in every argument.

A node of a class that is not listed is refused, and so is a listed one that carries an argument that is not expected
of it: no modifier is dropped unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from sordino.errors import Code, InvalidInput, UnsupportedSQL
from sordino.privacy.wording import a_or_an
from sordino.query.aggregates.registry import Kind, kinds, named_in_sql
from sordino.query.front.calls import (
    DATE_UNITS,
    between,
    call,
    concatenated,
    constant,
    count_where,
    if_else,
    is_arithmetic,
    matched,
    negated,
    nullif,
    when_true,
)
from sordino.query.front.other_words import nearest_function
from sordino.query.front.shapes import check_size
from sordino.query.front.sql_refusals import HINTS, UNKNOWN, arguments, refusal
from sordino.query.front.sql_tokens import Reason, shortened
from sordino.query.tree import Aggregate, Case, Column, Expression, Literal, Window

__all__ = ["Reader"]

_WINDOWS: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.RowNumber: ("row_number", ()), exp.Lag: ("lag", ("this", "offset")), exp.Lead: ("lead", ("this", "offset")),
    exp.FirstValue: ("first_value", ("this",)), exp.Count: ("count", ("this",)), exp.Sum: ("sum", ("this",)),
}  # fmt: skip
_WITHIN_PERSON: dict[type[exp.Expression], str] = {
    exp.Min: "min", exp.Max: "max", exp.LogicalOr: "any", exp.LogicalAnd: "every"
}  # fmt: skip
_WINDOW_NAMES = (
    "this window is not supported",
    "There are ROW_NUMBER, LAG, LEAD, FIRST_VALUE, and running COUNT and SUM, with PARTITION BY person ORDER BY ...",
)
_MEMBERS = (
    "who is among other rows is asked in WHERE",
    "Write WHERE patient_id IN (SELECT patient_id FROM ...), or EXISTS with the person of both.",
    Code.SUBQUERY,
)

_NESTED = (
    "an aggregate cannot be part of a row's value",
    "Ask for each separately and compute with the answers; HAVING filters groups by aggregates.",
    Code.AGGREGATE,
)
_FRAME = "Write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW."
_BACKWARDS = "a frame begins before it ends", "Write ROWS BETWEEN UNBOUNDED PRECEDING AND ..."
_DESCENDING = (
    "quantiles are counted from the smallest value",
    "Leave DESC out and ask for 1 minus the level.",
)
_BASES = (
    "LOG is the natural logarithm in some dialects, to base 10 in others",
    "Write LN(x) or LOG10(x); the logarithm to base 2 is LN(x) / LN(2).",
)
_NO_UNIT = "its unit must be named", "Write DATE_DIFF('day', first, last)."
_ABSURD = (
    "numbers have at most 40 digits and an exponent of at most 308",
    "Write an ordinary number.",
)

_Read = TypeVar("_Read", Expression, Expression | Aggregate)

_ONE, _TWO, _ALL = ("this",), ("this", "expression"), ("this", "expressions")
_CALLS: dict[type[exp.Expression], tuple[str | Callable[..., Expression], tuple[str, ...]]] = {
    exp.EQ: ("=", _TWO), exp.NEQ: ("<>", _TWO), exp.LT: ("<", _TWO), exp.LTE: ("<=", _TWO), exp.GT: (">", _TWO),
    exp.GTE: (">=", _TWO), exp.Not: ("not", _ONE), exp.In: ("in", _ALL), exp.Between: (between, ("this", "low", "high")),
    exp.Coalesce: ("coalesce", _ALL), exp.Least: ("least", _ALL), exp.Greatest: ("greatest", _ALL),
    exp.Nullif: (nullif, _TWO), exp.Neg: (negated, _ONE), exp.Abs: ("abs", _ONE), exp.Round: ("round", ("this", "decimals")),
    exp.Floor: ("floor", _ONE), exp.Ceil: ("ceil", _ONE), exp.Ln: ("ln", _ONE), exp.Exp: ("exp", _ONE),
    exp.Sqrt: ("sqrt", _ONE), exp.Pow: ("power", _TWO), exp.Lower: ("lower", _ONE), exp.Upper: ("upper", _ONE),
    exp.Length: ("length", _ONE), exp.Substring: ("substr", ("this", "start", "length")),
    exp.Left: (lambda x, length: call("substr", x, Literal(1), length), _TWO),
    exp.DateBin: ("time_bucket", _TWO),
    exp.Dayname: ("dayname", _ONE), exp.Monthname: ("monthname", _ONE),
}  # fmt: skip
"""What each is called in the tree, or what makes it, and its arguments in order."""
_CHAINS: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||", exp.Pow: "power",
}  # fmt: skip
_CASTS = {
    exp.DType.DATE: "date", exp.DType.TIMESTAMPNTZ: "timestamp", exp.DType.INT: "integer", exp.DType.BIGINT: "bigint",
    exp.DType.DOUBLE: "double",
}  # fmt: skip
_LOGIC: dict[type[exp.Expression], str] = {exp.And: "and", exp.Or: "or"}
_DATE_PARTS: dict[type[exp.Expression], str] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week", exp.WeekOfYear: "week", exp.Day: "day",
    exp.DayOfMonth: "day", exp.DayOfWeek: "dow", exp.DayOfWeekIso: "isodow", exp.DayOfYear: "doy", exp.Hour: "hour",
    exp.Minute: "minute",
}  # fmt: skip
_PART_WORDS = {
    "dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "weekofyear": "week", "dayofmonth": "day",
}  # fmt: skip


def _inside(node: exp.Expression) -> exp.Expression:
    """The expression within any number of brackets."""
    while type(node) is exp.Paren:
        node = node.this
    return node


def _date(text: str, node: exp.Expression, words: str, *, moment: bool) -> Literal:
    day = r"(?a:\d{4}-\d\d-\d\d)"
    pattern = day + r"(?a:[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?" if moment else day
    form = "TIMESTAMP '2024-01-31 12:00:00'" if moment else "DATE '2024-01-31'"
    try:
        if not re.fullmatch(pattern, words):
            raise ValueError(words)
        return Literal(datetime.fromisoformat(words) if moment else date.fromisoformat(words))
    except ValueError as error:
        raise refusal(text, node, ("there is no such date", f"Write it as {form}.")) from error


@dataclass(frozen=True)
class Reader:
    """Reads expressions; `column` says which column a name is, `nested` what an aggregate inside an expression means.

    `inside` says that they are those of a subquery, with windows and aggregates of one person's rows; `member` reads
    conditions on who is among other rows.
    """

    text: str
    column: Callable[[exp.Expression], Column]
    nested: Callable[[exp.Expression, Aggregate], Expression] | None = None
    inside: bool = False
    member: Callable[[exp.Expression], Expression] | None = None

    def expression(self, node: exp.Expression) -> Expression:
        """A row-wise expression of our tree."""
        return self._checked(node, lambda: self._expression(node))

    def item(self, node: exp.Expression) -> Expression | Aggregate:
        """One item of SELECT: an expression, an aggregate or arithmetic of aggregates."""
        return self._checked(node, lambda: self._aggregate(_inside(node)) or self._item(node))

    def _item(self, node: exp.Expression) -> Expression:
        if self.nested is not None or self.inside:
            return self._expression(node)
        found: list[Aggregate] = []

        def nested(_: exp.Expression, aggregate: Aggregate) -> Expression:
            found.append(aggregate)
            return aggregate

        value = replace(self, nested=nested)._expression(node)
        if found and not is_arithmetic(value):
            rule = "aggregates and constants are combined by + - * / only"
            raise self._refuse(
                node, (rule, "Ask for the aggregates, and compute with the answer: it is public.")
            )
        return value

    def _checked(self, node: exp.Expression, read: Callable[[], _Read]) -> _Read:
        """What was read, with rules broken in the tree told as errors of this text."""
        try:
            result = read()
            check_size([result])
        except UnsupportedSQL:
            raise
        except InvalidInput as error:
            told = refusal(self.text, node, (error.rule, error.hint))
            raise UnsupportedSQL(
                f"{error.value} in {told.value}", error.rule, error.hint, error.code
            ) from error
        except RecursionError as error:  # a = b = c = ... nests without brackets
            raise refusal(
                self.text, node, ("it is nested too deep", "Ask several smaller questions.")
            ) from error
        return result

    def _refuse(self, node: exp.Expression, reason: Reason | None = None) -> UnsupportedSQL:
        reason = reason or HINTS.get(type(node), UNKNOWN)
        if "{0}" in reason[1]:
            named = node.this.sql() if isinstance(node.this, exp.Column) else "x"
            hint = reason[1].format(shortened(named))
            reason = (reason[0], hint, reason[2]) if len(reason) == 3 else (reason[0], hint)
        return refusal(self.text, node, reason)

    def _expression(self, node: exp.Expression | None) -> Expression:
        if not isinstance(node, exp.Expression):
            raise UnsupportedSQL("a function without its argument", *UNKNOWN)
        node = _inside(node)
        kind = type(node)
        if kind in _CHAINS or kind in _LOGIC:
            return self._chain(node)
        if kind is exp.Exists or (kind is exp.In and node.args.get("query") is not None):
            if self.member is None:
                raise self._refuse(node, _MEMBERS)
            return self.member(node)
        if kind is exp.Window and self.inside:
            return self._window(node)
        if kind in _CALLS:
            made, names = _CALLS[kind]
            arguments(self.text, node, *names)
            if not isinstance(made, str):
                return made(*(self._expression(node.args.get(name)) for name in names))
            own = [self._expression(part) for name in names for part in _parts(node, name)]
            return call(made, *own)
        if kind in _DATE_PARTS:
            arguments(self.text, node, "this")
            return call("date_part", Literal(_DATE_PARTS[kind]), self._expression(node.this))
        found = self._aggregate(node)
        if found is None and kind in _SPECIAL:
            return _SPECIAL[kind](self, node)
        if found is None:
            raise self._refuse(node)
        if self.nested is None:
            raise self._refuse(node, _NESTED)
        return self.nested(node, found)

    def _chain(self, node: exp.Expression) -> Expression:
        """A chain such as a + b + c, which sqlglot nests to the left: unrolled, so that a long one needs no stack."""
        rest: list[exp.Expression] = []
        while type(node) in _CHAINS or type(node) in _LOGIC:
            arguments(self.text, node, "this", "expression")
            rest.append(node)
            node = node.this
        result = self._expression(node)
        pending: list[Expression] = []
        while rest:
            step = rest.pop()
            right = self._expression(step.expression)
            if type(step) in _CHAINS:
                result = call(_CHAINS[type(step)], result, right)
                continue
            pending.append(right)
            # collect first: joining one by one would take quadratic time
            if not rest or type(rest[-1]) is not type(step):
                result = call(_LOGIC[type(step)], result, *pending)
                pending = []
        return result

    def _aggregate(self, node: exp.Expression) -> Aggregate | None:
        """The aggregate that the node is; None if it is none of the supported ones."""
        kind, inner = type(node), Reader(self.text, self.column)
        if self.inside and kind in _WITHIN_PERSON:
            arguments(self.text, node, "this")
            return Aggregate(_WITHIN_PERSON[kind], (inner._expression(node.this),))
        if kind is exp.IgnoreNulls and type(node.this) is exp.AnyValue:
            if not self.inside:
                raise self._refuse(node, HINTS[exp.AnyValue])
            arguments(self.text, node.this, "this")  # of one person's values the smallest is one
            return Aggregate("min", (inner._expression(node.this.this),))
        if kind is exp.Filter:
            arguments(self.text, node, "this", "expression")
            filtered = self._aggregate(node.this)
            if filtered is None or type(node.expression) is not exp.Where:
                raise self._refuse(node)
            return when_true(inner._expression(node.expression.this), filtered)
        if kind is exp.CountIf:
            arguments(self.text, node, "this")
            return count_where(inner._expression(node.this))
        if kind is exp.WithinGroup:
            return self._within_group(node, inner)
        if not isinstance(node, exp.Func):
            return None
        names = [
            name
            for name in node.arg_types
            if any(isinstance(part, exp.Expression) for part in _parts(node, name))
        ]
        parts = [part for name in names for part in _parts(node, name)]
        distinct = len(parts) == 1 and type(parts[0]) is exp.Distinct
        word = str(node.this) if kind is exp.Anonymous else node.sql_name()
        found = named_in_sql(word, distinct=distinct)
        if found is None and distinct and named_in_sql(word) is not None:
            raise self._refuse(parts[0])
        if found is None:
            return None
        arguments(self.text, node, *names, *(["this"] if kind is exp.Anonymous else []))
        if distinct:
            arguments(self.text, parts[0], "expressions")
            parts = parts[0].expressions
        elif len(parts) == 1 and type(parts[0]) is exp.Star and found[0].least == 0:
            arguments(self.text, parts[0])
            parts = []
        elif not parts:
            rule, hint = (
                f"{found[0].sql[0]} must say what it is of",
                f"Write {found[0].examples[0].sql}.",
            )
            raise self._refuse(node, (rule, hint, Code.AGGREGATE))
        return self._of_kind(node, *found, parts, inner)

    def _window(self, node: exp.Expression) -> Expression:
        """A function OVER (PARTITION BY ... ORDER BY ...)."""
        arguments(self.text, node, "this", "partition_by", "order", "over", "spec")
        function, inner = node.this, Reader(self.text, self.column)
        if type(function) not in _WINDOWS or str(node.args.get("over") or "OVER").upper() != "OVER":
            raise self._refuse(function, _WINDOW_NAMES)
        name, parts = _WINDOWS[type(function)]
        arguments(self.text, function, *parts)
        given = [
            part for key in parts for part in _parts(function, key) if type(part) is not exp.Star
        ]
        order = node.args.get("order")
        ordered: list[tuple[Expression, bool]] = []
        if order is not None:
            arguments(self.text, order, "expressions")
            for one in order.expressions:
                # the parser notes where NULLs go, which no word of the text can say
                arguments(self.text, one, "this", "desc", "nulls_first")
                ordered.append((inner._expression(one.this), bool(one.args.get("desc"))))
        partition = tuple(inner._expression(one) for one in node.args.get("partition_by") or ())
        frame = self._frame(node.args.get("spec"))
        return Window(
            name, tuple(inner._expression(part) for part in given), partition, tuple(ordered), frame
        )

    def _frame(self, node: exp.Expression | None) -> tuple[int | None, int | None] | None:
        """ROWS BETWEEN ... AND ... in rows from this one on; None for the one that holds without it."""
        if node is None:
            return None
        arguments(self.text, node, "kind", "start", "start_side", "end", "end_side")
        if str(node.args.get("kind")).upper() != "ROWS":
            raise self._refuse(node, ("a frame counts rows", _FRAME))
        first, last = (self._frame_end(node, end) for end in ("start", "end"))
        return None if (first, last) == (None, 0) else (first, last)

    def _frame_end(self, node: exp.Expression, end: str) -> int | None:
        where, side = node.args.get(end), str(node.args.get(f"{end}_side") or "").upper()
        if where is None or str(where).upper() == "CURRENT ROW":  # ROWS 2 PRECEDING ends here
            return 0
        if str(where).upper() == "UNBOUNDED":
            if (side == "PRECEDING") == (end == "start"):
                return None
            raise self._refuse(node, _BACKWARDS)
        if not isinstance(where, exp.Literal) or not str(where.this).isdigit():
            raise self._refuse(node, ("a frame counts whole rows, written out", _FRAME))
        return int(where.this) * (-1 if side == "PRECEDING" else 1)

    def _of_kind(
        self,
        node: exp.Expression,
        kind: Kind,
        level: Fraction | None,
        parts: list[exp.Expression],
        inner: Reader,
    ) -> Aggregate:
        """The aggregate of its arguments in order, with its parameter behind them."""
        if kind.parameter is not None and level is None:
            *parts, last = parts
            value = inner._expression(last) if type(_inside(last)) is exp.Literal else None
            if not isinstance(value, Literal) or isinstance(value.value, str) or not parts:
                rule = (
                    f"the {kind.parameter} of {a_or_an(kind.name)} must be a constant from 0 to 1"
                )
                raise self._refuse(node, (rule, f"Write {kind.examples[0].sql}."))
            return kind.form(tuple(map(inner._expression, parts)), value.value)
        return kind.form(tuple(map(inner._expression, parts)), level)

    def _within_group(self, node: exp.Expression, inner: Reader) -> Aggregate:
        arguments(self.text, node, "this", "expression")
        quantile, order = node.this, node.expression
        if (
            type(quantile) not in {exp.PercentileCont, exp.PercentileDisc}
            or type(order) is not exp.Order
        ):
            raise self._refuse(node)
        found = named_in_sql(quantile.sql_name())
        arguments(self.text, quantile, "this")
        arguments(self.text, order, "expressions")
        if len(order.expressions) != 1 or type(order.expressions[0]) is not exp.Ordered:
            raise self._refuse(node)
        ordered = order.expressions[0]
        if ordered.args.get("desc"):
            raise self._refuse(node, _DESCENDING)
        arguments(self.text, ordered, "this")
        if found is None:
            raise self._refuse(node)
        return self._of_kind(node, *found, [ordered.this, quantile.this], inner)

    def _case(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "ifs", "default")
        branches = []
        for branch in node.args["ifs"]:
            arguments(self.text, branch, "this", "true")
            branches.append((self._expression(branch.this), self._expression(branch.args["true"])))
        default = node.args.get("default")
        otherwise = Literal(None) if default is None else self._expression(default)
        subject = node.args.get("this")
        if subject is None:
            return Case(tuple(branches), otherwise)
        return matched(self._expression(subject), branches, otherwise)

    def _if(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "true", "false")
        no = node.args.get("false")
        yes = self._expression(node.args["true"])
        return if_else(
            self._expression(node.this), yes, Literal(None) if no is None else self._expression(no)
        )

    def _is(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "expression")
        if type(node.expression) is not exp.Null:
            raise self._refuse(node)
        return call("is_null", self._expression(node.this))

    def _like(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "expression", "negate")
        name = "like" if type(node) is exp.Like else "ilike"
        found = call(name, self._expression(node.this), self._expression(node.expression))
        return call("not", found) if node.args.get("negate") else found

    def _concat(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "expressions")
        return concatenated([self._expression(part) for part in node.expressions])

    def _log(self, node: exp.Expression) -> Expression:
        """LOG10(x), which the parser turns into LOG(10, x); with one argument, engines disagree on the base."""
        arguments(self.text, node, "this", "expression")
        if node.expression is None or self._expression(node.this) != Literal(10):
            raise self._refuse(node, _BASES)
        return call("log10", self._expression(node.expression))

    def _date_diff(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "expression", "unit")
        if "unit" not in node.args:
            raise self._refuse(node, _NO_UNIT)
        first, last = self._expression(node.expression), self._expression(node.this)
        return call("date_diff", _part(node.args["unit"]), first, last)

    def _extract(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "expression")
        return call("date_part", _part(node.this), self._expression(node.expression))

    def _date_trunc(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this", "unit")
        cut, unit = node.this, node.args["unit"].name.lower()
        if type(cut) is exp.Literal and cut.name.lower() in DATE_UNITS:
            hint = f"Write DATE_TRUNC('{cut.name.lower()}', {shortened(unit)})."
            raise self._refuse(node, ("the unit comes first", hint))
        return call("date_trunc", _part(node.args["unit"]), self._expression(node.this))

    def _named(self, node: exp.Expression) -> Expression:
        """A function that the parser does not know by a class."""
        name = str(node.this).lower()
        arguments(self.text, node, "this", "expressions")
        if name in {"date_part", "datepart"} and len(node.expressions) == 2:
            part, of = node.expressions
            return call("date_part", _part(part), self._expression(of))
        if name == "weekday" and len(node.expressions) == 1:
            return call("date_part", Literal("dow"), self._expression(node.expressions[0]))
        if name in {"bucket", "clamp"}:
            return call(name, *map(self._expression, node.expressions))
        meant = nearest_function(name, _known_functions())
        raise self._refuse(
            node, (f"there is no function {shortened(str(node.this))}", meant + UNKNOWN[1])
        )

    def _literal(self, node: exp.Expression) -> Expression:
        arguments(self.text, node, "this")
        words = str(node.this)
        if node.args.get("is_string"):
            return constant(words)
        written = re.fullmatch(r"(?a:(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?)", words)
        if not written or sum(map(str.isdigit, words)) > 40:
            raise self._refuse(node, _ABSURD)
        return constant(Fraction(words))

    def _boolean(self, node: exp.Expression) -> Expression:
        arguments(self.text, node)
        return Literal(bool(node.this))

    def _null(self, node: exp.Expression) -> Expression:
        arguments(self.text, node)
        return Literal(None)

    def _column(self, node: exp.Expression) -> Expression:
        if type(node.this) is not exp.Identifier:
            raise self._refuse(node, HINTS[exp.Star] if type(node.this) is exp.Star else None)
        return self.column(node)

    def _cast(self, node: exp.Expression) -> Expression:
        """A cast; of a text only DATE '...' and TIMESTAMP '...', which are constants."""
        arguments(self.text, node, "this", "to")
        to, inner = node.args["to"], _inside(node.this)
        arguments(self.text, to, "this")
        kind = _CASTS.get(to.this)
        if kind is None:
            raise self._refuse(node)
        text = type(inner) is exp.Literal and inner.args.get("is_string")
        if kind in ("date", "timestamp") and text:
            return _date(self.text, node, str(inner.this), moment=kind == "timestamp")
        return call("cast", Literal(kind), self._expression(inner))


def _known_functions() -> list[str]:
    """The names of functions and aggregates in SQL."""
    calls = [kind.sql_name() for kind in (*_CALLS, *_DATE_PARTS) if issubclass(kind, exp.Func)]
    aggregates = [name for kind in kinds().values() for name in (*kind.sql, *kind.fixed)]
    return [*calls, "BUCKET", "CLAMP", *aggregates]


def _parts(node: exp.Expression, name: str) -> list[exp.Expression]:
    value = node.args.get(name)
    return value if isinstance(value, list) else [] if value is None else [value]


def _part(node: exp.Expression) -> Expression:
    """The name of a part of a date, which may be a word or a text."""
    if type(node) is exp.Var or (type(node) is exp.Literal and node.args.get("is_string")):
        word = str(node.this).lower()
        return Literal(_PART_WORDS.get(word, word))
    return Literal(None)


_SPECIAL: dict[type[exp.Expression], Callable[[Reader, exp.Expression], Expression]] = {
    exp.Case: Reader._case,
    exp.If: Reader._if,
    exp.Is: Reader._is,
    exp.Like: Reader._like,
    exp.ILike: Reader._like,
    exp.Concat: Reader._concat,
    exp.Log: Reader._log,
    exp.DateDiff: Reader._date_diff,
    exp.Extract: Reader._extract,
    exp.TimestampTrunc: Reader._date_trunc,
    exp.DateTrunc: Reader._date_trunc,  # the parser makes it of DATE constants
    exp.Anonymous: Reader._named,
    exp.Literal: Reader._literal,
    exp.Boolean: Reader._boolean,
    exp.Null: Reader._null,
    exp.Column: Reader._column,
    exp.Cast: Reader._cast,
}
