"""A run on disk: model, optimizer and mark in one file that is either the old or the new one, never half of each."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.payment import Mark
from sordino.learn.torch_extra import torch
from sordino.privacy.exact import show
from sordino.privacy.paths import not_a_file

__all__ = ["Checkpoint", "model_digest", "save_checkpoint", "writable_place"]


def model_digest(model: Any) -> str:
    """SHA-256 of all numbers of a model, by name."""
    return _digest(model.state_dict())


def _digest(state: Mapping[str, Any]) -> str:
    found = hashlib.sha256()
    for name, value in sorted(state.items()):
        if not isinstance(value, torch.Tensor):
            rule = "a model's state must be tensors, so that it can be stored and known again"
            hint = "Leave out get_extra_state() and the like."
            raise InvalidInput(f"{name!r} of the model's state", rule, hint)
        found.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        found.update(
            value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        )
    return found.hexdigest()


def _path(checkpoint: str | Path) -> Path:
    if not isinstance(checkpoint, str | Path):
        rule = "it must be a path"
        raise InvalidInput(f"checkpoint={show(checkpoint)}", rule, "Name a file, such as run.pt.")
    return Path(checkpoint)


def writable_place(checkpoint: str | Path) -> Path:
    """The path of a file that can be written: found out before anything is spent."""
    path = _path(checkpoint)
    shown = f"checkpoint={show(str(checkpoint))}"
    try:
        with contextlib.suppress(FileNotFoundError):
            path.lstat()
        if path.is_dir():
            raise InvalidInput(shown, "it is a folder", "Name a file in it, such as run.pt.")
        if not path.parent.is_dir():
            raise InvalidInput(shown, "there is no such folder", "Create it first.")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        rule = f"nothing can be written there ({type(error).__name__})"
        raise InvalidInput(shown, rule, "Name a file in a folder of your own.") from None
    return path


def save_checkpoint(
    path: Path, model: Any, optimizer: Any, mark: Mark, secret: dict[str, Any] | None = None
) -> None:
    """Write the file whole, then put it in place; only its owner can read it."""
    facts = {"run": mark.run, "stretch": mark.stretch, "step": mark.step, "model": mark.model}
    kept = {
        "sordino": 1,
        "mark": facts,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    if secret is not None:
        kept["secret"] = secret
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(kept, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a file holds; `secret` is what only the process that adds noise needs."""

    path: Path
    mark: Mark
    model: dict[str, Any]
    optimizer: dict[str, Any]
    secret: dict[str, Any] | None

    @staticmethod
    def read(checkpoint: str | Path) -> Checkpoint:
        """Read a file; no code in it is run."""
        path = _path(checkpoint)
        if fault := not_a_file(path):
            raise InvalidInput(repr(str(path)), fault, "Pass the path that train() was given.")
        try:
            kept = torch.load(path, weights_only=True, map_location="cpu")
            found = Checkpoint(
                path, Mark(**kept["mark"]), kept["model"], kept["optimizer"], kept.get("secret")
            )
            same = _digest(found.model) == found.mark.model
        except Exception as error:
            rule = f"it is not a checkpoint ({type(error).__name__})"
            raise InvalidInput(
                repr(str(path)), rule, "Pass the path that train() was given."
            ) from None
        if not same:
            raise InvalidInput(
                repr(str(path)),
                "its model is not the one it names",
                "Load the file as it was written.",
            )
        return found

    def put_back(self, model: Any, optimizer: Any) -> None:
        """Give model and optimizer what they had."""
        with self.fitting():
            model.load_state_dict(self.model)
            optimizer.load_state_dict(self.optimizer)

    @contextlib.contextmanager
    def fitting(self) -> Iterator[None]:
        """What fails inside is told as a file of another run."""
        try:
            yield
        except Exception as error:
            rule = f"it is not a checkpoint of this model and optimizer ({type(error).__name__})"
            raise InvalidInput(
                repr(str(self.path)), rule, "Build the trainer as for the run that wrote it."
            ) from None
