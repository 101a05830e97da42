"""Reports as one HTML page that needs nothing else: for a privacy officer to read, print and file.

Every text is escaped, and there are no scripts.
"""

from __future__ import annotations

from sordino.audit.reporting.figures import drawing
from sordino.audit.reporting.phrases import (
    WORD,
    at_least,
    certainty,
    claim,
    event_name,
    headline,
    method,
    needed,
    ordered,
    says,
    tally,
)
from sordino.audit.reporting.report import Dossier, Figure, Grid, Report, Verdict
from sordino.privacy.html_page import (
    bullets,
    fact_table,
    heading,
    page,
    paragraphs,
    safe,
    section,
    table,
)

__all__ = ["told_page"]

_SIGN = {Verdict.HOLDS: "✓", Verdict.VIOLATED: "✗", Verdict.UNDECIDED: "?"}
_LOOK = {Verdict.HOLDS: "good", Verdict.VIOLATED: "bad", Verdict.UNDECIDED: "open"}


def told_page(told: Report | Dossier) -> str:
    """The page of a report; of a dossier a table of all, then each of them."""
    if isinstance(told, Dossier):
        return _dossier(told)
    return page(f"Privacy audit: {told.name}", _body(told, 1))


def _dossier(dossier: Dossier) -> str:
    word = "PASSED" if dossier.passed else "FAILED"
    look, sign = ("good", "✓") if dossier.passed else ("bad", "✗")
    articles = "".join(
        f'<article id="report-{number}">{_body(report, 2)}<p><a href="#top">Back to the overview</a></p></article>'
        for number, report in enumerate(dossier.reports, 1)
    )
    return page(
        dossier.title,
        f'<header id="top"><p class="kind">Privacy audits</p><h1>{safe(dossier.title)}</h1></header>'
        f"{_banner(look, sign, word, f'{tally(dossier)}.')}"
        f"{section('Overview', _overview(dossier))}"
        f"{section('How it was done', fact_table(dossier.facts))}"
        f"{section('Notes', bullets(dossier.notes))}{articles}",
    )


def _body(report: Report, level: int) -> str:
    """Everything about one report; headings start at `level`."""
    said, unsaid = says(report)
    top, sub = f"h{level}", level + 1
    meaning = (
        f'<div class="columns"><div>{heading("What this says", sub)}{bullets(said)}</div>'
        f"<div>{heading('What it does not say', sub)}{bullets(unsaid)}</div></div>"
    )
    pictures = "".join(map(_figure, report.figures))
    evidence = f'<div class="figures">{pictures}</div>' if pictures else ""
    witness = f'<div class="witness">{paragraphs(report.witness)}</div>' if report.witness else ""
    done = f"<p>{safe(method(report))}</p>{fact_table(report.facts)}"
    made = " · ".join(filter(None, (f"Sordino {report.version}".strip(), report.created)))
    verdict = report.verdict
    parts = (
        f'<p class="kind">Privacy audit · {safe(report.method)}</p><{top}>{safe(report.name)}</{top}>',
        _banner(_LOOK[verdict], _SIGN[verdict], WORD[verdict], f"{headline(report)}."),
        paragraphs(report.summary),
        meaning,
        section("Claim and finding", fact_table(_claim(report)), sub),
        section(event_name(report), witness, sub),
        section("Evidence", evidence, sub),
        *map(_grid, report.grids),
        section("How it was done", done, sub),
        section("Notes", bullets(report.notes), sub),
        f"<footer>{safe(made)}</footer>",
    )
    return "".join(parts)


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
    return f'<div class="verdict {look}"><strong>{sign} {word}</strong>{safe(text)}</div>'


def _overview(dossier: Dossier) -> str:
    known = bool(dossier.expected)
    truth = ["The claim is"] if known else []
    headings = ["Audit", *truth, "Verdict", "Claimed", "At least", "Witness"]
    rows = []
    for number, report, want, fine in ordered(dossier):
        least = at_least(report.epsilon_lower, report.epsilon) if needed(report) else ""
        verdict = f"{_SIGN[report.verdict]} {WORD[report.verdict].lower()}"
        flag = "" if fine else ' <span class="flag">(WRONG)</span>' if known else ""
        cells = [
            f'<th scope="row" class="name"><a href="#report-{number}">{safe(report.name)}</a></th>',
            *([f"<td>{'true' if want else 'false'}</td>"] if known else []),
            f'<td class="short">{verdict}{flag}</td>',
            f'<td class="short">{safe(claim(report))}</td><td class="short">{least}</td>',
            f"<td>{safe('' if report.passed else report.witness or report.summary)}</td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return table(headings, rows)


def _grid(grid: Grid) -> str:
    rows = [f"<tr>{''.join(f'<td>{safe(cell)}</td>' for cell in row)}</tr>" for row in grid.rows]
    return table(grid.headings, rows, grid.title)


def _figure(figure: Figure) -> str:
    return f"<figure><figcaption>{safe(figure.title)}</figcaption>{drawing(figure)}</figure>"
