"""What strangers and careless programs can do to the web process: slow senders, odd requests, the attack corpus.

A canary in every cell never shows in a page, a metric, an error or a log, whatever is asked by whichever door.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pyarrow as pa
import pytest
import schemathesis
from schemathesis.generation.modes import GenerationMode

import sordino as so
from engine_plug import Plug
from server.house import House, house
from server.in_process_link import InProcessLink
from server.live import Live, live
from sordino.errors import InvalidInput, SordinoError
from sordino.query.dataset import Dataset
from sordino.server.accounts.people import Role
from sordino.server.accounts.rights import RIGHTS
from sordino.server.web import slow_senders
from test_leaks import COSTS, REFUSED, TOKENS, leaked


def canaries() -> Dataset:
    """The table of `test_leaks.py`: every text is a token."""
    table = pa.table({"id": TOKENS, "t": TOKENS[::-1], "x": list(range(40)), "y": [0.5] * 40})
    columns: dict[str, Any] = {
        "t": {"type": "text"}, "x": {"type": "int", "min": 0, "max": 9}, "y": {"type": "float"},
    }  # fmt: skip
    budget = {"epsilon": 100, "delta": 1e-6}
    return Dataset(
        table,
        name="data",
        unit="id",
        max_rows_per_group=2,
        max_groups=1,
        columns=columns,
        budget=budget,
    )


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("web"), canaries()) as found:
        yield found


ANSWERED = [
    "SELECT SUM(x) AS s FROM data",
    "SELECT t, COUNT(*) AS n FROM data GROUP BY t",
    "SELECT COUNT(*) AS n FROM data WHERE t LIKE '%a%'",
    "SELECT COUNT(DISTINCT t) AS n FROM data",
]


def call(there: Live, tool: str, **arguments: Any) -> Any:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = {
        "Authorization": f"Bearer {there.tokens['analyst']}",
        "Accept": "application/json, text/event-stream",
    }
    return httpx.post(f"{there.address}/mcp", json=body, headers=headers)


def test_the_attack_corpus_by_every_door(
    there: Live, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Refused by HTTP, by the client and by MCP, for nothing, without a word about the data."""
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    asked = f"{there.address}/v1/datasets/visits/questions"
    with (
        so.connect(there.address, token=there.tokens["analyst"]) as session,
        httpx.Client(headers={"Authorization": f"Bearer {there.tokens['analyst']}"}) as http,
    ):
        offers = [(text, {"epsilon": 1}) for text in REFUSED] + [
            ("SELECT SUM(x) AS s FROM data", cost) for cost in COSTS
        ]
        for text, cost in offers:
            with pytest.raises(SordinoError) as refused:
                session.sql(text, **cost)
            seen.append(str(refused.value))
            if cost == {"epsilon": 10**9} or cost.get("epsilon") != cost.get("epsilon"):
                continue  # NaN is no JSON
            found = http.post(asked, json={"question": text, "offer": cost})
            assert found.status_code in (400, 422), (text[:80], cost, found.text[:200])
            seen.append(found.text)
            if set(cost) == {"epsilon"} and len(text) < 1000:
                by_agent = call(there, "ask", dataset="visits", sql=text, epsilon=cost["epsilon"])
                assert by_agent.json()["result"]["isError"], (text, by_agent.text[:300])
                seen.append(by_agent.text)
    assert there.link.asked == []
    assert there.link.session.receipts == ()
    assert leaked("\n".join(seen) + caplog.text + "".join(capfd.readouterr())) == []


def test_canaries_show_nowhere(
    there: Live,
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """All that web sends about a table of canaries, and the files that it writes:
    answered questions, failures, pages.
    """
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    with httpx.Client(base_url=there.address) as http:

        def get(who: str, path: str) -> str:
            found = http.get(
                path, headers={"Authorization": f"Bearer {there.tokens[who]}"}, params={}
            )
            seen.append(f"{found.headers}{found.text}")
            return found.text

        with so.connect(there.address, token=there.tokens["analyst"]) as session:
            for text in ANSWERED:
                answer = session.sql(text, epsilon=1)
                seen.append(str(answer))
                seen.append(str(session.preview(text, epsilon=1)))
        call(there, "ask", dataset="visits", sql="SELECT AVG(x) AS a FROM data", epsilon=1)
        for name, right in RIGHTS.items():
            for role in Role:
                if right.method == "GET" and name != "oidc_login":
                    parts = defaultdict(lambda: "x", dataset="visits", question="0" * 32)
                    get(role, right.path.format_map(parts))
    out, err = capfd.readouterr()
    assert leaked("\n".join(seen) + caplog.text + out + err) == []


@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, ValueError])
def test_failures_after_the_charge_say_nothing(
    kind: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    from sordino.session import Session

    caplog.set_level(logging.DEBUG)

    def fail(_: object) -> None:
        raise kind(f"could not convert '{TOKENS[0]}' to INT32")

    with Session(canaries(), engine=Plug(fail, threads=1)) as session, house() as home:
        home.app.desk.links["visits"] = home.link = InProcessLink("visits", session)
        found = home.ask("analyst", "SELECT SUM(x) AS s FROM data")
        assert (found.json()["status"], found.json()["problem"]["code"]) == (
            "failed",
            "engine-failed",
        )
        assert leaked(found.text + caplog.text + home.get("admin", "/metrics").text) == []


def test_a_bug_says_where_and_not_what(
    home: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(f"a bug about {TOKENS[0]}")

    monkeypatch.setattr(home.app.desk, "datasets", fail)
    found = home.get("analyst", "/v1/datasets")
    assert (found.status_code, found.json()["code"]) == (500, "unexpected")
    assert leaked(found.text + caplog.text) == []
    assert "test_abuse.py" in caplog.text


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with house() as found:
        yield found


@pytest.fixture(scope="module")
def described(home: House) -> Any:
    facts = home.http.get("/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(facts)
    schema.config.base_url = "https://sordino.test"
    return schema


@pytest.mark.parametrize("examples", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_no_request_that_openapi_allows_or_forbids_is_a_500(
    home: House, described: Any, examples: int
) -> None:
    """Schemathesis makes them, good and bad; as a person who may use the route."""
    failed: list[str] = []
    tried: Counter[str] = Counter()
    for found in described.get_all_operations():
        operation = found.ok()
        right = RIGHTS[operation.definition.raw["operationId"]]
        who = (
            "other"
            if right.roles is None or Role.analyst in right.roles
            else sorted(right.roles)[-1]
        )
        for mode in GenerationMode:
            # what takes nothing cannot be wrong
            with contextlib.suppress(hypothesis.errors.Unsatisfiable):
                _try(home, operation, mode, str(who), examples, failed, tried)
    assert failed == []
    assert len(tried) >= 30
    assert tried["preview"] >= 2 * examples


def _try(
    home: House, operation: Any, mode: Any, who: str, examples: int, failed: list[str], tried: Counter[str]
) -> None:  # fmt: skip
    name = operation.definition.raw["operationId"]
    # each of these takes a fifth of a second
    most = min(examples, 4) if name in ("login", "set_password") else examples

    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    @hypothesis.settings(
        max_examples=most, database=None, deadline=None, derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    def one(case: Any) -> None:
        given = case.as_transport_kwargs(base_url="https://sordino.test", headers=home.as_(who))
        headers = {k: v for k, v in dict(given.get("headers") or {}).items() if v is not None}
        try:
            request = home.http.build_request(
                given["method"], given["url"], params=given.get("params"), json=given.get("json"),
                content=given.get("data"), headers=headers,
            )  # fmt: skip
        except (TypeError, ValueError, UnicodeError, httpx.InvalidURL):
            return  # not a request that can be sent
        request.url = request.url.copy_remove_param("wait")
        response = home.http.send(request, follow_redirects=False)
        tried[name] += 1
        if response.status_code >= 500 and response.status_code not in (501, 503):
            failed.append(f"{name} {request.url} {request.content[:200]!r}: {response.text[:200]}")

    one()


def slow_socket(port: int, text: bytes) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port))
    found.sendall(text)
    return found


HALVES = [
    b"",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow",
    b"POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    b"POST /v1/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
]


def dropped(there: Live, count: int, within: float) -> None:
    """All slow senders are dropped in time, and meanwhile others are served."""
    start = time.monotonic()
    sockets = [slow_socket(there.port, HALVES[i % len(HALVES)]) for i in range(count)]
    try:
        served = 0
        open_ = list(sockets)
        with httpx.Client(base_url=there.address, timeout=5) as http:
            while open_:
                assert time.monotonic() - start < within, f"{len(open_)} are still open"
                assert http.get("/healthz").status_code == 200
                served += 1
                for each in list(open_):
                    each.setblocking(False)
                    try:
                        if each.recv(10_000) == b"":
                            open_.remove(each)
                    except BlockingIOError:
                        if served % 2:
                            _drip(each)
                    except OSError:
                        open_.remove(each)
                time.sleep(0.05)
        assert served > 3
    finally:
        for each in sockets:
            each.close()


def _drip(each: socket.socket) -> None:
    """One more byte now and then does not help."""
    try:
        each.send(b"a")
    except OSError:
        return


def test_slow_senders_are_dropped(there: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_senders, "DEADLINE", 0.6)
    dropped(there, 60, 5)


@pytest.mark.slow
@pytest.mark.alone
def test_five_hundred_slow_senders_are_dropped_within_ten_seconds(there: Live) -> None:
    dropped(there, 500, 10)


def test_a_slow_body_is_dropped_by_the_application_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from sordino.server.web import guard
    from sordino.server.web.app import create_app

    monkeypatch.setattr(guard, "_BODY_TIME", 0.1)
    sent: list[Any] = []
    with house() as home:
        app = create_app([home.link], home.store)
        headers = [(b"authorization", home.as_("analyst")["Authorization"].encode())]
        scope = {
            "type": "http", "method": "POST", "path": "/v1/datasets/visits/preview", "headers": headers, "scheme": "https",
            "query_string": b"", "http_version": "1.1", "raw_path": b"/", "root_path": "", "client": None, "server": None,
        }  # fmt: skip

        async def receive() -> Any:
            await asyncio.sleep(60)

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408


def test_the_web_process_holds_no_data_and_no_ledger(there: Live) -> None:
    """What is pushed to it leads to no file and to no object with rows."""
    import pickle

    facts = there.link.facts()
    assert leaked(pickle.dumps(facts.dataset).decode("latin-1")) == []
    with pytest.raises(InvalidInput):
        so.Session(facts.dataset)


def test_files_of_the_web_process_hold_no_cell(tmp_path: Path) -> None:
    with live(tmp_path, canaries()) as there:
        with so.connect(there.address, token=there.tokens["analyst"]) as session:
            session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1)
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"SELECT COUNT(*) AS n FROM data" in held
    assert leaked(held.decode("latin-1")) == []
