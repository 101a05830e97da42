"""Templates to HTML. Every value is escaped; a name that a template does not get is an error, not an empty place."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sordino.server.web.site.static_files import static_address

__all__ = ["rendered"]


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    found.filters |= {"number": number, "percent": percent, "moment": moment, "python": repr}
    found.globals |= {"static": static_address}
    return found


def rendered(template: str, values: dict[str, Any]) -> str:
    """The page."""
    return _environment().get_template(template).render(values)


def number(value: Any, digits: int = 6) -> Markup:
    """A number for the eye; a script writes it in the reader's own locale."""
    exact = Fraction(value)
    if exact.denominator == 1 and abs(exact) < 10**15:
        shown = f"{int(exact):,}"
    else:
        shown = f"{float(exact):,.{digits}g}"
        if "e" in shown:
            shown = f"{float(exact):.{digits}g}".replace("e-0", "e-").replace("e+0", "e+")
    return Markup('<data value="{}">{}</data>').format(f"{float(exact):.15g}", shown)


def percent(share: Any) -> Markup:
    """A part of a whole, in percent."""
    part = 100 * float(share)
    digits = 0 if part in (0, 100) else 1 if part >= 0.1 else 3
    shown = f"{part:.{digits}f} %"
    return Markup('<data value="{}" data-style="percent" data-digits="{}">{}</data>').format(
        f"{float(share):.15g}", digits, shown
    )


def moment(seconds: float) -> Markup:
    """A moment, in UTC; a script writes it in the reader's own time."""
    found = datetime.fromtimestamp(seconds, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        found.isoformat(timespec="seconds"), f"{found:%Y-%m-%d %H:%M} UTC"
    )
