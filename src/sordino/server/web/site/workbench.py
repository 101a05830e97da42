"""The workbench: a question, what its answer would be like at which price, and asking it.

Without scripts it is a form with two buttons. Scripts add the editor, the builder, the slider and the pictures; they call
the routes that programs call, and what they can do is what the form can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from sordino.errors import SordinoError
from sordino.server.accounts.secrets_of_people import new_id
from sordino.server.web.refusals import Refused, as_problem
from sordino.server.web.site.budget_view import budget_view
from sordino.server.web.site.datasets import protected
from sordino.server.web.site.visit import Shown, Values, Visit, go_to

__all__ = ["ask", "show", "start", "starter"]


async def start(visit: Visit) -> Response:
    """The workbench of the first dataset that is open; others are one click away."""
    names = [str(each["name"]) for each in visit.desk.datasets(visit.who) if isinstance(each, Mapping)]
    return go_to("workbench", names[0]) if names else go_to("")


async def show(visit: Visit) -> Values:
    """An empty question, or the one that a link holds."""
    return _values(visit, visit.query("sql"), visit.query("epsilon"), visit.query("error"))


async def ask(visit: Visit) -> Shown | Response:
    """Look at the price of a question, or ask it."""
    sql, epsilon, error = visit.field("sql"), visit.field("epsilon").strip(), visit.field("error").strip()
    sql = sql.replace("\r\n", "\n")
    offer: dict[str, Any] = {"error": error} if error and not epsilon else {"epsilon": epsilon}
    dataset, told = visit.part("dataset"), {"reason": visit.field("reason")}
    try:
        if not epsilon and not error:
            rule, hint = "a question has a price", "Say what to spend, or how exact the answer should be."
            raise Refused(422, "invalid-request", rule, hint)
        if visit.field("do") == "preview":
            price = await visit.desk.preview(visit.who, dataset, "sql", sql, offer, "text")
            return Shown({**_values(visit, sql, epsilon, error), **told, "price": price})
        question = await visit.desk.ask(
            visit.who, dataset, "sql", sql, offer, key=visit.field("key") or None, reason=told["reason"]
        )
    except (Refused, SordinoError) as refused:
        problem = as_problem(refused)
        return Shown({**_values(visit, sql, epsilon, error), **told, "problem": problem}, int(str(problem["status"])))
    return go_to("answers", dataset, question.id)


def _values(visit: Visit, sql: str, epsilon: str, error: str) -> dict[str, Any]:
    dataset, who = visit.part("dataset"), visit.who
    facts = visit.desk.describe(who, dataset)
    tables: Any = facts["tables"]
    others = [str(each["name"]) for each in visit.desk.datasets(who) if isinstance(each, Mapping)]
    bar = budget_view(visit.desk, who, dataset)
    policy = visit.store.policy(dataset)
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
