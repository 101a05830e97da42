"""Errors as plain values, and back: the same codes as the command line, and no path of the server in any of them."""

from __future__ import annotations

from collections.abc import Mapping

from sordino.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidDeclaration,
    InvalidInput,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    LedgerUnavailable,
    OffLattice,
    RequestRefused,
    SordinoError,
    TooLarge,
    UnsupportedSQL,
)
from sordino.server.link import JSON

__all__ = ["error_of", "problem_of"]

_NAMES: Mapping[str, type[SordinoError]] = {
    "budget-exceeded": BudgetExceeded,
    "engine-failed": EngineFailed,
    "ledger-damaged": LedgerDamaged,
    "ledger-mismatch": LedgerMismatch,
    "ledger-unavailable": LedgerUnavailable,
    "request-refused": RequestRefused,
    "invalid-declaration": InvalidDeclaration,
    "off-lattice": OffLattice,
    "too-large": TooLarge,
    "unsupported-sql": UnsupportedSQL,
    "invalid-input": InvalidInput,
}
_EXITS = {InvalidInput: 2, BudgetExceeded: 3, LedgerError: 4, RequestRefused: 4, EngineFailed: 5}


def problem_of(error: SordinoError) -> dict[str, JSON]:
    """The parts of an error: its code, the exit code of the command line, the message, and value, rule and hint.

    Example:
        >>> problem_of(InvalidInput("epsilon=-1", "it must be positive", "Pass 0.1."))["code"]
        'invalid-input'
    """
    code = next((name for name, kind in _NAMES.items() if type(error) is kind), "invalid-input")
    leave = next((exit_ for kind, exit_ in _EXITS.items() if isinstance(error, kind)), 1)
    value, rule, hint = "", str(error), ""
    match error:
        case InvalidInput():
            value, rule, hint = error.value, error.rule, error.hint
        case BudgetExceeded():
            value, rule, hint = error.cost, error.left, error.hint
        case RequestRefused():
            value, rule, hint = error.request, error.rule, error.hint
        case LedgerError():  # its place is a path or an address on the server
            value, rule, hint = (
                "",
                error.rule,
                f"{error.hint}{error.outcome and ' '}{error.outcome}",
            )
            error = type(error)("of this dataset", rule, error.hint, error.outcome)
    found: dict[str, JSON] = {
        "code": code,
        "exit": leave,
        "message": str(error),
        "value": value,
        "rule": rule,
        "hint": hint,
    }
    if isinstance(error, InvalidInput) and error.place is not None:
        found |= {"place": list(error.place), "instead": error.instead}
    return found


def error_of(problem: Mapping[str, JSON]) -> SordinoError:
    """The error that `problem_of` took apart, so that a client raises what a session would."""
    kind = _NAMES.get(str(problem.get("code")), InvalidInput)
    value, rule, hint = (str(problem.get(part, "")) for part in ("value", "rule", "hint"))
    if kind is EngineFailed:
        return EngineFailed()
    if issubclass(kind, LedgerError):
        return kind("of this dataset", rule, hint)
    if issubclass(kind, BudgetExceeded | RequestRefused | InvalidInput):
        return kind(value, rule, hint)
    return SordinoError(str(problem.get("message", "")))
