"""Something of the user's, by its place in Python: `file.py:name` or `package.module:name`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from sordino.errors import InvalidInput
from sordino.privacy.paths import not_a_file

__all__ = ["imported"]

_HINT = "Write mechanism.py:function, or package.module:function."


def imported(target: str) -> tuple[Any, str]:
    """What a target names, and its name without the folders on the way; it is imported, so its file is run."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise InvalidInput(repr(target), "a file or a module and a name in it are needed", _HINT)
    is_file = place.endswith(".py") or "/" in place or os.sep in place
    module = _from_file(Path(place), target) if is_file else _from_module(place, target)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise _no_such(target, part, found)
        found = getattr(found, part)
    if not callable(found) and not hasattr(found, "release"):
        rule = f"{name} is of type {type(found).__name__}, which cannot be called"
        raise InvalidInput(repr(target), rule, "Name a function of the data, or a mechanism.")
    return found, f"{Path(place).name}:{name}"


def _from_file(path: Path, target: str) -> ModuleType:
    if fault := not_a_file(path):
        raise InvalidInput(repr(str(path)), fault, "Check the path before the colon.")
    name = f"audited_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(repr(target), "it is not a Python file", _HINT)
    module = importlib.util.module_from_spec(spec)
    # as for every other module: classes look there for what they belong to
    sys.modules[name] = module
    _reach(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(str(path), error, path) from None
    return module


def _from_module(name: str, target: str) -> ModuleType:
    _reach(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(name, error) from None
        rule = f"there is no module {error.name}"
        raise InvalidInput(
            repr(target),
            rule,
            f"{_HINT} Modules are found in this folder and in what is installed.",
        ) from None
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from None


def _reach(folder: Path) -> None:
    """What is imported may import what lies beside it."""
    shown = str(folder.resolve())
    if shown not in sys.path:
        sys.path.insert(0, shown)


def _failed(place: str, error: BaseException, path: Path | None = None) -> InvalidInput:
    line = _line(error, path)
    where = f" (line {line})" if line else ""
    if isinstance(error, SyntaxError):
        return InvalidInput(
            repr(place), f"it is not valid Python: {error.msg}{where}", "Correct it and try again."
        )
    told = " ".join(str(error).split())
    rule = (
        f"it fails when it is imported: {type(error).__name__}{f': {told}' if told else ''}{where}"
    )
    return InvalidInput(
        repr(place),
        rule,
        "It must be importable; guard what should not run then by __name__ == '__main__'.",
    )


def _line(error: BaseException, path: Path | None) -> int | None:
    """The last line of the file that led to the error."""
    if isinstance(error, SyntaxError):
        return error.lineno
    found, trace = None, error.__traceback__
    while trace is not None:
        if path is not None and Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _no_such(target: str, name: str, where: Any) -> InvalidInput:
    known = (
        [n for n, value in vars(where).items() if callable(value) and not n.startswith("_")]
        if hasattr(where, "__dict__")
        else []
    )
    close = get_close_matches(name, known, 1)
    hint = (
        f"Did you mean {close[0]}?"
        if close
        else f"It has {', '.join(known[:6])}."
        if known
        else "It has no functions."
    )
    return InvalidInput(repr(target), f"there is no {name} in it", hint)
