"""Which data an entry speaks of, without saying anything about them.

A fingerprint is a keyed hash over the size and a sample of the blocks of a file: cheap for any size, equal for equal
files. Whoever lacks the key can neither guess nor confirm from it what is in the file; the key stays in the ledger's
own storage and is in no entry, receipt or export. It helps to tell files apart, and does not prove that they are
equal.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Prints", "keyed", "sample"]

_BLOCK, _BLOCKS = 2**16, 64


def sample(path: Path) -> bytes:
    """A digest of the size and of up to 64 blocks, the first and the last included; all of a file under 4 MiB."""
    if not path.is_file():  # to open a pipe would wait for ever
        raise OSError(f"{path.name} is not a plain file")
    taken = hashlib.sha256()
    with path.open("rb") as file:
        size = file.seek(0, 2)
        taken.update(str(size).encode())
        last = max(size - _BLOCK, 0)
        places = (
            range(0, size, _BLOCK)
            if size <= _BLOCK * _BLOCKS
            else [last * i // (_BLOCKS - 1) for i in range(_BLOCKS)]
        )
        for place in places:
            file.seek(place)
            taken.update(file.read(_BLOCK))
    return taken.digest()


def keyed(key: bytes, taken: bytes) -> str:
    """The fingerprint of a sample under a key."""
    return hmac.new(key, taken, hashlib.sha256).hexdigest()[:32]


class Prints:
    """Samples of source files, taken again only when a file has changed; `places` are those of tables in databases.

    Of a table in a database nothing is sampled: its rows may change from one question to the next.
    """

    def __init__(self, sources: dict[str, Path | None], places: Iterable[str] = ()) -> None:
        self._sources = sources
        self._places = tuple(places)
        self._taken: dict[str, tuple[tuple[int, int, int], bytes]] = {}

    def samples(self) -> dict[str, bytes]:
        """The sample of each source that is a readable file, by the name of its table."""
        found = {}
        for name, path in self._sources.items():
            if path is None:
                continue
            try:
                status = path.stat()
                seen = status.st_ino, status.st_size, status.st_mtime_ns
                if self._taken.get(name, ((), b""))[0] != seen:
                    self._taken[name] = seen, sample(path)
                found[name] = self._taken[name][1]
            except OSError:  # the engine will refuse it in words of its own
                continue
        return found

    def paths(self) -> tuple[str, ...]:
        """Where the sources are."""
        files = (os.path.realpath(path) for path in self._sources.values() if path is not None)
        return tuple(sorted((*files, *self._places)))

    def under(self, key: bytes) -> dict[str, str]:
        """The fingerprints under a key."""
        return {name: keyed(key, taken) for name, taken in self.samples().items()}
