"""What a machine can do for a release: `make release`, or `python -m tools.release`. The rest is
docs/project/releasing.md.

Builds the wheel and the source archive, tries the wheel in a bare environment on each Python at hand, and writes a bill
of materials and checksums. It publishes nothing, and stops at the first thing that is wrong.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ["PYTHONS", "interpreter", "version"]

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PIP = (
    "-m",
    "pip",
    "--quiet",
    "--disable-pip-version-check",
    "install",
    "-c",
    ROOT / "constraints.txt",
)
NEEDED = (
    "src/sordino/__init__.py",
    "tests/test_package.py",
    "docs/quickstart.md",
    "LICENSE",
    "CITATION.cff",
    "PKG-INFO",
)


def version() -> str:
    """The version, from its one place."""
    found = re.search(
        r'^__version__ = "([^"]+)"$',
        (ROOT / "src" / "sordino" / "__init__.py").read_text(),
        re.MULTILINE,
    )
    assert found, "src/sordino/__init__.py has no __version__"
    return found[1]


def interpreter(wanted: str) -> Path | None:
    """A Python of this version: the one that runs, one of pyenv, or one on the path."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == wanted:
        return Path(sys.executable)
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{wanted}.*/bin/python"))
    found = str(kept[-1]) if kept else shutil.which(f"python{wanted}")
    return Path(found) if found else None


def run(*words: str | Path, folder: Path = ROOT) -> str:
    """What a command prints; it sees nothing of this process's own environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=kept, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(python: Path, folder: Path, *packages: str | Path) -> Path:
    """A new environment with these packages, and its Python."""
    run(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, *PIP, *packages)
    return inside


def build(tools: Path) -> tuple[Path, Path]:
    """The wheel and the source archive; both must be of the version, and the archive complete."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools, "-m", "hatchling", "build", "-d", DIST)
    wheel, archive = (
        DIST / f"sordino-{version()}-py3-none-any.whl",
        DIST / f"sordino-{version()}.tar.gz",
    )
    for made in (wheel, archive):
        if not made.exists():
            sys.exit(
                f"{made.name} was not built; dist/ holds {', '.join(path.name for path in DIST.iterdir())}"
            )
    with tarfile.open(archive) as held:
        names = {name.split("/", 1)[1] for name in held.getnames() if "/" in name}
    missing = sorted(set(NEEDED) - names)
    if missing:
        sys.exit(f"{archive.name} lacks {', '.join(missing)}")
    return wheel, archive


def tried(python: Path, wheel: Path, folder: Path) -> Path:
    """The wheel in a bare environment: its version,
    the README's example and the form of its answer; gives the Python.
    """
    inside = environment(python, folder / "bare", wheel)
    told = run(inside, "-c", "import sordino; print(sordino.__version__)", folder=folder).strip()
    if told != version():
        sys.exit(f"the wheel says that it is {told}, and this is {version()}")
    run(
        inside,
        "-W",
        "error",
        ROOT / "tests" / "page_examples.py",
        ROOT / "README.md",
        folder=folder,
    )
    run(folder / "bare" / "bin" / "sordino", "docs", "cheat-sheet", folder=folder)
    return inside


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="sordino-release-") as name:
        folder = Path(name)
        tools = environment(Path(sys.executable), folder / "tools", "hatchling", "cyclonedx-bom")
        wheel, archive = build(tools)
        print(
            f"built {wheel.name} ({wheel.stat().st_size // 1024} KiB), {archive.name} ({archive.stat().st_size // 1024} KiB)"
        )
        bills = 0
        for wanted in PYTHONS:
            python = interpreter(wanted)
            if python is None:
                print(f"Python {wanted}: NOT TRIED, there is none here")
                continue
            (folder / wanted).mkdir()
            inside = tried(python, wheel, folder / wanted)
            print(f"Python {wanted}: the wheel works")
            if not bills:
                bill = DIST / f"sordino-{version()}.cdx.json"
                command = folder / "tools" / "bin" / "cyclonedx-py"
                run(
                    command,
                    "environment",
                    "--short-PURLs",
                    "--output-reproducible",
                    "--mc-type",
                    "library",
                    "-o",
                    bill,
                    inside,
                )
                bills += 1
                print(f"wrote {bill.name}")
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(DIST.iterdir())
    ]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    print(*sums, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
