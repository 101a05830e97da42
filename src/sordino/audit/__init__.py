"""Is it true? Black-box, record-and-replay and exact checks of privacy claims, our own and others'.

The room can be called: `sordino.audit(mechanism, d1, d2, epsilon=1)`; `inspect.signature(sordino.audit)` names all
options. Its other checks are `sordino.audit.replay`, `exact`, `law`, `training` and `zoo`, each with help of its own.
"""

import sys
from inspect import signature
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A package that is also its own main function."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from sordino.audit.entry import audit

        return audit(*arguments, **named)

    @property
    def __signature__(self) -> Any:
        from sordino.audit.sampled.black_box import black_box

        return signature(black_box)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from sordino.audit.entry import audit

        try:
            return getattr(audit, name)
        except AttributeError:
            raise AttributeError(f"sordino.audit has no {name!r}") from None


sys.modules[__name__].__class__ = _Room
