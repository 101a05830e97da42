"""An engine process that kills itself (SIGKILL) at a step of the question whose id is "killed"; run as a script.

Arguments: the step, then those of `sordino.server.engine_worker`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from sordino.engines.duckdb import DuckDB
from sordino.ledger.journal import Journal
from sordino.ledger.ledger import Ledger
from sordino.ledger.sqlite import SqliteStore
from sordino.server.engine_worker import main
from sordino.server.slots import Slots
from sordino.session import Asking, Session

STEPS = {
    "planning": (Asking, "stored", "before"),
    "snapshot": (Session, "snapshot", "before"),
    "charging": (Journal, "_append", "after"),
    "charge commit": (SqliteStore, "commit", "before"),
    "charged": (SqliteStore, "commit", "after"),
    "running": (DuckDB, "run", "before"),
    "ran": (DuckDB, "run", "after"),
    "storing": (Ledger, "store_and_charge", "before"),
    "store commit": (SqliteStore, "commit", "before"),
    "stored": (SqliteStore, "commit", "after"),
    "telling": (Slots, "_out", "before"),
    "told": (Slots, "_out", "after"),
}
LATER = {"storing", "store commit", "stored", "telling", "told"}
"""Those that come after the answer was made."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str) -> None:
    """Let the step kill once the question is on its way."""
    armed: list[str] = []
    asking, answer = Slots._slot, Asking.answer

    def slot(self: Any, start: float, job: Any) -> None:
        if job is not None and job.ask.request_id == "killed" and step not in LATER:
            armed.append(step)
        asking(self, start, job)

    def answered(*arguments: Any) -> Any:
        found = answer(*arguments)
        if arguments[1].request_id == "killed" and step in LATER:
            armed.append(step)
        return found

    Slots._slot = slot  # type: ignore[method-assign]
    Asking.answer = staticmethod(answered)  # type: ignore[method-assign,assignment]
    kind, name, when = STEPS[step]
    original: Callable[..., Any] = getattr(kind, name)

    def killing(*arguments: Any, **named: Any) -> Any:
        if armed and when == "before":
            die()
        found = original(*arguments, **named)
        if armed and when == "after":
            die()
        return found

    setattr(kind, name, killing)


if __name__ == "__main__":
    arm(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
