"""`sordino workbench`: for this machine only, by a link that works once;
what is wrong is said before anything starts.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sordino.cli import workbench as command
from sordino.server.accounts.people import EVERYWHERE, Principal, Role, Scope
from sordino.server.accounts.store import Store
from sordino.server.settings import OWN_ANSWER_TIME, served
from sordino.server.web.process import own_link

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


def test_a_server_for_this_machine_and_a_link_for_one_login(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lent: list[tuple[Any, Any]] = []
    opened: list[tuple[str, str, int]] = []
    held: list[Principal | None] = []

    def open_(address: str) -> bool:
        page = Path(urlsplit(address).path)
        opened.append((address, page.read_text(), page.stat().st_mode & 0o777))
        return True

    def lend(*given: Any, **more: Any) -> None:
        lent.append((given, more))
        held.append(holder(given[2], opened[0][1]))
        assert more["listening"].getsockname() == (given[3], given[4])
        with pytest.raises(OSError, match="in use"):  # nobody else is asked in its place
            socket.create_server((given[3], given[4]))

    monkeypatch.setattr(command, "lend", lend)
    monkeypatch.setattr("threading.Thread", Now)
    monkeypatch.setattr(command, "_answers", lambda _: True)
    monkeypatch.setattr("webbrowser.open", open_)
    shown = run("workbench", str(folder / "visits.toml"), "--as", "ana")
    assert shown.exit_code == 0, shown.stderr
    (file, datasets, state, host, port), more = lent[0]
    assert (file, host, more.keys()) == (folder / "visits.toml", "127.0.0.1", {"listening"})
    assert [one.name for one in datasets] == ["visits"]
    assert datasets[0].answer_time == OWN_ANSWER_TIME
    link = urlsplit(shown.stdout.strip())
    address, page, mode = opened[0]
    code = parse_qs(link.query)["code"][0]
    assert code not in address  # other users of the machine see the arguments of a browser
    assert (unescape(re.findall('url=(.*)">', page)[0]), mode) == (shown.stdout.strip(), 0o600)
    assert not Path(urlsplit(address).path).exists()
    assert (link.scheme, link.netloc, link.path) == ("http", f"127.0.0.1:{port}", "/login/link")
    assert parse_qs(link.query)["to"] == ["/workbench/visits"]
    found = held[0]
    assert found is not None
    assert found.token.scopes == frozenset()
    assert found.person.roles == {Role.owner, Role.analyst, Role.auditor}
    assert found.person.datasets == EVERYWHERE
    assert state.stat().st_mode & 0o077 == 0
    assert holder(state, page) is None, "the code outlives the workbench"


def holder(state: Path, page: str) -> Principal | None:
    """Whom the code in a page logs in."""
    store = Store(state / "web.sqlite3")
    try:
        return store.principal(re.findall("code=([^&]*)&", page)[0])
    finally:
        store.close()


def test_no_code_is_made_where_somebody_else_has_the_port(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "lend", lambda *_, **__: pytest.fail("it started"))
    monkeypatch.setattr("threading.Thread", Now)
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("a browser was opened"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        shown = run("workbench", str(folder / "visits.toml"), "--port", str(other.getsockname()[1]))
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "cannot listen there" in shown.stderr
    assert not (folder / ".workbench" / "web.sqlite3").exists()


def test_codes_and_sessions_end_with_the_next_start(tmp_path: Path) -> None:
    first = own_link(tmp_path, "ana")
    store = Store(tmp_path / "web.sqlite3")
    page, _ = store.add_token("ana", "pages", frozenset(Scope), EVERYWHERE, 1000, page=True)
    token, _ = store.add_token("ana", "for a script", frozenset(Scope), EVERYWHERE, 1000)
    second = own_link(tmp_path, "ana")
    assert [store.principal(each) is None for each in (first, page, token, second)] == [
        True,
        True,
        False,
        False,
    ]
    store.close()


def test_a_workbench_answers_at_the_port_that_it_held_from_the_start(folder: Path) -> None:
    started = [
        sys.executable,
        "-m",
        "sordino",
        "workbench",
        str(folder / "visits.toml"),
        "--no-browser",
        "--as",
        "ana",
    ]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            with httpx.Client(timeout=20) as http:
                assert http.get(link, headers={"Host": "evil.test"}).status_code == 421
                found = http.get(link)
                assert (found.status_code, found.headers["location"]) == (303, "/workbench/visits")
        finally:
            process.terminate()
            process.wait(30)
    assert process.returncode == 0


def test_nothing_starts_if_the_declaration_is_wrong(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "lend", lambda *_, **__: pytest.fail("it started"))
    for name, told in (("nothing.toml", "there is no such file"), ("other.toml", "TOML")):
        shown = run("workbench", str(folder / name), "--no-browser")
        assert shown.exit_code == 2
        assert re.search(told, shown.stderr), shown.stderr
        assert not (folder / ".workbench").exists()


def test_one_declaration_is_served_as_its_folder_says(folder: Path) -> None:
    (folder / "serve.toml").write_text(
        "[datasets.visits]\nanswer_time = 3\n[datasets.other]\nanswer_time = 2\n"
    )
    assert [(one.name, one.answer_time) for one in served(folder / "visits.toml")] == [
        ("visits", 3)
    ]
