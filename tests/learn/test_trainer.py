"""The trainer: what it refuses, what it charges and when, and that no step is taken twice."""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'sordino[torch]'"
)

import sordino as so  # noqa: E402
from learn.models import (  # noqa: E402
    CROSS_ENTROPY,
    AsksForLosses,
    KeepsWhatItSaw,
    LossThatRemembers,
    MeanOfBatch,
    MixesWithoutGradient,
    Overwrites,
    Remembering,
    UsesAWeightTwice,
    built,
)
from sordino.accounting.charge import NOTHING  # noqa: E402
from sordino.errors import BudgetExceeded, InvalidInput, RequestRefused, SordinoError  # noqa: E402
from sordino.learn import RunPlan, Trainer  # noqa: E402
from sordino.learn import trainer as trainer_module  # noqa: E402
from sordino.learn.gradient_noise import GradientNoise  # noqa: E402
from sordino.learn.sampler import sampled  # noqa: E402

nn = torch.nn
COUNT = 60


def trainer(name: str = "mlp", **settings: Any) -> Trainer:
    model, x, y = built(name, COUNT)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    given: dict[str, Any] = {
        "epsilon": 3,
        "delta": 1e-5,
        "steps": 6,
        "batch_size": 20,
        "size": 60,
        "physical_batch": 16,
    }
    data = settings.pop("data", (x, y))
    loss = settings.pop("loss", CROSS_ENTROPY)
    return Trainer(
        settings.pop("model", model),
        settings.pop("optimizer", optimizer),
        loss,
        data,
        **{**given, **settings},
    )


class Unreadable:
    """Examples whose errors quote them."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: int) -> Any:
        raise OSError("patient 17 is HIV positive")


def test_the_plan_costs_what_the_accountant_says_to_the_last_digit() -> None:
    made = trainer()
    plan = made.preview()
    loss = 6 * so.SubsampledLoss(so.GaussianLoss(1 / plan.sigma), rate=Fraction(1, 3))
    assert plan.epsilon == loss.epsilon(Fraction(1, 10**5)) <= 3
    assert plan.epsilon > 2.99
    assert str(plan).startswith("6 steps at rate 0.3333: sigma ")
    made.train(progress=False)
    assert made.ledger.spent.pure == Fraction(plan.epsilon)
    assert made.ledger.spent.delta == plan.delta


def test_full_batches_are_charged_by_their_exact_mu() -> None:
    plan = RunPlan.within(epsilon=1, delta=1e-6, rate=1, steps=10)
    assert plan.charge.mu_squared == 10 / plan.sigma**2
    replaced = RunPlan.within(epsilon=1, delta=1e-6, rate=1, steps=10, neighbors="replace")
    assert replaced.charge.mu_squared == 40 / replaced.sigma**2


@pytest.mark.parametrize("name", ["mlp", "cnn", "sequences"])
def test_a_run_ends_with_a_receipt_and_a_statement(name: str) -> None:
    made = trainer(name, steps=2)
    before = [p.detach().clone() for p in made.model.parameters()]
    result = made.train(progress=False)
    assert any(not torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))
    assert result.receipt == made.ledger.payment(made.run).receipt  # type: ignore[union-attr]
    assert "differentially private for adding or removing one example" in str(result)


def test_the_charge_comes_before_any_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer()
    seen: list[Any] = []

    def draw(rate: Fraction, count: int) -> Any:
        seen.append(made.ledger.spent.pure)
        return sampled(rate, count)

    monkeypatch.setattr(trainer_module, "sampled", draw)
    made.train(progress=False)
    assert len(seen) == 6
    assert set(seen) == {Fraction(made.plan.epsilon)}


def test_a_budget_too_small_trains_nothing(tmp_path: Path) -> None:
    made = trainer(ledger=tmp_path / "small.ledger", budget=so.Budget(1, 1e-4))
    before = [p.detach().clone() for p in made.model.parameters()]
    with pytest.raises(BudgetExceeded):
        made.train(progress=False)
    assert all(torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))
    assert made.ledger.spent.pure == 0


def test_the_sampler_throws_a_fair_coin_for_each_unit() -> None:
    rate = Fraction(1, 7)
    sizes = np.array([len(sampled(rate, 3000)) for _ in range(200)])
    mean, sd = 3000 / 7, (3000 * 6 / 49) ** 0.5
    assert abs(sizes.mean() - mean) < 5 * sd / 200**0.5
    assert 0.75 < sizes.std() / sd < 1.3  # a shuffled batch of fixed size has none
    assert len(sampled(Fraction(1), 17)) == 17
    assert len(sampled(rate, 0)) == 0


def test_persons_are_sampled_and_bounded_as_a_whole() -> None:
    persons = np.repeat(np.arange(20), 3)
    made = trainer(persons=persons, max_examples=2, size=20, batch_size=5)
    assert made.plan.unit == "person"
    assert made._examples.members.shape == (20, 2)
    assert made._examples.members[4].tolist() == [12, 13]
    assert "at most 2 examples each" in str(made.train(progress=False))
    mixed = trainer(persons=np.array(["b", "a", "b"] * 20), max_examples=4, size=2, batch_size=1)
    assert mixed._examples.members.tolist() == [[1, 4, 7, 10], [0, 2, 3, 5]]
    for nobody in (None, float("nan")):
        some = trainer(
            persons=[nobody, "a", nobody, 1, *"bbbb" * 14], max_examples=2, size=3, batch_size=1
        )
        assert some._examples.members.tolist() == [[3, -1], [1, -1], [4, 5]]
    dates = np.array(["NaT", "2020-01-01", *["2021-01-01"] * 58], "datetime64[ns]")
    masked = np.ma.array([7, 1, *[2] * 58], mask=[True, *[False] * 59])
    for missing in (dates, masked):
        some = trainer(persons=missing, max_examples=2, size=3, batch_size=1)
        assert some._examples.members.tolist() == [[1, -1], [2, 3]]
    numbers = trainer(
        persons=np.array([np.nan, 2.0, 1.0, *[2.0] * 57]), max_examples=2, size=3, batch_size=1
    )
    assert numbers._examples.members.tolist() == [[2, -1], [1, 3]]


def test_equal_names_are_one_person_whatever_they_are_written_as() -> None:
    """Else one person would be two units, with twice the weight."""
    names: list[Any] = [1, 1.0, "1", 0.0, -0.0, *["x"] * 55]
    made = trainer(persons=names, max_examples=2, size=3, batch_size=1)
    assert sorted(made._examples.members.tolist()) == [[0, 1], [2, -1], [3, 4], [5, 6]]
    with pytest.raises(InvalidInput, match="what names a person"):
        trainer(persons=[[1]] * 30 + [[2, 3]] * 30, max_examples=2)


def test_a_ledger_of_persons_does_not_pay_for_single_examples(tmp_path: Path) -> None:
    """It would say that persons are hidden, of whom a batch may hold every example."""
    persons = np.arange(COUNT) // 2
    whole = trainer(persons=persons, max_examples=2, size=30, batch_size=10)
    with pytest.raises(InvalidInput, match=r"counts what is told of each person.*persons="):
        trainer(ledger=whole.ledger)
    with pytest.raises(InvalidInput, match="about add_remove, and this run about replace"):
        trainer(
            persons=persons, max_examples=2, batch_size=10, neighbors="replace", ledger=whole.ledger
        )
    with pytest.raises(InvalidInput, match="single examples are hidden"):
        so.learn.NaiveBayes(1, 1e-6, bounds=(0, 1), classes=[0, 1], ledger=whole.ledger).fit(
            np.zeros((4, 2)), np.array([0, 1, 0, 1])
        )


class WithoutLength:
    """A dataset whose file is gone."""

    def __len__(self) -> int:
        raise OSError("cell of Ada")

    def __getitem__(self, place: int) -> Any:
        raise OSError


def test_a_ledger_has_a_budget_of_its_own() -> None:
    with pytest.raises(InvalidInput, match="has a budget already"):
        trainer(ledger=trainer().ledger, budget=so.Budget(1, 1e-5))


@pytest.mark.parametrize("how", ["another layer", "frozen", "other numbers", "called twice"])
def test_a_model_that_was_changed_since_is_refused_before_the_charge(how: str) -> None:
    """Every example would fail on it, silently, and the model would be trained on noise alone."""
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 3))
    made = trainer(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    match how:
        case "another layer":
            model[0] = nn.Linear(6, 6)
        case "frozen":
            model[0] = nn.Identity()
        case "other numbers":
            model.double()
        case _:
            model.insert(0, model[0])
    with pytest.raises(InvalidInput, match="the model as it is now"):
        made.train(progress=False)
    assert not made.ledger.payments


def test_a_trainer_is_not_copied_with_its_model() -> None:
    """The copy would find no gradient of its model's parameters, and train it on noise alone."""
    with pytest.raises(InvalidInput, match="copy of the model"):
        copy.deepcopy(trainer())


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_of_a_ledger_spends_from_the_same_budget(deep: bool) -> None:
    ledger = trainer().ledger
    other = copy.deepcopy(ledger) if deep else copy.copy(ledger)
    first, second = trainer(ledger=ledger, run="one"), trainer(ledger=other, run="one")
    first.train(progress=False)
    with pytest.raises(RequestRefused, match="begun before"):
        second.train(progress=False)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"size": None}, "secret"),
        ({"data": iter([])}, "known place"),
        ({"data": (torch.zeros(3, 6), torch.zeros(4))}, "one input and one target"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"steps": 0}, "at least one step"),
        ({"steps": None}, "exactly one"),
        ({"rate": 0.5}, "exactly one"),
        ({"batch_size": 0}, "a batch holds"),
        ({"clip": 0.0}, "clipped"),
        ({"clip": float("nan")}, "clipped"),
        ({"loss": nn.CrossEntropyLoss()}, "one number for each example"),
        (
            {"loss": lambda out, y: CROSS_ENTROPY(out, y) * float("nan")},
            "not finite on made-up examples",
        ),
        ({"rate": Fraction(1, 10**6), "batch_size": None}, "no noise at all would keep"),
        ({"persons": [1, 2]}, "one person for each"),
        ({"persons": np.zeros(COUNT)}, "must not come from the data"),
        ({"max_examples": 3}, "persons="),
        ({"physical_batch": 0}, "above zero"),
        ({"physical_batch": "a"}, "above zero"),
        ({"model": 3}, "a module of PyTorch"),
        ({"optimizer": None}, "one gradient a step"),
        ({"data": []}, "no examples"),
        ({"data": (pd.DataFrame(np.zeros((3, 6))), np.zeros(3, int))}, "to_numpy"),
        (
            {"data": (np.array([["secret"] * 6]), np.zeros(1))},
            r"this cannot be read as such .TypeError",
        ),
        ({"data": (torch.tensor(1.0), torch.tensor(1.0))}, "first axis counts examples"),
        ({"data": ([[1.0] * 6] * 2, [0] * 2)}, "fails on made-up examples"),
        (
            {"epsilon": 1e-9, "delta": 1e-12, "rate": 1, "batch_size": None},
            "larger epsilon or delta",
        ),
        ({"run": "mine/1"}, "without a slash"),
        ({"run": 5}, "its name is a text"),
        ({"budget": 5}, "must be a Budget"),
        ({"data": WithoutLength()}, "fails .OSError."),
        ({"data": (torch.zeros(COUNT, 6).to_sparse(), torch.zeros(COUNT))}, "dense numbers"),
        ({"data": [{"x": 1}]}, "no pair .input, target. of numbers or tensors .ValueError."),
        ({"data": Unreadable()}, "no pair .input, target. of numbers or tensors .OSError."),
        ({"steps": 10**9}, "at most 100,000,000"),
        ({"neighbors": "neighbours"}, "not a known neighbour relation"),
        ({"ledger": 3}, "must be a Ledger"),
        ({"ledger": "a.ledger"}, "budget="),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        trainer(**settings)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (torch.optim.LBFGS, "one gradient a step"),
        (torch.optim.SparseAdam, "one gradient a step"),
        (lambda parameters: AsksForLosses(parameters, lr=0.1), "no closure"),
    ],
    ids=["several gradients", "sparse", "closure"],
)
def test_optimizers_that_ask_for_more_than_a_gradient_are_refused(make: Any, told: str) -> None:
    """Made here: the first optimizer imports PyTorch's compiler, which takes each worker a second."""
    with pytest.raises(InvalidInput, match=told):
        trainer(optimizer=make(built("mlp", 1)[0].parameters()))


def test_places_for_checkpoints_are_tried_before_anything_is_spent(tmp_path: Path) -> None:
    made = trainer()
    for place, every, told in (
        (tmp_path, 1, "a folder"), (tmp_path / "no" / "run.pt", 1, "no such folder"), (tmp_path / "run.pt", 0, "above zero"),
        ("/proc/run.pt", 1, "nothing can be written"), (5, 1, "must be a path"), ("a\0b", 1, "nothing can be written"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=told):
            made.train(place, save_every=every)  # type: ignore[arg-type]
    assert made.ledger.spent.pure == 0
    assert list(tmp_path.iterdir()) == []


def test_empty_samples_are_released_as_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each step's noise, whoever was in it; a step that were left out would tell that nobody was."""
    made, seen = trainer(), list[Any]()
    noisy = GradientNoise.noisy

    def counted(noise: GradientNoise, sums: Any) -> Any:
        seen.append(sums.copy())
        return noisy(noise, sums)

    monkeypatch.setattr(trainer_module, "sampled", lambda *_: np.zeros(0, np.int64))
    monkeypatch.setattr(GradientNoise, "noisy", counted)
    before = made.model[0].weight.clone()
    made.train(progress=False)
    assert len(seen) == 6
    assert not np.any(seen)
    assert not torch.equal(before, made.model[0].weight)


def test_what_is_changed_in_place_is_seen() -> None:
    """ReLU may overwrite what a first layer gave; what went into a layer must stay until its gradient is taken."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 3))
    trainer(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    trainer(
        model=(kept := UsesAWeightTwice(twice=False)),
        optimizer=torch.optim.SGD(kept.parameters(), lr=0.1),
    )

    bad = Overwrites()
    with pytest.raises(InvalidInput, match="changed in place"):
        trainer(model=bad, optimizer=torch.optim.SGD(bad.parameters(), lr=0.1))


def test_an_optimizer_that_fails_says_so_and_its_step_stays_spent() -> None:
    model, _, _ = built("mlp", 1)
    made = trainer(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=1e39))
    with pytest.raises(InvalidInput, match="the optimizer: it fails on noisy gradients"):
        made.train(progress=False)
    assert made.ledger.spent != NOTHING


def _tied() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3))
    model[1].weight = model[0].weight
    return model


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)),
            r"'1' \(BatchNorm1d\).*GroupNorm",
        ),
        (Remembering(), "'mean' of the model: examples that pass through the model change it"),
        (UsesAWeightTwice(twice=True), "'first.weight': it is used outside"),
        (
            nn.Sequential(nn.Linear(6, 3), nn.Embedding(5, 3, max_norm=1.0).requires_grad_(False)),
            "max_norm",
        ),
        (nn.Sequential(nn.Linear(6, 8), nn.PReLU(), nn.Linear(8, 3)), r"'1' \(PReLU\).*supported"),
        (nn.Sequential(nn.Linear(6, 8), nn.LSTM(8, 3)), r"'1' \(LSTM\).*step by step"),
        (nn.Sequential(nn.MultiheadAttention(6, 2)), "SelfAttention"),
        (MeanOfBatch(), "depends on other examples"),
        (_tied(), "also that of layer '0'"),
        (nn.Sequential(nn.Linear(5, 3)), "fails on made-up examples"),
        (nn.Sequential(nn.ReLU()), "to be trained"),
    ],
)
def test_models_that_cannot_be_trained_are_refused_by_layer(model: Any, told: str) -> None:
    held = list(model.parameters()) or [torch.zeros(1, requires_grad=True)]
    with pytest.raises(InvalidInput, match=told):
        trainer(model=model, optimizer=torch.optim.SGD(held, lr=0.1))


@pytest.mark.parametrize("how", ["before", "detached", "frozen", "earlier ones", "neighbours"])
def test_models_that_mix_examples_are_refused_also_where_no_gradient_shows_it(how: str) -> None:
    """Else one example would move what others add, by more than the clipping norm in all."""
    for kind, refused in ((how, True), ("not at all", False)):
        model = MixesWithoutGradient(kind)
        held = [p for p in model.parameters() if p.requires_grad]
        given: dict[str, Any] = {"model": model, "optimizer": torch.optim.SGD(held, lr=0.1)}
        if not refused:
            trainer(**given)
            continue
        with pytest.raises(InvalidInput, match="depends on other examples"):
            trainer(**given)


def test_models_that_look_at_the_place_in_a_batch_are_refused() -> None:
    """An example more or less moves the others to other places."""
    model = MixesWithoutGradient("places")
    with pytest.raises(InvalidInput, match="depends on its place"):
        trainer(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def test_losses_that_mix_examples_are_refused_also_where_no_gradient_shows_it() -> None:
    def of_the_whole(out: Any, y: Any) -> Any:
        losses = CROSS_ENTROPY(out, y)
        return losses / losses.detach().sum()

    def by_frequency(out: Any, y: Any) -> Any:
        return CROSS_ENTROPY(out, y) / (y == 1).sum().clamp(min=1)

    for loss in (of_the_whole, by_frequency):
        with pytest.raises(InvalidInput, match="depends on other examples"):
            trainer(loss=loss)
        trainer(loss=loss, physical_batch=1)  # then each example is alone


def test_examples_that_mix_are_found_behind_dropout_and_chance() -> None:
    """Randomness that PyTorch draws is the same in each pass; a model with some of its own cannot be looked at."""

    class Own(MixesWithoutGradient):
        def forward(self, x: Any) -> Any:
            return super().forward(x + float(np.random.default_rng().normal()))

    own = Own("not at all")
    trainer(model=own, optimizer=torch.optim.SGD(own.parameters(), lr=0.1))
    for how, refused in (("detached", True), ("not at all", False)):
        model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), MixesWithoutGradient(how))
        given: dict[str, Any] = {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
        if refused:
            with pytest.raises(InvalidInput, match="depends on other examples"):
                trainer(model=model, **given)
        else:
            trainer(model=model, **given)


@pytest.mark.parametrize("how", ["mean", "activations", "number", "table of places"])
def test_models_that_keep_examples_in_attributes_are_refused(how: str) -> None:
    """They are stored with the model, and may reach what later examples add."""
    model = KeepsWhatItSaw(how)
    given: dict[str, Any] = {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
    if how == "table of places":
        trainer(model=model, **given)
        return
    with pytest.raises(InvalidInput, match="'kept' of the model: examples that pass through"):
        trainer(model=model, **given)


def test_losses_that_remember_examples_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'mean' of the loss: examples that pass through"):
        trainer(loss=LossThatRemembers())
    trainer(loss=nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1))


def test_a_state_that_cannot_be_told_is_refused_before_the_charge() -> None:
    class WithMore(nn.Linear):  # type: ignore[misc, name-defined]
        def get_extra_state(self) -> Any:
            return {"made": "today"}

        def set_extra_state(self, state: Any) -> None: ...

    model = nn.Sequential(nn.Linear(6, 3), WithMore(3, 3).requires_grad_(False))
    with pytest.raises(InvalidInput, match="_extra_state' of the model's state"):
        trainer(model=model, optimizer=torch.optim.SGD(model[0].parameters(), lr=0.1))


def test_a_tuple_of_examples_is_a_dataset() -> None:
    pairs = tuple((torch.randn(6), torch.tensor(1)) for _ in range(COUNT))
    assert trainer(data=pairs).train(progress=False).steps == 6


def test_the_optimizer_must_hold_all_that_is_trained() -> None:
    model, _, _ = built("mlp", 4)
    with pytest.raises(InvalidInput, match=r"2\.bias"):
        trainer(model=model, optimizer=torch.optim.SGD(model[0].parameters(), lr=0.1))


def test_frozen_layers_stay_as_they_are() -> None:
    model, _, _ = built("mlp", 4)
    model[0].requires_grad_(False)
    kept = model[0].weight.clone()
    trainer(model=model, optimizer=torch.optim.SGD(model[2].parameters(), lr=0.1)).train(
        progress=False
    )
    assert torch.equal(kept, model[0].weight)


class Listed:
    """A dataset whose examples can fail in many ways."""

    def __init__(self, x: Any, y: Any, wrong: dict[int, Any]) -> None:
        self.x, self.y, self.wrong = x, y, wrong

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> Any:
        if place in self.wrong:
            return self.wrong[place]()
        return self.x[place], self.y[place]


def _unreadable() -> Any:
    raise OSError("photo_of_7.png cannot be read")


WRONG: dict[str, Any] = {
    "no such class": lambda: (torch.zeros(6), torch.tensor(12345)),
    "another shape": lambda: (torch.zeros(7), torch.tensor(1)),
    "unreadable": _unreadable,
    "no numbers": lambda: ("a text", None),
    "not finite": lambda: (torch.full((6,), float("nan")), torch.tensor(1)),
}


def sums_of(made: Trainer, monkeypatch: pytest.MonkeyPatch, without: set[int]) -> list[Any]:
    """The whole numbers of each step before noise, on samples without some units."""
    seen: list[Any] = []
    kept = GradientNoise.noisy

    def noiseless(_: GradientNoise, sums: Any) -> Any:
        seen.append(sums.copy())
        return np.zeros_like(sums)

    monkeypatch.setattr(GradientNoise, "noisy", noiseless)
    monkeypatch.setattr(
        trainer_module, "sampled", lambda _r, n: np.array([i for i in range(n) if i not in without])
    )
    try:
        made.train(progress=False)
    except Exception as error:
        pytest.fail(f"the run ended: {type(error).__name__}")
    monkeypatch.setattr(GradientNoise, "noisy", kept)
    monkeypatch.setattr(trainer_module, "sampled", sampled)
    return seen


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("places", [(7,), (0, 1, 40, 59)])
def test_units_that_fail_add_nothing_and_stop_nothing(
    kind: str, places: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends, or other sums of the others, would tell of them."""
    _, x, y = built("mlp", COUNT)
    data = Listed(x, y, dict.fromkeys([place for place in places if place], WRONG[kind]))
    wrong = set(data.wrong)
    settings: dict[str, Any] = {"rate": 1, "batch_size": None, "steps": 2, "data": data}
    with_them = sums_of(trainer(**settings), monkeypatch, set())
    without = sums_of(trainer(**settings), monkeypatch, wrong)
    assert len(with_them) == 2
    assert all(np.array_equal(a, b) for a, b in zip(with_them, without, strict=True))
    everyone = sums_of(trainer(**{**settings, "data": (x, y)}), monkeypatch, set())
    assert not np.array_equal(everyone[0], without[0])


class Jittered:
    """A dataset that draws from the generators that everybody uses."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, place: int) -> Any:
        return torch.full((6,), random.random() + float(np.random.normal())), torch.tensor(1)


def _numpy_state() -> list[int]:
    state: Any = np.random.get_state()
    return [int(word) for word in state[1]]


@pytest.mark.parametrize("kind", ["dropout", "dataset"])
def test_a_known_seed_does_not_tell_what_random_layers_draw(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever knows it knows what one example more does to all others, which noise does not cover."""
    seen = []
    for _ in range(2):
        model = nn.Sequential(
            nn.Linear(6, 16), nn.Dropout(0.5 if kind == "dropout" else 0.0), nn.Linear(16, 3)
        )
        for parameter in model.parameters():
            nn.init.constant_(parameter, 0.1)
        settings: dict[str, Any] = {"data": Jittered()} if kind == "dataset" else {}
        made = trainer(
            model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), steps=2, **settings
        )
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        states = torch.get_rng_state(), _numpy_state(), random.getstate()
        seen.append(sums_of(made, monkeypatch, set()))
        after = torch.get_rng_state(), _numpy_state(), random.getstate()
        assert torch.equal(states[0], after[0])
        assert states[1:] == after[1:]
    assert not np.array_equal(seen[0][0], seen[1][0])


def test_no_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer()

    def none(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(made._batches, "add", none)
    with pytest.raises(SordinoError, match="smaller physical_batch"):
        made.train(progress=False)


def test_a_model_that_diverges_is_told(tmp_path: Path) -> None:
    model, _, _ = built("mlp", 4)
    made = trainer(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=3e38), clip=1e4)
    with pytest.raises(InvalidInput, match="no longer finite"):
        made.train(progress=False)


class _Stop(BaseException):
    pass


def stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Interrupt the run when its sample number `after` is drawn."""
    left = [after]

    def draw(rate: Fraction, count: int) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise _Stop
        return sampled(rate, count)

    monkeypatch.setattr(trainer_module, "sampled", draw)


def test_an_interrupted_run_continues_without_a_second_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, file = tmp_path / "runs.ledger", tmp_path / "run.pt"
    budget = so.Budget(4, 1e-4)
    first = trainer(ledger=place, budget=budget)
    stopping(monkeypatch, 4)
    with pytest.raises(_Stop):
        first.train(file, save_every=3, progress=False)
    spent, run = first.ledger.spent, first.run
    first.ledger.close()
    monkeypatch.setattr(trainer_module, "sampled", sampled)
    second = trainer(ledger=place, budget=budget).resume(file)
    assert (second.run, second._mark.step) == (run, 4)
    stopping(monkeypatch, 2)  # six in all
    result = second.train(file, progress=False)
    assert second._mark.step == 6
    assert second.ledger.spent == spent
    assert result.receipt.request_id == run
    second.ledger.close()


def test_a_step_that_is_interrupted_in_the_optimizer_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its noisy sum may have moved a part of the model that the checkpoint holds:
    taken again, it would be one too many.
    """
    place, file, budget = tmp_path / "runs.ledger", tmp_path / "run.pt", so.Budget(4, 1e-4)
    first = trainer(ledger=place, budget=budget)
    step, releases = first.optimizer.step, list[int]()
    noisy = GradientNoise.noisy

    def counted(noise: GradientNoise, sums: Any) -> Any:
        releases.append(1)
        return noisy(noise, sums)

    def interrupted() -> None:
        step()
        if len(releases) == 2:
            raise _Stop

    monkeypatch.setattr(GradientNoise, "noisy", counted)
    monkeypatch.setattr(first.optimizer, "step", interrupted)
    with pytest.raises(_Stop):
        first.train(file, progress=False)
    first.ledger.close()
    second = trainer(ledger=place, budget=budget).resume(file)
    assert second._mark.step == 2
    second.train(file, progress=False)
    assert len(releases) == second.plan.steps == 6
    second.ledger.close()


def test_a_checkpoint_is_continued_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two continuations would take the same steps twice on one charge."""
    place, file, copy = tmp_path / "runs.ledger", tmp_path / "run.pt", tmp_path / "copy.pt"
    budget = so.Budget(4, 1e-4)
    first = trainer(ledger=place, budget=budget)
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        first.train(file, save_every=2, progress=False)
    copy.write_bytes(file.read_bytes())
    monkeypatch.setattr(trainer_module, "sampled", sampled)
    first.ledger.close()
    second = trainer(ledger=place, budget=budget)
    second.resume(file).train(file, progress=False)
    second.ledger.close()
    third = trainer(ledger=place, budget=budget)
    with pytest.raises(RequestRefused, match="later one"):
        third.resume(copy)
    changed = torch.load(copy, weights_only=True)
    changed["mark"]["step"] = 0
    torch.save(changed, copy)
    with pytest.raises(RequestRefused, match="does not know this checkpoint"):
        third.resume(copy)
    third.ledger.close()


def test_a_checkpoint_that_names_no_stretch_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is written before one has ended; with its own numbers it would take more steps than were paid for."""
    place, file, budget = tmp_path / "runs.ledger", tmp_path / "run.pt", so.Budget(4, 1e-4)
    first = trainer(ledger=place, budget=budget)
    first._receipt = first._paying.begin(first.run, first.plan)
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        trainer(run="another").train(file, progress=False)
    changed = torch.load(file, weights_only=True)
    changed["mark"] |= {"run": first.run, "stretch": 0, "step": -100}
    torch.save(changed, file)
    with pytest.raises(RequestRefused, match="does not know this checkpoint"):
        first.resume(file)
    first.ledger.close()


@pytest.mark.parametrize("setting", [{"epsilon": 3.0004}, {"rate": Fraction(33334, 100_000)}])
def test_a_run_is_continued_with_exactly_what_was_paid_for(
    setting: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with what looks the same in four digits."""
    place, file, budget = tmp_path / "runs.ledger", tmp_path / "run.pt", so.Budget(4, 1e-4)
    given: dict[str, Any] = {"ledger": place, "budget": budget, "rate": Fraction(1, 3)}
    given["batch_size"] = None
    first = trainer(**given)
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        first.train(file, progress=False)
    first.ledger.close()
    other = trainer(**{**given, **setting})
    with pytest.raises(RequestRefused, match="with these settings"):
        other.resume(file)
    other.ledger.close()


def _of_analyst(name: str | None) -> Trainer:
    made = trainer()
    return trainer(ledger=made.ledger, analyst=name)


def test_runs_of_an_analyst_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids in a ledger are each analyst's own."""
    file = tmp_path / "run.pt"
    first = _of_analyst("ada")
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        first.train(file, progress=False)
    monkeypatch.setattr(trainer_module, "sampled", sampled)
    second = trainer(ledger=first.ledger, analyst="ada").resume(file)
    assert second._mark.step == 2
    second.train(progress=False)
    with pytest.raises(RequestRefused, match="holds no charge"):
        trainer(ledger=first.ledger, analyst="bob").resume(file)


@pytest.mark.parametrize("analyst", [None, "ada"])
def test_a_copy_of_a_trainer_takes_no_step_again(
    analyst: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _of_analyst(analyst)
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        first.train(progress=False)
    monkeypatch.setattr(trainer_module, "sampled", sampled)
    second = copy.copy(first)
    first.train(progress=False)
    with pytest.raises(RequestRefused, match="taken already"):
        second.train(progress=False)


def test_of_two_that_take_the_same_steps_at_once_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the other one ends them between a look at the ledger and the entry."""
    made = trainer()
    made._receipt = made._paying.begin(made.run, made.plan)
    look = made.ledger.payment

    def slow(request: str, analyst: str | None = None) -> Any:
        found = look(request, analyst)
        monkeypatch.setattr(made.ledger, "payment", look)
        other = copy.copy(made)
        other.train(progress=False)
        return found

    monkeypatch.setattr(made.ledger, "payment", slow)
    with pytest.raises(RequestRefused, match="taken already"):
        made.train(progress=False)


def test_steps_that_a_crash_loses_stay_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, file = tmp_path / "runs.ledger", tmp_path / "run.pt"
    budget = so.Budget(4, 1e-4)
    first = trainer(ledger=place, budget=budget)
    stopping(monkeypatch, 2)
    with pytest.raises(_Stop):
        first.train(file, save_every=2, progress=False)
    first._paying.open_stretch(first._mark, 4)  # begun, and the machine goes down
    first.ledger.close()
    second = trainer(ledger=place, budget=budget).resume(file)
    assert second._mark.step == 4
    second.ledger.close()


def test_a_run_is_charged_once(tmp_path: Path) -> None:
    place = tmp_path / "runs.ledger"
    first = trainer(ledger=place, budget=so.Budget(9, 1e-4), run="mine")
    first.train(progress=False)
    first.ledger.close()
    second = trainer(ledger=place, budget=so.Budget(9, 1e-4), run="mine")
    with pytest.raises(RequestRefused, match="begun before"):
        second.train(progress=False)
    second.ledger.close()


def test_replay_of_a_run_on_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inputs of the noise on D and D', with the same samples and the same noise:
    apart by at most one clipping norm.
    """
    from sordino.learn.gradient_noise import CLIP_STEPS

    recorded: list[list[Any]] = []

    def run(without: int | None, outputs: list[Any] | None) -> list[Any]:
        inputs: list[Any] = []
        made: list[Any] = []

        def noisy(self: GradientNoise, sums: Any) -> Any:
            inputs.append(sums.copy())
            made.append(outputs[len(made)] if outputs else GradientNoise.release(self, sums))
            return made[-1]

        monkeypatch.setattr(GradientNoise, "noisy", noisy)
        draws = iter(samples)
        monkeypatch.setattr(
            trainer_module,
            "sampled",
            lambda _r, _n: np.array([i for i in next(draws) if i != without]),
        )
        trainer(physical_batch=1, steps=4).train(progress=False)
        recorded.append(made)
        return inputs

    samples = [sampled(Fraction(1, 3), COUNT) for _ in range(4)]
    whole = run(None, None)
    person = int(samples[0][0])
    other = run(person, recorded[0])
    for step, (a, b) in enumerate(zip(whole, other, strict=True)):
        moved = sum((int(x) - int(y)) ** 2 for x, y in zip(a, b, strict=True))
        assert moved <= CLIP_STEPS**2
        assert (moved > 0) == (person in samples[step])
