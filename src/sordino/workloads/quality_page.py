"""The quality of synthetic rows as one HTML page: what to use them for, the errors of all tables, the promise."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sordino.privacy.exact import four_digits
from sordino.privacy.html_page import framed
from sordino.workloads.synthetic import GOOD, POOR, VERDICTS

if TYPE_CHECKING:
    from sordino.workloads.synthetic import Synthetic, TableError

__all__ = ["page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; color: #1d1d1d;
background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #c9c9c9; }
p, ul { max-width: 46rem; } p.promise { background: #f3f3f3; padding: .8rem; } .wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .93rem; } .errors { width: 100%; max-width: 46rem; }
.errors th { white-space: nowrap; overflow-wrap: normal; }
th, td { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid #e1e1e1; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; overflow-wrap: normal; }
.good { color: #176b2c; } .fair { color: #7a5600; } .unknown { color: #5a5a5a; } .poor { color: #a1261b; font-weight: 600; }
.grid th, .grid td { border: 0; padding: 0; overflow-wrap: normal; white-space: nowrap; font-size: .78rem; }
.grid th { font-weight: normal; padding-right: .5rem; } .grid td { min-width: 2.1rem; height: 1.7rem; text-align: center; }
.grid .top { writing-mode: vertical-rl; transform: rotate(180deg); padding: .3rem 0 0; margin: auto; }
.grid thead th { vertical-align: bottom; text-align: left; } .grid tbody th { position: sticky; left: 0; background: #fff; }
summary { cursor: pointer; margin: .5rem 0; } @media print { details > * { display: block; } }
"""
_LISTED = 12


def page(rows: Synthetic) -> str:
    """The page: no script, nothing loaded, every name escaped."""
    report = rows.report
    parts = [
        f"<h1>{len(rows):,} synthetic rows of {escape(rows.table)}</h1>",
        f'<p class="promise">{escape(rows.privacy)}</p>',
    ]
    parts += [f"<p>{escape(note)}</p>" for note in rows.notes]
    parts.append(
        "<h2>What they are good for</h2><p>An error is the share of rows that would have to move for a table of the rows to "
        "be that of the data (the total variation): 0 % is the same table, 100 % has nothing in common. Each was measured "
        f"with noise; its interval holds {four_digits(100 * report.confidence)} % of the time.</p>"
    )
    summary = []
    for count, word in ((1, "single columns"), (2, "pairs of columns"), (3, "triples (a sample)")):
        own = report.ways(count)
        if own:
            numbers = [sum(one.verdict == verdict for one in own) for verdict in VERDICTS]
            cells = "".join(
                f'<td class="n">{n}</td>' for n in (_percent(report.mean(count) or 0.0), *numbers)
            )
            summary.append(f"<tr><td>{word}</td>{cells}</tr>")
    head = "".join(f'<th class="n">{word}</th>' for word in ("mean error", *VERDICTS))
    parts.append(
        f'<div class="wide"><table><tr><th>tables</th>{head}</tr>{"".join(summary)}</table></div>'
    )
    advice = {
        "good": f"the whole interval is at most {100 * GOOD:.0f} %. Use its counts and shares.",
        "fair": "neither good nor poor. Take it as a hint.",
        "unknown": "the interval reaches from good to poor: at this price it cannot be told. Do not rely on it.",
        "poor": f"the whole interval is above {100 * POOR:.0f} %. Ask the data itself, with <code>sordino query</code>; so, "
                "too, for tables of four columns and more, for rare values, and for single rows.",
    }  # fmt: skip
    lines = "".join(
        f'<li><b class="{verdict}">{verdict}</b>: {words}</li>' for verdict, words in advice.items()
    )
    parts.append(f"<ul>{lines}</ul>")
    if len(rows.values) > 1:
        parts.append(_grid(rows))
    titles = (("Single columns", 1), ("Pairs of columns", 2), ("Triples of columns, a sample", 3))
    parts += [_list(title, report.ways(count)) for title, count in titles]
    return framed(f"Quality of synthetic rows of {rows.table}", "".join(parts), _STYLE)


def _percent(share: float) -> str:
    return f"{100 * max(share, 0.0):.1f} %"


def _grid(rows: Synthetic) -> str:
    """The errors of all pairs as a grid, darker where they are larger; single columns on the diagonal."""
    names = list(rows.values)
    known = {one.columns: one for one in rows.report.tables if len(one.columns) < 3}
    lines = []
    for a in names:
        cells = ""
        for b in names:
            one = known.get((a,) if a == b else (a, b)) or known.get((b, a))
            shade = 0.0 if one is None else min(1.0, one.error / (2 * POOR))
            text = "" if one is None else f"{100 * one.error:.0f}"
            cells += f'<td style="background: rgba(200, 60, 20, {0.8 * shade:.2f})">{text}</td>'
        lines.append(f'<tr><th scope="row">{escape(a)}</th>{cells}</tr>')
    top = "".join(f'<th scope="col"><div class="top">{escape(name)}</div></th>' for name in names)
    return (
        "<h2>All pairs</h2><p>Errors in percent, darker where they are larger; on the diagonal those of single columns.</p>"
        f'<div class="wide"><table class="grid"><thead><tr><th></th>{top}</tr></thead><tbody>{"".join(lines)}</tbody>'
        "</table></div>"
    )


def _list(title: str, tables: tuple[TableError, ...]) -> str:
    """All tables with their errors, the largest first; the end of a long list is folded."""
    if not tables:
        return ""
    lines = []
    for one in sorted(tables, key=lambda table: -table.error):
        names = " &times; ".join(map(escape, one.columns))
        interval = f"{100 * one.low:.1f} to {_percent(one.high)}"
        seen = "yes" if one.measured else "no"
        lines.append(f'<tr><td>{names}</td><td class="n">{_percent(one.error)}</td><td class="n">{interval}</td>'
                     f'<td class="{one.verdict}">{one.verdict}</td><td>{seen}</td></tr>')  # fmt: skip
    right = ' class="n"'
    words = {"table": "", "error": right, "interval": right, "verdict": "", "fitted": ""}
    head = "".join(f"<th{form}>{word}</th>" for word, form in words.items())

    def table(own: list[str]) -> str:
        return (
            f'<div class="wide"><table class="errors"><tr>{head}</tr>{"".join(own)}</table></div>'
        )

    first = 'The model was fitted to the tables that say "yes" in the last column.'
    found = f"<h2>{title}</h2><p>{first}</p>{table(lines[: _LISTED + 2])}"
    if len(lines) <= _LISTED + 2:
        return found
    rest = lines[_LISTED:]
    return (
        f"<h2>{title}</h2><p>{first}</p>{table(lines[:_LISTED])}<details><summary>{len(rest)} more, with smaller errors"
        f"</summary>{table(rest)}</details>"
    )
