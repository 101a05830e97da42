"""The bodies of requests, as OpenAPI tells them. Anything else in a body is refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sordino.server.accounts.people import Role, Scope

__all__ = [
    "Allot",
    "CurveOf",
    "Decision",
    "Login",
    "NewPerson",
    "NewToken",
    "Password",
    "PreviewBody",
    "PreviewOf",
    "QuestionOf",
    "Rules",
    "SketchOf",
]

Name = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[
    int | float | str, Field(description='A number, or an exact text such as "0.1" or "1/3".')
]
Offer = Annotated[
    dict[str, int | float | str | bool | list[str] | dict[str, int | float | str] | None],
    Field(
        description="What Session.sql takes beside the question: epsilon or error, and perhaps more."
    ),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class PreviewOf(_Body):
    """A question and what is offered for it. For a search of bounds, `question` is the table's name."""

    question: str = Field(max_length=60_000)
    offer: Offer = {}
    kind: Literal["sql", "suggest"] = "sql"


class PreviewBody(PreviewOf):
    """With the longer texts that are wanted."""

    show: list[Literal["text", "details", "sql"]] = ["text"]


class CurveOf(_Body):
    """A question, what else is offered, and the epsilons to try; without these twenty up to the whole budget."""

    question: str = Field(max_length=60_000)
    offer: Offer = {}
    epsilons: list[Number] | None = Field(default=None, min_length=1, max_length=50)


class SketchOf(_Body):
    """A question, to be tried on made-up rows."""

    question: str = Field(max_length=60_000)


class QuestionOf(PreviewOf):
    """`reason` is what an owner reads who has to approve. `fresh` asks anew though there is a stored answer."""

    reason: str = Field(default="", max_length=2000)
    fresh: bool = False


class Allot(_Body):
    """A part of the budget, and caps on prices."""

    epsilon: Number
    delta: Number = 0
    per_question: Number | None = None
    per_day: Number | None = None


class Rules(_Body):
    """The rules of a dataset. `sharing` names those who see each other's stored answers; ["*"]: all who may ask."""

    approval_above: Number | None = None
    per_question: Number | None = None
    per_day: Number | None = None
    sharing: list[Name] = Field(default=[], max_length=1000)


class Decision(_Body):
    """What an owner decides about a question that waits."""

    approve: bool
    note: str = Field(default="", max_length=2000)


class NewPerson(_Body):
    """An account. `subject` is "issuer|subject" of an identity provider."""

    name: Name
    roles: list[Role] = Field(min_length=1, max_length=5)
    datasets: list[Name] = Field(default=[], max_length=1000)
    subject: str | None = Field(default=None, max_length=1000)
    password: str | None = Field(default=None, max_length=1024)


class NewToken(_Body):
    """A token, for oneself, or for another as one who keeps accounts."""

    person: Name | None = None
    label: str = Field(default="", max_length=200)
    scopes: list[Scope] = Field(default=list(Scope), min_length=1, max_length=4)
    datasets: list[Name] = Field(default=["*"], max_length=1000)
    days: float = Field(default=90, gt=0, le=400)


class Password(_Body):
    """A new password of one's own, and the one that it takes the place of, if there is one."""

    password: str = Field(max_length=1024)
    current: str = Field(default="", max_length=1024)


class Login(_Body):
    """A name and a password."""

    name: Name
    password: str = Field(max_length=1024)
