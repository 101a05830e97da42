"""Reports carry their protocol, also in files; mixing, damage and emptiness are refused, and nothing is half-counted."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino.local as local
from sordino.errors import InvalidInput
from sordino.local.reports import METADATA
from tape import Tape, replay

ALL: list[Any] = [
    kind.calibrated(epsilon=1, categories=k)
    for k in (5, 16, 100)
    for kind in (local.Direct, local.Unary, local.LocalHashing, local.Subset, local.AffineSubset, local.Hadamard)
] + [local.OneBitMean.calibrated(epsilon=1, low=0, high=100)]


def _reports(protocol: Any, persons: int = 3000) -> local.Reports:
    with replay(Tape(1)):
        reports: local.Reports = protocol.randomize(np.arange(persons) % 5)
    return reports


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_round_trips(protocol: Any, tmp_path: Path) -> None:
    assert local.protocol_from_json(protocol.to_json()) == protocol
    reports = _reports(protocol)
    path = tmp_path / "it's reports.parquet"
    reports.to_parquet(path)
    for back in (local.Reports.from_arrow(reports.to_arrow()), local.Reports.from_parquet(path)):
        assert back.protocol == protocol
        assert (back.column == reports.column).all()


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_duckdb_counts_what_numpy_counts(protocol: Any, tmp_path: Path) -> None:
    reports = _reports(protocol)
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        pq.write_table(reports.to_arrow(), path, row_group_size=700)
    tally = local.tally_parquet(*paths, protocol=protocol, memory="500MB")
    twice = (reports + reports).tally()
    assert tally.answers == twice.answers == 6000
    assert (tally.counts == twice.counts).all()
    assert ((reports.tally() + reports.tally()).counts == tally.counts).all()


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_reports_one_at_a_time(protocol: Any) -> None:
    collected = local.Reports.of(protocol, [protocol.randomize_one(3) for _ in range(20)])
    assert len(collected) == 20
    assert collected.tally().answers == 20


@pytest.mark.parametrize("protocol", ALL[:6], ids=repr)
def test_other_parameters_are_refused(protocol: Any, tmp_path: Path) -> None:
    reports = _reports(protocol)
    kind = type(protocol)
    others: list[Any] = [
        kind.calibrated(epsilon=1.0001, categories=5),
        kind.calibrated(epsilon=1, categories=6),
        kind.calibrated(epsilon=1, categories=list("abcde")),
        local.OneBitMean.calibrated(epsilon=1, low=0, high=4),
        next(p for p in ALL[:6] if type(p) is not kind),
    ]
    reports.to_parquet(tmp_path / "ours.parquet")
    for other in others:
        with pytest.raises(InvalidInput, match="counted together"):
            other.estimate(reports)
        with pytest.raises(InvalidInput, match="counted together"):
            local.tally_parquet(tmp_path / "ours.parquet", protocol=other)
        theirs = other.randomize(["a", "b"] if getattr(other, "names", None) else [1, 2])
        theirs.to_parquet(tmp_path / "theirs.parquet")
        with pytest.raises(InvalidInput, match="counted together"):
            local.tally_parquet(tmp_path / "ours.parquet", tmp_path / "theirs.parquet")
        with pytest.raises(InvalidInput, match="counted together"):
            _ = reports + theirs
        with pytest.raises(InvalidInput, match="counted together"):
            _ = reports.tally() + theirs.tally()


def test_order_of_names_matters() -> None:
    one = local.Direct.calibrated(epsilon=1, categories=["a", "b", "c"])
    two = local.Direct.calibrated(epsilon=1, categories=["b", "a", "c"])
    with pytest.raises(InvalidInput, match="order"):
        two.estimate(one.randomize(["a", "c"]))


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_damaged_columns_are_refused(protocol: Any, tmp_path: Path) -> None:
    table = _reports(protocol).to_arrow()
    meta = {METADATA: protocol.to_json().encode()}
    kind = table.schema.field(0).type
    good = table.column(0).combine_chunks()

    def write(array: Any) -> Path:
        path = tmp_path / "damaged.parquet"
        pq.write_table(pa.table({"report": array}).replace_schema_metadata(meta), path)
        return path

    damaged = [pa.concat_arrays([good, pa.array([None], kind)])]
    if protocol.width:
        damaged.append(pa.array([b"x" * (protocol.width + 1)], pa.binary(protocol.width + 1)))
        damaged.append(pa.array([b"x" * protocol.width], pa.binary()))
        if protocol.categories % 8:
            damaged.append(pa.concat_arrays([good, pa.array([b"\xff" * protocol.width], kind)]))
        with pytest.raises(InvalidInput, match="bytes"):
            local.Reports.of(protocol, [b"x" * (protocol.width + 1)])
        with pytest.raises(InvalidInput, match="bytes"):
            local.Reports(protocol, np.zeros((2, protocol.width + 1), np.uint8))
    else:
        wide = pa.concat_arrays([good.cast(pa.int64()), pa.array([protocol.limit], pa.int64())])
        damaged.append(wide)
        if protocol.limit < 2**kind.bit_width // 2:
            damaged.append(wide.cast(kind))
        for report in (protocol.limit, -1, 1.0, True, "1", None):
            with pytest.raises(InvalidInput):
                local.Reports.of(protocol, [report])  # type: ignore[list-item]
    for array in damaged:
        path = write(array)
        with pytest.raises(InvalidInput):
            local.tally_parquet(path)
        with pytest.raises(InvalidInput):
            local.Reports.from_parquet(path)


def test_reports_of_no_map_or_multiplier_or_size_are_refused() -> None:
    for protocol in (p for p in ALL if isinstance(p, local.LocalHashing | local.AffineSubset)):
        with pytest.raises(InvalidInput, match="at least 1"):
            local.Reports(protocol, np.array([1]))
    subset = local.Subset(3, 5, size=2)
    with pytest.raises(InvalidInput, match="holds 2"):
        local.Reports(subset, np.array([[0b111]], np.uint8))


def test_what_is_no_collection_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"report": [1, 2]}), plain)
    text = tmp_path / "text.parquet"
    text.write_text("report\n1\n")
    for path in (plain, text, tmp_path / "missing.parquet", tmp_path):
        with pytest.raises(InvalidInput):
            local.tally_parquet(path)
        with pytest.raises(InvalidInput):
            local.Reports.from_parquet(path)
    with pytest.raises(InvalidInput, match="no files"):
        local.tally_parquet()
    with pytest.raises(InvalidInput, match="metadata"):
        local.Reports.from_arrow(pa.table({"report": [1]}))


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    _reports(ALL[0], 50_000).to_parquet(path)
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(2000) + data[2100:])
    with pytest.raises(InvalidInput, match=r"read|report"):
        local.tally_parquet(path)


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_empty_collections_say_nothing(protocol: Any, tmp_path: Path) -> None:
    empty = local.Reports.of(protocol, [])
    path = tmp_path / "empty.parquet"
    empty.to_parquet(path)
    with pytest.raises(InvalidInput, match="empty"):
        empty.estimate()
    with pytest.raises(InvalidInput, match="empty"):
        local.tally_parquet(path).estimate()
    with pytest.raises(InvalidInput, match="at least one"):
        protocol.randomize([])


STORED: dict[str, Any] = {
    '{"kind": "local.direct", "v": 1, "odds": "3", "categories": "2"}': local.Direct(3, 2),
    '{"kind": "local.unary", "v": 1, "odds": "3", "categories": "2", "names": ["a", "b"]}': local.Unary(3, ["a", "b"]),
    '{"kind": "local.hashing", "v": 1, "odds": "5/2", "categories": "9", "values": "4"}': local.LocalHashing(2.5, 9, 4),
    '{"kind": "local.subset", "v": 1, "odds": "5/2", "categories": "9", "size": "3"}': local.Subset(2.5, 9, 3),
    '{"kind": "local.affine_subset", "v": 1, "odds": "5/2", "categories": "9", "size": "3"}': local.AffineSubset(2.5, 9, 3),
    '{"kind": "local.hadamard", "v": 1, "odds": "5/2", "categories": "9"}': local.Hadamard(Fraction(5, 2), 9),
    '{"kind": "local.one_bit_mean", "v": 1, "odds": "3", "low": "0", "high": "5/2", "steps": "10"}': local.OneBitMean(
        3, 0, 2.5, 10
    ),
}


@pytest.mark.parametrize("text", STORED)
def test_the_stored_form_keeps_its_meaning(text: str) -> None:
    assert local.protocol_from_json(text) == STORED[text]
    assert STORED[text].to_json() == text


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"kind": "local.direct", "v": 2}', '{"kind": "local.direct", "v": 1, "odds": "3", "categories": "x"}'],
)
def test_bad_stored_forms_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        local.protocol_from_json(text)
