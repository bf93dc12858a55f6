from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agora.errors import ConfigError, IndexUnavailable
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector
from agora.ports.log import Log
from agora.ports.vector_index import Progress, Rows, Source
from agora.stores.chroma.applying import still_time
from agora.stores.chroma.client import Knowledge, Where, load
from agora.stores.chroma.folder import Folder
from agora.stores.chroma.following import Follower, Position

T = TypeVar("T")

_STEP = 0.1
"""Seconds after which a wait looks whether its call was cancelled."""

_PATIENCE = 2.0
"""Seconds to wait for one and the same other process that uses the index."""

_MEMORY = 10.0
"""Seconds for which a process that waited in vain does not wait again, but only looks."""

_REPEAT = 30.0
"""Seconds after a failure before the index is opened again."""


@dataclass(slots=True)
class Asked:
    """Whose question it is: a snapshot, and a position of the index that it is not older than.

    `lag` is how many changed rows may be looked at by hand, in place of a collection that is brought to them.
    """

    source: Source
    known: Position | None
    deadline: Deadline
    lag: int


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the nearest passages, best first, with repeats.

    `last` is the similarity of the last passage, `whole` says that there are no more; `newer` are rows that may be
    otherwise in the collection than in the snapshot, or None if nobody knows them.
    """

    rows: Rows
    last: float
    whole: bool
    newer: Rows | None


class Engine:
    """The one user of a Chroma folder in this process. Thread-safe: one call at a time reaches Chroma.

    What a call sees of the collection may be ahead of its snapshot or behind it, by rows that it is told.
    """

    def __init__(self, path: Path, *, owned: bool, log: Log | None = None) -> None:
        """Raises: ConfigError for a folder that is not Agora's."""
        self._folder = Folder(path, owned=owned)
        self._follower = Follower(self._folder, log)
        self._lock = threading.Lock()
        self._closed = False
        self._refused_until = 0.0
        self._failure: tuple[float, IndexUnavailable] | None = None
        self._problem: str | None = None

    @property
    def position(self) -> Position | None:
        """How far the index is; None if this process has not opened it. Waits for nobody."""
        return self._follower.position

    def search(self, asked: Asked, vector: Vector, limit: int, where: Where | None) -> Found | None:
        """At most `limit` passages near `vector`; None if the collection cannot serve the snapshot.

        Raises: IndexUnavailable, MissingExtra, ConfigError, DeadlineExceeded, Cancelled.
        """

        def search(knowledge: Knowledge) -> Found:
            rows, last = knowledge.query(vector, limit, where)
            # Where a graph does not lead to all of its nodes, fewer than all come back.
            whole = len(rows) < limit and len(rows) == knowledge.count()
            return Found(rows, last, whole, self._follower.newer(asked.source))

        return self._serve(asked, search)

    def require(self, asked: Asked) -> None:
        """Return if the index can be used, brought to the snapshot. Raises: as `search`."""
        self._serve(asked, lambda _: None)

    def may_hold(self, source: Source, rows: Rows, deadline: Deadline) -> bool:
        """Whether a file of the index may hold bytes of `rows`, purged as of the snapshot. Raises: as `search`."""
        with self.alone(deadline) as follower:
            return follower.may_hold(source, rows)

    def size(self, asked: Asked) -> int:
        """Passages that the snapshot has in the index. Raises: as `search`."""

        def size(knowledge: Knowledge) -> int | None:
            newer = self._follower.newer(asked.source)
            if newer is None:
                return None
            there = len(knowledge.of(newer.tolist()))
            return knowledge.count() - there + len(asked.source.passages(newer).rows)

        found = self._serve(asked, size)
        return asked.source.count() if found is None else found

    @contextlib.contextmanager
    def alone(self, deadline: Deadline) -> Iterator[Follower]:
        """The collection, for this thread and this process alone, for the block. Raises: as `search`."""
        while not self._lock.acquire(timeout=min(_STEP, deadline.remaining())):
            if not deadline.remaining() and (building := self._follower.building) is not None:
                still_time(deadline, *building)
            deadline.check()
        try:
            if self._closed:
                raise IndexUnavailable("the index is closed")
            with self._explained():
                self._hold(deadline)
                yield self._follower
        finally:
            self._lock.release()

    def rebuild(self, source: Source, reason: str, deadline: Deadline, progress: Progress | None = None) -> int:
        """Build everything anew, as of the snapshot of `source`; the number of passages. Raises: as `search`."""
        with self.alone(deadline) as follower:
            self._failure = None
            return self._tried(lambda: follower.rebuild(source, reason, deadline, progress))

    def details(self) -> dict[str, Any]:
        """As `VectorIndex.details`. Waits for nobody."""
        found: dict[str, Any] = {"kind": "chroma", "path": str(self._folder.path), "problem": self._problem}
        with contextlib.suppress(OSError):
            # As any process may see it: this one need not have opened the index.
            if (mark := self._folder.read()) is not None:
                found |= {"sequence": mark.sequence, "dead": mark.dead}
        if (building := self._follower.building) is not None:
            found["building"] = {"done": building[0], "of": building[1]}
        if (rebuilt := self._follower.rebuilt) is not None:
            found["rebuilt"] = rebuilt
        return found

    def close(self) -> None:
        """Let the files and the lock go. Further use fails."""
        with self._lock:
            self._closed = True
            self._follower.close()
            self._folder.lock.release()

    def _serve(self, asked: Asked, ask: Callable[[Knowledge], T | None]) -> T | None:
        def serve() -> T | None:
            if not self._follower.bring(asked.source, asked.known, asked.deadline, asked.lag):
                return None
            position = self._follower.position
            if position is not None and position.sequence <= asked.source.head:
                asked.known = position
            return ask(self._follower.knowledge)

        with self.alone(asked.deadline):
            if self._failure is not None and time.monotonic() < self._failure[0]:
                raise self._failure[1]
            return self._tried(serve)

    def _tried(self, task: Callable[[], T]) -> T:
        """What `task` returns. Where Chroma fails it is opened once more: what it then lacks is built anew."""
        follower = self._follower
        try:
            return task()
        except IndexUnavailable:
            if not follower.is_broken:
                raise
        follower.forget()
        try:
            return task()
        except IndexUnavailable as error:
            if follower.is_broken:
                follower.forget()
                self._failure = time.monotonic() + _REPEAT, error
            raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Keep what goes wrong in the block as the problem, until a block goes well."""
        try:
            yield
        except OSError as error:
            unavailable = IndexUnavailable(
                f"the Chroma index in {self._folder.path} cannot be used: {error}",
                hint="Saves and lexical queries work. See that the folder can be written and the disk is not full.",
            )
            self._problem = unavailable.message
            raise unavailable from error
        except (IndexUnavailable, ConfigError) as error:
            self._problem = error.message
            raise
        self._problem = None

    def _hold(self, deadline: Deadline) -> None:
        """Be the one process that uses the folder."""
        lock = self._folder.lock
        if lock.held:
            return
        # Before the lock: others need not wait for an import.
        load()
        self._folder.make()
        patience = 0.0 if time.monotonic() < self._refused_until else _PATIENCE
        try:
            lock.acquire(deadline, patience)
        except IndexUnavailable:
            if patience:
                self._refused_until = time.monotonic() + _MEMORY
            raise
