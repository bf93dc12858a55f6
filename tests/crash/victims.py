"""The other end of `doomed.py`: starts it, gives commands, sees it die. What it said outlives it."""

from __future__ import annotations

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.crash.failpoints import Point

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("doomed.py")
PATIENCE = 120.0


class _Spare:
    """A process that has started and waits for its folder: starting takes longer than most of what is done to it."""

    def __init__(self) -> None:
        self._waiting: subprocess.Popen[str] | None = None
        atexit.register(self.end)

    def take(self) -> subprocess.Popen[str]:
        """The one that waits; the next one starts meanwhile."""
        taken, self._waiting = self._waiting or self._started(), self._started()
        return taken

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            # Small, as the queue is: a process that nobody listens to waits, and does not fill the store meanwhile.
            pipesize=4096,
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "PYTHONUTF8": "1"},
        )

    def end(self) -> None:
        """Nobody needs it any more."""
        if self._waiting is not None:
            self._waiting.kill()
            self._waiting.communicate(timeout=PATIENCE)
            self._waiting = None


_spare = _Spare()


class Victim:
    """A process on a data folder."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.process = _spare.take()
        self.said: queue.Queue[Any] = queue.Queue(20)
        self.buried = False
        self._silent = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ask("begin", str(folder), agent)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A line without its end was being written when the process died: nobody could act on it.
            if line.endswith("\n"):
                self.said.put(json.loads(line))
        self.said.put(None)

    def next(self) -> Any:
        """The next thing it says; None once it is dead."""
        said = None if self._silent else self.said.get(timeout=PATIENCE)
        self._silent = said is None
        return said

    def tell(self, command: str, *arguments: object, **named: object) -> None:
        """Give a command and do not wait."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(json.dumps([command, arguments, named]) + "\n")
            self.process.stdin.flush()

    def ask(self, command: str, *arguments: object, **named: object) -> Any:
        """What a command returned."""
        self.tell(command, *arguments, **named)
        found = self.next()
        assert isinstance(found, dict), found
        assert "ok" in found, found
        return found["ok"]

    def dies(self, point: Point, command: str, *arguments: object, **named: object) -> None:
        """Arm the point, give the command, and see the process die there and nowhere else."""
        self.ask("arm", point.plain())
        self.tell(command, *arguments, **named)
        said = self.next()
        assert said == {"reached": point.plain()}, f"{point} was not reached: {said}"
        assert self.next() is None
        status = self.process.wait(PATIENCE)
        if sys.platform != "win32":
            assert status == -(signal.SIGXFSZ if point.written else signal.SIGKILL)
        self.bury()

    def kill(self) -> list[Any]:
        """Kill it from outside; everything that it said and nobody has heard yet."""
        self.process.kill()
        heard = list(iter(self.next, None))
        self.bury()
        return heard

    def bury(self) -> None:
        """Let the pipes go."""
        self.buried = True
        self.process.kill()
        self.process.wait(PATIENCE)
        while self._reader.is_alive():
            with suppress(queue.Empty):
                self.said.get(timeout=0.01)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()


StartVictim = Callable[..., Victim]


@contextmanager
def victims(folder: Path) -> Iterator[StartVictim]:
    """Starts processes on one folder; whatever is left of them at the end is killed."""
    started: list[Victim] = []

    def start(agent: str = "bob") -> Victim:
        started.append(Victim(folder, agent))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.bury()
