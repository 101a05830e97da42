"""How many answers are needed: for an error, at a confidence."""

from __future__ import annotations

from sordino.local.categories import Categories
from sordino.local.choose import best_of, compared
from sordino.privacy.exact import Number

__all__ = ["persons_needed"]


def persons_needed(
    epsilon: Number, categories: Categories, error: Number, confidence: Number = 0.95, *, population: bool = False
) -> int:
    """How many must answer for every share to be within `error`, each at this confidence, whatever the truth.

    By the protocol that `choose` takes; every protocol has a method of this name for itself. With `population` the
    share is that of the population they are drawn from, which takes more.

    Example:
        >>> persons_needed(epsilon=1, categories=16, error=0.01)
        165785
    """
    persons = 10_000
    while True:  # which protocol can be counted depends on the number; ask again at the number found
        found = compared(epsilon, categories, persons)
        best = best_of([one for one in found if one.objection is None] or found).protocol
        needed = best.persons_needed(error, confidence, population=population)
        if needed <= 2 * persons:
            return needed
        persons = needed
