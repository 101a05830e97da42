"""What `sordino budget` shows, what the owner changes with it, and that it starts without anything heavy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.desk import PATIENCE, terminal
from sordino import Budget, Charge, Dataset, LaplaceLoss, Session, TwoMeterFilter
from sordino.accounting.charge import NOTHING
from sordino.accounting.sub_budget import SubBudget
from sordino.cli.app import main
from sordino.cli.budget_words import USUAL, budget_bars, cost_words, left_words, usual_answers
from sordino.engines.duckdb import DuckDB
from sordino.errors import EngineFailed
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.privacy.loss import GaussianLoss, largest_mu

COUNT = "SELECT COUNT(*) AS n FROM visits"


def ledger(folder: Path) -> Ledger:
    return Ledger.open(Dataset.load(folder / "visits.toml"), create=False, as_declared=False)


def declare(folder: Path, old: str, new: str) -> None:
    text = (folder / "visits.toml").read_text()
    assert old in text
    (folder / "visits.toml").write_text(text.replace(old, new))


@pytest.fixture
def spent(folder: Path) -> Path:
    """Twelve charges: ten by nobody in particular, one by Anna, and one without an answer."""
    with Ledger.open(Dataset.load("visits.toml")) as book:
        charge = Charge(Fraction(1, 20), Fraction(1, 1000), Fraction(1, 800))
        for i in range(12):
            request = Request(
                f"r{i}", f"SELECT COUNT(*) AS n{i} FROM visits", analyst="anna" if i == 10 else None
            )
            receipt = book.charge(charge, request).receipt
            if i < 11:
                book.store(receipt, b"{}")
    return folder


class TestShow:
    def test_before_the_first_question(self, run: Any, folder: Path) -> None:
        before = sorted(folder.iterdir())
        shown = run("budget", "visits.toml")
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert f"none yet; the first question makes {folder / 'visits.ledger'}" in shown.stdout
        assert "100 % left" in shown.stdout
        assert sorted(folder.iterdir()) == before

    def test_what_was_spent_and_on_what(self, run: Any, spent: Path) -> None:
        plain = run("budget", "visits.toml").stdout
        assert "mu^2" not in plain
        assert re.search(r"budget .* 9\d\.\d+ % left", plain)
        assert re.search(r"  0\.\d+ % of the budget  answered  anna", plain)
        text = run("budget", "show", "visits.toml", "--details").stdout
        assert "Charges   12; 1 without an answer: forfeited, unless the query still runs" in text
        assert "1.4 of 2 left" in text
        assert "SELECT COUNT(*) AS n11 FROM visits" in text
        assert "epsilon 0.05  answered  anna" in text
        assert "epsilon 0.05  unanswered" in text
        assert "the last 10" in text
        assert "AS n1 " not in text
        everything = run("budget", "visits.toml", "--all").stdout
        assert all(f"AS n{i} FROM" in everything for i in range(12))

    def test_who_spent_it(self, run: Any, spent: Path) -> None:
        parts = [line.split() for line in run("budget", "visits.toml").stdout.splitlines()]
        (own,) = (row for row in parts if row[:3] == ["anna", "1", "0"])
        (others,) = (row for row in parts if row[:4] == ["(no", "name)", "11", "1"])
        assert float(others[4]) == pytest.approx(11 * float(own[3]), rel=1e-3)
        rows = [
            line.split()
            for line in run("budget", "show", "visits.toml", "--details").stdout.splitlines()
        ]
        assert ["anna", "1", "0", "0.05", "0.001", "none"] in rows
        assert ["(no", "name)", "11", "1", "0.55", "0.011", "none"] in rows

    def test_one_analyst(self, run: Any, spent: Path) -> None:
        text = run("budget", "visits.toml", "--analyst", "anna").stdout
        assert "Charges   1 by anna" in text
        assert "AS n10 FROM" in text
        assert "AS n11 FROM" not in text

    def test_in_json(self, run: Any, spent: Path) -> None:
        fields = json.loads(run("budget", "visits.toml", "--format", "json").stdout)
        assert fields["budget"] == {"epsilon": 2.0, "delta": 1e-6, "key_delta": 5e-7}
        assert fields["tables"] == [
            {"name": "visits", "unit": "patient", "neighbors": "add_remove"}
        ]
        assert (fields["exists"], fields["as_declared"], fields["forfeited"]) == (True, True, 1)
        assert [meter["meter"] for meter in fields["left"]] == ["epsilon", "mu^2", "delta for keys"]
        assert fields["left"][0] == {"meter": "epsilon", "left": 1.4, "of": 2.0}
        assert len(fields["charges"]) == 12
        first = fields["charges"][0]
        assert (first["entry"], first["request_id"], first["status"], first["epsilon"]) == (
            2,
            "r0",
            "answered",
            0.05,
        )
        assert fields["more_answers"]["laplace"] == 14

    def test_show_may_be_left_out_and_main_takes_a_short_cut(
        self,
        run: Any,
        spent: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsysbinary: pytest.CaptureFixture[bytes],
    ) -> None:
        shown = run("budget", "visits.toml").stdout_bytes
        assert run("budget", "show", "visits.toml").stdout_bytes == shown
        monkeypatch.setattr(sys, "argv", ["sordino", "budget", "visits.toml"])
        with pytest.raises(SystemExit) as left:
            main()
        assert (left.value.code, capsysbinary.readouterr().out) == (0, shown)
        monkeypatch.setattr(sys, "argv", ["sordino", "budget", "--all", "visits.toml"])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        assert b"AS n1 FROM" in capsysbinary.readouterr().out

    def test_another_declaration_is_told(self, run: Any, spent: Path) -> None:
        declare(spent, "epsilon = 2.0", "epsilon = 5.0")
        text = run("budget", "show", "visits.toml", "--details").stdout
        assert "1.4 of 2 left" in text
        assert "epsilon 5, delta 1e-06" in text
        assert "nothing is answered until the owner runs `sordino budget set`" in text

    def test_questions_cannot_write_to_the_terminal(self, run: Any, folder: Path) -> None:
        with Ledger.open(Dataset.load("visits.toml")) as book:
            book.charge(Charge(Fraction(1, 20)), Request("r", "SELECT '\x1b[2J\r\n\u202e'"))
        text = run("budget", "visits.toml").stdout
        assert not set("\x1b\r\u202e") & set(text)
        assert r"\x1b[2J" in text

    def test_a_damaged_ledger_is_an_error(self, run: Any, spent: Path) -> None:
        (spent / "visits.ledger").write_bytes(b"")
        shown = run("budget", "visits.toml")
        assert (shown.exit_code, shown.stdout) == (4, "")
        (spent / "visits.ledger").unlink()
        shown = run("budget", "visits.toml")
        assert shown.exit_code == 4
        assert "it is gone" in shown.stderr

    def test_a_declaration_without_a_budget_is_an_error(self, run: Any, folder: Path) -> None:
        declare(folder, "[budget]\nepsilon = 2.0\ndelta = 1e-6\n", "")
        assert run("budget", "visits.toml").exit_code == 2

    @pytest.mark.parametrize(
        "charge",
        [Charge(Fraction(1, 5), Fraction(1, 50)), Charge(None, Fraction(1, 50))],
        ids=["laplace", "gaussian"],
    )
    def test_it_loads_nothing_heavy(self, spent: Path, charge: Charge) -> None:
        with ledger(spent) as book:
            book.charge(charge, Request("another", COUNT))
        heavy = {
            "numpy",
            "scipy",
            "duckdb",
            "sqlglot",
            "pyarrow",
            "pandas",
            "cryptography",
            "rich",
            "typer",
            "pydantic",
        }
        script = (
            "import sys; from sordino.cli.app import main; sys.argv = ['sordino', 'budget', 'visits.toml']\n"
            "try:\n    main()\nexcept SystemExit as left:\n    assert left.code == 0\n"
            f"print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.stderr == "[]\n"
        assert "% left" in done.stdout


class TestSet:
    def test_the_owner_puts_another_budget_in_force(self, run: Any, spent: Path) -> None:
        assert "In force already" in run("budget", "set", "visits.toml").stdout
        declare(spent, "epsilon = 2.0", "epsilon = 3.0")
        shown = run("budget", "set", "visits.toml")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert "there is no terminal to ask at" in shown.stderr
        with ledger(spent) as book:
            assert book.terms.allowance.budget.epsilon == 2
        shown = run("budget", "set", "visits.toml", "--yes")
        assert shown.exit_code == 0
        assert "in force  visits by patient (add_remove); epsilon 2, " in shown.stderr
        assert "declared  visits by patient (add_remove); epsilon 3, " in shown.stderr
        with ledger(spent) as book:
            assert book.terms.allowance.budget.epsilon == 3
            assert book.verify().holds
        with Session(Dataset.load("visits.toml")) as session:
            assert session.remaining.pure == Fraction(24, 10)

    def test_more_spent_than_is_declared_is_told(self, run: Any, spent: Path) -> None:
        declare(spent, "epsilon = 2.0", "epsilon = 0.1")
        shown = run("budget", "set", "visits.toml", "--yes")
        assert shown.exit_code == 0
        assert "nothing more would be answered" in shown.stderr
        assert "Nothing more will be answered." in run("budget", "visits.toml").stdout

    def test_without_a_ledger_nothing_is_made(self, run: Any, folder: Path) -> None:
        assert "There is no ledger yet" in run("budget", "set", "visits.toml").stdout
        assert not (folder / "visits.ledger").exists()

    @pytest.mark.parametrize(
        ("reply", "budget"), [(b"y\n", 3), (b"n\n", 2), (b"\x03", 2)], ids=["yes", "no", "ctrl-c"]
    )
    def test_it_asks_at_a_terminal(self, spent: Path, reply: bytes, budget: int) -> None:
        declare(spent, "epsilon = 2.0", "epsilon = 3.0")
        seen = terminal(["budget", "set", "visits.toml"], replies={"[y/N]": reply})
        assert seen.code == (130 if reply == b"\x03" else 0)
        with ledger(spent) as book:
            assert book.terms.allowance.budget.epsilon == budget


class TestAllot:
    def test_gives_a_part_and_takes_it_back(self, run: Any, spent: Path) -> None:
        shown = run("budget", "allot", "visits.toml", "anna", "--epsilon", "1/2", "--delta", "1e-7")
        assert shown.exit_code == 0
        assert "anna may spend epsilon 0.5, delta 1e-07" in shown.stdout
        assert "only those with a sub-budget may ask" in shown.stdout
        with ledger(spent) as book:
            assert book.allotments["anna"].budget == Budget(Fraction(1, 2), Fraction(1, 10**7))
        fields = json.loads(
            run("budget", "visits.toml", "--analyst", "anna", "--format", "json").stdout
        )
        assert fields["left"][0] == {"meter": "epsilon", "left": 0.45, "of": 0.5}
        assert fields["sub_budgets"]["anna"]["epsilon"] == 0.5
        refused = run("query", "visits.toml", COUNT, "--epsilon", "0.1")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert run("budget", "visits.toml", "--analyst", "bob").exit_code == 2
        assert "epsilon 0.5, delta 1e-07" in run("budget", "visits.toml").stdout
        shown = run("budget", "allot", "visits.toml", "anna", "--remove")
        assert "There are no sub-budgets any more" in shown.stdout
        assert run("budget", "allot", "visits.toml", "anna", "--remove").exit_code == 2

    def test_everybody_else(self, run: Any, folder: Path) -> None:
        shown = run("budget", "allot", "visits.toml", "*", "--epsilon", "0.2")
        assert (
            "Everybody without a sub-budget of their own may spend epsilon 0.2, delta 1e-06"
            in shown.stdout
        )
        refused = run("query", "visits.toml", COUNT, "--epsilon", "0.3", "--analyst", "bob")
        assert (refused.exit_code, refused.stdout) == (3, "")
        assert (
            run("query", "visits.toml", COUNT, "--epsilon", "0.2", "--analyst", "bob").exit_code
            == 0
        )

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "no --epsilon"),
            (["--remove", "--epsilon", "1"], "--remove with a number"),
            (["--remove", "--delta", "0"], "--remove with a number"),
            (["--epsilon", "3"], "a sub-budget is a part of the whole"),
            (["--epsilon", "-1"], "it must be greater than zero"),
            (["--epsilon", "1", "--delta", "half"], "--delta 'half'"),
        ],
    )
    def test_refusals(self, run: Any, folder: Path, words: list[str], said: str) -> None:
        shown = run("budget", "allot", "visits.toml", "anna", *words)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert said in shown.stderr


def test_a_failed_query_is_listed_as_forfeited(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise EngineFailed

    monkeypatch.setattr(DuckDB, "run", fail)
    run("query", "visits.toml", COUNT, "--epsilon", "0.5")
    assert "25 % of the budget  forfeited" in run("budget", "visits.toml").stdout


class TestGauges:
    @settings(max_examples=60, deadline=None)
    @given(
        st.fractions(Fraction(1, 100), 40, max_denominator=100),
        st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 100)]),
        st.integers(0, 30),
        st.integers(0, 30),
    )
    def test_usual_answers_are_counted_exactly(
        self, epsilon: Fraction, delta: Fraction, laplaces: int, gaussians: int
    ) -> None:
        small = Charge.of(LaplaceLoss(Fraction(1, 7)))
        spent = small * laplaces if laplaces else NOTHING
        if gaussians:
            spent += Charge.of(GaussianLoss(Fraction(1, 50))) * gaussians
        whole = TwoMeterFilter(Budget(epsilon, delta), delta / 2, spent)
        for meter in (whole, SubBudget(Budget(epsilon / 2, delta), delta / 2, NOTHING, whole)):
            found = usual_answers(meter)
            assert found["laplace"] == meter.fits(Charge.of(LaplaceLoss(USUAL)))
            assert ("gaussian" in found) == (delta > 0)
            if delta:
                assert found["gaussian"] == meter.fits(
                    Charge.of(GaussianLoss(largest_mu(USUAL, delta / 2)))
                )

    def test_what_is_left_is_never_rounded_up(self) -> None:
        meter = TwoMeterFilter(Budget(1), spent=Charge(Fraction(1, 3)))
        assert budget_bars(meter, details=True)[0].words == "0.6666 of 1 left"
        assert budget_bars(meter)[0].words == "66.66 % left"
        assert left_words(meter, details=True) == "epsilon 0.6666 of 1"
        assert left_words(meter) == "66.66 % of the budget"
        assert cost_words(Charge(Fraction(2, 3)), None) == "epsilon 0.6667"
        assert cost_words(Charge(Fraction(2, 3)), meter) == "66.67 % of the budget"

    def test_closed_meters_say_why(self) -> None:
        budget = Budget(1, Fraction(1, 10**6))
        gaussian = TwoMeterFilter(budget, spent=Charge(None, Fraction(1, 1000)))
        assert [g.left for g in budget_bars(gaussian, details=True)] == [
            None,
            gaussian.remaining.mu_squared,
        ]
        assert budget_bars(gaussian, details=True)[0].words == "closed by Gaussian noise"
        assert left_words(gaussian, details=True).startswith("mu^2 ")
        laplace = TwoMeterFilter(budget, spent=Charge(Fraction(1, 2), Fraction(1)))
        assert [g.words for g in budget_bars(laplace, details=True)] == ["0.5 of 1 left", "used up"]
        assert left_words(TwoMeterFilter(budget, spent=Charge(None, Fraction(1)))) == "nothing"

    def test_costs_in_words(self) -> None:
        assert cost_words(NOTHING, None) == "nothing"
        assert cost_words(Charge(None, Fraction(1, 100)), None) == "mu^2 0.01"
        assert (
            cost_words(Charge(Fraction(1, 2), delta=Fraction(1, 10**8)), None)
            == "epsilon 0.5 and delta 1e-08 for keys"
        )
