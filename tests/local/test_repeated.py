"""Repeated collection: the law of one report, of several, of changing values; the client's memory; estimates."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Hashable
from fractions import Fraction
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest

import local_laws
import sordino.local as local
from local_laws import Law, client_law, law_of
from sordino.errors import InvalidInput
from sordino.local import repeated
from sordino.local.client import Client
from sordino.local.repeated import Repeated
from tape import Tape, replay

SMALL = [
    Repeated(local.Direct(5, 2), local.Direct(2, 2)),
    Repeated(local.Direct(5, 3), local.Direct(2, 3)),
    Repeated(local.Direct(9, 5), local.Direct(3, 5)),
    Repeated(local.Direct(3, 3), local.Direct(3, 3)),
    Repeated(local.Unary(5, 2), local.Unary(2, 2)),
    Repeated(local.Unary(7, 3), local.Unary(3, 3)),
]


def kernel(protocol: Repeated, answer: Any) -> Law:
    """The law of one fresh report of a permanent answer."""
    with mock.patch.object(local_laws, "_MODULES", (*local_laws._MODULES, repeated)):
        return law_of(lambda: protocol.refresh_one(answer))


def several(protocol: Repeated, value: int, count: int) -> Law:
    """The law of `count` reports, permanent answer by permanent answer."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    for answer, chance in client_law(protocol.permanent, value).items():
        one = kernel(protocol, answer)
        for seen in product(one.items(), repeat=count):
            law[tuple(report for report, _ in seen)] += chance * math.prod(
                (p for _, p in seen), start=Fraction(1)
            )
    return dict(law)


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_one_report_has_the_law_of_the_first_protocol(protocol: Repeated) -> None:
    for value in range(protocol.first.categories):
        found = {seen[0]: p for seen, p in several(protocol, value, 1).items() if p}  # type: ignore[index]
        assert found == client_law(protocol.first, value)


@pytest.mark.parametrize(
    ("protocol", "count"), [*((p, 2) for p in SMALL), (SMALL[0], 5), (SMALL[1], 4), (SMALL[4], 3)]
)
def test_the_loss_of_several_reports_is_that_of_their_law(protocol: Repeated, count: int) -> None:
    p, q = (several(protocol, x, count) for x in (0, 1))
    ratios: dict[Fraction, Fraction] = defaultdict(Fraction)
    for seen, mass in p.items():
        if mass:
            ratios[mass / q[seen]] += mass
    loss = protocol.loss(reports=count)
    assert {a / b: a for a, b in zip(loss.p, loss.q, strict=True)} == ratios
    assert max(ratios) <= protocol.permanent.odds


@pytest.mark.parametrize("kind", ["direct", "unary"])
@pytest.mark.parametrize("categories", [2, 4])
def test_the_loss_grows_from_the_first_to_the_permanent_one(kind: str, categories: int) -> None:
    protocol = Repeated.calibrated(permanent=3, first=1, categories=categories, kind=kind)
    losses = [protocol.loss(reports=n) for n in (1, 2, 4, 8)] + [
        protocol.loss(reports=10**6),
        protocol.loss(reports=math.inf),
    ]
    tops, distances = [loss.maximum() for loss in losses], [loss.delta(0.5) for loss in losses]
    assert tops == sorted(tops)
    assert distances == sorted(distances)
    assert tops[0] <= 1 < tops[1] < tops[3] < tops[-1] <= 3
    assert losses[-1] == losses[-2] == protocol.permanent.loss()


def test_forty_reports_of_two_categories_are_counted_exactly_and_nearly_permanent() -> None:
    protocol = Repeated.calibrated(permanent=2, first=1, categories=2)
    forty, all_ = protocol.loss(reports=40), protocol.loss(reports=math.inf)
    assert len(forty.p) == 41
    assert 0.995 * all_.delta(1) < forty.delta(1) < all_.delta(1)
    assert forty.maximum() <= 2


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_values_that_change_at_the_same_times_cost_the_sum(protocol: Repeated) -> None:
    one = several(protocol, 0, 1), several(protocol, 1, 1)
    twice = [
        {(a, b): p * q for (a, p), (b, q) in product(x.items(), y.items())}
        for x, y in (one, one[::-1])
    ]
    most = max(p / twice[1][seen] for seen, p in twice[0].items() if p)
    client = Client(protocol)
    for value in (0, 1):
        client.report(value)
    assert client.spent is not None
    assert client.values == client.reports == 2
    assert client.spent.maximum() == pytest.approx(math.log(most), rel=1e-12)
    assert client.spent.maximum() <= 2 * protocol.permanent.loss().maximum()


def test_when_a_value_changes_is_not_hidden() -> None:
    """The warning of `Client` is true: the same report twice tells a constant value from two others."""
    protocol = Repeated(local.Direct(3, 4), local.Direct(3, 4))
    constant = sum(p for seen, p in several(protocol, 0, 2).items() if seen == (0, 0))
    a, b = (client_law(protocol.permanent, x)[0] for x in (1, 2))
    assert constant / (a * b) == 3 * (3 + 4 - 1) > 3**2


@pytest.mark.parametrize("kind", ["direct", "unary"])
def test_many_clients_have_the_law_of_one(kind: str) -> None:
    """Frequencies of pairs of reports of 200,000 persons, against the exact law, six deviations."""
    protocol = Repeated.calibrated(permanent=2, first=1, categories=2, kind=kind)
    n = 200_000
    with replay(Tape(11)):
        memory = protocol.memoise(np.zeros(n, np.int64))
        rounds = [protocol.refresh(memory) for _ in range(2)]
    seen = [r.column.reshape(n) for r in rounds]
    for pair, p in several(protocol, 0, 2).items():
        a, b = (x[0] if isinstance(x, bytes) else x for x in pair)  # type: ignore[attr-defined]
        count = int(((seen[0] == a) & (seen[1] == b)).sum())
        assert abs(count - n * float(p)) < 6 * math.sqrt(n * float(p)) + 1
    assert rounds[0].protocol == protocol.first


@pytest.mark.parametrize(("kind", "categories"), [("direct", 5), ("unary", 40)])
def test_estimates_of_a_round_hold_the_truth(kind: str, categories: int) -> None:
    protocol = Repeated.calibrated(permanent=4, first=2, categories=categories, kind=kind)
    values = np.arange(100_000) % 7 % categories
    with replay(Tape(5)):
        memory = protocol.memoise(values)
        for _ in range(3):
            found = protocol.estimate(protocol.refresh(memory), confidence=1 - 1e-9)
            truth = np.bincount(values, minlength=categories) / len(values)
            assert ((found.lower <= truth) & (truth <= found.upper)).all()


def test_the_memory_survives_storing_and_is_used_again() -> None:
    for kind in ("direct", "unary"):
        protocol = Repeated.calibrated(permanent=1, first=1, categories=["a", "b", "c"], kind=kind)
        client = protocol.client()
        told = {value: client.report(value) for value in ("a", "b")}
        again = Client.from_json(client.to_json())
        assert {
            value: again.report(value) for value in ("a", "b")
        } == told  # no fresh noise: the permanent answer
        assert (again.reports, again.values) == (4, 2)
        assert again.protocol == protocol
        assert not any(
            str(answer) in repr(again) for answer in told.values() if isinstance(answer, bytes)
        )
        assert protocol.client().spent is None


@pytest.mark.parametrize("change", ["kind", "memory", "protocol", "count", "answer", "place"])
def test_damaged_states_are_refused(change: str) -> None:
    client = Repeated.calibrated(permanent=2, first=1, categories=3).client()
    client.report(1)
    fields = json.loads(client.to_json())
    if change in ("count", "answer", "place"):
        fields["memory"][0][{"place": 0, "answer": 1, "count": 2}[change]] = -1
    else:
        fields[change] = "?"
    with pytest.raises(InvalidInput):
        Client.from_json(json.dumps(fields))


def test_stored_protocols_come_back() -> None:
    for protocol in SMALL:
        assert Repeated.from_json(protocol.to_json()) == protocol
    for text in (
        "",
        "{}",
        "[]",
        '{"kind": "local.repeated", "v": 2}',
        '{"kind": "local.repeated", "v": 1, "permanent": {}}',
    ):
        with pytest.raises(InvalidInput):
            Repeated.from_json(text)


def test_the_better_kind_is_taken() -> None:
    assert isinstance(Repeated.calibrated(permanent=2, first=1, categories=3).first, local.Direct)
    assert isinstance(Repeated.calibrated(permanent=2, first=1, categories=100).first, local.Unary)


@pytest.mark.parametrize(
    "arguments",
    [
        {"permanent": 1, "first": 2, "categories": 3},
        {"permanent": 1, "first": 0, "categories": 3},
        {"permanent": -1, "first": -2, "categories": 3},
        {"permanent": 2, "first": 1, "categories": 1},
        {"permanent": 2, "first": 1, "categories": 3, "kind": "hadamard"},
    ],
    ids=repr,
)
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Repeated.calibrated(**arguments)


def test_other_misuse_is_refused() -> None:
    protocol = SMALL[1]
    with pytest.raises(InvalidInput):
        Repeated(local.Direct(5, 3), local.Unary(2, 3))
    with pytest.raises(InvalidInput):
        Repeated(local.Direct(5, 3), local.Direct(2, 4))
    with pytest.raises(InvalidInput):
        Repeated(local.Hadamard(5, 3), local.Hadamard(2, 3))  # type: ignore[arg-type]
    for reports in (0, -1, 1.5, True, None, math.nan, -math.inf):
        with pytest.raises(InvalidInput):
            protocol.loss(reports=reports)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        protocol.refresh(protocol.first.randomize([0, 1]))
    client = protocol.client()
    with pytest.raises(InvalidInput):
        client.report(3)
    assert (client.reports, client.values) == (0, 0)


@pytest.mark.parametrize(
    "answer", ["a", 99, 3, -1, True, [0], b"x", None, 1.0, bytearray(b"\1")], ids=repr
)
def test_what_is_no_permanent_answer_is_not_refreshed(answer: Any) -> None:
    for protocol in (SMALL[1], SMALL[3]):
        with pytest.raises(InvalidInput):
            protocol.refresh_one(answer)


@pytest.mark.parametrize("answer", [1, b"", b"\1\1", b"\x08", "a", [1], None], ids=repr)
def test_what_are_no_permanent_bits_is_not_refreshed(answer: Any) -> None:
    with pytest.raises(InvalidInput):
        SMALL[5].refresh_one(answer)


@pytest.mark.parametrize(
    "memory",
    [{}, {"0": 1}, "", "abc", None, 0, [[0, 1, 1], [0, 2, 5]], [[0, 1]], [[0, 1, 1, 1]], [{}]],
)
def test_a_memory_is_a_list_of_distinct_values(memory: Any) -> None:
    client = SMALL[1].client()
    fields = json.loads(client.to_json())
    assert Client.from_json(json.dumps(fields)).values == 0
    fields["memory"] = memory
    with pytest.raises(InvalidInput, match="cannot be read"):
        Client.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"kind": "local.repeated", "v": 1, "permanent": ' + "[" * 100_000]
)
def test_states_nested_too_deeply_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Repeated.from_json(text)
    with pytest.raises(InvalidInput):
        Client.from_json(text)


def test_a_client_of_long_losses_knows_what_it_spent() -> None:
    """The exact loss of many reports has more digits than Python writes."""
    client = Repeated(
        local.Direct(5 + Fraction(1, 3**900), 2), local.Direct(2 + Fraction(1, 3**901), 2)
    ).client()
    for value in (0, 0, 1) * 4:
        client.report(value)
    assert max(x.denominator for x in client.protocol.loss(reports=8).p) > 10**4300
    assert client.spent is not None
    assert client.spent.maximum() <= 2 * client.protocol.permanent.loss().maximum()


@pytest.mark.parametrize("kind", ["direct", "unary"])
def test_a_stored_client_goes_on(kind: str) -> None:
    diary = Repeated.calibrated(permanent=4, first=1, categories=["well", "ill"], kind=kind)
    phone = diary.client()
    for _ in range(3):
        phone.report("well")
    again = diary.client(phone.to_json())
    assert (again.reports, again.values, again.to_json()) == (3, 1, phone.to_json())
    again.report("well")
    assert (again.reports, again.values) == (4, 1)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"permanent": 5}, "permanent: epsilon 4 instead of 5"),
        ({"first": 2}, "first: epsilon 1 instead of 2"),
        ({"categories": ["ill", "well"]}, "another order"),
        ({"kind": "unary"}, "Direct instead of Unary"),
    ],
)
def test_a_stored_client_of_another_protocol_is_refused(other: dict[str, Any], told: str) -> None:
    own: dict[str, Any] = {
        "permanent": 4,
        "first": 1,
        "categories": ["well", "ill"],
        "kind": "direct",
    }
    phone = Repeated.calibrated(**own).client()
    phone.report("well")
    with pytest.raises(InvalidInput, match=told):
        Repeated.calibrated(**own | other).client(phone.to_json())


@pytest.mark.parametrize("stored", ["", "{}", 5, b"x", ["x"]], ids=repr)
def test_what_is_no_stored_client_does_not_start_anew(stored: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        SMALL[1].client(stored)


def test_only_permanent_answers_are_refreshed() -> None:
    diary = Repeated.calibrated(permanent=4, first=1, categories=["well", "ill"])
    with pytest.raises(InvalidInput, match="memoise"):
        diary.refresh(["well"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="permanent=1, first=4"):
        Repeated.calibrated(permanent=1, first=4, categories=2)
