"""Run the notebooks of docs/notebooks and store what they answer: `make notebooks`, or `python -m tools.notebooks
[NAME]`.

With `--check` nothing is stored: each must still run, and answer in the form that is stored. Noise changes numbers, so
numbers are not compared, nor how wide they make a column; the notebooks assert what must hold of them.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

__all__ = ["differences", "form", "main"]

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NUMBER = re.compile(r"[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def form(output: Any) -> str:
    """What stays of an output when its numbers change: of a table its head and length, of a picture that it is one.

    Notes below a table, whether its intervals are written with ±, and the event that an audit found, are chosen by
    numbers, and are not compared.
    """
    if output.output_type == "stream":
        text = re.sub("“[^”]*”", "“...”", output.text)
    elif "image/png" in output.data:
        return "a picture"
    elif "<table" in (html := output.data.get("text/html", "")):
        heads = (
            re.sub("<small>.*?</small>", "", head).strip()
            for head in re.findall("<th[^>]*>(.*?)</th>", html)
        )
        return f"{NUMBER.sub('#', '|'.join(heads))}: {html.count('<tr')} rows"
    else:
        text = html or output.data["text/plain"]
    lines = (
        " ".join(re.sub("[─━]+", "─", NUMBER.sub("#", line)).split())
        for line in text.strip().splitlines()
    )
    return "\n".join(lines)


def executed(path: Path) -> Any:
    """The notebook with new outputs, run in an empty folder."""
    book: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    # a terminal's width is not theirs
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, COLUMNS="100"):
        NotebookClient(
            book, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for place, cell in enumerate(book.cells):
        cell.metadata, cell.id = {}, f"cell-{place}"
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
        for output in cell.get("outputs", []):
            output.pop("execution_count", None)
            output.pop("metadata", None)
            if output.output_type in ("execute_result", "display_data"):
                output.metadata = {}
                output.data = {
                    kind: output.data[kind]
                    for kind in output.data
                    if kind in ("image/png", "text/html", "text/plain")
                }
            if output.output_type == "execute_result":
                output.execution_count = None
        if cell.cell_type == "code":
            cell.execution_count = None
    return book


def _joined(outputs: list[Any]) -> list[Any]:
    """What a kernel printed in several pieces, in one; bars of progress,
    which only slow machines show, are left out.
    """
    joined = list[Any]()
    for output in outputs:
        if output.output_type == "display_data" and "image/png" not in output.data:
            continue
        if (
            joined
            and output.output_type == joined[-1].output_type == "stream"
            and output.name == joined[-1].name
        ):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def differences(stored: Any, found: Any) -> list[str]:
    """Where the outputs of two runs have another form."""
    forms = [
        [
            f"cell {place}: {line}"
            for place, cell in enumerate(book.cells)
            for output in cell.get("outputs", [])
            for line in form(output).split("\n")
        ]
        for book in (stored, found)
    ]
    return list(difflib.unified_diff(forms[0], forms[1], "stored", "now", lineterm="", n=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="notebooks; all if none is named")
    parser.add_argument(
        "--check", action="store_true", help="compare with what is stored, and store nothing"
    )
    arguments = parser.parse_args()
    wrong = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        if arguments.names and path.stem not in arguments.names:
            continue
        found = executed(path)
        if arguments.check:
            different = differences(nbformat.read(path, as_version=4), found)  # type: ignore[no-untyped-call]
            wrong += bool(different)
            print(
                f"{path.stem}: {'other answers than stored' if different else 'as stored'}",
                *different,
                sep="\n",
            )
        else:
            path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
            print(f"{path.stem}: stored")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
