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


class AsksForLosses(torch.optim.SGD):  # type: ignore[misc]
    """Computes losses at each step, which have no noise."""

    def step(self, closure: Any) -> Any:
        return super().step(closure)


class Remembering(torch.nn.Module):  # type: ignore[misc]
    """Keeps a mean of what it saw, as BatchNorm does, but by another name."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.register_buffer("mean", torch.zeros(6), persistent=False)

    def forward(self, x: Any) -> Any:
        self.mean.data.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return self.layer(x)


class MixesWithoutGradient(torch.nn.Module):  # type: ignore[misc]
    """Mixes the examples of a batch where no gradient shows it: before its first layer, or detached."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.first = nn.Linear(6, 6).requires_grad_(how != "frozen")
        self.last = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        match self.how:
            case "before":
                return self.last(self.first(x - x.mean(0)))
            case "detached":
                h = self.first(x)
                return self.last(h - h.mean(0).detach())
            case "frozen":
                h = self.first(x)
                return self.last((h - h.mean(0)) / h.std(0))
            case "earlier ones":
                return self.last(self.first(x.cumsum(0)))
            case "places":
                return self.last(self.first(x) * torch.arange(len(x))[:, None])
            case "neighbours":
                return self.last(self.first(x + x.reshape(-1, 2, 6).flip(1).reshape(-1, 6)))
            case _:
                return self.last(self.first(x))


class KeepsWhatItSaw(torch.nn.Module):  # type: ignore[misc]
    """Keeps something of its examples in an attribute that is no buffer."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.how = nn.Linear(6, 3), how
        self.kept: Any = torch.zeros(6)

    def forward(self, x: Any) -> Any:
        match self.how:
            case "mean":
                self.kept = 0.9 * self.kept + 0.1 * x.detach().mean(0)
                x = x - self.kept
            case "activations":
                self.kept = [{"last": x}]
            case "number":
                self.kept = float(x.max())
            case "table of places":
                self.kept = torch.arange(x.shape[1])
        return self.layer(x)


class LossThatRemembers(torch.nn.Module):  # type: ignore[misc]
    """Weighs examples by how large losses were before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, out: Any, y: Any) -> Any:
        losses = CROSS_ENTROPY(out, y)
        weighed = losses / (1 + self.mean)
        self.mean.mul_(0.9).add_(0.1 * losses.detach().mean())
        return weighed


class UsesAWeightTwice(torch.nn.Module):  # type: ignore[misc]
    """Once in its layer, once by itself, which nobody sees; behind Dropout, which must not look like a difference."""

    def __init__(self, *, twice: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6, bias=False), nn.Linear(6, 3)
        self.drop, self.twice = nn.Dropout(0.5), twice

    def forward(self, x: Any) -> Any:
        h = self.drop(torch.tanh(self.first(x)))
        return self.last(h @ self.first.weight if self.twice else h)


class Overwrites(torch.nn.Module):  # type: ignore[misc]
    """Puts zeros where its first layer looked."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        h = torch.tanh(x)
        out = self.first(h)
        h.zero_()
        return self.last(out)


class CalledTwice(torch.nn.Module):  # type: ignore[misc]
    """One layer, called twice on nearly the same."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        nn.init.eye_(self.layer.weight)

    def forward(self, x: Any) -> Any:
        return self.layer(x) + self.layer(1.001 * x)


class Growing(torch.nn.Module):  # type: ignore[misc]
    """Sees more rows of some examples than of others."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, x: Any) -> Any:
        rows = 40 if float(x[0, 0]) > 0 else 2
        return self.layer(x[:, None].expand(-1, rows, -1)).sum(1)


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
