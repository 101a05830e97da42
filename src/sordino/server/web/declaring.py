"""A declaration made in a browser: from an owner's choices to TOML, and to what answers would be like under it.

No data are here, and none is asked for: an owner's browser reads the schema, and the errors shown are those of plans.
What is shown as TOML is what was checked: the dataset that plans are made for is read from that very text.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import get_args

from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidDeclaration, InvalidInput, SordinoError
from sordino.privacy.exact import show
from sordino.query.dataset import Dataset, Kind
from sordino.query.declaration import key_text
from sordino.server.link import JSON, Facts
from sordino.server.web.planning import Planner

__all__ = ["KINDS", "MOST_COLUMNS", "Draft", "DraftColumn", "Effect", "draft_of_columns", "draft_of_form", "effects",
           "with_first_unit"]  # fmt: skip

KINDS: tuple[str, ...] = get_args(Kind)
MOST_COLUMNS = 120
_MOST_EFFECTS = 6
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_FILE = re.compile(r"[^/\\:*?\"<>|]+\.(parquet|csv|csv\.gz|duckdb)", re.IGNORECASE)


@dataclass(frozen=True)
class DraftColumn:
    """A column as it was filled in. Empty fields are not declared."""

    name: str
    kind: str = "text"
    keep: bool = True
    low: str = ""
    high: str = ""
    step: str = ""
    values: str = ""

    @property
    def entry(self) -> str:
        """The column in TOML."""
        parts = [f'type = "{self.kind}"' if self.kind in KINDS else f"type = {_quoted(self.kind)}"]
        if self.kind in ("int", "float", "date", "datetime"):
            fields = (
                ("min", self.low),
                ("max", self.high),
                *((("step", self.step),) if self.kind == "float" else ()),
            )
            parts += [f"{word} = {_literal(text, self.kind)}" for word, text in fields if text]
        if self.kind == "category":
            listed = [part.strip() for part in re.split(r"[\n,]", self.values) if part.strip()]
            parts.append(f"values = [{', '.join(map(_quoted, listed))}]")
        return f"{key_text(self.name)} = {{ {', '.join(parts)} }}"


@dataclass(frozen=True)
class Draft:
    """A table as it was filled in, and the budget of its dataset.

    `rows` and `price` are guesses, and are not written.
    """

    table: str
    source: str
    unit: str = ""
    columns: tuple[DraftColumn, ...] = ()
    neighbors: str = "add_remove"
    max_rows: str = ""
    max_groups: str = ""
    epsilon: str = "1"
    delta: str = "1e-6"
    rows: str = "10000"
    price: str = "0.1"

    @property
    def toml(self) -> str:
        """The declaration."""
        place = f"tables.{key_text(self.table)}"
        lines = ["[budget]", f"epsilon = {_literal(self.epsilon)}"]
        lines += [f"delta = {_literal(self.delta)}"] if self.delta else []
        lines += [
            "",
            f"[{place}]",
            f"source = {_quoted(self.source)}",
            f"unit = {_quoted(self.unit)}",
        ]
        lines += ['neighbors = "replace"'] if self.neighbors == "replace" else []
        bounds = {"max_rows": self.max_rows, "max_groups": self.max_groups}
        lines += [f"{word} = {_literal(text)}" for word, text in bounds.items() if text]
        lines += [
            "",
            f"[{place}.columns]",
            *(column.entry for column in self.columns if column.keep),
        ]
        return "\n".join(lines) + "\n"

    def dataset(self) -> Dataset:
        """What the declaration declares; refused as `Dataset.load` refuses it."""
        if not _FILE.fullmatch(self.source):
            rule = "a source is the name of a file that ends in .parquet, .csv, .csv.gz or .duckdb"
            raise InvalidDeclaration(
                f"source = {show(self.source[:80])}", rule, "Write visits.parquet or the like."
            )
        try:
            entries = tomllib.loads(self.toml, parse_float=Decimal)
        except ValueError:
            raise InvalidDeclaration(
                "the declaration", "a name holds what cannot be written", "Rename it."
            ) from None
        return Dataset(tables=entries["tables"], budget=entries["budget"])


@dataclass(frozen=True)
class Effect:
    """What an answer would be like: the question, how far off it may be (None:
    it depends), and what a choice changes.
    """

    question: str
    error: float | None
    refusal: str = ""
    note: str = ""


def draft_of_columns(table: str, source: str, text: str) -> Draft:
    """A first draft from lines of a name and a type; names with spaces are fine, the type is the last word."""
    columns: dict[str, DraftColumn] = {}
    for line in text.splitlines():
        words = line.strip().rsplit(None, 1)
        if not words:
            continue
        name, kind = (
            (words[0], words[1])
            if len(words) == 2 and words[1] in KINDS
            else (line.strip(), "text")
        )
        columns.setdefault(name.casefold(), DraftColumn(name[:200], kind))
    if not columns:
        rule = "a table has columns"
        raise InvalidInput(
            "no columns", rule, "Choose a file, or write one column a line: its name and its type."
        )
    if len(columns) > MOST_COLUMNS:
        rule = f"a page holds at most {MOST_COLUMNS} columns"
        raise InvalidInput(
            f"{len(columns)} columns", rule, "Leave out those that nobody will ask about."
        )
    return Draft(table[:200], source[:200], columns=tuple(columns.values()))


def draft_of_form(fields: Mapping[str, str]) -> Draft:
    """The draft that a form holds: column number i in the fields name-i,
    kind-i, keep-i, min-i, max-i, step-i, values-i.
    """
    columns: list[DraftColumn] = []
    while (name := fields.get(f"name-{len(columns)}")) is not None and len(columns) < MOST_COLUMNS:
        i = len(columns)
        low, high, step, values = (
            fields.get(f"{word}-{i}", "").strip() for word in ("min", "max", "step", "values")
        )
        columns.append(
            DraftColumn(
                name,
                fields.get(f"kind-{i}", "text"),
                f"keep-{i}" in fields,
                low,
                high,
                step,
                values,
            )
        )
    words = (
        "table",
        "source",
        "unit",
        "neighbors",
        "max_rows",
        "max_groups",
        "epsilon",
        "delta",
        "rows",
        "price",
    )
    return Draft(
        columns=tuple(columns), **{word: fields.get(word, "").strip()[:200] for word in words}
    )


async def effects(draft: Draft, dataset: Dataset, planner: Planner) -> list[Effect]:
    """What some usual questions would be like under a draft, each at its price."""
    (table,) = dataset.tables.values()
    if dataset.budget is None:
        raise AssertionError("a draft has a budget")
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    facts = Facts(dataset, "duckdb", 1.0, "open", False, 0, {None: meter})
    place = _name(table.name)

    async def effect(told: str, sql: str, note: str = "", **more: JSON) -> Effect:
        offer: dict[str, JSON] = {"epsilon": draft.price, **more}
        try:
            priced = await planner.priced("\0draft", facts, None, "sql", sql, offer)
        except SordinoError as error:
            return Effect(told, None, str(error).partition("\n")[0], note)
        errors = priced.view["errors"]
        found = next(iter(errors.values()), None) if isinstance(errors, Mapping) else None
        return Effect(told, found if isinstance(found, float | int) else None, note=note)

    count = f"SELECT COUNT(*) AS n FROM {place}"  # noqa: S608
    made = [await effect("How many rows?", count)]
    most = int(draft.max_rows) if draft.max_rows.isdigit() and len(draft.max_rows) < 7 else 0
    if most > 1:
        half = most // 2
        made.append(
            await effect(
                f"The same, if max_rows were {half}", count, "less of each person", max_rows=half
            )
        )
    for column in draft.columns:
        if len(made) >= _MOST_EFFECTS:
            break
        if not column.keep:
            continue
        named = _name(column.name)
        if column.kind == "category":
            sql = f"SELECT {named}, COUNT(*) AS n FROM {place} GROUP BY {named}"  # noqa: S608
            made.append(await effect(f"How many rows of each {column.name}?", sql))
        elif column.kind in ("int", "float") and column.low and column.high:
            sql = f"SELECT AVG({named}) AS a FROM {place}"  # noqa: S608
            told = f"The mean of {column.name}?"
            made.append(await effect(told, sql, f"of {draft.rows} rows", rows=draft.rows))
    return made


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str, kind: str = "") -> str:
    """A number or a day as TOML writes it; anything else in quotes, so that the declaration's own rules refuse it."""
    if kind == "date":
        with suppress(ValueError):
            return date.fromisoformat(text).isoformat()
    if kind == "datetime":
        with suppress(ValueError):
            found = datetime.fromisoformat(text)
            return _quoted(text) if found.tzinfo else found.isoformat()
    return text if kind not in ("date", "datetime") and _NUMBER.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def with_first_unit(draft: Draft) -> Draft:
    """The draft with a unit to begin with: a column whose name says that it names somebody,
    and that nobody asks about.
    """
    names = [column.name for column in draft.columns]
    likely = [
        name
        for name in names
        if re.search(r"(^|_)(id|patient|person|user|customer|client|member)", name.casefold())
    ]
    unit = (likely or ["row"])[0]
    return replace(
        draft,
        unit=unit,
        columns=tuple(replace(each, keep=each.name != unit) for each in draft.columns),
    )
