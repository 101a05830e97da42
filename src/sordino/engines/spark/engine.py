"""Apache Spark: statements run where the rows are, and only whole numbers come back.

A session of our own does the work, beside the user's. Errors of Spark quote cells, so none of their text leaves this
file.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sordino.engines.deadline import stopped_after, within
from sordino.engines.engine import Exact, Run
from sordino.engines.gate import expect_comparable, parent_keys, pinned, shared_key, unreadable
from sordino.engines.interruptible import interruptible
from sordino.engines.spark.dialect import name_of, quoted, steps
from sordino.engines.spark.progress import Progress
from sordino.engines.spark.sessions import end_session, is_remote, open_session, quiet
from sordino.engines.spark.sources import Pinned, enter, enter_public, sent, share_key
from sordino.errors import EngineFailed, InvalidDeclaration, InvalidInput
from sordino.plan.statement import Statement, Values
from sordino.privacy.exact import show
from sordino.query.dataset import Table
from sordino.query.sources import engine_of

__all__ = ["Spark"]

T = TypeVar("T")
_MOST_SECONDS = 7 * 24 * 3600


@dataclass
class _Planned:
    """A statement that Spark has planned, and the rows that are kept for it while it runs."""

    rows: Any = None
    kept: dict[str, Any] = field(default_factory=dict)
    """By the names of their views."""


class Spark:
    """A pinned session of Spark with a view for each declared table, in the canonical form of the gate.

    Opening it reads each table once: a source with cells that cannot be decoded is refused here, so that no question
    can fail because of one cell. `session` is a SparkSession to work beside; without one, the address of the
    declaration decides, or a local session is started. A statement that takes longer than `deadline` seconds is
    stopped and fails.
    """

    dialect = "spark"

    def __init__(
        self, tables: Iterable[Table], *, session: Any = None, deadline: float | None = None
    ) -> None:
        tables = list(tables)
        if deadline is not None and not (
            isinstance(deadline, int | float) and 0 < deadline <= _MOST_SECONDS
        ):
            rule = f"a deadline is a number of seconds up to {_MOST_SECONDS:,}"
            raise InvalidInput(
                f"deadline = {show(deadline)}",
                rule,
                "Pass deadline=600 or the like, or leave it out.",
            )
        address = next((t.source.address for t in tables if engine_of(t.source) == "spark"), None)
        self._files = pinned(tables)
        self._deadline = deadline
        self._lock = threading.Lock()
        self._views: list[str] = []
        self._session = open_session(address, session)
        self._progress = Progress(self._session)
        self._pinned: list[Pinned] = []
        self._ready: dict[int, _Planned] = {}
        self._numbers = itertools.count()
        try:
            self._open(tables)
        except BaseException:
            self.close()
            raise

    def _open(self, tables: list[Table]) -> None:
        entered = {}
        for table in tables:
            self._views.append(name_of(table.name))
            if engine_of(table.source) == "spark":
                entered[table.name], read = self._reading(
                    table, partial(enter, self._session, table)
                )
                self._pinned.append(read)
            else:
                self._reading(table, partial(enter_public, self._session, table))
                entered[table.name] = ()
        expect_comparable(tables, entered)
        by_name = {table.name: table for table in tables}
        for name, key in parent_keys(tables):
            if self._reading(by_name[name], partial(share_key, self._session, by_name[name], key)):
                raise shared_key(by_name[name], key)
        self.expect_unchanged()

    def _reading(self, table: Table, work: Callable[[], T]) -> T:
        """What some work on the cells of a table finds; whatever fails in it has a text without cells."""
        try:
            return interruptible(partial(self._tagged, work), self.interrupt)
        except InvalidDeclaration:
            raise
        except Exception as error:
            failed = type(error).__name__
        # outside of `except`: what it would carry along may quote cells
        raise unreadable(table, failed)

    def _tagged(self, work: Callable[[], T], deadline: float | None = None) -> T:
        """Some work in this thread whose jobs can be counted and stopped, and whose errors are not logged."""
        tag = f"sordino-{uuid.uuid4().hex}"
        seconds = min(
            (each for each in (deadline, self._deadline) if each is not None), default=None
        )
        with quiet(), self._progress.of(tag), stopped_after(seconds, self.interrupt):
            return work()

    def expect_unchanged(self) -> None:
        """Refuse if a source is no longer what was opened."""
        for file in self._files:
            file.expect_unchanged()
        with quiet():
            for source in self._pinned:
                source.expect_unchanged(self._session)

    @contextlib.contextmanager
    def snapshot(
        self, statements: Sequence[Statement] = (), deadline: float | None = None
    ) -> Iterator[Run]:
        """The sources as they were opened; statements that Spark cannot plan are refused before the charge."""
        self.expect_unchanged()
        try:
            for statement in statements:
                statement.text(self.dialect)
                planned = False
                with self._lock, quiet(), contextlib.suppress(Exception):  # whatever an error says
                    planned = self._is_planned(self._planned(statement).rows)
                if not planned:
                    rule = "Spark does not understand it as it was written for it, or is not there any more"
                    raise InvalidInput(
                        "this question",
                        rule,
                        "Nothing was charged. Ask it with other functions, or again.",
                    )
            yield within(self.run, deadline)
        finally:  # its own only: another thread may be amid a question
            with self._lock, quiet():
                self._forget(*map(id, statements))

    def run(self, statement: Statement, deadline: float | None = None) -> Exact:
        """The exact sums of a statement."""
        columns: list[list[Any]] | None = None
        with self._lock, contextlib.suppress(Exception):  # whatever an error says may quote a cell
            columns = self._tagged(partial(self._columns, statement), deadline)
        if columns is None or len(columns) != statement.keys + statement.sums:
            raise EngineFailed
        sums = np.empty((len(columns[0]), statement.sums), object)
        for j, cells in enumerate(columns[statement.keys :]):
            sums[:, j] = cells
        return Exact(tuple(columns[: statement.keys]), sums)

    def _columns(self, statement: Statement) -> list[list[Any]]:
        try:
            rows = self._planned(statement).rows
            return [
                [_whole(cell) for cell in column.to_pylist()] for column in rows.toArrow().columns
            ]
        finally:
            self._forget(id(statement))

    def _planned(self, statement: Statement) -> _Planned:
        """What Spark makes of a statement, before it runs: what is read several times is kept where it is computed."""
        if id(statement) not in self._ready:
            self._hold(statement.lists)
            made = self._ready[id(statement)] = _Planned()
            before, last = steps(statement.select, next(self._numbers))
            for step in before:
                made.kept[step.name] = self._session.sql(step.sql).persist()
                made.kept[step.name].createOrReplaceTempView(quoted(step.name))
            made.rows = self._session.sql(last)
        return self._ready[id(statement)]

    def _is_planned(self, rows: Any) -> bool:
        """Whether Spark knows how to compute rows. In this process it plans once, now; a server would do so twice."""
        if not is_remote(self._session):
            rows._jdf.queryExecution().executedPlan()
        return bool(rows.schema.names)

    def _forget(self, *planned: int) -> None:
        """Give back what was kept for statements."""
        for key in planned:
            made = self._ready.pop(key, None)
            with contextlib.suppress(Exception):
                for name, rows in made.kept.items() if made is not None else ():
                    rows.unpersist()
                    self._session.catalog.dropTempView(name)

    def _hold(self, lists: Mapping[str, Values]) -> None:
        """Keep public lists as views with a column `value`, each until the end: its name tells its contents."""
        import pyarrow as pa

        for name, values in lists.items():
            if name not in self._views:
                kind = pa.string() if isinstance(values[0], str) else pa.int64()
                sent(
                    self._session, pa.table({"value": pa.array(values, kind)})
                ).createOrReplaceTempView(quoted(name))
                self._views.append(name)

    @property
    def progress(self) -> float | None:
        """How much of the statement now running is done, by its tasks; None if it is not known."""
        return self._progress.part

    def interrupt(self) -> None:
        """Stop the statement that another thread is running; it fails."""
        self._progress.stop()

    def close(self) -> None:
        """Stop what is running, and drop the views; a session on a server ends."""
        self.interrupt()
        with self._lock, quiet(), contextlib.suppress(Exception):
            for name in self._views:
                self._session.catalog.dropTempView(name)  # which is not read as SQL
        self._views.clear()
        end_session(self._session)


def _whole(cell: Any) -> Any:
    """Decimals without decimals are whole numbers."""
    return int(cell) if isinstance(cell, Decimal) and cell == cell.to_integral_value() else cell
