"""A process that may do less than the tests may: another user where they run as root, or one with little disk space.

Run as a script of its own: told a scene and a declaration, it prints what became of opening, charging and looking, as
JSON. Everything is imported, and used once, before it gives up its rights: the new user need not be able to read
Python.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.visits import declare, pay
from sordino.errors import LedgerError
from sordino.ledger.ledger import Ledger
from sordino.query.dataset import Dataset

NOBODY = 65534


def tried(attempt: Callable[[], Any]) -> list[str]:
    """The kind of what came of an attempt, and its text."""
    try:
        attempt()
    except LedgerError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:  # a raw error is a finding
        return [f"raw {type(error).__name__}", str(error)]
    return ["ok", ""]


def visit(dataset: Dataset, answer: bytes) -> dict[str, list[str]]:
    """Open the ledger; charge and answer; once more; and open it again."""
    found: dict[str, list[str]] = {}
    ledgers: list[Ledger] = []
    found["open"] = tried(lambda: ledgers.append(Ledger.open(dataset)))
    for ledger in ledgers:
        found["charge"] = tried(lambda ledger=ledger: pay(ledger, "stranger", "1/100", answer))  # type: ignore[misc]
        found["charge again"] = tried(lambda ledger=ledger: pay(ledger, "again", "1/100", b"small"))  # type: ignore[misc]
        ledger.close()
    return found


def main() -> None:
    """Warm up, give up rights, visit."""
    told = json.loads(sys.argv[1])
    dataset = Dataset.load(Path(told["declaration"]))
    with tempfile.TemporaryDirectory() as folder:
        warm = declare(Path(folder), rows="1 2")
        visit(warm, b"x")
        (Path(folder) / "visits.ledger").write_bytes(b"not a ledger")
        visit(warm, b"x")
    if "space" in told:
        resource.setrlimit(resource.RLIMIT_FSIZE, (told["space"], told["space"]))
    elif os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    print(json.dumps(visit(dataset, b"x" * told.get("answer", 10))))


if __name__ == "__main__":
    main()
