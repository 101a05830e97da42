"""The calls of mechanisms that one run of a function makes: recorded, or answered from a record.

A replayed run gets the outputs of the record; where it asks for anything else than the record holds, it ends there.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sordino.audit.inputs.neighbors import brief
from sordino.audit.replayed.result_difference import difference
from sordino.audit.sampled.outputs import Raised
from sordino.local.repeated import Repeated
from sordino.mechanisms.above_threshold import AboveThreshold
from sordino.mechanisms.observer import watching
from sordino.mechanisms.scaled_gaussian import ScaledGaussian
from sordino.plan.plan import Plan
from sordino.privacy.exact import show
from sordino.query.front.text import sql_text
from sordino.release import Groups

__all__ = ["Call", "Outcome", "Record", "Sides", "lives", "record", "replay_on"]


@dataclass(frozen=True)
class Call:
    """One call: which mechanism with which parameters, its exact input, its output."""

    mechanism: Any
    operation: str
    value: Any
    output: Any = field(repr=False)
    life: int = 0
    """Of a mechanism that remembers earlier calls, which of all that were called: the first is 1."""

    @property
    def subject(self) -> Any:
        """What must be equal on both inputs: all parameters, none of the values.

        Of a plan, all it says and runs, its keys if they are public, and the numbers that it releases without noise.
        Fresh reports are made of a permanent answer, which was put out before: that must be equal too.
        """
        match self.mechanism:
            case Plan() as plan:
                return _plan_facts(plan, self.value)
            case AboveThreshold() as alarm:
                return alarm.parameters, self.life
            case ScaledGaussian() as noise:
                return noise.scales.tobytes(), noise.declared
            case Repeated() as diary:
                return diary, np.asarray(self.value).tobytes()
        return self.mechanism

    @property
    def name(self) -> str:
        """The mechanism with its parameters, in words."""
        if isinstance(self.mechanism, Plan):
            return f"the answer to {sql_text(self.mechanism.query)}"
        which = f" (number {self.life})" if self.life > 1 else ""
        operation = "" if self.operation == "noisy_quantiles" else f".{self.operation}"
        return f"{self.mechanism!r}{operation}{which}"

    @property
    def form(self) -> str:
        """What is seen of the input from outside: how many numbers in which shape."""
        match self.value:
            case bool():
                return "one truth value"
            case int():
                return "one number"
            case bytes():
                return "one answer"
            case list():
                return f"a list of {_numbers(len(self.value))}"
            case np.ndarray() if self.operation == "select":
                return f"{len(self.value)} weights"
            case np.ndarray():
                flat = self.value.ndim == 1
                size = _numbers(self.value.size) if flat else f"shape {self.value.shape}"
                truth = " of truth values" if self.value.dtype == bool else ""
                return f"an array of {size}{truth}"
            case Groups():
                return "a table"
            case _:
                return "weights"

    def __str__(self) -> str:
        return self.name if isinstance(self.value, Groups) else f"{self.name} of {self.form}"


def _numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"


def lives(calls: Iterable[tuple[Call, Call]]) -> list[tuple[int, Call, Call]]:
    """Calls on two inputs with their numbers; all calls of one mechanism that remembers are one, with all values."""
    found: list[tuple[int, Call, Call]] = []
    values: dict[int, tuple[list[Any], list[Any]]] = {}
    for number, (known, call) in enumerate(calls, 1):
        if not known.life:
            found.append((number, known, call))
            continue
        if known.life not in values:
            mine, theirs = values[known.life] = [], []
            found.append((number, replace(known, value=mine), replace(call, value=theirs)))
        mine, theirs = values[known.life]
        mine.append(known.value)
        theirs.append(call.value)
    return found


def _plan_facts(plan: Plan, groups: Groups) -> tuple[Any, ...]:
    keys = None if plan.private_keys else groups.keys
    public = [numbers.tolist() for numbers in groups.public.values()]
    return str(plan), plan.sql(), plan.charge, plan.price.epsilon, plan.price.delta, keys, *public


_PLAN_PARTS = ("plan", "SQL", "charge", "epsilon", "delta", "keys")


Sides = tuple[str, str]
"""On which input the record was made, and on which it is replayed."""


@dataclass(frozen=True)
class Record:
    """The calls of one run in order, and its result."""

    calls: tuple[Call, ...]
    result: Any


@dataclass(frozen=True)
class Outcome:
    """A replayed run: its calls that are like the record's, with its own inputs, and the first difference in words."""

    calls: tuple[Call, ...]
    difference: str | None
    unaligned: bool = False
    """Whether a selection of keys is involved, whose keys on the two inputs cannot be matched."""


class _Ended(BaseException):
    """Ends a replayed run at its first difference; not an Exception, so that no handler mistakes it for one."""


class _Recorder:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._alarms: dict[int, tuple[int, AboveThreshold]] = {}

    def __call__(self, mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
        call = self._called(mechanism, operation, value)
        output = draw()
        self.calls.append(replace(call, output=_kept(output)))
        return output

    def _called(self, mechanism: Any, operation: str, value: Any) -> Call:
        """A call before its output; mechanisms that remember are numbered in the order of their first calls."""
        life = 0
        if isinstance(mechanism, AboveThreshold):
            life, _ = self._alarms.setdefault(id(mechanism), (len(self._alarms) + 1, mechanism))
        return Call(mechanism, operation, _kept(value), None, life)


class _Replayer(_Recorder):
    def __init__(self, record: Record, sides: Sides) -> None:
        super().__init__()
        self.record = record
        self.on, self.now = sides
        self.difference: str | None = None
        self.unaligned = False

    def __call__(self, mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:  # noqa: ARG002
        if self.difference is None:
            self._compare(self._called(mechanism, operation, value))
        if self.difference is not None:
            raise _Ended
        return _kept(self.record.calls[len(self.calls) - 1].output)

    def _compare(self, call: Call) -> None:
        number = len(self.calls) + 1
        if number > len(self.record.calls):
            past = f"{self.on} makes {_calls(len(self.record.calls))}"
            if isinstance(self.record.result, Raised):
                past += f" and raises {self.record.result}"
            self.difference = f"call {number}: on {self.now} it is {call}, but {past}"
            return
        known = self.record.calls[number - 1]
        if (call.operation, call.subject) != (known.operation, known.subject):
            why = _why(known, call, (self.on, self.now))
            self.difference = (
                f"call {number}: on {self.on} it is {known}, on {self.now} {call}{why}"
            )
        elif call.form != known.form:
            self.unaligned = call.operation == "select"
            what = "the number of keys" if self.unaligned else "the size of what is released"
            its = f"on {self.now} of {call.form} ({what} depends on the data)"
            self.difference = f"call {number}: on {self.on} it is {known}, {its}"
        else:
            self.calls.append(call)


def _calls(count: int) -> str:
    return "no call" if count == 0 else "only 1 call" if count == 1 else f"only {count} calls"


def _why(known: Call, call: Call, sides: Sides) -> str:
    if isinstance(known.mechanism, Plan) and isinstance(call.mechanism, Plan):
        pairs = enumerate(zip(known.subject, call.subject, strict=True))
        part, (one, other) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        if part < len(_PLAN_PARTS):
            return f" (the {_PLAN_PARTS[part]} depends on the data)"
        shown = f"{show(one)} on {sides[0]} and {show(other)} on {sides[1]}"
        return f" (a number that is released without noise is {shown})"
    one, other = ((type(each.mechanism), each.operation, each.life) for each in (known, call))
    if one != other:
        return " (which mechanism is called depends on the data)"
    if isinstance(known.mechanism, AboveThreshold):
        return " (a parameter depends on the data)"
    if isinstance(known.mechanism, Repeated) and known.mechanism == call.mechanism:
        return " (the answer that is reported again was not made by a protocol)"
    found = difference(known.mechanism, call.mechanism)
    return f" (a parameter depends on the data{': ' + found if found and known.name == call.name else ''})"


def _kept(value: Any) -> Any:
    """A copy that nothing can change later; exact groups and answers never change."""
    return copy.deepcopy(value) if isinstance(value, list | tuple | np.ndarray) else value


def record(function: Callable[[Any], Any], data: Any) -> Record:
    """Run the function and write down its calls."""
    recorder = _Recorder()
    with watching(recorder):
        result = _result(function, data)
    return Record(tuple(recorder.calls), result)


def replay_on(
    function: Callable[[Any], Any], data: Any, known: Record, sides: Sides = ("D", "D'")
) -> Outcome:
    """Run the function on data with the outputs of a record; calls, results and errors must be those of the record."""
    replayer = _Replayer(known, sides)
    result: Any = None
    with watching(replayer), contextlib.suppress(_Ended):
        result = _result(function, data)
    found = replayer.difference
    if found is None:
        found = _endings(known, len(replayer.calls), result, sides)
    selects = found is not None and any(call.operation == "select" for call in known.calls)
    return Outcome(tuple(replayer.calls), found, replayer.unaligned or selects)


def _endings(known: Record, made: int, result: Any, sides: Sides) -> str | None:
    on, now = sides
    after = f"after {_made(made)}"
    if made < len(known.calls):
        ends = f"raises {result}" if isinstance(result, Raised) else "makes no such call"
        return f"call {made + 1}: on {on} it is {known.calls[made]}, on {now} it {ends} (when it ends depends on the data)"
    if isinstance(result, Raised) != isinstance(known.result, Raised):
        why = "whether it fails depends on the data"
        return f"on {on} it {_ending(known.result)}, on {now} it {_ending(result)}, {after} ({why})"
    if isinstance(result, Raised):
        if result == known.result:
            return None
        return f"on {on} it raises {known.result}, on {now} {result}, {after} (what an error says depends on the data)"
    found = difference(known.result, result, sides)
    return None if found is None else f"with the same noise the results differ: {found}"


def _ending(result: Any) -> str:
    return f"raises {result}" if isinstance(result, Raised) else "returns a result"


def _made(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _result(function: Callable[[Any], Any], data: Any) -> Any:
    """The result, all of it: what is computed only when asked for is asked for here, where calls are seen."""
    try:
        result = function(_own(data))
        return list(result) if isinstance(result, Iterator) else result
    except (Exception, SystemExit) as error:
        return Raised(type(error).__name__, brief_error(error))


def brief_error(error: BaseException) -> str:
    """What an error says; never raises."""
    try:
        return str(error)
    except Exception:
        return brief(error)


def _own(data: Any) -> Any:
    """Data of the run's own, so that one run cannot change the input of the next."""
    module = type(data).__module__.partition(".")[0]
    if isinstance(data, list | dict | set | bytearray | np.ndarray) or module == "pandas":
        return copy.deepcopy(data)
    return data
