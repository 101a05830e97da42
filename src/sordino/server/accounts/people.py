"""People and what their tokens allow: five roles, four scopes, and the datasets that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["EVERYWHERE", "Person", "Principal", "Role", "Scope", "Token"]

EVERYWHERE = frozenset(("*",))
"""Stands for all datasets, also those that are served later."""


class Role(StrEnum):
    """What a person is to the server. One person may have several roles."""

    admin = "admin"
    """Keeps people, tokens and metrics; sees no dataset."""
    owner = "owner"
    """Answers for datasets: budgets, caps, approvals, the log."""
    analyst = "analyst"
    """Asks, within a budget."""
    agent = "agent"
    """A program that asks by itself: always an own sub-budget, and a cap for each question."""
    auditor = "auditor"
    """Reads what was spent, by whom, on what; asks nothing."""


class Scope(StrEnum):
    """What a token can be limited to, within the roles of its person."""

    read = "read"
    """Datasets, previews, budgets: what costs nothing."""
    ask = "ask"
    """Questions, and their answers."""
    manage = "manage"
    """Whatever changes something for others."""
    audit = "audit"
    """What others asked and spent."""


@dataclass(frozen=True)
class Person:
    """An account. `name` is the analyst's name in the ledger."""

    name: str
    roles: frozenset[Role]
    datasets: frozenset[str] = frozenset()
    active: bool = True

    def sees(self, dataset: str) -> bool:
        """Whether the person has anything to do with a dataset."""
        return self.datasets == EVERYWHERE or dataset in self.datasets


@dataclass(frozen=True)
class Token:
    """What is known of a token, which is not the token itself: only its SHA-256 is kept."""

    id: str
    person: str
    label: str
    scopes: frozenset[Scope]
    datasets: frozenset[str]
    created: float
    expires: float
    revoked: bool = False
    page: bool = False
    """Whether it is the session of somebody who logged in to the pages; such a one is no bearer token."""

    def valid(self, now: float) -> bool:
        """Whether it still opens anything."""
        return not self.revoked and self.created - 60 <= now < self.expires


@dataclass(frozen=True)
class Principal:
    """Who sends a request: a person, by a token."""

    person: Person
    token: Token

    @property
    def name(self) -> str:
        """The name in the ledger."""
        return self.person.name

    @property
    def is_agent(self) -> bool:
        """Whether the rules for agents hold: also for whoever is both agent and analyst."""
        return Role.agent in self.person.roles

    def sees(self, dataset: str) -> bool:
        """Whether both person and token are about a dataset."""
        return self.person.sees(dataset) and (
            self.token.datasets == EVERYWHERE or dataset in self.token.datasets
        )
