"""A declared table in a folder of its own, and the command line run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sordino.cli.commands import app

DECLARATION = """\
[budget]
epsilon = 2.0
delta = 1e-6

[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows_per_group = 2
max_groups = 2

[tables.visits.columns]
age  = { type = "int", min = 0, max = 110 }
ward = { type = "category", values = ["A", "B"] }
city = { type = "text" }
"""
Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = (f"{i // 2},{20 + i % 50},{'AB'[i % 2]},{('Bern', 'Thun')[i % 2]}" for i in range(400))
    (tmp_path / "visits.csv").write_text("patient,age,ward,city\n" + "\n".join(lines) + "\n")
    (tmp_path / "visits.toml").write_text(DECLARATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.fixture
def run() -> Run:
    def invoke(*words: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
        return CliRunner().invoke(app, list(words), input=stdin, env=env, prog_name="sordino")

    return invoke
