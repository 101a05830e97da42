"""Small models of every supported layer, with inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

nn = torch.nn
CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


class Sequences(torch.nn.Module):  # type: ignore[misc]
    """An embedding, attention and norms; one layer is called twice."""

    def __init__(self) -> None:
        super().__init__()
        from sordino.learn import SelfAttention

        self.embed = nn.Embedding(11, 8, padding_idx=0)
        self.attend = SelfAttention(8, 2, causal=True)
        self.norm = nn.LayerNorm(8)
        self.twice = nn.Linear(8, 8, bias=False)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        h = self.norm(h + self.attend(h))
        return self.out(self.twice(torch.tanh(self.twice(h)))).mean(1)


class MeanOfBatch(torch.nn.Module):  # type: ignore[misc]
    """Mixes the examples of a batch, without a layer that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        return self.last(h - h.mean(0))


def _cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.GroupNorm(2, 8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=2, dilation=1), nn.Flatten(), nn.Linear(32, 3),
    )  # fmt: skip


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)),
        lambda n: torch.randn(n, 6),
    ),
    "cnn": (_cnn, lambda n: torch.randn(n, 3, 8, 8)),
    "lines": (
        lambda: nn.Sequential(
            nn.Conv1d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
        ),
        lambda n: torch.randn(n, 3, 8),
    ),
    "pairs": (
        lambda: nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Flatten(), nn.Linear(128, 3)),
        lambda n: torch.randn(n, 2, 64),
    ),
    "sequences": (Sequences, lambda n: torch.randint(0, 11, (n, 5))),
}


def built(name: str, count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """A model, inputs and targets."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    make, inputs = MODELS[name]
    return make(), inputs(count), torch.randint(0, 3, (count,))
