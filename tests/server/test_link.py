"""What crosses the seam keeps its meaning: offers, problems, and the copy of the meters."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.accounting.sub_budget import SubBudget
from sordino.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidInput,
    LedgerUnavailable,
    RequestRefused,
    SordinoError,
)
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.server.link import Facts
from sordino.server.offers import as_json, number, offer
from sordino.server.problems import error_of, problem_of


def test_texts_of_an_offer_are_exact() -> None:
    assert offer({"epsilon": "0.1", "error": {"n": "1/3"}, "mechanism": "laplace"}) == {
        "epsilon": Fraction(1, 10),
        "error": {"n": Fraction(1, 3)},
        "mechanism": "laplace",
    }
    assert number("epsilon", as_json(Fraction(1, 3))) == Fraction(1, 3)
    assert number("epsilon", 0.1) == 0.1


@pytest.mark.parametrize(
    "given",
    [{"epsilon": True}, {"epsilon": []}, {"bias": "yes"}, {"epsilon": "1/0"}, {"delta": "x"}],
)
def test_what_is_no_number_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        offer(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("epsilon=-1", "it must be positive", "Pass 0.1."),
        BudgetExceeded("epsilon 1", "0.5", "Lower epsilon."),
        EngineFailed(),
        RequestRefused("a", "it has no answer", "Ask anew."),
    ],
)
def test_problems_keep_kind_and_words(error: SordinoError) -> None:
    back = error_of(problem_of(error))
    assert type(back) is type(error)
    assert str(back) == str(error)


def test_no_place_of_a_ledger_in_a_problem() -> None:
    error = LedgerUnavailable(
        "/srv/secret/visits.ledger", "it is locked", "Try again.", "Nothing was granted."
    )
    assert "/srv" not in repr(problem_of(error))
    assert problem_of(error)["exit"] == 4


def test_meters_are_those_of_the_ledger() -> None:
    data = Dataset("visits.parquet", unit="row", columns={"a": {"type": "bool"}}, budget=Budget(1))
    whole = TwoMeterFilter(Budget(1), Fraction(0), Charge(Fraction(1, 2)))
    ada = SubBudget(Budget(Fraction(1, 4)), Fraction(0), Charge(Fraction(0)), whole)
    alone = Facts(data, "duckdb", 0.4, "open", False, 3, {None: whole})
    assert alone.meter("anybody") is whole
    several = Facts(data, "duckdb", 0.4, "open", False, 3, {None: whole, "ada": ada})
    assert several.meter("ada") is ada
    with pytest.raises(InvalidInput, match="sub-budgets"):
        several.meter("bob")
    assert Facts(data, "duckdb", 0.4, "open", False, 3, {None: whole, "*": ada}).meter("bob") is ada
