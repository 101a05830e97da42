"""The handlers of all routes, by the names in the table of rights. Each is thin: what it does is in `desk.py`."""

from __future__ import annotations

import hmac
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response

from sordino.errors import InvalidInput
from sordino.privacy.exact import readable
from sordino.server.accounts.oidc import Provider
from sordino.server.accounts.people import EVERYWHERE, Person, Principal, Token
from sordino.server.accounts.policy import Caps, Policy
from sordino.server.accounts.store import Store
from sordino.server.link import ANYBODY, JSON
from sordino.server.offers import number
from sordino.server.web.accounts_desk import AccountsDesk
from sordino.server.web.bodies import (
    Allot,
    CurveOf,
    Decision,
    Login,
    NewPerson,
    NewToken,
    Password,
    PreviewBody,
    QuestionOf,
    Rules,
    SketchOf,
)
from sordino.server.web.desk import Desk, price_limit, question_view
from sordino.server.web.refusals import Refused
from sordino.server.web.sessions import Sessions, sent_from, sent_home

__all__ = ["Routes", "reply"]

DatasetName = Annotated[str, Path(min_length=1, max_length=200)]
QuestionId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]
AnalystName = Annotated[str, Path(min_length=1, max_length=200)]
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for an outcome.")]
After = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Since = Annotated[int | None, Query(ge=1, le=2**53)]
_STATE = "__Host-sordino-login"
"""The cookie that ties a login at the identity provider to the browser that began it."""


def reply(body: JSON, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON."""
    return Response(
        json.dumps(body, allow_nan=False), status, dict(headers or {}), "application/json"
    )


def _who(request: Request) -> Principal:
    found = request.state.who
    if not isinstance(found, Principal):
        raise Refused(401, "unauthenticated", "this needs a token")
    return found


class Routes:
    """All handlers; `self.by_name` is what the app mounts."""

    def __init__(
        self,
        desk: Desk,
        store: Store,
        sessions: Sessions,
        requests: Counter[tuple[str, int]],
        provider: Provider | None = None,
    ) -> None:
        self._desk, self._store, self._requests, self._provider = desk, store, requests, provider
        self._sessions, self._accounts = sessions, AccountsDesk(store, sessions)
        self.by_name: dict[str, Callable[..., Any]] = {
            name: getattr(self, name)
            for name in (
                "healthz", "login", "oidc_login", "oidc_callback",
                "me", "datasets", "dataset", "preview", "curve", "sketch", "ask", "questions", "question", "answer",
                "receipts", "receipt", "checkpoint", "budget", "allotments", "allot", "take_back", "policy", "set_policy",
                "approvals", "decide", "suspend", "resume", "log", "report", "people", "add_person", "remove_person",
                "set_password", "tokens", "add_token", "revoke_token", "metrics",
            )
        }  # fmt: skip

    async def healthz(self) -> Response:
        """Whether the web process answers; it says nothing about datasets."""
        return reply({"status": "ok"})

    async def me(self, request: Request) -> Response:
        """Who one is, and what one's token allows."""
        who = _who(request)
        return reply({**_person(who.person), "token": _token(who.token)})

    # datasets and prices

    async def datasets(self, request: Request) -> Response:
        """The datasets that are open to one."""
        return reply({"datasets": self._desk.datasets(_who(request))})

    async def dataset(self, request: Request, dataset: DatasetName) -> Response:
        """What is declared about a dataset: tables, columns, bounds. Nothing of it is computed from data."""
        return reply(self._desk.describe(_who(request), dataset))

    async def preview(self, request: Request, dataset: DatasetName, body: PreviewBody) -> Response:
        """What a question would cost and how exact its answer would be. Free; no data are read."""
        found = await self._desk.preview(
            _who(request), dataset, body.kind, body.question, body.offer, " ".join(body.show)
        )  # fmt: skip
        return reply(found)

    async def curve(self, request: Request, dataset: DatasetName, body: CurveOf) -> Response:
        """Error against price: what to expect at several epsilons. Free."""
        epsilons = (
            None
            if body.epsilons is None
            else [str(number("epsilon", each)) for each in body.epsilons]
        )
        points = await self._desk.curve(_who(request), dataset, body.question, body.offer, epsilons)
        return reply({"points": points})

    async def sketch(self, request: Request, dataset: DatasetName, body: SketchOf) -> Response:
        """What an answer would look like: the question over made-up rows, with next to no noise.

        Free, and about nobody.
        """
        return reply(await self._desk.sketch(_who(request), dataset, body.question))

    async def budget(self, request: Request, dataset: DatasetName) -> Response:
        """What is left: for one who asks, their part; for owners and auditors the whole, and everybody's part."""
        return reply(self._desk.budget(_who(request), dataset))

    # questions

    async def ask(
        self,
        request: Request,
        dataset: DatasetName,
        body: QuestionOf,
        idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    ) -> Response:
        """Ask a question: 202, and where its outcome will be. The same Idempotency-Key is asked and charged once."""
        question = await self._desk.ask(
            _who(request), dataset, body.kind, body.question, body.offer, key=idempotency_key, reason=body.reason,
            fresh=body.fresh,
        )  # fmt: skip
        view = question_view(question)
        return reply(view, 202, {"Location": str(view["location"])})

    async def questions(self, request: Request, dataset: DatasetName) -> Response:
        """One's own questions, the newest first."""
        who = _who(request)
        self._desk.link(who, dataset)
        return reply(
            {
                "questions": [
                    question_view(each) for each in self._store.questions(dataset, who.name)
                ]
            }
        )

    async def question(
        self, request: Request, dataset: DatasetName, question: QuestionId, wait: Wait = 0
    ) -> Response:
        """What became of a question; with `wait` as soon as there is an outcome, which is at a tick."""
        found = self._desk.question(_who(request), dataset, question)
        return reply(question_view(await self._desk.wait(found, wait)))

    async def answer(
        self, request: Request, dataset: DatasetName, question: QuestionId, wait: Wait = 0
    ) -> Response:
        """The stored answer, byte by byte as it was released; spaces behind it are padding."""
        found = await self._desk.wait(self._desk.question(_who(request), dataset, question), wait)
        if found.body is None:
            rule = f"this question has no answer: it is {found.status}"
            raise Refused(
                409 if found.open else 404, "conflict" if found.open else "not-found", rule
            )
        return Response(found.body, media_type="application/json")

    async def receipts(
        self, request: Request, dataset: DatasetName, after: After = 0, limit: Limit = 100
    ) -> Response:  # fmt: skip
        """One's own charges, oldest first."""
        found = await self._desk.receipts(_who(request), dataset, after, limit, everybody=False)
        return reply({"receipts": found})

    async def receipt(
        self, request: Request, dataset: DatasetName, question: QuestionId, since: Since = None
    ) -> Response:  # fmt: skip
        """The receipt that proves an answer was recorded, to be checked offline: `sordino receipt verify`."""
        who = _who(request)
        found = self._desk.question(who, dataset, question)
        return Response(await self._desk.receipt(who, found, since), media_type="application/json")

    async def checkpoint(
        self, request: Request, dataset: DatasetName, since: Since = None
    ) -> Response:
        """Key and signed checkpoint of the log: how many entries there are, and the root of their tree."""
        return reply(dict(await self._desk.link(_who(request), dataset).checkpoint(since)))

    # what owners and auditors do

    async def log(
        self, request: Request, dataset: DatasetName, after: After = 0, limit: Limit = 100
    ) -> Response:  # fmt: skip
        """All charges, oldest first."""
        found = await self._desk.receipts(_who(request), dataset, after, limit, everybody=True)
        return reply({"receipts": found})

    async def report(self, request: Request, dataset: DatasetName) -> Response:
        """The page for the data-protection officer."""
        page = await self._desk.report_page(_who(request), dataset)
        page = page.replace("<style>", f'<style nonce="{request.state.nonce}">', 1)
        return Response(page, media_type="text/html")

    async def allotments(self, request: Request, dataset: DatasetName) -> Response:
        """Everybody's part of the budget, and caps."""
        who = _who(request)
        parts = self._desk.budget(who, dataset).get("by_analyst") or {}
        found: dict[str, JSON] = {}
        for name, meter in parts.items() if isinstance(parts, Mapping) else ():
            caps = self._store.caps(dataset, name)
            own = (
                {}
                if caps is None
                else {"per_question": _said(caps.per_question), "per_day": _said(caps.per_day)}
            )
            found[name] = {**meter, **own} if isinstance(meter, Mapping) else meter
        return reply({"allotments": found})

    async def allot(
        self, request: Request, dataset: DatasetName, analyst: AnalystName, body: Allot
    ) -> Response:
        """Give somebody a part of the budget ("*": everybody without one), and caps."""
        caps = Caps(
            price_limit("per_question", body.per_question), price_limit("per_day", body.per_day)
        )
        if analyst == ANYBODY and caps != Caps():
            rule = "caps for everybody are rules of the dataset"
            raise InvalidInput("caps for '*'", rule, "Set them with PUT .../policy.")
        await self._desk.allot(
            _who(request),
            dataset,
            analyst,
            body.epsilon,
            body.delta,
            caps if caps != Caps() else None,
        )
        return reply({"analyst": analyst, "epsilon": body.epsilon, "delta": body.delta})

    async def take_back(
        self, request: Request, dataset: DatasetName, analyst: AnalystName
    ) -> Response:
        """Take a part of the budget back; what was spent stays spent."""
        await self._desk.allot(_who(request), dataset, analyst, None, None, None)
        return Response(status_code=204)

    async def policy(self, request: Request, dataset: DatasetName) -> Response:
        """The owner's rules; who shares answers is told to owners, auditors and those who share."""
        return reply(_policy(self._desk.rules(_who(request), dataset)))

    async def set_policy(self, request: Request, dataset: DatasetName, body: Rules) -> Response:
        """Put rules in force: caps, approval above a price, who shares answers."""
        who = _who(request)
        self._desk.link(who, dataset)
        caps = Caps(
            price_limit("per_question", body.per_question), price_limit("per_day", body.per_day)
        )
        rules = Policy(
            price_limit("approval_above", body.approval_above), frozenset(body.sharing), caps
        )
        return reply(_policy(await self._desk.set_rules(who, dataset, rules)))

    async def approvals(self, request: Request, dataset: DatasetName) -> Response:
        """Questions that wait for an owner, with reason and price."""
        self._desk.link(_who(request), dataset)
        found: list[JSON] = [
            {"id": each.id, "analyst": each.analyst, "question": each.question, "kind": each.kind,
             "offer": dict(each.offer), "price": str(each.price), "reason": each.reason, "created": each.created}
            for each in self._store.waiting(dataset)
        ]  # fmt: skip
        return reply({"approvals": found})

    async def decide(
        self, request: Request, dataset: DatasetName, question: QuestionId, body: Decision
    ) -> Response:
        """Approve or deny a question that waits."""
        done = self._desk.decide(
            _who(request), dataset, question, approve=body.approve, note=body.note
        )
        return reply({"id": done.id, "status": done.status, "note": done.note})

    async def suspend(self, request: Request, dataset: DatasetName) -> Response:
        """Refuse all new questions until the owner resumes; nothing is charged for them."""
        await self._desk.suspend(_who(request), dataset)
        return Response(status_code=204)

    async def resume(self, request: Request, dataset: DatasetName) -> Response:
        """End a pause or a suspension: the dataset is asked again."""
        await self._desk.resume(_who(request), dataset)
        return Response(status_code=204)

    # people

    async def people(self, request: Request) -> Response:
        """All accounts; an owner sees those who have to do with the same datasets."""
        found = self._accounts.people(_who(request))
        return reply(
            {
                "people": [
                    {**_person(each), "subject": self._store.subject_of(each.name)}
                    for each in found
                ]
            }
        )

    async def add_person(self, request: Request, body: NewPerson) -> Response:
        """Open an account. Owners open those of analysts, agents and auditors of their own datasets."""
        person = Person(body.name, frozenset(body.roles), _datasets(body.datasets))
        return reply(
            _person(
                await self._accounts.add_person(_who(request), person, body.password, body.subject)
            ),
            201,
        )

    async def remove_person(self, request: Request, name: AnalystName) -> Response:
        """Close an account and all its tokens, at once."""
        await self._accounts.close_person(_who(request), name)
        return Response(status_code=204)

    async def set_password(self, request: Request, body: Password) -> Response:
        """Set one's own password, from a page, and with the current one if there is one. No bearer token does it."""
        await self._accounts.set_password(_who(request), body.password, body.current)
        return Response(status_code=204)

    async def tokens(self, request: Request) -> Response:
        """One's own tokens, and those of accounts that one keeps. A token itself is never shown again."""
        return reply({"tokens": [_token(each) for each in self._accounts.tokens(_who(request))]})

    async def add_token(self, request: Request, body: NewToken) -> Response:
        """Make a token; it is shown here and never again.

        It allows no more, and no longer, than the one it is made with.
        """
        text, token = await self._accounts.add_token(
            _who(request), body.person, body.label, body.scopes, _datasets(body.datasets), body.days
        )
        return reply({**_token(token), "secret": text}, 201)

    async def revoke_token(
        self, request: Request, token: Annotated[str, Path(min_length=1, max_length=64)]
    ) -> Response:  # fmt: skip
        """End a token of one's own, or of an account that one keeps, and those that were made with it; at once."""
        await self._accounts.revoke(_who(request), token)
        return Response(status_code=204)

    async def login(self, request: Request, body: Login) -> Response:
        """A token for twelve hours, for a name and a password."""
        text, token = await self._sessions.by_password(
            body.name, body.password, page=False, address=sent_from(request)
        )
        return reply({**_token(token), "secret": text})

    # identity provider

    async def oidc_login(self) -> Response:
        """Log in at the identity provider of this server."""
        address, state = await self._expect_provider().begin()
        cookie = f"{_STATE}={state}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600"
        return Response(status_code=303, headers={"Location": address, "Set-Cookie": cookie})

    async def oidc_callback(
        self,
        request: Request,
        code: Annotated[str, Query(max_length=4000)] = "",
        state: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """Where the identity provider sends people back: their account's pages open."""
        provider = self._expect_provider()
        if not hmac.compare_digest(
            request.cookies.get(_STATE, "").encode(), state.encode("utf-8", "replace")
        ):
            raise Refused(
                403, "forbidden", "this login did not begin in this browser", "Log in again."
            )
        subject = await provider.finish(code, state)
        person = self._store.by_subject(subject)
        if person is None:
            rule = "the identity provider knows you, and this server has no account for you"
            raise Refused(403, "forbidden", rule, "Let an admin open one.")
        text, _ = await self._sessions.begin(person.name, page=True)
        return sent_home(text)

    def _expect_provider(self) -> Provider:
        if self._provider is None:
            raise Refused(404, "not-found", "this server has no identity provider")
        return self._provider

    async def metrics(self) -> Response:
        """Numbers for whoever runs the server, in the text form of Prometheus; none is about one question."""
        return Response(self._metrics(), media_type="text/plain; version=0.0.4")

    def _metrics(self) -> str:
        lines = ["# TYPE sordino_requests_total counter"]
        lines += [
            f'sordino_requests_total{{route="{r}",status="{s}"}} {n}'
            for (r, s), n in sorted(self._requests.items())
        ]
        lines.append("# TYPE sordino_questions_total counter")
        outcomes = sorted(self._desk.outcomes.items())
        lines += [
            f'sordino_questions_total{{dataset="{_label(d)}",outcome="{o}"}} {n}'
            for (d, o), n in outcomes
        ]
        late = sorted(self._desk.late)
        if late:
            lines.append("# TYPE sordino_late_seconds summary")
            for part in (0.5, 0.99):
                lines.append(
                    f'sordino_late_seconds{{quantile="{part}"}} {late[int(part * (len(late) - 1))]:.6f}'
                )
        lines.append(f"sordino_time_seconds {time.time():.0f}")
        return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _datasets(names: list[str]) -> frozenset[str]:
    return EVERYWHERE if "*" in names else frozenset(names)


def _person(person: Person) -> dict[str, JSON]:
    roles: list[JSON] = [str(role) for role in sorted(person.roles)]
    return {
        "name": person.name,
        "roles": roles,
        "datasets": sorted(person.datasets),
        "active": person.active,
    }


def _token(token: Token) -> dict[str, JSON]:
    scopes: list[JSON] = [str(scope) for scope in sorted(token.scopes)]
    return {
        "id": token.id, "person": token.person, "label": token.label, "scopes": scopes,
        "datasets": sorted(token.datasets), "created": token.created, "expires": token.expires, "revoked": token.revoked,
    }  # fmt: skip


def _said(amount: Fraction | None) -> str | None:
    return None if amount is None else readable(amount)


def _policy(policy: Policy) -> dict[str, JSON]:
    return {
        "approval_above": _said(policy.approval_above), "per_question": _said(policy.caps.per_question),
        "per_day": _said(policy.caps.per_day), "sharing": sorted(policy.sharing),
    }  # fmt: skip
