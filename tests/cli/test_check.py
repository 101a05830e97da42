"""`sordino check`, `sordino schema` and `sordino init` for several tables: names and types are read, and no cell."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sordino.query.dataset import Dataset
from sordino.query.header_types import suggested
from sordino.query.second_look import second_look

GOOD = """
[budget]
epsilon = 1.0
delta = 1e-6
[tables.visits]
source = "visits.SOURCE"
unit = "patient_id"
max_rows = 3
[tables.visits.columns]
age = { type = "int", min = 0, max = 110 }
ward = { type = "category", values = ["A", "B"] }
city = { type = "text" }
day = { type = "date" }
"""
SECRET = "Schubert"


@pytest.fixture(params=["parquet", "csv", "duckdb"])
def owned(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A declaration that fits its file, whose cells hold a secret; the ending of the file."""
    monkeypatch.chdir(tmp_path)
    ending = str(request.param)
    day = pa.array([0], pa.int32()).cast(pa.date32())
    table = pa.table(
        {
            "patient_id": [7],
            "age": [41],
            "ward": ["A"],
            "city": [SECRET],
            "day": day,
            "note": [SECRET],
        }
    )
    write_source(Path(f"visits.{ending}"), table)
    Path("visits.toml").write_text(GOOD.replace("SOURCE", ending))
    return ending


def write_source(path: Path, table: Any) -> None:
    path.unlink(missing_ok=True)
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(table, path)
        case ".csv":
            pa.csv.write_csv(table, path)
        case _:
            with duckdb.connect(path) as connection:
                connection.register("rows", table)
                connection.execute("CREATE TABLE visits AS SELECT * FROM rows")


def changed(old: str, new: str) -> None:
    file = Path("visits.toml")
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


class TestCheck:
    def test_what_fits_is_told_without_a_cell(self, run: Any, owned: str) -> None:
        shown = run("check", "visits.toml")
        assert (shown.exit_code, shown.stderr) == (0, "")
        for told in (
            "each patient_id (add_remove); max_rows 3",
            "ward (category)",
            "note: not declared",
            "none yet",
            "fits",
        ):
            assert told in shown.stdout
        assert SECRET not in shown.stdout
        assert "nothing to look at again" in shown.stdout
        assert run("check", "visits.toml", "--strict").exit_code == 0
        assert not Path("visits.ledger").exists()  # a look makes no ledger

    def test_other_rows_change_nothing_that_is_told(self, run: Any, owned: str) -> None:
        told = run("check", "visits.toml").stdout
        day = pa.array([1, 2], pa.int32()).cast(pa.date32())
        columns = {
            "patient_id": [8, 9],
            "age": [3, 200],
            "ward": ["X", None],
            "city": ["a", "b"],
            "day": day,
            "note": ["", "c"],
        }
        write_source(Path(f"visits.{owned}"), pa.table(columns))
        assert run("check", "visits.toml").stdout == told

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            ('unit = "patient_id"', 'unit = "patientid"', "the source has no such column"),
            ("city =", "town =", "tables.visits.columns.town: the source has no such column"),
            ('source = "visits.', 'source = "gone.', "there is no such file"),
            ("max_rows = 3", "max_rows = 0", "a whole number from 1"),
        ],
    )
    def test_what_does_not_fit_is_named(
        self, run: Any, owned: str, old: str, new: str, told: str
    ) -> None:
        changed(old, new)
        shown = run("check", "visits.toml")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert told in shown.stderr
        assert SECRET not in shown.stderr

    def test_types_that_do_not_fit_are_named(self, run: Any, owned: str) -> None:
        changed('city = { type = "text" }', 'city = { type = "int" }')
        shown = run("check", "visits.toml")
        if owned == "csv":  # its cells are text, read as what is declared
            assert shown.exit_code == 0
        else:
            assert shown.exit_code == 2
            assert "which is not read as int" in shown.stderr

    def test_a_ledger_that_is_not_as_declared_is_told(self, run: Any, owned: str) -> None:
        assert (
            run(
                "query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1"
            ).exit_code
            == 0
        )
        changed("epsilon = 1.0", "epsilon = 2.0")
        shown = run("check", "visits.toml")
        assert "with 1 charge\n" in shown.stdout
        assert "sordino budget set" in shown.stdout

    def test_a_first_line_that_may_be_a_record_is_not_shown(self, run: Any, folder: Path) -> None:
        (folder / "visits.csv").write_text(f"{SECRET},31\n")
        (folder / "visits.toml").write_text(
            '[tables.visits]\nsource = "visits.csv"\nunit = "row"\n'
        )
        shown = run("check", "visits.toml")
        assert "2 columns: not declared" in shown.stdout
        assert SECRET not in shown.stdout

    def test_strict_is_for_scripts(self, run: Any, owned: str) -> None:
        changed("max_rows = 3\n", "")
        assert run("check", "visits.toml").exit_code == 0
        shown = run("check", "visits.toml", "--strict")
        assert shown.exit_code == 6
        assert "tables.visits.max_rows" in shown.stdout


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda d: d["budget"].update(epsilon=20), "budget.epsilon"),
        (lambda d: d["budget"].update(delta=0.01), "budget.delta"),
        (lambda d: d["budget"].update(delta=0), "budget.delta"),
        (lambda d: d.pop("budget"), "budget"),
        (lambda d: d["tables"]["visits"].update(max_rows=10**6), "tables.visits.max_rows"),
        (lambda d: d["tables"]["visits"].update(neighbors="replace"), "tables.visits.neighbors"),
        (
            lambda d: d["tables"]["visits"]["columns"].update(e_mail={"type": "text"}),
            "tables.visits.columns.e_mail",
        ),
        (
            lambda d: d["tables"]["visits"]["columns"].update(patient_id={"type": "int"}),
            "tables.visits.columns.patient_id",
        ),
        (
            lambda d: d["tables"]["visits"]["columns"].update(x={"type": "int"}),
            "tables.visits.columns.x",
        ),
        (
            lambda d: d["tables"]["visits"]["columns"].update(
                x={"type": "category", "values": ["a"]}
            ),
            "tables.visits.columns.x",
        ),
        (lambda d: d["tables"].update(w={"source": "w.csv", "public": True}), "tables.w.public"),
        (lambda d: d["tables"].update(r={"source": "r.csv", "unit": "row"}), "tables.r.unit"),
    ],
)
def test_each_doubtful_choice_is_remarked_on(
    change: Callable[[dict[str, Any]], object], key: str
) -> None:
    declared = tomllib.loads(GOOD.replace("SOURCE", "parquet"))
    assert second_look(Dataset(**declared)) == ()
    change(declared)
    assert key in [remark.key for remark in second_look(Dataset(**declared))]


def test_types_are_suggested_by_whole_words_only() -> None:
    kinds = {"birth_date": "date", "AgeInYears": "int", "hasChildren": "text", "is_open": "bool", "island": "text",
             "rate": "float", "created_at": "datetime", "attitude": "text", "day": "date", "daily": "text",
             "street number": "int", "price_group": "text", "": "text", "42": "text", "stage": "text"}  # fmt: skip
    assert {name: suggested(name) for name in kinds} == kinds


class TestInitOfSeveral:
    def test_several_tables_and_public_ones(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("other").mkdir()
        for path in ("visits.csv", "other/visits.csv", "wards.csv"):
            Path(path).write_text(f"patient_id,age,admitted_on\n{SECRET},1,2\n")
        shown = run("init", "visits.csv", "other/visits.csv", "--public", "wards.csv", "--schema")
        assert shown.exit_code == 0, shown.stderr
        text = Path("visits.toml").read_text()
        assert SECRET not in text
        assert text.startswith("#:schema ./sordino.schema.json\n")
        assert (
            json.loads(Path("sordino.schema.json").read_text())["title"]
            == "A declaration of Sordino"
        )
        Path("visits.toml").write_text(text.replace('"TODO"', '"patient_id"'))
        tables = Dataset.load("visits.toml").tables
        assert [(name, table.public) for name, table in tables.items()] == [
            ("visits", False), ("visits_2", False), ("wards", True)]  # fmt: skip
        assert [column.kind for column in tables["wards"].columns.values()] == [
            "text",
            "int",
            "date",
        ]
        assert run("check", "visits.toml").exit_code == 0

    def test_two_duckdb_files_with_tables_of_one_name(self, tmp_path: Path) -> None:
        for name in ("a.duckdb", "b.duckdb"):
            write_source(tmp_path / name, pa.table({"pid": [1]}))
        text = Dataset.schema_stub(
            [tmp_path / "a.duckdb", tmp_path / "b.duckdb"], tmp_path / "both.toml"
        )
        (tmp_path / "both.toml").write_text(text.replace('"TODO"', '"pid"'))
        tables = Dataset.load(tmp_path / "both.toml").tables
        assert {name: table.source.table for name, table in tables.items()} == {
            "visits": "visits",
            "visits_2": "visits",
        }

    def test_the_schema_is_printed(self, run: Any) -> None:
        shown = run("schema")
        assert json.loads(shown.stdout)["required"] == ["tables"]
