"""Running a mechanism many times on one side of each pair of inputs: batches, exceptions as outputs, inputs kept whole.

One `Runner` is one continuing stream of runs: what training saw is never drawn again.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import io
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sordino.audit.sampled.events import Reading, Tally
from sordino.audit.sampled.features import Whole
from sordino.audit.sampled.outputs import Raised, Table, concat, encode
from sordino.privacy.wording import a_or_an

__all__ = ["Drawn", "OutOfTime", "Runner", "Trouble", "in_batches"]

_FIRST_BATCH = 256
_MOST_BATCH = 1 << 17
_SHORT, _LONG = 0.05, 0.3
_MOST_CELLS = 1 << 22
_LOOK = 20_000
_CHANGEABLE = (list, tuple, dict, set, bytearray, np.ndarray)


class Trouble(Exception):
    """Why a mechanism cannot be run at all; the text says it to the user."""


class OutOfTime(BaseException):
    """Raised into a mechanism that runs in this process when the time is over."""


@dataclass(frozen=True)
class Drawn:
    """Training runs: a table, what went wrong with runs in batches, whether the mechanism changed its input."""

    table: Table
    batches_failed: str
    changes_input: bool

    def __add__(self, more: Drawn) -> Drawn:
        failed = self.batches_failed or more.batches_failed
        changes = self.changes_input or more.changes_input
        return Drawn(concat([self.table, more.table]), failed, changes)

    def outputs(self) -> set[int]:
        """The different outputs of the first runs."""
        few = self.table.take(slice(0, _LOOK))
        atoms = Whole(tuple(few.columns)).column(few).atoms
        return set() if atoms is None else set(np.unique(atoms).tolist())

    def raised_always(self) -> Raised | None:
        """The exception that every run raised, if so."""
        table = self.table
        names = {table.names.get(shape, "") for shape in set(table.shape.tolist())}
        if len(names) != 1 or not (name := names.pop()).startswith("raises "):
            return None
        atoms = table.columns[".error"].atoms
        text = "" if atoms is None else table.names.get(int(atoms[0]), "")
        return Raised(name.removeprefix("raises "), text)


def in_batches(mechanism: Any) -> bool:
    """Whether a callable takes `size=`."""
    try:
        parameters = inspect.signature(mechanism).parameters
    except (TypeError, ValueError):
        return False
    size = parameters.get("size")
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return size is not None and size.kind in named and next(iter(parameters)) != "size"


class Runner:
    """All runs of a mechanism on one side."""

    def __init__(self, mechanism: Any, inputs: Sequence[Any]) -> None:
        self._mechanism = mechanism
        self._released = not callable(mechanism)
        self._batched = self._released or in_batches(mechanism)
        self._inputs = [_Input(data) for data in inputs]
        self._failed: dict[int, str] = {}
        self._batch = _FIRST_BATCH
        self._new = True

    def draw(self, pair: int, count: int, deadline: float, tell: Callable[[int], None]) -> Drawn:
        """So many runs; fewer if the time is over."""
        self._first(pair)
        tables, done = list[Table](), 0
        for table in self._tables(pair, count, deadline, hide=False):
            tables.append(table)
            done += table.size
            tell(done)
        if not tables:
            raise Trouble("the time was over before the mechanism had run")
        self._inputs[pair].check()
        return Drawn(concat(tables), self._failed.get(pair, ""), self._inputs[pair].copied)

    def tally(
        self, pair: int, gauge: Tally, count: int, deadline: float, tell: Callable[[Reading], None]
    ) -> Reading:
        """The counts of the final round; runs that a failing batch hides are not in them."""
        total = gauge.nothing()
        for table in self._tables(pair, count, deadline, hide=True):
            total += gauge.read(table)
            tell(dataclasses.replace(total, marks=()))
        self._inputs[pair].check()
        return total

    def _first(self, pair: int) -> None:
        """One run to look at: whether it changes its input, and how many make a short batch."""
        start = time.monotonic()
        with _quiet():
            self._one(self._inputs[pair].given())
        self._inputs[pair].look()
        if self._new:
            self._new = False
            self._batch = max(1, min(self._batch, int(_LONG / max(time.monotonic() - start, 1e-6))))

    def _tables(self, pair: int, count: int, deadline: float, *, hide: bool) -> Iterator[Table]:
        """Batches of outputs that take a fraction of a second each; in training at least one, to know something."""
        needed = not hide
        while count > 0:
            size, start = min(count, self._batch), time.monotonic()
            if start > deadline and not needed:
                return
            needed = False
            with _quiet():
                outputs = self._many(pair, size, deadline, hide)
            count -= size
            if outputs is None:
                continue
            table = encode(outputs)
            yield table
            taken = time.monotonic() - start
            most = min(_MOST_BATCH, max(64, _MOST_CELLS // max(1, len(table.columns))))
            if taken < _SHORT:
                self._batch = min(most, self._batch * 4)
            elif taken > _LONG:
                self._batch = max(1, self._batch // 2)

    def _many(self, pair: int, size: int, deadline: float, hide: bool) -> Any:
        """A batch of outputs; None if it failed in the final round, where a failed batch stays failed."""
        data = self._inputs[pair]
        if self._batched and pair not in self._failed:
            try:
                return _counted(self._call(data.given(), size), size)
            except Trouble:
                raise
            except Exception as error:
                if hide:
                    return None
                self._failed[pair] = f"{type(error).__name__}: {error}"
        found = []
        for _ in range(size):
            found.append(self._one(data.given()))
            if time.monotonic() > deadline:
                break
        return found

    def _one(self, data: Any) -> Any:
        try:
            output = _counted(self._call(data, 1), 1)[0] if self._batched else self._mechanism(data)
        except Trouble:
            raise
        except Exception as error:
            return Raised(type(error).__name__, str(error)[:200])
        if inspect.isawaitable(output) or inspect.isgenerator(output) or inspect.isasyncgen(output):
            raise _unfinished(output)
        return output

    def _call(self, data: Any, size: int) -> Any:
        if not self._released:
            return self._mechanism(data, size=size)
        if isinstance(data, list | tuple | np.ndarray | int | float):
            data = np.asarray(data)
            return self._mechanism.release(np.broadcast_to(data, (size, *data.shape)).copy())
        return self._mechanism.release([data] * size)


def _unfinished(output: Any) -> Trouble:
    if hasattr(output, "close"):
        output.close()
    kind = a_or_an(type(output).__name__)
    return Trouble(f"the mechanism returns {kind}, not an output; wrap it in a plain function")


def _counted(outputs: Any, size: int) -> Any:
    if inspect.isawaitable(outputs) or inspect.isgenerator(outputs):
        raise _unfinished(outputs)
    if not isinstance(outputs, list | tuple | np.ndarray):
        wrong = f"{a_or_an(type(outputs).__name__)}, not an array or a list"
    elif isinstance(outputs, np.ndarray) and outputs.ndim == 0:
        wrong = "one number"
    elif len(outputs) != size:
        wrong = f"{len(outputs)} outputs"
    else:
        return outputs
    raise Trouble(f"the mechanism took size={size} and returned {wrong}")


class _Input:
    """One input: given as it is while runs leave it alone, else a fresh copy for each run."""

    def __init__(self, data: Any) -> None:
        self.copied = False
        self._data, self._kept, self._print = data, None, b""
        if isinstance(data, _CHANGEABLE) or hasattr(data, "iloc"):
            with suppress(Exception):
                mine = copy.deepcopy(data)
                self._data, self._print, self._kept = mine, _print(mine), data

    def given(self) -> Any:
        return copy.deepcopy(self._kept) if self.copied else self._data

    @property
    def _changed(self) -> bool:
        return self._kept is not None and not self.copied and _print(self._data) != self._print

    def look(self) -> None:
        """After the first run: was the input changed?"""
        self.copied = self.copied or self._changed

    def check(self) -> None:
        if self._changed:
            raise Trouble(
                "the mechanism changed its input between runs, so that they were not runs on the same data"
            )


def _print(data: Any) -> bytes:
    return pickle.dumps(data, protocol=5)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what a mechanism prints or warns of."""
    with (
        warnings.catch_warnings(action="ignore"),
        redirect_stdout(_NOWHERE),
        redirect_stderr(_NOWHERE),
    ):
        yield


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


_NOWHERE = _Nowhere()
