"""Finding measurements among the rows of the queries suite."""

from math import hypot, inf, sqrt
from typing import Any

from benchmarks.suites.queries.settings import CITIES, SAME_BOUNDS

Row = dict[str, Any]
HAND = "DuckDB"
LAPLACE = 5 / 4
"""The variance of the root mean square of n Laplace draws, relative and times n: (kurtosis - 1)/4."""
ENOUGH = 30
"""Releases below which an error is not called the smallest."""


def of_part(rows: list[Row], part: str, /, **wanted: object) -> list[Row]:
    """The measurements of one part with these fields, failures left out."""
    return [
        row
        for row in rows
        if row.get("part") == part and "value" in row and wanted.items() <= row.items()
    ]


def failures(rows: list[Row], part: str) -> list[Row]:
    """What has no figure in this part; a row without a part tells of a script that failed as a whole."""
    return [row for row in rows if "error" in row and row.get("part", part) == part]


def one(rows: list[Row], part: str, /, **wanted: object) -> Row | None:
    return next(iter(of_part(rows, part, **wanted)), None)


def label(row: Row) -> str:
    """Who answered how: `OpenDP, 10 rows in all`."""
    other_bounds = row.get("bounds") if row.get("bounds") != SAME_BOUNDS else None
    return ", ".join(str(word) for word in (row["tool"], row.get("how"), other_bounds) if word)


def at_guarantee(rows: list[Row], case: str, delta: float, /, *, fair: bool = True) -> list[Row]:
    """The errors at (1, delta), smallest first: a pure release also keeps every (1, delta).

    Of Sordino's plans only the one it chooses for this delta is shown. `fair` leaves out what cannot be compared.
    """
    found = [
        row
        for row in of_part(rows, "error", case=case)
        if row["delta"] <= delta and not (fair and "unfair" in row)
    ]
    largest = max((row["delta"] for row in found if row["tool"] == "Sordino"), default=0.0)
    kept = [row for row in found if row["tool"] != "Sordino" or row["delta"] == largest]
    return sorted(kept, key=lambda row: float(row["value"]))


def excess(ours: Row, other: Row) -> tuple[float, bool] | None:
    """How many times a peer's error ours is, where it is above it, and whether by more than chance (two standard
    errors).

    A few lucky releases look certain of themselves, so a peer's standard error is at least what Laplace noise as large
    as ours would have.
    """
    if ours["value"] <= other["value"]:
        return None
    own, its = ours["uncertain"] or 0.0, other["uncertain"] or 0.0
    numbers = other["releases"] * (len(CITIES) if "bounds" in other else 1)
    lucky = ours["value"] * sqrt(LAPLACE / numbers)
    times = ours["value"] / other["value"] if other["value"] else inf
    return times, ours["value"] - other["value"] > 2 * hypot(own, max(its, lucky))
