"""Exact noise on a GPU: bit for bit what the CPU draws from the same words. Without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'sordino[torch]'"
)

from sordino.mechanisms import bits  # noqa: E402
from sordino.mechanisms.rounded import NORMAL, RoundedNoise  # noqa: E402

GPU = torch.cuda.is_available()
NOT_SHORT = Fraction(2**25 - 3, 8)
"""A scale that float32 does not have: with the nearest that it has, a tenth of all draws would be others."""


class KnownKey:
    """Bits whose key the test knows."""

    def __init__(self) -> None:
        self.key = bits.SecureBits().words(4).copy()

    def words(self, count: int) -> Any:
        return self.key if count == 4 else bits.source().words(count)

    def word(self) -> int:
        return bits.source().word()


def stream(key: bytes, number: int, blocks: int, lanes: int) -> Any:
    """ChaCha20 by OpenSSL, in the order of the kernel's numbers."""
    nonce = bytes(8) + number.to_bytes(4, "little") + bytes(4)
    words = np.frombuffer(
        Cipher(algorithms.ChaCha20(key, nonce), None).encryptor().update(bytes(64 * blocks)),
        np.uint32,
    )
    return (
        words.reshape(blocks // lanes, lanes, 16).transpose(0, 2, 1).reshape(-1).astype(np.uint64)
    )


def differences(scale: Fraction, count: int, device: str, coarse: int = 0) -> int:
    """How many numbers of a draw are not what `RoundedNoise` makes of the same words."""
    from sordino.learn import gpu_noise
    from sordino.learn.gpu_kernels import LANES

    known = KnownKey()
    blocks = -(-count // (16 * LANES)) * LANES
    high, low = (stream(known.key.tobytes(), s, blocks, LANES)[:count] for s in (0, 1))
    words = ((high << np.uint64(32)) | low).view(np.int64)
    sums = np.arange(count, dtype=np.int64) * 1234567891 - 2**44 if coarse else None
    parts = None if sums is None else (sums & (2**coarse - 1)) / 2**coarse
    wanted, noise = np.empty(count, np.int64), RoundedNoise(NORMAL, scale)
    unsure = noise._decide(words, wanted, np.empty((3, count)), parts)
    given = None if sums is None else torch.as_tensor(sums).to(device)
    found = gpu_noise.draw_rounded(scale, count, device, given, coarse, source=known).cpu().numpy()
    if sums is not None:
        wanted = ((sums >> coarse) + wanted) << coarse
    same = found == wanted
    same[unsure] = True  # more bits were drawn for these
    assert len(unsure) < 10 + count // 10_000
    return int((~same).sum())


@pytest.mark.gpu
@pytest.mark.skipif(
    not GPU, reason="no NVIDIA GPU: the kernels were only interpreted; run `pytest -m gpu` on one"
)
def test_on_a_gpu_everything_is_as_on_the_cpu() -> None:
    from sordino.learn.gpu_noise import SHORT_DOUBT, short_error

    assert short_error("cuda") < SHORT_DOUBT / 2  # every one of 2^31 inputs
    for scale in (Fraction(256), Fraction(1, 3), Fraction(10**6), NOT_SHORT):
        assert differences(scale, 2**22, "cuda") == 0
    for coarse in (25, 48):
        assert differences(Fraction(200), 2**22, "cuda", coarse=coarse) == 0


def product_differences(device: str) -> list[float]:
    """How far products of the kernel are from those of PyTorch, in norm (relative) and in steps of the lattice."""
    from sordino.learn.gpu_group_norm import group_norm_sums_on_gpu
    from sordino.learn.gpu_products import GpuProduct
    from sordino.learn.layers import Call, Rows, pieces_of
    from sordino.learn.products import Product

    nn = torch.nn
    torch.manual_seed(0)
    found = []
    for layer, shape in (
        (nn.Conv2d(3, 8, 3, padding=1, stride=2), (3, 9, 8)),
        (nn.Conv2d(17, 5, (3, 2), padding=(2, 0), stride=(2, 3), dilation=(1, 2)), (17, 7, 9)),
        (nn.Conv1d(20, 70, 3, padding=1), (20, 17)),
    ):
        x = torch.randn(9, *shape)
        gradient = torch.randn_like(layer(x))
        reference, piece = (
            pieces_of(Call(layer, x.to(d), gradient.to(d)), {id(layer.weight)})[0]
            for d in ("cpu", device)
        )
        assert isinstance(piece, Rows)
        assert isinstance(reference, Rows)
        wanted, kernel = Product(reference, lambda rows: rows), GpuProduct(piece)
        norms = kernel.norms(9).cpu()
        found.append(float((norms / wanted.norms(9) - 1).abs().max()))
        factors = torch.rand(9) * 1000
        factors[4] = 0
        totals = torch.zeros_like(layer.weight, dtype=torch.int64)
        wanted.add(totals, factors, 1)
        sums = torch.zeros(kernel.shape, dtype=torch.int64, device=device)
        kernel.add(sums, factors.to(device))
        found.append(float((piece.shaped(sums).cpu() - totals).abs().max()) / 1000)
    x, gradient = torch.randn(3, 12, 5, 7), torch.randn(3, 12, 5, 7)
    scaled, shifted = group_norm_sums_on_gpu(x.to(device), gradient.to(device), 4, 1e-5)
    plain = nn.functional.group_norm(x, 4)
    found.append(float((scaled.cpu() - (plain * gradient).sum((2, 3))).abs().max()))
    found.append(float((shifted.cpu() - gradient.sum((2, 3))).abs().max()))
    return found


def row_differences(device: str) -> list[float]:
    """The same for layers whose rows are kept in half precision, of numbers of all sizes, with two examples a unit."""
    from sordino.learn.gpu_products import GpuRowProduct, in_halves
    from sordino.learn.layers import Call, Rows, pieces_of

    torch.manual_seed(0)
    found = []
    for into, out, length in ((40, 33, 37), (130, 24, 3)):
        layer = torch.nn.Linear(into, out)
        x, gradient = torch.randn(12, length, into), torch.randn(12, length, out)
        sizes = torch.tensor([1.0, 1e-12, 1e12, 1e30, 1.0, 1.0]).repeat_interleave(2)[:, None, None]
        x, gradient = x * sizes, gradient / sizes
        x[8:10] = 0
        x[10] = torch.nan
        piece = pieces_of(Call(layer, x.to(device), gradient.to(device)), {id(layer.weight)})[0]
        assert isinstance(piece, Rows)
        kernel = GpuRowProduct(in_halves(piece, 2))
        norms = kernel.norms(6).cpu()
        assert norms[4] == 0
        assert torch.isnan(norms[5])
        wanted = (gradient.double().transpose(1, 2) @ x.double()).reshape(6, 2, out, into).sum(1)
        exact = wanted[:4].flatten(1).norm(dim=1)
        found.append(float((norms[:4] / exact - 1).abs().max()))
        factors = torch.tensor([1.0, 2.0, 3.0, 0.0, 1e300, 0.0], dtype=torch.float64) * 1000
        sums = torch.full((out * into + 1,), 5, dtype=torch.int64, device=device)[1:].reshape(
            out, into
        )
        kernel.add(sums, factors.to(device), 7)
        assert not ((sums - 5) % 7).any()
        total = (wanted[:3] * factors[:3].reshape(-1, 1, 1)).sum(0)
        found.append(float(((sums.cpu() - 5) / 7 - total).abs().max() / total.abs().max()))
    return found


@pytest.mark.gpu
@pytest.mark.skipif(
    not GPU, reason="no NVIDIA GPU: the kernels were only interpreted; run `pytest -m gpu` on one"
)
@pytest.mark.parametrize("tf32", [False, True])
def test_on_a_gpu_units_are_clipped_and_summed_exactly(
    tf32: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured is what is summed: no vector is longer than the norm, whatever tensor cores make of it."""
    from learn.models import built
    from learn.test_step import alone, collector, squared, summed
    from sordino.learn import products
    from sordino.learn.gradient_noise import CLIP_STEPS

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", tf32)
    monkeypatch.setattr(products, "_FEWEST_ROWS", 2)
    assert max(row_differences("cuda")) < 2e-3
    assert max(product_differences("cuda")) < (1e-2 if tf32 else 1e-4) * 100
    for name in ("cnn", "lines", "pairs", "sequences"):
        model, x, y = built(name, 6)
        model, x, y = model.cuda(), x.cuda(), y.cuda()
        sums = collector(model, x, y, 0.05, units=6)
        assert sums.shapes is not None
        assert any(sums.shapes.products) == (tf32 or name in ("cnn", "lines"))
        vectors = [alone(sums, x, y, unit) for unit in range(6)]
        assert all((0.5 * CLIP_STEPS) ** 2 < squared(v) <= CLIP_STEPS**2 for v in vectors)
        assert summed(sums, x, y) == [sum(column) for column in zip(*vectors, strict=True)]


INTERPRETED = """
import sys
sys.path.insert(0, {tests!r})
from fractions import Fraction
from sordino.learn import gpu_kernels, gpu_noise
gpu_kernels.LANES = 64
gpu_noise._expect_sound = lambda device: None
from learn.test_gpu import NOT_SHORT, differences, product_differences, row_differences
print(max(product_differences("cpu")) < 1e-2, max(row_differences("cpu")) < 2e-3)
print(differences(Fraction(10**6), 200, "cpu"), differences(NOT_SHORT, 200, "cpu"))
print(differences(Fraction(200), 200, "cpu", coarse=25), differences(Fraction(200), 200, "cpu", coarse=48))
"""


def test_interpreted_kernels_draw_what_the_cpu_draws() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    tests = str(Path(__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", INTERPRETED.format(tests=tests)], capture_output=True, text=True, check=False,
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.stdout.split() == ["True", "True", "0", "0", "0", "0"], run.stderr[-2000:]
