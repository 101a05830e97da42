"""SQL in, query tree out: exactly one SELECT of the supported syntax (docs/sql.md); everything else is refused."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from sordino.errors import Code, InvalidInput, UnsupportedSQL
from sordino.query.front.other_words import FIRST_WORDS, slip
from sordino.query.front.outputs import Answered
from sordino.query.front.shapes import check_query, shape
from sordino.query.front.sql_expressions import Reader
from sordino.query.front.sql_refusals import arguments, refusal
from sordino.query.front.sql_rows import Scope, items, meant_by_key, ordinal, read_from, with_tables
from sordino.query.front.sql_tokens import COMBINED, Words, read_words, shortened
from sordino.query.tree import Aggregate, Expression, Order, Output, Query, aggregates_in

__all__ = ["parse", "parse_condition", "parse_having"]

_NODES_A_WORD = 8
"""The parser tries several readings of some texts, each within others. It may make this many nodes for each word; plain
texts take about one. So the work is linear, whatever the text."""

_SETS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_MOST_CUBE, _MOST_SETS = 12, 4096
_DISTINCT = (
    "rows are never shown",
    "Write SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward: it lists the values, with counts.",
)
_ROWS = "rows are never shown", "Name aggregates, such as COUNT(*) or AVG(cost)."


def parse(text: str) -> Query:
    """The question that a SQL text asks; refuses with `UnsupportedSQL` whatever is not supported.

    Example:
        >>> parse("SELECT COUNT(*) AS n FROM visits").outputs
        (Output(name='n', value=Aggregate(function='count', arguments=(), parameter=None), hidden=False),)
    """
    words = read_words(text)
    if not words.tokens or words.tokens[0].text.upper() not in ("SELECT", "WITH"):
        start = words.tokens[0].text if words.tokens else "an empty text"
        example = slip([start]) or "Write SELECT COUNT(*) FROM visits, for example."
        raise UnsupportedSQL(
            shortened(start),
            *FIRST_WORDS.get(start.upper(), ("a question must begin with SELECT", example)),
        )
    return _select(text, _parsed(words))


def parse_condition(text: str, tables: tuple[str, ...] = ()) -> Expression:
    """The condition in a text such as `age >= 65 AND wards.region = 'North'`;
    the first of the tables is the asked one.
    """
    scope = _named_scope(text, tables)
    return (scope.conditions if tables else scope.reader).expression(_condition(text))


def parse_having(text: str) -> Expression:
    """The condition in a text such as `n > 5` or `COUNT(*) > 5`, on the outputs of a question."""
    return _with_aggregates(text, _condition(text), _named_scope(text, ()))


def _named_scope(text: str, tables: tuple[str, ...]) -> Scope:
    return Scope(text, tuple((table, table) for table in tables))


def _condition(text: str) -> exp.Expression:
    words = read_words(text)
    if not words.tokens:
        raise UnsupportedSQL(
            "an empty text", "a condition is missing", "Write age >= 65, for example."
        )
    # The parser reads whole statements only. A clause that the condition would add is refused below.
    prefix = "SELECT * FROM t WHERE "
    select = _parsed(words, tuple(read_words(prefix).tokens))
    if set(_present(select)) != {"expressions", "from_", "where"}:
        raise UnsupportedSQL(
            shortened(text), "only a condition can stand here", "Write age >= 65, for example."
        )
    condition: exp.Expression = select.args["where"].this
    return condition


def _parsed(words: Words, before: tuple[object, ...] = ()) -> exp.Select:
    tokens = [*before, *words.tokens]
    parser = DuckDB().parser(max_nodes=_NODES_A_WORD * len(tokens))
    try:
        trees = parser.parse(tokens, words.text)  # type: ignore[arg-type]
    except ParseError as error:
        if parser._node_count > parser.max_nodes:
            rule = "it takes too many attempts to read, since some of its words can mean several things"
            hint = "Put names into double quotes, or ask a smaller question."
            raise UnsupportedSQL(shortened(words.text), rule, hint) from error
        raise _syntax_error(words, error) from error
    except RecursionError as error:
        raise UnsupportedSQL(
            shortened(words.text), "it is nested too deep", "Ask several smaller questions."
        ) from error
    except (
        Exception
    ) as error:  # a parser of 10,000 lines may fail in any way on hostile text; none may escape
        hint = "`sordino docs sql` shows what is supported."
        raise UnsupportedSQL(shortened(words.text), "it is not understood", hint) from error
    if len(trees) == 1 and isinstance(trees[0], exp.SetOperation):
        raise UnsupportedSQL(shortened(words.text), *COMBINED)
    if len(trees) != 1 or type(trees[0]) is not exp.Select:
        rule, hint = "exactly one SELECT can be asked", "Ask about a declared table directly."
        raise UnsupportedSQL(shortened(words.text), rule, hint, Code.SUBQUERY)
    for name in trees[0].find_all(exp.Identifier):
        if re.fullmatch(r"\w+", name.this):
            # words were made names by quoting them (sql_tokens.py); messages show them as written
            name.set("quoted", False)
    return trees[0]


def _syntax_error(words: Words, error: ParseError) -> UnsupportedSQL:
    told = error.errors[0] if error.errors else {}
    fragment = str(told.get("highlight") or "")
    line, column = told.get("line"), told.get("col")
    near = (
        f"{shortened(fragment)} near line {line}, column {column}"
        if fragment and line
        else shortened(words.text)
    )
    meant = slip([token.text for token in words.tokens])
    refused = UnsupportedSQL(
        near,
        "the SQL is not understood from here on",
        meant
        or "Look for a missing comma, bracket or keyword before it; `sordino docs sql` shows the supported forms.",
        Code.SYNTAX,
    )
    begin = (
        words.text.rfind(fragment, 0, _offset(words.text, line, column))
        if fragment and line and column
        else -1
    )
    return refused.about(place=(begin, begin + len(fragment))) if begin >= 0 else refused


def _offset(text: str, line: int, column: int) -> int:
    """The place behind a column, both counted from 1."""
    return sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column


def _present(node: exp.Expression) -> list[str]:
    return [
        name for name, value in node.args.items() if value not in (None, False, "") and value != []
    ]


def _select(text: str, select: exp.Select) -> Query:
    if select.args.get("distinct") is not None:
        raise UnsupportedSQL("SELECT DISTINCT", *_DISTINCT)
    clauses = (
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
    )
    arguments(text, select, "with_", *clauses)
    scope, source = read_from(text, select, with_tables(text, select, {}))
    reader = scope.reader
    names, values = items(text, reader, select.expressions)
    if not values:
        raise UnsupportedSQL(shortened(text), *_ROWS)
    where = select.args.get("where")
    condition = None if where is None else scope.conditions.expression(where.this)
    keys, sets = _keys(text, select, reader, names, values)
    answered = Answered(_outputs(text, select, names, values, keys))
    having = select.args.get("having")
    filtered = None if having is None else _with_aggregates(text, having.this, scope)
    orders = _orders(text, select, reader, answered.names)
    sorted_by = [by for _, by, _ in orders if not isinstance(by, str)]
    answered = answered.asking(keys, [] if filtered is None else [filtered], sorted_by)
    query = Query(
        source=source,
        outputs=answered.outputs,
        where=condition,
        keys=keys,
        having=None if having is None else _having(text, having.this, filtered, answered),
        order=_order(text, orders, answered),
        limit=_whole(text, select, "limit"),
        offset=_whole(text, select, "offset") or 0,
        sets=sets,
    )
    try:
        check_query(query)
    except InvalidInput as error:
        raise UnsupportedSQL(error.value, error.rule, error.hint) from error
    return query


def _keys(
    text: str,
    select: exp.Select,
    reader: Reader,
    names: tuple[str, ...],
    values: tuple[Expression | Aggregate, ...],
) -> tuple[tuple[Expression, ...], tuple[tuple[int, ...], ...] | None]:
    """The expressions of GROUP BY, which may name them by place or by output;
    and its sets, if it has CUBE or the like.
    """
    group = select.args.get("group")
    if group is None:
        return (), None
    arguments(text, group, "expressions")
    if not group.expressions:
        raise UnsupportedSQL(
            "GROUP BY", "it names nothing to group by", "Write GROUP BY ward, or drop it."
        )
    keys: dict[object, Expression] = {}

    def place_of(node: exp.Expression) -> int:
        place_in_select = ordinal(text, node, len(values))
        if place_in_select is not None:
            key = values[place_in_select]
        else:
            key = meant_by_key(text, node, reader.expression(node), names, values)
        if aggregates_in(key):
            raise refusal(
                text,
                node,
                (
                    "an aggregate cannot be a key",
                    "Group by columns; filter aggregates with HAVING.",
                ),
            )
        keys.setdefault(shape(key), key)
        return list(keys).index(shape(key))

    elements = [_element(text, node, place_of) for node in group.expressions]
    if not any(isinstance(node, _SETS) for node in group.expressions):
        return tuple(keys.values()), None
    if math.prod(map(len, elements)) > _MOST_SETS:
        rule = f"GROUP BY may have at most {_MOST_SETS:,} sets of keys"
        raise refusal(
            text,
            group,
            (rule, "Use fewer columns in CUBE, or list the sets: GROUPING SETS ((a, b), (a))."),
        )
    found = (
        tuple(sorted({key for part in parts for key in part}))
        for parts in itertools.product(*elements)
    )
    return tuple(keys.values()), tuple(dict.fromkeys(found))


def _element(
    text: str, node: exp.Expression, place_of: Callable[[exp.Expression], int]
) -> list[tuple[int, ...]]:
    """The sets of keys that one element of GROUP BY stands for."""
    match node:
        case exp.Cube():
            parts = [_places(part, place_of) for part in node.expressions]
            if len(parts) > _MOST_CUBE:
                raise refusal(
                    text,
                    node,
                    (f"CUBE takes at most {_MOST_CUBE} columns", "List the sets that you need."),
                )
            chosen = (itertools.combinations(parts, size) for size in range(len(parts), -1, -1))
            return [
                tuple(key for part in some for key in part) for sizes in chosen for some in sizes
            ]
        case exp.Rollup():
            parts = [_places(part, place_of) for part in node.expressions]
            return [
                tuple(key for part in parts[:size] for key in part)
                for size in range(len(parts), -1, -1)
            ]
        case exp.GroupingSets():
            return [part for one in node.expressions for part in
                    (_element(text, one, place_of) if isinstance(one, _SETS) else [_places(one, place_of)])]  # fmt: skip
        case _:
            return [(place_of(node),)]


def _places(node: exp.Expression, place_of: Callable[[exp.Expression], int]) -> tuple[int, ...]:
    match node:
        case exp.Tuple():
            return tuple(place_of(part) for part in node.expressions)
        case exp.Paren():
            return (place_of(node.this),)
        case _:
            return (place_of(node),)


def _outputs(
    text: str,
    select: exp.Select,
    names: tuple[str, ...],
    values: tuple[Expression | Aggregate, ...],
    keys: tuple[Expression, ...],
) -> tuple[Output, ...]:
    shapes = {shape(key): key for key in keys}
    outputs = []
    for item, name, value in zip(select.expressions, names, values, strict=True):
        if aggregates_in(value):
            outputs.append(Output(name, value))
        elif (key := shapes.get(shape(value))) is not None:
            outputs.append(Output(name, key))
        else:
            node = item.this if type(item) is exp.Alias else item
            raise refusal(
                text,
                node,
                (
                    "it is neither an aggregate nor a key of GROUP BY",
                    "Add it to GROUP BY, or take an aggregate such as AVG of it.",
                ),
            )
    if not any(map(aggregates_in, values)):
        rule = "a question must ask for an aggregate, as rows are never shown"
        raise UnsupportedSQL(shortened(text), rule, "Add COUNT(*) to SELECT.")
    return tuple(outputs)


def _with_aggregates(text: str, node: exp.Expression, scope: Scope) -> Expression:
    """A condition on the noisy answer, with columns and aggregates as they are written."""
    return Reader(text, scope.column, lambda _, found: found).expression(node)


_Orders = list[tuple[exp.Expression, str | Expression, bool]]
"""Where it stands, the name of an output or what is sorted by, and whether it is descending."""


def _orders(text: str, select: exp.Select, reader: Reader, names: tuple[str, ...]) -> _Orders:
    order = select.args.get("order")
    if order is None:
        return []
    arguments(text, order, "expressions")
    orders: _Orders = []
    for node in order.expressions:
        if type(node) is not exp.Ordered:
            raise refusal(
                text,
                node,
                ("ORDER BY takes outputs, each with ASC or DESC", "Write ORDER BY n DESC."),
            )
        arguments(text, node, "this", "desc")
        place = ordinal(text, node.this, len(names))
        by = reader.item(node.this) if place is None else names[place]
        orders.append((node.this, by, bool(node.args.get("desc"))))
    return orders


def _having(
    text: str, node: exp.Expression, condition: Expression | None, answered: Answered
) -> Expression | None:
    try:
        return None if condition is None else answered.condition(condition)
    except InvalidInput as error:
        raise UnsupportedSQL(
            f"{error.value} in {refusal(text, node, ('', '')).value}", error.rule, error.hint
        ) from error


def _order(text: str, orders: _Orders, answered: Answered) -> tuple[Order, ...]:
    found: dict[str, Order] = {}
    for node, by, descending in orders:
        try:
            name = by if isinstance(by, str) else answered.require(by)
        except InvalidInput as error:
            raise refusal(text, node, (error.rule, error.hint)) from error
        # a second order by the same output changes nothing
        found.setdefault(name, Order(name, descending))
    return tuple(found.values())


def _whole(text: str, select: exp.Select, clause: str) -> int | None:
    node = select.args.get(clause)
    if node is None:
        return None
    arguments(text, node, "expression")
    words = node.expression
    if (
        type(words) is not exp.Literal
        or words.args.get("is_string")
        or not str(words.this).isdigit()
        or len(str(words.this)) > 18
    ):
        raise refusal(
            text, words, (f"{clause.upper()} takes a whole number", f"Write {clause.upper()} 10.")
        )
    return int(str(words.this))
