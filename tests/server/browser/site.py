"""A server with made-up tables and one person for each role,
listening on this machine, for tests that look at its pages.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from server.in_process_link import InProcessLink
from sordino.query.dataset import Dataset
from sordino.server.accounts.people import EVERYWHERE, Person, Role, Scope
from sordino.server.accounts.policy import DAY
from sordino.server.accounts.secrets_of_people import Passwords
from sordino.server.accounts.store import Store
from sordino.server.web.process import WebSettings, web_server
from sordino.session import Session

__all__ = ["NASTY", "PASSWORD", "PEOPLE", "Site", "nasty_table", "site", "visits_table"]

PASSWORD = "a long sentence that nobody guesses"
PEOPLE = {
    "olga": (Role.owner,),
    "ana": (Role.analyst,),
    "bot": (Role.agent,),
    "otto": (Role.auditor,),
    "adam": (Role.admin,),
}
NASTY = "<img src=x onerror=window.hacked=1>"
"""Text that a browser would run, were it ever taken for markup."""


def visits_table() -> Dataset:
    """Visits of 2,000 patients to a hospital that does not exist."""
    rows, first = 6000, date(2025, 1, 1)
    wards = ["cardiology", "emergency", "maternity", "oncology", "pediatrics", "surgery"]
    table = pa.table({
        "patient": [i * 7919 % 2000 for i in range(rows)],
        "age": [(i * 37 + i * i) % 96 for i in range(rows)],
        "ward": [wards[(i * i + i // 7) % 6] for i in range(rows)],
        "sex": ["fm"[(i * 3 + i // 11) % 2] for i in range(rows)],
        "city": [f"city {i % 11}" for i in range(rows)],
        "day": [first + timedelta(days=(i * 13) % 365) for i in range(rows)],
        "cost": [float((i * 211) % 4000) for i in range(rows)],
    })  # fmt: skip
    columns: dict[str, Any] = {
        "age": {"type": "int", "min": 0, "max": 110},
        "ward": {"type": "category", "values": wards},
        "sex": {"type": "category", "values": ["f", "m"]},
        "city": {"type": "text"},
        "day": {"type": "date", "min": "2025-01-01", "max": "2025-12-31"},
        "cost": {"type": "float", "min": 0, "max": 5000, "step": 1},
    }
    budget = {"epsilon": 10, "delta": 1e-6}
    return Dataset(
        table,
        name="visits",
        unit="patient",
        max_rows=3,
        max_groups=3,
        columns=columns,
        budget=budget,
    )


def nasty_table() -> Dataset:
    """Names of tables, columns and categories that would run, were they ever taken for markup."""
    name = f"{NASTY} table"
    values = [
        NASTY,
        "</script><script>window.hacked=2</script>",
        "'\"><svg onload=window.hacked=3>",
    ]
    rows = pa.table({
        "who": [i % 50 for i in range(200)],
        f"{NASTY} column": [values[i % 3] for i in range(200)],
        "{{ 7 * 7 }}": [i % 10 for i in range(200)],
    })  # fmt: skip
    columns: dict[str, Any] = {
        f"{NASTY} column": {"type": "category", "values": values},
        "{{ 7 * 7 }}": {"type": "int", "min": 0, "max": 10},
    }
    return Dataset(
        rows,
        name=name,
        unit="who",
        max_rows=4,
        columns=columns,
        budget={"epsilon": 10, "delta": 1e-6},
    )


@dataclass
class Site:
    """Where it listens, what is behind it, and a bearer token for everybody."""

    address: str
    store: Store
    links: dict[str, InProcessLink]
    tokens: dict[str, str] = field(default_factory=dict)

    def add(
        self, name: str, *roles: Role, datasets: frozenset[str] = EVERYWHERE, password: bool = False
    ) -> str:
        """One more account; with a password it can log in to the pages, which costs time."""
        self.store.add_person(Person(name, frozenset(roles), datasets))
        if password:
            self.store.set_password(name, Passwords().hashed(PASSWORD))
        self.tokens[name] = self.store.add_token(
            name, "test", frozenset(Scope), EVERYWHERE, 30 * DAY
        )[0]
        return self.tokens[name]


@contextmanager
def site(
    folder: Path | None = None, answer_time: float = 0.0, **datasets: Dataset
) -> Iterator[Site]:
    """The server, until the end of the block."""
    tables = datasets or {
        "visits": visits_table(),
        "clinic": visits_table(),
        "nasty": nasty_table(),
    }
    with ExitStack() as stack:
        own = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        links = {}
        for name, dataset in tables.items():
            links[name] = InProcessLink(name, stack.enter_context(Session(dataset)), answer_time)
        server, app = web_server(
            list(links.values()), WebSettings(own, port=0, planning_processes=0)
        )
        stack.callback(app.store.close)
        made = Site("", app.store, links)
        hashed = Passwords().hashed(PASSWORD)
        for name, roles in PEOPLE.items():
            made.add(name, *roles)
            made.store.set_password(name, hashed)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            made.address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
            yield made
        finally:
            server.should_exit = True
            thread.join(20)
