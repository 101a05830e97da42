"""The declared columns: from the entries of one to its kind and type. Steps and limits must fit together exactly."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeVar, get_args

from sordino.errors import InvalidDeclaration
from sordino.privacy.exact import readable
from sordino.query.dataset import Column, Kind
from sordino.query.entries import (
    Place,
    count,
    number,
    section,
    whole_number,
    yes_or_no,
)
from sordino.query.types import (
    Day,
    Moment,
    Number,
    Text,
    Truth,
    Type,
    default_step,
    power_of_ten_below,
)

__all__ = ["KEYS", "MOST_VALUES", "column", "measured"]

MOST_VALUES, _MOST_STEPS = 10**6, 2**53
_OTHER_WORDS = {
    "integer": "int", "bigint": "int", "number": "float", "double": "float", "decimal": "float", "real": "float",
    "boolean": "bool", "enum": "category", "string": "text", "str": "text", "varchar": "text", "timestamp": "datetime",
}  # fmt: skip
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}")
T = TypeVar("T")
D = TypeVar("D", date, datetime)


def _limits(
    place: Place, entries: Mapping[str, Any], read: Callable[[Place, Any], T]
) -> tuple[T, T] | None:
    given = [end for end in ("min", "max") if end in entries]
    if len(given) == 1:
        absent = "max" if given == ["min"] else "min"
        rule = "a column has both min and max, or neither"
        raise place.lacks(
            absent, rule, f"Add {absent} = ... (a public limit), or leave out {given[0]}."
        )
    return (
        (read(place.at("min"), entries["min"]), read(place.at("max"), entries["max"]))
        if given
        else None
    )


def _lattice(place: Place, lower: Fraction, upper: Fraction, step: Fraction, origin: str) -> None:
    """Refuse bounds that are no multiples of the step, or too many steps."""
    for end, value in (("min", lower), ("max", upper)):
        if (value / step).denominator != 1:
            below, above = math.floor(value / step) * step, math.ceil(value / step) * step
            rule = f"it must be a whole multiple of the step, which is {readable(step)}{origin}"
            hint = f"Write {end} = {readable(below)} or {end} = {readable(above)}, or another step."
            raise InvalidDeclaration(f"{place.at(end)} = {readable(value)}", rule, hint)
    if (upper - lower) / step > _MOST_STEPS:
        least = readable(power_of_ten_below((upper - lower) / _MOST_STEPS) * 10)
        rule = f"there may be at most 2^53 steps from min to max, and the step is {readable(step)}{origin}"
        hint = f'Write narrower limits, or type = "float" with step = {least}.'
        raise InvalidDeclaration(f"{place} from {readable(lower)} to {readable(upper)}", rule, hint)


def _int(place: Place, entries: Mapping[str, Any], nullable: bool) -> Number:
    limits = _limits(place, entries, whole_number)
    if limits is None:
        return Number(step=Fraction(1), nullable=nullable)
    _below(place, *limits)
    _lattice(place, *limits, Fraction(1), "")
    return Number(*limits, step=Fraction(1), nullable=nullable)


def _float(place: Place, entries: Mapping[str, Any], nullable: bool) -> Number:
    limits, step = _limits(place, entries, number), None
    if "step" in entries:
        step = number(place.at("step"), entries["step"])
        if step <= 0:
            raise place.at("step").wrong(
                entries["step"], "it must be greater than zero", "Write step = 0.01 or the like."
            )
    if limits is None:
        return Number(step=step, nullable=nullable)
    lower, upper = limits
    _below(place, lower, upper)
    origin = (
        "" if step else " (undeclared, so the largest power of ten up to a millionth of max - min)"
    )
    # values lie on a declared step; an undeclared one only says where they are put when they are added up
    finest = step or default_step(lower, upper)
    _lattice(place, lower, upper, finest, origin)
    if (largest := max(abs(lower), abs(upper))) / finest > _MOST_STEPS:
        least = readable(power_of_ten_below(largest / _MOST_STEPS) * 10)
        rule = (
            f"a double cannot tell steps of {readable(finest)} apart at {readable(largest)}{origin}"
        )
        raise InvalidDeclaration(str(place), rule, f"Write step = {least}.")
    return Number(lower, upper, step, nullable=nullable)


def measured(declared: Number, low: float | None, high: float | None) -> Number:
    """A column without bounds, with those that it was found to have, moved outward to its steps.

    It stays as it was if they do not fit together.
    """
    if low is None or high is None or low >= high:
        return declared
    least, most = Fraction(low), Fraction(high)
    step = declared.step or default_step(least, most)
    lower, upper = math.floor(least / step) * step, math.ceil(most / step) * step
    fits = max(abs(lower), abs(upper), upper - lower) <= _MOST_STEPS * step
    return replace(declared, lower=lower, upper=upper) if fits else declared


def _below(place: Place, lower: Fraction, upper: Fraction) -> None:
    if lower >= upper:
        value = f"{place} with min = {readable(lower)}, max = {readable(upper)}"
        raise InvalidDeclaration(value, "min must be below max", "Swap them, or widen the limits.")


def _bool(place: Place, entries: Mapping[str, Any], nullable: bool) -> Truth:  # noqa: ARG001 (one signature for all kinds)
    return Truth(nullable)


def _category(place: Place, entries: Mapping[str, Any], nullable: bool) -> Type:
    example = 'values = ["A", "B"]'
    if "values" not in entries:
        rule = "a category lists its possible values, which are public"
        raise place.lacks(
            "values", rule, f'Add {example}, or write type = "text" if they are not public.'
        )
    place, values = place.at("values"), entries["values"]
    if not isinstance(values, list | tuple) or not values:
        raise place.wrong(values, "it must be a list of at least one value", f"Write {example}.")
    if len(values) > MOST_VALUES:
        raise place.wrong(
            values, f"a category has at most {MOST_VALUES:,} values", 'Write type = "text" instead.'
        )
    seen: dict[Any, int] = {}
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, str | numbers.Integral):
            hint = 'Write text in quotes or whole numbers; for true and false, type = "bool".'
            raise place.item(i).wrong(value, "a value must be text or a whole number", hint)
        if isinstance(value, str) != isinstance(values[0], str):
            raise place.item(i).wrong(
                value,
                "the values must be all text or all whole numbers",
                "Quote all or none of them.",
            )
        if isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
            raise place.item(i).wrong(
                value, "text must be Unicode without NUL characters", "Leave this value out."
            )
        if value in seen:
            raise place.item(i).wrong(
                value, f"it is already listed, as values[{seen[value]}]", "List each value once."
            )
        seen[value] = i
    if isinstance(values[0], str):
        return Text(tuple(map(str, values)), max(map(len, values)), nullable)
    whole = tuple(int(whole_number(place.item(i), value)) for i, value in enumerate(values))
    lower, upper = Fraction(min(whole)), Fraction(max(whole))
    _lattice(place, lower, upper, Fraction(1), "")
    return Number(lower, upper, Fraction(1), whole, nullable)


def _text(place: Place, entries: Mapping[str, Any], nullable: bool) -> Text:
    longest = (
        count(place.at("max_length"), entries["max_length"]) if "max_length" in entries else None
    )
    return Text(None, longest, nullable)


def _day(place: Place, value: Any) -> date:
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise place.wrong(
                value, "there is no such day", "Write a day from 0001-01-01 to 9999-12-31."
            ) from None
    written = text[:10] if isinstance(text, str) and _DATETIME.fullmatch(text) else "2024-01-31"
    raise place.wrong(value, "it must be a date", f"Write {place.keys[-1]} = {written}.")


def _moment(place: Place, value: Any) -> datetime:
    # Timestamps of other libraries are datetimes, too, even pandas' NaT: their ISO text is checked like a written one.
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and _DATETIME.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise place.wrong(
                value, "there is no such moment", "Write one such as 2024-01-31T23:59:59."
            ) from None
    day = text[:10] if isinstance(text, str) and _DATE.match(text) else "2024-01-31"
    rule = "it must be a date with a time of day, in microseconds at most, without time zone"
    raise place.wrong(
        value,
        rule,
        f"Write {place.keys[-1]} = {day}T{'00:00:00' if place.keys[-1] == 'min' else '23:59:59'}.",
    )


def _date(place: Place, entries: Mapping[str, Any], nullable: bool) -> Day:
    limits = _in_order(place, _limits(place, entries, _day))
    return Day(*limits, nullable=nullable) if limits else Day(nullable=nullable)


def _datetime(place: Place, entries: Mapping[str, Any], nullable: bool) -> Moment:
    limits = _in_order(place, _limits(place, entries, _moment))
    return Moment(*limits, nullable=nullable) if limits else Moment(nullable=nullable)


def _in_order(place: Place, limits: tuple[D, D] | None) -> tuple[D, D] | None:
    if limits is not None and limits[0] > limits[1]:
        value = f"{place} with min = {limits[0].isoformat()}, max = {limits[1].isoformat()}"
        raise InvalidDeclaration(value, "min must not be after max", "Swap them.")
    return limits


_KEYS_AND_READERS: Mapping[
    Kind, tuple[tuple[str, ...], Callable[[Place, Mapping[str, Any], bool], Type]]
] = {
    "int": (("min", "max"), _int),
    "float": (("min", "max", "step"), _float),
    "bool": ((), _bool),
    "category": (("values",), _category),
    "text": (("max_length",), _text),
    "date": (("min", "max"), _date),
    "datetime": (("min", "max", "zone"), _datetime),
}
_KINDS: tuple[Kind, ...] = get_args(Kind)
KEYS: Mapping[Kind, tuple[str, ...]] = {
    kind: ("type", *_KEYS_AND_READERS[kind][0], "nullable") for kind in _KINDS
}
"""What may be written of a column of each type."""


def column(place: Place, value: Any) -> Column:
    """One column as declared."""
    if isinstance(value, str | type):
        likely = _kind(value if isinstance(value, str) else value.__name__) or "text"
        hint = (
            f'Write {place.keys[-1]} = {{ type = "{likely}" }}.'
            if place.file
            else f'Pass {{"type": "{likely}"}}.'
        )
        raise place.wrong(value, "a column is described by a section", hint)
    entries = section(place, value)
    if "type" not in entries:
        raise place.lacks(
            "type",
            "every column has a type",
            f'Add type = "int" or another of {", ".join(_KINDS)}.',
        )
    written = entries["type"]
    word = written if isinstance(written, str) else ""
    kind = next((k for k in _KINDS if k == word), None)
    if kind is None:
        meant = _kind(word)
        hint = f'Write type = "{meant}".' if meant else "Write one of these."
        raise place.at("type").wrong(written, f"a type is one of {', '.join(_KINDS)}", hint)
    section(place, entries, KEYS[kind])
    read = _KEYS_AND_READERS[kind][1]
    nullable = yes_or_no(place.at("nullable"), entries.get("nullable", True))
    zone = _zone(place.at("zone"), entries["zone"]) if "zone" in entries else None
    return Column(kind, read(place, entries, nullable), zone)


def _zone(place: Place, value: Any) -> str:
    """The name of a time zone that this machine knows; where it knows none, the engine decides."""
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    known = available_timezones() - {"localtime", "Factory"}
    if isinstance(value, str) and (value in known or (not known and _ZONE.fullmatch(value))):
        return value
    written = value if isinstance(value, str) else ""
    folded = {name.casefold(): name for name in known}
    near = get_close_matches(written.strip().casefold(), folded, 1)
    hint = (
        f'Did you mean zone = "{folded[near[0]]}"?'
        if near
        else 'Write zone = "Europe/Berlin" or the like; "UTC" is the default.'
    )
    raise place.wrong(value, "it must be the name of a time zone, such as Europe/Berlin", hint)


def _kind(word: str) -> str | None:
    """The type that was probably meant."""
    from difflib import get_close_matches

    word = word.strip().casefold()
    return next(iter(get_close_matches(_OTHER_WORDS.get(word, word), _KINDS, n=1)), None)
