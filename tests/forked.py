"""What a forked child may do. Not part of the package."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

from sordino.errors import InvalidInput


def refused_in_a_child(act: Callable[[], Any]) -> bool:
    """Whether a forked child is told that it is another process than the one that made the object."""
    here, there = multiprocessing.Pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            there.send("answered")
        except InvalidInput as error:
            there.send(str(error))
        finally:
            os._exit(0)
    assert here.poll(30)
    said = here.recv()
    os.waitpid(child, 0)
    return "another process than the one that made it" in said
