"""Finding measurements among the rows of the accounting suite."""

from typing import Any

Row = dict[str, Any]
TOOLS = ("Sordino", "dp-accounting PLD", "prv-accountant", "dp-accounting RDP", "OpenDP zCDP")


def of_part(rows: list[Row], part: str, **wanted: object) -> list[Row]:
    """The measurements of one part with these fields, failures left out."""
    return [
        row
        for row in rows
        if row.get("part") == part and "value" in row and wanted.items() <= row.items()
    ]


def failures(rows: list[Row], **wanted: object) -> list[Row]:
    """What has no figure; a row without these fields tells of a script that failed as a whole."""
    return [row for row in rows if "error" in row and wanted.items() <= {**wanted, **row}.items()]


def one(rows: list[Row], part: str, **wanted: object) -> Row | None:
    return next(iter(of_part(rows, part, **wanted)), None)


def sordino(rows: list[Row], row: Row) -> Row | None:
    """Sordino's row of the same case."""
    return one(rows, "epsilon", tool="Sordino", case=row["case"], delta=row["delta"])


def excess(rows: list[Row], row: Row, end: str = "epsilon") -> float | None:
    """How far an epsilon lies above the lower end of the certified reference, relative to it."""
    reference = one(rows, "reference", case=row["case"], delta=row["delta"])
    return row[end] / reference["lower"] - 1 if reference else None


def speed(rows: list[Row], row: Row, clock: str) -> float | None:
    """How many times Sordino's time a tool takes, by one of the clocks."""
    ours = sordino(rows, row)
    return row[clock] / ours[clock] if ours else None
