"""What others wrote, in keys, names or questions, cannot steer a terminal, nor a file of their choice."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.desk import process, terminal
from first_of import first_of
from sordino.cli.output import Format, chosen, write_file
from sordino.errors import InvalidInput, visible

ESCAPE = "\x1b]0;owned\x07"
DECLARATION = """\
[budget]
epsilon = 20
delta = 1e-6
[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows_per_group = 1
max_groups = 1
[tables.visits.columns]
name = { type = "category", values = ["plain", "\\u001b]0;owned\\u0007", "\\u009b31m"] }
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "visits.toml").write_text(DECLARATION)
    (tmp_path / "visits.csv").write_text("patient,name\n1,plain\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def raw_controls(text: str) -> set[str]:
    """Control characters other than line ends and the colours and bars of our own;
    ESCAPE and \\x9b are none of these.
    """
    plain = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)
    return {c for c in plain if not c.isprintable()} - {"\n", "\r"}


QUESTION = "SELECT name, COUNT(*) AS n FROM visits GROUP BY name"


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_answers_at_a_terminal_show_control_characters(form: str, hostile: Path) -> None:
    seen = terminal(
        ["query", "visits.toml", QUESTION, "--epsilon", "1", "--format", form], columns=200
    )
    assert seen.code == 0
    assert "owned" in seen.text
    assert not raw_controls(seen.text)


def test_pipes_get_the_bytes_as_they_are(hostile: Path) -> None:
    got = process("query", "visits.toml", QUESTION, "--epsilon", "1", "--format", "csv")
    assert ESCAPE.encode() in got.stdout


@pytest.mark.parametrize(
    "words",
    first_of(
        2,
        [
            [
                "preview",
                "visits.toml",
                f"SELECT COUNT(*) AS n FROM visits WHERE name = '{ESCAPE}'",
                "--epsilon",
                "1",
                "--sql",
            ],
            [
                "preview",
                "visits.toml",
                QUESTION.replace("AS n", f'AS "{ESCAPE}"'),
                "--epsilon",
                "1",
            ],
            [
                "preview",
                "visits.toml",
                f"SELECT COUNT(*) AS n FROM visits WHERE EXTRACTED(name, '{ESCAPE}')",
                "--epsilon",
                "1",
            ],
            [
                "preview",
                "visits.toml",
                f'SELECT "{ESCAPE}"(name) AS n FROM visits',
                "--epsilon",
                "1",
            ],
            ["preview", f"{ESCAPE}.toml", QUESTION, "--epsilon", "1"],
            ["query", "visits.toml", QUESTION, "--epsilon", ESCAPE],
        ],
    ),
)
def test_plans_and_refusals_show_control_characters(words: list[str], hostile: Path) -> None:
    seen = terminal(words, columns=200)
    assert "owned" in seen.text
    assert not raw_controls(seen.text)
    piped = process(*words)
    assert not raw_controls(piped.stderr.decode())


def test_ledgers_show_control_characters(hostile: Path) -> None:
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE name = '{ESCAPE}'"
    assert process("query", "visits.toml", sql, "--epsilon", "1").returncode == 0
    for words in (
        ["budget", "visits.toml"],
        ["budget", "show", "visits.toml"],
        ["ledger", "export", "visits.toml"],
    ):
        assert not raw_controls(terminal(words, columns=200).text), words


def test_errors_of_the_library_show_control_characters() -> None:
    error = InvalidInput(ESCAPE, "a rule", "A hint,\nin two lines.")
    assert str(error) == "got \\x1b]0;owned\\x07: a rule. A hint,\nin two lines."
    assert error.value == ESCAPE
    assert visible("Zürich · 東京 ± 5") == "Zürich · 東京 ± 5"


def test_an_output_does_not_follow_links_that_were_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    # even if the name were known
    monkeypatch.setattr("sordino.cli.output.uuid.uuid4", lambda: SimpleNamespace(hex="guessed"))
    (tmp_path / ".sordino-guessed").symlink_to(victim)
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_file(str(tmp_path / "a.csv"), b"answer", "--output")
    assert victim.read_text() == "kept"
    assert not (tmp_path / "a.csv").exists()


def test_an_output_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_file(str(tmp_path / "a.csv"), b"answer", "--output")
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]
    (tmp_path / "other").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("name", ["x.xlsx", "x.xls", "x.ods", "x.CVS", "x.feather", "x.table"])
def test_an_ending_that_means_no_format_is_refused_before_the_charge(
    name: str, run: Any, folder: Path
) -> None:
    shown = run(
        "query",
        "visits.toml",
        "SELECT COUNT(*) AS n FROM visits",
        "--epsilon",
        "1",
        "--output",
        name,
    )
    assert shown.exit_code == 2
    assert "Write --output answer.csv" in shown.stderr
    assert not (folder / "visits.ledger").exists()
    assert not (folder / name).exists()


def test_endings_and_formats() -> None:
    endings = {
        "a.csv": Format.csv,
        "A.JSON": Format.json,
        "a.parquet": Format.parquet,
        "a.txt": Format.table,
        "a": Format.table,
    }
    assert {name: chosen(None, name) for name in endings} == endings
    assert chosen(Format.csv, "a.dat") is Format.csv


def test_formulas_stay_where_asked(run: Any, folder: Path) -> None:
    toml = (folder / "visits.toml").read_text().replace('["A", "B"]', '["=A", "B"]')
    (folder / "visits.toml").write_text(toml)
    words = [
        "query",
        "visits.toml",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        "--epsilon",
        "0.5",
        "-f",
        "csv",
    ]
    assert run(*words).stdout.splitlines()[1].startswith("'=A,")
    assert run(*words, "--formulas").stdout.splitlines()[1].startswith("=A,")
