"""What this machine has seen of ledgers, in a folder of its user: a second place, which a swapped file does not change.

It notices that a ledger is gone, was replaced or put back to an older state, is used in two copies, or that the same
data are asked through another ledger. It is a help: without the folder all works, and an anchor kept elsewhere does
more.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from sordino.ledger.chain import Link, digest
from sordino.ledger.fingerprint import keyed

__all__ = ["Seen", "Witness", "machine_of"]


@dataclass(frozen=True)
class Seen:
    """A ledger when it was last used here: where it was, which one, its end, and fingerprints of the data it guards."""

    place: str
    ledger: str
    count: int
    hash: str
    sources: Mapping[str, str]
    paths: tuple[str, ...] = ()
    machine: str = ""

    def shares(self, other: Seen) -> bool:
        """Whether some data are the same, or in the same file."""
        same = set(self.sources.values()) & set(other.sources.values())
        return bool(same or set(self.paths) & set(other.paths))

    @property
    def link(self) -> Link:
        """The end of the chain."""
        return Link(self.count, self.hash)


def _folder() -> Path | None:
    told = os.environ.get("SORDINO_STATE")
    if told is not None:
        return Path(told) if told else None
    try:
        return (
            Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "sordino"
        )
    except RuntimeError:  # a user without a home
        return None


class Witness:
    """The notes in the folder `SORDINO_STATE`, else in the user's state folder; nothing is kept where it is empty."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _folder()
        self._secret: bytes | None = None

    def recall(self, place: str) -> Seen | None:
        """What was last seen at a place."""
        return None if self._folder is None else _read(self._folder / _name(place))

    def remember(self, seen: Seen) -> None:
        """Note the state of a ledger; an older state of the same ledger never replaces a newer one."""
        if self._folder is None:
            return
        known = self.recall(seen.place)
        if known is not None and known.ledger == seen.ledger:
            # sources that were not looked at, or are gone now, are those that were seen before
            seen = replace(
                seen, sources={**known.sources, **seen.sources}, paths=seen.paths or known.paths
            )
            if known.count > seen.count or known == seen:
                return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(self._folder / _name(seen.place), json.dumps(asdict(seen)).encode())

    def forget(self, place: str) -> None:
        """Let a place be used anew."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / _name(place)).unlink(missing_ok=True)

    def others(self, place: str) -> Iterator[Seen]:
        """What was seen at all other places."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.glob("*.json")):
                seen = _read(path)
                if seen is not None and seen.place != place and seen.machine in ("", _machine()):
                    yield seen

    def sources(self, samples: Mapping[str, bytes]) -> dict[str, str]:
        """Fingerprints that mean something on this machine only."""
        key = self._key()
        return {name: keyed(key, taken) for name, taken in samples.items()} if key else {}

    def _key(self) -> bytes | None:
        if self._folder is None or self._secret is not None:
            return self._secret
        path = self._folder / "key"
        with contextlib.suppress(OSError):
            if not path.exists():
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._write(path, uuid.uuid4().bytes + uuid.uuid4().bytes)
            self._secret = path.read_bytes()
        return self._secret

    def _write(self, path: Path, content: bytes) -> None:
        aside = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex}")
        try:
            with os.fdopen(
                os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb"
            ) as file:
                file.write(content)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


def _name(place: str) -> str:
    """The file of a note. A path means something on one machine only, and homes may be shared by several."""
    return f"{digest(os.fsencode(f'{machine_of(place)}:{place}'))[:40]}.json"


def machine_of(place: str) -> str:
    """On which machine a place means something: a path here only, an address everywhere."""
    return "" if "://" in place else _machine()


@lru_cache(maxsize=1)
def _machine() -> str:
    with contextlib.suppress(OSError):
        return Path("/etc/machine-id").read_text().strip() or platform.node()
    return platform.node()


def _read(path: Path) -> Seen | None:
    """A note, or nothing if it is not one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        fields = json.loads(path.read_bytes())
        seen = Seen(**fields | {"paths": tuple(fields["paths"])})
        words = (
            seen.place,
            seen.machine,
            seen.ledger,
            seen.hash,
            *seen.sources,
            *seen.sources.values(),
            *seen.paths,
        )
        if type(seen.count) is int and all(type(word) is str for word in words):
            return seen
    return None
