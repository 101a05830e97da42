"""Which names are one: SQL does not see case, and nobody sees how a letter with an accent is composed in Unicode."""

from __future__ import annotations

import unicodedata

__all__ = ["folded", "lowered"]


def folded(name: str) -> str:
    r"""Equal for two names that could be taken for one another.

    Example:
        >>> folded("Stra\u00dfe") == folded("STRASSE"), folded("caf\u00e9") == folded("CAFE\u0301")
        (True, True)
    """
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def lowered(name: str) -> str:
    r"""Equal for two spellings of one name: other letters, such as \u00df and ss, make another name.

    Example:
        >>> lowered("stra\u00dfe") == lowered("strasse"), lowered("caf\u00e9") == lowered("CAFE\u0301")
        (False, True)
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())
