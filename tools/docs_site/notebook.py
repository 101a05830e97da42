"""A notebook as a page: its cells one after the other, with the outputs that are stored in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

__all__ = ["as_markdown"]


def as_markdown(path: Path) -> str:
    """The page; pictures are part of it."""
    book: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    parts = list[str]()
    for cell in book.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown for output in cell.outputs if (shown := _shown(output))]
    title, *rest = parts
    told = f'*This page is the notebook <a href="{path.name}" download>{path.name}</a>. The tests run it.*'
    return "\n\n".join([title, told, *rest]) + "\n"


def _shown(output: Any) -> str:
    if output.output_type == "stream":
        return f"```{{.text .output}}\n{output.text.rstrip()}\n```"
    data = output.data
    if "image/png" in data:
        image = "".join(data["image/png"].split())
        return f'<img alt="a chart of the numbers above" src="data:image/png;base64,{image}">'
    if "text/html" in data:
        body = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return f'<div class="output">\n{body}\n</div>'
    return f"```{{.text .output}}\n{''.join(data['text/plain'])}\n```"
