"""How long it takes to open a ledger, which checks every entry,
to charge once more, and to verify it with its answers.
"""

from benchmarks.suites.ledger.places import ANSWER, CHARGE, QUESTION, cycle, dataset, folder
from benchmarks.timing import clock, emit

from sordino.ledger.chain import Entry, Link, digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.ledger.terms import charge_facts
from sordino.query.dataset import Dataset


def fill(ledger: Ledger, charges: int) -> None:
    """Many entries in one transaction, as they would be after as many queries."""
    store, link = ledger._journal.store, ledger._journal.state.link
    store.begin()
    for i in range(charges):
        request = Request(f"r{i}", QUESTION, "epsilon=1/100")
        facts: dict[str, object] = {
            "request": request.id,
            "body": request.body,
            "question": QUESTION,
            "offer": request.offer,
            "analyst": None,
        }
        facts |= {"charge": charge_facts(CHARGE), "sources": {"visits": "0" * 32}}
        charge = Entry(
            link.sequence + 1, link.hash, "charge", "2026-01-01T00:00:00+00:00", facts
        ).row
        store.append(charge, link, request.id)
        link = Link(charge.sequence, charge.hash)
        settled = {"charge": charge.sequence, "answer": digest(ANSWER), "size": len(ANSWER)}
        answer = Entry(
            link.sequence + 1, link.hash, "answer", "2026-01-01T00:00:00+00:00", settled
        ).row
        store.append(answer, link, None, ANSWER)
        link = Link(answer.sequence, answer.hash)
    store.commit()


def main() -> None:
    for charges in (100, 1_000, 10_000):
        with folder() as where:
            data = dataset(str(where / "a.ledger"))
            with Ledger.open(data) as ledger:
                fill(ledger, charges)

            def opened(data: Dataset = data) -> None:
                Ledger.open(data).close()

            emit("opening", "open", charges=charges, **clock(opened).time(1e3))
            with Ledger.open(data) as ledger:
                emit("opening", "verify", charges=charges, **clock(ledger.verify).time(1e3))
                numbers = iter(range(10**9))
                timing = clock(lambda ledger=ledger, numbers=numbers: cycle(ledger, next(numbers)))  # type: ignore[misc]
                emit("opening", "one more cycle", charges=charges, **timing.time(1e3))


if __name__ == "__main__":
    main()
