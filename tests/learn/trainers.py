"""Trainers for audits: ours, and seven that claim the same and are broken."""

from __future__ import annotations

from typing import Any

import torch

EPSILON, DELTA, STEPS, RATE, CLIP = 2.0, 1e-5, 60, 0.1, 1.0
SIGMA = 1.8607  # what the accountant finds for these; test_audit.py checks it


def right(model: Any, optimizer: Any, loss: Any, x: Any, y: Any) -> None:
    from sordino.learn import Trainer

    Trainer(
        model, optimizer, loss, (x, y), epsilon=EPSILON, delta=DELTA, steps=STEPS, rate=RATE, size=400, clip=CLIP,
        physical_batch=64,
    ).train(progress=False)  # fmt: skip


SETTINGS = {"BatchNorm left in": (400, 8000)}
"""How many canaries and ordinary examples show it, where not 1000 and 100."""


class Plain:
    """Float DP-SGD in a few lines, with one thing wrong."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong

    def __call__(self, model: Any, optimizer: Any, loss: Any, x: Any, y: Any) -> None:
        wrong, width = self.wrong, model.weight.shape[1]
        once = torch.randn(width)
        order = torch.randperm(len(x))
        size = max(1, len(x) // STEPS)
        for step in range(wrong.get("steps", STEPS)):
            if wrong.get("shuffled"):
                chosen = order[step * size : (step + 1) * size]
            else:
                chosen = torch.nonzero(torch.rand(len(x)) < RATE)[:, 0]
            inputs = x[chosen]
            if wrong.get("batch_norm") and len(inputs) > 1:
                inputs = (inputs - inputs.mean(0)) / (inputs.std(0) + 1e-5)
            model(x[chosen])
            each = -(inputs * y[chosen][:, None])  # the gradients of the linear loss
            if not wrong.get("no_clipping"):
                norms = each.norm(dim=1, keepdim=True)
                each = each if wrong.get("per_batch") else each * (CLIP / norms.clamp(min=CLIP))
            total = each.sum(0)
            if wrong.get("per_batch"):
                total = total * (CLIP * len(chosen) / total.norm().clamp(min=CLIP))
            noise = once if wrong.get("reused") else torch.randn(width)
            total = total + noise * wrong.get("sigma", SIGMA) * CLIP * wrong.get("share", 1.0)
            model.weight.grad = total[None]
            optimizer.step()


BROKEN = {
    "no clipping": Plain(no_clipping=True),
    "clipping per batch": Plain(per_batch=True),
    "shuffled with Poisson's accounting": Plain(shuffled=True),
    "noise reused": Plain(reused=True),
    "noise per GPU not shared": Plain(share=1 / 8),
    "BatchNorm left in": Plain(batch_norm=True),
    "sigma for the mean instead of the sum": Plain(share=1 / 40),
}
