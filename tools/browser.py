"""The browser of the tests: `python -m tools.browser` finds one, or brings one, and prints where it is.

Playwright's own download is not used: it needs one more host than Python and Debian packages do. In order:
SORDINO_BROWSER, a Chromium on PATH, one that was brought before; then `apt-get` if one is root, else the npm package
@sparticuz/chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["FOLDER", "HOW", "browser", "environment"]

FOLDER = Path(__file__).parents[1] / ".venv" / "browser"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
HOW = "no browser for the tests: install chromium-headless-shell (make browser does), or set SORDINO_BROWSER"
_PACKAGE = "@sparticuz/chromium@147.0.1"
_UNPACK = """
const fs = require('fs'), zlib = require('zlib');
const [from, to] = process.argv.slice(1);
fs.createReadStream(from).pipe(zlib.createBrotliDecompress()).pipe(fs.createWriteStream(to));
"""


def browser() -> str | None:
    """Where a browser is; None if there is none."""
    told = os.environ.get("SORDINO_BROWSER")
    if told:
        return told if shutil.which(told) else None
    brought = FOLDER / "chromium"
    return next(
        (path for name in NAMES if (path := shutil.which(name))),
        str(brought) if brought.exists() else None,
    )


def environment(path: str) -> dict[str, str]:
    """What a browser needs in its environment: the one from npm comes with libraries of its own."""
    if Path(path).parent != FOLDER:
        return dict(os.environ)
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{FOLDER / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
    }


def by_apt() -> None:
    """From Debian's packages, if this is Debian and one is root."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        _run("apt-get", "update", "-q")
        for name in NAMES[:2]:
            if _run("apt-get", "install", "-q", "-y", "--no-install-recommends", name):
                return


def by_npm() -> None:
    """From npm, unpacked by Node itself."""
    if not (shutil.which("npm") and shutil.which("node")):
        return
    aside = FOLDER.with_name("browser-new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    if not _run(
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
        str(aside),
        _PACKAGE,
    ):
        shutil.rmtree(aside)
        return
    packed = aside / "node_modules" / "@sparticuz" / "chromium" / "bin"
    for name in ("al2023.tar", "swiftshader.tar", "chromium"):
        subprocess.run(
            ["node", "-e", _UNPACK, str(packed / f"{name}.br"), str(aside / name)], check=True
        )
        if name.endswith(".tar"):
            subprocess.run(["tar", "-xf", str(aside / name), "-C", str(aside)], check=True)
            (aside / name).unlink()
    (aside / "chromium").chmod(0o755)
    shutil.rmtree(aside / "node_modules")
    shutil.rmtree(FOLDER, ignore_errors=True)
    aside.rename(FOLDER)


def _run(*words: str) -> bool:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(words, stdout=subprocess.DEVNULL, env=env, check=False).returncode == 0


def main() -> None:
    """Find one, or bring one; without one the tests of pages are skipped, so this is no error."""
    for bring in (by_apt, by_npm):
        if browser() is None and "SORDINO_BROWSER" not in os.environ:
            bring()
    sys.stdout.write(f"{browser() or HOW}\n")


if __name__ == "__main__":
    main()
