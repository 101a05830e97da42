"""A progress bar in a notebook, for questions that take long.

It is drawn by the process that holds the data, in the notebook that runs in it: for whoever owns both. A server never
draws it, and tells nobody how far a question is: the time that a question takes depends on data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from sordino.privacy.notebook import meter

__all__ = ["KNOWN", "NotebookBar", "notebook_bar"]

_PATIENCE, _TICK = 1.5, 0.25
"""Seconds until the bar appears, and between its moves."""
KNOWN = 0.005
"""Below this part an engine's estimate says nothing yet: it counts rows that it expects far too many of."""


class NotebookBar:
    """Shows how far something is, once it takes long; `tick` is called again and again, `close` in the end."""

    def __init__(
        self,
        display: Any,
        part: Callable[[], float | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._display, self._part, self._now = display, part, now
        self._start = self._last = now()
        self._handle: Any = None
        self._furthest = 0.0

    def tick(self) -> None:
        """Draw it anew, where it is time."""
        now = self._now()
        if now - self._start < _PATIENCE or (self._handle is not None and now - self._last < _TICK):
            return
        self._last = now
        part = self._part()
        self._furthest = max(self._furthest, part or 0.0)  # never backwards
        known = self._furthest if self._furthest >= KNOWN else None
        percent = "" if known is None else f"{100 * known:.0f} %, "
        shown = _Html(meter(known, f"{percent}{now - self._start:.0f} s"))
        if self._handle is None:
            self._handle = self._display(shown, display_id=True)
        else:
            self._handle.update(shown)

    def close(self) -> None:
        """Take it away."""
        if self._handle is not None:
            self._handle.update(_Html(""))


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def notebook_bar(part: Callable[[], float | None]) -> NotebookBar | None:
    """A bar if this process is the kernel of a notebook; nothing is imported to find that out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    from importlib import import_module

    return NotebookBar(import_module("IPython.display").display, part)
