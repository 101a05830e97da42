"""`make slow` counts a test as passed only on the code on which it did, and says what is missing."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tools.slow import Recorder, Result, Tree, left, read, results, words

A, B, C = (
    "tests/test_a.py::test_one",
    "tests/test_a.py::test_two",
    "tests/room/test_b.py::test_three",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository."""
    files = {
        "src/package/code.py": "X = 1\n",
        "src/package/data.bin": "\0",
        "src/package/proof.md": "because\n",
        "pyproject.toml": "",
        "constraints.txt": "",
        "docs/page.md": "text\n",
        "tests/conftest.py": "",
        "tests/worlds.py": "def world():\n    from room import deep\n",
        "tests/room/deep.py": "",
        "tests/room/stored/law.json": "{}",
        "tests/other.py": "",
        "tests/test_a.py": "from worlds import world\n",
        "tests/room/test_b.py": "PAGES = ROOT / 'docs'\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "a", "b"),
    [
        ("src/package/code.py", True, True),
        ("src/package/data.bin", True, True),
        ("src/package/new.py", True, True),
        ("pyproject.toml", True, True),
        ("constraints.txt", True, True),
        ("tests/conftest.py", True, True),
        ("tests/test_a.py", True, False),
        ("tests/worlds.py", True, False),
        ("tests/room/deep.py", True, True),
        ("tests/room/stored/law.json", False, True),
        ("tests/room/test_other.py", False, False),
        ("docs/page.md", False, True),
        ("tests/room/test_b.py", False, True),
        ("tests/other.py", False, False),
        ("src/package/__pycache__/code.pyc", False, False),
        ("docs/.fetched/page.md", False, False),
        ("README.md", False, False),
    ],
)
def test_a_result_is_of_the_code_that_its_file_can_reach(
    root: Path, changed: str, a: bool, b: bool
) -> None:
    before = Tree(root)
    digests = before.of("tests/test_a.py"), before.of("tests/room/test_b.py")
    (root / changed).parent.mkdir(exist_ok=True)
    (root / changed).write_text("Y = 2\n")
    after = Tree(root)
    found = after.of("tests/test_a.py"), after.of("tests/room/test_b.py")
    assert [one != other for one, other in zip(digests, found, strict=True)] == [a, b]


def ended(test: str, outcome: str, when: str, seconds: float = 1) -> list[pytest.TestReport]:
    """What pytest says of a test whose `when` ended so."""
    return [
        pytest.TestReport(
            test, ("", None, ""), {}, outcome if part == when else "passed", None, part,  # type: ignore[arg-type]
            duration=seconds, user_properties=[("processor", 0.5)] if part == "teardown" else [],
        )
        for part in ("setup", "call", "teardown")
    ]  # fmt: skip


def recorded(root: Path, *reports: list[pytest.TestReport], change: bool = False) -> list[Result]:
    record = root / "build" / "slow.jsonl"
    recorder = Recorder(record, root)
    if change:
        (root / "src" / "package" / "code.py").write_text("X = 2\n")
    for report in itertools.chain(*reports):
        recorder.pytest_runtest_logreport(report)
    found = read(record.read_text().splitlines())
    return [one for each in found.values() for one in each]


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
@pytest.mark.parametrize("outcome", ["failed", "skipped", "passed"])
def test_a_test_passes_only_if_all_of_its_parts_do(root: Path, when: str, outcome: str) -> None:
    (one,) = recorded(root, ended(A, outcome, when))
    assert (one.test, one.outcome, one.seconds, one.processor) == (A, outcome, 3, 0.5)
    assert one.tree == Tree(root).of("tests/test_a.py")


def test_what_ran_while_the_code_was_edited_counts_for_no_code(root: Path) -> None:
    (one,) = recorded(root, ended(A, "passed", "call"), change=True)
    assert results([A], {A: [one]}, Tree(root)) == {}


def test_a_worker_that_died_is_a_failure(root: Path) -> None:
    crash = pytest.TestReport(A, ("", None, ""), {}, "failed", "died", "???")  # type: ignore[arg-type]
    assert [one.outcome for one in recorded(root, [crash])] == ["failed"]


def test_what_has_not_passed_on_this_code_is_left_cheap_files_first(root: Path) -> None:
    tree = Tree(root)
    passed = Result(A, tree.of("tests/test_a.py"), "passed", 90, 80, "2026-01-01 10:00:00")
    dear = Result(C, tree.of("tests/room/test_b.py"), "failed", 3, 2, "2026-01-01 11:00:00")
    record = {A: [passed], C: [replace(dear, outcome="passed"), dear]}  # the last one counts
    known = results([A, B, C], record, tree)
    assert known == {A: passed, C: dear}
    assert left([A, B, C], known, record) == [C, B]
    assert left([A, B, C], {}, record) == [C, A, B]
    stale = results([A, B, C], {A: [replace(passed, tree="of yesterday")]}, tree)
    assert stale == {}
    *table, failure, last = words([A, B, C], known)
    assert table[2] == "| tests/test_a.py | 2 | 1 | 0 | 0 | 1 | 1.5 | 1.3 |"
    assert failure == f"failed: {C}"
    assert last.startswith("1 of 3 slow tests passed on this code, between 2026-01-01 10:00:00 and")


def test_a_line_that_was_cut_by_a_crash_is_no_result() -> None:
    line = json.dumps(asdict(Result(A, "tree", "passed", 1, 1, "now")))
    assert read([line, line[:-9], "", '{"test": "x"}', line]) == {
        A: [Result(A, "tree", "passed", 1, 1, "now")] * 2
    }
