"""Answers of a served dataset: how many a second with the clock set low, and how near they are to their ticks."""

import asyncio
import time
from statistics import quantiles

from benchmarks.suites.server.places import declare, folder, link
from benchmarks.timing import emit

from sordino.server.link import Ask

ROWS, ANSWERS = 1_000_000, 100
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age >= 65"


async def measure(unit: str, answer_time: float) -> None:
    case = f"COUNT over a million rows, unit {unit}, answer_time {answer_time:g} s"
    with folder() as path:
        declare(path, ROWS, answer_time, unit)
        async with link(path) as dataset:
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
                    reply = await dataset.ask(Ask("ana", "sql", COUNT, {"epsilon": "0.1"}, f"r{number}"))
                    await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
                    if reply.status == "answered":
                        late.append(time.monotonic() - reply.tick)
                        return
                    await asyncio.sleep(4 * answer_time)

            looking = asyncio.ensure_future(owner())
            await asyncio.gather(*(one(number) for number in range(8)))  # warm
            late.clear()
            pauses[0] = 0
            began = time.monotonic()
            await asyncio.gather(*(one(number) for number in range(8, 8 + ANSWERS)))
            took = time.monotonic() - began
            looking.cancel()
            emit(part="slots", case=case, answer_time=answer_time, value=ANSWERS / took)
            emit(part="lateness", case=f"99 % of {case}", value=1000 * quantiles(late, n=100)[98])
            emit(part="pauses", case=case, value=pauses[0])


if __name__ == "__main__":
    for unit, seconds in (("rows", 0.06), ("persons", 0.2)):
        asyncio.run(measure(unit, seconds))
