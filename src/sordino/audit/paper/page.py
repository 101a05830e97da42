"""Reports as one HTML page that needs nothing else: for a privacy officer to read, print and file.

Every text is escaped, and there are no scripts. Styles (`page.css`) are bound to one class: a notebook keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from sordino.answer.text import clean
from sordino.audit.paper.phrases import (
    METHODS,
    WORD,
    at_least,
    certainty,
    claim,
    event_name,
    headline,
    needed,
    ordered,
    says,
    tally,
)
from sordino.audit.paper.report import Dossier, Figure, Grid, Report, Verdict
from sordino.audit.paper.svg import drawing
from sordino.privacy.picture import PAGE_POLICY

__all__ = ["dossier_page", "report_page"]

_SIGN = {Verdict.HOLDS: "✓", Verdict.VIOLATED: "✗", Verdict.UNDECIDED: "?"}
_LOOK = {Verdict.HOLDS: "good", Verdict.VIOLATED: "bad", Verdict.UNDECIDED: "open"}


def report_page(report: Report) -> str:
    """The page of one report."""
    return _page(f"Privacy audit: {report.name}", _body(report, 1))


def dossier_page(dossier: Dossier) -> str:
    """The page of several reports: a table of all, then each of them."""
    word = "PASSED" if dossier.passed else "FAILED"
    look, sign = ("good", "✓") if dossier.passed else ("bad", "✗")
    articles = "".join(
        f'<article id="report-{number}">{_body(report, 2)}<p><a href="#top">Back to the overview</a></p></article>'
        for number, report in enumerate(dossier.reports, 1)
    )
    return _page(
        dossier.title,
        f'<header id="top"><p class="kind">Privacy audits</p><h1>{_safe(dossier.title)}</h1></header>'
        f"{_banner(look, sign, word, f'{tally(dossier)}.')}"
        f"{_section('Overview', _overview(dossier))}"
        f"{_section('How it was done', _facts(dossier.facts))}"
        f"{_section('Notes', _list(dossier.notes))}{articles}",
    )


def _page(title: str, body: str) -> str:
    style = Path(__file__).with_name("page.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{PAGE_POLICY}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title><style>\n{style}</style></head>\n"
        f'<body><main class="so-audit">{body}</main></body></html>\n'
    )


def _body(report: Report, level: int) -> str:
    """Everything about one report; headings start at `level`."""
    said, unsaid = says(report)
    top, sub = f"h{level}", level + 1
    meaning = (
        f'<div class="columns"><div>{_heading("What this says", sub)}{_list(said)}</div>'
        f"<div>{_heading('What it does not say', sub)}{_list(unsaid)}</div></div>"
    )
    pictures = "".join(map(_figure, report.figures))
    made = " · ".join(filter(None, (f"Sordino {report.version}" if report.version else "Sordino", report.created)))
    return "".join(
        (
            f'<p class="kind">Privacy audit · {_safe(report.method)}</p><{top}>{_safe(report.name)}</{top}>',
            _banner(_LOOK[report.verdict], _SIGN[report.verdict], WORD[report.verdict], f"{headline(report)}."),
            _paragraphs(report.summary),
            meaning,
            _section("Claim and finding", _facts(_claim(report)), sub),
            _section(
                event_name(report),
                f'<div class="witness">{_paragraphs(report.witness)}</div>' if report.witness else "",
                sub,
            ),
            _section("Evidence", f'<div class="figures">{pictures}</div>' if pictures else "", sub),
            "".join(map(_grid, report.grids)),
            _section("How it was done", f"<p>{_safe(METHODS[report.method])}</p>{_facts(report.facts)}", sub),
            _section("Notes", _list(report.notes), sub),
            f"<footer>{_safe(made)}</footer>",
        )
    )


def _claim(report: Report) -> list[tuple[str, str]]:
    found = needed(report)
    rows = [
        ("Claimed", claim(report)),
        ("Found", f"{found} ({certainty(report)})" if found else ""),
        ("Confidence", "" if report.confidence is None else f"{100 * report.confidence:.10g} %"),
        ("Neighbours", report.relation),
    ]
    if report.pair is not None:
        rows += [("One input", report.pair[0]), ("The other", report.pair[1])]
    return [(name, text) for name, text in rows if text]


def _banner(look: str, sign: str, word: str, text: str) -> str:
    return f'<div class="verdict {look}"><strong>{sign} {word}</strong>{_safe(text)}</div>'


def _overview(dossier: Dossier) -> str:
    known = bool(dossier.expected)
    headings = ["Audit", *(["The claim is"] if known else []), "Verdict", "Claimed", "At least", "Witness"]
    rows = []
    for number, report, want, fine in ordered(dossier):
        least = at_least(report.epsilon_lower, report.epsilon) if needed(report) else ""
        verdict = f"{_SIGN[report.verdict]} {WORD[report.verdict].lower()}"
        flag = "" if fine else ' <span class="flag">(WRONG)</span>' if known else ""
        cells = [
            f'<th scope="row" class="name"><a href="#report-{number}">{_safe(report.name)}</a></th>',
            *([f"<td>{'true' if want else 'false'}</td>"] if known else []),
            f'<td class="short">{verdict}{flag}</td>',
            f'<td class="short">{_safe(claim(report))}</td><td class="short">{least}</td>',
            f"<td>{_safe('' if report.passed else report.witness or report.summary)}</td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return _table(headings, rows)


def _heading(text: str, level: int) -> str:
    return f"<h{level}>{_safe(text)}</h{level}>"


def _section(title: str, inside: str, level: int = 2) -> str:
    return f"<section>{_heading(title, level)}{inside}</section>" if inside else ""


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{_safe(name)}</th><td>{_lines(text)}</td></tr>' for name, text in facts)
    return f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ""


def _grid(grid: Grid) -> str:
    rows = [f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>" for row in grid.rows]
    return _table(grid.headings, rows, grid.title)


def _table(headings: Sequence[str], rows: Sequence[str], title: str = "") -> str:
    caption = f"<caption>{_safe(title)}</caption>" if title else ""
    heads = "".join(f'<th scope="col">{_safe(name)}</th>' for name in headings)
    return f'<div class="wide"><table>{caption}<thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _figure(figure: Figure) -> str:
    return f"<figure><figcaption>{_safe(figure.title)}</figcaption>{drawing(figure)}</figure>"


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{_lines(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_safe(line)}</p>" for line in text.splitlines() if line.strip())


def _lines(text: str) -> str:
    return "<br>".join(_safe(line) for line in text.splitlines())


def _safe(text: str) -> str:
    return escape(clean(text))
