"""Merkle trees: roots and proofs by the definitions of RFC 6962, written out naively, and proofs that must not hold."""

from __future__ import annotations

import hashlib
import random

import pytest

from sordino.ledger.merkle import Tree, continues, includes, leaf_hash

LEAVES = [bytes([i]) * i for i in range(40)]
HASHES = [leaf_hash(leaf) for leaf in LEAVES]


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def split(count: int) -> int:
    return max(1 << k for k in range(20) if 1 << k < count)


def naive_root(leaves: list[bytes]) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = split(len(leaves))
    return node(naive_root(leaves[:k]), naive_root(leaves[k:]))


def naive_path(m: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*naive_path(m, leaves[:k]), naive_root(leaves[k:])]
    return [*naive_path(m - k, leaves[k:]), naive_root(leaves[:k])]


def naive_proof(m: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    if m == len(leaves):
        return [] if whole else [naive_root(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*naive_proof(m, leaves[:k], whole), naive_root(leaves[k:])]
    return [*naive_proof(m - k, leaves[k:], False), naive_root(leaves[:k])]


@pytest.fixture(scope="module")
def tree() -> Tree:
    made = Tree()
    for one in HASHES:
        made.append(one)
    return made


def test_roots_and_proofs_are_those_of_the_definition(tree: Tree) -> None:
    for size in range(len(LEAVES) + 1):
        assert tree.root(size) == naive_root(LEAVES[:size])
        for place in range(size):
            assert tree.inclusion(place, size) == naive_path(place, LEAVES[:size])
        for before in range(1, size + 1):
            assert tree.consistency(before, size) == naive_proof(before, LEAVES[:size])


def test_every_proof_holds(tree: Tree) -> None:
    for size in range(1, len(LEAVES) + 1):
        root = tree.root(size)
        assert all(includes(root, size, i, HASHES[i], tree.inclusion(i, size)) for i in range(size))
        assert all(
            continues(m, tree.root(m), size, root, tree.consistency(m, size))
            for m in range(1, size + 1)
        )


def test_no_other_leaf_place_size_or_root_is_shown(tree: Tree) -> None:
    for size in range(1, 20):
        root = tree.root(size)
        for place in range(size):
            proof = tree.inclusion(place, size)
            assert not any(
                includes(root, size, i, HASHES[place], proof)
                for i in range(-1, size + 2)
                if i != place
            )
            assert not any(
                includes(root, size, place, HASHES[i], proof) for i in range(size) if i != place
            )
            assert not includes(tree.root(size + 1), size, place, HASHES[place], proof)
            assert not includes(root, size, place, HASHES[place], [*proof, root])
            assert not proof or not includes(root, size, place, HASHES[place], proof[:-1])


def test_a_forked_list_never_continues() -> None:
    rng = random.Random(1)
    for _ in range(200):
        size = rng.randint(2, 40)
        before = rng.randint(1, size - 1)
        forked = Tree()
        changed = rng.randrange(before)
        for place, one in enumerate(HASHES[:size]):
            forked.append(leaf_hash(b"forged") if place == changed else one)
        honest = Tree()
        for one in HASHES[:before]:
            honest.append(one)
        proof = forked.consistency(before, size)
        assert not continues(before, honest.root(), size, forked.root(), proof)
        assert continues(before, forked.root(before), size, forked.root(), proof)


def test_a_proof_with_one_bit_changed_does_not_hold(tree: Tree) -> None:
    size, before = 37, 21
    proof = tree.consistency(before, size)
    for i, one in enumerate(proof):
        wrong = [*proof[:i], bytes([one[0] ^ 1]) + one[1:], *proof[i + 1 :]]
        assert not continues(before, tree.root(before), size, tree.root(size), wrong)
    assert not continues(before, tree.root(before), size, tree.root(size), proof[:-1])
    assert not continues(before, tree.root(before), size, tree.root(size), [*proof, proof[0]])
    assert not continues(0, tree.root(0), size, tree.root(size), [])


def test_what_is_not_there_cannot_be_proven(tree: Tree) -> None:
    for place, size in ((5, 5), (-1, 5), (0, 41), (0, 0)):
        with pytest.raises(ValueError, match="there"):
            tree.inclusion(place, size)
    with pytest.raises(ValueError, match="among"):
        tree.consistency(6, 5)
