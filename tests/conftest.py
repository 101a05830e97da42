"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Spark comes first. So it stays with the first worker, and one Java machine is started: what workers
    take from each other are the last tests. Pages, wheels and replays come next: of these single tests are long.
    """
    tests = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        if "/engines/" in item.nodeid and "spark" in item.nodeid:
            return 0
        return 1 if item.path.parent == tests else 2

    items.sort(key=rank)


@pytest.fixture(scope="session")
def state_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders, counted here: pytest would read a folder of thousands to find the next free one."""
    into = tmp_path_factory.mktemp("states")
    return (into / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_state(state_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes on ledgers that this machine has seen go into a folder of the test's own, and of its child processes'."""
    folder = next(state_folders)
    folder.mkdir()
    monkeypatch.setenv("SORDINO_STATE", str(folder))
    return folder
