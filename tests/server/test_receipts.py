"""Receipts, checkpoints and the officer's report, through HTTP and through a real engine process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from server.house import house
from server.served_folder import Served, ask, declare, run
from sordino.ledger.public_log import Checkpoint, Proof, VerifyingKey, findings

D = "/v1/datasets/visits"


def test_an_answer_is_proven_and_no_other_is_shown() -> None:
    with house() as home:
        first = home.ask("analyst", key="one").json()
        other = home.ask("other", key="two").json()
        old = home.get("analyst", f"{D}/log/checkpoint").json()
        home.ask("analyst", key="three", offer={"epsilon": 0.25})
        key, older = VerifyingKey.of(old["key"]), Checkpoint.of(old["checkpoint"])
        found = home.get("analyst", f"{D}/answers/{first['id']}/receipt", since=older.size)
        proof = Proof.from_json(found.text.rstrip(" "))
        assert findings(proof, key, older) == []
        assert proof.checkpoint.size == older.size + 2
        assert proof.answer == home.get("analyst", first["answer"]).text.rstrip(" ")
        assert proof.charge["facts"]["analyst"] == "analyst"
        assert home.get("analyst", f"{D}/answers/{other['id']}/receipt").status_code == 404
        assert home.get("other", f"{D}/answers/{first['id']}/receipt").status_code == 404
        assert (
            home.get("analyst", f"{D}/answers/{first['id']}/receipt", since=10**6).status_code
            == 422
        )
        assert "hash" not in home.get("analyst", f"{D}/receipts").json()["receipts"][0]


def test_the_officer_reads_what_was_spent() -> None:
    with house() as home:
        home.ask("analyst")
        page = home.get("auditor", f"{D}/report")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "Report for the data-protection officer" in page.text
        assert "SELECT" in page.text
        assert home.get("analyst", f"{D}/report").status_code == 403


def test_the_engine_process_proves_what_is_out(tmp_path: Path) -> None:
    declare(tmp_path, answer_time=0.4)

    async def asked() -> Any:
        async with served.link() as link:
            before = await link.checkpoint(None)
            answered = asyncio.ensure_future(link.ask(ask("one")))
            early = []
            while not answered.done():  # its tick has not come
                early.append(asyncio.ensure_future(link.proof(None, "one", None)))
                await asyncio.sleep(0.1)
            reply = await answered
            assert reply.status == "answered"
            said = [str(one) for one in await asyncio.gather(*early[:-1], return_exceptions=True)]
            assert any("no answer yet" in one for one in said), said
            assert all("no answer yet" in one or "nothing was asked" in one for one in said), said
            size = Checkpoint.of(str(before["checkpoint"])).size
            return before, await link.proof(None, "one", size), reply

    with Served(tmp_path) as served:
        before, document, reply = run(asked)
    older, key = Checkpoint.of(before["checkpoint"]), VerifyingKey.of(before["key"])
    proof = Proof.from_json(document)
    assert findings(proof, key, older) == []
    assert proof.answer == reply.body.decode()
