"""The web process: uvicorn over the application, with a clock that nobody slows down by sending slowly."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sordino.errors import InvalidInput
from sordino.server.accounts.people import EVERYWHERE, Person, Role, Scope
from sordino.server.accounts.policy import DAY
from sordino.server.accounts.secrets_of_people import LINK, LINK_LASTS
from sordino.server.accounts.store import Store
from sordino.server.garbage import forget_old_garbage
from sordino.server.link import Link
from sordino.server.web.hosts import HostCheck, exactly, those_named

if TYPE_CHECKING:
    import uvicorn

    from sordino.server.web.app import Web

__all__ = [
    "OidcSettings",
    "WebSettings",
    "end_own_sessions",
    "first_token",
    "own_link",
    "run_web",
    "web_server",
]

_FIRST = "owner"
_FIRST_LASTS = 30 * DAY


@dataclass(frozen=True)
class OidcSettings:
    """An identity provider: its issuer, this server's name there, and this server's own address as people know it."""

    issuer: str
    client_id: str
    client_secret: str | None
    own_address: str


@dataclass(frozen=True)
class WebSettings:
    """Where the web process keeps its accounts, and where it listens: by default on this machine only."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8765
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    planning_processes: int | None = None
    """Processes that make plans; by default one for each core, at most four. 0: threads."""
    oidc: OidcSettings | None = None
    quiet: bool = False
    """Whether the security log has failures only: for a server of one's own."""
    listening: int | None = None
    """The number of an open socket that listens at host and port already."""

    @property
    def accounts(self) -> Path:
        """The file of accounts."""
        return self.folder / "web.sqlite3"

    names: tuple[str, ...] = ()
    """The names by which people reach it, beside `localhost` and numeric addresses;
    a server of one's own has just one.
    """

    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies in front of it. Where a request came from, and whether by TLS,
    is what they say (X-Forwarded-For, X-Forwarded-Proto); nobody else is believed.
    """

    @property
    def hosts(self) -> HostCheck:
        """Which names it answers to."""
        if self.listening is not None:
            return exactly(self.host, self.port)
        own = [] if self.oidc is None else [urlsplit(self.oidc.own_address).hostname or ""]
        return those_named([*self.names, *own, self.host])


def first_token(folder: Path) -> str | None:
    """If nobody has an account yet: the token of a first one, an admin who owns all datasets. It is shown once."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(WebSettings(folder).accounts)
    try:
        if store.people():
            return None
        store.add_person(Person(_FIRST, frozenset((Role.admin, Role.owner)), EVERYWHERE))
        return store.add_token(_FIRST, "first", frozenset(Scope), EVERYWHERE, _FIRST_LASTS)[0]
    finally:
        store.close()


def own_link(folder: Path, name: str) -> str:
    """A code that logs in the owner of this machine's own workbench, once; their account is opened if there is none.

    Codes and sessions of an earlier start end.
    """
    store = Store(WebSettings(folder).accounts)
    try:
        store.revoke_sessions()
        if store.person(name) is None:
            store.add_person(
                Person(name, frozenset((Role.owner, Role.analyst, Role.auditor)), EVERYWHERE)
            )
        return store.add_token(name, LINK, frozenset(), EVERYWHERE, LINK_LASTS)[0]
    finally:
        store.close()


def end_own_sessions(folder: Path) -> None:
    """Log out whoever is logged in to the pages of a workbench."""
    store = Store(WebSettings(folder).accounts)
    try:
        store.revoke_sessions()
    finally:
        store.close()


def web_server(links: Sequence[Link], settings: WebSettings) -> tuple[uvicorn.Server, Web]:
    """The server, not yet running, and the application in it."""
    try:
        import uvicorn

        from sordino.server.web.app import create_app
        from sordino.server.web.slow_senders import ImpatientProtocol
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sordino"):
            raise
        rule = f"the web process needs {error.name}"
        raise InvalidInput("a server", rule, "Install it: pip install 'sordino[server]'") from None
    from sordino.server.accounts.oidc import Provider
    from sordino.server.web.planning import Planner

    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise InvalidInput(
            "TLS", "a certificate and its key belong together", "Give both files, or neither."
        )
    provider = None
    if settings.oidc is not None:
        back = f"{settings.oidc.own_address.rstrip('/')}/v1/oidc/callback"
        provider = Provider(
            settings.oidc.issuer, settings.oidc.client_id, settings.oidc.client_secret, back
        )
    processes = settings.planning_processes
    if processes is None:
        processes = min(4, os.cpu_count() or 2)
    store, planner = Store(settings.accounts), Planner(processes)
    app = create_app(links, store, planner=planner, provider=provider, hosts=settings.hosts)
    config = uvicorn.Config(
        app, host=settings.host, port=settings.port, http=ImpatientProtocol, loop="asyncio", ws="none", lifespan="on",
        log_config=None, access_log=False, server_header=False, date_header=False, timeout_keep_alive=20,
        timeout_graceful_shutdown=5, limit_concurrency=2000, backlog=512, h11_max_incomplete_event_size=None,
        ssl_certfile=settings.tls_certificate, ssl_keyfile=settings.tls_key,
        proxy_headers=bool(settings.proxies), forwarded_allow_ips=list(settings.proxies),
    )  # fmt: skip
    return uvicorn.Server(config), app


def run_web(links: Sequence[Link], settings: WebSettings) -> None:
    """Serve until the process is told to end. The security log goes to standard error, one JSON object a line."""
    log = logging.getLogger("sordino.security")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(
            logging.Formatter(
                '{"time": "%(asctime)s", "level": "%(levelname)s", "entry": %(message)s}'
            )
        )
        log.addHandler(handler)
        log.setLevel(logging.ERROR if settings.quiet else logging.INFO)
        log.propagate = False
    server, app = web_server(links, settings)
    forget_old_garbage()
    try:
        server.run(
            None if settings.listening is None else [socket.socket(fileno=settings.listening)]
        )
    finally:
        app.store.close()
