"""Answers as text: what is stored comes back bit for bit, and what goes into pipes can be read by others."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import sordino as so
from sordino.accounting.charge import NOTHING
from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.answer.plot import _kind, _rows
from sordino.errors import InvalidInput
from sordino.ledger.receipt import Receipt
from sordino.query.aggregates.estimates import Estimates

NAN, INF = math.nan, math.inf
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def column(name: str, triples: list[tuple[float, float, float]], **options: Any) -> EstimateColumn:
    value, low, high = (np.array([t[i] for t in triples], float) for i in range(3))
    # numbers at the end of all floats are moved, too
    with np.errstate(invalid="ignore", over="ignore"):
        return EstimateColumn(name, Estimates(value, low, high), **options)


TEXTS = st.text(st.characters(), max_size=5)  # lone surrogates included
# which of two equal hours it is means nothing without a place
MOMENTS = st.datetimes().map(lambda at: at.replace(fold=0))
KEYS: list[st.SearchStrategy[Any]] = [
    st.text(max_size=5),
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.fractions(),
    st.dates(),
    MOMENTS,
]
FLOATS = st.floats()
FINITE = st.floats(allow_infinity=False, min_value=-1e300, max_value=1e300) | st.just(NAN)


@st.composite
def answers(
    draw: st.DrawFn, numbers: st.SearchStrategy[float] = FLOATS, kinds: Any = KEYS
) -> Answer:
    rows = draw(st.integers(0, 4))
    names = draw(st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True))
    columns: list[KeyColumn | EstimateColumn] = []
    for i, name in enumerate(names):
        if i and draw(st.booleans()):
            cells = st.none() | draw(st.sampled_from(kinds))
            columns.append(
                KeyColumn(name, tuple(draw(st.lists(cells, min_size=rows, max_size=rows))))
            )
        else:
            triples = draw(
                st.lists(st.tuples(numbers, numbers, numbers), min_size=rows, max_size=rows)
            )
            bounds = draw(
                st.sampled_from(
                    [(None, None), (0, None), (0.0, None), (-1.5, 2.5), (0.5, 0.7), (None, INF)]
                )
            )
            columns.append(column(name, triples, integer=draw(st.booleans()), bounds=bounds))
    confidence: Any = draw(st.sampled_from([0.95, 1 / 3, Fraction(19, 20), Decimal("0.950"), 1]))
    return Answer(
        tuple(columns),
        draw(st.text(max_size=9)),
        None,
        confidence,
        tuple(draw(st.lists(st.text(), max_size=2))),
    )


def parts(a: Answer) -> Any:
    """All that an answer holds, with the types of keys, and floats by their bits; every NaN is one NULL."""

    def bits(array: Any) -> list[int]:
        return np.where(np.isnan(array), NAN, array).view(np.int64).tolist()  # type: ignore[no-any-return]

    def fields(c: KeyColumn | EstimateColumn) -> Any:
        if isinstance(c, KeyColumn):
            return c.name, [(type(v), repr(v)) for v in c.values]
        return (
            c.name,
            c.integer,
            repr(c.bounds),
            *(bits(x) for x in (c.estimates.value, c.estimates.low, c.estimates.high)),
        )

    return [fields(c) for c in a.columns], a.privacy, repr(a.confidence), a.notes


@UNHURRIED
@given(answers(kinds=[*KEYS, st.one_of(KEYS), st.floats()]))
def test_everything_comes_back(a: Answer) -> None:
    text = a.to_json()
    text.encode()
    back = Answer.from_json(text)
    assert parts(back) == parts(a)
    assert back.to_json() == text == a.to_json()
    assert json.loads(text)["v"] == 1
    assert (
        json.dumps(
            json.loads(text),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        == text
    )


@UNHURRIED
@given(answers(FINITE))
def test_what_came_back_looks_the_same(a: Answer) -> None:
    back = Answer.from_json(a.to_json())
    assert back.to_dict() == a.to_dict()
    assert back.names == a.names
    assert (str(back), repr(back), back._repr_html_()) == (str(a), repr(a), a._repr_html_())
    assert (back.to_csv(), back.to_records_json()) == (a.to_csv(), a.to_records_json())
    kind = _kind(a)
    assert _kind(back) == kind
    for now, then in zip(back.estimates, a.estimates, strict=True):
        assert _rows(back, now, kind, len(a)) == _rows(a, then, kind, len(a))


ARROW_KEYS = [
    st.text(max_size=5),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.fractions(),
    st.dates(),
    MOMENTS,
]


@UNHURRIED
@given(answers(kinds=ARROW_KEYS))
def test_the_same_arrow_table_comes_back(a: Answer) -> None:
    assert Answer.from_json(a.to_json()).to_arrow().equals(a.to_arrow())


def test_the_receipt_is_not_stored_but_attached() -> None:
    a = Answer((column("n", [(1, 0, 2)]),), receipt=Receipt(7, NOTHING, "secret question"))
    assert "secret" not in a.to_json()
    assert Answer.from_json(a.to_json()).receipt is None
    assert Answer.from_json(a.to_json(), receipt=a.receipt).receipt is a.receipt
    assert Answer.from_json(a.to_json(), a.receipt).to_json() == a.to_json()


VERSION_1 = (
    '{"columns":[{"key":"k","values":["é",1180591620717411303424,true,0.5,{"fraction":[1,3]},{"date":"2024-02-29"},'
    '{"datetime":"2024-02-29T05:06:07.000008"},null]},'
    '{"bounds":[0.0,null],"estimate":"n","high":[1e+22,"inf",3.0,3.0,3.0,3.0,3.0,null],"integer":true,'
    '"low":[0.0,0.0,1.0,1.0,1.0,1.0,1.0,null],"value":[1e+22,5.0,2.0,2.0,2.0,2.0,2.0,null]}],'
    '"confidence":0.95,"kind":"answer","notes":["a note"],"privacy":"a promise","v":1}'
)
"""Never change it: ledgers hold such texts."""


def test_the_form_of_version_1_is_fixed() -> None:
    keys = (
        "é",
        2**70,
        True,
        0.5,
        Fraction(1, 3),
        date(2024, 2, 29),
        datetime(2024, 2, 29, 5, 6, 7, 8),
        None,
    )
    triples = [(1e22, -5, 1e22), (5, 0, INF), *[(2.2, 1.1, 2.9)] * 5, (NAN, NAN, NAN)]
    a = Answer(
        (KeyColumn("k", keys), column("n", triples, integer=True, bounds=(0.0, None))),  # type: ignore[arg-type]
        "a promise",
        notes=("a note",),
    )
    assert a.to_json() == VERSION_1
    assert parts(Answer.from_json(VERSION_1)) == parts(a)


def test_numbers_are_not_moved_or_rounded_again() -> None:
    """Bounds between whole numbers: whoever finishes the column twice gets a wider interval each time."""
    a = Answer((column("n", [(0.5, 0.5, 0.6)], integer=True, bounds=(0.5, 1.2)),))
    (once,) = a.estimates
    twice = EstimateColumn("n", once.estimates, True, (0.5, 1.2))
    assert twice.highs != once.highs
    assert Answer.from_json(a.to_json()).to_dict() == a.to_dict() == a.take(np.array([0])).to_dict()


@pytest.mark.parametrize("bounds", [(None, None), (0.0, None), (0.0, 10.0), (-3.0, None)])
@UNHURRIED
@given(st.tuples(FINITE, FINITE, FINITE), st.booleans())
def test_columns_with_whole_bounds_could_be_finished_twice(
    bounds: Any, triple: Any, integer: bool
) -> None:
    once = column("n", [triple], integer=integer, bounds=bounds)
    twice = EstimateColumn("n", once.estimates, integer, bounds)
    assert (twice.cells, twice.lows, twice.highs) == (once.cells, once.lows, once.highs)


@UNHURRIED
@given(TEXTS, TEXTS)
@example("\ud800", "\\\udfff")
@example("\\u\ud83d", "\ude00\ud83d")
def test_lone_surrogates_come_back(name: str, key: str) -> None:
    a = Answer(
        (
            KeyColumn(name, (key, "x")),
            column("n", [(1, 0, 2)] * 2) if name != "n" else column("m", [(1, 0, 2)] * 2),
        )
    )
    text = a.to_json()
    assert Answer.from_json(text.encode().decode()).to_json() == text
    a.to_csv().encode()
    a.to_records_json().encode()
    if not any(
        "\ud800" <= c < "\udc00" <= d < "\ue000" for part in (name, key) for c, d in pairwise(part)
    ):
        assert Answer.from_json(text).to_dict() == a.to_dict()


def test_a_pair_of_surrogates_becomes_its_character() -> None:
    a = Answer((KeyColumn("k", ("\ud83d\ude00",)), column("n", [(1, 0, 2)])))
    assert Answer.from_json(a.to_json())["k"] == ["😀"]


def test_moments_keep_their_offset() -> None:
    at = datetime(2024, 1, 1, 5, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))
    back = Answer.from_json(Answer((KeyColumn("k", (at,)), column("n", [(1, 0, 2)]))).to_json())[
        "k"
    ][0]
    assert isinstance(back, datetime)
    assert (back, back.utcoffset()) == (at, at.utcoffset())


def test_keys_that_cannot_be_stored_are_refused_without_quoting_them() -> None:
    numbers = column("n", [(1, 0, 2)])
    for key in (b"secret", ("secret",), 10 ** (sys.get_int_max_str_digits() + 1)):
        with pytest.raises(InvalidInput) as refusal:
            Answer((KeyColumn("k", (key,)), numbers)).to_json()  # type: ignore[arg-type]
        assert "secret" not in str(refusal.value)
        assert len(str(refusal.value)) < 300


def damaged(**changes: Any) -> str:
    return json.dumps({**json.loads(VERSION_1), **changes})


def estimate(**changes: Any) -> dict[str, Any]:
    return {
        "estimate": "n",
        "integer": False,
        "bounds": [None, 1],
        "value": [2.0],
        "low": [1.0],
        "high": [3.0],
        **changes,
    }


def key(*values: Any) -> dict[str, Any]:
    return {"key": "k", "values": list(values)}


def test_the_examples_below_are_right_but_for_their_damage() -> None:
    assert len(Answer.from_json(damaged())) == 8
    assert len(Answer.from_json(damaged(columns=[key(1), estimate()]))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "SECRET",
        "[" * 100_000,
        '{"kind": "answer"}',
        '{"kind": "answer", "v": 1}',
        VERSION_1[:-1],
        VERSION_1 + "}",
        VERSION_1.replace("0.95", "NaN"),
        VERSION_1.replace("1e+22", "1e+999"),
        VERSION_1.replace('"inf"', "Infinity"),
        damaged(v=0),
        damaged(v=True),
        damaged(v="1"),
        damaged(extra=1),
        damaged(privacy=None),
        damaged(notes="SECRET"),
        damaged(notes=[1]),
        damaged(confidence="SECRET"),
        damaged(confidence=True),
        damaged(confidence=None),
        damaged(columns=None),
        damaged(columns=[]),
        damaged(columns=[1]),
        damaged(columns=[{}]),
        damaged(columns=[key(1), key(2)]),
        damaged(columns=[key(1, 2), estimate()]),
        damaged(columns=[key([1])]),
        damaged(columns=[key({})]),
        damaged(columns=[key({"date": "SECRET"})]),
        damaged(columns=[key({"date": 1})]),
        damaged(columns=[key({"datetime": "2024-01-01T25:00"})]),
        damaged(columns=[key({"decimal": "SECRET"})]),
        damaged(columns=[key({"decimal": 1})]),
        damaged(columns=[key({"float": "1"})]),
        damaged(columns=[key({"fraction": "1/3"})]),
        damaged(columns=[key({"fraction": [1, 0]})]),
        damaged(columns=[key({"fraction": [1, True]})]),
        damaged(columns=[key({"other": "SECRET"})]),
        damaged(columns=[{"key": 1, "values": [1]}]),
        damaged(columns=[{**key(1), "more": 1}]),
        damaged(columns=[estimate(integer=1)]),
        damaged(columns=[estimate(bounds=[None])]),
        damaged(columns=[estimate(bounds=[False, None])]),
        damaged(columns=[estimate(bounds=["SECRET", None])]),
        damaged(columns=[estimate(bounds=[{"fraction": [1, 3]}, None])]),
        damaged(columns=[estimate(value=2.0)]),
        damaged(columns=[estimate(value=[2])]),
        damaged(columns=[estimate(value=[2.0, 2.0])]),
        damaged(columns=[estimate(value=["2.0"])]),
        damaged(columns=[estimate(value=["nan"])]),
        damaged(columns=[estimate(value=[[2.0]])]),
        damaged(columns=[estimate(low=[2.5])]),
        damaged(columns=[estimate(high=[1.5])]),
        damaged(columns=[estimate(high=[None])]),
        damaged(columns=[{**estimate(), "more": 1}]),
    ],
)
def test_damaged_texts_are_refused_without_quoting_them(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a stored answer, or it is damaged") as refusal:
        Answer.from_json(text)
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("text", [None, 7, b"{}", VERSION_1.encode(), ["x"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(InvalidInput, match=type(text).__name__):
        Answer.from_json(text)


@UNHURRIED
@given(st.data())
def test_no_cut_text_is_read(data: st.DataObject) -> None:
    with pytest.raises(InvalidInput):
        Answer.from_json(VERSION_1[: data.draw(st.integers(0, len(VERSION_1) - 1))])


def test_other_kinds_and_newer_versions_are_named() -> None:
    with pytest.raises(InvalidInput, match="kind 'laplace'"):
        Answer.from_json(so.Laplace(2).to_json())
    with pytest.raises(InvalidInput, match=r"version 2.*up to version 1.*newer Sordino"):
        Answer.from_json(damaged(v=2, meaning="unknown"))


def visits() -> Answer:
    return Answer(
        (
            KeyColumn("ward", ("A", 'say "hi", you', None, "two\r\nlines", "")),
            KeyColumn(
                "day",
                (date(2024, 2, 29), None, date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)),
            ),
            KeyColumn("smoker", (True, False, None, True, True)),
            column(
                "n",
                [(12.4, 10, 15), (1e15, 0, 2e15), (3, 1, INF), (NAN, NAN, NAN), (0, 0, 0)],
                integer=True,
            ),
            column(
                "cost",
                [(0.1, -INF, 0.30000000000000004), (1e-7, 0, 1), (NAN, 1, 2), (2, 1, 3), (2, 1, 3)],
            ),
        )
    )


def test_csv() -> None:
    assert visits().to_csv() == (
        "ward,day,smoker,n,n_low,n_high,cost,cost_low,cost_high\n"
        "A,2024-02-29,true,12,10,15,0.1,-inf,0.30000000000000004\n"
        '"say ""hi"", you",,false,1000000000000000,0,2000000000000000,1e-07,0.0,1.0\n'
        ",2024-01-01,,3,1,inf,,,\n"
        '"two\r\nlines",2024-01-02,true,,,,2.0,1.0,3.0\n'
        ",2024-01-03,true,0,0,0,2.0,1.0,3.0\n"
    )


@UNHURRIED
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=4))
def test_csv_reads_back_whatever_the_keys_hold(keys: list[str]) -> None:
    a = Answer((KeyColumn("k", tuple(keys)), column("n", [(7, 5, 9)] * len(keys), integer=True)))
    assert list(csv.reader(io.StringIO(a.to_csv(formulas=True), newline=""))) == [
        ["k", "n", "n_low", "n_high"]
    ] + [[k, "7", "5", "9"] for k in keys]


@UNHURRIED
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_text_of_a_csv_is_a_formula(key: str) -> None:
    a = Answer((KeyColumn("k", (key,)), column("n", [(-7, -9, -5)], integer=True)))
    text, *numbers = list(csv.reader(io.StringIO(a.to_csv(), newline="")))[1]
    assert text in (key, f"'{key}")
    assert text.lstrip()[:1] not in {*"=+-@", *map(chr, (0xFF1D, 0xFF0B, 0xFF0D, 0xFF20))}
    assert numbers == ["-7", "-9", "-5"]


@pytest.mark.parametrize(
    "key", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r\n=1", "\uff1d1"]
)
def test_formulas_in_keys_and_names_get_an_apostrophe_unless_asked(key: str) -> None:
    a = Answer((KeyColumn(key, (key, None)), column("n", [(7, 5, 9)] * 2)))
    assert [row[0] for row in csv.reader(io.StringIO(a.to_csv(), newline=""))] == [
        f"'{key}",
        f"'{key}",
        "",
    ]
    assert [row[0] for row in csv.reader(io.StringIO(a.to_csv(formulas=True), newline=""))] == [
        key,
        key,
        "",
    ]


def test_csv_of_moments_and_fractions_and_of_no_rows() -> None:
    a = Answer(
        (
            KeyColumn("at", (datetime(2024, 1, 2, 3, 4),)),
            KeyColumn("x", (Fraction(1, 2),)),
            column("n", [(1, 0, 2)]),
        )
    )
    assert a.to_csv().splitlines()[1] == "2024-01-02T03:04:00,0.5,1.0,0.0,2.0"
    assert a.take(np.array([], np.intp)).to_csv() == "at,x,n,n_low,n_high\n"
    assert a.take(np.array([], np.intp)).to_records_json() == "[]"


def test_records() -> None:
    text = visits().to_records_json()
    rows = json.loads(text, parse_constant=lambda constant: pytest.fail(constant))
    assert rows[0] == {
        "ward": "A", "day": "2024-02-29", "smoker": True, "n": 12, "n_low": 10, "n_high": 15,
        "cost": 0.1, "cost_low": None, "cost_high": 0.30000000000000004,
    }  # fmt: skip
    assert list(rows[0]) == list(visits().to_dict())
    assert [row["n"] for row in rows] == [12, 10**15, 3, None, 0]
    assert rows[2]["n_high"] is None
    assert len(text.split("\n")) == len(rows)


@UNHURRIED
@given(answers())
def test_records_of_any_answer_are_plain_json(a: Answer) -> None:
    rows = json.loads(a.to_records_json(), parse_constant=lambda constant: pytest.fail(constant))
    assert [list(row) for row in rows] == [list(a.to_dict())] * len(a)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "answer.parquet"
    visits().to_parquet(path)
    table = pq.read_table(path)
    assert table.equals(visits().to_arrow())
    assert table.schema.field("n_high").type == pa.float64()  # one of them is infinite
    assert table.schema.field("n_low").type == pa.int64()
    with pytest.raises(InvalidInput, match="cannot be written"):
        visits().to_parquet(tmp_path / "no folder" / "answer.parquet")
    with pytest.raises(InvalidInput, match="cannot be written"):
        visits().to_parquet(str(tmp_path))


def test_answers_of_a_session_come_back() -> None:
    frame = pa.table(
        {
            "ward": ["A", "B"] * 500,
            "city": ["Rome"] * 900 + ["Oslo"] * 100,
            "age": list(range(100)) * 10,
            "day": [date(2024, 1, 1 + i % 3) for i in range(1000)],
        }
    )
    columns: dict[str, dict[str, Any]] = {
        "ward": {"type": "category", "values": ["A", "B"]},
        "city": {"type": "text"},
        "age": {"type": "int", "min": 0, "max": 110},
        "day": {"type": "date", "min": "2024-01-01", "max": "2024-01-03"},
    }
    data = so.Dataset(frame, unit="row", columns=columns, budget=so.Budget(1000, 1e-4))
    asked = [
        "SELECT ward, COUNT(*) AS n, AVG(age) AS age, MEDIAN(age) AS m FROM data GROUP BY ward ORDER BY n DESC",
        "SELECT city, COUNT(*) AS n, STDDEV(age) AS s FROM data GROUP BY city HAVING n > 1",
        "SELECT day, age >= 50 AS old, SUM(age) AS s FROM data GROUP BY day, age >= 50",
        "SELECT BUCKET(age, 0.5) AS b, COUNT(*) FROM data GROUP BY BUCKET(age, 0.5)",
    ]
    with so.Session(data) as session:
        for sql in asked:
            a = session.sql(sql, epsilon=5)
            back = Answer.from_json(a.to_json(), a.receipt)
            assert parts(back) == parts(a)
            assert (back.to_dict(), str(back), back.receipt) == (a.to_dict(), str(a), a.receipt)
            assert back.to_arrow().equals(a.to_arrow())
            assert back.plot().to_dict()["title"] == a.plot().to_dict()["title"]
