"""A session whose data are elsewhere: the same methods as `Session`, answered by a server.

Prices, refusals, answers and receipts are those of the server's own session. Answers come at ticks of its clock.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self, Unpack

from sordino.accounting.charge import Charge
from sordino.accounting.filters import Remaining, TwoMeterFilter
from sordino.answer.answer import Answer
from sordino.answer.suggestion import Suggestion
from sordino.client.connection import Connection, quoted
from sordino.errors import InvalidInput, LedgerUnavailable, RequestRefused
from sordino.ledger.receipt import Receipt
from sordino.ledger.terms import read_charge
from sordino.privacy.budget import Budget
from sordino.privacy.exact import Number, show
from sordino.query import tree
from sordino.query.front.python import Question
from sordino.query.front.terms import ColumnLike, term_tree
from sordino.query.front.text import sql_text
from sordino.query.offer import Offer, takes_offer
from sordino.query.tree import Join, Query, Rows, Source, Subquery, UnionAll
from sordino.server.link import JSON
from sordino.server.offers import as_json
from sordino.server.problems import error_of

if TYPE_CHECKING:
    from sordino.ledger.public_log import Proof

__all__ = ["RemotePlan", "RemoteSession", "connect"]

_WAIT = 30


@dataclass(frozen=True)
class RemotePlan:
    """What a question would cost and be like, as a server tells it; printing it explains it."""

    facts: Mapping[str, Any]

    @property
    def epsilon(self) -> Fraction:
        """What the answer alone satisfies."""
        return Fraction(self.facts["epsilon"])

    @property
    def charge(self) -> Charge:
        """What it takes from each meter."""
        return read_charge(self.facts["charge"])

    @property
    def promise(self) -> str:
        """What is promised about the answer, in plain words."""
        return str(self.facts["promise"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know about its numbers."""
        return tuple(self.facts["notes"])

    @property
    def private_keys(self) -> bool:
        """Whether keys are selected with noise."""
        return bool(self.facts.get("private_keys", False))

    @property
    def needs_approval(self) -> bool:
        """Whether the question would wait for its owner."""
        return bool(self.facts["needs_approval"])

    @property
    def answered_before(self) -> bool:
        """Whether there is a stored answer, which is free."""
        return bool(self.facts["answered_before"])

    @property
    def fits(self) -> int | None:
        """How many more such answers the budget allows; None if it is free."""
        found: int | None = self.facts["fits"]
        return found

    def errors(self) -> dict[str, float | None]:
        """The half-width to expect of each aggregate; None where it depends on data."""
        return dict(self.facts["errors"])

    def sql(self) -> str:
        """The SQL that would run."""
        return str(self.facts.get("sql", ""))

    def explain(self, *, details: bool = False) -> str:
        """The plan in words."""
        return str(self.facts["details" if details and "details" in self.facts else "text"])

    def __str__(self) -> str:
        return self.explain()


def connect(
    address: str,
    *,
    token: str | None = None,
    dataset: str | None = None,
    reason: str = "",
    certificate: str | os.PathLike[str] | None = None,
) -> RemoteSession:
    """A session with a server: `so.connect("https://sordino.example.org/visits", token="sordino_...")`.

    The dataset is named at the end of the address, or by `dataset`, or is the only one that is open to you. Without a
    `token` that of SORDINO_TOKEN, or in the file SORDINO_TOKEN_FILE, is used. `reason` is what an owner reads who has
    to approve a question. `certificate` is the file of an authority of your own.
    """
    connection = Connection(address, token, certificate)
    if len(connection.named) > 1 or (
        connection.named and dataset not in (None, connection.named[0])
    ):
        rule = "behind the host stands the name of one dataset"
        raise InvalidInput(
            f"address={show(address)}", rule, "Pass 'https://sordino.example.org/visits'."
        )
    try:
        return RemoteSession(connection, dataset or next(iter(connection.named), None), reason)
    except BaseException:
        connection.close()
        raise


class RemoteSession:
    """Questions about one dataset of a server, within what its owner allows one."""

    def __init__(
        self, connection: Connection, dataset: str | None = None, reason: str = ""
    ) -> None:
        self._server, self.reason = connection, reason
        self._stopped = threading.Event()
        self.analyst: str = connection.get("/v1/me")["name"]
        names = [each["name"] for each in connection.get("/v1/datasets")["datasets"]]
        if dataset is None and len(names) == 1:
            dataset = names[0]
        if dataset is None or dataset not in names:
            value = "no dataset" if dataset is None else f"dataset={show(dataset)}"
            known = ", ".join(names) or "none"
            raise InvalidInput(
                value, f"the datasets that are open to you are: {known}", "Name one of them."
            )
        self.name: str = dataset
        self._path = f"/v1/datasets/{quoted(dataset)}"
        self._tables: dict[str, Any] | None = None

    @property
    def tables(self) -> dict[str, Any]:
        """What is declared of each table: columns, limits, who is protected."""
        if self._tables is None:
            self._tables = {
                table["name"]: table for table in self._server.get(self._path)["tables"]
            }
        return self._tables

    @takes_offer
    def sql(self, query: str, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Answer:
        """The noisy answer to one SELECT, as `Session.sql` gives it.

        The same question at the same offer is answered with the stored bytes, for nothing; with a `request_id` of your
        own it can be asked again from anywhere.
        """
        if not isinstance(query, str):
            raise InvalidInput(show(query), "a question is a text", "Pass one SELECT.")
        body, receipt = self._asked("sql", query, _as_json(offer), request_id)
        return Answer.from_json(body, receipt)

    def table(self, name: str) -> Question:
        """A question built in Python, about one table."""
        return Question(name, session=self)

    def person_of(self, name: str, source: Source) -> str | None:
        """The column that names the person in the first table of a source, as far as that is a declared table."""
        del name
        while not isinstance(source, tree.Table):
            match source:
                case Join(left):
                    source = left
                case Subquery(Rows(inner)) | Subquery(UnionAll((Rows(inner), *_))):
                    source = inner
                case _:
                    return None
        found = self.tables.get(source.table)
        return None if found is None else found["person"]

    @takes_offer
    def run(self, query: Query, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Answer:
        """The noisy answer to a query tree."""
        return self.sql(sql_text(query), request_id=request_id, **offer)

    @takes_offer
    def preview(self, query: str | Query, **offer: Unpack[Offer]) -> RemotePlan:
        """What a query would run and cost; free, and no data are read."""
        return self._previewed(
            "sql", query if isinstance(query, str) else sql_text(query), _as_json(offer)
        )

    @takes_offer
    def fits(self, query: str | Query, **offer: Unpack[Offer]) -> int:
        """How many more answers like this one the budget allows."""
        found = self.preview(query, **offer).fits
        if found is None:
            raise InvalidInput(
                "this question",
                "it costs nothing, so any number of them fits",
                "Ask for another one.",
            )
        return found

    def suggest(
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        columns: Sequence[str] | None = None,
        keys: Sequence[ColumnLike] = (),
        query_epsilon: Number | None = None,
        request_id: str | None = None,
    ) -> Suggestion:
        """Bounds found privately, as `Session.suggest` finds them; keys are names of columns."""
        offer = _suggestion(epsilon, columns, keys, query_epsilon)
        body, receipt = self._asked("suggest", table or "", offer, request_id)
        return Suggestion.from_json(body, receipt)

    def preview_suggest(
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        columns: Sequence[str] | None = None,
        keys: Sequence[ColumnLike] = (),
        query_epsilon: Number | None = None,
    ) -> RemotePlan:
        """What `suggest` would search, and what it would cost; free."""
        return self._previewed(
            "suggest", table or "", _suggestion(epsilon, columns, keys, query_epsilon)
        )

    def marginals(self, *_: object, **__: object) -> Never:
        """Refused: many tables at once are asked in SQL."""
        raise _not_served(
            "marginals",
            'Ask "SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, sex)".',
        )

    preview_marginals = marginals

    def synthesize(self, *_: object, **__: object) -> Never:
        """Refused: synthetic rows are fitted in rounds, for minutes, and each answer of a server fits into its slot."""
        raise _not_served("synthesize", "Let whoever holds the data run it, with so.Session.")

    preview_synthesize = synthesize

    def curve(
        self, query: str | Query, epsilons: Sequence[Number] | None = None
    ) -> list[dict[str, Any]]:
        """Error against price: what to expect at each epsilon; without any, at twenty up to the whole budget."""
        text = query if isinstance(query, str) else sql_text(query)
        body: dict[str, JSON] = {"question": text}
        if epsilons is not None:
            body["epsilons"] = [as_json(each) for each in epsilons]
        found: list[dict[str, Any]] = self._server.post(f"{self._path}/curve", body)["points"]
        return found

    @property
    def budget(self) -> dict[str, Any]:
        """What is left, in all that the server tells of it: caps, and what was spent today."""
        found: dict[str, Any] = self._server.get(f"{self._path}/budget")
        return found

    @property
    def remaining(self) -> Remaining:
        """What each meter still has."""
        told = self.budget
        if "left" not in told:
            return Remaining()
        left = told["left"]
        pure, mu_squared, rho = (
            None if (x := left.get(n)) is None else Fraction(x)
            for n in ("pure", "mu_squared", "rho")
        )
        budget = Budget(Fraction(told["epsilon"]), Fraction(told["delta"]))
        whole = TwoMeterFilter(budget, Fraction(told["key_delta"])).caps
        return Remaining(pure, mu_squared, rho, Fraction(left.get("delta") or 0), whole)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """All charges of one's own so far."""
        found: list[Receipt] = []
        while page := self._server.get(
            f"{self._path}/receipts", after=found[-1].number if found else 0, limit=1000
        ):
            new = [_receipt(each) for each in page["receipts"]]
            found += new
            if not new:
                break
        return tuple(found)

    def proof(self, request_id: str, *, since: int | None = None) -> Proof:
        """The receipt that proves a question of one's own was recorded,
        to be kept: `sordino receipt verify` checks it.
        """
        from sordino.ledger.public_log import Proof

        for one in self._server.get(f"{self._path}/questions")["questions"]:
            if one["key"] == request_id:
                path = f"{self._path}/answers/{one['id']}/receipt"
                found = self._server.raw(path if since is None else f"{path}?since={since}")
                return Proof.from_json(found.decode().rstrip(" "))
        raise RequestRefused(
            request_id, "nothing was asked under this id", "Pass the id that a receipt shows."
        )

    @property
    def progress(self) -> float | None:
        """Nothing: how long a question runs may depend on data, so that a server does not tell."""
        return None

    def interrupt(self) -> None:
        """Stop waiting in another thread. What was asked goes on, and its request id gives its answer later."""
        self._stopped.set()

    def _previewed(self, kind: str, text: str, offer: dict[str, JSON]) -> RemotePlan:
        wanted: JSON = ["text", "details", "sql"]
        body: dict[str, JSON] = {"kind": kind, "question": text, "offer": offer, "show": wanted}
        return RemotePlan(self._server.post(f"{self._path}/preview", body))

    def _asked(
        self, kind: str, text: str, offer: dict[str, JSON], request_id: str | None
    ) -> tuple[str, Receipt | None]:
        """The stored answer, and its receipt, when there is an outcome."""
        key = uuid.uuid4().hex if request_id is None else request_id
        if not isinstance(key, str) or not key.isascii() or not key.isprintable():
            rule = "over HTTP a request id is made of ASCII letters"
            raise InvalidInput(
                f"request_id={show(key)}", rule, "Pass a text such as 'march-report-1'."
            )
        body: dict[str, JSON] = {
            "kind": kind,
            "question": text,
            "offer": offer,
            "reason": self.reason,
        }
        self._stopped.clear()
        asked = self._server.post(f"{self._path}/questions", body, {"Idempotency-Key": key})
        while asked["status"] == "accepted":
            if self._stopped.is_set():
                rule = "waiting was stopped, and it goes on"
                raise InvalidInput(
                    f"request_id={show(key)}", rule, "Ask again with this request id, for nothing."
                )
            asked = self._server.get(asked["location"], wait=_WAIT)
        match asked["status"]:
            case "answered":
                found = self._server.raw(asked["answer"]).decode().rstrip(" ")
                return found, None if asked["receipt"] is None else _receipt(asked["receipt"])
            case "waiting":
                rule = "it waits for its owner's approval, and nothing was charged yet"
                raise InvalidInput(
                    f"request_id={show(key)}", rule, "Ask again later with this request id."
                )
            case "denied":
                rule = f"its owner denied it ({asked['note'] or 'without a note'})"
                raise InvalidInput(
                    "this question",
                    rule,
                    "Ask for less, or with a better reason. Nothing was charged.",
                )
        if asked["problem"] is None:
            raise LedgerUnavailable(
                self._server.place,
                "the question has no outcome",
                "Ask again with the same request id.",
            )
        raise error_of(asked["problem"])

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteSession({self.name} at {self._server.place}, as {self.analyst})"


def _not_served(what: str, hint: str) -> InvalidInput:
    return InvalidInput(
        f"{what} over HTTP",
        "a server answers questions in SQL or Python, and suggestions of bounds",
        hint,
    )


def _as_json(offer: Offer) -> dict[str, JSON]:
    """An offer as JSON, which the server reads as a session would."""
    given: dict[str, JSON] = {}
    for name, value in offer.items():
        if isinstance(value, Mapping):
            given[name] = {str(key): as_json(each) for key, each in value.items()}
        elif value is not None:
            given[name] = value if isinstance(value, str | bool) else _number(name, value)
    return given


def _number(name: str, value: Any) -> JSON:
    try:
        found = as_json(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name}={show(value)}", "it must be a number", "Pass a number such as 0.1."
        ) from None
    if isinstance(found, float) and found - found != 0:  # JSON has no infinity
        raise InvalidInput(
            f"{name}={show(value)}", "it must be a finite number", "Pass a number such as 0.1."
        )
    return found


def _suggestion(
    epsilon: Number,
    columns: Sequence[str] | None,
    keys: Sequence[ColumnLike],
    query_epsilon: Number | None,
) -> dict[str, JSON]:
    given: dict[str, JSON] = {"epsilon": _number("epsilon", epsilon)}
    if columns is not None:
        given["columns"] = list(columns)
    if keys:
        given["keys"] = [_key(key) for key in keys]
    if query_epsilon is not None:
        given["query_epsilon"] = _number("query_epsilon", query_epsilon)
    return given


def _key(key: ColumnLike) -> str:
    found = term_tree(key)
    if isinstance(key, str) or isinstance(found, tree.Column):
        return key if isinstance(key, str) else found.name  # type: ignore[union-attr]
    raise InvalidInput(show(key), "over HTTP keys are names of columns", "Pass keys=['ward'].")


def _receipt(facts: Mapping[str, Any]) -> Receipt:
    charge, analyst = read_charge(facts["charge"]), facts.get("analyst")
    return Receipt(
        facts["number"],
        charge,
        facts["question"],
        facts.get("request_id", ""),
        analyst,
        facts["time"],
    )
