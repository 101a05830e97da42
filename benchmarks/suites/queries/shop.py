"""A shop of eight tables in the shape of TPC-H, and the 22 questions of that benchmark as an analyst would ask them.

`python -m benchmarks.suites.queries.shop [SCALE] [RUNS]` makes the data (by DuckDB, from hashes: the same everywhere),
asks every question that can be asked, in turn with plain DuckDB, from files and from tables that are held, and prints
which are answered, which are refused and why, and the processor times on one thread. Persons are the customers; parts,
suppliers, nations and regions are public.

DuckDB, with all its optimizers, is asked each question in three forms. *By hand* is the same shape as ours: join, sum
by person and group, scale down who has too many rows, add up. *By person* stops after the first of these two sums.
*Plain* is the question as it is written, which bounds nobody. Only we plan, measure what lies beyond the bounds
(`bias`), add noise, and keep a ledger; ours without `bias` is a column of its own.
"""

import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import duckdb
import sqlglot
from sqlglot import exp

import sordino as so
from sordino.errors import SordinoError

SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
INSTRUCTIONS = ["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"]
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA",
    "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA",
    "VIETNAM", "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
]  # fmt: skip
NATION_REGIONS = [0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1]
BRANDS = [f"Brand#{i}{j}" for i in range(1, 6) for j in range(1, 6)]
TYPES = [f"{a} {b}" for a in ("PROMO", "STANDARD", "ECONOMY") for b in ("TIN", "BRASS", "STEEL")]
CONTAINERS = [
    f"{a} {b}" for a in ("SM", "MED", "LG") for b in ("CASE", "BOX", "PACK", "PKG", "BAG")
]
COLOURS = ["green", "red", "blue", "ivory", "lemon"]
FIRST, LAST = "1992-01-01", "1998-12-31"


def _pick(values: list[str], salt: str, key: str) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"[{listed}][(1 + hash({key}, '{salt}') % {len(values)})::BIGINT]"


def _number(salt: str, key: str, low: int, high: int) -> str:
    return f"({low} + (hash({key}, '{salt}') % {high - low + 1})::BIGINT)"


def make_data(folder: Path, scale: float) -> dict[str, int]:
    """Write the tables as Parquet; the number of rows of each. A line's supplier is one of the four of its part."""
    customers, orders, parts, suppliers = (
        max(10, int(n * scale)) for n in (150_000, 1_500_000, 200_000, 10_000)
    )
    day = f"DATE '{FIRST}' + INTERVAL (({{}})) DAY"
    ordered = _number("day", "o", 0, 2405)
    tables = {
        "customer": f"""SELECT c AS c_custkey, {_number("nation", "c", 0, 24)} AS c_nationkey,
            {_pick(SEGMENTS, "segment", "c")} AS c_mktsegment,
            {_number("balance", "c", -99999, 999999)} / 100.0 AS c_acctbal,
            {_number("phone", "c", 10, 34)} AS c_phone FROM range({customers}) AS t(c)""",
        "orders": f"""SELECT o AS o_orderkey, (hash(o, 'customer') % {customers * 2 // 3 or 1})::BIGINT AS o_custkey,
            CAST({day.format(ordered)} AS DATE) AS o_orderdate, {_pick(PRIORITIES, "priority", "o")} AS o_orderpriority,
            {_number("price", "o", 900, 500000)} AS o_totalprice, hash(o, 'special') % 50 = 0 AS o_special
            FROM range({orders}) AS t(o)""",
        "lineitem": f"""SELECT o AS l_orderkey, n AS l_linenumber, (hash(o, n, 'part') % {parts})::BIGINT AS l_partkey,
            ((hash(o, n, 'part') % {parts} + hash(o, n, 'supplier') % 4 * {suppliers // 4 + 1}) % {suppliers})::BIGINT
            AS l_suppkey, {_number("quantity", "o, n", 1, 50)} AS l_quantity,
            {_number("price", "o, n", 900, 100000)} AS l_extendedprice,
            {_number("discount", "o, n", 0, 10)} / 100.0 AS l_discount, {_number("tax", "o, n", 0, 8)} / 100.0 AS l_tax,
            {_pick(["A", "N", "R"], "flag", "o, n")} AS l_returnflag, {_pick(["F", "O"], "status", "o, n")} AS l_linestatus,
            CAST({day.format(f"{ordered} + {_number('ship', 'o, n', 1, 121)}")} AS DATE) AS l_shipdate,
            CAST({day.format(f"{ordered} + {_number('commit', 'o, n', 30, 90)}")} AS DATE) AS l_commitdate,
            CAST({day.format(f"{ordered} + {_number('receipt', 'o, n', 5, 150)}")} AS DATE) AS l_receiptdate,
            {_pick(MODES, "mode", "o, n")} AS l_shipmode, {_pick(INSTRUCTIONS, "instruct", "o, n")} AS l_shipinstruct
            FROM range({orders}) AS t(o), LATERAL (SELECT unnest(range(1 + (hash(o, 'lines') % 7)::BIGINT)) AS n)""",
        "part": f"""SELECT p AS p_partkey, {_pick(COLOURS, "colour", "p")} AS p_name,
            {_pick(BRANDS, "brand", "p")} AS p_brand,
            {_pick(TYPES, "type", "p")} AS p_type, {_number("size", "p", 1, 50)} AS p_size,
            {_pick(CONTAINERS, "container", "p")} AS p_container FROM range({parts}) AS t(p)""",
        "supplier": f"""SELECT s AS s_suppkey, {_number("nation", "s", 0, 24)} AS s_nationkey
            FROM range({suppliers}) AS t(s)""",
        "partsupp": f"""SELECT p AS ps_partkey, ((p + i * {suppliers // 4 + 1}) % {suppliers})::BIGINT AS ps_suppkey,
            {_number("cost", "p, i", 1, 1000)} AS ps_supplycost, {_number("qty", "p, i", 1, 9999)} AS ps_availqty
            FROM range({parts}) AS t(p), range(4) AS u(i)""",
        "nation": " UNION ALL ".join(
            f"SELECT {i} AS n_nationkey, '{name}' AS n_name, {region} AS n_regionkey"
            for i, (name, region) in enumerate(zip(NATIONS, NATION_REGIONS, strict=True))
        ),
        "region": " UNION ALL ".join(
            f"SELECT {i} AS r_regionkey, '{name}' AS r_name" for i, name in enumerate(REGIONS)
        ),
    }
    counts = {}
    with duckdb.connect() as connection:
        for name, sql in tables.items():
            connection.execute(f"COPY ({sql}) TO '{folder / name}.parquet'")
            counts[name] = connection.execute(
                f"SELECT COUNT(*) FROM '{folder / name}.parquet'"
            ).fetchone()[0]  # type: ignore[index]
    return counts


def declared(folder: Path, counts: dict[str, int]) -> so.Dataset:
    """What the owner of the shop declares."""

    def whole(low: int, high: int) -> dict[str, Any]:
        return {"type": "int", "min": low, "max": high}

    def one_of(values: list[str]) -> dict[str, Any]:
        return {"type": "category", "values": values}

    def day() -> dict[str, Any]:
        return {"type": "date", "min": FIRST, "max": LAST}

    def keyed(name: str) -> dict[str, Any]:
        return whole(0, counts[name] - 1)

    cents = {"type": "float", "min": 0, "max": 0.1, "step": 0.01}
    lines = {
        "l_partkey": keyed("part"), "l_suppkey": keyed("supplier"), "l_quantity": whole(1, 50),
        "l_extendedprice": whole(0, 100_000), "l_discount": cents, "l_tax": cents,
        "l_returnflag": one_of(["A", "N", "R"]), "l_linestatus": one_of(["F", "O"]), "l_shipdate": day(),
        "l_commitdate": day(), "l_receiptdate": day(), "l_shipmode": one_of(MODES), "l_shipinstruct": one_of(INSTRUCTIONS),
    }  # fmt: skip
    orders = {
        "o_orderdate": day(), "o_orderpriority": one_of(PRIORITIES), "o_totalprice": whole(0, 500_000),
        "o_special": {"type": "bool"},
    }  # fmt: skip
    customers = {
        "c_nationkey": whole(0, 24), "c_mktsegment": one_of(SEGMENTS), "c_phone": whole(10, 34),
        "c_acctbal": {"type": "float", "min": -1000, "max": 10_000, "step": 0.01},
    }  # fmt: skip
    parts = {
        "p_partkey": keyed("part"), "p_name": one_of(COLOURS), "p_brand": one_of(BRANDS), "p_type": one_of(TYPES),
        "p_size": whole(1, 50), "p_container": one_of(CONTAINERS),
    }  # fmt: skip
    supplies = {
        "ps_partkey": keyed("part"), "ps_suppkey": keyed("supplier"), "ps_supplycost": whole(1, 1000),
        "ps_availqty": whole(1, 9999),
    }  # fmt: skip
    nations = {"n_nationkey": whole(0, 24), "n_name": one_of(NATIONS), "n_regionkey": whole(0, 4)}
    tables: dict[str, dict[str, Any]] = {
        "customer": {"unit": "c_custkey", "persons": "customer", "max_rows": 1, "columns": customers},
        "orders": {"unit": "o_custkey", "persons": "customer", "max_rows": 40, "columns": orders},
        "lineitem": {"via": {"l_orderkey": "orders.o_orderkey"}, "max_rows": 100, "columns": lines},
        "part": {"public": True, "key": ["p_partkey"], "columns": parts},
        "supplier": {
            "public": True, "key": ["s_suppkey"], "columns": {"s_suppkey": keyed("supplier"), "s_nationkey": whole(0, 24)},
        },
        "partsupp": {"public": True, "key": ["ps_partkey", "ps_suppkey"], "columns": supplies},
        "nation": {"public": True, "key": ["n_nationkey"], "columns": nations},
        "region": {
            "public": True, "key": ["r_regionkey"], "columns": {"r_regionkey": whole(0, 4), "r_name": one_of(REGIONS)},
        },
    }  # fmt: skip
    sources = {
        name: {"source": str(folder / f"{name}.parquet"), **table} for name, table in tables.items()
    }
    return so.Dataset(tables=sources, budget={"epsilon": 10**6, "delta": 1e-6})


class Asked(NamedTuple):
    """One question of the 22: its number, what it is called, and its text;
    a note where it is not word for word the same.
    """

    number: int
    title: str
    sql: str
    note: str = ""


REVENUE = "l_extendedprice * (1 - l_discount)"
QUESTIONS = (
    Asked(1, "pricing summary", f"""
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS base,
               SUM({REVENUE}) AS discounted, SUM({REVENUE} * (1 + l_tax)) AS charged, AVG(l_discount) AS discount,
               COUNT(*) AS lines
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus"""),
    Asked(2, "cheapest supplier", """
        SELECT s_suppkey, p_partkey FROM part JOIN partsupp ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey
        WHERE p_size = 15 AND ps_supplycost = (SELECT MIN(ps_supplycost) FROM partsupp)"""),
    Asked(3, "shipping priority", f"""
        SELECT l_orderkey, SUM({REVENUE}) AS revenue, o_orderdate
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC LIMIT 10"""),
    Asked(4, "order priority", """
        SELECT o_orderpriority, COUNT(*) AS order_count FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
          AND EXISTS (SELECT * FROM lineitem WHERE lineitem.l_orderkey = orders.o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority"""),
    Asked(5, "local supplier volume", f"""
        SELECT n_name, SUM({REVENUE}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
             JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
             JOIN region ON n_regionkey = r_regionkey
        WHERE c_nationkey = s_nationkey AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
          AND o_orderdate < DATE '1995-01-01' GROUP BY n_name ORDER BY revenue DESC"""),
    Asked(6, "forecast revenue", """
        SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07
          AND l_quantity < 24"""),
    Asked(7, "volume shipping", f"""
        SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(year FROM l_shipdate) AS l_year,
               SUM({REVENUE}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
             JOIN supplier ON l_suppkey = s_suppkey JOIN nation AS n1 ON supplier.s_nationkey = n1.n_nationkey
             JOIN nation AS n2 ON customer.c_nationkey = n2.n_nationkey
        WHERE (n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY' OR n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')
          AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' GROUP BY supp_nation, cust_nation, l_year"""),
    Asked(8, "national market share", f"""
        SELECT EXTRACT(year FROM o_orderdate) AS o_year,
               SUM(CASE WHEN n2.n_name = 'BRAZIL' THEN {REVENUE} ELSE 0 END) / SUM({REVENUE}) AS share
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
             JOIN part ON l_partkey = p_partkey JOIN supplier ON l_suppkey = s_suppkey
             JOIN nation AS n1 ON customer.c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = region.r_regionkey
             JOIN nation AS n2 ON supplier.s_nationkey = n2.n_nationkey
        WHERE r_name = 'AMERICA' AND p_type = 'ECONOMY STEEL' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
        GROUP BY o_year"""),
    Asked(9, "product type profit", f"""
        SELECT n_name, EXTRACT(year FROM o_orderdate) AS o_year, SUM({REVENUE} - ps_supplycost * l_quantity) AS profit
        FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN part ON l_partkey = p_partkey
             JOIN supplier ON l_suppkey = s_suppkey
             JOIN partsupp ON lineitem.l_partkey = partsupp.ps_partkey AND lineitem.l_suppkey = partsupp.ps_suppkey
             JOIN nation ON s_nationkey = n_nationkey
        WHERE p_name LIKE '%green%' GROUP BY n_name, o_year"""),
    Asked(10, "returned items", f"""
        SELECT c_custkey, SUM({REVENUE}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE l_returnflag = 'R' GROUP BY c_custkey ORDER BY revenue DESC LIMIT 20"""),
    Asked(11, "important stock", """
        SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value
        FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
        WHERE n_name = 'GERMANY' GROUP BY ps_partkey HAVING value > 7000000 ORDER BY value DESC LIMIT 100""",
          "the threshold, a share of the total, was asked for first"),
    Asked(12, "shipping modes", """
        SELECT l_shipmode, SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
               SUM(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
          AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode"""),
    Asked(13, "orders per customer", """
        SELECT c_count, COUNT(*) AS custdist
        FROM (SELECT c_custkey, COUNT(o_totalprice) AS c_count FROM customer LEFT JOIN orders
              ON c_custkey = o_custkey AND NOT o_special GROUP BY c_custkey) AS c_orders
        GROUP BY c_count ORDER BY custdist DESC, c_count DESC""", "a flag stands for the text search of the comment"),
    Asked(14, "promotion effect", f"""
        SELECT 100.0 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN {REVENUE} ELSE 0 END) / SUM({REVENUE}) AS promo_revenue
        FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'"""),
    Asked(15, "top supplier", f"""
        SELECT l_suppkey, SUM({REVENUE}) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
        GROUP BY l_suppkey ORDER BY revenue DESC LIMIT 1""", "ORDER BY ... LIMIT 1 on the noisy answer instead of = MAX"),
    Asked(16, "suppliers by part", """
        SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
        FROM partsupp JOIN part ON ps_partkey = p_partkey WHERE p_brand <> 'Brand#45' AND p_size IN (49, 14, 23)
        GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC"""),
    Asked(17, "small orders", """
        SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE p_brand = 'Brand#23' AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem AS l2
                                                     WHERE l2.l_partkey = part.p_partkey)"""),
    Asked(18, "large orders", """
        SELECT c_custkey, o_orderkey, SUM(l_quantity) AS quantity
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        GROUP BY c_custkey, o_orderkey HAVING SUM(l_quantity) > 300 ORDER BY quantity DESC LIMIT 100"""),
    Asked(19, "discounted revenue", f"""
        SELECT SUM({REVENUE}) AS revenue FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
          p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity BETWEEN 1 AND 11 AND p_size <= 5
          OR p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity BETWEEN 10 AND 20 AND p_size <= 10
          OR p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX') AND l_quantity BETWEEN 20 AND 30
            AND p_size <= 15)"""),
    Asked(20, "part promotion", """
        SELECT s_suppkey FROM supplier WHERE s_suppkey IN (
          SELECT ps_suppkey FROM partsupp WHERE ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem))"""),
    Asked(21, "waiting suppliers", """
        SELECT s_suppkey, COUNT(*) AS numwait FROM lineitem AS l1 JOIN supplier ON l1.l_suppkey = supplier.s_suppkey
        WHERE l1.l_receiptdate > l1.l_commitdate
          AND EXISTS (SELECT * FROM lineitem AS l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
        GROUP BY s_suppkey ORDER BY numwait DESC LIMIT 100"""),
    Asked(22, "sales opportunity", """
        SELECT c_phone AS cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM customer
        WHERE c_phone IN (13, 31, 23, 29, 30, 18, 17) AND c_acctbal > 4500
          AND NOT EXISTS (SELECT * FROM orders WHERE orders.o_custkey = customer.c_custkey)
        GROUP BY cntrycode ORDER BY cntrycode""", "the mean balance was asked for first"),
)  # fmt: skip


def by_person(plain: Any, sql: str) -> str:
    """The same joins and sums in plain DuckDB, by customer and group: what bounding by person cannot do without.

    Every number is looked at in the end: DuckDB would leave out the sums that nobody reads.
    """
    select = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(select, exp.Select)
    for clause in ("order", "limit", "having"):
        select.set(clause, None)
    tables = {table.name for table in select.find_all(exp.Table)}
    if "lineitem" in tables and "orders" not in tables:
        select = select.join("orders", on="l_orderkey = o_orderkey", dialect="duckdb")
    if tables & {"lineitem", "orders", "customer"} and not select.find(exp.Subquery):
        person = "c_custkey" if "customer" in tables else "o_custkey"
        select = select.select(person).group_by(person)
    rows = select.sql(dialect="duckdb")
    names = [row[0] for row in plain.execute(f"DESCRIBE {rows}").fetchall()]
    read = ", ".join(f'BIT_XOR(HASH("{name}"))' for name in names)
    return f"SELECT COUNT(*), {read} FROM ({rows}) AS by_person"


def bounded_by_hand(sql: str) -> str:
    """The same shape as ours in plain DuckDB: sums by customer and group, scaled down to the rows that count of one
    customer, added up. A question without customers, or with one row for each, is its own shape already.
    """
    select = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(select, exp.Select)
    tables = {table.name for table in select.find_all(exp.Table)}
    most = next((most for name, most in MOST_ROWS.items() if name in tables), None)
    for clause in ("order", "limit", "having"):
        select.set(clause, None)
    if most is None or select.find(exp.Subquery):
        return select.sql(dialect="duckdb")
    if "lineitem" in tables and "orders" not in tables:
        select = select.join("orders", on="l_orderkey = o_orderkey", dialect="duckdb")
    for mean in list(select.find_all(exp.Avg)):
        mean.replace(
            exp.Div(this=exp.Sum(this=mean.this), expression=exp.Count(this=mean.this.copy()))
        )
    person = "c_custkey" if "customer" in tables else "o_custkey"
    inner, outer, keys = [f"{person} AS person", "COUNT(*) AS n"], list[str](), list[str]()
    for item in select.expressions:
        if not item.find(exp.AggFunc):
            keys.append(item.alias_or_name)
            inner.append(item.sql(dialect="duckdb"))
            continue
        for sum_ in list(item.find_all(exp.AggFunc)):
            name = f"a{len(inner)}"
            inner.append(f"{sum_.sql(dialect='duckdb')} AS {name}")
            sum_.replace(sqlglot.parse_one(f"SUM({name} * COALESCE(w, 1))", dialect="duckdb"))
        outer.append(item.sql(dialect="duckdb"))
    shares = select.copy()
    shares.set("expressions", [sqlglot.parse_one(one, dialect="duckdb") for one in inner])
    shares = shares.group_by("person" if not keys else person, dialect="duckdb")
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    return (
        f"WITH shares AS MATERIALIZED ({shares.sql(dialect='duckdb')}), "
        f"spread AS (SELECT person, {most} / SUM(n) AS w FROM shares GROUP BY person HAVING SUM(n) > {most}) "
        f"SELECT {', '.join([*keys, *outer])} FROM shares LEFT JOIN spread USING (person){grouped}"
    )


MOST_ROWS = {"lineitem": 100, "orders": 40, "customer": 1}
"""How many rows of a customer count, as declared: that of the longest table in the question."""


def _timed(action: Any) -> float:
    """Processor time of all threads."""
    start = process_time()
    action()
    return process_time() - start


def _fetched(connection: Any, sql: str) -> float:
    return _timed(lambda: connection.execute(sql).fetchall())


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        counts = make_data(folder, scale)
        print(", ".join(f"{name} {count:,}" for name, count in counts.items()), flush=True)
        data = declared(folder, counts)
        raw = {"files": duckdb.connect(), "held": duckdb.connect()}
        for where, connection in raw.items():
            connection.execute("SET threads = 1")
            kind = "VIEW" if where == "files" else "TABLE"
            for name in counts:
                connection.execute(
                    f"CREATE {kind} {name} AS SELECT * FROM '{folder / name}.parquet'"
                )
        with (
            so.Session(data, threads=1) as files,
            so.Session(data, threads=1, held=True) as held,
        ):
            for where, session in (("files", files), ("held", held)):
                _compare(where, session, raw[where], runs)


FORMS = ("by hand", "by person", "plain")


def _compare(where: str, session: so.Session, raw: Any, runs: int) -> None:
    """Every question in turn with DuckDB over the same files, or over its own tables."""
    print(f"\n{where}: the best of {runs} turns")
    print("| question | | ours | without bias | by hand | by person | plain | ratios | note |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = list[list[float]]()
    for asked in QUESTIONS:
        title = f"{asked.number} {asked.title}"
        try:
            session.preview(asked.sql, epsilon=1)
        except SordinoError as refused:
            print(f"| {title} | refused | | | | | | | {refused} |", flush=True)
            continue
        forms = (bounded_by_hand(asked.sql), by_person(raw, asked.sql), asked.sql)
        turns = [
            [
                _timed(partial(session.sql, asked.sql, epsilon=1)),
                _timed(partial(session.sql, asked.sql, epsilon=1, bias=False)),
                *(_fetched(raw, form) for form in forms),
            ]
            for _ in range(runs)
        ]
        best = [min(times) for times in zip(*turns, strict=True)]
        ratios.append([best[0] / other for other in best[2:]] + [best[1] / best[2]])
        row = " | ".join(f"{seconds:.3f} s" for seconds in best)
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios[-1][:3])
        print(f"| {title} | answered | {row} | {each} | {asked.note} |", flush=True)
    print(f"\n{len(ratios)} of {len(QUESTIONS)} answered; medians of processor time over DuckDB's:")
    *medians, without = (statistics.median(column) for column in zip(*ratios, strict=True))
    for form, ratio in zip(FORMS, medians, strict=True):
        print(f"- {form}: {ratio:.2f}")
    print(f"- by hand, ours without bias: {without:.2f}")


if __name__ == "__main__":
    main()
