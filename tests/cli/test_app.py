"""Exit codes, errors, pipes, completion and looks of the whole command line."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.desk import process, terminal
from sordino import Dataset, __version__, errors
from sordino.cli.outcome import EXIT_CODES, exit_code
from sordino.cli.output import Format, check_target, chosen
from sordino.cli.streams import say

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "init",
    "check",
    "suggest",
    "preview",
    "query",
    "marginals",
    "synthesize",
    "budget",
    "ledger",
    "receipt",
    "report",
    "explain",
    "plan",
    "audit",
    "workbench",
    "serve",
    "mcp",
    "schema",
    "docs",
    "version",
]


def raising(error: BaseException) -> Callable[[], Any]:
    def run() -> None:
        raise error

    return run


def test_help_lists_every_command_and_exit_code_on_whole_lines(run: Any) -> None:
    for words in (["--help"], []):
        shown = run(*words)
        assert shown.exit_code == 0
        assert (
            re.findall(r"^  ([a-z]+)  ", shown.stdout.split("Commands:")[1], re.MULTILINE)
            == COMMANDS
        )
        assert "..." not in shown.stdout.split("Commands:")[1]
        assert all(
            f"  {code:<4} {meaning}\n" in shown.stdout for code, meaning in EXIT_CODES.items()
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run: Any, name: str) -> None:
    shown = run(name, "-h")
    assert shown.exit_code == 0
    assert f"Usage: sordino {name}" in shown.stdout
    assert shown.stderr == ""


def test_groups_without_a_command_show_their_help(run: Any) -> None:
    for group in ("ledger", "explain", "budget", "audit"):
        shown = run(group)
        assert shown.exit_code == 0
        assert "Commands:" in shown.stdout
        assert group == "explain" or "..." not in shown.stdout.split("Commands:")[1]


def test_the_exit_codes_are_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert all(f"| {code} | {meaning} |" in page for code, meaning in EXIT_CODES.items())
    assert all(f"`sordino {name}" in page for name in COMMANDS)


def test_versions_are_shown(run: Any) -> None:
    for words in ("version", "--version"):
        shown = run(words)
        assert shown.exit_code == 0
        assert [line.split()[0] for line in shown.stdout.splitlines()] == [
            "Sordino",
            "Python",
            "DuckDB",
            "SQLite",
        ]
        assert __version__ in shown.stdout
        assert "not installed" not in shown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quer"], "No such command 'quer'. Did you mean 'query'? Try: sordino --help"),
        (
            ["budget", "sett", "visits.toml"],
            "No such command 'sett'. Did you mean 'set'? Try: sordino budget --help",
        ),
        (["query", "visits.toml"], "Missing argument 'SQL'. Try: sordino query --help"),
        (["query", "visits.toml", "SELECT 1", "--format", "xml"], "Try: sordino query --help"),
        (["--nonsense"], "No such option: --nonsense. Try: sordino --help"),
        (["init", "nowhere.csv", "more"], "got 'nowhere.csv': there is no such file"),
        (["query", "visits.csv", "SELECT 1", "--epsilon", "1"], "`sordino init visits.csv`"),
        (["query", "SELECT 1", "visits.toml", "--epsilon", "1"], "the declaration comes first"),
        (
            ["query", "v.toml", "SELECT 1", "--epsilon", "1", "-o", "x.xlsx"],
            "Spreadsheets open .csv. Nothing was charged.",
        ),
        (["ask", "visits.toml"], "Write: sordino query visits.toml"),
        (["receipt", "visits.toml"], "sordino receipt get"),
        (["init", "visits.toml"], "`sordino check visits.toml`"),
        (["init", "visits.xlsx"], "Convert it to Parquet or CSV first."),
        (["docs", "decl"], "Did you mean 'declaration'?"),
        (["serve", __file__], "Pass its folder"),
        (["budget", "missing.toml"], "got 'missing.toml': there is no such file. Check the path"),
    ],
)
def test_bad_usage_is_one_line_on_stderr(run: Any, words: list[str], said: str) -> None:
    shown = run(*words)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert shown.stderr.startswith("error: ")
    assert shown.stderr.count("\n") == 1
    assert said in shown.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInput("x", "rule", "Hint."), 2),
        (errors.InvalidDeclaration("x", "rule", "Hint."), 2),
        (errors.UnsupportedSQL("x", "rule", "Hint."), 2),
        (errors.BudgetExceeded("epsilon 1", "0.5", "Hint."), 3),
        (errors.LedgerUnavailable("x", "rule", "Hint."), 4),
        (errors.LedgerDamaged("x", "rule", "Hint."), 4),
        (errors.LedgerMismatch("x", "rule", "Hint."), 4),
        (errors.RequestRefused("x", "rule", "Hint."), 4),
        (errors.EngineFailed(), 5),
    ],
)
def test_every_error_has_its_code_and_one_sentence(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(raising(error)) == code
    assert capsys.readouterr() == ("", f"error: {error}\n")


def test_a_bug_shows_its_type_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SORDINO_TRACEBACK", raising=False)
    assert exit_code(raising(KeyError("Mrs Smith, 47"))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "KeyError" in err
    assert "Smith" not in err
    assert err.count("\n") == 1
    monkeypatch.setenv("SORDINO_TRACEBACK", "1")
    assert exit_code(raising(KeyError("Mrs Smith, 47"))) == 1
    assert "Smith" in capsys.readouterr().err


def test_interrupts_and_closed_pipes_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(raising(KeyboardInterrupt())) == 130
    assert exit_code(raising(BrokenPipeError())) == 0
    assert capsys.readouterr() == ("", "")


def test_ledger_warnings_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(lambda: warnings.warn("Two ledgers.", errors.LedgerWarning, stacklevel=1)) == 0
    assert capsys.readouterr() == ("", "warning: Two ledgers.\n")


@pytest.mark.parametrize(
    "words", [["--help"], ["plan", "--epsilon", "1", "--queries", "10"]], ids=["help", "rich"]
)
def test_a_reader_who_leaves_early_is_no_error(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [Path(sysconfig.get_path("scripts")) / "sordino", *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_python_m_sordino_is_the_same_command(run: Any) -> None:
    assert process("version").stdout.decode() == run("version").stdout


def test_a_closed_stdout_is_no_bug(folder: Path) -> None:
    assert process("budget", "visits.toml", preexec_fn=lambda: os.close(1)).returncode == 0


class TestInit:
    def test_writes_a_stub_of_the_schema(self, run: Any, folder: Path) -> None:
        (folder / "visits.toml").unlink()
        shown = run("init", "visits.csv")
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert "Wrote visits.toml" in shown.stdout
        assert (
            'sordino preview visits.toml "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1'
            in shown.stdout
        )
        assert (folder / "visits.toml").read_text() == Dataset.schema_stub("visits.csv")
        assert "Bern" not in (folder / "visits.toml").read_text()

    def test_goes_elsewhere_and_points_back(self, run: Any, folder: Path) -> None:
        (folder / "declared").mkdir()
        assert run("init", "visits.csv", "--output", "declared/v.toml").exit_code == 0
        assert 'source = "../visits.csv"' in (folder / "declared" / "v.toml").read_text()
        shown = run("init", "visits.csv", "--output", "-")
        assert shown.stdout == Dataset.schema_stub("visits.csv")

    def test_replaces_only_when_told(self, run: Any, folder: Path) -> None:
        mine = (folder / "visits.toml").read_text()
        shown = run("init", "visits.csv")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert "--force" in shown.stderr
        assert (folder / "visits.toml").read_text() == mine
        (folder / "empty.csv").touch()
        assert run("init", "empty.csv", "--output", "visits.toml", "--force").exit_code == 2
        assert (folder / "visits.toml").read_text() == mine
        before = {path.name for path in folder.iterdir()}
        assert run("init", "visits.csv", "--force").exit_code == 0
        assert (folder / "visits.toml").read_text() == Dataset.schema_stub("visits.csv")
        assert {path.name for path in folder.iterdir()} == before

    @pytest.mark.parametrize(
        "words",
        [
            ["nowhere.csv"],
            ["visits.xlsx"],
            ["visits.csv", "-o", "x.txt"],
            ["visits.csv", "-o", "no/x.toml"],
        ],
    )
    def test_bad_input(self, run: Any, folder: Path, words: list[str]) -> None:
        shown = run("init", *words)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert shown.stderr.startswith("error: got ")

    def test_a_folder_is_not_replaced(self, run: Any, folder: Path) -> None:
        (folder / "x.toml").mkdir()
        assert run("init", "visits.csv", "--output", "x.toml", "--force").exit_code == 2


def complete(run: Any, line: str) -> list[str]:
    words = line.split(" ")
    env = {
        "_SORDINO_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    shown = run(env=env)
    assert shown.exit_code == 0
    return [word for word in shown.stdout.split("\n") if word]


def test_completion_knows_commands_options_and_declarations(run: Any, folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "wards.toml").touch()
    assert complete(run, "sordino bu") == ["budget"]
    assert complete(run, "sordino query vi") == ["visits.toml"]
    assert complete(run, "sordino query ") == ["more/", "visits.toml"]
    assert complete(run, "sordino preview more/") == ["more/wards.toml"]
    assert complete(run, "sordino query nowhere/") == []
    assert complete(run, "sordino budget ") == ["show", "set", "allot", "more/", "visits.toml"]
    assert complete(run, "sordino budget set v") == ["visits.toml"]
    assert complete(run, "sordino budget visits.toml --an") == ["--analyst"]
    assert complete(run, "sordino query visits.toml x --format j") == ["json"]
    assert complete(run, "sordino ledger ver") == ["verify"]


def test_completion_works_in_bash(folder: Path) -> None:
    script = (
        'eval "$(sordino --show-completion)"; COMP_WORDS=(sordino ledger verify vis); COMP_CWORD=3;'
        '_sordino_completion sordino; echo "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        timeout=60,
    )
    assert done.stdout.strip() == "visits.toml"


def test_colours_are_for_terminals_that_want_them(folder: Path) -> None:
    words = ["budget", "missing.toml"]
    seen = terminal(words)
    assert seen.code == 2
    assert seen.text.startswith("\x1b[31merror:\x1b[0m got 'missing.toml'")
    assert "\x1b" not in terminal(words, environment={"NO_COLOR": "1"}).text
    assert b"\x1b" not in process(*words).stderr


def test_text_is_broken_at_the_width_of_the_terminal(folder: Path) -> None:
    seen = terminal(["budget", "visits.toml"], columns=60)
    assert seen.code == 0
    assert max(map(len, seen.text.splitlines())) <= max(
        60, len(f"Ledger    none yet; the first question makes {folder}")
    )
    assert "Answers with epsilon 0.1" in " ".join(seen.text.split())


def test_letters_that_an_encoding_lacks_are_no_error(folder: Path) -> None:
    done = process("budget", "visits.toml", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"?" in done.stdout


def test_say_writes_lines(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    say("a\nb")
    say()
    assert capsysbinary.readouterr().out == b"a\nb\n\n"


def test_formats_come_from_the_ending_unless_told() -> None:
    assert chosen(None, None) is Format.table
    assert chosen(None, "x.CSV") is Format.csv
    assert chosen(None, "x.parquet") is Format.parquet
    assert chosen(None, "x.txt") is Format.table
    assert chosen(Format.json, "x.csv") is Format.json


def test_targets_are_checked_without_being_made(folder: Path) -> None:
    dataset = Dataset.load("visits.toml")
    before = sorted(folder.iterdir())
    for fine in (None, "new.csv", str(folder / "new.csv"), "/dev/null"):
        check_target(fine, "--output", dataset)
    assert sorted(folder.iterdir()) == before
    for path, said in (
        (".", "it is a folder"),
        ("a/b", "its folder does not exist"),
        ("a\0b", "not the path"),
        ("visits.toml", "the declaration, the ledger or the data"),
        (str(folder / "visits.csv"), "the declaration, the ledger or the data"),
    ):
        with pytest.raises(errors.InvalidInput, match=said):
            check_target(path, "--output", dataset)


LONG = "x" * 300
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.mark.parametrize(
    "words",
    [
        ["query", f"{LONG}", COUNT, "--epsilon", "1"],
        ["query", f"{LONG}/v", COUNT, "--epsilon", "1"],
        ["init", f"{LONG}.parquet"],
        ["init", "visits.parquet", "--output", f"{LONG}.toml"],
        ["query", "visits.toml", COUNT, "--epsilon", "1", "--output", f"{LONG}.csv"],
        ["query", "visits.toml", COUNT, "--epsilon", "1", "--output", f"{LONG}/x.csv"],
        ["query", "visits.toml", COUNT, "--epsilon", "1", "--plot", f"{LONG}.html"],
        ["query", "visits.toml", COUNT, "--epsilon", "1", "--output", "circle.csv"],
        ["audit", f"{LONG}.py:f", "--epsilon", "1"],
        ["audit", "visits.toml:f", "--epsilon", "1", "--output", f"{LONG}.html"],
        ["workbench", f"{LONG}.toml"],
        ["serve", LONG],
    ],
)
def test_paths_at_which_nobody_can_look_are_refused_in_words(
    run: Any, folder: Path, words: list[str]
) -> None:
    """They ended in "something failed inside Sordino", as did folders of other users."""
    (folder / "circle.csv").symlink_to(folder / "circle.csv")
    shown = run(*words)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert shown.stderr.startswith("error: ")
    assert "inside Sordino" not in shown.stderr
    assert not (folder / "visits.ledger").exists()
