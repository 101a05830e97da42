"""What is passed beside a question: its price, or the error that it may have, and how to answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, TypeVar, cast

from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, show

__all__ = ["DEFAULTS", "Offer", "takes_offer", "unknown_names"]


class Offer(TypedDict, total=False):
    """One of `epsilon` and `error`, and perhaps more; `Cost` checks it and says what each means."""

    epsilon: Number | None
    error: Number | Mapping[str, Number] | None
    confidence: Number
    mechanism: Literal["laplace", "gaussian"] | None
    rows: Number | None
    delta: Number | None
    nonnegative: bool
    bias: bool | None
    max_rows: int | None
    max_rows_per_group: int | None
    max_groups: int | None
    bounds: Literal["private"] | None


DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(Offer.__annotations__),
    "confidence": 0.95,
    "nonnegative": False,
}
_OTHER_WORDS = {
    **dict.fromkeys(("budget", "price", "privacy", "cost", "e", "ε"), "epsilon"),
    **dict.fromkeys(("accuracy", "precision", "margin", "half_width", "max_error"), "error"),
    **dict.fromkeys(("alpha", "level", "interval"), "confidence"),
    **dict.fromkeys(("noise", "method", "family"), "mechanism"),
    **dict.fromkeys(("key_delta", "reserved_delta", "δ"), "delta"),
}
_Method = TypeVar("_Method", bound=Callable[..., Any])


def takes_offer(method: _Method) -> _Method:
    """Name all parts of an offer in the signature that `help` and completion show of a method with `**offer`."""
    signature = inspect.signature(method)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    named = [
        inspect.Parameter(
            name,
            kind,
            default=DEFAULTS[name],
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in Offer.__annotations__.items()
    ]
    free = [p for p in own if p.kind is not kind]

    @functools.wraps(method)
    def expecting_names(*given: Any, **options: Any) -> Any:
        if len(given) > len(free):
            shown = ", ".join(show(value) for value in given[len(free) :])
            rule = "what is passed beside a question has a name"
            raise InvalidInput(shown, rule, "Write epsilon=0.1, or error=50.")
        return method(*given, **options)

    whole = signature.replace(parameters=[*free, *named, *(p for p in own if p.kind is kind)])
    setattr(expecting_names, "__signature__", whole)  # noqa: B010
    return cast("_Method", expecting_names)


def unknown_names(given: Mapping[str, object]) -> InvalidInput:
    """The refusal of what is no part of an offer."""
    name, value = next(iter(given.items()))
    near = _OTHER_WORDS.get(name.casefold()) or next(
        iter(_begins(name) or get_close_matches(name, DEFAULTS, 1)), None
    )
    known = ", ".join(DEFAULTS)
    hint = f"Did you mean {near}? " if near else ""
    return InvalidInput(
        f"{name}={show(value)}", f"a question takes no {name!r}", f"{hint}It takes {known}."
    )


def _begins(name: str) -> list[str]:
    return [known for known in DEFAULTS if len(name) > 1 and known.startswith(name.casefold())]
