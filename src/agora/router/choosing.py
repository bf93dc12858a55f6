"""Tools by what is wanted: the catalogue of what there is, kept in step, and what a request comes to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from agora.errors import AgoraError, EmbeddingError
from agora.model.deadline import Deadline
from agora.ports.log import Log
from agora.router.catalogue import Catalogue, Matrix
from agora.router.gateway import Candidate, Choice
from agora.router.named import tools_meant
from agora.router.policy import verdict
from agora.router.registry import Backend
from agora.router.select import Candidate as Ranked
from agora.router.select import Selection, Thresholds, decide, select
from agora.router.texts import texts_of
from agora.router.vectors import TextVectors

_WAITS = 5.0
"""Seconds that a request waits for the vectors of tools that were never seen; then words alone find them."""

_READING = 600.0
"""Seconds that the vectors of one backend's tools may take."""


class MeaningChooser:
    """Implements `agora.router.gateway.Chooser`. Vectors of new tools are made in a thread of its own."""

    def __init__(self, vectors: Callable[[Deadline], TextVectors], settings: Thresholds, log: Log) -> None:
        """`vectors` gives what makes them, which may have to be opened first."""
        self._vectors = vectors
        self._settings = settings
        self._log = log
        self._changed = threading.Condition()
        self._catalogue = Catalogue()
        # Which tools of each backend the catalogue has, and those that it has with vectors.
        self._taken: dict[str, tuple[object, str]] = {}
        self._unread: dict[str, Backend] = {}
        self._reader: threading.Thread | None = None
        self._closed = False
        self._failure: AgoraError | None = None

    def choose(self, intent: str, backends: Sequence[Backend], limit: int, deadline: Deadline) -> Choice:
        """As `Chooser.choose`."""
        found, degraded = self._found(intent, backends, limit, deadline)
        if len(backends) == 1 or len(found.candidates) == 1:
            # There is no other backend to be ahead of: the lead is that over its other tools.
            found = replace(found, candidates=found.tools)
        by_name = {each.table.name: each for each in backends}

        def reads(backend: str, tool: str) -> bool:
            owner = by_name[backend]
            return verdict(owner.tool(tool), owner.table).access == "read"

        chosen = decide(found, reads, self._settings)
        return Choice(tuple(map(_shown, found.candidates)), None if chosen is None else _shown(chosen), degraded)

    def meant(self, target: str, backends: Sequence[Backend]) -> tuple[tuple[str, str], ...]:
        """As `Chooser.meant`."""
        with self._changed:
            self._take(backends)
            return tools_meant(target, self._catalogue, frozenset(each.table.name for each in backends))

    def ranked(self, query: str, backends: Sequence[Backend], limit: int, deadline: Deadline) -> Choice:
        """As `Chooser.ranked`."""
        found, degraded = self._found(query, backends, limit, deadline)
        return Choice(tuple(map(_shown, found.tools)), None, degraded)

    def close(self) -> None:
        """Make no more vectors."""
        with self._changed:
            self._closed = True
            self._unread.clear()
            reader = self._reader
        if reader is not None:
            reader.join(_WAITS)

    def _found(
        self, words: str, backends: Sequence[Backend], limit: int, deadline: Deadline
    ) -> tuple[Selection, tuple[str, ...]]:
        """What these words come to among these backends, and what was not looked at for it."""
        catalogue = self._in_step(backends, deadline)
        degraded: list[str] = []
        try:
            asked = self._vectors(deadline).question_vectors(words, deadline)
        except EmbeddingError as error:
            asked = None
            degraded.append(f"meaning was not looked at, words alone decide: {error.message}")
        found = select(words, catalogue, asked, frozenset(each.table.name for each in backends), limit)
        if found.unread:
            why = "" if self._failure is None else f" ({self._failure.message})"
            degraded.append(f"found by words alone so far: {', '.join(found.unread)}{why}")
        return found, tuple(degraded)

    def _in_step(self, backends: Sequence[Backend], deadline: Deadline) -> Catalogue:
        """The catalogue with these backends' tools as they are now, after a moment for vectors that are missing."""
        with self._changed:
            self._take(backends)
            wanted = {each.table.name for each in backends}
            self._changed.wait_for(
                lambda: not wanted & set(self._unread) or self._closed, min(_WAITS, deadline.remaining())
            )
            return self._catalogue

    def _take(self, backends: Sequence[Backend]) -> None:
        """Put what has changed into the catalogue, without vectors, and have these made. Under the lock."""
        for backend in backends:
            name, tools, description = backend.table.name, backend.tools, backend.table.description
            known = self._taken.get(name)
            if tools is None or (known is not None and known[0] is tools and known[1] == description):
                continue
            self._taken[name] = tools, description
            self._catalogue = self._catalogue.with_backend(name, description, list(tools.approved.values()))
            self._unread[name] = backend
        if self._unread and self._reader is None and not self._closed:
            self._reader = threading.Thread(target=self._read, name="agora-catalogue", daemon=True)
            self._reader.start()

    def _read(self) -> None:
        """Make the vectors of what has none, one backend after the other."""
        while True:
            with self._changed:
                if self._closed or not self._unread:
                    self._reader = None
                    return
                name, backend = next(iter(self._unread.items()))
                tools, description = backend.tools, backend.table.description
            listed = [] if tools is None else list(tools.approved.values())
            made: Matrix | None = None
            try:
                patience = Deadline(_READING)
                made = self._vectors(patience).text_vectors(texts_of(name, description, listed), patience)
            except AgoraError as error:
                self._failure = error
                self._log.warning("tools are found by words alone", backend=name, code=error.code)
            with self._changed:
                if backend.tools is tools and self._unread.get(name) is backend:
                    if made is not None:
                        self._catalogue = self._catalogue.with_backend(name, description, listed, made)
                        self._failure = None
                    else:
                        # Tried again when the tools are looked at next.
                        self._taken.pop(name, None)
                    del self._unread[name]
                self._changed.notify_all()


def _shown(ranked: Ranked) -> Candidate:
    return Candidate(ranked.backend, ranked.tool, round(ranked.score, 4), round(ranked.margin, 4), ranked.parts)
