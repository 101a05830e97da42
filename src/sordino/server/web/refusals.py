"""What the web process itself refuses, beside what Sordino's errors say; and the form in which all of it is sent.

A problem is an RFC 9457 object: `type`, `title`, `status`, `detail`, and as extensions the parts of Sordino's errors: a
`code`, the command line's `exit` code, `value`, `rule` and `hint`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sordino.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidInput,
    LedgerError,
    RequestRefused,
    SordinoError,
)
from sordino.server.accounts.policy import NeedsApproval
from sordino.server.link import JSON
from sordino.server.problems import problem_of

__all__ = ["CODES", "Refused", "as_problem", "problem"]

_TITLES = {
    "unauthenticated": "Who are you?",
    "forbidden": "Not allowed",
    "not-found": "There is no such thing",
    "method-not-allowed": "Not in this way",
    "invalid-request": "The request is not well formed",
    "body-too-large": "The body is too large",
    "too-many-requests": "Too many at once",
    "not-built": "Not available here",
    "conflict": "Something else came first",
    "unexpected": "Something failed inside Sordino",
    "approval-needed": "The owner has to approve",
    "budget-exceeded": "The budget does not allow it",
    "engine-failed": "The question failed after its charge",
    "ledger-damaged": "The ledger cannot be used",
    "ledger-mismatch": "The ledger cannot be used",
    "ledger-unavailable": "The ledger cannot be used now",
    "request-refused": "The request id is taken",
    "invalid-declaration": "The declaration is wrong",
    "off-lattice": "Not a possible number",
    "too-large": "Too large",
    "unsupported-sql": "This cannot be asked",
    "invalid-input": "The question is refused",
}
CODES = frozenset(_TITLES)


@dataclass
class Refused(Exception):
    """A refusal of the web process itself."""

    status: int
    code: str
    rule: str
    hint: str = ""
    value: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    exit_: int = 2,
    value: str = "",
    rule: str = "",
    hint: str = "",
) -> dict[str, JSON]:
    """An RFC 9457 problem."""
    return {
        "type": f"urn:sordino:problem:{code}", "title": _TITLES[code], "status": status, "detail": detail, "code": code,
        "exit": exit_, "value": value, "rule": rule, "hint": hint,
    }  # fmt: skip


def as_problem(error: SordinoError | Refused) -> dict[str, JSON]:
    """What a refusal is as a problem."""
    if isinstance(error, Refused):
        told = f"{error.value and f'got {error.value}: '}{error.rule}.{error.hint and f' {error.hint}'}"
        own = {"value": error.value, "rule": error.rule, "hint": error.hint}
        return problem(error.status, error.code, told, exit_=1 if error.status >= 500 else 2, **own)
    parts = problem_of(error)
    code = "approval-needed" if isinstance(error, NeedsApproval) else str(parts["code"])
    return {**problem(_status(error), code, str(parts["message"])), **parts, "code": code}


def _status(error: SordinoError) -> int:
    match error:
        case BudgetExceeded():
            return 402
        case RequestRefused():
            return 409
        case LedgerError() | EngineFailed():
            return 503
        case InvalidInput():
            return 422
        case _:
            return 400
