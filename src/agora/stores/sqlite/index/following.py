from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agora.errors import EmbeddingMismatch, StoreCorrupt, StoreUnavailable
from agora.model.deadline import Deadline
from agora.ports.vector_index import Progress, Rows, Source, Unusable, VectorView
from agora.stores.boot import boot_id
from agora.stores.sqlite.index.compacting import Compaction, Writing
from agora.stores.sqlite.index.folder import Folder
from agora.stores.sqlite.index.generation import find
from agora.stores.sqlite.index.held import Files, Held, Loading, applied, from_files
from agora.stores.sqlite.index.verified import Verified
from agora.stores.sqlite.index.view import EXACT_BELOW, IndexView
from agora.stores.sqlite.kernels import choose_kernel
from agora.stores.sqlite.source import SqliteSource

Opening = Callable[[], contextlib.AbstractContextManager[Source]]

_STEP = 0.25
"""Seconds after which a wait looks whether its call was cancelled."""
_MEANWHILE = "searches read everything from the notes until the next compaction"
_TRIES = 5
"""Generations that may be replaced while their files are opened, one after the other, before it counts as damage."""


class SegmentedIndex:
    """The store's own vector index: files named in SQLite, shared by all processes, and the journal's tail in memory.

    Implements `agora.ports.vector_index.VectorIndex`. Views are immutable: a search goes on over what it began with
    while other threads apply newer changes and other processes write newer files. Files that cannot be used cost
    memory and time, never an answer: everything is read from the rows then, `details` says why, and the next
    compaction writes new ones.
    """

    def __init__(  # noqa: PLR0913 - what an index is made of
        self,
        folder: Path,
        dimension: int,
        writing: Writing,
        *,
        memory_mb: int | None = None,
        compact_dead: float = 0.2,
        exact_below: int = EXACT_BELOW,
        kernel: str | None = None,
        patience: float = 60.0,
    ) -> None:
        """An index in `folder`, which is made when it is first needed.

        `memory_mb`: megabytes of files that stay mapped, the newest; None for all. `compact_dead`: share of dead
        passages that makes compacting worth it. `exact_below`: passages of the store, below which
        no bits are used. `patience`: seconds to wait for other processes, where somebody asked for what they hinder.
        """
        self._dimension = dimension
        self._kernel = choose_kernel(kernel)
        self._exact_below = exact_below
        self._lock = threading.Lock()
        self._closed = False
        self._loading: Loading | None = None
        self._busy: Deadline | None = None
        self._files = Files(
            Folder(folder),
            Verified(folder, boot_id()),
            None if memory_mb is None else memory_mb << 20,
        )
        self._compaction = Compaction(self._files, writing, self._snapshot, dead=compact_dead, patience=patience)
        self._now_held(Held.nothing(dimension))

    @contextlib.contextmanager
    def follow(self, source: Source, deadline: Deadline) -> Iterator[VectorView]:
        """As `VectorIndex.follow`.

        Raises: DeadlineExceeded, Cancelled, also while another thread loads the index; StoreCorrupt.
        """
        yield self._followed(_ours(source), deadline)

    def _followed(self, source: SqliteSource, deadline: Deadline) -> VectorView:
        # The transaction begins under the lock: the index is never ahead of it.
        self._take(deadline)
        try:
            source.begin()
            held = self._held
            seen = source.head, source.hash, source.state, source.store
            if seen != (held.sequence, held.hash, held.state, held.store):
                self._now_held(self._brought_to(source, deadline))
        except EmbeddingMismatch as error:
            return Unusable(error)
        else:
            return self._view
        finally:
            self._lock.release()

    def _take(self, deadline: Deadline) -> None:
        if not self._lock.acquire(blocking=False):
            while True:
                deadline.check()
                if self._lock.acquire(timeout=min(_STEP, deadline.remaining() + 0.001)):
                    break
        if self._closed:
            self._lock.release()
            raise StoreUnavailable("the store is closed")

    def _now_held(self, held: Held) -> None:
        self._held = held
        self._view = IndexView(held.all(), self._kernel, self._exact_below)

    def _brought_to(self, source: SqliteSource, deadline: Deadline) -> Held:
        self._busy = deadline
        try:
            return self._newer(source, deadline)
        finally:
            self._busy = None

    def _newer(self, source: SqliteSource, deadline: Deadline) -> Held:
        held = self._held
        # Another store, another past of this one (a copy was put back), a journal pruned past us; or newer files.
        same = source.store == held.store and source.hash_at(held.sequence) == held.hash
        if not same or source.state != held.state:
            held = self._opened(source, deadline)
        return applied(held, source, deadline) if source.head != held.sequence else held

    def _opened(self, source: SqliteSource, deadline: Deadline) -> Held:
        """What the snapshot's generation holds, or, where it cannot be used, the rows."""
        for _ in range(_TRIES):
            generation = find(source.connection, source.encoder_id)
            if generation is None:
                return self._loaded(source, None, deadline)
            try:
                return from_files(source, generation, self._files, self._held, deadline)
            except StoreCorrupt as error:
                problem = error.message
                break
            except FileNotFoundError as error:
                problem = f"the index file {Path(error.filename).name} is missing"
            except OSError as error:
                problem = f"the index cannot be read: {error.strerror or error}"
                break
            # Another process may have written a newer generation and deleted this one's files since we began.
            source.begin_again()
            if source.state == generation.state:
                break
        return self._loaded(source, f"{problem}; {_MEANWHILE}", deadline)

    def _loaded(self, source: SqliteSource, problem: str | None, deadline: Deadline) -> Held:
        if self._loading is None or not self._loading.goes_on(source):
            self._loading = Loading(source)
        held = self._loading.read(source, problem, deadline)
        self._loading = None
        return held

    @contextlib.contextmanager
    def _snapshot(self, source: Opening, deadline: Deadline) -> Iterator[tuple[SqliteSource, Held]]:
        """A transaction under way and what is held as of it. Raises: as `follow`; EmbeddingMismatch."""
        with source() as opened:
            ours = _ours(opened)
            self._take(deadline)
            try:
                ours.begin()
                self._now_held(self._brought_to(ours, deadline))
                held = self._held
            finally:
                self._lock.release()
            yield ours, held

    def compact(self, source: Opening, *, force: bool) -> dict[str, Any] | None:
        """As `VectorIndex.compact`. Without `force` it does nothing while another process compacts.

        Raises: IndexUnavailable if the files cannot be written, or, with `force`, another process is at it for long.
        """
        return self._compaction.compact(source, force=force)

    def rebuild(self, source: Opening, progress: Progress | None = None) -> dict[str, Any]:
        """As `VectorIndex.rebuild`. Queries go on over the old files until the new ones are complete.

        Raises: as `compact`; EmbeddingMismatch.
        """
        return self._compaction.rebuild(source, progress)

    def purge(self, source: Opening, rows: Rows) -> None:
        """As `VectorIndex.purge`. Views that were handed out keep what they had, in memory."""
        self._compaction.purge(source, rows)

    def details(self) -> dict[str, Any]:
        """As `VectorIndex.details`: of what was last used, without looking at the files."""
        held = self._held
        return {
            "kind": "sqlite",
            "generation": 0 if held.generation is None else held.generation.number,
            "in_segments": sum(part.body.count for part in held.parts),
            "in_tail": held.tail.count,
            "dead": held.dead(),
            "kernel": self._kernel.name,
            "passed_over": list(self._kernel.passed_over),
            "bytes_mapped": held.mapped(),
            "problem": held.problem,
        }

    def close(self) -> None:
        """As `VectorIndex.close`. A view that is still in use keeps its files until it is let go."""
        self._closed = True
        if (busy := self._busy) is not None:
            # Nobody needs what is being read any more.
            busy.cancel()
        with self._lock:
            self._loading = None
            self._now_held(Held.nothing(self._dimension))


def _ours(source: Source) -> SqliteSource:
    assert isinstance(source, SqliteSource), "this index follows the SQLite store alone"
    return source
