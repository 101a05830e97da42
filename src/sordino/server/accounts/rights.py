"""Every route and who may use it, in one table. The app is built from it, and a test walks all routes with all roles.

A route that is not here does not exist: `app.py` refuses to start if a handler has no line, or a line no handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sordino.server.accounts.people import Principal, Role, Scope

__all__ = ["OPEN", "RIGHTS", "Right"]

Method = Literal["GET", "POST", "PUT", "DELETE"]
_EVERYBODY = frozenset(Role)
_ASK = frozenset((Role.analyst, Role.agent))
_SEE = frozenset((Role.owner, Role.analyst, Role.agent, Role.auditor))
_OWN = frozenset((Role.owner,))
_AUDIT = frozenset((Role.owner, Role.auditor))
_ADMIN = frozenset((Role.admin,))
_PEOPLE = frozenset((Role.admin, Role.owner))


@dataclass(frozen=True)
class Right:
    """One route: who may use it, and which scope a token needs. `roles` None: anybody, without a token."""

    method: Method
    path: str
    roles: frozenset[Role] | None
    scope: Scope = Scope.read
    session: bool = False
    """Whether it is for somebody who logged in to the pages, and for no bearer token, whatever that allows."""

    def allows(self, who: Principal) -> bool:
        """Whether role and token allow it; whether the dataset does is asked where it is named."""
        if self.session and not who.token.page:
            return False
        return self.roles is None or (
            bool(self.roles & who.person.roles) and self.scope in who.token.scopes
        )


_D = "/v1/datasets/{dataset}"
RIGHTS: Mapping[str, Right] = {
    "healthz": Right("GET", "/healthz", None),
    "openapi": Right("GET", "/v1/openapi.json", None),
    "login": Right("POST", "/v1/login", None),
    "oidc_login": Right("GET", "/v1/oidc/login", None),
    "oidc_callback": Right("GET", "/v1/oidc/callback", None),
    "home_page": Right("GET", "/", None),
    "login_page": Right("GET", "/login", None),
    "login_form": Right("POST", "/login", None),
    "logout_form": Right("POST", "/logout", None),
    "link_page": Right("GET", "/login/link", None),
    "static": Right("GET", "/static/{version}/{file}", None),
    "workbench_start": Right("GET", "/workbench", _ASK),
    "workbench_page": Right("GET", "/workbench/{dataset}", _ASK),
    "ask_form": Right("POST", "/workbench/{dataset}", _ASK, Scope.ask),
    "workbench_study": Right("POST", "/workbench/{dataset}/study", _ASK),
    "answer_page": Right("GET", "/answers/{dataset}/{question}", _ASK, Scope.ask),
    "answer_file": Right("GET", "/answers/{dataset}/{question}/{form}", _ASK, Scope.ask),
    "again_form": Right("POST", "/answers/{dataset}/{question}", _ASK, Scope.ask),
    "pin_form": Right("POST", "/answers/{dataset}/{question}/pin", _ASK, Scope.ask),
    "history_page": Right("GET", "/history", _ASK, Scope.ask),
    "board_page": Right("GET", "/board", _ASK, Scope.ask),
    "me": Right("GET", "/v1/me", _EVERYBODY),
    "datasets": Right("GET", "/v1/datasets", _SEE),
    "dataset": Right("GET", _D, _SEE),
    "preview": Right("POST", f"{_D}/preview", _SEE),
    "curve": Right("POST", f"{_D}/curve", _SEE),
    "sketch": Right("POST", f"{_D}/sketch", _SEE),
    "ask": Right("POST", f"{_D}/questions", _ASK, Scope.ask),
    "questions": Right("GET", f"{_D}/questions", _ASK, Scope.ask),
    "question": Right("GET", f"{_D}/questions/{{question}}", _ASK, Scope.ask),
    "answer": Right("GET", f"{_D}/answers/{{question}}", _ASK, Scope.ask),
    "receipts": Right("GET", f"{_D}/receipts", _ASK, Scope.ask),
    "receipt": Right("GET", f"{_D}/answers/{{question}}/receipt", _ASK, Scope.ask),
    "checkpoint": Right("GET", f"{_D}/log/checkpoint", _SEE),
    "budget": Right("GET", f"{_D}/budget", _SEE),
    "allotments": Right("GET", f"{_D}/allotments", _AUDIT, Scope.audit),
    "allot": Right("PUT", f"{_D}/allotments/{{analyst}}", _OWN, Scope.manage),
    "take_back": Right("DELETE", f"{_D}/allotments/{{analyst}}", _OWN, Scope.manage),
    "policy": Right("GET", f"{_D}/policy", _SEE),
    "set_policy": Right("PUT", f"{_D}/policy", _OWN, Scope.manage),
    "approvals": Right("GET", f"{_D}/approvals", _AUDIT, Scope.audit),
    "decide": Right("POST", f"{_D}/approvals/{{question}}", _OWN, Scope.manage),
    "suspend": Right("POST", f"{_D}/suspend", _OWN, Scope.manage),
    "resume": Right("POST", f"{_D}/resume", _OWN, Scope.manage),
    "log": Right("GET", f"{_D}/log", _AUDIT, Scope.audit),
    "report": Right("GET", f"{_D}/report", _AUDIT, Scope.audit),
    "people": Right("GET", "/v1/people", _PEOPLE, Scope.manage),
    "add_person": Right("POST", "/v1/people", _PEOPLE, Scope.manage),
    "remove_person": Right("DELETE", "/v1/people/{name}", _PEOPLE, Scope.manage),
    "set_password": Right("PUT", "/v1/me/password", _EVERYBODY, session=True),
    "tokens": Right("GET", "/v1/tokens", _EVERYBODY),
    "add_token": Right("POST", "/v1/tokens", _EVERYBODY),
    "revoke_token": Right("DELETE", "/v1/tokens/{token}", _EVERYBODY),
    "metrics": Right("GET", "/metrics", _ADMIN, Scope.manage),
    "mcp": Right("POST", "/mcp", _ASK, Scope.ask),
    "theory_page": Right("GET", "/theory", None),
    "theory_lesson": Right("GET", "/theory/lesson", None),
    "owner_page": Right("GET", "/owner", _OWN, Scope.manage),
    "owner_dataset": Right("GET", "/owner/{dataset}", _OWN, Scope.manage),
    "owner_allot": Right("POST", "/owner/{dataset}/allot", _OWN, Scope.manage),
    "owner_take_back": Right("POST", "/owner/{dataset}/take-back", _OWN, Scope.manage),
    "owner_rules": Right("POST", "/owner/{dataset}/rules", _OWN, Scope.manage),
    "owner_decide": Right("POST", "/owner/{dataset}/decide", _OWN, Scope.manage),
    "owner_suspend": Right("POST", "/owner/{dataset}/suspend", _OWN, Scope.manage),
    "owner_person": Right("POST", "/owner/{dataset}/person", _OWN, Scope.manage),
    "owner_close_person": Right("POST", "/owner/{dataset}/close-person", _OWN, Scope.manage),
    "declare_page": Right("GET", "/declare", _OWN, Scope.manage),
    "declare_form": Right("POST", "/declare", _OWN, Scope.manage),
    "audit_page": Right("GET", "/audit", _AUDIT, Scope.audit),
    "audit_dataset": Right("GET", "/audit/{dataset}", _AUDIT, Scope.audit),
    "audit_check": Right("POST", "/audit/{dataset}/check", _AUDIT, Scope.audit),
    "audit_checkpoint": Right("GET", "/audit/{dataset}/checkpoint", _AUDIT, Scope.audit),
    "agents_page": Right("GET", "/agents", _AUDIT, Scope.audit),
    "agents_connect": Right("POST", "/agents", _OWN, Scope.manage),
    "tokens_page": Right("GET", "/tokens", _EVERYBODY),
    "tokens_make": Right("POST", "/tokens", _EVERYBODY),
    "tokens_revoke": Right("POST", "/tokens/revoke", _EVERYBODY),
    "tokens_password": Right("POST", "/tokens/password", _EVERYBODY, session=True),
}

OPEN = frozenset(right.path for right in RIGHTS.values() if right.roles is None)
"""Paths that are served without a token."""
