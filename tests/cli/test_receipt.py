"""`sordino receipt`: a proof that a stranger can check, with exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test_ledger_commands import spend


@pytest.fixture
def spent(folder: Path) -> Path:
    spend("a")
    spend("b")
    return folder


def test_a_receipt_is_written_and_holds(run: Any, spent: Path) -> None:
    assert run("receipt", "get", "visits.toml", "a", "--output", "a.receipt").exit_code == 0
    key = run("receipt", "key", "visits.toml").stdout.strip()
    shown = run("receipt", "verify", "a.receipt", "--key", key)
    assert shown.exit_code == 0
    assert "a.receipt holds" in shown.stdout
    assert "Entry 2 of 5 charged: SELECT a" in shown.stdout
    assert "Entry 3 holds the answer" in shown.stdout
    (spent / "visits.ledger").unlink()
    assert run("receipt", "verify", "a.receipt").exit_code == 0  # it needs nothing but the file


def test_a_later_receipt_continues_an_older_one(run: Any, spent: Path) -> None:
    run("receipt", "get", "visits.toml", "a", "-o", "old.receipt")
    (spent / "old.checkpoint").write_text(
        run("receipt", "checkpoint", "visits.toml").stdout, encoding="utf-8"
    )
    spend("c")
    for older in ("old.receipt", "old.checkpoint"):
        assert (
            run(
                "receipt", "get", "visits.toml", "c", "-o", "new.receipt", "--since", older
            ).exit_code
            == 0
        )
        shown = run("receipt", "verify", "new.receipt", "--since", older)
        assert shown.exit_code == 0, shown.stdout
    run("receipt", "get", "visits.toml", "c", "-o", "bare.receipt")
    assert run("receipt", "verify", "bare.receipt", "--since", "old.receipt").exit_code == 6


def test_a_changed_receipt_does_not_hold(run: Any, spent: Path) -> None:
    document = json.loads(run("receipt", "get", "visits.toml", "b").stdout)
    document["entries"][0]["text"] = document["entries"][0]["text"].replace("SELECT b", "SELECT x")
    (spent / "b.receipt").write_text(json.dumps(document))
    shown = run("receipt", "verify", "b.receipt")
    assert shown.exit_code == 6
    assert "does NOT hold" in shown.stdout
    assert "entry 4 is not in the log" in shown.stdout


def test_bad_input_has_a_sentence(run: Any, spent: Path) -> None:
    (spent / "x.receipt").write_text("{}")
    for arguments, word in (
        (("verify", "gone.receipt"), "cannot be read"),
        (("verify", "x.receipt"), "not a receipt"),
        (("get", "visits.toml", "never"), "nothing was charged under this id"),
        (("verify", "x.receipt", "--key", "a+b"), "not a receipt"),
    ):
        shown = run("receipt", *arguments)
        assert shown.exit_code not in (0, 6)
        assert word in shown.stderr, shown.stderr
