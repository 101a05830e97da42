"""A pytest plugin: notes the first test that fails and how, and refuses to test any package but the one it was told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

PACKAGE, NOTE = "MUTANT_PACKAGE", "MUTANT_NOTE"


def pytest_configure() -> None:
    import sordino

    if Path(sordino.__file__).parent != Path(os.environ[PACKAGE]):
        raise pytest.UsageError(f"the package under test is {sordino.__file__}")


def pytest_exception_interact(node: Any, call: pytest.CallInfo[Any]) -> None:
    note = Path(os.environ[NOTE])
    if call.excinfo is not None and not note.exists():
        inside = not isinstance(node, pytest.Collector)
        note.write_text(
            json.dumps({"test": node.nodeid, "error": call.excinfo.type.__name__, "inside": inside})
        )
