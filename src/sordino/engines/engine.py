"""What every engine offers: the whole numbers of a statement, over tables that passed the gate when it was opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.plan.statement import Statement
from sordino.privacy.wording import counted
from sordino.query.dataset import Table

__all__ = ["Engine", "Exact", "Opener", "Run"]


@dataclass(frozen=True, repr=False)
class Exact:
    """Exact sums, before noise, never shown: key columns as lists of cells, a row of Python integers for each group.

    The rows come in any order, another one each time: an engine's threads decide. `release.exact_groups` puts them in
    the order of their keys, so that the order tells nothing.
    """

    keys: tuple[list[Any], ...]
    sums: npt.NDArray[np.object_]

    def __repr__(self) -> str:
        return (
            f"Exact({counted(len(self.keys), 'key column')}, {counted(self.sums.shape[1], 'sum')})"
        )


Run: TypeAlias = Callable[[Statement], Exact]
"""What runs one statement."""


class Engine(Protocol):
    """A place where statements run. Whatever opens tables as an engine is what `Session(dataset, engine=...)` takes."""

    @property
    def dialect(self) -> str:
        """The dialect in which statements are written for it (`plan/dialects.py`)."""

    def expect_unchanged(self) -> None:
        """Refuse, with InvalidInput, if a source is no longer what was opened; asked before every charge."""

    def run(self, statement: Statement, deadline: float | None = None) -> Exact:
        """The exact sums of a statement; any failure is an EngineFailed with a fixed text.

        One that takes longer than `deadline` seconds is stopped, and fails.
        """

    def snapshot(
        self, statements: Sequence[Statement] = (), deadline: float | None = None
    ) -> AbstractContextManager[Run]:
        """One question: whatever runs by the given function sees the data as they were at one moment.

        All that runs takes `deadline` seconds together at most, counted from the first statement.

        It is entered before the charge, so that what can be known by then is refused, with InvalidInput, before
        anything is spent: a source that is not there or has changed, statements (those that are known) which would not
        run.
        """

    @property
    def progress(self) -> float | None:
        """How much of the statement now running is done, from 0 to 1; None if nothing runs or it is not known.

        It may be asked for from another thread and does not wait. It is an estimate, and like the time that a statement
        takes it depends on the data: it is for whoever waits, and not protected by noise.
        """

    def interrupt(self) -> None:
        """Stop the statement that another thread is running, which then fails; nothing if none is."""

    def close(self) -> None:
        """Give back what is held."""


Opener: TypeAlias = Callable[[Sequence[Table]], Engine]
"""What opens an engine over the declared tables, all of which pass the gate (gate.md) in it."""
