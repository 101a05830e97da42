"""What browsers get of us: how much, from where, and that the editor is what was built from its sources."""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sordino.server.web.site.rendering import _environment
from sordino.server.web.site.static_files import FOLDER, files, static_address, version

FRONTEND = Path(__file__).parents[2] / "frontend"
MOST = 160_000


def test_scripts_are_small() -> None:
    assert sum(len(file.small) for name, file in files().items() if name.endswith(".js")) <= MOST


def test_addresses_change_with_the_files() -> None:
    assert re.fullmatch(r"/static/[0-9a-f]{16}/page\.js", static_address("page.js"))
    assert all(gzip.decompress(file.small) == file.body for file in files().values())
    assert version() in static_address("sordino.css")
    with pytest.raises(LookupError):
        static_address("nothing.js")


def test_nothing_is_loaded_from_elsewhere_and_no_text_becomes_markup() -> None:
    own = [
        path
        for path in FOLDER.iterdir()
        if path.suffix in (".js", ".css") and path.name != "editor.js"
    ]
    templates = [
        Path(_environment().get_template(name).filename or "")
        for name in _environment().list_templates()
    ]
    assert len(own) >= 5
    assert len(templates) >= 8
    for path in (*own, *templates):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(
            r"""(?:src|href|url|import|from|fetch)\W{0,3}["'(]?(?:https?:)?//""", text
        ), path.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        ), path.name
        assert "|safe" not in text, path.name
        assert not re.search(r"<script(?![^>]*(?:\bsrc=|application/json))|\son\w+=", text), (
            path.name
        )


def test_the_editor_is_the_one_whose_hash_and_licences_are_beside_it() -> None:
    told = (FOLDER / "editor.js.sha256").read_text().split()
    assert told == [hashlib.sha256((FOLDER / "editor.js").read_bytes()).hexdigest(), "editor.js"]
    licences = (FOLDER / "editor.LICENSES.txt").read_text()
    assert "@codemirror/view 6." in licences
    assert licences.count("Permission is hereby granted") >= 8


def test_the_editor_is_built_from_its_sources_to_the_same_bytes(tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm is not here: the editor is not built again")
    folder, out = FRONTEND, tmp_path / "out"
    if not (FRONTEND / "node_modules" / ".package-lock.json").exists():
        folder = shutil.copytree(FRONTEND, tmp_path / "frontend")
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        if subprocess.run(command, cwd=folder, capture_output=True).returncode:
            pytest.skip("npm cannot fetch the editor's packages here")
    out.mkdir()
    subprocess.run([node, "build.mjs", str(out)], cwd=folder, check=True, capture_output=True)
    for name in ("editor.js", "editor.LICENSES.txt", "editor.js.sha256"):
        assert (out / name).read_bytes() == (FOLDER / name).read_bytes(), name
