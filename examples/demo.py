"""What `make demo` runs: a made-up hospital table, declared,
previewed and asked, with the truth beside every answer.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table

import sordino as so
from hospital import write
from picture import draw
from sordino.ledger.witness import Witness

OUTPUT = Path("demo-output")
WARDS = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY visits DESC"
COST = "SELECT AVG(cost) AS cost FROM visits WHERE age >= 65"
AGE = "SELECT MEDIAN(age) AS age FROM visits"
CITIES = "SELECT city, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY city ORDER BY patients DESC"
screen = Console(width=None if os.isatty(1) else 100, highlight=False)


def title(text: str) -> None:
    screen.print()
    screen.print(Rule(f"[bold]{text}", align="left", style="dim"))


def beside_truth(
    answer: so.Answer, truth: Mapping[object, float], show: Callable[[float], str]
) -> None:
    """The answer as a table, with the truth and whether the interval holds it."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    (noisy,) = answer.estimates
    keys = answer.keys[0].cells if answer.keys else [""]
    if answer.keys:
        table.add_column(answer.keys[0].name)
    for heading in (noisy.name, "95 % interval", "truth", ""):
        table.add_column(heading, justify="right")
    rows = zip(keys, noisy.cells, noisy.lows, noisy.highs, strict=True)
    for key, *numbers in rows:
        value, low, high = (float(str(x)) for x in numbers)
        held = low <= truth[key] <= high
        cells = [
            show(value),
            f"{show(low)} to {show(high)}",
            show(truth[key]),
            "[green]inside" if held else "[yellow]outside, as 1 in 20 is",
        ]
        table.add_row(*([str(key)] if answer.keys else []), *cells)
    screen.print(table)
    left_out = [str(key) for key in truth if key not in keys]
    if left_out:
        small = ", ".join(f"{key} ({show(truth[key])})" for key in left_out)
        screen.print(
            f"[dim]Not shown, as so few people live there that it could give somebody away: {small}."
        )


def opened(declaration: Path) -> so.Session:
    """A session; that another copy of this demo has a ledger for the same made-up table is told in words."""
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always", so.errors.LedgerWarning)
        session = so.Session(so.Dataset.load(declaration))
    if any(issubclass(each.category, so.errors.LedgerWarning) for each in noticed):
        screen.print(
            "\n[dim]This demo has run elsewhere on this machine, and Sordino noticed: the same table under two ledgers. "
            "For real data that means two budgets, which add up. These patients are made up, so it goes on."
        )
    return session


def main() -> None:
    # Each demo starts with a new ledger, on purpose. Without the second line the loss of the old one would be noticed.
    shutil.rmtree(OUTPUT, ignore_errors=True)
    Witness().forget(str((OUTPUT / "visits.ledger").resolve()))
    declaration = write(OUTPUT)
    truth: Any = pq.read_table(
        OUTPUT / "visits.parquet"
    ).to_pandas()  # known here only because the table is made up
    title("A hospital has a table")
    screen.print(
        f"{len(truth):,} visits of {truth.patient_id.nunique():,} made-up patients, in {OUTPUT}/visits.parquet."
    )
    screen.print(
        f"Its owner declares once who is protected, what is public, and a budget, in {declaration}:\n"
    )
    screen.print(
        Syntax(declaration.read_text(), "toml", background_color="default", word_wrap=True)
    )

    with opened(declaration) as session:
        title("An analyst looks at the price first: free, and no data are read")
        screen.print(f"[bold]{WARDS}[/]   for epsilon 0.25", soft_wrap=True)
        screen.print(session.preview(WARDS, epsilon=0.25).explain())

        title("1. Visits by ward, for epsilon 0.25")
        wards = session.sql(WARDS, epsilon=0.25, request_id="visits-by-ward")
        by_ward = truth.groupby("ward").size().to_dict()
        beside_truth(wards, by_ward, lambda x: f"{x:,.0f}")

        title("2. Average cost of those over 65, for epsilon 0.25")
        cost = session.sql(COST, epsilon=0.25)
        average: dict[object, float] = {"": float(truth[truth.age >= 65].cost.mean())}
        beside_truth(cost, average, lambda x: f"{x:,.2f}")

        title("3. Median age, for epsilon 0.1: the same, asked in Python")
        age = session.table("visits").agg(age=so.median("age")).run(epsilon=0.1)
        median: dict[object, float] = {"": float(truth.age.median())}
        beside_truth(age, median, lambda x: f"{x:.0f}")

        title("4. Home towns, for epsilon 0.5: which towns there are is not public")
        cities = session.sql(CITIES, epsilon=0.5)
        by_city = truth.groupby("city").patient_id.nunique().sort_values(ascending=False).to_dict()
        beside_truth(cities, by_city, lambda x: f"{x:,.0f}")

        title("What was spent, and what is promised")
        spent_and_left(session)
        screen.print(f"Promise: {wards.privacy}")

        title("A budget that cannot be talked out of it")
        again = session.sql(WARDS, epsilon=0.25, request_id="visits-by-ward")
        assert again.to_json() == wards.to_json()
        screen.print(
            "The first question again, under the same request id: the same bytes, and nothing charged."
        )
        try:
            session.sql(WARDS, epsilon=10)
        except so.errors.BudgetExceeded as refusal:
            screen.print(f"A question for epsilon 10, refused before any data are read: {refusal}")
        verdict = session.ledger.verify(session.ledger.anchor())
        assert verdict.holds
        screen.print(
            f"The ledger {OUTPUT}/visits.ledger holds: {verdict.entries} entries, chained by hashes; {verdict.charges} "
            f"charges, {verdict.answers} answers, {verdict.forfeited} forfeited. It survives crashes, and shows every edit."
        )
    panels = [("Visits by ward", wards, by_ward), ("Patients by home town", cities, by_city)]
    panels += [("Average cost of those over 65", cost, average), ("Median age", age, median)]
    draw(panels, OUTPUT / "answers.png")
    title("Go on")
    screen.print(
        f"A picture of the four answers and the truth: {OUTPUT}/answers.png. And now yours, for example:\n"
    )
    ask = '"SELECT ward, AVG(cost) AS cost FROM visits GROUP BY ward"'
    for command in (
        f"budget {OUTPUT}/visits.toml",
        f"query {OUTPUT}/visits.toml {ask} --epsilon 0.3",
        f"ledger verify {OUTPUT}/visits.toml",
        "explain laplace --epsilon 0.5",
    ):
        screen.print(f"  .venv/bin/sordino {command}", soft_wrap=True)


def spent_and_left(session: so.Session) -> None:
    payments = [payment.receipt for payment in session.ledger.payments]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for heading in ("entry", "epsilon", "question"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for receipt in payments:
        pure = receipt.charge.pure
        table.add_row(
            str(receipt.number), "-" if pure is None else f"{float(pure):g}", receipt.question
        )
    screen.print(table)
    budget = session.dataset.budget
    assert budget is not None
    left = session.remaining.pure
    more = session.fits("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    rest = "" if left is None else f"epsilon {float(left):g} of {float(budget.epsilon):g}: "
    screen.print(f"Left: {rest}enough for {more} more counts for epsilon 0.1 each.")


if __name__ == "__main__":
    main()
