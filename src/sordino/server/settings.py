"""What an owner sets for served datasets: `serve.toml` in the folder of the declarations.

hosts = ["data.example.org"]   # the names by which people reach the server; numeric addresses and localhost always work
proxies = ["10.0.0.2"]         # proxies in front of it, whose word on where a request came from is believed

[datasets.visits]
answer_time = 0.5       # seconds; needed: `sordino serve FOLDER --calibrate` proposes one
threads = 1             # of DuckDB, fixed
longest_text = 256      # characters of a text cell that are kept
dry_run = false         # made-up rows instead of the data
rows = 10000            # how many of them

[oidc]                  # optional: people of an identity provider log in to the pages
issuer = "https://login.example.org"
client_id = "sordino"   # its secret is in the environment, SORDINO_OIDC_SECRET
own_address = "https://sordino.example.org"
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sordino.errors import InvalidDeclaration
from sordino.privacy.exact import show
from sordino.privacy.paths import is_file, not_a_folder
from sordino.server.clock import checked_answer_time

__all__ = [
    "OWN_ANSWER_TIME",
    "SETTINGS",
    "ServedDataset",
    "host_names",
    "identity_provider",
    "proxy_addresses",
    "served",
]

SETTINGS = "serve.toml"
OWN_ANSWER_TIME = 1.0
"""Seconds, where one declaration is served to its own owner and nothing is set: no time is hidden from oneself."""
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_MOST = {"threads": 1024, "longest_text": 65_536, "rows": 100_000_000}


@dataclass(frozen=True)
class ServedDataset:
    """One dataset of a folder: its name, its declaration, and how it is served."""

    name: str
    declaration: Path
    answer_time: float | None = None
    threads: int = 1
    longest_text: int = 256
    dry_run: bool = False
    rows: int = 10_000
    memory: str | None = None


def served(folder: Path) -> list[ServedDataset]:
    """The datasets of a folder: every declaration in it,
    with what `serve.toml` says of it; or that of one declaration.
    """
    if is_file(folder):
        found = _dataset(
            folder.stem, folder, _settings(folder.parent / SETTINGS).get(folder.stem, {})
        )
        return [
            found if found.answer_time is not None else replace(found, answer_time=OWN_ANSWER_TIME)
        ]
    if fault := not_a_folder(folder):
        raise InvalidDeclaration(show(str(folder)), fault, "Pass the folder of your declarations.")
    declarations = {
        path.stem: path for path in sorted(folder.glob("*.toml")) if path.name != SETTINGS
    }
    if not declarations:
        rule = "it holds no declaration"
        raise InvalidDeclaration(
            show(str(folder)), rule, "Put NAME.toml there; `sordino init` writes a first one."
        )
    settings = _settings(folder / SETTINGS)
    if strange := sorted(settings.keys() - declarations.keys()):
        rule = f"there is no declaration {strange[0]}.toml"
        raise InvalidDeclaration(
            f"{SETTINGS}: datasets.{strange[0]}",
            rule,
            f"Its declarations: {', '.join(declarations)}.",
        )
    return [_dataset(name, path, settings.get(name, {})) for name, path in declarations.items()]


def identity_provider(folder: Path) -> Mapping[str, str] | None:
    """The identity provider that `serve.toml` names, if it names one."""
    found = _read(folder / SETTINGS).get("oidc")
    if found is None:
        return None
    names = {"issuer", "client_id", "own_address"}
    if (
        not isinstance(found, dict)
        or found.keys() != names
        or not all(isinstance(each, str) for each in found.values())
    ):
        rule = f"an identity provider has {', '.join(sorted(names))}, each a text"
        raise InvalidDeclaration(
            f"{SETTINGS}: oidc", rule, "Its secret is in the environment, SORDINO_OIDC_SECRET."
        )
    return found


def host_names(folder: Path) -> list[str]:
    """The names by which people reach the server, without ports."""
    found = _listed(folder, "hosts")
    for name in found:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            rule = "it is a list of names such as data.example.org, without https:// and without a port"
            raise InvalidDeclaration(
                f"{SETTINGS}: hosts, {show(name)}", rule, 'Write hosts = ["data.example.org"].'
            )
    return found


def proxy_addresses(folder: Path) -> list[str]:
    """The addresses of proxies in front of the server, or networks that hold nothing else."""
    found = _listed(folder, "proxies")
    for address in found:
        try:
            if not isinstance(address, str):
                raise ValueError
            ipaddress.ip_network(address)
        except ValueError:
            rule = "it is a list of numeric addresses, or of networks such as 10.0.0.0/28"
            raise InvalidDeclaration(
                f"{SETTINGS}: proxies, {show(address)}", rule, 'Write proxies = ["10.0.0.2"].'
            ) from None
    return found


def _listed(folder: Path, key: str) -> list[Any]:
    found = _read(folder / SETTINGS).get(key, [])
    return found if isinstance(found, list) else [found]


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidDeclaration(
            SETTINGS, "it cannot be read as TOML", str(error).partition("\n")[0] + "."
        ) from None


def _settings(path: Path) -> Mapping[str, Mapping[str, Any]]:
    found = _read(path)
    if strange := sorted(found.keys() - {"datasets", "hosts", "oidc", "proxies"}):
        raise InvalidDeclaration(
            f"{SETTINGS}: {strange[0]}",
            "there is no such setting",
            "Known: datasets, hosts, oidc, proxies.",
        )
    datasets = found.get("datasets", {})
    if not isinstance(datasets, dict) or not all(
        isinstance(each, dict) for each in datasets.values()
    ):
        raise InvalidDeclaration(
            SETTINGS, "datasets must be tables", "Write [datasets.NAME] and lines below it."
        )
    return datasets


def _dataset(name: str, path: Path, given: Mapping[str, Any]) -> ServedDataset:
    known = {"answer_time", "threads", "longest_text", "dry_run", "rows", "memory"}
    if strange := sorted(given.keys() - known):
        rule = "there is no such setting"
        raise InvalidDeclaration(
            f"{SETTINGS}: datasets.{name}.{strange[0]}", rule, f"Known: {', '.join(sorted(known))}."
        )
    for key, most in _MOST.items():
        value = given.get(key, 1)
        if type(value) is not int or not 1 <= value <= most:
            rule = f"it is a whole number from 1 to {most:,}"
            raise InvalidDeclaration(
                f"{SETTINGS}: datasets.{name}.{key} = {show(value)}",
                rule,
                "Leave it out, or correct it.",
            )
    if type(given.get("dry_run", False)) is not bool:
        raise InvalidDeclaration(
            f"{SETTINGS}: datasets.{name}.dry_run", "it is true or false", "Write dry_run = true."
        )
    answer_time = given.get("answer_time")
    checked = {} if answer_time is None else {"answer_time": checked_answer_time(answer_time)}
    return ServedDataset(name, path, **{**given, **checked})
