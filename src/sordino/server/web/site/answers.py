"""One answer: table, chart, what it means, what it cost; asked again for a better one; as a file; on the board."""

from __future__ import annotations

import re
from functools import partial
from itertools import compress
from typing import Any

from fastapi import Response

from sordino.errors import SordinoError
from sordino.server.accounts.secrets_of_people import new_id
from sordino.server.accounts.store import Pin, Question
from sordino.server.web.drawing import arrow, csv
from sordino.server.web.refusals import Refused, as_problem
from sordino.server.web.site.answer_view import view
from sordino.server.web.site.budget_view import budget_view
from sordino.server.web.site.visit import Shown, Values, Visit, go_to

__all__ = ["again", "file", "person_of", "pin", "show"]

_PATIENCE = 4.0
_LONGEST_TITLE = 200


async def show(visit: Visit) -> Values:
    """An answer, or that it is still on its way."""
    return await _values(visit, await _question(visit))


async def again(visit: Visit) -> Shown | Response:
    """The same question once more, for another price: its answer is combined with those before."""
    question = await _question(visit)
    offer: dict[str, Any] = {
        name: value for name, value in question.offer.items() if name not in ("epsilon", "error")
    }
    try:
        offer["epsilon"] = visit.field("epsilon").strip()
        better = await visit.desk.ask(
            visit.who, question.dataset, question.kind, question.question, offer, key=visit.field("key") or None,
            reason=visit.field("reason"), fresh=True,
        )  # fmt: skip
    except (Refused, SordinoError) as refused:
        problem = as_problem(refused)
        return Shown(
            {**await _values(visit, question), "problem": problem}, int(str(problem["status"]))
        )
    return go_to("answers", question.dataset, better.id)


async def file(visit: Visit) -> Response:
    """The answer as it is shown, as a file."""
    form = visit.part("form")
    if form not in ("csv", "arrow"):
        raise Refused(404, "not-found", "an answer is given as csv or arrow")
    question = await _question(visit)
    body, _ = await visit.desk.shown_answer(visit.who, question, csv if form == "csv" else arrow)
    name = re.sub(r"[^\w.-]", "_", question.dataset, flags=re.ASCII) or "answer"
    headers = {"Content-Disposition": f'attachment; filename="{name}-{question.id[:8]}.{form}"'}
    kind = "text/csv" if form == "csv" else "application/vnd.apache.arrow.stream"
    return Response(body, headers=headers, media_type=kind)


async def pin(visit: Visit) -> Response:
    """Put the answer on the board, or take it away."""
    question = await _question(visit)
    if visit.field("do") == "unpin":
        visit.store.unpin(question.id, visit.who.name)
        return (
            go_to("board")
            if visit.field("from") == "board"
            else go_to("answers", question.dataset, question.id)
        )
    if question.status != "answered":
        raise Refused(409, "conflict", "only an answer that was released goes on the board")
    title = (
        " ".join(visit.field("title").split())[:_LONGEST_TITLE]
        or question.question[:_LONGEST_TITLE]
    )
    visit.store.pin(Pin(question.id, question.dataset, visit.who.name, title, visit.store.clock()))
    return go_to("board")


async def _question(visit: Visit) -> Question:
    id_ = visit.part("question")
    if not re.fullmatch(r"[0-9a-f]{32}", id_):
        raise Refused(404, "not-found", "there is no such question of yours")
    question = visit.desk.question(visit.who, visit.part("dataset"), id_)
    if question.status == "accepted":
        return await visit.desk.wait(question, _PATIENCE)
    return question


async def _values(visit: Visit, question: Question) -> dict[str, Any]:
    found: dict[str, Any] = {
        "question": question, "dataset": question.dataset, "answer": None, "alike": [question], "problem": None,
        "bar": budget_view(visit.desk, visit.who, question.dataset), "key": new_id(), "pinned": None, "mixes": False,
        "host": visit.request.headers.get("host", ""), "scheme": visit.request.url.scheme,
    }  # fmt: skip
    if question.body is not None and question.kind == "sql":
        draw = partial(view, person=person_of(visit, question.dataset))
        answer, alike = await visit.desk.shown_answer(visit.who, question, draw)
        found |= {"answer": answer, "alike": alike}
        known = await visit.desk.known_beforehand(visit.who, question)
        found["mixes"] = bool(known & set(compress(answer.names, answer.numeric)))
        pins = visit.store.pins(question.dataset)
        found["pinned"] = next((one for one in pins if one.question == question.id), None)
    elif question.body is not None:
        found["text"] = question.body.decode()
    return found


def person_of(visit: Visit, dataset: str) -> str | None:
    """What somebody who is protected is called, if that is a word."""
    tables: Any = visit.desk.describe(visit.who, dataset)["tables"]
    units = {table["person"] for table in tables if not table["public"] and table["person"]}
    word = (
        re.sub(r"[_ ]*(id|key|number|no|nr)$", "", units.pop(), flags=re.IGNORECASE)
        if len(units) == 1
        else ""
    )
    return word.replace("_", " ").lower() or None
