"""Where the rows of a declared table are: a file, an object in memory, a table of PostgreSQL or of Spark.

A source is read here from what an owner writes, and nothing of it is opened. Addresses may hold a password: it is kept
out of every text that is shown, and a declaration that holds one is warned about.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

from sordino.errors import DeclarationWarning, InvalidDeclaration
from sordino.privacy.exact import show
from sordino.privacy.paths import absolute
from sordino.query.dataset import Source, Table
from sordino.query.entries import Place, closest, name_fault, yes_or_no

__all__ = [
    "FORMATS", "OF_SOURCES", "SUFFIXES", "Engine", "database_kind", "engine_of", "expect_one_engine", "name_parts",
    "read_source", "shown_address", "source_kind", "table_name",
]  # fmt: skip

Engine: TypeAlias = Literal["duckdb", "postgres", "spark"]

SUFFIXES: Mapping[str, Literal["parquet", "csv", "duckdb"]] = {
    ".parquet": "parquet", ".csv": "csv", ".csv.gz": "csv", ".duckdb": "duckdb",
}  # fmt: skip
OF_SOURCES = ("source", "table", "files", "format", "password_file", "materialized")
"""The keys of a table that say where its rows are."""
FORMATS = ("parquet", "csv", "delta", "iceberg")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_HOST = r"(?:\[[^@/?#\[\],]*\]|[^@/?#:\[\],]*)(?::[0-9]*)?"
_POSTGRES = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)"  # a password in the place of a port is no address, and so not shown
    r"(?:/(?P<database>[^@/?#]*))?(?:\?(?P<options>[^@#?]*))?",
    re.IGNORECASE,
)
_SPARK = re.compile(r"sc://(?P<host>[^@/?#;]+)(?:/(?:;(?P<options>[^@]*))?)?", re.IGNORECASE)
_SHOWN_OPTIONS = frozenset(
    {"host", "hostaddr", "port", "dbname", "service", "user", "sslmode", "user_id", "use_ssl"}
)
_SECRETS = frozenset({"password", "sslpassword", "token"})
_PATTERNS = "*?[]{}," + "\\" * (os.name != "nt")
"""Letters of a path that Spark takes for patterns: /a[1]/v would be /a1/v."""
_EXAMPLE = "postgresql://analyst@db.example.org/hospital"
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".]+))\s*(?:\.|$)')


def source_kind(path: Path) -> Literal["parquet", "csv", "duckdb"] | None:
    """Which kind of file a name promises, if it is one that can be read."""
    return next(
        (kind for suffix, kind in SUFFIXES.items() if path.name.lower().endswith(suffix)), None
    )


def table_name(path: Path) -> str:
    """The name of a table after its file, without the ending."""
    suffix = next((s for s in SUFFIXES if path.name.lower().endswith(s)), "")
    return path.name[: len(path.name) - len(suffix)]


def database_kind(text: str) -> Literal["postgres", "spark"] | None:
    """Which database a source names, by its scheme; None if it is a path, or an address that no engine reads."""
    if re.match(r"postgres(ql)?://", text, re.IGNORECASE):
        return "postgres"
    return "spark" if text == "spark" or re.match("sc://", text, re.IGNORECASE) else None


def engine_of(source: Source) -> Engine:
    """Which engine reads a source."""
    return source.kind if source.kind in ("postgres", "spark") else "duckdb"


def read_source(place: Place, entries: Mapping[str, Any], folder: Path) -> Source:
    """The source that the keys of a table name."""
    value, at = entries["source"], place.at("source")
    if not isinstance(value, str | os.PathLike):
        _only(place, entries, (), "an object in memory has no tables or files inside")
        return Source("frame", frame=_frame(at, value))
    text = os.fspath(value)
    if (
        not isinstance(text, str)
        or not text.strip()
        or any(unicodedata.category(c) in {"Cc", "Cs"} for c in text)
    ):
        raise at.wrong(
            text, "a source is the path of a file", 'Write source = "visits.parquet" or the like.'
        )
    match database_kind(text):
        case "postgres":
            return _postgres(place, entries, text, folder)
        case "spark":
            return _spark(place, entries, text, folder)
        case None:
            return _file(place, entries, text, folder)


def _file(place: Place, entries: Mapping[str, Any], text: str, folder: Path) -> Source:
    at, table = place.at("source"), entries.get("table")
    address = _SCHEME.match(text)
    if address or re.search(r"\b(host|password|dbname)\s*=", text):
        # An address may hold a password: only its scheme is shown.
        shown = f"an address {address.group()}..." if address else "a connection string"
        hint = f'Write source = "{_EXAMPLE}", or source = "spark" with files = "..." for what Spark reads.'
        raise InvalidDeclaration(f"{at} with {shown}", "no engine reads such an address", hint)
    if any(c in text for c in "*?"):
        raise at.wrong(
            text,
            "a source is one file, not a pattern",
            "Put the rows into one Parquet or DuckDB file.",
        )
    kind = source_kind(Path(text))
    if kind is None:
        hint = (
            "Read it with Dataset.load."
            if text.lower().endswith(".toml")
            else "Convert it, to Parquet if you can."
        )
        raise at.wrong(text, f"a source ends in {', '.join(SUFFIXES)}", hint)
    if table is not None and kind != "duckdb":
        rule = "only a DuckDB file or a database has tables inside"
        raise place.at("table").wrong(table, rule, "Leave table out.")
    _only(place, entries, ("table",), "it belongs to sources in databases")
    if table is not None and (fault := name_fault(table)):
        raise place.at("table").wrong(table, fault, 'Write table = "visits" or the like.')
    return Source(kind, absolute(folder / text), table)


def _postgres(place: Place, entries: Mapping[str, Any], text: str, folder: Path) -> Source:
    at = place.at("source")
    _only(place, entries, ("table", "password_file", "materialized"), "it belongs to Spark")
    match = _POSTGRES.fullmatch(text)
    options = _options(match["options"] if match else "", "&")
    named = [match["database"] if match else "", options.get("dbname", "")]
    nested = any("=" in unquote(name or "") or "://" in unquote(name or "") for name in named)
    odd_port = not set(unquote(options.get("port", ""))) <= set("0123456789,")
    if (
        match is None
        or nested
        or odd_port
        or not (match["database"] or {"dbname", "service"} & set(options))
    ):
        rule = "it is not an address of a database in PostgreSQL"
        hint = f"It looks like {_EXAMPLE}; write @ as %40, : as %3A and / as %2F in names and passwords."
        raise InvalidDeclaration(f"{at} with an address postgresql:...", rule, hint)
    secret = bool(match["password"]) or bool(_SECRETS & set(options))
    _warn_of_secret(
        at,
        secret,
        "Give it by PGPASSWORD, .pgpass (PGPASSFILE), a service file, or password_file = ...",
    )
    file = entries.get("password_file")
    if file is not None and (
        not isinstance(file, str | os.PathLike) or not os.fspath(file).strip()
    ):
        rule = "it is the path of a file that holds the password and nothing else"
        raise place.at("password_file").wrong(
            file, rule, 'Write password_file = "/run/secrets/analyst" or the like.'
        )
    if file is not None and secret:
        rule = "the address has a password already"
        raise place.at("password_file").wrong("...", rule, "Leave the password out of the address.")
    materialized = yes_or_no(place.at("materialized"), entries.get("materialized", False))
    table = _table(place, entries.get("table"), 2, "clinic.visits")
    path = None if file is None else absolute(folder / os.fspath(file))
    return Source(
        "postgres", table=table, address=text, password_file=path, materialized=materialized
    )


def _spark(place: Place, entries: Mapping[str, Any], text: str, folder: Path) -> Source:
    at, files = place.at("source"), entries.get("files")
    _only(place, entries, ("table", "files", "format"), "it belongs to PostgreSQL")
    if text != "spark":
        match = _SPARK.fullmatch(text)
        if match is None:
            rule = "it is not an address of Spark Connect"
            raise InvalidDeclaration(
                f"{at} with an address sc:...", rule, "It looks like sc://spark.example.org:15002."
            )
        options = _options(match["options"] or "", ";")
        if "session_id" in options:
            rule = "it names a session that others may have, who could change what its names mean"
            raise InvalidDeclaration(
                f"{at} with session_id", rule, "Leave session_id out: Sordino opens its own."
            )
        secret = bool(_SECRETS & set(options))
        _warn_of_secret(
            at,
            secret,
            "Give it by the environment of the session: SPARK_CONNECT_AUTHENTICATE_TOKEN.",
        )
    if files is None:
        if "format" in entries:
            raise place.at("format").wrong(
                entries["format"], "only files have a format", "Add files = ..., or leave it out."
            )
        table = _table(place, entries.get("table"), 3, "clinic.visits")
        return Source("spark", table=table, address=None if text == "spark" else text)
    if "table" in entries:
        raise place.at("table").wrong(
            entries["table"], "files are named as well", "Leave out table, or files and format."
        )
    where = os.fspath(files) if isinstance(files, str | os.PathLike) else None
    if (
        not isinstance(where, str)
        or not where.strip()
        or any(unicodedata.category(c) in {"Cc", "Cs"} for c in where)
    ):
        rule = "files is the path of a file or folder that Spark reads"
        raise place.at("files").wrong(
            where, rule, 'Write files = "/lake/visits" or files = "s3a://lake/visits".'
        )
    if not _SCHEME.match(where):
        where = str(absolute(folder / where))
    if any(c in where for c in _PATTERNS):
        rule = "it is one file or folder, not a pattern, and Spark takes some letters in it for one"
        hint = f"Name the folder of one table, in whose path there is none of {' '.join(_PATTERNS)}"
        raise place.at("files").wrong(where, rule, f"{hint}.")
    written = entries.get("format", "parquet")
    if written not in FORMATS:
        rule = f"a format is one of {', '.join(FORMATS)}"
        raise place.at("format").wrong(
            written, rule, closest(written if isinstance(written, str) else "", FORMATS)
        )
    return Source("spark", address=None if text == "spark" else text, files=where, format=written)


def _only(place: Place, entries: Mapping[str, Any], known: tuple[str, ...], rule: str) -> None:
    for key in OF_SOURCES[1:]:
        if key in entries and key not in known:
            raise place.at(key).wrong(
                "..." if key == "password_file" else entries[key], rule, f"Leave {key} out."
            )


def _options(text: str | None, sign: str) -> dict[str, str]:
    pairs = [option.partition("=") for option in (text or "").split(sign) if option]
    return {unquote(name).strip().lower(): value for name, _, value in pairs}


def _warn_of_secret(at: Place, secret: bool, hint: str) -> None:
    if secret:
        text = f"{at} holds a password, which everybody sees who reads the declaration. {hint}"
        warnings.warn(text, DeclarationWarning, stacklevel=2)


def _table(place: Place, value: Any, most: int, example: str) -> str | None:
    if value is None:
        return None
    parts = name_parts(value) if isinstance(value, str) else []
    if not 1 <= len(parts) <= most or any(map(name_fault, parts)):
        rule = f"it is the name of a table, with at most {most - 1} names and dots before it"
        hint = f'Write table = "{example}" or the like. A name with a dot in it stands in double quotes.'
        raise place.at("table").wrong(value, rule, hint)
    return str(value)


def name_parts(text: str) -> list[str]:
    """The names in `catalog.schema.table`; those with dots stand in double quotes. Empty if it is not so written.

    Example:
        >>> name_parts('clinic."visits.2024"'), name_parts("a..b")
        (['clinic', 'visits.2024'], [])
    """
    parts, place = [], 0
    while match := _PART.match(text, place):
        parts.append(match[1].replace('""', '"') if match[1] else match[2].strip())
        place = match.end()
        if place == len(text):
            return [] if text.endswith(".") and not text.endswith('"') else parts
    return []


def shown_address(text: str) -> str:
    """How messages call an address: without its password and whatever else is nobody's business.

    Example:
        >>> shown_address("postgresql://ana:secret@db.example.org/hospital?sslmode=require&sslpassword=x")
        'postgresql://ana@db.example.org/hospital?sslmode=require'
        >>> shown_address("sc://spark.example.org:443/;token=secret;user_id=ana")
        'sc://spark.example.org:443/;user_id=ana'
    """
    if match := _POSTGRES.fullmatch(text):
        user = f"{match['user']}@" if match["user"] else ""
        options = "&".join(
            f"{k}={v}" for k, v in _options(match["options"], "&").items() if k in _SHOWN_OPTIONS
        )
        return f"postgresql://{user}{match['host']}/{match['database'] or ''}" + (
            f"?{options}" if options else ""
        )
    if match := _SPARK.fullmatch(text):
        options = ";".join(
            f"{k}={v}" for k, v in _options(match["options"], ";").items() if k in _SHOWN_OPTIONS
        )
        return f"sc://{match['host']}" + (f"/;{options}" if options else "")
    return "an address"


def expect_one_engine(place: Place, tables: Mapping[str, Table]) -> None:
    """Refuse tables that no one engine can read together: of two databases, or protected files beside a database.

    Public files go with every engine: their rows are sent.
    """
    first: dict[tuple[Any, ...], str] = {}
    for name, table in tables.items():
        engine, source = engine_of(table.source), table.source
        if engine == "duckdb" and table.public:
            continue
        first.setdefault((engine, source.address, source.password_file), name)
    if len(first) < 2:
        return
    (one, *_), (other, *_) = list(first)[:2]
    names = list(first.values())[:2]
    rule = "all protected tables of a declaration are read by one engine, in one place"
    if one == other:
        rule += f", and these are in two places of {one}: write the same address (and password_file) for both"
    value = f"{place}: {show(names[0])} ({one}) and {show(names[1])} ({other})"
    hint = "Declare them in two files, or put them into one database; public tables may be Parquet or CSV files."
    raise InvalidDeclaration(value, rule, hint)


def _frame(place: Place, value: Any) -> Any:
    """An object in memory that holds a table; looked up among loaded libraries, so that none is imported for it."""
    for library, name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        kind = getattr(sys.modules.get(library), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return value
    rule = "a source is the path of a file, a pandas or polars DataFrame, or a pyarrow Table"
    hint = (
        "Collect it first: source.collect()."
        if type(value).__name__ == "LazyFrame"
        else "Pass one of these."
    )
    if isinstance(value, Mapping):
        hint = "Make a DataFrame of it; several tables are passed as tables={...}."
    raise place.wrong(value, rule, hint)
