"""What PostgreSQL computes once for each row: it copies what a subquery computes to wherever its columns are named.

OFFSET 0 keeps a subquery apart, and lets it run in parallel all the same. It changes no cell. Only what is computed for
each row in any case is moved: what a CASE guards stays behind its condition, without which it could fail.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

__all__ = ["computed_once"]

_MOVED = "first"


def computed_once(tree: exp.Expr) -> exp.Expr:
    """The same tree, in which the rows that are summed are computed in subqueries of their own,
    where that saves work.
    """
    for query in list(tree.find_all(exp.Select)):
        lines = query.args["from_"].this.unnest() if query.args.get("from_") else None
        if isinstance(lines, exp.Select) and _sums(query) and _is_plain(lines):
            again = _names_again(query, lines)
            if _move_what_is_tested(lines) or again:
                _keep_apart(lines)
    return tree


def _sums(query: exp.Select) -> bool:
    return not query.args.get("joins") and any(
        item.find(exp.AggFunc) is not None for item in query.expressions
    )


def _is_plain(lines: exp.Select) -> bool:
    """Whether each of its rows is computed from one that it reads: no groups, no windows."""
    parts = {key for key, value in lines.args.items() if value} <= {
        "expressions",
        "from_",
        "joins",
        "where",
    }
    apart = (exp.AggFunc, exp.Window, exp.Star, exp.Anonymous)
    return parts and not any(item.find(*apart) is not None for item in lines.expressions)


def _keep_apart(query: exp.Select) -> None:
    """OFFSET 0, in 64 bits as it is written: the planner lets no other run in parallel,
    not even a 0 that it must widen.
    """
    query.set("offset", exp.Offset(expression=exp.cast(exp.Literal.string("0"), "BIGINT")))


def _names_again(query: exp.Select, lines: exp.Select) -> bool:
    """Whether something that the lines compute is named more than once."""
    computed = {
        item.alias
        for item in lines.expressions
        if not isinstance(item.unalias(), exp.Column | exp.Literal)
    }
    parts = [
        *query.expressions,
        *filter(None, (query.args.get(key) for key in ("where", "group", "having"))),
    ]
    names = Counter(column.name for part in parts for column in part.find_all(exp.Column))
    return any(names[name] > 1 for name in computed)


def _move_what_is_tested(lines: exp.Select) -> bool:
    """Have a subquery of its own compute what a CASE tests first and mentions again; whether there is such."""
    named = [column for item in lines.expressions for column in item.find_all(exp.Column)]
    if lines.args.get("joins") or any(column.text("table") for column in named):
        return False
    moved: list[exp.Expr] = []
    for item in lines.expressions:
        tested = _tested(item.unalias())
        mentions = (
            []
            if tested is None
            else [node for node in item.find_all(type(tested)) if node == tested]
        )
        if tested is not None and len(mentions) > 1:
            if tested not in moved:
                moved.append(tested.copy())
            place = moved.index(tested)
            for node in mentions:
                node.replace(exp.column(f"{_MOVED}{place}", quoted=True))
    if not moved:
        return False
    own = {column.name for item in lines.expressions for column in item.find_all(exp.Column)}
    own -= {f"{_MOVED}{i}" for i in range(len(moved))}
    items: list[exp.Expr] = [exp.column(name, quoted=True) for name in sorted(own)]
    items += [exp.alias_(node, f"{_MOVED}{i}", quoted=True) for i, node in enumerate(moved)]
    name = exp.TableAlias(
        this=exp.to_identifier(lines.args["from_"].this.alias_or_name, quoted=True)
    )
    inside = exp.Select(expressions=items)
    for key in ("from_", "where"):
        if lines.args.get(key) is not None:
            inside.set(key, lines.args[key].pop())
    _keep_apart(inside)
    lines.set("from_", exp.From(this=exp.Subquery(this=inside, alias=name)))
    return True


def _tested(value: exp.Expr) -> exp.Expr | None:
    """What the first condition of a CASE compares, which is computed for every row."""
    value = value.unnest()
    if not isinstance(value, exp.Case) or value.this is not None:
        return None
    first = value.args["ifs"][0].this.unnest()
    if not isinstance(first, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    tested = first.this.unnest()
    return (
        None if isinstance(tested, exp.Column | exp.Literal | exp.Identifier | exp.Null) else tested
    )
