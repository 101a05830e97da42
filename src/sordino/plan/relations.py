"""Relations: rows between the tables and the sums, each a function of one person's rows and of public tables only.

That is the invariant which relations.md proves for every node, and on which the bounding of persons rests. A relation
knows its columns with what is public of them, whose rows it has, and what is known of their number. `rows.py` writes
it as SQL, `bind.py` makes it of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from sordino.plan.fragments import column
from sordino.privacy.neighbors import Neighbors
from sordino.query import dataset
from sordino.query.bounds import Bounds
from sordino.query.meaning import reading
from sordino.query.tree import Value
from sordino.query.typed import Typed
from sordino.query.types import Type

__all__ = ["PERSON", "Derive", "Field", "Filter", "Join", "LookedUp", "Lookup", "PerPerson", "Relation", "Scan", "UnionAll",
           "Whose", "Window", "aliases", "mentioned"]  # fmt: skip

PERSON = "u"
"""The column of a relation's SQL that says whose row it is."""


@dataclass(frozen=True)
class LookedUp:
    """A column of a public table, and which look into it this is:
    the values of one look are those of one public row.
    """

    table: dataset.Table
    look: str
    column: str


@dataclass(frozen=True)
class Field:
    """One column of a relation: its name and the name that qualifies it, its alias in SQL, and what is public of it.

    Without a `type` it only identifies: the person, where its alias is `PERSON`, or a row of the declared table
    `identity` by its key `column`; `scan` tells several readings of one table apart. A `raw` category is cleaned where
    it is used, so that it can be grouped by its place. A `hidden` column is found by its qualified name only. A value
    that was `cut` to a bound by us stands for all beyond it. What is `looked_up` in a public table has one of its
    values, or none.
    """

    name: str
    table: str
    alias: str
    type: Type | None = None
    domain: Sequence[Value] | None = None
    raw: dataset.Column | None = None
    identity: str | None = None
    scan: int = 0
    column: str = ""
    hidden: bool = False
    nullable: bool = True
    cut: bool = False
    looked_up: LookedUp | None = None

    @property
    def typed(self) -> Typed:
        """The cleaned column."""
        if self.type is None:
            raise AssertionError("a column that only identifies is not read")
        if self.raw is not None:
            return reading.read(self.raw, column(self.alias))
        return Typed(self.type, column(self.alias), domain=self.domain)


@dataclass(frozen=True)
class Whose:
    """Whose rows: those of persons, each that of another person, or nobody's; and how much of one person counts.

    `persons` is their kind, `who` what one of them is called. `single` says that nobody has more than one row; `every`
    that each row of the only table is there, whatever it holds; `cut` that sums of a person were cut to what max_rows
    rows reach.
    """

    owner: Literal["person", "row", "nobody"]
    persons: str
    who: str
    neighbors: Neighbors
    bounds: Bounds
    tables: tuple[str, ...]
    single: bool = False
    every: bool = False
    cut: bool = False

    @property
    def public(self) -> bool:
        """Whether it protects nobody."""
        return self.owner == "nobody"

    @property
    def by_row(self) -> bool:
        """Whether each row can be counted as another person."""
        return self.owner != "person" or self.single

    def beside(self, other: Whose) -> Whose:
        """Of rows side by side with others: one person's pairs."""
        tables = (*self.tables, *(name for name in other.tables if name not in self.tables))
        return replace(
            self,
            bounds=self.bounds.beside(other.bounds),
            tables=tables,
            single=self.single and other.single,
            every=False,
            cut=self.cut or other.cut,
        )

    def after(self, other: Whose) -> Whose:
        """Of these rows and the others, one after another."""
        return replace(self.beside(other), bounds=self.bounds.after(other.bounds), single=False)


@dataclass(frozen=True)
class Scan:
    """The rows of a declared table, cleaned.

    Where the table says `via`, a Join with its parent tells whose they are.
    """

    table: dataset.Table
    fields: tuple[Field, ...]
    whose: Whose


@dataclass(frozen=True)
class Filter:
    """The rows that satisfy all conditions."""

    rows: Relation
    conditions: tuple[exp.Expr, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Those of the rows."""
        return self.rows.fields

    @property
    def whose(self) -> Whose:
        """Fewer rows of the same persons."""
        return replace(self.rows.whose, every=False)


@dataclass(frozen=True)
class Derive:
    """The same rows with other columns: some of their own, perhaps renamed, and some computed row by row (`values`)."""

    rows: Relation
    fields: tuple[Field, ...]
    values: Mapping[str, exp.Expr]

    @property
    def whose(self) -> Whose:
        """The same."""
        return self.rows.whose


@dataclass(frozen=True)
class Lookup:
    """Each row with the one row of a public table that has its key, if there is one; a left lookup keeps rows without.

    `public` is the Scan of that table, perhaps with conditions on its rows, and beside those of other public tables.
    """

    rows: Relation
    public: Relation
    match: exp.Expr
    fields: tuple[Field, ...]
    kind: Literal["left", "inner"]

    @property
    def whose(self) -> Whose:
        """Those of the rows, at most as many."""
        return replace(self.rows.whose, every=self.rows.whose.every and self.kind == "left")


@dataclass(frozen=True)
class Join:
    """Pairs of rows of one person, where the condition holds, if there is one.

    A `left` join keeps rows without a partner; a `mark` join keeps every row once, and its last field says whether
    there is one; a `semi` join is one of which only the rows with a partner are kept, an `anti` join the others. With
    `keys` the rows of one side name rows of the other by them; they then belong to the person of the side that `owner`
    tells, which is the same one. Without, both sides are matched by the person. A `via` join only says whose the rows
    on the left are.
    """

    left: Relation
    right: Relation
    fields: tuple[Field, ...]
    kind: Literal["left", "inner", "mark", "semi", "anti"]
    condition: exp.Expr | None = None
    keys: tuple[tuple[Field, Field], ...] = ()
    owner: Literal["left", "right"] = "left"
    via: bool = False

    @property
    def marks(self) -> bool:
        """Whether rows on the right are only looked for."""
        return self.kind in ("mark", "semi", "anti")

    @property
    def whose(self) -> Whose:
        """One person's pairs."""
        if self.marks or self.via:
            return replace(self.left.whose, every=False)
        return self.left.whose.beside(self.right.whose)


@dataclass(frozen=True)
class PerPerson:
    """One row for each person, and each value of the keys if there are any: aggregates of that person's own rows.

    Keys are columns of the rows, by alias; `values` are the aggregates.
    """

    rows: Relation
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    values: Mapping[str, exp.Expr]
    cut: bool = False

    @property
    def whose(self) -> Whose:
        """Without keys one row a person."""
        whose = self.rows.whose
        return replace(
            whose, single=whose.single or not self.keys, every=False, cut=whose.cut or self.cut
        )


@dataclass(frozen=True)
class UnionAll:
    """The rows of all parts, one after another; each part is a Derive whose values have the same aliases."""

    parts: tuple[Relation, ...]
    fields: tuple[Field, ...]

    @property
    def whose(self) -> Whose:
        """One person's rows of all parts."""
        first, *rest = (part.whose for part in self.parts)
        for other in rest:
            first = first.after(other)
        return first


@dataclass(frozen=True)
class Window:
    """Each row with functions of the rows of the same person around it (`values`)."""

    rows: Relation
    fields: tuple[Field, ...]
    values: Mapping[str, exp.Expr]

    @property
    def whose(self) -> Whose:
        """The same."""
        return replace(self.rows.whose, every=False)


Relation: TypeAlias = Scan | Filter | Derive | Lookup | Join | PerPerson | UnionAll | Window


def aliases(relation: Relation) -> set[str]:
    """The columns of a relation by alias."""
    return {field.alias for field in relation.fields}


def mentioned(parts: Iterable[exp.Expr]) -> set[str]:
    """The aliases that expressions mention."""
    return {found.name for part in parts for found in part.find_all(exp.Column)}
