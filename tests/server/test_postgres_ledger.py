"""A ledger in PostgreSQL whose connection is lost between and amid questions."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from ledger.conftest import postgres_address, postgres_server  # noqa: F401
from ledger.postgres_server import PostgresServer
from server.served_folder import Served, ask, declare, held, run
from server.test_faults import expect_sound
from sordino.server.link import Reply


@pytest.mark.slow
def test_a_connection_that_is_lost_costs_nobody_an_answer_unpaid(
    postgres_server: PostgresServer,  # noqa: F811
    postgres_address: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    served = Served(declare(tmp_path / "served", answer_time=0.3, ledger=postgres_address))
    try:
        served.start()

        async def work() -> dict[str, Reply]:
            async with served.link() as link:
                replies = {"first": await held(await link.ask(ask("first")))}
                others = "pid <> pg_backend_pid() AND datname IS NOT NULL"
                cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"
                await asyncio.to_thread(postgres_server.run, cut)
                questions = [asyncio.ensure_future(link.ask(ask(f"r{i}"))) for i in range(4)]
                for _ in range(4):
                    await asyncio.sleep(0.25)
                    await asyncio.to_thread(postgres_server.run, cut)
                for _ in range(400):
                    assert served.process is not None
                    if served.process.poll() is not None:
                        served.start()  # as the supervisor does
                    if all(question.done() for question in questions):
                        break
                    await asyncio.sleep(0.05)
                replies |= {f"r{i}": await question for i, question in enumerate(questions)}
                return {name: await held(reply) for name, reply in replies.items()}

        replies = run(work, 120)
        assert replies["first"].status == "answered"
        served.kill(signal.SIGTERM)
        expect_sound(
            served, {name: reply for name, reply in replies.items() if reply.status != "refused"}
        )
    finally:
        served.__exit__()
