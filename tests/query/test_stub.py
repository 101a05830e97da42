"""The stub: everything of the schema, nothing of the data, and refused until the owner has filled it in."""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sordino.errors import InvalidDeclaration
from sordino.query.bounds import NO_BOUNDS
from sordino.query.dataset import Dataset
from sordino.query.same_name import folded

CANARY = "canary-7f3a91"
NUMBER = 73919
FORBIDDEN = [CANARY, str(NUMBER), "1973", "secret-value", "canary"]


def cells() -> dict[str, Any]:
    pa = import_module("pyarrow")
    day = date(1973, 9, 19)
    return {
        "age": pa.array([NUMBER], pa.int32()),
        "cost": pa.array([NUMBER + 0.5]),
        "fee": pa.array([Decimal(NUMBER)], pa.decimal128(12, 2)),
        "urgent": pa.array([True]),
        "city name": pa.array([CANARY]),
        "ward": pa.array([CANARY]).dictionary_encode(),
        "day": pa.array([day]),
        "admitted": pa.array([datetime(1973, 9, 19)]),
        "zoned": pa.array([datetime(1973, 9, 19)], pa.timestamp("us", "UTC")),
        "list": pa.array([[CANARY]]),
        "nested": pa.array([{"inside": CANARY}]),
        "picture": pa.array([CANARY.encode()]),
        "clock": pa.array([time(19, 7, 3)]),
    }


KINDS = {"age": "int", "cost": "float", "fee": "float", "urgent": "bool", "city name": "text", "ward": "text", "day": "date",
         "admitted": "datetime", "zoned": "datetime"}  # fmt: skip


def write_parquet(path: Path) -> None:
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = pa.table(cells()).replace_schema_metadata({"note": CANARY})
    parquet.write_table(table, path, write_statistics=True, store_schema=True)


def write_duckdb(path: Path) -> None:
    table = import_module("pyarrow").table(cells())
    with duckdb.connect(path) as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE visits AS SELECT * FROM arrow")
        connection.execute(f"CREATE TYPE moods AS ENUM ('{CANARY}', 'secret-value')")
        connection.execute(
            "CREATE TABLE extra (mood moods, moods moods[], deep STRUCT(m moods), id UUID, n HUGEINT)"
        )
        connection.execute(f"INSERT INTO extra (mood) VALUES ('{CANARY}')")


def write_csv(path: Path, opened: Callable[..., Any] = open) -> None:
    with opened(path, "wt", encoding="utf-8-sig") as file:
        file.write(f'age,"city name","a,b"\n{NUMBER},{CANARY},secret-value\n')


def filled_in(folder: Path, text: str) -> Dataset:
    (folder / "filled.toml").write_text(text.replace('"TODO"', '"row"'))
    return Dataset.load(folder / "filled.toml")


def test_parquet(tmp_path: Path) -> None:
    write_parquet(tmp_path / "visits.parquet")
    stub = Dataset.schema_stub(tmp_path / "visits.parquet")
    assert [word for word in FORBIDDEN if word in stub] == []
    visits = filled_in(tmp_path, stub).tables["visits"]
    assert {name: column.kind for name, column in visits.columns.items()} == KINDS
    assert visits.source.path == tmp_path / "visits.parquet"
    assert visits.bounds == NO_BOUNDS
    for name, word in {"list": "list", "nested": "struct", "picture": "binary"}.items():
        assert f'#   "{name}": type {word} is not supported' in stub
    assert "clock" in stub


def test_duckdb(tmp_path: Path) -> None:
    write_duckdb(tmp_path / "hospital.duckdb")
    before = (tmp_path / "hospital.duckdb").read_bytes()
    stub = Dataset.schema_stub(tmp_path / "hospital.duckdb")
    assert [word for word in FORBIDDEN if word in stub] == []
    dataset = filled_in(tmp_path, stub)
    assert {name: column.kind for name, column in dataset.tables["visits"].columns.items()} == KINDS
    assert {name: column.kind for name, column in dataset.tables["extra"].columns.items()} == {
        "mood": "text",
        "n": "int",
    }
    assert dataset.tables["extra"].source.table == "extra"
    for name, word in {"moods": "LIST", "deep": "STRUCT", "id": "UUID"}.items():
        assert f'#   "{name}": type {word} is not supported' in stub
    assert (tmp_path / "hospital.duckdb").read_bytes() == before


@pytest.mark.parametrize("name", ["visits.csv", "visits.csv.gz"])
def test_csv_reads_the_header_only(tmp_path: Path, name: str) -> None:
    write_csv(tmp_path / name, gzip.open if name.endswith("gz") else open)
    stub = Dataset.schema_stub(tmp_path / name)
    assert [word for word in FORBIDDEN if word in stub] == []
    columns = filled_in(tmp_path, stub).tables["visits"].columns
    assert {name: column.kind for name, column in columns.items()} == {
        "age": "int",
        "city name": "text",
        "a,b": "text",
    }
    assert "A CSV file has no types" in stub


def test_a_csv_with_old_line_ends_shows_its_header_only(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_bytes(f"a,b\r{CANARY},1\r".encode())
    assert list(
        filled_in(tmp_path, Dataset.schema_stub(tmp_path / "old.csv")).tables["old"].columns
    ) == ["a", "b"]


def test_statistics_do_not_move_the_stub(tmp_path: Path) -> None:
    """Other rows, another number of rows, and no rows at all: the same text."""
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    stubs = set()
    for rows in ([1, 2, 3], [NUMBER], []):
        parquet.write_table(
            pa.table({"x": pa.array(rows, pa.int64())}), tmp_path / "visits.parquet"
        )
        stubs.add(Dataset.schema_stub(tmp_path / "visits.parquet"))
    assert len(stubs) == 1


def test_it_cannot_be_loaded_until_the_unit_is_filled_in(tmp_path: Path) -> None:
    write_parquet(tmp_path / "visits.parquet")
    Dataset.schema_stub(tmp_path / "visits.parquet", output=tmp_path / "visits.toml")
    with pytest.raises(InvalidDeclaration) as caught:
        Dataset.load(tmp_path / "visits.toml")
    assert caught.value.value == "visits.toml: tables.visits.unit = 'TODO'"
    assert "still to be filled in" in caught.value.rule
    assert 'unit = "row"' in caught.value.hint


def test_the_source_is_relative_to_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "declared").mkdir()
    write_csv(tmp_path / "data" / "visits.csv")
    monkeypatch.chdir(tmp_path)
    stub = Dataset.schema_stub("data/visits.csv", "declared/visits.toml")
    assert (tmp_path / "declared" / "visits.toml").read_text() == stub
    assert 'source = "../data/visits.csv"' in stub
    assert str(tmp_path) not in stub
    source = filled_in(tmp_path / "declared", stub).tables["visits"].source.path
    assert source is not None
    assert source.samefile(tmp_path / "data" / "visits.csv")
    assert 'source = "visits.csv"' in Dataset.schema_stub("data/visits.csv")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write_csv(tmp_path / "visits.csv")
    (tmp_path / "visits.toml").write_text("the owner's work")
    with pytest.raises(InvalidDeclaration, match="it exists already"):
        Dataset.schema_stub(tmp_path / "visits.csv", tmp_path / "visits.toml")
    assert (tmp_path / "visits.toml").read_text() == "the owner's work"
    with pytest.raises(InvalidDeclaration, match="cannot be written"):
        Dataset.schema_stub(tmp_path / "visits.csv", tmp_path / "gone" / "visits.toml")


@pytest.mark.parametrize("output", [5, "visits.txt", "a\0.toml", b"visits.toml"])
def test_the_output_is_a_toml(tmp_path: Path, output: Any) -> None:
    write_csv(tmp_path / "visits.csv")
    with pytest.raises(InvalidDeclaration, match=r"ends in \.toml"):
        Dataset.schema_stub(tmp_path / "visits.csv", output)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(path: Any, content: bytes | None = None) -> str:
        if content is not None:
            Path(path).write_bytes(content)
        with pytest.raises(InvalidDeclaration) as caught:
            Dataset.schema_stub(path)
        assert CANARY not in str(caught.value)
        return caught.value.rule

    monkeypatch.chdir(tmp_path)
    junk = CANARY.encode() * 100
    assert said("gone.parquet") == said("gone.duckdb") == said("a\0.csv") == "there is no such file"
    assert said("a.xlsx", junk).startswith("a stub is made of a file that ends in")
    assert said(5).startswith("a stub is made of a file that ends in")
    assert said(b"a.csv").startswith("a stub is made of a file that ends in")
    assert (
        said("a.parquet", junk) == said("b.parquet", b"") == "it cannot be read as a Parquet file"
    )
    assert said("a.duckdb", junk) == "it cannot be read as a DuckDB file"
    assert said("a.csv.gz", junk) == "it cannot be read as a CSV file"
    assert (
        said("b.csv.gz", gzip.compress(b"a,b\n1,2\n" * 999)[:-30])
        == "it cannot be read as a CSV file"
    )
    assert said("latin.csv", b"n\xe4me,b\n") == "it cannot be read as a CSV file"
    assert said("open.csv", f'"a,{CANARY}\n'.encode()) == "it cannot be read as a CSV file"
    assert said("empty.csv", b"").startswith("its first line is empty")
    assert said("long.csv", b"a," * 2**20).startswith("its first line is empty, or longer")
    assert said("semicolons.csv", b"a;b\n") == "the columns of a CSV file are separated by commas"
    duckdb.connect("empty.duckdb").close()
    assert said("empty.duckdb") == "its main schema holds no table"


def test_names_that_cannot_be_declared_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(f"id,ID,,a\tb,{'x' * 201}\n")
    stub = Dataset.schema_stub(tmp_path / "visits.csv")
    assert list(filled_in(tmp_path, stub).tables["visits"].columns) == ["id"]
    for line in (
        '"ID": another column',
        "column 3: a name must be text",
        "column 4: a name holds no",
        "column 5: a name has at most",
    ):
        assert f"#   {line}" in stub


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=5, unique=True)
)
def test_any_names_give_a_stub_that_is_valid(tmp_path: Path, names: list[str]) -> None:
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(
        pa.table([pa.array([NUMBER])] * len(names), names=names), tmp_path / "visits.parquet"
    )
    stub = Dataset.schema_stub(tmp_path / "visits.parquet")
    tomllib.loads(stub)
    columns = filled_in(tmp_path, stub).tables["visits"].columns
    assert set(columns) <= set(names)
    assert {folded(n) for n in names if n.isalnum()} <= {folded(n) for n in columns}


def test_a_file_with_an_odd_name_is_quoted(tmp_path: Path) -> None:
    write_csv(tmp_path / 'my "visits" {2}.csv')
    stub = Dataset.schema_stub(tmp_path / 'my "visits" {2}.csv')
    assert 'source = "my \\"visits\\" {2}.csv"' in stub
    assert list(filled_in(tmp_path, stub).tables) == ['my "visits" {2}']


@pytest.mark.parametrize("name", ["visits*.csv", "visit?.csv"])
def test_a_file_whose_name_reads_as_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    write_csv(tmp_path / name)
    with pytest.raises(InvalidDeclaration, match="holds no"):
        Dataset.schema_stub(tmp_path / name)
