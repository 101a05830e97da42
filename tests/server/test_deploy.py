"""The Dockerfile and the compose file: what can be checked without Docker, and the same steps run without it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())


def test_what_is_copied_into_the_image_exists() -> None:
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    assert copied
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name


def test_the_image_installs_extras_that_there_are() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for group in re.findall(r"\[([a-z,]+)\]'", DOCKERFILE):
        assert set(group.split(",")) <= extras.keys()
    assert "USER sordino" in DOCKERFILE


def test_the_command_of_the_image_is_understood() -> None:
    import json

    from typer.testing import CliRunner

    from sordino.cli.commands import app

    found = re.search(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert found is not None
    program, *words = json.loads(found[1])
    assert program == "sordino"
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="sordino")
    assert done.exit_code == 0, done.output


def test_compose_gives_away_as_little_as_it_can() -> None:
    services = COMPOSE["services"]
    assert services["sordino"]["read_only"]
    assert services["sordino"]["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in services["sordino"]["ports"])
    assert "ports" not in services["ledger"]
    assert COMPOSE["networks"]["inside"]["internal"]
    assert services["ledger"]["networks"] == ["inside"]
    used = {name for service in services.values() for name in service["secrets"]}
    assert used == COMPOSE["secrets"].keys()
    assert (
        ROOT / "deploy" / services["sordino"]["build"]["dockerfile"].removeprefix("deploy/")
    ).exists()
    assert not re.search(
        r"password:\s*\S",
        (ROOT / "deploy" / "compose.yaml").read_text().lower().replace("_password:", ""),
    )
