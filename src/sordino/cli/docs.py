"""`sordino docs`: the pages of the documentation, which come with the package, so that errors can point to them."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from sordino.cli.streams import put_text, say
from sordino.errors import InvalidInput

__all__ = ["docs", "pages"]

_INSTALLED = Path(__file__).parents[1] / "docs"
_CHECKOUT = Path(__file__).parents[3] / "docs"


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="The page; without one, a list of all.")
    ] = None,
) -> None:
    """Print a page of the documentation, or the list of pages.

    Example: sordino docs sql
    """
    found = pages()
    if page is None:
        for name, file in found.items():
            say(f"sordino docs {name:<18}{_title(file)}")
        return
    name = page.removeprefix("docs/").removesuffix(".md").casefold()
    if name not in found:
        near = [page for page in found if page.startswith(name)] or get_close_matches(
            name, found, 1
        )
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InvalidInput(
            repr(page), "there is no such page", f"{hint}There are {', '.join(found)}."
        )
    put_text(found[name].read_text("utf-8"))


def pages() -> dict[str, Path]:
    """The pages by name: of the installed package, or of the source tree that it runs from."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    return {
        file.stem: file
        for file in sorted(folder.glob("*.md"))
        if file.stem not in {"architecture", "mutants"}
    }


def _title(file: Path) -> str:
    return file.read_text("utf-8").partition("\n")[0].removeprefix("# ")
