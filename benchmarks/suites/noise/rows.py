"""Finding measurements among the rows of the noise suite."""

from typing import Any

Row = dict[str, Any]


def of_part(rows: list[Row], part: str, **wanted: object) -> list[Row]:
    """The measurements of one part with these fields, failures left out."""
    return [
        row
        for row in rows
        if row.get("part") == part and "value" in row and wanted.items() <= row.items()
    ]


def failures(rows: list[Row], part: str, **wanted: object) -> list[Row]:
    """What has no figure in this part; a row without a part tells of a script that failed as a whole."""
    wanted = {"part": part, **wanted}
    return [row for row in rows if "error" in row and wanted.items() <= {**wanted, **row}.items()]


def label(row: Row) -> str:
    """Who released what: `diffprivlib Geometric, integer`."""
    name = f"{row['tool']} {row['how']}" if "how" in row else row["tool"]
    return f"{name}, {row['values']}" if "values" in row else str(name)


def sordino(rows: list[Row], row: Row) -> float | None:
    """Sordino's figure for the same thing: floats beside floats, but integers beside NumPy, which has only floats."""
    if row["tool"] == "Sordino":
        return None
    same = {key: row[key] for key in ("case", "scale", "values", "epsilon", "delta") if key in row}
    if row["tool"] == "NumPy" and "values" in same:
        same["values"] = "integer"
    found = of_part(rows, row["part"], tool="Sordino", **same)
    return float(found[0]["value"]) if found else None
