"""Answers of a served dataset: how many a second with the clock set low, and how near they are to their ticks."""

import asyncio
import time
from statistics import quantiles

from benchmarks.suites.server.places import declare, folder, link
from benchmarks.timing import emit

from sordino.server.link import Ask

ROWS = 1_000_000
ANSWERS = 150
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age >= 65"


async def measure(answer_time: float) -> None:
    with folder() as path:
        declare(path, ROWS, answer_time)
        async with link(path) as dataset:
            late: list[float] = []
            moments: list[float] = []
            counts = {"answered": 0, "paused": 0}

            async def one(number: int) -> None:
                while True:
                    reply = await dataset.ask(Ask("ana", "sql", COUNT, {"epsilon": "0.1"}, f"r{number}"))
                    await asyncio.sleep(max(reply.tick - time.monotonic(), 0))
                    if reply.status == "answered":
                        late.append(time.monotonic() - reply.tick)
                        moments.append(time.monotonic())
                        return
                    counts["paused"] += 1
                    await dataset.resume()

            await asyncio.gather(*(one(number) for number in range(8)))  # warm
            late.clear()
            moments.clear()
            began = time.monotonic()
            await asyncio.gather(*(one(number) for number in range(8, 8 + ANSWERS)))
            took = max(moments) - began
            emit(part="slots", case=f"COUNT, answer_time {answer_time:g} s", answer_time=answer_time, value=ANSWERS / took)
            emit(part="lateness", case=f"99 %, answer_time {answer_time:g} s", value=1000 * quantiles(late, n=100)[98])
            emit(part="pauses", case=f"answer_time {answer_time:g} s", value=counts["paused"])


if __name__ == "__main__":
    for seconds in (0.06, 0.2):
        asyncio.run(measure(seconds))
