"""Every example in the README and the docs runs: Python and console blocks, in their order, in one empty folder a page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in BLOCK.findall(page.read_text()):
        if language == "python":
            exec(compile(block, page.name, "exec"), names)
        elif language == "console":
            run_console(block, page.name)
        elif named := re.match(r"# (\S+\.toml)\n", block):  # a file of that name
            Path(named.group(1)).write_text(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_files_are_not_broken(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
