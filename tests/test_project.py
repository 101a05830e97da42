"""What a stranger finds around the code is true: versions, workflow,
templates, cheat sheet, stored formats, release.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools import release

import sordino as so
from page_examples import compare, form, run_page
from sordino.answer import stored as stored_answers
from sordino.ledger import chain, postgres_tables, sqlite

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_has_one_source() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/sordino/__init__.py"
    assert release.version() == so.__version__
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == so.__version__
    assert cited["license"] == PROJECT["project"]["license"]


def test_no_address_is_made_up() -> None:
    """Nobody has said where the project is kept, so that nothing may claim to know."""
    assert "urls" not in PROJECT["project"]


@pytest.fixture(scope="module")
def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_workflow_runs_targets_that_exist_on_all_that_is_promised(targets: set[str]) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
    jobs = workflow["jobs"]
    assert set(jobs) == {"lint", "test", "docs", "wheel"}
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {command.removeprefix("make ") for command in commands} == {
        "lint",
        "test",
        "docs",
        "release",
    }
    assert {command.removeprefix("make ") for command in commands} <= targets
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["python"] == list(release.PYTHONS) == ["3.11", "3.12", "3.13", "3.14"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos"}
    assert workflow["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in jobs.values())


def test_the_targets_are_in_the_help(targets: set[str]) -> None:
    told = set(re.findall(r'@echo "make ([a-z]+)', (ROOT / "Makefile").read_text()))
    assert told <= targets
    assert {"docs", "notebooks", "release", "test", "demo"} <= told


@pytest.mark.parametrize("name", ["bug.yml", "wish.yml"])
def test_issue_forms_have_what_the_host_demands(name: str) -> None:
    filled = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text())
    assert filled["name"]
    assert filled["description"]
    ids = [part["id"] for part in filled["body"] if part["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    assert all(
        part["attributes"].get("label") or part["attributes"].get("value")
        for part in filled["body"]
    )


def test_hooks_run_tools_that_the_lint_target_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy", "prose"}
    assert all(
        hook["language"] == "system" and hook["entry"].startswith(".venv/bin/") for hook in hooks
    )


def test_every_question_of_the_cheat_sheet_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "cheat-sheet.md"
    run_page(page)
    asked = re.findall(r"\| `(SELECT [^`]+)` \|", page.read_text())
    assert len(asked) >= 10
    with so.Session(so.Dataset.load("visits.toml")) as session:
        for question in asked:
            assert session.preview(question, epsilon=0.01), question


def test_the_threats_name_tests_and_pages_that_exist() -> None:
    told = set(
        re.findall(r"`((?:tests|server|src)/[\w/]+(?:\.\w+)?)`", (ROOT / "SECURITY.md").read_text())
    )
    assert len(told) >= 10
    assert [
        name
        for name in told
        if not (ROOT / name).exists() and not (ROOT / "src" / "sordino" / name).exists()
    ] == []


def test_the_page_of_formats_states_the_versions_of_the_code() -> None:
    page = (ROOT / "docs" / "project" / "formats.md").read_text()
    rows = {
        cells[1].strip(): cells[-2].strip()
        for line in page.split("\n")
        if len(cells := line.split("|")) > 4
    }
    assert rows["ledger, each entry"] == f"`{chain.FORMAT}`"
    assert rows["ledger, SQLite file"] == str(sqlite._VERSION)
    assert rows["ledger, PostgreSQL tables"] == str(postgres_tables._VERSION)
    assert rows["answer"] == str(stored_answers.VERSION)


def test_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    lines = (ROOT / "README.md").read_text().split("\n")
    seconds = next(line for line in lines if line.startswith("| count over 1 M rows"))
    table = results.split("### Time at 1,000,000 rows")[1].split("### ")[0]
    for name, shown in zip(
        ("Sordino", "OpenDP", "Tumult", "PipelineDP", "SmartNoise"),
        seconds.split("|")[2:7],
        strict=True,
    ):
        cell = re.search(rf"^\| {name} \| ([\d.]+) (ms|s)", table, re.MULTILINE)
        assert cell is not None, name
        measured = float(cell[1]) / (1000 if cell[2] == "ms" else 1)
        assert abs(float(shown) - measured) <= 0.05 * measured, name
    means = next(line for line in lines if line.startswith("| error of a mean"))
    table = results.split("### Error at ε = 1, δ = 1e-06")[1].split("| mean |")[1].split("\n\n")[0]
    rows = {"Sordino": 2, "OpenDP": 3, "SmartNoise, asked": 6, "diffprivlib": 7, "PyDP": 8}
    for name, place in rows.items():
        cell = re.search(rf"^\| {name}[^|]*\| \**([\d.]+)", table, re.MULTILINE)
        assert cell is not None, name
        assert abs(float(means.split("|")[place].strip(" ¹²³")) - float(cell[1])) < 0.001, name


def test_figures_of_the_comparison_are_those_of_the_benchmarks() -> None:
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    lines = (ROOT / "docs" / "project" / "comparison.md").read_text().split("\n")
    shown = next(line for line in lines if line.startswith("| epsilon of 10,000 Laplace releases"))
    table = results.split("### δ = 1e-06: time")[1].split("### ")[0]
    row = next(line for line in table.split("\n") if line.startswith("| 10,000 Laplace"))
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}
    times = [float(x) * units[unit] for x, unit in re.findall(r"\| ([\d.]+) (µs|ms|s)", row)]
    ours, _, prv, rdp, zcdp = times
    told = [float(x) for x in re.findall(r"([\d.]+) s\b", shown)]
    assert told == pytest.approx([ours, rdp, zcdp, prv], rel=0.1)


def test_an_output_is_compared_by_its_words() -> None:
    shown = "ward   n\n────  ───\nA     12 ± 3\n..."
    compare(shown, "ward     n\n───── ───\nA     9,999 ± 40.5\nmore\n", "page")
    for wrong in ("ward m\n─── ──\nA 12 ± 3", "ward n\n─── ──\nB 12 ± 3", "ward n"):
        with pytest.raises(AssertionError, match="page shows"):
            compare(shown, wrong, "page")
    with pytest.raises(AssertionError, match="page shows"):
        compare("a\nb", "a\nb\nc", "page")
    assert form("x  1,000.5 ── e") == "x # ─ e"
