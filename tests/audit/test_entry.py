"""What `sordino.audit` offers stays what it is, whatever was imported before."""

from __future__ import annotations

import inspect

import pytest

import sordino as so


@pytest.mark.parametrize("name", ["exact", "law", "replay", "training", "zoo"])
def test_each_check_is_a_function_also_when_it_is_asked_for_again(name: str) -> None:
    """A module of the same name in the package would take its place as soon as it is imported."""
    for _ in range(2):
        assert callable(getattr(so.audit, name))


def test_a_call_names_its_options() -> None:
    options = inspect.signature(so.audit).parameters
    assert {"mechanism", "d1", "d2", "epsilon", "delta", "samples", "neighbors"} <= set(options)
