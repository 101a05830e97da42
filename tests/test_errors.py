"""Refusals carry codes: who says one in words of its own goes by the code, never by the English of another module."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

import sordino as so
from sordino.adaptive.condition_refusals import of_a_condition
from sordino.errors import Code, InvalidInput, UnsupportedSQL
from sordino.query.front.sql import parse_condition

SOURCE = Path(so.__file__).parent


@pytest.mark.parametrize("kind", [InvalidInput, UnsupportedSQL])
@pytest.mark.parametrize("code", [None, Code.WINDOW])
def test_a_code_survives_copies_and_is_not_shown(
    kind: type[InvalidInput], code: Code | None
) -> None:
    error = kind("x", "a rule", "A hint.", code)
    for same in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(same), same.value, same.rule, same.hint, same.code) == (
            kind,
            "x",
            "a rule",
            "A hint.",
            code,
        )
        assert str(same) == "got x: a rule. A hint."


def test_no_module_reads_the_words_of_an_error() -> None:
    texts = r"(error|refusal|failure|caught|refused)\.(rule|hint|value|args\[0\])"
    asked = r"\.\w*(with|find|index|count|replace|split)\(|\s*[!=]=|\s+in\b"
    read = re.compile(rf"{texts}({asked})|\bin\s+({texts}|str\(error\))")
    found = [
        f"{p.name}: {m.group()}" for p in SOURCE.rglob("*.py") for m in read.finditer(p.read_text())
    ]
    assert found == []


def test_every_code_is_given_by_somebody() -> None:
    texts = [
        p.read_text()
        for p in SOURCE.rglob("*.py")
        if p.name not in ("errors.py", "condition_refusals.py")
    ]
    assert [
        code.name for code in Code if not any(f"Code.{code.name}" in text for text in texts)
    ] == []


CASES = [
    ("COUNT(*) > 1", Code.AGGREGATE), ("COUNT() > 1", Code.AGGREGATE), ("COUNT(DISTINCT a, b) > 1", Code.AGGREGATE),
    ("ARRAY_AGG(a) = 1", Code.AGGREGATE), ("MIN(a) < b", Code.AGGREGATE), ("ROW_NUMBER() OVER () = 1", Code.WINDOW),
    ("a > (SELECT 1)", Code.SUBQUERY), ("EXISTS (SELECT 1)", Code.SUBQUERY), ("DROP > 1", Code.STATEMENT),
    ("t.a > 1", Code.TABLE_NAME), ("a >", Code.SYNTAX), ("(a, b)", Code.QUERY_PART),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), CASES, ids=[text for text, _ in CASES])
def test_the_front_end_says_by_a_code_what_it_refuses(text: str, code: Code) -> None:
    with pytest.raises(UnsupportedSQL) as refused:
        parse_condition(text)
    assert refused.value.code is code
    told = of_a_condition(text, refused.value)
    assert told.value == refused.value.value
    assert told.hint != refused.value.hint
    assert not any(word in told.hint for word in ("SELECT", "GROUP BY", "HAVING", "COUNT"))
