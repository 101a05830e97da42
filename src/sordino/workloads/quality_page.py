"""The quality of synthetic rows as one HTML page: what to use them for, the errors of all tables, the promise."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sordino.privacy.exact import four_digits

if TYPE_CHECKING:
    from sordino.workloads.synthetic import Synthetic, TableError

__all__ = ["page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .2rem .6rem; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } .grid td { width: 2.2rem; height: 1.6rem; text-align: center;
font-size: 11px; padding: 0; } .grid th { font-weight: normal; font-size: 12px; } .grid th.top { writing-mode: vertical-rl; }
.good { color: #176b2c; } .fair { color: #8a6100; } .poor { color: #a11; } p.promise { background: #f3f3f3; padding: .8rem; }
"""


def page(rows: Synthetic) -> str:
    """The page: no script, nothing loaded, every name escaped."""
    report = rows.report
    parts = [
        f"<h1>{len(rows):,} synthetic rows of {escape(rows.table)}</h1>",
        f'<p class="promise">{escape(rows.privacy)}</p>',
    ]
    parts += [f"<p>{escape(note)}</p>" for note in rows.notes]
    parts.append("<h2>What they are good for</h2><p>An error is the total variation between a table of the rows and the "
                 f"same table of the data: 0 is equal, 1 has nothing in common. Each was measured with noise; its interval "
                 f"holds {four_digits(100 * report.confidence)} % of the time.</p>")  # fmt: skip
    summary = []
    for count, word in ((1, "single columns"), (2, "pairs of columns"), (3, "triples (a sample)")):
        own = report.ways(count)
        if own:
            numbers = [sum(one.verdict == verdict for one in own) for verdict in ("good", "fair", "poor")]
            cells = "".join(f'<td class="n">{n}</td>' for n in (four_digits(max(report.mean(count) or 0.0, 0.0)), *numbers))
            summary.append(f"<tr><td>{word}</td>{cells}</tr>")
    head = "".join(f"<th>{word}</th>" for word in ("tables", "mean error", "good", "fair", "poor"))
    parts.append(f"<table><tr>{head}</tr>{''.join(summary)}</table>")
    parts.append("<p>Use counts and shares of <b>good</b> tables; take <b>fair</b> ones as a hint; ask the data itself, "
                 "with <code>sordino query</code>, where a table is <b>poor</b>, for tables of four columns and more, for "
                 "rare values, and for single rows.</p>")  # fmt: skip
    parts.append(_grid(rows))
    parts += [
        _list(f"{word} of columns", report.ways(count)) for count, word in ((1, "Tables"), (2, "Pairs"), (3, "Triples"))
    ]
    title = f"Quality of synthetic rows of {escape(rows.table)}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _grid(rows: Synthetic) -> str:
    """The errors of all pairs as a grid, darker where they are larger; single columns on the diagonal."""
    names = list(rows.values)
    known = {one.columns: one for one in rows.report.tables if len(one.columns) < 3}
    lines = []
    for a in names:
        cells = ""
        for b in names:
            one = known.get((a,) if a == b else (a, b)) or known.get((b, a))
            shade = 0.0 if one is None else min(1.0, one.error / 0.3)
            text = "" if one is None else f"{100 * one.error:.0f}"
            cells += f'<td style="background: rgba(200, 60, 20, {shade:.2f})">{text}</td>'
        lines.append(f"<tr><th>{escape(a)}</th>{cells}</tr>")
    top = "".join(f'<th class="top">{escape(name)}</th>' for name in names)
    return f'<h2>All pairs, in percent</h2><table class="grid"><tr><th></th>{top}</tr>{"".join(lines)}</table>'


def _list(title: str, tables: tuple[TableError, ...]) -> str:
    if not tables:
        return ""
    lines = []
    for one in sorted(tables, key=lambda table: -table.error):
        names = escape(" x ".join(one.columns))
        interval = f"{four_digits(one.low)} to {four_digits(one.high)}"
        seen = "measured" if one.measured else ""
        lines.append(f'<tr><td>{names}</td><td class="n">{four_digits(one.error)}</td><td class="n">{interval}</td>'
                     f'<td class="{one.verdict}">{one.verdict}</td><td>{seen}</td></tr>')  # fmt: skip
    head = "".join(f"<th>{word}</th>" for word in ("table", "error", "interval", "verdict", ""))
    return f"<h2>{title}</h2><table><tr>{head}</tr>{''.join(lines)}</table>"
