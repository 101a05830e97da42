"""To look at a path never fails, whatever is there and whoever looks."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput, SordinoError
from sordino.privacy import paths

AGE = {"age": {"type": "int", "min": 0, "max": 110}}
LONG = "x" * 300


@pytest.fixture
def closed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder into which this user may not look; the tests may run as a user who may look everywhere."""
    closed = tmp_path / "closed"
    closed.mkdir()
    plain = os.stat, os.lstat

    def guarded(look: Any) -> Any:
        def looked(path: Any, *args: Any, **options: Any) -> Any:
            if not isinstance(path, int) and closed in Path(os.fsdecode(path)).parents:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return look(path, *args, **options)

        return looked

    monkeypatch.setattr(os, "stat", guarded(plain[0]))
    monkeypatch.setattr(os, "lstat", guarded(plain[1]))
    return closed


def test_what_is_there_in_words(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert paths.not_a_file(tmp_path / "a") == "" == paths.not_a_folder(tmp_path)
    assert paths.not_a_file(tmp_path / "b") == "there is no such file"
    assert paths.not_a_file(tmp_path / "a" / "b") == "there is no such file"
    assert paths.not_a_file(Path("a\0b")) == "there is no such file"
    assert paths.not_a_file(tmp_path) == "it is a folder"
    assert paths.not_a_file(tmp_path / "pipe") == "it is not a plain file"
    assert paths.not_a_file(tmp_path / "loop").startswith("it cannot be reached (")
    assert paths.not_a_file(Path(LONG)) == "it cannot be reached (File name too long)"
    assert paths.not_a_folder(tmp_path / "a") == "it is no folder"
    assert paths.not_a_folder(tmp_path / "b") == "there is no such folder"
    assert paths.not_writable(tmp_path / "a") == paths.not_writable(tmp_path / "b") == ""
    assert paths.not_writable(tmp_path) == "it is a folder"
    assert paths.not_writable(tmp_path / "b" / "c") == "its folder does not exist"
    assert paths.not_writable(Path(LONG)) == "it cannot be reached (File name too long)"
    assert paths.not_writable(Path("a\0b")) == "it is not the path of a file"


def test_a_folder_into_which_this_user_may_not_look(closed_folder: Path) -> None:
    inside = closed_folder / "v.parquet"
    assert not any(look(inside) for look in (paths.is_file, paths.is_folder, paths.is_there))
    assert paths.not_a_file(inside) == paths.not_writable(inside)
    assert paths.not_a_file(inside) == "it cannot be reached (Permission denied)"


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".duckdb"])
@pytest.mark.parametrize("long", [False, True])
def test_a_source_that_cannot_be_reached_is_refused(
    closed_folder: Path, ending: str, long: bool
) -> None:
    path = closed_folder / f"{LONG if long else 'v'}{ending}"
    for attempt in (
        lambda: so.Session(
            so.Dataset(path, name="v", unit="row", columns=AGE, budget=so.Budget(1))
        ),
        lambda: so.Dataset.schema_stub(path),
        lambda: so.Dataset.load(path.with_suffix(".toml")),
    ):
        with pytest.raises(SordinoError, match="cannot be reached"):
            attempt()


def test_a_log_beside_a_file_with_a_long_name(tmp_path: Path) -> None:
    """The name of the file is as long as names can be, so that no log of it can be there."""
    import duckdb

    path = tmp_path / f"{'x' * 245}.duckdb"
    short = tmp_path / "short.duckdb"
    with duckdb.connect(str(short)) as connection:
        connection.execute("CREATE TABLE v AS SELECT 1 AS age")
    short.rename(path)
    from sordino.engines.gate import pinned

    data = so.Dataset(path, name="v", unit="row", columns=AGE, budget=so.Budget(1))
    assert pinned(data.tables.values())[0].path == path


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    people = pa.table({"age": [1, 2]})
    data = so.Dataset(people, name="v", unit="row", columns=AGE, budget=so.Budget(1))
    with so.Session(data) as session:  # needs no folder
        assert session.sql("SELECT COUNT(*) AS n FROM v", epsilon=1).names == ("n",)
    for attempt in (
        lambda: so.Dataset("v.parquet", unit="row", columns=AGE),
        lambda: so.Dataset.load("v.toml"),
        lambda: so.Session(data, ledger="v.ledger"),
    ):
        with pytest.raises(InvalidInput, match="current folder"):
            attempt()
