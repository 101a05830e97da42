"""Which columns are modelled together: a triangulated graph of pairs, its cliques and a tree that joins them.

Cliques are found by eliminating columns one after another, the one with the smallest clique first. A junction tree
joins cliques so that those which hold a column hang together; then a product of tables over cliques can be summed
exactly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["JunctionTree", "cliques_of", "eliminated", "join"]


def eliminated(
    sizes: Sequence[int], sets: Iterable[Iterable[int]], kept: Sequence[int] = ()
) -> list[tuple[int, set[int]]]:
    """All columns but the kept ones in the order in which they go, each with all that it is connected with by then.

    Each given set is connected, and so are the kept columns.
    """
    near: list[set[int]] = [set() for _ in sizes]
    for one in (*sets, kept):
        for a, b in itertools.permutations(one, 2):
            near[a].add(b)
    left = {i: sizes[i] * math.prod(sizes[j] for j in near[i]) for i in range(len(sizes))}
    for column in kept:
        del left[column]
    found = list[tuple[int, set[int]]]()
    while left:
        column = min(left, key=lambda i: (left[i], i))
        others = near[column]
        del left[column]
        for other in others:
            near[other] |= others
            near[other] -= {other, column}
        for other in others & left.keys():
            left[other] = sizes[other] * math.prod(sizes[j] for j in near[other])
        found.append((column, others))
    return found


def cliques_of(sizes: Sequence[int], sets: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    """The largest cliques of a triangulated graph in which each given set of columns is connected."""
    found = list[set[int]]()
    for column, others in eliminated(sizes, sets):
        clique = others | {column}
        if not any(clique <= known for known in found):
            found.append(clique)
    return [tuple(sorted(clique)) for clique in found]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after its parent (the first has none: -1), with the columns that it shares with it."""

    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    shared: tuple[tuple[int, ...], ...]


def join(sizes: Sequence[int], sets: Iterable[Iterable[int]]) -> JunctionTree:
    """A junction tree for sets of columns: of all spanning trees one with the most shared columns."""
    cliques = cliques_of(sizes, sets)
    left = list(range(1, len(cliques)))
    order, parents, shared = [0], [-1], list[tuple[int, ...]]([()])
    while left:
        place, other = max(
            ((k, i) for i in left for k in range(len(order))),
            key=lambda pair: len(set(cliques[order[pair[0]]]) & set(cliques[pair[1]])),
        )
        left.remove(other)
        parents.append(place)
        shared.append(tuple(sorted(set(cliques[order[place]]) & set(cliques[other]))))
        order.append(other)
    return JunctionTree(tuple(cliques[i] for i in order), tuple(parents), tuple(shared))
