"""Plant every mutant by itself and see who notices: `make mutants`, or `python -m tools.mutants [NAME ...]`.

A kill counts only if the same test passes on the package as it is. Fails where fewer than 95 % are killed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.mutants.mutant import Mutant, load
from tools.mutants.results import NEEDED, share, summary, write
from tools.mutants.trial import Outcome, passing, snapshot, trial

_LIMIT, _BASELINE_LIMIT = 600.0, 1800.0


def _chosen(names: list[str]) -> tuple[Mutant, ...]:
    mutants = load()
    unknown = set(names) - {mutant.name for mutant in mutants} - {mutant.room for mutant in mutants}
    if unknown:
        sys.exit(f"no such mutant or room: {', '.join(sorted(unknown))}")
    return tuple(m for m in mutants if not names or m.name in names or m.room in names)


def _tried(mutants: tuple[Mutant, ...], source: Path, workers: int, *, own: bool) -> list[Outcome]:
    def one(mutant: Mutant) -> Outcome:
        found = trial(mutant, source, _LIMIT, own=own)
        print(f"{found.status:9} {found.seconds:5.0f} s  {mutant.name:40} {found.test}", flush=True)
        return found

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, mutants))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants or rooms; all of them if none is named")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--own", action="store_true", help="only the tests that are named with each mutant"
    )
    arguments = parser.parse_args()
    mutants, start = _chosen(arguments.names), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sordino-source-") as folder:
        source = Path(folder)
        snapshot(source)  # once: the repository may be edited meanwhile
        outcomes = _tried(mutants, source, arguments.workers, own=arguments.own)
        killers = sorted({outcome.test for outcome in outcomes if outcome.test})
        broken = passing(killers, source, _BASELINE_LIMIT) if killers else ""
    if broken:
        sys.exit(f"this test fails without any mutant, so that its kills mean nothing: {broken}")
    print(summary(outcomes, time.monotonic() - start))
    if not arguments.names and not arguments.own:
        write(outcomes, time.monotonic() - start)
    return 0 if share(outcomes) >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
