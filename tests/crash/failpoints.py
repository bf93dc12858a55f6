"""Named moments at which a process kills itself, without a word about them in the code that they are in.

A `Point` is a statement that SQLite begins or has run, a function that is entered or left, or a byte of the file that
is being written. `Failpoints.install` has the interpreter and SQLite tell of each; `arm` chooses the one that kills.
Nothing is replaced: statements come from the trace callback of every connection that is opened, functions from the
profile functions of threads, and the byte is a limit that the system sets for the size of files.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Point:
    """Where to die: exactly one of `statement`, `function` and `written` is given."""

    statement: str = ""
    """A pattern that the beginning of a statement, its values filled in, has to match."""
    function: str = ""
    """`module:qualified.name`."""
    written: str = ""
    """A file of the data folder: to die when it is written `beyond` bytes past its length at the armed moment."""
    when: Literal["before", "after"] = "before"
    """Entered or left; begun or done."""
    nth: int = 1
    """How often it happens until then."""
    beyond: int = 0
    at: str = ""
    """For `written`: a pattern of the statement from whose beginning on that file must not grow further."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def die() -> None:
    """End this process at once: no handler, no flush, no goodbye."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


class Failpoints:
    """The points of one process. It says `{"reached": …}` on its standard output before it dies.

    Until it is armed it costs next to nothing: a profile function is set in a thread for a moment after it has opened
    a connection, and from the arming on in the threads that talk to SQLite or that armed it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._point: Point | None = None
        self._code: CodeType | None = None
        self._event = "call"
        self._pattern: re.Pattern[str] | None = None
        self._left = 0
        self._watching: Callable[[FrameType, str, Any], None] | None = None
        self._everywhere = False
        self._counting = threading.Lock()
        self._here = threading.local()

    def install(self, *, everywhere: bool = False) -> None:
        """Listen to every connection that is opened from now on; if `everywhere`, in all new threads from their start.

        That is slow, and needed only for functions that are called before the thread's first statement.
        """
        sys.addaudithook(self._audited)
        self._everywhere = everywhere
        if everywhere:
            threading.setprofile(self._profiled)

    def arm(self, point: Point) -> None:
        """Die there."""
        pattern = point.statement or point.at
        assert bool(pattern) != bool(point.function)
        self._pattern = re.compile(pattern, re.IGNORECASE | re.DOTALL) if pattern else None
        self._code = _code_of(point.function) if point.function else None
        self._event = "call" if point.when == "before" else "return"
        self._left = point.nth
        if point.written:
            # Python ignores the signal; unheeded, it ends a process in the middle of the write, like a kill.
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        self._point = point
        self._watching = self._watch(point)
        sys.setprofile(self._watching)

    def _watch(self, point: Point) -> Callable[[FrameType, str, Any], None] | None:
        """What has to see every call, which takes most of the time: for a statement's beginning nothing has to."""
        if point.function:
            return self._called
        return self._profiled if point.when == "after" and not point.written else None

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code is self._code and event == self._event:
            self._hit()

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        # The connection is not ready at this moment: it is listened to at whatever happens next in this thread.
        if event == "sqlite3.connect/handle":
            self._here.fresh = [*getattr(self._here, "fresh", ()), arguments[0]]
            sys.setprofile(self._profiled)

    def _profiled(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename == __file__:
            return
        here = self._here
        if fresh := getattr(here, "fresh", None):
            here.fresh = [connection for connection in fresh if not self._listened(connection)]
            if not here.fresh and not self._everywhere:
                sys.setprofile(self._watching)
        running = getattr(here, "running", None)
        if running is not None:
            # Where the profile function came too late to see the statement begin, its end may not be told of.
            ended = event == "c_return" and argument.__name__ in {"execute", "executemany"}
            if ended or running == "unseen":
                self._hit()
        elif event == self._event and frame.f_code is self._code:
            self._hit()

    def _listened(self, connection: sqlite3.Connection) -> bool:
        try:
            connection.set_trace_callback(self._traced)
        except sqlite3.ProgrammingError:
            return False
        return True

    def _traced(self, statement: str) -> None:
        point = self._point
        if point is None:
            return
        seen = sys.getprofile() is not None
        # Whoever is to listen to a new connection stays until that is done.
        if sys.getprofile() != self._watching and not getattr(self._here, "fresh", None):
            sys.setprofile(self._watching)
        if self._pattern is None or not self._pattern.match(statement):
            return
        if point.written:
            self._limit(point)
        elif point.when == "before":
            self._hit()
        else:
            self._here.running = "seen" if seen else "unseen"

    def _hit(self) -> None:
        self._here.running = None
        with self._counting:
            self._left -= 1
            reached = self._left == 0
        if reached:
            self._tell()
            die()

    def _tell(self) -> None:
        assert self._point is not None
        os.write(1, json.dumps({"reached": self._point.plain()}).encode() + b"\n")

    def _limit(self, point: Point) -> None:
        import resource  # noqa: PLC0415 - Unix has it

        with self._counting:
            self._left -= 1
            if self._left != 0:
                return
        self._tell()
        file = self._folder / point.written
        size = (file.stat().st_size if file.exists() else 0) + point.beyond
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _code_of(name: str) -> CodeType:
    """The code of a function; a name that does not exist any more is an error and not a point never reached."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    code = inspect.unwrap(found).__code__
    assert isinstance(code, CodeType)
    return code
