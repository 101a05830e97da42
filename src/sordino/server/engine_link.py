"""A dataset as web sees it, over the socket of its engine process; it comes back when the process does."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sordino.errors import EngineFailed, LedgerUnavailable
from sordino.query.dataset import Dataset
from sordino.server.link import JSON, Ask, Facts, Reply
from sordino.server.problems import error_of, problem_of
from sordino.server.wire import HEAD, LARGEST_REPLY, Closed, pack, sizes

__all__ = ["EngineLink"]

_PATIENCE = 15.0
"""How many seconds a question waits for an engine process that is not there."""
_AGAIN = 0.05


@dataclass(eq=False)
class _Open:
    """A message that waits for its reply."""

    message: dict[str, Any]
    reply: asyncio.Future[tuple[Reply, JSON]]
    sent: int = 0


class EngineLink:
    """The link to one engine process. Use it within one event loop: `start`, and in the end `close`."""

    def __init__(self, name: str, socket: Path) -> None:
        self.name = name
        self._at = socket
        self._dataset: Dataset | None = None
        self._facts: Facts | None = None
        self._open: dict[int, _Open] = {}
        self._numbers = itertools.count(1)
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def start(self) -> None:
        """Keep the connection from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """Let it go."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def facts(self) -> Facts:
        """The newest pushed copy."""
        with contextlib.suppress(RuntimeError):  # outside of an event loop it is what it is
            self.start()
        if self._facts is None:
            raise _not_there()
        return self._facts if self._writer is not None else replace(self._facts, state="starting")

    async def ready(self, patience: float = _PATIENCE) -> Facts:
        """The facts, once there are any and the engine process is there."""
        self.start()
        async with asyncio.timeout(patience):
            while self._facts is None or self._writer is None:
                self._changed.clear()
                await self._changed.wait()
        return self._facts

    async def ask(self, ask: Ask) -> Reply:
        """Pass a question on; again, under the same id, if the engine process ends meanwhile: never charged twice."""
        message = {
            "kind": "ask", "analyst": ask.analyst, "offer_kind": ask.kind, "question": ask.question,
            "offer": dict(ask.offer), "request_id": ask.request_id,
        }  # fmt: skip
        opened = self._send(message)
        try:
            reply, _ = await opened.reply
        except LedgerUnavailable as error:
            return Reply("failed", problem=problem_of(error))
        if (
            opened.sent > 1
            and reply.status == "refused"
            and (reply.problem or {}).get("code") == "request-refused"
        ):
            # charged by a process that ended
            return replace(reply, status="failed", problem=problem_of(EngineFailed()))
        return reply

    async def answer(self, analyst: str | None, request_id: str) -> Reply:
        """The stored bytes."""
        return (await self._told({"kind": "answer", "analyst": analyst, "request_id": request_id}))[
            0
        ]

    async def payments(
        self, analyst: str | None, after: int, limit: int
    ) -> Sequence[Mapping[str, JSON]]:
        """Receipts, oldest first; they arrive at a tick."""
        _, found = await self._at_tick(
            {"kind": "payments", "analyst": analyst, "after": after, "limit": limit}
        )
        return found  # type: ignore[return-value]

    async def proof(self, analyst: str | None, request_id: str, since: int | None) -> str:
        """The receipt as a document; it arrives at a tick."""
        message = {"kind": "proof", "analyst": analyst, "request_id": request_id, "since": since}
        for _ in range(_TRIES):
            reply, more = await self._at_tick(message)
            if more != "wait":
                return reply.body.decode()
        raise _not_there()

    async def checkpoint(self, since: int | None) -> Mapping[str, JSON]:
        """Key and checkpoint of the log; they arrive at a tick."""
        _, found = await self._at_tick({"kind": "checkpoint", "since": since})
        return found  # type: ignore[return-value]

    async def allot(self, analyst: str, epsilon: JSON, delta: JSON) -> Reply:
        """A sub-budget; what is left arrives with the facts of the next tick."""
        return (
            await self._told(
                {"kind": "allot", "analyst": analyst, "epsilon": epsilon, "delta": delta}
            )
        )[0]

    async def resume(self) -> None:
        """The owner ends a pause."""
        await self._at_tick({"kind": "resume"})

    def _send(self, message: dict[str, Any]) -> _Open:
        self.start()
        number = next(self._numbers)
        opened = self._open[number] = _Open(
            {**message, "id": number}, asyncio.get_running_loop().create_future()
        )
        opened.reply.add_done_callback(lambda _: self._open.pop(number, None))
        if self._writer is not None:
            self._write(opened)
        asyncio.get_running_loop().call_later(_PATIENCE, self._give_up, opened)
        return opened

    def _give_up(self, opened: _Open) -> None:
        if self._writer is None and not opened.reply.done():
            opened.reply.set_exception(_not_there())
        elif not opened.reply.done():  # it is being worked on
            asyncio.get_running_loop().call_later(_PATIENCE, self._give_up, opened)

    def _write(self, opened: _Open) -> None:
        opened.sent += 1
        if self._writer is not None:
            self._writer.write(pack(opened.message))

    async def _told(self, message: dict[str, Any]) -> tuple[Reply, JSON]:
        return await self._send(message).reply

    async def _at_tick(self, message: dict[str, Any]) -> tuple[Reply, JSON]:
        """A reply that is nothing to hold: it is held here."""
        reply, more = await self._told(message)
        await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
        if reply.problem is not None:
            raise error_of(reply.problem)
        return reply, more

    async def _keep(self) -> None:
        """Connect, listen, and connect again."""
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(str(self._at), limit=2**20)
            except OSError:
                await asyncio.sleep(_AGAIN)
                continue
            try:
                await self._listen(reader, writer)
            except (OSError, Closed, asyncio.IncompleteReadError, ValueError, KeyError):
                pass
            finally:
                self._writer = None
                writer.close()
            await asyncio.sleep(_AGAIN)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            text, size = sizes(await reader.readexactly(HEAD), LARGEST_REPLY)
            message = json.loads(await reader.readexactly(text))
            body = await reader.readexactly(size)
            match message["kind"]:
                case "dataset":  # from the process that we started, over a socket of our own
                    self._dataset = pickle.loads(body)  # noqa: S301
                case "facts" if self._dataset is not None:
                    self._facts = _facts_of(message, pickle.loads(body), self._dataset)  # noqa: S301
                    if self._writer is None:
                        self._writer = writer
                        for opened in list(self._open.values()):
                            self._write(opened)
                    self._changed.set()
                case "reply":
                    self._settle(message, body)

    def _settle(self, message: Mapping[str, Any], body: bytes) -> None:
        opened = self._open.get(message["id"])
        if opened is not None and not opened.reply.done():
            reply = Reply(
                message["status"], body, message["receipt"], message["problem"], message["tick"]
            )
            opened.reply.set_result((reply, message["more"]))


_TRIES = 5
"""How many ticks a receipt may be waited for: the log takes entries in at ticks."""


def _facts_of(
    message: Mapping[str, Any], meters: Mapping[str | None, Any], dataset: Dataset
) -> Facts:
    """The facts that an engine process sent."""
    return Facts(
        dataset, message["dialect"], message["answer_time"], message["state"], message["dry_run"], message["sequence"],
        meters, message["queue"], message["edition"],
    )  # fmt: skip


def _not_there() -> LedgerUnavailable:
    return LedgerUnavailable(
        "of this dataset", "its engine process is not there", "Wait a moment, and ask again."
    )
