"""What distinguishes two protocols, in words; epsilons, not odds."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from sordino.local.given import one_line
from sordino.local.odds import epsilons

__all__ = ["differences"]


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
            found.append(f"epsilon {right} instead of {left}" if left != right else "an epsilon that differs a little")
        elif name == "names":
            found += [] if one.categories != two.categories else [_names(a, b)]
        elif name == "categories":
            found.append(f"{b} categories instead of {a}")
        else:
            found.append(f"{name} {one_line(b)} instead of {one_line(a)}")
    return ", ".join(found) or "other parameters"


def _names(one: tuple[str, ...] | None, two: tuple[str, ...] | None) -> str:
    if one is None or two is None:
        return "categories with names instead of without" if one is None else "categories without names instead of with"
    if sorted(one) == sorted(two):
        return "the same categories in another order"
    a, b = next(pair for pair in zip(one, two, strict=True) if pair[0] != pair[1])
    return f"category {one_line(b)} instead of {one_line(a)}"
