"""`sordino serve`: lend the datasets of a folder to analysts, over HTTP."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.numbers import rounded_up, whole
from sordino.cli.streams import note, say
from sordino.errors import InvalidInput
from sordino.privacy.paths import is_file

if TYPE_CHECKING:
    from sordino.server.settings import ServedDataset

__all__ = ["lend", "serve"]


def serve(
    folder: Annotated[
        Path, typer.Argument(help="The folder of the declarations, and of serve.toml.")
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen at. Default: this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.")] = 8765,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="The file of a TLS certificate.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The file of its key.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Where accounts and counts are kept; by default FOLDER/.server."),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Only propose an answer_time for each dataset, from made-up rows."
        ),
    ] = False,
    rows: Annotated[
        str,
        typer.Option(help="How many made-up rows to calibrate with: about as many as there are."),
    ] = "100000",
) -> None:
    """Serve all datasets that a folder declares: data stay in processes of their own, and answers leave at ticks.

    Each dataset needs an answer_time in serve.toml. The first start prints the token of a first account, once.
    """
    from sordino.server.settings import SETTINGS, served

    if is_file(folder):
        rule = "it is a file, and all declarations of a folder are served"
        hint = f"Pass its folder, {str(folder.parent)!r}; or, for yourself alone: sordino workbench {folder}"
        raise InvalidInput(repr(str(folder)), rule, hint)
    datasets = served(folder)
    if calibrate:
        _calibrate(folder, datasets, whole(rows, "--rows", 1, 10**8, 100_000))
        return
    unset = [one.name for one in datasets if one.answer_time is None]
    if unset:
        rule = f"{SETTINGS} says no answer_time for {', '.join(unset)}"
        raise InvalidInput(
            str(folder),
            rule,
            f"Run `sordino serve {folder} --calibrate`, and write what it proposes.",
        )
    state = state or folder / ".server"
    from sordino.server.web_process import web

    process = web()
    token = process.first_token(_private(state))
    if token is not None:
        say(token)
        note("This is the token of the first account, `owner`. It is shown this once.")
    lend(folder, datasets, state, host, port, tls_certificate, tls_key)


def _private(state: Path) -> Path:
    from sordino.server.wire import private_folder

    return private_folder(state)


def _calibrate(folder: Path, datasets: Sequence[ServedDataset], rows: int) -> None:
    from sordino.query.dataset import Dataset
    from sordino.server.calibrate import calibrate

    for one in datasets:
        found = calibrate(Dataset.load(one.declaration), one, rows, folder)
        say(f"[datasets.{one.name}]\nanswer_time = {found.answer_time:g}")
        slowest = rounded_up(found.slowest, 3)
        note(
            f"Of {rows:,} made-up rows the slowest answer took {slowest} seconds; five times that is proposed.\n"
            f"It was: {found.question}"
        )


def lend(
    folder: Path,
    datasets: Sequence[ServedDataset],
    state: Path,
    host: str,
    port: int,
    certificate: Path | None = None,
    key: Path | None = None,
    listening: socket.socket | None = None,
) -> None:
    """Run the processes until this one is told to end.

    `listening`: the socket of a server for oneself, which has neither an identity provider nor a log.
    """
    from sordino.server.settings import host_names, identity_provider, proxy_addresses
    from sordino.server.supervisor import Supervisor, socket_of

    # a short path: those of sockets have at most 107 bytes
    sockets = Path(tempfile.mkdtemp(prefix="sordino-"))
    own = listening is not None
    try:
        settings = {
            "sockets": {one.name: str(socket_of(sockets, one.name)) for one in datasets}, "state": str(state),
            "host": host, "port": port, "certificate": None if certificate is None else str(certificate),
            "key": None if key is None else str(key), "oidc": None if own else identity_provider(folder), "quiet": own,
            "listening": None if listening is None else listening.fileno(),
            "names": [] if own else host_names(folder),
            "proxies": [] if own else proxy_addresses(folder),
        }  # fmt: skip
        command = [sys.executable, "-m", "sordino.server.web_process", json.dumps(settings)]
        supervisor = Supervisor.over(folder, datasets, sockets, state, command, note, listening)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: supervisor.stop())
        note(
            f"Serving {', '.join(one.name for one in datasets)} at {'https' if certificate else 'http'}://{host}:{port}"
        )
        supervisor.run()
    finally:
        shutil.rmtree(sockets, ignore_errors=True)
