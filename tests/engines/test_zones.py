"""A declared time zone: moments are read as the time that clocks showed there, wherever the engine runs."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from sordino.engines.duckdb import DuckDB
from sordino.errors import InvalidDeclaration
from sordino.plan.fragments import GATE

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "UTC",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def declared(source: Any, **column: Any) -> so.Dataset:
    columns = {"at": {"type": "datetime", **column}}
    return so.Dataset(source, name="data", unit="row", columns=columns, budget={"epsilon": 10**6})


def read(source: Any, **column: Any) -> list[datetime | None]:
    """The cells behind the gate, as every question sees them."""
    engine = DuckDB(declared(source, **column).tables.values())
    cells = [
        row[0] for row in engine._connection.execute(f'SELECT "at" FROM "{GATE}"."data"').fetchall()
    ]
    engine.close()
    return cells


def moments(unit: str, zone: str, count: int = 400) -> tuple[list[datetime], pa.Array]:
    """Moments from 1972 to 2030, many of them near a change of clocks (at whole half hours)."""
    rng = random.Random(unit + zone)
    found = [
        EPOCH + timedelta(seconds=rng.randrange(2 * 365 * 86400, 60 * 365 * 86400))
        for _ in range(count // 2)
    ]
    for year in range(1972, 2030):
        for month, day in ((3, 31), (4, 6), (9, 28), (10, 29), (11, 3), (12, 30)):
            found.append(
                datetime(
                    year, month, day, rng.randrange(24), rng.choice([0, 29, 30, 59]), tzinfo=UTC
                )
            )
    microseconds = [(moment - EPOCH) // timedelta(microseconds=1) for moment in found]
    cells = pa.array(microseconds, pa.int64()).cast(pa.timestamp("us", tz="Asia/Tokyo"))
    return found, cells.cast(pa.timestamp(unit, tz="Asia/Tokyo"))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_moments_are_what_clocks_showed(zone: str, unit: str, tmp_path: Path) -> None:
    found, cells = moments(unit, zone)
    pq.write_table(pa.table({"at": cells}), tmp_path / "data.parquet")
    for source in (pa.table({"at": cells}), tmp_path / "data.parquet"):
        wanted = [
            moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0) for moment in found
        ]
        assert sorted(x for x in read(source, zone=zone) if x is not None) == sorted(wanted)


def test_the_hour_that_occurs_twice_holds_both_and_the_skipped_one_nothing() -> None:
    def counted(first: datetime) -> list[int]:
        cells = pa.array(
            [first + timedelta(minutes=30 * i) for i in range(12)], pa.timestamp("us", tz="UTC")
        )
        hours = Counter(
            at.hour for at in read(pa.table({"at": cells}), zone="Europe/Berlin") if at is not None
        )
        return [hours[h] for h in range(7)]

    assert counted(datetime(2023, 10, 28, 22, tzinfo=UTC)) == [2, 2, 4, 2, 2, 0, 0]
    assert counted(datetime(2023, 3, 25, 23, tzinfo=UTC)) == [2, 2, 0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    "zone", [*ZONES, "Etc/GMT-14", "Etc/GMT+12", "Asia/Manila", "Africa/Monrovia"]
)
def test_no_cell_fails(zone: str) -> None:
    cells = [1 - 2**63, 2 - 2**63, 2**63 - 1, 2**63 - 2, -9223372022400000000, -62135596800000000, -62135596800000001,
             253402300799999999, 253402300800000000, 0, None]  # fmt: skip
    table = pa.table({"at": pa.array(cells, pa.int64()).cast(pa.timestamp("us", tz="UTC"))})
    engine = DuckDB(declared(table, zone=zone).tables.values())
    found = engine._connection.execute(
        f'SELECT "at" IS NULL, YEAR("at") FROM "{GATE}"."data"'
    ).fetchall()
    # what the engine takes for infinite is missing
    assert [missing for missing, _ in found] == [True, False, True, False, *[False] * 6, True]
    assert all(
        year in (-1, 0, 1, 1969, 1970, 9999, 10000) for missing, year in found if not missing
    )


def test_texts_of_csv_need_an_offset(tmp_path: Path) -> None:
    """Without one, they would be read by the zone of the machine."""
    texts = ["2024-07-01 12:00:00+00", "2024-07-01T12:00:00Z", "2024-07-01 14:00:00+02:00", "2024-07-01 07:30:00.5-0430",
             "2024-07-01 12:00:00", "2024-07-01", "2024-07-01 12:00:00 Europe/Berlin", "+02", "x", "",
             "294247-01-10 04:00:54+00", "290309-12-22 (BC) 00:00:00+00"]  # fmt: skip
    (tmp_path / "data.csv").write_text("at\n" + "".join(f'"{text}"\n' for text in texts))
    script = "from engines.test_zones import read; print(read(__import__('pathlib').Path('data.csv'), zone='Europe/Berlin'))"
    for machine in ("UTC", "America/New_York"):
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "TZ": machine,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        shown = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=True,
        )
        noon = datetime(2024, 7, 1, 14)
        found = eval(shown.stdout, {"datetime": __import__("datetime")})
        assert found[:4] == [noon, noon, noon, noon.replace(microsecond=500_000)]
        assert found[4:10] == [None] * 6
        assert len(found) == len(texts)


@pytest.mark.parametrize(("zone", "hint"), [("Europe/Berln", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"),
                                            ("localtime", "UTC"), ("", "UTC"), (5, "UTC"), ("x'y", "UTC")])  # fmt: skip
def test_unknown_zones_are_refused(zone: Any, hint: str) -> None:
    with pytest.raises(InvalidDeclaration, match="time zone") as refusal:
        declared(pa.table({"at": pa.array([0], pa.timestamp("us", tz="UTC"))}), zone=zone)
    assert hint in refusal.value.hint


def test_a_zone_needs_moments_that_have_one() -> None:
    with pytest.raises(InvalidDeclaration, match="Leave zone out"):
        so.Session(
            declared(pa.table({"at": pa.array([0], pa.timestamp("us"))}), zone="Europe/Berlin")
        )
    with pytest.raises(InvalidDeclaration, match="zone"):
        so.Dataset(
            pa.table({"d": [1]}),
            unit="row",
            columns={"d": {"type": "date", "zone": "UTC"}},
            budget={"epsilon": 1},
        )
