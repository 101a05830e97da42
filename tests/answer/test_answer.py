from __future__ import annotations

import builtins
import math
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sordino.accounting.charge import NOTHING
from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.answer.plot import MOST
from sordino.answer.text import key_text, number, spread
from sordino.errors import InvalidInput
from sordino.ledger.receipt import Receipt
from sordino.privacy.text_table import clean
from sordino.query.aggregates.estimates import Estimates
from sordino.query.tree import Call, Column, Literal, Order, Value

NAN = math.nan


def estimates(*triples: tuple[float, float, float]) -> Estimates:
    value, low, high = (
        (np.array(x) for x in zip(*triples, strict=True)) if triples else (np.zeros(0),) * 3
    )
    return Estimates(value, low, high)


def around(values: list[float], half: float) -> Estimates:
    v = np.array(values)
    return Estimates(v, v - half, v + half)


RECEIPT = Receipt(1, NOTHING, "SELECT COUNT(*) AS n FROM visits")


def wards() -> Answer:
    return Answer(
        (
            KeyColumn("ward", ("A", "B", None)),
            EstimateColumn("n", around([1203.4, -3.0, 88.0], 12), integer=True, bounds=(0, None)),
            EstimateColumn(
                "cost",
                estimates((103.2345, 101.7, 104.8), (0.5, 0.0, 12.25), (NAN, NAN, NAN)),
                bounds=(0, 5000),
            ),
        ),
        privacy="The answer is 0.2-differentially private for each patient.",
        receipt=RECEIPT,
        notes=("rows without a patient were dropped",),
    )


def test_columns_are_plain_values_after_declared_postprocessing() -> None:
    a = wards()
    assert a.to_dict() == {
        "ward": ["A", "B", None],
        "n": [1203, 0, 88],
        "n_low": [1191, 0, 76],
        "n_high": [1216, 12, 100],
        "cost": [103.2345, 0.5, None],
        "cost_low": [101.7, 0.0, None],
        "cost_high": [104.8, 12.25, None],
    }
    assert all(type(x) is int for x in a["n"])
    assert a["n_high"] == [1216, 12, 100]
    assert len(a) == 3
    assert a.rows()[1]["ward"] == "B"
    assert [row["n"] for row in a] == [1203, 0, 88]
    assert repr(a) == "Answer(3 rows: ward, n, cost)"
    assert a.receipt is RECEIPT


def test_single_numbers() -> None:
    one = Answer((EstimateColumn("n", around([7.0], 2), integer=True),))
    assert one.value() == one.value("n") == 7
    assert one.interval() == (5, 9)
    with pytest.raises(InvalidInput, match="3 rows"):
        wards().value("n")
    keyed = Answer(
        (
            KeyColumn("k", ("a",)),
            EstimateColumn("n", around([7.0], 2)),
            EstimateColumn("m", around([1.0], 2)),
        )
    )
    with pytest.raises(InvalidInput, match="'n', 'm'"):
        keyed.value()
    assert keyed.value("k") == "a"
    with pytest.raises(InvalidInput, match="intervals"):
        keyed.interval("k")


def test_unknown_columns_get_a_hint() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'cost'"):
        wards()["cots"]
    with pytest.raises(InvalidInput, match="It has 'ward', 'n'"):
        wards()["zzzzz"]


def test_names_of_ends_make_way_for_columns() -> None:
    a = Answer((EstimateColumn("n", around([7.0], 2)), KeyColumn("n_low", ("x",))))
    assert a.to_dict() == {"n": [7.0], "n_low_2": [5.0], "n_high": [9.0], "n_low": ["x"]}


@pytest.mark.parametrize(
    "columns",
    [
        (),
        (KeyColumn("a", (1,)), KeyColumn("a", (2,))),
        (KeyColumn("a", (1,)), KeyColumn("b", (2, 3))),
    ],
)
def test_malformed_answers_are_refused(columns: tuple[KeyColumn, ...]) -> None:
    with pytest.raises(InvalidInput):
        Answer(columns)


def test_arrow_pandas_polars_agree() -> None:
    a = wards()
    table = a.to_arrow()
    assert table.schema.field("n").type == pa.int64()
    assert table.schema.field("cost_low").type == pa.float64()
    assert table.to_pydict() == a.to_dict()
    assert a.to_polars().to_dict(as_series=False) == a.to_dict()
    frame = a.to_pandas()
    assert list(frame.columns) == list(a.to_dict())
    assert frame["n"].tolist() == [1203, 0, 88]


@pytest.mark.parametrize(
    ("keys", "kind", "plain"),
    [
        ((True, None), pa.bool_(), [True, None]),
        ((2020, 2021), pa.int64(), [2020, 2021]),
        ((Fraction(1, 2), 1), pa.float64(), [0.5, 1.0]),
        ((date(2024, 1, 1), None), pa.date32(), [date(2024, 1, 1), None]),
        ((datetime(2024, 1, 1, 5), None), pa.timestamp("us"), [datetime(2024, 1, 1, 5), None]),
        ((None, None), pa.string(), [None, None]),
        ((2**70, 1), pa.float64(), [2.0**70, 1.0]),
    ],
)
def test_key_types(keys: tuple[Value, ...], kind: pa.DataType, plain: list[object]) -> None:
    column = (
        Answer((KeyColumn("k", keys), EstimateColumn("n", around([1.0, 2.0], 1))))
        .to_arrow()
        .column("k")
    )
    assert column.type == kind
    assert column.to_pylist() == plain


def test_empty_answers_keep_their_types() -> None:
    a = Answer(
        (
            KeyColumn("city", ()),
            EstimateColumn("n", estimates(), integer=True),
            EstimateColumn("m", estimates()),
        )
    )
    assert [str(t) for t in a.to_arrow().schema.types] == ["string"] + ["int64"] * 3 + [
        "double"
    ] * 3
    assert "(no rows)" in str(a)
    assert a.rows() == []
    assert a.plot().to_dict()["title"]["subtitle"] == "no groups"


def test_arranged_by_the_noisy_numbers() -> None:
    a = wards()
    having = Call(">", (Column("n"), Literal(10)))
    assert a.arranged(having)["ward"] == ["A", None]
    assert a.arranged(order=(Order("n"),))["n"] == [0, 88, 1203]
    assert a.arranged(order=(Order("cost", True),))["cost"] == [103.2345, 0.5, None]
    assert a.arranged(order=(Order("n", True),), limit=1, offset=1)["n_high"] == [100]
    assert a.arranged(limit=2)["ward"] == ["A", "B"]
    assert a.arranged(having, limit=0).rows() == []
    assert a.arranged().privacy == a.privacy


def test_table() -> None:
    assert wards().to_text(100).splitlines() == [
        "ward      n ± 95 %    cost ± 95 %",
        "────  ─────────────  ─────────────",
        "A     1,203 ± 13     103.2 ± 1.6",
        "B         0 [0, 12]    0   [0, 12]",
        "NULL     88 ± 12      NULL",
        "",
        "Each interval holds the number before noise with a probability of at least 95 %.",
        "The answer is 0.2-differentially private for each patient.",
        "Note: rows without a patient were dropped",
    ]


def test_public_answers_have_no_intervals() -> None:
    v = np.array([0.1, 2.0])
    text = Answer((KeyColumn("k", ("a", "b")), EstimateColumn("x", Estimates(v, v, v)))).to_text(80)
    assert text.splitlines() == ["k    x", "─  ───", "a  0.1", "b  2"]
    assert "±" not in text
    assert "interval" not in text


def test_long_and_wide_tables_are_cut() -> None:
    rows = 100
    a = Answer(
        (
            KeyColumn("year", tuple(range(1950, 2050))),
            *(
                EstimateColumn(f"number_{i}", around([1000.0 * i] * rows, 7), integer=True)
                for i in range(12)
            ),
        )
    )
    lines = a.to_text(60).splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert "... 60 more rows" in lines
    assert any(line.startswith("... 9 more columns: number_3,") for line in lines)
    assert "1950" in lines[2]
    assert len(a.to_text(60, rows=100).splitlines()) > 100


NASTY = ["a\nb", "\x1b[31mred", "<script>alert(1)</script>", "日本", "x" * 500, "", "é", "‮rtl"]


def test_nasty_keys_stay_in_their_cells() -> None:
    a = Answer(
        (
            KeyColumn("k", tuple(NASTY)),
            EstimateColumn("n", around([1.0] * len(NASTY), 2), integer=True),
        )
    )
    text = a.to_text(100)
    assert len(text.splitlines()) == len(NASTY) + 4
    assert "\x1b" not in text
    assert "‮" not in text
    html = a._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == len(NASTY) + 1


def test_html_is_cut_and_says_what_is_promised() -> None:
    a = Answer(
        (KeyColumn("k", tuple(range(50))), EstimateColumn("n", around([1.0] * 50, 2))),
        privacy="so & so",
    )
    html = a._repr_html_()
    assert "... 10 more rows" in html
    assert "so &amp; so" in html


@pytest.mark.parametrize(
    ("x", "half", "text"),
    [
        (1234.5678, 3.21, "1,234.6"),
        (0.123456789, 0.0021, "0.1235"),
        (98765.4, 321, "98,765"),
        (-0.0004, 0.5, "0.00"),
        (5.0, 0, "5"),
        (1 / 3, 0, "0.3333333333"),
        (1e20, 1e3, "1e+20"),
        (1e-20, 1e-21, "1e-20"),
        (NAN, 1, "NULL"),
        (2.0, math.inf, "2"),
    ],
)
def test_digits_follow_the_noise(x: float, half: float, text: str) -> None:
    assert number(x, half) == text


def test_spreads() -> None:
    assert spread(10, 8, 12) == "± 2.0"
    assert spread(10, 8, 30) == "[8, 30]"
    assert spread(10, 9, 12, integer=True) == "± 2"
    assert spread(10, 10, 10) == ""
    assert spread(NAN, NAN, NAN) == ""


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e300))
def test_any_number_can_be_shown(x: float, half: float) -> None:
    assert number(x, half)
    shown = number(x, half).replace(",", "")
    assert abs(float(shown) - x) <= max(half, abs(x) * 1e-5)
    spread(x, x - half, x + half)


def test_keys_as_text() -> None:
    cells: list[Any] = [None, True, 0.5, date(2024, 1, 2), datetime(2024, 1, 2, 3, 4), "a\tb", 7]
    assert [key_text(c) for c in cells] == [
        "NULL",
        "true",
        "0.5",
        "2024-01-02",
        "2024-01-02 03:04:00",
        "a\\tb",
        "7",
    ]
    assert clean("plain text") == "plain text"


def marks(panel: dict[str, Any]) -> list[str]:
    return [layer["mark"]["type"] for layer in panel["layer"]]


def drawn(a: Answer) -> dict[str, Any]:
    spec: dict[str, Any] = a.plot().to_dict()
    return spec


def panels(a: Answer) -> list[dict[str, Any]]:
    """The panels, each with its data: Altair moves what all share to the top."""
    spec = drawn(a)
    return [{"data": spec.get("data"), **p} for p in spec.get("vconcat") or spec["hconcat"]]


def values(panel: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = panel["data"]["values"]
    return found


def test_plot_has_a_panel_for_each_number_and_leaves_nulls_out() -> None:
    count, cost = panels(wards())
    assert marks(count) == ["bar", "rule"]
    assert [v["key"] for v in values(count)] == ["A", "B", "NULL"]
    assert [v["key"] for v in values(cost)] == ["A", "B"]
    assert values(count)[1]["text"] == "0 [0, 12]"


def test_plot_of_one_number_and_of_ordered_keys() -> None:
    (panel,) = panels(Answer((EstimateColumn("n", around([7.0], 2), integer=True),)))
    assert marks(panel) == ["point", "rule", "text"]
    for keys, kind in (
        ((2020, 2021), "quantitative"),
        ((date(2024, 1, 1), date(2024, 2, 1)), "temporal"),
    ):
        (panel,) = panels(
            Answer((KeyColumn("k", keys), EstimateColumn("n", around([7.0, 8.0], 2))))
        )
        assert panel["layer"][0]["encoding"]["x"]["type"] == kind


def test_plot_of_two_keys_has_colours() -> None:
    a = Answer(
        (
            KeyColumn("w", ("A", "A")),
            KeyColumn("s", ("f", "m")),
            EstimateColumn("n", around([7.0, 8.0], 2)),
        )
    )
    (panel,) = panels(a)
    assert [v["series"] for v in values(panel)] == ["f", "m"]
    assert "xOffset" in panel["layer"][0]["encoding"]


def test_plot_of_very_many_keys_shows_the_first() -> None:
    n = MOST + 50
    a = Answer(
        (
            KeyColumn("c", tuple(f"city {i}" for i in range(n))),
            EstimateColumn("n", around([7.0] * n, 2)),
        )
    )
    assert "the first 200 of 250 groups" in drawn(a)["title"]["subtitle"]
    assert len(values(panels(a)[0])) == MOST


def test_plot_is_saved(tmp_path: Path) -> None:
    wards().plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InvalidInput, match="ending"):
        wards().plot(tmp_path / "a.xyz")


@pytest.mark.parametrize(
    ("library", "method"),
    [("pyarrow", "to_arrow"), ("pandas", "to_pandas"), ("polars", "to_polars"), ("altair", "plot")],
)
def test_missing_libraries_say_what_to_install(
    library: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    real_import, real_module = builtins.__import__, importlib.import_module

    def no_import(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    def no_module(name: str, package: str | None = None) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real_module(name, package)

    monkeypatch.setattr(builtins, "__import__", no_import)
    monkeypatch.setattr(importlib, "import_module", no_module)
    with pytest.raises(InvalidInput, match="Install it: pip install"):
        getattr(wards(), method)()
