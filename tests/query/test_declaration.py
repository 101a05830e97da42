"""The declaration: what every key means, every rule with its message, and that TOML and Python say the same."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.privacy.budget import Budget
from sordino.privacy.neighbors import Neighbors
from sordino.query.aggregates.grid import Grid
from sordino.query.bounds import NAMES, Bounds
from sordino.query.column_text import column_line, outward
from sordino.query.dataset import Column, Dataset, Source, Table
from sordino.query.types import Day, Moment, Number, Text, Truth, default_step

PAGE = Path(__file__).parents[2] / "docs" / "declaration.md"
CANARY = "canary-7f3a91"


def load(folder: Path, text: str) -> Dataset:
    (folder / "visits.toml").write_text(text)
    return Dataset.load(folder / "visits.toml")


def table_with(columns: str = "", keys: str = 'unit = "row"', name: str = "visits") -> str:
    return (
        f'[tables.{name}]\nsource = "visits.parquet"\n{keys}\n[tables.{name}.columns]\n{columns}\n'
    )


def column(folder: Path, description: str) -> Column:
    return load(folder, table_with(f"x = {{ {description} }}")).tables["visits"].columns["x"]


def refusal(folder: Path, text: str) -> InvalidDeclaration:
    with pytest.raises(InvalidDeclaration) as caught:
        load(folder, text)
    return caught.value


def python_refusal(*args: Any, **kwargs: Any) -> InvalidDeclaration:
    with pytest.raises(InvalidDeclaration) as caught:
        Dataset(*args, **kwargs)
    return caught.value


# What a declaration means


def test_the_page_of_the_docs_is_read_as_it_says(tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    dataset = load(tmp_path, block.group(1))
    assert dataset.budget == Budget(Fraction(1), Fraction(1, 10**6))
    assert dataset.reserved_delta == Fraction(1, 2 * 10**6)
    assert dataset.ledger == str(tmp_path / "visits.ledger")
    assert dataset.file == tmp_path / "visits.toml"
    visits, wards = dataset.tables["visits"], dataset.tables["wards"]
    assert visits.source == Source("parquet", tmp_path / "visits.parquet")
    assert (visits.person, visits.neighbors) == ("patient_id", Neighbors.ADD_REMOVE)
    assert visits.bounds == Bounds(10, 4, 3)
    one, zero = Fraction(1), Fraction(0)
    assert visits.columns == {
        "age": Column("int", Number(zero, Fraction(110), one)),
        "cost": Column("float", Number(zero, Fraction(5000), Fraction(1, 100))),
        "urgent": Column("bool", Truth()),
        "ward": Column("category", Text(("A", "B", "C"), 1)),
        "triage": Column(
            "category", Number(one, Fraction(5), one, (1, 2, 3, 4, 5), nullable=False)
        ),
        "city": Column("text", Text(longest=80)),
        "day": Column("date", Day(date(2020, 1, 1), date(2025, 12, 31))),
        "admitted": Column(
            "datetime", Moment(datetime(2020, 1, 1), datetime(2025, 12, 31, 23, 59, 59))
        ),
    }
    assert wards.public
    assert wards.person is None
    assert wards.key == ("ward",)
    assert wards.source.kind == "csv"


def test_every_kind_and_key_is_on_the_page() -> None:
    page = PAGE.read_text()
    words = ["int", "float", "bool", "category", "text", "date", "datetime", "min", "max", "step", "values", "max_length",
             "source", "table", "unit", "persons", "via", "neighbors", *NAMES, "public", "key",
             "key_delta"]  # fmt: skip
    assert [w for w in words if f"`{w}`" not in page] == []


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ('type = "int"', Number(step=Fraction(1))),
        ('type = "int", min = -5.0, max = 5', Number(Fraction(-5), Fraction(5), Fraction(1))),
        ('type = "int", min = 0, max = 9_007_199_254_740_992', Number(Fraction(0), Fraction(2**53), Fraction(1))),
        ('type = "float"', Number()),
        ('type = "float", step = 0.1', Number(step=Fraction(1, 10))),
        ('type = "float", min = 0.1, max = 0.3, step = 0.1', Number(Fraction(1, 10), Fraction(3, 10), Fraction(1, 10))),
        ('type = "float", min = 0, max = 5000', Number(Fraction(0), Fraction(5000))),
        ('type = "float", min = 0, max = 1e6', Number(Fraction(0), Fraction(10**6))),
        ('type = "float", min = 0, max = 1e-300', Number(Fraction(0), Fraction(1, 10**300))),
        ('type = "float", min = -1e20, max = 1e20', Number(Fraction(-(10**20)), Fraction(10**20))),
        ('type = "category", values = ["bb", "", "ä"]', Text(("bb", "", "ä"), 2)),
        ('type = "category", values = [3, 1, 2]', Number(Fraction(1), Fraction(3), Fraction(1), (3, 1, 2))),
        ('type = "category", values = [7]', Number(Fraction(7), Fraction(7), Fraction(1), (7,))),
        ('type = "text", nullable = false', Text(nullable=False)),
        ('type = "date"', Day()),
        ('type = "date", min = "2020-02-29", max = 2020-02-29', Day(date(2020, 2, 29), date(2020, 2, 29))),
        ('type = "datetime", nullable = false', Moment(nullable=False)),
        ('type = "datetime", min = "2020-01-01 00:00", max = 2020-01-01T00:00:00.5',
         Moment(datetime(2020, 1, 1), datetime(2020, 1, 1, microsecond=500_000))),
    ],
)  # fmt: skip
def test_types_of_columns(tmp_path: Path, description: str, expected: object) -> None:
    read = column(tmp_path, description)
    assert read.type == expected
    assert f'type = "{read.kind}"' in description


@given(st.builds(lambda n, d: Fraction(n, 10**d), st.integers(1, 10**12), st.integers(0, 12)))
def test_an_undeclared_step_is_the_largest_power_of_ten_up_to_a_millionth(width: Fraction) -> None:
    columns = {"x": {"type": "float", "min": 0, "max": width}}
    try:
        found = Dataset("a.parquet", unit="row", columns=columns).tables["a"].columns["x"].type
    except InvalidDeclaration as error:
        named = re.search(r"which is ([0-9.e+-]+)", error.rule)
        assert named is not None
        step = Fraction(named.group(1))
        assert (width / step).denominator != 1
    else:
        assert found == Number(
            Fraction(0), width
        )  # values need not lie on it: no step is known of them
        step = Grid.of(found, "x", 2**40).step
    assert step <= width / 10**6 < 10 * step
    assert re.fullmatch("10*", str(step.numerator * step.denominator))


@settings(max_examples=50)
@given(
    st.integers(-(10**6), 10**6).map(lambda n: Fraction(n, 999)),
    st.integers(1, 10**9).map(lambda n: Fraction(n, 997)),
)
def test_a_line_with_limits_of_a_column_without_a_step_can_be_declared(
    lower: Fraction, width: Fraction
) -> None:
    bare = Column("float", Number())
    least, most = outward(bare, lower, lower + width)
    assert least <= lower < lower + width <= most
    entries = tomllib.loads(column_line("x", bare, least, most))["x"]
    made = Dataset("a.parquet", unit="row", columns={"x": entries}).tables["a"].columns["x"]
    assert made.type == Number(least, most)


def test_numbers_are_exact_from_toml_and_the_typed_decimal_from_python(tmp_path: Path) -> None:
    text = "[budget]\nepsilon = 0.3\ndelta = 0.1\n" + table_with(
        'x = { type = "float", min = 0.1, max = 0.7, step = 0.1 }'
    )
    loaded = load(tmp_path, text)
    assert loaded.budget == Budget(Fraction(3, 10), Fraction(1, 10))
    columns = {"x": {"type": "float", "min": np.float64(0.1), "max": 0.7, "step": Decimal("0.1")}}
    same = Dataset(
        tmp_path / "visits.parquet",
        unit="row",
        columns=columns,
        budget={"epsilon": 0.3, "delta": 0.1},
    )
    assert same.tables == loaded.tables
    assert same.budget == Budget(0.3, 0.1)  # a promise: the smaller reading of the float
    assert replace(same, budget=loaded.budget) == loaded


def test_key_delta_is_half_of_delta_only_where_keys_can_be_private(tmp_path: Path) -> None:
    budget = "[budget]\nepsilon = 1\ndelta = 1e-6\n"
    half = Fraction(1, 2 * 10**6)
    text, category = 'city = { type = "text" }', 'ward = { type = "category", values = ["A"] }'
    assert load(tmp_path, budget + table_with(text)).reserved_delta == half
    assert load(tmp_path, budget + table_with(category)).reserved_delta == 0
    assert load(tmp_path, budget + table_with(text, 'unit = "CITY"')).reserved_delta == 0
    assert load(tmp_path, budget + table_with(text, "public = true")).reserved_delta == 0
    assert load(
        tmp_path, budget + "key_delta = 1e-7\n" + table_with(category)
    ).reserved_delta == Fraction(1, 10**7)
    assert load(
        tmp_path, budget + "key_delta = 1e-6\n" + table_with(text)
    ).reserved_delta == Fraction(1, 10**6)
    assert load(tmp_path, table_with(text)).reserved_delta is None
    given_later = load(tmp_path, table_with(text)).with_budget(
        Budget(Fraction(1), Fraction(1, 10**6))
    )
    assert given_later.reserved_delta == half


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def source(line: str) -> Source:
        return load(tmp_path, f'[tables.visits]\n{line}\nunit = "row"').tables["visits"].source

    assert source('source = "sub/v.PARQUET"') == Source("parquet", tmp_path / "sub" / "v.PARQUET")
    assert source('source = "v.csv.gz"') == Source("csv", tmp_path / "v.csv.gz")
    assert source('source = "/data/v.csv"') == Source("csv", Path("/data/v.csv"))
    assert source('source = "v.duckdb"') == Source("duckdb", tmp_path / "v.duckdb", "visits")
    assert source('source = "v.duckdb"\ntable = "V 2"') == Source(
        "duckdb", tmp_path / "v.duckdb", "V 2"
    )
    monkeypatch.chdir(tmp_path)
    for path in ("v.csv.gz", Path("v.csv.gz")):
        assert Dataset(path, unit="row").tables["v"].source == Source("csv", tmp_path / "v.csv.gz")
    assert Dataset("v.duckdb", unit="row").tables["v"].source.table == "v"
    assert Dataset("v.duckdb", unit="row", name="w").tables["w"].source.table == "w"
    inside = Dataset(
        tables={
            "w": Table.declare("v.duckdb", unit="row"),
            "x": Table.declare("v.duckdb", unit="row", table="y"),
        }
    )
    assert [t.source.table for t in inside.tables.values()] == ["w", "y"]


def test_objects_in_memory_are_sources_by_identity() -> None:
    pandas, polars, pyarrow = (import_module(name) for name in ("pandas", "polars", "pyarrow"))
    cells = {"name": [CANARY, CANARY]}
    for frame in (pandas.DataFrame(cells), polars.DataFrame(cells), pyarrow.table(cells)):
        dataset = Dataset(frame, unit="row", columns={"name": {"type": "text"}})
        assert list(dataset.tables) == ["data"]
        assert dataset.tables["data"].source.kind == "frame"
        assert dataset.tables["data"].source.frame is frame
        assert dataset == Dataset(frame, unit="row", columns={"name": {"type": "text"}})
        assert hash(dataset) == hash(Dataset(frame, unit="row", columns={"name": {"type": "text"}}))
        assert dataset != Dataset(frame[:1], unit="row", columns={"name": {"type": "text"}})
        assert Dataset(frame, unit="row", name="people").tables["people"].name == "people"
        assert CANARY not in repr(dataset) + repr(dataset.tables)


def test_the_relative_path_of_a_declaration_is_followed_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "visits.toml").write_text('[ledger]\npath = "l.ledger"\n' + table_with())
    monkeypatch.chdir(tmp_path)
    dataset = Dataset.load("sub/visits.toml")
    assert dataset.tables["visits"].source.path == tmp_path / "sub" / "visits.parquet"
    assert dataset.ledger == str(tmp_path / "sub" / "l.ledger")
    assert Dataset("v.csv", unit="row", ledger=Path("l.ledger")).ledger == str(
        tmp_path / "l.ledger"
    )
    address = "postgresql://someone@somewhere/ledger"
    assert Dataset("v.csv", unit="row", ledger=address).ledger == address


def test_the_person_and_the_key_take_the_declared_spelling(tmp_path: Path) -> None:
    text = table_with('Patient_ID = { type = "text" }', 'unit = "PATIENT_id"')
    assert load(tmp_path, text).tables["visits"].person == "Patient_ID"
    assert load(tmp_path, table_with("", 'unit = "someone"')).tables["visits"].person == "someone"
    public = table_with('Code = { type = "int" }', 'public = true\nkey = ["CODE"]')
    assert load(tmp_path, public).tables["visits"].key == ("Code",)


def test_a_declaration_opens_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no visits.parquet here, and heavy libraries stay unloaded."""
    load(tmp_path, table_with('age = { type = "int", min = 0, max = 110 }'))
    script = (
        "import sys; from sordino.query.dataset import Dataset; Dataset.load(sys.argv[1]);"
        "print(sorted({'duckdb', 'pyarrow', 'sqlglot', 'pandas', 'polars'} & set(sys.modules)))"
    )
    run = [sys.executable, "-c", script, str(tmp_path / "visits.toml")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"


# TOML and Python say the same


def plain_keys() -> st.SearchStrategy[str]:
    return st.text(
        st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=1, max_size=9
    ).filter(lambda s: bool(s.strip()) and s.casefold() not in {"row", "todo"})


def described_columns() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    whole = st.tuples(st.integers(-1000, 0), st.integers(1, 1000))
    days = st.tuples(st.dates(max_value=date(2000, 1, 1)), st.dates(min_value=date(2000, 1, 1)))
    one = st.one_of(
        whole.map(lambda w: {"type": "int", "min": w[0], "max": w[1]}),
        whole.map(
            lambda w: {
                "type": "float",
                "min": Decimal(w[0]) / 8,
                "max": Decimal(w[1]) / 8,
                "step": Decimal("0.125"),
            }
        ),
        st.sampled_from(["int", "float", "bool", "text", "date", "datetime"]).map(
            lambda t: {"type": t, "nullable": False}
        ),
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=5),
            min_size=1,
            unique=True,
        ).map(lambda v: {"type": "category", "values": v}),
        st.lists(st.integers(-(10**6), 10**6), min_size=1, unique=True).map(
            lambda v: {"type": "category", "values": v}
        ),
        days.map(lambda d: {"type": "date", "min": d[0], "max": d[1]}),
        st.integers(1, 100).map(lambda n: {"type": "text", "max_length": n}),
    )
    return st.dictionaries(plain_keys(), one, max_size=4)


def toml_value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case list():
            return f"[{', '.join(map(toml_value, value))}]"
        case Mapping():
            return (
                f"{{ {', '.join(f'{toml_value(k)} = {toml_value(v)}' for k, v in value.items())} }}"
            )
    return str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    columns=described_columns(),
    name=plain_keys(),
    unit=st.one_of(st.just("row"), plain_keys()),
    neighbors=st.sampled_from(["add_remove", "replace"]),
    limits=st.tuples(*(st.none() | st.integers(1, 99) for _ in NAMES)),
    epsilon=st.decimals("0.01", 9, places=2),
)
def test_toml_and_python_declare_the_same(
    tmp_path: Path,
    columns: Any,
    name: str,
    unit: str,
    neighbors: str,
    limits: tuple[Any, ...],
    epsilon: Decimal,
) -> None:
    bounds = dict(zip(NAMES, limits, strict=True)) if unit != "row" else {}
    given_keys = {"unit": unit, "neighbors": neighbors, **bounds, "columns": columns}
    entries = {"source": "visits.parquet"} | {k: v for k, v in given_keys.items() if v is not None}
    budget = {"epsilon": epsilon, "delta": Decimal("1e-6")}
    folded = {c.casefold() for c in columns}
    if len(folded) != len(columns):
        return
    text = f"budget = {toml_value(budget)}\ntables = {toml_value({name: entries})}\n"
    assert tomllib.loads(text)
    loaded = load(tmp_path, text)
    source = tmp_path / "visits.parquet"
    assert loaded == Dataset(source, name=name, budget=budget, **given_keys)
    assert loaded == Dataset(tables={name: Table.declare(source, **given_keys)}, budget=budget)
    assert loaded == Dataset(tables={name: entries | {"source": source}}, budget=budget)
    assert hash(loaded) == hash(Dataset(source, name=name, budget=budget, **given_keys))
    assert pickle.loads(pickle.dumps(loaded)) == loaded == copy.deepcopy(loaded)


def test_equality_sees_every_key(tmp_path: Path) -> None:
    base = Dataset("v.csv", unit="p", columns={"x": {"type": "bool"}}, budget={"epsilon": 1})
    others = [
        Dataset(
            "w.csv", name="v", unit="p", columns={"x": {"type": "bool"}}, budget={"epsilon": 1}
        ),
        Dataset("v.csv", unit="q", columns={"x": {"type": "bool"}}, budget={"epsilon": 1}),
        Dataset("v.csv", unit="p", columns={"x": {"type": "text"}}, budget={"epsilon": 1}),
        Dataset("v.csv", unit="p", columns={"x": {"type": "bool"}}, budget={"epsilon": 2}),
        Dataset("v.csv", unit="p", columns={"x": {"type": "bool"}}),
        Dataset(
            "v.csv", unit="p", columns={"x": {"type": "bool"}}, budget={"epsilon": 1}, ledger="l"
        ),
        Dataset(
            "v.csv",
            unit="p",
            columns={"x": {"type": "bool"}},
            budget={"epsilon": 1},
            neighbors="replace",
        ),
    ]
    assert all(base != other for other in others)
    assert base.tables["v"].source != "v.csv"


def test_a_dataset_cannot_be_changed() -> None:
    columns = {"x": {"type": "bool"}}
    dataset = Dataset("v.csv", unit="p", columns=columns)
    columns["y"] = {"type": "bool"}
    assert list(dataset.tables["v"].columns) == ["x"]
    with pytest.raises(FrozenInstanceError):
        dataset.budget = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        dataset.tables["w"] = dataset.tables["v"]  # type: ignore[index]
    with pytest.raises(TypeError):
        del dataset.tables["v"].columns["x"]  # type: ignore[attr-defined]


def test_repr_is_short() -> None:
    codes = Table.declare("codes.csv", public=True, columns={"code": {"type": "int"}})
    dataset = Dataset(
        tables={"visits": Table.declare("v.csv", unit="row"), "codes": codes},
        budget={"epsilon": 0.5, "delta": 1e-6},
    )
    assert (
        repr(dataset)
        == "Dataset(visits: 0 columns, unit row; codes: 1 column, public; budget epsilon 0.5, delta 1e-06)"
    )
    assert repr(Dataset("v.csv", unit="p")) == "Dataset(v: 0 columns, unit p; no budget)"


# Every rule, with file, key and fix

COLUMN = "visits.toml: tables.visits.columns.x"


@pytest.mark.parametrize(
    ("description", "value", "rule", "hint"),
    [
        ("min = 0", COLUMN + " without type", "every column has a type", 'type = "int"'),
        ('type = "integer"', COLUMN + ".type = 'integer'", "a type is one of int", 'Write type = "int".'),
        ('type = "String"', COLUMN + ".type", "a type is one of", 'Write type = "text".'),
        ('type = "categori"', COLUMN + ".type", "a type is one of", 'Write type = "category".'),
        ('type = "blob"', COLUMN + ".type = 'blob'", "a type is one of", "one of these"),
        ("type = 3", COLUMN + ".type = 3", "a type is one of", "one of these"),
        ('type = "int", mim = 0, max = 1', COLUMN + ".mim", "not a known key", "Did you mean min?"),
        ('type = "int", Min = 0, max = 1', COLUMN + ".Min", "not a known key", "Did you mean min?"),
        ('type = "bool", values = [1]', COLUMN + ".values", "not a known key", "Known here: type, nullable."),
        ('type = "int", step = 2', COLUMN + ".step", "not a known key", "min, max"),
        ('type = "int", min = 0', COLUMN + " without max", "both min and max, or neither", "Add max = ..."),
        ('type = "date", max = 2020-01-01', COLUMN + " without min", "both min and max", "leave out max"),
        ('type = "int", min = "x", max = 1', COLUMN + ".min = 'x'", "it must be a number", "without quotes"),
        ('type = "int", min = true, max = 1', COLUMN + ".min = true", "it must be a number", "such as 0"),
        ('type = "int", min = [1, 2], max = 1', COLUMN + ".min = a list of 2 values", "it must be a number", "such as 0"),
        ('type = "int", min = 2020-01-01, max = 1', COLUMN + ".min = 2020-01-01", "it must be a number", "such as 0"),
        ('type = "int", min = 0.5, max = 9', COLUMN + ".min = 0.5", "it must be a whole number", "Write 0 or 1"),
        ('type = "int", min = 0, max = inf', COLUMN + ".max = Infinity", "finite", "public limit"),
        ('type = "int", min = nan, max = 1', COLUMN + ".min = NaN", "finite", "public limit"),
        ('type = "int", min = 0, max = 4611686018427387904', COLUMN + ".max", "smaller than 2^62", "float"),
        ('type = "int", min = 0, max = 9007199254740993', COLUMN + " from 0", "at most 2^53 steps", "step = 10"),
        ('type = "int", min = 5, max = 5', COLUMN + " with min = 5, max = 5", "min must be below max", "widen"),
        ('type = "float", min = 1, max = 0', COLUMN + " with min = 1, max = 0", "min must be below max", "Swap"),
        ('type = "float", min = 0, max = 1e999999999', COLUMN + ".max = 1E+999999999", "between 1e-300 and 1e300",
         "ordinary"),
        ('type = "float", min = 0, max = 1e-999999999', COLUMN + ".max", "between 1e-300 and 1e300", "ordinary"),
        ('type = "float", min = 0, max = 1e99999999999999999999999', COLUMN + ".max", "finite", "public limit"),
        ('type = "float", min = 0, max = 1, step = 0', COLUMN + ".step = 0", "greater than zero", "step = 0.01"),
        ('type = "float", min = 0, max = 1, step = -0.5', COLUMN + ".step = -0.5", "greater than zero", "step = 0.01"),
        ('type = "float", min = 0.005, max = 1, step = 0.01', COLUMN + ".min = 0.005", "multiple of the step, which is 0.01",
         "Write min = 0 or min = 0.01"),
        ('type = "float", min = 0, max = 10, step = 3', COLUMN + ".max = 10", "which is 3", "Write max = 9 or max = 12"),
        ('type = "float", min = 0.00001, max = 5000', COLUMN + ".min = 1e-05", "which is 0.001 (undeclared",
         "or another step"),
        ('type = "float", min = 0, max = 1e9, step = 1e-9', COLUMN + " from 0", "at most 2^53 steps", "step = 1e-06"),
        ('type = "float", min = 1e12, max = 1000000000001', COLUMN, "cannot tell steps of 1e-06 apart", "step = 0.001"),
        ('type = "category"', COLUMN + " without values", "lists its possible values", 'type = "text"'),
        ('type = "category", values = []', COLUMN + ".values = a list of 0", "at least one value", '["A", "B"]'),
        ('type = "category", values = "A"', COLUMN + ".values = 'A'", "a list", '["A", "B"]'),
        ('type = "category", values = ["A", 1]', COLUMN + ".values[1] = 1", "all text or all whole", "Quote"),
        ('type = "category", values = [1.5]', COLUMN + ".values[0] = 1.5", "text or a whole number", "quotes"),
        ('type = "category", values = [true]', COLUMN + ".values[0] = true", "text or a whole number", 'type = "bool"'),
        ('type = "category", values = ["A", "B", "A"]', COLUMN + ".values[2] = 'A'", "already listed, as values[0]", "once"),
        ('type = "category", values = ["A\\u0000"]', COLUMN + ".values[0]", "without NUL", "Leave"),
        ('type = "category", values = [4611686018427387904]', COLUMN + ".values[0]", "smaller than 2^62", "float"),
        ('type = "category", values = [0, 9007199254740993]', COLUMN + ".values from 0", "at most 2^53 steps", "narrower"),
        ('type = "text", max_length = 0', COLUMN + ".max_length = 0", "from 1 to a billion", "max_length = 10"),
        ('type = "text", max_length = 1.0', COLUMN + ".max_length = 1.0", "from 1 to a billion", "max_length = 10"),
        ('type = "bool", nullable = "no"', COLUMN + ".nullable = 'no'", "true or false", "nullable = false"),
        ('type = "bool", nullable = 0', COLUMN + ".nullable = 0", "true or false", "nullable = false"),
        ('type = "date", min = 5, max = 2020-01-01', COLUMN + ".min = 5", "must be a date", "min = 2024-01-31"),
        ('type = "date", min = "20200101", max = 2020-01-01', COLUMN + ".min", "must be a date", "min = 2024-01-31"),
        ('type = "date", min = "2020-02-30", max = 2020-03-01', COLUMN + ".min", "no such day", "Write a day"),
        ('type = "date", min = 2020-01-05T10:00:00, max = 2020-03-01', COLUMN + ".min", "must be a date",
         "min = 2020-01-05"),
        ('type = "date", min = 2021-01-01, max = 2020-01-01', COLUMN + " with min = 2021-01-01", "not be after max", "Swap"),
        ('type = "datetime", min = 2020-01-01, max = 2020-01-02', COLUMN + ".min", "time of day",
         "min = 2020-01-01T00:00:00"),
        ('type = "datetime", min = 2020-01-01T00:00:00, max = 2020-01-02', COLUMN + ".max", "time of day",
         "2020-01-02T23:59:59"),
        ('type = "datetime", min = 2020-01-01T00:00:00Z, max = 2020-01-02T00:00:00Z', COLUMN + ".min", "without time zone",
         "min = 2020-01-01T00:00:00"),
        ('type = "datetime", min = "2020-01-01 25:00", max = "2020-01-02 00:00"', COLUMN + ".min", "no such moment",
         "Write one"),
        ('type = "datetime", min = 10:00:00, max = 11:00:00', COLUMN + ".min = 10:00:00", "time of day",
         "min = 2024-01-31T00"),
    ],
)  # fmt: skip
def test_a_bad_column_is_refused(
    tmp_path: Path, description: str, value: str, rule: str, hint: str
) -> None:
    error = refusal(tmp_path, table_with(f"x = {{ {description} }}"))
    assert error.value.startswith(value)
    assert rule in error.rule
    assert hint in error.hint
    assert not error.rule.endswith(".")
    assert error.hint.endswith(("?", "."))


TABLE = "visits.toml: tables.visits"


@pytest.mark.parametrize(
    ("text", "value", "rule", "hint"),
    [
        ("", "visits.toml without tables", "at least one table", "[tables.visits]"),
        ("tables = {}", "visits.toml: tables", "at least one table", "[tables.visits]"),
        ("tables = 5", "visits.toml: tables = 5", "a section with keys", "{ key = value }"),
        ("[tabels.visits]", "visits.toml: tabels", "not a known key", "Did you mean tables?"),
        ("[tables]\nvisits = 5", TABLE + " = 5", "a section with keys", "{ key = value }"),
        ('[tables.visits]\nunit = "row"', TABLE + " without source", "a table has a source", 'source = "visits.parquet"'),
        ('[tables.visits]\nsource = "v.csv"', TABLE + " without unit", "who is protected", 'Write unit = "row"'),
        (table_with(keys='unit = "TODO"'), TABLE + ".unit = 'TODO'", "still to be filled in", 'unit = "patient_id"'),
        (table_with(keys="unit = 5"), TABLE + ".unit = 5", "text that is not empty", 'unit = "patient_id"'),
        (table_with(keys='unit = ""'), TABLE + ".unit = ''", "text that is not empty", 'unit = "patient_id"'),
        (table_with(keys='unit = "ROW"'), TABLE + ".unit = 'ROW'", "each row is another person", "small letters"),
        (table_with('Row = { type = "bool" }'), TABLE + ".unit = 'row'", "no column may have this name", "rename"),
        (table_with(keys='unit = "p"\nmaxrows = 5'), TABLE + ".maxrows", "not a known key", "Did you mean max_rows?"),
        (table_with(keys='unit = "p"\nmax_rows = 0'), TABLE + ".max_rows = 0", "from 1 to a billion", "max_rows = 10"),
        (table_with(keys='unit = "p"\nmax_rows = "5"'), TABLE + ".max_rows = '5'", "from 1 to a billion", "max_rows = 10"),
        (table_with(keys='unit = "p"\nmax_groups = 1000000001'), TABLE + ".max_groups", "from 1 to a billion", "max_groups"),
        (table_with(keys='unit = "row"\nmax_rows = 2'), TABLE + ".max_rows = 2", "can only be 1", "Leave out max_rows"),
        (table_with(keys='unit = "p"\nneighbors = "replce"'), TABLE + ".neighbors", "add_remove, or replace",
         "mean replace?"),
        (table_with(keys='unit = "p"\nneighbors = 5'), TABLE + ".neighbors = 5", "add_remove, or replace", "Known here"),
        (table_with(keys='unit = "p"\nkey = ["x"]'), TABLE + ".key = a list of 1", "only a public table", "public = true"),
        (table_with(keys="public = 1"), TABLE + ".public = 1", "true or false", "public = true"),
        (table_with(keys='public = true\nunit = "row"'), TABLE + ".unit = 'row'", "protects nobody", "Leave out unit"),
        (table_with(keys="public = true\nmax_rows = 1"), TABLE + ".max_rows = 1", "protects nobody", "Leave out max_rows"),
        (table_with(keys="public = true\nkey = []"), TABLE + ".key = a list of 0", "a list of columns", 'key = ["code"]'),
        (table_with('code = { type = "int" }', 'public = true\nkey = ["cod"]'), TABLE + ".key[0] = 'cod'",
         "declared columns",
         "Did you mean code?"),
        (table_with('code = { type = "int" }', 'public = true\nkey = ["code", "CODE"]'), TABLE + ".key[1]", "twice", "once"),
        (table_with("age = 5"), TABLE + ".columns.age = 5", "a section with keys", "{ key = value }"),
        (table_with('age = "int"'), TABLE + ".columns.age = 'int'", "described by a section",
         'Write age = { type = "int" }.'),
        (table_with('"a b" = { type = "in" }'), TABLE + '.columns."a b".type', "a type is one of", 'type = "int"'),
        (table_with('Age = { type = "int" }\nage = { type = "int" }'), TABLE + ".columns: the columns 'Age' and 'age'",
         "differ only in case", "Rename"),
        (table_with('"caf\\u00e9" = { type = "int" }\n"cafe\\u0301" = { type = "int" }'), TABLE + ".columns: the columns",
         "differ only in case", "Rename"),
        (table_with('"" = { type = "int" }'), TABLE + ".columns: the column name ''", "not empty", "Rename"),
        (table_with('" " = { type = "int" }'), TABLE + ".columns: the column name ' '", "not empty", "Rename"),
        (table_with('"a\\n" = { type = "int" }'), TABLE + ".columns: the column name", "no control characters", "Rename"),
        (table_with(f'{"a" * 201} = {{ type = "int" }}'), TABLE + ".columns: the column name", "at most 200", "Rename"),
        (table_with() + table_with(name="VISITS"), "visits.toml: tables: the tables 'visits' and 'VISITS'",
         "only in case", "Ren"),
        ('[tables.""]\nsource = "a.csv"', "visits.toml: tables: the table name ''", "not empty", "Rename"),
        ("[tables.visits]\nsource = 5", TABLE + ".source = 5", "a source is the path of a file", "Pass one of these"),
        ('[tables.visits]\nsource = ""', TABLE + ".source = ''", "a source is the path of a file", "visits.parquet"),
        ('[tables.visits]\nsource = "v.xlsx"', TABLE + ".source = 'v.xlsx'",
         "ends in .parquet, .csv, .csv.gz, .duckdb", "Convert"),
        ('[tables.visits]\nsource = "v.toml"', TABLE + ".source = 'v.toml'", "ends in .parquet", "Dataset.load"),
        ('[tables.visits]\nsource = "*.parquet"', TABLE + ".source = '*.parquet'", "not a pattern", "one Parquet"),
        ('[tables.visits]\nsource = "v.csv"\ntable = "x"', TABLE + ".table = 'x'", "only a DuckDB file", "Leave table out"),
        ('[tables.visits]\nsource = "v.duckdb"\ntable = ""', TABLE + ".table = ''", "not empty", 'table = "visits"'),
        ("[budget]\n" + table_with(), "visits.toml: budget without epsilon", "has an epsilon", "epsilon = 1.0"),
        ("budget = 1\n" + table_with(), "visits.toml: budget = 1", "a section with keys", "{ key = value }"),
        ("[budget]\nepsilon = -1\n" + table_with(), "visits.toml: budget.epsilon = -1", "greater than zero", "such as 1"),
        ("[budget]\nepsilon = 1\ndelta = 1.0\n" + table_with(), "visits.toml: budget.delta = 1.0", "below 1", "1e-6"),
        ("[budget]\nepsilon = '1'\n" + table_with(), "visits.toml: budget.epsilon = '1'", "a number", "without quotes"),
        ("[budget]\nepsilon = 1e-99999999\n" + table_with(), "visits.toml: budget.epsilon", "between 1e-300", "ordinary"),
        ("[budget]\nepsilon = 1\neps = 1\n" + table_with(), "visits.toml: budget.eps", "not a known key", "mean epsilon?"),
        ("[budget]\nepsilon = 1\ndelta = 1e-6\nkey_delta = 2e-6\n" + table_with(), "visits.toml: budget.key_delta",
         "part of the",
         "from 0 to delta"),
        ("[budget]\nepsilon = 1\ndelta = 1e-6\nkey_delta = -1e-7\n" + table_with(), "visits.toml: budget.key_delta",
         "part of the",
         "from 0 to delta"),
        ("[ledger]\npath = 5\n" + table_with(), "visits.toml: ledger.path", "the path of a file", "visits.ledger"),
        ("[ledger]\nfile = 'x'\n" + table_with(), "visits.toml: ledger.file", "not a known key", "Known here: path."),
    ],
)  # fmt: skip
def test_a_bad_table_or_budget_is_refused(
    tmp_path: Path, text: str, value: str, rule: str, hint: str
) -> None:
    error = refusal(tmp_path, text)
    assert error.value.startswith(value)
    assert rule in error.rule
    assert hint in error.hint
    assert not error.rule.endswith(".")
    assert str(error) == f"got {error.value}: {error.rule}. {error.hint}"
    assert isinstance(error, InvalidInput)


@pytest.mark.parametrize("address", [
    "spark:s3cret", "jdbc:x:s3cret.parquet", "https://s3cret/v.parquet", "mysql://someone:s3cret@db/visits",
    "host=db password=s3cret dbname=visits.parquet",
])  # fmt: skip
def test_addresses_that_no_engine_reads_are_refused_and_their_passwords_not_shown(
    tmp_path: Path, address: str
) -> None:
    error = refusal(tmp_path, f'[tables.visits]\nunit = "row"\nsource = "{address}"')
    assert error.rule == "no engine reads such an address"
    assert error.value.startswith(TABLE + ".source with ")
    assert "s3cret" not in str(error)


@pytest.mark.parametrize(("text", "where", "what"), [
    ("[tables.visits]\nsource = visits.parquet\n", "visits.toml, line 2, column 10", "not valid TOML (Invalid value)"),
    ("[tables.visits\n", "visits.toml, line 1, column 15", "not valid TOML"),
    ("a = 1\na = 2\n", "visits.toml, line 2, column 6", "not valid TOML (Cannot overwrite a value)"),
    ("a = " + "1" * 5000, "visits.toml", "not valid TOML"),
    ("a = " + "[" * 50_000, "visits.toml", "nested too deeply"),
])  # fmt: skip
def test_a_syntax_error_is_shown_with_file_and_line(
    tmp_path: Path, text: str, where: str, what: str
) -> None:
    error = refusal(tmp_path, text)
    assert error.value == where
    assert what in error.rule


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(path: Any) -> str:
        with pytest.raises(InvalidDeclaration) as caught:
            Dataset.load(path)
        return str(caught.value)

    monkeypatch.chdir(tmp_path)
    assert said("gone.toml").startswith("got 'gone.toml': there is no such file. Check the path")
    (tmp_path / "folder.toml").mkdir()
    assert "it is a folder" in said("folder.toml")
    assert "there is no such file" in said("a\0.toml")
    os.mkfifo(tmp_path / "pipe.toml")  # to read it would wait for ever
    assert "not a plain file" in said("pipe.toml")
    assert "File name too long" in said(f"{'x' * 300}.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe4")
    assert "not UTF-8" in said("latin.toml")
    (tmp_path / "visits.csv").write_text(CANARY)
    assert "ends in .toml" in said("visits.csv")
    assert CANARY not in said("visits.csv")
    with (tmp_path / "huge.toml").open("wb") as huge:
        huge.truncate(16 * 2**20 + 1)
    assert "at most 16 MiB" in said("huge.toml")
    assert "path of a TOML file" in said(5)
    assert "path of a TOML file" in said(b"visits.toml")


def test_many_known_names_are_cut_short(tmp_path: Path) -> None:
    columns = "\n".join(f'column_{i} = {{ type = "bool" }}' for i in range(99))
    hint = refusal(tmp_path, table_with(columns, 'public = true\nkey = ["colum_98"]')).hint
    assert hint.startswith("Did you mean column_98? Known here: column_0, column_1,")
    assert hint.endswith("column_19 and more.")


def test_the_first_of_several_problems_is_told(tmp_path: Path) -> None:
    error = refusal(
        tmp_path, table_with('a = { type = "int" }\nb = { type = "bad" }\nc = { type = "worse" }')
    )
    assert error.value.startswith(TABLE + ".columns.b.type")


@pytest.mark.parametrize(("kwargs", "value", "rule"), [
    ({}, "the dataset without source", "a source, or tables"),
    ({"source": "v.csv"}, "the dataset without unit", "who is protected"),
    ({"source": "v.csv", "unit": "row", "columns": {"x": {"type": "int", "min": 2, "max": 1}}},
     "columns.x with min = 2", "below"),
    ({"source": "v.csv", "unit": "row", "columns": [1]}, "columns = a list of 1 value", "a section"),
    ({"source": "v.csv", "unit": "row", "columns": {1: {}}}, "columns = 1", "a key must be text"),
    ({"source": "v.csv", "unit": "row", "columns": {"a\ud800": {"type": "int"}}}, "columns: the column name", "control"),
    ({"source": "v.csv", "unit": "row", "name": ""}, "name = ''", "not empty"),
    ({"source": ".csv", "unit": "row"}, "name = ''", "not empty"),
    ({"source": {"visits": 1}, "unit": "row"}, "source = a table of 1 key", "a source is"),
    ({"source": b"v.csv", "unit": "row"}, "source = an object of type bytes", "a source is"),
    ({"source": "v.csv", "tables": {}}, "source = 'v.csv'", "beside tables"),
    ({"unit": "row", "tables": {"a": Table.declare("v.csv", unit="row")}}, "unit = 'row'", "beside tables"),
    ({"tables": {}}, "tables", "at least one table"),
    ({"tables": {"a": 5}}, "tables.a = 5", "a section"),
    ({"tables": [Table.declare("v.csv", unit="row")]}, "tables = a list of 1 value", "a section"),
    ({"source": "v.csv", "unit": "row", "public": True}, "unit = 'row'", "protects nobody"),
    ({"source": "v.csv", "unit": "row", "public": "yes"}, "public = 'yes'", "true or false"),
    ({"source": "v.csv", "unit": "row", "budget": 1}, "budget = 1", "a section"),
    ({"source": "v.csv", "unit": "row", "budget": {"epsilon": float("nan")}}, "budget.epsilon = nan", "finite"),
    ({"source": "v.csv", "unit": "row", "budget": Budget(Fraction(1)), "reserved_delta": 0.1},
     "reserved_delta = 0.1", "part of"),
    ({"source": "v.csv", "unit": "row", "budget": {"epsilon": 1, "delta": 0.5, "key_delta": 0.1}, "reserved_delta": 0.1},
     "reserved_delta = 0.1", "same thing"),
    ({"source": "v.csv", "unit": "row", "budget": {"epsilon": 1, "delta": 0.1, "key_delta": 0.2}},
     "budget.key_delta", "part"),
    ({"source": "v.csv", "unit": "row", "ledger": 5}, "ledger", "path of a file"),
    ({"source": "v.csv", "unit": np.array(["a", "b"])}, "unit = an object of type ndarray", "text"),
    ({"source": "v.csv", "unit": "p", "neighbors": np.array([1, 2])}, "neighbors = an object of type ndarray", "add_remove"),
    ({"source": "v.csv", "unit": "p", "columns": {"x": {"type": np.array([1, 2])}}}, "columns.x.type", "a type is"),
    ({"source": "v.csv", "unit": "p", "columns": {"x": {"type": "int", "min": 10**5000, "max": 1}}}, "columns.x.min",
     "1e300"),
    ({"source": "v.csv", "unit": "p", "columns": {"x": {"type": "float", "min": Fraction(1, 10**5000), "max": 1}}},
     "columns.x.min = 0.0", "1e300"),
    ({"source": "v.csv", "unit": "p", "columns": {"x": {"type": "category", "values": {"A", "B"}}}},
     "columns.x.values", "a list"),
])  # fmt: skip
def test_python_is_checked_as_toml_is(kwargs: dict[str, Any], value: str, rule: str) -> None:
    error = python_refusal(**kwargs)
    assert error.value.startswith(value)
    assert rule in error.rule


def test_a_missing_timestamp_is_no_limit() -> None:
    pandas = import_module("pandas")
    columns = {"x": {"type": "datetime", "min": pandas.NaT, "max": pandas.Timestamp("2024-01-01")}}
    assert python_refusal("v.csv", unit="row", columns=columns).value == "columns.x.min = NaT"
    columns["x"]["min"] = pandas.Timestamp("2023-01-01")
    read = Dataset("v.csv", unit="row", columns=columns).tables["v"].columns["x"].type
    assert read == Moment(datetime(2023, 1, 1), datetime(2024, 1, 1))
    assert isinstance(read, Moment)
    assert type(read.lower) is datetime


def test_no_error_shows_an_object_in_memory() -> None:
    pandas, polars = import_module("pandas"), import_module("polars")
    frame = pandas.DataFrame({"name": [CANARY]})
    lazy = polars.DataFrame({"name": [CANARY]}).lazy()
    whole = {"source": "v.csv", "unit": "p"}
    keys = [
        "source",
        "unit",
        "columns",
        "name",
        "table",
        "neighbors",
        *NAMES,
        "key",
        "tables",
        "budget",
        "ledger",
    ]
    for bad in (frame, frame["name"], lazy, {CANARY: frame}.values()):
        for key in keys:
            if key == "source" and bad is frame:
                continue
            assert CANARY not in str(python_refusal(**(whole | {key: bad}))), key
        for key in ("type", "min", "values"):
            described = {"type": "category" if key == "values" else "int", "max": 1} | {key: bad}
            if key == "values":
                described.pop("max")
            assert CANARY not in str(python_refusal(**whole, columns={"x": described}))
    assert python_refusal(lazy, unit="row").hint == "Collect it first: source.collect()."


# Garbage is refused, never anything else

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.dates(), st.datetimes(), st.times(),
    st.decimals(), st.fractions(), st.binary(max_size=3), st.complex_numbers(),
    st.sampled_from(["int", "float", "category", "text", "date", "datetime", "row", "TODO", "replace", "v.csv",
    "v.duckdb", 10**400,
                     Decimal("1e999999999"), Decimal("-0e999999999"), Decimal("sNaN"), "\ud800", "\0"]),
)  # fmt: skip
garbage = st.recursive(
    scalars,
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=6,
)
column_keys = st.sampled_from(
    ["type", "min", "max", "step", "values", "nullable", "max_length", "mim"]
)
a_column = st.one_of(
    garbage,
    st.builds(
        lambda kind, keys: {"type": kind} | keys,
        st.sampled_from(["int", "float", "bool", "category", "text", "date", "datetime"]),
        st.dictionaries(column_keys, garbage, max_size=4),
    ),
)
table_keys = [
    "source",
    "unit",
    "persons",
    "via",
    "table",
    "neighbors",
    *NAMES,
    "public",
    "key",
    "columns",
]
a_table = st.builds(
    lambda sure, wild, columns: sure | {"columns": columns} | wild,
    st.fixed_dictionaries({"source": st.just("v.duckdb"), "unit": st.sampled_from(["row", "p"])}),
    st.dictionaries(st.sampled_from(table_keys) | st.text(max_size=4), garbage, max_size=2),
    st.dictionaries(st.text(max_size=4), a_column, max_size=3),
)


@settings(max_examples=200)
@given(
    garbage | st.dictionaries(st.text(max_size=4), garbage | a_table, max_size=2),
    garbage,
    garbage,
    garbage,
)
@example({"t": {"source": "v.csv", "unit": "p"}}, {"epsilon": Decimal("1e999999999")}, None, None)
def test_garbage_from_python_is_refused_or_read(
    tables: Any, budget: Any, reserved: Any, ledger: Any
) -> None:
    try:
        dataset = Dataset(tables=tables, budget=budget, reserved_delta=reserved, ledger=ledger)
    except InvalidDeclaration as error:
        str(error).encode("utf-8", "backslashreplace")
    else:
        check_laws(dataset)


@settings(max_examples=200)
@given(a_table)
def test_a_garbage_table_is_refused_or_read(table: Any) -> None:
    try:
        dataset = Dataset(tables={"t": table})
    except InvalidDeclaration:
        return
    check_laws(dataset)


def check_laws(dataset: Dataset) -> None:
    """What the rest of the product relies on, whatever was written."""
    assert hash(dataset) == hash(copy.deepcopy(dataset))
    for table in dataset.tables.values():
        assert isinstance(table.name, str)
        for declared in table.columns.values():
            kind = declared.type
            if isinstance(kind, Number) and kind.lower is not None:
                assert kind.upper is not None
                step = kind.step or default_step(kind.lower, kind.upper)
                assert (kind.lower / step).denominator == (kind.upper / step).denominator == 1
                assert 0 <= kind.upper - kind.lower <= 2**53 * step
                assert max(abs(kind.lower), abs(kind.upper)) / step < 2**62
                assert kind.integral or declared.kind == "float"


def toml_garbage() -> st.SearchStrategy[str]:
    number = st.one_of(
        st.integers().map(str),
        st.floats().map(str),
        st.sampled_from(["1e999999999", "0e-99999999999999999999", "-0.0"]),
    )
    text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=6).map(
        lambda s: json.dumps(s, ensure_ascii=False)
    )
    plain = st.one_of(
        number, text, st.sampled_from(["true", "false", "2020-01-01", "2020-01-01T00:00:00", "2020-01-01T00:00:00Z",
        "10:00:00"]),
        st.sampled_from(['"int"', '"float"', '"category"', '"row"', '"v.csv"']),
    )  # fmt: skip
    key = (
        st.sampled_from(
            [
                "type",
                "min",
                "max",
                "values",
                "step",
                "source",
                "unit",
                "columns",
                "epsilon",
                "path",
                "x",
            ]
        )
        | text
    )
    return st.recursive(
        plain,
        lambda x: (
            st.lists(x, max_size=3).map(lambda v: f"[{', '.join(v)}]")
            | st.dictionaries(key, x, max_size=3).map(
                lambda d: f"{{ {', '.join(f'{k} = {v}' for k, v in d.items())} }}"
            )
        ),
        max_leaves=8,
    )


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["tables", "budget", "ledger", "tables.t", "tables.t.columns.x", "other"]),
        toml_garbage(),
    )
)
def test_garbage_from_toml_is_refused_or_read(tmp_path: Path, entries: dict[str, str]) -> None:
    try:
        dataset = load(tmp_path, "\n".join(f"{key} = {value}" for key, value in entries.items()))
    except InvalidDeclaration as error:
        named = error.value
    else:
        named = "visits.toml"
        check_laws(dataset)
    assert "visits.toml" in named


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "visits.toml").write_bytes(content)
    with pytest.raises(InvalidDeclaration):
        Dataset.load(os.fspath(tmp_path / "visits.toml"))
