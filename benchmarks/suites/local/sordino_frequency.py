"""Sordino: the protocol that `choose` takes, with a million persons and with as many as the peers are given."""

from typing import Any

from benchmarks.suites.local.settings import FEWER, MILLION, Answer, measured, named_cells, timed
from benchmarks.timing import row

from sordino import local


def main() -> None:
    for case, k, epsilon in named_cells():
        protocol = local.choose(epsilon, k, MILLION).protocol

        def run(true: Any, protocol: Any = protocol) -> Answer:
            found, seconds = timed(lambda: protocol.randomize(true).estimate())
            consistent, more = timed(found.consistent)
            return Answer(found.shares, consistent.shares, seconds + more)

        for persons in (MILLION, FEWER[k]):
            with row(
                "frequency", case, k=k, epsilon=epsilon, how=type(protocol).__name__
            ) as fields:
                fields["variance"] = float(protocol.total_variance(persons) / k)
                fields.update(measured(run, k, persons, 4))


if __name__ == "__main__":
    main()
