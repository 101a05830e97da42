"""Pieces of HTML pages that need nothing else: every text is escaped, and there are no scripts.

Styles (`html_page.css`) are bound to one class: a notebook keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from sordino.privacy.text_table import clean

__all__ = [
    "PAGE_POLICY",
    "bullets",
    "fact_table",
    "framed",
    "heading",
    "lines",
    "page",
    "paragraphs",
    "safe",
    "safe_lines",
    "section",
    "table",
]


PAGE_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
)
"""Tells browsers to run no script and to load nothing, should an escape ever be forgotten."""


def framed(title: str, body: str, style: str) -> str:
    """A whole page that loads nothing and runs no script."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{PAGE_POLICY}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(title)}</title><style>\n{style}</style></head>\n<body>{body}</body></html>\n"
    )


def page(title: str, body: str) -> str:
    """Such a page for a report, which also looks well on paper."""
    style = Path(__file__).with_suffix(".css").read_text("utf-8")
    return framed(title, f'<main class="so-audit">{body}</main>', style)


def heading(text: str, level: int) -> str:
    """A heading."""
    return f"<h{level}>{safe(text)}</h{level}>"


def section(title: str, inside: str, level: int = 2) -> str:
    """A section under a heading; nothing if there is nothing in it."""
    return f"<section>{heading(title, level)}{inside}</section>" if inside else ""


def fact_table(facts: Iterable[tuple[str, str]]) -> str:
    """Names and texts, one line each."""
    rows = "".join(
        f'<tr><th scope="row">{safe(name)}</th><td>{lines(text)}</td></tr>' for name, text in facts
    )
    return f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ""


def table(headings: Sequence[str], rows: Sequence[str], title: str = "") -> str:
    """A table of rows that are HTML already."""
    caption = f"<caption>{safe(title)}</caption>" if title else ""
    heads = "".join(f'<th scope="col">{safe(name)}</th>' for name in headings)
    inside = f"{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wide" tabindex="0"><table>{inside}</table></div>'


def bullets(texts: Iterable[str]) -> str:
    """Texts as a list."""
    items = "".join(f"<li>{lines(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def paragraphs(text: str) -> str:
    """Each line of a text as a paragraph."""
    return "".join(f"<p>{safe(line)}</p>" for line in text.splitlines() if line.strip())


def lines(text: str) -> str:
    """A text with its line breaks."""
    return "<br>".join(safe(line) for line in text.splitlines())


def safe_lines(text: str) -> str:
    """A text as HTML, where line breaks are kept as they are."""
    return "\n".join(safe(line) for line in text.split("\n"))


def safe(text: str) -> str:
    """A text as HTML."""
    return escape(clean(text))
