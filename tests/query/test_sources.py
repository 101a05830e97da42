"""Where rows are: addresses of databases are read without being opened, and no password of one is ever shown."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import DeclarationWarning, InvalidDeclaration, InvalidInput
from sordino.ledger.opening import prints_of
from sordino.query.dataset import Dataset, Source, Table
from sordino.query.sources import engine_of

ADDRESS = "postgresql://analyst@db.example.org/hospital"
SECRETS = ["postgresql://ann:s3cret@db/visits", "postgres://ann@db/visits?password=s3cret", "sc://db:15002/;token=s3cret",
           "postgres://ann@db/visits?p%61ssword=s3cret"]  # fmt: skip


def declared(**entries: Any) -> Source:
    return Table.declare(unit="row", name="visits", **entries).source


def loaded(folder: Path, text: str) -> Dataset:
    (folder / "visits.toml").write_text(text)
    return Dataset.load(folder / "visits.toml")


def test_a_table_of_postgresql(tmp_path: Path) -> None:
    assert declared(source=ADDRESS) == Source("postgres", address=ADDRESS)
    text = f'[tables.visits]\nunit = "row"\nsource = "{ADDRESS}"\ntable = "clinic.visits"\npassword_file = "secret"\n'
    source = loaded(tmp_path, text).tables["visits"].source
    assert source == Source(
        "postgres", table="clinic.visits", address=ADDRESS, password_file=tmp_path / "secret"
    )
    assert engine_of(source) == "postgres"


def test_tables_have_the_name_of_the_database_by_default() -> None:
    tables = {
        "visits": {"source": ADDRESS, "unit": "row"},
        "a.b": {"source": ADDRESS, "unit": "row"},
    }
    assert [t.source.table for t in Dataset(tables=tables).tables.values()] == ["visits", '"a.b"']
    assert list(Dataset(ADDRESS, table="clinic.people", unit="row").tables) == ["people"]
    assert Dataset("spark", unit="row", files="/lake/visits").tables["data"].source.table is None


def test_tables_and_files_of_spark(tmp_path: Path) -> None:
    assert declared(source="spark", table="lake.clinic.visits") == Source(
        "spark", table="lake.clinic.visits"
    )
    assert declared(source="sc://db:15002") == Source("spark", address="sc://db:15002")
    source = (
        loaded(tmp_path, '[tables.visits]\nunit = "row"\nsource = "spark"\nfiles = "lake/v"\n')
        .tables["visits"]
        .source
    )
    assert source == Source("spark", files=str(tmp_path / "lake" / "v"), format="parquet")
    there = declared(source="spark", files="s3a://lake/v", format="delta")
    assert there == Source("spark", files="s3a://lake/v", format="delta")


@pytest.mark.parametrize("folder", ["clinic[1]", "clinic{1,2}", "a,b", "a\\b"])
def test_a_folder_whose_name_spark_takes_for_a_pattern_is_refused(
    folder: str, tmp_path: Path
) -> None:
    """Files beside the declaration would be those of another folder."""
    (tmp_path / folder).mkdir()
    with pytest.raises(InvalidDeclaration, match="not a pattern"):
        loaded(tmp_path / folder, '[tables.visits]\nunit = "row"\nsource = "spark"\nfiles = "v"\n')


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ({"source": "postgresql://db"}, "not an address of a database"),
        ({"source": "postgresql://a@b@c/d"}, "not an address of a database"),
        # the host is forgotten
        ({"source": "postgresql://ann:s3cret/d"}, "not an address of a database"),
        ({"source": "postgresql://db/d?port=s3cret"}, "not an address of a database"),
        (
            {"source": "postgresql://db/?dbname=user%3Dx%20password%3Ds3cret"},
            "not an address of a database",
        ),
        ({"source": ADDRESS, "files": "x"}, "belongs to Spark"),
        ({"source": ADDRESS, "table": "a.b.c"}, "name of a table"),
        ({"source": ADDRESS, "table": "a."}, "name of a table"),
        ({"source": ADDRESS, "materialized": "yes"}, "true or false"),
        ({"source": ADDRESS, "password_file": ""}, "path of a file that holds the password"),
        ({"source": "spark", "password_file": "x"}, "belongs to PostgreSQL"),
        ({"source": "spark", "format": "parquet"}, "only files have a format"),
        (
            {"source": "spark", "files": "x", "format": "orc"},
            "a format is one of parquet, csv, delta, iceberg",
        ),
        ({"source": "spark", "files": "x", "table": "y"}, "files are named as well"),
        ({"source": "spark", "files": "lake/*"}, "not a pattern"),
        ({"source": "spark", "files": "/lake/v[12]"}, "not a pattern"),
        ({"source": "sc://"}, "not an address of Spark Connect"),
        ({"source": "sc://db/;token=s3cret;session_id=5"}, "session that others may have"),
        ({"source": "v.parquet", "files": "x"}, "belongs to sources in databases"),
        ({"source": pa.table({"x": [1]}), "table": "x"}, "no tables or files inside"),
    ],
)
def test_what_is_no_source_is_refused(entries: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidDeclaration, match=rule) as refused:
        declared(**entries)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("address", SECRETS)
def test_a_password_is_warned_about_and_never_shown(address: str, tmp_path: Path) -> None:
    with pytest.warns(DeclarationWarning, match="holds a password") as seen:
        source = declared(source=address)
    dataset = Dataset(tables={"visits": Table("visits", source, {})}, budget={"epsilon": 1})
    shown = [
        str(seen[0].message),
        repr(source),
        str(source),
        source.shown,
        str(source.place),
        repr(dataset),
        str(dataset),
    ]
    shown += [repr(dataset.tables["visits"]), str(prints_of(dataset).paths())]
    assert [text for text in shown if "s3cret" in text] == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wrong in ({"table": "a."}, {"files": "x" if "postgres" in address else 5}):
            with pytest.raises(InvalidDeclaration) as refused:
                declared(source=address, **wrong)
            assert "s3cret" not in str(refused.value)


def test_the_place_of_a_table_is_the_same_whoever_asks() -> None:
    one, other = (
        declared(source=f"postgresql://{who}@db/hospital", table="clinic.visits")
        for who in ("ann", "bob")
    )
    assert one.place == other.place == "postgresql://db/hospital clinic.visits"
    assert one != other
    assert declared(source="spark", table="clinic.visits").place == "spark://spark clinic.visits"


PUBLIC = {
    "source": pa.table({"ward": ["A"]}),
    "public": True,
    "columns": {"ward": {"type": "text"}},
}


@pytest.mark.parametrize(
    ("others", "rule"),
    [
        ({"people": {"source": "people.parquet", "unit": "row"}}, "read by one engine"),
        ({"people": {"source": "spark", "unit": "row"}}, "read by one engine"),
        ({"people": {"source": "postgresql://other/db", "unit": "row"}}, "two places of postgres"),
        ({"wards": {"source": "spark", "public": True}}, "read by one engine"),
    ],
)
def test_one_declaration_holds_tables_of_one_engine(others: dict[str, Any], rule: str) -> None:
    visits = {"source": ADDRESS, "unit": "row"}
    with pytest.raises(InvalidDeclaration, match=rule):
        Dataset(tables={"visits": visits, **others})


def test_public_files_go_with_every_engine() -> None:
    for address in (ADDRESS, "spark"):
        tables = {"visits": {"source": address, "unit": "row"}, "wards": PUBLIC}
        assert len(Dataset(tables=tables).tables) == 2


def test_limits_of_duckdb_are_refused_beside_a_database() -> None:
    data = Dataset(ADDRESS, table="visits", unit="row", budget={"epsilon": 1})
    with pytest.raises(InvalidInput, match="memory, threads and held are DuckDB's"):
        so.Session(data, memory="1GB")
