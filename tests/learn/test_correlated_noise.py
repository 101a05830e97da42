"""Noise that is correlated over steps: its law, what one unit can move in all of them, and runs that are continued."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'sordino[torch]'"
)

from scipy.stats import chi2, norm  # noqa: E402

import sordino as so  # noqa: E402
from learn.models import CROSS_ENTROPY, built  # noqa: E402
from sordino.errors import InvalidInput, RequestRefused  # noqa: E402
from sordino.learn import RunPlan, Trainer  # noqa: E402
from sordino.learn import trainer as trainer_module  # noqa: E402
from sordino.learn.correlated_noise import CorrelatedNoise, column  # noqa: E402
from sordino.learn.gradient_noise import CLIP_STEPS  # noqa: E402
from sordino.learn.sampler import Turns, sampled  # noqa: E402
from sordino.mechanisms import observer  # noqa: E402

COUNT = 30


def trainer(**settings: Any) -> Trainer:
    model, x, y = built("mlp", COUNT)
    given: dict[str, Any] = {
        "epsilon": 3, "delta": 1e-5, "steps": 8, "batch_size": 10, "size": 30, "bands": 3, "physical_batch": 1
    }  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Trainer(model, optimizer, CROSS_ENTROPY, (x, y), **{**given, **settings})


def echoed(bands: int, rows: list[list[int]]) -> list[list[int]]:
    """2^12 C applied to rows of integers, one for each step; written down as the definition has it."""
    weights = column(bands)
    return [
        [
            sum(weights[k] * rows[t - k][i] for k in range(min(t + 1, bands)))
            for i in range(len(rows[0]))
        ]
        for t in range(len(rows))
    ]


def length_squared(rows: list[list[int]]) -> int:
    return sum(v * v for row in rows for v in row)


def test_the_column_is_that_of_the_square_root_of_running_sums() -> None:
    assert column(4) == [4096, 2048, 1536, 1280]
    made = CorrelatedNoise(Fraction(3), 4)
    exact = 4096**2 + 2048**2 + 1536**2 + 1280**2
    reach = made.noise.calibrated_for
    assert reach is not None
    assert exact <= (reach / CLIP_STEPS) ** 2 < exact * Fraction(1001, 1000)
    assert made.noise.scale == 3 * reach


def rejected(sigma: Fraction, claimed: Fraction, bands: int) -> bool:
    """Whether what the noise is before it is correlated can be told from independent Normal noise of `claimed`."""
    made, wanted = CorrelatedNoise(sigma, bands), CorrelatedNoise(claimed, bands)
    width, steps = 6000, 2 * bands + 1
    sums = [
        torch.as_tensor(np.random.default_rng(t).integers(-(2**45), 2**45, width))
        for t in range(steps)
    ]
    off = [(made.release(g, t + 1) - g).tolist() for t, g in enumerate(sums)]
    whole = np.array(echoed(bands, off), float) / float(wanted.noise.scale)
    edges = norm.ppf(np.linspace(0, 1, 41))
    counts = np.histogram(whole, edges)[0]
    law = chi2.sf(((counts - whole.size / 40) ** 2 / (whole.size / 40)).sum(), 39)
    lagged = [
        whole[:-lag].ravel() @ whole[lag:].ravel() / whole[lag:].size ** 0.5
        for lag in range(1, bands + 1)
    ]
    return bool(law < 1e-9 or max(map(abs, lagged)) > 6)


@pytest.mark.parametrize("bands", [2, 5])
def test_the_noise_is_a_map_of_independent_normal_noise_and_no_less(bands: int) -> None:
    sigma = Fraction(7, 5)
    assert not rejected(sigma, sigma, bands)
    assert rejected(sigma * Fraction(95, 100), sigma, bands)


def test_later_steps_take_back_what_earlier_ones_added() -> None:
    made = CorrelatedNoise(Fraction(1), 8)
    zero = torch.zeros(4000, dtype=torch.int64)
    off = [made.release(zero, t + 1).double() for t in range(24)]
    alone = float(made.noise.scale) / 2**12
    assert float(sum(off).std()) / alone < 0.6 * 24**0.5
    assert float((off[3] * off[2]).mean()) / alone**2 < -0.1


@pytest.mark.parametrize("sigma", [Fraction(1, 20), Fraction(1), Fraction(900)])
@pytest.mark.parametrize("size", [1, 2**40, 2**60])
def test_what_noise_is_added_to_is_exact(sigma: Fraction, size: int) -> None:
    """2^12 times the sums less what earlier errors still weigh, in Python's integers; some steps were lost."""
    made, weights = CorrelatedNoise(sigma, 4), column(4)
    seen: list[Any] = []

    def watcher(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
        seen.append(value)
        return draw()

    off: dict[int, list[int]] = {}
    rng = np.random.default_rng(0)
    with observer.watching(watcher):
        for t in (1, 2, 3, 4, 6, 7, 11, 18):
            sums = torch.as_tensor(rng.integers(-size, size, 5))
            released = made.release(sums, t)
            values = [
                4096 * g - sum(weights[k] * off[t - k][i] for k in (1, 2, 3) if t - k in off)
                for i, g in enumerate(sums.tolist())
            ]
            assert seen[-1].exact() == values
            coarse = 2 ** (made.noise.coarse_bits - 12)
            assert all(v % coarse == 0 for v in released.tolist())
            off[t] = [a - b for a, b in zip(released.tolist(), sums.tolist(), strict=True)]


@pytest.mark.parametrize(("bands", "batch"), [(3, 10), (2, 10), (4, 7)])
def test_neighbours_move_all_steps_together_by_at_most_what_is_paid_for(
    bands: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same turns, coins and released numbers for D and D':
    what noise was added to, over the whole run, in integers.
    """
    steps = 8
    made_turns: list[Turns] = []
    samples: list[Any] = []

    def run(without: int | None, outputs: list[Any] | None) -> tuple[Any, list[Any], list[Any]]:
        values: list[Any] = []
        given: list[Any] = []

        def watcher(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
            if mechanism is Turns:
                if not made_turns:
                    made_turns.append(draw())
                return made_turns[0]
            if operation != "release" or not hasattr(value, "exact"):
                return draw()
            values.append(value.exact())
            given.append(draw() if outputs is None else outputs[len(given)])
            return given[-1]

        drawing = iter(samples)

        def sample(self: Trainer, step: int) -> Any:
            if without is None:
                samples.append(own_sample(self, step))
                return samples[-1]
            return np.array([i for i in next(drawing) if i != without], np.int64)

        monkeypatch.setattr(Trainer, "_sample", sample)
        made = trainer(bands=bands, batch_size=batch, steps=steps)
        with observer.watching(watcher):
            made.train(progress=False)
        return made, values, given

    own_sample = Trainer._sample
    made, whole, outputs = run(None, None)
    person = int(samples[0][0])
    _, other, _ = run(person, outputs)
    moved = [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(whole, other, strict=True)]
    reach = made._noise.noise.calibrated_for
    came = [t for t, sample in enumerate(samples) if person in sample]
    assert np.all(np.diff(came) >= bands)
    for start in range(0, steps, bands):  # its turn is the first step
        block = length_squared(moved[start : start + bands])
        assert block <= reach**2
        assert (block > 0) == (start in came)
    assert length_squared(moved) <= made.plan.turns * reach**2
    assert made._noise.noise.scale == made.plan.sigma * reach


def test_the_plan_costs_what_the_accountant_says_to_the_last_digit() -> None:
    made = trainer(bands=2)
    plan = made.preview()
    assert (plan.turns, plan.chance) == (4, Fraction(2, 3))
    loss = 4 * so.SubsampledLoss(so.GaussianLoss(1 / plan.sigma), rate=Fraction(2, 3))
    assert 2.99 < plan.epsilon == loss.epsilon(Fraction(1, 10**5)) <= 3
    whole = RunPlan.within(epsilon=3, delta=1e-5, rate=Fraction(1, 3), steps=8, bands=3)
    assert whole.charge.mu_squared == 3 / whole.sigma**2
    assert whole.epsilon == (3 * so.GaussianLoss(1 / whole.sigma)).epsilon(Fraction(1, 10**5))
    replaced = RunPlan.within(
        epsilon=3, delta=1e-5, rate=Fraction(1, 3), steps=8, bands=3, neighbors="replace"
    )
    assert replaced.charge.mu_squared == 12 / replaced.sigma**2
    assert str(whole).startswith("8 steps at rate 0.3333, noise correlated over 3: sigma ")


def test_a_run_is_paid_for_before_it_begins_and_tells_what_it_is() -> None:
    made = trainer()
    result = made.train(progress=False)
    spent, wanted = made.ledger.spent.mu_squared, 3 / made.plan.sigma**2
    assert spent is not None
    assert wanted <= spent < Fraction(10**6 + 1, 10**6) * wanted
    assert "every example in at most one of 3 consecutive steps; " in str(result)
    assert "correlated over 3 steps" in str(result)
    assert "there with chance 2/3" in str(trainer(bands=2).train(progress=False))
    persons = trainer(
        persons=np.repeat(np.arange(10), 3),
        max_examples=2,
        size=10,
        batch_size=2,
        bands=5,
        physical_batch=4,
    )
    assert "at most 2 examples each" in str(persons.train(progress=False))


def test_turns_are_drawn_by_a_fair_die_and_come_every_so_many_steps() -> None:
    turns = Turns.fresh(5, 20_000)
    counts = np.bincount(turns.of, minlength=5)
    assert chi2.sf(((counts - 4000) ** 2 / 4000).sum(), 4) > 1e-9
    assert np.array_equal(
        np.sort(np.concatenate([turns.at(step) for step in range(3, 8)])), np.arange(20_000)
    )
    assert np.array_equal(turns.at(2), turns.at(7))
    assert len(Turns.fresh(5, 0).at(1)) == 0


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bands": 0}, "correlated over 1 to 8"),
        ({"bands": 9}, "correlated over 1 to 8"),
        ({"bands": True}, "correlated over 1 to 8"),
        ({"bands": 2.0}, "correlated over 1 to 8"),
        ({"bands": 4}, "3 is the most at rate 1/3"),
        ({"epsilon": 10_000}, "1/32 to 2048"),
        ({"epsilon": 1e-4, "delta": 1e-7}, "1/32 to 2048"),
    ],
)
def test_bad_bands_are_refused_before_anything_is_spent(
    settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        trainer(**settings)


class _Stop(BaseException):
    pass


def stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    left = [after]

    def draw(rate: Fraction, count: int) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise _Stop
        return sampled(rate, count)

    monkeypatch.setattr(trainer_module, "sampled", draw)


@pytest.mark.parametrize("lost", [0, 2])
def test_a_run_that_is_continued_goes_on_from_its_noise_and_its_turns(
    lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What noise is added to after the break still takes back what was added before it; lost steps are left out."""
    place, file, budget = tmp_path / "runs.ledger", tmp_path / "run.pt", so.Budget(4, 1e-4)
    sums: dict[int, list[int]] = {}
    off: dict[int, list[int]] = {}
    release = CorrelatedNoise.release
    seen: dict[int, list[int]] = {}

    def recorded(self: CorrelatedNoise, exact: Any, step: int) -> Any:
        def watcher(mechanism: Any, operation: str, value: Any, draw: Any) -> Any:
            seen[step] = value.exact()
            return draw()

        sums[step] = exact.tolist()
        with observer.watching(watcher):
            found = release(self, exact, step)
        off[step] = (found - exact).tolist()
        return found

    monkeypatch.setattr(CorrelatedNoise, "release", recorded)
    first = trainer(ledger=place, budget=budget, steps=10)
    stopping(monkeypatch, 4)
    with pytest.raises(_Stop):
        first.train(file, progress=False)
    assert file.stat().st_mode & 0o077 == 0
    spent, turns = first.ledger.spent, first._turns
    if lost:
        first._paying.open_stretch(first._mark, 4 + lost)  # begun, and the machine goes down
    first.ledger.close()
    monkeypatch.setattr(trainer_module, "sampled", sampled)
    second = trainer(ledger=place, budget=budget, steps=10).resume(file)
    second.train(file, progress=False)
    assert second.ledger.spent == spent
    second.ledger.close()
    assert turns is not None
    assert second._turns is not None
    assert np.array_equal(turns.of, second._turns.of)
    assert sorted(off) == [t for t in range(1, 11) if not 4 < t <= 4 + lost]
    weights = column(3)
    for t in off:
        left = [
            sum(weights[k] * off[t - k][i] for k in (1, 2) if t - k in off)
            for i in range(len(off[t]))
        ]
        assert seen[t] == [4096 * g - w for g, w in zip(sums[t], left, strict=True)]
    assert torch.load(file, weights_only=True).get("secret") is None  # the run has ended


def test_a_checkpoint_without_its_noise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, file, budget = tmp_path / "runs.ledger", tmp_path / "run.pt", so.Budget(4, 1e-4)
    first = trainer(ledger=place, budget=budget, bands=2)
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        first.train(file, progress=False)
    first.ledger.close()
    kept = torch.load(file, weights_only=True)
    secret = kept.pop("secret")
    second = trainer(ledger=place, budget=budget, bands=2)
    wrong = {"turns": secret["turns"][:-1], "noise": secret["noise"]}
    other = {
        "turns": secret["turns"],
        "noise": {"step": 2, "off": secret["noise"]["off"][:, :-1].clone()},
    }
    for changed in (None, wrong, other):
        torch.save({**kept, **({} if changed is None else {"secret": changed})}, file)
        with pytest.raises(InvalidInput, match="not a checkpoint of this model"):
            second.resume(file)
    second.ledger.close()
    uncorrelated = trainer(ledger=place, budget=budget, bands=1)
    with pytest.raises(RequestRefused, match="no charge for this run with these settings"):
        uncorrelated.resume(file)
    uncorrelated.ledger.close()
