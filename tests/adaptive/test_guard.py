"""The guard: nothing that a function does on secret rows is seen, changes them, or makes a row count more than once."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import signal
import threading
import warnings
from contextlib import suppress
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sordino.adaptive.guard import GRID, GuardedSample
from sordino.adaptive.predicate import Predicate
from sordino.adaptive.statistical_queries import StatisticalQueries
from sordino.errors import InvalidInput, SordinoError

Rows = npt.NDArray[Any]


def share(data: Any, phi: Any, example: Any = None) -> float:
    """How many rows phi counts; a text is a condition in SQL."""
    sample = GuardedSample.of(data, example)
    question = Predicate.of(phi, sample.example[0]) if isinstance(phi, str) else phi
    sample.rehearse(question)
    return sample.total(question) / GRID


class Own(BaseException):
    pass


LEAVING = [
    Own,
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    MemoryError,
    StopIteration,
]


@pytest.mark.parametrize("kind", LEAVING)
def test_whatever_is_raised_on_a_secret_row_counts_nothing_there(kind: type[BaseException]) -> None:
    def leaves(rows: Rows) -> Rows:
        if (rows == 7).any():
            raise kind("row 7")
        return np.ones(len(rows))

    assert share(np.array([1, 2, 7]), leaves) == 2


@pytest.mark.parametrize("kind", LEAVING)
def test_whatever_is_raised_on_public_rows_is_a_refusal(kind: type[BaseException]) -> None:
    def leaves(rows: Rows) -> Rows:
        raise kind("said")

    with pytest.raises(InvalidInput, match=kind.__name__):
        GuardedSample.of(np.ones(3)).rehearse(leaves)


def test_a_panic_of_polars_does_not_get_out(capfd: pytest.CaptureFixture[str]) -> None:
    def january(rows: Any) -> Any:
        return rows["ms"].cast(pl.Datetime("ms")).dt.truncate("1mo").dt.month() == 1

    assert share(pl.DataFrame({"ms": [0, 0, 0]}), january) == 3
    assert share(pl.DataFrame({"ms": [0, 0, 2**62]}), january) == 2
    capfd.readouterr()


class Stopped(Exception):
    pass


def test_a_real_interrupt_passes_and_handlers_are_as_before() -> None:
    def interrupted(rows: Rows) -> Rows:
        if len(rows) == 3:
            try:
                raise ValueError("secret")
            except ValueError:
                signal.raise_signal(signal.SIGINT)
        return np.ones(len(rows))

    def swallows(rows: Rows) -> Rows:
        try:
            return interrupted(rows)
        except BaseException:
            return np.ones(len(rows))

    def stop(number: int, frame: Any) -> None:
        raise Stopped

    sample = GuardedSample.of(np.ones(3))
    # a job in the background may ignore it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for phi in (interrupted, swallows):
            with pytest.raises(KeyboardInterrupt) as caught:
                sample.total(phi)
            assert caught.value.__context__ is None
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, stop)
        with pytest.raises(Stopped):
            sample.total(interrupted)
        assert signal.getsignal(signal.SIGINT) is stop
        signal.signal(signal.SIGINT, lambda number, frame: None)
        assert sample.total(interrupted) == 3 * GRID
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert sample.total(interrupted) == 3 * GRID
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_off_the_main_thread_nothing_passes() -> None:
    def leaves(rows: Rows) -> Rows:
        if (rows == 7).any():
            raise KeyboardInterrupt
        return np.ones(len(rows))

    found: list[int] = []
    thread = threading.Thread(
        target=lambda: found.append(GuardedSample.of(np.array([1, 7])).total(leaves))
    )
    thread.start()
    thread.join()
    assert found == [GRID]


def test_squeezing_one_row_to_a_number_is_a_number() -> None:
    def squeezed(rows: Rows) -> Rows:
        if np.isnan(rows).any():
            raise ValueError("Input contains NaN")
        return np.squeeze((rows > -1)[:, :1])

    clean, dirty = np.ones((50, 2)), np.ones((50, 2))
    dirty[3, 0] = math.nan
    assert (share(clean, squeezed), share(dirty, squeezed)) == (50, 49)


BATCHED: dict[str, Any] = {
    "rank": lambda x: x.argsort().argsort() / len(x),
    "centred": lambda x: x - x.mean(),
    "scaled": lambda x: x / x.max(),
    "sorted": np.sort,
    "backwards": lambda x: np.sort(x)[::-1],
    "reversed": lambda x: x[::-1],
    "median": lambda x: x > np.median(x),
    "repeated": lambda x: np.array([(x == v).sum() > 1 for v in x]) | (np.diff(x, prepend=9) == 0),
    "count": lambda x: np.full(len(x), 1 / len(x)),
    "first": lambda x: np.arange(len(x)) == 0,
}


@pytest.mark.parametrize("kind", [np.float64, np.int8], ids=["floats", "integers"])
@pytest.mark.parametrize("name", BATCHED)
def test_functions_of_other_rows_are_refused_where_the_example_shows_it(
    name: str, kind: Any
) -> None:
    sample = GuardedSample.of(np.arange(5).astype(kind))
    with pytest.raises(InvalidInput):
        sample.rehearse(lambda x: BATCHED[name](x.astype(float)))


def test_the_refusal_says_what_differs() -> None:
    with pytest.raises(
        InvalidInput,
        match=r"gave 0\.625 for one of 4 example rows, 0 for it alone.*one row at a time",
    ):
        GuardedSample.of(np.zeros(5)).rehearse(lambda x: x - x.mean())
    seen: list[int] = []

    def noted(rows: Rows) -> Rows:
        seen.append(len(rows))
        return rows

    long = np.linspace(0, 1, 100)
    GuardedSample.of(np.zeros(5), long).rehearse(noted)
    assert seen == [100, *[1] * 8]


def test_last_bits_may_differ_between_a_row_among_others_and_alone() -> None:
    weights = np.linspace(-1, 1, 301, dtype=np.float32)
    GuardedSample.of(np.zeros((5, 301), np.float32)).rehearse(
        lambda x: 1 / (1 + np.exp(x @ weights))
    )


def overwrites(rows: Any) -> Any:
    rows["age"] = rows["age"] / 100
    return rows["age"]


AGES = np.array([50, 100, 0, 50])


@pytest.mark.parametrize(
    "data",
    [{"age": AGES}, pd.DataFrame({"age": AGES}), pd.DataFrame({"age": AGES, "s": list("abcd")})],
)
def test_a_function_that_assigns_columns_gives_the_same_again(data: Any) -> None:
    sample = GuardedSample.of(data)
    for _ in range(3):
        sample.rehearse(overwrites)
        assert sample.total(overwrites) == 2 * GRID


def test_sorting_in_place_does_not_misalign_parts() -> None:
    values = np.array([3.0, 1.0, 2.0])
    sample = GuardedSample.of((pd.DataFrame({"a": values}), pd.Series(values)))

    def sorts(rows: Any, targets: Any) -> Any:
        rows.sort_values("a", inplace=True)
        rows.reset_index(drop=True, inplace=True)
        targets.sort_values(inplace=True)
        return np.ones(len(rows))

    assert sample.total(sorts) == 3 * GRID
    assert sample.total(lambda rows, targets: rows.a.to_numpy() == targets.to_numpy()) == 3 * GRID
    assert sample.total(lambda rows, targets: rows.a.to_numpy() == values) == 3 * GRID


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "real": [0.5, 0.25],
            "whole": pd.array([1, None], "Int64"),
            "text": ["a", "b"],
            "object": pd.Series(["a", None], dtype=object),
            "list": pd.Series([[1], [2]], dtype=object),
            "kind": pd.Categorical(["a", "b"]),
            "time": pd.to_datetime(["2020-01-01", "2021-01-01"]),
        }
    )


WRITES: dict[str, Any] = {
    "values": lambda d: d["real"].values.__setitem__(0, 9),
    "to_numpy": lambda d: d[["real"]].to_numpy().__setitem__((0, 0), 9),
    "array": lambda d: d["real"].array.__setitem__(0, 9),
    "whole": lambda d: d["whole"].array.__setitem__(0, 9),
    "text": lambda d: d["text"].array.__setitem__(0, "z"),
    "object": lambda d: d["object"].array.__setitem__(0, "z"),
    "list": lambda d: d["list"].iloc[0].append(9),
    "kind": lambda d: d["kind"].array.__setitem__(0, "b"),
    "time": lambda d: d["time"].array.__setitem__(0, d["time"].iloc[1]),
    "iloc": lambda d: d.iloc.__setitem__((0, 0), 9),
    "assign": lambda d: d.__setitem__("real", 9),
    "drop": lambda d: d.drop(index=d.index[0], inplace=True),
    "flags": lambda d: d["real"].array._ndarray.setflags(write=True),
    "columns": lambda d: setattr(d, "columns", list("abcdefg")),
    "index": lambda d: setattr(d.index, "name", "z"),
}


@pytest.mark.parametrize("name", WRITES)
def test_no_way_of_writing_reaches_a_kept_frame(name: str) -> None:
    mine = frame()
    sample = GuardedSample.of(mine, mine[:1])
    for kept, column in (
        (sample, None),
        *((GuardedSample.of(mine[c], mine[c][:1]), c) for c in mine),
    ):

        def writes(rows: Any, column: Any = column) -> Any:
            if column in (None, name) or (column, name) == ("real", "array"):
                WRITES[name](rows if column is None else {column: rows})
            raise Own

        kept.total(writes)
        expected = frame() if column is None else frame()[column]
        assert kept.parts[0].equals(expected)
        assert kept.parts[0].index.name is None


@pytest.mark.parametrize("names", [[10, 20], ["a", "b"], [1.5, 2.5]])
def test_the_categories_of_a_column_belong_to_nobody_else(names: list[Any]) -> None:
    mine = pd.DataFrame({"c": pd.Categorical.from_codes([0, 1, 0], categories=pd.Index(names))})
    sample = GuardedSample.of(mine)

    def writes(rows: Any) -> Any:
        column = rows["c"] if isinstance(rows, pd.DataFrame) else rows
        with suppress(Exception):
            np.asarray(column.cat.categories)[0] = names[1]
        raise Own

    with pytest.raises(InvalidInput):
        sample.rehearse(writes)
    sample.total(writes)
    GuardedSample.of(mine["c"]).total(writes)
    for frame in (sample.parts[0], mine):
        assert frame["c"].tolist() == [names[0], names[1], names[0]]
    np.asarray(mine["c"].cat.categories).setflags(write=True)
    with suppress(Exception):
        np.asarray(mine["c"].cat.categories)[0] = names[1]
    assert sample.parts[0]["c"].tolist() == [names[0], names[1], names[0]]


def test_a_subclass_with_objects_that_can_change_is_refused() -> None:
    class Frame(pd.DataFrame):  # type: ignore[misc]
        pass

    assert GuardedSample.of(Frame({"x": [1.0, 0.0]})).total(lambda d: d["x"]) == GRID
    with pytest.raises(InvalidInput, match="plain"):
        GuardedSample.of(Frame({"x": [[1], [0]]}), Frame({"x": [[1]]}))


def test_an_error_without_words_is_refused_like_any_other() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fails(rows: Any) -> Any:
        raise Mute

    with pytest.raises(InvalidInput, match="raised Mute"):
        GuardedSample.of(np.ones(3)).rehearse(fails)


def test_arrays_and_objects_cannot_be_changed() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0]])
    sample = GuardedSample.of(rows)

    def reshapes(rows: Rows) -> Rows:
        rows.shape = (rows.size,)
        return rows[: rows.size // 2]

    sample.total(reshapes)
    sample.total(lambda rows: rows.setflags(write=True))
    assert sample.parts[0].shape == (2, 2)
    assert not sample.parts[0].flags.writeable
    people = [{"age": 1}, {"age": 0}]
    objects = GuardedSample.of(people, [{"age": 1}])
    assert objects.total(lambda rows: [row.pop("age") for row in rows]) == GRID
    people[1]["age"] = 1
    assert objects.total(lambda rows: [row.pop("age") for row in rows]) == GRID


def test_writing_to_rows_is_refused_at_the_rehearsal_with_a_hint() -> None:
    def writes(rows: Rows) -> Rows:
        rows[rows > 1] = 1
        return rows

    for data, phi in (
        (np.ones(3), writes),
        ({"x": np.ones(3)}, lambda d: writes(d["x"])),
        (pd.Series(np.ones(3)), lambda d: writes(d.values)),
    ):
        with pytest.raises(InvalidInput, match=r"rows = rows\.copy\(\)"):
            GuardedSample.of(data).rehearse(phi)


def test_the_caller_cannot_change_a_sample_afterwards() -> None:
    memory = np.zeros(3)
    frame = pl.DataFrame({"x": memory})
    mine = {"x": memory}
    data = [
        frame,
        frame["x"],
        pa.table({"x": memory}),
        pa.array(memory),
        pd.DataFrame(mine, copy=False),
        mine,
        memory,
    ]
    samples = [GuardedSample.of(part) for part in data]
    memory[:] = 1
    frame.replace_column(0, pl.Series("x", [1.0, 1.0, 1.0]))
    for given, sample in zip(data, samples, strict=True):
        column = sample.parts[0]
        assert type(column) is type(given)
        if not isinstance(column, np.ndarray | pl.Series | pa.Array):
            column = column["x"]
        assert np.asarray(column).tolist() == [0, 0, 0]


def test_a_polars_frame_is_cloned_for_each_call() -> None:
    sample = GuardedSample.of(pl.DataFrame({"x": [0.0, 0.0]}))

    def replaces(rows: Any) -> Any:
        rows.replace_column(0, pl.Series("x", [1.0] * len(rows)))
        rows["x"][0] = 1.0
        return rows["x"]

    assert sample.total(replaces) == 2 * GRID
    assert sample.total(lambda rows: rows["x"]) == 0


def test_warnings_of_two_threads_are_silent_and_come_back() -> None:
    """The first leaves while the second is within, in the order that `catch_warnings` alone gets wrong."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    shown: list[str] = []

    def first(rows: Rows) -> Rows:
        first_in.set()
        assert second_in.wait(10)
        return rows

    def second(rows: Rows) -> Rows:
        second_in.set()
        assert first_out.wait(10)
        warnings.warn("saw a secret", stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("saw another", stacklevel=1)
        return rows

    def one() -> None:
        GuardedSample.of(np.ones(2)).total(first)
        first_out.set()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: shown.append(str(message))
        filters, show = warnings.filters, warnings.showwarning
        threads = [threading.Thread(target=one)]
        threads[0].start()
        assert first_in.wait(10)
        threads.append(threading.Thread(target=lambda: GuardedSample.of(np.ones(2)).total(second)))
        threads[1].start()
        for thread in threads:
            thread.join()
        assert shown == []
        assert (warnings.filters, warnings.showwarning) == (filters, show)
        warnings.warn("mine", stacklevel=1)
        assert shown == ["mine"]


POLARS: dict[str, Any] = {
    "bool": pl.Boolean, "i8": pl.Int8, "u64": pl.UInt64, "f32": pl.Float32, "text": pl.String, "bytes": pl.Binary,
    "date": pl.Date, "zoned": pl.Datetime("ms", "Europe/Paris"), "naive": pl.Datetime("ns"), "span": pl.Duration("us"),
    "time": pl.Time, "decimal": pl.Decimal(5, 5), "category": pl.Categorical, "enum": pl.Enum(["x", "y"]),
    "list": pl.List(pl.Date), "array": pl.Array(pl.Int8, (2, 3)), "struct": pl.Struct({"a": pl.Int8, "b": pl.List(pl.Date)}),
}  # fmt: skip
ARROW: dict[str, Any] = {
    "bool": pa.bool_(), "i8": pa.int8(), "f16": pa.float16(), "f64": pa.float64(), "text": pa.string(),
    "large": pa.large_string(), "view": pa.string_view(), "bytes": pa.binary(), "fixed": pa.binary(3), "date": pa.date32(),
    "date64": pa.date64(), "zoned": pa.timestamp("us", "Europe/Paris"), "naive": pa.timestamp("ns"),
    "span": pa.duration("s"), "time": pa.time32("ms"), "decimal": pa.decimal128(5, 5), "wide": pa.decimal256(50, 3),
    "category": pa.dictionary(pa.int8(), pa.string()), "list": pa.list_(pa.date32()), "pair": pa.list_(pa.int8(), 2),
    "struct": pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))]), "map": pa.map_(pa.string(), pa.int8()),
    "uuid": pa.uuid(),
}  # fmt: skip
PANDAS: dict[str, Any] = {
    "bool": [True], "int": [3], "float": [3.0], "text": ["s"], "object": pd.Series(["s", None], dtype=object),
    "Int64": pd.array([3, None], "Int64"), "boolean": pd.array([True, None], "boolean"),
    "Float32": pd.array([3, None], "Float32"), "string": pd.array(["s"], "string"),
    "category": pd.Categorical(["s", "t"]), "zoned": pd.to_datetime(["2020-01-01"]).tz_localize("Europe/Paris"),
    "naive": pd.to_datetime(["2020-01-01"]), "span": pd.to_timedelta([3], unit="s"),
    "period": pd.period_range("2020", periods=1, freq="M"), "sparse": pd.arrays.SparseArray([3]),
    "arrow": pd.array([3], pd.ArrowDtype(pa.int64())), "arrow list": pd.array([[3]], pd.ArrowDtype(pa.list_(pa.int64()))),
}  # fmt: skip
NUMPY = [
    "?",
    "i2",
    "u8",
    "f2",
    "c8",
    "U3",
    "S3",
    "M8[ns]",
    "M8[D]",
    "M8[Y]",
    "m8[s]",
    "i4,f4",
    "V3",
]


def test_example_rows_are_of_every_type_and_differ() -> None:
    polars = GuardedSample.of(
        pl.DataFrame({name: [None] for name in POLARS}, schema=POLARS)
    ).example[0]
    assert dict(polars.schema) == POLARS
    rows = [{name: repr(polars[name].to_list()[i]) for name in POLARS} for i in range(4)]
    table = pa.table(
        [pa.nulls(1, kind) for kind in ARROW.values()], schema=pa.schema(list(ARROW.items()))
    )
    arrow = GuardedSample.of(table).example[0]
    assert arrow.schema == table.schema
    more = [{name: repr(arrow[name][i].as_py()) for name in ARROW} for i in range(4)]
    for name, data in PANDAS.items():
        series = pd.Series(data)
        shown = GuardedSample.of(series).example[0]
        assert shown.dtype == series.dtype, name
        for i in range(4):
            rows[i][f"pandas {name}"] = repr(shown.iloc[i])
    for kind in NUMPY[:-1]:
        values = GuardedSample.of(np.zeros(2, kind)).example[0]
        assert values.dtype == np.dtype(kind)
        for i in range(4):
            more[i][f"numpy {kind}"] = repr(values[i])
    for found in (rows, more):
        for name in found[0]:
            assert "None" not in found[0][name]
            assert found[0][name] != found[1][name], name
    assert GuardedSample.of(np.zeros((2, 3, 2), NUMPY[-1])).example[0].shape == (4, 3, 2)


def test_example_rows_say_nothing_of_the_values() -> None:
    for one, two in (
        (np.array([5.0]), np.array([math.nan, 9.0])),
        (np.array(["x", None], object), np.array(["secret"], object)),
        (np.array([[1, "a"]], object), np.array([[None, None], [7, "z"]], object)),
        (np.array([1, 2.5], object), np.array([7.5], object)),
    ):
        shown = [GuardedSample.of(data).example[0].tolist() for data in (one, two)]
        assert shown[0] == shown[1]


def test_functions_that_always_fail_on_frames_are_refused() -> None:
    for data, phi in (
        (pl.DataFrame({"age": [5]}), lambda d: [r["aeg"] > 0 for r in d.iter_rows(named=True)]),
        (pa.table({"age": [5]}), lambda d: [r["aeg"] > 0 for r in d.to_pylist()]),
        (pa.record_batch({"age": [5]}), lambda d: [r["aeg"] > 0 for r in d.to_pylist()]),
    ):
        with pytest.raises(InvalidInput, match="KeyError"):
            GuardedSample.of(data).rehearse(phi)


OBJECTS: list[tuple[Any, str, int]] = [
    ({"s": ["a", None]}, "s = 'a'", 1),
    ({"s": np.array(["a", math.nan, "b"], object)}, "s = 'a'", 1),
    ({"s": np.array([True, None], object)}, "s", 1),
    ({"s": np.array([1, None, 5], object)}, "s >= 1", 2),
    ({"s": np.array([1, 2.5], object)}, "s > 2", 1),
    ({"s": np.array([1, 10**30, 3], object)}, "s > 2", 1),
    ({"s": np.array([dt.date(2020, 1, 1), None], object)}, "s > DATE '2019-01-01'", 1),
    ({"s": np.array([dt.datetime(2020, 1, 1)], object)}, "s > TIMESTAMP '2019-01-01 00:00:00'", 1),
    ({"s": np.array([Decimal("1.5"), Decimal("2.25")], object)}, "s > 2", 1),
    ({"s": pd.Series([1, None], dtype="Int64"), "t": pl.Series([1, 2])}, "s >= 1 AND t = 1", 1),
    (pd.DataFrame({"s": pd.Series(["a", None], dtype=object)}), "s = 'a'", 1),
    (pd.DataFrame({"s": pd.Series([True, None], dtype=object)}), "s", 1),
    (pd.DataFrame({"s": pd.Series([1, None], dtype="Int64")}), "s >= 1", 1),
    (pd.DataFrame({"s": [1, 2]}).convert_dtypes(dtype_backend="pyarrow"), "s >= 2", 1),
    (pd.DataFrame({"s": pd.Categorical(["a", "b"])}), "s = 'a'", 1),
    (pd.DataFrame([[1, 2], [3, 4]]), '"0" > 1', 1),
    (pl.DataFrame({"s": pl.Series(["a", "b"], dtype=pl.Categorical)}), "s = 'a'", 1),
    (pl.DataFrame({"s": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"]))}), "s = 'a'", 1),
    (pa.table({"s": pa.array(["a", "b"]).cast(pa.string_view())}), "s = 'a'", 1),
    (pa.record_batch({"s": [1, 2]}), "s > 1", 1),
    ({"A": np.zeros(2), "a": np.ones(2), "wide": np.ones((2, 2))}, '"a" > 0.5', 2),
    ({"A": np.zeros(2), "a": np.ones(2)}, '"A" > 0.5 OR 1 = 2', 0),
    ({"a": np.zeros(2)}, "1 = 1", 2),
    ({'c1" or c0': np.ones(2), "c0": np.zeros(2)}, '"c1"" or c0" > 0 AND c0 = 0', 2),
]


@pytest.mark.parametrize(
    ("data", "text", "count"),
    OBJECTS,
    ids=[f"{i} {text}" for i, (_, text, _) in enumerate(OBJECTS)],
)
def test_conditions_know_types_and_names_exactly(data: Any, text: str, count: int) -> None:
    assert share(data, text) == count


def test_functions_see_the_types_of_frames() -> None:
    for data in (
        pd.DataFrame({"s": pd.array([1, None, 0], "Int64")}),
        pd.DataFrame({"s": [1, 2, 0]}).convert_dtypes(dtype_backend="pyarrow").head(2),
    ):
        assert share(data, lambda d: d.s >= 1) == len(data.dropna()) - (len(data) == 3)
    assert share(np.array([1.0, 5.0]), lambda x: np.ma.masked_greater(x, 2)) == 1


REFUSED: list[tuple[Any, str]] = [
    (pl.LazyFrame({"x": [1]}), "collect"),
    ([[1], [1, 2]], "equally many values"),
    (np.ma.masked_array([0.0, 1.0], mask=[False, True]), "mask"),
    ({"x": np.ma.masked_array([0.0, 1.0], mask=[False, True])}, "mask"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "different names"),
    (pa.table([[1], [2]], names=["a", "a"]), "different names"),
    (pa.table({"x": [1]}).to_reader(), "read_all"),
    (np.array([1, "a"], object), "int and str"),
    (np.array([True, 3], object), "bool and int"),
    (np.array([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], object), "date and datetime"),
    ({"x": np.array([[1], [1, 2]], object)}, "list"),
    (pd.DataFrame({"x": pd.Series([[1], {}], dtype=object)}), "dict and list"),
    (pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}), "kept from changes"),
    (pd.Series(pd.interval_range(0, 2)), "interval"),
    ("abc", "rows"), (None, "rows"), (iter([1]), "rows"),
    ([np.ones((3, 2)), np.ones(3)], r"in a tuple: \(X, y\)"), ([np.ones(3), np.ones(3)], "in a tuple"),
    ([pd.DataFrame({"a": [1]}), pd.Series([1])], "in a tuple"),
    ({"a": [1, 2], "b": [1]}, r"columns of different lengths \(2 and 1\)"),
    ((np.ones(5), np.ones(4)), r"parts of different lengths \(5 and 4\)"),
    (pd.DataFrame({"a": []}), "without a row"), ({}, "without a row"), ((), "without a row"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"), REFUSED, ids=[f"{i} {said}" for i, (_, said) in enumerate(REFUSED)]
)
def test_samples_that_are_refused(data: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        GuardedSample.of(data)


def test_a_relation_is_refused_with_what_to_pass() -> None:
    with pytest.raises(InvalidInput, match="to_arrow_table"):
        GuardedSample.of(duckdb.sql("SELECT 1 AS x"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (pl.Series("x", [1, 2]), "x > 1"), (pd.Series([1, 2], name="x"), "x > 1"), (pa.array([1]), "x > 1"),
        ({"A": np.ones((3, 2))}, '"A" > 1'), ({0: np.ones(3), "0": np.ones(3)}, '"0" > 1'), ({"A": np.ones(3)}, "a > 0"),
    ],
)  # fmt: skip
def test_conditions_that_are_refused_cost_nothing(data: Any, text: str) -> None:
    oracle = StatisticalQueries(data, questions=1, scale=1)
    with pytest.raises(SordinoError):
        oracle.ask(text)
    assert oracle.left == 1


@pytest.mark.parametrize(
    ("data", "example", "said"),
    [
        (np.zeros((5, 3)), np.zeros((2, 2)), "shape"), (np.zeros(3), np.array(["a"]), "texts, not numbers"),
        ({"x": np.array(["a"])}, {"x": np.array([1])}, "numbers, not texts"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "other columns"),
        (pd.DataFrame({"a": [1]}), np.zeros((2, 1)), "other columns"),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [True]}), "truths, not numbers"),
        (pa.table({"a": [dt.date(2020, 1, 1)]}), pa.table({"a": [b"x"]}), "bytes, not times"),
        ((np.zeros(3), np.zeros(3)), (np.zeros(2), np.zeros(1)), "equally many rows"),
        (pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [2], "a": [1]}), "order, 'b' where the sample has 'a'"),
        (pl.DataFrame({"a": [1], "b": [2]}), pl.DataFrame({"b": [2], "a": [1]}), "order, 'b' where"),
        ({"x": [1], "b": [1], "a": [2]}, {"x": [1], "a": [2], "b": [1]}, "order, 'a' where the sample has 'b'"),
    ],
)  # fmt: skip
def test_an_example_must_be_like_the_sample(data: Any, example: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        GuardedSample.of(data, example)


@pytest.mark.parametrize(
    ("phi", "said"),
    [
        (lambda x: [1, 0, 1], "returned 3 numbers instead of 4"), (lambda x: pd.Series(list("abcd")), "returned texts"),
        (lambda x: np.array(list("abcd")), "returned texts"), (lambda x: x * math.nan, "returned missing values"),
        (lambda x: np.ones((4, 2)), r"an array of shape \(4, 2\)"), (lambda x: 1.0, "returned 1.0, one value for all rows"),
        (lambda x: {1}, "returned a set, one value"), (lambda x: x + 1j, "values of type complex128"),
        (lambda x: x > 0 and x > 1, r"a\.all\(\)\. Try"),
        (lambda x: 1 / 0, r"It said: division by zero\. Try .* as `example=` of"),
        (3, "Pass lambda rows: rows > 0"),
    ],
)  # fmt: skip
def test_the_rehearsal_says_what_is_wrong(phi: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        GuardedSample.of(np.ones(5)).rehearse(phi)


def test_advice_fits_the_sample() -> None:
    for data, sketch in (
        ((np.ones((5, 2)), np.ones(5)), "lambda X, y: (X[:, 0] > 0) == y"),
        ((pd.DataFrame({"a": [1]}), [1]), "lambda X, y: (X['a'] > 0) == y"),
        ({"a": [1]}, "lambda rows: rows['a'] > 0"),
        (np.ones((5, 2)), "lambda rows: rows[:, 0] > 0"),
        ((np.ones(5), np.ones(5), np.ones(5)), "a function with one argument for each part"),
    ):
        assert GuardedSample.of(data).sketch == sketch


CONDITIONS: list[tuple[str, str]] = [
    ("avg(age) > 3", "no aggregate"), ("age > max(age)", "no aggregate"), ("row_number() over () > 3", "no window"),
    ("SELECT count(*) FROM t", "begins with SELECT.*not a query"), ("where age > 3", "begins with WHERE"),
    ("age > (SELECT 1)", "has no SELECT"), ('town = "A"', "in single quotes: 'A'"), ("AGE >= 65", "Case matters: .* age?"),
    ("agee > 1", "mean age"), ("(age > 3) & smoker", "Write AND"), ("age > 3 | smoker", "Write OR"),
    ("~smoker", "Write NOT"),
    ("age > 3 || smoker", "Write OR"), ("t.age > 3", "without a table"), ("age >", "condition is not understood"),
    ("town || town = 'AA'", "SUBSTR"), ("CAST(age AS INT) > 3", "CLAMP"), ("LOG(age) > 3", r"LN\(x\)"),
    ("age % 2 = 0", "ask with a function"), ("zoned > 3", "tz=UTC.*without a zone"), ("wide > 3", "ask with a function"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_conditions_have_refusals_of_their_own(text: str, said: str) -> None:
    rows = {
        "age": np.array([70]),
        "smoker": np.array([True]),
        "town": np.array(["A"]),
        "COUNTRY": np.array(["A"]),
        "zoned": pd.Series(pd.to_datetime(["2020-01-01"]).tz_localize("UTC")),
        "wide": np.ones((1, 2)),
    }
    with pytest.raises(InvalidInput, match=f"(?i){said}") as refused:
        Predicate.of(text, rows)
    for word in ("GROUP BY", "Declare", "comma", "COUNT(*)"):
        assert word not in refused.value.hint


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SQRT(age) > 8", [1, 0, 0]), ("LN(age) > 0", [1, 1, 0]), ("age ** 2 > 899", [1, 1, 0]), ("EXP(age) > 1", [1, 1, 0]),
        ("CAST(CLAMP(age, 0, 50) AS INTEGER) = 50", [1, 0, 0]), ("SUBSTR(town, 1, 9) || 'x' = 'Ulmx'", [1, 0, 0]),
        ("town ILIKE 'u%'", [1, 1, 0]), ("DAYNAME(day) = 'Monday'", [1, 0, 0]), ("MONTHNAME(at) = 'January'", [1, 0, 0]),
        ("TIME_BUCKET(INTERVAL 1 WEEK, day) = '2024-01-01'", [1, 1, 0]), ("at::DATE = day", [1, 0, 0]),
        ("DATE_DIFF('day', day, at) > 30", [0, 1, 0]),
    ],
)  # fmt: skip
def test_conditions_know_the_functions_of_questions(text: str, found: list[int]) -> None:
    rows = pa.table({
        "age": [70.0, 30.0, -1.0], "town": ["Ulm", "ulm", "Bonn"], "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None],
        "at": [dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 2, 5), None],
    })  # fmt: skip
    assert Predicate.of(text, rows)(rows).tolist() == found
