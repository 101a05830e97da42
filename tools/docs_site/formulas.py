"""Formulas in pages, made when the site is built: a reader's browser loads nothing for them.

Our proofs are written in plain letters, to be read beside the code: e^(−|x|/b), H_ε(v). Here powers are raised and
indices lowered. `$...$` is LaTeX and becomes MathML, which browsers draw by themselves.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert
from markdown.inlinepatterns import InlineProcessor

from markdown import Extension, Markdown

__all__ = ["makeExtension"]

_LETTER = "A-Za-zα-ωΑ-Ωℓ"
_RAISED = re.compile(rf"(?<=[\w)\]|′″*∞}}])\^(?:(?P<open>\()|(?P<plain>[-−+]?(?:\d+(?:[./]\d+)?|[{_LETTER}]+)′?))")
_LOWERED = re.compile(
    rf"(?<![\w])(?P<base>[{_LETTER}]′?)_(?:(?P<open>[({{])|(?P<plain>[-−]?(?:\d+|∞|[{_LETTER}][{_LETTER}0-9]*)(?![\w(])))"
    rf"|(?<![\w])(?P<base1>[{_LETTER}])_(?P<plain1>[{_LETTER}0-9])(?=\()"
)
_LATEX = re.compile(r"(?<![\\\w$])\$(?P<block>\$)?(?P<latex>[^$\n]+?)\$(?(block)\$)(?![\w$])")
_PAIRS = {"(": ")", "{": "}"}


def closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at `start`; -1 if none does."""
    depth, ends = 0, _PAIRS[text[start]]
    for place in range(start, len(text)):
        depth += (text[place] == text[start]) - (text[place] == ends)
        if not depth:
            return place
    return -1


class _Script(InlineProcessor):
    """A power or an index; what is inside is read again, so that powers may have powers."""

    def __init__(self, pattern: re.Pattern[str], tag: str, md: Markdown) -> None:
        super().__init__(pattern.pattern, md)
        self.compiled_re, self._tag = pattern, tag

    def handleMatch(  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[ET.Element | None, int | None, int | None]:
        found = m.groupdict()
        inner, end = found.get("plain") or found.get("plain1"), m.end(0)
        if found["open"]:
            close = closing(data, m.end(0) - 1)
            if close < 0:
                return None, None, None
            inner, end = data[m.end(0) : close], close + 1
        script = ET.Element(self._tag)
        script.text = inner
        base = found.get("base") or found.get("base1")
        if base is None:
            return script, m.start(0), end
        whole = ET.Element("span")
        whole.text = base
        whole.append(script)
        return whole, m.start(0), end


class _Latex(InlineProcessor):
    def __init__(self, md: Markdown) -> None:
        super().__init__(_LATEX.pattern, md)
        self.compiled_re = _LATEX

    def handleMatch(  # noqa: N802
        self,
        m: re.Match[str],
        data: str,  # noqa: ARG002
    ) -> tuple[str, int, int]:
        made = convert(m["latex"], display="block" if m["block"] else "inline")
        return self.md.htmlStash.store(made), m.start(0), m.end(0)


class Formulas(Extension):
    """Powers, indices and LaTeX, everywhere but in code."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Latex(md), "latex", 185)  # after `code` (190), before escapes
        md.inlinePatterns.register(_Script(_RAISED, "sup", md), "raised", 75)  # after links, before emphasis
        md.inlinePatterns.register(_Script(_LOWERED, "sub", md), "lowered", 74)


def makeExtension(**options: object) -> Formulas:  # noqa: N802
    """What Markdown asks an extension for."""
    return Formulas(**options)
