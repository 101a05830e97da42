"""The engine process, over its socket: questions in slots, replies at ticks, and what it survives."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from server.served_folder import COUNT, Served, ask, declare, held, run
from sordino.errors import InvalidInput
from sordino.ledger.ledger import Ledger
from sordino.server.link import Ask
from sordino.server.wire import listen, pack, private_folder


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SORDINO_STATE", str(tmp_path_factory.mktemp("state")))
        with Served(declare(tmp_path_factory.mktemp("served"), answer_time=0.25)) as served:
            yield served


def test_questions_are_answered_in_slots_and_told_at_ticks(engine: Served) -> None:
    async def work() -> None:
        async with engine.link() as link:
            facts = link.facts()
            assert (facts.state, facts.dry_run, facts.dialect) == ("open", False, "duckdb")
            replies = await asyncio.gather(*(link.ask(ask(f"slot {i}")) for i in range(4)))
            assert {reply.status for reply in replies} == {"answered"}
            ticks = sorted(reply.tick for reply in replies)
            assert all(
                later - earlier >= 0.25 - 1e-6 for earlier, later in itertools.pairwise(ticks)
            )
            grid = [(tick - ticks[0]) / 0.25 for tick in ticks]
            assert all(abs(each - round(each)) < 1e-3 for each in grid)
            assert json.loads(replies[0].body)["kind"] == "answer"
            assert replies[0].receipt is not None
            assert replies[0].receipt["request_id"] == "slot 0"

    run(work)


def test_a_refusal_leaves_at_a_tick_too_and_costs_nothing(engine: Served) -> None:
    async def work() -> None:
        async with engine.link() as link:
            before = len(await link.payments(None, 0, 10_000))
            now = time.monotonic()
            for bad in (
                ask("bad 1", "SELECT age FROM visits"),
                ask("bad 2", epsilon="-1"),
                ask("bad 3", epsilon="10000"),
            ):
                reply = await link.ask(bad)
                assert reply.status == "refused"
                assert reply.problem is not None
                assert reply.tick > now
                assert reply.body == b""
            reply = await link.ask(
                Ask(None, "suggest", "", {"epsilon": "1", "columns": "age"}, "bad 4")
            )
            assert reply.status == "refused"
            assert len(await link.payments(None, 0, 10_000)) == before

    run(work)


def test_no_reply_crosses_to_web_before_its_tick(engine: Served) -> None:
    """Not even stored answers, receipts and refusals: when a reply arrives would tell when its work was done."""

    async def work() -> None:
        async with engine.link() as link:
            asked = [
                ask("cross", analyst="cai"),
                ask("cross 2", "SELECT age FROM visits"),
                ask("cross", analyst="cai"),
            ]
            for one in asked:
                reply = await link.ask(one)
                assert time.monotonic() >= reply.tick > 0
            others = (
                {"kind": "answer", "request_id": "cross"},
                {"kind": "payments", "after": 0, "limit": 9},
            )
            for other in others:
                sent = time.monotonic()
                told, _ = await link._told({**other, "analyst": "cai"})
                assert time.monotonic() >= told.tick > sent

    run(work)


def test_a_hundred_repeats_of_one_id_are_one_charge(engine: Served) -> None:
    async def work() -> None:
        async with engine.link() as link, engine.link() as other:
            asked = ask("same", analyst="ana")
            replies = await asyncio.gather(
                *((link if i % 2 else other).ask(asked) for i in range(100))
            )
            assert len({reply.body for reply in replies}) == 1
            assert {reply.status for reply in replies} == {"answered"}
            again = await link.ask(asked)
            assert (again.status, again.body) == ("answered", replies[0].body)
            charged = [p for p in await link.payments("ana", 0, 1000) if p["request_id"] == "same"]
            assert len(charged) == 1
            for changed in (
                ask("same", COUNT + " WHERE age > 3", "ana"),
                ask("same", analyst="ana", epsilon="0.02"),
            ):
                assert (await link.ask(changed)).status == "refused"
            stranger = await link.ask(ask("same", analyst="bob"))
            assert stranger.status == "answered"
            assert stranger.body != replies[0].body

    run(work)


def test_stored_answers_are_given_again_and_not_before_their_tick(engine: Served) -> None:
    async def work() -> None:
        async with engine.link() as link:
            reply = await link.ask(ask("again", analyst="ana"))
            early = await link.answer("ana", "again")
            assert early.tick >= reply.tick
            late = await link.answer("ana", "again")
            assert (late.status, late.body) == ("answered", reply.body)
            assert (await link.answer("bob", "again")).status == "refused"

    run(work)


def test_the_log_does_not_say_answered_before_the_tick(engine: Served) -> None:
    """The status of a charge whose tick has not come is that of one whose query runs."""

    async def work() -> None:
        async with engine.link() as link:
            task = asyncio.ensure_future(link.ask(ask("early", analyst="eve")))
            seen = []
            for _ in range(12):
                found: Any = await link._told(
                    {"kind": "payments", "analyst": "eve", "after": 0, "limit": 10}
                )
                seen.append((time.monotonic(), [each["status"] for each in found[1]]))
                await asyncio.sleep(0.05)
            reply = await task
            assert all(
                status == [] or status == ["unanswered"]
                for when, status in seen
                if when < reply.tick - 0.02
            )
            await held(reply)
            (told,) = await link.payments("eve", 0, 10)
            assert told["status"] == "answered"
            assert told["digest"]

    run(work)


def test_sub_budgets_are_pushed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    with Served(declare(tmp_path / "served", epsilon=1)) as served:

        async def work() -> None:
            async with served.link() as link:
                assert (await held(await link.allot("ana", "1/10", None))).status == "answered"
                await asyncio.sleep(0.3)
                facts = link.facts()
                assert facts.meter("ana").remaining.pure == Fraction(1, 10)
                with pytest.raises(InvalidInput, match="sub-budgets"):
                    facts.meter("bob")
                assert (
                    await link.ask(ask("a", analyst="ana", epsilon="0.07"))
                ).status == "answered"
                assert (await link.ask(ask("b", analyst="bob"))).status == "refused"
                reply = await link.ask(ask("c", analyst="ana", epsilon="0.07"))
                assert reply.problem is not None
                assert reply.problem["code"] == "budget-exceeded"
                await asyncio.sleep(0.3)
                assert link.facts().meter("ana").remaining.pure == Fraction(3, 100)
                assert (await link.allot("ana", "7", None)).status == "refused"

        run(work)
        assert served.kill(15) == 0
        with Ledger.open(served.dataset) as ledger:
            assert ledger.verify()
            assert [p.status for p in ledger.payments] == ["answered"]


def test_what_web_knows_leads_to_no_data(engine: Served) -> None:
    import pickle

    async def work() -> bytes:
        async with engine.link() as link:
            return pickle.dumps(link.facts())

    known = run(work)
    for place in (str(engine.folder).encode(), b"visits.parquet", b".ledger"):
        assert place not in known


def test_the_socket_is_for_its_user_only(engine: Served, tmp_path: Path) -> None:
    assert stat.S_IMODE(engine.sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE(engine.socket.stat().st_mode) & 0o077 == 0
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    open_to_all.chmod(0o755)
    with pytest.raises(InvalidInput, match="chmod 700"):
        private_folder(open_to_all)
    with pytest.raises(InvalidInput):
        listen(open_to_all / "x.socket")


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="Linux only")
def test_another_user_is_not_listened_to(engine: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from sordino.server import wire

    one, other = socket.socketpair()
    with one, other:
        assert wire.is_own_user(one)
        monkeypatch.setattr(os, "getuid", lambda: 4242)
        assert not wire.is_own_user(one)


@pytest.mark.parametrize(
    "sent",
    [
        b"\0", struct.pack("!II", 2**31, 0), struct.pack("!II", 3, 0) + b"{]}", struct.pack("!II", 2, 0) + b"[]",
        pack({"kind": "ask", "id": "x"}), pack({"kind": "ask", "id": 1}), pack({"kind": "eval", "id": 1}),
        pack({"kind": "payments", "id": 1, "analyst": None, "after": "x", "limit": 1}),
        pack({"kind": "ask", "id": 1, "analyst": 3, "offer_kind": "sql", "question": "", "offer": {}, "request_id": "a"}),
    ],
)  # fmt: skip
def test_strange_messages_end_one_connection_and_nothing_else(engine: Served, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(engine.socket))
        stranger.sendall(sent)
        stranger.shutdown(socket.SHUT_WR)
        stranger.settimeout(10)
        while stranger.recv(65536):
            pass

    async def work() -> str:
        async with engine.link() as link:
            return (await link.ask(ask(f"after {sent!r}"[:60]))).status

    assert run(work) == "answered"


def test_made_up_rows_are_marked_and_cost_nothing_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    folder = declare(tmp_path / "served", epsilon=1, dry_run=True, rows=500)
    (folder / "visits.parquet").unlink()
    with Served(folder) as served:

        async def work() -> float:
            async with served.link() as link:
                assert link.facts().dry_run
                reply = await link.ask(ask("dry", epsilon="0.9"))
                return float(json.loads(reply.body)["columns"][0]["value"][0])

        assert abs(run(work) - 500) < 60
    assert not (folder / "visits.ledger").exists()
