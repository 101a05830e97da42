"""Small words beside names and numbers that are only known later: a row or an id, 1 row or 2 rows."""

from __future__ import annotations

import re

__all__ = ["a_or_an", "counted"]

_LIKE_YOU = re.compile(r"(?:uni|us[ei]|uti|uu|eu)|ones?(?:_|$)|once(?:_|$)|u[a-z]{0,2}(?:_|$)")
_SILENT = re.compile(r"hour|honest|honou?r|heir")
_LETTERS_LIKE_EX = "AEFHILMNORSX"


def a_or_an(noun: str) -> str:
    """A noun with its article, by how it sounds as far as its letters tell.

    Example:
        >>> a_or_an("row"), a_or_an("id"), a_or_an("user_id"), a_or_an("MRN")
        ('a row', 'an id', 'a user_id', 'an MRN')
    """
    return f"{'an' if _sounds_open(noun.lstrip(chr(34) + '_')) else 'a'} {noun}"


def _sounds_open(noun: str) -> bool:
    """Whether a noun starts with the sound of a vowel."""
    first = re.split(r"[^A-Za-z]", noun, maxsplit=1)[0]
    if first.isupper() and not set(first[1:]) & set("AEIOU"):
        return first[0] in _LETTERS_LIKE_EX
    lower = noun.lower()
    if lower[:1] in set("aeiou"):
        return _LIKE_YOU.match(lower) is None
    return _SILENT.match(lower) is not None


def counted(number: int, noun: str, plural: str = "") -> str:
    """A whole number with its noun.

    Example:
        >>> counted(1, "row"), counted(1200, "row"), counted(0, "entry", "entries")
        ('1 row', '1,200 rows', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
