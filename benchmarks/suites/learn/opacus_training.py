"""The same trainings by Opacus: at Sordino's noise, at the noise its own accountant asks for, and its speed by mode."""

import warnings
from time import process_time
from typing import Any

import torch
from benchmarks.suites.learn.settings import (
    SPEED_BATCH,
    SPEED_STEPS,
    TRAINING_DELTA,
    TRAINING_RUNS,
    TRAININGS,
    Training,
    images,
    network,
    training_data,
)
from benchmarks.timing import row
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier

MODES = ("hooks", "functorch", "ew", "ghost")


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for one in TRAININGS:
        data = training_data(one.name)
        for epsilon, sigma in one.sigmas.items():
            own = get_noise_multiplier(
                target_epsilon=epsilon, target_delta=TRAINING_DELTA, sample_rate=one.batch / len(data[0]),
                epochs=one.epochs, accountant="prv",
            )  # fmt: skip
            for case, noise in (("accuracy", sigma), ("accuracy at its own noise", own)):
                with row("training", case, data=one.name, epsilon=epsilon, sigma=noise) as fields:
                    found = [trained(one, data, noise, seed) for seed in range(TRAINING_RUNS)]
                    fields["value"], fields["least"], fields["most"] = (
                        sum(found) / len(found),
                        min(found),
                        max(found),
                    )
    x, y, _, _, classes = training_data("census")
    pictures = torch.rand(2048, 3, 32, 32), torch.arange(2048) % 10
    for mode in MODES:
        name = "network of 91-128-64-2"
        measure(name, mode, network(x.shape[1], (128, 64), classes), x, y, SPEED_STEPS)
        measure("convolutions, 3 x 32 x 32", mode, images(), *pictures, SPEED_STEPS // 8)


def trained(one: Training, data: Any, noise: float, seed: int) -> float:
    """Accuracy on the test part."""
    x, y, test_x, test_y, classes = data
    torch.manual_seed(seed)
    model = network(x.shape[1], one.hidden, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=one.rate)
    pairs = torch.utils.data.TensorDataset(torch.as_tensor(x), torch.as_tensor(y))
    loader = torch.utils.data.DataLoader(pairs, batch_size=one.batch)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=one.clip,
    )
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(one.epochs):
        for a, b in loader:
            optimizer.zero_grad()
            loss(model(a), b).backward()
            optimizer.step()
    right = model(torch.as_tensor(test_x)).argmax(1) == torch.as_tensor(test_y)
    return float(right.float().mean())


def measure(case: str, mode: str, model: Any, x: Any, y: Any, steps: int) -> None:
    """Samples per processor second of whole steps, on one thread;
    batches are Poisson samples of Opacus's own loader.
    """
    with row("training", "samples per CPU second", data=case, mode=mode) as fields:
        pairs = torch.utils.data.TensorDataset(torch.as_tensor(x), torch.as_tensor(y))
        loader = torch.utils.data.DataLoader(pairs, batch_size=SPEED_BATCH)
        optimizer, loss = torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss()
        given: dict[str, Any] = {"criterion": loss} if mode == "ghost" else {}
        if mode == "ew":
            given["loss_reduction"] = "mean"
        made = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0,
            grad_sample_mode=mode, **given,
        )  # fmt: skip
        model, optimizer, loader = made[0], made[1], made[-1]
        loss = made[2] if mode == "ghost" else loss
        times = []
        for _ in range(3):
            start, done, seen = process_time(), 0, 0
            while done < steps:
                for a, b in loader:
                    optimizer.zero_grad()
                    loss(model(a), b).backward()
                    optimizer.step()
                    done, seen = done + 1, seen + len(a)
                    if done == steps:
                        break
            times.append((process_time() - start) / seen)
        fields["value"] = 1 / sorted(times)[1]


if __name__ == "__main__":
    main()
