"""Many clients for one budget: never over, no double draws, and the ledger verifies."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from server.served_folder import Served, ask, declare, run
from sordino.errors import LedgerUnavailable
from sordino.ledger.ledger import Ledger
from sordino.server.link import Reply


def race(folder: Path, clients: int, requests: int, granted: int, answer_time: float) -> None:
    """Each client asks under ids of which all but two are shared with all others of the same name.

    The budget has no delta, so that epsilons add up, and exactly so many of one hundredth fit.
    """
    price = Fraction(1, 100)
    with Served(declare(folder, epsilon=granted / 100, delta=0, answer_time=answer_time)) as served:

        async def work() -> list[tuple[str, str, Reply]]:
            async with served.link() as link, served.link() as other:
                found: list[tuple[str, str, Reply]] = []

                async def keep() -> None:
                    while True:  # the owner of a busy machine looks, and the supervisor starts what had to be stopped
                        await asyncio.sleep(0.05)
                        if served.process is not None and served.process.poll() is not None:
                            served.start()
                        with contextlib.suppress(LedgerUnavailable):
                            if link.facts().state == "paused":
                                await link.resume()

                async def client(number: int) -> None:
                    mine, name = (link, other)[number % 2], f"analyst {number % 5}"
                    for place in range(requests):
                        request = f"all/{place}" if place % 25 else f"{number}/{place}"
                        for _ in range(200):
                            with contextlib.suppress(LedgerUnavailable):
                                reply = await mine.ask(
                                    ask(request, analyst=name, epsilon=str(price))
                                )
                                if not any(
                                    word in str(reply.problem)
                                    for word in ("paused", "ledger-unavailable")
                                ):
                                    break  # else the machine is busy, and clients are told to ask again
                            await asyncio.sleep(0.2)
                        found.append((name, request, reply))

                keeper = asyncio.ensure_future(keep())
                await asyncio.gather(*map(client, range(clients)))
                keeper.cancel()
                return found

        found = run(work, 1500)
        served.kill(15)
        with Ledger.open(served.dataset) as ledger:
            assert ledger.verify()
            payments = ledger.payments
            assert ledger.spent.pure == price * len(payments)
        answered = {
            (name, request): reply.body
            for name, request, reply in found
            if reply.status == "answered"
        }
        for name, request, reply in found:  # all who asked the same got the same bytes
            assert reply.status != "answered" or answered[name, request] == reply.body
        charged = Counter((p.receipt.analyst, p.receipt.request_id) for p in payments)
        assert set(charged.values()) == {1}
        assert set(answered) <= set(charged)
        assert len(payments) <= granted
        wanted = len({(name, request) for name, request, _ in found})
        assert len(payments) == min(granted, wanted)
        assert {str((r.problem or {}).get("code")) for *_, r in found if r.status == "refused"} <= {
            "budget-exceeded"
        }


def test_a_few_clients_and_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    race(tmp_path / "served", 20, 3, 15, 0.08)


@pytest.mark.slow
def test_two_hundred_clients_and_one_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    # slots long enough for what else it does
    busy = max(1.0, min(os.getloadavg()[0] / (os.cpu_count() or 1), 10.0))
    race(tmp_path / "served", 200, 50, 300, 0.03 * busy)
