"""Objects whose noise and questions are counted once: never copied, stored, or used in another process."""

from __future__ import annotations

import os
from typing import Any, ClassVar, NoReturn

from sordino.errors import InvalidInput

__all__ = ["SingleUse"]


class SingleUse:
    """What belongs to the process that made it; a copy, or a forked child, could give its answers once more."""

    __slots__ = ("_process",)

    _counted: ClassVar[str] = "its noise must not be used twice"
    _instead: ClassVar[str] = "Make a new one there; it costs its epsilon again."

    def __init__(self) -> None:
        self._process = os.getpid()

    def _expect_own_process(self) -> None:
        if self._process != os.getpid():
            self._refuse("in another process than the one that made it")

    def _refuse(self, where: str) -> NoReturn:
        name = type(self).__name__
        value = f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
        raise InvalidInput(value, f"{self._counted}, so it cannot be used {where}", self._instead)

    def __copy__(self) -> NoReturn:
        self._refuse("in a copy")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self._refuse("in a copy")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._refuse("in a copy or another process")
