"""What notebooks show: every text escaped, no colour of our own, and a bar for what takes long."""

from __future__ import annotations

import re
import sys
import types
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.charge import NOTHING
from sordino.answer.notebook_progress import NotebookBar, notebook_bar
from sordino.ledger.receipt import Receipts
from sordino.privacy.notebook import card, meter
from sordino.privacy.picture import colours

EVIL = "</td><script>alert(1)</script>"
NAME = 'a"<b>&'


@pytest.fixture
def session() -> Any:
    columns: dict[str, Any] = {NAME: {"type": "int", "min": 0, "max": 10}, "t": {"type": "text"}}
    data = so.Dataset(
        pa.table({NAME: [1, 2], "t": ["x", "y"]}),
        name=EVIL,
        unit="row",
        columns=columns,
        budget=so.Budget(5, 1e-6),
    )
    with so.Session(data) as opened:
        yield opened


def question() -> str:
    return f'SELECT COUNT(*) AS n FROM "{EVIL}"'


def test_everything_shown_is_escaped(session: so.Session) -> None:
    plan = session.preview(question(), epsilon=1)
    answer = session.sql(question(), epsilon=1)
    shown: list[Any] = [
        session,
        plan,
        answer,
        answer.receipt,
        session.receipts,
        so.Budget(1),
        so.LaplaceLoss(Fraction(1)),
    ]
    for each in shown:
        html = each._repr_html_()
        assert "<script" not in html
        assert html.count("<table") == html.count("</table>")
        assert html.count("<td") == html.count("</td>")
        assert not re.search(
            r"(?<!-)color:\s*#|background:\s*#|background-color", html
        )  # the theme's own, light or dark
        assert "http" not in html
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in session._repr_html_()


def test_a_card_shows_what_it_is_given() -> None:
    html = card("Title", {"name": "value"}, table=(("h",), [("c",)]), notes=["said"], left=0.25)
    for part in ("Title", "name", "value", ">h<", ">c<", "said", 'value="0.2500"'):
        assert part in html
    assert "value=" not in meter(None)
    assert 'value="1.0000"' in meter(7.0)
    assert "\x1b" not in card("\x1b[31m")


def test_a_session_shows_its_budget_and_a_closed_one_none(session: so.Session) -> None:
    assert "100 % of Budget(epsilon=5" in session._repr_html_()
    session.sql(question(), epsilon=1)
    assert "100 % of" not in session._repr_html_()
    left = session.remaining._repr_html_()
    assert " % of the budget" in left
    assert "mu" not in left
    assert "rho" not in left
    assert isinstance(session.receipts, tuple)
    assert session.receipts == tuple(session.receipts)
    session.close()
    assert "(closed)" in session._repr_html_()


def test_a_plan_shows_each_line_of_its_words(session: so.Session) -> None:
    plan = session.preview(question(), epsilon=1)
    html = plan._repr_html_()
    for name in ("protects", "mechanism", "promise", "price"):
        assert f">{name}</td>" in html
    assert "nothing was charged" in html


class Shown:
    """Stands for IPython's display: keeps what was drawn."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def __call__(self, html: Any, *, display_id: bool) -> Shown:
        assert display_id
        self.update(html)
        return self

    def update(self, html: Any) -> None:
        self.drawn.append(html._repr_html_())


def test_a_bar_appears_late_never_goes_back_and_goes_away() -> None:
    clock, parts, shown = (
        iter([0, 0.5, 1.6, 1.7, 2.0, 2.5, 3.0, 3.5]),
        iter([1e-8, 0.4, 0.2, None]),
        Shown(),
    )
    bar = NotebookBar(shown, lambda: next(parts), lambda: next(clock))
    for _ in range(6):
        bar.tick()
    bar.close()
    assert "value=" not in shown.drawn[0]  # an estimate of next to nothing is none
    assert ["40 %" in each for each in shown.drawn] == [False, True, True, True, False]
    assert shown.drawn[-1] == ""
    quick = NotebookBar(silent := Shown(), lambda: 0.5, lambda: 0.0)
    quick.tick()
    quick.close()
    assert silent.drawn == []


def test_only_the_kernel_of_a_notebook_draws_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook_bar(lambda: None) is None
    fake: Any = types.ModuleType("IPython")
    monkeypatch.setitem(sys.modules, "IPython", fake)
    display: Any = types.ModuleType("IPython.display")
    display.display = Shown()
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert notebook_bar(lambda: None) is None
    fake.get_ipython = lambda: types.SimpleNamespace()  # a terminal's shell has no kernel
    assert notebook_bar(lambda: None) is None
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    assert isinstance(notebook_bar(lambda: 0.5), NotebookBar)


def test_progress_counts_the_statements_of_a_question(
    session: so.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(session._engine), "progress", property(lambda _: 0.5))
    session._steps = 1, 4
    assert session.progress == (1 + 0.5) / 4
    monkeypatch.setattr(type(session._engine), "progress", property(lambda _: None))
    assert session.progress == 1 / 4
    session._steps = 0, 1
    assert session.progress is None


@pytest.mark.parametrize("count", [1, 2, 10, 11, 24, 60, 200])
def test_no_two_colours_are_alike(count: int) -> None:
    found = colours(count)
    assert len(set(found)) == len(found) == count
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in found)


def test_receipts_are_told_without_what_says_nothing_to_an_analyst(session: so.Session) -> None:
    """An epsilon, or that it was Gaussian noise; the exact amounts are those of its charge."""
    receipt = session.sql(question(), epsilon=Fraction(1, 3)).receipt
    assert receipt is not None
    gaussian = replace(receipt, charge=so.Charge(None, Fraction(1, 100), None, Fraction(1, 10**7)))
    told = [receipt, gaussian, replace(receipt, charge=NOTHING)]
    shown = [str(each) for each in told] + [Receipts(told)._repr_html_(), receipt._repr_html_()]
    assert not re.findall(
        r"mu_squared|\brho\b|\bmu\b", " ".join(shown).replace(receipt.question, "")
    )
    assert "epsilon 0.3334" in shown[0]
    assert shown[0].startswith(f"Receipt {receipt.number}: ")
    assert "Gaussian noise and delta 1e-07 for keys" in shown[1]
    assert shown[3].count("<tr") == 4
    assert "mu_squared=0.01" in repr(gaussian)
