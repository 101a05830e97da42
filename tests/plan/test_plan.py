"""Plans: what is derived from the declaration, what it costs, and what is refused before anything is spent."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.charge import NOTHING
from sordino.accounting.filters import TwoMeterFilter
from sordino.engines.duckdb.dialect import write
from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.exponential import bounded_range
from sordino.mechanisms.key_selection import KeySelection
from sordino.plan import dialects
from sordino.plan.cost import Cost
from sordino.plan.dialects import register
from sordino.plan.plan import Plan, make_plan
from sordino.plan.sensitivity import WEIGHT, Sensitivity
from sordino.privacy.loss import largest_mu
from sordino.query import tree
from sordino.query.front.sql import parse

COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
    "age": {"type": "int", "min": 0, "max": 110},
    "cost": {"type": "float", "min": 0, "max": 5000, "step": 0.01},
    "balance": {"type": "int", "min": -50, "max": 20},
    "free": {"type": "int"},
    "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31"},
    "smoker": {"type": "bool"},
    "steps": {"type": "int", "min": 0, "max": 10, "nullable": False},
}
ROWS = pa.table({"pid": pa.array([1], pa.int64())})
REGIONS = {"source": pa.table({"ward": ["A"], "region": ["n"]}), "public": True, "key": ["ward"],
           "columns": {"ward": {"type": "category", "values": ["A", "B", "C"]},
                       "region": {"type": "category", "values": ["n", "s"]}}}  # fmt: skip


def dataset(unit: str = "pid", **options: Any) -> so.Dataset:
    bounds = {"max_rows_per_group": 10, "max_groups": 2} if unit != "row" else {}
    visits = {"source": ROWS, "unit": unit, "columns": COLUMNS, **bounds, **options}
    return so.Dataset(
        tables={"visits": visits, "regions": REGIONS},
        budget={"epsilon": 10, "delta": Fraction(1, 10**6)},
    )


def plan(
    sql: str, data: so.Dataset | None = None, meter: TwoMeterFilter | None = None, **cost: Any
) -> Plan:
    data = data or dataset()
    assert data.budget is not None
    meter = meter or TwoMeterFilter(data.budget, data.reserved_delta or Fraction(0))
    return make_plan(
        parse(sql), data, Cost.offered(**{"bias": False, **(cost or {"epsilon": 1})}), meter
    )


def norms(made: Plan, channel: int = 0) -> tuple[int | Fraction, int | Fraction, int | Fraction]:
    """L1, squared L2 and Linf in the answer's own units."""
    release = made.sums[channel]
    s, unit = release.sensitivity, release.partial.unit / release.unit
    assert s.l1 is not None
    return s.l1 * unit, s.l2_squared * unit**2, s.linf * unit


def noises(made: Plan) -> list[tuple[Any, Sensitivity]]:
    return [(release.mechanism, release.sensitivity) for release in made.sums]


def selected(made: Plan) -> KeySelection:
    assert made.selection is not None
    assert made.selection.mechanism is not None
    return made.selection.mechanism


@pytest.mark.parametrize(
    ("select", "l1", "l2_squared", "linf"),
    [
        ("COUNT(*) FROM visits", 10, 100, 10),
        ("COUNT(age) FROM visits", 10, 100, 10),
        ("COUNT(DISTINCT pid) FROM visits", 1, 1, 1),
        ("SUM(age) FROM visits", 1100, 1100**2, 1100),
        ("SUM(balance) FROM visits", 500, 500**2, 500),
        ("SUM(cost) FROM visits", 50_000, 50_000**2, 50_000),
        ("SUM(cost * steps) FROM visits", 500_000, 500_000**2, 500_000),
        ("SUM(-age) FROM visits", 1100, 1100**2, 1100),
        ("SUM(smoker) FROM visits", 10, 100, 10),
        ("AVG(age) FROM visits", 1100, 1100**2, 1100),
        ("COUNT(*) FROM visits GROUP BY ward", 20, 200, 10),
        ("COUNT(DISTINCT pid) FROM visits GROUP BY ward", 2, 2, 1),
        ("SUM(age) FROM visits GROUP BY ward", 2200, 2 * 1100**2, 1100),
        ("AVG(age) FROM visits GROUP BY ward", 2200, 2 * 1100**2, 1100),
        ("COUNT(*) FROM visits GROUP BY smoker", 20, 200, 10),
    ],
)
def test_sensitivities_follow_from_the_declaration(
    select: str, l1: int, l2_squared: int, linf: int
) -> None:
    assert norms(plan(f"SELECT {select}")) == (l1, l2_squared, linf)


@pytest.mark.parametrize(
    ("select", "l1", "l2_squared", "linf"),
    [
        ("COUNT(*) FROM visits WHERE age > 5", 10, 100, 10),
        ("SUM(balance) FROM visits WHERE age > 5", 700, 700**2, 700),
        ("SUM(age) FROM visits", 1100, 1100**2, 1100),
        # in whole steps, of which the sum has half ones
        ("AVG(age) FROM visits", 1100, 1100**2, 1100),
        ("COUNT(*) FROM visits GROUP BY ward", 40, 400, 10),
        ("SUM(balance) FROM visits GROUP BY ward", 2000, 4 * 2 * 500**2, 1000),
    ],
)
def test_sensitivities_of_replacing(select: str, l1: int, l2_squared: int, linf: int) -> None:
    assert norms(plan(f"SELECT {select}", dataset(neighbors="replace"))) == (l1, l2_squared, linf)


def test_a_row_is_a_person_without_bounding() -> None:
    made = plan("SELECT ward, COUNT(*), SUM(age) FROM visits GROUP BY ward", dataset("row"))
    assert [release.unit for release in made.sums] == [1]
    assert made.sums[0].partial.width == 3
    assert "LEAST" not in made.sql()
    assert made.sql().count("GROUP BY") == 1


def test_no_scaling_sql_where_groups_need_no_bound() -> None:
    assert '"spread"' in plan("SELECT ward, COUNT(*) FROM visits GROUP BY ward").sql()
    enough = dataset(max_groups=3)
    made = plan("SELECT ward, COUNT(*) FROM visits GROUP BY ward", enough)
    assert '"spread"' not in made.sql()
    assert [release.unit for release in made.sums] == [1]
    assert made.sums[0].quota.groups == 3
    assert '"spread"' not in plan("SELECT COUNT(*) FROM visits").sql()


def test_replacing_rows_knows_their_number() -> None:
    data = dataset("row", neighbors="replace")
    made = plan("SELECT COUNT(*), AVG(steps), SUM(steps) FROM visits", data)
    asked = [
        output.value for output in made.query.outputs if isinstance(output.value, tree.Aggregate)
    ]
    count, mean, total = map(made.answering, asked)
    assert count.public
    assert mean is total is made.sums[0]
    assert norms(made) == (10, 100, 10)
    assert made.charge.pure == 1
    nullable = plan("SELECT AVG(age) FROM visits", data)
    assert norms(nullable) == (110, 110**2, 110)
    filtered = plan("SELECT COUNT(*) FROM visits WHERE age > 3", data)
    assert norms(filtered) == (1, 1, 1)


@pytest.mark.parametrize(
    ("neighbors", "rest"),
    [
        ("add_remove", ""),
        ("replace", "WHERE age > 3"),
        ("replace", "GROUP BY ward"),
        ("replace", "JOIN regions ON visits.ward = regions.ward"),
    ],
)
def test_otherwise_the_number_of_rows_is_not_public(neighbors: str, rest: str) -> None:
    """Who is added, filtered, grouped or left without a partner changes how many rows there are."""
    made = plan(
        f"SELECT COUNT(*), AVG(steps), SUM(steps) FROM visits {rest}",
        dataset("row", neighbors=neighbors),
    )
    assert all(release.mechanism is not None for release in made.sums)
    for release in made.sums:
        assert release.partial.public(np.ones((1, release.partial.inputs), object)) is None


def test_a_count_of_values_is_never_public() -> None:
    """NULLs can occur in spite of the declaration, so COUNT(x) moves even if x is declared without them."""
    made = plan("SELECT COUNT(steps) FROM visits", dataset("row", neighbors="replace"))
    assert norms(made) == (1, 1, 1)
    assert made.sums[0].mechanism is not None


def test_aggregates_of_one_column_share_a_channel() -> None:
    made = plan(
        "SELECT COUNT(*), COUNT(age), SUM(age), AVG(age), STDDEV(age), VAR_POP(age) FROM visits"
    )
    assert len(made.sums) == 1
    assert made.sums[0].partial.width == 4
    assert made.charge.pure == 1
    assert norms(made)[0] == 10 * 110**2
    made = plan("SELECT COUNT(*) AS n, AVG(cost) AS c, AVG(age) AS a FROM visits")
    assert [release.partial.width for release in made.sums] == [3, 2]
    made = plan("SELECT MEDIAN(cost), QUANTILE(cost, 0.9), QUANTILE(age, 0.5) FROM visits")
    assert [release.column.draws.draws for release in made.drawn] == [2, 1]


def test_every_part_is_paid() -> None:
    sql = "SELECT city, COUNT(*), AVG(cost), MEDIAN(age) FROM visits GROUP BY city"
    made = plan(sql, epsilon=Fraction(3, 10))
    assert made.charge.pure == Fraction(3, 10)
    assert selected(made).epsilon == Fraction(1, 10)
    assert [drawn.epsilon for drawn in made.drawn] == [Fraction(1, 10)]
    assert 0 < made.charge.delta == selected(made).delta < Fraction(1, 2) * Fraction(1, 10**6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(5)])
def test_gaussian_noise_keeps_the_promise_of_the_answer(epsilon: Fraction) -> None:
    made = plan(
        "SELECT ward, COUNT(*), SUM(age), AVG(cost) FROM visits GROUP BY ward",
        epsilon=epsilon,
        mechanism="gaussian",
    )
    assert made.price.family == "gaussian"
    losses = [
        mechanism.loss(sensitivity.l2)
        for mechanism, sensitivity in noises(made)
        if mechanism is not None
    ]
    whole = so.total((loss, 1) for loss in losses)
    assert whole.delta(epsilon) <= float(made.price.delta)
    assert whole.delta(epsilon) >= 0.99 * float(made.price.delta)
    assert sum(loss.mu() ** 2 for loss in losses) <= float(made.charge.mu_squared or 0) * (
        1 + 1e-12
    )
    assert made.charge.pure is None


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("columns", ["COUNT(*)", "COUNT(*), COUNT(age), COUNT(cost), COUNT(day)"])
def test_gaussian_noise_keeps_the_promise_to_the_last_digit(
    epsilon: Fraction, columns: str
) -> None:
    """With one number, or four, no root is rounded: what is rounded is the mu itself, and then the charge."""
    made = plan(f"SELECT {columns} FROM visits", epsilon=epsilon, mechanism="gaussian")
    used = noises(made)
    losses = [
        so.GaussianLoss(s.l2 / mechanism.scale) for mechanism, s in used if mechanism is not None
    ]
    assert len(losses) in (1, 4)
    square = sum((loss.shift**2 for loss in losses), Fraction(0))
    assert square <= largest_mu(epsilon, made.price.delta) ** 2
    assert made.charge.mu_squared is not None
    assert square <= made.charge.mu_squared
    assert sum((loss.shift**2 / 2 for loss in losses), Fraction(0)) <= (made.charge.rho or 0)


def test_the_charge_is_never_below_that_of_its_parts() -> None:
    for family, epsilon in product(("laplace", "gaussian"), (Fraction(1, 7), Fraction(3))):
        sql = "SELECT city, SUM(age), AVG(cost), MEDIAN(age) FROM visits GROUP BY city"
        made = plan(sql, epsilon=epsilon, mechanism=family)
        parts = sum((so.Charge.of(loss) for loss in [r.loss for r in made.sums if r.loss]), NOTHING)
        for part in [drawn.epsilon for drawn in made.drawn]:
            parts += so.Charge(part, *bounded_range(part))
        parts += so.Charge.approximate(selected(made).epsilon, selected(made).delta)
        for charged, cost in zip(made.charge.meters, parts.meters, strict=True):
            assert (charged is None) == (cost is None)
            assert charged is None or cost is None or charged >= cost
        assert made.charge.delta == parts.delta


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_the_stated_delta_holds_all_of_it_and_stays_within_the_budget(family: str) -> None:
    """Gaussian noise uses what is not kept for keys; with the delta of the selection it is still the owner's delta."""
    data = dataset()
    made = plan(
        "SELECT city, SUM(age) FROM visits GROUP BY city", data, epsilon=1, mechanism=family
    )
    assert data.budget is not None
    assert data.reserved_delta
    noise = data.budget.delta - data.reserved_delta if family == "gaussian" else 0
    assert made.price.delta == noise + selected(made).delta
    assert made.price.delta <= data.budget.delta
    assert selected(made).delta <= data.reserved_delta


def test_laplace_noise_keeps_the_promise_of_the_answer() -> None:
    made = plan(
        "SELECT ward, COUNT(*), SUM(age), AVG(cost) FROM visits GROUP BY ward",
        epsilon=1,
        mechanism="laplace",
    )
    spent = Fraction(0)
    for mechanism, sensitivity in noises(made):
        assert mechanism is not None
        assert sensitivity.l1 is not None
        spent += sensitivity.l1 / mechanism.scale
    assert spent == made.charge.pure == 1
    assert made.price.delta == 0


def test_the_smaller_error_is_chosen() -> None:
    wide = dataset(max_groups=100)
    many = plan("SELECT age, COUNT(*) FROM visits GROUP BY age", wide)
    assert many.price.family == "gaussian"
    one = plan("SELECT COUNT(*) FROM visits", wide)
    assert one.price.family == "laplace"
    for sql in (
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
        "SELECT COUNT(*) AS n FROM visits",
    ):
        best = plan(sql, wide).errors()["n"]
        other = [
            plan(sql, wide, epsilon=1, mechanism=m).errors()["n"] for m in ("laplace", "gaussian")
        ]
        assert best == min(x for x in other if x is not None)


def test_what_still_fits_is_chosen() -> None:
    data = dataset(max_groups=1)
    meter = TwoMeterFilter(so.Budget(1, 1e-6)).spend(so.Charge.of(so.GaussianLoss(Fraction(1, 10))))
    made = plan("SELECT COUNT(*) FROM visits", data, meter, epsilon=Fraction(1, 2))
    assert made.price.family == "gaussian"
    assert "no longer fits" in made.note


def test_a_plan_says_that_it_does_not_fit() -> None:
    assert "DOES NOT FIT" in str(
        plan("SELECT COUNT(*) FROM visits", epsilon=11, mechanism="laplace")
    )
    assert "DOES NOT FIT" not in str(
        plan("SELECT COUNT(*) FROM visits", epsilon=9, mechanism="laplace")
    )


def test_price_from_accuracy_is_the_least() -> None:
    sql = "SELECT COUNT(*) AS n FROM visits"
    made = plan(sql, error=50)
    error = made.errors()["n"]
    assert error is not None
    assert error <= 50
    cheaper = plan(
        sql, epsilon=made.price.epsilon * Fraction(99, 100), mechanism=made.price.family
    ).errors()["n"]
    assert cheaper is not None
    assert cheaper > 50
    assert made.price.epsilon < plan(sql, error=25, mechanism=made.price.family).price.epsilon
    both = plan(
        "SELECT COUNT(*) AS n, AVG(age) AS a FROM visits", error={"n": 100, "a": 2}, rows=5000
    )
    assert all(
        e is not None and e <= most
        for e, most in zip(both.errors().values(), (100, 2), strict=True)
    )


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ({}, "epsilon or by the error"),
        ({"epsilon": 1, "error": 5}, "epsilon or by the error"),
        ({"epsilon": 0}, "greater than zero"),
        ({"epsilon": float("nan")}, "finite"),
        ({"epsilon": 1, "confidence": 1}, "between 0 and 1"),
        ({"epsilon": 1, "mechanism": "uniform"}, "two kinds of noise"),
        ({"error": -1}, "greater than zero"),
        ({"error": {"m": 1}}, "no such aggregate"),
    ],
)
def test_bad_offers_are_refused(cost: dict[str, Any], words: str) -> None:
    data = dataset()
    assert data.budget is not None
    with pytest.raises(InvalidInput, match=words):
        make_plan(
            parse("SELECT COUNT(*) AS n FROM visits"),
            data,
            Cost.offered(**cost),
            TwoMeterFilter(data.budget),
        )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM vists", "Did you mean 'visits'"),
        ("SELECT AVG(cots) FROM visits", "Did you mean 'cost'"),
        ("SELECT SUM(free) FROM visits", "Declare min and max"),
        ("SELECT free, COUNT(*) FROM visits GROUP BY free", "must be public"),
        ("SELECT COUNT(DISTINCT pid) FILTER (WHERE age > 3) FROM visits", "into WHERE"),
        ("SELECT SUM(ward) FROM visits", "needs a number"),
        ("SELECT AVG(pid) FROM visits", "COUNT\\(DISTINCT pid\\)"),
        ("SELECT COUNT(*) FROM visits WHERE age", "condition"),
        (
            "SELECT COUNT(*) FROM visits JOIN visits v ON visits.ward = v.ward",
            "joined on the person",
        ),
        (
            "SELECT COUNT(*) FROM regions LEFT JOIN visits ON regions.ward = visits.ward",
            "belong to nobody",
        ),
        ("SELECT COUNT(*) FROM visits JOIN regions ON visits.ward = regions.region", "whole key"),
        ("SELECT AVG(age) AS a FROM visits", "depends on the data"),
        ("SELECT AVG(cost) AS b FROM visits", "not even epsilon"),
        ("SELECT MEDIAN(age) AS a FROM visits", "depends on the data"),
    ],
)
def test_user_errors_are_clear(sql: str, words: str) -> None:
    cost = (
        {"error": 5}
        if " AS a " in sql
        else {"error": 1e-9, "rows": 1}
        if " AS b " in sql
        else {"epsilon": 1}
    )
    with pytest.raises(InvalidInput, match=words):
        plan(sql, **cost)


def test_undeclared_bounds_name_the_line_to_add() -> None:
    data = so.Dataset(ROWS, name="visits", unit="pid", columns=COLUMNS, budget={"epsilon": 1})
    with pytest.raises(
        InvalidInput,
        match=r"Add the line `max_rows = 10` under \[tables.visits\], or pass max_rows=10",
    ):
        plan("SELECT COUNT(*) FROM visits", data)
    assert plan("SELECT COUNT(DISTINCT pid) FROM visits", data).charge.pure == 1
    assert (
        plan("SELECT ward, COUNT(DISTINCT pid) FROM visits GROUP BY ward", data).sums[0].quota.total
        == 3
    )
    assert plan("SELECT COUNT(*) FROM visits", data, epsilon=1, max_rows=4).sums[0].quota.total == 4


def test_too_many_keys_are_refused() -> None:
    with pytest.raises(TooLarge, match="BUCKET"):
        plan("SELECT cost * steps AS x, COUNT(*) FROM visits GROUP BY x")
    with pytest.raises(TooLarge, match="combinations"):
        plan("SELECT cost, age, COUNT(*) FROM visits GROUP BY cost, age")


def test_private_keys_need_a_delta() -> None:
    pure = so.Dataset(
        ROWS,
        name="visits",
        unit="pid",
        max_rows_per_group=1,
        max_groups=1,
        columns=COLUMNS,
        budget={"epsilon": 1},
    )
    with pytest.raises(InvalidInput, match="key_delta"):
        plan("SELECT city, COUNT(*) FROM visits GROUP BY city", pure)
    with pytest.raises(InvalidInput, match="needs a delta"):
        plan("SELECT COUNT(*) FROM visits", pure, epsilon=1, mechanism="gaussian")


def test_public_tables_cost_nothing() -> None:
    made = plan("SELECT region, COUNT(*), AVG(ward = 'A') FROM regions GROUP BY region")
    assert made.charge == so.Charge(Fraction(0), Fraction(0), Fraction(0))
    assert "nobody" in str(made)


def test_a_part_of_a_key_finds_no_row() -> None:
    """Two rows of the public table may share it, and each would count."""
    pairs = {**REGIONS, "key": ["ward", "region"]}
    visits = {"source": ROWS, "unit": "row", "columns": COLUMNS}
    data = so.Dataset(tables={"visits": visits, "regions": pairs}, budget={"epsilon": 10})
    sql = "SELECT region, COUNT(*) FROM visits JOIN regions ON visits.ward = regions.ward GROUP BY region"
    with pytest.raises(InvalidInput, match="whole key"):
        plan(sql, data)


def test_a_lookup_finds_at_most_one_row() -> None:
    """Whole keys compared as floats could meet several public rows."""
    ids = {"source": pa.table({"id": [2**53 - 1, 2**53]}), "public": True, "key": ["id"],
           "columns": {"id": {"type": "int", "min": 0, "max": 2**53}}}  # fmt: skip
    for private in ({"type": "int"}, {"type": "float"}):
        rows = {"source": pa.table({"x": [2**60]}), "unit": "row", "columns": {"x": private}}
        data = so.Dataset(tables={"t": rows, "ids": ids}, budget=so.Budget(1))
        with pytest.raises(InvalidInput, match="as int with min and max"):
            plan("SELECT COUNT(*) FROM t JOIN ids ON t.x = ids.id", data)


def test_a_person_in_many_groups_has_no_l1_under_gaussian_noise() -> None:
    sql = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    assert plan(sql, epsilon=1, mechanism="gaussian").sums[0].sensitivity.l1 is None
    assert "L1 any" in str(plan(sql, epsilon=1, mechanism="gaussian"))
    assert plan(sql, epsilon=1, mechanism="laplace").sums[0].sensitivity.l1 is not None


def test_key_selection_weights_count_persons() -> None:
    made = plan("SELECT city, COUNT(*) FROM visits GROUP BY city")
    assert (selected(made).l1, selected(made).linf) == (WEIGHT, WEIGHT)
    swapped = plan("SELECT city, COUNT(*) FROM visits GROUP BY city", dataset(neighbors="replace"))
    assert (selected(swapped).l1, selected(swapped).linf) == (2 * WEIGHT, WEIGHT)
    rows = plan("SELECT city, COUNT(*) FROM visits GROUP BY city", dataset("row"))
    assert (selected(rows).l1, selected(rows).linf) == (1, 1)


def test_the_plan_says_what_matters() -> None:
    sql = "SELECT city, COUNT(*) AS n, AVG(cost) AS c, MEDIAN(age) AS m FROM visits GROUP BY city"
    text = " ".join(str(plan(sql)).split())  # long lines are folded
    said: tuple[str, ...] = (
        "each pid",
        "added or removed",
        "10 rows",
        "2 groups",
        "L1",
        "L2",
        "Linf",
        "Laplace, scale",
        "± ",
    )
    said += (
        "private keys",
        "persons on",
        "epsilon 1",
        "% of the budget",
        "rank within",
        "depends on the number of rows",
    )
    for words in said:
        assert words in text


def test_generated_sql_has_no_randomness_and_no_user_text() -> None:
    made = plan("SELECT ward, COUNT(*) FROM visits WHERE city LIKE 'x''y%' GROUP BY ward")
    sql = made.sql().casefold()
    assert "random" not in sql
    assert "'x''y%'" in sql


def test_dialects_that_no_engine_runs_are_refused() -> None:
    """A TRY_CAST, which is NULL where a cell does not convert, was written as a CAST, which fails there."""
    made = plan("SELECT ward, SUM(age) FROM visits GROUP BY ward")
    for dialect in ("mysql", "sqlite", "", "DUCKDB", "no such"):
        with pytest.raises(InvalidInput, match="no engine runs this dialect") as caught:
            made.sql(dialect)
        assert "duckdb" in caught.value.hint


def test_an_engine_brings_its_dialect() -> None:
    register("shouting", lambda tree, *, pretty=False: write(tree, pretty=pretty).upper())
    try:
        shouted = plan("SELECT ward, SUM(age) FROM visits GROUP BY ward").sql("shouting")
        assert shouted.startswith("WITH")
        assert "\n" in shouted
        assert shouted.isupper()
    finally:
        dialects._writers.pop("shouting")


@pytest.mark.parametrize("text", ["__SQLGLOT__LB__", "a\nb", "a__SQLGLOT__LB__b\n"])
def test_texts_reach_the_engine_as_they_were_written(text: str) -> None:
    """sqlglot breaks lines with a placeholder that a text may hold."""
    rows = pa.table({"t": [text] * 3 + ["x"] * 2})
    data = so.Dataset(rows, unit="row", columns={"t": {"type": "text"}}, budget=so.Budget(1000))
    with so.Session(data) as session:
        question = session.table("data").where(so.col("t") == text).agg(n=so.count())
        assert question.run(epsilon=500).value("n") == 3
        assert text in question.preview(epsilon=1).sql()
