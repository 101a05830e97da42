"""How many bytes a question moves between the machines of a cluster: an upper bound, before Spark compresses them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Traffic", "traffic"]

_WORD = 8
_DECIMAL = 3 * _WORD
"""A decimal of 38 digits takes a word for its place and two for its digits."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of each exchange: a person's shares, its shares again where persons are scaled,
    and what groups add up to.
    """

    shares: int
    persons: int
    groups: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.shares + self.persons + self.groups


def traffic(
    *,
    rows: int,
    shares: int,
    tasks: int,
    groups: int,
    keys: int = 1,
    sums: int = 1,
    wide: int = 0,
    scaled: bool = True,
) -> Traffic:
    """An upper bound for a table of this many rows, which make this many shares (pairs of a person and a group).

    Each of the tasks that read the table sends one line for each share that it has met: no more than it has rows, nor
    than there are shares. A person with any number of rows is then no more than one line for each task and group.
    `wide` of the sums are decimals. Where persons are scaled, all shares are grouped by person and meet their weights
    again: three times at most, a share is sent on. Then each task sends a line for each group.

    Example:
        >>> traffic(rows=10**10, shares=8 * 10**8, tasks=2500, groups=8, sums=2).shares  # 400 GB
        400000000000
    """
    line = _line(1 + keys + sums, wide)
    sent = min(rows, tasks * shares)
    again = 3 * shares * _line(1 + keys + sums, wide) if scaled else 0
    return Traffic(sent * line, again, tasks * groups * _line(keys + sums, sums))


def _line(fields: int, wide: int) -> int:
    """A row as Spark sends it: a bit for each field in whole words, a word for each field, more for decimals."""
    return _WORD * -(-fields // 64) + _WORD * (fields - wide) + _DECIMAL * wide
