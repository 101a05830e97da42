"""Articles and plurals beside names and numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sordino
from sordino.privacy.wording import a_or_an, counted


@pytest.mark.parametrize(
    "told",
    ["an id", "an ID", "an account", "an employee_no", "an umbrella", "an hour", "an MRN", "an SSN", "an NHS_number",
     "an int", "an object", "a ndarray",
     "a row", "a patient_id", "a user_id", "a unit", "a uuid", "a university", "a one", "a euro", "a house", "a NAME",
     "a UID", "a Table", "a 3rd", 'an "id"', 'a "user"', "a _row", "a "],
)  # fmt: skip
def test_an_article_fits_the_sound_of_its_noun(told: str) -> None:
    assert a_or_an(told.split(" ", 1)[1]) == told


def test_one_is_singular() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 12_345)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "12,345 rows",
    ]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]


def test_no_message_puts_an_article_of_its_own_before_a_name() -> None:
    """Whatever stands there later may start with a vowel."""
    found = [
        f"{path.name}: {line.strip()}"
        for path in Path(sordino.__file__).parent.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"""f['"].*\b[aA]n? \{""", line)
    ]
    assert not found, "\n".join(found)
