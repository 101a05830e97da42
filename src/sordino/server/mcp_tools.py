"""The tools that agents have: list datasets, describe one, preview, ask, see the budget. The same over HTTP and stdio.

An agent asks adaptively: each question depends on the answers before it. That is what the ledger's filter is for: its
promise holds for fully adaptive questions. Refusals are tool errors that say what to do instead; nothing else is an
error.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from sordino.errors import InvalidInput, SordinoError
from sordino.server.link import JSON
from sordino.server.web.refusals import Refused

if TYPE_CHECKING:
    from mcp.server import MCPServer

__all__ = ["AgentDesk", "tools_server"]

_INSTRUCTIONS = """Questions about sensitive tables, answered with noise by differential privacy, within a budget.
Rows are never shown: ask for aggregates (COUNT, SUM, AVG, MEDIAN, ...) in SQL, with GROUP BY where you need groups.
Every answer costs epsilon and nothing is ever refunded. Look at describe_dataset first, then preview (free) to see the
error to expect, then ask. Asking the same question at the same price again is free and gives the same numbers.
Each number comes with an interval; differences smaller than the intervals mean nothing."""


class AgentDesk(Protocol):
    """What the tools are about."""

    async def datasets(self) -> JSON:
        """The datasets that are open to the agent."""

    async def describe(self, dataset: str) -> JSON:
        """Tables and columns."""

    async def preview(self, dataset: str, sql: str, offer: dict[str, JSON]) -> JSON:
        """The price, and the errors to expect."""

    async def ask(
        self, dataset: str, sql: str, offer: dict[str, JSON], reason: str, key: str | None
    ) -> JSON:
        """The answer."""

    async def budget(self, dataset: str) -> JSON:
        """What is left."""


def tools_server(desk: Callable[[], AgentDesk]) -> MCPServer[Any]:
    """An MCP server with these tools; `desk` gives that of whoever calls."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ModuleNotFoundError:
        hint = "Install it: pip install 'sordino[mcp]'"
        raise InvalidInput("an MCP server", "agents need the package mcp", hint) from None

    # The library writes refusals and tracebacks to its log, and these may quote questions.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    server: MCPServer[Any] = MCPServer(
        "sordino", instructions=_INSTRUCTIONS, log_level="CRITICAL", subscriptions=False
    )

    async def told(step: Awaitable[JSON]) -> dict[str, Any]:
        try:
            found = await step
        except Refused as error:
            raise ToolError(" ".join(filter(None, (f"{error.rule}.", error.hint)))) from None
        except SordinoError as error:
            raise ToolError(str(error)) from None
        except Exception:
            raise ToolError("Something failed inside Sordino. Please report it.") from None
        return found if isinstance(found, dict) else {"result": found}

    @server.tool()
    async def list_datasets() -> dict[str, Any]:
        """The datasets that you may ask about, and whether they are open."""
        return await told(desk().datasets())

    @server.tool()
    async def describe_dataset(dataset: str) -> dict[str, Any]:
        """Tables and columns of a dataset: types, limits, listed values, who is protected. Free."""
        return await told(desk().describe(dataset))

    @server.tool()
    async def preview(
        dataset: str, sql: str, epsilon: float | str | None = None, error: float | None = None
    ) -> dict[str, Any]:
        """What one SELECT would cost and how exact its answer would be.

        Free. Give epsilon, or the error it may have.
        """
        return await told(desk().preview(dataset, sql, _offer(epsilon, error)))

    @server.tool()
    async def ask(
        dataset: str,
        sql: str,
        epsilon: float | str | None = None,
        error: float | None = None,
        reason: str = "",
        request_id: str | None = None,
    ) -> dict[str, Any]:
        """Ask one SELECT and pay for it. Give epsilon, or the error the numbers may have; a reason helps if an owner
        must approve. A request_id of your own makes it safe to repeat the call.
        """
        return await told(desk().ask(dataset, sql, _offer(epsilon, error), reason, request_id))

    @server.tool()
    async def budget(dataset: str) -> dict[str, Any]:
        """What is left of your own budget, and your caps. Free."""
        return await told(desk().budget(dataset))

    return server


def _offer(epsilon: float | str | None, error: float | None) -> dict[str, JSON]:
    given = {"epsilon": epsilon, "error": error}
    return {name: value for name, value in given.items() if value is not None}
