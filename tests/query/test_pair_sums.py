"""Covariance and regression from end to end: sums, reach, SQL, NULL, persons, prices."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.query.aggregates.covariance import MOST_CELLS, Covariance
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.partial import ROWS
from sordino.query.aggregates.regression import MOST_CELLS as MOST_SQUARED
from sordino.query.aggregates.regression import Regression

KINDS = (Covariance, Regression)
FUNCTIONS = {
    "cs": "COVAR_SAMP",
    "cp": "COVAR_POP",
    "r": "CORR",
    "r2": "REGR_R2",
    "b": "REGR_SLOPE",
    "a": "REGR_INTERCEPT",
}
EVERY = ", ".join(f"{function}(y, x) AS {name}" for name, function in FUNCTIONS.items())
SURE = 1 - 1e-9


def sums_of(partial: Covariance, k: int | None, h: int | None) -> list[int]:
    """What the engine adds up for one row, k of x and h of y steps above the first points."""
    powers = itertools.product(range(partial.degree + 1), repeat=2)
    counted = k is not None and h is not None
    found = [(k or 0) ** i * (h or 0) ** j if counted else 0 for i, j in powers]
    return found + [1] * partial.others


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("others", [False, True])
def test_reach_by_all_rows_of_small_grids(kind: type[Covariance], others: bool) -> None:
    for x_cells, y_cells in itertools.product((1, 2, 3), (1, 4)):
        partial = kind(
            "y and x",
            Grid(Fraction(1, 2), -2, y_cells - 2),
            Grid(Fraction(1), 5, 5 + x_cells),
            others,
        )
        rows = [
            *itertools.product(range(x_cells + 1), range(y_cells + 1)),
            *([(None, 1)] if others else []),
        ]
        vectors = partial.vector(np.array([sums_of(partial, k, h) for k, h in rows], object))
        assert vectors.shape == (len(rows), partial.width)
        assert (vectors >= 0).all()
        assert set(vectors.sum(axis=1)) == {partial.reach.l1}
        assert (vectors**2).sum(axis=1).max() == partial.reach.l2_squared
        assert vectors.max() == partial.reach.linf
        apart = np.abs(vectors[:, None] - vectors[None])
        assert apart.max() == partial.reach.spread
        assert apart.sum(axis=-1).max() == 2 * partial.reach.l1
        assert (apart**2).sum(axis=-1).max() == 2 * partial.reach.l2_squared


@pytest.mark.parametrize(("kind", "cells"), [(Covariance, MOST_CELLS), (Regression, MOST_SQUARED)])
def test_row_products_fit_into_64_bits_and_sums_into_128(
    kind: type[Covariance], cells: int
) -> None:
    grid = Grid(Fraction(1), 0, cells)
    partial = kind("y and x", grid, grid)
    assert cells ** (2 * partial.degree) == partial.row < 2**62
    assert partial.row * 2**40 * 2**16 < 2**127


def table(unit: str = "row") -> tuple[pa.Table, dict[str, Any]]:
    rng = np.random.default_rng(5)
    n = 4000
    x = rng.integers(0, 61, n)
    y = np.clip(np.rint(3 * x + 40 + 30 * rng.normal(size=n)), -10, 300)
    cells = {
        "p": rng.integers(0, n if unit == "row" else 900, n),
        "x": [None if i % 11 == 0 else int(v) for i, v in enumerate(x)],
        "y": [None if i % 7 == 0 else float(v) for i, v in enumerate(y)],
        "g": rng.choice(["a", "b"], n),
    }
    columns: dict[str, Any] = {
        "x": {"type": "int", "min": 0, "max": 60},
        "y": {"type": "float", "min": -10, "max": 300, "step": 1},
        "g": {"type": "category", "values": ["a", "b", "c"]},
    }
    return pa.table(cells), columns


def session(unit: str = "row", **more: Any) -> so.Session:
    rows, columns = table(unit)
    budget = {"epsilon": 10**6, "delta": 1e-6}
    return so.Session(so.Dataset(rows, name="t", unit=unit, columns=columns, budget=budget, **more))


def rows_of(answer: so.Answer) -> list[dict[str, Any]]:
    return answer.rows()


def plain(rows: pa.Table, group: str | None = None) -> dict[str, float]:
    """The statistics of rows with both numbers, by numpy."""
    kept = [
        r
        for r in rows.to_pylist()
        if r["x"] is not None and r["y"] is not None and group in (None, r["g"])
    ]
    x, y = (np.array([r[name] for r in kept], float) for name in "xy")
    slope, intercept = np.polyfit(x, y, 1)
    r = float(np.corrcoef(x, y)[0, 1])
    return {"cs": float(np.cov(x, y)[0, 1]), "cp": float(np.cov(x, y, bias=True)[0, 1]), "r": r, "r2": r * r,
            "b": float(slope), "a": float(intercept)}  # fmt: skip


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_answers_hold_the_plain_statistics(mechanism: Any) -> None:
    with session() as asked:
        answer = asked.sql(
            f"SELECT {EVERY}, COUNT(*) AS n FROM t",
            epsilon=200,
            mechanism=mechanism,
            confidence=SURE,
        )
        (row,) = rows_of(answer)
        for name, truth in plain(table()[0]).items():
            assert row[f"{name}_low"] <= truth <= row[f"{name}_high"]
            assert row[name] == pytest.approx(truth, rel=0.02)
        assert row["n"] == pytest.approx(4000, abs=2)
        grouped = asked.sql(
            f"SELECT g, {EVERY} FROM t GROUP BY g", epsilon=2000, mechanism=mechanism
        )
        groups = rows_of(grouped)
        for row in groups[:2]:
            assert all(
                row[n] == pytest.approx(truth, rel=0.02)
                for n, truth in plain(table()[0], row["g"]).items()
            )
        empty = groups[2]  # no rows: nothing is seen to vary
        assert (empty["b"], empty["a"], empty["b_low"], empty["a_high"]) == (None,) * 4
        assert (empty["r_low"], empty["r_high"]) in ((None, None), (-1, 1))
        assert (empty["cp_low"], empty["cp_high"]) == (-60 * 310 / 4, 60 * 310 / 4)


def test_persons_are_scaled_down() -> None:
    with session("p", max_rows_per_group=2) as asked:
        (release,) = asked.preview("SELECT CORR(y, x) AS r, COUNT(*) AS n FROM t", epsilon=1).sums
        assert release.partial.width == 10
        assert release.sensitivity.l1 == release.unit * 2 * (60 * 310) ** 2
        (row,) = asked.sql("SELECT CORR(y, x) AS r, COUNT(*) AS n FROM t", epsilon=10**4).rows()
        counts = np.bincount(table("p")[0]["p"].to_numpy())
        assert row["n"] == pytest.approx(np.minimum(counts, 2).sum(), rel=0.01)
        assert row["r"] == pytest.approx(plain(table("p")[0])["r"], rel=0.03)


def test_one_release_answers_all_of_a_pair_and_a_covariance_alone_takes_less() -> None:
    with session() as asked:
        alone, both = (
            asked.preview(f"SELECT {what} FROM t", epsilon=1) for what in ("COVAR_POP(y, x)", EVERY)
        )
        assert [type(release.partial) for release in alone.sums] == [Covariance]
        assert [type(release.partial) for release in both.sums] == [Regression]
        exchanged = asked.preview(
            "SELECT REGR_SLOPE(y, x) AS a, REGR_SLOPE(x, y) AS b FROM t", epsilon=1
        )
        assert len(exchanged.sums) == 2


def test_sql_python_and_stored_texts_agree() -> None:
    with session() as asked:
        for sql, python in (
            ("COVAR_SAMP(y, x)", so.covariance("y", "x")),
            ("covar_pop(y, x)", so.covariance("y", "x", population=True)),
            ("CORR(y, x + 1)", so.correlation("y", so.col("x") + 1)),
            ("REGR_SLOPE(y, x)", so.slope("y", "x")),
            ("REGR_INTERCEPT(y, x)", so.intercept("y", "x")),
            ("REGR_R2(y, x) FILTER (WHERE x > 5)", so.r_squared("y", "x").where(so.col("x") > 5)),
        ):
            written = asked.preview(f"SELECT {sql} AS o FROM t", epsilon=1)
            assert written.query == asked.table("t").agg(o=python).query, sql
            assert written.sql() == asked.table("t").agg(o=python).preview(epsilon=1).sql()


def test_conditions_are_numbers_and_texts_are_refused() -> None:
    with session() as asked:
        row = asked.sql("SELECT REGR_SLOPE(y > 100, x) AS b FROM t", epsilon=10**4).rows()[0]
        kept = [r for r in table()[0].to_pylist() if r["x"] is not None and r["y"] is not None]
        assert row["b"] == pytest.approx(
            np.polyfit([r["x"] for r in kept], [r["y"] > 100 for r in kept], 1)[0], rel=0.01
        )
        for wrong in (
            "CORR(g, x)",
            "CORR(y)",
            "CORR(y, x, x)",
            "CORR(*)",
            "CORR(DISTINCT y, x)",
            "REGR_SLOPE(y, nothing)",
        ):
            with pytest.raises(InvalidInput):
                asked.preview(f"SELECT {wrong} AS o FROM t", epsilon=1)


def test_errors_have_prices_for_an_assumed_number_of_rows() -> None:
    with session() as asked:
        plan = asked.preview("SELECT REGR_SLOPE(y, x) AS b FROM t", error=0.2, rows=3000)
        width = asked.sql("SELECT REGR_SLOPE(y, x) AS b FROM t", error=0.2, rows=3000).interval("b")
        assert isinstance(width[0], float)
        assert isinstance(width[1], float)
        assert 0.2 < width[1] - width[0] < 0.6
        assert "3,000 rows" in str(plan)
        with pytest.raises(InvalidInput, match="depends on the data"):
            asked.preview("SELECT REGR_SLOPE(y, x) AS b FROM t", error=0.2)


def test_a_public_table_is_answered_exactly() -> None:
    rows = pa.table({"x": [1, 2, 3, None], "y": [2, 4, 6, 1], "z": [5, 5, 5, 5]})
    columns: dict[str, Any] = {name: {"type": "int", "min": 0, "max": 10} for name in "xyz"}
    protected = {"source": rows, "unit": "row", "columns": columns}
    public = {"source": rows, "public": True, "columns": columns}
    data = so.Dataset(tables={"t": protected, "p": public}, budget={"epsilon": 1})
    with so.Session(data) as asked:
        constant = "CORR(z, x) AS c, REGR_R2(z, x) AS one, REGR_SLOPE(x, z) AS no"
        (row,) = asked.sql(f"SELECT {EVERY}, {constant} FROM p", epsilon=1).rows()
        assert (row["c"], row["one"], row["no"]) == (None, 1, None)
        for name, value in {"cs": 2, "cp": 4 / 3, "r": 1, "r2": 1, "b": 2, "a": 0}.items():
            assert (
                row[name]
                == row[f"{name}_low"]
                == row[f"{name}_high"]
                == pytest.approx(value, abs=1e-12)
            )


def test_results_beyond_floats_are_refused_before_the_charge() -> None:
    sizes = {"tiny": 1e-200, "huge": 1e140}
    rows = pa.table({name: [0.0, size] for name, size in sizes.items()})
    columns = {
        name: {"type": "float", "min": 0, "max": size, "step": size / 8}
        for name, size in sizes.items()
    }
    with so.Session(
        so.Dataset(rows, name="t", unit="row", columns=columns, budget={"epsilon": 10})
    ) as asked:
        for wrong in ("COVAR_POP(tiny, tiny)", "REGR_SLOPE(tiny, huge)", "REGR_SLOPE(huge, tiny)"):
            with pytest.raises(InvalidInput, match="floats"):
                asked.sql(f"SELECT {wrong} AS o FROM t", epsilon=1)
        # nothing was spent before
        asked.sql("SELECT CORR(tiny, huge) AS o, COVAR_POP(tiny, huge) AS c FROM t", epsilon=10)


def test_counts_ride_along() -> None:
    grid = Grid(Fraction(1), 0, 10)
    for kind in KINDS:
        partial = kind("y and x", grid, grid).with_rows()
        assert partial.serves >= {ROWS, "covar_pop"}
        assert partial.weights(ROWS, 3) == (Fraction(1, 3 * partial.row),) * partial.width
