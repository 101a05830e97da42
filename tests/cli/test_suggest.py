"""`sordino suggest`: lines for the declaration on standard output, the receipt on standard error, charged once."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sordino import Dataset, Session


@pytest.fixture
def unlimited(folder: Path) -> Path:
    file = folder / "visits.toml"
    file.write_text(
        file.read_text()
        .replace(", min = 0, max = 110", "")
        .replace("max_rows_per_group = 2\nmax_groups = 2\n", "")
    )
    return folder


def test_prints_lines_that_the_declaration_takes(run: Any, unlimited: Path) -> None:
    file = unlimited / "visits.toml"
    before = file.read_text()
    done = run(
        "suggest",
        "visits.toml",
        "--epsilon",
        "1.5",
        "--key",
        "ward",
        "--request-id",
        "a",
        "--query-epsilon",
        "0.5",
    )
    assert done.exit_code == 0
    assert "Charged 75 % of the budget as entry" in done.stderr
    assert file.read_text() == before
    found = tomllib.loads(done.stdout)["tables"]["visits"]
    assert set(found) == {"max_rows", "max_groups", "max_rows_per_group", "columns"}
    assert found["columns"]["age"]["type"] == "int"
    for name in ("max_rows", "max_groups"):
        file.write_text(
            file.read_text().replace(
                "[tables.visits]\n", f"[tables.visits]\n{name} = {found[name]}\n"
            )
        )
    with Session(Dataset.load(file)) as session:  # the ledger goes on
        (receipt,) = session.receipts
        assert receipt.charge.pure == Fraction("1.5")
        assert session.remaining.pure == session.ledger.terms.allowance.budget.epsilon - Fraction(
            "1.5"
        )
    again = run(
        "suggest",
        "visits.toml",
        "--epsilon",
        "1.5",
        "--key",
        "ward",
        "--request-id",
        "a",
        "--query-epsilon",
        "0.5",
    )
    assert again.stdout == done.stdout
    assert "nothing was charged now" in again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", "none"), "--epsilon"),
        (("--epsilon", "0"), "epsilon"),
        (("--epsilon", "3"), "is left"),
        (("--epsilon", "1", "--column", "aeg"), "Did you mean 'age'"),
        (("--epsilon", "1", "--key", "city", "--table", "visit"), "Did you mean 'visits'"),
        (("--epsilon", "1", "--query-epsilon", "-2"), "query_epsilon"),
        ((), "--epsilon"),
    ],
)
def test_bad_input_is_told_and_costs_nothing(
    run: Any, unlimited: Path, words: tuple[str, ...], said: str
) -> None:
    done = run("suggest", "visits.toml", *words)
    assert done.exit_code != 0
    assert said in done.stderr
    assert done.stdout == ""
    with Session(Dataset.load(unlimited / "visits.toml")) as session:
        assert not session.receipts


def test_a_preview_is_free(run: Any, unlimited: Path) -> None:
    ledger = unlimited / "visits.ledger"
    done = run("suggest", "visits.toml", "--epsilon", "1", "--key", "ward", "--preview")
    assert done.exit_code == 0
    for words in (
        "max_rows, for epsilon 0.25",
        "max_groups by ward",
        "limits of age",
        "41.27 % of the budget",
        "nothing now",
    ):
        assert words in done.stdout, done.stdout
    assert not ledger.exists()
    refused = run("suggest", "visits.toml", "--epsilon", "1", "--column", "aeg", "--preview")
    assert refused.exit_code != 0
    assert "Did you mean 'age'" in refused.stderr


def test_what_is_too_uncertain_is_warned_of(run: Any, unlimited: Path) -> None:
    done = run("suggest", "visits.toml", "--epsilon", "0.001")
    assert "too uncertain to rely on" in done.stderr
    assert "TOO UNCERTAIN" in done.stdout


class TestBoundsOfAQuestion:
    SQL = "SELECT AVG(age) AS age FROM visits"

    def test_are_found_with_a_word(self, run: Any, unlimited: Path) -> None:
        refused = run("query", "visits.toml", self.SQL, "--epsilon", "1", "--max-rows", "2")
        assert refused.exit_code != 0
        assert 'bounds="private"' in refused.stderr
        done = run(
            "query",
            "visits.toml",
            self.SQL,
            "--epsilon",
            "1",
            "--max-rows",
            "2",
            "--bounds",
            "private",
        )
        assert done.exit_code == 0
        assert "Bounds of age found privately" in done.stderr
        assert (unlimited / "visits.ledger").exists()

    def test_are_previewed_like_in_a_session(self, run: Any, unlimited: Path) -> None:
        shown = run(
            "preview",
            "visits.toml",
            self.SQL,
            "--epsilon",
            "1",
            "--max-rows",
            "2",
            "--bounds",
            "private",
        )
        assert "bounds of age first, for epsilon 0.3 of 1" in shown.stdout
        assert not (unlimited / "visits.ledger").exists()
        assert "CASE" in run("preview", "visits.toml", self.SQL, "--epsilon", "1", "--max-rows", "2", "--bounds", "private",
                             "--sql").stdout  # fmt: skip

    def test_have_one_word(self, run: Any, unlimited: Path) -> None:
        assert (
            run("query", "visits.toml", self.SQL, "--epsilon", "1", "--bounds", "public").exit_code
            == 2
        )
