"""What is passed beside a question: one list of names, in signatures, in types and in refusals."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.plan.cost import Cost
from sordino.query.front.python import Question
from sordino.query.offer import DEFAULTS, Offer


@pytest.fixture
def session() -> so.Session:
    return so.Session(so.Dataset(pa.table({"a": [1]}), unit="row", columns={}, budget=so.Budget(1)))


@pytest.mark.parametrize(
    ("given", "meant"),
    [("eps", "epsilon"), ("epsilom", "epsilon"), ("Epsilon", "epsilon"), ("err", "error"), ("accuracy", "error"),
     ("key_delta", "delta"), ("noise", "mechanism"), ("conf", "confidence"), ("non_negative", "nonnegative")],
)  # fmt: skip
def test_unknown_names_say_what_was_meant(given: str, meant: str, session: so.Session) -> None:
    passed: Any = {given: 1}
    query = "SELECT COUNT(*) AS n FROM data"
    question = session.table("data").agg(n=so.count())
    asked = (
        lambda: session.sql(query, **passed),
        lambda: session.preview(query, **passed),
        lambda: session.fits(query, **passed),
        lambda: session.run(question.query, **passed),
        lambda: question.run(**passed),
        lambda: question.preview(**passed),
    )
    for ask in asked:
        with pytest.raises(
            InvalidInput,
            match=rf"got {given}=1: a question takes no '{given}'\. Did you mean {meant}\?",
        ):
            ask()
    assert not session.receipts


def test_a_name_like_nothing_is_told_what_there_is(session: so.Session) -> None:
    passed: Any = {"epsilon": 1, "zzz": 2}
    with pytest.raises(InvalidInput, match="It takes epsilon, error, confidence"):
        session.sql("SELECT COUNT(*) AS n FROM data", **passed)


@pytest.mark.parametrize(
    "method",
    [
        so.Session.sql,
        so.Session.run,
        so.Session.preview,
        so.Session.fits,
        Question.run,
        Question.preview,
    ],
)
def test_every_door_names_all_parts(method: Any) -> None:
    shown = inspect.signature(method).parameters
    assert set(Offer.__annotations__) <= set(shown)
    assert {name: shown[name].default for name in Offer.__annotations__} == DEFAULTS


def test_the_offer_is_what_a_cost_is_made_of() -> None:
    made = {
        n: p.default
        for n, p in inspect.signature(Cost.offered).parameters.items()
        if p.kind is not p.VAR_KEYWORD
    }
    assert made == DEFAULTS
