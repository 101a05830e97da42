"""Run the slow tests and keep what became of each: `make slow`, in parts `make slow RESUME=1`.

Each result is a line in build/slow.jsonl with a digest of the code that it says something about. With --resume only
what has not passed on the code as it is now is run; the last words count what has, whenever it was, and fail for what
has not. Tests marked `alone` measure time or memory: they come last, one at a time.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

__all__ = ["Result", "Tree", "left", "read", "results", "words"]

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "build" / "slow.jsonl"
_FOLDERS = ("benchmarks", "deploy", "docs", "examples", "frontend", "tools")
_MENTIONED = re.compile(rf"""["']({"|".join(_FOLDERS)})\b""")
_MADE = ("__pycache__", "node_modules")
_NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Result:
    """What became of one test: on which code, when, and in how many seconds of the clock and of processors."""

    test: str
    tree: str
    outcome: str
    seconds: float
    processor: float
    ended: str

    @property
    def file(self) -> str:
        return self.test.split("::")[0]


@cache
def _content(file: Path, _state: tuple[int, int]) -> str:
    """The digest of a file, taken again when its state is another."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def _named(file: Path, _state: tuple[int, int]) -> tuple[frozenset[str], frozenset[str]]:
    """The modules that a file imports, wherever in it, and the folders that it names as a text."""
    text, names = file.read_text(), set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names), frozenset(_MENTIONED.findall(text))


def _state_of(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns


class Tree:
    """The digest of what a test file says something about.

    The package, the declared versions, the file, what it imports from this repository, and what lies beside it in its
    room and is no test; folders that it names as a text are taken whole.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._digest = cache(self._digest_of)

    def of(self, file: str) -> str:
        """The digest for one test file."""
        found, parts, further = set[str](), {"src", "pyproject.toml", "constraints.txt"}, [file]
        further += ["tests/conftest.py", *self._beside(self.root / file)]
        while further:
            one = further.pop()
            if one not in found and (self.root / one).exists():
                found.add(one)
                if one.endswith(".py"):
                    names, folders = _named(self.root / one, _state_of(self.root / one))
                    further += self._files(names)
                    parts |= {name for name in folders if (self.root / name).is_dir()}
        text = "\n".join(f"{part} {self._digest(part)}" for part in sorted(parts | found))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _beside(self, file: Path) -> list[str]:
        if file.parent == self.root / "tests":
            return []
        own = (one for one in _files(file.parent) if not one.name.startswith("test_"))
        return [str(one.relative_to(self.root)) for one in own]

    def _files(self, names: Iterable[str]) -> list[str]:
        """Where modules are, if they are of this repository and outside src."""
        paths = [name.replace(".", "/") + ".py" for name in names]
        return [f"tests/{path}" for path in paths] + [p for p in paths if p.startswith(_FOLDERS)]

    def _digest_of(self, part: str) -> str:
        place = self.root / part
        files = _files(place) if place.is_dir() else [place]
        each = (
            f"{file.relative_to(self.root)} {_content(file, _state_of(file))}\n" for file in files
        )
        return hashlib.sha256("".join(each).encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    """All files below a folder but what is made or fetched."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in _MADE and not one.startswith(".")]
        found += [Path(place) / name for name in names]
    return sorted(found)


def trees(root: Path) -> dict[str, str]:
    """The digests for all test files."""
    tree = Tree(root)
    files = (str(file.relative_to(root)) for file in (root / "tests").rglob("test_*.py"))
    return {file: tree.of(file) for file in files}


class Recorder:
    """Writes a line for each test that has ended, as soon as it has."""

    def __init__(self, record: Path, root: Path) -> None:
        self._record, self._root = record, root
        self._before = trees(root)  # now: what is edited while tests run is not what they ran on
        self._reports: dict[str, list[pytest.TestReport]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.setdefault(report.nodeid, []).append(report)
        if report.when not in ("setup", "call"):  # also what stands for a worker that died
            self._write(report.nodeid, self._reports.pop(report.nodeid))

    def _write(self, test: str, reports: Sequence[pytest.TestReport]) -> None:
        file = test.split("::")[0]
        tree = self._before.get(file, "")
        outcomes = {report.outcome for report in reports}
        found = Result(
            test,
            tree if Tree(self._root).of(file) == tree else "changed meanwhile",
            next(one for one in ("failed", "skipped", "passed") if one in outcomes),
            round(sum(report.duration for report in reports), 2),
            round(
                sum(
                    float(str(v)) for r in reports for k, v in r.user_properties if k == "processor"
                ),
                2,
            ),
            time.strftime("%Y-%m-%d %H:%M:%S"),
        )
        self._record.parent.mkdir(exist_ok=True)
        with self._record.open("a") as out:
            out.write(json.dumps(asdict(found)) + "\n")


def _processor_seconds() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in each)


_BEGUN = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGUN] = _processor_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "teardown":
        item.user_properties.append(("processor", _processor_seconds() - item.stash[_BEGUN]))


def pytest_configure(config: pytest.Config) -> None:
    """A pytest plugin: the process that hears of all tests keeps the record."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(Recorder(RECORD, ROOT))


def read(lines: Iterable[str]) -> dict[str, list[Result]]:
    """All results of each test, oldest first; a line that was cut by a crash is left out."""
    found: dict[str, list[Result]] = {}
    for line in lines:
        try:
            one = Result(**json.loads(line))
        except (TypeError, ValueError):
            continue
        found.setdefault(one.test, []).append(one)
    return found


def results(tests: Iterable[str], record: dict[str, list[Result]], tree: Tree) -> dict[str, Result]:
    """The last result of each test on the code as it is now."""
    found = {}
    for test in tests:
        digest = tree.of(test.split("::")[0])
        now = [one for one in record.get(test, []) if one.tree == digest]
        if now:
            found[test] = now[-1]
    return found


def left(
    tests: Iterable[str], known: dict[str, Result], record: dict[str, list[Result]]
) -> list[str]:
    """The tests that have not passed, those of cheap files first; what was never run is taken for a minute."""
    todo = [test for test in tests if test not in known or known[test].outcome != "passed"]
    cost: dict[str, float] = {}
    for test in todo:
        file = test.split("::")[0]
        cost[file] = cost.get(file, 0) + (record[test][-1].seconds if test in record else 60)
    return sorted(todo, key=lambda test: cost[test.split("::")[0]])


def words(tests: Sequence[str], known: dict[str, Result]) -> Iterator[str]:
    """What is known of the slow tests on this code: by file, whatever did not pass, and all in one sentence."""
    yield "| file | tests | passed | failed | skipped | not run | minutes | of processors |"
    yield "|---|---|---|---|---|---|---|---|"
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.split("::")[0], []).append(test)
    minutes = {
        file: sum(known[test].seconds for test in own if test in known) / 60
        for file, own in files.items()
    }
    for file, own in sorted(files.items(), key=lambda pair: -minutes[pair[0]]):
        found = [known[test] for test in own if test in known]
        counts = [sum(r.outcome == o for r in found) for o in ("passed", "failed", "skipped")]
        processor = sum(one.processor for one in found) / 60
        cells = [file, len(own), *counts, len(own) - len(found)]
        yield f"| {' | '.join(map(str, cells))} | {minutes[file]:.1f} | {processor:.1f} |"
    yield from (f"{one.outcome}: {one.test}" for one in known.values() if one.outcome != "passed")
    passed = [one for one in known.values() if one.outcome == "passed"]
    when = sorted(one.ended for one in passed) or ["never"]
    yield (
        f"{len(passed)} of {len(tests)} slow tests passed on this code, between {when[0]} and {when[-1]}: "
        f"{sum(one.seconds for one in passed) / 60:.0f} minutes of tests, "
        f"{sum(one.processor for one in passed) / 60:.0f} of processors."
    )


def _pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "tools.slow", *arguments]


def _collected(paths: Sequence[str]) -> list[str]:
    """All slow tests in some places."""
    found = subprocess.run(
        _pytest("--collect-only", "-q", "-m", "slow", *paths),
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
    )
    tests = [line for line in found.stdout.splitlines() if "::" in line]
    if found.returncode or not tests:
        sys.exit(found.stdout or "no slow test is there")
    return tests


def _record() -> dict[str, list[Result]]:
    return read(RECORD.read_text().splitlines()) if RECORD.exists() else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "paths", nargs="*", help="where slow tests are looked for; everywhere if none is named"
    )
    parser.add_argument("--workers", default="2")
    parser.add_argument(
        "--resume", action="store_true", help="leave out what has passed on this code"
    )
    parser.add_argument("--show", action="store_true", help="run nothing, say what is known")
    arguments = parser.parse_args()
    tests = _collected(arguments.paths)
    known = results(tests, _record(), Tree(ROOT)) if arguments.resume else {}
    todo = [] if arguments.show else left(tests, known, _record())
    if todo:
        listed = RECORD.with_name("slow-left.txt")
        listed.parent.mkdir(exist_ok=True)
        listed.write_text("\n".join(todo) + "\n")
        print(f"{len(todo)} of {len(tests)} slow tests are to be run.", flush=True)
        together = ("-n", arguments.workers, "--dist", "worksteal", "--durations=10")
        for which, how in (("not alone", together), ("alone", ("-n", "0"))):
            command = _pytest("-m", f"slow and {which}", *how, f"@{listed}")
            if subprocess.run(command, cwd=ROOT).returncode not in (0, 1, _NOTHING_COLLECTED):
                break  # interrupted, or pytest itself failed
    known = results(tests, _record(), Tree(ROOT))
    print("\n".join(words(tests, known)))
    return int(any(test not in known or known[test].outcome == "failed" for test in tests))


if __name__ == "__main__":
    sys.exit(main())
