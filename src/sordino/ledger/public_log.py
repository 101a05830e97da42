"""The log that a ledger shows: who was answered can prove it, and learns nothing of what others asked (public_log.md).

Each entry is a leaf of a Merkle tree, blinded by a secret number; a checkpoint is the signed root of the first entries.
A proof holds the entries of one question, with their numbers and paths, so that it can be checked offline.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sordino.errors import InvalidInput
from sordino.ledger.chain import FORMAT, START, Broken, Entry, Link, canonical, digest, linked
from sordino.ledger.merkle import Tree, continues, includes, leaf_hash
from sordino.ledger.state import Payment
from sordino.ledger.store import Store
from sordino.privacy.exact import show
from sordino.privacy.wording import counted

__all__ = ["Checkpoint", "Proof", "PublicLog", "VerifyingKey", "findings", "fork_findings"]

_NAME = "sordino-ledger-"
_ED25519 = b"\x01"
_SAID = {
    "charge": {"question", "offer", "analyst", "request"},
    "answer": {"charge", "answer"},
    "forfeit": {"charge"},
}
"""What entries of a receipt say, at least."""


@dataclass(frozen=True)
class VerifyingKey:
    """The public key of a log, under the name of its ledger; one line of text (C2SP signed-note)."""

    name: str
    key: bytes

    @cached_property
    def id(self) -> bytes:
        """Four bytes by which a signature says whose it is."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.key).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(_ED25519 + self.key).decode()}"

    @staticmethod
    def of(text: str) -> VerifyingKey:
        """The key that `str` wrote."""
        try:
            name, id_, key = text.strip().split("+", 2)
            kind = base64.b64decode(key, validate=True)
            found = VerifyingKey(name, kind[1:])
            if (
                kind[:1] != _ED25519
                or len(found.key) != 32
                or found.id.hex() != id_
                or not name.startswith(_NAME)
            ):
                raise ValueError
        except (ValueError, binascii.Error):
            rule = "this is not the key of a ledger's log"
            raise InvalidInput(
                show(text), rule, "Pass the line that `sordino receipt key` or the server shows."
            ) from None
        return found


@dataclass(frozen=True)
class Checkpoint:
    """How many entries a log had, the root of their tree, and the signature of whoever keeps it."""

    name: str
    size: int
    root: bytes
    signature: bytes

    @property
    def body(self) -> str:
        """What is signed (C2SP tlog-checkpoint)."""
        return _body(self.name, self.size, self.root)

    def __str__(self) -> str:
        return f"{self.body}\n\u2014 {self.name} {base64.b64encode(self.signature).decode()}\n"

    @staticmethod
    def of(text: str) -> Checkpoint:
        """The checkpoint that `str` wrote."""
        try:
            name, size, root, empty, signed, end = text.split("\n")
            dash, signer, signature = signed.split(" ")
            whole = (
                size.isdecimal()
                and size == str(int(size))
                and (empty, end, dash, signer) == ("", "", "\u2014", name)
            )
            decoded = (base64.b64decode(part, validate=True) for part in (root, signature))
            found = Checkpoint(name, int(size), *decoded)
            if not whole or len(found.root) != 32 or len(found.signature) != 68 or found.size < 1:
                raise ValueError
        except (ValueError, binascii.Error):
            rule = "this is not a checkpoint of a ledger's log"
            raise InvalidInput(
                show(text), rule, "Pass the text as it was given out, all lines of it."
            ) from None
        return found

    def signed_by(self, key: VerifyingKey) -> bool:
        """Whether the holder of the key signed it."""
        if self.name != key.name or self.signature[:4] != key.id:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(key.key).verify(
                self.signature[4:], self.body.encode()
            )
        except InvalidSignature:
            return False
        return True


def _body(name: str, size: int, root: bytes) -> str:
    return f"{name}\n{size}\n{base64.b64encode(root).decode()}\n"


@dataclass(frozen=True)
class _Shown:
    """One entry with its blinding number and the path from its leaf to the root; all that a leaf is made of."""

    text: str
    blind: bytes
    path: tuple[bytes, ...]

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The entry's fields."""
        fields = json.loads(self.text)
        if canonical(fields) != self.text or fields["format"] != FORMAT:
            raise ValueError
        return dict(fields)

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "blind": self.blind.hex(),
            "path": [one.hex() for one in self.path],
        }

    @staticmethod
    def of(fields: Mapping[str, Any]) -> _Shown:
        shown = _Shown(fields["text"], _hex(fields["blind"]), tuple(map(_hex, fields["path"])))
        entry = shown.facts
        if (
            type(entry["sequence"]) is not int
            or type(entry["time"]) is not str
            or entry["kind"] not in _SAID
        ):
            raise TypeError
        if not _SAID[entry["kind"]] <= entry["facts"].keys():
            raise TypeError
        return shown


def _hex(text: str) -> bytes:
    found = bytes.fromhex(text)
    if len(found) != 32 or found.hex() != text:
        raise ValueError
    return found


@dataclass(frozen=True)
class Proof:
    """That a question was charged and what became of it: its entries, under a checkpoint, and the answer as it was
    stored.

    `since` is how many entries an older checkpoint had that this one continues, and `path` shows it.
    """

    key: VerifyingKey
    checkpoint: Checkpoint
    entries: tuple[_Shown, ...]
    answer: str = ""
    since: int = 0
    path: tuple[bytes, ...] = ()

    @property
    def charge(self) -> Mapping[str, Any]:
        """The fields of the charge."""
        return self.entries[0].facts

    def to_json(self) -> str:
        """The proof as a document."""
        older = (
            {"size": self.since, "path": [one.hex() for one in self.path]} if self.since else None
        )
        fields = {
            "kind": "sordino-receipt", "v": 1, "key": str(self.key), "checkpoint": str(self.checkpoint),
            "entries": [one.to_json() for one in self.entries], "answer": self.answer, "continues": older,
        }  # fmt: skip
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def from_json(text: str) -> Proof:
        """The proof that `to_json` wrote; whether it holds is another question (`findings`)."""
        try:
            fields = json.loads(text)
            json.dumps(
                fields, ensure_ascii=False
            ).encode()  # refuses halves of letters, which cannot be hashed
            if (
                fields["kind"] != "sordino-receipt"
                or fields["v"] != 1
                or type(fields["answer"]) is not str
            ):
                raise ValueError
            entries = tuple(map(_Shown.of, fields["entries"]))
            older = fields["continues"] or {"size": 0, "path": []}
            path = tuple(map(_hex, older["path"]))
            if type(older["size"]) is not int or older["size"] < 0:
                raise ValueError
            key, checkpoint = VerifyingKey.of(fields["key"]), Checkpoint.of(fields["checkpoint"])
            proof = Proof(key, checkpoint, entries, fields["answer"], older["size"], path)
            if not 1 <= len(entries) <= 2 or proof.charge["kind"] != "charge":
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidInput):
            rule = "this is not a receipt"
            raise InvalidInput(
                show(text[:80]), rule, "Pass the file that `sordino receipt get` wrote."
            ) from None
        return proof


class PublicLog:
    """The log of the ledger in a store, as far as its entries were read here; `catch_up` takes in what was appended."""

    def __init__(self, store: Store, ledger: str) -> None:
        self._store = store
        secret = store.key()
        self._blinding = hmac.digest(secret, b"sordino public log: blinding", "sha256")
        self._signing = Ed25519PrivateKey.from_private_bytes(
            hmac.digest(secret, b"sordino public log: signing", "sha256")
        )
        self._tree = Tree()
        self._link = START
        self._guard = threading.RLock()
        self.key = VerifyingKey(_NAME + ledger, self._signing.public_key().public_bytes_raw())

    def catch_up(self, end: Link) -> None:
        """Take in the entries up to the end of a chain; Broken if they do not lead there."""
        with self._guard:
            if self._link == end:
                return
            for entry, hash_ in linked(
                self._store.rows(self._link.sequence, end.sequence), self._link
            ):
                self._tree.append(
                    leaf_hash(_leaf(_without_previous(entry), self._blind(entry.sequence)))
                )
                self._link = Link(entry.sequence, hash_)
            if self._link != end:
                raise Broken(f"entry {end.sequence} is not the one that was read before")

    @property
    def size(self) -> int:
        """How many entries it holds."""
        return len(self._tree)

    def checkpoint(self) -> Checkpoint:
        """The root of all entries so far, signed."""
        with self._guard:
            size, root = len(self._tree), self._tree.root()
        signature = self._signing.sign(_body(self.key.name, size, root).encode())
        return Checkpoint(self.key.name, size, root, self.key.id + signature)

    def continued(self, before: int) -> tuple[bytes, ...]:
        """What shows that the log continues the one with fewer entries."""
        if not 1 <= before <= len(self._tree):
            rule = f"the log has {counted(len(self._tree), 'entry', 'entries')}"
            raise InvalidInput(
                f"a log of {counted(before, 'entry', 'entries')}",
                rule,
                "Pass the size of an older checkpoint of this log.",
            )
        return tuple(self._tree.consistency(before, len(self._tree)))

    def signed(self, since: int | None = None) -> tuple[Checkpoint, tuple[bytes, ...]]:
        """A checkpoint, and what shows that it continues the first `since` entries."""
        with self._guard:
            return self.checkpoint(), () if since is None else self.continued(since)

    def proof(
        self, payment: Payment, answer: bytes | None = None, since: int | None = None
    ) -> Proof:
        """That a question was charged and what became of it, as far as that is known."""
        numbers = [payment.receipt.number] + ([payment.settled] if payment.settled else [])
        with self._guard:
            if max(numbers) > len(self._tree):
                hint = "Ask again in a moment."
                raise InvalidInput(f"entry {max(numbers)}", "the log does not hold it yet", hint)
            shown = tuple(self._shown(number) for number in numbers)
            path = () if since is None else self.continued(since)
            return Proof(
                self.key, self.checkpoint(), shown, (answer or b"").decode(), since or 0, path
            )

    def _shown(self, number: int) -> _Shown:
        (row,) = self._store.rows(number - 1, number)
        path = self._tree.inclusion(number - 1, len(self._tree))
        return _Shown(_without_previous(Entry.of(row)), self._blind(number), tuple(path))

    def _blind(self, number: int) -> bytes:
        """The secret number of a leaf: whoever does not know it cannot try out what the entry may say."""
        return hmac.digest(self._blinding, number.to_bytes(8, "big"), "sha256")


def _without_previous(entry: Entry) -> str:
    """The entry without the hash of the one before it, by which that one's contents could be tried out."""
    fields = {"format": FORMAT, "sequence": entry.sequence, "kind": entry.kind, "time": entry.time}
    return canonical({**fields, "facts": dict(entry.facts)})


def _leaf(text: str, blind: bytes) -> bytes:
    return blind + text.encode()


def findings(
    proof: Proof, key: VerifyingKey | None = None, older: Checkpoint | None = None
) -> Sequence[str]:
    """All that is wrong with a proof, in words; with the key that its reader trusts,
    and a checkpoint kept from before.
    """
    return list(_findings(proof, key or proof.key, older))


def _findings(proof: Proof, key: VerifyingKey, older: Checkpoint | None) -> Iterator[str]:
    now = proof.checkpoint
    if key != proof.key:
        yield "it was signed with another key than the one given"
    if not now.signed_by(key):
        yield "the signature of its checkpoint does not fit"
    for shown in proof.entries:
        number = shown.facts["sequence"]
        if not includes(
            now.root, now.size, number - 1, leaf_hash(_leaf(shown.text, shown.blind)), shown.path
        ):
            yield f"entry {number} is not in the log, or was changed"
    yield from _about_entries(proof)
    if older is not None:
        yield from _forked(now, proof.since, proof.path, older, key)


def _about_entries(proof: Proof) -> Iterator[str]:
    charge, *rest = (shown.facts for shown in proof.entries)
    for settled in rest:
        facts = settled["facts"]
        if facts.get("charge") != charge["sequence"]:
            yield f"entry {settled['sequence']} does not say what became of entry {charge['sequence']}"
        elif (
            settled["kind"] == "answer" and proof.answer and facts["answer"] != digest(proof.answer)
        ):
            yield "the answer is not the one that was recorded"
    if proof.answer and not any(settled["kind"] == "answer" for settled in rest):
        yield "there is an answer, and none was recorded"


def fork_findings(
    now: Checkpoint, path: Sequence[bytes], older: Checkpoint, key: VerifyingKey
) -> Sequence[str]:  # fmt: skip
    """All that speaks against a log continuing an older checkpoint of it,
    in words; `path` is what shows that it does.
    """
    unsigned = [] if now.signed_by(key) else ["the signature of its checkpoint does not fit"]
    return [*unsigned, *_forked(now, older.size, path, older, key)]


def _forked(
    now: Checkpoint, since: int, path: Sequence[bytes], older: Checkpoint, key: VerifyingKey
) -> Iterator[str]:  # fmt: skip
    if not older.signed_by(key):
        yield "the older checkpoint is not of this log, or its signature does not fit"
    elif older.size > now.size:
        yield f"the log was cut short: it had {counted(older.size, 'entry', 'entries')}, and now has {now.size}"
    elif older.size not in (now.size, since):
        entries = counted(older.size, "entry", "entries")
        yield f"it does not show that it continues the {entries} of the older checkpoint; ask for it with --since"
    elif not continues(
        older.size, older.root, now.size, now.root, path if older.size != now.size else ()
    ):
        yield "the log was forked: it does not continue the older checkpoint"
