"""A picture: an Altair chart, drawn here and now, so that what is saved or shown runs no script and loads nothing.

Altair's own HTML pages and notebook output put the texts of the data, unescaped, into a script beside programs from the
network. A key such as `</script><svg onload=...>` would run there. Here a page holds only the finished drawing.
"""

from __future__ import annotations

import colorsys
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput
from sordino.privacy.html_page import framed

__all__ = [
    "ENDINGS",
    "Picture",
    "check_ending",
    "colours",
    "drawn",
    "expect_docstrings",
    "needs_altair",
]

ENDINGS = (".png", ".svg", ".html", ".json")
_TEN = (
    "#4c78a8",
    "#f58518",
    "#e45756",
    "#72b7b2",
    "#54a24b",
    "#eeca3b",
    "#b279a2",
    "#ff9da6",
    "#9d755d",
    "#bab0ac",
)


def colours(count: int) -> list[str]:
    """As many colours, no two alike: ten well-known ones, or hues all around with three shades by turns."""
    if count <= len(_TEN):
        return list(_TEN[:count])
    shades = (0.42, 0.58, 0.72)
    rgb = [colorsys.hls_to_rgb(i / count, shades[i % 3], 0.65) for i in range(count)]
    return ["#" + "".join(f"{round(255 * part):02x}" for part in each) for each in rgb]


@dataclass(frozen=True, eq=False)
class Picture:
    """A chart that can be saved as PNG, SVG, HTML or JSON, and that notebooks show.

    `chart` is the Altair chart, to go on with; what Altair itself saves or shows of it is not made safe.
    """

    chart: Any

    def save(self, path: str | Path) -> None:
        """Write it to a file; the ending says how."""
        check_ending(path)
        Path(path).write_bytes(self.rendered(Path(path).suffix))

    def rendered(self, ending: str) -> bytes:
        """What a file with this ending holds."""
        match ending.lower():
            case ".png":
                file = io.BytesIO()
                self._draw(file, "png", scale_factor=2)
                return file.getvalue()
            case ".svg":
                return self.svg().encode()
            case ".html":
                return self._page().encode()
            case ".json":
                return f"{json.dumps(self.to_dict(), indent=2)}\n".encode()
            case _:
                raise _unknown(f"ending {ending!r}")

    def svg(self) -> str:
        """One `svg` element, all texts escaped."""
        file = io.StringIO()
        self._draw(file, "svg")
        return file.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The chart as a Vega-Lite specification."""
        specification: dict[str, Any] = self.chart.to_dict()
        return specification

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"Picture({self._title()!r})"

    def _title(self) -> str:
        title = self.to_dict().get("title", "")
        text = title.get("text", "") if isinstance(title, dict) else title
        return " ".join(text) if isinstance(text, list) else str(text)

    def _page(self) -> str:
        return framed(self._title(), self.svg(), "svg { max-width: 100%; height: auto; }")

    def _draw(self, file: io.IOBase, kind: str, **options: Any) -> None:
        if find_spec("vl_convert") is None:  # Altair is there, and its converter is not
            raise _missing()
        self.chart.save(file, format=kind, **options)


def drawn(draw: Callable[[], Picture], path: str | Path | None) -> Picture:
    """A picture, saved if there is a path; a path that is none of a picture is refused before it is drawn."""
    if path is not None:
        check_ending(path)
    picture = draw()
    if path is not None:
        picture.save(path)
    return picture


def needs_altair() -> Any:
    """Altair, or how to get it."""
    expect_docstrings()
    try:
        import altair as alt
    except ImportError as error:
        raise _missing() from error
    return alt


def expect_docstrings() -> None:
    """Refuse a Python that leaves docstrings out: Altair makes its methods of them."""
    if sys.flags.optimize > 1:
        raise InvalidInput(
            "python -OO",
            "pictures need Altair, which cannot be loaded without docstrings",
            "Run Python without it, or with PYTHONOPTIMIZE=1.",
        )


def check_ending(path: str | Path) -> None:
    """Refuse a path whose ending is not one of a picture."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise _unknown(f"path={str(path)!r}")


def _unknown(value: str) -> InvalidInput:
    return InvalidInput(
        value, f"the ending must be one of {', '.join(ENDINGS)}", "Try picture.png."
    )


def _missing() -> InvalidInput:
    return InvalidInput("plot()", "pictures need Altair", "Install it: pip install 'sordino[plot]'")
