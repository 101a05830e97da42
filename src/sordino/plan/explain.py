"""A plan in words: who is protected, how far one person reaches, which noise, what error to expect, what it costs."""

from __future__ import annotations

import math
import textwrap
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sordino.errors import visible
from sordino.plan.keys import how_many
from sordino.plan.price import BEYOND
from sordino.privacy.exact import float_upper, four_digits, readable
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.notebook import card
from sordino.privacy.wording import a_or_an, counted
from sordino.query.front.shapes import children
from sordino.query.tree import Aggregate, Column, Query, aggregates_in

if TYPE_CHECKING:
    from sordino.accounting.budget_share import BudgetShare
    from sordino.plan.plan import Plan
    from sordino.plan.relations import Whose
    from sordino.plan.suggestion import SuggestionPlan

__all__ = [
    "explain", "explain_suggestion", "plan_card", "price_words", "privacy_statement", "promise", "reading_notes",
    "unit_words",
]  # fmt: skip

_WIDTH = 100
_INDENT = 15
"""Where the words of a line begin, after what they are about."""
_ASTRONOMICAL = 100


def unit_words(whose: Whose) -> str:
    """Who is protected."""
    if whose.public:
        return "nobody: this table is public"
    tables = " and ".join(whose.tables)
    who = (
        "each row"
        if whose.owner == "row"
        else f"each {whose.who}, with all rows of {tables} that it names"
    )
    added = whose.neighbors is Neighbors.ADD_REMOVE
    return f"{who}; neighbours differ by one, {'added or removed' if added else 'replaced (their number is public)'}"


def _bounds(plan: Plan) -> list[str]:
    who = plan.who
    if plan.whose.owner != "person":
        return []
    if plan.whose.by_row:
        cut = (
            ["COUNT and SUM within a person are cut to what max_rows rows reach"]
            if plan.whose.cut
            else []
        )
        return [*cut, "a person has at most one row here"]
    words = {
        "max_rows": ("in this answer each person counts as at most {}", "row"),
        "max_rows_per_group": ("within a group each person counts as at most {}", "row"),
        "max_groups": ("in this answer each person counts as if in at most {}", "group"),
    }
    if all(release.partial.bounding == "once" for release in plan.sums) and not plan.drawn:
        del words["max_rows_per_group"]
        if not who.grouped:
            return []
    if not who.grouped:
        del words["max_groups"]
    if who.grouped and plan.sums and plan.price.family == "gaussian":
        words["max_rows"] = (
            f"{words['max_rows'][0]} in one group would, by the norm over groups",
            "row",
        )
    applied = [who.applied(release.partial.bounding, release.norm) for release in plan.sums]
    applied += [who.applied("scale", "l1")] if plan.drawn else []
    given = {name: bound for bounds in applied for name, bound in bounds.given.items()}
    if given.get("max_groups") == 1:
        words["max_groups"] = ("in this answer each person counts as if in one group only", "group")
    return [
        f"{text.format(counted(given[name], noun))} ({name})"
        for name, (text, noun) in words.items()
        if name in given
    ]


def _tighter(plan: Plan) -> list[str]:
    """What tighter bounds would do to the error, bound by bound;
    the first number whose error is known stands for all.
    """
    errors = plan.errors()
    name = next((name for name, error in errors.items() if error), None)
    if plan.whose.by_row or name is None:
        return []
    lines, now = [], errors[name] or 0.0
    quota = plan.who.quota("scale", "l2") or plan.who.expect_quota("once", "l2")
    used = {"max_rows": quota.total, "max_rows_per_group": quota.each}
    if plan.who.grouped:
        used["max_groups"] = plan.who.bounds.groups or plan.who.possible or quota.total
    for bound, value in used.items():
        for tight in sorted(
            {-(-value // 2), 1} if bound == "max_groups" else {-(-value // 2)}, reverse=True
        ):
            field = bound.removeprefix("max_rows_").removeprefix("max_")
            error = plan.under(replace(plan.who.bounds, **{field: tight}))[name]
            if tight < value and error is not None and error <= 0.95 * now:
                lines.append(
                    f"{bound} = {tight:,}: {name} ± {four_digits(error)} instead of ± {four_digits(now)}"
                )
    return lines


def _dropped(whose: Whose) -> list[str]:
    """Said of every table with persons, whatever it holds: how many rows it concerns is not public."""
    return (
        [f"rows without {a_or_an(whose.who)} name nobody and are left out"]
        if whose.owner == "person"
        else []
    )


def explain(
    plan: Plan, *, assuming: str = "pass rows=1000", folded: bool = True, details: bool = False
) -> str:
    """The whole plan as text; `assuming` is how a reader assumes a number of rows. Long lines are `folded`.

    The price is told as a part of the budget; with `details` also by what its meters add up.
    """
    price = plan.price
    lines = [
        f"Plan for {', '.join(plan.whose.tables)}",
        f"  protects     {unit_words(plan.whose)}",
        *_searches(plan),
    ]
    lines += [f"  dropped      {line}" for line in _dropped(plan.whose)]
    lines += [f"  bounded      {line}" for line in _bounds(plan)]
    lines += [f"  tighter      {line}" for line in _tighter(plan)]
    lines += [f"  not read     {line}" for line in _unread(plan)]
    if plan.keys:
        lines += [f"  group by     {key.name}: {_keys(plan, i)}" for i, key in enumerate(plan.keys)]
    errors = plan.errors()
    for i, release in enumerate(plan.sums, 1):
        partial, mechanism, sensitivity = release.partial, release.mechanism, release.sensitivity
        scale = partial.unit / release.unit
        lines.append(f"  sum {i}        {partial.label} ({partial.width} per group)")
        if mechanism is None:
            lines.append("    noise      none: neighbours do not differ in it")
            continue
        l0 = "any number" if sensitivity.l0 is None else str(sensitivity.l0)
        l1 = None if sensitivity.l1 is None else sensitivity.l1 * scale
        norms = {"L1": l1, "L2": sensitivity.l2 * scale, "Linf": sensitivity.linf * scale}
        shown = ", ".join(
            f"{name} {'any' if x is None else four_digits(x)}" for name, x in norms.items()
        )
        lines.append(f"    one person L0 {l0}, {shown}")
        kind = "Laplace, scale" if price.family == "laplace" else "Gaussian, standard deviation"
        lines.append(f"    noise      {kind} {four_digits(mechanism.scale * scale)} on each number")
    for i, column in enumerate(plan.drawn, 1):
        draws = column.column.draws
        lines.append(f"  {f'{draws.noun} {i}':<12} {draws.label}")
        public = ["none: this table is public"]
        told = (
            public
            if column.public
            else draws.errors(column.epsilon, column.moved, column.unit, plan.cost.confidence)
        )
        lines += [f"    noise      {line}" for line in told]
    if (enough := _enough(plan)) is not None:
        half, certain = enough
        lines.append(
            f"  keys         published with probability 1/2 from {counted(half, 'person')} on, always from {certain} on"
        )
        if not plan.whose.by_row:
            lines.append(
                "    rule       a person in several groups counts in each with an equal part"
            )
    if plan.beyond is not None:
        lines.append(
            f"  beyond       what bounds cut off is measured, for {four_digits(100 * BEYOND)} % of epsilon"
        )
        lines.append(
            f"    noise      Laplace, scale {four_digits(plan.beyond.mechanism.scale / plan.beyond.unit)} persons"
        )
    percent = four_digits(100 * plan.cost.confidence)
    for name, error in errors.items():
        if error is None:
            continue
        about = (
            f", for {four_digits(plan.cost.rows)} rows"
            if plan.cost.rows is not None and _depends(plan, name)
            else ""
        )
        lines.append(
            f"  error        {name}: ± {four_digits(error)}, {percent} % of the time{about}"
        )
    missing = [name for name, error in errors.items() if error is None and _depends(plan, name)]
    if missing:
        names = ", ".join(missing)
        lines.append(
            f"  error        {names}: depends on the number of rows; {assuming} to see it for 1000"
        )
    lines.append(f"  mechanism    {price.family} noise, {plan.note}")
    lines.append(f"  promise      {_promise(plan)}")
    lines.append(f"  price        {price_words(plan.budget)}")
    if details:
        lines.append(f"  charge       {_charge(plan)}")
    return "\n".join(
        part for line in lines for part in (_folded(line) if folded else [visible(line)])
    )


def plan_card(text: str) -> str:
    """A plan in words as notebooks show it: what stands in the first columns is the name of what follows."""
    heading, *lines = text.splitlines()
    facts: list[tuple[str, str]] = []
    for line in lines:
        name, rest = line[:_INDENT].strip(), line[_INDENT:]
        if name or not facts:
            facts.append((name, rest))
        else:  # a line that goes on
            facts[-1] = facts[-1][0], f"{facts[-1][1]} {rest.strip()}"
    return card(heading, facts, notes=["This is a preview: nothing was charged."])


def _unread(plan: Plan) -> list[str]:
    return [f"the public table {name}, which failed: its columns are as declared, as if nothing else were public of them"
            for name in plan.unread]  # fmt: skip


def _searches(plan: Plan) -> list[str]:
    """What is found before the question itself is answered."""
    searched = getattr(plan, "searched", ())
    if not searched:
        return []
    names = ", ".join(one.search.what for one in searched)
    share = sum((one.price.epsilon for one in searched), Fraction(0))
    return [
        f"  finds        bounds of {names} first, for epsilon {readable(share)} of {readable(share + plan.price.epsilon)}",
        "    then       as below; errors are told as if 0 to 1 were found, and grow with the bounds",
    ]


def _folded(line: str) -> list[str]:
    """A long line in several, the further ones below its words."""
    line = visible(line)
    return textwrap.wrap(
        line,
        _WIDTH,
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [line]


def _depends(plan: Plan, name: str) -> bool:
    """Whether the error is that of an aggregate of sums which depends on the number of rows."""
    value = next(output.value for output in plan.query.outputs if output.name == name)
    if not isinstance(value, Aggregate) or plan.answering(value) in plan.drawn:
        return False
    return plan.answering(value).error(value, float(plan.cost.confidence), None) is None


def _keys(plan: Plan, i: int) -> str:
    key = plan.keys[i]
    table = None if key.looked_up is None else key.looked_up.table
    if key.values is not None:
        return f"{how_many([key]):,} public keys, every one answered"
    if plan.whose.public:
        return "every key that the public table has"
    if table is None:
        return "private keys, selected with noise"
    why = (
        "all its values, if it is read and they are not too many"
        if table.contents is None
        else "too many to answer each"
    )
    if table.contents is not None and table.contents.failed:
        why = "its values, had it been read"
    return f"private keys, selected with noise ({table.name} is public: {why})"


def explain_suggestion(plan: SuggestionPlan, *, folded: bool = True) -> str:
    """A suggestion as text: what is searched, how exactly, for which later questions, and the price."""
    lines = [f"Suggestion for {plan.table.name}", f"  protects     {unit_words(plan.whose)}"]
    lines += [f"  dropped      {line}" for line in _dropped(plan.whose)]
    for one in plan.searched:
        what = (
            f"limits of {one.search.what}"
            if one.search.what in plan.table.columns
            else one.search.what
        )
        by = (
            f" by {', '.join(plan.keys)}"
            if one.search.what in ("max_groups", "max_rows_per_group")
            else ""
        )
        epsilon, margin = four_digits(one.price.epsilon), four_digits(one.margin)
        lines.append(
            f"  finds        {what}{by}, for epsilon {epsilon}; numbers of persons within and beyond are ± {margin}"
        )
    lines.append(
        "  needs        several times as many persons as that: with fewer, what is found is too uncertain"
    )
    lines.append(
        f"  good for     later questions at epsilon {readable(plan.query_epsilon)} (query_epsilon)"
    )
    lines.append(
        f"  promise      the suggestion is differentially private with epsilon {readable(plan.epsilon)}"
    )
    lines.append(f"  price        {price_words(plan.budget)}")
    return "\n".join(
        part for line in lines for part in (_folded(line) if folded else [visible(line)])
    )


def price_words(budget: BudgetShare) -> str:
    """The part of the budget that is taken, and how many such answers fit."""
    fits = budget.fits
    if fits is None:
        return "nothing"
    more = {0: "it does not fit", 1: "no other answer like it fits"}.get(
        fits, f"{fits:,} answers like this one fit"
    )
    return f"{budget}: {more}"


def _promise(plan: Plan) -> str:
    price, epsilon = plan.price, plan.epsilon
    if not epsilon:
        return "none is needed: all of it is public"
    delta = f" and delta {four_digits(price.delta)}" if price.delta else ""
    return f"this answer alone is differentially private with epsilon {readable(epsilon)}{delta}"


def _charge(plan: Plan) -> str:
    charge = plan.charge
    pure = "no pure epsilon" if charge.pure is None else f"epsilon {four_digits(charge.pure)}"
    mu = "no mu^2" if charge.mu_squared is None else f"mu^2 {four_digits(charge.mu_squared)}"
    delta = (
        f", and delta {four_digits(charge.delta)} of the part kept for keys" if charge.delta else ""
    )
    return f"{pure} on the pure meter, {mu} on the Gaussian meter{delta}"


def _factor(epsilon: Fraction) -> str:
    """e^epsilon in three digits, rounded up, as it is said to be at most this;
    the power itself where it is astronomical.
    """
    if epsilon > _ASTRONOMICAL:
        return f"e^{readable(epsilon)}"
    # the exponential of floats is off by a hair
    exact = Decimal(math.nextafter(math.exp(float_upper(epsilon)), math.inf))
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).plus(exact)):.3g}"


def privacy_statement(plan: Plan) -> str:
    """What is promised about one answer, in plain words."""
    return promise(plan.whose, plan.price.epsilon, plan.price.delta)


def promise(whose: Whose, epsilon: Fraction, delta: Fraction) -> str:
    """The same for an epsilon and a delta."""
    if not epsilon:
        return "Exact: everything in this answer is public."
    who = "row" if whose.owner == "row" else whose.who
    added = whose.neighbors is Neighbors.ADD_REMOVE
    change = "is in the table or not" if added else "has its own rows or entirely different ones"
    grade = f"epsilon = {readable(epsilon)}" + (f", delta = {four_digits(delta)}" if delta else "")
    rest = f", but for events of probability {four_digits(delta)}" if delta else ""
    return (
        f"Differentially private for every {who} ({grade}): whether one {who} {change} makes whatever this answer "
        f"shows at most {_factor(epsilon)} times as likely or unlikely{rest}."
    )


def _enough(plan: Plan) -> tuple[int, int] | None:
    """From how many persons on a private key is told with probability 1/2, and from how many always."""
    if plan.selection is None or (selection := plan.selection.mechanism) is None:
        return None
    unit = plan.selection.unit
    return -(-selection.half // unit), -(-selection.certain // unit)


def reading_notes(plan: Plan) -> tuple[str, ...]:
    """What a reader of the answer should know about its numbers."""
    notes = []
    bounds = _bounds(plan)
    if bounds:
        notes.append(
            f"Bounded: {'; '.join(bounds)}. Intervals cover the noise, not what bounding changes."
        )
    if plan.beyond is None or not plan.beyond.measure.nobody:
        notes += [f"{line[0].upper()}{line[1:]}." for line in _dropped(plan.whose)]
    notes += [f"Not read: {line}." for line in _unread(plan)]
    if plan.private_keys:
        few = "Groups of few persons are left out"
        if (enough := _enough(plan)) is not None:
            few += f": one of {enough[0]:,} half the time, of {enough[1]:,} never"
        notes.append(f"{few}; rows without a key are in no group.")
    if hidden := [name for name in plan.query.hidden if name in plan.errors()]:
        names = ", ".join(hidden)
        notes.append(
            f"Released for HAVING or ORDER BY, not shown: {names}. In SELECT it costs no more."
        )
    if plan.price.epsilon:
        notes += chosen_by_noise(plan.query)
    if plan.cost.nonnegative:
        notes.append("Negative numbers were raised to zero.")
    return tuple(notes)


def chosen_by_noise(query: Query) -> list[str]:
    """What to know of rows that HAVING, or ORDER BY with LIMIT, chose by noisy numbers."""
    noisy = {output.name for output in query.outputs if aggregates_in(output.value)}
    rest = [] if query.having is None else [query.having]
    if query.limit is not None or query.offset:
        rest += [Column(order.output) for order in query.order]
    while rest:
        part = rest.pop()
        if isinstance(part, Column) and part.name in noisy:
            return [
                "Rows were chosen by noisy numbers: the largest are partly so by chance, and intervals, "
                "which are made for all rows, cover less often among the chosen."
            ]
        rest += children(part)
    return []
