"""What the owner of a table declares: who is protected, what is public of every column, and the budget.

Everything here is written by a person and holds nothing that was computed from the data. `declaration.py` reads it from
TOML or from plain Python values; this file is its meaning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from sordino.privacy.budget import Budget
from sordino.privacy.exact import readable, show
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query.bounds import NO_BOUNDS, Bounds
from sordino.query.same_name import folded, lowered
from sordino.query.tree import Value
from sordino.query.types import Text, Type

__all__ = ["Column", "Contents", "Dataset", "Kind", "Source", "Table", "Via"]

Kind: TypeAlias = Literal["int", "float", "bool", "category", "text", "date", "datetime"]
V = TypeVar("V")


class _Frozen(Mapping[str, V]):
    """A mapping that cannot be changed after a session has relied on it;
    it compares as a dict does, and can be hashed.
    """

    def __init__(self, items: Mapping[str, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class Column:
    """One declared column: what kind of cells the source holds, and what is public of their values.

    Moments with a time zone are read as the time that clocks showed in `zone`; without one, in UTC. Cells that are
    `clean` were made values of this type before: a session that holds its tables says so, no declaration does.
    """

    kind: Kind
    type: Type
    zone: str | None = None
    clean: bool = False


@dataclass(frozen=True, eq=False)
class Source:
    """Where the rows are: a Parquet or CSV file, a table of a DuckDB file, an object in memory, or a database.

    Objects in memory are the same source only if they are the same object: their cells are never compared. `address`
    is that of a server, as written: it may hold a password, so that only `shown` is ever shown. `files` and `format`
    are what Spark reads where it is no `table`; `materialized` says that a table of PostgreSQL is a materialized view.
    """

    kind: Literal["parquet", "csv", "duckdb", "frame", "postgres", "spark"]
    path: Path | None = None
    table: str | None = None
    frame: Any = field(default=None, repr=False)
    address: str | None = field(default=None, repr=False)
    files: str | None = None
    format: str | None = None
    password_file: Path | None = field(default=None, repr=False)
    materialized: bool = False

    @property
    def _place(self) -> tuple[object, ...]:
        where = self.kind, self.path, self.table, self.address, self.files, self.format
        return *where, self.password_file, self.materialized

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Source):
            return NotImplemented
        return self._place == other._place and self.frame is other.frame

    def __hash__(self) -> int:
        return hash((self._place, id(self.frame)))

    @property
    def shown(self) -> str:
        """How messages call it: a path, an address without its password, or that it is an object in memory."""
        from sordino.query.sources import shown_address

        if self.kind in ("postgres", "spark"):
            where = "spark" if self.address is None else shown_address(self.address)
            return repr(f"{where} {self.files or self.table or ''}".strip())
        return "an object in memory" if self.path is None else show(str(self.path))

    @property
    def place(self) -> str | None:
        """Where a table of a database is, whoever asks; None for files and objects in memory."""
        if self.kind not in ("postgres", "spark"):
            return None
        server = re.sub(r"//[^@/]*@", "//", self.shown[1:-1])
        return server if "://" in server else f"spark://{server}"


@dataclass(frozen=True)
class Via:
    """How a row names its parent: the parent's table, and pairs of an own column and the parent's that it equals."""

    parent: str
    keys: tuple[tuple[str, str], ...]

    @property
    def own(self) -> tuple[str, ...]:
        """The columns of the table itself."""
        return tuple(own for own, _ in self.keys)

    @property
    def of_parent(self) -> tuple[str, ...]:
        """The parent's key: no two rows of the parent share it."""
        return tuple(theirs for _, theirs in self.keys)

    def __str__(self) -> str:
        return ", ".join(f"{own} = {self.parent}.{theirs}" for own, theirs in self.keys)


@dataclass(frozen=True)
class Contents:
    """The rows of a public table, read by an engine, in the columns that can be keys.

    `filled` are the columns whose values or bounds the owner did not declare, so that the table itself tells them, and
    `empty` those in which it has no value at all. `failed` says that it could not be read, so that it is as declared;
    `unique` that no two of its rows shared a key, and that its source is refused once it changed; `held` that no row
    can change any more, not even while a question is asked.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    filled: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    failed: bool = False
    unique: bool = False
    held: bool = False

    def combinations(self, columns: Sequence[str]) -> list[tuple[Value, ...]]:
        """The values that these columns have together, each combination once, none with a NULL."""
        places = [self.columns.index(name) for name in columns]
        found = dict.fromkeys(tuple(row[place] for place in places) for row in self.rows)
        return [values for values in found if None not in values]


@dataclass(frozen=True)
class Table:
    """One declared table. Whose rows they are is one of four: `public`, nobody's; `person`, the column that names the
    person; `via`, the persons of the parent rows that they name; else each row is another person.

    `persons` is the kind of persons: tables of the same kind speak of the same persons. `identities` are the columns
    that are keys of some `via`, of this table or of a child; a `Dataset` fills them in, and what a `via` table has of
    its parent.

    `bounds` say how much of one person counts in one answer. A public table protects nobody; its `key` is the set of
    columns that no two of its rows share, and `contents` are its rows as far as an engine has read them for the planner
    (`engines/public_tables.py`).
    """

    name: str
    source: Source
    columns: Mapping[str, Column]
    person: str | None = None
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    bounds: Bounds = NO_BOUNDS
    public: bool = False
    key: tuple[str, ...] = ()
    persons: str | None = None
    via: Via | None = None
    identities: tuple[str, ...] = ()
    contents: Contents | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _Frozen(self.columns))
        if self.persons is None and self.person is not None:
            object.__setattr__(self, "persons", folded(self.person))

    @classmethod
    def declare(
        cls,
        source: Any,
        *,
        unit: str | None = None,
        persons: str | None = None,
        via: Mapping[str, str] | None = None,
        columns: Mapping[str, Mapping[str, Any]] | None = None,
        name: str | None = None,
        table: str | None = None,
        files: str | None = None,
        format: str | None = None,  # noqa: A002
        password_file: str | os.PathLike[str] | None = None,
        materialized: bool | None = None,
        neighbors: Neighbors | str | None = None,
        max_rows: int | None = None,
        max_rows_per_group: int | None = None,
        max_groups: int | None = None,
        public: bool = False,
        key: Sequence[str] | None = None,
    ) -> Table:
        """A table declared in Python, with the meaning and the checks of `[tables.NAME]` in TOML.

        `source` is a path, or a pandas or polars DataFrame or a pyarrow Table; without a `name` the table is called
        like its file, or "data". `table` is its name within a DuckDB file or a database, whose address is then the
        source; `files` and `format` are what Spark reads.

        Example:
            >>> age = {"type": "int", "min": 0, "max": 110}
            >>> Table.declare("visits.parquet", unit="patient_id", columns={"age": age}).name
            'visits'
        """
        from sordino.query import declaration

        given = {
            "source": source,
            "unit": unit,
            "columns": columns,
            "table": table,
            "neighbors": neighbors,
            "key": key,
        }
        given |= {
            "max_rows": max_rows,
            "max_rows_per_group": max_rows_per_group,
            "max_groups": max_groups,
        }
        given |= {
            "public": public,
            "persons": persons,
            "via": via,
            "files": files,
            "format": format,
        }
        given |= {"password_file": password_file, "materialized": materialized}
        return declaration.python_table(name, {k: v for k, v in given.items() if v is not None})

    @property
    def has_persons(self) -> bool:
        """Whether rows belong to persons who may have several, named by a column or through a parent."""
        return self.person is not None or self.via is not None

    @property
    def unit(self) -> str:
        """Who is protected, as a ledger holds it; the persons are told where they are not called like their column."""
        if self.via is not None:
            return f"{self.persons} via {self.via}"
        if self.person is None:
            return "row"
        return (
            self.person
            if self.persons == folded(self.person)
            else f"{self.person} ({self.persons})"
        )

    @property
    def person_column(self) -> str:
        """The name under which an engine offers the person's canonical form, beside the declared columns.

        A table with a `via` has no such column: its persons are those of the parent rows that it finds.
        """
        return self._free("person")

    def identity_column(self, name: str) -> str:
        """The name under which an engine offers the canonical form of one of the `identities`, that of a person."""
        places = [lowered(identity) for identity in self.identities]
        return self._free(f"identity{places.index(lowered(name))}")

    def _free(self, name: str) -> str:
        """The name, made longer until no declared column has it."""
        taken = {folded(column) for column in self.columns}
        while name in taken:
            name += "_"
        return name

    @property
    def has_private_keys(self) -> bool:
        """Whether some text can be grouped by whose values are not public, so that groups are selected privately."""
        free = (
            n
            for n, c in self.columns.items()
            if isinstance(c.type, Text) and c.type.values is None and n != self.person
        )
        return not self.public and any(True for _ in free)


@dataclass(frozen=True, init=False, repr=False)
class Dataset:
    """The declared tables and what all answers about them together may reveal.

    `reserved_delta` is the part of the budget's delta that is kept for selecting private keys (`key_delta` in TOML).
    Default: half of it where a protected table has text that is no category, else nothing. One table is declared by its
    source and the arguments of `Table.declare`; several by `tables`, each a `Table` or the same keys as in TOML.

    Example:
        >>> ward = {"type": "category", "values": ["A", "B", "C"]}
        >>> Dataset("visits.parquet", unit="patient_id", columns={"ward": ward}, budget={"epsilon": 1})
        Dataset(visits: 1 column, unit patient_id; budget epsilon 1, delta 0)
    """

    tables: Mapping[str, Table]
    budget: Budget | None = None
    reserved_delta: Fraction | None = None
    file: Path | None = field(default=None, compare=False)
    ledger: str | None = None

    def __init__(
        self,
        source: Any = None,
        *,
        unit: str | None = None,
        columns: Mapping[str, Mapping[str, Any]] | None = None,
        name: str | None = None,
        table: str | None = None,
        files: str | None = None,
        format: str | None = None,  # noqa: A002
        password_file: str | os.PathLike[str] | None = None,
        materialized: bool | None = None,
        neighbors: Neighbors | str | None = None,
        max_rows: int | None = None,
        max_rows_per_group: int | None = None,
        max_groups: int | None = None,
        public: bool = False,
        key: Sequence[str] | None = None,
        tables: Mapping[str, Table | Mapping[str, Any]] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        reserved_delta: Any = None,
        ledger: str | os.PathLike[str] | None = None,
        file: Path | None = None,
    ) -> None:
        from sordino.query import declaration

        one = {
            "source": source,
            "unit": unit,
            "columns": columns,
            "table": table,
            "neighbors": neighbors,
            "key": key,
        }
        one |= {
            "max_rows": max_rows,
            "max_rows_per_group": max_rows_per_group,
            "max_groups": max_groups,
        }
        one |= {"name": name, "public": public or None, "files": files, "format": format}
        one |= {"password_file": password_file, "materialized": materialized}
        declared = declaration.python_tables(
            {k: v for k, v in one.items() if v is not None}, tables
        )
        allowed, reserved = declaration.python_budget(budget, reserved_delta, declared.values())
        object.__setattr__(self, "tables", _Frozen(declared))
        object.__setattr__(self, "budget", allowed)
        object.__setattr__(self, "reserved_delta", reserved)
        object.__setattr__(self, "file", file)
        object.__setattr__(self, "ledger", declaration.python_ledger(ledger))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Dataset:
        """The dataset that a TOML file declares; paths in it are relative to its folder. No data is read.

        `sordino docs declaration` lists all keys.
        """
        from sordino.query import declaration

        return declaration.load(path)

    @staticmethod
    def schema_stub(
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        output: str | os.PathLike[str] | None = None,
        *,
        table: str | None = None,
        public: Sequence[str | os.PathLike[str]] = (),
    ) -> str:
        """A declaration to fill in, from the schema of files or a database only; written to `output` if given.

        Several files are several tables; those in `public` protect nobody. Of a database, all tables that may be read,
        or the one that is called `table`. The types of a CSV file are guessed from the names of its columns.

        Privacy: names and types of columns are read, never a value, a statistic or the number of rows.
        """
        from sordino.query import stub

        return stub.schema_stub(path, output, table=table, public=public)

    def with_tables(self, tables: Mapping[str, Table]) -> Dataset:
        """The same budget over other tables."""
        reserved, ledger = self.reserved_delta, self.ledger
        return Dataset(
            tables=tables,
            budget=self.budget,
            reserved_delta=reserved,
            ledger=ledger,
            file=self.file,
        )

    def with_budget(
        self, budget: Budget | Mapping[str, Any], reserved_delta: Any = None
    ) -> Dataset:
        """The same tables under another budget."""
        return Dataset(
            tables=self.tables,
            budget=budget,
            reserved_delta=reserved_delta,
            ledger=self.ledger,
            file=self.file,
        )

    def __repr__(self) -> str:
        return (
            f"Dataset({'; '.join([*map(_summary, self.tables.values()), _allowance(self.budget)])})"
        )


def _summary(table: Table) -> str:
    count = counted(len(table.columns), "column")
    protected = "public" if table.public else f"unit {table.unit}"
    return f"{table.name}: {count}, {protected}"


def _allowance(budget: Budget | None) -> str:
    if budget is None:
        return "no budget"
    return f"budget epsilon {readable(budget.epsilon)}, delta {readable(budget.delta)}"
