"""`sordino report`: what the officer reads is what the ledger says, escaped, without scripts and without data."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sordino import Budget, Charge, Dataset
from sordino.ledger.ledger import Ledger
from sordino.ledger.officer_report import _success, _up
from sordino.ledger.public_log import Checkpoint, VerifyingKey
from sordino.ledger.receipt import Request


def spend(name: str, analyst: str | None = None, answer: bytes | None = b"{}") -> None:
    with Ledger.open(Dataset.load("visits.toml")) as book:
        receipt = book.charge(
            Charge(Fraction(1, 10)), Request(name, f'SELECT {name} < 3 AS "<b>"', "", analyst)
        ).receipt
        book.store(receipt, answer) if answer is not None else book.forfeit(receipt)


class Page(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def page(run: Any, folder: Path) -> Page:
    spend("a")
    spend("b", answer=None)
    assert run("report", "visits.toml", "--output", "report.html").exit_code == 0
    return Page((folder / "report.html").read_text("utf-8"))


def test_it_says_what_the_ledger_says(page: Page) -> None:
    text = " ".join(page.words)
    assert (
        "90 % of the budget is left after 2 charges: 1 answered, 1 forfeited, 0 without an answer"
        in text
    )
    assert text.count('SELECT a < 3 AS "<b>"') == 1
    with Ledger.open(Dataset.load("visits.toml")) as ledger:
        key, link = ledger.public_log().key, ledger.anchor()
    text = "".join(page.words)
    checkpoint = text[text.index(f"{key.name}\n") : text.index("Key")]
    signed = Checkpoint.of(f"{checkpoint}\n")
    assert signed.signed_by(VerifyingKey.of(str(key)))
    assert signed.size == link.count
    assert str(key) in page.words


def test_it_holds_no_script_and_loads_nothing(page: Page) -> None:
    assert not {"script", "img", "link", "iframe", "object"} & set(page.tags)
    assert "b" not in page.tags


def test_analysts_are_told_apart(run: Any, folder: Path) -> None:
    assert run("budget", "allot", "visits.toml", "anna", "--epsilon", "0.5").exit_code == 0
    spend("x", "anna")
    page = Page(run("report", "visits.toml").stdout)
    row = re.search(r"anna\s+1\s+1\s+5 %\s+80 %", " ".join(page.words))
    assert row, page.words


def test_there_is_no_report_without_a_ledger(run: Any, folder: Path) -> None:
    shown = run("report", "visits.toml")
    assert shown.exit_code != 0
    assert "there is none yet" in shown.stderr


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "50", "1000"])
def test_the_chance_of_a_right_guess_is_rounded_up(epsilon: str) -> None:
    budget = Budget(Fraction(epsilon), Fraction(1, 10**6))
    odds = math.exp(min(float(budget.epsilon), 700))
    exact = 100 * (odds + 1e-6) / (1 + odds)
    told = float(_success(budget).removesuffix(" %"))
    assert exact <= told * (1 + 1e-11)
    assert told <= exact * 1.01


def test_numbers_are_rounded_up() -> None:
    assert [_up(x) for x in (2.718281828, 73.1058579, 100.0, 0.0101, 1e10)] == [
        "2.72",
        "73.2",
        "100",
        "0.0101",
        "1e+10",
    ]
