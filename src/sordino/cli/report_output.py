"""Where the report of an audit goes: to standard output or a file, as text, JSON or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from sordino.cli.output import real_place, write_file
from sordino.cli.streams import note, put_text
from sordino.errors import InvalidInput
from sordino.privacy.paths import not_writable

if TYPE_CHECKING:
    from sordino.audit.reporting.report import Dossier, Report

__all__ = ["Filing", "Form"]

_WIDTH = 100
"""Of text in a file."""


class Form(StrEnum):
    """How a report is written."""

    text = "text"
    json = "json"
    html = "html"


_ENDINGS = {".html": Form.html, ".htm": Form.html, ".json": Form.json, ".txt": Form.text}


@dataclass(frozen=True)
class Filing:
    """How and where a report will be written, settled before the work, which may take long."""

    form: Form
    path: str | None

    @staticmethod
    def chosen(form: Form | None, output: str | None) -> Filing:
        """What the options mean; refused if the file could not be written, or may be no report."""
        if output is None or output == "-":
            return Filing(form or Form.text, None)
        ending, target = Path(output).suffix.lower(), real_place(output)
        fault = "it is not the path of a file" if target is None else not_writable(target)
        if target is not None and ending not in _ENDINGS:
            # so that no program and no data are overwritten
            fault = f"a report ends in {', '.join(_ENDINGS)}"
        if fault:
            raise InvalidInput(
                f"--output {output!r}",
                fault,
                "Write --output report.html, in a folder that exists.",
            )
        return Filing(form or _ENDINGS[ending], output)

    def write(self, result: Report | Dossier) -> None:
        """Write it; of one that goes to a file, standard error tells the verdict."""
        if self.path is not None:
            from sordino.audit.reporting.text import verdict_line

            write_file(
                self.path, f"{self._rendered(result, _WIDTH).rstrip()}\n".encode(), "--output"
            )
            note(verdict_line(result))
        elif self.form is Form.text:
            from sordino.cli.page import Page

            page = Page()
            page.draw(
                self._rendered(result, page.width), "bold green" if result.passed else "bold red"
            )
        else:
            put_text(f"{self._rendered(result, _WIDTH).rstrip()}\n")

    def _rendered(self, result: Report | Dossier, width: int) -> str:
        match self.form:
            case Form.json:
                return result.to_json()
            case Form.html:
                return result.to_html()
            case Form.text:
                return result.to_text(width)
