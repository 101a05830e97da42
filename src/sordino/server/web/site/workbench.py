"""The workbench: a question, what its answer would be like at which price, and asking it.

Without scripts it is a form with two buttons. Scripts add the editor, the builder, the slider and the pictures; they
call the routes that programs call, and what they can do is what the form can do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response

from sordino.errors import SordinoError
from sordino.server.accounts.secrets_of_people import new_id
from sordino.server.link import JSON
from sordino.server.web.refusals import Refused, as_problem
from sordino.server.web.site.budget_view import budget_view
from sordino.server.web.site.datasets import protected
from sordino.server.web.site.visit import Shown, Values, Visit, go_to

__all__ = ["ask", "show", "start", "starter", "study"]


async def start(visit: Visit) -> Response:
    """The workbench of the first dataset that is open; others are one click away."""
    names = [
        str(each["name"]) for each in visit.desk.datasets(visit.who) if isinstance(each, Mapping)
    ]
    return go_to("workbench", names[0]) if names else go_to("")


async def show(visit: Visit) -> Values:
    """An empty question, or the one that a link holds."""
    return _values(visit, visit.query("sql"), visit.query("epsilon"), visit.query("error"))


async def ask(visit: Visit) -> Shown | Response:
    """Look at the price of a question, or ask it."""
    sql, epsilon, error = (
        visit.field("sql"),
        visit.field("epsilon").strip(),
        visit.field("error").strip(),
    )
    sql = sql.replace("\r\n", "\n")
    offer, dataset, told = _offer(visit), visit.part("dataset"), {"reason": visit.field("reason")}
    try:
        if not epsilon and not error:
            rule, hint = (
                "a question has a price",
                "Say what to spend, or how exact the answer should be.",
            )
            raise Refused(422, "invalid-request", rule, hint)
        if visit.field("do") == "preview":
            price = await visit.desk.preview(visit.who, dataset, "sql", sql, offer, "text")
            return Shown({**_values(visit, sql, epsilon, error), **told, "price": price})
        question = await visit.desk.ask(
            visit.who,
            dataset,
            "sql",
            sql,
            offer,
            key=visit.field("key") or None,
            reason=told["reason"],
        )
    except (Refused, SordinoError) as refused:
        problem = as_problem(refused)
        return Shown(
            {**_values(visit, sql, epsilon, error), **told, "problem": problem},
            int(str(problem["status"])),
        )
    return go_to("answers", dataset, question.id)


async def study(visit: Visit) -> Response:
    """What scripts look up while somebody writes: prices, a sketch, one price.

    A refusal is an answer as any other here.
    """
    who, dataset, sql = visit.who, visit.part("dataset"), visit.field("sql").replace("\r\n", "\n")
    visit.desk.link(who, dataset)
    found: JSON
    try:
        match visit.field("what"):
            case "curve":
                found = await visit.desk.curve(who, dataset, sql, {}, None)
            case "sketch":
                found = await visit.desk.sketch(who, dataset, sql)
            case "preview":
                found = await visit.desk.preview(who, dataset, "sql", sql, _offer(visit), "")
            case other:
                raise Refused(
                    422, "invalid-request", "it is curve, sketch or preview", value=repr(other[:40])
                )
        told: JSON = {"found": found}
    except (Refused, SordinoError) as refused:
        told = {"problem": as_problem(refused)}
    return Response(json.dumps(told, allow_nan=False), media_type="application/json")


def _offer(visit: Visit) -> dict[str, JSON]:
    """What is offered: an epsilon, or an error, of one output if it is named."""
    epsilon, error, of = (visit.field(name).strip() for name in ("epsilon", "error", "of"))
    if not error or epsilon:
        return {"epsilon": epsilon}
    return {"error": {of: error} if of else error}


def _values(visit: Visit, sql: str, epsilon: str, error: str) -> dict[str, Any]:
    dataset, who = visit.part("dataset"), visit.who
    facts = visit.desk.describe(who, dataset)
    tables: Any = facts["tables"]
    others = [str(each["name"]) for each in visit.desk.datasets(who) if isinstance(each, Mapping)]
    bar = budget_view(visit.desk, who, dataset)
    policy = visit.desk.rules(who, dataset)
    return {
        "dataset": facts, "tables": tables, "about": protected(tables), "others": others, "bar": bar,
        "sql": sql or starter(tables), "epsilon": epsilon, "error": error, "key": new_id(), "price": None, "problem": None,
        "reason": "", "rules": policy.words,
        "approval_above": None if policy.approval_above is None else float(policy.approval_above),
    }  # fmt: skip


def starter(tables: Any) -> str:
    """A first question: how many rows there are, in each category if there is one."""
    table = next((each for each in tables if not each["public"]), tables[0])
    name = quoted(table["name"])
    for column, of in table["columns"].items():
        if "values" in of and 1 < of["number_of_values"] <= 30:
            return f"SELECT {quoted(column)}, COUNT(*) AS n\nFROM {name}\nGROUP BY {quoted(column)}"
    return f"SELECT COUNT(*) AS n\nFROM {name}"


def quoted(name: str) -> str:
    """A name in SQL."""
    return name if name.isascii() and name.isidentifier() else '"' + name.replace('"', '""') + '"'
