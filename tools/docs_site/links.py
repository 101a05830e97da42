"""Links of our pages: where they lead in the repository, where in the site, and whether they lead anywhere."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

__all__ = ["ROOT", "dead_links", "in_site", "rewritten", "targets"]

ROOT = Path(__file__).parents[2]
_LINK = re.compile(
    r"(?P<before>!?\[[^]\[]*(?:\[[^]]*\][^]\[]*)*\]\()(?P<target>(?!https?:|mailto:|#)[^)#\s]+)(?P<fragment>#[^)\s]+)?\)"
)
_FENCED = re.compile(r"(^|\n)(\s*)(```+|~~~+).*?\n\2?\3[^\n]*", re.DOTALL)
_CODE = (
    ".py",
    ".cff",
    ".toml",
    ".yml",
    ".yaml",
    ".txt",
    ".json",
    "Makefile",
    "LICENSE",
    "Dockerfile",
)


def _prose(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a page, each with whether it is prose and no code block."""
    end = 0
    for block in _FENCED.finditer(text):
        yield True, text[end : block.start()]
        yield False, block[0]
        end = block.end()
    yield True, text[end:]


def in_site(path: str) -> str:
    """The page of the site that shows a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    if path == "README.md":
        return "index.md"
    if path.startswith("src/sordino/") and path.endswith(".md"):
        return "proofs/" + path.removeprefix("src/sordino/")
    if path.endswith(_CODE):
        return f"source/{path}.md"
    return path


def _line(path: str, name: str) -> int:
    """The line where a function, class or constant of a file begins; `Class.method` is one inside."""
    nodes: list[ast.stmt] = ast.parse((ROOT / path).read_text("utf-8")).body
    line = 0
    for part in name.split("."):
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part:
                nodes, line = node.body, node.lineno
                break
        else:
            raise ValueError(f"{path} has no {name}")
    return line


def targets(text: str, page: str) -> set[str]:
    """The files of the repository that a page links to."""
    return {
        os.path.normpath(Path(page).parent / found["target"])
        for prose, part in _prose(text)
        if prose
        for found in _LINK.finditer(part)
    }


def rewritten(text: str, page: str, shown_as: str) -> str:
    """The page with links that lead to the pages of the site; `page` is its path in the repository."""

    def one(found: re.Match[str]) -> str:
        target = os.path.normpath(Path(page).parent / found["target"])
        fragment = found["fragment"] or ""
        if not (ROOT / target).exists():
            raise ValueError(f"{page} links to {target}, which does not exist")
        if target.endswith(".py") and fragment:
            fragment = f"#__codelineno-0-{_line(target, fragment[1:])}"
        return (
            f"{found['before']}{os.path.relpath(in_site(target), Path(shown_as).parent)}{fragment})"
        )

    return "".join(_LINK.sub(one, part) if prose else part for prose, part in _prose(text))


class _Page(HTMLParser):
    """What a page refers to, what it loads, and the places in it."""

    def __init__(self) -> None:
        super().__init__()
        self.refers, self.loads, self.places = set[str](), set[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.refers.add(found["href"])
        elif tag == "link" and found.get("rel") in ("canonical", "prev", "next"):
            pass
        else:
            self.loads |= {
                found[name] for name in ("src", "href", "srcset", "data") if name in found
            }


def dead_links(site: Path) -> list[str]:
    """What is wrong with the links of a built site: none may be dead, and nothing may be loaded from elsewhere."""
    pages = dict[Path, _Page]()
    for file in site.rglob("*.html"):
        pages[file] = _Page()
        pages[file].feed(file.read_text("utf-8"))
    wrong = list[str]()
    for file, page in pages.items():
        name = file.relative_to(site)
        wrong += [f"{name} loads {link}" for link in page.loads if re.match(r"(https?:)?//", link)]
        for link in page.refers | page.loads:
            if re.match(r"[a-z][a-z0-9+.-]*:|//", link) or not link:
                continue
            path, _, place = link.partition("#")
            there = (
                (site / path.lstrip("/") if path.startswith("/") else file.parent / unquote(path))
                if path
                else file
            )
            there = Path(os.path.normpath(there))
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                wrong.append(f"{name}: {link}")
            elif place and there in pages and unquote(place) not in pages[there].places | {"__top"}:
                wrong.append(f"{name}: {link} (no such place)")
    return sorted(set(wrong))
