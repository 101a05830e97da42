r"""Where words go: what was asked for to standard output, everything else to standard error.

So that `| head` and `> x.csv` work. Colours are written to terminals only, and never if `NO_COLOR` is set. What a
terminal would obey, such as an escape code within a key or a question, is never written to one: it sees `\x1b`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from typing import TextIO

from sordino.errors import InvalidInput, visible

__all__ = [
    "confirmed",
    "fail",
    "folded",
    "hanging",
    "is_terminal",
    "note",
    "prose",
    "put",
    "put_text",
    "say",
    "warn",
    "width",
]

_RED, _YELLOW = 31, 33
_PIPE = 100
"""How wide text is where there is no terminal and `COLUMNS` does not say."""


def width() -> int:
    """How wide lines may be."""
    return max(shutil.get_terminal_size((_PIPE, 24)).columns, 20)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody reads it as it is written."""
    return stream is not None and stream.isatty()


def put_text(text: str) -> None:
    """Text in UTF-8 on standard output: as it is in a pipe or file, with control characters shown on a terminal."""
    put((visible(text) if is_terminal(sys.stdout) else text).encode())


def put(data: bytes) -> None:
    """Write to standard output; quiet if the reader has seen enough and closed the pipe. Not for texts of others."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # What is written later, and what Python flushes at the end, must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        rule = f"it cannot be written to ({error.strerror})"
        raise InvalidInput(
            "standard output", rule, "Check the disk, or write to a file with --output."
        ) from None


def say(text: str = "") -> None:
    """A line, or several, on standard output; letters that its encoding lacks become question marks."""
    encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
    text = visible(text) if is_terminal(sys.stdout) else text
    put(f"{text}\n".encode(encoding, "replace"))


def prose(text: str) -> None:
    """Sentences on standard output, broken at the width of a terminal."""
    say(hanging(text, 0))


def note(text: str, indent: int = 0) -> None:
    """A remark on standard error, broken at the width of a terminal."""
    _tell("", text, indent)


def warn(text: str) -> None:
    """A warning on standard error."""
    _tell(_coloured("warning:", _YELLOW), text)


def fail(text: str) -> None:
    """An error on standard error."""
    _tell(_coloured("error:", _RED), text)


def hanging(text: str, indent: int) -> str:
    """Lines broken at the width of a terminal and indented after a break; as they are if nobody is watching."""
    return folded(text, indent) if is_terminal(sys.stdout) else text


def folded(text: str, indent: int) -> str:
    """Lines broken at the width, what follows a break being indented."""
    return "\n".join(_broken(line, width(), " " * indent) for line in text.splitlines())


def confirmed(question: str, *, yes: bool, option: str = "--yes") -> bool:
    """Whether the person at the terminal agrees; `yes` is their answer if they gave it beforehand."""
    if yes:
        return True
    if not is_terminal(sys.stdin):
        rule = "this must be confirmed, and there is no terminal to ask at"
        raise InvalidInput(f"no {option}", rule, f"Add {option} if you are the owner and mean it.")
    import typer

    return typer.confirm(question, default=False, err=True)


def _tell(prefix: str, text: str, indent: int = 0) -> None:
    if sys.stderr is None:
        return
    text = visible(text)
    line = f"{prefix} {text}" if prefix else text
    if is_terminal(sys.stderr):
        line = "\n".join(_broken(part, width(), " " * indent) for part in line.split("\n"))
    encoding = sys.stderr.encoding
    with contextlib.suppress(OSError):  # nobody can be told that nobody can be told
        print(
            line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr, flush=True
        )


def _broken(line: str, room: int, indent: str = "") -> str:
    if len(line) <= room:
        return line
    wrapped = textwrap.wrap(
        line, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapped)


def _coloured(word: str, colour: int) -> str:
    if (
        not is_terminal(sys.stderr)
        or os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
    ):
        return word
    return f"\x1b[{colour}m{word}\x1b[0m"
