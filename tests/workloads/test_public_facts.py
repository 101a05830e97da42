"""Public facts: known tables cost nothing and stay exact, impossible cells are zero, contradictions are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput
from sordino.workloads.consistent import estimates, residual
from sordino.workloads.counts import summed
from sordino.workloads.marginals import Marginals
from sordino.workloads.plan import MarginalsPlan, plan_workload
from sordino.workloads.release import _published, exact_contrasts, noise_of

RNG = np.random.default_rng(9)
N = 2000
SEX = RNG.choice(["m", "f"], N)
ROWS = {
    "sex": SEX,
    "pregnant": (SEX == "f") & (RNG.random(N) < 0.1),
    "region": RNG.choice(list("NSW"), N),
    "again": np.empty(N, dtype="<U1"),
}
ROWS["again"] = ROWS["region"]
COLUMNS: dict[str, Any] = {
    "sex": {"type": "category", "values": ["m", "f"], "nullable": False},
    "pregnant": {"type": "bool", "nullable": False},
    "region": {"type": "category", "values": ["N", "S", "W"], "nullable": False},
    "again": {"type": "category", "values": ["N", "S", "W"], "nullable": False},
}
REGIONS = {name: int((ROWS["region"] == name).sum()) for name in "NSW"}
NAMES = ["sex", "pregnant", "region"]
PAIRS = [(s, r) for s in "mf" for r in "NSW"]


def dataset() -> so.Dataset:
    return so.Dataset(pa.table(ROWS), unit="row", columns=COLUMNS, budget=so.Budget(40, 1e-6))


def plan_of(**asked: Any) -> MarginalsPlan:
    data = dataset()
    assert data.budget is not None
    return plan_workload(
        data, TwoMeterFilter(data.budget), asked.pop("columns", NAMES), **{"epsilon": 1, **asked}
    )


def test_known_tables_are_exact_and_all_of_the_price_goes_to_the_others() -> None:
    plain, told = plan_of(ways=2), plan_of(ways=2, facts={"region": REGIONS})
    assert told.charge == plain.charge or told.charge.mu_squared is not None
    assert told.example["region"].variance == 0
    assert told.example["sex", "region"].variance < plain.example["sex", "region"].variance
    assert told.example["sex", "pregnant"].variance < plain.example["sex", "pregnant"].variance
    with so.Session(dataset()) as session:
        found = session.marginals(NAMES, ways=2, epsilon=1, facts={"region": REGIONS})
        assert found["region"].fractions.tolist() == list(REGIONS.values())
        assert found.total.fractions == N
        assert np.array_equal(found["sex", "region"].cells.sum(axis=0), found["region"].cells)
        assert abs(found["sex"].values[0] - (SEX == "m").sum()) < 3 * found["sex"].half_width
        assert any("Public totals" in note for note in found.notes)


def test_only_what_is_not_known_is_released() -> None:
    """No contrast of a known part is among those that get noise: what is private is what is paid for."""
    told = plan_of(ways=2, facts={("sex", "region"): {(s, r): 10 for s in "mf" for r in "NSW"}})
    assert set(told.allocation.precision) == {(1,), (0, 1), (1, 2)}


def test_impossible_cells_are_zero_and_intervals_hold() -> None:
    plan = plan_of(ways=3, zeros=[{"sex": "m", "pregnant": True}])
    cells = np.zeros((2, 2, 3), np.int64)
    for s, p, r in zip(ROWS["sex"], ROWS["pregnant"], ROWS["region"], strict=True):
        cells["mf".index(s), int(p), "NSW".index(r)] += 1
    counts: dict[tuple[int, ...], Any] = {(0, 1, 2): cells}
    free = plan_of(ways=3)
    errors: dict[str, list[Any]] = {"zeros": [], "free": []}
    inside = []
    for _ in range(300):
        for name, one in (("zeros", plan), ("free", free)):
            found = one.answered(
                _published(one, noise_of(one).release(exact_contrasts(one, counts)))
            )
            off = found.at((0, 1, 2)).values - cells
            errors[name].append(off)
            if name == "zeros":
                assert not found.at((0, 1, 2)).cells[0, 1].any()
                assert not found.at((0, 1)).cells[0, 1]
                assert np.array_equal(found.at((0, 1, 2)).cells.sum(axis=2), found.at((0, 1)).cells)
                inside.append(
                    np.abs(found.at((1,)).values - summed(counts, (1,)))
                    <= found.at((1,)).half_width
                )
    squares = {name: np.square(all_).mean(axis=0) for name, all_ in errors.items()}
    assert squares["zeros"].sum() < 0.9 * squares["free"].sum()
    assert np.abs(np.mean(errors["zeros"], axis=0)).max() < 5 * math.sqrt(
        squares["free"].max() / 300
    )
    assert np.mean(inside) > 0.93


def best_given_zeros(plan: MarginalsPlan, noisy: np.ndarray) -> np.ndarray:
    """All cells of all tables by generalised least squares, with all matrices written out."""
    columns, parts = plan.allocation.columns, list(plan.allocation.precision)
    shapes = [tuple(columns[i].size - 1 for i in part) for part in parts]
    ends = np.cumsum([math.prod(shape) for shape in shapes])

    def cells(contrasts: np.ndarray) -> np.ndarray:
        own = {
            part: residual([columns[i] for i in part], piece.reshape(shape))
            for part, shape, piece in zip(
                parts, shapes, np.split(contrasts, ends[:-1]), strict=True
            )
        }
        return np.concatenate(
            [estimates(columns, own, table).ravel() for table in plan.counting.tables]
        )

    spread = np.array([cells(unit) for unit in np.eye(len(noisy))]).T * (
        noise_of(plan).scales / 2.0**plan.shift
    )
    covariance, values = spread @ spread.T, cells(noisy / 2.0**plan.shift)
    zero = np.concatenate(
        [
            mask.ravel()
            for table in plan.counting.tables
            if (mask := plan.facts.zero(table)) is not None
        ]
    )
    return np.asarray(
        values - covariance[:, zero] @ np.linalg.pinv(covariance[np.ix_(zero, zero)]) @ values[zero]
    )


def test_zeros_of_some_of_many_tables_are_zero_in_all_of_them() -> None:
    """Every table that holds the columns has the zeros, margins stay equal,
    and the estimate is the best one there is.
    """
    names = ["sex", "pregnant", "region", "again"]
    plan = plan_of(
        columns=names, ways=3, zeros=[{"sex": "m", "pregnant": True}, {"region": "W", "again": "N"}]
    )
    whole = np.zeros((2, 2, 3, 3), np.int64)
    for s, p, r in zip(ROWS["sex"], ROWS["pregnant"], ROWS["region"], strict=True):
        whole["mf".index(s), int(p), "NSW".index(r), "NSW".index(r)] += 1
    counts: dict[tuple[int, ...], Any] = {
        table: whole.sum(axis=tuple(i for i in range(4) if i not in table))
        for table in plan.counting.tables
    }
    inside = []
    for trial in range(30):
        noisy = noise_of(plan).release(exact_contrasts(plan, counts))
        found = plan.answered(_published(plan, noisy))
        assert not found.at((0, 1, 2)).cells[0, 1].any()
        assert not found.at((0, 1, 3)).cells[0, 1].any()
        assert not found.at((0, 2, 3)).cells[:, 2, 0].any()
        assert not found.at((2, 3)).cells[2, 0]
        for part in ((0, 1), (2, 3), (0,), ()):
            margins = [cells.sum(axis=tuple(k for k, i in enumerate(table) if i not in part))
                       for table, cells in found.counts.items() if set(part) <= set(table)]  # fmt: skip
            assert len(margins) > 1
            assert all(np.array_equal(margins[0], other) for other in margins)
        inside += [
            np.abs(found.at(table).values - exact) <= found.at(table).half_width
            for table, exact in counts.items()
        ]
        if not trial:
            flat = np.concatenate(
                [found.at(table).values.ravel() for table in plan.counting.tables]
            )
            assert flat == pytest.approx(best_given_zeros(plan, np.asarray(noisy, float)), abs=0.05)
    assert np.mean([one.mean() for one in inside]) > 0.93


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_equal_columns_are_measured_once(ways: int) -> None:
    """Tables of the one are those of the other, exactly and at no price; both together meet on the diagonal."""
    names = ["sex", "again", "region", "pregnant"]
    told = plan_of(columns=names, ways=ways, equal=[("region", "again")])
    assert not any(2 in part for part in told.allocation.precision)
    assert "again is" in str(told) or "region is again" in str(told)
    with so.Session(dataset()) as session:
        found = session.marginals(names, ways=ways, epsilon=1, equal=[("region", "again")])
    assert any("not looked at" in note for note in found.notes)
    assert np.array_equal(found["region"].cells, found["again"].cells)
    assert found["region"].half_width == found["again"].half_width
    assert (
        Marginals.from_json(found.to_json())["region"].cells.tolist()
        == found["region"].cells.tolist()
    )
    for name, value in zip("NSW", found["region"].values, strict=True):
        assert abs((ROWS["region"] == name).sum() - value) < 3 * found["region"].half_width
    if ways == 1:
        return
    assert np.array_equal(found["sex", "region"].cells, found["sex", "again"].cells)
    pair = found["again", "region"]
    assert np.array_equal(np.diag(np.diag(pair.cells)), pair.cells)
    assert np.array_equal(np.diag(pair.cells), found["region"].cells)
    assert pair.variance == found["region"].variance
    one, both = (
        found["again"].range(again=("N", "S")),
        pair.range(again=("N", "S"), region=("S", "W")),
    )
    assert one.value[0] == float(found["again"].fractions[:2].sum())
    assert both.value[0] == float(found["again"].fractions[1])
    assert both.half_width[0] < one.half_width[0]
    if ways == 3:
        three = found["sex", "again", "region"].cells
        assert np.array_equal(three.sum(axis=(1, 2)), found["sex"].cells)
        assert not three[:, 0, 1].any()
        assert three[:, 0, 0].any()


def test_neighbours_cost_no_more_than_is_charged_whether_or_not_columns_are_equal() -> None:
    """Only the first of equal columns is read: a person whose other value differs moves no further."""
    rows = {name: np.asarray(cells)[:20] for name, cells in ROWS.items()}
    rows["again"] = np.array(list("NSWNW" * 4))
    names, nearest = ["sex", "region", "pregnant", "again"], 0.0
    facts: dict[str, Any] = {
        "facts": {"region": {"N": 1, "S": 2, "W": 3}},
        "zeros": [{"again": "N", "sex": "m"}],
    }
    for ways, more in ((2, {}), (3, {}), (2, facts)):
        found = []
        for kept in (np.arange(20), np.arange(19)):
            table = pa.table({name: cells[kept] for name, cells in rows.items()})
            data = so.Dataset(table, unit="row", columns=COLUMNS, budget=so.Budget(40, 1e-6))
            meter, equal = TwoMeterFilter(so.Budget(40, 1e-6)), [("again", "region")]
            plan = plan_workload(data, meter, names, ways=ways, epsilon=1, equal=equal, **more)
            with so.Session(data) as session:
                counts = plan.counting.counts(session._engine.run(plan.statements[0]))
            found.append(exact_contrasts(plan, counts).astype(object))
        apart = noise_of(plan).mu_squared(found[0] - found[1])
        assert plan.charge.mu_squared is not None
        assert 0 < apart <= plan.charge.mu_squared
        nearest = max(nearest, float(apart / plan.charge.mu_squared))
        assert "again" not in plan.counting.statement.text()
    assert nearest > 0.999


def test_names_of_zeros_are_read_in_any_case() -> None:
    """What is left by the margins is never put where a zero is, however its column was written."""
    with so.Session(dataset()) as session:
        for _ in range(12):
            found = session.marginals(
                NAMES, tables=[["sex", "pregnant"], ["pregnant", "region"]], epsilon=0.3,
                zeros=[{"SEX": "f", "Pregnant": True}],
            )  # fmt: skip
            assert found["sex", "pregnant"].cells[1, 1] == 0


def test_values_that_only_one_of_equal_columns_has_are_zero() -> None:
    columns = {
        **COLUMNS,
        "again": {"type": "category", "values": ["W", "X", "N"], "nullable": False},
    }
    rows = {
        **ROWS,
        "region": np.where(SEX == "m", "N", "W"),
        "again": np.where(SEX == "m", "N", "W"),
    }
    data = so.Dataset(pa.table(rows), unit="row", columns=columns, budget=so.Budget(40, 1e-6))
    with so.Session(data) as session:
        found = session.marginals(
            ["region", "sex", "again"], ways=2, epsilon=1, equal=[("again", "region")],
            zeros=[{"again": "N", "sex": "f"}],
            facts={"again": {"W": int((SEX == "f").sum()), "X": 0, "N": int((SEX == "m").sum())}},
        )  # fmt: skip
    assert found["region"].fractions.tolist() == [(SEX == "m").sum(), 0, (SEX == "f").sum()]
    assert found["again"].fractions.tolist() == [(SEX == "f").sum(), 0, (SEX == "m").sum()]
    assert found["region", "sex"].cells[0, 1] == 0 == found["sex", "again"].cells[1, 2]
    assert not found["region", "sex"].cells[1].any()


def test_rounded_numbers_are_whole_nonnegative_and_add_up() -> None:
    with so.Session(dataset()) as session:
        asked = (session.marginals(NAMES, ways=3, epsilon=0.05) for _ in range(20))
        found = next(one for one in asked if (one["sex", "pregnant", "region"].values < 0).any())
        whole = found.rounded()
        assert whole.form == "rounded"
        for table in (("sex", "pregnant", "region"), ("sex", "region"), ("sex",), ()):
            own = whole[table]
            assert all(
                cell.denominator == 1 and cell >= 0 for cell in np.atleast_1d(own.fractions).ravel()
            )
            assert own.half_width >= found[table].half_width
            assert np.abs(own.values - found[table].values).max() <= own.half_width
        assert whole["sex", "region"].cells.sum() == whole.total.cells
        assert "raised" in whole.notes[0]
        assert whole.rounded() is whole
        assert (
            whole["sex"].range(sex=("m", "f")).half_width[0]
            >= found["sex"].range(sex=("m", "f")).half_width[0]
        )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"facts": {"region": {"N": 1, "S": 2}}}, "'W' has none"),
        ({"facts": {"region": {**REGIONS, "X": 1}}}, "not a value"),
        ({"facts": {"region": {**REGIONS, "N": -1}}}, "whole number"),
        ({"facts": {"region": {**REGIONS, "N": 1.5}}}, "whole number"),
        ({"facts": {"regoin": REGIONS}}, "Did you mean 'region'"),
        ({"facts": {"region": REGIONS, "sex": {"m": 1, "f": 2}}}, "contradict"),
        ({"facts": {"region": REGIONS, (): 7}}, "contradict"),
        ({"facts": [1]}, "by column"),
        ({"facts": {("region", "sex"): {}}}, "order"),
        ({"zeros": [{"sex": "m"}, {"sex": "f"}]}, "no combination"),
        ({"zeros": [{"sex": "x"}]}, "not a value"),
        ({"zeros": [{"sex": "m"}], "facts": {"sex": {"m": 5, "f": 1995}}}, "above zero"),
        ({"zeros": [{"sex": "m", "region": "N"}], "ways": 1}, "no table of the workload holds"),
        (
            {"zeros": [{"sex": "m", "region": "N"}, {"sex": "f", "region": "S"}], "ways": 2},
            "each column needs a value",
        ),
        ({"zeros": [{"sex": "m"}], "facts": {"sex": {"m": 5, "f": 1995}}, "ways": 2}, "above zero"),
        ({"equal": [("sex", "region")], "ways": 2}, "no combination"),
        (
            {"equal": [("region", "sex")], "facts": {("sex", "region"): dict.fromkeys(PAIRS, 1)}},
            "above zero",
        ),
        ({"equal": ("sex", "region")}, "two different columns"),
        ({"equal": [("sex", "region")], "ways": 1, "prefixes": ["sex"]}, "not for ranges"),
        ({"equal": [5]}, "named by a text"),
        ({"equal": 5}, "it is a list"),
        ({"zeros": {"sex": "m"}}, "it is a list"),
        ({"zeros": ["sex"]}, "values by column"),
        ({"zeros": [{}]}, "values by column"),
        ({"facts": {5: {}}}, "named by a text"),
        ({"zeros": [{0: "m"}]}, "named by a text"),
        ({"zeros": [{"sex": ["m"]}]}, "not a value"),
        ({"zeros": [{"sex": np.array(["m", "f"])}]}, "not a value"),
        ({"zeros": [{"pregnant": 1}]}, "not a value"),
        ({"facts": {"pregnant": {1: 5, 0: 5}}}, "not a value"),
        ({"facts": {("sex", "region"): {"m": 5}}}, "not a value"),
        # each pair of facts agrees; all of them together nobody can have
        (
            {
                "facts": {"sex": {"m": 10, "f": 0}, "pregnant": {True: 10, False: 0}},
                "zeros": [{"sex": "m", "pregnant": True}],
            },
            "at once",
        ),
    ],
)
def test_contradictions_are_refused_before_anything_is_spent(
    asked: dict[str, Any], words: str
) -> None:
    with so.Session(dataset()) as session:
        left = session.remaining
        with pytest.raises(InvalidInput, match=words):
            session.marginals(NAMES, **{"epsilon": 1, "ways": 3, **asked})
        assert session.remaining == left


def test_facts_that_agree_two_by_two_and_not_together_are_refused() -> None:
    """a = b and b = c in all rows, and a != c in all: no two of these facts contradict each other."""
    values = ["0", "1"]
    columns: dict[str, Any] = {
        name: {"type": "category", "values": values, "nullable": False} for name in "abc"
    }
    rows = dict.fromkeys("abc", values * 50)
    data = so.Dataset(pa.table(rows), unit="row", columns=columns, budget=so.Budget(9, 1e-6))
    same = {(x, y): 50 * (x == y) for x in values for y in values}
    other = {key: 50 - count for key, count in same.items()}
    asked: dict[str, Any] = {"ways": 3, "epsilon": 1}
    with so.Session(data) as session:
        left = session.remaining
        with pytest.raises(InvalidInput, match="at once"):
            session.marginals(
                list("abc"), **asked, facts={("a", "b"): same, ("b", "c"): same, ("a", "c"): other}
            )
        assert session.remaining == left
        every = {("a", "b"): same, ("b", "c"): same, ("a", "c"): same}
        found = session.marginals(list("abc"), **asked, facts=every)
        assert found["a", "c"].fractions.tolist() == [[50, 0], [0, 50]]


def test_facts_are_about_values_however_they_are_passed() -> None:
    """0.1 is the tenth that was declared, and NumPy's numbers are numbers."""
    tenths = RNG.integers(0, 5, N)
    columns: dict[str, Any] = {
        "x": {"type": "float", "min": 0, "max": 0.4, "step": 0.1, "nullable": False},
        "sex": COLUMNS["sex"],
    }
    rows = {"x": tenths / 10, "sex": SEX}
    data = so.Dataset(pa.table(rows), unit="row", columns=columns, budget=so.Budget(9, 1e-6))
    known = {k / 10: np.int64((tenths == k).sum()) for k in range(5)}
    with so.Session(data) as session:
        found = session.marginals(
            ["x", "sex"], ways=2, epsilon=1, facts={"x": known}, zeros=[{"x": 0.3, "sex": "m"}]
        )
    assert found["x"].fractions.tolist() == list(known.values())
    assert not found["x", "sex"].cells[3, 0]
    assert found["x"].range(x=(0.1, 0.3)).value[0] == sum(known[k / 10] for k in (1, 2, 3))
