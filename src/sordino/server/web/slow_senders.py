"""An HTTP protocol for uvicorn that drops whoever takes too long to send a request.

Uvicorn itself waits without end for the rest of a head or a body, so that a few hundred idle connections would use up
its file descriptors. Here a request that began must be whole within `DEADLINE` seconds; between requests its own limit
holds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["DEADLINE", "ImpatientProtocol"]

DEADLINE = 8.0
"""Seconds from the first byte of a request, or from the opening of a connection, to its last byte."""


class ImpatientProtocol(HttpToolsProtocol):
    """Closes a connection on which a request has begun and is not whole in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A connection that never sends anything is dropped as well."""
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._disarm()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._arm()

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        self._disarm()
        super().on_message_complete()

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(DEADLINE, self._drop)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self) -> None:
        self._timer = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()
