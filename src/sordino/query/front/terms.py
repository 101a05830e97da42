"""Expressions in Python: `col("age") >= 65` builds a piece of the query tree, `mean("cost")` an aggregate.

Where a column is meant, text is its name; where a value is meant, text is text. Floats are the decimals that were
typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from sordino.errors import InvalidInput
from sordino.privacy.exact import decimal_reading, show
from sordino.query.aggregates.registry import Kind, kinds
from sordino.query.front import calls
from sordino.query.tree import Aggregate, Call, Case, Column, Expression, Member, Window

if TYPE_CHECKING:
    from sordino.query.front.python import Question

__all__ = ["ColumnLike", "Measure", "Over", "Term", "When", "any_", "bucket", "coalesce", "col", "concat",
           "condition_tree", "date_diff", "date_part", "date_trunc", "day", "every", "first_value", "greatest", "lag",
           "lead", "least", "lit", "max_", "measures", "min_", "month", "over_tree", "quarter", "row_number",
           "term_tree", "time_bucket", "week", "when", "year"]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Term:
    """One value a row, written in Python; comparing two terms makes a condition, not a bool.

    Example:
        >>> ((col("age") >= 65) & col("ward").isin(["A", "B"])).tree.function
        'and'
    """

    tree: Expression

    def __bool__(self) -> NoReturn:
        raise InvalidInput(
            "a condition where Python wants True or False",
            "it is only decided row by row, in the data",
            "Combine with &, | and ~, each side in brackets; write between(a, b) for a <= x <= b.",
        )

    def __iter__(self) -> NoReturn:
        hint = "Use isin([...]) to look a value up."
        raise InvalidInput("a column where Python wants a list", "its values are never shown", hint)

    def _with(self, function: str, *others: object) -> Term:
        return Term(calls.call(function, self.tree, *map(_value, others)))

    def _after(self, function: str, other: object) -> Term:
        return Term(calls.call(function, _value(other), self.tree))

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return self._with("<>", other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> Term:
        return self._with("<", other)

    def __le__(self, other: object) -> Term:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Term:
        return self._with(">", other)

    def __ge__(self, other: object) -> Term:
        return self._with(">=", other)

    def __add__(self, other: object) -> Term:
        return self._with("+", other)

    def __radd__(self, other: object) -> Term:
        return self._after("+", other)

    def __sub__(self, other: object) -> Term:
        return self._with("-", other)

    def __rsub__(self, other: object) -> Term:
        return self._after("-", other)

    def __mul__(self, other: object) -> Term:
        return self._with("*", other)

    def __rmul__(self, other: object) -> Term:
        return self._after("*", other)

    def __truediv__(self, other: object) -> Term:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> Term:
        return self._after("/", other)

    def __mod__(self, other: object) -> Term:
        return self._with("%", other)

    def __rmod__(self, other: object) -> Term:
        return self._after("%", other)

    def __pow__(self, other: object) -> Term:
        return self._with("power", other)

    def __rpow__(self, other: object) -> Term:
        return self._after("power", other)

    def __neg__(self) -> Term:
        return Term(calls.negated(self.tree))

    def __and__(self, other: object) -> Term:
        return Term(calls.call("and", self.tree, _truth(other)))

    def __rand__(self, other: object) -> Term:
        return Term(calls.call("and", _truth(other), self.tree))

    def __or__(self, other: object) -> Term:
        return Term(calls.call("or", self.tree, _truth(other)))

    def __ror__(self, other: object) -> Term:
        return Term(calls.call("or", _truth(other), self.tree))

    def __invert__(self) -> Term:
        return self._with("not")

    def __abs__(self) -> Term:
        return self.abs()

    def isin(self, values: Iterable[object] | Question) -> Term:
        """Whether it is one of the values; of the person column, whether the person is among the rows of a question."""
        from sordino.query.front.python import Question

        if isinstance(values, Question):
            if not isinstance(self.tree, Column):
                rule = "it is asked of the person column"
                raise InvalidInput("isin(question)", rule, "Write col('patient_id').isin(...).")
            return Term(Member(self.tree, values.rows))
        if isinstance(values, str | Term) or not isinstance(values, Iterable):
            raise InvalidInput(
                type(values).__name__, "isin takes a list of values", "Write isin(['A', 'B'])."
            )
        return self._with("in", *values)

    def between(self, low: object, high: object) -> Term:
        """Whether it lies between the two, both included."""
        return Term(calls.between(self.tree, _value(low), _value(high)))

    def is_null(self) -> Term:
        """Whether it is missing."""
        return self._with("is_null")

    def like(self, pattern: str) -> Term:
        """Whether the text matches: % stands for any letters, _ for one."""
        return self._with("like", pattern)

    def ilike(self, pattern: str) -> Term:
        """The same, whatever the case of the letters."""
        return self._with("ilike", pattern)

    def append(self, *others: object) -> Term:
        """The text followed by the others; missing if one of them is."""
        return reduce(lambda left, right: left._with("||", right), others, self)

    def cast(self, kind: str) -> Term:
        """As another type: date, timestamp, integer, bigint or double."""
        return self._after("cast", kind)

    def coalesce(self, *others: object) -> Term:
        """Itself, or the first of the others that is not missing."""
        return self._with("coalesce", *others)

    def null_if(self, value: object) -> Term:
        """Missing where it equals the value, else itself."""
        return Term(calls.nullif(self.tree, _value(value)))

    def abs(self) -> Term:
        """Without its sign."""
        return self._with("abs")

    def round(self, digits: int | None = None) -> Term:
        """To the nearest whole number, or to this many digits after the point."""
        return self._with("round") if digits is None else self._with("round", digits)

    def floor(self) -> Term:
        """The next whole number at or below."""
        return self._with("floor")

    def ceil(self) -> Term:
        """The next whole number at or above."""
        return self._with("ceil")

    def ln(self) -> Term:
        """The natural logarithm."""
        return self._with("ln")

    def log10(self) -> Term:
        """The logarithm to base 10."""
        return self._with("log10")

    def exp(self) -> Term:
        """The number e to its power."""
        return self._with("exp")

    def sqrt(self) -> Term:
        """The square root."""
        return self._with("sqrt")

    def clamp(self, low: object, high: object) -> Term:
        """Itself, or the nearer of two constants where it lies outside of them."""
        return self._with("clamp", low, high)

    def bucket(self, width: object) -> Term:
        """The lower end of its bucket: floor(x / width) * width."""
        return self._with("bucket", width)

    def lower(self) -> Term:
        """The text in lower case."""
        return self._with("lower")

    def upper(self) -> Term:
        """The text in upper case."""
        return self._with("upper")

    def length(self) -> Term:
        """The number of characters."""
        return self._with("length")

    def substr(self, start: int, length: int | None = None) -> Term:
        """The characters from number `start` on (the first is 1), all or this many."""
        return (
            self._with("substr", start) if length is None else self._with("substr", start, length)
        )

    def date_part(self, part: str) -> Term:
        """A part of a date: year, quarter, month, week, day, dow, isodow, doy, hour, minute."""
        return self._after("date_part", part)

    def date_trunc(self, unit: str) -> Term:
        """The beginning of its year, quarter, month, week, day, hour or minute."""
        return self._after("date_trunc", unit)

    def time_bucket(self, width: str) -> Term:
        """The beginning of its span of time, such as "15 minutes"."""
        return self._after("time_bucket", width)

    def day_name(self) -> Term:
        """The day of the week in English."""
        return self._with("dayname")

    def month_name(self) -> Term:
        """The month in English."""
        return self._with("monthname")

    def year(self) -> Term:
        """The year of a date."""
        return self.date_part("year")

    def quarter(self) -> Term:
        """The quarter of a date, 1 to 4."""
        return self.date_part("quarter")

    def month(self) -> Term:
        """The month of a date, 1 to 12."""
        return self.date_part("month")

    def week(self) -> Term:
        """The ISO week of a date."""
        return self.date_part("week")

    def day(self) -> Term:
        """The day of the month."""
        return self.date_part("day")


ColumnLike: TypeAlias = str | Term


@dataclass(frozen=True)
class Measure:
    """An aggregate of the rows of a group, or arithmetic of several: `sum("cost") / sum("days")`."""

    tree: Aggregate | Call

    def where(self, condition: ColumnLike) -> Measure:
        """The same over those rows only that satisfy the condition."""
        return Measure(_filtered(condition_tree(condition), self.tree))

    def __add__(self, other: object) -> Measure:
        return _arithmetic("+", self, other)

    def __radd__(self, other: object) -> Measure:
        return _arithmetic("+", other, self)

    def __sub__(self, other: object) -> Measure:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Measure:
        return _arithmetic("-", other, self)

    def __mul__(self, other: object) -> Measure:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: object) -> Measure:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: object) -> Measure:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: object) -> Measure:
        return _arithmetic("/", other, self)

    def __neg__(self) -> Measure:
        return _arithmetic("neg", self)

    def clamp(self, low: object, high: object) -> Term:
        """Of one person's rows, in per_person: cut to these bounds."""
        return Term(calls.call("clamp", self.tree, _value(low), _value(high)))


def _arithmetic(function: str, *parts: object) -> Measure:
    trees: list[Expression] = []
    for part in parts:
        tree = (
            part.tree
            if isinstance(part, Measure)
            else None
            if isinstance(part, Term | When)
            else calls.constant(part)
        )
        if tree is None or not calls.is_arithmetic(tree):
            rule = "aggregates are combined with aggregates and numbers"
            raise _wrong(part, rule, "Write sum('a') / sum('b').")
        trees.append(tree)
    return Measure(calls.call(function, *trees))


def _filtered(condition: Expression, tree: Aggregate | Call) -> Aggregate | Call:
    if isinstance(tree, Aggregate):
        return calls.when_true(condition, tree)
    parts = (
        _filtered(condition, part) if isinstance(part, Aggregate | Call) else part
        for part in tree.arguments
    )
    return Call(tree.function, tuple(parts))


@dataclass(frozen=True)
class Over:
    """A function of the rows of one person around a row, for `Question.window`."""

    function: str
    arguments: tuple[Expression, ...] = ()
    limits: tuple[Expression, ...] = ()

    def clamp(self, low: object, high: object) -> Over:
        """The same, cut to these bounds."""
        return replace(self, limits=(_value(low), _value(high)))


def over_tree(
    name: str,
    item: object,
    partition: tuple[Expression, ...],
    order: tuple[tuple[Expression, bool], ...],
    frame: tuple[int | None, int | None] | None = None,
) -> Expression:
    """The window that an item of `Question.window` is; count and sum run along the order."""
    if isinstance(item, Measure) and item.tree.function in ("count", "sum"):
        return Window(item.tree.function, item.tree.arguments, partition, order, frame)
    if not isinstance(item, Over):
        rule, hint = (
            "window takes functions of rows in an order",
            "Write window(order_by='day', k=so.row_number()).",
        )
        raise _wrong({name: item}, rule, hint)
    window = Window(item.function, item.arguments, partition, order, frame)
    return calls.call("clamp", window, *item.limits) if item.limits else window


def min_(x: ColumnLike) -> Measure:
    """The smallest value of one person's rows, for per_person."""
    return Measure(Aggregate("min", (term_tree(x),)))


def max_(x: ColumnLike) -> Measure:
    """The largest value of one person's rows, for per_person."""
    return Measure(Aggregate("max", (term_tree(x),)))


def any_(condition: ColumnLike) -> Measure:
    """Whether one of one person's rows satisfies a condition, for per_person."""
    return Measure(Aggregate("any", (condition_tree(condition),)))


def every(condition: ColumnLike) -> Measure:
    """Whether all of one person's rows satisfy a condition, for per_person."""
    return Measure(Aggregate("every", (condition_tree(condition),)))


def row_number() -> Over:
    """The place of a row among its person's rows, from 1 on."""
    return Over("row_number")


def lag(x: ColumnLike, rows: int = 1) -> Over:
    """The value of the person's row this many places before; missing if there is none."""
    return Over("lag", (term_tree(x), _value(rows)))


def lead(x: ColumnLike, rows: int = 1) -> Over:
    """The value of the person's row this many places after; missing if there is none."""
    return Over("lead", (term_tree(x), _value(rows)))


def first_value(x: ColumnLike) -> Over:
    """The value of the person's first row."""
    return Over("first_value", (term_tree(x),))


@dataclass(frozen=True)
class When:
    """A CASE in the making: `when(a, 1).when(b, 2).otherwise(0)`."""

    branches: tuple[tuple[Expression, Expression], ...]

    def when(self, condition: ColumnLike, value: object) -> When:
        """One more branch, for rows that no earlier one took."""
        return When((*self.branches, (condition_tree(condition), _value(value))))

    def otherwise(self, value: object) -> Term:
        """The value for all other rows."""
        return Term(Case(self.branches, _value(value)))

    def end(self) -> Term:
        """Missing for all other rows."""
        return self.otherwise(None)


def _value(value: object) -> Expression:
    """A term, or a constant."""
    match value:
        case Term(tree):
            return tree
        case Measure() | When():
            hint = "Close a when(...) with otherwise(...); aggregates go into agg()."
            raise _wrong(value, "an expression of one row cannot hold it", hint)
        case _:
            return calls.constant(value)


def _truth(value: object) -> Expression:
    if isinstance(value, Term | bool):
        return _value(value)
    rule = "& and | combine conditions"
    raise _wrong(value, rule, "Put each comparison into brackets: (col('a') > 1) & (col('b') > 2).")


def _wrong(value: object, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(show(value), rule, hint)


def term_tree(value: ColumnLike) -> Expression:
    """The tree of a term, or of the column with that name."""
    if isinstance(value, str):
        return col(value).tree
    if isinstance(value, Term):
        return value.tree
    if isinstance(value, Measure):
        rule = "a column name or an expression belongs here, and no aggregate"
        raise InvalidInput("an aggregate", rule, "Write .agg(n=so.count()).")
    raise _wrong(
        value, "a column name or an expression belongs here", "Write 'age', col('age') or lit(5)."
    )


def condition_tree(value: ColumnLike, tables: tuple[str, ...] = ()) -> Expression:
    """The tree of a condition, given as a term or as SQL such as `age >= 65`."""
    if isinstance(value, str):
        from sordino.query.front.sql import parse_condition

        return parse_condition(value, tables)
    if isinstance(value, Term):
        return value.tree
    raise _wrong(value, "a condition belongs here", "Write 'age >= 65' or col('age') >= 65.")


def col(name: str, table: str | None = None) -> Term:
    """A column by name; `table` names the public table that it belongs to, if it was joined."""
    for text in (name, table):
        if text is not None and (not isinstance(text, str) or not text):
            rule = "a name must be text that is not empty"
            raise _wrong(text, rule, "Write col('age') or col('region', table='wards').")
    return Term(Column(name, table))


def lit(value: object) -> Term:
    """A constant."""
    return Term(_value(value))


def when(condition: ColumnLike, value: object) -> When:
    """Begin a CASE: the value where the condition is true."""
    return When(()).when(condition, value)


def _method(x: ColumnLike) -> Term:
    return Term(term_tree(x))


def bucket(x: ColumnLike, width: object) -> Term:
    """The lower end of the bucket: a width of 10 makes decades."""
    return _method(x).bucket(width)


def coalesce(x: ColumnLike, *others: object) -> Term:
    """The first that is not missing."""
    return _method(x).coalesce(*others)


def least(x: ColumnLike, *others: object) -> Term:
    """The smallest; missing ones are skipped."""
    return _method(x)._with("least", *others)


def greatest(x: ColumnLike, *others: object) -> Term:
    """The largest; missing ones are skipped."""
    return _method(x)._with("greatest", *others)


def date_part(part: str, x: ColumnLike) -> Term:
    """A part of a date."""
    return _method(x).date_part(part)


def date_trunc(unit: str, x: ColumnLike) -> Term:
    """The beginning of a unit of time."""
    return _method(x).date_trunc(unit)


def date_diff(unit: str, first: ColumnLike, last: ColumnLike) -> Term:
    """How many units of time begin after the first date, up to the last: "day" counts days."""
    return Term(calls.call("date_diff", _value(unit), term_tree(first), term_tree(last)))


def time_bucket(width: str, x: ColumnLike) -> Term:
    """The beginning of a span of time, such as "15 minutes"."""
    return _method(x).time_bucket(width)


def concat(x: ColumnLike, *others: object) -> Term:
    """The texts one after the other; a missing one is empty."""
    return Term(calls.concatenated([term_tree(x), *map(_value, others)]))


def year(x: ColumnLike) -> Term:
    """The year of a date."""
    return _method(x).year()


def quarter(x: ColumnLike) -> Term:
    """The quarter of a date."""
    return _method(x).quarter()


def month(x: ColumnLike) -> Term:
    """The month of a date."""
    return _method(x).month()


def week(x: ColumnLike) -> Term:
    """The ISO week of a date."""
    return _method(x).week()


def day(x: ColumnLike) -> Term:
    """The day of the month."""
    return _method(x).day()


def measures() -> dict[str, Callable[..., Measure]]:
    """The functions of all aggregates, by their names in Python."""
    found: dict[str, list[Kind]] = {}
    for kind in kinds().values():
        for name in (kind.python, *map(str.lower, kind.fixed)):
            found.setdefault(name, []).append(kind)
    return {name: _measure(name, of) for name, of in found.items()}


def _measure(name: str, of: list[Kind]) -> Callable[..., Measure]:
    """The function of one aggregate, or of several that an option tells apart, with a signature of its own."""
    plain = next(kind for kind in of if kind.option is None)
    options = {kind.option: kind for kind in of if kind.option is not None}
    fixed = plain.fixed.get(name.upper())
    least = len(plain.arguments) if plain.least is None else plain.least
    parameters = [
        Parameter(
            word,
            Parameter.POSITIONAL_OR_KEYWORD,
            annotation=ColumnLike,
            default=Parameter.empty if i < least else None,
        )
        for i, word in enumerate(plain.arguments)
    ]
    if plain.parameter is not None and fixed is None:
        parameters.append(
            Parameter(plain.parameter, Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
        )
    parameters += [
        Parameter(word, Parameter.KEYWORD_ONLY, annotation=bool, default=False) for word in options
    ]
    signature = Signature(parameters, return_annotation=Measure)

    def measure(*positional: Any, **named: Any) -> Measure:
        try:
            bound = signature.bind(*positional, **named).arguments
        except TypeError as error:
            raise InvalidInput(
                f"so.{name}(...)", f"{error}", f"Write {plain.examples[0].python}."
            ) from error
        kind = next((kind for option, kind in options.items() if bound.get(option)), plain)
        given = [bound[word] for word in plain.arguments if bound.get(word) is not None]
        level = fixed
        if plain.parameter is not None and level is None:
            level = decimal_reading(plain.parameter, bound[plain.parameter])
        return Measure(kind.form(tuple(map(term_tree, given)), level))

    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = (
        plain.says if fixed is None else f"The {plain.name} of {plain.parameter} {fixed}."
    )
    measure.__signature__ = signature  # type: ignore[attr-defined]
    return measure
