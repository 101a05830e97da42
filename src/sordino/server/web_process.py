"""The web process as the supervisor starts it: links to the engine processes, and nothing else of the datasets."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput, SordinoError
from sordino.server.engine_link import EngineLink

__all__ = ["main", "web"]


def web() -> Any:
    """The module of the web process; InvalidInput says what to install."""
    try:
        return import_module("sordino.server.web.process")
    except ModuleNotFoundError as error:
        rule = f"the web process needs {error.name}"
        raise InvalidInput("a server", rule, "Install it: pip install 'sordino[server]'") from None


def main(arguments: list[str] | None = None) -> int:
    """`python -m sordino.server.web_process SETTINGS`: one JSON object with sockets, state folder and address."""
    given = json.loads((sys.argv[1:] if arguments is None else arguments)[0])
    # what uvicorn raises anew when it has ended: no reason to die untidily
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: sys.exit(0))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    links = [EngineLink(name, Path(at)) for name, at in given["sockets"].items()]
    try:
        process = web()
        oidc = given.get("oidc")
        settings = process.WebSettings(
            Path(given["state"]), given["host"], given["port"], _path(given["certificate"]), _path(given["key"]),
            oidc=None if oidc is None else process.OidcSettings(
                oidc["issuer"], oidc["client_id"], os.environ.get("SORDINO_OIDC_SECRET"), oidc["own_address"]
            ),
            quiet=bool(given.get("quiet")), listening=given.get("listening"), names=tuple(given.get("names", ())),
            proxies=tuple(given.get("proxies", ())),
        )  # fmt: skip
        process.run_web(links, settings)
    except SordinoError as error:
        print(f"sordino: web: {error}", file=sys.stderr)
        return 70
    return 0


def _end_with_parent() -> None:
    """Where nobody looks after it any more, it ends."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value)


if __name__ == "__main__":
    sys.exit(main())
