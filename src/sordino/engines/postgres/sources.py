"""Tables of a PostgreSQL database at the gate: which may be asked, and the SELECT that brings each into canonical form.

Base tables, partitioned tables whose parts are base tables, and materialized views that are declared as such.
Everything is read from the catalog; no row is. What a question relies on is compared again in its own transaction
(`Facts`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg
from sqlglot.dialects.postgres import Postgres

from sordino.engines.gate import Admitted, SourceColumn, admitted, parent_keys
from sordino.engines.postgres import forms
from sordino.engines.postgres.dialect import quoted
from sordino.errors import InvalidDeclaration
from sordino.privacy.exact import show
from sordino.query.dataset import Table
from sordino.query.sources import name_parts

__all__ = ["Ask", "Facts", "Relation", "expect_readable", "expect_unique_parents", "expect_zones", "facts_of",
           "parts_of", "place_of", "relation_of", "rewritten", "writable"]  # fmt: skip

Ask: TypeAlias = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with values for $1, $2, ... and gives its rows."""

_RELATIONS = """
SELECT w.i, c.oid::bigint, c.relkind::text, c.relpersistence::text, row_security_active(c.oid),
    EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid) AND c.relkind <> 'p',
    EXISTS (SELECT FROM pg_partition_tree(c.oid) p JOIN pg_class l ON l.oid = p.relid
        WHERE l.relkind NOT IN ('r', 'p') OR row_security_active(l.oid)) AND c.relkind = 'p',
    has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'),
    has_table_privilege(c.oid, 'SELECT') AND c.relkind IN ('r', 'p')
FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) WITH ORDINALITY AS w(s, t, i)
JOIN pg_namespace n ON n.nspname = w.s JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY w.i
"""
_WRITABLE = """
SELECT DISTINCT w.oid FROM unnest(CAST($1 AS BIGINT[])) AS w(oid)
CROSS JOIN LATERAL (SELECT w.oid::oid UNION SELECT relid FROM pg_partition_tree(w.oid::oid::regclass)) AS t(oid)
JOIN pg_class c ON c.oid = t.oid JOIN pg_roles r ON pg_has_role(r.oid, 'MEMBER')
WHERE r.oid = c.relowner OR has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE')
"""
"""Tables to which, or to parts of which, the role could write: also as an owner, or as a role that it may take."""
_COLUMNS = """
WITH RECURSIVE wanted AS (SELECT oid::oid, i FROM unnest(CAST($1 AS BIGINT[])) WITH ORDINALITY AS w(oid, i)),
based AS (
    SELECT w.i, a.attnum, a.attname::text AS name, a.attgenerated::text AS made, a.atttypid AS type, a.atttypmod AS size,
        has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS readable
    FROM wanted w JOIN pg_attribute a ON a.attrelid = w.oid WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.i, b.attnum, b.name, b.made, t.typbasetype, t.typtypmod, b.readable
    FROM based b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT b.i, b.attnum, b.name, b.made, CASE WHEN t.typtype = 'e' THEN 'enum'
    WHEN t.typnamespace = CAST('pg_catalog' AS REGNAMESPACE) THEN format_type(b.type, b.size)
    ELSE 'another type' END, b.readable
FROM based b JOIN pg_type t ON t.oid = b.type WHERE t.typtype <> 'd' ORDER BY b.i, b.attnum
"""
_UNIQUE = """
SELECT x.indrelid::bigint, ARRAY(SELECT a.attname::text FROM unnest(x.indkey[0:x.indnkeyatts - 1]) AS k(n)
    JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.n)
FROM pg_index x WHERE x.indrelid = ANY (CAST($1 AS BIGINT[])) AND x.indisunique AND x.indisvalid AND x.indpred IS NULL
    AND x.indexprs IS NULL
"""
_REWRITTEN = """
SELECT l.oid::bigint FROM unnest(CAST($1 AS BIGINT[])) AS w(oid)
LEFT JOIN LATERAL (SELECT p.relid FROM pg_partition_tree(w.oid::oid::regclass) p UNION SELECT w.oid::oid) AS t ON true
LEFT JOIN pg_class l ON l.oid = t.relid
WHERE l.oid IS NULL OR (l.relkind IN ('r', 'm') AND l.relfilenode <> 0
    AND l.relfilenode IS DISTINCT FROM pg_relation_filenode(l.oid))
"""
_PARTS = """
SELECT p.relid::oid::bigint FROM unnest(CAST($1 AS BIGINT[])) AS w(oid)
CROSS JOIN LATERAL pg_partition_tree(w.oid::oid::regclass) AS p ORDER BY 1
"""
_NEAR = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    AND has_table_privilege(c.oid, 'SELECT')
"""
_ABBREVIATED = """
SELECT w.z FROM unnest(CAST($1 AS TEXT[])) AS w(z)
WHERE UPPER(w.z) IN (SELECT UPPER(abbrev) FROM pg_timezone_abbrevs) AND UPPER(w.z) NOT IN ('UTC', 'UCT', 'GMT', 'ZULU')
"""
_ZONED = "SELECT TIMESTAMPTZ '2000-01-01 00:00:00+00' AT TIME ZONE w.z FROM unnest(CAST($1 AS TEXT[])) AS w(z)"
_WORDS = frozenset(" ".join(Postgres.Tokenizer.KEYWORDS).split()) | {"USER"}
_KINDS = {"v": "a view", "f": "a foreign table", "m": "a materialized view"}


@dataclass(frozen=True)
class Facts:
    """What the catalog says of the tables, as far as a question relies on it."""

    relations: tuple[tuple[Any, ...], ...]
    columns: tuple[tuple[Any, ...], ...]
    unique: frozenset[tuple[int, frozenset[str]]]

    def kept(self, used: Mapping[int, Sequence[str]]) -> Facts:
        """Only what is used: the oids and kinds of relations, their used columns, unique keys."""
        relations = tuple(row[:8] for row in self.relations)
        columns = tuple(row for row in self.columns if row[2] in used.get(row[0], ()))
        return Facts(relations, columns, self.unique)


@dataclass(frozen=True)
class Relation:
    """A table as a question reads it: the SELECT of its canonical columns, and what was admitted."""

    oid: int
    sql: str
    columns: tuple[Admitted, ...]
    used: tuple[str, ...]
    lockable: bool
    partitioned: bool


def place_of(table: Table) -> tuple[str, str]:
    """Schema and name of a declared table."""
    parts = name_parts(table.source.table or table.name) or [table.name]
    return (parts[0], parts[1]) if len(parts) == 2 else ("public", parts[-1])


def facts_of(ask: Ask, tables: Sequence[Table]) -> Facts:
    """What the catalog says of tables, those that are there."""
    schemas, names = zip(*map(place_of, tables), strict=True) if tables else ((), ())
    relations = ask(_RELATIONS, list(schemas), list(names))
    oids = [row[1] for row in relations]
    places = [row[0] for row in relations]
    columns = [(places[row[0] - 1], *row[1:]) for row in ask(_COLUMNS, oids)] if oids else []
    unique = (
        frozenset((oid, frozenset(names)) for oid, names in ask(_UNIQUE, oids))
        if oids
        else frozenset()
    )
    return Facts(tuple(relations), tuple(columns), unique)


def writable(ask: Ask, oids: Sequence[int]) -> set[int]:
    """The tables to which the role could write."""
    return {row[0] for row in ask(_WRITABLE, list(oids))}


def rewritten(ask: Ask, oids: Sequence[int]) -> bool:
    """Whether a table was rewritten or emptied after the transaction began to see: it would look empty."""
    return bool(ask(_REWRITTEN, list(oids)))


def parts_of(ask: Ask, oids: Sequence[int]) -> list[int]:
    """The parts of partitioned tables as they are now, whatever the transaction sees:
    one may be attached at any time.
    """
    return [row[0] for row in ask(_PARTS, list(oids))] if oids else []


def expect_zones(ask: Ask, tables: Sequence[Table]) -> None:
    """Refuse zones that the server does not know, or takes for something else:
    CET is an hour without summer time to it.
    """
    for table in tables:
        for name, zone in (
            (name, column.zone) for name, column in table.columns.items() if column.zone is not None
        ):
            what, known = f"tables.{table.name}.columns.{name}.zone = {show(zone)}", True
            if ask(_ABBREVIATED, [zone]):
                rule = "PostgreSQL takes this name for an abbreviation, which has no summer time"
                raise InvalidDeclaration(
                    what, rule, 'Write the name of a place: zone = "Europe/Brussels" or the like.'
                )
            try:
                ask(_ZONED, [zone])
            except psycopg.errors.DataError:
                known = False
            if not known:
                rule = "the server does not know this time zone"
                raise InvalidDeclaration(
                    what,
                    rule,
                    "Write an older name of it, or update the server's time zone tables.",
                )


def expect_readable(ask: Ask, table: Table, place: int, facts: Facts, what: str) -> tuple[Any, ...]:
    """What the catalog says of a table that may be read, whatever its columns are; else it is refused, as `what`.

    `place` is its number among those that `facts` were asked of, from 1 on.
    """
    found = next((row for row in facts.relations if row[0] == place), None)
    schema, name = place_of(table)
    if found is None:
        known = [str(row[0]) for row in ask(_NEAR)]
        near = difflib.get_close_matches(f"{schema}.{name}", known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        some = ", ".join(sorted(known)[:20]) or "none"
        raise InvalidDeclaration(
            what, f"there is no table {show(f'{schema}.{name}')}", f"{hint}Readable tables: {some}."
        )
    _, _, kind, persistence, secured, has_children, odd_parts, readable, _ = found
    _expect_plain(table, what, kind, persistence, has_children, odd_parts)
    if secured:
        rule = "row security is on for this role, whose policies could compute anything, and would hide rows without a word"
        raise InvalidDeclaration(
            what, rule, "Let the owner grant BYPASSRLS to the role, or declare a copy."
        )
    if not readable:
        raise _forbidden(what, schema, name, ())
    return found


def relation_of(ask: Ask, table: Table, place: int, facts: Facts) -> Relation:
    """A declared table at the gate; `place` is its number among those that `facts` were asked of, from 1 on."""
    what = f"tables.{table.name}.source = {table.source.shown}"
    found = expect_readable(ask, table, place, facts, what)
    oid, kind, lockable = found[1], found[2], found[8]
    schema, name = place_of(table)
    own = [row for row in facts.columns if row[0] == place]
    columns = [SourceColumn(row[2], row[4], row[3] == "v") for row in own]
    refs = [f"s.{quoted(column.name)}" for column in columns]
    chosen = admitted(
        table, columns,
        lambda _, kind_, at: forms.identity(kind_, refs[at]),
        lambda column, kind_, at: forms.cell(column, kind_, refs[at]),
        forms.convertible,
    )  # fmt: skip
    used = tuple(dict.fromkeys(columns[one.place].name for one in chosen))
    if hidden := [row[2] for row in own if row[2] in used and not row[5]]:
        raise _forbidden(what, schema, name, hidden)
    items = ", ".join(f"{one.sql} AS {quoted(one.name)}" for one in chosen)
    only = "" if kind == "p" else "ONLY "
    sql = f"SELECT {items or 'TRUE AS row'} FROM {only}{quoted(schema)}.{quoted(name)} AS s"  # noqa: S608
    return Relation(oid, sql, chosen, used, lockable, kind == "p")


def _forbidden(what: str, schema: str, name: str, columns: Sequence[str]) -> InvalidDeclaration:
    some = f" ({', '.join(map(_typed, columns))})" if columns else ""
    rule = f"this role may not read {'the column ' + ', '.join(map(show, columns)) if columns else 'the table'}"
    return InvalidDeclaration(
        what,
        rule,
        f"Let the owner run: GRANT SELECT{some} ON {_typed(schema)}.{_typed(name)} TO the role.",
    )


def _typed(name: str) -> str:
    """A name as a person types it in SQL: quoted where PostgreSQL would take it for another or for a word."""
    plain = re.fullmatch("[a-z_][a-z0-9_]*", name) and name.upper() not in _WORDS
    return name if plain else quoted(name)


def _expect_plain(
    table: Table, what: str, kind: str, persistence: str, has_children: bool, odd_parts: bool
) -> None:
    copy = "Copy it with CREATE TABLE ... AS SELECT, and declare the copy"
    if kind == "m" and table.source.materialized:
        return
    if kind in _KINDS:
        rule = f"it is {_KINDS[kind]}: what it computes could fail on one person's cell, or mix persons"
        hint = f"{copy}; or a materialized view with materialized = true, each row of which is one person's own."
        if kind == "f":
            rule, hint = (
                "it is a foreign table: its rows come from elsewhere, in no snapshot",
                f"{copy}.",
            )
        if kind == "m":
            hint = "Write materialized = true if each of its rows is one person's own; else declare the table behind it."
        raise InvalidDeclaration(what, rule, hint)
    if table.source.materialized:
        raise InvalidDeclaration(what, "it is no materialized view", "Leave out materialized.")
    if persistence == "t":
        raise InvalidDeclaration(what, "it is a temporary table of some session", f"{copy}.")
    if has_children:
        rule = "other tables inherit from it, and whether their rows belong to it is ambiguous"
        raise InvalidDeclaration(what, rule, f"Declare it as a partitioned table. {copy}.")
    if odd_parts:
        rule = "a part of it is a foreign table, or has row security"
        raise InvalidDeclaration(what, rule, f"Only parts that are plain tables are read. {copy}.")


def expect_unique_parents(
    tables: Sequence[Table], relations: Mapping[str, Relation], facts: Facts
) -> None:
    """Refuse a parent without a unique index on its key: rows come and go,
    and only an index keeps keys apart (gate.md).
    """
    by_name = {table.name: table for table in tables}
    for name, key in parent_keys(tables):
        if name not in relations:
            continue
        relation, parent = relations[name], by_name[name]
        taken = {column.name: column for column in relation.columns}
        wanted = {taken[parent.identity_column(part)].place for part in key}
        places = {row[2]: number for number, row in enumerate(_columns_of(facts, relation.oid))}
        known = [
            {places[part] for part in parts} for oid, parts in facts.unique if oid == relation.oid
        ]
        if not any(parts and parts <= wanted for parts in known):
            schema, own = place_of(parent)
            rule = "no unique index keeps its rows apart by this key, so that rows which name it could belong to two persons"
            on = f"{_typed(schema)}.{_typed(own)} ({', '.join(map(_typed, key))})"
            hint = f"Let the owner run: CREATE UNIQUE INDEX ON {on}."
            raise InvalidDeclaration(f"tables.{name} by {', '.join(key)}", rule, hint)


def _columns_of(facts: Facts, oid: int) -> list[tuple[Any, ...]]:
    place = next(row[0] for row in facts.relations if row[1] == oid)
    return [row for row in facts.columns if row[0] == place]
