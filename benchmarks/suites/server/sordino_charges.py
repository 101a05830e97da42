"""Durable charges of many threads: one sync of the disk serves all that wait."""

import threading
from time import perf_counter

from benchmarks.suites.ledger.places import CHARGE, QUESTION, dataset, folder
from benchmarks.timing import emit

from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request

SECONDS = 4.0


def charges(ledger: Ledger, threads: int) -> float:
    """How many a second, of so many threads together."""
    counts = [0] * threads
    until = perf_counter() + SECONDS

    def work(place: int) -> None:
        while perf_counter() < until:
            ledger.charge(
                CHARGE,
                Request(
                    f"{threads}/{place}/{counts[place]}",
                    QUESTION,
                    "epsilon=1/100",
                    f"analyst {place}",
                ),
            )
            counts[place] += 1

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    began = perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (perf_counter() - began)


if __name__ == "__main__":
    with folder() as path, Ledger.open(dataset(str(path / "visits.ledger"))) as ledger:
        for threads in (1, 8, 32, 128):
            emit(
                part="charges",
                case=f"{threads} threads",
                threads=threads,
                value=charges(ledger, threads),
            )
        if not ledger.verify():
            raise AssertionError("the ledger does not verify")
