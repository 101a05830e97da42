"""The seam between the two kinds of process: what web knows of one dataset, and what it may ask its engine process.

Web has no path to data and no ledger. It plans previews from `Facts`, which the engine process pushes after each entry
of the ledger; the engine's charge always decides. All that crosses here is plain values: texts, numbers, bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, Union

from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput
from sordino.query.dataset import Dataset

__all__ = ["ANYBODY", "JSON", "Ask", "Facts", "Link", "Reply", "Standing", "Status"]

JSON: TypeAlias = Union[str, int, float, bool, Sequence["JSON"], Mapping[str, "JSON"], None]  # noqa: UP007
Status: TypeAlias = Literal["answered", "refused", "failed"]
Standing: TypeAlias = Literal["starting", "open", "paused"]
ANYBODY = "*"
"""The name under which an owner gives a sub-budget to every analyst without one of their own; as in the ledger."""


@dataclass(frozen=True)
class Ask:
    """One question of one person, as web passes it on.

    `kind` "sql": `question` is one SELECT, `offer` what `Session.sql` takes beside it. `kind` "suggest": `question` is
    the name of a table ("" for the only one), `offer` what `Session.suggest` takes: epsilon, columns, keys,
    query_epsilon. Numbers of an offer are JSON numbers, or texts such as "0.1" and "1/3", which are exact (`offers.py`
    reads both). The request id is the person's own: ids of two analysts never meet.
    """

    analyst: str | None
    kind: Literal["sql", "suggest"]
    question: str
    offer: Mapping[str, JSON]
    request_id: str


@dataclass(frozen=True)
class Reply:
    """What became of it; web shows it at `tick`, never before. An engine process sends it then.

    "refused" came before the charge, is a function of public facts, and has tick 0: it may be shown at once.
    "answered" and "failed" (after the charge) wait for their tick, a moment of the system's monotonic clock
    (`time.monotonic()`, the same in all processes of a machine). `body` is the stored answer as the ledger keeps it,
    byte by byte; b"" unless answered. `problem` has the parts of a SordinoError, without paths (`problems.py`).
    """

    status: Status
    body: bytes = b""
    receipt: Mapping[str, JSON] | None = None
    problem: Mapping[str, JSON] | None = None
    tick: float = 0.0


@dataclass(frozen=True)
class Facts:
    """What is public about a dataset, or was released of it: the newest copy that its engine process pushed.

    `dataset` is the declaration with sources that lead nowhere, and with the contents of public tables, so that plans
    are those of the engine. `meters` has the whole budget under None; where the owner gave sub-budgets, one for each
    analyst who has or had one, and under "*" what everybody else has. `sequence` is the last entry of the ledger that
    they know.
    """

    dataset: Dataset
    dialect: str
    answer_time: float
    state: Standing
    dry_run: bool
    sequence: int
    meters: Mapping[str | None, TwoMeterFilter] = field(default_factory=dict)
    queue: int = 0
    """How many questions wait, which depends on requests only."""
    edition: str = ""
    """Which writing of the source files it is: when the owner wrote them, and nothing of what is in them."""

    def meter(self, analyst: str | None) -> TwoMeterFilter:
        """What somebody may still spend, as the ledger's own `meter` says it; a copy, which decides nothing."""
        if analyst in self.meters:
            return self.meters[analyst]
        if len(self.meters) == 1:  # no sub-budgets
            return self.meters[None]
        if ANYBODY in self.meters:
            return self.meters[ANYBODY]
        rule = "this ledger gives sub-budgets, and there is none for them"
        raise InvalidInput(
            f"analyst {analyst!r}", rule, "Ask as one who has one, or let the owner give one."
        )


class Link(Protocol):
    """One dataset, as web sees it. Every method may be called from many tasks of one event loop at once."""

    name: str

    def facts(self) -> Facts:
        """The newest pushed copy; does not wait.

        LedgerUnavailable while the engine process has not said anything yet.
        """

    async def ask(self, ask: Ask) -> Reply:
        """Charge, run, release and store, or refuse. Returns when there is something to show, at its tick.

        If the engine process ends meanwhile the reply is "failed": the question may have been charged, and asking again
        with the same id tells, and never charges twice.
        """

    async def answer(self, analyst: str | None, request_id: str) -> Reply:
        """What became of a question that was asked before:
        the stored bytes with the tick at which they may be shown.
        """

    async def payments(
        self, analyst: str | None, after: int, limit: int
    ) -> Sequence[Mapping[str, JSON]]:
        """Receipts with larger numbers, oldest first, of one analyst or of all (None), each with status and digest."""

    async def proof(self, analyst: str | None, request_id: str, since: int | None) -> str:
        """The receipt of a question that was answered or failed,
        as a document that proves it (ledger/public_log.md).
        """

    async def checkpoint(self, since: int | None) -> Mapping[str, JSON]:
        """The key and the signed checkpoint of the ledger's log;
        the path that it continues its first `since` entries.
        """

    async def allot(self, analyst: str, epsilon: JSON, delta: JSON) -> Reply:
        """Give a sub-budget, as the owner; epsilon None takes it back. Web checks who may."""

    async def resume(self) -> None:
        """The owner ends a pause."""
