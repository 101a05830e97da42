"""Pages fit terminals, pipes and old encodings."""

from __future__ import annotations

import re
import subprocess

import pytest

from cli.desk import COMMAND, process, terminal
from sordino.cli.page import Page

ESCAPE = "\x1b"
EXPLAIN = ("explain", "laplace", "--epsilon", "0.5")


def test_a_page_in_a_pipe_has_no_escape_codes_and_whole_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    page = Page()
    page.heading("A heading")
    page.say("word " * 30)
    page.say("- " + "word " * 15)
    page.table(["name", "number"], [["x" * 90, "1"], ["y", "22"]])
    page.draw("▁█ o\n────")
    out = capsys.readouterr().out
    assert ESCAPE not in out
    assert "x" * 90 + "       1\n" in out
    assert "y" + " " * 95 + "22\n" in out
    assert out.endswith("▁█ o\n────\n")
    sentences = [line for line in out.split("\n") if "word" in line]
    assert all(len(line) <= 50 for line in sentences)
    assert sentences[-1].startswith("  word")


def test_a_table_that_is_too_wide_is_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    Page().table(
        ["what", "all of the answers"],
        [["some words that go on and on", "±10 %"], ["few", "1,000,000"]],
    )
    lines = [line.rstrip() for line in capsys.readouterr().out.split("\n")]
    assert max(map(len, lines)) <= 40
    assert [line.split() for line in lines if "±" in line] == [
        ["some", "words", "that", "go", "±10", "%"]
    ]
    assert "  on and on" in lines


def test_a_table_with_no_room_for_its_words_is_a_block_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    Page().table(
        ["name", "a", "b", ""], [["x" * 12, "1" * 12, "±2 %", ""], ["y", "1", "2" * 12, "best"]]
    )
    assert capsys.readouterr().out == (
        f"name: {'x' * 12}\n  a: {'1' * 12}\n  b: ±2 %\nname: y\n  a: 1\n  b: {'2' * 12}\n  best\n"
    )


def test_a_page_at_a_terminal_has_colours_and_fits() -> None:
    seen = terminal(EXPLAIN, columns=90)
    assert seen.code == 0
    assert f"{ESCAPE}[34m" in seen.text  # the hill
    assert f"{ESCAPE}[31m" in seen.text  # the line
    assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 90 for line in seen.text.split("\n"))


def test_without_colours_if_so_wished() -> None:
    seen = terminal(EXPLAIN, environment={"NO_COLOR": "1"})
    assert seen.code == 0
    assert "█" in seen.text
    assert ESCAPE not in seen.text


def test_an_old_encoding_gets_letters_that_look_alike() -> None:
    done = process(*EXPLAIN, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    assert "####" in text
    assert "within  +/-6" in re.sub(" +", "  ", text)
    assert "?" not in text


def test_a_reader_who_has_seen_enough() -> None:
    with subprocess.Popen(
        [*COMMAND, *EXPLAIN], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() == 0
