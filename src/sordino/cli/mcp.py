"""`sordino mcp`: tools for an agent over standard input and output, about a server's datasets or a declaration here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sordino.cli.arguments import Analyst, Declaration
from sordino.cli.numbers import positive
from sordino.cli.remote import is_address
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.client.remote_session import RemoteSession
    from sordino.server.link import JSON
    from sordino.session import Session

__all__ = ["LocalDesk", "RemoteDesk", "mcp"]

T = TypeVar("T")


def mcp(
    file: Declaration,
    analyst: Analyst = None,
    cap: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="What one question may cost, for a declaration of your own."
        ),
    ] = None,
) -> None:
    """Give an agent tools to preview and ask, over standard input and output (MCP).

    For a server, pass its address, and set SORDINO_TOKEN to the agent's token: its budget and caps are kept there. For
    a declaration of your own, name the agent's sub-budget and a cap for each question.

    Example: sordino mcp https://sordino.example.org/visits
    """
    from sordino.server.mcp_tools import tools_server

    if is_address(file):
        if analyst is not None or cap is not None:
            rule = "a server knows who asks by the token, and keeps the caps"
            raise InvalidInput("--analyst or --cap", rule, "Leave them out.")
        from sordino.client.remote_session import connect

        with connect(file) as remote:
            desk = RemoteDesk(remote)
            tools_server(lambda: desk).run("stdio")
        return
    with _own_session(file, analyst) as session:
        local = LocalDesk(session, positive(cap, "--cap") if cap is not None else _no_cap())
        tools_server(lambda: local).run("stdio")


def _no_cap() -> Fraction:
    raise InvalidInput(
        "no --cap", "an agent asks within a cap for each question", "Write --cap 0.1."
    )


def _own_session(file: str, analyst: str | None) -> Session:
    from sordino.cli.declared import load
    from sordino.session import Session

    session = Session(load(file), analyst=analyst)
    if analyst is None or analyst not in session.ledger.allotments:
        session.close()
        value = "no --analyst" if analyst is None else f"--analyst {analyst!r}"
        rule = "an agent asks within a sub-budget of its own"
        raise InvalidInput(
            value, rule, "Give it one: sordino budget allot visits.toml agent --epsilon 0.5."
        )
    return session


class RemoteDesk:
    """The tools of an agent at a server."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    async def datasets(self) -> JSON:
        """The one dataset of this session."""
        return {
            "datasets": [
                {
                    "name": self._session.name,
                    "tables": list(await _aside(lambda: self._session.tables)),
                }
            ]
        }

    async def describe(self, dataset: str) -> JSON:
        """Tables and columns."""
        self._expect(dataset)
        return {
            "name": dataset,
            "tables": list((await _aside(lambda: self._session.tables)).values()),
        }

    async def preview(self, dataset: str, sql: str, offer: dict[str, JSON]) -> JSON:
        """The price, and the errors to expect."""
        self._expect(dataset)
        given: dict[str, Any] = offer
        plan = await _aside(lambda: self._session.preview(sql, **given))
        return {key: value for key, value in plan.facts.items() if key not in ("sql", "details")}

    async def ask(
        self, dataset: str, sql: str, offer: dict[str, JSON], reason: str, key: str | None
    ) -> JSON:
        """The answer."""
        self._expect(dataset)
        given: dict[str, Any] = offer
        self._session.reason = reason
        answer = await _aside(lambda: self._session.sql(sql, request_id=key, **given))
        return _shown(answer.to_json().encode(), key)

    async def budget(self, dataset: str) -> JSON:
        """What is left."""
        self._expect(dataset)
        return await _aside(lambda: self._session.budget)

    def _expect(self, dataset: str) -> None:
        if dataset != self._session.name:
            raise InvalidInput(
                f"dataset {dataset!r}",
                f"this session is about {self._session.name}",
                "Name that one.",
            )


class LocalDesk:
    """The tools of an agent about a declaration here, within a sub-budget and a cap for each question."""

    def __init__(self, session: Session, cap: Fraction) -> None:
        self._session, self._cap = session, cap
        file = session.dataset.file
        self._name = "data" if file is None else file.stem

    async def datasets(self) -> JSON:
        """The one dataset of this session."""
        return {"datasets": [{"name": self._name, "tables": list(self._session.dataset.tables)}]}

    async def describe(self, dataset: str) -> JSON:
        """Tables and columns."""
        from sordino.server.web.desk import table_view

        self._expect(dataset)
        return {
            "name": dataset,
            "tables": [table_view(table) for table in self._session.dataset.tables.values()],
        }

    async def preview(self, dataset: str, sql: str, offer: dict[str, JSON]) -> JSON:
        """The price, and the errors to expect."""
        self._expect(dataset)
        plan = await _aside(lambda: self._session.preview(sql, **_read(offer)))
        beyond = plan.epsilon > self._cap
        return {
            "epsilon": str(plan.epsilon),
            "errors": dict(plan.errors()),
            "text": str(plan),
            "beyond_cap": beyond,
        }

    async def ask(
        self, dataset: str, sql: str, offer: dict[str, JSON], reason: str, key: str | None
    ) -> JSON:
        """The answer."""
        from sordino.server.accounts.policy import Caps, over_cap

        del reason
        self._expect(dataset)
        plan = await _aside(lambda: self._session.preview(sql, **_read(offer)))
        refusal = over_cap(plan.epsilon, Fraction(0), Caps(self._cap))
        if refusal is not None:
            raise refusal
        answer = await _aside(lambda: self._session.sql(sql, request_id=key, **_read(offer)))
        return _shown(answer.to_json().encode(), key)

    async def budget(self, dataset: str) -> JSON:
        """What is left."""
        from sordino.server.web.desk import meter_view

        self._expect(dataset)
        return {
            **meter_view(self._session.ledger.meter(self._session.analyst)),
            "per_question": str(self._cap),
        }

    def _expect(self, dataset: str) -> None:
        if dataset != self._name:
            raise InvalidInput(
                f"dataset {dataset!r}", f"this session is about {self._name}", "Name that one."
            )


async def _aside(call: Callable[[], T]) -> T:
    return await asyncio.to_thread(call)


def _read(offer: dict[str, JSON]) -> Any:
    from sordino.server.offers import offer as read

    return read(offer)


def _shown(body: bytes, key: str | None) -> JSON:
    from sordino.server.web.mcp_door import answer_view

    return {**answer_view(body, free=False), "status": "answered", "request_id": key}
