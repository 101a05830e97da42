"""What pyproject.toml says it needs is true: the least versions and the newest ones answer,
on each Python that is there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMOKE = Path(__file__).with_name("smoke.py")
NEEDED: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def interpreter(version: str) -> str | None:
    """A Python of this version: the one that runs, one of pyenv (its shims may refuse), or one on the path."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return sys.executable
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(kept[-1]) if kept else shutil.which(f"python{version}")


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def answers_with(version: str, folder: Path, *requirements: str) -> None:
    """Install the package with these in an empty environment, and ask."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here; get it with: pyenv install {version}")
    run(python, "-m", "venv", folder / "venv", cwd=folder)
    inside = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, *requirements, ROOT, cwd=folder)
    assert (
        run(inside, "-W", "error::ResourceWarning", SMOKE, cwd=folder)
        == f"all answered on Python {version}\n"
    )


def test_each_requirement_names_its_least_version() -> None:
    for requirement in NEEDED:
        assert re.fullmatch(r"[a-z-]+>=\d+(\.\d+)*", requirement), requirement


@pytest.mark.slow
def test_the_least_versions_answer(tmp_path: Path) -> None:
    """On the oldest Python: for newer ones there are no builds of such old packages."""
    answers_with("3.11", tmp_path, *(requirement.replace(">=", "==") for requirement in NEEDED))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_newest_versions_answer(tmp_path: Path, version: str) -> None:
    answers_with(
        version, tmp_path, "--upgrade", *(requirement.partition(">=")[0] for requirement in NEEDED)
    )
