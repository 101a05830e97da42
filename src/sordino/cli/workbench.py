"""`sordino workbench`: the pages of a server for one declaration of one's own, in a browser of this machine."""

from __future__ import annotations

import getpass
import http.client
import os
import socket
import threading
import time
import webbrowser
from html import escape
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from sordino.cli.serve import lend
from sordino.cli.streams import note, say
from sordino.errors import InvalidInput
from sordino.privacy.paths import not_a_file

__all__ = ["workbench"]

_HOST = "127.0.0.1"
_PATIENCE = 120.0
_PAGE = "open.html"


def workbench(
    file: Annotated[Path, typer.Argument(help="Your declaration, such as visits.toml.")],
    port: Annotated[int, typer.Option(help="The port to listen at; 0: any that is free.")] = 0,
    name: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help="Your name in the ledger; by default that of this machine."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Ask your own tables in a browser: a server for this machine only, and a page that is already logged in.

    It charges the ledger of the declaration, as all other commands do. The link that it prints works once. Ctrl-C ends
    it.

    Example: sordino workbench visits.toml
    """
    from sordino.query.dataset import Dataset
    from sordino.server.settings import served
    from sordino.server.web_process import web
    from sordino.server.wire import private_folder

    if fault := not_a_file(file):
        raise InvalidInput(
            str(file), fault, "Pass a declaration; `sordino init` writes a first one."
        )
    datasets = served(file)
    Dataset.load(file)  # what is wrong with it is said here, once
    process = web()
    state = private_folder(file.resolve().parent / ".workbench")
    page = state / _PAGE
    with _listening(
        port
    ) as listening:  # before there is a code: whoever else holds a port never sees one
        port = int(listening.getsockname()[1])
        try:
            code = process.own_link(state, name or _own_name())
            to = quote(f"/workbench/{quote(datasets[0].name)}", safe="")
            link = f"http://{_HOST}:{port}/login/link?code={code}&to={to}"
            threading.Thread(
                target=_open, args=(port, link, page if browser else None), daemon=True
            ).start()
            lend(file, datasets, state, _HOST, port, listening=listening)
        finally:
            page.unlink(missing_ok=True)
            process.end_own_sessions(state)


def _own_name() -> str:
    try:
        return getpass.getuser() or "me"
    except (KeyError, OSError):
        return "me"


def _listening(port: int) -> socket.socket:
    """A socket that the web process is handed: no other process of this machine can be asked in its place."""
    try:
        return socket.create_server((_HOST, port))
    except (OSError, OverflowError) as error:
        rule = f"the workbench cannot listen there: {getattr(error, 'strerror', None) or error}"
        raise InvalidInput(
            f"--port {port}", rule, "Leave out --port: a free one is found."
        ) from None


def _open(port: int, link: str, page: Path | None) -> None:
    """When the server answers: the link, and a browser that finds it in a page.

    The arguments of a browser's process are shown to all users of a machine; the page is read by its owner only.
    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and not _answers(port):
        time.sleep(0.1)
    say(link)
    note("This link works once, within ten minutes, on this machine. Ctrl-C ends the workbench.")
    if page is None:
        return
    page.unlink(missing_ok=True)
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Sordino</title>'
            f'<meta http-equiv="refresh" content="0; url={escape(link)}">\n'
        )
    if not webbrowser.open(page.resolve().as_uri()):
        note("No browser was found: open the link yourself.")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(_HOST, port, timeout=1)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
