"""Marginals in a session: exact counts, tables that agree, honest intervals,
one charge, refusals before it; and by SQL.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import BudgetExceeded, InvalidInput, RequestRefused, TooLarge
from sordino.mechanisms.observer import watching
from sordino.plan.sensitivity import WEIGHT
from sordino.workloads.counts import summed
from sordino.workloads.marginals import Marginals
from sordino.workloads.plan import MarginalsPlan, plan_workload
from sordino.workloads.release import exact_contrasts, noise_of, release_marginals

RNG = np.random.default_rng(20)
N = 3000
ROWS: dict[str, list[Any]] = {
    "p": (np.arange(N) // 3).tolist(),
    "age": RNG.integers(0, 110, N).tolist(),
    "sex": [("m", "f", None, "?")[i] for i in RNG.choice(4, N, p=[0.45, 0.45, 0.06, 0.04])],
    "ok": RNG.choice([True, False], N).tolist(),
    "day": [date(2024, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 90, N)],
}
COLUMNS: dict[str, Any] = {
    "age": {"type": "int", "min": 0, "max": 109, "nullable": False},
    "sex": {"type": "category", "values": ["m", "f"]},
    "ok": {"type": "bool", "nullable": False},
    "day": {"type": "date", "min": date(2024, 1, 1), "max": date(2024, 3, 31), "nullable": False},
}
ASKED: dict[str, Any] = {
    "age": so.bucket("age", 20),
    "sex": "sex",
    "ok": "ok",
    "month": so.date_trunc("month", "day"),
}


def dataset(unit: str = "row", rows: dict[str, list[Any]] = ROWS, **more: Any) -> so.Dataset:
    bounds: dict[str, Any] = {} if unit == "row" else {"max_rows": 2}
    return so.Dataset(
        pa.table(rows), unit=unit, columns=COLUMNS, budget=so.Budget(50, 1e-6), **{**bounds, **more}
    )


def plan_of(data: so.Dataset, **asked: Any) -> MarginalsPlan:
    from sordino.accounting.filters import TwoMeterFilter

    assert data.budget is not None
    return plan_workload(
        data, TwoMeterFilter(data.budget), asked.pop("columns", ASKED), **{"epsilon": 1, **asked}
    )


@pytest.fixture(scope="module")
def session() -> Iterator[so.Session]:
    with so.Session(dataset()) as opened:
        yield opened


def reference(
    rows: dict[str, list[Any]], table: tuple[str, ...], most: int | None, added: str | None = None
) -> Counter[tuple[Any, ...]]:
    """The counts, or the sums of a column, in plain Python, in units of 1/WEIGHT where persons are bounded."""

    def value(line: dict[str, Any], name: str) -> Any:
        sex = line["sex"] if line["sex"] in ("m", "f") else None
        return {
            "age": line["age"] // 20 * 20,
            "sex": sex,
            "ok": line["ok"],
            "month": line["day"].replace(day=1),
        }[name]

    lines = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
    owned = Counter(line["p"] for line in lines)
    found: Counter[tuple[Any, ...]] = Counter()
    for line in lines:
        n = owned[line["p"]]
        weight = 1 if most is None else WEIGHT if n <= most else WEIGHT * most // n
        found[tuple(value(line, name) for name in table)] += weight * (
            1 if added is None else line[added] or 0
        )
    return found


@pytest.mark.parametrize("unit", ["row", "p"])
def test_counts_of_the_engine_are_exact(unit: str) -> None:
    """One statement counts all tables; NULL and unlisted values have a cell of their own; persons are scaled down."""
    data = dataset(unit)
    plan = plan_of(data, tables=[["age", "sex"], ["sex", "ok", "month"]])
    assert len(plan.statements) == 1
    with so.Session(data) as opened:
        counts = plan.counting.counts(opened._engine.run(plan.statements[0]))
    for places, cells in counts.items():
        names = tuple(plan.columns[i].name for i in places)
        expected = reference(ROWS, names, None if unit == "row" else 2)
        keys = list(itertools.product(*(plan.columns[i].values for i in places)))
        assert cells.ravel().tolist() == [expected[key] for key in keys]
    assert summed(counts, (1,)).tolist() == counts[(0, 1)].sum(axis=0).tolist()


SCORES = [None if x == 9 else float(x) for x in RNG.integers(-30, 90, N)]


def scored(unit: str = "row", rows: dict[str, list[Any]] | None = None, **more: Any) -> so.Dataset:
    """The same rows with a number that may be negative or missing."""
    columns = {**COLUMNS, "score": {"type": "float", "min": -30, "max": 90, "step": 0.5}}
    bounds: dict[str, Any] = {} if unit == "row" else {"max_rows": 2}
    table = pa.table(rows or {**ROWS, "score": SCORES})
    return so.Dataset(
        table, unit=unit, columns=columns, budget=so.Budget(50, 1e-6), **{**bounds, **more}
    )


@pytest.mark.parametrize("unit", ["row", "p"])
def test_sums_of_the_engine_are_exact(unit: str) -> None:
    data = scored(unit)
    plan = plan_of(data, tables=[["age", "sex"], ["ok"]], sum="score")
    with so.Session(data) as opened:
        counts = plan.counting.counts(opened._engine.run(plan.statements[0]))
    for places, cells in counts.items():
        names = tuple(plan.columns[i].name for i in places)
        expected = reference(
            {**ROWS, "score": SCORES}, names, None if unit == "row" else 2, "score"
        )
        keys = list(itertools.product(*(plan.columns[i].values for i in places)))
        assert cells.ravel().tolist() == [2 * expected[key] for key in keys]


def test_sums_agree_and_their_intervals_hold() -> None:
    with so.Session(scored()) as opened:
        assert "sums         score" in str(
            opened.preview_marginals(["sex", "ok"], ways=2, epsilon=9, sum="score")
        )
        found = opened.marginals(["sex", "ok"], ways=2, epsilon=9, sum="score")
        assert (found["sex", "ok"].fractions.sum(axis=1) == found["sex"].fractions).all()
        counted = opened.marginals(["sex", "ok"], ways=2, epsilon=9)
        assert found["sex"].variance == pytest.approx(
            float(counted["sex"].variance) * 90**2, rel=1e-9
        )
        truth = reference({**ROWS, "score": SCORES}, ("ok",), None, "score")
        assert all(abs(x - truth[ok,]) < 2.5 * found["ok"].half_width for x, ok in zip(found["ok"].values, [False, True],
                                                                                      strict=True))  # fmt: skip
        again = Marginals.from_json(found.to_json())
        assert again.to_json() == found.to_json()
        assert again["sex"].fractions.tolist() == found["sex"].fractions.tolist()
        assert found["sex"].to_arrow().column_names == ["sex", "total", "total_low", "total_high"]
        cube = opened.sql(
            "SELECT ok, SUM(score) AS s FROM data GROUP BY CUBE (ok)", epsilon=9
        ).to_dict()
        assert cube["s"][cube["ok"].index(None)] == pytest.approx(sum(truth.values()), abs=3000)
        with pytest.raises(InvalidInput, match="sums are not counts"):
            found.rounded()
        left = opened.remaining
        for words, asked in (("number or a condition", {"sum": "sex"}), ("public totals", {"sum": "score", "facts": {
            "ok": {True: 1, False: 2}}}), ("no such column", {"sum": "scor"})):  # fmt: skip
            with pytest.raises(InvalidInput, match=words):
                opened.marginals(["ok"], ways=1, epsilon=1, **asked)
        for query, words in (
            ("SUM(score), COUNT(*)", "these are several"),
            ("AVG(score)", "nothing else"),
        ):
            with pytest.raises(InvalidInput, match=words):
                opened.sql(f"SELECT ok, {query} FROM data GROUP BY CUBE (ok)", epsilon=1)
        assert opened.remaining == left
    with so.Session(scored(neighbors="replace")) as replaced:
        with pytest.raises(InvalidInput, match="from 0 on where persons are replaced"):
            replaced.marginals(["ok"], ways=1, epsilon=1, sum="score")
        replaced.marginals(["ok"], ways=1, epsilon=1, sum=so.greatest("score", 0))


def test_a_place_beyond_its_column_counts_nowhere() -> None:
    """Whatever the SQL of a place might yield, no row is in two cells of one table, or in the cell of another one."""
    from dataclasses import replace

    from sqlglot import parse_one

    from sordino.workloads.counts import counting
    from sordino.workloads.plan import rows_of

    data = dataset()
    plan = plan_of(data, ways=2)
    rows, _ = rows_of(data, None)
    for wrong in ("7", "-1", "CAST(NULL AS BIGINT)"):
        columns = (replace(plan.columns[0], place=parse_one(wrong)), *plan.columns[1:])
        broken = counting(rows, columns, plan.counting.tables, 1)
        with so.Session(data) as opened:
            assert all(
                not cells.any()
                for cells in broken.counts(opened._engine.run(broken.statement)).values()
            )


def test_tables_agree_as_whole_numbers_and_as_floats(session: so.Session) -> None:
    found = session.marginals(ASKED, ways=2, epsilon=1)
    assert len(found) == 6
    for one, other in itertools.permutations(found.names, 2):
        pair = found[one, other]
        axis = pair.names.index(other)
        assert np.array_equal(pair.cells.sum(axis=axis), found[one].cells)
        assert np.array_equal(pair.values.sum(axis=axis), found[one].values)
        assert (pair.fractions.sum(axis=axis) == found[one].fractions).all()
        assert pair.cells.sum() == found.total.cells
    assert any(cell.denominator > 1 for cell in found["sex"].fractions)
    again = Marginals.from_json(found.to_json(), found.receipt)
    assert again.to_json() == found.to_json()
    assert again["age", "sex"].half_width == found["age", "sex"].half_width
    assert "agree" in str(found)
    assert found["age", "sex"].to_arrow().column_names == ["age", "sex", "n", "n_low", "n_high"]


def test_variance_is_exact_and_intervals_cover() -> None:
    """Many releases of the same counts: mean squared errors are the claimed variances, and 95 % of intervals hold.

    A claim that is 10 % off would be noticed: the errors of 400 releases of 33 cells and more are known to 2 %.
    """
    plan = plan_of(dataset(), tables=[["age", "sex"], ["age", "ok"]], ranges=["age"])
    counts: dict[tuple[int, ...], Any] = {
        (0, 1): RNG.integers(0, 900, (6, 3)),
        (0, 2): np.zeros((6, 2), np.int64),
    }
    counts[(0, 2)] = np.stack([counts[(0, 1)].sum(axis=1) - 7, np.full(6, 7)], axis=1)
    noise, exact = noise_of(plan), exact_contrasts(plan, counts)
    from sordino.workloads.release import _published

    errors: dict[tuple[int, ...], list[np.ndarray]] = {(0, 1): [], (0, 2): [], (0,): [], (): []}
    ranges, inside = [], 0
    for _ in range(400):
        found = plan.answered(_published(plan, noise.release(exact)))
        for table, all_ in errors.items():
            all_.append(found.at(table).values - summed(counts, table))
        span = found["age"].range(age=(20, 60))
        truth = counts[(0, 1)][1:4].sum()
        ranges.append(span.value[0] - truth)
        inside += bool(span.low[0] <= truth <= span.high[0])
    for table, all_ in errors.items():
        square = np.square(all_)
        claimed = float(plan.example.at(table).variance)
        worst = square.mean(axis=0).max() if table else square.mean()
        assert 0.75 * claimed < worst < 1.35 * claimed
        held = (np.abs(all_) <= plan.example.at(table).half_width).mean()
        assert held > 0.9
        assert np.abs(np.mean(all_, axis=0)).max() < 5 * math.sqrt(claimed / 400)
    assert inside / 400 > 0.91
    deviation = plan.example["age"].range(age=(20, 60)).half_width[0] / 1.96
    assert 0.85 < np.std(ranges) / deviation < 1.15


@pytest.mark.parametrize("unit", ["row", "p"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("added", ["rows", "score"])
def test_neighbours_cost_no_more_than_is_charged(unit: str, neighbors: str, added: str) -> None:
    """Replay: the exact contrasts of D and D' are at most mu of the charge apart; the largest distance is near it."""
    rng, nearest = random.Random(f"{unit} {neighbors}"), 0.0
    for trial in range(6):
        size = 30
        rows: dict[str, list[Any]] = {
            "p": [rng.randrange(8) for _ in range(size)],
            "age": [rng.choice([5, 50, 109]) for _ in range(size)],
            "sex": [rng.choice(["m", "f", None]) for _ in range(size)],
            "ok": [rng.random() < 0.5 for _ in range(size)],
            "day": [date(2024, 1, 1)] * size,
            "score": [rng.choice([90.0, 90.0, -30.0, None]) for _ in range(size)],
        }
        whole = dict(rows, p=list(range(size))) if unit == "row" else rows
        person = rng.choice(whole["p"])
        kept = [i for i in range(size) if whole["p"][i] != person]
        other = {name: [cells[i] for i in kept] for name, cells in whole.items()}
        if neighbors == "replace":
            moved = rng.randrange(1, 2 if unit == "row" else 5)
            extra = {
                "p": person,
                "age": 20,
                "sex": "f",
                "ok": True,
                "day": date(2024, 3, 1),
                "score": 90.0,
            }
            other = {name: cells + [extra[name]] * moved for name, cells in other.items()}
        asked: dict[str, Any] = {"ways": 2} if trial % 2 else {"ways": 3, "ranges": ["age"]}
        if added == "score":
            asked["sum"] = "score" if neighbors == "add_remove" else so.greatest("score", 0)
        found = []
        for data in (
            scored(unit, whole, neighbors=neighbors),
            scored(unit, other, neighbors=neighbors),
        ):
            plan = plan_of(data, **asked)
            with so.Session(data) as opened:
                counts = plan.counting.counts(opened._engine.run(plan.statements[0]))
            found.append(exact_contrasts(plan, counts).astype(object))
        apart = noise_of(plan).mu_squared(found[0] - found[1])
        assert plan.charge.mu_squared is not None
        assert apart <= plan.charge.mu_squared
        nearest = max(nearest, float(apart / plan.charge.mu_squared))
    assert nearest > (0.85 if unit == "row" and neighbors == "add_remove" else 0.1)


def test_the_auditor_replays_it() -> None:
    """Record on D, replay on D': one call, no further apart than declared; a wrong declaration is noticed."""

    def counted(rows: list[int]) -> Any:
        data = so.Dataset(
            pa.table({"a": pa.array([r % 3 for r in rows], pa.int64()), "b": pa.array([r % 2 for r in rows], pa.int64())}),
            unit="row", budget=so.Budget(1, 1e-6),
            columns={name: {"type": "int", "min": 0, "max": 2, "nullable": False} for name in "ab"},
        )  # fmt: skip
        with so.Session(data) as opened:
            return opened.marginals(["a", "b"], ways=2, epsilon=1, request_id="x")[
                "a", "b"
            ].cells.tolist()

    report = so.audit.replay(counted, [1, 2, 3, 4], [1, 2, 3], epsilon=1, delta=1e-6)
    assert report.passed, str(report)
    broken = so.audit.replay(counted, [1, 2, 3, 4], [1, 2], epsilon=1, delta=1e-6)
    assert not broken.passed


def test_it_is_charged_once_and_given_again() -> None:
    with so.Session(dataset()) as opened:
        first = opened.marginals(["sex", "ok"], ways=1, epsilon=1, request_id="mine")
        left = opened.remaining
        again = opened.marginals(["sex", "ok"], ways=1, epsilon=1, request_id="mine")
        assert again.to_json() == first.to_json()
        assert opened.remaining == left
        assert first.receipt is not None
        assert first.receipt.charge.mu_squared is not None
        with pytest.raises(RequestRefused):
            opened.marginals(["sex"], ways=1, epsilon=1, request_id="mine")
        with pytest.raises(BudgetExceeded):
            opened.marginals(["sex"], ways=1, epsilon=60)


def test_preview_tells_the_errors_that_come(session: so.Session) -> None:
    plan = session.preview_marginals(ASKED, ways=2, epsilon=1)
    left = session.remaining
    found = session.marginals(ASKED, ways=2, epsilon=1)
    assert session.remaining != left
    assert plan.errors() == {table.names: table.half_width for table in found}
    assert "one pass" in str(plan)


def test_weights_move_the_noise(session: so.Session) -> None:
    plain = session.preview_marginals(["sex", "ok"], tables=[["sex"], ["ok"]], epsilon=1).errors()
    moved = session.preview_marginals(
        ["sex", "ok"], tables=[["sex"], ["ok"]], epsilon=1, weights={"sex": 50}
    ).errors()
    assert moved[("sex",)] < plain[("sex",)]
    assert moved[("ok",)] > plain[("ok",)]
    cells = session.preview_marginals(
        ASKED, ways=2, epsilon=1, weights=lambda names, size: size
    ).errors()
    assert (
        cells[("age", "month")]
        < session.preview_marginals(ASKED, ways=2, epsilon=1).errors()[("age", "month")]
    )


def test_sql_sets_are_one_workload(session: so.Session) -> None:
    query = "SELECT BUCKET(age, 20) AS a, sex, ok, COUNT(*) AS n FROM data GROUP BY {} "
    cube: dict[str, Any] = session.sql(query.format("CUBE (a, sex, ok)"), epsilon=2).to_dict()
    assert len(cube["n"]) == (6 + 1) * (2 + 1) * (2 + 1)
    by = {
        (a, s, o): n
        for a, s, o, n in zip(cube["a"], cube["sex"], cube["ok"], cube["n"], strict=True)
    }
    for sex in ("m", "f", None):
        assert by[None, sex, None] == by[None, sex, True] + by[None, sex, False]
        assert by[None, sex, None] == sum(by[a, sex, None] for a in range(0, 120, 20))
    truth = reference(ROWS, ("sex",), None)
    assert abs(by[None, "m", None] - truth["m",]) < 30
    rolled = session.sql(query.format("ROLLUP (a, sex), ok"), epsilon=2).to_dict()
    assert len(rolled["n"]) == (6 * 2 + 6 + 1) * 2
    sets = session.sql(
        "SELECT sex, COUNT(*) AS n FROM data GROUP BY GROUPING SETS ((sex), ()) ORDER BY n DESC",
        epsilon=1,
    )
    assert sets.to_dict()["sex"][0] is None
    preview = session.preview(query.format("CUBE (a, sex), ok"), epsilon=1)
    error = preview.errors()["n"]
    assert error is not None
    assert error > 0
    assert "GROUP BY" in preview.sql()
    assert session.fits(query.format("CUBE (a, sex), ok"), epsilon=1) > 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"ways": 5}, "number of columns, here 4"),
        ({"ways": 2, "tables": [["sex"]]}, "either"),
        ({}, "either"),
        ({"tables": [["sex", "sex"]]}, "twice"),
        ({"tables": [["six"]]}, "Did you mean 'sex'"),
        ({"tables": [5]}, "named by a text"),
        ({"tables": [[5]]}, "named by a text"),
        ({"ways": 1, "weights": {5: 1}}, "named by a text"),
        ({"ways": 1, "weights": {"sex": -1}}, "weight"),
        ({"ways": 1, "weights": {("sex", "ok"): 1}}, "no such table"),
        ({"ways": 1, "ranges": ["sex"]}, "NULL has no neighbours"),
        ({"ways": 1, "ranges": "age"}, "list of columns"),
        ({"ways": 1, "ranges": ["nothing"]}, "columns of the workload"),
        ({"ways": 1, "columns": []}, "needs a column"),
        ({"ways": 1, "columns": "age"}, "a list"),
        ({"ways": 1, "columns": ["city"]}, "no such column"),
        ({"ways": 1, "epsilon": 0}, "epsilon"),
        ({"ways": 1, "unknown": 0}, "no such argument"),
        ({"ways": 1, "table": "other"}, "no such table"),
        ({"ways": 1, "columns": ["age", "age"]}, "twice"),
        ({"ways": 1, "columns": {"a": "age", "A": "sex"}}, "upper and lower case"),
        ({"ways": 1, "columns": ["age", "AGE"]}, "twice"),
        ({"ways": 1, "columns": {"": "age"}}, "has a name"),
        ({"ways": 1, "columns": {5: "age"}}, "has a name"),
        ({"ways": 1, "weights": lambda names: 1.0}, "it failed for"),
    ],
)
def test_refused_before_anything_is_spent(
    session: so.Session, asked: dict[str, Any], words: str
) -> None:
    left = session.remaining
    columns = asked.pop("columns", ASKED)
    with pytest.raises(InvalidInput, match=words):
        session.marginals(columns, **{"epsilon": 1, **asked})
    assert session.remaining == left


def test_a_range_and_a_table_are_named_rightly_or_refused(session: so.Session) -> None:
    table = session.marginals(["sex", "ok"], ways=1, epsilon=1)["sex"]
    wrong: tuple[tuple[Any, str], ...] = (
        (("f", "m"), "comes before"),
        ("mf", "a first and a last"),
        ((1, 2, 3), "a first and a last"),
        (5, "a first and a last"),
        (("m", ["f"]), "not a value"),
    )
    for ends, words in wrong:
        with pytest.raises(InvalidInput, match=words):
            table.range(sex=ends)
    for key in (0, ("sex", 0), None):
        with pytest.raises(InvalidInput, match="named by a text"):
            table.answer[key]  # type: ignore[index]


def test_a_table_may_be_named_like_a_word_of_sql() -> None:
    column: dict[str, Any] = {"a": {"type": "category", "values": ["x", "y"], "nullable": False}}
    data = so.Dataset(
        pa.table({"a": ["x"] * 50}), name="selection", unit="row", columns=column,
        budget=so.Budget(9, 1e-6),
    )  # fmt: skip
    with so.Session(data) as session:
        assert session.marginals(["a"], ways=1, epsilon=2, table="selection")["a"].values.size == 2
        assert len(session.synthesize("selection", epsilon=2, rows=3)) == 3
        with pytest.raises(InvalidInput, match="need a key"):
            session.sql(
                "SELECT COUNT(*) AS n FROM selection GROUP BY GROUPING SETS (())", epsilon=1
            )


def test_what_is_not_public_or_too_large_is_refused() -> None:
    table = pa.table({"t": ["x"], "n": [1], "m": [1.5]})
    columns: dict[str, Any] = {
        "t": {"type": "text"}, "n": {"type": "int", "min": 0, "max": 4000}, "m": {"type": "int", "min": 0, "max": 10**6},
    }  # fmt: skip
    data = so.Dataset(table, unit="row", columns=columns, budget=so.Budget(1, 1e-6))
    with so.Session(data) as opened:
        with pytest.raises(InvalidInput, match="category"):
            opened.marginals(["t"], ways=1, epsilon=1)
        with pytest.raises(TooLarge, match=r"BUCKET\(m, 100000\)"):
            opened.marginals(["m"], ways=1, epsilon=1)
        with pytest.raises(TooLarge, match=r"BUCKET\(m, 100000\)"):
            opened.marginals({"short": so.bucket("m", 10)}, ways=1, epsilon=1)
        with pytest.raises(TooLarge, match="Put n, which has 4,002 values"):
            opened.marginals(
                {"n": "n", "k": so.bucket("m", 250), "j": so.bucket("n", 1000)}, ways=3, epsilon=1
            )
        with pytest.raises(InvalidInput, match="COUNT"):
            opened.sql("SELECT n, AVG(n) FROM data GROUP BY CUBE (n)", epsilon=1)
    with so.Session(so.Dataset(table, unit="row", columns=columns, budget=so.Budget(1))) as pure, pytest.raises(
        InvalidInput, match="delta"
    ):  # fmt: skip
        pure.marginals(["n"], ways=1, epsilon=1)
    people = so.Dataset(pa.table(ROWS), unit="p", columns=COLUMNS, budget=so.Budget(1, 1e-6))
    with so.Session(people) as unbounded, pytest.raises(InvalidInput, match="max_rows"):
        unbounded.marginals(["ok"], ways=1, epsilon=1)


def test_empty_and_huge_data() -> None:
    nothing = {
        name: pa.array(cells[:0], pa.table(ROWS).schema.field(name).type)
        for name, cells in ROWS.items()
    }
    data = so.Dataset(pa.table(nothing), unit="row", columns=COLUMNS, budget=so.Budget(5, 1e-6))
    with so.Session(data) as opened:
        found = opened.marginals(ASKED, ways=2, epsilon=1)
        assert abs(found.total.values) < 200
    plan = plan_of(dataset(), ways=2)
    from sordino.engines.engine import Exact

    starts = np.cumsum([0, *(math.prod(shape) for shape in plan.counting.shapes)])[:-1].tolist()
    exact = Exact((starts,), np.array([[2**55]] * len(starts), object))
    with watching(None):
        huge = release_marginals(exact, plan)
    assert huge["age", "sex"].cells.sum(axis=1).tolist() == huge["age"].cells.tolist()
    assert abs(float(huge["age"].values[0]) / 2**55 - 1) < 1e-6


def test_one_value_needs_no_noise_of_its_own(session: so.Session) -> None:
    found = session.marginals({"all": so.bucket("age", 1000), "sex": "sex"}, ways=2, epsilon=1)
    assert np.array_equal(found["all", "sex"].cells[0], found["sex"].cells)
    assert found["all", "sex"].variance == found["sex"].variance
    assert isinstance(found["sex"].variance, Fraction)
