"""The zoo: mechanisms of known truth, right ones and broken ones, on which an auditor can be tried.

They are listed in zoo.toml, each as a formula in the words of vocabulary.py; both are read when they are first asked
for. `run` audits them all, so that together they are right with probability `confidence`.
"""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from sordino.audit.computed.exact import exact
from sordino.audit.computed.law import law
from sordino.audit.known_truth.zoo_entry import ZooEntry, read_entry
from sordino.audit.replayed.replay import replay
from sordino.audit.reporting.report import Dossier, Report
from sordino.audit.sampled.black_box import black_box
from sordino.errors import InvalidInput
from sordino.privacy.exact import open_unit, show

__all__ = ["ZOO_ENTRIES", "ZooEntry", "audited", "run"]

ZOO_ENTRIES: tuple[ZooEntry, ...]

Progress = Callable[[float, str], None]


@cache
def _entries() -> tuple[ZooEntry, ...]:
    entries = tomllib.loads(Path(__file__).with_name("zoo.toml").read_text("utf-8"))
    return tuple(read_entry(name, fields) for name, fields in entries.items())


def __getattr__(name: str) -> Any:
    if name == "ZOO_ENTRIES":
        return _entries()
    raise AttributeError(name)


def run(
    names: Iterable[str] | str | None = None,
    *,
    confidence: float = 0.999,
    samples: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Dossier:
    """Audit the entries of these names, or all of them: broken ones should be flagged, right ones not.

    Each audit has its share of what `confidence` leaves open, so that with that probability no right one is flagged.
    `samples` replaces the number that suits each entry; `seconds` is for all together.
    """
    chosen = _chosen(names)
    left_open = 1 - open_unit("confidence", confidence, "Pass a number such as 0.999.").upper
    share = math.nextafter(1 - float(left_open / len(chosen)), 1)
    start, reports = time.monotonic(), []
    for i, entry in enumerate(chosen):
        left = None
        if seconds is not None:
            left = max(seconds - (time.monotonic() - start), 0.0) / (len(chosen) - i)

        def tell(done: float, words: str, i: int = i, name: str = entry.name) -> None:
            if progress is not None:
                progress((i + done) / len(chosen), f"{name}: {words}")

        report = audited(entry, confidence=share, samples=samples, seconds=left, progress=tell)
        reports.append(report)
        tell(1.0, "done")
    expected = tuple(not entry.broken for entry in chosen)
    facts = (
        ("mechanisms", f"{len(chosen)}, of which {expected.count(False)} are broken on purpose"),
        ("confidence", f"{confidence:g} for all together, {share:.6g} each"),
    )
    notes = tuple(
        f"{s.name}: {'broken' if s.broken else 'right'}. {s.title}. {s.why}" for s in chosen
    )
    title = "The zoo of mechanisms with known truth"
    return Dossier(title, tuple(reports), facts, notes, expected)


def audited(
    entry: ZooEntry,
    *,
    confidence: float,
    samples: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """What an audit of its kind says of one entry."""
    claim: dict[str, Any] = {"epsilon": entry.epsilon, "delta": entry.delta, "name": entry.name}
    if entry.method == "black box":
        return black_box(
            entry.mechanism, *(entry.pair or ()), **claim, samples=samples or entry.samples, confidence=confidence,
            neighbors=entry.neighbors, length=entry.length, domain=entry.domain, seconds=seconds, progress=progress,
        )  # fmt: skip
    if entry.pair is None:
        rule = f"an audit by {entry.method} needs two inputs"
        raise InvalidInput(entry.name, rule, "Give the entry a pair.")
    first, second = entry.pair
    if entry.method == "exact law":
        return exact(law(entry.mechanism, first), law(entry.mechanism, second), **claim)
    return replay(entry.mechanism, first, second, **claim, neighbors=entry.neighbors)


def _chosen(names: Iterable[str] | str | None) -> tuple[ZooEntry, ...]:
    known = {entry.name: entry for entry in _entries()}
    wanted = list(known) if names is None else [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            close = get_close_matches(str(name), known, n=1, cutoff=0.4)
            hint = f"The first of them is {next(iter(known))!r}."
            if close:
                hint = f"Did you mean {close[0]!r}?"
            raise InvalidInput(show(name), f"it is none of the {len(known)} names in the zoo", hint)
    if not wanted:
        hint = "Leave names out to audit the whole zoo."
        raise InvalidInput("no names", "there must be something to audit", hint)
    return tuple(known[name] for name in dict.fromkeys(wanted))
