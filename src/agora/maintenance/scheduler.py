from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agora.errors import AgoraError
from agora.ports.log import Log


@dataclass(slots=True)
class Task:
    """Work that is done again and again: `run` answers what it did as plain data, or None if there was nothing."""

    name: str
    seconds: float
    run: Callable[[], dict[str, Any] | None]
    due: float = 0.0
    done: dict[str, Any] | None = field(default=None)
    problem: str | None = None


class Scheduler:
    """Runs tasks at intervals in one thread of its own, one after the other, until it is closed.

    A task that fails is logged, shows as a problem until it succeeds, and is tried again at its next time.
    """

    def __init__(self, tasks: list[Task], log: Log) -> None:
        self._tasks = tasks
        self._log = log
        self._ended = threading.Event()
        self._working = False
        self._thread = threading.Thread(target=self._work, name="agora-maintenance", daemon=True)

    def start(self) -> None:
        """Begin; each task runs for the first time after one interval."""
        now = time.monotonic()
        for task in self._tasks:
            task.due = now + task.seconds
        self._thread.start()

    @property
    def working(self) -> bool:
        """Whether a task runs now."""
        return self._working

    def details(self) -> dict[str, Any]:
        """By name, what each task last did and what is wrong with it, as plain data."""
        return {task.name: {"last": task.done, "problem": task.problem} for task in self._tasks}

    def close(self) -> None:
        """Wait for the task that runs, start no other."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while True:
            pause = min((task.due for task in self._tasks), default=float("inf")) - time.monotonic()
            if self._ended.wait(max(0.0, min(pause, threading.TIMEOUT_MAX))):
                return
            for task in self._tasks:
                if task.due <= time.monotonic() and not self._ended.is_set():
                    self._run(task)
                    task.due = time.monotonic() + task.seconds

    def _run(self, task: Task) -> None:
        self._working = True
        try:
            done = task.run()
        except AgoraError as error:
            task.problem = error.message
            self._log.warning("maintenance failed", task=task.name, code=error.code, error=error.message)
        except Exception as error:  # noqa: BLE001 - the outermost loop of this thread
            # What it says may quote what was worked on.
            task.problem = type(error).__name__
            self._log.warning("maintenance failed", task=task.name, error=task.problem, exc_info=True)
        else:
            task.problem = None
            if done is not None:
                task.done = done
                self._log.info("maintenance done", task=task.name, **done)
        finally:
            self._working = False
