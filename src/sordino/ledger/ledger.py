"""The ledger: charge, receipt, stored answer. What it promises, and why it holds, is in ledger.md.

A charge is durable before data are read, an answer before it is shown. The same request is charged once and answered
with the same bytes. Whatever fails, nothing is granted and nothing is refunded.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import (
    InvalidInput,
    LedgerError,
    LedgerMismatch,
    RequestRefused,
    SordinoError,
)
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Entry, Row, digest
from sordino.ledger.fingerprint import Prints
from sordino.ledger.journal import Draft, Journal
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry, open_store, place_of, prints_of
from sordino.ledger.place import Place
from sordino.ledger.receipt import Receipt, Request, checked_name
from sordino.ledger.recognition import Recognition
from sordino.ledger.state import Payment, Tally
from sordino.ledger.store import Store
from sordino.ledger.terms import Allowance, Terms, charge_facts, short
from sordino.ledger.verify import Verdict, verify_store
from sordino.ledger.witness import Witness
from sordino.privacy.budget import Budget
from sordino.privacy.exact import bounds
from sordino.privacy.wording import counted
from sordino.query.dataset import Dataset

if TYPE_CHECKING:
    from sordino.ledger.public_log import Proof, PublicLog

__all__ = ["Ledger", "Paid"]


@dataclass(frozen=True)
class Paid:
    """A receipt; with the stored answer if the request was answered before."""

    receipt: Receipt
    answer: bytes | None = None


class Ledger:
    """What was spent on one dataset. Many sessions, threads and processes may use it at once."""

    def __init__(
        self,
        store: Store,
        prints: Prints | None = None,
        witness: Witness | None = None,
        at: Place | None = None,
    ) -> None:
        self._prints = prints or Prints({})
        self._recognition: Recognition | None = None
        self._public: PublicLog | None = None
        try:
            if witness is not None and at is not None:
                self._recognition = Recognition(store, at, self._prints, witness)
            checked = START if self._recognition is None else self._recognition.checked_before()
            self._journal = Journal(store, checked, self._remember)
            self._journal.catch_up()
            if digest(store.key()) != self._journal.state.key_digest:
                raise self._journal.damaged("the secret of the ledger was changed")
            if self._recognition is not None:
                self._recognition.expect_known(self._journal)
        except BaseException:
            store.close()
            raise

    def __copy__(self) -> Self:
        """Itself: a copy with a state of its own would grant what is left once more."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Itself, so that copies of what holds a ledger, such as scikit-learn's clones, spend from the same one."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        rule = "it holds locks and an open store, which cannot be sent to another process or written to a file"
        hint = "Open it there by its place; of a model to be stored, set_params(ledger=None) first."
        raise InvalidInput("a Ledger", rule, hint)

    @staticmethod
    def open(
        dataset: Dataset, place: str | None = None, *, create: bool = True, as_declared: bool = True
    ) -> Ledger:
        """The ledger of a dataset: at the place given, or declared, or beside the declaration; else in memory.

        It is made if there was none, unless `create` is False: then it is opened to be looked at, and no source is
        touched. With `as_declared` it must hold the declared budget.
        """
        terms = Terms.of(dataset)
        where = place or place_of(dataset)
        if where is None:
            return Ledger(MemoryStore(*first_entry(terms)))
        witness, at = Witness(), Place.of(where)
        prints = prints_of(dataset) if create else Prints({})
        ledger = Ledger(open_store(at, terms, witness, create=create), prints, witness, at)
        try:
            if as_declared:
                ledger.expect(terms)
            ledger._remember()
        except BaseException:
            ledger.close()
            raise
        return ledger

    @staticmethod
    def place_of(dataset: Dataset) -> str | None:
        """Where the ledger of a dataset is: as declared, or beside the declaration."""
        return place_of(dataset)

    @staticmethod
    def accept(dataset: Dataset, place: str | None = None) -> Ledger:
        """The ledger as it is now, though this machine has seen another state of it; what was seen is recorded in it.

        Privacy: what was spent in the state that is lost is no longer counted. Only the owner can answer for that.
        """
        where, witness = place or place_of(dataset), Witness()
        if where is None:
            raise InvalidInput(
                "a dataset without a ledger",
                "there is nothing to accept",
                "Declare one under [ledger].",
            )
        at, terms = Place.of(where), Terms.of(dataset)
        seen = witness.recall(at.shown)
        prints = prints_of(dataset)
        ledger = Ledger(open_store(at, terms, None), prints)
        with contextlib.ExitStack() as stack:
            stack.callback(ledger.close)
            copies = [other for other in witness.others(at.shown) if other.ledger == ledger.id]
            lost = max(filter(None, (seen, *copies)), key=lambda note: note.count, default=None)
            facts = (
                {}
                if lost is None
                else {"ledger": lost.ledger, "count": lost.count, "hash": lost.hash}
            )
            ledger._write(lambda: Draft("accept", {"seen": facts}))
            for note in copies:  # only now: a note is not given up for an acceptance that failed
                witness.forget(note.place)
            witness.forget(at.shown)
            ledger._recognition = Recognition(ledger._journal.store, at, prints, witness)
            ledger._remember()
            stack.pop_all()
        return ledger

    @property
    def place(self) -> str:
        """Where it is kept."""
        return self._journal.place

    @property
    def durable(self) -> bool:
        """Whether it outlives the process."""
        return self._journal.store.durable

    @property
    def id(self) -> str:
        """The hash of its first entry, which no other ledger has."""
        return self._journal.id

    @property
    def terms(self) -> Terms:
        """Whose data it guards, and the budget in force."""
        with self._journal.current() as state:
            if state.terms is None:
                raise self._journal.damaged("its first entry does not declare a budget")
            return state.terms

    @property
    def allotments(self) -> dict[str, Allowance]:
        """The sub-budgets, by analyst."""
        with self._journal.current() as state:
            return dict(state.allotments)

    @property
    def payments(self) -> tuple[Payment, ...]:
        """All charges so far, and what became of each; reads every entry."""
        with self._journal.current() as state:
            whole = state if state.start == START else self._journal.reread()
            return tuple(whole.payments.values())

    @property
    def tallies(self) -> dict[str | None, Tally]:
        """How many charges each analyst has, how many of them were answered, and their sum."""
        with self._journal.current() as state:
            return state.tallies

    @property
    def spent(self) -> Charge:
        """The sum of all charges."""
        with self._journal.current() as state:
            return state.spent

    def recent(self, most: int, analyst: str | None = None) -> tuple[Payment, ...]:
        """The last charges, of an analyst if one is named; the newest last."""
        with self._journal.current() as state, self._journal.reading():
            tallies = state.tallies
            known = (
                sum(each.charges for each in tallies.values())
                if analyst is None
                else _of(tallies, analyst).charges
            )
            wanted = (each for each in state.newest() if analyst in (None, each.receipt.analyst))
            return tuple(itertools.islice(wanted, min(most, known)))[::-1]

    def payment(self, request_id: str, analyst: str | None = None) -> Payment | None:
        """The charge that an analyst made under a request id."""
        with self._journal.current():
            return self._journal.payment(request_id, analyst)

    def answer_to(self, payment: Payment) -> bytes | None:
        """The stored answer to a charge, as its entry knows it; None if it has none."""
        if payment.status != "answered":
            return None
        with self._journal.lock():
            answer = self._journal.store.answer(payment.settled)
            if answer is None or digest(answer) != payment.answer:
                raise self._journal.damaged(
                    f"the answer to entry {payment.receipt.number} was changed"
                )
            return answer

    @property
    def forfeited(self) -> int:
        """How many charges have no answer and, unless their query still runs, never will."""
        with self._journal.current() as state:
            return state.forfeited

    def meter(self, analyst: str | None = None) -> TwoMeterFilter:
        """What may still be spent, by an analyst where there are sub-budgets."""
        with self._journal.current() as state:
            return state.meter(analyst)

    def stored(self, request: Request) -> Paid | None:
        """Receipt and answer of a request that was answered before; RequestRefused if it cannot be answered again."""
        with self._journal.current():
            return self._repeated(request)

    def charge(self, charge: Charge, request: Request) -> Paid:
        """Debit a charge, durably; or BudgetExceeded, and nothing debited. A repeated request is not charged again."""
        charging = _Charging(self, short(charge), request)  # what is checked is what is recorded
        return charging.paid(self._write(charging.step))

    def store(self, receipt: Receipt, answer: bytes) -> None:
        """Keep the answer to a charge, durably; only then may it be shown."""
        with _after_charge(receipt):
            self._write(self._storing(receipt, answer))

    def store_and_charge(
        self, receipt: Receipt, answer: bytes | None, charge: Charge, request: Request
    ) -> tuple[SordinoError | None, Paid | SordinoError]:
        """Keep an answer (None: forfeit its charge) and debit another charge, in one transaction and in this order.

        What each of the two would have raised alone is returned.
        """
        charging = _Charging(self, short(charge), request)
        stored, charged = self._journal.write_all([self._storing(receipt, answer), charging.step])
        for wish in (stored, charged):
            if wish.failure is not None and not isinstance(wish.failure, SordinoError):
                raise wish.failure
        kept, paid = stored.failure, charged.failure
        if isinstance(kept, LedgerError):
            try:
                with _after_charge(receipt):
                    raise kept
            except LedgerError as error:
                kept = error
        return kept, charging.paid(charged.row) if paid is None else paid  # type: ignore[return-value]

    def _storing(self, receipt: Receipt, answer: bytes | None) -> Callable[[], Draft]:
        """The step that answers or forfeits an open charge."""

        def step() -> Draft:
            self._open_payment(receipt)
            if answer is None:
                return Draft("forfeit", {"charge": receipt.number})
            return Draft(
                "answer",
                {"charge": receipt.number, "answer": digest(answer), "size": len(answer)},
                answer=answer,
            )

        return step

    def forfeit(self, receipt: Receipt) -> None:
        """Record that a charge will have no answer; it stays spent."""
        with _after_charge(receipt):
            self._write(self._storing(receipt, None))

    def declare(self, terms: Terms) -> bool:
        """Put another budget, or other tables, in force, as the owner; False if they are in force already.

        Privacy: all answers together keep the largest epsilon that was ever in force, and as delta the sum of its
        largest part for keys and its largest rest (ledger.md, P2).
        """
        return (
            self._write(
                lambda: (
                    None if terms == self._journal.state.terms else Draft("declare", terms.facts)
                )
            )
            is not None
        )

    def allot(
        self, analyst: str, budget: Budget | None, reserved_delta: Fraction | None = None
    ) -> None:
        """Give an analyst ("*": every other) a part of the budget, as the owner; None takes it back.

        Once anybody has a sub-budget, only those who have one may ask. What an analyst spent before counts.
        """
        checked_name(
            "analyst",
            analyst,
            "Pass a name, or '*' for everybody without a sub-budget of their own.",
        )
        whole = self.terms.allowance
        allowance = None
        if budget is not None:
            if budget.epsilon > whole.budget.epsilon or budget.delta > whole.budget.delta:
                rule = f"a sub-budget is a part of the whole, {whole}"
                raise InvalidInput(
                    str(budget),
                    rule,
                    "Give a part of it; the parts may add up to more than the whole.",
                )
            share = whole.reserved_delta / whole.budget.delta if whole.budget.delta else Fraction(0)
            reserved = (
                budget.delta * share
                if reserved_delta is None
                else bounds("reserved_delta", reserved_delta).lower
            )
            allowance = Allowance(budget, reserved)
            allowance.meter()  # refuses a reserved delta beyond the delta
        facts = {"analyst": analyst, "allowance": None if allowance is None else allowance.facts}
        self._write(lambda: Draft("allot", facts))

    def anchor(self) -> Anchor:
        """Its end now, to be kept elsewhere."""
        with self._journal.current() as state:
            return Anchor(state.id, *state.link)

    def public_log(self) -> PublicLog:
        """The log of all entries so far, from which those who were answered get proofs of it."""
        # signatures are a library of their own, loaded for them alone
        from sordino.ledger.public_log import (
            PublicLog,
        )

        with self._journal.current() as state, self._journal.reading():
            if self._public is None:
                self._public = PublicLog(self._journal.store, state.id)
            self._public.catch_up(state.link)
            return self._public

    def proof(
        self, request_id: str, analyst: str | None = None, *, since: int | None = None
    ) -> Proof:
        """That a request was charged, and answered if it was; that the log continues its first `since` entries."""
        from sordino.ledger.public_log import findings

        with self._journal.current(), self._journal.reading():
            payment = self._journal.payment(request_id, analyst)
            if payment is None:
                raise RequestRefused(
                    request_id,
                    "nothing was charged under this id",
                    "Pass the id that a receipt shows.",
                )
            answer = (
                self._journal.store.answer(payment.settled)
                if payment.status == "answered"
                else None
            )
            proof = self.public_log().proof(payment, answer, since)
            wrong = findings(proof)
            if wrong:  # the place gave other rows than those it gave before
                raise self._journal.damaged(wrong[0])
            return proof

    def verify(self, anchor: Anchor | None = None) -> Verdict:
        """Check all of it, against an anchor if one is given."""
        with self._journal.lock():
            verdict, known = verify_store(self._journal.store, anchor), self._journal.known
            if verdict and known != START:  # what this session has seen is an anchor, too
                row = next(iter(self._journal.store.rows(known.sequence - 1, known.sequence)), None)
                if row is None or (row.sequence, row.hash) != known:
                    return replace(
                        verdict, findings=("it was put back or rewritten while it was open",)
                    )
            return verdict

    def export(self) -> Iterator[str]:
        """Its entries, one line each: each holds the SHA-256 of the line before, and the anchor that of the last."""
        with self._journal.current() as state:
            return iter([row.text for row in self._journal.store.rows(0, state.link.sequence)])

    def expect(self, terms: Terms) -> None:
        """Refuse if the ledger guards other tables, holds another budget, or is of a time when bounds meant others."""
        kept = self.terms
        if kept.lineage != terms.lineage:
            rule = f"it guards {kept}, and the declaration says {terms}"
            hint = (
                "Use the ledger of this table; or, if its declaration has changed, "
                "let the owner run `sordino budget set`."
            )
            raise LedgerMismatch(self.place, rule, hint)
        if kept.allowance != terms.allowance:
            rule = (
                f"it holds a budget of {kept.allowance}, and the declaration says {terms.allowance}"
            )
            hint = "Declare the recorded budget, or let the owner put the new one in force: sordino budget set."
            raise LedgerMismatch(self.place, rule, hint)
        if kept.max_rows != terms.max_rows and any(unit != "row" for _, unit, _ in terms.lineage):
            rule = (
                "it was begun when max_rows was how many rows of one person count within a group; now it is how many count "
                "in the whole answer, so that the same declaration bounds persons otherwise. What was charged stays charged"
            )
            hint = (
                "Look at the bounds in the declaration: max_rows_per_group is what max_rows was. Then let the owner run "
                "`sordino budget set`, which puts it in force."
            )
            raise LedgerMismatch(self.place, rule, hint)

    def close(self) -> None:
        """Close the place where it is kept."""
        with self._journal.lock():
            self._journal.store.close()

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
        return f"Ledger({self.place}: {counted(self._journal.state.link.sequence, 'entry', 'entries')})"

    def _write(self, step: Callable[[], Draft | None]) -> Row | None:
        """Write what `step` drafts when it is the only writer, durably; this machine notes it before this returns."""
        return self._journal.write(step)

    def _remember(self) -> None:
        if self._recognition is not None:
            self._recognition.remember(self._journal)

    def _repeated(self, request: Request) -> Paid | None:
        payment = self._journal.payment(request.id, request.analyst)
        if payment is None:
            return None
        number = payment.receipt.number
        if payment.body != request.body:
            rule = f"entry {number} stands for another question or price under this id"
            raise RequestRefused(
                request.id, rule, "Use a new id for a new question. Nothing was charged."
            )
        answer = self.answer_to(payment)
        if answer is not None:
            return Paid(payment.receipt, answer)
        why = (
            "its query failed"
            if payment.status == "forfeited"
            else "its query is running, or ended before it was stored"
        )
        hint = "Wait if it is running; else the charge is forfeited, and a new id asks again. Nothing was charged now."
        raise RequestRefused(
            request.id, f"it was charged as entry {number} and has no answer: {why}", hint
        )

    def _open_payment(self, receipt: Receipt) -> None:
        with self._journal.reading():
            payment = self._journal.state.payment_at(receipt.number)
        if (
            payment is None
            or payment.receipt.hash != receipt.hash
            or payment.status != "unanswered"
        ):
            raise RequestRefused(
                receipt.request_id,
                "its charge is not open",
                "Only an open charge can be answered, once.",
            )


class _Charging:
    """A charge on its way into a ledger: the step that decides, and what its row means."""

    def __init__(self, ledger: Ledger, amount: Charge, request: Request) -> None:
        self._ledger, self._amount, self._request = ledger, amount, request
        self._before: Paid | None = None

    def step(self) -> Draft | None:
        """None if the request was answered before."""
        ledger, request = self._ledger, self._request
        self._before = ledger._repeated(request)
        if self._before is not None:
            return None
        ledger._journal.state.meter(request.analyst).spend(self._amount)
        facts = {
            "request": request.id, "body": request.body, "question": request.question, "offer": request.offer,
            "analyst": request.analyst, "charge": charge_facts(self._amount),
            "sources": ledger._prints.under(ledger._journal.store.key()),
        }  # fmt: skip
        return Draft("charge", facts, request.key)

    def paid(self, row: Row | None) -> Paid:
        """The receipt; with the stored answer if there was one before."""
        if self._before is not None:
            return self._before
        if row is None:
            raise AssertionError("a charge was neither repeated nor written")
        return Paid(Payment.of(Entry.of(row), row.hash).receipt)


@contextlib.contextmanager
def _after_charge(receipt: Receipt) -> Iterator[None]:
    """A failure that comes after a charge does not undo it, and its message says so."""
    try:
        yield
    except LedgerError as error:
        outcome = f"The charge, entry {receipt.number}, stays spent; its answer was not stored, and is not shown."
        raise type(error)(error.place, error.rule, error.hint, outcome) from None


def _of(tallies: dict[str | None, Tally], analyst: str) -> Tally:
    return tallies.get(analyst, Tally())
