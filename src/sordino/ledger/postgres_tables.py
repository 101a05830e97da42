"""The tables of ledgers in a PostgreSQL database: how they are made, and whether they are still as they were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from sordino.errors import LedgerDamaged, LedgerUnavailable
from sordino.privacy.wording import counted

__all__ = ["CHANGED", "Ask", "faults", "has_ledger", "has_tables", "make_tables"]

Ask: TypeAlias = Callable[..., Any]
"""Runs a statement with values and gives a cursor; refuses as a LedgerError."""
CHANGED = "its tables were changed"
_PUT_BACK = "Put it back from a copy, and compare with an anchor."
_VERSION = 1
_NUMBER, _TEXT, _BYTES = "bigint NOT NULL", 'text COLLATE "C" NOT NULL', "bytea NOT NULL"
# Every phrase is spelled as the server spells it, so that what it says of the tables can be compared with this.
_TABLES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "format": ({"one": _NUMBER, "version": _NUMBER}, ("PRIMARY KEY (one)", "CHECK ((one = 1))")),
    "entries": (
        {
            "ledger": _TEXT,
            "sequence": _NUMBER,
            "text": _TEXT,
            "hash": _TEXT,
            "request": 'text COLLATE "C"',
        },
        ("PRIMARY KEY (ledger, sequence)", "UNIQUE (ledger, request)"),
    ),
    "answers": (
        {"ledger": _TEXT, "sequence": _NUMBER, "bytes": _BYTES},
        (
            "PRIMARY KEY (ledger, sequence)",
            "FOREIGN KEY (ledger, sequence) REFERENCES sordino.entries(ledger, sequence)",
        ),
    ),
    "heads": ({"ledger": _TEXT, "sequence": _NUMBER, "hash": _TEXT}, ("PRIMARY KEY (ledger)",)),
    "secrets": ({"ledger": _TEXT, "key": _BYTES}, ("PRIMARY KEY (ledger)",)),
}
_REFUSE = "BEGIN RAISE EXCEPTION 'a ledger is only ever appended to'; END"
_TRIGGERS = tuple(
    f"CREATE TRIGGER {table}_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON sordino.{table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION sordino.append_only()"
    for table in ("entries", "answers")
)
_SCHEMA = (
    *(
        f"CREATE TABLE sordino.{name} ({', '.join([*(f'{column} {kind}' for column, kind in columns.items()), *rules])})"
        for name, (columns, rules) in _TABLES.items()
    ),
    f"CREATE FUNCTION sordino.append_only() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $${_REFUSE}$$",
    *_TRIGGERS,
)
_SHAPE = {
    *(f"table {name} is kept" for name in _TABLES),
    *(
        f"{name}.{column} {kind}"
        for name, (columns, _) in _TABLES.items()
        for column, kind in columns.items()
    ),
    *(f"{name} {rule}" for name, (_, rules) in _TABLES.items() for rule in rules),
    *_TRIGGERS,
    f"append_only {_REFUSE}",
}
# An unlogged table is emptied when the server crashes, a rule can swallow rows, and row security hides them.
_FIND_SHAPE = """
WITH tables AS (
    SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'sordino' AND c.relname = ANY(%s)
)
SELECT 'table ' || relname || CASE
    WHEN relkind = 'r' AND relpersistence = 'p' AND NOT relrowsecurity THEN ' is kept' ELSE ' is of another kind' END
FROM tables
UNION ALL
SELECT t.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || coalesce(' COLLATE ' || quote_ident(l.collname), '') || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
    || CASE WHEN a.atthasdef OR a.attidentity <> '' THEN ' with a default' ELSE '' END
FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT t.relname || ' ' || pg_get_constraintdef(k.oid)
FROM tables t JOIN pg_constraint k ON k.conrelid = t.oid WHERE k.contype IN ('p', 'u', 'f', 'c', 'x')
UNION ALL
SELECT CASE WHEN g.tgenabled = 'O' THEN '' ELSE 'switched off: ' END || pg_get_triggerdef(g.oid)
FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT (g.tgisinternal AND g.tgenabled = 'O')
UNION ALL
SELECT 'rule ' || r.rulename FROM tables t JOIN pg_rewrite r ON r.ev_class = t.oid
UNION ALL
SELECT p.proname || ' ' || p.prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'sordino' AND p.proname = 'append_only'
"""
_FIND_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'sordino' AND c.relname = ANY(%s)
"""
_FIND_LEDGER = """
SELECT EXISTS (SELECT 1 FROM sordino.entries WHERE ledger = %(ledger)s)
    OR EXISTS (SELECT 1 FROM sordino.answers WHERE ledger = %(ledger)s)
    OR EXISTS (SELECT 1 FROM sordino.heads WHERE ledger = %(ledger)s)
    OR EXISTS (SELECT 1 FROM sordino.secrets WHERE ledger = %(ledger)s)
"""
_FIND_ENDS = """
SELECT (SELECT sequence FROM sordino.heads WHERE ledger = %(ledger)s),
    (SELECT max(sequence) FROM sordino.entries WHERE ledger = %(ledger)s),
    (SELECT count(*) FROM sordino.secrets WHERE ledger = %(ledger)s)
"""


def has_tables(ask: Ask, place: str) -> bool:
    """Whether the tables are there; refuses those of another form, and any that are no longer as they were made."""
    if not ask(_FIND_TABLES, (list(_TABLES),)).fetchall():
        return False
    versions = [version for (version,) in ask("SELECT version FROM sordino.format").fetchall()]
    if len(versions) == 1 and versions != [_VERSION]:
        rule = (
            f"its tables have form {versions[0]}, and this version of Sordino knows form {_VERSION}"
        )
        raise LedgerUnavailable(place, rule, "Use the newer Sordino that made them.")
    found = {line for (line,) in ask(_FIND_SHAPE, (list(_TABLES),)).fetchall()}
    if versions != [_VERSION] or found != _SHAPE:
        raise LedgerDamaged(place, CHANGED, _PUT_BACK)
    return True


def make_tables(ask: Ask) -> None:
    """Make them, all or nothing with the transaction that this is a part of."""
    if not ask(
        "SELECT 1 FROM pg_namespace WHERE nspname = 'sordino'"
    ).fetchall():  # else it takes a right to ask
        ask("CREATE SCHEMA sordino")
    for statement in _SCHEMA:
        ask(statement)
    ask("INSERT INTO sordino.format (one, version) VALUES (1, %s)", (_VERSION,))


def has_ledger(ask: Ask, ledger: str) -> bool:
    """Whether there is a ledger of this name, or anything that is left of one."""
    return bool(ask(_FIND_LEDGER, {"ledger": ledger}).fetchall()[0][0])


def faults(ask: Ask, place: str, ledger: str) -> list[str]:
    """Any change of the tables, and whether the note of the last entry of a ledger fits its rows."""
    try:
        if not has_tables(ask, place):
            return ["its tables are gone"]
        noted, last, secrets = ask(_FIND_ENDS, {"ledger": ledger}).fetchall()[0]
    except LedgerDamaged as error:
        return [error.rule]
    found = [] if secrets else ["its secret is gone"]
    if noted is None:
        return [*found, "the note of its last entry is gone"]
    return (
        found
        if last == noted
        else [
            *found,
            f"{counted(noted, 'entry is', 'entries are')} noted, and the last is entry {last or 'none'}",
        ]
    )
