"""The same physical batch again and again: on a GPU its kernels are recorded once and then replayed without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sordino.learn.clipped_sums import ClippedSums
from sordino.learn.torch_extra import torch

__all__ = ["GraphedSums"]


class GraphedSums:
    """Adds batches to `sums`; `losses(x, y, used)` makes what runs the model. On a CPU it only passes on."""

    def __init__(
        self, sums: ClippedSums, losses: Callable[[Any, Any, Any], Callable[[Any], Any]]
    ) -> None:
        self.sums, self._losses = sums, losses
        self._inputs: tuple[Any, ...] = ()
        self._graph: Any = None
        self.eager = False
        """Whether this model's kernels could not be recorded."""

    def add(self, x: Any, y: Any, used: Any) -> None:
        """Add one physical batch."""
        if x.device.type != "cuda" or self.eager:
            self.sums.add(self._losses(x, y, used))
            return
        if self._graph is None and not self._recorded(x, y, used):
            self.sums.add(self._losses(x, y, used))
            return
        for mine, given in zip(self._inputs, (x, y, used), strict=True):
            mine.copy_(given)
        self._graph.replay()

    def _recorded(self, *batch: Any) -> bool:
        before = self.sums.flat.clone()
        self._inputs = tuple(part.clone() for part in batch)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(side):
                for _ in range(2):
                    self.sums.add(self._losses(*self._inputs))
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.sums.add(self._losses(*self._inputs))
            self._graph = graph
        except RuntimeError:  # something in the model asks the CPU
            torch.cuda.synchronize()
            self.eager = True
        self.sums.flat.copy_(before)
        return not self.eager
