"""How far the jobs of a tag are, and how to stop them: by the tasks of their stages, or by what a server tells."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from sordino.engines.spark.sessions import is_remote

__all__ = ["Progress"]

_TICK = 0.1


class Progress:
    """The jobs of one session that run under a tag of ours."""

    def __init__(self, session: Any) -> None:
        self._session, self._remote = session, is_remote(session)
        self._tags: list[str] = []
        self._stopping: set[str] = set()
        self._done: float | None = None
        self._lock = threading.Lock()
        if self._remote:
            session.registerProgressHandler(self._told)

    @contextlib.contextmanager
    def of(self, tag: str) -> Iterator[None]:
        """Within, what this thread runs has the tag."""
        # beside a server its own tags; in this process those of jobs, as a session's are not told where it works for
        # Python
        owner = self._session if self._remote else self._session.sparkContext
        (owner.addTag if self._remote else owner.addJobTag)(tag)
        with self._lock:
            self._tags.append(tag)
            self._done = None
        try:
            yield
        finally:
            with self._lock:
                self._tags.remove(tag)
                self._done = None
            with contextlib.suppress(Exception):
                (owner.removeTag if self._remote else owner.removeJobTag)(tag)

    @property
    def part(self) -> float | None:
        """From 0 to 1; None if nothing runs or it is not known."""
        with self._lock:
            tags = list(self._tags)
        if not tags:
            return None
        if self._remote:
            return self._done
        with contextlib.suppress(Exception):  # it ended meanwhile
            return self._of_tasks(tags[-1])
        return None

    def _of_tasks(self, tag: str) -> float | None:
        tracker = self._session.sparkContext._jsc.sc().statusTracker()
        done = tasks = 0
        for job in tracker.getJobIdsForTag(f"{tag}"):
            info = tracker.getJobInfo(job)
            for stage in info.get().stageIds() if info.isDefined() else ():
                found = tracker.getStageInfo(stage)
                if found.isDefined():
                    done += found.get().numCompletedTasks()
                    tasks += found.get().numTasks()
        return min(done / tasks, 1.0) if tasks else None

    def _told(
        self,
        stages: Any = None,
        inflight_tasks: int = 0,
        operation_id: str | None = None,
        done: bool = False,
    ) -> None:
        """What a server tells of a running operation."""
        del inflight_tasks, operation_id, done
        tasks = sum(stage.num_tasks for stage in stages or ())
        finished = sum(stage.num_completed_tasks for stage in stages or ())
        self._done = min(finished / tasks, 1.0) if tasks else None

    def stop(self) -> None:
        """Stop everything that has a tag of ours, and what it begins meanwhile: a statement is several jobs."""
        with self._lock:
            tags = [tag for tag in self._tags if tag not in self._stopping]
            self._stopping.update(tags)
        for tag in tags:
            threading.Thread(target=self._stop, args=(tag,), daemon=True).start()

    def _stop(self, tag: str) -> None:
        while tag in self._tags:
            with contextlib.suppress(Exception):
                if self._remote:
                    self._session.interruptTag(tag)
                else:
                    self._session.sparkContext.cancelJobsWithTag(tag)
            time.sleep(_TICK)
        self._stopping.discard(tag)
