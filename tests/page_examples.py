"""Runs the examples of one page, Python and console blocks in their order, in the folder where it is started.

It needs nothing but the standard library, so that it runs in an environment with nothing but the wheel, too.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

BLOCK = re.compile(r"```(python|console|toml)\n(.*?)```", re.DOTALL)


def run_console(block: str, page: str) -> None:
    """Lines that start with a dollar sign are commands; `sordino` is the one of this environment."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    for line in block.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                shlex.split(line[2:]), capture_output=True, text=True, env={**os.environ, "PATH": path}, timeout=60
            )
            assert done.returncode == 0, f"{page}: {line}\n{done.stdout}\n{done.stderr}"


def run_page(page: Path) -> None:
    """All blocks of a page; a TOML block that begins with a file's name is that file."""
    names: dict[str, object] = {}
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language == "python":
            exec(compile(block, page.name, "exec"), names)
        elif language == "console":
            run_console(block, page.name)
        elif named := re.match(r"# (\S+\.toml)\n", block):
            Path(named.group(1)).write_text(block)


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
