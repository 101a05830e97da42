"""Reports carry their protocol, also in files; mixing,
damage and emptiness are refused, and nothing is half-counted.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino.local as local
from sordino.errors import InvalidInput
from sordino.local.reports import METADATA, same
from sordino.privacy import json_form
from tape import Tape, replay

ALL: list[Any] = [
    kind.calibrated(epsilon=1, categories=k)
    for k in (5, 16, 100)
    for kind in (
        local.Direct,
        local.Unary,
        local.LocalHashing,
        local.Subset,
        local.AffineSubset,
        local.Hadamard,
    )
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
    for tally in (
        empty.tally,
        partial(local.tally_parquet, path),
        partial(local.tally_parquet, path, protocol=protocol),
    ):
        with pytest.raises(InvalidInput, match="empty"):
            tally()
    with pytest.raises(InvalidInput, match="at least one"):
        protocol.randomize([])


STORED: dict[str, Any] = {
    '{"kind": "local.direct", "v": 1, "odds": "3", "categories": "2"}': local.Direct(3, 2),
    '{"kind": "local.unary", "v": 1, "odds": "3", "categories": "2", "names": ["a", "b"]}': local.Unary(
        3, ["a", "b"]
    ),
    '{"kind": "local.hashing", "v": 1, "odds": "5/2", "categories": "9", "values": "4"}': local.LocalHashing(
        2.5, 9, 4
    ),
    '{"kind": "local.subset", "v": 1, "odds": "5/2", "categories": "9", "size": "3"}': local.Subset(
        2.5, 9, 3
    ),
    '{"kind": "local.affine_subset", "v": 1, "odds": "5/2", "categories": "9", "size": "3"}': local.AffineSubset(
        2.5, 9, 3
    ),
    '{"kind": "local.hadamard", "v": 1, "odds": "5/2", "categories": "9"}': local.Hadamard(
        Fraction(5, 2), 9
    ),
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
    [
        "",
        "{}",
        '{"kind": "local.direct", "v": 2}',
        '{"kind": "local.direct", "v": 1, "odds": "3", "categories": "x"}',
    ],
)
def test_bad_stored_forms_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        local.protocol_from_json(text)


SEVEN = local.Reports.of(local.Direct(3, 3), [0, 0, 0, 0, 1, 2, 2])


@pytest.mark.parametrize(
    "name", ["report=1/x.parquet", "Report=1/report=2/x.parquet", "a*.parquet", "b?.parquet", "c[0-9].parquet", "d[.parquet",
             "e].parquet", "**", "it's [!x]*{y,z}.parquet", "report=1/f*.parquet"],
)  # fmt: skip
def test_exactly_the_named_file_is_counted(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for decoy in ("a1.parquet", "b1.parquet", "c1.parquet", "report=1/f1.parquet"):
        (tmp_path / decoy).parent.mkdir(exist_ok=True)
        local.Reports.of(SEVEN.protocol, [1] * 9).to_parquet(tmp_path / decoy)
    SEVEN.to_parquet(path)
    for spelling in (path, str(path), tmp_path / "." / name):
        assert local.tally_parquet(spelling).counts.tolist() == [4, 1, 2]


def test_a_pattern_is_no_file(tmp_path: Path) -> None:
    SEVEN.to_parquet(tmp_path / "a1.parquet")
    with pytest.raises(InvalidInput, match="read"):
        local.tally_parquet(tmp_path / "a*.parquet")


def test_no_file_is_counted_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    SEVEN.to_parquet("x.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "x.parquet")
    for other in (
        "x.parquet",
        Path("x.parquet"),
        "./x.parquet",
        "sub/../x.parquet",
        tmp_path / "x.parquet",
        "link.parquet",
    ):
        with pytest.raises(InvalidInput, match="counted twice"):
            local.tally_parquet("x.parquet", other)
    SEVEN.to_parquet("y.parquet")
    assert local.tally_parquet("x.parquet", "y.parquet").answers == 14


@pytest.mark.parametrize(
    "names",
    [["Report", "report"], ["report", "Report"], ["report", "report"], ["report", "x"], ["x"]],
)
def test_only_a_table_of_one_column_is_a_collection(names: list[str], tmp_path: Path) -> None:
    column = SEVEN.to_arrow().column(0)
    other = pa.chunked_array([pa.array([1] * 7, pa.uint8())])
    table = pa.Table.from_arrays([column, other][: len(names)], names=names)
    path = tmp_path / "x.parquet"
    pq.write_table(
        table.replace_schema_metadata({METADATA: SEVEN.protocol.to_json().encode()}), path
    )
    with pytest.raises(InvalidInput, match="one column"):
        local.tally_parquet(path)
    with pytest.raises(InvalidInput, match="one column"):
        local.Reports.from_parquet(path)


def test_files_that_miscount_themselves_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sordino.local import collect

    SEVEN.to_parquet(tmp_path / "x.parquet")
    stream = collect._stream
    monkeypatch.setattr(
        collect, "_stream", lambda *given: (column[1:] for column in stream(*given))
    )
    with pytest.raises(InvalidInput, match="hold 7 reports"):
        local.tally_parquet(tmp_path / "x.parquet")


@pytest.mark.parametrize("memory", ["foo", "", "5", "'; SELECT 1", 5, b"500MB", 1.5, ["1GB"]])
def test_bad_memory_limits_are_refused(memory: Any, tmp_path: Path) -> None:
    SEVEN.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="500MB"):
        local.tally_parquet(tmp_path / "x.parquet", memory=memory)


@pytest.mark.parametrize(
    "path", [None, 5, b"x.parquet", ["x.parquet"], "", "x\0.parquet", "\ud800.parquet"], ids=repr
)
def test_what_is_no_path_is_refused(path: Any) -> None:
    for read in (local.tally_parquet, local.Reports.from_parquet):
        with pytest.raises(InvalidInput):
            read(path)


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_reports_in_every_form(protocol: Any) -> None:
    reports = _reports(protocol, 50)
    table = reports.to_arrow()
    single = (
        [row.tobytes() for row in reports.column] if protocol.width else reports.column.tolist()
    )
    forms = [single, tuple(single), iter(single), reports.column, reports.column.copy(), table.column(0),
             table.column(0).combine_chunks(), pa.array(single)]  # fmt: skip
    if not protocol.width:
        forms += [
            reports.column.astype(np.uint64),
            list(reports.column),
            reports.column.astype(object),
        ]
    for form in forms:
        assert (local.Reports.of(protocol, form).column == reports.column).all()
    batch = table.to_batches()[0]
    assert (local.Reports.from_arrow(batch).column == reports.column).all()


@pytest.mark.parametrize(
    "reports",
    [
        None, 5, "01", b"\x00\x01", {0, 1}, {0: 1}, np.array(1), np.array([[0, 1]]), np.array([0.0, 1.0]), np.array([True]),
        np.array([3]), np.array([-1]), np.array([2**64 - 1], np.uint64), np.ma.array([0, 1], mask=[True, False]),
        pa.array([0, None]), pa.array([0.0]), pa.table({"report": [0]}), pd.DataFrame({0: [1, 1]}), [np.bool_(True)],
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_other_things_are_no_reports(reports: Any) -> None:
    with pytest.raises(InvalidInput):
        local.Reports.of(SEVEN.protocol, reports)
    with pytest.raises(InvalidInput):
        local.Reports.of(local.Unary(3, 3), reports)


def test_misuse_of_collections_is_refused() -> None:
    for column in ([0, 1], None, pa.array([0, 1]), np.ma.array([0, 1], mask=[False, True])):
        with pytest.raises(InvalidInput, match="whole number"):
            local.Reports(SEVEN.protocol, column)  # type: ignore[arg-type]
    for table in (None, 3, SEVEN, SEVEN.to_arrow().to_pylist(), pd.DataFrame({"report": [0]})):
        with pytest.raises(InvalidInput, match="Arrow"):
            local.Reports.from_arrow(table)
    for one in (SEVEN, SEVEN.tally()):
        for more in (3, None, [0], SEVEN.tally() if one is SEVEN else SEVEN):
            with pytest.raises(InvalidInput, match="added"):
                _ = one + more  # type: ignore[operator]


def test_what_was_checked_cannot_be_changed() -> None:
    mine = np.array([0, 1, 2])
    for reports in (
        local.Reports(SEVEN.protocol, mine),
        local.Reports.of(SEVEN.protocol, mine),
        SEVEN,
        SEVEN + SEVEN,
    ):
        with pytest.raises(ValueError, match="read-only"):
            reports.column[0] = 99
    mine[0] = 1
    memory = local.Repeated(local.Direct(9, 3), local.Direct(3, 3))
    assert len(memory.refresh(memory.memoise([0, 1]))) == 2


BAD_NUMBERS = [
    "1e3000000",
    "1e-3000000",
    "1E99999999999999999",
    "3" * 100_001,
    "1/0",
    "",
    "x",
    "1e",
    None,
    3,
    ["3"],
]


@pytest.mark.parametrize("odds", BAD_NUMBERS, ids=lambda v: repr(v)[:20])
def test_stored_numbers_that_are_none_or_too_long_are_refused(odds: Any) -> None:
    text = json.dumps({"kind": "local.direct", "v": 1, "odds": odds, "categories": "3"})
    with pytest.raises(InvalidInput, match="odds"):
        local.protocol_from_json(text)


def test_long_numbers_come_back() -> None:
    """Python itself neither writes nor reads more than 4300 digits; the loss of many reports has more."""
    odds = Fraction(3**20_000, 2**31_000)
    protocol = local.Direct(odds, 3)
    assert local.protocol_from_json(protocol.to_json()) == protocol
    diary = local.Repeated(
        local.Direct(1 + Fraction(1, 3**900), 2), local.Direct(1 + Fraction(1, 3**901), 2)
    )
    loss = diary.loss(reports=20)
    text = loss.to_json()
    assert max(len(x) for x in json.loads(text)["p"]) > 2 * 4300
    assert type(loss).from_json(text) == loss


DAMAGED: list[tuple[Any, dict[str, Any]]] = [
    (local.Direct(3, 3), {"categories": "5/2"}),
    (local.Direct(3, ["a", "b"]), {"categories": "3"}),
    (local.Direct(3, ["a", "b"]), {"names": 2}),
    (local.Direct(3, 3), {"names": 5}),
    (local.Subset(3, 9, 3), {"size": "7/2"}),
    (local.AffineSubset(3, 9, 3), {"size": "7/2"}),
    (local.LocalHashing(3, 9, 4), {"values": "9/2"}),
    (local.OneBitMean(3, 0, 1, 10), {"steps": "21/2"}),
    *(
        (local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000), damage)
        for damage in (
            {"kept": "999999999999"}, {"kept": "257/2"}, {"text": "5"}, {"text": "1/2"}, {"text": "-1"}, {"length": "33/2"},
            {"most": "65/2"}, {"values": "9/2"}, {"lengths": ["17/2", "16"]}, {"lengths": ["8", "33/2"]}, {"lengths": "16"},
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "damage"), DAMAGED, ids=repr)
def test_damaged_numbers_of_protocols_are_refused(protocol: Any, damage: dict[str, Any]) -> None:
    fields = json.loads(protocol.to_json())
    assert local.protocol_from_json(json.dumps(fields)) == protocol
    with pytest.raises(InvalidInput):
        local.protocol_from_json(json.dumps(fields | damage))


def test_whole_numbers_are_not_rounded() -> None:
    assert json_form.whole({"n": "6/2"}, "n") == 3
    assert json_form.wholes({"n": ["1", "-2"]}, "n") == (1, -2)
    for wrong in ("5/2", "2.5", "1e-1"):
        with pytest.raises(InvalidInput, match='"n" must be a whole number'):
            json_form.whole({"n": wrong}, "n")
        with pytest.raises(InvalidInput, match='"n" must be a whole number'):
            json_form.wholes({"n": ["1", wrong]}, "n")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"kind": "local.direct", "v": 1, "names": ' + "[" * 100_000,
    ],
)
def test_texts_nested_too_deeply_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        local.protocol_from_json(text)


@pytest.mark.parametrize(
    "reports",
    [[0, 1, 2], np.array([0, 1]), None, SEVEN.tally(), SEVEN.to_arrow()],
    ids=lambda v: type(v).__name__,
)
def test_only_reports_are_estimated(reports: Any) -> None:
    for protocol in (
        SEVEN.protocol,
        local.OneBitMean(3, 0, 1),
        local.Repeated(local.Direct(9, 3), local.Direct(3, 3)),
    ):
        with pytest.raises(InvalidInput, match=r"reports are needed here"):
            protocol.estimate(reports)  # type: ignore[union-attr]


def test_what_differs_is_told() -> None:
    def told(one: Any, two: Any) -> str:
        with pytest.raises(InvalidInput) as caught:
            same(one, two)
        assert "odds" not in str(caught.value)
        return caught.value.rule.removeprefix("they cannot be counted together: ")

    def direct(epsilon: float, categories: Any) -> local.Direct:
        return local.Direct.calibrated(epsilon=epsilon, categories=categories)

    assert told(direct(1, 3), direct(2, 3)) == "epsilon 2 instead of 1"
    assert told(direct(1, 3), direct(1.0001, 3)) == "epsilon 1.0001 instead of 1"
    assert told(direct(1, 3), direct(1 + 1e-14, 3)) == "an epsilon that differs a little"
    assert told(direct(1, 3), direct(1, 4)) == "4 categories instead of 3"
    assert told(direct(1, 2), direct(1, ["a", "b"])) == "categories with names instead of without"
    assert told(direct(1, ["a", "b"]), direct(1, 2)) == "categories without names instead of with"
    assert (
        told(direct(1, ["a", "b"]), direct(1, ["b", "a"])) == "the same categories in another order"
    )
    assert told(direct(1, ["a", "b"]), direct(1, ["a", "c"])) == "category 'c' instead of 'b'"
    assert (
        told(direct(1, ["a", "b"]), direct(2, list("abc")))
        == "epsilon 2 instead of 1, 3 categories instead of 2"
    )
    assert (
        told(direct(1, 3), local.Unary.calibrated(epsilon=2, categories=3))
        == "Unary instead of Direct, epsilon 2 instead of 1"
    )
    assert told(local.Subset(3, 5, 1), local.Subset(3, 5, 2)) == "size 2 instead of 1"
    assert (
        told(local.OneBitMean(3, 0, 1, 5), local.OneBitMean(3, 0, 1, 6)) == "steps 6 instead of 5"
    )
    assert told(local.Direct(Fraction(3**20_000, 2**31_000), 2), local.Direct(3, 2)).startswith(
        "epsilon 1.099 instead of "
    )


def test_the_file_that_differs_is_named(tmp_path: Path) -> None:
    for epsilon in (1, 2):
        local.Direct.calibrated(epsilon=epsilon, categories=3).randomize([0, 1]).to_parquet(
            tmp_path / f"{epsilon}.parquet"
        )
    with pytest.raises(InvalidInput, match=r"2\.parquet.*epsilon 2 instead of 1"):
        local.tally_parquet(tmp_path / "1.parquet", tmp_path / "2.parquet")


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_files_are_passed_one_by_one(kind: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"tally_parquet\(\*paths\)"):
        local.tally_parquet(kind([tmp_path / "a.parquet"]))


@pytest.mark.parametrize("path", ["nodir/x.parquet", ".", None, 5, "", "a\0b"])
def test_what_cannot_be_written_is_refused(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput):
        SEVEN.to_parquet(path)
    assert list(tmp_path.iterdir()) == []


def test_collections_add_up_by_sum() -> None:
    assert sum([SEVEN, SEVEN, SEVEN]).column.tolist() == 3 * SEVEN.column.tolist()  # type: ignore[union-attr]
    total = sum([SEVEN.tally(), SEVEN.tally()])
    assert isinstance(total, local.Tally)
    assert (total.answers, total.counts.tolist()) == (
        2 * len(SEVEN),
        (2 * SEVEN.tally().counts).tolist(),
    )
    for nothing in (1, 0.0, False, None, [0], ""):
        for one in (SEVEN, SEVEN.tally()):
            with pytest.raises(InvalidInput, match="added"):
                _ = nothing + one


@pytest.mark.parametrize("protocol", [local.Direct(3, 3), local.Unary(3, 3)], ids=repr)
def test_reports_through_a_frame_are_read_by_their_protocol(protocol: Any) -> None:
    reports = protocol.randomize([0, 1, 2] * 5)
    pandas, polars = reports.to_arrow().to_pandas(), pl.DataFrame(reports.to_arrow())
    for table in (pandas, polars, pa.Table.from_pandas(pandas), polars.to_arrow()):
        with pytest.raises(InvalidInput, match=r"Reports\.of\(protocol, table"):
            local.Reports.from_arrow(table)
        assert (local.Reports.of(protocol, table["report"]).column == reports.column).all()
