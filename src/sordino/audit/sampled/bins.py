"""Features cut into bins: each run becomes a small whole number.

Numbers are cut at quantiles of the training sample, values that come back often get a bin of their own, and so do the most
frequent atoms; atoms that training did not see share the last bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sordino.audit.sampled.features import Feature
from sordino.audit.sampled.outputs import Codes, Column, Floats, Table

__all__ = ["Binned", "Bins", "cut", "cut_together"]

_SAMPLE = 100_000

Small = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Bins:
    """A feature and where it is cut: (edge, edge] for numbers, then one bin for each known atom, then the unknown atoms."""

    feature: Feature
    edges: Floats
    atoms: Codes

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(self.edges) + 2 + len(self.atoms)

    def of(self, table: Table) -> Small:
        """The bin of each run."""
        column = self.feature.column(table)
        if column.atoms is None:
            return np.searchsorted(self.edges, column.numbers).astype(np.uint16)
        places = np.searchsorted(self.atoms, column.atoms)
        known = self.atoms[np.minimum(places, len(self.atoms) - 1)] == column.atoms if len(self.atoms) else False
        other = len(self.edges) + 1 + np.where(known, places, len(self.atoms))
        if not (column.atoms == 0).any():
            return other.astype(np.uint16)
        return np.where(column.atoms == 0, np.searchsorted(self.edges, column.numbers), other).astype(np.uint16)


class Binned:
    """The bins of one table, each computed once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._found: dict[Bins, Small] = {}

    def __getitem__(self, bins: Bins) -> Small:
        if bins not in self._found:
            self._found[bins] = bins.of(self.table)
        return self._found[bins]


def cut(feature: Feature, columns: Sequence[Column], most: int, most_atoms: int) -> Bins:
    """Bins for a feature, about equally full over the pooled columns."""
    return Bins(feature, _edges(columns, most), _known(columns, most_atoms))


def cut_together(features: Sequence[Feature], columns: Sequence[Column], most: int, most_atoms: int) -> list[Bins]:
    """The same bins for several features."""
    edges, atoms = _edges(columns, most), _known(columns, most_atoms)
    return [Bins(feature, edges, atoms) for feature in features]


def _edges(columns: Sequence[Column], most: int) -> Floats:
    each = max(1, _SAMPLE // len(columns))
    numbers = np.sort(np.concatenate([_some(column.numbers[column.is_number()], each) for column in columns]))
    if not len(numbers):
        return np.empty(0)
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= most:
        return values[:-1]
    own = values[counts >= len(numbers) / most]
    edges = numbers[np.linspace(0, len(numbers) - 1, max(2, most - len(own)) + 1).astype(int)[1:-1]]
    return np.unique(np.concatenate([edges, own, np.nextafter(own, -np.inf)]))


def _some(numbers: Floats, most: int) -> Floats:
    return numbers if len(numbers) <= most else numbers[: most * (len(numbers) // most) : len(numbers) // most]


def _known(columns: Sequence[Column], most: int) -> Codes:
    with_atoms = [column.atoms for column in columns if column.atoms is not None]
    if not with_atoms:
        return np.empty(0, np.int64)
    codes, counts = np.unique(np.concatenate(with_atoms), return_counts=True)
    counts, codes = counts[codes != 0], codes[codes != 0]
    return np.sort(codes[np.argsort(-counts, kind="stable")[:most]])
