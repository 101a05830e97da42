"""What becomes of a command: an exit code, and for an error one sentence on standard error.

A traceback is shown only to those who ask for it, since it may quote data.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from sordino.cli.streams import fail, say, warn
from sordino.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidInput,
    LedgerError,
    LedgerWarning,
    RequestRefused,
    SordinoError,
)

__all__ = ["DOES_NOT_HOLD", "EXIT_CODES", "INTERRUPTED", "NOT_DELIVERED", "exit_code"]

UNEXPECTED, USAGE, DOES_NOT_HOLD, NOT_DELIVERED, INTERRUPTED = 1, 2, 6, 7, 130
_CODES: tuple[tuple[type[SordinoError], int], ...] = (
    (InvalidInput, USAGE),
    (BudgetExceeded, 3),
    (LedgerError, 4),
    (RequestRefused, 4),
    (EngineFailed, 5),
)
EXIT_CODES = {
    0: "done",
    UNEXPECTED: "unexpected: a bug (SORDINO_TRACEBACK=1 shows where)",
    USAGE: "bad usage or input; nothing was charged",
    3: "the budget is exceeded; nothing was charged",
    4: "the ledger cannot be used, or the request is refused",
    5: "the engine failed after the charge, which stays",
    DOES_NOT_HOLD: "verification failed",
    NOT_DELIVERED: "charged and stored, but the answer could not be written; its request id gives it again",
    INTERRUPTED: "interrupted",
}


def exit_code(run: Callable[[], Any]) -> int:
    """Run a command, say what went wrong, and give the code to leave with."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", LedgerWarning)
        warnings.showwarning = _show_warning
        try:
            code = run()
        except SordinoError as error:
            fail(str(error))
            return next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)
        except KeyboardInterrupt:
            return INTERRUPTED
        except SystemExit as stop:
            # Rich leaves like this when the reader of a pipe has seen enough.
            seen_enough = isinstance(stop.__context__, BrokenPipeError)
            return stop.code if isinstance(stop.code, int) and not seen_enough else 0
        except BrokenPipeError:
            return 0
        except Exception as error:
            return _usage(error) if hasattr(error, "format_message") else _unexpected(error)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> int:
    """What Typer says about the words of a command line."""
    message, context = str(error.format_message()), getattr(error, "ctx", None)
    if message.startswith("Usage:"):  # a group without a command shows its help
        say(message)
        return 0
    said = " ".join(message.split())
    if said.startswith("No such command") and ".toml'" in said and context is not None:
        commands = context.command.list_commands(context)
        said = (
            f"what to do comes before the declaration: "
            f"{', '.join(f'{context.command_path} {name}' for name in commands)}."
        )
    stop = "" if said.endswith((".", "?", "!")) else "."
    hint = f"{stop} Try: {context.command_path} --help" if context is not None else ""
    fail(f"{said}{hint}")
    return USAGE


def _unexpected(error: Exception) -> int:
    """A bug. Its own text may quote data, so that only its type is shown unless one asks."""
    if os.environ.get("SORDINO_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    told = "Please report it; SORDINO_TRACEBACK=1 shows where, and may show data."
    fail(f"something failed inside Sordino ({type(error).__name__}). {told}")
    return UNEXPECTED


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    warn(str(message))
