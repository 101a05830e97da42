"""Names: which declared column each name of a query means, and the SELECT that reads these columns, cleaned.

SQL is case-insensitive, so names are; a name that is not declared is refused with the nearest ones that are.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.fragments import column, identifier, named, select, source
from sordino.plan.statement import Values
from sordino.query import tree
from sordino.query.dataset import Dataset, Table
from sordino.query.meaning import reading
from sordino.query.meaning.expressions import typed
from sordino.query.typed import Typed
from sordino.query.types import Number, Text

__all__ = ["Scope", "find"]


def find(kind: str, name: str, known: Iterable[str], hint: str) -> str:
    """The declared spelling of a name; InvalidInput with the nearest declared ones if there is none."""
    names = {spelling.casefold(): spelling for spelling in known}
    if name.casefold() in names:
        return names[name.casefold()]
    near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.6)
    meant = f"Did you mean {names[near[0]]!r}? " if near else ""
    listed = ", ".join(sorted(names.values())[:20]) or "none"
    raise InvalidInput(f"{kind} {name!r}", f"no such {kind} is declared", f"{meant}Declared: {listed}. {hint}".strip())


@dataclass(frozen=True)
class _Listed:
    """A column whose values are looked up in a long public list: the values, and the cell to look for."""

    values: Values
    cell: exp.Expr

    @cached_property
    def name(self) -> str:
        """A name that tells the list, so that the engine holds it once, and that no declared table has by chance."""
        return f"list {sha256(repr(self.values).encode()).hexdigest()[:32]}"


class Scope:
    """The asked table and its public lookups; remembers which columns were used, for `cells`."""

    def __init__(self, dataset: Dataset, query: tree.Query) -> None:
        self.table = self._table(dataset, query.table)
        if self.table.via is not None:
            rule = "its persons are named through its parent, and such tables cannot be asked yet"
            raise InvalidInput(f"table {self.table.name!r}", rule, f"Ask {self.table.via.parent} instead.")
        self._joins = [(join, self._public(dataset, join)) for join in query.joins]
        self._used: dict[tuple[str, str], tuple[str, Typed]] = {}
        self._listed: dict[str, _Listed] = {}
        names = [self.table.name, *(table.name for _, table in self._joins)]
        if len(set(names)) < len(names):
            raise InvalidInput(f"table {names[-1]!r}", "a table can be named once", "Look it up in one join.")

    @staticmethod
    def _table(dataset: Dataset, name: str) -> Table:
        return dataset.tables[find("table", name, dataset.tables, "")]

    def _public(self, dataset: Dataset, join: tree.Join) -> Table:
        table = self._table(dataset, join.table)
        if not table.public:
            rule = "only public tables can be joined: their rows are the same whoever takes part"
            hint = f"Declare tables.{table.name} with public = true if it protects nobody, or join before declaring."
            raise InvalidInput(f"JOIN {table.name}", rule, hint)
        on = {find("column", name, table.columns, f"It is looked up in {table.name}.") for _, name in join.on}
        if not table.key or set(table.key) != on:
            keys = ", ".join(table.key) or "none declared"
            rule = f"a public table is looked up by its whole key ({keys}), so that each row finds at most one"
            hint = f"Join on the key, or declare tables.{table.name}.key = {sorted(on)!r} if no two rows share it."
            raise InvalidInput(f"JOIN {table.name} ON {', '.join(sorted(on))}", rule, hint)
        return table

    def read(self, named: tree.Column) -> Typed:
        """The cleaned column that a name means; declared columns of the asked table first."""
        table = self._owner(named)
        hint = f"Declare it under [tables.{table.name}.columns]."
        known = _with_person(table)
        name = find("column", named.name, known, hint)
        if name not in table.columns:
            rule = f"it names the protected persons of {table.name} and is not declared as a column"
            raise InvalidInput(f"column {name!r}", rule, f"Use COUNT(DISTINCT {name}), or declare what is public of it.")
        key, declared = (table.name, name), table.columns[name]
        values = getattr(declared.type, "values", None)
        if key not in self._used:
            alias = f"c{len(self._used)}"
            if isinstance(declared.type, Text | Number) and values is not None and reading.is_long(values):
                listed = _Listed(values, reading.raw(declared.type, column(name, table.name)))
                self._listed[alias] = listed
                self._used[key] = alias, Typed(replace(declared.type, nullable=True), column("value", _beside(table, alias)))
            else:
                self._used[key] = alias, reading.read(declared, column(name, table.name))
        alias, cleaned = self._used[key]
        if alias in self._listed:
            return Typed(cleaned.type, column(alias))
        if reading.is_category(declared.type) and table is self.table:
            # cleaned where it is used, so that a key can be grouped by its place alone
            self._used[key] = (alias, Typed(cleaned.type, column(name, table.name)))
            return reading.read(declared, column(alias))
        return Typed(cleaned.type, column(alias), domain=cleaned.domain)

    def _owner(self, named: tree.Column) -> Table:
        tables = [self.table, *(table for _, table in self._joins)]
        if named.table is not None:
            name = find("table", named.table, (table.name for table in tables), "It is not in FROM or JOIN.")
            return next(table for table in tables if table.name == name)
        for table in tables:
            if named.name.casefold() in {name.casefold() for name in _with_person(table)}:
                return table
        return self.table

    def is_person(self, named: tree.Expression) -> bool:
        """Whether an expression is the column that names the protected person."""
        person = self.table.person
        if person is None or not isinstance(named, tree.Column):
            return False
        own = named.table is None or named.table.casefold() == self.table.name.casefold()
        return own and named.name.casefold() == person.casefold()

    def never_null(self, named: tree.Expression) -> bool:
        """Whether an expression is a column of the asked table declared without NULLs. Privacy does not rest on it."""
        if not isinstance(named, tree.Column) or self._owner(named) is not self.table:
            return False
        declared = self.table.columns[find("column", named.name, self.table.columns, "")]
        return not getattr(declared.type, "nullable", True)

    def cells(self, mentioned: Iterable[exp.Expr]) -> tuple[exp.Select, Mapping[str, Values]]:
        """The columns that these expressions mention, cleaned, with the person as `u`, and the long lists needed for it.

        To be called after everything was read.
        """
        matches = [self._match(join, public) for join, public in self._joins]
        wanted = {found.name for part in (*mentioned, *matches) for found in part.find_all(exp.Column)}
        own = self._columns(self.table, wanted)
        if self.table.person is not None:
            own.insert(0, named(column(self.table.person_column, self.table.name), "u"))
        cells = self._cleaned(own or [named(exp.true(), "c")], self.table, wanted)
        for i, ((join, public), match) in enumerate(zip(self._joins, matches, strict=True)):
            looked_up = self._lookup(public, wanted).subquery(identifier(f"p{i}"), copy=False)
            kind = "LEFT" if join.kind == "left" else "INNER"
            cells = select([exp.Star()], cells, f"q{i}").join(looked_up, on=match, join_type=kind, copy=False)
        return cells, {listed.name: listed.values for alias, listed in self._listed.items() if alias in wanted}

    def _cleaned(self, items: list[exp.Expr], table: Table, wanted: Collection[str]) -> exp.Select:
        """The items of a table's rows, each row with what it finds in the long lists of its columns: at most one value."""
        rows = select(items, source(table.name))
        for (owner, _), (alias, _) in self._used.items():
            if owner == table.name and alias in self._listed and alias in wanted:
                listed = self._listed[alias]
                name = _beside(table, alias)
                relation = exp.alias_(exp.Table(this=identifier(listed.name)), identifier(name), table=True)
                same = exp.EQ(this=column("value", name), expression=listed.cell.copy())
                rows = rows.join(relation, on=same, join_type="LEFT", copy=False)
        return rows

    def _match(self, join: tree.Join, public: Table) -> exp.Expr:
        for left, right in join.on:
            ours, theirs = self.read(left).type, self.read(tree.Column(right, public.name)).type
            if isinstance(ours, Number) and isinstance(theirs, Number) and ours.integral != theirs.integral:
                rule = "one side is computed in whole numbers and the other in floats, where different keys may be equal"
                hint = f"Declare both {left.name} and {public.name}.{right} as int with min and max."
                raise InvalidInput(f"JOIN {public.name} ON {left.name} = {right}", rule, hint)
        pairs = [tree.Call("=", (left, tree.Column(right, public.name))) for left, right in join.on]
        return exp.and_(*(typed(pair, self.read).sql for pair in pairs))

    def _columns(self, table: Table, wanted: Collection[str]) -> list[exp.Expr]:
        used = [entry for (owner, _), entry in self._used.items() if owner == table.name and entry[0] in wanted]
        return [named(cleaned.sql.copy(), alias) for alias, cleaned in used]

    def _lookup(self, public: Table, wanted: Collection[str]) -> exp.Select:
        """The wanted columns of a public table, certainly one row for each key whatever the file holds."""
        keys = [self._used[public.name, name][0] for name in public.key]
        used = [alias for (owner, _), (alias, _) in self._used.items() if owner == public.name]
        one = [named(exp.Min(this=column(alias)), alias) for alias in used if alias in wanted and alias not in keys]
        rows = self._cleaned(self._columns(public, wanted), public, wanted)
        return select([*(column(key) for key in keys), *one], rows, "r", group=keys)


def _beside(table: Table, alias: str) -> str:
    """The name of a long list where it stands beside a table: longer than the table's, so that it is another one."""
    return f"{alias} of {table.name}"


def _with_person(table: Table) -> list[str]:
    return [*table.columns, *([table.person] if table.person and table.person not in table.columns else [])]
