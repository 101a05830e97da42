"""What a path leads to. To look never fails: not where this user may not look, nor where the path is too long.

`pathlib` raises for these, where it does not for a file that is not there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sordino.errors import InvalidInput

__all__ = [
    "absolute",
    "is_file",
    "is_folder",
    "is_there",
    "not_a_file",
    "not_a_folder",
    "not_writable",
]


def absolute(path: Path) -> Path:
    """The path from the root, links as they are."""
    try:
        return path.absolute()
    except OSError:
        rule = "it is gone, so that no path starts there"
        raise InvalidInput(
            "the current folder", rule, "Change to a folder that exists, or write whole paths."
        ) from None


def is_file(path: Path) -> bool:
    """Whether it is a plain file, as far as this user may see."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Whether it is a folder, as far as this user may see."""
    return os.path.isdir(path)  # noqa: PTH112


def is_there(path: Path) -> bool:
    """Whether anything is there, as far as this user may see."""
    return os.path.exists(path)  # noqa: PTH110


def not_a_file(path: Path) -> str:
    """Why a path leads to no plain file, in words; empty if it leads to one."""
    mode, fault = _mode(path, "file")
    if fault or stat.S_ISREG(mode):
        return fault
    return "it is a folder" if stat.S_ISDIR(mode) else "it is not a plain file"


def not_a_folder(path: Path) -> str:
    """Why a path leads to no folder, in words; empty if it leads to one."""
    mode, fault = _mode(path, "folder")
    return fault or ("" if stat.S_ISDIR(mode) else "it is no folder")


def not_writable(path: Path) -> str:
    """Why no file can be written at a path, in words; empty if one can, as far as is known without trying."""
    if is_folder(path):
        return "it is a folder"
    if not is_there(path):
        try:
            path.lstat()
        except FileNotFoundError:
            pass
        except ValueError:
            return "it is not the path of a file"
        except OSError as error:
            return f"it cannot be reached ({error.strerror})"
        if not is_folder(path.parent):
            return "its folder does not exist"
    found = path if is_there(path) else path.parent
    return "" if os.access(found, os.W_OK) else "it may not be written to"


def _mode(path: Path, what: str) -> tuple[int, str]:
    """What the system says of a path, or why it says nothing, in words."""
    try:
        return path.stat().st_mode, ""
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return 0, f"there is no such {what}"
    except OSError as error:
        return 0, f"it cannot be reached ({error.strerror})"
