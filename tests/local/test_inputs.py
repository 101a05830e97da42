"""True answers in every form, and what is refused before anything is drawn."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sordino.local as local
from sordino.errors import InvalidInput
from tape import Script, replay

KINDS: list[Any] = [
    local.Direct,
    local.Unary,
    local.LocalHashing,
    local.Subset,
    local.AffineSubset,
    local.Hadamard,
]
CERTAIN = 90
"""At this epsilon the reports of Direct are the truth."""


@pytest.mark.parametrize(
    "values",
    [
        [0, 2, 1],
        (0, 2, 1),
        [np.uint64(0), np.int64(2), 1],
        np.array([0, 2, 1]),
        np.array([0, 2, 1], np.uint8),
        pa.array([0, 2, 1]),
        pa.chunked_array([[0], [2, 1]]),
        pd.Series([0, 2, 1]),
        pl.Series([0, 2, 1]),
    ],
    ids=lambda v: type(v).__module__ + type(v).__name__,
)
def test_numbers_in_every_form(values: Any) -> None:
    assert local.Direct.calibrated(epsilon=CERTAIN, categories=3).randomize(
        values
    ).column.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "values",
    [
        ["a", "c", "b"],
        np.array(["a", "c", "b"]),
        np.array(["a", "c", "b"], object),
        pa.array(["a", "c", "b"]),
        pa.array(["a", "c", "b"], pa.large_string()),
        pa.array(["a", "c", "b"]).dictionary_encode(),
        pa.chunked_array([["a"], ["c", "b"]]),
        pd.Series(["a", "c", "b"]),
        pd.Series(["a", "c", "b"], dtype="category"),
        pl.Series(["a", "c", "b"]),
    ],
    ids=lambda v: type(v).__module__ + type(v).__name__ + str(getattr(v, "dtype", "")),
)
def test_names_in_every_form(values: Any) -> None:
    protocol = local.Direct.calibrated(epsilon=CERTAIN, categories=["a", "b", "c"])
    assert protocol.randomize(values).column.tolist() == [0, 2, 1]
    assert protocol.randomize_one("c") == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "values",
    [
        [3], [-1], [0, 3], [0.0], [None], ["a"], [[0, 1]], 1, None, "a", np.array([0.0]), np.array([[0]]), np.array([3]),
        np.array([-1]), pa.array([0, None]), np.ma.array([0, 1], mask=[True, False]), [], np.array([], int), [0, 2**70],
        pd.Series([0, None]), [True, "x"], pd.DataFrame({"a": [0]}), pl.DataFrame({"a": [0]}), pa.table({"a": [0]}), {0, 1},
        {0: 1}, b"\0", [b"a"], [np.uint64(2**63), np.int64(1)],
    ],
    ids=lambda v: type(v).__name__ + (repr(v) if len(repr(v)) < 40 and " at 0x" not in repr(v) else ""),
)  # fmt: skip
def test_bad_answers_are_refused_and_nothing_is_drawn(kind: Any, values: Any) -> None:
    script = Script([])
    with replay(script), pytest.raises(InvalidInput):
        kind.calibrated(epsilon=1, categories=3).randomize(values)
    assert script.asked == 0


@pytest.mark.parametrize(
    "values",
    [
        ["d"], ["a", None], [1], ["a", 1], [], 1, "abc", None, np.array([1.0]), [["a"]], [b"a"], np.array([b"a"]), b"abc",
        {"a", "b"}, {"a": 1}, {"a": 1}.keys(), pd.DataFrame({"a": ["a"]}), pl.DataFrame({"a": ["a"]}),
        pa.table({"a": ["a"]}), pa.array([b"a"]), pa.array([b"a"]).dictionary_encode(), iter(["a"]), np.array([["a"]]),
        np.array("a"), ["\ud800"],
        pd.Series([], dtype=object), pa.array([], pa.string()),
    ],
    ids=lambda v: type(v).__module__ + type(v).__name__,
)  # fmt: skip
def test_bad_names_are_refused(values: Any) -> None:
    protocol = local.Direct.calibrated(epsilon=1, categories=["a", "b", "c"])
    with pytest.raises(InvalidInput):
        protocol.randomize(values)
    with pytest.raises(InvalidInput, match="missing answer" if values is None else "a, b, c"):
        protocol.randomize_one(values)


@pytest.mark.parametrize("value", [3, -1, 0.5, "0", [0], math.inf])
def test_bad_single_answers_are_refused(value: Any) -> None:
    for kind in KINDS:
        with pytest.raises(InvalidInput, match="0 to 2"):
            kind.calibrated(epsilon=1, categories=3).randomize_one(value)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True, 101])
def test_bad_epsilon_is_refused(epsilon: Any) -> None:
    for kind in KINDS:
        with pytest.raises(InvalidInput, match="epsilon"):
            kind.calibrated(epsilon=epsilon, categories=3)
    with pytest.raises(InvalidInput, match="epsilon"):
        local.OneBitMean.calibrated(epsilon=epsilon, low=0, high=1)
    with pytest.raises(InvalidInput, match="epsilon"):
        local.choose(epsilon, 4, 100)


@pytest.mark.parametrize("categories", [1, 0, -3, 2.0, True, "ab", [], ["a"], ["a", "a"], ["a", 1], None, 2**60,
                                        [["x"], ["y"]], [{}, "a"], ({"a"}, "b")])  # fmt: skip
def test_bad_categories_are_refused(categories: Any) -> None:
    for kind in KINDS:
        with pytest.raises(InvalidInput, match="categories"):
            kind.calibrated(epsilon=1, categories=categories)


@pytest.mark.parametrize("odds", [1, 0.5, 0, -2, "3", None, math.inf])
def test_bad_odds_are_refused(odds: Any) -> None:
    with pytest.raises(InvalidInput, match="odds"):
        local.Direct(odds, 2)


@pytest.mark.parametrize("size", [0, 5, -1, 2.0, True, None])
def test_bad_sizes_are_refused(size: Any) -> None:
    for kind in (local.Subset, local.AffineSubset):
        with pytest.raises(InvalidInput, match="size"):
            kind(3, 5, size)


@pytest.mark.parametrize("values", [1, 6, 9, 512, 2.0, True, None])
def test_numbers_of_hash_values_that_are_no_field_are_refused(values: Any) -> None:
    with pytest.raises(InvalidInput, match="values"):
        local.LocalHashing(3, 100, values)
    with pytest.raises(InvalidInput, match="62 bits"):
        local.LocalHashing(3, 2**48, 65537)


@pytest.mark.parametrize("share", [-0.1, 1.1, "0", math.nan])
def test_bad_shares_are_refused(share: Any) -> None:
    with pytest.raises(InvalidInput, match="share"):
        local.Direct(3, 2).variance(10, share)


def test_numbers_for_one_bit() -> None:
    certain = local.OneBitMean.calibrated(epsilon=CERTAIN, low=0, high=10)
    for values in (
        [0, 10, 10.0],
        np.array([0.0, 10.0, 10.0]),
        pa.array([0, 10, 10]),
        pd.Series([0, 10, 10]),
    ):
        assert certain.randomize(values).column.tolist() == [0, 1, 1]
    assert certain.randomize_one(Fraction(10)) == 1
    for values in ([11], [-1], [math.nan], ["1"], [], 5, np.array([11.0]), np.array([math.nan]), np.array(["1"]), [None],
                   pa.array([1, None]), np.array([[1.0]]), [True], np.ma.array([1.0], mask=[True])):  # fmt: skip
        with pytest.raises(InvalidInput):
            certain.randomize(values)
    for low, high in ((1, 1), (2, 1), (0, math.inf), ("0", 1)):
        with pytest.raises(InvalidInput):
            local.OneBitMean(3, low, high)  # type: ignore[arg-type]
    for steps in (0, -1, 1.5, True, 2**62):
        with pytest.raises(InvalidInput, match="steps"):
            local.OneBitMean(3, 0, 1, steps)  # type: ignore[arg-type]


def test_whole_numbers_lie_on_the_grid() -> None:
    for low, high in ((0, 100), (-7, 29), (0, Fraction(5, 2)), (0, 1)):
        protocol = local.OneBitMean.calibrated(epsilon=1, low=low, high=high)
        assert ((1 / (Fraction(high) - low)) * protocol.steps).denominator == 1
        assert protocol.steps >= 2**35


def test_repr_and_bits() -> None:
    assert (
        repr(local.Subset(3, ["a", "b", "c"], 1))
        == "Subset(odds=3, categories=['a', 'b', 'c'], size=1)"
    )
    assert [kind.calibrated(epsilon=1, categories=1000).bits for kind in KINDS] == [
        10,
        1000,
        12,
        1000,
        20,
        10,
    ]
    assert local.OneBitMean(3, 0, 1).bits == 1


def test_large_domains_are_asked_about_some_categories() -> None:
    protocol = local.LocalHashing.calibrated(epsilon=3, categories=2**40)
    reports = protocol.randomize(np.full(5000, 12345678901))
    counts = protocol.supports_for(reports.column, np.array([12345678901, 77]))
    assert counts[0] > 2 * counts[1]
    with pytest.raises(InvalidInput, match="supports_for"):
        reports.tally()
    with pytest.raises(InvalidInput, match="supports_for"):
        local.Hadamard.calibrated(epsilon=3, categories=2**40).randomize([5]).tally()


@pytest.mark.parametrize("names", [[["a"], ["b"]], ["a"], ["a", "a"], "ab", [1, 2], [{}, {}]])
def test_stored_names_that_are_none_are_refused(names: Any) -> None:
    fields = {"kind": "local.direct", "v": 1, "odds": "3", "categories": "2", "names": names}
    with pytest.raises(InvalidInput):
        local.protocol_from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "values", [np.array(5), 5, None, {1, 2}, {1: 2}, pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), np.array([[1]]),
               b"a", bytearray(b"a"), iter([1]), [], [1.0], [-1], [2**16], np.array([-1]), [None], pa.array([1, None])],
    ids=lambda v: type(v).__module__ + type(v).__name__,
)  # fmt: skip
def test_bad_long_numbers_are_refused(values: Any) -> None:
    with pytest.raises(InvalidInput):
        local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000).randomize(values)


@pytest.mark.parametrize(
    "values", [["\ud800"], ["abcde"], ["a\0"], [1], "abc", {"a", "b"}, {"a": 1}, pd.DataFrame({"a": ["b"]}), np.array("a"),
               np.array([["a"]]), pl.DataFrame({"a": ["b"]}), pa.table({"a": ["b"]})],
    ids=lambda v: type(v).__module__ + type(v).__name__,
)  # fmt: skip
def test_bad_long_texts_are_refused(values: Any) -> None:
    search = local.HeavyHitters.calibrated(epsilon=1, bits=32, persons=1000, text=True)
    with pytest.raises(InvalidInput):
        search.randomize(values)
    if isinstance(values, list):
        with pytest.raises(InvalidInput):
            search.randomize_one(values[0])


def test_long_values_in_every_form() -> None:
    numbers = local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000)
    for values in (
        [1, np.uint64(2)],
        (1, 2),
        range(1, 3),
        np.array([1, 2]),
        pa.array([1, 2]),
        pd.Series([1, 2]),
        pl.Series([1, 2]),
    ):
        assert len(numbers.randomize(values)) == 2
    texts = local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000, text=True)
    for values in (
        ["a", b"b"],
        np.array(["a", "b"]),
        pa.array(["a", "b"]),
        pd.Series(["a", "b"]),
        pl.Series(["a", "b"]),
    ):
        assert len(texts.randomize(values)) == 2


GONE: list[Any] = [
    None,
    math.nan,
    np.float64("nan"),
    pd.NA,
    pd.NaT,
    pa.scalar(None),
    pa.scalar(None, pa.string()),
    np.ma.masked,
]
NUMBERS: list[Any] = [
    [1, None], [1, math.nan], [1, pd.NA], np.array([1, math.nan]), np.array([1, None], object), pd.Series([1, None]),
    pd.Series([1, pd.NA], dtype="Int64"), pl.Series([1, None]), pl.Series([1.0, math.nan]), pa.array([1, None]),
    pa.array([1.0, math.nan]), np.ma.array([1, 2], mask=[False, True]),
]  # fmt: skip
TEXTS: list[Any] = [
    ["a", None], ["a", math.nan], ["a", pd.NA], [None], np.array(["a", None], object), pd.Series(["a", None]),
    pd.Series(["a", pd.NA], dtype="string"), pl.Series(["a", None]), pa.array(["a", None]),
    np.ma.array(["a", "b"], mask=[False, True]),
]  # fmt: skip
MISSING = "a missing answer: every person has an answer. Drop persons without one."


def _form(values: Any) -> str:
    return type(values).__module__ + type(values).__name__


@pytest.mark.parametrize("value", GONE, ids=repr)
def test_one_missing_answer_is_called_so(value: Any) -> None:
    for protocol in (
        *(kind.calibrated(epsilon=1, categories=3) for kind in KINDS),
        local.Direct(3, ["a", "b"]),
        local.OneBitMean(3, 0, 10),
        local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000),
        local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000, text=True),
    ):
        with pytest.raises(InvalidInput, match=MISSING):
            protocol.randomize_one(value)


@pytest.mark.parametrize("values", NUMBERS, ids=_form)
def test_missing_numbers_are_called_so(values: Any) -> None:
    search = local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000)
    for protocol in (local.Direct(3, 5), local.OneBitMean(3, 0, 10), search):
        with pytest.raises(InvalidInput, match=MISSING):
            protocol.randomize(values)


@pytest.mark.parametrize("values", TEXTS, ids=_form)
def test_missing_texts_are_called_so(values: Any) -> None:
    for protocol in (
        local.Direct(3, ["a", "b"]),
        local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000, text=True),
    ):
        with pytest.raises(InvalidInput, match=MISSING):
            protocol.randomize(values)


@pytest.mark.parametrize(
    "values", [[0.0, 1.0], np.array([0.0, 1.0]), pd.Series([0, 1.0]), pl.Series([0.0])], ids=_form
)
def test_floats_are_no_whole_numbers(values: Any) -> None:
    with pytest.raises(InvalidInput, match="whole numbers, 0 to 4"):
        local.Direct(3, 5).randomize(values)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Dog", "dog"),
        (" dog ", "dog"),
        ("dgo", "dog"),
        ("big  bird", "Big Bird"),
        ("zebra", None),
        ("", None),
    ],
)
def test_a_close_category_is_proposed(said: str, meant: str | None) -> None:
    protocol = local.Direct(3, ["dog", "cat", "Big Bird"])
    for randomize in (protocol.randomize_one, lambda value: protocol.randomize([value])):
        with pytest.raises(InvalidInput) as caught:
            randomize(said)
        assert ("Did you mean" in caught.value.hint) == (meant is not None)
        assert meant is None or f"Did you mean {meant!r}?" in caught.value.hint


@pytest.mark.parametrize(
    "categories",
    [
        np.array(["b", "a", "c"]), np.array(["b", "a", "c"], object), pd.Series(["b", "a", "c"], index=[7, 8, 9]),
        pd.Series(["b", "a", "c", "a"]).unique(), pd.Index(["b", "a", "c"]), pd.Categorical(["b", "a", "c"]),
        pd.Series(["a"], dtype=pd.CategoricalDtype(["b", "a", "c"])).cat.categories, pl.Series(["b", "a", "c"]),
        pl.Series(["b", "a", "c"], dtype=pl.Categorical), pa.array(["b", "a", "c"]), pa.chunked_array([["b"], ["a", "c"]]),
        ("b", "a", "c"),
    ],
    ids=_form,
)  # fmt: skip
def test_categories_in_every_form_keep_their_order(categories: Any) -> None:
    protocol = local.choose(CERTAIN, categories, 100).protocol
    assert protocol.names == ("b", "a", "c")
    assert {type(name) for name in protocol.names or ()} == {str}
    assert protocol == local.protocol_from_json(protocol.to_json())
    assert repr(protocol) == repr(local.choose(CERTAIN, ["b", "a", "c"], 100).protocol)


@pytest.mark.parametrize(
    ("categories", "told"),
    [
        ({"a", "b"}, "a set has none"),
        (frozenset({"a", "b"}), "a set has none"),
        ([1, 2, 3], "a list of different texts"),
        (np.array([1, 2, 3]), "a list of different texts"),
        (pd.Series([1, 2, 3]), "a list of different texts"),
        (["a", "b", "a"], "'a' twice"),
        (pd.Series(["a", "b", "a"]), "'a' twice"),
        (pd.Series(["a", None]), "a list of different texts"),
        (np.array([["a", "b"]]), "a list of different texts"),
        (pd.DataFrame({"x": ["a", "b"]}), "a list of different texts"),
        (pl.DataFrame({"x": ["a", "b"]}), "a list of different texts"),
        ({"a": 1, "b": 2}, "a list of different texts"),
    ],
    ids=lambda v: _form(v) if not isinstance(v, str) else v,
)
def test_what_are_no_categories_is_told_in_one_line(categories: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        local.Direct.calibrated(epsilon=1, categories=categories)
    assert len(caught.value.value) < 100
    assert "\n" not in str(caught.value)
