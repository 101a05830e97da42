"""Agents: the tools over HTTP and over stdio, and an adaptive attack that ends at the budget."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from server.house import COUNT, House, house
from server.live import Live, live
from sordino.privacy.budget import Budget
from sordino.server.accounts.policy import Caps

HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("web")) as found:
        found.link.session.ledger.allot("agent", Budget(1, Fraction(1, 10**7)))
        found.link.session.ledger.allot("analyst", Budget(5, Fraction(1, 10**7)))
        found.store.set_caps("visits", "agent", Caps(Fraction(1, 4)))
        yield found


def call(home: House, who: str, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether a tool succeeds, and what it says."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    found = home.post(who, "/mcp", body, **HEADERS).json()["result"]
    return not found.get("isError", False), found["content"][0]["text"]


async def with_client(
    there: Live, step: Callable[[Client], Awaitable[None]], who: str = "agent"
) -> None:
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {there.tokens[who]}"}, timeout=30
        ) as http,
        Client(streamable_http_client(f"{there.address}/mcp", http_client=http)) as client,
    ):
        await step(client)


def test_the_tools_by_a_real_client(there: Live) -> None:
    async def step(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"list_datasets", "describe_dataset", "preview", "ask", "budget"}
        listed = await client.call_tool("list_datasets", {})
        assert "visits" in listed.content[0].text  # type: ignore[union-attr]
        described = await client.call_tool("describe_dataset", {"dataset": "visits"})
        assert '"ward"' in described.content[0].text  # type: ignore[union-attr]
        told = await client.call_tool(
            "preview", {"dataset": "visits", "sql": COUNT, "epsilon": 0.1}
        )
        assert json.loads(told.content[0].text)["errors"]["n"] > 0  # type: ignore[union-attr]
        answered = await client.call_tool(
            "ask", {"dataset": "visits", "sql": COUNT, "epsilon": "0.1"}
        )
        assert not answered.is_error
        assert "n" in json.loads(answered.content[0].text)["rows"][0]  # type: ignore[union-attr]
        refused = await client.call_tool(
            "ask", {"dataset": "visits", "sql": "SELECT * FROM visits", "epsilon": 0.1}
        )
        assert refused.is_error
        assert "COUNT" in refused.content[0].text  # type: ignore[union-attr]
        dear = await client.call_tool("ask", {"dataset": "visits", "sql": COUNT, "epsilon": 0.3})
        assert dear.is_error
        assert "smaller epsilon" in dear.content[0].text  # type: ignore[union-attr]
        left = await client.call_tool("budget", {"dataset": "visits"})
        assert json.loads(left.content[0].text)["left"]["pure"] == "9/10"  # type: ignore[union-attr]

    asyncio.run(with_client(there, step))


def test_an_adaptive_attack_stops_at_the_budget(there: Live) -> None:
    """An agent that halves a set of ages again and again,
    each question by the answer before it, until it is refused.
    """
    spent_before = there.link.session.ledger.meter("agent").remaining.pure
    assert spent_before is not None
    answers, refusals = [], []

    async def attack(client: Client) -> None:
        low, high = 20, 79
        for i in range(200):
            middle = (low + high) // 2
            sql = f"SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN {low} AND {middle} AND city <> 'none{i}'"
            found = await client.call_tool(
                "ask", {"dataset": "visits", "sql": sql, "epsilon": 0.05}
            )
            if found.is_error:
                refusals.append(found.content[0].text)  # type: ignore[union-attr]
                if len(refusals) == 5:
                    return
                continue
            n = json.loads(found.content[0].text)["rows"][0]["n"]  # type: ignore[union-attr]
            answers.append(n)
            low, high = (low, middle) if n > 60 else (middle, high)
            if high - low < 2:
                low, high = 20, 79

    asyncio.run(with_client(there, attack))
    ledger = there.link.session.ledger
    charges = [p.receipt.charge for p in ledger.payments if p.receipt.analyst == "agent"]
    assert len(answers) >= 10
    assert len(refusals) == 5
    assert all("of the budget" in text for text in refusals)
    allowed = ledger.allotments["agent"].meter()
    for charge in charges:  # the filter itself, from the start: each of them fitted
        allowed = allowed.spend(charge)
    assert not allowed.allows(charges[-1])
    assert ledger.verify()
    assert ledger.meter("analyst").remaining.pure == 5  # nobody else paid for it


def test_only_those_who_may_ask_have_tools() -> None:
    with house() as home:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        assert home.http.post("/mcp", json=body, headers=HEADERS).status_code == 401
        for who in ("admin", "owner", "auditor"):
            assert home.post(who, "/mcp", body, **HEADERS).status_code == 403
        fine, said = call(home, "agent", "ask", dataset="visits", sql=COUNT, epsilon=0.1)
        assert not fine
        assert "sub-budget" in said
        fine, said = call(home, "stranger", "describe_dataset", dataset="visits")
        assert not fine
        fine, said = call(
            home, "analyst", "ask", dataset="visits", sql=COUNT, epsilon=0.1, request_id="x"
        )
        assert fine
        again = call(
            home, "analyst", "ask", dataset="visits", sql=COUNT, epsilon=0.1, request_id="x"
        )
        assert json.loads(again[1])["rows"] == json.loads(said)["rows"]
        assert len(home.link.session.receipts) == 1
        fine, said = call(home, "analyst", "ask", dataset="visits", sql=COUNT, epsilon=[])
        assert not fine
        home.put("owner", "/v1/datasets/visits/policy", {"approval_above": 0.01})
        fine, said = call(home, "analyst", "ask", dataset="visits", sql=COUNT, epsilon=0.2)
        assert not fine
        assert "reason" in said


def test_stdio_with_a_server_and_with_a_declaration(there: Live, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sordino.ledger.ledger import Ledger
    from sordino.query.dataset import Dataset

    pq.write_table(pa.table({"age": [30, 40, 50]}), tmp_path / "people.parquet")
    toml = tmp_path / "people.toml"
    toml.write_text(
        '[budget]\nepsilon = 1\n[tables.people]\nsource = "people.parquet"\nunit = "row"\n'
        '[tables.people.columns]\nage = { type = "int", min = 0, max = 110 }\n'
    )
    with Ledger.open(Dataset.load(toml)) as ledger:
        ledger.allot("bot", Budget(Fraction(1, 2)))
    environment = {"SORDINO_TOKEN": there.tokens["analyst"], "HOME": str(tmp_path)}

    async def talk(words: list[str], dataset: str, sql: str) -> list[Any]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "sordino", "mcp", *words], env=environment
        )
        async with Client(server) as client:
            told = await client.call_tool(
                "preview", {"dataset": dataset, "sql": sql, "epsilon": 0.2}
            )
            described = await client.call_tool("describe_dataset", {"dataset": dataset})
            found = await client.call_tool("ask", {"dataset": dataset, "sql": sql, "epsilon": 0.2})
            dear = await client.call_tool("ask", {"dataset": dataset, "sql": sql, "epsilon": 100})
            left = await client.call_tool("budget", {"dataset": dataset})
            return [told, described, found, dear, left]

    remote = asyncio.run(talk([f"{there.address}/visits"], "visits", COUNT))
    assert [one.is_error for one in remote] == [False, False, False, True, False]
    local = asyncio.run(
        talk(
            [str(toml), "--analyst", "bot", "--cap", "0.2"],
            "people",
            "SELECT COUNT(*) AS n FROM people",
        )
    )
    assert [one.is_error for one in local] == [False, False, False, True, False]
    assert "at most epsilon 0.2" in local[3].content[0].text
    assert json.loads(local[4].content[0].text)["left"]["pure"] == "3/10"
