"""What lies beyond the bounds: exact numbers, how far one person moves them, and what is said of them."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput
from sordino.mechanisms.combination import Noise
from sordino.plan.beyond import NODES, excess
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.plan.price import BEYOND
from sordino.plan.sensitivity import WEIGHT
from sordino.query.front.sql import parse
from sordino.release import exact_groups

COLUMNS: dict[str, dict[str, Any]] = {
    "g": {"type": "category", "values": ["a", "b"]},
    "t": {"type": "text"},
    "x": {"type": "int", "min": 0, "max": 10},
    "s": {"type": "int", "min": -10, "max": 10},
}
COUNT = "SELECT COUNT(*) AS n FROM v"


def rows_of(counts: dict[Any, dict[str, int]], x: int = 5) -> pa.Table:
    """So many rows of each person in each group."""
    rows = [(who, g) for who, own in counts.items() for g, n in own.items() for _ in range(n)]
    ids, groups = (
        pa.array([who for who, _ in rows], pa.int64()),
        pa.array([g for _, g in rows], pa.string()),
    )
    numbers = pa.array([x] * len(rows), pa.int64())
    return pa.table({"id": ids, "g": groups, "t": groups, "x": numbers, "s": numbers})


def data(rows: pa.Table, **own: Any) -> so.Dataset:
    declared = {
        "unit": "id",
        "max_rows": 4,
        "columns": COLUMNS,
        "budget": so.Budget(10**6, 1e-6),
        **own,
    }
    return so.Dataset(rows, name="v", **declared)


def planned(sql: str, dataset: so.Dataset, **offer: Any) -> Plan:
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return make_plan(parse(sql), dataset, Cost.offered(**{"epsilon": 1, **offer}), meter)


def measured(sql: str, dataset: so.Dataset, **offer: Any) -> list[int]:
    """The exact numbers."""
    plan = planned(sql, dataset, **offer)
    with so.Session(dataset) as session:
        groups = exact_groups(
            plan, [session._engine.run(statement) for statement in plan.statements]
        )
    assert groups.beyond is not None
    return groups.beyond


def weights(*beyond: int, bound: int) -> list[int]:
    """The weights of persons who have this much beyond the bound, by hand."""
    found = [0] * len(NODES)
    for y in beyond:
        place = Fraction(min(y, NODES[-1] * bound), bound)
        for j in range(len(NODES) - 1):
            if NODES[j] < place <= NODES[j + 1]:
                part = int(WEIGHT * (place - NODES[j]) / (NODES[j + 1] - NODES[j]))
                found[j], found[j + 1] = found[j] + WEIGHT - part, found[j + 1] + part
    return found


def test_persons_are_divided_between_nodes() -> None:
    """Persons with 4, 5, 8, 12, 40 and 4,000 rows, of which 4 count, and three rows of nobody."""
    rows = rows_of(
        {
            1: {"a": 4},
            2: {"a": 5},
            3: {"a": 4, "b": 4},
            4: {"b": 12},
            5: {"a": 40},
            6: {"a": 4000},
            None: {"a": 3},
        }
    )
    assert measured(COUNT, data(rows)) == [*weights(1, 4, 8, 36, 10**4, bound=4), 3 * WEIGHT]
    assert sum(weights(1, 4, 8, 36, 10**4, bound=4)) == 5 * WEIGHT
    grouped = "SELECT g, COUNT(*) AS n FROM v GROUP BY g"
    assert measured(grouped, data(rows)) == [*weights(1, 4, 8, 36, 10**4, bound=4), 3 * WEIGHT]
    assert measured("SELECT t, COUNT(*) AS n FROM v GROUP BY t", data(rows)) == measured(
        grouped, data(rows)
    )
    assert measured("SELECT MEDIAN(x) AS m FROM v", data(rows)) == measured(COUNT, data(rows))


def test_gaussian_noise_gives_away_less() -> None:
    """Four rows in each of two groups have the norm 5.7, so that 8 * 4/5.7 rows count."""
    found = measured(
        "SELECT g, COUNT(*) AS n FROM v GROUP BY g",
        data(rows_of({1: {"a": 4, "b": 4}})),
        mechanism="gaussian",
    )
    assert found[:4] == weights(8 - (8 * 46340) // WEIGHT, bound=4)


def test_sums_are_measured_in_their_own_unit() -> None:
    rows = rows_of({1: {"a": 8}, 2: {"a": 2}})
    # 8 rows of 5 are as much as 4 of 10
    assert measured("SELECT SUM(x) AS n FROM v", data(rows))[:4] == weights(0, bound=40)
    assert measured("SELECT SUM(x) AS n FROM v", data(rows_of({1: {"a": 8}}, x=9)))[:4] == weights(
        32, bound=40
    )
    assert measured("SELECT SUM(s) AS n FROM v", data(rows_of({1: {"a": 8}}, x=-9)))[:4] == weights(
        32, bound=40
    )
    assert measured("SELECT AVG(x) AS n FROM v", data(rows))[:4] == weights(4, bound=4)


def test_different_values_that_do_not_count_are_measured() -> None:
    """By hand: persons with 3, 5 and 100 values in one group; 6 in each of two,
    where groups or values in each are few.
    """
    values = (
        [(1, "a", x) for x in (1, 1, 2, 3)]
        + [(2, "a", x) for x in (*range(5), 0)]
        + [(3, "b", x) for x in range(100)]
    )
    values += [(4, g, x) for g in "ab" for x in range(6)] + [
        (5, g, None) for g in "ab" for _ in range(9)
    ]
    # one group has no value to choose
    values += [(who, g, 1 if g == "b" else None) for who in range(10, 18) for g in "ab"]
    names, groups, numbers = zip(*values, strict=True)
    rows = pa.table(
        {
            "id": pa.array([*names, None], pa.int64()),
            "g": [*groups, "a"],
            "x": pa.array([*numbers, 7], pa.int64()),
        }
    )
    columns = {"g": COLUMNS["g"], "x": {"type": "int", "min": 0, "max": 1000}}
    text = "SELECT COUNT(DISTINCT x) AS n FROM v"
    by_group = "SELECT g, COUNT(DISTINCT x) AS n FROM v GROUP BY g"
    one_group = {"max_rows": None, "max_rows_per_group": 5, "max_groups": 1}
    for sql, own, bound, beyond, by_norm in (
        # the fourth has six different values, whatever the groups
        (text, {}, 4, (1, 96, 2), (1, 96, 2)),
        (by_group, {}, 4, (1, 96, 8), (1, 96, 8)),
        (by_group, {"max_rows": 9, "max_rows_per_group": 3}, 6, (2, 97, 6), (2, 97, 6)),
        (by_group, {"max_rows": 7, "max_rows_per_group": 5}, 7, (93, 5), (95, 5)),
        (by_group, {"max_rows": 9, "max_groups": 1}, 9, (91, 3), (91, 6)),
        (by_group, one_group, 5, (95, 7), (95, 7)),
    ):
        for mechanism, left_out in (("laplace", beyond), ("gaussian", by_norm)):
            dataset = data(rows, **{"columns": columns, **own})
            assert measured(sql, dataset, mechanism=mechanism) == [
                *weights(*left_out, bound=bound),
                WEIGHT,
            ], (sql, own)


def test_ends_are_counted_by_persons() -> None:
    rows = pa.concat_tables([rows_of({1: {"a": 3}, 2: {"a": 1}}, x=10), rows_of({1: {"b": 1}, 3: {"b": 9}}, x=-7),
                             rows_of({4: {"a": 1}}, x=5), rows_of({5: {"a": 2}}, x=99)])  # fmt: skip
    low, high = measured("SELECT SUM(x) AS n FROM v", data(rows))[4:6]
    assert (low, high) == (2 * WEIGHT // 4, 3 * WEIGHT // 4)
    own = data(rows, unit="row", max_rows=None)
    assert measured("SELECT g, SUM(x) AS n FROM v GROUP BY g", own, bias=True) == [10, 6]


def test_what_cannot_bite_is_not_measured() -> None:
    rows = rows_of({1: {"a": 1}})
    assert planned(COUNT, data(rows, unit="row", max_rows=None)).beyond is None
    for sql in ("SELECT COUNT(DISTINCT id) AS n FROM v",
                "SELECT COUNT(*) AS n FROM (SELECT id FROM v GROUP BY id) AS p"):  # fmt: skip
        assert planned(sql, data(rows)).beyond is None, sql
    assert planned(COUNT, data(rows), bias=False).beyond is None
    persons = "SELECT g, COUNT(DISTINCT id) AS n FROM v GROUP BY g"
    assert planned(persons, data(rows)).beyond is None
    assert planned(persons, data(rows, max_groups=1)).beyond is not None


def test_it_costs_what_it_says() -> None:
    rows = rows_of({1: {"a": 1}})
    with_, without = planned(COUNT, data(rows)), planned(COUNT, data(rows), bias=False)
    assert with_.charge.pure == without.charge.pure == 1
    assert with_.sums[0].noise.scale == without.sums[0].noise.scale / (1 - BEYOND)
    assert with_.beyond is not None
    assert with_.beyond.mechanism.scale == WEIGHT * 10
    assert with_.beyond.charge.pure == Fraction(1, 10)
    swapped = planned("SELECT SUM(x) AS n FROM v", data(rows, neighbors="replace")).beyond
    assert swapped is not None
    assert swapped.l1 == 2 * (WEIGHT + WEIGHT // 2)
    with pytest.raises(InvalidInput, match="bias='yes': it is True, False or left out"):
        planned(COUNT, data(rows), bias="yes")


def test_one_person_reaches_the_bound() -> None:
    """Nothing less than what is claimed would do: one person with far too many rows at both ends."""
    rows = pa.concat_tables([rows_of({1: {"a": 999}}, x=10), rows_of({1: {"a": 1}}, x=-7)])
    found = measured("SELECT SUM(x) AS n FROM v", data(rows))
    plan = planned("SELECT SUM(x) AS n FROM v", data(rows))
    assert plan.beyond is not None
    assert sum(found) == plan.beyond.l1


# Words


def example(persons: int, seed: int) -> tuple[pa.Table, Counter[int]]:
    rng = random.Random(seed)
    counts = {who: min(int(4 * rng.paretovariate(1.3)), 60) for who in range(persons)}
    return rows_of({who: {"a": n} for who, n in counts.items()}), Counter(counts)


def test_the_words_hold() -> None:
    """Of 60 answers at most a few say a number of persons, or a share, that is not so."""
    rows, counts = example(3000, 1)
    persons, all_rows = sum(n > 4 for n in counts.values()), counts.total()
    share = 100 * (1 - sum(min(n, 4) for n in counts.values()) / all_rows)
    wrong = 0
    with so.Session(data(rows)) as session:
        for _ in range(60):
            (note,) = (
                note for note in session.sql(COUNT, epsilon=1).notes if note.startswith("Beyond")
            )
            found = re.search(
                r"about ([\d,]+) ± ([\d,]+) persons .* leaves out .* \((\d+) to (\d+) %\)", note
            )
            assert found is not None, note
            n, off, low, high = (int(text.replace(",", "")) for text in found.groups())
            wrong += not (abs(n - persons) <= off and low - 1 <= share <= high + 1)
    # two intervals of 95 % each; more than 12 of 60 has a probability below 1 in 100
    assert wrong <= 12


def test_where_nobody_is_beyond_it_says_so() -> None:
    """A false alarm has a probability of a few percent; more than 8 of 40 one below 1 in 1000."""
    rows = rows_of({who: {"a": 2} for who in range(300)})
    with so.Session(data(rows)) as session:
        notes = [session.sql(COUNT, epsilon=1).notes for _ in range(40)]
    assert sum(any(note.startswith("No sign") for note in each) for each in notes) >= 32


@pytest.mark.parametrize(
    ("sql", "x", "told"),
    [
        (COUNT, 5, "true totals are likely higher."),
        ("SELECT SUM(x) AS n FROM v", 5, "true totals are likely higher."),
        ("SELECT SUM(-x) AS n FROM v", 5, "true totals are likely lower."),
        ("SELECT SUM(s) AS n FROM v", 5, "true totals are likely farther from zero."),
        ("SELECT AVG(x) AS n FROM v", 5, "who has many rows counts for fewer of them."),
        ("SELECT MEDIAN(x) AS n FROM v", 5, "who has many rows counts for fewer of them."),
        (
            "SELECT COUNT(DISTINCT x) AS n FROM v",
            None,
            "so that true numbers may be higher by up to as many.",
        ),
    ],
)
def test_the_words_follow_what_is_asked(sql: str, x: int | None, told: str) -> None:
    rows = rows_of({who: {"a": 40} for who in range(2000)}, x=x or 0)
    if x is None:
        rows = rows.set_column(3, "x", pa.array([i % 10 for i in range(len(rows))], pa.int64()))
    with so.Session(data(rows)) as session:
        notes = session.sql(sql, epsilon=5).notes
    assert [note for note in notes if note.startswith("Beyond") and note.endswith(told)], notes


def test_what_is_public_beside_a_measure_is_not_called_exact() -> None:
    """A sum that is always 0 needs no noise; what was measured beside it does."""
    with so.Session(data(rows_of({1: {"a": 1}}))) as session:
        answer = session.sql("SELECT SUM(0 * x) AS n FROM v", epsilon=1)
    assert answer.receipt is not None
    assert answer.receipt.charge.pure == Fraction(1, 10)
    assert "(epsilon = 0.1)" in answer.privacy


def test_nodes_that_nobody_is_at_do_not_count() -> None:
    noise = Noise("laplace", 10 * WEIGHT)
    found = excess(
        [100 * WEIGHT, 300 * WEIGHT, 5 * WEIGHT, -30 * WEIGHT], WEIGHT, noise, Fraction(19, 20)
    )
    assert found is not None
    assert (found.persons[0], found.bounds[0], found.most) == (400, 300, 1)
    assert found.bounds[1] == pytest.approx(10 * math.log(4 / 0.05), rel=0.01)
    assert excess([WEIGHT, 0, -WEIGHT, 5 * WEIGHT], WEIGHT, noise, Fraction(19, 20)) is None


@pytest.mark.parametrize("true", [(45, 12, 0, 0), (0, 0, 0, 0), (300, 20, 3, 0), (40, 60, 60, 60)])
def test_what_noise_chose_to_say_holds_as_often_as_it_should(true: tuple[int, ...]) -> None:
    """A node counts if its noise is large: intervals of 95 % each would be wrong in 7 to 9 % of what is told."""
    noise, rng, wrong, tries = Noise("laplace", 10 * WEIGHT), np.random.default_rng(5), [0, 0], 4000
    for _ in range(tries):
        drawn = rng.laplace(0, 10, len(NODES))
        noisy = [round((n + x) * WEIGHT) for n, x in zip(true, drawn, strict=True)]
        found = excess(noisy, WEIGHT, noise, Fraction(19, 20))
        if found is None:
            continue
        last = NODES.index(found.most) + 1
        bounds = sum(node * n for node, n in zip(NODES[:last], true, strict=False))
        for i, (said, is_so) in enumerate(
            ((found.persons, sum(true[:last])), (found.bounds, bounds))
        ):
            wrong[i] += abs(said[0] - is_so) > said[1]
    # 5 % are allowed, and the choices share three quarters of them
    assert max(wrong) <= 0.05 * tries
