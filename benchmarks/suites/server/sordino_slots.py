"""Answers of a served dataset: how many a second with the clock set low, and how near they are to their ticks.

`possible` is how many one core would answer that had nothing else to do, whatever the disk takes.
"""

import asyncio
import os
import time
from statistics import quantiles

from benchmarks.processor import tree_seconds
from benchmarks.suites.server.places import declare, folder, link
from benchmarks.timing import emit

from sordino.server.link import Ask

ROWS, ANSWERS = 1_000_000, 100
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

            async def one(number: int) -> None:
                while True:
                    reply = await dataset.ask(Ask("ana", "sql", COUNT.format(number), {"epsilon": "0.1"}, f"r{number}"))
                    await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
                    if reply.status == "answered":
                        late.append(time.monotonic() - reply.tick)
                        return
                    await asyncio.sleep(4 * answer_time)

            looking = asyncio.ensure_future(owner())
            await asyncio.gather(*(one(number) for number in range(8)))  # warm
            late.clear()
            pauses[0] = 0
            began, before = time.monotonic(), tree_seconds(pid)
            await asyncio.gather(*(one(number) for number in range(8, 8 + ANSWERS)))
            took, used = time.monotonic() - began, tree_seconds(pid) - before
            looking.cancel()
            emit(
                part="slots", case=case, answer_time=answer_time, value=ANSWERS / took, processor=1000 * used / ANSWERS,
                possible=ANSWERS / used, load=round(os.getloadavg()[0], 1),
            )  # fmt: skip
            emit(part="lateness", case=f"99 % of {case}", value=1000 * quantiles(late, n=100)[98])
            emit(part="pauses", case=case, value=pauses[0])


if __name__ == "__main__":
    for unit, seconds in (("rows", 0.06), ("persons", 0.2)):
        asyncio.run(measure(unit, seconds))
