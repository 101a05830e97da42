"""What would mix persons is refused while planning, with value, rule and hint: nothing is spent, no row is read.

For each refused question there is one that works, as the hint says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import sordino as so
from engine_plug import Plug, exact_sums
from plan.shop import X, declared, planned, shop, table
from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.query.dataset import Dataset


@pytest.fixture(scope="module")
def plug() -> Plug:
    return Plug()


@pytest.fixture(scope="module")
def session(plug: Plug) -> Iterator[so.Session]:
    with so.Session(declared(), engine=plug) as opened:
        yield opened


REFUSED: dict[str, tuple[str, str, str, str, str]] = {
    # a question, its construct, the rule, the hint, a question that works
    "join on another column": (
        "SELECT COUNT(*) AS n FROM customers JOIN orders ON customers.x = orders.x",
        "JOIN orders ON x", "joined on the person, or on a declared key", "JOIN orders",
        "SELECT COUNT(*) AS n FROM customers JOIN orders ON customers.id = orders.customer_id AND customers.x = orders.x",
    ),
    "join by ward with itself": (
        "SELECT COUNT(*) AS n FROM orders JOIN orders AS other ON orders.c = other.c",
        "JOIN other ON c", "joined on the person", r"USING \(customer_id\)",
        "SELECT COUNT(*) AS n FROM orders JOIN orders AS other USING (customer_id)",
    ),
    "join of a key with another key": (
        "SELECT COUNT(*) AS n FROM orders JOIN lines ON orders.id = lines.id",
        "JOIN lines ON id", "declared key", "JOIN lines",
        "SELECT COUNT(*) AS n FROM orders JOIN lines USING (customer_id)",
    ),
    "a key under the name of another": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, id AS order_id FROM lines) AS l "
        "JOIN orders ON l.order_id = orders.id",
        "JOIN orders ON order_id", "declared key", "JOIN orders",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, id AS order_id FROM lines) AS l JOIN orders USING (customer_id)",
    ),
    "a part of a key": (
        "SELECT COUNT(*) AS n FROM parts JOIN lines ON parts.no = lines.no",
        "JOIN lines ON no", "declared key", "JOIN lines",
        "SELECT COUNT(*) AS n FROM parts JOIN lines USING (customer_id)",
    ),
    "the parts of a key crosswise": (
        "SELECT COUNT(*) AS n FROM parts JOIN lines ON parts.no = lines.id AND parts.line = lines.no",
        "JOIN lines ON no, line", "declared key", "JOIN lines",
        "SELECT COUNT(*) AS n FROM parts JOIN lines USING (customer_id)",
    ),
    "other persons": (
        "SELECT COUNT(*) AS n FROM orders JOIN staff USING (customer_id)",
        "orders and staff together", "the persons of one are customer, of the other customer_id", "persons",
        "SELECT COUNT(*) AS n FROM orders JOIN customers ON orders.customer_id = customers.id",
    ),
    "other neighbours": (
        "SELECT COUNT(*) AS n FROM orders JOIN visits USING (customer_id)",
        "orders and visits together", '"add_remove", the other with "replace"', "the same for both",
        "SELECT COUNT(*) AS n FROM visits",
    ),
    "rows that are persons": (
        "SELECT COUNT(*) AS n FROM orders JOIN events ON orders.x = events.x",
        "orders and events together", 'unit = "row"', "as unit of both",
        "SELECT COUNT(*) AS n FROM events",
    ),
    "rows that are persons, twice": (
        "SELECT COUNT(*) AS n FROM (SELECT x FROM events UNION ALL SELECT x FROM events) AS e",
        "UNION ALL", "count twice", "Name each table once",
        "SELECT COUNT(*) AS n FROM (SELECT x FROM events) AS e",
    ),
    "persons of others in a union": (
        "SELECT COUNT(*) AS n FROM (SELECT x FROM orders UNION ALL SELECT x FROM staff) AS e",
        "orders and staff together", "the persons of one", "persons",
        "SELECT COUNT(*) AS n FROM (SELECT x FROM orders UNION ALL SELECT x FROM customers) AS e",
    ),
    "a union with the person in another place": (
        "SELECT COUNT(*) AS n FROM (SELECT id, x FROM customers UNION ALL SELECT x, customer_id FROM orders) AS e",
        "UNION ALL", "the person in the same place", "same order",
        "SELECT COUNT(*) AS n FROM (SELECT id, x FROM customers UNION ALL SELECT customer_id, x FROM orders) AS e",
    ),
    "public rows in a union": (
        "SELECT COUNT(*) AS n FROM (SELECT c FROM regions UNION ALL SELECT c FROM orders) AS e",
        "regions and orders together", "public", "JOIN",
        "SELECT COUNT(*) AS n FROM orders JOIN regions USING (c)",
    ),
    "a public row without a partner": (
        "SELECT COUNT(*) AS n FROM regions LEFT JOIN orders ON regions.c = orders.c",
        "LEFT JOIN orders", "belong to nobody", "Begin with FROM orders",
        "SELECT COUNT(*) AS n FROM orders LEFT JOIN regions ON regions.c = orders.c",
    ),
    "a limit in EXISTS": (
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM orders AS o "
        "WHERE o.customer_id = orders.customer_id LIMIT 0)",
        "SELECT 1 FROM orders", "LIMIT is not supported", "Leave that part out",
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = orders.customer_id)",
    ),
    "a sum in EXISTS, which has a row where there is none": (
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT COUNT(*) FROM orders AS o "
        "WHERE o.customer_id = orders.customer_id AND o.x > 900)",
        "COUNT", "an aggregate", "separately",
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT * FROM orders AS o "
        "WHERE o.customer_id = orders.customer_id AND o.x > 900)",
    ),
    "a name of two tables": (
        "SELECT SUM(x) AS n FROM customers JOIN orders ON customers.id = orders.customer_id",
        "column 'x'", "customers and orders both have", "customers.x",
        "SELECT SUM(customers.x) AS n FROM customers JOIN orders ON customers.id = orders.customer_id",
    ),
    "a name of a person and of a key": (
        "SELECT COUNT(*) AS n FROM customers JOIN orders ON customers.id = orders.customer_id "
        "WHERE id IN (SELECT id FROM customers)",
        "column 'id'", "customers and orders both have", "customers.id",
        "SELECT COUNT(*) AS n FROM customers JOIN orders ON customers.id = orders.customer_id "
        "WHERE customers.id IN (SELECT id FROM customers)",
    ),
    "a name of two columns of a subquery": (
        "SELECT SUM(x) AS n FROM (SELECT * FROM customers JOIN orders ON customers.id = orders.customer_id) AS s",
        "column 'x'", "two columns of this name", "AS",
        "SELECT SUM(y) n FROM (SELECT orders.x AS y FROM customers JOIN orders ON customers.id = orders.customer_id) AS t",
    ),
    "a sum without bounds": (
        "SELECT SUM(t) AS n FROM (SELECT id, SUM(x) AS t FROM free GROUP BY id) AS p",
        "t", "smallest and the largest value", "LEAST",
        "SELECT SUM(LEAST(GREATEST(t, 0), 5000)) AS n FROM (SELECT id, SUM(x) AS t FROM free GROUP BY id) AS p",
    ),
    "a row number without bounds": (
        "SELECT AVG(k) AS n FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY x) AS k FROM customers) AS p",
        "k", "smallest and the largest value", "LEAST",
        "SELECT AVG(k) AS n FROM (SELECT id, CLAMP(ROW_NUMBER() OVER (PARTITION BY id ORDER BY x), 1, 9) AS k "
        "FROM customers) AS p",
    ),
    "correlated on another column": (
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM customers AS o WHERE o.x = orders.x)",
        r"x IN \(SELECT", "own person", "person IN",
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM customers AS o WHERE o.id = orders.customer_id)",
    ),
    "correlated on the person and more": (
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM customers AS o WHERE o.id = orders.customer_id "
        "AND o.x > orders.x)",
        "orders.x", "outer row's person only", "conditions on b alone",
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM customers AS o WHERE o.id = orders.customer_id "
        "AND o.x > 2)",
    ),
    "among values of others": (
        "SELECT COUNT(*) AS n FROM orders WHERE x IN (SELECT x FROM customers)",
        r"x IN \(SELECT", "own person", "person IN",
        "SELECT COUNT(*) AS n FROM orders WHERE customer_id IN (SELECT id FROM customers)",
    ),
    "a person among values": (
        "SELECT COUNT(*) AS n FROM orders WHERE customer_id IN (SELECT x FROM customers)",
        r"customer_id IN \(SELECT", "own person", "person IN",
        "SELECT COUNT(*) AS n FROM orders WHERE customer_id IN (SELECT id FROM customers WHERE x > 1)",
    ),
    "a number about all persons": (
        "SELECT COUNT(*) AS n FROM orders WHERE x > (SELECT AVG(x) FROM orders)",
        "SELECT AVG", "about all persons", "Ask for that number first",
        "SELECT COUNT(*) AS n FROM orders WHERE x > 1.5",
    ),
    "a recursive table": (
        "WITH RECURSIVE r AS (SELECT customer_id, x FROM orders UNION ALL SELECT customer_id, x FROM r) "
        "SELECT COUNT(*) AS n FROM r",
        "WITH RECURSIVE", "any number of others", "Write the steps out",
        "WITH r AS (SELECT customer_id, x FROM orders) SELECT COUNT(*) AS n FROM r",
    ),
    "a table of itself": (
        "WITH r AS (SELECT customer_id, x FROM r) SELECT COUNT(*) AS n FROM r",
        "table 'r'", "no such table", "Declared",
        "WITH r AS (SELECT customer_id, x FROM orders) SELECT COUNT(*) AS n FROM r",
    ),
    "a window over others": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY c ORDER BY x) AS k FROM orders) s",
        "ROW_NUMBER", "rows of one person only", "PARTITION BY customer_id",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY x) AS k "
        "FROM orders) AS s",
    ),
    "a window without a partition": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, LAG(x) OVER (ORDER BY x) AS k FROM orders) AS s",
        "LAG", "rows of one person only", "PARTITION BY customer_id",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, LAG(x) OVER (PARTITION BY customer_id ORDER BY x) AS k FROM orders) "
        "AS s",
    ),
    "a window without an order": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, LAG(x) OVER (PARTITION BY customer_id) AS k FROM orders) AS s",
        "LAG", "order of rows must be given", "ORDER BY day",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, LAG(x) OVER (PARTITION BY customer_id ORDER BY x) AS k FROM orders) "
        "AS s",
    ),
    "a frame that ends before it begins": (
        "SELECT SUM(k) AS n FROM (SELECT customer_id, COUNT(*) OVER (PARTITION BY customer_id ORDER BY x "
        "ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS k FROM orders) AS s",
        "ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING", "begins before it ends", "2 PRECEDING",
        "SELECT SUM(k) AS n FROM (SELECT customer_id, COUNT(*) OVER (PARTITION BY customer_id ORDER BY x "
        "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS k FROM orders) AS s",
    ),
    "a frame of a place": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY x "
        "ROWS 2 PRECEDING) AS k FROM orders) AS s",
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "COUNT, SUM and FIRST_VALUE", "SUM",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, SUM(x) OVER (PARTITION BY customer_id ORDER BY x "
        "ROWS 2 PRECEDING) AS k FROM orders) AS s",
    ),
    "a window where rows are persons": (
        "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY c ORDER BY x) AS k FROM events) AS s",
        "OVER", "no column names the person", "GROUP BY",
        "SELECT c, COUNT(*) AS n FROM events GROUP BY c",
    ),
    "sums over several persons": (
        "SELECT COUNT(*) AS n FROM (SELECT c, COUNT(*) AS k FROM orders GROUP BY c) AS s",
        "an aggregate in a subquery", "rows of one person only", "GROUP BY customer_id",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, c, COUNT(*) AS k FROM orders GROUP BY customer_id, c) AS s",
    ),
    "different rows of several persons": (
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT c FROM orders) AS s",
        "SELECT DISTINCT", "person must be selected", "person column",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer_id, c FROM orders) AS s",
    ),
    "UNION": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, c FROM orders UNION SELECT customer_id, c FROM orders) AS s",
        "UNION", "different persons' rows", "UNION ALL",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, c FROM orders UNION ALL SELECT customer_id, c FROM orders) AS s",
    ),
    "order and limit in a subquery": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, x FROM orders ORDER BY x LIMIT 1) AS s",
        "ORDER BY|LIMIT", "no order and no limit", "ROW_NUMBER",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY x) AS k "
        "FROM orders) AS s WHERE k <= 1",
    ),
    "HAVING without GROUP BY": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, x FROM orders HAVING COUNT(*) > 1) AS s",
        "an aggregate in a subquery", "rows of one person only", "GROUP BY customer_id",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 1) AS s",
    ),
    "all columns with GROUP BY": (
        "SELECT COUNT(*) AS n FROM (SELECT *, COUNT(*) AS k FROM orders GROUP BY customer_id) AS s",
        r"SELECT \*", "keys, and aggregates", "Name the columns",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, COUNT(*) AS k, MAX(x) AS top FROM orders GROUP BY customer_id) AS s",
    ),
    "a column beside aggregates": (
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, x, COUNT(*) AS k FROM orders GROUP BY customer_id) AS s",
        "column 'x'", "neither an aggregate nor a key", "GROUP BY",
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, MIN(x) AS x, COUNT(*) AS k FROM orders GROUP BY customer_id) AS s",
    ),
    "a part of a public key": (
        "SELECT COUNT(*) AS n FROM orders JOIN regions ON orders.x = regions.r",
        "JOIN regions ON r", "whole key", "Join on the key",
        "SELECT COUNT(*) AS n FROM orders JOIN regions ON orders.c = regions.c",
    ),
    "tables that nothing holds together": (
        "SELECT COUNT(*) AS n FROM customers, orders WHERE customers.x = orders.x",
        "FROM customers, orders", "held together by equalities in WHERE", "Write WHERE customers.id = orders.customer_id",
        "SELECT COUNT(*) AS n FROM customers, orders WHERE customers.id = orders.customer_id AND customers.x = orders.x",
    ),
    "tables held together or not": (
        "SELECT COUNT(*) AS n FROM customers, orders WHERE customers.id = orders.customer_id OR orders.x > 1",
        "FROM customers, orders", "held together by equalities in WHERE", "Write WHERE customers.id = orders.customer_id",
        "SELECT COUNT(*) AS n FROM customers, orders WHERE customers.id = orders.customer_id AND orders.x > 1",
    ),
    "tables held together by a name of both": (
        "SELECT COUNT(*) AS n FROM orders, lines WHERE customer_id = lines.customer_id",
        "FROM orders, lines", "held together by equalities in WHERE", "Write WHERE orders.customer_id",
        "SELECT COUNT(*) AS n FROM orders, lines WHERE orders.customer_id = lines.customer_id",
    ),
    "tables held together by a part of a key": (
        "SELECT COUNT(*) AS n FROM parts, lines WHERE parts.no = lines.no",
        "FROM parts, lines", "declared key", "Write WHERE parts.customer_id = lines.customer_id",
        "SELECT COUNT(*) AS n FROM parts, lines WHERE parts.no = lines.no AND parts.line = lines.id",
    ),
    "a public table beside others": (
        "SELECT COUNT(*) AS n FROM orders, regions WHERE orders.x = regions.r",
        "FROM orders, regions", "whole key of a public table", "Write WHERE orders.c = regions.c",
        "SELECT COUNT(*) AS n FROM orders, regions WHERE orders.c = regions.c AND orders.x = regions.r",
    ),
    "other persons beside each other": (
        "SELECT COUNT(*) AS n FROM orders, staff WHERE orders.x = staff.x",
        "orders and staff together", "the persons of one are customer", "persons",
        "SELECT COUNT(*) AS n FROM orders, customers WHERE orders.customer_id = customers.id",
    ),
    "a join on a table that is not joined yet": (
        "SELECT COUNT(*) AS n FROM customers, lines JOIN orders ON orders.customer_id = customers.id "
        "WHERE lines.order_id = orders.id",
        "FROM customers, lines", "held together", "Write WHERE customers.id = lines.customer_id",
        "SELECT COUNT(*) AS n FROM customers, lines, orders WHERE orders.customer_id = customers.id "
        "AND lines.order_id = orders.id",
    ),
    "a sum without bounds that nobody selected": (
        "SELECT COUNT(*) AS n FROM free HAVING SUM(id) > 5",
        "column 'id'", "not declared as a column", "declare what is public",
        "SELECT COUNT(*) AS n FROM customers HAVING SUM(x) > 5",
    ),
    "an own id that is not the person's": (
        "SELECT COUNT(DISTINCT id) AS n FROM lines",
        "column 'id'", "names rows of another table", "Declare it",
        "SELECT COUNT(DISTINCT customer_id) AS n FROM lines",
    ),
}  # fmt: skip


def _sums(plug: Plug) -> int:
    """How many sums ran: what a public table holds may be read before a refusal."""
    return sum(1 for statement in plug.runs if statement.sums)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_is_spent(name: str, session: so.Session, plug: Plug) -> None:
    bad, construct, rule, hint, works = REFUSED[name]
    left, ran = session.remaining, _sums(plug)
    for ask in (session.sql, session.preview):
        with pytest.raises(InvalidInput) as refused:
            ask(bad, epsilon=0.01)
        for pattern, text in (
            (construct, refused.value.value),
            (rule, refused.value.rule),
            (hint, refused.value.hint),
        ):
            assert re.search(pattern, text), (pattern, str(refused.value))
    assert (session.remaining, _sums(plug)) == (left, ran)
    if advice := re.search(r"Write (JOIN .+?), or", refused.value.hint):
        assert advice[1] in works.replace("orders AS other", "other")
    session.sql(works, epsilon=0.01)
    assert len(plug.runs) > ran
    assert session.remaining != left


BAD_TABLES: dict[str, tuple[dict[str, dict[str, Any]], str, str]] = {
    "a key that two rows share": (
        {"orders": {**shop()["orders"], "source": table(customer_id=[1, 2, 2, 3], id=[10, 10, 20, 30])}},
        "orders", "share|twice|unique",
    ),
    "keys that lead back": (
        {"orders": {"source": shop()["orders"]["source"], "via": {"id": "lines.order_id"}, "columns": X}},
        "path", "leads back",
    ),
    "a parent without persons": ({"orders": {**shop()["events"]}}, "orders", 'unit = "row"'),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TABLES)
def test_keys_that_name_nobody_do_not_open(name: str) -> None:
    changed, construct, rule = BAD_TABLES[name]
    with pytest.raises(InvalidDeclaration) as refused:
        so.Session(Dataset(tables={**shop(), **changed}, budget={"epsilon": 1})).close()
    assert construct in refused.value.value
    assert re.search(rule, refused.value.rule)
    assert refused.value.hint


def test_persons_who_are_called_rows_are_not_public() -> None:
    """The kind of persons is the owner's word; a public table has none, whatever it is called."""
    entries = shop()
    for name in ("customers", "orders", "visits", "free"):
        entries[name]["persons"] = "row"
    dataset = Dataset(tables=entries, budget={"epsilon": 1, "delta": 0.01})
    for one, other in (
        ("regions", "orders"),
        ("orders", "regions"),
        ("orders", "events"),
        ("events", "orders"),
    ):
        with pytest.raises(InvalidInput):
            planned(
                f"SELECT COUNT(*) AS n FROM (SELECT c FROM {one} UNION ALL SELECT c FROM {other}) AS s",
                dataset,
            )


@pytest.mark.parametrize(
    "text",
    [
        "orders JOIN lines ON orders.id = lines.order_id",
        "lines JOIN orders ON lines.order_id = orders.id",
        "(SELECT customer_id, order_id AS id FROM lines) AS l JOIN orders ON l.id = orders.id",
        "parts JOIN lines ON parts.no = lines.no AND parts.line = lines.id",
        "orders LEFT JOIN lines ON orders.id = lines.order_id AND lines.x > 1",
        "customers JOIN orders ON orders.customer_id = customers.id JOIN lines ON orders.id = lines.order_id",
        "orders WHERE id IN (SELECT order_id FROM lines WHERE x > 1)",
    ],
)
def test_declared_keys_join(text: str, session: so.Session) -> None:
    assert session.sql(f"SELECT COUNT(*) AS n FROM {text}", epsilon=0.01)


BESIDE = {
    "orders JOIN lines ON orders.id = lines.order_id WHERE lines.x > 1":
        "orders, lines WHERE lines.x > 1 AND orders.id = lines.order_id",
    "customers JOIN orders ON customers.id = orders.customer_id":
        "customers, orders WHERE orders.customer_id = customers.id",
    "orders JOIN lines USING (customer_id)": "orders, lines WHERE orders.customer_id = lines.customer_id",
    "orders AS a JOIN orders AS b ON a.customer_id = b.customer_id WHERE a.x = b.x":
        "orders AS a, orders AS b WHERE a.customer_id = b.customer_id AND a.x = b.x",
    "parts JOIN lines ON parts.no = lines.no AND parts.line = lines.id":
        "parts, lines WHERE parts.no = lines.no AND parts.line = lines.id",
    "customers JOIN orders ON customers.id = orders.customer_id JOIN lines ON orders.id = lines.order_id":
        "customers, orders, lines WHERE lines.order_id = orders.id AND customers.id = orders.customer_id",
    "regions JOIN orders ON regions.c = orders.c": "regions, orders WHERE regions.c = orders.c",
    "orders LEFT JOIN lines ON orders.id = lines.order_id JOIN regions ON orders.c = regions.c WHERE r = orders.x":
        "orders LEFT JOIN lines ON orders.id = lines.order_id, regions WHERE r = orders.x AND orders.c = regions.c",
    "customers WHERE id IN (SELECT o.customer_id FROM orders AS o JOIN lines AS l ON l.order_id = o.id)":
        "customers WHERE EXISTS (SELECT 1 FROM orders AS o, lines AS l WHERE l.order_id = o.id "
        "AND o.customer_id = customers.id)",
}  # fmt: skip


@pytest.mark.parametrize("joined", BESIDE)
def test_tables_beside_each_other_have_the_plan_of_their_join(joined: str) -> None:
    first, second = (
        planned(f"SELECT COUNT(*) AS n FROM {text}") for text in (joined, BESIDE[joined])
    )
    assert sorted(second.sql().split()) == sorted(first.sql().split())
    assert (second.charge, second.releases[0].who) == (first.charge, first.releases[0].who)


def test_a_subquery_has_its_columns_in_the_order_of_from() -> None:
    """Also where a table waits until another one holds it: a union goes by places."""
    where = "lines.order_id = orders.id AND customers.id = orders.customer_id"
    waiting = f"SELECT *, 1 AS p FROM customers, lines, orders WHERE {where}"
    listed = (
        "SELECT customers.id, customers.x, customers.c, lines.customer_id, lines.x AS y, lines.c, orders.customer_id, "
        "orders.x AS z, orders.c, 1 AS p FROM customers JOIN orders ON customers.id = orders.customer_id JOIN lines ON "
        "lines.order_id = orders.id"
    )
    found = []
    for other in (waiting, listed):
        text = f"SELECT SUM(y) AS y, SUM(z) AS z FROM ({listed} UNION ALL {other}) AS s"
        found.append(exact_sums(planned(text), declared()))
    assert [one.vectors["s0"].tolist() for one in found] == [[[12]]] * 2
    assert [one.vectors["s1"].tolist() for one in found] == [[[10]]] * 2
