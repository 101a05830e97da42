"""Runs the examples of one page, Python and console blocks in their order, in the folder where it is started.

It needs nothing but the standard library, so that it runs in an environment with nothing but the wheel, too.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

BLOCK = re.compile(r"```(python|console|toml|output)\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


Command = Callable[[list[str]], tuple[int, str]]
"""Runs the words of a command: its exit code, and what it printed."""


def in_a_process(words: list[str]) -> tuple[int, str]:
    """Run a command as a reader would; `sordino` is the one of this environment."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PATH": path}, timeout=60
    )
    return done.returncode, f"{done.stdout}\n{done.stderr}"


def in_this_process(words: list[str]) -> tuple[int, str]:
    """Run `sordino` without the second that a process takes to import it."""
    from sordino.cli.app import main

    assert words[0] == "sordino"
    code: object = None
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, "utf-8", write_through=True)
    with (
        patch.object(sys, "argv", words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return 1 if code not in (None, 0) else 0, raw.getvalue().decode()


def run_console(block: str, page: str, command: Command) -> None:
    """Lines that start with a dollar sign are commands."""
    for line in block.splitlines():
        if line.startswith("$ "):
            code, printed = command(shlex.split(line[2:]))
            assert code == 0, f"{page}: {line}\n{printed}"


def form(text: str) -> str:
    """What stays of an output when noise changes its numbers, and they change how wide its columns are."""
    return "\n".join(
        " ".join(re.sub("─+", "─", NUMBER.sub("#", line)).split())
        for line in text.strip().splitlines()
    )


def compare(shown: str, printed: str, page: str) -> None:
    """An output below a Python block is what that prints, but for its numbers; dots at its end stand for more of it."""
    whole = not shown.rstrip().endswith("...")
    wanted, found = form(shown.rstrip().removesuffix("...")), form(printed)
    assert wanted == found if whole else found.startswith(wanted), (
        f"{page} shows\n{shown}\nbut prints\n{printed}"
    )


def run_page(page: Path, command: Command = in_a_process) -> dict[str, object]:
    """All blocks of a page; a TOML block that begins with a file's name is that file.

    Gives the names that they made.
    """
    names: dict[str, object] = {}
    printed = ""
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language == "python":
            wide = patch.dict(os.environ, COLUMNS="100")  # as pages show it
            with wide, contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block, page.name, "exec", dont_inherit=True), names)
            printed = out.getvalue()
        elif language == "output":
            compare(block, printed, page.name)
        elif language == "console":
            run_console(block, page.name, command)
        elif named := re.match(r"# (\S+\.toml)\n", block):
            Path(named.group(1)).write_text(block)
    return names


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
