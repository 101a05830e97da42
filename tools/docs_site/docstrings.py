"""Docstrings as the reference reads them: our `Example:` is a section of doctests."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Examples"]


class Examples(griffe.Extension):
    """`Example:` as griffe's `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"(?m)^(\s*)Example:\s*\n(?=\s*>>>)", r"\1Examples:\n", obj.docstring.value
            )
