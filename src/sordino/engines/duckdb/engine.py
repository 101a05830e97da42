"""DuckDB in our own process, locked: it can read the declared files and nothing else, and cannot be unlocked.

Errors of the engine quote cells, so none of their text ever leaves this file.
"""

from __future__ import annotations

import contextlib
import numbers
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import duckdb
import numpy as np

from sordino.engines.deadline import stopped_after, within
from sordino.engines.duckdb.after_fork import keep_in_children
from sordino.engines.duckdb.locked import NOTHING_LOADED, lock, text
from sordino.engines.duckdb.scratch import Scratch
from sordino.engines.duckdb.sources import enter, one_file, quoted, share_key
from sordino.engines.engine import Exact, Run
from sordino.engines.gate import expect_comparable, parent_keys, pinned, shared_key, unreadable
from sordino.engines.interruptible import interruptible
from sordino.errors import EngineFailed, InvalidDeclaration, InvalidInput
from sordino.plan.fragments import GATE
from sordino.plan.statement import Statement, Values
from sordino.privacy.exact import show
from sordino.query.dataset import Table

__all__ = ["DuckDB"]

_UNUSED_OPTIMIZERS = (
    "statistics_propagation", "row_group_pruner", "filter_pushdown", "cte_filter_pusher", "join_filter_pushdown",
    "late_materialization", "compressed_materialization", "partial_aggregate_pushdown", "scalar_fn_pushdown",
    "type_pushdown", "regex_range", "filter_pullup", "empty_result_pullup", "reorder_filter",
    "join_order", "partitioned_execution",
)  # fmt: skip
"""They look at statistics of cells that are not cleaned yet, or move work before the cleaning: a function could fail
that never would on what the question gives it. `join_order` loses conditions that are NULL for every row where the
others are off, and what it does hangs on the sizes of tables; `partitioned_execution` splits work by statistics. The
time of an answer still tells something (docs/promises.md).
"""

_SETTINGS = (
    # In this order: progress is known only with the bar on, and the bar itself would write to terminals and pipes.
    "enable_progress_bar_print = false",
    "enable_progress_bar = true",
    "preserve_insertion_order = false",
    *NOTHING_LOADED,
    f"disabled_optimizers = '{','.join(_UNUSED_OPTIMIZERS)}'",
    # What is spilled is unreadable without a key that only this process has. DuckDB's own cipher draws the key by a
    # generator that is not meant for secrets (hence the setting's name), so the folder is private and cleaned as well.
    "force_mbedtls_unsafe = 'true'",
    "temp_file_encryption = true",
)
_MEMORY = re.compile(r"\d+(\.\d+)? ?([KMGT]i?B|%)", re.IGNORECASE)
_MOST_THREADS = 1024
_LEAST_MEMORY, _LEAST_A_THREAD = 15 * 2**20, 2**19
"""Bytes with which small tables are asked whatever can be asked. With less every question could fail after it was
charged.
"""
_SIZES = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
T = TypeVar("T")


class DuckDB:
    """One locked in-memory database with a view for each declared table, in the canonical form of the gate.

    Opening it reads each table once, and loads CSV files: a source with cells that cannot be decoded is refused here,
    so that no question can fail because of one cell. `memory` bounds what it holds ("2GB"); beyond that it spills,
    encrypted, to a private folder that is removed at the end.

    With `longest_text` all rows are copied into memory when it opens, in columns of the declared types: text is cut to
    so many characters, and values that are not listed are gone, so that no single cell can make a statement slow. With
    `held` they are copied as well, every cell cleaned as questions would clean it, once instead of in each of them.
    """

    dialect = "duckdb"

    def __init__(
        self,
        tables: Iterable[Table],
        *,
        memory: str | None = None,
        threads: int | None = None,
        longest_text: int | None = None,
        held: bool = False,
    ) -> None:
        self._longest_text, self._copies = longest_text, held
        limits = _limits(memory, threads)
        tables = list(tables)
        self._files = pinned(tables)
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._closing = threading.Lock()
        self._scratch = Scratch()
        # A connection made in a notebook kernel has a bar of its own that wants ipywidgets; a cursor has none.
        self._connection = duckdb.connect(":memory:").cursor()
        keep_in_children(self._connection)
        try:
            self._open(tables, limits)
        except BaseException:
            self.close()
            raise

    def _open(self, tables: list[Table], limits: dict[str, str]) -> None:
        run = self._connection.execute
        try:
            for name, value in limits.items():
                run(f"SET {name} = {value}")
        except duckdb.Error:
            value, rule = (
                ", ".join(f"{k} = {v}" for k, v in limits.items()),
                "the engine does not take these limits",
            )
            raise InvalidInput(
                value, rule, 'Pass memory="2GB" and threads=4 or the like.'
            ) from None
        if "memory_limit" in limits:
            _expect_enough(run, limits["memory_limit"])
        run(f"SET temp_directory = {text(str(self._scratch.path))}")
        for setting in _SETTINGS:
            run(f"SET {setting}")
        run(f"CREATE SCHEMA {quoted(GATE)}")
        into = self._connection
        longest, held = self._longest_text, self._copies
        entered = {
            t.name: self._reading(t, partial(enter, into, t, place, longest, held=held))
            for place, t in enumerate(tables)
        }
        expect_comparable(tables, entered)
        by_name = {table.name: table for table in tables}
        for name, key in parent_keys(tables):
            if self._reading(by_name[name], partial(share_key, into, by_name[name], key)):
                raise shared_key(by_name[name], key)
        self.expect_unchanged()
        # copies are not read from their files again
        read = [] if held or longest is not None else tables
        paths = [
            table.source.path
            for table in read
            if table.source.kind == "parquet" and table.source.path
        ]
        lock(into, dict.fromkeys(path for file in paths for path in (str(file), one_file(file))))

    def _reading(self, table: Table, work: Callable[[], T]) -> T:
        """What some work on the cells of a table finds; whatever fails in it has a text without cells."""
        try:
            return interruptible(work, self.interrupt)
        except InvalidDeclaration:
            raise
        except Exception as error:
            failed = type(error).__name__
        # outside of `except`: what it would carry along may quote cells
        raise unreadable(table, failed)

    def expect_unchanged(self) -> None:
        """Refuse if a source file is no longer what was opened."""
        for file in self._files:
            file.expect_unchanged()

    def public_rows(self, table: Table) -> Any:
        """All rows of a public table in their canonical form, as an Arrow table:
        what other engines are sent of a file.
        """
        if not table.public:
            raise ValueError(f"{table.name} is not public")
        with self._lock:
            return self._connection.sql(
                f"SELECT * FROM {quoted(GATE)}.{quoted(table.name)}"  # noqa: S608
            ).to_arrow_table()

    @contextlib.contextmanager
    def snapshot(
        self, statements: Sequence[Statement] = (), deadline: float | None = None
    ) -> Iterator[Run]:
        """The files as they were opened, which stay the same or are refused."""
        del statements
        self.expect_unchanged()
        yield within(self.run, deadline)

    def run(self, statement: Statement, deadline: float | None = None) -> Exact:
        """The exact sums of a statement."""
        columns: list[list[Any]] | None = None
        # whatever an error says may quote a cell
        with self._lock, stopped_after(deadline, self.interrupt), contextlib.suppress(Exception):
            self._hold(statement.lists)
            columns = _columns(self._connection.execute(statement.text(self.dialect)))
        if columns is None:
            raise EngineFailed
        sums = np.empty((len(columns[0]), statement.sums), object)
        for j, cells in enumerate(columns[statement.keys :]):
            sums[:, j] = cells
        return Exact(tuple(columns[: statement.keys]), sums)

    def _hold(self, lists: Mapping[str, Values]) -> None:
        """Keep public lists as relations with a column `value`, each until the end: its name tells its contents."""
        import pyarrow as pa

        for name, values in lists.items():
            if name not in self._held:
                kind = pa.string() if isinstance(values[0], str) else pa.int64()
                arriving = f"{name} arriving"
                self._connection.register(arriving, pa.table({"value": pa.array(values, kind)}))
                self._connection.execute(
                    f"CREATE TEMP TABLE {quoted(name)} AS SELECT * FROM {quoted(arriving)}"  # noqa: S608
                )
                self._connection.unregister(arriving)
                self._held.add(name)

    @property
    def progress(self) -> float | None:
        """How much of the statement now running is done, from 0 to 1, by DuckDB's estimate; None if it is not known."""
        percent = -1.0
        with self._closing, contextlib.suppress(duckdb.Error):  # closed by now
            percent = self._connection.query_progress()
        return percent / 100 if 0 <= percent <= 100 else None

    def interrupt(self) -> None:
        """Stop the statement that another thread is running; it fails."""
        with self._closing, contextlib.suppress(duckdb.Error):
            self._connection.interrupt()

    def close(self) -> None:
        """Stop what is running, close the database and remove its folder."""
        self.interrupt()
        # nor must the connection go while another thread asks it for progress
        with self._lock, self._closing:
            self._connection.close()
        self._scratch.close()


def _columns(result: duckdb.DuckDBPyConnection) -> list[list[Any]]:
    """All cells, column by column: 64-bit integers as arrays,
    which saves a million tuples where there are many values.
    """
    described = result.description or []
    names = {kind[0] for kind in described}
    if len(names) == len(described) and all(str(kind[1]) == "BIGINT" for kind in described):
        return [array.tolist() for array in result.fetchnumpy().values()]
    columns = list(zip(*result.fetchall(), strict=True)) or [()] * len(described)
    return [list(cells) for cells in columns]


def _expect_enough(run: Callable[[str], Any], asked: str) -> None:
    """Refuse a limit of memory with which hardly anything could be answered."""
    settings = "SELECT current_setting('memory_limit'), current_setting('threads')"
    threads, size = 1, 0.0
    with contextlib.suppress(duckdb.OutOfMemoryException):  # with too little even this fails
        ((limit, threads),) = run(settings).fetchall()
        number, unit = limit.split()
        size = float(number) * _SIZES.get(unit, 2**50)
    least = max(_LEAST_MEMORY, _LEAST_A_THREAD * threads)
    if size < least:
        rule = f"it is at least 16 MB, and 0.55 MB for each of {threads} threads"
        hint = "Pass more, or fewer threads; or leave memory out."
        raise InvalidInput(f"memory = {asked}", rule, hint)


def _limits(memory: object, threads: object) -> dict[str, str]:
    """The engine's settings for what it may use, if they make sense."""
    found = {}
    if memory is not None:
        sizes = _MEMORY.fullmatch(memory.strip()) if isinstance(memory, str) else None
        if sizes is None or not float(re.match(r"[\d.]+", sizes[0])[0]):  # type: ignore[index]
            hint = 'Pass a text such as memory="2GB", or leave it out.'
            raise InvalidInput(
                f"memory = {show(memory)}", "memory is a positive number with a unit", hint
            )
        found["memory_limit"] = text(sizes[0])
    if threads is not None:
        if (
            isinstance(threads, bool)
            or not isinstance(threads, numbers.Integral)
            or not 1 <= int(threads) <= _MOST_THREADS
        ):
            rule = f"threads is a whole number from 1 to {_MOST_THREADS}"
            raise InvalidInput(
                f"threads = {show(threads)}", rule, "Pass threads=2 or the like, or leave it out."
            )
        found["threads"] = str(int(threads))
    return found
