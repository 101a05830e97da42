"""`sordino marginals` and `sordino synthesize`: tables and rows in files, the page, the charge, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from sordino import Dataset, Session


@pytest.fixture
def bounded(folder: Path) -> Path:
    file = folder / "visits.toml"
    file.write_text(
        file.read_text()
        .replace('city = { type = "text" }\n', "")
        .replace("max_groups = 2", "max_rows = 2")
    )
    return folder


def test_tables_go_to_a_file_and_are_charged_once(run: Any, bounded: Path) -> None:
    words = (
        "marginals",
        "visits.toml",
        "-c",
        "ward",
        "-c",
        "decade=BUCKET(age, 10)",
        "--epsilon",
        "1",
        "--request-id",
        "a",
    )
    done = run(*words, "--output", "tables.json")
    assert done.exit_code == 0, done.stderr
    assert "Charged" in done.stderr
    assert "agree" in done.stderr
    rows = json.loads((bounded / "tables.json").read_text())
    assert {row["table"] for row in rows} == {"ward, decade"}
    assert len(rows) == 3 * 13
    again = run(*words, "--output", "tables.parquet")
    assert "nothing was charged now" in again.stderr
    assert pq.read_table(bounded / "tables.parquet").num_rows == len(rows)
    shown = run(
        "marginals", "visits.toml", "-c", "ward", "--epsilon", "0.1", "--by", "ward", "--by", ""
    )
    assert "A" in shown.stdout
    preview = run("marginals", "visits.toml", "-c", "ward", "--epsilon", "0.1", "--preview")
    assert "nothing now" in preview.stdout
    summed = run(
        "marginals",
        "visits.toml",
        "-c",
        "ward",
        "--epsilon",
        "0.1",
        "--sum",
        "age",
        "--output",
        "sums.parquet",
    )
    assert summed.exit_code == 0, summed.stderr
    assert pq.read_table(bounded / "sums.parquet").column_names == [
        "table",
        "ward",
        "total",
        "total_low",
        "total_high",
    ]


def test_public_facts_come_from_a_file_and_numbers_can_be_whole(run: Any, bounded: Path) -> None:
    rows = {"sex": ["m", "f"] * 50, "half": [i / 2 for i in range(4)] * 25}
    pq.write_table(pa.table(rows | {"again": rows["sex"]}), bounded / "people.parquet")
    (bounded / "people.toml").write_text(
        '[budget]\nepsilon = 9\ndelta = 1e-6\n[tables.people]\nsource = "people.parquet"\nunit = "row"\n'
        "[tables.people.columns]\n"
        + "".join(
            f'{name} = {{ type = "category", values = ["m", "f"], nullable = false }}\n'
            for name in ("sex", "again")
        )
        + 'half = { type = "float", min = 0, max = 1.5, step = 0.5, nullable = false }\n'
    )
    (bounded / "facts.toml").write_text(
        'zeros = [{ sex = "m", half = 0.5 }]\nequal = [["sex", "again"]]\n'
        '[[totals]]\ncolumns = ["sex"]\ncounts = [["m", 50], ["f", 50]]\n'
        '[[totals]]\ncolumns = ["sex", "half"]\n'
        'counts = [["m", 0.0, 25], ["m", 0.5, 0], ["m", 1.0, 25], ["m", 1.5, 0], '
        '["f", 0.0, 0], ["f", 0.5, 25], ["f", 1.0, 0], ["f", 1.5, 25]]\n'
    )
    words = ("marginals", "people.toml", "-c", "sex", "-c", "half", "-c", "again", "--epsilon", "1")
    told = run(*words, "--ways", "3", "--facts", "facts.toml")
    assert "already" in told.stderr  # nothing is left to ask
    (bounded / "facts.toml").write_text(
        'equal = [["sex", "again"]]\n[[totals]]\ncolumns = []\ncounts = [[100]]\n'
    )
    done = run(*words, "--facts", "facts.toml", "--rounded", "--output", "t.json")
    assert done.exit_code == 0, done.stderr
    found = [
        line
        for line in json.loads((bounded / "t.json").read_text())
        if line["table"] == "sex, again"
    ]
    assert sum(line["count"] for line in found) == 100
    assert all(line["count"] >= 0 and line["count"] % 1 == 0 for line in found)
    assert not any(line["count"] for line in found if line["sex"] != line["again"])
    for text, said in (
        ("totals = 5", "they are tables"),
        ("[[totals]]\ncolumns = [1]", "totals have columns"),
        ('[[totals]]\ncolumns = [["sex"]]\ncounts = [["m", 1]]', "totals have columns"),
        ('[[totals]]\ncolumns = ["sex"]\ncounts = [[["m"], 1]]', "totals have columns"),
        ('[[totals]]\ncolumns = ["sex"]\ncounts = [["m", 1], ["m", 2]]', "two numbers"),
        ("[[totals]]\ncolumns = []\ncounts = [[1]]\n" * 2, "already"),
        ('[[totals]]\ncolumns = ["sex"]\ncounts = [["m"]]', "totals have columns"),
        ("other = 5", "nothing else"),
        ("=", "TOML file"),
    ):
        (bounded / "facts.toml").write_text(text)
        refused = run(*words, "--facts", "facts.toml")
        assert refused.exit_code != 0
        assert said in refused.stderr
    assert "TOML file" in run(*words, "--facts", "none.toml").stderr


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_columns_may_have_the_names_of_what_is_added(run: Any, folder: Path, ending: str) -> None:
    """In the file of all tables a number never stands under a column of the data, nor the other way round."""
    names = ["count", "count_low", "table", "n"]
    pq.write_table(pa.table({name: [0, 1, 1, 1] * 25 for name in names}), folder / "t.parquet")
    (folder / "t.toml").write_text(
        '[budget]\nepsilon = 90\ndelta = 1e-6\n[tables.t]\nsource = "t.parquet"\nunit = "row"\n'
        "[tables.t.columns]\n"
        + "".join(
            f'{name} = {{ type = "int", min = 0, max = 1, nullable = false }}\n' for name in names
        )
    )
    columns = [word for name in names for word in ("-c", name)]
    done = run(
        "marginals", "t.toml", *columns, "--epsilon", "50", "--ways", "1", "-o", f"f.{ending}"
    )
    assert done.exit_code == 0, done.stderr
    file = folder / f"f.{ending}"
    if ending == "json":
        rows = json.loads(file.read_text())
    else:
        rows = (pq.read_table if ending == "parquet" else csv.read_csv)(file).to_pylist()
    assert list(rows[0]) == ["table_", *names, "count_", "count__low", "count__high"]
    for row in rows:
        value = row[row["table_"]]
        assert sum(row[name] is None for name in names) == 3
        assert abs(row["count_"] - (75 if value else 25)) < 5


def test_one_row_per_person_is_made_by_a_select(run: Any, bounded: Path) -> None:
    persons = "SELECT patient, MAX(age) AS oldest FROM visits GROUP BY patient"
    preview = run("synthesize", "visits.toml", "--epsilon", "1", "--table", persons, "--preview")
    assert "oldest" in preview.stdout, preview.stderr
    assert "bounded" not in preview.stdout
    assert "one person only" in run("synthesize", "visits.toml", "--epsilon", "1", "--output", "p.csv", "--table",
                                    "SELECT ward, MAX(age) AS oldest FROM visits GROUP BY ward").stderr  # fmt: skip


def test_rows_and_their_page_go_to_files(run: Any, bounded: Path) -> None:
    preview = run("synthesize", "visits.toml", "--epsilon", "1", "--preview")
    assert "judges" in preview.stdout
    done = run(
        "synthesize", "visits.toml", "--epsilon", "1", "--output", "rows.parquet", "--rows", "50"
    )
    assert done.exit_code == 0, done.stderr
    table = pq.read_table(bounded / "rows.parquet")
    assert table.num_rows == 50
    assert table.column_names == ["age", "ward"]
    assert "Quality of synthetic rows" in (bounded / "rows.html").read_text()
    assert "Charged" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("marginals", "-c", "wrad", "--epsilon", "1"), "Did you mean 'ward'"),
        (("marginals", "-c", "ward", "-c", "ward", "--epsilon", "1"), "name of its own"),
        (("marginals", "-c", "ward", "--epsilon", "1", "--ways", "3"), "here 1"),
        (("marginals", "-c", "ward", "--epsilon", "1", "--output", "t.xlsx"), ".parquet"),
        (("synthesize", "--epsilon", "1"), "--output"),
        (
            ("synthesize", "--epsilon", "1", "--output", "rows.parquet", "--rows", "0"),
            "whole number",
        ),
        (("synthesize", "--epsilon", "1", "--output", "visits.csv"), "the data"),
        (
            ("synthesize", "--epsilon", "1", "--output", "r.csv", "--report", "./r.csv"),
            "two files",
        ),
        (("synthesize", "--epsilon", "9", "--output", "rows.csv"), "is left"),
    ],
)
def test_bad_input_is_told_and_costs_nothing(
    run: Any, bounded: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(words[0], "visits.toml", *words[1:])
    assert done.exit_code != 0
    assert said in done.stderr
    assert not (bounded / "rows.parquet").exists()
    with Session(Dataset.load(bounded / "visits.toml")) as session:
        assert not session.receipts
