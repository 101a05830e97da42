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
_RAISED = re.compile(
    rf"(?<=[\w)\]|′″*∞}}])\^(?:(?P<open>\()|(?P<plain>[-−+]?(?:\d+(?:\.\d+)?|[{_LETTER}]+)′?))"
)
_LOWERED = re.compile(
    rf"(?<![\w])(?P<base>[{_LETTER}]′?)_(?:(?P<open>[({{])|(?P<plain>[-−]?(?:\d+|∞|[{_LETTER}][{_LETTER}0-9]*)(?![\w(])))"
    rf"|(?<![\w])(?P<base1>[{_LETTER}])_(?P<plain1>[{_LETTER}0-9])(?=\()"
)
_LATEX = re.compile(
    r"(?<![\\\w$])\$(?P<block>\$)?(?P<latex>[^\s$](?:[^$\n]*[^\s$])?)\$(?(block)\$)(?![\w$])"
)
_BAR = re.compile(r"<mo[^>]*>(\||&#x0*7C;|∥|‖|&#x0*222[35];|&#x0*2016;|&#x0*2225;)</mo>")
_PAIRS = {"(": ")", "{": "}"}


def closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at `start`; -1 if none does."""
    depth, ends = 0, _PAIRS[text[start]]
    for place in range(start, len(text)):
        depth += (text[place] == text[start]) - (text[place] == ends)
        if not depth:
            return place
    return -1


def _found(m: re.Match[str], text: str) -> tuple[str, str, int] | None:
    """What a match has before it and as its script, and where that ends; None if a bracket is never closed."""
    found = m.groupdict()
    base = found.get("base") or found.get("base1") or ""
    if not found["open"]:
        return base, found.get("plain") or found["plain1"], m.end(0)
    close = closing(text, m.end(0) - 1)
    return None if close < 0 else (base, text[m.end(0) : close], close + 1)


def _filled(script: ET.Element, text: str) -> ET.Element:
    """An element with this text, in which powers may have powers;
    what else is in there (`code`) is left to Markdown.
    """
    script.text = text
    for pattern, tag in ((_RAISED, "sup"), (_LOWERED, "sub")):
        m = pattern.search(text)
        inner = _found(m, text) if m and "\x02" not in text else None
        if m and inner:
            script.text = text[: m.start(0)] + inner[0]
            below = _filled(ET.SubElement(script, tag), inner[1])
            below.tail = text[inner[2] :]
            break
    return script


class _Script(InlineProcessor):
    """A power or an index."""

    def __init__(self, pattern: re.Pattern[str], tag: str, md: Markdown) -> None:
        super().__init__(pattern.pattern, md)
        self.compiled_re, self._tag = pattern, tag

    def handleMatch(  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[ET.Element | None, int | None, int | None]:
        found = _found(m, data)
        if found is None:
            return None, None, None
        base, inner, end = found
        script = _filled(ET.Element(self._tag), inner)
        if not base:
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
        # or browsers take it for an operator
        made = _BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', made)
        return self.md.htmlStash.store(made), m.start(0), m.end(0)


class Formulas(Extension):
    """Powers, indices and LaTeX, everywhere but in code."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Latex(md), "latex", 185)  # after `code` (190), before escapes
        # after links, before emphasis
        md.inlinePatterns.register(_Script(_RAISED, "sup", md), "raised", 75)
        md.inlinePatterns.register(_Script(_LOWERED, "sub", md), "lowered", 74)


def makeExtension(**options: object) -> Formulas:  # noqa: N802
    """What Markdown asks an extension for."""
    return Formulas(**options)
