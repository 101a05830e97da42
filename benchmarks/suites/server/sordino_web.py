"""Pages and previews of `sordino serve`, by clients that keep their connections; the processor time is the server's
alone.

The clients run on the same machine and take their part of it. `possible` is how many requests two cores would serve
that had nothing else to do: two seconds of processor time by what one request takes of it.
"""

import asyncio
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from benchmarks.processor import tree_seconds
from benchmarks.suites.server.places import declare, folder
from benchmarks.timing import emit

SECONDS, CLIENTS, CORES = 5.0, 16, 2
MEAN = "SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE age >= {} AND cost < {}"
GROUPS = "SELECT FLOOR(age / 10) AS d, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE cost < {} GROUP BY d"


Request: TypeAlias = tuple[str, str, object]
"""Method, path and body."""
Requests: TypeAlias = Callable[[], Request]


@contextmanager
def serving(path: Path) -> Iterator[tuple[int, int, str]]:
    """Port, process and an owner's token of a server that has started."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = int(found.getsockname()[1])
    command = [sys.executable, "-m", "sordino", "serve", str(path), "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield port, process.pid, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(30)


async def send(port: int, token: str, requests: Requests, until: float) -> int:
    """How many requests one client was answered, one after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    while time.monotonic() < until:
        method, path, body = requests()
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer.lower())
        text = await reader.readexactly(0 if length is None else int(length[1]))
        if not answer.startswith(b"HTTP/1.1 200"):
            raise AssertionError((answer[:40], text[:300]))
        done += 1
    writer.close()
    return done


async def ready(port: int, token: str) -> None:
    """Until the dataset is open."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            await send(
                port,
                token,
                lambda: ("POST", "/v1/datasets/visits/preview", preview(MEAN.format(1, 1))),
                0,
            )
            await send(port, token, lambda: ("POST", "/v1/datasets/visits/preview", preview(MEAN.format(1, 1))),
                       time.monotonic() + 0.001)  # fmt: skip
            return
        except (OSError, AssertionError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.2)
    raise AssertionError("the server did not start")


def preview(sql: str, epsilon: str = "0.1") -> dict[str, object]:
    return {"kind": "sql", "question": sql, "offer": {"epsilon": epsilon}, "show": []}


def get(path: str) -> Request:
    return "GET", path, None


async def measure(
    what: str, case: str, port: int, pid: int, token: str, requests: Requests
) -> None:
    for seconds in (1.0, SECONDS):  # the first warms up
        before, began = tree_seconds(pid), time.monotonic()
        counts = await asyncio.gather(
            *(send(port, token, requests, began + seconds) for _ in range(CLIENTS))
        )
        took, used = time.monotonic() - began, tree_seconds(pid) - before
    count = sum(counts)
    emit(what, case, value=count / took, processor=1000 * used / count, possible=CORES * count / used,
         load=round(os.getloadavg()[0], 1))  # fmt: skip


async def everything(port: int, pid: int, token: str) -> None:
    await ready(port, token)
    numbers, at = itertools.count(1), "/v1/datasets/visits/preview"

    def other() -> Request:
        n = next(numbers)
        return "POST", at, preview(MEAN.format(n % 110, f"{n % 9973}.5"))

    def grouped() -> Request:
        return "POST", at, preview(GROUPS.format(f"{next(numbers) % 99991}.5"))

    def dearer() -> Request:
        return "POST", at, preview(MEAN.format(65, 50), f"0.{next(numbers)}")

    for case, requests in (
        ("a mean, another question each time", other),
        ("a grouped mean, another question each time", grouped),
        ("a mean, the same question at another price each time", dearer),
        (
            "a mean, the same question at the same price",
            lambda: ("POST", at, preview(MEAN.format(65, 50))),
        ),
    ):
        await measure("previews", case, port, pid, token, requests)
    for case, path in (
        ("GET /healthz", "/healthz"),
        ("GET /v1/datasets/visits, with a token", "/v1/datasets/visits"),
        ("GET /login, a page", "/login"),
    ):
        await measure("pages", case, port, pid, token, partial(get, path))


if __name__ == "__main__":
    with folder() as path:
        declare(path, 10_000, 0.2, "persons")
        with serving(path) as (port, pid, token):
            asyncio.run(everything(port, pid, token))
