"""On a GPU, by hand: `python -m benchmarks.suites.learn.gpu [OUT.json]`. Exact noise, and training beside plain
PyTorch.

It checks before it measures: every float32 input against float64, and draws bit for bit against the CPU's sampler.
`--training` leaves noise out, and `--profile` prints which kernels a step spends its time in.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from sordino.learn.clipped_sums import ClippedSums, captured_calls
from sordino.learn.gpu_kernels import LANES
from sordino.learn.gpu_noise import draw_rounded, short_error
from sordino.learn.gradient_noise import GradientNoise
from sordino.learn.graphed_sums import GraphedSums
from sordino.mechanisms import bits
from sordino.mechanisms.rounded import NORMAL, RoundedNoise

nn = torch.nn
COUNT = 2**28


def seconds(work: Callable[[], Any], repeats: int = 10) -> float:
    for _ in range(3):
        work()
    times: list[float] = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times)


class _Kept:
    """Secure bits whose key is known, so that the CPU can follow."""

    def __init__(self) -> None:
        self.key = bits.SecureBits().words(4).copy()

    def words(self, count: int) -> Any:
        return self.key if count == 4 else bits.source().words(count)

    def word(self) -> int:
        return bits.source().word()


def _stream(key: bytes, number: int, blocks: int) -> Any:
    nonce = bytes(8) + number.to_bytes(4, "little") + bytes(4)
    cipher = Cipher(algorithms.ChaCha20(key, nonce), None).encryptor()
    words = np.frombuffer(cipher.update(bytes(64 * blocks)), np.uint32)
    return (
        words.reshape(blocks // LANES, LANES, 16).transpose(0, 2, 1).reshape(-1).astype(np.uint64)
    )


def same_as_cpu(scale: Fraction, count: int, coarse: int = 0) -> dict[str, int]:
    """Draws on both, from the same words: how many differ where floats decide on the CPU (none may)."""
    kept = _Kept()
    blocks = -(-count // (16 * LANES)) * LANES
    high, low = (_stream(kept.key.tobytes(), s, blocks)[:count] for s in (0, 1))
    words = ((high << np.uint64(32)) | low).view(np.int64)
    sums = np.arange(count, dtype=np.int64) * 1234567891 - 2**45 if coarse else None
    parts = None if sums is None else (sums & (2**coarse - 1)) / 2**coarse
    wanted = np.empty(count, np.int64)
    noise = RoundedNoise(NORMAL, scale)
    unsure = noise._decide(words, wanted, np.empty((3, count)), parts)
    given = None if sums is None else torch.as_tensor(sums).cuda()
    found = draw_rounded(scale, count, "cuda", given, coarse, source=kept).cpu().numpy()
    if sums is not None:
        wanted = ((sums >> coarse) + wanted) << coarse
    same = found == wanted
    same[unsure] = True
    return {"count": count, "different": int((~same).sum()), "undecided on the CPU": len(unsure)}


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        from sordino.learn.attention import SelfAttention

        self.attend, self.first = SelfAttention(width, 8), nn.LayerNorm(width)
        self.second = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.first(x))
        return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))


class Transformer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 512, depth: int = 8, words: int = 4096) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, x: Any) -> Any:
        return self.out(self.norm(self.blocks(self.embed(x))).mean(1))


def cnn() -> Any:
    def layer(i: int, o: int, stride: int) -> list[Any]:
        return [nn.Conv2d(i, o, 3, stride=stride, padding=1), nn.GroupNorm(8, o), nn.ReLU()]

    return nn.Sequential(
        *layer(3, 64, 1), *layer(64, 64, 2), *layer(64, 128, 1), *layer(128, 128, 2), *layer(128, 256, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def training(name: str, batch: int, *, tf32: bool) -> dict[str, Any]:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.manual_seed(0)
    model = (cnn() if name == "cnn" else Transformer()).cuda()
    x = (
        torch.randn(batch, 3, 32, 32).cuda()
        if name == "cnn"
        else torch.randint(0, 4096, (batch, 128)).cuda()
    )
    y = torch.randint(0, 2, (batch,)).cuda()
    each = nn.CrossEntropyLoss(reduction="none")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found: dict[str, Any] = {
        "model": name,
        "tf32": tf32,
        "parameters": sum(p.numel() for p in model.parameters()),
    }

    def plain() -> None:
        optimizer.zero_grad()
        each(model(x), y).mean().backward()
        optimizer.step()

    torch.cuda.reset_peak_memory_stats()
    found["plain samples/s"] = batch / seconds(plain)
    found["plain GiB"] = torch.cuda.max_memory_allocated() / 2**30
    optimizer.zero_grad(set_to_none=True)
    sums = ClippedSums(model, 1.0, units=batch)
    sums.learn_shapes(
        captured_calls(model, sums.layers, sums.parameters, lambda m: each(m(x), y))[0]
    )
    noise = GradientNoise.of(Fraction(1))

    used = torch.ones(batch, dtype=torch.bool, device="cuda")
    graphed = GraphedSums(sums, lambda x, y, used: lambda m: torch.where(used, each(m(x), y), 0.0))

    def private() -> None:
        sums.clear()
        graphed.add(x, y, used)
        sums.set_gradients(noise.noisy_tensor(sums.flat), sums.step / batch)
        optimizer.step()

    def without_noise() -> None:
        sums.clear()
        graphed.add(x, y, used)

    def eagerly() -> None:
        sums.clear()
        sums.add(lambda m: each(m(x), y))

    def passes() -> None:
        captured_calls(model, sums.layers, sums.parameters, lambda m: each(m(x), y))

    torch.cuda.reset_peak_memory_stats()
    found["private samples/s"] = batch / seconds(private)
    found["private GiB"] = torch.cuda.max_memory_allocated() / 2**30
    found["sums only samples/s"] = batch / seconds(without_noise)
    found["sums only, not recorded, samples/s"] = batch / seconds(eagerly)
    found["recorded"] = not graphed.eager
    found["passes only samples/s"] = batch / seconds(passes)
    found["ratio"] = found["private samples/s"] / found["plain samples/s"]
    found["memory ratio"] = found["private GiB"] / found["plain GiB"]
    graphed.sums.clear()
    eagerly()
    one = sums.flat.clone()
    without_noise()
    found["recorded and not: same sums"] = bool((one == sums.flat).all())
    found["lost to the lattice"] = sums.shapes.lost / 2**33 if sums.shapes else None
    if "--profile" in sys.argv:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            (eagerly if graphed.eager else private)()
            torch.cuda.synchronize()
        print(
            seen.key_averages().table(
                sort_by="cuda_time_total", row_limit=22, max_name_column_width=90
            )
        )
    return found


def _others() -> dict[str, float]:
    totals = torch.zeros(COUNT, dtype=torch.int64, device="cuda")
    adding = partial(draw_rounded, Fraction(256), COUNT, "cuda", totals, 25, source=bits.source())
    found = {"exact, added to int64 sums": seconds(adding)}
    for dtype in (torch.float32, torch.float64):
        room = torch.empty(COUNT, device="cuda", dtype=dtype)
        found[f"torch.randn {dtype}"] = seconds(room.normal_)
    return {name: COUNT / time / 1e9 for name, time in found.items()}


def noise() -> dict[str, Any]:
    """How exact and how fast it is."""
    facts: dict[str, Any] = {}
    start = time.time()
    facts["float32 error, all 2^31 inputs (log2)"] = float(np.log2(short_error("cuda")))
    facts["that took seconds, with compiling"] = time.time() - start
    facts["same as the CPU"] = {
        "scale 256": same_as_cpu(Fraction(256), 2**24), "scale 1/3": same_as_cpu(Fraction(1, 3), 2**22),
        "scale 1e6": same_as_cpu(Fraction(10**6), 2**24), "scale 200 with sums": same_as_cpu(Fraction(200), 2**24, 25),
        "a ragged end": same_as_cpu(Fraction(256), 1_000_003),
        "a scale that float32 does not have": same_as_cpu(Fraction(2**25 - 3, 8), 2**24),
    }  # fmt: skip
    print(json.dumps(facts, indent=1), flush=True)
    speed = {}
    for scale in (Fraction(10), Fraction(256), Fraction(10**4), Fraction(10**6)):
        speed[f"exact, scale {float(scale):g}"] = (
            COUNT / seconds(partial(draw_rounded, scale, COUNT, "cuda", source=bits.source())) / 1e9
        )
    speed |= _others()
    facts["noise, G/s"] = speed
    print(json.dumps(speed, indent=1), flush=True)
    return facts


def main() -> None:
    facts: dict[str, Any] = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "python": platform.python_version(),
        "cuda": torch.version.cuda,
    }  # fmt: skip
    if "--training" not in sys.argv:
        facts |= noise()
    facts["training"] = []
    for name, batch in (("cnn", 1024), ("transformer", 64)):
        for tf32 in (False, True):
            torch.cuda.empty_cache()
            row = training(name, batch, tf32=tf32)
            facts["training"].append(row)
            print(json.dumps(row), flush=True)
    places = [word for word in sys.argv[1:] if not word.startswith("-")]
    if places:
        Path(places[0]).write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
