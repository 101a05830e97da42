"""Processor time of a tool with all its processes: what a busy machine changes least.

Linux and the standard library.
"""

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

_TICKS = os.sysconf("SC_CLK_TCK")


def tree_seconds(*roots: int) -> float:
    """Processor seconds that the processes below some have used, with those that ended there and were waited for."""
    used: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(") ")[2].split()
            except OSError:  # it has just ended
                continue
            used[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    found = set(roots)
    while more := {pid for pid, (parent, _) in used.items() if parent in found} - found:
        found |= more
    return sum(used[pid][1] for pid in found if pid in used) / _TICKS


def measure_in_turn(
    *calls: Callable[[], object], runs: int, roots: tuple[int, ...] = ()
) -> list[dict[str, float]]:
    """Milliseconds on the clock, and of processor time here and below the given processes: medians of runs in turn."""
    taken: list[list[tuple[float, float]]] = [[] for _ in calls]
    for _ in range(runs):
        for call, times in zip(calls, taken, strict=True):
            start, before = perf_counter(), tree_seconds(os.getpid(), *roots)
            call()
            times.append((perf_counter() - start, tree_seconds(os.getpid(), *roots) - before))
    return [
        {
            "value": 1e3 * median(wall for wall, _ in times),
            "processor": 1e3 * median(cpu for _, cpu in times),
            "runs": runs,
        }
        for times in taken
    ]
