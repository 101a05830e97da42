"""Several processes, each with a GPU of its own, that train one model: integer sums are added up, and noise is drawn
once.

The first process throws the coins, draws the noise, pays and writes checkpoints; all others get from it what was
released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sordino.errors import InvalidInput
from sordino.learn.sampler import Places
from sordino.learn.torch_extra import torch
from sordino.privacy.exact import show

__all__ = ["ProcessGroup"]

Value = TypeVar("Value")


class ProcessGroup:
    """A group of torch.distributed, or this process alone if it is None."""

    def __init__(self, group: Any = None) -> None:
        self.group, self.rank, self.size = group, 0, 1
        if group is None:
            return
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            hint = (
                "Call torch.distributed.init_process_group() first, and run the script by torchrun."
            )
            raise InvalidInput(
                f"group={show(group)}", "torch.distributed has not been started", hint
            )
        try:
            self.rank, self.size = (
                torch.distributed.get_rank(group),
                torch.distributed.get_world_size(group),
            )
        except Exception:
            self.rank = -1
        if self.rank < 0:
            rule = "it must be a group of torch.distributed that this process belongs to"
            raise InvalidInput(f"group={show(group)}", rule, "Pass torch.distributed.group.WORLD.")
        self._source = torch.distributed.get_global_rank(group, 0)

    @property
    def first(self) -> bool:
        """Whether this process is the one that throws coins and pays."""
        return self.rank == 0

    def by_first(self, action: Callable[[], Value]) -> Value:
        """What the first process finds by this, for all of them; what it raises is raised in all of them."""
        if self.size == 1:
            return action()
        found: list[Any] = [None, None]
        if self.first:
            try:
                found[0] = action()
            except Exception as error:
                found[1] = error
        torch.distributed.broadcast_object_list(found, src=self._source, group=self.group)
        if found[1] is not None:
            raise found[1]
        value: Value = found[0]
        return value

    def expect_same(self, facts: dict[str, Any]) -> None:
        """Refuse processes that were given different things."""
        if self.size == 1:
            return
        every: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(every, facts, group=self.group)
        for name in facts:
            if any(other[name] != every[0][name] for other in every):
                rule = "all processes of a group must have the same"
                raise InvalidInput(
                    f"another {name}",
                    rule,
                    "Run the same script, with the same data, in each of them.",
                )

    def equalize(self, tensors: Iterable[Any]) -> None:
        """Give all processes the numbers of the first."""
        if self.size == 1:
            return
        for tensor in tensors:
            numbers = tensor.detach().contiguous()
            torch.distributed.broadcast(numbers, src=self._source, group=self.group)
            tensor.detach().copy_(numbers)

    def share_of(self, places: Places) -> Places:
        """The part of a sample that this process computes."""
        return places[self.rank :: self.size]

    def anywhere(self, here: bool, device: Any) -> bool:
        """Whether it is so in any process."""
        if self.size == 1:
            return here
        flag = torch.tensor([int(here)], device=device)
        torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX, group=self.group)
        return bool(flag.item())

    def released(self, sums: Any, release: Callable[[Any], Any]) -> Any:
        """The sums of all processes, released once: by the first, for all.

        Whole numbers add up to the same in any order.
        """
        if self.size == 1:
            return release(sums)
        torch.distributed.reduce(sums, dst=self._source, group=self.group)
        noisy = release(sums).contiguous() if self.first else torch.empty_like(sums)
        torch.distributed.broadcast(noisy, src=self._source, group=self.group)
        return noisy
