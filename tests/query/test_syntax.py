"""The table of supported syntax is true: both columns ask the same,
docs/sql.md shows it, no allowed name is missing.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import sordino as so
from sordino.errors import UnsupportedSQL
from sordino.query.aggregates.registry import kinds
from sordino.query.front.calls import ARITY
from sordino.query.front.python import Question
from sordino.query.front.shapes import children
from sordino.query.front.sql import parse
from sordino.query.front.syntax import REFUSED, Refused, Supported, render, supported
from sordino.query.tree import Aggregate, Call, Case, Query, Source
from sordino.session import Session

DOCS = Path(__file__).parents[2] / "docs" / "sql.md"
MARK = "<!-- rendered by sordino.query.front.syntax -->\n"


class Knows(Session):
    """A session that knows the person of every table, and nothing else."""

    def __init__(self) -> None:
        pass

    def person_of(self, name: str, source: Source) -> str:
        return "patient_id"


@pytest.mark.parametrize("row", supported(), ids=lambda row: f"{row.section}: {row.what}")
def test_sql_and_python_ask_the_same(row: Supported) -> None:
    question = eval(
        row.whole_python,
        {"so": so, "question": lambda name: Question(name, Knows()), "datetime": dt},
    )
    assert parse(row.whole_sql) == question.query
    assert repr(parse(row.whole_sql)) == repr(question.query)  # == takes 1 for True


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.what)
def test_refusals_say_what_to_write_instead(row: Refused) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        parse(row.sql)
    assert row.hint in caught.value.hint
    assert caught.value.value
    assert not caught.value.rule.endswith(".")


def names(query: Query) -> tuple[set[str], set[str]]:
    functions: set[str] = set()
    aggregates: set[str] = set()
    level: list[Any] = [
        *(output.value for output in query.outputs),
        *query.keys,
        query.where,
        query.having,
    ]
    while level:
        node = level.pop()
        match node:
            case None:
                continue
            case Aggregate():
                aggregates.add(node.function)
            case Call():
                functions.add(node.function)
            case Case():
                functions.add("case")
        level += children(node)
    return functions, aggregates


def test_every_allow_listed_name_is_in_the_table() -> None:
    found = [names(parse(row.whole_sql)) for row in supported()]
    assert set().union(*(functions for functions, _ in found)) == {*ARITY, "case"}
    assert set().union(*(aggregates for _, aggregates in found)) == set(kinds())


def test_docs_show_the_table() -> None:
    assert DOCS.read_text(encoding="utf-8").split(MARK)[1] == render()
