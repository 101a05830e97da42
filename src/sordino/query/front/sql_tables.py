"""The tables of a question: FROM, JOIN, and which table a qualified column belongs to."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from sqlglot import exp

from sordino.errors import Code, UnsupportedSQL
from sordino.query.front.outputs import one_of
from sordino.query.front.sql_expressions import Reader
from sordino.query.front.sql_refusals import arguments, refusal
from sordino.query.front.sql_tokens import shortened
from sordino.query.tree import Column, Join

__all__ = ["Scope", "read_tables"]

_PLAIN_TABLE = "only a declared table can be asked, by its plain name", "Write FROM visits, or FROM visits AS v."
_JOIN_FORM = (
    "a public table is joined by equal columns",
    "Write JOIN wards ON visits.ward = wards.name, or JOIN wards USING (ward).",
)


@dataclass(frozen=True)
class Scope:
    """The tables of FROM, as (what a column may be qualified with, the table's name); the first is the asked one."""

    text: str
    tables: tuple[tuple[str, str], ...]

    @property
    def reader(self) -> Reader:
        """Reads expressions over these tables."""
        return Reader(self.text, self.column)

    def column(self, node: exp.Expression) -> Column:
        """The column that a name means, with `table` if it is one of a joined table."""
        arguments(self.text, node, "this", "table")
        name = str(node.this.this)
        qualifier = node.args.get("table")
        if qualifier is None:
            return Column(name)
        table = self.find(node, str(qualifier.this))
        return Column(name) if table == self.tables[0][1] else Column(name, table)

    def find(self, node: exp.Expression, qualifier: str) -> str:
        """The table that a qualifier means."""
        known = [name for name, _ in self.tables]
        found = one_of(qualifier, known)
        if found is None:
            close = difflib.get_close_matches(qualifier, known, 1)
            hint = (
                f"Did you mean {close[0]}?"
                if close
                else "Qualify columns by " + (" or ".join(known) or "nothing here") + "."
            )
            raise refusal(self.text, node, (f"no table {shortened(qualifier)} is in FROM", hint, Code.TABLE_NAME))
        return dict(self.tables)[found]

    def joined(self, node: exp.Expression, qualifier: str, table: str) -> Scope:
        """The scope with one more table."""
        if one_of(qualifier, [name for name, _ in self.tables]) or one_of(table, [name for _, name in self.tables]):
            raise refusal(self.text, node, (f"the table {shortened(qualifier)} occurs twice", "Join every table once."))
        return replace(self, tables=(*self.tables, (qualifier, table)))


def _table(text: str, node: exp.Expression) -> tuple[str, str]:
    """The qualifier and the name of a table in FROM or JOIN."""
    if type(node) is not exp.Table or type(node.this) is not exp.Identifier or not node.this.this:
        raise refusal(text, node, _PLAIN_TABLE)
    if node.args.get("db") is not None:
        raise refusal(text, node, _PLAIN_TABLE)
    arguments(text, node, "this", "alias")
    name, alias = str(node.this.this), node.args.get("alias")
    if alias is None:
        return name, name
    arguments(text, alias, "this")
    qualifier = str(alias.this.this)
    if not qualifier:
        raise refusal(text, node, _PLAIN_TABLE)
    return qualifier, name


def read_tables(text: str, select: exp.Select) -> tuple[Scope, tuple[Join, ...]]:
    """The scope of a SELECT, and its joins."""
    source = select.args.get("from_")
    if source is None:
        raise UnsupportedSQL(
            shortened(text), "a question must name a table", "Write SELECT COUNT(*) FROM visits, for example."
        )
    arguments(text, source, "this")
    scope = Scope(text, (_table(text, source.this),))
    joins = []
    for node in select.args.get("joins") or ():
        scope, join = _join(text, scope, node)
        joins.append(join)
    return scope, tuple(joins)


def _join(text: str, scope: Scope, node: exp.Join) -> tuple[Scope, Join]:
    arguments(text, node, "this", "side", "kind", "on", "using")
    side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
    if (side, kind) not in {("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")}:
        raise refusal(text, node, _JOIN_FORM)
    qualifier, table = _table(text, node.this)
    wider = scope.joined(node, qualifier, table)
    on: list[tuple[Column, str]] = []
    for column in node.args.get("using") or ():
        name = column.this if isinstance(column, exp.Column) else column
        if type(name) is not exp.Identifier or (isinstance(column, exp.Column) and column.args.get("table") is not None):
            raise refusal(text, node, _JOIN_FORM)
        on.append((Column(str(name.this)), str(name.this)))
    condition = node.args.get("on")
    while condition is not None:
        while type(condition) is exp.Paren:
            condition = condition.this
        last, condition = (condition.expression, condition.this) if type(condition) is exp.And else (condition, None)
        on.append(_equality(text, wider, last, table))
    if not on:
        raise refusal(text, node, _JOIN_FORM)
    if node.args.get("on") is not None:
        on.reverse()
    return wider, Join(table, tuple(on), "left" if side == "LEFT" else "inner")


def _equality(text: str, scope: Scope, node: exp.Expression, table: str) -> tuple[Column, str]:
    """One `visits.ward = wards.name` of an ON, whichever side is which."""
    while type(node) is exp.Paren:
        node = node.this
    sides = (node.this, node.expression) if type(node) is exp.EQ else ()
    if not sides or any(type(side) is not exp.Column or type(side.this) is not exp.Identifier for side in sides):
        raise refusal(text, node, _JOIN_FORM)
    ours, theirs = sides
    if _owner(scope, ours) == table or (_owner(scope, theirs) == scope.tables[0][1] and ours.args.get("table") is None):
        ours, theirs = theirs, ours
    owners = _owner(scope, ours), _owner(scope, theirs)
    if owners[0] not in {None, scope.tables[0][1]} or owners[1] not in {None, table} or owners == (None, None):
        reason = f"one side must be a column of {scope.tables[0][1]}, the other one of {table}"
        raise refusal(text, node, (shortened(reason, 100), "Qualify both columns by their tables."))
    return Column(str(ours.this.this)), str(theirs.this.this)


def _owner(scope: Scope, node: exp.Expression) -> str | None:
    """The table that a column is qualified with, None if it is not."""
    arguments(scope.text, node, "this", "table")
    qualifier = node.args.get("table")
    return None if qualifier is None else scope.find(node, str(qualifier.this))
