from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agora.errors import IndexUnavailable
from agora.model.deadline import Deadline
from agora.ports.log import Log
from agora.ports.vector_index import Changed, Progress, Rows, Source
from agora.stores.chroma.applying import apply, batches, still_time
from agora.stores.chroma.client import Client, Knowledge
from agora.stores.chroma.folder import Folder
from agora.stores.chroma.mark import Mark
from agora.stores.chroma.recent import Recent

_NONE: Rows = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Position:
    """How far an index was at one moment; `past` is another object whenever it is opened or begun anew."""

    past: object
    store: str
    sequence: int
    hash: bytes | None


class Follower:
    """The collection in a folder, kept in step with a journal. For one thread at a time, and one process.

    It may be ahead of a snapshot, or a few changes behind it: the rows that changed in between are known by `newer`.
    """

    def __init__(self, folder: Folder, log: Log | None) -> None:
        self.folder = folder
        self.position: Position | None = None
        """How far it is; None if this process has not opened it. May be read by any thread."""
        self.building: tuple[int, int] | None = None
        """Passages done, and of how many, while it is built. May be read by any thread."""
        self.rebuilt: str | None = None
        """Why it was built anew, if this process did so."""
        self._recent = Recent(0)
        self._behind: Rows = _NONE
        self._log = log
        self._client: Client | None = None
        self._knowledge: Knowledge | None = None
        self._mark: Mark | None = None
        self._past = object()
        self._proven = False

    @property
    def is_open(self) -> bool:
        """Whether Chroma is open."""
        return self._client is not None

    @property
    def is_broken(self) -> bool:
        """Whether nothing can be asked of Chroma before it is opened."""
        return self._client is None or self._client.failed

    @property
    def client(self) -> Client:
        """The Chroma that is open."""
        if self._client is None:
            raise IndexUnavailable("the Chroma index is not open")
        return self._client

    @property
    def knowledge(self) -> Knowledge:
        """The collection that is open."""
        if self._knowledge is None:
            raise IndexUnavailable("the Chroma index is not open")
        return self._knowledge

    @property
    def mark(self) -> Mark:
        """What the folder holds."""
        if self._mark is None:
            raise IndexUnavailable("the Chroma index is not open")
        return self._mark

    def bring(self, source: Source, known: Position | None, deadline: Deadline, lag: int = 0) -> bool:
        """Have the collection at the snapshot of `source`, or ahead of it; False if it cannot serve it.

        `known` is the position before the snapshot was taken. It may stay behind by `lag` changed rows: to look at
        them by hand is less work than to put each into the graph when somebody asks.

        Raises: IndexUnavailable, ConfigError, DeadlineExceeded, Cancelled, OSError.
        """
        if self.is_broken:
            self.forget()
            self._open(source)
        mark, self._behind = self.mark, _NONE
        if mark.store == source.store and mark.sequence > source.head:
            if known is None or known.past is not self._past:
                # A snapshot from before this index was opened, or another past: who can tell. It is searched by hand.
                return False
            same = known.sequence <= source.head and source.hash_at(known.sequence) == known.hash
        else:
            same = mark.store == source.store and source.hash_at(mark.sequence) == mark.hashed
        if not same:
            self._begin_anew(source, "it was of another store, another model or another past of this store")
        elif mark.sequence < source.head:
            changed = source.changed(mark.sequence)
            if self._proven and mark.after is None and len(changed.rows) <= lag:
                self._behind = changed.rows
            else:
                self._apply(source, changed, deadline)
        if self.mark.after is not None:
            if self.mark.sequence > source.head:
                return False
            self._load(source, deadline, None)
        if not self._proven and self.mark.sequence == source.head and not self._agrees(source):
            self._begin_anew(source, "it did not hold what the rows say")
            self._load(source, deadline, None)
        return True

    def newer(self, source: Source) -> Rows | None:
        """Rows that the collection may hold otherwise than the snapshot it was brought to; None if nobody knows."""
        recent = self._recent.since(source.head)
        return None if recent is None else np.union1d(recent, self._behind)

    def rebuild(self, source: Source, reason: str, deadline: Deadline, progress: Progress | None) -> int:
        """Delete everything and build it as of the snapshot of `source`; the number of passages. Raises: as `bring`."""
        self._begin_anew(source, reason)
        self._load(source, deadline, progress)
        return self.knowledge.count()

    def may_hold(self, source: Source, rows: Rows) -> bool:
        """Whether a file may hold bytes of `rows`, which are purged as of the snapshot."""
        mark = self.folder.read()
        if mark is None:
            return self.folder.holds_anything()
        if mark.store != source.store or source.hash_at(mark.sequence) != mark.hashed:
            return True
        return bool(np.isin(source.changed(mark.built).rows, rows).any())

    def changing(self) -> None:
        """Say that Chroma's files may change from now on, before they do."""
        if self.mark.state != "writing":
            self._write(replace(self.mark, state="writing"))

    def settled(self, **changes: Any) -> None:  # noqa: ANN401 - fields of a mark
        """Say that Chroma's files are whole, after they are, and what they hold."""
        self.folder.hide()
        self._write(replace(self.mark, state="open", files=self.folder.graphs(self.mark.files), **changes))

    def reopen(self, without: list[Path]) -> None:
        """Open Chroma again, without these graphs of a collection that is gone: it lets go of them only then."""
        self.forget()
        self.folder.clear(without)
        self.settled()
        self._open_as(self.mark)

    def forget(self) -> None:
        """Close Chroma, and leave the mark as it is."""
        client, self._client, self._knowledge = self._client, None, None
        if client is not None:
            with contextlib.suppress(IndexUnavailable):
                client.close()

    def close(self) -> None:
        """Close Chroma in order: what lies there is proven by checksums when it is opened again."""
        client, mark = self._client, self._mark
        self.forget()
        if client is not None and not client.failed and mark is not None and mark.state == "open":
            # Without this it is proven by looking, which takes longer.
            with contextlib.suppress(OSError):
                self.folder.write(replace(mark, state="closed", files=self.folder.closed(mark.files)))

    def _open(self, source: Source) -> None:
        mark = self.folder.read()
        reason = "there was none" if mark is None else self.folder.damage(mark)
        if mark is not None and reason is None:
            try:
                self._open_as(mark)
            except IndexUnavailable as error:
                reason = error.message
            else:
                return
        self._begin_anew(source, reason or "")

    def _open_as(self, mark: Mark) -> None:
        """Open what `mark` says; that it is so is still to be proven if no process closed it in order."""
        self._past, self._recent = object(), Recent(mark.sequence)
        self._proven = mark.state == "closed"
        self._write(replace(mark, state="opening"))
        self._client = Client(self.folder.path)
        self._knowledge = self._client.get(mark.collection)
        # Both read the graph: should that end the process, the next one finds that it was opening.
        self._knowledge.count()
        self._knowledge.prove(every=not self._proven)
        if mark.keep is not None:
            self._client.drop_next()
        self.settled(keep=None)

    def _begin_anew(self, source: Source, reason: str) -> None:
        """Delete everything; have an empty collection as of the snapshot, in which no row is yet."""
        self.forget()
        self.folder.require_ours()
        self.rebuilt = reason
        if self._log is not None:
            self._log.info("the Chroma index is built anew", reason=reason)
        self._past, self._recent, self._proven = object(), Recent(source.head), False
        self._write(Mark(source.store, source.head, _hashed(source), 0, built=source.head))
        self.folder.clear()
        self._client = Client(self.folder.path)
        self._knowledge = self._client.create()
        self.settled(collection=self._knowledge.id)

    def _load(self, source: Source, deadline: Deadline, progress: Progress | None) -> None:
        """Put in the rows above the mark's `after`, which moves up with them: a build that stops goes on later."""
        done, total = self.knowledge.count(), source.count()
        try:
            for block in source.everything(self.mark.after or 0):
                for start, stop in batches(block):
                    self.building = min(done, total), total
                    still_time(deadline, *self.building)
                    self.changing()
                    self.knowledge.upsert(block, start, stop)
                    # The last row may have more passages in the next block.
                    self.settled(after=int(block.rows[stop - 1]) - 1)
                    done += stop - start
                    if progress is not None:
                        progress(min(done, total), total)
            self.settled(after=None)
        finally:
            self.building = None
        if not self._agrees(source):
            self.client.failed = True
            raise IndexUnavailable(f"Chroma in {self.folder.path} does not hold what was put in")

    def _agrees(self, source: Source) -> bool:
        self._proven = self.knowledge.count() == source.count()
        return self._proven

    def _apply(self, source: Source, changed: Changed, deadline: Deadline) -> None:
        self._recent.add(source.head, changed.rows)
        self.changing()
        try:
            dead = apply(self.knowledge, source, changed, deadline)
        except Exception:
            if not self.client.failed:
                # Stopped by its deadline: what was done is done again later.
                self.settled()
            raise
        self.settled(sequence=source.head, hash=_hashed(source), dead=self.mark.dead + dead)

    def _write(self, mark: Mark) -> None:
        self.folder.write(mark)
        self._mark = mark
        self.position = Position(self._past, mark.store, mark.sequence, mark.hashed)


def _hashed(source: Source) -> str | None:
    found = source.hash_at(source.head)
    return None if found is None else found.hex()
