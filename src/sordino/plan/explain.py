"""A plan in words: who is protected, how far one person reaches, which noise, what error to expect, what it costs."""

from __future__ import annotations

import math
import textwrap
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sordino.errors import visible
from sordino.privacy.exact import float_upper, readable
from sordino.privacy.neighbors import Neighbors
from sordino.query.aggregates.quantiles import interval_rank, rank_error, rates

if TYPE_CHECKING:
    from sordino.plan.channels import Source
    from sordino.plan.plan import Plan

__all__ = ["explain", "privacy_statement", "reading_notes"]

_WIDTH = 100
_ASTRONOMICAL = 100
_LARGEST = 10**300


def _number(x: Fraction | float) -> str:
    """Four digits, without an exponent where people would not write one."""
    if isinstance(x, Fraction) and x > _LARGEST:
        return f"10^{len(str(math.floor(x))) - 1}"
    value = float(f"{float(x):.4g}")
    return f"{value:,.10g}" if value == 0 or 1e-4 <= abs(value) < 1e12 else f"{value:.4g}"


def _unit(plan: Plan) -> str:
    table = plan.table
    if table.public:
        return "nobody: this table is public"
    who = f"each {table.person_name}, with all rows of {table.name} that it names" if table.has_persons else "each row"
    added = table.neighbors is Neighbors.ADD_REMOVE
    return f"{who}; neighbours differ by one, {'added or removed' if added else 'replaced (their number is public)'}"


def _bounds(plan: Plan) -> list[str]:
    who = plan.who
    if not plan.table.has_persons:
        return []
    lines = []
    if who.rows > 1 or any(c.partial.bounding != "once" for c in plan.channels) or plan.quantiles:
        lines.append(f"within a group a person weighs at most as much as {who.rows} rows (max_rows)")
    if who.grouped:
        lines.append(f"in this answer a person weighs at most as much as in {who.groups} groups (max_groups)")
    return lines


def _dropped(plan: Plan) -> list[str]:
    """Said of every table with persons, whatever it holds: how many rows it concerns is not public."""
    table = plan.table
    return [f"rows without a {table.person_name} name nobody and are left out"] if table.has_persons else []


def explain(plan: Plan, *, assuming: str = "pass rows=1000", folded: bool = True) -> str:
    """The whole plan as text; `assuming` is how a reader assumes a number of rows. Long lines are `folded`."""
    price = plan.price
    lines = [f"Plan for {plan.table.name}", f"  protects     {_unit(plan)}"]
    lines += [f"  dropped      {line}" for line in _dropped(plan)]
    lines += [f"  bounded      {line}" for line in _bounds(plan)]
    if plan.keys:
        lines += [f"  group by     {key.name}: {_keys(plan, i)}" for i, key in enumerate(plan.keys)]
    errors = plan.errors()
    for i, (channel, sensitivity) in enumerate(zip(plan.channels, plan.sensitivities, strict=True)):
        partial, mechanism = channel.partial, price.mechanisms[i]
        scale = partial.unit / plan.units[i]
        lines.append(f"  sum {i + 1}        {partial.label} ({partial.width} per group)")
        if mechanism is None:
            lines.append("    noise      none: neighbours do not differ in it")
            continue
        l0 = "any number" if sensitivity.l0 is None else str(sensitivity.l0)
        l1 = None if sensitivity.l1 is None else sensitivity.l1 * scale
        norms = zip(("L1", "L2", "Linf"), (l1, sensitivity.l2 * scale, sensitivity.linf * scale), strict=True)
        shown = ", ".join(f"{name} {'any' if x is None else _number(x)}" for name, x in norms)
        lines.append(f"    one person L0 {l0}, {shown}")
        kind = "Laplace, scale" if price.family == "laplace" else "Gaussian, standard deviation"
        lines.append(f"    noise      {kind} {_number(mechanism.scale * scale)} on each number")
    for i, column in enumerate(plan.quantiles):
        points = f"{column.points.cells + 1:,} points, step {readable(column.points.step)}"
        lines.append(f"  quantiles {i + 1}  of {column.what} on {points}")
        lines += [f"    noise      {line}" for line in _rank_lines(plan, i)]
    if price.selection is not None:
        unit = plan.row_weight
        half, certain = (-(-w // unit) for w in (price.selection.half, price.selection.certain))
        lines.append(f"  keys         published with probability 1/2 from {half} persons on, always from {certain} on")
        lines.append("    rule       optimal for one group a person (Desfontaines et al. 2022), split over max_groups")
    percent = _number(100 * plan.cost.confidence)
    for name, error in errors.items():
        if error is None:
            continue
        about = f", for {_number(plan.cost.rows)} rows" if plan.cost.rows is not None and _depends(plan, name) else ""
        lines.append(f"  error        {name}: ± {_number(error)}, {percent} % of the time{about}")
    missing = [name for name, error in errors.items() if error is None and not _is_quantile(plan, name)]
    if missing:
        names = ", ".join(missing)
        lines.append(f"  error        {names}: depends on the number of rows; {assuming} to see it for 1000")
    lines.append(f"  mechanism    {price.family} noise, {plan.note}")
    lines.append(f"  price        {_price(plan)}")
    lines.append(f"  charge       {_charge(plan)}")
    return "\n".join(part for line in lines for part in (_folded(line) if folded else [visible(line)]))


def _folded(line: str) -> list[str]:
    """A long line in several, the further ones below its words."""
    line = visible(line)
    return textwrap.wrap(line, _WIDTH, subsequent_indent=" " * 15, break_long_words=False, break_on_hyphens=False) or [line]


def _depends(plan: Plan, name: str) -> bool:
    return _source(plan, name).function not in ("count", "count_distinct", "rows", "sum")


def _is_quantile(plan: Plan, name: str) -> bool:
    return _source(plan, name).level is not None


def _source(plan: Plan, name: str) -> Source:
    return plan.sources[plan.aggregate_names.index(name)]


def _keys(plan: Plan, i: int) -> str:
    values = plan.keys[i].values
    if values is None:
        return "private keys, selected with noise"
    return f"{len(values):,} public keys, every one answered"


def _rank_lines(plan: Plan, i: int) -> list[str]:
    epsilon, column = plan.price.quantile_epsilons[i], plan.quantiles[i]
    if not epsilon:
        return ["none: this table is public"]
    unit = plan.row_weight
    rate, flank = rates(epsilon, plan.moved)
    lines = []
    for level in column.levels:
        rank = rank_error(rate, plan.cost.confidence, levels=len(column.levels), level=level) / unit
        text = f"exponential mechanism; level {readable(level)}: rank within about {_number(rank)} rows"
        if flank is not None:
            count, size = len(column.levels), column.points.cells + 1
            wide = interval_rank(flank, size, plan.cost.confidence, levels=count, level=level)
            text += f", interval about ± {_number(wide / unit)} rows"
        lines.append(text)
    return lines


def _price(plan: Plan) -> str:
    price = plan.price
    if not price.epsilon:
        return "nothing: all of it is public"
    delta = f" and delta {_number(price.delta)}" if price.delta else ""
    return f"this answer alone is differentially private with epsilon {readable(price.epsilon)}{delta}"


def _charge(plan: Plan) -> str:
    charge = plan.charge
    pure = "no pure epsilon" if charge.pure is None else f"epsilon {_number(charge.pure)}"
    mu = "no mu^2" if charge.mu_squared is None else f"mu^2 {_number(charge.mu_squared)}"
    delta = f", and delta {_number(charge.delta)} of the part kept for keys" if charge.delta else ""
    return f"{pure} on the pure meter, {mu} on the Gaussian meter{delta}"


def _factor(epsilon: Fraction) -> str:
    """e^epsilon in three digits, rounded up, as it is said to be at most this; the power itself where it is astronomical."""
    if epsilon > _ASTRONOMICAL:
        return f"e^{readable(epsilon)}"
    exact = Decimal(math.nextafter(math.exp(float_upper(epsilon)), math.inf))  # the exponential of floats is off by a hair
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).plus(exact)):.3g}"


def privacy_statement(plan: Plan) -> str:
    """What is promised about one answer, in plain words."""
    table, price = plan.table, plan.price
    if not price.epsilon:
        return "Exact: everything in this answer is public."
    who = table.person_name
    added = table.neighbors is Neighbors.ADD_REMOVE
    change = "is in the table or not" if added else "has the rows it has or quite different ones"
    grade = f"epsilon = {readable(price.epsilon)}" + (f", delta = {_number(price.delta)}" if price.delta else "")
    rest = f", but for events of probability {_number(price.delta)}" if price.delta else ""
    return (
        f"Differentially private for every {who} ({grade}): whether one {who} {change} makes whatever this answer "
        f"shows at most {_factor(price.epsilon)} times as likely or unlikely{rest}."
    )


def reading_notes(plan: Plan) -> tuple[str, ...]:
    """What a reader of the answer should know about its numbers."""
    notes = []
    bounds = _bounds(plan)
    if bounds:
        notes.append(f"Bounded: {'; '.join(bounds)}. Intervals cover the noise, not what bounding changes.")
    notes += [f"{line[0].upper()}{line[1:]}." for line in _dropped(plan)]
    if plan.private_keys:
        notes.append("Groups of few persons are left out; rows without a key are in no group.")
    if plan.cost.nonnegative:
        notes.append("Negative numbers were raised to zero.")
    return tuple(notes)
