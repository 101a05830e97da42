"""A stranger's day: the wheel in an environment of its own, without extras, started elsewhere.

What only a developer's environment has (pandas, Altair, ipywidgets, the source tree) must not be needed by what the
first pages show, nor by a notebook.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sordino.query.declaration_schema import schema_text

ROOT = Path(__file__).parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
EXTRAS = ("pandas", "polars", "altair", "vl_convert", "ipywidgets", "psycopg")


def run(*words: str | Path, folder: Path, **more: str) -> str:
    """What a command prints; it sees nothing of this process's own paths."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PYTHON", "COVERAGE", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        env={**kept, **more},
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def link_what_is_needed(site: Path, *more: str) -> None:
    """Put what is installed in an environment, by its own words, beside it, and more: links to what is here already.

    `make release` lets pip install it all, which takes half a minute.
    """
    (sordino,) = distributions(name="sordino", path=[str(site)])
    waiting, seen = [*map(Requirement, sordino.requires or ()), *map(Requirement, more)], {""}
    while waiting:
        wanted = waiting.pop()
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        here = distribution(wanted.name)
        assert wanted.specifier.contains(here.version), wanted
        waiting += map(Requirement, here.requires or ())
        for name in {file.parts[0] for file in here.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(here.locate_file(name))))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder with the wheel and, in `bare`, an environment with it and ipykernel; made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "stranger"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            run(
                sys.executable,
                *PIP,
                "wheel",
                "--no-deps",
                "--wheel-dir",
                folder,
                ROOT,
                folder=folder,
            )
            bare = folder / "bare"
            run(sys.executable, "-m", "venv", "--without-pip", bare, folder=folder)
            (built,) = folder.glob("*.whl")
            run(
                sys.executable,
                *PIP,
                "--python",
                bare / "bin" / "python",
                "install",
                "--no-deps",
                "--no-index",
                built,
                folder=folder,
            )
            (site,) = bare.glob("lib/python*/site-packages")
            link_what_is_needed(site, "ipykernel")
            (folder / "ready").touch()
    return folder


def test_the_environment_is_bare(wheel: Path) -> None:
    script = f"from importlib.util import find_spec; print([n for n in {EXTRAS!r} if find_spec(n)])"
    assert run(wheel / "bare" / "bin" / "python", "-c", script, folder=wheel).strip() == "[]"
    where = run(
        wheel / "bare" / "bin" / "python",
        "-c",
        "import sordino; print(sordino.__file__)",
        folder=wheel,
    )
    assert str(wheel / "bare") in where


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_first_pages_run_as_they_stand(page: str, wheel: Path, tmp_path: Path) -> None:
    run(
        wheel / "bare" / "bin" / "python",
        "-W",
        "error",
        ROOT / "tests" / "page_examples.py",
        ROOT / page,
        folder=tmp_path,
    )


def test_the_documentation_is_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    command = wheel / "bare" / "bin" / "sordino"
    pages = {file.stem for file in (ROOT / "docs").glob("*.md")} - {"architecture", "mutants"}
    listed = run(command, "docs", folder=tmp_path).splitlines()
    assert {line.split()[2] for line in listed} == pages
    for page in pages:
        assert run(command, "docs", page, folder=tmp_path) == (
            ROOT / "docs" / f"{page}.md"
        ).read_text("utf-8")
    assert run(command, "schema", folder=tmp_path) == schema_text()
    (built,) = wheel.glob("*.whl")
    names = zipfile.ZipFile(built).namelist()
    assert {n for n in names if n.startswith("sordino/docs/")} == {
        f"sordino/docs/{page}.md" for page in pages
    }


NOTEBOOK = """
import sys
import nbformat
from nbclient import NotebookClient

cells = [
    '''
import pyarrow as pa
import sordino as so
data = so.Dataset(pa.table({"age": [31, 47, 65] * 50}), unit="row",
                  columns={"age": {"type": "int", "min": 0, "max": 110}}, budget=so.Budget(2))
session = so.Session(data)
''',
    'answer = session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1)',
    'print(session.progress)',
    'answer',
    'session',
    '''
import time
import sordino.answer.notebook_progress as progress
progress._PATIENCE, run = 0.0, type(session._engine).run
type(session._engine).run = lambda self, *given: (time.sleep(0.8), run(self, *given))[1]
slow = session.sql("SELECT COUNT(*) AS n FROM data", epsilon=0.1)
session.close()
''',
]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(book, timeout=300, kernel_name="stranger").execute()
(shown,) = book.cells[3].outputs
print(shown["data"]["text/html"])
assert not any(o.output_type == "display_data" for cell in book.cells[:5] for o in cell.outputs), "a progress bar was drawn"
(card,) = book.cells[4].outputs
assert "<strong>Session</strong>" in card["data"]["text/html"]
(bar,) = book.cells[5].outputs
assert (bar.output_type, bar["data"]["text/html"]) == ("display_data", ""), "no bar was drawn, or it stayed"
"""


def test_a_session_opens_and_answers_in_a_plain_notebook(wheel: Path, tmp_path: Path) -> None:
    """DuckDB's own progress bar wants ipywidgets in a kernel; ours must not."""
    kernel = tmp_path / "jupyter" / "kernels" / "stranger" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    python = wheel / "bare" / "bin" / "python"
    kernel.write_text(
        f'{{"argv": ["{python}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"], '
        '"display_name": "stranger", "language": "python"}'
    )
    shown = run(
        sys.executable, "-c", NOTEBOOK, folder=tmp_path, JUPYTER_PATH=str(tmp_path / "jupyter")
    )
    assert "<table>" in shown
