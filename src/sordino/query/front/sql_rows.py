"""The rows of a question: FROM, JOIN, subqueries and WITH, and which table a qualified column belongs to.

Only names are looked at here. Whether rows stay one person's own is decided by `plan/bind.py`, which knows the
declaration.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from sqlglot import exp

from sordino.errors import Code, InvalidInput, UnsupportedSQL
from sordino.query.front.calls import all_of, check_name
from sordino.query.front.names import distinct_names
from sordino.query.front.outputs import one_of
from sordino.query.front.shapes import children, expect_few_tables, rebuilt, shape
from sordino.query.front.sql_expressions import Reader
from sordino.query.front.sql_refusals import HINTS, arguments, refusal
from sordino.query.front.sql_tokens import MANY_JOINS, MOST_JOINS, shortened
from sordino.query.same_name import folded
from sordino.query.tree import (
    Column,
    Expression,
    Join,
    Member,
    Output,
    Rows,
    Source,
    Subquery,
    Table,
    UnionAll,
)

__all__ = ["Scope", "items", "meant_by_key", "ordinal", "read_from", "with_tables"]

_PLAIN_TABLE = (
    "only a declared table or a subquery with a name can be asked",
    "Write FROM visits, FROM visits AS v, or FROM (SELECT ...) AS v.",
)
_JOIN_FORM = (
    "tables are joined by equal columns",
    "Write JOIN wards ON visits.ward = wards.name, or JOIN wards USING (ward).",
)
_CORRELATED = (
    "a subquery may look at the outer row's person only",
    "Write EXISTS (SELECT 1 FROM b WHERE b.person = a.person AND ...), with other conditions on b alone.",
)
_ROWS_ONLY = (
    "a subquery has no order and no limit",
    "Leave ORDER BY and LIMIT out; ROW_NUMBER() numbers a person's rows.",
)
_AMONG = "Write patient_id IN (SELECT patient_id FROM ...)."
Named: TypeAlias = Mapping[str, Rows | UnionAll]
_Some = TypeVar("_Some", Rows, Rows | UnionAll)


@dataclass(frozen=True)
class Scope:
    """The tables of FROM, as (what the text qualifies columns with, what the tree does); the first is the asked one.

    `common` are the tables of WITH, `outer` the scope of the question around a subquery.
    """

    text: str
    tables: tuple[tuple[str, str], ...]
    common: Named = field(default_factory=dict)
    outer: Scope | None = None

    @property
    def reader(self) -> Reader:
        """Reads expressions over these tables."""
        return Reader(self.text, self.column)

    @property
    def conditions(self) -> Reader:
        """Reads conditions, which may ask whether the row's person is among others."""
        return Reader(self.text, self.column, member=self.member)

    def column(self, node: exp.Expression) -> Column:
        """The column that a name means, with `table` if it is one of a joined table."""
        arguments(self.text, node, "this", "table")
        name = str(node.this.this)
        qualifier = node.args.get("table")
        if qualifier is None:
            return Column(name)
        table = self.find(node, str(qualifier.this))
        return Column(name, first=True) if table == self.tables[0][1] else Column(name, table)

    def find(self, node: exp.Expression, qualifier: str) -> str:
        """What the tree calls the table that a qualifier means."""
        known = [name for name, _ in self.tables]
        found = one_of(qualifier, known)
        if found is not None:
            return dict(self.tables)[found]
        if self.outer is not None and self.outer.has(qualifier):
            raise refusal(self.text, node, _CORRELATED)
        close = difflib.get_close_matches(qualifier, known, 1)
        hint = (
            f"Did you mean {close[0]}?"
            if close
            else "Qualify columns by " + (" or ".join(known) or "nothing here") + "."
        )
        raise refusal(
            self.text, node, (f"no table {shortened(qualifier)} is in FROM", hint, Code.TABLE_NAME)
        )

    def has(self, qualifier: str) -> bool:
        """Whether a qualifier is known here."""
        return one_of(qualifier, [name for name, _ in self.tables]) is not None

    def joined(
        self, node: exp.Expression, qualifier: str, source: Table | Subquery
    ) -> tuple[Scope, Table | Subquery]:
        """The scope with one more table, and the table under a name that no other has."""
        if self.has(qualifier):
            rule = f"the table {shortened(qualifier)} occurs twice"
            raise refusal(
                self.text, node, (rule, "Join every table once, or give it another name with AS.")
            )
        taken, free = [name for _, name in self.tables], qualifier
        if one_of(source.name, taken):
            # FROM visits AS a JOIN visits: the first is called visits in the tree
            while one_of(free, taken):
                free += "_"
            source = (
                replace(source, alias=free)
                if isinstance(source, Table)
                else replace(source, name=free)
            )
        return replace(self, tables=(*self.tables, (qualifier, source.name))), source

    def member(self, node: exp.Expression) -> Expression:
        """IN (SELECT ...) and EXISTS (SELECT ...): whether the row's person is among those of other rows."""
        if isinstance(node, exp.Exists):
            return self._exists(node)
        arguments(self.text, node, "this", "query")
        column, query = node.this, node.args["query"]
        if not _is_column(column):
            rule = "IN (SELECT ...) is asked of the column that names the person"
            raise refusal(self.text, node, (rule, _AMONG))
        select = self._inner(query)
        rows = _few(self.text, node, _rows(self.text, select, self.common, self))
        if isinstance(rows, UnionAll) or len(rows.items) != 1 or rows.every:
            rule = "IN (SELECT ...) takes one column, that of the person"
            raise refusal(self.text, node, (rule, _AMONG))
        return Member(self.column(column), rows)

    def _inner(self, node: exp.Expression) -> exp.Expression:
        """The SELECT in brackets; what stands behind it in the brackets would be overlooked, and is refused."""
        while type(node) is exp.Subquery:
            arguments(self.text, node, "this")
            node = node.this
        return node

    def _exists(self, node: exp.Exists) -> Expression:
        """EXISTS as IN: the person of the inner rows is the one that the outer row's equals."""
        arguments(self.text, node, "this")
        select = self._inner(node.this)
        if (
            type(select) is not exp.Select
            or select.args.get("group") is not None
            or select.args.get("having") is not None
        ):
            raise refusal(self.text, node, _CORRELATED)
        arguments(self.text, select, "with_", "expressions", "from_", "joins", "where")
        scope, source = read_from(
            self.text, select, with_tables(self.text, select, self.common), self
        )
        for item in select.expressions:
            if type(item) is not exp.Star:
                # what is selected does not matter, but an aggregate would: it has a row where there is none
                scope.reader.expression(item.this if type(item) is exp.Alias else item)
        where = select.args.get("where")
        rest: list[Expression] = []
        found: tuple[Column, Column] | None = None
        for part in [] if where is None else _conjuncts(where.this):
            pair = _correlation(scope, part)
            if pair is None:
                rest.append(scope.conditions.expression(part))
            elif found is None:
                found = pair
            else:
                raise refusal(self.text, part, _CORRELATED)
        if found is None:
            raise refusal(self.text, node, _CORRELATED)
        inner, outer = found
        rows = Rows(source, (Output(inner.name, inner),), all_of(*rest) if rest else None)
        return Member(outer, _few(self.text, node, rows))


def _conjuncts(node: exp.Expression) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    rest = [node]
    while rest:
        part = rest.pop()
        while type(part) is exp.Paren:
            part = part.this
        if type(part) is exp.And:
            rest += [part.expression, part.this]
        else:
            found.append(part)
    return found


def _is_column(node: exp.Expression) -> bool:
    return type(node) is exp.Column and type(node.this) is exp.Identifier


def _equal_columns(node: exp.Expression) -> tuple[exp.Expression, exp.Expression] | None:
    """Both columns of `a = b`; None if it is another condition."""
    if type(node) is exp.EQ and _is_column(node.this) and _is_column(node.expression):
        return node.this, node.expression
    return None


def _correlation(scope: Scope, node: exp.Expression) -> tuple[Column, Column] | None:
    """Inner and outer column of `b.person = a.person`; None if the condition is about the inner rows alone."""
    sides = _equal_columns(node)
    if sides is None or scope.outer is None:
        return None
    outer = [_is_outer(scope, side) for side in sides]
    if not any(outer):
        return None
    inner, other = (sides[1], sides[0]) if outer[0] else sides
    return scope.column(inner), scope.outer.column(other)


def _is_outer(scope: Scope, node: exp.Expression) -> bool:
    qualifier = node.args.get("table")
    if qualifier is None or scope.outer is None:
        return False
    return not scope.has(str(qualifier.this)) and scope.outer.has(str(qualifier.this))


def with_tables(text: str, select: exp.Expression, outside: Named) -> Named:
    """The tables of WITH, each of which may name those before it."""
    clause = select.args.get("with_")
    if clause is None:
        return outside
    if clause.args.get("recursive"):
        rule = "WITH RECURSIVE is not supported: its rows could depend on any number of others"
        raise UnsupportedSQL(
            "WITH RECURSIVE", rule, "Write the steps out, each as a table of WITH."
        )
    arguments(text, clause, "expressions")
    common = dict(outside)
    for table in clause.expressions:
        arguments(text, table, "this", "alias")
        arguments(text, table.args["alias"], "this")
        name = str(table.args["alias"].this.this)
        if one_of(name, list(common)) is not None and one_of(name, list(outside)) is None:
            raise refusal(
                text, table, (f"the table {shortened(name)} occurs twice", "Give it another name.")
            )
        common = {known: rows for known, rows in common.items() if folded(known) != folded(name)}
        common[name] = _few(text, table, _rows(text, table.this, dict(common), None))
    return common


def read_from(
    text: str, select: exp.Select, common: Named, outer: Scope | None = None
) -> tuple[Scope, Source]:
    """The scope of a SELECT, and its source."""
    clause = select.args.get("from_")
    if clause is None:
        hint = "Write SELECT COUNT(*) FROM visits, for example."
        raise UnsupportedSQL(shortened(text), "a question must name a table", hint)
    arguments(text, clause, "this")
    qualifier, source = _table(text, clause.this, common)
    scope: Scope = Scope(text, ((qualifier, source.name),), common, outer)
    joined: Source = source
    if len(select.args.get("joins") or ()) > MOST_JOINS:
        raise refusal(text, clause, MANY_JOINS)
    for node in select.args.get("joins") or ():
        scope, joined = _join(scope, joined, node)
    return scope, joined


def _table(text: str, node: exp.Expression, common: Named) -> tuple[str, Table | Subquery]:
    """The qualifier of a table in FROM or JOIN, and what it is."""
    alias = node.args.get("alias")
    qualifier = None
    if alias is not None:
        arguments(text, alias, "this")
        qualifier = str(alias.this.this)
    if type(node) is exp.Subquery and qualifier:
        arguments(text, node, "this", "alias")
        rows = _few(text, node, _rows(text, node.this, common, None))
        return qualifier, Subquery(rows, _checked(text, node, qualifier))
    plain = type(node) is exp.Table and type(node.this) is exp.Identifier and node.this.this
    if not plain or qualifier == "" or node.args.get("db") is not None:
        raise refusal(text, node, _PLAIN_TABLE)
    arguments(text, node, "this", "alias")
    name = str(node.this.this)
    known = one_of(name, list(common))
    if known is not None:
        return qualifier or name, Subquery(common[known], qualifier or known)
    return qualifier or name, Table(name)


def _few(text: str, node: exp.Expression, rows: _Some) -> _Some:
    with _told_of(text, node):
        expect_few_tables(rows)
    return rows


def _checked(text: str, node: exp.Expression, name: str) -> str:
    with _told_of(text, node):
        return check_name(name)


@contextmanager
def _told_of(text: str, node: exp.Expression) -> Iterator[None]:
    """What is refused within is told of a part of the text."""
    try:
        yield
    except InvalidInput as error:
        raise refusal(text, node, (error.rule, error.hint)) from error


def _join(scope: Scope, left: Source, node: exp.Join) -> tuple[Scope, Join]:
    text = scope.text
    arguments(text, node, "this", "side", "kind", "on", "using")
    side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
    if (side, kind) not in {("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")}:
        raise refusal(text, node, _JOIN_FORM)
    qualifier, table = _table(text, node.this, scope.common)
    wider, right = scope.joined(node, qualifier, table)
    on: list[tuple[Column, Column]] = []
    for column in node.args.get("using") or ():
        name = column.this if isinstance(column, exp.Column) else column
        if type(name) is not exp.Identifier or (
            isinstance(column, exp.Column) and column.args.get("table") is not None
        ):
            raise refusal(text, node, _JOIN_FORM)
        on.append((Column(str(name.this)), Column(str(name.this), right.name)))
    condition = node.args.get("on")
    more: list[Expression] = []
    for part in [] if condition is None else _conjuncts(condition):
        pair = _equality(wider, part, right.name)
        if pair is None:
            more.append(wider.reader.expression(part))
        else:
            on.append(pair)
    if not on and (more or side or node.args.get("using") is not None):
        raise refusal(text, node, _JOIN_FORM)
    return wider, Join(
        left,
        right,
        tuple(on),
        "left" if side == "LEFT" else "inner",
        all_of(*more) if more else None,
    )


def _equality(scope: Scope, node: exp.Expression, table: str) -> tuple[Column, Column] | None:
    """One `visits.ward = wards.name` of an ON, whichever side is which; None if it is another condition."""
    sides = _equal_columns(node)
    if sides is None:
        return None
    ours, theirs = (scope.column(side) for side in sides)
    named = [_qualified(side) for side in sides]
    if ours.table == table or (named == [False, True] and theirs.table != table):
        ours, theirs, named = theirs, ours, named[::-1]
    if ours.table == table or (named[1] and theirs.table != table):
        return None  # both of one side: a condition like any other
    # which of two plain names belongs to which table is decided where columns are known
    return ours, Column(theirs.name, table if any(named) else None)


def _qualified(node: exp.Expression) -> bool:
    return node.args.get("table") is not None


def _rows(text: str, node: exp.Expression, common: Named, outer: Scope | None) -> Rows | UnionAll:
    """A SELECT of rows, or several joined by UNION ALL."""
    if type(node) is exp.Subquery:
        arguments(text, node, "this")
        return _rows(text, node.this, common, outer)
    if type(node) is exp.Union:
        return _union(text, node, common, outer)
    if type(node) is not exp.Select:
        raise refusal(text, node, HINTS[exp.Subquery])
    for clause in ("order", "limit", "offset"):
        if node.args.get(clause) is not None:
            raise refusal(text, node.args[clause], _ROWS_ONLY)
    arguments(
        text, node, "with_", "distinct", "expressions", "from_", "joins", "where", "group", "having"
    )
    common = with_tables(text, node, common)
    if node.args.get("distinct") is not None:
        arguments(text, node.args["distinct"])
    scope, source = read_from(text, node, common, outer)
    inner = Reader(text, scope.column, lambda _, found: found, inside=True)
    stars = [item for item in node.expressions if type(item) is exp.Star]
    for star in stars:
        arguments(text, star)
    if stars and (len(stars) > 1 or type(node.expressions[0]) is not exp.Star):
        raise refusal(
            text, stars[-1], ("* stands first, and once", "Write SELECT *, ... FROM visits.")
        )
    names, values = items(
        text, inner, [item for item in node.expressions if type(item) is not exp.Star]
    )
    where, group, having = (node.args.get(clause) for clause in ("where", "group", "having"))
    keys: dict[object, Expression] | None = None
    if group is not None:
        arguments(text, group, "expressions")
        keys = {}
        for part in group.expressions:
            place = ordinal(text, part, len(values))
            read = values[place] if place is not None else inner.expression(part)
            key = read if place is not None else meant_by_key(text, part, read, names, values)
            keys.setdefault(shape(key), key)
    chosen = None
    if having is not None:
        condition = inner.expression(having.this)
        chosen = _named_values(text, having, condition, names, values, keys)
    return Rows(
        source,
        tuple(Output(name, value) for name, value in zip(names, values, strict=True)),
        None if where is None else scope.conditions.expression(where.this),
        None if keys is None else tuple(keys.values()),
        chosen,
        node.args.get("distinct") is not None,
        bool(stars),
    )


def _union(text: str, node: exp.Union, common: Named, outer: Scope | None) -> UnionAll:
    rest, parts = [node], []
    while rest:
        part = rest.pop()
        if type(part) is exp.Union:
            if part.args.get("distinct") is not False:
                rule = "UNION drops repetitions among different persons' rows"
                raise refusal(text, part, (rule, "Write UNION ALL."))
            arguments(text, part, "this", "expression", "with_")
            if part.args.get("with_") is not None:
                common = with_tables(text, part, common)
            rest += [part.expression, part.this]
        else:
            parts.append(_rows(text, part, common, outer))
    found = tuple(
        one for part in parts for one in (part.parts if isinstance(part, UnionAll) else (part,))
    )
    return UnionAll(found)


def _item(key: Expression, names: tuple[str, ...]) -> int | None:
    """The place of the item that a plain name means."""
    if not isinstance(key, Column) or key.table is not None or key.first:
        return None
    name = one_of(key.name, names)
    return None if name is None else names.index(name)


def meant_by_key(
    text: str,
    node: exp.Expression,
    key: Expression,
    names: tuple[str, ...],
    values: tuple[Expression, ...],
) -> Expression:
    """What a key of GROUP BY means: the item of that name, if it is a plain name; refused if its expression has a
    column of that name, too, for then the word means both.
    """
    place = _item(key, names)
    if place is None or shape(values[place]) == shape(key):
        return key
    level = [values[place]]
    while level:
        if any(shape(part) == shape(key) for part in level if isinstance(part, Column)):
            hint = "Write GROUP BY with the whole expression or its place, such as GROUP BY 1."
            raise refusal(text, node, (_both(names[place]), hint))
        level = [child for part in level for child in children(part)]
    return values[place]


def _both(name: str) -> str:
    return f"{shortened(name)} is both a column and the name of another output"


def _named_values(
    text: str,
    node: exp.Expression,
    condition: Expression,
    names: tuple[str, ...],
    values: tuple[Expression, ...],
    keys: Mapping[object, Expression] | None,
) -> Expression:
    """A condition with the names of items replaced by what they are; refused if one is that of another key, too."""

    def named(part: Expression) -> Expression:
        place = _item(part, names)
        if place is None:
            return part if shape(part) in (keys or {}) else rebuilt(part, named)
        if shape(part) in (keys or {}) and shape(values[place]) != shape(part):
            hint = "Give the item another name, or write the column with its table."
            raise refusal(text, node, (_both(names[place]), hint))
        return values[place]

    return named(condition)


def items(
    text: str, reader: Reader, nodes: list[exp.Expression]
) -> tuple[tuple[str, ...], tuple[Expression, ...]]:
    """Names and values of SELECT's items."""
    given: list[str | None] = []
    taken: set[str] = set()
    values = []
    for item in nodes:
        name, node = None, item
        if type(item) is exp.Alias:
            arguments(text, item, "this", "alias")
            name, node = _checked(text, item, str(item.args["alias"].this)), item.this
            if folded(name) in taken:
                raise refusal(
                    text,
                    item,
                    (f"the name {name} is given twice", "Give every output its own name."),
                )
            taken.add(folded(name))
        given.append(name)
        values.append(reader.item(node))
    return distinct_names(given, values), tuple(values)


def ordinal(text: str, node: exp.Expression, count: int) -> int | None:
    """The place in SELECT, counted from 0, if the node is a whole number; refuses one that is out of range."""
    if type(node) is not exp.Literal or node.args.get("is_string"):
        return None
    words = str(node.this)
    if not words.isdigit() or len(words) > 9 or not 1 <= int(words) <= count:
        raise refusal(
            text, node, (f"SELECT has the places 1 to {count}", "Name the column instead.")
        )
    return int(words) - 1
