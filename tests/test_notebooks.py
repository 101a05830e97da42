"""Every notebook runs, and answers in the form that is stored in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tools.notebooks import FOLDER, differences

ROOT = Path(__file__).parents[1]
BOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def test_there_are_six() -> None:
    assert BOOKS == ["audit", "bounds", "first-answers", "freedman", "survey", "training"]


@pytest.mark.parametrize("name", BOOKS)
def test_it_runs_and_its_stored_outputs_are_still_true(name: str) -> None:
    command = [sys.executable, "-m", "tools.notebooks", "--check", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (
        f"{done.stdout}\n{done.stderr}\nIf the new answers are right: make notebooks"
    )


def book(text: str) -> Any:
    printed = nbformat.v4.new_output("stream", name="stdout", text=text)  # type: ignore[no-untyped-call]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[printed])])  # type: ignore[no-untyped-call]


def test_numbers_may_change_and_words_may_not() -> None:
    assert not differences(book("n   1,234 ± 56\n──────"), book("n 999 ± 4.5e-3\n────"))
    assert differences(book("n 1,234 ± 56"), book("m 1,234 ± 56"))
    assert differences(book("n 1,234 ± 56"), book("n 1,234 ± 56\nmore"))
