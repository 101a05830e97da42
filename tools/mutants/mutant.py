"""A mutant: one planted privacy bug in one file of the package, with the harm it does and the tests that should notice.

The lists are the *.toml files beside this one, one for each room.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PACKAGE", "ROOT", "Mutant", "load"]

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src", "sordino")
_LISTS = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    """In `file`, the text `old`, which is there once, becomes `new`; `tests` are tried first, then those of the room.

    `equivalent` is why a mutant that survives harms nobody; empty for all others.
    """

    name: str
    room: str
    file: str
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
        """The text of the file with the bug; ValueError unless the old text is there exactly once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: the old text occurs {found} times in {self.file}")
        return text.replace(self.old, self.new)

    def plant(self, root: Path) -> None:
        """Change the file in a copy of the repository."""
        path = self.path(root)
        path.write_text(self.planted(path.read_text()))


def load(folder: Path = _LISTS) -> tuple[Mutant, ...]:
    """All mutants, room by room."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        entries = tomllib.loads(path.read_text())
        wider = tuple(entries.pop("wider"))
        for name, entry in entries.items():
            found.append(Mutant(name, path.stem, tests=tuple(entry.pop("tests")), wider=wider, **entry))
    return tuple(found)
