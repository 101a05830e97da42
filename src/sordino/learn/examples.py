"""The training data: examples by place, and the units (examples or persons) that are protected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.learn.torch_extra import torch
from sordino.privacy.exact import show

__all__ = ["Examples", "Places", "made_up"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and targets as tensors, or as a dataset of such;
    `members` holds the places of each unit's examples, or -1.
    """

    source: Any
    count: int
    members: Places

    @staticmethod
    def of(data: Any, persons: Any = None, max_examples: int | None = None) -> Examples:
        """What the caller gave: a pair (inputs, targets) of arrays or tensors, or a dataset with a length."""
        source: Any
        if (
            isinstance(data, tuple | list)
            and len(data) == 2
            and all(hasattr(part, "shape") for part in data)
        ):
            x, y = (_tensor(part) for part in data)
            if len(x) != len(y):
                rule = "each example has one input and one target"
                raise InvalidInput(
                    "inputs and targets", rule, "Pass arrays or tensors of one length."
                )
            source, count = (x, y), len(x)
        elif (
            hasattr(data, "__len__")
            and hasattr(data, "__getitem__")
            and not isinstance(data, str | bytes | dict)
        ):
            source, count = list(data) if isinstance(data, tuple) else data, _length(data)
        else:
            rule = "each example must have a known place, so that coins can be thrown for it"
            hint = "Pass (inputs, targets) as arrays or tensors, or a dataset with __len__ and __getitem__."
            raise InvalidInput(f"data of type {type(data).__name__}", rule, hint)
        return Examples(source, count, _members(count, persons, max_examples))

    @property
    def units(self) -> int:
        """How many examples, or persons, there are: secret, unless neighbours have the same number."""
        return len(self.members)

    @property
    def per_unit(self) -> int:
        """How many examples a unit has at most."""
        return int(self.members.shape[1])

    @cached_property
    def forms(self) -> tuple[Any, Any]:
        """One input and one target, of which only shape and type are looked at: these are taken to be public."""
        if not self.count:
            raise InvalidInput(
                "no examples", "shapes are taken from the first one", "Pass at least one example."
            )
        if isinstance(self.source, tuple):
            return self.source[0][0], self.source[1][0]
        try:
            x, y = self.source[0]
            return torch.as_tensor(x), torch.as_tensor(y)
        except Exception as error:  # its own text may quote the example
            rule = f"it is no pair (input, target) of numbers or tensors ({type(error).__name__})"
            hint = "Let dataset[i] return such pairs, all of one shape."
            raise InvalidInput("the first example", rule, hint) from None

    def take(self, places: Places, slots: int, device: Any) -> tuple[Any, Any, Any]:
        """Inputs, targets and a mask of a physical batch of `slots` units; what is not used is zero."""
        table = np.full((slots, self.per_unit), -1, np.int64)
        table[: len(places)] = self.members[places]
        flat = table.reshape(-1)
        used = torch.as_tensor(flat >= 0)
        if isinstance(self.source, tuple):
            index = torch.as_tensor(np.maximum(flat, 0))
            x, y = (part.index_select(0, index.to(part.device)) for part in self.source)
            if self.per_unit == 1:  # what is not used comes last
                empty: Any = slice(len(places), None)
            else:
                empty = ~used
            x[empty], y[empty] = 0, 0
        else:
            x, y = (torch.zeros((len(flat), *form.shape), dtype=form.dtype) for form in self.forms)
            for slot in np.flatnonzero(flat >= 0):
                x[slot], y[slot] = self._formed(int(flat[slot]))
        return x.to(device), y.to(device), used.to(device)

    def _formed(self, place: int) -> tuple[Any, Any]:
        """An example of a dataset, if it has the common form: which ones have it depends on no other example."""
        pair = tuple(torch.as_tensor(part) for part in self.source[place])
        if [part.shape for part in pair] != [form.shape for form in self.forms]:
            raise ValueError("an example of another shape")
        return pair[0], pair[1]


def _length(data: Any) -> int:
    try:
        return len(data)
    except Exception as error:  # its own text may quote an example
        rule = f"len() of it fails ({type(error).__name__})"
        hint = "Let the dataset's __len__ return how many examples there are."
        raise InvalidInput(f"data of type {type(data).__name__}", rule, hint) from None


def _members(count: int, persons: Any, most: int | None) -> Places:
    """The places of each unit's examples, at most `most`; those of nobody (None, NaN) are not used."""
    if persons is None:
        if most is not None:
            rule = "it bounds the examples of one person"
            raise InvalidInput(
                f"max_examples={show(most)}", rule, "Pass persons= as well: who each example is of."
            )
        return np.arange(count, dtype=np.int64)[:, None]
    names = _names(persons)
    if names.shape != (count,):
        rule = "there must be one person for each example"
        raise InvalidInput("persons", rule, "Pass a column of names or numbers.")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        rule = "how many examples of one person count must be declared, as it must not come from the data"
        raise InvalidInput(f"max_examples={show(most)}", rule, "Pass max_examples=4 or the like.")
    known = np.array([_is_known(name) for name in names.tolist()], bool)
    if names.dtype.kind in "mM":
        known &= ~np.isnat(names)
    places, names = np.flatnonzero(known), names[known]
    if names.dtype == object:  # a mixture cannot be put in order; its texts can
        try:
            different = sorted(
                set(names.tolist()), key=lambda name: f"{type(name).__name__} {name}"
            )
        except Exception:  # of a name of its own kind, whose text may quote it
            rule = "what names a person must be a text, a number or the like"
            hint = "Pass a column of names or numbers."
            raise InvalidInput("persons", rule, hint) from None
        place_of = {name: place for place, name in enumerate(different)}
        person = np.array([place_of[name] for name in names.tolist()], np.int64)
        count = len(different)
    else:
        first, person = np.unique(names, return_inverse=True)
        count = len(first)
    order = np.argsort(person, kind="stable")
    starts = np.searchsorted(person[order], np.arange(count))
    rank = np.arange(len(places)) - starts[person[order]]
    kept = rank < most
    members = np.full((count, most), -1, np.int64)
    members[person[order][kept], rank[kept]] = places[order[kept]]
    return members


def _names(persons: Any) -> Any:
    """A name for each example, None where it is masked."""
    if isinstance(persons, np.ma.MaskedArray):
        names = persons.data.astype(object)
        names[np.ma.getmaskarray(persons)] = None
        return names
    return np.array(persons, object) if isinstance(persons, list | tuple) else np.asarray(persons)


def _is_known(name: Any) -> bool:
    """Whether it is the name of somebody: None is nobody's, nor is what does not equal itself, such as NaN."""
    try:
        return name is not None and bool(name == name)
    except TypeError:  # pandas' NA
        return False
    except Exception:  # an array or the like, which is no name either way
        return True


def _tensor(part: Any) -> Any:
    try:
        found = torch.as_tensor(part)
    except Exception as error:  # its own text may quote a cell
        rule = f"inputs and targets are numbers, and this cannot be read as such ({type(error).__name__})"
        hint = "Pass arrays or tensors of numbers; of a data frame, frame.to_numpy('float32')."
        raise InvalidInput(f"data of type {type(part).__name__}", rule, hint) from None
    if found.layout is not torch.strided or found.is_quantized or found.is_meta:
        rule = "single examples are taken from dense numbers"
        raise InvalidInput(f"a tensor of layout {found.layout}", rule, "Pass tensor.to_dense().")
    if found.dim() < 1:
        raise InvalidInput(
            "a single number", "the first axis counts examples", "Pass one line for each example."
        )
    return found


def made_up(form: Any, count: int, numbers: Sequence[float], *, other: bool = False) -> Any:
    """Examples of the same shape and type that tell nothing: given numbers in turn, zeros and ones where whole.

    The `other` ones differ in every row: their numbers begin elsewhere, and whole ones are all alike in a row.
    """
    width = int(form.numel())
    size = width * count
    if form.dtype.is_floating_point:
        found = np.roll(np.asarray(numbers), len(numbers) // 2 if other else 0)
        filled = torch.as_tensor(np.resize(found, size)).to(form.dtype)
    else:
        filled = torch.arange(size) % 2
        if other and size:
            filled = (1 - filled.reshape(count, width)[:, :1]).expand(count, width)
        filled = filled.to(form.dtype)
    return filled.reshape(count, *form.shape)
