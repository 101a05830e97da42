"""Training with exact sums and exact noise: accuracy at the same noise as the peer,
and samples per processor second.
"""

from time import process_time
from typing import Any

import torch
from benchmarks.suites.learn.settings import (
    SPEED_BATCH,
    SPEED_ROOM,
    SPEED_STEPS,
    TRAINING_DELTA,
    TRAINING_RUNS,
    TRAININGS,
    images,
    network,
    training_data,
)
from benchmarks.timing import row

from sordino.learn import Trainer

LOSS = torch.nn.CrossEntropyLoss(reduction="none")


def main() -> None:
    torch.set_num_threads(1)
    for one in TRAININGS:
        x, y, test_x, test_y, classes = training_data(one.name)
        for epsilon, sigma in one.sigmas.items():
            with row("training", "accuracy", data=one.name, epsilon=epsilon) as fields:
                found = []
                for seed in range(TRAINING_RUNS):
                    torch.manual_seed(seed)
                    model = network(x.shape[1], one.hidden, classes)
                    trainer = Trainer(
                        model, torch.optim.SGD(model.parameters(), lr=one.rate), LOSS, (x, y), epsilon=epsilon,
                        delta=TRAINING_DELTA, epochs=one.epochs, batch_size=one.batch, size=len(x), clip=one.clip,
                        physical_batch=one.batch,
                    )  # fmt: skip
                    if abs(float(trainer.plan.sigma) / sigma - 1) > 1e-3:
                        raise ValueError(f"sigma is {float(trainer.plan.sigma):.5f}, not {sigma}")
                    trainer.train(progress=False)
                    right = model(torch.as_tensor(test_x)).argmax(1) == torch.as_tensor(test_y)
                    found.append(float(right.float().mean()))
                fields["value"], fields["least"], fields["most"] = (
                    sum(found) / len(found),
                    min(found),
                    max(found),
                )
    x, y, _, _, classes = training_data("census")
    measure("network of 91-128-64-2", network(x.shape[1], (128, 64), classes), x, y, SPEED_STEPS)
    pictures = torch.rand(2048, 3, 32, 32)
    measure(
        "convolutions, 3 x 32 x 32", images(), pictures, torch.arange(2048) % 10, SPEED_STEPS // 8
    )


def measure(case: str, model: Any, x: Any, y: Any, steps: int) -> None:
    """Samples per processor second of whole steps, on one thread."""
    with row("training", "samples per CPU second", data=case) as fields:
        made = [
            Trainer(
                model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS, (x, y), epsilon=3, delta=TRAINING_DELTA,
                steps=steps, batch_size=SPEED_BATCH, size=len(x), physical_batch=SPEED_ROOM,
            )
            for _ in range(3)
        ]  # fmt: skip
        times = []
        for trainer in made:
            start = process_time()
            trainer.train(progress=False)
            times.append(process_time() - start)
        fields["value"] = steps * SPEED_BATCH / sorted(times)[1]


if __name__ == "__main__":
    main()
