"""The step: each unit moves the integer sums by at most the declared norm, and the noise has the declared law."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'sordino[torch]'"
)

from scipy.stats import chi2  # noqa: E402

from learn.models import CROSS_ENTROPY, MODELS, CalledTwice, Growing, built  # noqa: E402
from sordino.learn import clipped_sums  # noqa: E402
from sordino.learn.clipped_sums import ClippedSums, captured_calls  # noqa: E402
from sordino.learn.gradient_noise import CLIP_STEPS, GradientNoise  # noqa: E402
from sordino.learn.layers import Call, Rows, pieces_of  # noqa: E402
from sordino.learn.products import PRODUCT_STEPS, Product  # noqa: E402

COUNT = 12


def collector(
    model: Any, x: Any, y: Any, clip: float, *, units: int, per_unit: int = 1
) -> ClippedSums:
    sums = ClippedSums(model, clip, units=units, per_unit=per_unit)
    calls, _ = captured_calls(model, sums.layers, sums.parameters, lambda m: CROSS_ENTROPY(m(x), y))
    sums.learn_shapes(calls)
    return sums


def losses_of(x: Any, y: Any, used: Any = True) -> Any:
    return lambda model: torch.where(
        torch.as_tensor(used, device=y.device), CROSS_ENTROPY(model(x), y), 0.0
    )


def flat(sums: ClippedSums) -> list[int]:
    return [int(v) for total in sums.sums.values() for v in total.reshape(-1).tolist()]


def summed(sums: ClippedSums, x: Any, y: Any) -> list[int]:
    sums.clear()
    sums.add(lambda m: CROSS_ENTROPY(m(x), y))
    return flat(sums)


def alone(sums: ClippedSums, x: Any, y: Any, unit: int) -> list[int]:
    """The vector of one unit, all other slots without loss."""
    k = sums.per_unit
    used = torch.arange(len(x)) // k == unit
    sums.clear()
    sums.add(losses_of(x, y, used))
    return flat(sums)


def squared(vector: list[int]) -> int:
    return sum(v * v for v in vector)


@pytest.mark.parametrize("clip", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("per_unit", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_the_sum_is_that_of_clipped_gradients(name: str, per_unit: int, clip: float) -> None:
    """Against plain autograd, one unit at a time."""
    model, x, y = built(name, COUNT)
    sums = collector(model, x, y, clip, units=COUNT // per_unit, per_unit=per_unit)
    found = np.array(summed(sums, x, y), float) * sums.step
    wanted = np.zeros_like(found)
    for start in range(0, COUNT, per_unit):
        model.zero_grad()
        CROSS_ENTROPY(
            model(x[start : start + per_unit]), y[start : start + per_unit]
        ).sum().backward()
        gradient = (
            torch.cat([p.grad.reshape(-1) for p in sums.parameters.values()]).double().numpy()
        )
        wanted += gradient * min(1.0, clip / np.linalg.norm(gradient))
    # a layer called twice is bounded by the triangle inequality, so that its unit may shrink
    if name == "sequences" and clip <= 1:
        cosine = found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted)
        assert cosine > 0.99
        assert 0.7 < np.linalg.norm(found) / np.linalg.norm(wanted) <= 1.001
    else:
        assert sums.shapes is not None
        rounding = COUNT / per_unit * sums.shapes.lost * sums.step
        assert np.linalg.norm(found - wanted) <= 2e-3 * np.linalg.norm(wanted) + rounding


@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("name", MODELS)
def test_no_unit_exceeds_the_norm_and_the_sum_is_the_sum_of_units(
    name: str, magnitude: float
) -> None:
    """In Python's integers: the sum over a batch is the exact sum of what each unit adds alone."""
    model, x, y = built(name, 6)
    if x.dtype.is_floating_point:
        x = x * magnitude
    sums = collector(model, x, y, 0.05, units=6)
    vectors = [alone(sums, x, y, unit) for unit in range(6)]
    assert all(squared(v) <= CLIP_STEPS**2 for v in vectors)
    assert max(squared(v) for v in vectors) > (0.5 * CLIP_STEPS) ** 2
    assert summed(sums, x, y) == [sum(column) for column in zip(*vectors, strict=True)]


def test_models_of_these_tests_take_all_ways() -> None:
    """Matrices of units, sums of rows by Gram matrices, and pairs."""
    ways = {}
    for name, per_unit in (("mlp", 1), ("mlp", 2), ("pairs", 1), ("cnn", 1)):
        model, x, y = built(name, 4)
        sums = collector(model, x, y, 1.0, units=4 // per_unit, per_unit=per_unit)
        assert sums.shapes is not None
        ways[name, per_unit] = sums.shapes.products, len(sums.shapes.pairs)
    assert ways == {
        ("mlp", 1): ((), 2),
        ("mlp", 2): ((True, True), 0),
        ("pairs", 1): ((False,), 1),
        ("cnn", 1): ((True, True), 1),
    }


PAIR_SIZES = [0.0, 1e-45, 1e-38, 1e-25, 1e-3, 1.0, 1e4, 1e20, 1e29, 3e38]


@pytest.mark.parametrize("clip", [1e-29, 1.0, 1e29])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_a_pair_of_rows_adds_at_most_the_norm(bias: bool, dtype: Any, clip: float) -> None:
    """Numbers of all sizes, in Python's integers; and what a unit adds does not depend on others."""
    torch.manual_seed(2)
    layer = torch.nn.Linear(5, 3, bias=bias, dtype=dtype)
    sums = ClippedSums(layer, clip, units=100)
    a, b = (torch.tensor(PAIR_SIZES, dtype=torch.float64)[:, None] for _ in range(2))
    x = (a * torch.randn(10, 5, dtype=torch.float64)).to(dtype).repeat(10, 1)
    g = (b * torch.randn(10, 3, dtype=torch.float64)).to(dtype).repeat_interleave(10, 0)
    sums.learn_shapes([Call(layer, x, g)])
    assert sums.shapes is not None
    assert len(sums.shapes.pairs) == 1
    whole = sums_of_call(sums, Call(layer, x, g))
    each = [sums_of_call(sums, Call(layer, x[i : i + 1], g[i : i + 1])) for i in range(100)]
    assert all(squared(v) <= CLIP_STEPS**2 for v in each)
    assert whole == [sum(column) for column in zip(*each, strict=True)]
    assert sum(squared(v) > (0.9 * CLIP_STEPS) ** 2 for v in each) >= 5
    far = x.clone()
    far[7] = math.nan
    without = sums_of_call(sums, Call(layer, far, g))
    assert [a - b for a, b in zip(whole, without, strict=True)] == each[7]


ROW_SIZES = [0.0, 1e-300, 1e-163, 1e-160, 1e-45, 1e-3, 1e4, 1e29, 1e140, 1e150]


@pytest.mark.parametrize("clip", [1e-29, 1.0])
def test_rows_of_all_sizes_add_at_most_the_norm(clip: float) -> None:
    """In float64 squares of small gradients are zero, while inputs can be as large as the inverse."""
    torch.manual_seed(3)
    layer = torch.nn.Linear(64, 64, bias=False, dtype=torch.float64)
    sums = ClippedSums(layer, clip, units=1)
    x, g = (torch.randn(1, 2, 64, dtype=torch.float64) for _ in range(2))
    sums.learn_shapes([Call(layer, x, g)])
    assert sums.shapes is not None
    assert sums.shapes.products == (False,)
    most = 0
    for a in ROW_SIZES:
        for b in ROW_SIZES:
            size = squared(sums_of_call(sums, Call(layer, a * x, b * g)))
            assert size <= CLIP_STEPS**2
            most = max(most, size)
    assert most > (0.9 * CLIP_STEPS) ** 2


def sums_of_call(sums: ClippedSums, call: Call) -> list[int]:
    """What the unit rows of one call add."""
    sums.clear()
    pieces = sums.pieces_of(call)
    measured = sums._measure(pieces)
    sums._sum(measured, *sums._weights(measured))
    return flat(sums)


def test_a_layer_that_is_called_twice_is_bounded_as_a_whole() -> None:
    """Its two gradients are alike, so that a norm that took them for parts of another would be too small."""
    x, model = torch.randn(3, 4), CalledTwice()
    y = torch.tensor([0, 1, 2])
    sums = collector(model, x, y, 1e-3, units=3)
    for unit in range(3):
        assert (0.5 * CLIP_STEPS) ** 2 < squared(alone(sums, x, y, unit)) <= CLIP_STEPS**2


def test_a_model_whose_layers_see_other_shapes_for_some_units_is_not_summed() -> None:
    """Bounds on rounding are of the shapes of the made-up examples."""

    model, y = Growing(), torch.zeros(1, dtype=torch.long)
    sums = collector(model, -torch.ones(1, 2), y, 1.0, units=1)
    assert any(summed(sums, -torch.ones(1, 2), y))
    with pytest.raises(RuntimeError):
        summed(sums, torch.ones(1, 2), y)


@pytest.mark.parametrize("name", ["cnn", "sequences"])
def test_units_may_be_taken_a_few_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose units' matrices do not all fit: one unit after another, with the same bound and exact sums."""
    monkeypatch.setitem(clipped_sums._ROOM, "cpu", 1)
    model, x, y = built(name, 5)
    sums = collector(model, x, y, 0.05, units=5)
    vectors = [alone(sums, x, y, unit) for unit in range(5)]
    assert all((0.5 * CLIP_STEPS) ** 2 < squared(v) <= CLIP_STEPS**2 for v in vectors)
    assert summed(sums, x, y) == [sum(column) for column in zip(*vectors, strict=True)]


def product_of(count: int, spread: float) -> Product:
    """A convolution's, whose matrices are then replaced by numbers of all sizes:
    the proof is about whatever floats made.
    """
    layer = torch.nn.Conv2d(4, 6, 3, padding=1)
    x = torch.randn(count, 4, 5, 5)
    piece = pieces_of(Call(layer, x, torch.randn_like(layer(x))), {id(layer.weight)})[0]
    assert isinstance(piece, Rows)
    made = Product(piece, lambda rows: rows)
    made._made = torch.randn(count, 1, 6, 36) * torch.exp(spread * torch.randn(count, 1, 6, 36))
    return made


@pytest.mark.parametrize("spread", [0.0, 3.0, 7.0])
def test_products_are_measured_from_above_and_summed_exactly(spread: float) -> None:
    """In Python's whole numbers: no matrix is longer than its norm says,
    and 70 of the greatest length add up exactly.
    """
    torch.manual_seed(1)
    made = product_of(70, spread)
    exact = [
        math.sqrt(sum(Fraction(v) ** 2 for v in unit)) for unit in made._made.flatten(1).tolist()
    ]
    norms = made.norms(70)
    assert all(n <= found <= n * 1.0001 for n, found in zip(exact, norms.tolist(), strict=True))
    factors = PRODUCT_STEPS * (1 - 2.0**-20) / norms
    factors[3] = 0.0
    scaled = made._made.double() * factors.reshape(-1, 1, 1, 1)
    total = torch.zeros_like(made.piece.parameter, dtype=torch.int64)
    made.add(total, factors, 3)
    assert float((made._made - scaled).abs().max()) <= 0.51 + PRODUCT_STEPS * 2.0**-23
    whole = made._made.flatten(1).long()
    assert torch.equal(total, 3 * made.piece.shaped(made._made.long().sum(0)))
    assert all(
        squared(unit) <= (PRODUCT_STEPS + 0.51 * math.sqrt(216)) ** 2 for unit in whole.tolist()
    )


def test_odd_numbers_of_the_greatest_length_in_one_cell_add_up_exactly() -> None:
    """70 times 2^20 - 1 is beyond what float32 adds one by one without rounding."""
    made = product_of(70, 0.0)
    made._made = torch.zeros_like(made._made)
    made._made[:, 0, 0, 0] = 1.0
    total = torch.zeros_like(made.piece.parameter, dtype=torch.int64)
    made.add(total, torch.full((70,), PRODUCT_STEPS - 1.0, dtype=torch.float64), 1)
    assert int(total.sum()) == int(total.max()) == 70 * (PRODUCT_STEPS - 1)


@pytest.mark.parametrize("per_unit", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_neighbours_differ_by_at_most_the_norm(name: str, per_unit: int) -> None:
    """Replay: the same sample with and without one unit, with another order and other physical batches."""
    model, x, y = built(name, 8)
    units = 8 // per_unit
    sums = collector(model, x, y, 0.05, units=units, per_unit=per_unit)
    whole = summed(sums, x, y)
    for left_out in range(units):
        used = torch.arange(8) // per_unit != left_out
        sums.clear()
        sums.add(losses_of(x, y, used))
        without = flat(sums)
        moved = squared([a - b for a, b in zip(whole, without, strict=True)])
        assert 0 < moved <= CLIP_STEPS**2


@pytest.mark.parametrize("name", MODELS)
def test_units_computed_alone_do_not_depend_on_companions(name: str) -> None:
    """With physical batches of one unit the assumption (a) of step.md is true by construction."""
    model, x, y = built(name, 5)
    sums = collector(model, x[:1], y[:1], 0.05, units=1)
    each = [summed(sums, x[i : i + 1], y[i : i + 1]) for i in range(5)]
    sums.clear()
    for i in (3, 0, 4, 2, 1):
        sums.add(losses_of(x[i : i + 1], y[i : i + 1]))
    assert flat(sums) == [sum(column) for column in zip(*each, strict=True)]


def test_a_unit_that_is_not_finite_adds_nothing_and_spoils_nothing() -> None:
    model, x, y = built("mlp", 6)
    sums = collector(model, x, y, 1.0, units=6)
    whole = [alone(sums, x, y, unit) for unit in range(6)]
    for bad in (math.nan, math.inf, 1e38, -1e38):
        broken = x.clone()
        broken[2, 1] = bad
        rest = [
            sum(column) for column in zip(*(v for i, v in enumerate(whole) if i != 2), strict=True)
        ]
        moved = squared([a - b for a, b in zip(summed(sums, broken, y), rest, strict=True)])
        assert moved == 0 if not math.isfinite(bad) else moved <= CLIP_STEPS**2


def test_a_person_is_clipped_as_a_whole() -> None:
    """Four equal examples of one person add no more than the norm, although each alone reaches it."""
    model, x, y = built("mlp", 4)
    x, y = x[:1].repeat(4, 1), y[:1].repeat(4)
    together = collector(model, x, y, 0.01, units=1, per_unit=4)
    apart = collector(model, x, y, 0.01, units=4)
    assert squared(summed(together, x, y)) <= CLIP_STEPS**2
    assert squared(summed(apart, x, y)) > (3.9 * CLIP_STEPS) ** 2


def _rejected(noise: GradientNoise, claimed: GradientNoise, value: int, draws: int) -> bool:
    """Whether a chi-square test at 1e-9 tells the draws from the claimed law."""
    unit = 2**noise.coarse_bits
    width = float(claimed.scale)
    edges = [round((value + z * width) / unit) * unit for z in np.linspace(-2.5, 2.5, 41)]
    drawn = noise.noisy(np.full(draws, value, np.int64))
    assert not np.any(drawn % unit)
    counts = np.histogram(drawn, [-np.inf, *(e + unit / 2 for e in edges), np.inf])[0]
    at = [0.0, *claimed.cdf(edges, value).tolist(), 1.0]
    wanted = draws * np.diff(at)
    return bool(chi2.sf(((counts - wanted) ** 2 / wanted).sum(), len(wanted) - 1) < 1e-9)


@pytest.mark.parametrize("value", [0, 123456789, -(2**40) - 77])
def test_the_noise_has_its_law_and_no_other(value: int) -> None:
    noise = GradientNoise.of(Fraction(87, 100))
    assert 2**7 <= noise.scale / 2**noise.coarse_bits <= 2**8
    assert not _rejected(noise, noise, value, 100_000)
    assert _rejected(GradientNoise.of(Fraction(87, 100) * Fraction(95, 100)), noise, value, 100_000)


def test_low_digits_of_the_sum_are_not_shown() -> None:
    """Two sums apart by less than the coarse step have close laws: the part below it goes through the rounding."""
    noise = GradientNoise.of(Fraction(1))
    unit = 2**noise.coarse_bits
    first, second = (noise.noisy(np.full(4000, v, np.int64)) for v in (0, unit - 1))
    assert set(first % unit) == set(second % unit) == {0}
    assert noise.pmf(0, 0) == pytest.approx(noise.pmf(0, unit - 1), rel=1e-4)
    assert noise.calibrated_for == CLIP_STEPS
    assert noise.loss(CLIP_STEPS).shift == 1
