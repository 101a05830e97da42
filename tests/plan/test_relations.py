"""Relations by hand: what is known of their rows, and numbers small enough to see."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from engine_plug import exact_sums
from plan.shop import declared, planned, shop, table
from sordino.errors import InvalidInput
from sordino.query.bounds import NO_BOUNDS
from sordino.query.dataset import Dataset
from sordino.release import finished, noisy_groups


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT x FROM deeds WHERE x > 1) AS s",
        "(SELECT x FROM deeds UNION ALL SELECT x FROM events) AS s",
        "(SELECT deeds.x FROM deeds JOIN regions USING (c)) AS s",
    ],
)
def test_the_number_of_rows_is_not_known_where_some_may_be_missing(source: str) -> None:
    """Of replaced rows the number is public, but not how many of them a condition leaves."""
    entries = shop()
    entries["deeds"] = {**entries["events"], "neighbors": "replace"}
    entries["events"] = {**entries["events"], "neighbors": "replace"}
    dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
    assert planned("SELECT AVG(x) AS m FROM (SELECT x FROM deeds) AS s", dataset).who.certain
    assert not planned(f"SELECT AVG(x) AS m FROM {source}", dataset).who.certain


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ("SELECT DISTINCT customer_id FROM orders", 3),
        ("SELECT DISTINCT customer_id, id FROM orders", 4),
        ("SELECT DISTINCT id, customer_id, c FROM orders", 4),
        (
            "SELECT DISTINCT o.id, o.customer_id FROM orders AS o JOIN lines AS l ON o.id = l.order_id",
            3,
        ),
    ],
)
def test_rows_with_different_keys_are_different(rows: str, count: int) -> None:
    """A key that can only be compared tells rows apart like any other column."""
    plan = planned(f"SELECT COUNT(*) AS n FROM ({rows}) AS s")
    assert exact_sums(plan, declared()).vectors["s0"].tolist() == [[count]]
    assert plan.whose.single == (count == 3 and "id," not in rows and ", id" not in rows)


def test_a_star_has_a_column_of_using_once() -> None:
    """Rows of all columns are those of the same columns in a list."""
    for items in ("*", "*, x AS y"):
        text = (
            f"SELECT SUM(r) AS n FROM (SELECT {items} FROM customers JOIN regions USING (c)) AS s"
        )
        plan = planned(f"{text} WHERE c = 'B'")
        assert exact_sums(plan, declared()).vectors["s0"].tolist() == [[2]]


def test_rows_that_differ_in_a_key_only_come_in_one_order() -> None:
    """Equal in all columns, two orders still have different lines: which one is the first must not hang on the file."""
    orders = pa.table({"customer_id": [1, 1], "id": [10, 11], "x": [5, 5], "c": ["A", "A"]})
    entries = shop() | {
        "lines": {**shop()["lines"], "source": table(order_id=[11, 10], id=[1, 2], no=[1, 1])}
    }
    text = (
        "SELECT SUM(lines.x) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY x) AS k FROM orders) "
        "AS o JOIN lines ON o.id = lines.order_id WHERE k <= 1"
    )
    found = []
    for source in (orders, orders.take([1, 0])):
        dataset = Dataset(
            tables=entries | {"orders": {**entries["orders"], "source": source}},
            budget={"epsilon": 1},
        )
        groups = exact_sums(planned(text, dataset), dataset)
        found.append({name: own.tolist() for name, own in groups.vectors.items()})
    assert found[0] == found[1] == {name: [[1]] for name in found[0]}


def test_one_row_a_person_needs_no_bounds_and_joins_do() -> None:
    """Nobody has two rows after GROUP BY on the person; beside a table of several rows the person has several again."""
    single = "(SELECT customer_id, COUNT(*) AS k FROM orders GROUP BY customer_id) AS o"
    assert planned(f"SELECT COUNT(*) AS n FROM {single}").whose.single
    other = single.replace(" AS o", " AS p")
    assert planned(
        f"SELECT COUNT(*) AS n FROM {single} JOIN {other} USING (customer_id)"
    ).whose.single
    for text in (
        f"{single} JOIN orders USING (customer_id)",
        f"orders JOIN {single} USING (customer_id)",
        "(SELECT customer_id, c, COUNT(*) AS k FROM orders GROUP BY customer_id, c) AS o",
        "(SELECT DISTINCT customer_id, c FROM orders) AS o",
        f"(SELECT customer_id, k FROM {single} UNION ALL SELECT customer_id, k FROM {single}) AS o",
    ):
        assert not planned(f"SELECT COUNT(*) AS n FROM {text}").whose.single, text
    unbounded = declared()
    free = {name: replace(one, bounds=NO_BOUNDS) for name, one in unbounded.tables.items()}
    dataset = Dataset(tables=free, budget={"epsilon": 1, "delta": 0.01})
    planned(f"SELECT k > 1 AS many, COUNT(*) AS n FROM {single} GROUP BY k > 1", dataset)
    with pytest.raises(InvalidInput, match="max_rows"):
        planned(f"SELECT COUNT(*) AS n FROM {single} JOIN orders USING (customer_id)", dataset)


def total(text: str, **rows: pa.Table) -> list[int]:
    """The only numbers of a question about the shop, some of whose tables have other rows."""
    entries = shop() | {name: {**shop()[name], "source": source} for name, source in rows.items()}
    dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
    (own,) = exact_sums(planned(text, dataset), dataset).vectors.values()
    return [int(number) for row in own.tolist() for number in row]


def test_running_windows_count_equal_rows_one_by_one() -> None:
    """Of three equal rows the first has a running count of 1: 1 + 2 + 3, not 3 + 3 + 3."""
    missing = pa.array([None] * 3, pa.int64())
    rows = pa.table({"customer_id": [1, 1, 1], "id": missing, "x": [5, 5, 5], "c": ["A", "A", "A"]})
    text = (
        "SELECT SUM(k) AS s FROM (SELECT customer_id, CLAMP({} OVER (PARTITION BY customer_id ORDER BY x), 0, 90) AS k "
        "FROM orders) AS o"
    )
    assert total(text.format("COUNT(*)"), orders=rows) == [6]
    assert total(text.format("SUM(x)"), orders=rows) == [30]
    assert total(text.format("ROW_NUMBER()"), orders=rows) == [6]


def test_frames_of_a_window_count_rows_from_each_one_on() -> None:
    """1, 2, 3 of one person; sums of so many rows have bounds of themselves, and need no CLAMP."""
    rows = pa.table(
        {"customer_id": [1, 1, 1], "id": [7, 8, 9], "x": [1, 2, 3], "c": ["A", "A", "A"]}
    )
    text = (
        "SELECT SUM(k) AS s FROM (SELECT customer_id, {} OVER (PARTITION BY customer_id ORDER BY x ROWS {}) AS k "
        "FROM orders) AS o"
    )
    for function, frame, expected in (
        ("SUM(x)", "BETWEEN 1 PRECEDING AND CURRENT ROW", 1 + 3 + 5),
        ("SUM(x)", "BETWEEN 1 PRECEDING AND 1 FOLLOWING", 3 + 6 + 5),
        ("SUM(x)", "BETWEEN 2 FOLLOWING AND 3 FOLLOWING", 3),
        ("COUNT(*)", "1 PRECEDING", 1 + 2 + 2),
        ("COUNT(*)", "BETWEEN 9 PRECEDING AND 2 PRECEDING", 1),
        ("FIRST_VALUE(x)", "BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", 2 + 3),
        ("CLAMP(SUM(x)", "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", 18),
    ):
        asked = text.format(function, frame)
        if function.startswith("CLAMP"):
            asked = asked.replace(") AS k", "), 0, 90) AS k")
        assert total(asked, orders=rows) == [expected], asked


def test_a_person_of_two_tables_may_have_the_rows_of_both() -> None:
    """Within a person COUNT is cut to max_rows, 3 in each table; of both together to 6."""
    both = "SELECT customer_id AS who, x FROM orders UNION ALL SELECT id AS who, x FROM customers"
    text = (
        f"SELECT SUM(n) AS s FROM (SELECT who, COUNT(*) AS n FROM ({both}) AS b GROUP BY who) AS p"
    )
    orders, customers = table(customer_id=[1] * 5, id=[1, 2, 3, 4, 5]), table(id=[1] * 5)
    assert total(text, orders=orders, customers=customers) == [6]
    text = "SELECT SUM(n) AS s FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS p"
    assert total(text, orders=orders) == [3]
    assert total(text.replace("SUM(n)", "COUNT(*)") + " WHERE n <= 3", orders=orders) == [1]


def test_a_table_does_not_call_its_own_id_the_person() -> None:
    """Customers are called id; orders, which have an id of their own, call them by their kind."""
    entries = shop()
    entries["customers"]["source"] = table(id=[1, 2])
    entries["orders"] = {
        "source": table(customer_id=[1, 1, 2], id=[10, 11, 20]), "via": {"customer_id": "customers.id"},
        "columns": entries["orders"]["columns"], "max_rows_per_group": 3, "max_groups": 2,
    }  # fmt: skip
    dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
    counted = exact_sums(
        planned("SELECT COUNT(DISTINCT customer) AS n FROM orders", dataset), dataset
    )
    assert [own.tolist() for own in counted.vectors.values()] == [[[2]]]
    for text in (
        "SELECT COUNT(DISTINCT id) AS n FROM orders",
        "SELECT COUNT(*) AS n FROM orders JOIN customers ON orders.id = customers.id",
        "SELECT COUNT(*) AS n FROM (SELECT id, COUNT(*) AS k FROM orders GROUP BY id) AS o",
    ):
        with pytest.raises(InvalidInput):
            planned(text, dataset)


def test_sums_within_a_person_are_of_whole_steps() -> None:
    """Each of three fifths is nearest to none of the steps of a half,
    so that their sum is 0; in floats it would be 1/2.
    """
    rows = pa.table({"id": [1, 1, 1, 2], "y": [0.2, 0.2, 0.2, 0.8]})
    columns = {"y": {"type": "float", "min": 0, "max": 9, "step": 0.5}}
    dataset = Dataset(rows, unit="id", max_rows_per_group=5, columns=columns, budget={"epsilon": 1})
    for inner, steps in (("SUM(y)", 2), ("CLAMP(SUM(y), 0, 4)", 2), ("AVG(y)", 2)):
        text = f"SELECT SUM(LEAST(GREATEST(s, 0), 9)) AS s FROM (SELECT id, {inner} AS s FROM data GROUP BY id) AS p"
        plan = planned(text, dataset)
        (own,) = exact_sums(plan, dataset).vectors.values()
        (step,) = (release.partial.grids[0].step for release in plan.sums)
        assert own.tolist() == [[int(steps * Fraction(1, 2) / step)]], inner


QUESTIONS = (
    "SELECT c, SUM(k) AS s FROM (SELECT *, CLAMP(SUM(x) OVER (PARTITION BY customer_id ORDER BY c), 0, 90) AS k "
    "FROM orders) AS o WHERE x < 8 GROUP BY c",
    "SELECT AVG(m) AS a, SUM(q) AS b, VAR_POP(d) AS v FROM (SELECT customer_id, MAX(x) AS m, MEDIAN(x) AS q, "
    "COUNT(DISTINCT c) AS d FROM orders GROUP BY customer_id) AS p",
    "SELECT SUM(lines.x) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY x) AS k FROM orders) "
    "AS o JOIN lines ON o.id = lines.order_id WHERE k <= 2",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT DISTINCT customer_id, x FROM (SELECT customer_id, x FROM orders "
    "UNION ALL SELECT customer_id, x FROM lines) AS u) AS d "
    "WHERE customer_id IN (SELECT customer_id FROM orders WHERE x > 7)",
)


def test_threads_and_the_order_of_rows_do_not_matter() -> None:
    """Enough rows for several threads, most of which tie in all columns."""
    rng = np.random.default_rng(3)
    count = 150_000
    letters = np.array(["A", "B"])
    orders = pa.table(
        {"customer_id": rng.integers(0, 20_000, count), "id": rng.permutation(count), "x": rng.integers(0, 10, count),
         "c": letters[rng.integers(0, 2, count)]}
    )  # fmt: skip
    lines = pa.table(
        {"order_id": rng.integers(0, count + 500, count), "id": np.arange(count), "no": rng.integers(0, 9, count),
         "x": rng.integers(0, 10, count), "c": letters[rng.integers(0, 2, count)]}
    )  # fmt: skip
    found = []
    for threads, order in (
        (1, np.arange(count)),
        (4, np.arange(count)),
        (4, rng.permutation(count)),
    ):
        sources = {
            "orders": orders.take(pa.array(order)),
            "lines": lines.take(pa.array(order[::-1])),
        }
        entries = shop() | {
            name: {**shop()[name], "source": source} for name, source in sources.items()
        }
        dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
        sums = [exact_sums(planned(text, dataset), dataset, threads=threads) for text in QUESTIONS]
        found.append(
            [{name: own.tolist() for name, own in groups.vectors.items()} for groups in sums]
        )
    assert found[1:] == found[:1] * 2
    assert all(any(map(any, own)) for groups in found[0] for own in groups.values())


@pytest.mark.parametrize(
    "condition", ["f = y / 0", "f > 0 AND f = y / 0", "y / 0 = 1", "NOT (f = y / 0)"]
)
@pytest.mark.parametrize("below", [True, False])
def test_a_condition_that_is_never_true_drops_all_rows_beside_joins(
    condition: str, below: bool
) -> None:
    """DuckDB loses such a filter where it may not move filters but may reorder joins."""
    columns: dict[str, Any] = {
        "y": {"type": "int", "min": 0, "max": 50},
        "c": {"type": "int", "min": 0, "max": 2},
    }
    rows = pa.table(
        {"u": [i % 5 for i in range(20)], "y": list(range(20)), "c": [i % 3 for i in range(20)]}
    )
    floors = {"source": pa.table({"c": [0, 1, 2], "f": [0, 1, 2]}), "public": True, "key": ["c"],
              "columns": {"c": columns["c"], "f": columns["c"]}}  # fmt: skip
    visits = {
        "source": rows,
        "unit": "u",
        "max_rows_per_group": 99,
        "max_groups": 9,
        "columns": columns,
    }
    dataset = so.Dataset(tables={"v": visits, "floors": floors}, budget={"epsilon": 10**6})
    inner = "SELECT u, y, f FROM v JOIN floors USING (c)"
    where = f"WHERE {condition}"
    sql = f"SELECT COUNT(*) AS n FROM v JOIN ({inner} {where if below else ''}) AS s ON v.u = s.u {'' if below else where}"
    sql = sql if below else sql.replace("y / 0", "s.y / 0")
    with so.Session(dataset) as session:
        assert session.sql(sql, epsilon=10**5).value() == 0


def test_windows_side_by_side_agree_about_equal_rows() -> None:
    """Else the engine would choose which numbers of two windows stand in one row, and other rows could change that."""
    text = (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY x) AS a, "
        "ROW_NUMBER() OVER (PARTITION BY customer_id, c ORDER BY x DESC) AS b FROM orders) AS o WHERE a = b"
    )
    rng = np.random.default_rng(2)
    for people, each in ((1, 50), (400, 60)):
        owner = rng.permutation(np.repeat(np.arange(people), each))
        rows = pa.table(
            {
                "customer_id": owner,
                "id": [None] * len(owner),
                "x": [5] * len(owner),
                "c": ["A"] * len(owner),
            }
        )
        entries = shop() | {
            "orders": {
                **shop()["orders"],
                "source": rows.cast(rows.schema.set(1, pa.field("id", pa.int64()))),
            }
        }
        entries["orders"] |= {"max_rows": each}
        dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
        for threads in (1, 4):
            (total,) = exact_sums(planned(text, dataset), dataset, threads=threads).vectors.values()
            assert total.tolist() == [[people * each]]


HIDDEN = "SELECT c, AVG(x) AS m FROM orders GROUP BY c"


def test_a_hidden_output_costs_what_a_shown_one_costs() -> None:
    shown = planned("SELECT c, AVG(x) AS m, COUNT(*) AS n, SUM(x) AS s FROM orders GROUP BY c")
    hidden = planned(f"{HIDDEN} HAVING COUNT(*) > 5 ORDER BY SUM(x)")
    assert (hidden.charge, hidden.sql()) == (shown.charge, shown.sql())
    assert list(hidden.errors()) == ["m", "count", "sum_x"]
    assert "not shown: count, sum_x" in " ".join(hidden.notes)
    assert planned(f"{HIDDEN} HAVING COUNT(x) > 5").query.hidden == ("count_x",)


def test_what_is_hidden_decides_by_its_noise() -> None:
    """A group of one row is kept or dropped by a number that is mostly noise."""
    plan = planned(f"{HIDDEN} HAVING COUNT(*) > 2")
    groups = exact_sums(plan, declared())
    answers = [finished(noisy_groups(groups, plan), groups.public, plan) for _ in range(60)]
    assert {answer.names for answer in answers} == {("c", "m")}
    assert {len(answer) for answer in answers} == {0, 1, 2}


@pytest.mark.parametrize(
    ("clauses", "noted"),
    [
        ("", False),
        ("ORDER BY COUNT(*) DESC", False),
        ("LIMIT 1", False),
        ("ORDER BY c LIMIT 1", False),
        ("HAVING c = 'A'", False),
        ("HAVING c = 'A' OR NOT m > 2", True),
        ("HAVING COUNT(*) > 2", True),
        ("ORDER BY COUNT(*) DESC LIMIT 1", True),
        ("ORDER BY c, m OFFSET 1", True),
    ],
)
def test_rows_that_noise_chose_are_told(clauses: str, noted: bool) -> None:
    """The intervals are those of all rows, and the largest of many numbers is too large more often than not."""
    notes = planned(f"{HIDDEN} {clauses}").notes
    assert any("chosen by noisy numbers" in note for note in notes) == noted


def test_persons_of_tables_side_by_side_are_one() -> None:
    """A line is its order's person's, and so is the order beside it: the name is not ambiguous."""
    text = "SELECT COUNT(*) AS n FROM lines JOIN orders ON lines.order_id = orders.id"
    plan = planned(f"{text} JOIN visited ON customer_id = visited.who", _visited())
    assert exact_sums(plan, _visited()).vectors["s0"].tolist() == [[3]]


def _visited() -> Dataset:
    visited = {**shop()["orders"], "source": table(who=[1, 3]), "unit": "who"}
    return Dataset(tables={**shop(), "visited": visited}, budget={"epsilon": 1, "delta": 0.01})


def test_null_keys_duplicates_and_orphans_beside_each_other() -> None:
    """NULL holds nobody together, equal persons pair, and a line without an order is nobody's."""
    entries = shop() | {
        "orders": {**shop()["orders"], "source": table(customer_id=[1, 1, None, 2], id=[10, 11, None, 20])},
        "customers": {**shop()["customers"], "source": table(id=[1, 1, None])},
        "lines": {
            **shop()["lines"],
            "source": table(order_id=[10, 10, None, 99], id=[1, 2, 3, 4], no=[1, 1, 1, 1]),
        },
    }  # fmt: skip
    dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
    for text, rows in {
        "customers, orders WHERE customers.id = orders.customer_id": 4,
        "orders, lines WHERE orders.id = lines.order_id": 2,
        "customers, lines, orders WHERE lines.order_id = orders.id AND customers.id = orders.customer_id": 4,
    }.items():
        plan = planned(f"SELECT COUNT(*) AS n FROM {text}", dataset)
        weight = plan.releases[0].unit
        assert exact_sums(plan, dataset).vectors["s0"].tolist() == [[min(rows, 3) * weight]], text
