"""The schema for editors and the reader of declarations agree about the structure of a declaration."""

from __future__ import annotations

import copy
import json
import random
import re
import tomllib
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from first_of import first_of
from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.query.dataset import Dataset
from sordino.query.declaration_schema import SCHEMA_FILE, declaration_schema, schema_text

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft7Validator(declaration_schema())

BY_SEVERAL_VALUES = [  # what no schema can say: these rules compare values, or ask the machine
    "min must be below max", "min must not be after max", "whole multiple of the step", "at most 2\\^53 steps",
    "cannot tell steps of", "there is no such day", "there is no such moment", "part of the budget's delta",
    "differ only in case", "no such table is declared", "its parent", "it leads back", "key is made of declared columns",
    "the key lists it twice", "the rows have one parent", "parent's column is named twice", "read by one engine",
    "name of a time zone", "is not an address of", "it is the name of a table", "no column may be called so",
    "between 1e-300 and 1e300", "at least 1e-300", "no engine reads such an address", "the address has a password",
]  # fmt: skip


def as_json(value: Any) -> Any:
    """TOML as an editor hands it to the schema: days and times are text."""
    match value:
        case dict():
            return {key: as_json(each) for key, each in value.items()}
        case list():
            return list(map(as_json, value))
        case date() | time():
            return value.isoformat()
        case _:
            return value


def faults(declared: dict[str, Any]) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(as_json(declared))]


def test_the_file_that_comes_with_the_package_is_the_schema() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == schema_text(), (
        "write it anew: sordino schema --output " + SCHEMA_FILE.name
    )
    jsonschema.Draft7Validator.check_schema(json.loads(schema_text()))


def written_declarations() -> list[tuple[str, str]]:
    """Every declaration in the docs, the examples and the tests, with the place where it stands."""
    found = []
    for file in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]:
        blocks = re.findall(r"```toml\n(.*?)```", file.read_text("utf-8"), re.DOTALL)
        found += [(f"{file.name}:{i}", block) for i, block in enumerate(blocks)]
    found += [
        (file.name, file.read_text("utf-8")) for file in sorted((ROOT / "examples").rglob("*.toml"))
    ]
    for file in sorted((ROOT / "tests").rglob("*.py")):
        texts = re.findall(r'(?:r|)"""\\?\n?(.*?)"""', file.read_text("utf-8"), re.DOTALL)
        found += [(f"{file.name}:{i}", text) for i, text in enumerate(texts)]
    return [(place, text) for place, text in found if "[tables." in text]


def test_every_written_declaration_is_valid(tmp_path: Path) -> None:
    """Those that are read at all; a part of a declaration, or one to be refused, is not."""
    valid = 0
    for place, text in written_declarations():
        file = tmp_path / "written.toml"
        file.write_text(text, "utf-8")
        try:
            Dataset.load(file)
        except InvalidInput:
            continue
        except Warning:  # of a password: read, and warned about
            pass
        assert not faults(tomllib.loads(text)), place
        valid += 1
    assert valid >= 15


SEEDS = [
    """
    [budget]
    epsilon = 1.5
    delta = 1e-6
    key_delta = 1e-7
    [ledger]
    path = "visits.ledger"
    [tables.visits]
    source = "visits.parquet"
    unit = "patient_id"
    persons = "patient"
    neighbors = "replace"
    max_rows = 10
    max_rows_per_group = 4
    max_groups = 3
    [tables.visits.columns]
    age = { type = "int", min = 0, max = 110 }
    cost = { type = "float", min = 0, max = 5000, step = 0.25 }
    urgent = { type = "bool" }
    ward = { type = "category", values = ["A", "B", "C"] }
    triage = { type = "category", values = [1, 2, 3], nullable = false }
    city = { type = "text", max_length = 80 }
    day = { type = "date", min = 2020-01-01, max = 2025-12-31 }
    at = { type = "datetime", min = 2020-01-01T00:00:00, max = "2025-12-31T23:59:59", zone = "UTC" }
    [tables.lines]
    source = "lines.csv.gz"
    via = { visit = "visits.id" }
    [tables.wards]
    source = "wards.csv"
    public = true
    key = ["ward"]
    columns = { ward = { type = "text" } }
    """,
    """
    [tables.visits]
    source = "postgresql://analyst@db.example.org/hospital"
    table = "clinic.visits"
    password_file = "secret"
    materialized = true
    unit = "row"
    max_rows = 1
    """,
    """
    [tables.a]
    source = "spark"
    files = "lake/visits"
    format = "delta"
    unit = "id"
    [tables.b]
    source = "spark"
    table = "clinic.b"
    public = true
    """,
    """
    [tables.a]
    source = "a.duckdb"
    table = "inner"
    unit = "id"
    """,
]  # fmt: skip
VALUES: list[Any] = [
    True, False, 0, 1, -1, 3, 0.5, -0.5, 2**62, 10**10, 1e-7, "", " ", "x", "row", "ROW", "TODO", "add_remove", "csv", "int",
    "visits.id", "a.parquet", "a.PARQUET", "a.duckdb", "*.csv", "a.xlsx", "spark", "sc://host:15002", "x\ny", "a" * 201, [],
    ["A"], ["A", "A"], ["A", 1], [1.5], {}, {"type": "int"}, {"x": 1}, date(2020, 1, 1), datetime(2020, 1, 1, 1),
    time(1, 2), "2020-01-01", "2020-01-01T00:00", "2020-1-1", "postgresql://a@b/c", "Europe/Berlin",
]  # fmt: skip
KEYS = [
    "budget", "ledger", "tables", "epsilon", "delta", "key_delta", "path", "source", "table", "files", "format", "unit",
    "password_file", "materialized", "persons", "via", "neighbors", "max_rows", "max_rows_per_group", "max_groups", "public",
    "key", "columns", "type", "min", "max", "step", "values", "max_length", "zone", "nullable", "other", "", "x\ty",
    "y" * 201,
]  # fmt: skip


def sections(value: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [
        section for each in value.values() if isinstance(each, dict) for section in sections(each)
    ]
    return [value, *inner]


def mutated(seed: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A declaration with one or two keys changed, dropped, added or taken from elsewhere."""
    declared = copy.deepcopy(seed)
    for _ in range(rng.choice([1, 1, 1, 2])):
        section = rng.choice(sections(declared))
        action = rng.randrange(4)
        if section and action == 0:
            del section[rng.choice(list(section))]
        else:
            key = rng.choice(list(section)) if section and action < 3 else rng.choice(KEYS)
            # elsewhere a day is text to an editor, which the schema cannot tell from text in quotes
            values = (
                VALUES
                if key in ("min", "max")
                else [value for value in VALUES if not isinstance(value, date | time)]
            )
            section[key] = copy.deepcopy(rng.choice(values))
    return declared


def refused(declared: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> InvalidDeclaration | None:
    """What the reader says of it."""
    monkeypatch.setattr("sordino.query.declaration._parsed", lambda _: copy.deepcopy(declared))
    try:
        Dataset.load("some.toml")
    except InvalidDeclaration as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore::sordino.errors.DeclarationWarning")
@pytest.mark.parametrize("count", first_of(1, [500, 3000]))
def test_reader_and_schema_refuse_the_same_structures(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(20261116)
    seeds = [tomllib.loads("\n".join(map(str.strip, seed.splitlines()))) for seed in SEEDS]
    for seed in seeds:
        assert refused(seed, monkeypatch) is None
        assert not faults(seed)
    both = accepted = by_values = 0
    for _ in range(count):
        declared = mutated(rng.choice(seeds), rng)
        error, found = refused(declared, monkeypatch), faults(declared)
        if error is None:
            assert not found, (declared, found)
            accepted += 1
        elif not found:
            assert any(re.search(rule, error.rule) for rule in BY_SEVERAL_VALUES), (
                declared,
                str(error),
            )
            by_values += 1
        else:
            both += 1
    assert min(accepted, both) > count / 30
    assert by_values < both / 3
