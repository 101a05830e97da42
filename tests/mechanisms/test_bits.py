"""The bit source: never repeats across threads, forks and keys; close to fair."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any
from unittest import mock

import numpy as np

from sordino.mechanisms import bits
from sordino.mechanisms.bits import CHUNK, SecureBits

FORKS = """
import os, sys
import sordino as so
from sordino.mechanisms import bits
so.Laplace(scale=10**6).release([1, 2, 3])  # the parent's stream is in use, with words waiting
bits.source().word()
ends = []
for _ in range(int(sys.argv[1])):
    r, w = os.pipe()
    if os.fork() == 0:
        s = bits.source()
        pairs = [f"{s.word():016x}{s.word():016x}" for _ in range(500)]
        pairs += [f"{a:016x}{b:016x}" for a, b in s.words(1000).view("uint64").reshape(-1, 2).tolist()]
        os.write(w, "\\n".join(pairs[:900]).encode())
        os._exit(0)
    os.close(w)
    ends.append(r)
s = bits.source()
seen = [f"{s.word():016x}{s.word():016x}" for _ in range(1000)]
for r in ends:
    with open(r) as f:
        seen += f.read().split("\\n")
print(len(seen), len(set(seen)))
"""


def test_forked_children_never_repeat_a_draw() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", FORKS, "64"], capture_output=True, text=True, check=True
    )
    total, different = map(int, answer.stdout.split())
    assert total == different == 1000 + 64 * 900


def test_a_fork_that_bypasses_the_hooks_is_noticed() -> None:
    stream = SecureBits()
    stream.word()
    before = stream._stream
    with mock.patch("os.getpid", return_value=-1):
        stream.word()
        assert stream._stream is not before
        before = stream._stream
        stream.words(10)
        assert stream._stream is before


def test_threads_have_streams_of_their_own() -> None:
    words: list[int] = []
    streams: list[bits.Bits] = []

    def work() -> None:
        streams.append(bits.source())
        words.extend(
            [bits.source().word() for _ in range(2000)] + bits.source().words(2000).tolist()
        )

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, streams))) == 8
    assert len(set(words)) == len(words) == 8 * 4000


def test_a_key_is_replaced_before_it_has_given_too_much() -> None:
    stream = SecureBits()
    stream._left = 8 * CHUNK - 8
    first = stream._stream
    stream.words(CHUNK)
    assert stream._stream is not first
    assert stream._left == 2**30 - 8 * CHUNK


def test_words_are_fair_bit_by_bit() -> None:
    words = np.concatenate([SecureBits().words(CHUNK).copy() for _ in range(64)])
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(ones - 0.5).max() < 7 / 2 / np.sqrt(len(words))
    single = SecureBits()
    mean = np.mean([single.word() for _ in range(20_000)]) / 2**64
    assert abs(mean - 0.5) < 7 / np.sqrt(12 * 20_000)


def test_the_public_api_takes_no_seed() -> None:
    import inspect

    import sordino as so

    for name in so.__all__:
        thing: Any = getattr(so, name)
        methods: list[Any] = (
            [thing, *(m for _, m in inspect.getmembers(thing, callable))]
            if inspect.isclass(thing)
            else [thing]
        )
        for method in methods:
            try:
                parameters = inspect.signature(method).parameters
            except (TypeError, ValueError):
                continue
            assert not {"seed", "random_state", "rng", "generator", "bits"} & set(parameters), (
                name,
                method,
            )
