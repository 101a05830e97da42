"""Answers of a served dataset: how many a second with the clock set low, and how near they are to their ticks.

`possible` is how many one core would answer that had nothing else to do, whatever the disk takes.
"""

import asyncio
import itertools
import os
import time
from statistics import quantiles

from benchmarks.processor import tree_seconds
from benchmarks.suites.server.places import declare, folder, link
from benchmarks.timing import emit

from sordino.server.link import Ask

ROWS, CLIENTS, SECONDS = 1_000_000, 8, 15.0
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age >= {}"


async def measure(unit: str, answer_time: float) -> None:
    case = f"COUNT over a million rows, unit {unit}, answer_time {answer_time:g} s"
    with folder() as path:
        declare(path, ROWS, answer_time, unit)
        async with link(path) as (dataset, pid):
            late: list[float] = []
            pauses = [0]

            async def owner() -> None:
                """Looks, and goes on: on a machine that is busy otherwise slots overrun."""
                while True:
                    await asyncio.sleep(answer_time)
                    if dataset.facts().state == "paused":
                        pauses[0] += 1
                        await dataset.resume()

            async def client(first: int, until: float) -> None:
                for number in itertools.count(first, CLIENTS):
                    if time.monotonic() > until:
                        return
                    ask = Ask(
                        "ana", "sql", COUNT.format(number % 110), {"epsilon": "0.1"}, f"r{number}"
                    )
                    reply = await dataset.ask(ask)
                    if reply.status == "answered":
                        late.append(time.monotonic() - reply.tick)
                    else:
                        await asyncio.sleep(4 * answer_time)

            looking = asyncio.ensure_future(owner())
            for seconds, start in ((3.0, 0), (SECONDS, 10**6)):  # the first warms up
                late.clear()
                pauses[0] = 0
                began, before = time.monotonic(), tree_seconds(pid)
                await asyncio.gather(
                    *(client(start + place, began + seconds) for place in range(CLIENTS))
                )
                took, used = time.monotonic() - began, tree_seconds(pid) - before
            looking.cancel()
            answers = len(late)
            emit(
                part="slots", case=case, answer_time=answer_time, value=answers / took, processor=1000 * used / answers,
                possible=answers / used, load=round(os.getloadavg()[0], 1),
            )  # fmt: skip
            emit(part="lateness", case=f"99 % of {case}", value=1000 * quantiles(late, n=100)[98])
            emit(part="pauses", case=case, value=pauses[0])


if __name__ == "__main__":
    for unit, seconds in (("rows", 0.06), ("persons", 0.2)):
        asyncio.run(measure(unit, seconds))
