"""Declaring a table in the browser. The file stays with its owner: only names and types of columns are sent here."""

from __future__ import annotations

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.server.web.declaring import (
    KINDS,
    MOST_COLUMNS,
    Draft,
    draft_of_columns,
    draft_of_form,
    effects,
    with_first_unit,
)
from sordino.server.web.site.visit import Values, Visit

__all__ = ["fill_in", "show"]


async def show(_: Visit) -> Values:
    """The first step: which columns there are."""
    return _page(None)


async def fill_in(visit: Visit) -> Values:
    """The choices; and what they mean, once there are any."""
    fields = {name: values[-1] for name, values in visit.fields.items()}
    if "columns" in fields:
        draft = draft_of_columns(
            fields.get("table", "").strip() or "data",
            fields.get("source", "").strip(),
            fields["columns"],
        )
        return _page(with_first_unit(draft), first=True)
    draft = draft_of_form(fields)
    try:
        dataset = draft.dataset()
    except (InvalidDeclaration, InvalidInput) as error:
        return _page(draft, wrong=error)
    return {
        **_page(draft),
        "toml": draft.toml,
        "effects": await effects(draft, dataset, visit.desk.planner),
    }


def _page(
    draft: Draft | None, *, wrong: InvalidInput | None = None, first: bool = False
) -> dict[str, object]:
    return {
        "draft": draft, "kinds": KINDS, "most": MOST_COLUMNS, "wrong": wrong, "first": first, "toml": "", "effects": [],
    }  # fmt: skip
