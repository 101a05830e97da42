"""Build the site into build/site and check every link of it: `make docs`."""

from __future__ import annotations

import subprocess
import sys

from tools.docs_site.links import ROOT, dead_links


def main() -> int:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean"], cwd=ROOT
    )
    if built.returncode:
        return built.returncode
    wrong = dead_links(ROOT / "build" / "site")
    print(*wrong, sep="\n")
    pages = len(list((ROOT / "build" / "site").rglob("*.html")))
    print(f"{pages} pages in build/site, {len(wrong) or 'no'} dead links")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
