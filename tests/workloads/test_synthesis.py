"""Synthetic rows: types and ranges as declared, the report's intervals, neighbours, one charge, refusals."""

from __future__ import annotations

import base64
import copy
import random
import zlib
from collections import Counter
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.observer import watching
from sordino.mechanisms.public_chance import PublicChance
from sordino.privacy.json_form import write
from sordino.workloads.synthesis import _Measuring, synthesize
from sordino.workloads.synthesis_plan import SynthesisPlan, plan_synthesis
from sordino.workloads.synthetic import Synthetic, TableError

RNG = np.random.default_rng(4)
N = 4000
SEX = RNG.choice(["m", "f"], N)
ROWS: dict[str, list[Any]] = {
    "p": (np.arange(N) // 2).tolist(),
    "sex": SEX.tolist(),
    "height": np.where(SEX == "m", RNG.normal(178, 7, N), RNG.normal(165, 7, N)).tolist(),
    "age": RNG.integers(0, 900, N).tolist(),
    "ok": [(True, False, None)[i] for i in RNG.choice(3, N)],
    "day": [date(2020, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 700, N)],
    "at": [datetime(2020, 1, 1) + timedelta(minutes=int(d)) for d in RNG.integers(0, 900_000, N)],
    "grade": (RNG.integers(0, 9, N) / 4).tolist(),
    "city": RNG.choice(["Bern", "Thun"], N).tolist(),
}
COLUMNS: dict[str, Any] = {
    "sex": {"type": "category", "values": ["m", "f"], "nullable": False},
    "height": {"type": "float", "min": 140, "max": 210, "step": 0.1, "nullable": False},
    "age": {"type": "int", "min": 0, "max": 899, "nullable": False},
    "ok": {"type": "bool"},
    "day": {"type": "date", "min": date(2020, 1, 1), "max": date(2021, 12, 31), "nullable": False},
    "at": {
        "type": "datetime",
        "min": datetime(2020, 1, 1),
        "max": datetime(2021, 12, 31),
        "nullable": False,
    },
    "grade": {"type": "float", "min": 0, "max": 2, "step": 0.25, "nullable": False},
    "city": {"type": "text"},
}
NAMES = ["sex", "height", "age", "ok", "day", "at", "grade"]


def dataset(unit: str = "row", rows: dict[str, list[Any]] = ROWS, **more: Any) -> so.Dataset:
    bounds: dict[str, Any] = {} if unit == "row" else {"max_rows": 1}
    return so.Dataset(
        pa.table(rows), unit=unit, columns=COLUMNS, budget=so.Budget(60, 1e-6), **{**bounds, **more}
    )


def plan_of(data: so.Dataset, **asked: Any) -> SynthesisPlan:
    assert data.budget is not None
    return plan_synthesis(
        data, TwoMeterFilter(data.budget), None, **{"epsilon": 1, "columns": NAMES, **asked}
    )


def test_rows_have_the_declared_types_and_what_belongs_together() -> None:
    with so.Session(dataset()) as session:
        assert "judges" in str(session.preview_synthesize(epsilon=8, columns=NAMES))
        found = session.synthesize(epsilon=8, columns=NAMES, rows=3000, request_id="mine")
        left = session.remaining
        again = session.synthesize(epsilon=8, columns=NAMES, rows=3000, request_id="mine")
        assert again.to_json() == found.to_json()
        assert session.remaining == left
    table = found.to_arrow()
    assert [str(field.type) for field in table.schema] == [
        "string", "double", "int64", "bool", "date32[day]", "timestamp[us]", "double"
    ]  # fmt: skip
    assert len(found) == table.num_rows == 3000
    cells = table.to_pydict()
    assert all(140 <= x <= 210 and abs(x * 10 - round(x * 10)) < 1e-6 for x in cells["height"])
    assert all(0 <= x <= 899 for x in cells["age"])
    assert len(set(cells["age"])) > 300
    assert all(date(2020, 1, 1) <= x <= date(2021, 12, 31) for x in cells["day"])
    assert all(datetime(2020, 1, 1) <= x <= datetime(2021, 12, 31) for x in cells["at"])
    assert set(cells["grade"]) <= {k / 4 for k in range(9)}
    assert set(cells["ok"]) == {True, False, None}
    by = {
        sex: np.mean([h for h, s in zip(cells["height"], cells["sex"], strict=True) if s == sex])
        for sex in "mf"
    }
    assert by["m"] - by["f"] > 8
    html = found.to_html()
    assert "default-src 'none'" in html
    assert "<script" not in html
    assert "Differentially private" in html
    assert html.count('scope="row"') == len(NAMES)
    assert html.count("<details>") == 2  # long lists are folded
    assert str(found.report).startswith("7 columns")
    assert Synthetic.from_json(found.to_json()).report == found.report


def test_wide_columns_keep_their_whole_range() -> None:
    """More than 2^31 steps between the first and the last value: none is lost, none becomes NULL."""
    n = 500
    rows = {
        "big": RNG.integers(0, 10**12, n),
        "at": [
            datetime(1000, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 3 * 10**6, n)
        ],
        "fine": RNG.random(n) * 1e6,
    }
    columns: dict[str, Any] = {
        "big": {"type": "int", "min": 0, "max": 10**12, "nullable": False},
        "at": {
            "type": "datetime",
            "min": datetime(1000, 1, 1),
            "max": datetime(9998, 12, 31),
            "nullable": False,
        },
        "fine": {"type": "float", "min": 0, "max": 10**6, "step": 0.00001, "nullable": False},
    }
    data = so.Dataset(pa.table(rows), unit="row", columns=columns, budget=so.Budget(90, 1e-6))
    with so.Session(data) as session:
        found = session.synthesize(epsilon=60, rows=2000)
    for name, middle in (("big", 5 * 10**11), ("at", datetime(5107, 1, 1)), ("fine", 500_000)):
        values = found.values[name]
        assert None not in values
        above = sum(value > middle for value in values) / len(values)
        assert 0.4 < above < 0.6
        assert columns[name]["min"] <= min(values) <= max(values) <= columns[name]["max"]
    assert Synthetic.from_json(found.to_json()).values == found.values


def test_rows_stored_before_columns_could_be_wide_are_read() -> None:
    cells = base64.b64encode(zlib.compress(np.array([0, 2, -1], "<i4").tobytes())).decode()
    column = {"name": "n", "type": "int", "listed": None, "origin": 5, "step": "1", "rows": cells}
    facts = {"table": "t", "privacy": "", "notes": [], "confidence": 0.95, "report": [], "columns": [column]}  # fmt: skip
    assert Synthetic.from_json(write("synthetic", 1, facts)).values == {"n": [5, 7, None]}


def test_what_is_modelled_in_buckets_is_told() -> None:
    """The report judges tables of buckets; a reader who takes it for single values would be misled."""
    notes = " ".join(plan_of(dataset(), columns=["sex", "age", "grade"]).notes)
    assert "Values of age were put into buckets" in notes
    assert "buckets" not in " ".join(plan_of(dataset(), columns=["sex", "grade"]).notes)


def true_error(found: Synthetic, plan: SynthesisPlan, columns: tuple[str, ...]) -> float:
    """Half the L1 distance of shares, found naively; numbers in the buckets of the model."""

    def key(name: str, value: Any) -> Any:
        column = next(one for one in plan.columns if one.name == name)
        if column.listed is not None or value is None:
            return value
        return value // 18 if name == "age" else value

    shares = []
    for rows in (ROWS, found.values):
        keys = Counter(
            zip(*([key(name, value) for value in rows[name]] for name in columns), strict=True)
        )
        shares.append({k: count / keys.total() for k, count in keys.items()})
    return 0.5 * sum(
        abs(shares[0].get(k, 0) - shares[1].get(k, 0)) for k in shares[0].keys() | shares[1].keys()
    )


def test_intervals_of_the_report_hold() -> None:
    """Of the errors of all columns, pairs and triples over several runs, at least 95 % lie in their intervals."""
    asked: dict[str, Any] = {"columns": ["sex", "ok", "grade", "age"]}
    plan = plan_of(dataset(), **asked)
    inside, widths, count = 0, [], 0
    with so.Session(dataset()) as session:
        for _ in range(6):
            found = session.synthesize(epsilon=2, **asked)
            for one in found.report.tables:
                inside += one.low <= true_error(found, plan, one.columns) <= one.high
                widths.append(one.high - one.low)
                count += 1
    assert count == 6 * (4 + 6 + 4)
    assert inside / count > 0.9
    assert max(widths) < 0.15


@pytest.mark.parametrize("unit", ["row", "p"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_neighbours_cost_no_more_than_is_charged(unit: str, neighbors: str) -> None:
    """Replay with frozen outputs: the inputs of all calls on D and D' together are at most mu of the charge apart."""
    rng, nearest = random.Random(f"{unit} {neighbors}"), 0.0
    for _ in range(3):
        size = 40
        picked = [rng.randrange(N) for _ in range(size)]
        rows = {name: [cells[i] for i in picked] for name, cells in ROWS.items()}
        rows["p"] = list(range(size)) if unit == "row" else [rng.randrange(10) for _ in range(size)]
        person = rows["p"][0]
        kept = [i for i in range(size) if rows["p"][i] != person]
        other = {name: [cells[i] for i in kept] for name, cells in rows.items()}
        if neighbors == "replace":
            other = {
                name: [*cells, ROWS[name][7] if name != "p" else person]
                for name, cells in other.items()
            }
        tape: list[Any] = []
        apart = Fraction(0)
        for second, own in enumerate((rows, other)):
            data = dataset(unit, own, neighbors=neighbors)
            plan = plan_of(data, columns=["sex", "ok", "grade"])
            calls = iter(tape)

            def watch(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
                nonlocal apart
                if not second:  # noqa: B023
                    tape.append((mechanism, value, draw()))  # noqa: B023
                    return copy.copy(tape[-1][2])  # noqa: B023
                known, before, output = next(calls)  # noqa: B023
                if isinstance(mechanism, PublicChance):
                    return output
                assert known.scales.tobytes() == mechanism.scales.tobytes()
                apart += mechanism.mu_squared(before.astype(object) - value.astype(object))
                return output.copy()

            with so.Session(data) as session, watching(watch):
                made = synthesize(
                    plan, lambda statements: [session._engine.run(s) for s in statements]
                )
        assert len(made) > 0
        assert next(calls, None) is None
        assert apart <= plan.mu_squared
        nearest = max(nearest, float(apart / plan.mu_squared))
    assert nearest > 0.05


@pytest.mark.parametrize("unit", ["row", "p"])
def test_the_auditor_replays_it(unit: str) -> None:
    """All that differs between neighbours is in the mechanisms' inputs,
    no further than declared; two persons are caught.
    """
    rng = random.Random(unit)
    lines = [
        (person, rng.randrange(3), rng.randrange(2))
        for person in range(12)
        for _ in range(1 if unit == "row" else 3)
    ]

    def made(rows: list[tuple[int, ...]]) -> str:
        columns = {name: {"type": "int", "min": 0, "max": 2, "nullable": False} for name in "ab"}
        table = pa.table(
            {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("pab")}
        )
        bounds: dict[str, Any] = {} if unit == "row" else {"max_rows": 2}
        data = so.Dataset(table, unit=unit, columns=columns, budget=so.Budget(1, 1e-6), **bounds)
        with so.Session(data) as session:
            return session.synthesize(
                epsilon=1, rows=20, columns=["a", "b"], request_id="x"
            ).to_json()

    without = [[line for line in lines if line[0] >= gone] for gone in (1, 2)]
    claim: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "neighbors": "unchecked", "tapes": 1}
    report = so.audit.replay(made, lines, without[0], **claim)
    assert report.passed, str(report)
    assert not so.audit.replay(made, lines, without[1], **claim).passed


def test_a_verdict_is_that_of_the_whole_interval() -> None:
    """Where there is hardly anybody, nothing is known of any error, and the report says so."""
    for low, high, verdict in (
        (0.0, 0.05, "good"), (0.0, 0.1, "fair"), (0.06, 0.2, "fair"), (0.0, 0.2, "unknown"), (0.16, 0.2, "poor"),
    ):  # fmt: skip
        assert TableError(("a",), high, low, high, True).verdict == verdict
    with so.Session(dataset(rows={name: cells[:1] for name, cells in ROWS.items()})) as session:
        nobody = session.synthesize(epsilon=0.1, columns=["sex", "ok"])
    assert {one.verdict for one in nobody.report.tables} == {"unknown"}
    assert "0 good, 0 fair, 2 unknown, 0 poor" in str(nobody.report)
    assert "2</td>" in nobody.to_html()


def test_measuring_spends_what_it_says() -> None:
    plan = plan_of(dataset(), columns=["sex", "ok"])
    seen = _Measuring(plan, {(0, 1): np.array([[5, 6, 7], [8, 9, 10]])})
    assert seen.tables({(0,): Fraction(1, 7), (0, 1): Fraction(1, 3)}) == Fraction(10, 21)
    seen.distances({(0, 1): np.zeros((2, 3))}, Fraction(1, 5))
    assert seen.spent == Fraction(10, 21) + Fraction(1, 5)
    assert seen.made[1].deviation == pytest.approx(3**0.5)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rows": 0}, "rows is a whole number"),
        ({"rows": 2.5}, "rows is a whole number"),
        ({"columns": ["city"]}, "category"),
        ({"columns": ["nothing"]}, "no such column"),
        ({"columns": ["sex", "sex"]}, "once"),
        ({"columns": []}, "once"),
        ({"columns": "sex"}, "list of names"),
        ({"epsilon": -1}, "epsilon"),
        ({"something": 1}, "no such argument"),
        ({"where": "nothing > 3"}, "no such column"),
    ],
)
def test_refused_before_anything_is_spent(asked: dict[str, Any], words: str) -> None:
    with so.Session(dataset()) as session:
        left = session.remaining
        with pytest.raises(InvalidInput, match=words):
            session.synthesize(**{"epsilon": 1, "columns": NAMES, **asked})
        assert session.remaining == left


def test_undeclared_limits_and_many_columns_are_refused() -> None:
    table = pa.table({"n": [1], "d": [date(2020, 1, 1)]})
    columns = {"n": {"type": "int"}, "d": {"type": "date"}}
    with so.Session(
        so.Dataset(table, unit="row", columns=columns, budget=so.Budget(1, 1e-6))
    ) as session:
        for name in ("n", "d"):
            with pytest.raises(InvalidInput, match="must be declared"):
                session.synthesize(epsilon=1, columns=[name])
    many = {f"c{i}": [1] for i in range(101)}
    wide = {name: {"type": "int", "min": 0, "max": 3} for name in many}
    data = so.Dataset(pa.table(many), unit="row", columns=wide, budget=so.Budget(1, 1e-6))
    with so.Session(data) as session, pytest.raises(TooLarge, match="101"):
        session.synthesize(epsilon=1)


def test_empty_data_and_one_column() -> None:
    nothing = {
        name: pa.array(cells[:0], pa.table(ROWS).schema.field(name).type)
        for name, cells in ROWS.items()
    }
    data = so.Dataset(pa.table(nothing), unit="row", columns=COLUMNS, budget=so.Budget(9, 1e-6))
    with so.Session(data) as session:
        assert len(session.synthesize(epsilon=1, columns=["sex", "age"], rows=10)) == 10
    with so.Session(dataset()) as session:
        one = session.synthesize(epsilon=5, columns=["sex"])
        assert abs(len(one) - N) < 100
        assert [len(table.columns) for table in one.report.tables] == [1]


def test_one_row_for_each_person_by_features() -> None:
    """Of rows that are made person by person nobody has more than one, so that no bound is needed; both sides of it."""
    data = so.Dataset(
        pa.table(ROWS), unit="p", columns=COLUMNS, budget=so.Budget(60, 1e-6), max_rows=5
    )
    with so.Session(data) as session:
        people = session.table("data").per_person(oldest=so.max("age"), visits=so.count())
        found = session.synthesize(people, epsilon=5)
        assert list(found.values) == ["oldest", "visits"]
        assert abs(len(found) - N // 2) < 60
        assert found.values["visits"].count(2) > 0.9 * len(found)
        assert any("stands for one person" in note for note in found.notes)
        text = "SELECT p, MAX(age) AS oldest, COUNT(*) AS visits FROM data GROUP BY p"
        written = session.preview_synthesize(text, epsilon=5)
        assert written.whose.by_row
        assert [column.name for column in written.columns] == ["oldest", "visits"]
        for wrong in (
            f"{text}) AS d, (SELECT 1",
            f"{text}) AS d WHERE (oldest > 3",
            "SELECT sex, MAX(age) AS a FROM data GROUP BY sex",
        ):
            with pytest.raises(InvalidInput):
                session.preview_synthesize(wrong, epsilon=5)
        tables = session.marginals(
            {"visits": "visits", "oldest": so.bucket("oldest", 100)},
            ways=2,
            epsilon=2,
            table=people,
        )
        assert abs(tables["visits"].values[2] - N // 2) < 60
