"""The planted bugs of `make mutants` still apply to the source, and name tests that exist; a few of them are killed."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tools.mutants.mutant import PACKAGE, ROOT, Mutant, load
from tools.mutants.results import share, summary
from tools.mutants.trial import Outcome, passing, snapshot, trial

MUTANTS = load()
ROOMS = (
    "accounting",
    "adaptive",
    "audit",
    "bounds",
    "engines",
    "learn",
    "ledger",
    "local",
    "mechanisms",
    "pages",
    "plan",
    "query",
    "relations",
    "release",
    "server",
    "surface",
    "web",
    "workloads",
)
FEW = (
    "laplace-scale-a-tenth-less",
    "counts-not-clipped",
    "second-channel-without-noise",
    "cap-not-checked",
    "optimistic-grid",
)


def test_there_are_many_in_every_room() -> None:
    assert len(MUTANTS) >= 40
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.room for mutant in MUTANTS} == set(ROOMS)


@cache
def shape(path: Path) -> str:
    return ast.dump(ast.parse(path.read_text()))


@pytest.mark.parametrize("room", ROOMS)
def test_each_still_changes_what_the_source_does(room: str) -> None:
    for mutant in MUTANTS:
        if mutant.room == room:
            source = mutant.path(ROOT).read_text()
            assert ast.dump(ast.parse(mutant.planted(source))) != shape(mutant.path(ROOT)), (
                mutant.name
            )
            assert mutant.harm.endswith("."), mutant.name


def test_the_tests_that_should_kill_them_exist() -> None:
    assert all(mutant.tests for mutant in MUTANTS)
    for test in {test for mutant in MUTANTS for test in (*mutant.tests, *mutant.wider)}:
        path, *names = test.split("::")
        assert (ROOT / path).exists(), test
        for name in names:
            known = (ROOT / path).read_text()
            assert f"def {name}(" in known or f"class {name}:" in known, test


def bug(symbol: str, old: str, new: str) -> Mutant:
    return Mutant("m", "room", "file.py", symbol, old, new, "It harms.", (), ())


def test_an_old_text_must_be_there_once() -> None:
    mutant = bug("f", "a", "b")
    assert mutant.planted("def f(): return a") == "def f(): return b"
    for text in ("def f(): return c", "def f(): return a + a"):
        with pytest.raises(ValueError, match="occurs"):
            mutant.planted(text)


def test_how_lines_are_broken_makes_no_difference() -> None:
    mutant = bug("x", "f(a, b)[0]", "f(b, a)[0]")
    assert mutant.planted("x = f(\n    a,\n    b,\n)[0]\n") == "x = f(b, a)[0]\n"
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutant.planted("x = f(ab)[0]")


def test_a_symbol_says_where() -> None:
    source = (
        "def f():\n    return 1\n\n\nclass A:\n    @staticmethod\n    def f():\n        return 1\n"
    )
    mutant = bug("f", "return 1", "return 2")
    assert mutant.planted(source) == source.replace("1", "2", 1)
    assert replace(mutant, symbol="A").planted(source) == replace(mutant, symbol="A.f").planted(
        source
    )
    for symbol in ("A.g", "g", "A.f.f"):
        with pytest.raises(ValueError, match="is there 0 times"):
            replace(mutant, symbol=symbol).planted(source)
    with pytest.raises(ValueError, match="is there 2 times"):
        mutant.planted(source + source)


def test_assigned_names_and_decorators_are_symbols_too() -> None:
    source = (
        "a = 1\nb: int = 1\nc, d = 1, 2\n\n\nclass A:\n    e = 1\n\n    @f(1)\n    def g(): ...\n"
    )
    for symbol, line in (("a", 0), ("b", 1), ("d", 2), ("A.e", 6), ("A.g", 8)):
        lines = source.splitlines(keepends=True)
        lines[line] = lines[line].replace("1", "3", 1)
        assert bug(symbol, "1", "3").planted(source) == "".join(lines)


def test_only_kills_count() -> None:
    outcomes = [
        Outcome(MUTANTS[0], status, 1.0) for status in ("killed", "crashed", "timeout", "survived")
    ]
    assert share(outcomes) == 0.25
    assert (
        summary(outcomes, 60)
        == "1 of 4 mutants killed (25%); 1 crashed, 1 timeout, 1 survived; 1 minutes."
    )


@pytest.mark.slow
def test_a_few_are_killed_by_tests_that_pass_without_them(tmp_path: Path) -> None:
    snapshot(tmp_path)
    assert (tmp_path / PACKAGE).exists()
    outcomes = [trial(mutant, tmp_path, 600) for mutant in MUTANTS if mutant.name in FEW]
    assert [outcome.status for outcome in outcomes] == ["killed"] * len(FEW)
    assert passing([outcome.test for outcome in outcomes], tmp_path, 600) == ""


@pytest.mark.slow
def test_a_change_that_harms_nobody_survives_and_one_that_breaks_everything_crashes(
    tmp_path: Path,
) -> None:
    snapshot(tmp_path)
    tests = ("tests/mechanisms/test_lattice.py::test_shape_and_order_are_kept",)
    old = "return cls._for(s, s / positive"
    harmless = Mutant(
        "harmless",
        "room",
        "mechanisms/laplace.py",
        "Laplace.calibrated",
        old,
        f"hint = hint\n        {old}",
        "None.",
        tests,
        tests,
    )
    broken = replace(
        harmless,
        file="mechanisms/lattice.py",
        symbol="Lattice",
        old="class Lattice:",
        new="class Lattice(None):",
    )
    assert trial(harmless, tmp_path, 600, own=True).status == "survived"
    assert trial(broken, tmp_path, 600, own=True).status == "crashed"
