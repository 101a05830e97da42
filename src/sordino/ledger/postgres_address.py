"""The address of a ledger in PostgreSQL: what a client needs to connect, and the name of the ledger there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import psycopg
from psycopg import conninfo, pq

from sordino.errors import InvalidInput
from sordino.ledger.receipt import checked_name

__all__ = ["Address"]

_USUAL_PORT = "5432"
_ALERT = {
    "connect_timeout": "10", "tcp_user_timeout": "60000",
    "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3",
}  # fmt: skip
"""How many seconds (or milliseconds) pass until a server that does not answer, or is gone, is noticed."""


@dataclass(frozen=True)
class Address:
    """How messages call a place, without passwords; the name of the ledger there; and how to connect, never shown."""

    shown: str
    ledger: str
    parameters: dict[str, Any] = field(repr=False)

    @staticmethod
    def of(text: str) -> Address:
        """What an address says."""
        rest = text.partition("://")[2]
        user, at, after = rest.partition("@") if "@" in rest.partition("/")[0] else ("", "", rest)
        # else a part of a password would be taken for a host, and shown
        if "@" in after or not text.isprintable():
            raise _unclear(
                "it has a sign where it means something else",
                "Write @ as %40 and / as %2F in names and passwords",
            )
        where, _, options = after.partition("?")
        named = [option for option in options.split("&") if option.startswith("ledger=")]
        others = "&".join(option for option in options.split("&") if option not in named)
        try:
            names = [
                unquote(option.removeprefix("ledger="), errors="strict") for option in named
            ] or ["default"]
            given = conninfo.conninfo_to_dict(
                f"postgresql://{user}{at}{where}" + (f"?{others}" if others else "")
            )
            known = {
                option.keyword.decode(): (option.val or b"").decode()
                for option in pq.Conninfo.get_defaults()
            }
        except (psycopg.Error, UnicodeError):  # its text may quote a password
            names = []
        if len(names) != 1:
            raise _unclear(
                "it is not an address of PostgreSQL with at most one ledger", "Check its parameters"
            )
        if not str(given.get("port") or "0").replace(",", "0").isdecimal():
            raise _unclear(
                "its port is not a number", "Write : as %3A and / as %2F in names and passwords"
            )
        hint = "Write ?ledger=visits at the end of the address, or nothing if there is only one."
        ledger = checked_name("ledger", names[0], hint)
        alert = {name: known.get(name) or value for name, value in _ALERT.items()}
        parameters = {
            **alert,
            "fallback_application_name": "sordino",
            **given,
            "client_encoding": "utf8",
        }
        return Address(
            _shown(given if "service" in given else {**known, **given}, ledger), ledger, parameters
        )

    def gives_away(self, text: str) -> bool:
        """Whether a text holds a password of this address."""
        secrets = [self.parameters.get(name) for name in ("password", "sslpassword")]
        return any(secret and secret in text for secret in secrets)


def _unclear(rule: str, hint: str) -> InvalidInput:
    example = "postgresql://user:password@host:5432/database?ledger=visits"
    return InvalidInput("an address postgresql://...", rule, f"{hint}; it looks like {example}.")


def _shown(known: dict[str, Any], ledger: str) -> str:
    user, port = known.get("user") or "", (known.get("port") or "").strip(",") or _USUAL_PORT
    host = known.get("host") or known.get("hostaddr") or ""
    options = {"service": known.get("service"), "ledger": ledger}
    if host and not set("/,@") & set(host):
        where = f"[{host}]:{port}" if ":" in host else f"{quote(host)}:{port}"
    else:  # a socket, or several servers
        where, options = "", {"host": host, "port": "" if port == _USUAL_PORT else port, **options}
    who = f"{quote(user, safe='')}@" if user else ""
    said = "&".join(f"{name}={quote(value, safe='/,')}" for name, value in options.items() if value)
    return f"postgresql://{who}{where}/{quote(known.get('dbname') or user, safe='')}?{said}"
