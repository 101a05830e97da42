"""A mutant: one planted privacy bug in one file of the package, with the harm it does and the tests that should notice.

The lists are the *.toml files beside this one, one for each room.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

__all__ = ["PACKAGE", "ROOT", "Mutant", "load"]

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src", "sordino")
_LISTS = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    """In `symbol` of `file`, the code `old`, which is there once, becomes `new`.

    A symbol is a function, a class or an assigned name, such as `Report.passed`. White space, line breaks and trailing
    commas make no difference, so that a formatter does not pull a mutant out. `tests` are tried first, then the room's.

    `equivalent` is why a mutant that survives harms nobody; empty for all others.
    """

    name: str
    room: str
    file: str
    symbol: str
    old: str
    new: str
    harm: str
    tests: tuple[str, ...]
    wider: tuple[str, ...]
    equivalent: str = ""

    def path(self, root: Path) -> Path:
        """The file it changes, in a copy of the repository."""
        return root / PACKAGE / self.file

    def planted(self, text: str) -> str:
        """The text of the file with the bug; ValueError unless the old code is there exactly once."""
        start, end = _place(self.symbol, text)
        found = list(_pattern(self.old).finditer(text, start, end))
        if len(found) != 1:
            where = f"{self.symbol} of {self.file}"
            raise ValueError(f"{self.name}: the old code occurs {len(found)} times in {where}")
        return text[: found[0].start()] + self.new.strip() + text[found[0].end() :]

    def plant(self, root: Path) -> None:
        """Change the file in a copy of the repository."""
        path = self.path(root)
        path.write_text(self.planted(path.read_text()))


def _names(node: ast.AST) -> list[str]:
    """What a statement defines: a function, a class, or the names that it gives values to."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign(targets=targets):
            found = [name for target in targets for name in ast.walk(target)]
            return [name.id for name in found if isinstance(name, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _place(symbol: str, text: str) -> tuple[int, int]:
    """Where a symbol's definition starts in its file, with its decorators, and where it ends."""
    inside: ast.AST = ast.parse(text)
    first = last = 0
    for name in symbol.split("."):
        found = [node for node in ast.iter_child_nodes(inside) if name in _names(node)]
        if len(found) != 1:
            raise ValueError(f"{symbol} is there {len(found)} times")
        (inside,) = found
        spans = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in (inside, *getattr(inside, "decorator_list", ()))
        ]
        first, last = min(spans)[0], max(span[1] for span in spans)
    lines = text.splitlines(keepends=True)
    return len("".join(lines[: first - 1])), len("".join(lines[:last]))


def _pattern(code: str) -> re.Pattern[str]:
    """What finds some code however its lines are broken."""
    words = re.findall(r"\w+|[^\w\s]", re.sub(r",(\s*[)\]}])", r"\1", code))
    parts = [re.escape(words[0])]
    for before, word in pairwise(words):
        parts.append(
            r"\s*,?\s*"
            if word in ")]}"
            else r"\s+"
            if (before + word).replace("_", "a").isalnum()
            else r"\s*"
        )
        parts.append(re.escape(word))
    return re.compile("".join(parts))


def load(folder: Path = _LISTS) -> tuple[Mutant, ...]:
    """All mutants, room by room."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        entries = tomllib.loads(path.read_text())
        wider = tuple(entries.pop("wider"))
        for name, entry in entries.items():
            found.append(
                Mutant(name, path.stem, tests=tuple(entry.pop("tests")), wider=wider, **entry)
            )
    return tuple(found)
