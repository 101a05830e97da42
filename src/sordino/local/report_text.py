"""How results and protocols read as text: numbers with their noun,
shares in columns, and what distinguishes protocols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

from sordino.local.protocol import epsilons
from sordino.privacy.exact import show
from sordino.privacy.text_table import padded, text_width
from sordino.privacy.wording import a_or_an

__all__ = ["differences", "is_column", "label", "one_line", "several", "share_lines"]

_LONGEST = 80

_NARROWEST, _WIDEST = 20, 40


def several(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share_lines(rows: Iterable[tuple[object, float, float, float]]) -> list[str]:
    """A line for each name, share and interval; long names are cut."""
    shown = [(label(str(name)), share, low, high) for name, share, low, high in rows]
    width = max([_NARROWEST, *(text_width(row[0]) for row in shown)])
    return [
        f"  {padded(name, width)} {share:8.4f}  [{low:.4f}, {high:.4f}]"
        for name, share, low, high in shown
    ]


def label(name: str) -> str:
    """A name on one line, cut if it is long."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def is_column(values: Any) -> bool:
    """Whether values come one for each person: no text or bytes, no frame, no set, which drops equal ones."""
    if isinstance(values, str | bytes | bytearray | Set | Mapping) or not hasattr(
        values, "__len__"
    ):
        return False
    return len(getattr(values, "shape", (0,))) == 1


def one_line(value: Any) -> str:
    """A short text of any value, without line breaks."""
    if is_column(value) and not isinstance(value, list | tuple):
        return f"{a_or_an(type(value).__name__)} of {len(value)} values"
    if getattr(value, "ndim", 0) or hasattr(value, "column_names"):
        return a_or_an(type(value).__name__)
    text = show(value)
    text = " ".join(text.split()) if len(text.splitlines()) > 1 else text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def differences(one: Any, two: Any) -> str:
    """What the second has instead of what the first has."""
    found = []
    if type(one) is not type(two):
        found.append(f"{type(two).__name__} instead of {type(one).__name__}")
    alike = type(one) is type(two) and is_dataclass(one)
    names = [field.name for field in fields(one)] if alike else ["odds", "categories", "names"]
    for name in (name for name in names if hasattr(one, name) and hasattr(two, name)):
        a, b = getattr(one, name), getattr(two, name)
        if a == b:
            continue
        if name == "odds":
            left, right = epsilons(a, b)
            found.append(
                f"epsilon {right} instead of {left}"
                if left != right
                else "an epsilon that differs a little"
            )
        elif name == "names":
            found += [] if one.categories != two.categories else [_names(a, b)]
        elif name == "categories":
            found.append(f"{b} categories instead of {a}")
        else:
            found.append(f"{name} {one_line(b)} instead of {one_line(a)}")
    return ", ".join(found) or "other parameters"


def _names(one: tuple[str, ...] | None, two: tuple[str, ...] | None) -> str:
    if one is None or two is None:
        return (
            "categories with names instead of without"
            if one is None
            else "categories without names instead of with"
        )
    if sorted(one) == sorted(two):
        return "the same categories in another order"
    a, b = next(pair for pair in zip(one, two, strict=True) if pair[0] != pair[1])
    return f"category {one_line(b)} instead of {one_line(a)}"
