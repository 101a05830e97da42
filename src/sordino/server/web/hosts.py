"""Which names a server answers to: a page of others whose name leads to this machine gets nothing (DNS rebinding)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection
from typing import TypeAlias

__all__ = ["HostCheck", "any_host", "exactly", "those_named"]

HostCheck: TypeAlias = Callable[[bytes], bool]
"""Whether a server answers to what a Host header says."""


def any_host(_: bytes) -> bool:
    """For tests and other applications that look at names themselves."""
    return True


def exactly(host: str, port: int) -> HostCheck:
    """A server for oneself answers to the one name that its link has."""
    full = f"{host}:{port}"
    known = {full.encode(), full.removesuffix(":80").encode()}
    return known.__contains__


def those_named(names: Collection[str]) -> HostCheck:
    """Those names at any port, `localhost`, and all numeric addresses: a browser sends one only to where it leads."""
    known = {"localhost", *(name.lower().removesuffix(".") for name in names)}

    def check(header: bytes) -> bool:
        text = header.decode("latin-1").lower()
        if text.startswith("["):
            return _is_address(text[1:].partition("]")[0])
        name = text.partition(":")[0].removesuffix(".")
        return name in known or _is_address(name)

    return check


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
