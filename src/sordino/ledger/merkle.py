"""Merkle trees as in RFC 6962: one hash stands for a list of leaves, and short proofs show that a leaf is in it, at its
place, and that a longer list continues a shorter one.

A leaf is hashed as SHA-256(0x00 | leaf), a node as SHA-256(0x01 | left | right), so that no node can pass for a leaf.
The left subtree of n > 1 leaves has the largest power of two below n.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["Tree", "continues", "includes", "leaf_hash"]


def leaf_hash(leaf: bytes) -> bytes:
    """The hash of one leaf."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A list of leaf hashes that grows; the nodes of all whole subtrees are kept, so that proofs are short work."""

    def __init__(self) -> None:
        self._levels: list[list[bytes]] = [[]]

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, leaf: bytes) -> None:
        """Add the hash of a leaf."""
        node, level = leaf, 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
            nodes = self._levels[level]
            nodes.append(node)
            if len(nodes) % 2:
                return
            node, level = _node(nodes[-2], nodes[-1]), level + 1

    def root(self, size: int | None = None) -> bytes:
        """The hash of the first `size` leaves, by default of all."""
        return self._hash(0, len(self) if size is None else self._checked(size))

    def inclusion(self, place: int, size: int) -> list[bytes]:
        """What shows that the leaf at a place, counted from 0, is among the first `size` (RFC 6962, 2.1.1)."""
        if not 0 <= place < self._checked(size):
            raise ValueError(f"there is no leaf {place} among {size}")
        proof, start, count = list[bytes](), 0, size
        while count > 1:
            left = _left(count)
            if place - start < left:
                proof.append(self._hash(start + left, count - left))
                count = left
            else:
                proof.append(self._hash(start, left))
                start, count = start + left, count - left
        return proof[::-1]

    def consistency(self, before: int, size: int) -> list[bytes]:
        """What shows that the first `size` leaves continue the first `before` (RFC 6962, 2.1.2)."""
        if not 0 < before <= self._checked(size):
            raise ValueError(f"{before} leaves are not among {size}")
        proof, start, count, whole = list[bytes](), 0, size, True
        while before - start != count:
            left = _left(count)
            if before - start <= left:
                proof.append(self._hash(start + left, count - left))
                count = left
            else:
                proof.append(self._hash(start, left))
                start, count, whole = start + left, count - left, False
        return ([] if whole else [self._hash(start, count)]) + proof[::-1]

    def _checked(self, size: int) -> int:
        if not 0 <= size <= len(self):
            raise ValueError(f"there are {len(self)} leaves, not {size}")
        return size

    def _hash(self, start: int, count: int) -> bytes:
        """The hash of `count` leaves from a place that a subtree of them may start at."""
        if count == 0:
            return hashlib.sha256().digest()
        level = count.bit_length() - 1
        if count == 1 << level:
            return self._levels[level][start >> level]
        left = _left(count)
        return _node(self._hash(start, left), self._hash(start + left, count - left))


def _left(count: int) -> int:
    """The largest power of two below a count."""
    return 1 << (count - 1).bit_length() - 1


def includes(root: bytes, size: int, place: int, leaf: bytes, proof: Sequence[bytes]) -> bool:
    """Whether a proof shows that the leaf with this hash is at its place among `size` leaves with this root."""
    if not 0 <= place < size:
        return False
    path, last, node = place, size - 1, leaf
    for other in proof:
        if last == 0:
            return False
        if path % 2 or path == last:
            node = _node(other, node)
            while path % 2 == 0 and path:
                path, last = path >> 1, last >> 1
        else:
            node = _node(node, other)
        path, last = path >> 1, last >> 1
    return last == 0 and node == root


def continues(before: int, old: bytes, size: int, new: bytes, proof: Sequence[bytes]) -> bool:
    """Whether a proof shows that `size` leaves with the root `new` begin with `before` leaves with the root `old`."""
    if not 0 < before <= size:
        return False
    if before == size:
        return old == new and not proof
    nodes = list(proof)
    if before & (before - 1) == 0:
        nodes.insert(0, old)
    if not nodes:
        return False
    path, last = before - 1, size - 1
    while path % 2:
        path, last = path >> 1, last >> 1
    first, second = nodes[0], nodes[0]
    for other in nodes[1:]:
        if last == 0:
            return False
        if path % 2 or path == last:
            first, second = _node(other, first), _node(other, second)
            while path % 2 == 0 and path:
                path, last = path >> 1, last >> 1
        else:
            second = _node(second, other)
        path, last = path >> 1, last >> 1
    return last == 0 and first == old and second == new
