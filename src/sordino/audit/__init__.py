"""Is it true? Black-box, record-and-replay and exact checks of privacy claims, our own and others'.

The room can be called: `sordino.audit(mechanism, d1, d2, epsilon=1)`; its other checks are `sordino.audit.replay`,
`sordino.audit.exact`, `sordino.audit.law` and `sordino.audit.zoo` (see `entry.py`).
"""

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A package that is also its own main function."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from sordino.audit.entry import audit

        return audit(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from sordino.audit.entry import audit

        try:
            return getattr(audit, name)
        except AttributeError:
            raise AttributeError(f"sordino.audit has no {name!r}") from None


sys.modules[__name__].__class__ = _Room
