"""`sordino workbench`: for this machine only, by a link that works once; what is wrong is said before anything starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sordino.cli import workbench as command
from sordino.server.accounts.people import EVERYWHERE, Role
from sordino.server.accounts.store import Store
from sordino.server.settings import OWN_ANSWER_TIME, served

TOML = """
[budget]
epsilon = 1
[tables.visits]
source = "visits.parquet"
unit = "row"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(TOML)
    (tmp_path / "other.toml").write_text("no declaration")
    return tmp_path


class Now:
    """A thread that runs at once."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], daemon: bool) -> None:
        self.target, self.args, self.daemon = target, args, daemon

    def start(self) -> None:
        self.target(*self.args)


def test_a_server_for_this_machine_and_a_link_for_one_login(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[tuple[Any, Any]] = []
    opened: list[str] = []

    def open_(link: str) -> bool:
        opened.append(link)
        return True

    monkeypatch.setattr(command, "lend", lambda *given, **more: lent.append((given, more)))
    monkeypatch.setattr("threading.Thread", Now)
    monkeypatch.setattr(command, "_answers", lambda _: True)
    monkeypatch.setattr("webbrowser.open", open_)
    shown = run("workbench", str(folder / "visits.toml"), "--as", "ana")
    assert shown.exit_code == 0, shown.stderr
    (file, datasets, state, host, port), more = lent[0]
    assert (file, host, more) == (folder / "visits.toml", "127.0.0.1", {"own": True})
    assert [one.name for one in datasets] == ["visits"]
    assert datasets[0].answer_time == OWN_ANSWER_TIME
    link = urlsplit(shown.stdout.strip())
    assert opened == [shown.stdout.strip()]
    assert (link.scheme, link.netloc, link.path) == ("http", f"127.0.0.1:{port}", "/login/link")
    assert parse_qs(link.query)["to"] == ["/workbench/visits"]
    store = Store(state / "web.sqlite3")
    found = store.principal(parse_qs(link.query)["code"][0])
    assert found is not None
    assert found.token.scopes == frozenset()
    assert found.person.roles == {Role.owner, Role.analyst, Role.auditor}
    assert found.person.datasets == EVERYWHERE
    store.close()
    assert state.stat().st_mode & 0o077 == 0


def test_nothing_starts_if_the_declaration_is_wrong(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "lend", lambda *_, **__: pytest.fail("it started"))
    for name, told in (("nothing.toml", "there is no such file"), ("other.toml", "TOML")):
        shown = run("workbench", str(folder / name), "--no-browser")
        assert shown.exit_code == 2
        assert re.search(told, shown.stderr), shown.stderr
        assert not (folder / ".workbench").exists()


def test_one_declaration_is_served_as_its_folder_says(folder: Path) -> None:
    (folder / "serve.toml").write_text("[datasets.visits]\nanswer_time = 3\n[datasets.other]\nanswer_time = 2\n")
    assert [(one.name, one.answer_time) for one in served(folder / "visits.toml")] == [("visits", 3)]
