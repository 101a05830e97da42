"""Sordino: bounds="private", each row a person; 30 % of epsilon finds the bounds."""

from collections.abc import Callable

import pyarrow as pa
from benchmarks.suites.bounds.measure import measure
from benchmarks.suites.bounds.settings import EPSILON

import sordino as so


def opened(case: str, data: list[float]) -> Callable[[], float]:
    table = pa.table({"x": data})
    declared = so.Dataset(
        table, unit="row", columns={"x": {"type": "float"}}, budget=so.Budget(10**6), name="t"
    )
    session = so.Session(declared)
    sql = f"SELECT {'SUM' if case == 'sum' else 'AVG'}(x) AS answer FROM t"
    return lambda: float(
        session.sql(sql, epsilon=EPSILON, bounds="private").to_arrow()["answer"][0].as_py()
    )


if __name__ == "__main__":
    measure(opened)
