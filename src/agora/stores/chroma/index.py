from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from agora.errors import EmbeddingMismatch
from agora.model.deadline import Deadline
from agora.ports.log import Log
from agora.ports.vector_index import Progress, Rows, Source, Unusable, VectorView
from agora.stores.chroma.compacting import Compaction
from agora.stores.chroma.engine import Asked, Engine
from agora.stores.chroma.view import ChromaView

Opening = Callable[[], AbstractContextManager[Source]]

FEW = 500
"""Rows up to which a search reads them all: the answer is exact, and no slower than to ask Chroma."""

LAG = 64
"""Changed rows that a search looks at by hand: half a millisecond, where Chroma takes several for each."""

_PIECE = 1.0
"""Seconds of a compaction that a server does at a time: it can end in between."""

_UPKEEP = 7 * 86_400.0
"""Seconds that work may take for which nobody waits."""


class ChromaIndex:
    """Vectors in a Chroma collection; implements `agora.ports.vector_index.VectorIndex`.

    Chroma allows one process on a folder. The first one whose call needs the index holds it until it closes; the
    calls of others raise `IndexUnavailable` when they ask, and their saves are caught up with by whoever holds it.
    Several indexes of one process on one folder share it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        owned: bool = False,
        dead: float = 0.2,
        few: int = FEW,
        lag: int = LAG,
        log: Log | None = None,
    ) -> None:
        """An index in `folder`, which is made when it is needed.

        `owned` allows to delete a Chroma database there that does not say whose it is; from a share of `dead` passages
        on `compact` finds work; up to `few` rows are searched without Chroma, and up to `lag` changed rows wait for
        more before they are put into it.

        Raises: ConfigError for a folder that holds somebody else's Chroma database.
        """
        self._path = folder.expanduser().resolve()
        self._engine = _shared(self._path, owned=owned, log=log)
        self._closed = False
        self._compaction = Compaction(self._engine)
        self._dead = dead
        self._few = few
        self._lag = lag

    @contextlib.contextmanager
    def follow(self, source: Source, deadline: Deadline) -> Iterator[VectorView]:
        """As `VectorIndex.follow`. Chroma is not touched before the view is asked for something that needs it.

        No lock is held for the block: the collection may move on under the view, which then looks at the rows that
        changed since its snapshot by hand.
        """
        deadline.check()
        known = self._engine.position
        try:
            source.begin()
        except EmbeddingMismatch as error:
            yield Unusable(error)
        else:
            yield ChromaView(self._engine, Asked(source, known, deadline, self._lag), self._few)

    def compact(self, source: Opening, *, force: bool) -> dict[str, Any] | None:
        """As `VectorIndex.compact`: the graph is built anew without its dead nodes.

        Without `force` a second of it is done at each call, and none in a process that has not used the index.
        """
        if force:
            return self._compaction.run(source, None, _UPKEEP)
        if self._engine.position is None:
            return None
        return self._compaction.run(source, self._dead, _PIECE)

    def rebuild(self, source: Opening, progress: Progress | None = None) -> dict[str, Any]:
        """As `VectorIndex.rebuild`. Queries that need the index are told so meanwhile.

        Raises: IndexUnavailable if another process uses the index, or Chroma fails.
        """
        began, dropped = time.monotonic(), int(self._engine.details().get("dead", 0))
        with source() as opened:
            opened.begin()
            passages = self._engine.rebuild(opened, "that was asked for", Deadline(_UPKEEP), progress)
        seconds = round(time.monotonic() - began, 3)
        return {"generation": 0, "passages": passages, "dropped": dropped, "seconds": seconds}

    def purge(self, source: Opening, rows: Rows) -> None:
        """As `VectorIndex.purge`: every file is deleted, and the index built anew.

        Chroma cannot erase one passage: its graph keeps the vector of a dead node, its database keeps deleted bytes in
        free pages. Nothing is done if none of the rows changed since the files were begun, since they never held them.
        Queries that need the index are told so meanwhile.
        """
        deadline = Deadline(_UPKEEP)
        with source() as opened:
            opened.begin()
            if len(rows) and self._engine.may_hold(opened, rows, deadline):
                self._engine.rebuild(opened, "rows were purged", deadline)

    def details(self) -> dict[str, Any]:
        """As `VectorIndex.details`."""
        return self._engine.details()

    def close(self) -> None:
        """As `VectorIndex.close`; the last one in the process that uses the folder frees it for others."""
        if not self._closed:
            self._closed = True
            _release(self._path)


_engines: dict[Path, tuple[Engine, int]] = {}
_guard = threading.Lock()


def _shared(path: Path, *, owned: bool, log: Log | None) -> Engine:
    with _guard:
        engine, users = _engines.get(path) or (Engine(path, owned=owned, log=log), 0)
        _engines[path] = engine, users + 1
    return engine


def _release(path: Path) -> None:
    with _guard:
        engine, users = _engines.pop(path)
        if users > 1:
            _engines[path] = engine, users - 1
            return
    engine.close()
