"""Measure Sordino beside its peers, one script after the other, and write RESULTS.md.

A suite is a folder of suites/: each script `<environment>_*.py` prints JSON lines, and `report.py` turns all rows into
a section of Markdown and a chart. Rows are kept in results/<suite>.json, so that one suite can be measured again alone.
"""

import argparse
import importlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.turns import Finished, measure_in_turn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"
SCRIPT_SECONDS = 1800
VERSIONS = """
import importlib.metadata as metadata, json, sys
found = {d.metadata["Name"].lower(): d.version for d in metadata.distributions()}
print(json.dumps({name: found[name] for name in sys.argv[1:] if name in found}))
"""
PREAMBLE = """# Benchmarks

Written by `make bench`; do not edit. Each section was measured in one run, one script after the other (in accounting:
run by run in turn), each library in an environment of its own (`peers.toml`). Figures are medians; `results/*.json` also
keeps quartiles and numbers of runs.
A ratio compares figures of the same run, so it travels better to another machine than the figures themselves.
"""

Row = dict[str, Any]


@dataclass(frozen=True)
class Environment:
    """An interpreter with one library in it; Sordino's is the one that runs this file."""

    name: str
    title: str
    requirements: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return HERE / ".venvs" / self.name

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python") if self.requirements else sys.executable

    def install(self) -> str | None:
        """Make the environment unless it stands as asked; returns what went wrong."""
        wanted, stamp = "\n".join(self.requirements), self.folder / "installed.txt"
        if not wanted or (stamp.exists() and stamp.read_text() == wanted):
            return None
        print(f"installing {', '.join(self.requirements)}", flush=True)
        pip = [
            self.python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *self.requirements,
        ]
        for command in ([sys.executable, "-m", "venv", "--clear", str(self.folder)], pip):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                # names hosts and paths, so it stays out of the results
                print(done.stderr, file=sys.stderr)
                return f"could not install {' '.join(self.requirements)}"
        stamp.write_text(wanted)
        return None

    def versions(self) -> dict[str, str]:
        names = [
            re.split(r"[<>=!~\[]", requirement)[0].lower() for requirement in self.requirements
        ] or ["sordino"]
        command = [self.python, "-c", VERSIONS, *names, "numpy", "scipy"]
        done = subprocess.run(command, capture_output=True, text=True)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def command(self, module: str) -> list[str]:
        return [self.python, "-m", module]

    def measure(self, module: str) -> list[Row]:
        """Run one script; a crash or a timeout becomes a last row beside those already printed."""
        try:
            done = subprocess.run(
                self.command(module), cwd=ROOT, capture_output=True, timeout=SCRIPT_SECONDS
            )
            out, errors, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            out, errors, code = late.stdout or b"", b"stopped after %d seconds" % SCRIPT_SECONDS, 1
        rows: list[Row] = [
            json.loads(line) for line in out.decode().splitlines() if line.startswith("{")
        ]
        return self.named(module, Finished(rows, errors.decode(), code))

    def named(self, module: str, done: Finished) -> list[Row]:
        """The rows with the tool's name; a script that failed adds one that says so."""
        rows = list(done.rows)
        if done.code:
            print(done.errors, file=sys.stderr)
            last = (done.errors.strip().splitlines() or [f"exit code {done.code}"])[-1]
            rows.append({"error": f"{module.rpartition('.')[2]} stopped: {last}"})
        return [{"tool": self.title, **_without_paths(row)} for row in rows]


def _without_paths(row: Row) -> Row:
    return {**row, "error": re.sub(r"\S*/\S+", "<path>", row["error"])} if "error" in row else row


def environments() -> dict[str, Environment]:
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    found = {
        name: Environment(name, peer["title"], tuple(peer["requirements"]))
        for name, peer in peers.items()
    }
    return {"sordino": Environment("sordino", "Sordino", ()), **found}


def this_machine() -> dict[str, Any]:
    cpu = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*:\s*(.+)", cpu.read_text()) if cpu.exists() else []
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        " with changes" if git("status", "--porcelain", "src") else ""
    )


def _in_turn(suite: str) -> tuple[str, ...]:
    """The scripts of a suite whose runs alternate."""
    if not (HERE / "suites" / suite / "settings.py").exists():
        return ()
    return tuple(
        getattr(importlib.import_module(f"benchmarks.suites.{suite}.settings"), "IN_TURN", ())
    )


def measure_suite(name: str) -> None:
    known, rows, used = environments(), [], {}
    alternating, turns = _in_turn(name), []
    scripts = sorted(
        (HERE / "suites" / name).glob("*_*.py"),
        key=lambda path: (not path.stem.startswith("sordino"), path),
    )
    about = {
        "suite": name,
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit(),
        "machine": this_machine(),
    }
    for script in scripts:
        prefix = script.stem.split("_")[0]
        if prefix not in known:
            sys.exit(
                f"{script.name}: no environment {prefix!r} in peers.toml; known are {', '.join(known)}."
            )
        environment = known[prefix]
        failure = environment.install()
        print(f"{name}: {script.stem}" + (f": {failure}" if failure else ""), flush=True)
        if failure:
            rows.append({"tool": environment.title, "error": failure})
            continue
        used[environment.title] = environment.versions()
        module = f"benchmarks.suites.{name}.{script.stem}"
        if script.stem in alternating:
            turns.append((environment, module))
        else:
            rows += environment.measure(module)
    if turns:
        print(
            f"{name}: {', '.join(module.rpartition('.')[2] for _, module in turns)} in turn",
            flush=True,
        )
        with tempfile.TemporaryDirectory() as scratch:
            commands = [environment.command(module) for environment, module in turns]
            done = measure_in_turn(commands, ROOT, Path(scratch), len(turns) * SCRIPT_SECONDS)
        for (environment, module), finished in zip(turns, done, strict=True):
            rows += environment.named(module, finished)
    RESULTS.mkdir(exist_ok=True)
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    head = json.dumps({**about, "versions": used}, indent=1)[:-2]
    (RESULTS / f"{name}.json").write_text(f'{head},\n "rows": [\n  {lines}\n ]\n}}\n')


def conditions(result: Row) -> str:
    where = result["machine"]
    machine = f"{where['processor']}, {where['cores']} cores, {where['memory_gib']} GiB, {where['system']}"
    versions = {
        f"{package} {version}"
        for used in result["versions"].values()
        for package, version in used.items()
    }
    remark = f"| remark | {result['remark']} |\n" if "remark" in result else ""
    return f"""| | |
|---|---|
| measured | {result["date"]}, commit {result["commit"]} |
| command | `make bench` or `.venv/bin/python -m benchmarks.run --suite {result["suite"]}` |
| machine | {machine}, Python {where["python"]} |
| load average at the start | {where["load"]} |
| versions | {", ".join(sorted(versions))} |
{remark}"""


def write_report() -> None:
    parts = [PREAMBLE]
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        report = importlib.import_module(f"benchmarks.suites.{path.stem}.report")
        report.chart(result["rows"]).save(RESULTS / f"{path.stem}.png", scale_factor=1.5)
        picture = f"![{report.TITLE}](results/{path.stem}.png)\n"
        parts += [
            f"## {report.TITLE}\n",
            conditions(result),
            picture,
            report.section(result["rows"]),
        ]
    (HERE / "RESULTS.md").write_text("\n".join(parts).rstrip() + "\n")


def main() -> None:
    suites = sorted(path.parent.name for path in (HERE / "suites").glob("*/report.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--suite", action="append", choices=suites, help="measure only this suite; may be repeated"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="measure nothing, write RESULTS.md from results/*.json",
    )
    chosen = parser.parse_args()
    for name in () if chosen.report else chosen.suite or suites:
        measure_suite(name)
    write_report()


if __name__ == "__main__":
    main()
