"""Commands about a dataset of a server: the address stands where a declaration would,
and the token in the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from sordino.cli.budget_words import cost_words
from sordino.cli.streams import folded, say
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.answer.answer import Answer
    from sordino.answer.suggestion import Suggestion
    from sordino.client.remote_session import RemoteSession

    Paid = TypeVar("Paid", Answer, Suggestion)

__all__ = ["answered", "is_address", "preview", "preview_suggest", "show_budget"]


def is_address(file: str) -> bool:
    """Whether the word for a declaration is the address of a server."""
    return file.lower().startswith(("https://", "http://"))


def _opened(address: str, analyst: str | None) -> RemoteSession:
    from sordino.client.remote_session import connect

    if analyst is not None:
        rule = "a server knows who asks by the token"
        raise InvalidInput(
            f"--analyst {analyst!r}", rule, "Leave it out, and use the token of whoever asks."
        )
    return connect(address)


def preview(
    address: str,
    sql: str,
    offer: dict[str, Any],
    analyst: str | None,
    indent: int,
    *,
    show_sql: bool,
    details: bool,
) -> None:
    """What a question would cost."""
    with _opened(address, analyst) as session:
        plan = session.preview(sql, **offer)
    if show_sql:
        say(f"{plan.sql()};")
        return
    say(folded(f"{plan.explain(details=details)}\n  charged      nothing now", indent))
    if plan.answered_before:
        say("It was answered before: asking it again costs nothing, and gives the stored answer.")
    if plan.needs_approval:
        say("At this price it waits for the owner's approval.")


def preview_suggest(
    address: str, table: str | None, asked: dict[str, Any], analyst: str | None, indent: int
) -> None:
    """What a search for bounds would cost."""
    with _opened(address, analyst) as session:
        say(
            folded(f"{session.preview_suggest(table, **asked)}\n  charged      nothing now", indent)
        )


def answered(address: str, analyst: str | None, ask: Callable[[Any], Paid]) -> tuple[Paid, str]:
    """What a server answers, and what is to be said about its charge."""
    with _opened(address, analyst) as session:
        answer = ask(session)
    receipt = answer.receipt
    if receipt is None:
        return answer, "Nothing was charged."
    return (
        answer,
        f"Charged {cost_words(receipt.charge, None)} as entry {receipt.number}, unless it was answered before.",
    )


def show_budget(address: str, analyst: str | None, *, as_json: bool) -> None:
    """What is left."""
    with _opened(address, analyst) as session:
        found = session.budget
        name = session.name
    if as_json:
        import json

        say(json.dumps(found, indent=2))
        return
    say(f"Budget of {name}" + (" (made-up rows)" if found.get("dry_run") else ""))
    parts = {"whole": found["whole"]} if "whole" in found else {}
    parts |= {"yours": found} if "left_share" in found else {}
    for whose, part in parts.items():
        say(
            f"  {whose:<8} {100 * part['left_share']:.4g} % left of epsilon {part['epsilon']}, delta {part['delta']}"
        )
    for word, what in (("per_question", "a question"), ("per_day", "a day")):
        if found.get(word) is not None:
            say(f"  cap      epsilon {found[word]} for {what}")
    for analyst_name, part in sorted((found.get("by_analyst") or {}).items()):
        say(f"  {analyst_name}: {100 * part['left_share']:.4g} % left of epsilon {part['epsilon']}")
