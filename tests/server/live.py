"""The web process over an in-process link, listening on a real port in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from server.house import add, visits
from server.in_process_link import InProcessLink
from sordino.query.dataset import Dataset
from sordino.server.accounts.people import Role
from sordino.server.accounts.store import Store
from sordino.server.web.process import WebSettings, web_server
from sordino.session import Session

__all__ = ["Live", "live"]


@dataclass
class Live:
    """Where it listens, who may ask, and what is behind it."""

    address: str
    port: int
    tokens: dict[str, str]
    link: InProcessLink
    store: Store
    server: uvicorn.Server


@contextmanager
def live(
    folder: Path, dataset: Dataset | None = None, answer_time: float = 0.0, processes: int = 0,
    proxies: tuple[str, ...] = (),
) -> Iterator[Live]:  # fmt: skip
    with Session(dataset or visits()) as session:
        link = InProcessLink("visits", session, answer_time)
        server, app = web_server(
            [link], WebSettings(folder, port=0, planning_processes=processes, proxies=proxies)
        )
        tokens = {str(role): add(app.store, str(role), role) for role in Role}
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield Live(f"http://127.0.0.1:{port}", port, tokens, link, app.store, server)
        finally:
            server.should_exit = True
            thread.join(20)
            app.store.close()
