"""A question as one text of SQL: what the ledger keeps, and by whose digest two requests are told apart.

`parse(sql_text(query)) == query` for what SQL can say within the parser's limits of length and nesting. What Python
alone can say, such as a third, has a spelling of its own, so that different questions never share a text. Ledgers hold
digests of these texts: a spelling never changes once it is released, and so it does not hang on the parser's lists of
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import assert_never

from sordino.errors import InvalidInput
from sordino.query.aggregates.registry import kind_of
from sordino.query.front.calls import CASTS, check_name, number
from sordino.query.front.names import distinct_names
from sordino.query.front.outputs import OUTPUT, Answered
from sordino.query.front.shapes import WITHIN_PERSON, check_query, rebuilt
from sordino.query.same_name import folded
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Join,
    Literal,
    Member,
    Order,
    Output,
    Query,
    Rows,
    Source,
    Subquery,
    Table,
    UnionAll,
    Value,
    Window,
    aggregates_in,
)

__all__ = ["sql_text"]

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = {"ALL", "ALTER", "AND", "ANTI", "ANY", "AS", "ASC", "ASOF", "BETWEEN", "BY", "CASE", "CAST", "COLLATE",
           "CONNECT_BY_ROOT", "CREATE", "CROSS", "CUBE", "CURRENT_CATALOG", "CURRENT_DATE", "CURRENT_DATETIME",
           "CURRENT_ROLE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "DEFAULT", "DELETE", "DESC",
           "DISTINCT", "DROP", "ELSE", "END", "ESCAPE", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FILTER", "FOR",
           "FROM", "FULL", "GLOB", "GRANT", "GROUP", "GROUPING", "HAVING", "IF", "ILIKE", "IN", "INNER", "INSERT",
           "INSTALL", "INTERSECT", "INTERVAL", "INTO", "IS", "ISNULL", "JOIN", "LAMBDA", "LATERAL", "LEFT", "LIKE",
           "LIMIT", "LOCALTIME", "LOCALTIMESTAMP", "MAP", "NATURAL", "NOT", "NOTNULL", "NULL", "NULLS", "OFFSET",
           "ON", "ONLY", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "PIVOT", "POSITIONAL", "QUALIFY", "REGEXP",
           "RETURNING", "REVOKE", "RIGHT", "RLIKE", "ROLLBACK", "ROLLUP", "SELECT", "SEMI", "SESSION_USER", "SET",
           "SIMILAR", "SOME", "STRUCT", "SUMMARIZE", "TABLE", "TABLESAMPLE", "THEN", "TO", "TRUE", "UNION",
           "UNNEST", "UNPIVOT", "UPDATE", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN", "XOR"}  # fmt: skip
"""Words that stand for a name only in quotes; more than need be, so that other versions of the parser agree."""

_OR, _AND, _PREDICATE, _JOINED, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
"""How tightly a piece of text holds together; one that is looser than its place asks for goes into brackets."""

_OPERATORS = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _PREDICATE),
    "||": _JOINED,
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
_FUNCTIONS = {"abs", "bucket", "cast", "ceil", "clamp", "coalesce", "date_diff", "date_part", "date_trunc", "dayname",
              "exp", "floor", "greatest", "least", "length", "ln", "log10", "lower", "monthname", "power", "round", "sqrt",
              "substr", "time_bucket", "upper"}  # fmt: skip
_MOST_DIGITS = 40
"""What the parser takes in one number, those of the exponent included."""

_READABLE_DIGITS = 20
"""A number of this many digits is written without exponent."""


def frame_ends(frame: tuple[int | None, int | None]) -> tuple[str, str]:
    """Where a frame begins and ends, in words of SQL."""

    def words(end: int | None, side: str) -> str:
        if end == 0:
            return "CURRENT ROW"
        return (
            f"UNBOUNDED {side}"
            if end is None
            else f"{abs(end)} {'PRECEDING' if end < 0 else 'FOLLOWING'}"
        )

    return words(frame[0], "PRECEDING"), words(frame[1], "FOLLOWING")


def sql_text(query: Query) -> str:
    """The question in SQL, always in the same words; line breaks only within names and texts that hold them.

    Example:
        >>> from sordino.query.front.sql import parse
        >>> sql_text(parse("select Ward, count(*) from visits where not (age<65 or cost is null) group by 1"))
        'SELECT Ward, COUNT(*) AS count FROM visits WHERE NOT (age < 65 OR cost IS NULL) GROUP BY Ward'
    """
    check_query(query)  # a tree that no front end made may be too deep for the stack
    rows, answered = _reader(query.source), Answered(query.outputs)
    shown = tuple(output for output in query.outputs if not output.hidden)
    clauses = ["SELECT", ", ".join(_outputs(shown, rows)), "FROM", _source(query.source)]
    if query.where is not None:
        clauses += ["WHERE", rows.text(query.where)]
    if query.sets is not None:
        clauses += ["GROUP BY GROUPING SETS", f"({', '.join(_sets(query, shown))})"]
    elif query.keys:
        clauses += ["GROUP BY", ", ".join(_keys(query.keys, shown, query.source))]
    apart = partial(_apart, items=shown, source=query.source)
    if query.having is not None:
        clauses += ["HAVING", _having(query.having, answered, rows, apart)]
    if query.order:
        orders = [_order(each, answered, rows, apart) for each in query.order]
        clauses += ["ORDER BY", ", ".join(orders)]
    if query.limit is not None:
        clauses += ["LIMIT", str(query.limit)]
    if query.offset:
        clauses += ["OFFSET", str(query.offset)]
    return " ".join(clauses)


@dataclass(frozen=True)
class _Writer:
    """Writes expressions; `column` says how a column is named."""

    column: Callable[[Column], str]

    def text(self, node: Expression, least: int = _OR) -> str:
        """An expression where one that holds together at least so tightly is expected."""
        level, text = self._piece(node)
        return text if level >= least else f"({text})"

    def _list(self, nodes: Iterable[Expression]) -> str:
        return ", ".join(map(self.text, nodes))

    def _piece(self, node: Expression) -> tuple[int, str]:
        match node:
            case Column():
                return _ATOM, self.column(node)
            case Literal(value):
                return _constant(value)
            case Case(branches, otherwise):
                words = [
                    f"WHEN {self.text(condition)} THEN {self.text(value)}"
                    for condition, value in branches
                ]
                words += [] if otherwise == Literal(None) else [f"ELSE {self.text(otherwise)}"]
                return _ATOM, " ".join(["CASE", *words, "END"])
            case Call("not", (Call() | Member() as negated,)) if (
                text := self._predicate(negated, "NOT ")
            ) is not None:
                return _PREDICATE, text
            case Member():
                return _PREDICATE, self._predicate(node) or ""
            case Call() if (text := self._predicate(node)) is not None:
                return _PREDICATE, text
            case Call("not", (x,)):
                return _PREDICATE, f"NOT {self.text(x, _PREDICATE)}"
            case Call("neg", (Literal() as x,)):
                return _SIGN, f"-({self.text(x)})"  # -5 is a constant of its own
            case Call("neg", (x,)):
                text = self.text(x, _SIGN)
                return _SIGN, f"- {text}" if text.startswith(
                    "-"
                ) else f"-{text}"  # two signs would begin a comment
            case Call("and" | "or" as function, (_, _, *_) as parts):
                level = _AND if function == "and" else _OR
                return level, f" {function.upper()} ".join(
                    self.text(part, level + 1) for part in parts
                )
            case Call(function, (left, right)) if function in _OPERATORS:
                level = _OPERATORS[function]
                # a - b - c is (a - b) - c; comparisons of comparisons are bracketed, as people and dialects differ on
                # them
                first = self.text(left, level + (level == _PREDICATE))
                return level, f"{first} {function} {self.text(right, level + 1)}"
            case Call("cast", (Literal(str(kind)), x)) if kind in CASTS:
                return _ATOM, f"CAST({self.text(x)} AS {kind.upper()})"
            case Call(function, parts) if function in _FUNCTIONS:
                return _ATOM, f"{function.upper()}({self._list(parts)})"
            case Aggregate():
                return _ATOM, self.aggregate(node)
            case Window(function, arguments, partition, order, frame):
                over = [f"PARTITION BY {self._list(partition)}"] if partition else []
                down = (" DESC" if descending else "" for _, descending in order)
                keys = [self.text(one) + word for (one, _), word in zip(order, down, strict=True)]
                over += [f"ORDER BY {', '.join(keys)}"] if keys else []
                over += [f"ROWS BETWEEN {' AND '.join(frame_ends(frame))}"] if frame else []
                inner = "*" if function == "count" and not arguments else self._list(arguments)
                return _ATOM, f"{function.upper()}({inner}) OVER ({' '.join(over)})"
            case Call(function, parts):
                what, rule = f"{function} of {len(parts)} arguments", "there is no such function"
                raise InvalidInput(what, rule, "`sordino docs sql` lists what there is.")
            case _:
                assert_never(node)

    def _predicate(self, node: Call | Member, negation: str = "") -> str | None:
        """A condition that has words of its own for its negation; None if it is none of these."""
        match node:
            case Call("is_null", (x,)):
                return f"{self.text(x, _SUM)} IS {negation}NULL"
            case Call("like" | "ilike" as function, (x, pattern)):
                return (
                    f"{self.text(x, _SUM)} {negation}{function.upper()} {self.text(pattern, _SUM)}"
                )
            case Member(column, rows):
                return f"{self.column(column)} {negation}IN ({_rows(rows)})"
            case Call("in", (x, *values)):
                return f"{self.text(x, _SUM)} {negation}IN ({self._list(values)})"
            case _:
                return None

    def aggregate(self, value: Aggregate) -> str:
        """An aggregate of a group's rows."""
        if value.function in WITHIN_PERSON:
            return f"{WITHIN_PERSON[value.function]}({self._list(value.arguments)})"
        return kind_of(value).text(
            value, map(self.text, value.arguments), lambda level: self.text(number(level))
        )


def _name(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.upper() not in _QUOTED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _column(column: Column, first: str | None = None) -> str:
    """A column; one of the first table is qualified where that is known to be `first`, and was named."""
    table = first if column.table is None and column.first else column.table
    return _name(column.name) if table is None else f"{_name(table)}.{_name(column.name)}"


def _reader(source: Source) -> _Writer:
    """Writes what is said of the rows of a source: where there are several tables, the first is named as it was."""
    if not isinstance(source, Join):
        return _Writer(_column)
    return _Writer(partial(_column, first=_first(source)))


def _first(source: Source) -> str:
    """What qualifies the columns of the first table."""
    while isinstance(source, Join):
        source = source.left
    return source.name


def _constant(value: Value) -> tuple[int, str]:
    match value:
        case None:
            return _ATOM, "NULL"
        case bool():
            return _ATOM, "TRUE" if value else "FALSE"
        case int() | Fraction():
            return _number(value)
        case str():
            return _ATOM, "'" + value.replace("'", "''") + "'"
        case datetime():
            return _ATOM, f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return _ATOM, f"DATE '{value.isoformat()}'"
        case _:
            assert_never(value)


def _number(value: int | Fraction) -> tuple[int, str]:
    """A number: as SQL reads it if it can, else a whole one by all its digits, a broken one as a quotient."""
    number(value)  # refuses what is too large for a constant
    size = value if value >= 0 else -value
    if isinstance(value, Fraction) and value.denominator == 1:
        text = None
    else:
        text = _decimal(size) or (str(size) if isinstance(size, int) else None)
    if text is None:
        # without blanks: (1 / 3) is a division
        return (
            _ATOM,
            f"({value.numerator}/{value.denominator})",
        )
    return (_SIGN, f"-{text}") if value < 0 else (_ATOM, text)


def _decimal(size: int | Fraction) -> str | None:
    """The exact decimal of a number that is not negative; None if SQL's digits do not suffice."""
    places = _places(size.denominator)
    if places is None:
        return None
    digits = str(size.numerator * 10**places // size.denominator)
    plain = _pointed(digits, places)
    if _digits(plain) <= _READABLE_DIGITS:
        return plain
    significant = digits.strip("0")
    power = len(digits) - len(digits.rstrip("0")) - places
    scientific, *others = (
        f"{_pointed(significant, k)}e{power + k}" for k in range(len(significant) - 1, -1, -1)
    )
    # The point may stand anywhere, which at times makes the exponent shorter.
    texts = [*sorted((plain, scientific), key=_digits), *others]
    return next((text for text in texts if _digits(text) <= _MOST_DIGITS), None)


def _digits(number: str) -> int:
    return sum(map(str.isdigit, number))


def _places(denominator: int) -> int | None:
    """How many digits after the point a quotient by this number has; None if they never end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _pointed(digits: str, places: int) -> str:
    digits = digits.rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


def _outputs(outputs: tuple[Output, ...], rows: _Writer) -> Iterable[str]:
    """The items of SELECT. A column bears its own name; a default name that nobody may give is left to the parser."""
    names = tuple(output.name for output in outputs)
    given = [None if _is_default(output) else output.name for output in outputs]
    if distinct_names(given, [output.value for output in outputs]) != names:
        given = list(names)
    for output, name in zip(outputs, given, strict=True):
        text = rows.text(output.value)
        yield text if name is None else f"{text} AS {_name(name)}"


def _is_default(output: Output) -> bool:
    if isinstance(output.value, Column) and output.name == output.value.name:
        return True
    try:
        check_name(output.name)
    except InvalidInput:
        return True
    return False


def _source(source: Source) -> str:
    match source:
        case Table(table, alias):
            return _name(table) if alias is None else f"{_name(table)} AS {_name(alias)}"
        case Subquery(rows, name):
            return f"({_rows(rows)}) AS {_name(name)}"
        case Join(left, right, on, kind, condition):
            writer = _reader(source)
            pairs = [f"{writer.column(ours)} = {writer.column(theirs)}" for ours, theirs in on]
            pairs += [] if condition is None else [writer.text(condition, _PREDICATE)]
            if not pairs:
                return f"{_source(left)}, {_source(right)}"
            return f"{_source(left)} {'LEFT ' if kind == 'left' else ''}JOIN {_source(right)} ON {' AND '.join(pairs)}"
        case _:
            assert_never(source)


def _rows(rows: Rows | UnionAll) -> str:
    """A SELECT of rows; every item has its name, but for columns that bear it."""
    if isinstance(rows, UnionAll):
        return " UNION ALL ".join(map(_rows, rows.parts))
    items, writer = ["*"] if rows.every else [], _reader(rows.source)
    for item in rows.items:
        text = writer.text(item.value)
        own = isinstance(item.value, Column) and item.value.name == item.name
        items.append(text if own else f"{text} AS {_name(item.name)}")
    clauses = [
        "SELECT DISTINCT" if rows.distinct else "SELECT",
        ", ".join(items),
        "FROM",
        _source(rows.source),
    ]
    if rows.where is not None:
        clauses += ["WHERE", writer.text(rows.where)]
    if rows.keys is not None:
        clauses += ["GROUP BY", ", ".join(_keys(rows.keys, rows.items, rows.source))]
    if rows.having is not None:
        apart = partial(_apart, items=rows.items, source=rows.source)
        clauses += ["HAVING", writer.text(_replaced(rows.having, apart))]
    return " ".join(clauses)


def _sets(query: Query, shown: Sequence[Output]) -> Iterable[str]:
    """The sets of GROUPING SETS; a single key, too, stands in brackets."""
    keys = list(_keys(query.keys, shown, query.source))
    return (f"({', '.join(keys[place] for place in places)})" for places in query.sets or ())


def _keys(keys: Sequence[Expression], items: Sequence[Output], source: Source) -> Iterable[str]:
    """The items of GROUP BY. There, a plain name means an item first, and a plain number a place in SELECT."""
    rows, values = _reader(source), [item.value for item in items]
    for key in keys:
        if _other(key, items) is not None and key in values:
            yield str(values.index(key) + 1)
        else:
            text = _bracketed_all(rows.text(_apart(key, items, source)))
            yield f"({text})" if isinstance(key, Literal) else text


def _other(column: Expression, items: Sequence[Output]) -> Output | None:
    """The item that a plain name means, if that is another than the column of that name."""
    if not isinstance(column, Column) or column.table is not None:
        return None
    found = (item for item in items if folded(item.name) == folded(column.name))
    return next((item for item in found if item.value != column), None)


def _apart(column: Expression, items: Sequence[Output], source: Source) -> Expression:
    """A column of the first table, with its table where a plain name would mean an item."""
    if not isinstance(column, Column) or _other(column, items) is None:
        return column
    ours = column.first or not isinstance(source, Join)
    return Column(column.name, _first(source)) if ours else column


def _bracketed_all(text: str) -> str:
    """In brackets if it begins with the name "all": the parser takes GROUP BY "all" for GROUP BY ALL."""
    return f"({text})" if text[:5].upper() == '"ALL"' else text


def _order(
    order: Order, answered: Answered, rows: _Writer, apart: Callable[[Expression], Expression]
) -> str:
    hidden = (
        apart(one.value) for one in answered.outputs if one.hidden and one.name == order.output
    )
    text = _bracketed_all(next(map(rows.text, hidden), _name(order.output)))
    if order.output in answered.names and _found(Column(order.output), answered) != order.output:
        text = str(answered.names.index(order.output) + 1)
    return text + (" DESC" if order.descending else "")


def _found(value: Expression | Aggregate, answered: Answered) -> str | None:
    """The output that the parser finds for it, if one and only one."""
    try:
        return answered.find(value)
    except InvalidInput:
        return None


def _means(written: Expression, condition: Expression, answered: Answered) -> bool:
    """Whether the parser takes what is written for the condition."""
    try:
        return answered.condition(written) == condition
    except InvalidInput:
        return False


def _having(
    condition: Expression,
    answered: Answered,
    rows: _Writer,
    apart: Callable[[Expression], Expression],
) -> str:
    """By the names of outputs; where these name columns as well, or are not shown, by what the outputs are."""
    if _means(condition, condition, answered):
        return rows.text(condition)
    values = {output.name: output.value for output in answered.outputs}

    def by_value(column: Column) -> Expression:
        value = values.get(column.name)
        if value is None or _found(value, answered) != column.name:
            return column
        return Column(column.name, OUTPUT) if aggregates_in(value) else value

    def written(column: Column) -> str:
        value = values.get(column.name) if column.table == OUTPUT else None
        if value is None:  # a plain name is an output's
            return rows.text(apart(column)) if column.first else rows.column(column)
        return rows.text(value, _ATOM)

    valued = _replaced(condition, by_value)
    if _means(valued, condition, answered):
        return _Writer(written).text(valued)
    # A condition that no text asks for: its names are marked as outputs, in a way that the parser refuses.
    return rows.text(
        _replaced(condition, lambda column: Column(column.name, column.table or OUTPUT))
    )


def _replaced(node: Expression, column: Callable[[Column], Expression]) -> Expression:
    if isinstance(node, Column):
        return column(node)
    return rebuilt(node, lambda part: _replaced(part, column))
