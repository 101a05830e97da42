"""`sordino serve`: what is refused before anything starts, and what calibration proposes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from server.served_folder import declare
from sordino.cli.commands import app
from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.server.settings import served


def refused(folder: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["serve", str(folder), *options], standalone_mode=False)
    assert isinstance(result.exception, InvalidInput)
    return str(result.exception)


def test_an_answer_time_is_needed(tmp_path: Path) -> None:
    folder = declare(tmp_path)
    (folder / "serve.toml").unlink()
    assert "no answer_time for visits" in refused(folder)
    assert not (folder / ".server").exists()


def test_a_folder_without_declarations_is_refused(tmp_path: Path) -> None:
    assert "no declaration" in refused(tmp_path)
    assert "no such folder" in refused(tmp_path / "gone")


def test_calibration_reads_no_data_and_proposes_what_can_be_written_down(tmp_path: Path) -> None:
    folder = declare(tmp_path)
    (folder / "visits.parquet").unlink()
    result = CliRunner().invoke(app, ["serve", str(folder), "--calibrate", "--rows", "300"])
    assert result.exit_code == 0, result.output
    proposed = tomllib.loads(result.stdout)["datasets"]["visits"]["answer_time"]
    assert 0.01 <= proposed <= 60
    assert not list(folder.glob(".calibrate-*"))
    assert not (folder / "visits.ledger").exists()


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("[datasets.visits]\nanswer_time = 0", "number of seconds"),
        ("[datasets.visits]\nthreads = 0", "whole number"),
        ("[datasets.visits]\nlongest_text = 1.5", "whole number"),
        ("[datasets.visits]\ndry_run = 1", "true or false"),
        ("[datasets.visits]\nspeed = 3", "no such setting"),
        ("[datasets.other]\nrows = 3", "no declaration other.toml"),
        ("datasets = 3", "must be tables"),
        ("[datasets", "cannot be read as TOML"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path: Path, lines: str, rule: str) -> None:
    folder = declare(tmp_path)
    (folder / "serve.toml").write_text(lines)
    with pytest.raises(InvalidInput, match=rule):
        served(folder)


def test_settings_have_defaults(tmp_path: Path) -> None:
    (one,) = served(declare(tmp_path, answer_time=2))
    assert (one.name, one.answer_time, one.threads, one.longest_text, one.dry_run) == (
        "visits",
        2.0,
        1,
        256,
        False,
    )
    with pytest.raises(InvalidDeclaration):
        served(tmp_path / "gone")
