"""What holds for every test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes on ledgers that this machine has seen go into a folder of the test's own, and of its child processes'."""
    folder: Path = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("SORDINO_STATE", str(folder))
    return folder
