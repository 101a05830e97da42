"""Wrap the prose of Markdown pages: `python -m tools.rewrap PAGE ...`, before a merge or after one.

Only paragraphs and items with a line that is too long are touched. Code, tables, headings and formulas that stand by
themselves stay as they are, and no line is broken within `code`, a formula or the address of a link.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["WIDTH", "long_lines", "rewrapped"]

WIDTH = 119
_FENCE = re.compile(r"\s*(```|~~~)")
_FIXED = re.compile(r"\s*(\||#{1,6} |<|\[[^\]]+\]:|-{3,}\s*$|={3,}\s*$|\$\$)")
_ITEM = re.compile(r"(\s*(?:>\s?)*\s*)((?:[-*+]|\d+[.)])\s+)?")
_SPANS = re.compile(r"`[^`]+`|\$[^$\n]+\$|\[[^]\n]{1,60}\]\([^)\s]+\)|\]\([^)\s]+\)")
_STARTS = re.compile(r"(?:[-+*#>|=]+|\d+[.)])$")
"""Words that would mean something else at the beginning of a line."""
_END, _BEGINNING = re.compile(r"[.!?∎]\)?$"), re.compile(r"[A-ZÀ-Þ*(`\[_]")
_GAP = "\x00"


def _blocks(text: str) -> Iterator[tuple[bool, list[str]]]:
    """The lines of a page, together where they are one paragraph or item; with whether that may be wrapped."""
    fenced, block = False, list[str]()
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
            kind = "fixed"
        elif (
            fenced
            or not line.strip()
            or _FIXED.match(line)
            or (line.startswith("    ") and not block)
        ):
            kind = "fixed"
        else:
            kind = "item" if (_ITEM.match(line) or [""] * 3)[2] else "prose"
        if block and (kind != "prose" or block[-1].endswith("  ")):
            yield True, block
            block = []
        if kind == "fixed":
            yield False, [line]
        else:
            block.append(line)
    if block:
        yield True, block


def _wrapped(block: list[str]) -> list[str]:
    """The lines of a paragraph or item, none longer than need be; a sentence that began a line still does."""
    found = _ITEM.match(block[0])
    margin, mark = (found[1], found[2] or "") if found else ("", "")
    indent = margin + " " * len(mark)
    sentences = [block[0][len(margin + mark) :].strip()]
    for line in (re.sub(r"^\s*(?:>\s?)*", "", line).strip() for line in block[1:]):
        if _END.search(sentences[-1]) and _BEGINNING.match(line):
            sentences.append(line)
        else:
            sentences[-1] += f" {line}"
    lines = [line for sentence in sentences for line in _filled(sentence, WIDTH - len(indent))]
    ending = "  " if block[-1].endswith("  ") else ""
    return [
        (indent if place else margin + mark) + line for place, line in enumerate(lines[:-1])
    ] + [(indent if len(lines) > 1 else margin + mark) + lines[-1] + ending]


def _filled(text: str, width: int) -> list[str]:
    words, lines, current = (
        _SPANS.sub(lambda span: span[0].replace(" ", _GAP), text).split(),
        list[str](),
        "",
    )
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else ""
        # what must not begin a line comes along
        needed = len(word) + (1 + len(after) if _STARTS.match(after) else 0)
        if current and len(current) + 1 + needed > width and not _STARTS.match(word):
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [line.replace(_GAP, " ") for line in (*lines, current)]


def rewrapped(text: str) -> str:
    """The page with its prose wrapped where a line was too long."""
    lines = []
    for prose, block in _blocks(text):
        lines += _wrapped(block) if prose and any(len(line) > WIDTH for line in block) else block
    return "\n".join(lines)


def long_lines(text: str) -> list[str]:
    """Lines of prose that are too long and could be wrapped."""
    return sorted(set(text.split("\n")) - set(rewrapped(text).split("\n")))


def main() -> None:
    for name in sys.argv[1:]:
        page = Path(name)
        before = page.read_text()
        after = rewrapped(before)
        assert "".join(before.split()) == "".join(after.split()), (
            f"{name}: more than white space would change"
        )
        page.write_text(after)


if __name__ == "__main__":
    main()
