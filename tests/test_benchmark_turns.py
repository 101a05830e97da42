from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.turns import measure_in_turn

SCRIPT = """
import sys
from benchmarks.timing import emit
from benchmarks.turns import take_turn
name, runs = sys.argv[1], [int(x) for x in sys.argv[2:]]
for case, count in enumerate(runs):
    for _ in range(count):
        take_turn((case,))
        with open("order.txt", "a") as order:
            order.write(f"{name}{case} ")
    emit("epsilon", str(case), tool=name)
if name == "c":
    sys.exit("no more")
"""


def test_runs_of_several_scripts_alternate_case_by_case(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent
    start = f"import sys; sys.path.insert(0, {str(root)!r})"
    commands = [
        [sys.executable, "-c", start + SCRIPT, *words]
        for words in (["a", "3", "1"], ["b", "1", "2"], ["c", "2", "0"])
    ]
    done = measure_in_turn(commands, tmp_path, tmp_path, 60)
    assert (tmp_path / "order.txt").read_text().split() == [
        "a0",
        "b0",
        "c0",
        "a0",
        "c0",
        "a0",
        "a1",
        "b1",
        "b1",
    ]
    assert [[row["case"] for row in script.rows] for script in done] == [["0", "1"]] * 3
    assert [script.code for script in done] == [0, 0, 1]
    assert "no more" in done[2].errors


def test_the_command_of_make_bench_starts() -> None:
    """Once it imported its own package before the package could be found."""
    root = Path(__file__).parent.parent
    recipe = (root / "Makefile").read_text().partition("\nbench:")[2].splitlines()[1].split()
    assert recipe[0] == "$(BIN)/python"
    done = subprocess.run(
        [sys.executable, *recipe[1:], "--help"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
