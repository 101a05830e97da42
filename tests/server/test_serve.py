"""`sordino serve` as people start it: a token once, questions by curl,
client and agents; processes end and come back.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from sordino.errors import BudgetExceeded
from sordino.ledger.ledger import Ledger
from sordino.query.dataset import Dataset

COUNT = "SELECT COUNT(*) AS n FROM visits"
BACK_WITHIN = 5.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
"""Seconds, on a machine that does nothing else; longer where others work on it."""
DECLARATION = """
[budget]
epsilon = 3
delta = 1e-6
[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows = 4
[tables.visits.columns]
age = { type = "int", min = 0, max = 110 }
ward = { type = "category", values = ["A", "B", "C"] }
"""


def declared(folder: Path, settings: str = "answer_time = 1.0") -> None:
    rows = 400
    table = {"patient": [i % 100 for i in range(rows)], "age": [20 + i % 60 for i in range(rows)]}
    pq.write_table(
        pa.table({**table, "ward": ["ABC"[i % 3] for i in range(rows)]}), folder / "visits.parquet"
    )
    (folder / "visits.toml").write_text(DECLARATION)
    (folder / "serve.toml").write_text(f"[datasets.visits]\n{settings}\n")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@dataclass
class Served:
    process: subprocess.Popen[str]
    address: str
    port: int
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)

    def child(self, word: str) -> psutil.Process:
        found = [
            p for p in psutil.Process(self.process.pid).children() if word in " ".join(p.cmdline())
        ]
        assert len(found) == 1, (word, found)
        return found[0]

    def http(self, token: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {token}"}, timeout=30
        )


def lines(stream: Any, into: list[str]) -> None:
    into.extend(stream)


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Served]:
    port = free_port()
    command = [sys.executable, "-m", "sordino", "serve", str(folder), "--port", str(port), *words]
    environment = {**os.environ, "HOME": str(folder)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    served = Served(process, f"http://127.0.0.1:{port}", port)
    readers = [
        threading.Thread(target=lines, args=pair, daemon=True)
        for pair in ((process.stdout, served.out), (process.stderr, served.err))
    ]
    for reader in readers:
        reader.start()
    try:
        yield served
    finally:
        family = [
            psutil.Process(process.pid),
            *psutil.Process(process.pid).children(recursive=True),
        ]
        process.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(family, 15)
        for each in alive:
            each.kill()
        process.wait(5)
        for reader in readers:
            reader.join(5)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        assert alive == [], f"still there after it was told to end: {alive}"


def ready(served: Served, within: float = 40.0) -> None:
    """Waits until the web process answers."""
    until = time.monotonic() + within
    while True:
        assert served.process.poll() is None, served.err
        assert time.monotonic() < until, served.err
        try:
            if httpx.get(f"{served.address}/healthz").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.05)


def opened(http: httpx.Client, within: float = 40.0) -> None:
    """Waits until the dataset is open."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            found = http.get("/v1/datasets")
            if found.status_code == 200 and found.json()["datasets"][0]["state"] == "open":
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise AssertionError("the dataset does not open")


def test_settings_of_an_identity_provider_are_checked(tmp_path: Path) -> None:
    from sordino.errors import InvalidDeclaration
    from sordino.server.settings import host_names, identity_provider, proxy_addresses, served

    declared(tmp_path)
    assert identity_provider(tmp_path) is None
    settings = tmp_path / "serve.toml"
    text = settings.read_text()
    whole = '[oidc]\nissuer = "https://i"\nclient_id = "c"\nown_address = "https://o"\n'
    settings.write_text(text + whole)
    assert identity_provider(tmp_path) == {
        "issuer": "https://i",
        "client_id": "c",
        "own_address": "https://o",
    }
    assert served(tmp_path)[0].answer_time == 1.0
    for wrong in (
        '[oidc]\nissuer = "https://i"\n',
        whole.replace('"c"', "1"),
        whole + 'client_secret = "x"\n',
    ):
        settings.write_text(text + wrong)
        with pytest.raises(InvalidDeclaration):
            identity_provider(tmp_path)
    assert host_names(tmp_path) == []
    settings.write_text('hosts = ["data.example.org", "localhost"]\n' + text)
    assert host_names(tmp_path) == ["data.example.org", "localhost"]
    assert served(tmp_path)[0].answer_time == 1.0
    for wrong in (
        '["https://data.example.org"]',
        '["data.example.org:443"]',
        '[""]',
        "[1]",
        '["*"]',
        "7",
    ):
        settings.write_text(f"hosts = {wrong}\n{text}")
        with pytest.raises(InvalidDeclaration, match="without a port"):
            host_names(tmp_path)
    assert proxy_addresses(tmp_path) == []
    settings.write_text('proxies = ["10.0.0.2", "10.1.0.0/28", "::1"]\n' + text)
    assert proxy_addresses(tmp_path) == ["10.0.0.2", "10.1.0.0/28", "::1"]
    assert served(tmp_path)[0].answer_time == 1.0
    for wrong in ('["proxy.example.org"]', '["*"]', '[""]', "[1]", "true", '["10.1.0.1/28"]'):
        settings.write_text(f"proxies = {wrong}\n{text}")
        with pytest.raises(InvalidDeclaration, match="numeric addresses"):
            proxy_addresses(tmp_path)
    settings.write_text(text + "[odic]\n")
    with pytest.raises(InvalidDeclaration):
        served(tmp_path)


@pytest.mark.slow
def test_serve_from_the_first_start_to_the_last_answer(tmp_path: Path) -> None:
    declared(tmp_path)
    with serving(tmp_path) as served:
        ready(served)
        (token,) = [line.strip() for line in served.out]
        assert token.startswith("sordino_")
        assert token not in "".join(served.err)
        others = {
            address[4][0]
            for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        }
        for other in others - {"127.0.0.1"}:
            with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                socket.create_connection((str(other), served.port), timeout=2)
        with served.http(token) as owner:
            opened(owner)
            for name, role in (("ana", "analyst"), ("bot", "agent"), ("bob", "analyst")):
                body = {"name": name, "roles": [role], "datasets": ["visits"]}
                assert owner.post("/v1/people", json=body).status_code == 201
            tokens = {
                n: owner.post("/v1/tokens", json={"person": n}).json()["secret"]
                for n in ("ana", "bot", "bob")
            }
            part = {"epsilon": 1, "delta": "1e-7"}
            assert owner.put("/v1/datasets/visits/allotments/ana", json=part).status_code == 200
            bot = {"epsilon": 0.5, "per_question": 0.2}
            assert owner.put("/v1/datasets/visits/allotments/bot", json=bot).status_code == 200
        with so.connect(f"{served.address}/visits", token=tokens["ana"]) as session:
            start = time.monotonic()
            answer = session.sql(COUNT, epsilon=0.25, request_id="first")
            assert time.monotonic() - start < BACK_WITHIN
            assert answer.names == ("n",)
            kept = answer.to_json()
            with pytest.raises(BudgetExceeded):
                session.sql(COUNT, epsilon=2.5)
        by_curl(served, tokens["ana"])
        by_agent(served, tokens["bot"])
        killed(served, token, tokens["ana"], kept)
    assert sum("sordino_" in line for line in (*served.out, *served.err)) == 1
    assert "COUNT" not in "".join(served.err)
    with serving(tmp_path) as again:
        ready(again)
        with (
            so.connect(f"{again.address}/visits", token=tokens["ana"]) as session,
            again.http(tokens["ana"]) as http,
        ):
            opened(http)
            assert session.sql(COUNT, epsilon=0.25, request_id="first").to_json() == kept
        assert again.out == []
    with Ledger.open(Dataset.load(tmp_path / "visits.toml"), create=False) as ledger:
        assert ledger.verify()
        names = [payment.receipt.analyst for payment in ledger.payments]
        assert sorted(str(name) for name in names) == ["ana", "ana", "ana", "bot", "bot"]


def by_curl(served: Served, token: str) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not here")
    body = json.dumps(
        {"question": "SELECT AVG(age) AS a FROM visits", "offer": {"epsilon": "0.25"}}
    )
    words = [
        curl,
        "-sS",
        "-H",
        f"Authorization: Bearer {token}",
        "-H",
        "Content-Type: application/json",
    ]
    asked = subprocess.run(
        [*words, "-d", body, f"{served.address}/v1/datasets/visits/questions"],
        capture_output=True,
        text=True,
        check=True,
    )
    place = json.loads(asked.stdout)["location"]
    done = subprocess.run(
        [*words, f"{served.address}{place}?wait=20"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["status"] == "answered"


def by_agent(served: Served, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    outcomes, said = [], []
    for i in range(4):
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE age > {30 + i}"
        arguments = {"dataset": "visits", "sql": sql, "epsilon": 0.2}
        body = {
            "jsonrpc": "2.0",
            "id": i,
            "method": "tools/call",
            "params": {"name": "ask", "arguments": arguments},
        }
        found = httpx.post(f"{served.address}/mcp", json=body, headers=headers, timeout=60).json()
        outcomes.append(found["result"].get("isError", False))
        said.append(found["result"]["content"][0]["text"])
    assert outcomes == [False, False, True, True], said  # two of 0.2 fit into 0.5


def killed(served: Served, owner: str, ana: str, kept: str) -> None:
    """Either process ends in the middle of it; both are back within five seconds, and nothing is charged twice."""
    with served.http(ana) as http, so.connect(f"{served.address}/visits", token=ana) as session:
        body = {
            "question": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
            "offer": {"epsilon": 0.25},
        }
        place = http.post(
            "/v1/datasets/visits/questions", json=body, headers={"Idempotency-Key": "w"}
        ).headers["location"]
        served.child("web_process").send_signal(signal.SIGKILL)
        start = time.monotonic()
        ready(served, 30)
        assert time.monotonic() - start < BACK_WITHIN
        outcome = session._server.get(place, wait=30)
        assert outcome["status"] == "answered"
        served.child("engine_worker").send_signal(signal.SIGKILL)
        start = time.monotonic()
        time.sleep(0.2)
        opened(http, 30)
        assert time.monotonic() - start < BACK_WITHIN
        assert session.sql(COUNT, epsilon=0.25, request_id="first").to_json() == kept
    with served.http(owner) as http:
        assert len(http.get("/v1/datasets/visits/log").json()["receipts"]) == 5


@pytest.mark.slow
def test_the_steps_of_the_compose_file_without_docker(tmp_path: Path) -> None:
    """PostgreSQL keeps the ledger, declarations are read, state is elsewhere: as in deploy/compose.yaml."""
    from contextlib import closing

    from ledger.postgres_server import PostgresServer

    folder, state = tmp_path / "declarations", tmp_path / "state"
    answers: set[str] = set()
    folder.mkdir()
    declared(folder)
    with closing(PostgresServer()) as postgres:
        toml = folder / "visits.toml"
        toml.write_text(f'{DECLARATION}\n[ledger]\npath = "{postgres.address()}"\n')
        for start in range(2):
            with serving(folder, "--state", str(state)) as served:
                ready(served)
                if start == 0:
                    token = served.out[0].strip()
                with served.http(token) as owner:
                    opened(owner)
                    if start == 0:
                        owner.post(
                            "/v1/people",
                            json={"name": "ana", "roles": ["analyst"], "datasets": ["visits"]},
                        )
                        ana = owner.post("/v1/tokens", json={"person": "ana"}).json()["secret"]
                with so.connect(f"{served.address}/visits", token=ana) as session:
                    answers.add(session.sql(COUNT, epsilon=0.5, request_id="one").to_json())
        assert len(answers) == 1
        assert (state / "web.sqlite3").exists()
        with Ledger.open(Dataset.load(toml), create=False) as ledger:
            assert ledger.verify()
            assert len(ledger.payments) == 1
