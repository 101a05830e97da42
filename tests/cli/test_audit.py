"""`sordino audit`: verdicts as exit codes, reports in every form,
and one sentence for whatever is wrong with the input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from cli.desk import process, terminal
from sordino.audit.reporting.report import Dossier, Report, Verdict
from sordino.cli.inputs import read_data, read_domain
from sordino.cli.user_function import imported
from sordino.errors import InvalidInput

MECHANISMS = '''\
"""Mechanisms to audit."""
import time

import numpy as np
import sordino as so
from beside import FACTOR

print("imported")
rng = np.random.default_rng(1)
laplace = so.Laplace(2)
number = 3


def leaks(data, size):
    print("called")
    return FACTOR * data + rng.integers(0, 2, size)


def blind(data, size):
    return rng.integers(0, 2, size)


def raises(data):
    raise ValueError("no <b>good</b>")


def slow(data):
    time.sleep(0.01)
    return data


def mean(rows):
    return so.Laplace.calibrated(sensitivity=10, epsilon=1).release(int(sum(rows))) / len(rows)


def total(rows):
    return so.Laplace.calibrated(sensitivity=10, epsilon=1).release(int(sum(rows)))


class Shop:
    @staticmethod
    def blind(data, size):
        return rng.integers(0, 2, size)
'''
FEW = ("--samples", "2e4", "--workers", "1")
PAIR = ("--d1", "0", "--d2", "1")
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder / "mechanisms.py").write_text(MECHANISMS)
    (folder / "beside.py").write_text("FACTOR = 10\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("beside", "mechanisms"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


def test_a_false_claim_leaves_with_6_and_says_so_first(run: Any, shop: Path) -> None:
    shown = run("audit", "mechanism", "mechanisms.py:leaks", "--epsilon", "1", *PAIR, *FEW)
    assert shown.exit_code == 6
    assert shown.stdout.startswith(
        "VIOLATED   mechanisms.py:leaks claims epsilon 1; at least epsilon "
    )
    assert "imported" not in shown.stdout
    assert "called" not in shown.stdout
    assert "\x1b" not in shown.stdout


@pytest.mark.parametrize("target", ["mechanisms.py:blind", "mechanisms:Shop.blind"])
def test_a_claim_that_passes_leaves_with_0_and_the_word_may_be_left_out(
    run: Any, shop: Path, target: str
) -> None:
    shown = run("audit", target, "--epsilon", "1", *PAIR, *FEW, "--format", "json")
    assert shown.exit_code == 0
    report = Report.from_json(shown.stdout)
    assert (report.name, report.passed, report.confidence) == (target, True, 0.999)
    assert str(shop) not in shown.stdout


def test_an_audit_that_fails_has_not_passed(run: Any, shop: Path) -> None:
    shown = run("audit", "mechanisms.py:raises", "--epsilon", "1", *PAIR, *FEW)
    assert shown.exit_code == 6
    assert shown.stdout.startswith(
        "UNDECIDED  mechanisms.py:raises claims epsilon 1; could not be audited"
    )
    assert "ValueError" in shown.stdout


def test_pairs_are_searched_where_none_is_given(run: Any, shop: Path) -> None:
    words = [
        "audit",
        "mechanisms.py:leaks",
        "--epsilon",
        "1",
        "--neighbors",
        "number",
        "--domain",
        "0,1",
        *FEW,
        "-f",
        "json",
    ]
    shown = run(*words)
    assert shown.exit_code == 6
    assert Report.from_json(shown.stdout).verdict is Verdict.VIOLATED


def test_a_mechanism_object_can_be_audited(run: Any, shop: Path) -> None:
    shown = run(
        "audit",
        "mechanisms.py:laplace",
        "--epsilon",
        "0.1",
        "--d1",
        "0",
        "--d2",
        "1",
        *FEW,
        "-f",
        "json",
    )
    assert shown.exit_code == 6
    assert Report.from_json(shown.stdout).epsilon_lower > 0.1


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.html", "<!DOCTYPE html>"),
        ("r.HTM", "<!DOCTYPE html>"),
        ("r.json", "{"),
        ("r.txt", "UNDECIDED"),
    ],
)
def test_the_ending_of_the_file_is_the_form(run: Any, shop: Path, name: str, start: str) -> None:
    shown = run("audit", "mechanisms.py:raises", "--epsilon", "1", *PAIR, *FEW, "--output", name)
    assert (shown.exit_code, shown.stdout) == (6, "")
    assert "UNDECIDED mechanisms.py:raises claims epsilon 1; could not be audited\n" in shown.stderr
    written = (shop / name).read_text()
    assert written.startswith(start)
    assert "no <b>good" not in written or not start.startswith("<")


def test_replay_compares_two_runs(run: Any, shop: Path) -> None:
    (shop / "d1.json").write_text("[3, 5, 7]")
    shown = run(
        "audit",
        "replay",
        "mechanisms.py:mean",
        "--d1",
        "@d1.json",
        "--d2",
        "[3, 5]",
        "--epsilon",
        "1",
    )
    assert shown.exit_code == 6
    assert shown.stdout.startswith("VIOLATED   mechanisms.py:mean claims epsilon 1")
    shown = run(
        "audit",
        "replay",
        "mechanisms.py:total",
        "--d1",
        "@d1.json",
        "--d2",
        "[3, 5]",
        "--epsilon",
        "1",
    )
    assert shown.exit_code == 0


def test_an_exact_audit_knows_the_truth(run: Any, folder: Path) -> None:
    for words, code in (
        (["laplace", "--scale", "2", "--epsilon", "0.5"], 0),
        (["laplace", "--scale", "2", "--epsilon", "0.499"], 6),
        (["laplace", "--scale", "2", "--sensitivity", "2", "--epsilon", "0.5"], 6),
        (["gaussian", "--scale", "4.3", "--epsilon", "1", "--delta", "1e-6"], 0),
        (["gaussian", "--scale", "4", "--epsilon", "1", "--delta", "1e-6"], 6),
        (["randomized-response", "--truth", "3/4", "--epsilon", "1.1"], 0),
        (["randomized-response", "--truth", "3/4", "--categories", "4", "--epsilon", "1.1"], 6),
    ):
        shown = run("audit", "exact", *words)
        assert shown.exit_code == code, (words, shown.stdout)
        assert shown.stdout.startswith("PASSED" if code == 0 else "VIOLATED")


@pytest.fixture
def parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(
        pyarrow.csv.read_csv(folder / "visits.csv"), folder / "visits.parquet"
    )
    text = (folder / "visits.toml").read_text().replace("visits.csv", "visits.parquet")
    (folder / "visits.toml").write_text(text)
    return folder


def test_a_question_is_replayed_without_a_charge(run: Any, parquet: Path) -> None:
    before = sorted(path.name for path in parquet.iterdir())
    for words in (["audit", "query", "visits.toml"], ["audit", "visits.toml"]):
        shown = run(*words, COUNT, "--epsilon", "0.2", "--persons", "3")
        assert shown.exit_code == 0, shown.stderr
        assert shown.stdout.startswith("PASSED")
        assert "3 of 200 persons, each left out in turn" in shown.stdout
    assert sorted(path.name for path in parquet.iterdir()) == before


def test_a_question_is_compared_with_another_table(run: Any, parquet: Path) -> None:
    table = pyarrow.parquet.read_table(parquet / "visits.parquet")
    for name, kept in (
        ("near", np.asarray(table["patient"]) != 7),
        ("far", np.asarray(table["patient"]) > 7),
    ):
        pyarrow.parquet.write_table(table.filter(kept), parquet / f"{name}.parquet")
        text = (parquet / "visits.toml").read_text()
        (parquet / f"{name}.toml").write_text(text.replace("visits.parquet", f"{name}.parquet"))
    near = run("audit", "query", "visits.toml", COUNT, "--epsilon", "0.2", "--against", "near.toml")
    assert (near.exit_code, near.stdout[:6]) == (0, "PASSED")
    far = run("audit", "query", "visits.toml", COUNT, "--epsilon", "0.2", "--against", "far.toml")
    assert (far.exit_code, far.stdout[:9]) == (6, "UNDECIDED")


def test_the_zoo_is_listed_and_run_in_both_spellings(run: Any, folder: Path) -> None:
    listed = run("audit", "zoo", "--list")
    assert listed.exit_code == 0
    assert listed.stdout == run("audit", "--zoo", "--list").stdout
    assert sum("broken" in line.split() for line in listed.stdout.splitlines()) >= 24
    for words in (["audit", "--zoo"], ["audit", "zoo"]):
        shown = run(
            *words, "randomized-response", "mean-leaks-n", "--samples", "1e5", "--format", "json"
        )
        assert shown.exit_code == 0
        dossier = Dossier.from_json(shown.stdout)
        assert (len(dossier.reports), dossier.expected) == (2, (True, False))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py:f"], "got 'nowhere.py': there is no such file"),
        (["folder.py:f"], "it is a folder"),
        (
            ["mechanisms.py"],
            "a file or a module and a name in it are needed. Write mechanism.py:function",
        ),
        (["mechanisms.py:"], "a file or a module and a name in it are needed"),
        (["mechanisms.py:leeks"], "there is no leeks in it. Did you mean leaks?"),
        (["mechanisms.py:Shop.sell"], "there is no sell in it. It has blind."),
        (["mechanisms.py:number"], "number is of type int, which cannot be called"),
        (["no.module:f"], "there is no module no"),
        (["syntax.py:f"], "it is not valid Python: '(' was never closed (line 2)"),
        (
            ["broken.py:f"],
            "it fails when it is imported: ZeroDivisionError: division by zero (line 3)",
        ),
        (["leaves.py:f"], "it fails when it is imported: SystemExit: 3 (line 2)"),
        (
            ["lacks.py:f"],
            "it fails when it is imported: ModuleNotFoundError: No module named 'nothing_like_it'",
        ),
        (
            ["lacks:f"],
            "it fails when it is imported: ModuleNotFoundError: No module named 'nothing_like_it'",
        ),
        (["mechanisms.py:leaks", "--epsilon", "x"], "--epsilon 'x': it is not a number"),
        (["mechanisms.py:leaks", "--epsilon", "-1"], "epsilon"),
        (["mechanisms.py:leaks", "--confidence", "2"], "confidence"),
        (["mechanisms.py:leaks", "--samples", "1.5"], "it must be a whole number"),
        (["mechanisms.py:leaks", "--samples", "2"], "samples"),
        (["mechanisms.py:leaks", "--d1", "1"], "--d1 without --d2"),
        (["mechanisms.py:leaks", "--d2", "1"], "--d2 without --d1"),
        (["mechanisms.py:leaks", "--d1", "[1", "--d2", "1"], "--d1 '[1': it is not JSON"),
        (
            ["mechanisms.py:leaks", "--d1", "@no.json", "--d2", "1"],
            "it cannot be read (No such file or directory)",
        ),
        (["mechanisms.py:leaks", "--neighbors", "cousins"], "Try: sordino audit mechanism --help"),
        (["mechanisms.py:leaks", "-o", "mechanisms.py"], "a report ends in .html"),
        (["mechanisms.py:leaks", "-o", "no/r.html"], "its folder does not exist"),
        (["mechanisms.py:leaks", "-o", "folder.html"], "it is a folder"),
        (["mechanisms.py:leaks", "-o", "a\0.html"], "it is not the path of a file"),
        (
            ["mechanisms.py:leaks", "--d1", "@d.json", "--d2", "1", "-o", "d.json"],
            "it is the file of --d1",
        ),
        (["exact", "laplace"], "laplace without --scale"),
        (["exact", "laplace", "--truth", "3/4"], "laplace is given by --scale"),
        (["exact", "randomized-response"], "randomized-response is given by --truth"),
        (["query", "visits.toml", COUNT, "--error", "5"], "both --epsilon and --error"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_bad_input_is_one_sentence(run: Any, shop: Path, words: list[str], said: str) -> None:
    (shop / "folder.py").mkdir()
    (shop / "folder.html").mkdir()
    (shop / "d.json").write_text("1")
    (shop / "syntax.py").write_text("x = 1\nf = (\n")
    (shop / "broken.py").write_text("\n\nf = 1 / 0\n")
    (shop / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    (shop / "lacks.py").write_text("import nothing_like_it\n")
    epsilon = [] if "--epsilon" in words else ["--epsilon", "1"]
    shown = run("audit", *words, *epsilon)
    assert (shown.exit_code, shown.stdout) == (2, "")
    told = shown.stderr.removeprefix("imported\n")
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert said in told
    assert (shop / "mechanisms.py").read_text() == MECHANISMS


def test_missing_epsilon_is_told(run: Any, shop: Path) -> None:
    shown = run("audit", "mechanisms.py:leaks")
    assert shown.exit_code == 2
    assert "Missing option '--epsilon'. Try: sordino audit mechanism --help" in shown.stderr


def test_a_name_that_is_not_in_the_zoo(run: Any, folder: Path) -> None:
    shown = run("audit", "zoo", "unicorn")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "unicorn" in shown.stderr


def test_a_terminal_sees_a_bar_and_colours(shop: Path) -> None:
    seen = terminal(["audit", "mechanisms.py:leaks", "--epsilon", "1", *PAIR, *FEW], columns=90)
    assert seen.code == 6
    assert "\x1b[1;31mVIOLATED\x1b[0m" in seen.text
    assert "━" in seen.text
    plain = process("audit", "mechanisms.py:blind", "--epsilon", "1", *PAIR, *FEW)
    assert plain.returncode == 0
    assert b"\x1b" not in plain.stdout + plain.stderr
    assert "━".encode() not in plain.stderr


def test_ctrl_c_ends_it_without_a_traceback(shop: Path) -> None:
    words = ["audit", "mechanisms.py:slow", "--epsilon", "1", *PAIR, "--samples", "1e6"]
    seen = terminal(words, replies={"%": b"\x03"})
    assert seen.code == 130
    assert "Traceback" not in seen.text


def test_inputs_are_read_as_people_mean_them(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('\ufeff[{"age": 3}, {"age": 5}]', "utf-8")
    assert read_data("3", "--d1") == 3
    assert read_data(f"@{tmp_path}/rows.json", "--d1") == [{"age": 3}, {"age": 5}]
    for text, shape in (
        ("[1, 2.5]", (2,)),
        ("[[1, 2], [3, 4]]", (2, 2)),
        ("[]", (0,)),
        ("[NaN, 1]", (2,)),
    ):
        array = read_data(text, "--d1")
        assert isinstance(array, np.ndarray)
        assert array.shape == shape
    for text in ('["a", "b"]', "[true, false]", "[[1], [2, 3]]", "[null, 1]", f"[{10**30}]"):
        assert read_data(text, "--d1") == json.loads(text)
        assert isinstance(read_data(text, "--d1"), list)


def test_domains_are_ranges_or_lists() -> None:
    assert read_domain("0,1") == (0, 1)
    assert read_domain("0, 2.5") == (0, 2.5)
    assert read_domain("0,1,2") == [0, 1, 2]
    assert read_domain("a,b") == ["a", "b"]
    assert read_domain("[0, 1]") == [0, 1]


def test_the_name_has_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "far.py").write_text(
        "import dataclasses\n\n@dataclasses.dataclass\nclass F:\n    x: int = 0\n"
    )
    found, name = imported(f"{tmp_path}/far.py:F")
    assert (found().x, name) == (0, "far.py:F")
    with pytest.raises(InvalidInput):
        imported(f"{tmp_path}/far.txt:F")


def test_help_loads_nothing_of_the_auditor() -> None:
    script = (
        "import sys; from sordino.cli.commands import app; from typer.testing import CliRunner;"
        "assert CliRunner().invoke(app, ['audit', '--help']).exit_code == 0;"
        "heavy = ('sordino.audit', 'numpy', 'duckdb', 'scipy', 'flint');"
        "print(sorted(m for m in sys.modules if m.startswith(heavy)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
