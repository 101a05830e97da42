"""`make browser` finds a browser where one is, and says how to get one where none is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tools import browser as tool


def program(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return place


def test_a_browser_is_the_one_that_is_named_or_on_the_path_or_was_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SORDINO_BROWSER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(tool, "FOLDER", tmp_path / "brought")
    assert tool.browser() is None
    brought = program(tmp_path / "brought" / "chromium")
    assert tool.browser() == str(brought)
    assert tool.environment(str(brought))["LD_LIBRARY_PATH"].startswith(
        str(tmp_path / "brought" / "lib")
    )
    installed = program(tmp_path / "bin" / "chromium")
    assert tool.browser() == str(installed)
    assert tool.environment(str(installed)) == dict(os.environ)
    named = program(tmp_path / "elsewhere" / "chrome")
    monkeypatch.setenv("SORDINO_BROWSER", str(named))
    assert tool.browser() == str(named)
    monkeypatch.setenv("SORDINO_BROWSER", str(tmp_path / "nothing"))
    assert tool.browser() is None  # not another one than the one that was named


def test_without_any_way_it_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SORDINO_BROWSER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tool, "FOLDER", tmp_path / "brought")
    tool.main()
    assert capsys.readouterr().out == f"{tool.HOW}\n"
