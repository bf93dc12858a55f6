from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from agora.errors import AgoraError, EmbeddingMismatch, IndexUnavailable
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.ports.clock import Clock
from agora.ports.vector_index import Passages, Progress, Rows, Source
from agora.stores.sqlite.index import generation as generations
from agora.stores.sqlite.index.choosing import Chosen, choose, choose_without, worth
from agora.stores.sqlite.index.generation import Generation
from agora.stores.sqlite.index.held import Files, Held
from agora.stores.sqlite.index.layout import MOST, Named
from agora.stores.sqlite.index.lock import alone
from agora.stores.sqlite.index.marks import Marks
from agora.stores.sqlite.index.segment import Segment
from agora.stores.sqlite.index.tail import in_pieces
from agora.stores.sqlite.index.verified import mark
from agora.stores.sqlite.index.writing import Order, write_segment
from agora.stores.sqlite.source import SqliteSource

Opening = Callable[[], contextlib.AbstractContextManager[Source]]
Snapshot = Callable[[Opening, Deadline], contextlib.AbstractContextManager[tuple[SqliteSource, Held]]]

_LOCK = "compact.lock"
_SECONDS = 3600.0
"""Nobody waits for an answer: what is written in the background may take as long as it takes."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Writing:
    """How the index writes to the store: one short transaction of the store's writer, at the clock's time."""

    write: Callable[[Callable[[sqlite3.Connection], bool], Deadline], bool]
    clock: Clock


@dataclass(slots=True)
class _Fresh:
    """A generation as it is being written: where it starts from, what it keeps, the files it has so far."""

    source: SqliteSource
    replaced: Generation | None
    sequence: int
    hash: bytes | None
    kept: list[tuple[Named, Marks]]
    made: list[tuple[Named, Marks]]
    state: str | None = None
    handed_over: bool = False

    def files(self) -> set[str]:
        return {named.file for named, _ in self.made} | ({self.state} if self.state else set())

    @property
    def number(self) -> int:
        return 1 if self.replaced is None else self.replaced.number + 1

    def parts(self) -> list[tuple[Named, Marks]]:
        return self.kept + self.made


class Compaction:
    """Writes generations, one process at a time; queries and saves go on meanwhile.

    Files are complete and on the disk before a short transaction names them, if the generation that they were made
    from is still the one. Those that are no longer named are deleted after it. Whatever a process that died left
    behind is not named, and goes with the next compaction.
    """

    def __init__(self, files: Files, writing: Writing, snapshot: Snapshot, *, dead: float, patience: float) -> None:
        self._files = files
        self._folder = files.folder
        self._writing = writing
        self._snapshot = snapshot
        self._dead = dead
        self._patience = patience

    def compact(self, source: Opening, *, force: bool) -> dict[str, Any] | None:
        """As `SegmentedIndex.compact`."""
        began = time.monotonic()
        wanted, leftovers = self._look(source, force=force)
        if not wanted and not leftovers:
            return None
        with self._alone(self._patience if force else 0.0, needed=force) as mine:
            if not mine:
                return None
            done = self._renewed(source, lambda _, held: choose(held, self._dead, force=force)) if wanted else None
            self._tidy(source)
        return None if done is None else done | {"seconds": round(time.monotonic() - began, 3)}

    def _look(self, source: Opening, *, force: bool) -> tuple[bool, bool]:
        """Whether a new generation is worth it, and whether there are files that nobody names."""
        try:
            with self._snapshot(source, Deadline(_SECONDS)) as (ours, held):
                wanted = choose(held, self._dead, force=True) is not None if force else worth(held, self._dead)
                return wanted, bool(self._folder.names() - generations.named(ours.connection))
        except EmbeddingMismatch:
            # A store that has moved on to another model is for others to compact.
            if force:
                raise
            return False, False

    def purge(self, source: Opening, rows: Rows) -> None:
        """As `SegmentedIndex.purge`."""
        if not self._folder.path.exists():
            return
        with self._alone(self._patience, needed=True):
            self._renewed(source, lambda ours, held: choose_without(held, _gone(ours, rows)))
            gives_up = time.monotonic() + self._patience
            while left := self._tidy(source):
                if time.monotonic() >= gives_up:
                    raise IndexUnavailable(
                        f"{len(left)} files of the index are still in use by another process",
                        hint="End the other processes that use this data folder, and purge again.",
                    )
                time.sleep(0.1)

    def rebuild(self, source: Opening, progress: Progress | None) -> dict[str, Any]:
        """As `SegmentedIndex.rebuild`."""
        began, deadline = time.monotonic(), Deadline(_SECONDS)
        self._made()
        with self._alone(self._patience, needed=True):
            with source() as opened:
                assert isinstance(opened, SqliteSource)
                opened.begin()
                replaced = generations.find(opened.connection, opened.encoder_id)
                fresh = _Fresh(opened, replaced, opened.head, opened.hash, [], [])
                with self._thrown_away(fresh):
                    total = opened.count() if progress else 0
                    for piece in in_pieces(opened.everything(), opened.dimension, MOST):
                        self._write_piece(fresh, piece, deadline)
                        if progress:
                            progress(sum(named.passages for named, _ in fresh.made), total)
                    done = self._registered(fresh)
            if done is None:
                raise _replaced()
            self._tidy(source)
        return done | {"dropped": 0, "seconds": round(time.monotonic() - began, 3)}

    def _renewed(self, source: Opening, choice: Callable[[SqliteSource, Held], Chosen | None]) -> dict[str, Any] | None:
        """What the new generation has, or None if there was nothing to do; the lock is ours."""
        for _ in range(_TRIES):
            with self._snapshot(source, Deadline(_SECONDS)) as (ours, held):
                replaced = generations.find(ours.connection, ours.encoder_id)
                chosen = choice(ours, held)
            if chosen is None:
                return None
            kept = [(part.body.named, part.marks) for part in chosen.kept if isinstance(part.body, Segment)]
            fresh = _Fresh(ours, replaced, held.sequence, held.hash, kept, [])
            before = sum(part.body.count for part in chosen.pool)
            del held
            with self._thrown_away(fresh):
                self._write_pool(fresh, chosen)
                done = self._registered(fresh)
            if done is not None:
                return done | {"dropped": before - sum(named.passages for named, _ in fresh.made)}
        raise _replaced()

    def _write_pool(self, fresh: _Fresh, chosen: Chosen) -> None:
        deadline, source = Deadline(_SECONDS), fresh.source
        whole = Order.of(chosen.pool, chosen.without)
        for order in whole.pieces():
            between = partial(order.vectors, chosen.pool, source.dimension)
            named = write_segment(self._folder, source.store, source.dimension, order, between, deadline)
            fresh.made.append((named, Marks.of(named.passages, None, order.expires)))

    def _write_piece(self, fresh: _Fresh, piece: Passages, deadline: Deadline) -> None:
        none = np.empty(0, dtype=np.int64)
        order = Order(piece.rows, piece.numbers.astype(np.int32), piece.namespaces, piece.expires, none, none)
        source = fresh.source
        named = write_segment(
            self._folder, source.store, source.dimension, order, lambda a, b: piece.vectors[a:b], deadline
        )
        fresh.made.append((named, Marks.of(named.passages, None, piece.expires)))

    def _registered(self, fresh: _Fresh) -> dict[str, Any] | None:
        """What the new generation has once SQLite names it; None if another one came first, or the past changed."""
        parts = fresh.parts()
        state, crc = generations.write_state(
            self._folder, fresh.source.store, [(named.file, marks) for named, marks in parts]
        )
        segments = tuple(named for named, _ in parts)
        new = Generation(fresh.number, fresh.sequence, fresh.hash, state, crc, segments)
        replaced = None if fresh.replaced is None else fresh.replaced.state
        encoder_id, at = fresh.source.encoder_id, to_micros(self._writing.clock.now())
        fresh.state = state
        self._folder.settle()
        fresh.handed_over = True
        if not self._writing.write(
            lambda connection: generations.register(connection, encoder_id, new, replaced, at), Deadline(_SECONDS)
        ):
            self._folder.remove(fresh.files())
            return None
        self._remember(fresh.made)
        return {"generation": new.number, "passages": sum(marks.live for _, marks in parts)}

    def _remember(self, made: Sequence[tuple[Named, Marks]]) -> None:
        marks = []
        for named, _ in made:
            with contextlib.suppress(OSError):
                fd = self._folder.open(named.file)
                with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
                    marks.append(mark(named.file, named.crc, file.fileno()))
        self._files.verified.remember(marks)

    def _tidy(self, source: Opening) -> set[str]:
        """Go over to the newest generation and delete what none names; files that could not be deleted now.

        Nobody else writes now: what no generation names was replaced, or left behind by a process that died.
        """
        with self._snapshot(source, Deadline(_SECONDS)) as (ours, _):
            named = generations.named(ours.connection)
        left = self._folder.remove(self._folder.names() - named)
        self._files.verified.tidy(named)
        return left

    @contextlib.contextmanager
    def _thrown_away(self, fresh: _Fresh) -> Iterator[None]:
        """If the block fails, no file of `fresh` is left. Raises: IndexUnavailable in place of OSError."""
        try:
            yield
        except BaseException as error:
            # An interrupted wait for the writer does not tell whether it will name them yet.
            if not fresh.handed_over or isinstance(error, AgoraError):
                self._folder.remove(fresh.files())
            if isinstance(error, OSError):
                raise _unwritable(error) from error
            raise

    def _made(self) -> None:
        try:
            self._folder.make()
        except OSError as error:
            raise _unwritable(error) from error

    @contextlib.contextmanager
    def _alone(self, seconds: float, *, needed: bool) -> Iterator[bool]:
        """Whether this process may write; waits so long for another one. Raises: IndexUnavailable if it is `needed`."""
        self._made()
        with contextlib.ExitStack() as stack:
            try:
                mine = stack.enter_context(alone(self._folder.path / _LOCK, seconds))
            except OSError as error:
                raise _unwritable(error) from error
            if needed and not mine:
                raise IndexUnavailable("another process is compacting the index", hint="Try again in a minute.")
            yield mine


def _gone(source: SqliteSource, rows: Rows) -> Rows:
    """Those of `rows` that have no vectors in the snapshot.

    A backup that was put back since they were purged may have given the number of one to a note that lives.
    """
    return np.setdiff1d(rows, source.passages(rows).rows)


def _unwritable(error: OSError) -> IndexUnavailable:
    return IndexUnavailable(
        f"the files of the index cannot be written: {error.strerror or error}",
        hint="Check the space on the disk and the permissions of the data folder. Nothing is lost: queries go on.",
    )


def _replaced() -> IndexUnavailable:
    return IndexUnavailable("the store was replaced while its index was written", hint="Try again.")
