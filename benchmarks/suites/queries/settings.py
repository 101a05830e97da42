"""What every tool of this suite is asked, of which tables, within which bounds; standard library only."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

DATA = Path(__file__).resolve().parents[2] / ".data"
CITIES = tuple(f"city_{i:03d}" for i in range(100))
LOWER, UPPER = 0, 1000  # of the amount
STEP = 0.01  # of the grid for medians
MAX_ROWS, MAX_GROUPS = 10, 3
EPSILON, DELTA = 1.0, 1e-6

SMALL, ERROR_ROWS, SPEED_ROWS = 10, 100_000, (1_000_000, 10_000_000)
RELEASES = 200
SCRIPT_SECONDS = 100.0

CASES = ("count", "sum", "mean", "median", "group-by count")
SQL: Mapping[str, str] = {
    "count": "SELECT COUNT(*) AS answer FROM t",
    "sum": "SELECT SUM(amount) AS answer FROM t",
    "mean": "SELECT AVG(amount) AS answer FROM t",
    "median": "SELECT MEDIAN(amount) AS answer FROM t",
    "group-by count": "SELECT city, COUNT(*) AS answer FROM t GROUP BY city",
}
CUT_OFF = "cut off at the true count"
SAME_BOUNDS, ROWS_IN_ALL = "10 rows in each of 3 cities", "10 rows in all"

Answers: TypeAlias = float | list[float]


class Question(NamedTuple):
    """One case put to one tool: `ask` releases one number, or one for each city in their order.

    `delta` is 0 where the release is pure; `unfair` says why its error cannot be compared, if so.
    """

    case: str
    ask: Callable[[], Answers]
    how: str = ""
    delta: float = 0.0
    bounds: str = ""
    unfair: str = ""

    @property
    def fields(self) -> dict[str, object]:
        named = {"how": self.how, "bounds": self.bounds, "unfair": self.unfair}
        return {"delta": self.delta, **{key: text for key, text in named.items() if text}}


Asking: TypeAlias = Callable[[int], Iterable[Question]]
"""A tool's questions about the table of so many rows."""


def table_path(rows: int) -> Path:
    """The table of so many rows; `data.py` writes it."""
    return DATA / f"queries-{rows}.parquet"


def column_path(rows: int, column: str) -> Path:
    """One column as bare numbers, for tools without tables: 64-bit floats of amount, 32-bit numbers of city."""
    return DATA / f"queries-{rows}-{column}.bin"


def truth_path(rows: int) -> Path:
    """The exact answers, without any bound on persons."""
    return DATA / f"queries-{rows}-truth.json"


def by_city(pairs: Iterable[tuple[Any, Any]]) -> list[float]:
    """Numbers in the order of the cities; a city without an answer counts as 0."""
    found = dict(pairs)
    return [float(found.get(city, 0.0)) for city in CITIES]
