"""A small server for tests: one dataset of made-up visits, and an account of each role, each with a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from fastapi.testclient import TestClient

from server.in_process_link import InProcessLink
from sordino.query.dataset import Dataset
from sordino.server.accounts.people import EVERYWHERE, Person, Role, Scope
from sordino.server.accounts.policy import DAY
from sordino.server.accounts.store import Store
from sordino.server.web.app import Web, create_app
from sordino.session import Session

__all__ = ["COUNT", "House", "house", "visits"]

COUNT = "SELECT COUNT(*) AS n FROM visits"


def visits(epsilon: float = 10, rows: int = 400) -> Dataset:
    """Some visits of a hundred patients."""
    table = pa.table({
        "patient": [i % 100 for i in range(rows)],
        "age": [20 + i % 60 for i in range(rows)],
        "ward": ["ABC"[i % 3] for i in range(rows)],
        "city": [f"city {i % 5}" for i in range(rows)],
    })  # fmt: skip
    columns: dict[str, Any] = {
        "age": {"type": "int", "min": 0, "max": 110},
        "ward": {"type": "category", "values": ["A", "B", "C"]},
        "city": {"type": "text"},
    }
    budget = {"epsilon": epsilon, "delta": 1e-6}
    return Dataset(
        table,
        name="visits",
        unit="patient",
        max_rows=4,
        max_groups=2,
        columns=columns,
        budget=budget,
    )


@dataclass
class House:
    """All of it; `as_` gives the headers of somebody."""

    link: InProcessLink
    store: Store
    app: Web
    http: TestClient
    tokens: dict[str, str]

    def as_(self, name: str, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}", **more}

    def post(self, name: str, path: str, body: Any = None, **headers: str) -> Any:
        return self.http.post(path, json=body, headers=self.as_(name, **headers))

    def get(self, name: str, path: str, **params: Any) -> Any:
        return self.http.get(path, headers=self.as_(name), params=params)

    def put(self, name: str, path: str, body: Any) -> Any:
        return self.http.put(path, json=body, headers=self.as_(name))

    def ask(self, name: str, sql: str = COUNT, key: str | None = None, **body: Any) -> Any:
        """The question when it has an outcome."""
        given = {"question": sql, "offer": {"epsilon": 0.5}, **body}
        asked = self.post(
            name,
            "/v1/datasets/visits/questions",
            given,
            **({} if key is None else {"Idempotency-Key": key}),
        )
        if asked.status_code != 202:
            return asked
        return self.get(name, asked.headers["location"], wait=20)


def add(store: Store, name: str, *roles: Role, datasets: frozenset[str] = EVERYWHERE) -> str:
    store.add_person(Person(name, frozenset(roles), datasets))
    return store.add_token(name, "test", frozenset(Scope), EVERYWHERE, 30 * DAY)[0]


@contextmanager
def house(dataset: Dataset | None = None, answer_time: float = 0.0, **more: Any) -> Iterator[House]:
    store = Store()
    tokens = {str(role): add(store, str(role), role) for role in Role}
    tokens["other"] = add(store, "other", Role.analyst)
    tokens["stranger"] = add(
        store, "stranger", Role.analyst, Role.owner, datasets=frozenset(("elsewhere",))
    )
    with Session(dataset or visits()) as session:
        link = InProcessLink("visits", session, answer_time)
        app = create_app([link], store, **more)
        with TestClient(
            app, base_url="https://sordino.test", raise_server_exceptions=False
        ) as http:
            yield House(link, store, app, http, tokens)
    store.close()
