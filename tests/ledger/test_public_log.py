"""Receipts: what was recorded can be proven offline, what was changed or forked is noticed, and others stay unseen."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from sordino import Charge
from sordino.errors import InvalidInput, LedgerDamaged, RequestRefused
from sordino.ledger.chain import Entry, Row, digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry
from sordino.ledger.public_log import Checkpoint, Proof, VerifyingKey, findings
from sordino.ledger.receipt import Request
from sordino.ledger.terms import Terms
from sordino.query.dataset import Dataset

CENT = Charge(Fraction(1, 100))


def new_ledger() -> Ledger:
    declared = Dataset(
        pa.table({"age": [1, 2]}), unit="row", columns={"age": {"type": "int", "min": 0, "max": 9}}, budget={"epsilon": 1}
    )  # fmt: skip
    return Ledger(MemoryStore(*first_entry(Terms.of(declared))))


def ask(ledger: Ledger, name: str, answer: bytes | None = b'{"n": 3}') -> None:
    receipt = ledger.charge(
        CENT, Request(name, f"SELECT COUNT(*) AS {name} FROM data", "epsilon=0.01")
    ).receipt
    if answer is None:
        ledger.forfeit(receipt)
    else:
        ledger.store(receipt, answer)


@pytest.fixture
def ledger() -> Ledger:
    made = new_ledger()
    for name in "abc":
        ask(made, name)
    return made


def read_back(proof: Proof) -> Proof:
    again = Proof.from_json(proof.to_json())
    assert again == proof
    return again


def test_every_answer_can_be_proven_from_its_document_alone(ledger: Ledger) -> None:
    ask(ledger, "failed", None)
    for name in ("a", "b", "c", "failed"):
        proof = read_back(ledger.proof(name))
        assert findings(proof, ledger.public_log().key) == []
        assert proof.charge["facts"]["question"] == f"SELECT COUNT(*) AS {name} FROM data"
        assert [shown.facts["kind"] for shown in proof.entries] == [
            "charge",
            "forfeit" if name == "failed" else "answer",
        ]


def test_a_charge_without_an_answer_can_be_proven(ledger: Ledger) -> None:
    ledger.charge(CENT, Request("open", "SELECT 1"))
    proof = read_back(ledger.proof("open"))
    assert len(proof.entries) == 1
    assert not proof.answer
    assert findings(proof) == []


def test_the_log_grows_with_the_ledger_and_continues_what_was_shown(ledger: Ledger) -> None:
    old = [ledger.public_log().checkpoint()]
    for i in range(12):
        ask(ledger, f"later{i}")
        old.append(ledger.public_log().checkpoint())
    for checkpoint in old:
        proof = read_back(ledger.proof("b", since=checkpoint.size))
        assert findings(proof, older=checkpoint) == []
    assert [one.size for one in old] == [7 + 2 * i for i in range(13)]


def test_a_change_of_any_character_is_noticed(ledger: Ledger) -> None:
    document, key = ledger.proof("b", since=3).to_json(), ledger.public_log().key
    older = Checkpoint.of(str(ledger.public_log().checkpoint()))
    for place in range(0, len(document), 7):
        changed = (
            document[:place] + ("1" if document[place] != "1" else "2") + document[place + 1 :]
        )
        try:
            proof = Proof.from_json(changed)
        except InvalidInput:
            continue
        same = proof == Proof.from_json(document)
        assert (
            same
            or findings(proof, key, older)
            or proof.since != 3
            or proof.path != ledger.proof("b", since=3).path
        )


def test_a_ledger_that_was_written_anew_is_a_fork() -> None:
    one, other = new_ledger(), new_ledger()
    secret = one._journal.store.key()
    other._journal.store.key = lambda: secret  # type: ignore[method-assign]
    for book, names in ((one, "abc"), (other, "abxy")):
        for name in names:
            ask(book, name)
    seen = one.public_log().checkpoint()
    name = one.public_log().key.name
    log = other.public_log()
    forged = replace(log.checkpoint(), name=name)
    proof = replace(other.proof("a", since=seen.size), key=one.public_log().key, checkpoint=forged)
    assert "the signature of its checkpoint does not fit" in findings(proof, older=seen)
    signing = log._signing
    body = Checkpoint(name, forged.size, forged.root, b"").body
    signed = replace(forged, signature=one.public_log().key.id + signing.sign(body.encode()))
    proof = replace(proof, checkpoint=signed)
    assert findings(proof) == []  # by itself it holds: only who kept the older one can tell
    assert findings(proof, older=seen) == [
        "the log was forked: it does not continue the older checkpoint"
    ]


def test_an_older_checkpoint_must_be_of_this_log_and_shown_to_be_continued(ledger: Ledger) -> None:
    other = new_ledger()
    ask(other, "z")
    before = ledger.public_log().checkpoint()
    ask(ledger, "d")
    proof = ledger.proof("a")
    assert findings(proof, older=other.public_log().checkpoint()) != []
    assert "--since" in findings(proof, older=before)[0]
    shorter = ledger.proof("a")
    ask(ledger, "e")
    assert "cut short" in findings(shorter, older=ledger.public_log().checkpoint())[0]
    assert findings(shorter, key=other.public_log().key) != []


def test_the_answer_is_the_one_that_was_stored(ledger: Ledger) -> None:
    proof = ledger.proof("a")
    assert proof.answer == '{"n": 3}'
    assert findings(proof) == []
    assert findings(replace(proof, answer='{"n": 4}')) == [
        "the answer is not the one that was recorded"
    ]
    assert findings(replace(proof, entries=proof.entries[:1])) == [
        "there is an answer, and none was recorded"
    ]
    assert findings(replace(proof, answer="")) == []
    two = (proof.entries[0], ledger.proof("b").entries[1])
    assert "does not say what became" in findings(replace(proof, entries=two))[0]
    with pytest.raises(InvalidInput, match="not a receipt"):
        read_back(replace(proof, entries=proof.entries[::-1]))


def test_nothing_of_others_is_in_a_receipt_that_could_be_tried_out(ledger: Ledger) -> None:
    """Who knows the texts of all other entries, but not the secret, can compute none of the hashes in the receipt."""
    document = ledger.proof("b", since=2).to_json()
    rows = list(ledger._journal.store.rows())
    own = {entry.facts["sequence"] for entry in ledger.proof("b").entries}
    for row in rows:
        # the first one's is the ledger's name, and holds a digest of the secret
        if row.sequence not in own | {1}:
            assert row.hash not in document
            entry = Entry.of(row)
            fields = json.loads(row.text)
            del fields["previous"]
            bare = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            for text in (row.text, bare, entry.text):
                for start in (b"\x00", b"", b"\x00" + bytes(32)):
                    assert hashlib.sha256(start + text.encode()).hexdigest() not in document
    assert "previous" not in document
    assert all(Entry.of(row).previous not in document for row in rows[2:])


def test_blinding_numbers_and_key_are_of_the_secret_alone(ledger: Ledger) -> None:
    log = ledger.public_log()
    blinds = {log._blind(number) for number in range(1, 1000)}
    assert len(blinds) == 999
    secret = ledger._journal.store.key()
    key = hmac.digest(secret, b"sordino public log: blinding", "sha256")
    assert log._blind(5) == hmac.digest(key, (5).to_bytes(8, "big"), "sha256")
    assert new_ledger().public_log().key.key != log.key.key
    assert secret.hex() not in ledger.proof("a").to_json()


def test_a_place_that_gives_other_rows_is_not_believed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = ledger._journal.store
    ledger.public_log()
    true = store.rows

    def changed(after: int = 0, until: int | None = None) -> Any:
        for row in true(after, until):
            text = row.text.replace("SELECT COUNT(*) AS b", "SELECT COUNT(*) AS q")
            yield Row(row.sequence, text, digest(text)) if text != row.text else row

    monkeypatch.setattr(store, "rows", changed)
    with pytest.raises(LedgerDamaged):
        ledger.proof("b")


def test_what_is_no_receipt_is_refused_with_a_hint(ledger: Ledger) -> None:
    good = json.loads(ledger.proof("a").to_json())
    first = good["entries"][0]
    parts: tuple[dict[str, Any], ...] = ({"v": 2}, {"entries": []}, {"answer": 3}, {"key": "x"}, {"checkpoint": "x"},
             {"entries": [{**first, "blind": "00"}]}, {"entries": [{**first, "text": "{}"}]})  # fmt: skip
    for wrong in (
        "",
        "{}",
        "[]",
        "null",
        '"a"',
        "{" * 2000,
        *(json.dumps({**good, **part}) for part in parts),
    ):
        with pytest.raises(InvalidInput, match="not a receipt"):
            Proof.from_json(wrong)
    with pytest.raises(RequestRefused, match="nothing was charged"):
        ledger.proof("unknown")
    for since in (0, -1, 8):
        with pytest.raises(InvalidInput, match="entries"):
            ledger.proof("a", since=since)
    with pytest.raises(InvalidInput, match="key"):
        VerifyingKey.of("sordino-ledger-x+00000000+AAAA")
    assert VerifyingKey.of(str(ledger.public_log().key)) == ledger.public_log().key
    with pytest.raises(InvalidInput, match="checkpoint"):
        Checkpoint.of(str(ledger.public_log().checkpoint()) + "\n")


@pytest.mark.parametrize("size", ["Infinity", "-1", "1e3", "NaN", '"4"', "true"])
def test_a_size_that_is_none_is_refused(ledger: Ledger, size: str) -> None:
    document = json.loads(ledger.proof("a").to_json())
    document["continues"] = {"size": "SIZE", "path": []}
    with pytest.raises(InvalidInput, match="not a receipt"):
        Proof.from_json(json.dumps(document).replace('"SIZE"', size))


@pytest.mark.parametrize("place", ["answer", "text"])
def test_halves_of_letters_are_refused(ledger: Ledger, place: str) -> None:
    document = json.loads(ledger.proof("a").to_json())
    if place == "answer":
        document["answer"] = "\ud800"
    else:
        entry = json.loads(document["entries"][0]["text"])
        entry["facts"]["question"] = "\ud800"
        document["entries"][0]["text"] = json.dumps(
            entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
    with pytest.raises(InvalidInput, match="not a receipt"):
        Proof.from_json(json.dumps(document))
