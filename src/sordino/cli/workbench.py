"""`sordino workbench`: the pages of a server for one declaration of one's own, in a browser of this machine."""

from __future__ import annotations

import getpass
import http.client
import socket
import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from sordino.cli.serve import lend
from sordino.cli.streams import note, say
from sordino.errors import InvalidInput

__all__ = ["workbench"]

_HOST = "127.0.0.1"
_PATIENCE = 120.0


def workbench(
    file: Annotated[Path, typer.Argument(help="Your declaration, such as visits.toml.")],
    port: Annotated[int, typer.Option(help="The port to listen at; 0: any that is free.")] = 0,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Your name in the ledger; by default that of this machine.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Ask your own tables in a browser: a server for this machine only, and a page that is already logged in.

    It charges the ledger of the declaration, as all other commands do. The link that it prints works once. Ctrl-C ends it.

    Example: sordino workbench visits.toml
    """
    from sordino.query.dataset import Dataset
    from sordino.server.settings import served
    from sordino.server.web_process import web
    from sordino.server.wire import private_folder

    if not file.is_file():
        rule = "there is no such file"
        raise InvalidInput(str(file), rule, "Pass a declaration; `sordino init` writes a first one.")
    datasets = served(file)
    Dataset.load(file)  # what is wrong with it is said here, once
    process = web()
    state = private_folder(file.resolve().parent / ".workbench")
    port = port or _free_port()
    code = process.own_link(state, name or _own_name())
    link = f"http://{_HOST}:{port}/login/link?code={code}&to={quote(f'/workbench/{quote(datasets[0].name)}', safe='')}"
    threading.Thread(target=_open, args=(port, link, browser), daemon=True).start()
    lend(file, datasets, state, _HOST, port, own=True)


def _own_name() -> str:
    try:
        return getpass.getuser() or "me"
    except (KeyError, OSError):
        return "me"


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as found:
        return int(found.getsockname()[1])


def _open(port: int, link: str, browser: bool) -> None:
    """When the server answers: the link, and a browser with it."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and not _answers(port):
        time.sleep(0.1)
    say(link)
    note("This link works once, within ten minutes, on this machine. Ctrl-C ends the workbench.")
    if browser and not webbrowser.open(link):
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
