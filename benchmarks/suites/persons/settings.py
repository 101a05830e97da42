"""What every tool of this suite is asked, of which persons, within which public bounds; standard library only.

Each row is a person's, in one of 20 groups, with a value in cents from 0 to 100. A person is at home in four groups,
half of the rows in the first of them.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, TypeAlias

EPSILON, DELTA = 1.0, 1e-6
PERSONS = 10_001
GIANT_ROWS = 5_000
GROUPS = tuple(f"group_{i:02d}" for i in range(20))
HOMES = 4
LOWER, UPPER, STEP = 0, 100, 0.01
SEED = 16

SQL: Mapping[str, str] = {
    "count": "SELECT COUNT(*) AS answer FROM t",
    "sum": "SELECT SUM(amount) AS answer FROM t",
    "mean": "SELECT AVG(amount) AS answer FROM t",
    "median": "SELECT MEDIAN(amount) AS answer FROM t",
    "count by group": "SELECT home, COUNT(*) AS answer FROM t GROUP BY home",
    "sum by group": "SELECT home, SUM(amount) AS answer FROM t GROUP BY home",
}
CASES = tuple(SQL)

Rows: TypeAlias = list[tuple[int, str, float]]
"""Person, group and value."""
Answers: TypeAlias = float | list[float]


@dataclass(frozen=True)
class Shape:
    """How many rows each person has, and what the public knows: rows of a person, in one group, and groups."""

    name: str
    max_rows: int
    max_rows_per_group: int
    max_groups: int
    rows_of: Callable[[int], int]

    def rows(self) -> Rows:
        """The same rows for every tool."""
        rng = random.Random(f"{SEED} {self.name}")
        weights = [1 / (place + 1) for place in range(len(GROUPS))]
        made = []
        for person in range(PERSONS):
            homes: list[str] = []
            while len(homes) < HOMES:
                (home,) = rng.choices(GROUPS, weights)
                homes += [home] if home not in homes else []
            for _ in range(self.rows_of(person)):
                home = homes[0] if rng.random() < 0.5 else rng.choice(homes)
                made.append((person, home, round(min(rng.gammavariate(2, 15), float(UPPER)), 2)))
        rng.shuffle(made)
        return made


SHAPES = (
    Shape("one row each", 1, 1, 1, lambda _: 1),
    Shape("Zipf", 100, 50, HOMES, lambda person: round(200 / (person + 1) ** 0.5)),
    Shape("one giant", 10, 8, HOMES, lambda person: person % 10 + 1 if person else GIANT_ROWS),
)


def truth(case: str, rows: Rows) -> Answers:
    """The exact answer, without any bound."""
    values = [value for *_, value in rows]
    if case.endswith("by group"):
        terms = [(home, 1.0 if case.startswith("count") else value) for _, home, value in rows]
        return by_group((home, sum(term for of, term in terms if of == home)) for home in GROUPS)
    return {
        "count": float(len(values)),
        "sum": sum(values),
        "mean": fmean(values),
        "median": median(values),
    }[case]


def by_group(pairs: Iterable[tuple[Any, Any]]) -> list[float]:
    """Numbers in the order of the groups; a group without an answer counts as 0."""
    found = dict(pairs)
    return [float(found.get(group, 0.0)) for group in GROUPS]
