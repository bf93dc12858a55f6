"""What an index holds as of one snapshot, and how it is brought to the next: read whole, or by the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agora.errors import StoreCorrupt
from agora.model.deadline import Deadline
from agora.ports.vector_index import Passages, Rows, Source
from agora.stores.sqlite.index.columns import Mask, expanded
from agora.stores.sqlite.index.folder import Folder
from agora.stores.sqlite.index.generation import Generation, read_state
from agora.stores.sqlite.index.layout import MOST, Named
from agora.stores.sqlite.index.marks import Marks
from agora.stores.sqlite.index.segment import Segment, check_sum, open_segment
from agora.stores.sqlite.index.tail import Tail, in_pieces, loaded
from agora.stores.sqlite.index.verified import Verified
from agora.stores.sqlite.index.view import Part
from agora.stores.sqlite.source import SqliteSource

_FETCHED = 1024
"""Rows whose passages are fetched between two looks at the deadline."""
_WASTE = 512
"""Dead passages in the tail from which on it is worth copying what lives, once they are the majority."""


@dataclass(frozen=True, slots=True)
class Held:
    """An index as of the journal's `sequence`: files of a generation or what was read from the rows, and the tail.

    `state` names the generation that the snapshot had; `generation` is None if it was not used, or there was none.
    `problem` says why it was not.
    """

    store: str | None
    sequence: int
    hash: bytes | None
    state: str | None
    generation: Generation | None
    problem: str | None
    parts: tuple[Part, ...]
    tail: Tail
    marks: Marks

    @staticmethod
    def nothing(dimension: int) -> Held:
        """What is held before the first snapshot."""
        return Held(None, 0, None, None, None, None, (), Tail.empty(dimension), Marks.of(0, None, None))

    def all(self) -> tuple[Part, ...]:
        """Every part, the tail last."""
        return (*self.parts, Part(self.tail, self.marks))

    def live(self) -> int:
        """Passages that may be found."""
        return sum(part.marks.live for part in self.all())

    def dead(self) -> int:
        """Passages that take room for nothing."""
        return sum(part.marks.count - part.marks.live for part in self.all())

    def in_memory(self) -> int:
        """Passages that no file holds."""
        return self.tail.count + sum(part.body.count for part in self.parts if not isinstance(part.body, Segment))

    def mapped(self) -> int:
        """Bytes of files that stay mapped."""
        bodies = [part.body for part in self.parts]
        return sum(body.named.size for body in bodies if isinstance(body, Segment) and body.resident)


def applied(held: Held, source: Source, deadline: Deadline) -> Held:
    """`held` with what the journal of the snapshot has beyond it.

    Raises: DeadlineExceeded, Cancelled, StoreCorrupt; then nothing has changed.
    """
    changed = source.changed(held.sequence)
    known = np.zeros(len(changed.rows), dtype=np.bool_)
    parts = []
    for part in held.all():
        starts, stops = part.body.spans(changed.rows)
        here = stops > starts
        known |= here
        parts.append(_marked(part, starts[here], stops[here], changed.live[here], changed.expires[here]))
    fresh = changed.rows[changed.live & ~known]
    blocks: list[Passages] = []
    for start in range(0, len(fresh), _FETCHED):
        deadline.check()
        blocks.append(source.passages(fresh[start : start + _FETCHED]))
    # From here on nothing fails: the tail's arrays are shared with the views that are out.
    tail = held.tail.extended(blocks)
    marks = parts[-1].marks
    if tail is not held.tail:
        marks = marks.extended(np.concatenate([block.expires for block in blocks]))
    if (wasted := marks.count - marks.live) > max(_WASTE, marks.count // 2):
        # A process that lives for weeks beside a note that changes every minute must not grow with it.
        assert marks.alive is not None
        gone = np.flatnonzero(~marks.alive)
        assert len(gone) == wasted
        tail, marks = tail.without(gone), Marks.of(marks.live, None, np.delete(marks.ends(), gone))
    hash_ = source.hash_at(source.head)
    return replace(held, sequence=source.head, hash=hash_, parts=tuple(parts[:-1]), tail=tail, marks=marks)


def _marked(part: Part, starts: Rows, stops: Rows, live: Mask, ends: Rows) -> Part:
    if not len(starts):
        return part
    lengths = stops - starts
    slots = expanded(starts, stops)
    return Part(part.body, part.marks.changed(slots, np.repeat(live, lengths), np.repeat(ends, lengths)))


class Loading:
    """Everything read from the records, into memory, piece by piece.

    What a deadline cut short, the next call goes on with: rows that changed meanwhile are in the journal.
    """

    def __init__(self, source: SqliteSource, most: int = MOST) -> None:
        """A reading that begins in the snapshot of `source`, in pieces of `most` passages."""
        self._most = most
        self._store, self._sequence, self._hash = source.store, source.head, source.hash
        self._parts: list[Part] = []
        self._last = 0

    def goes_on(self, source: SqliteSource) -> bool:
        """Whether the snapshot of `source` is a later one of the same store."""
        return source.store == self._store and source.hash_at(self._sequence) == self._hash

    def read(self, source: SqliteSource, problem: str | None, deadline: Deadline) -> Held:
        """All of it, as of the change at which it began. Raises: DeadlineExceeded, Cancelled, StoreCorrupt."""
        for piece in in_pieces(_checked(source.everything(self._last), deadline), source.dimension, self._most):
            self._parts.append(Part(loaded(piece), Marks.of(len(piece.rows), None, piece.expires)))
            self._last = int(piece.rows[-1])
        return Held(
            self._store,
            self._sequence,
            self._hash,
            source.state,
            None,
            problem,
            tuple(self._parts),
            Tail.empty(source.dimension),
            Marks.of(0, None, None),
        )


def _checked(blocks: Iterator[Passages], deadline: Deadline) -> Iterator[Passages]:
    for block in blocks:
        deadline.check()
        yield block


def from_files(source: Source, generation: Generation, files: Files, before: Held, deadline: Deadline) -> Held:
    """A generation as it was written, with segments that `before` has open already.

    Raises: StoreCorrupt, which says what is wrong; OSError; DeadlineExceeded, Cancelled.
    """
    if source.hash_at(generation.sequence) != generation.hash:
        raise StoreCorrupt(
            f"the journal is not, or no longer, the one that the index had applied at change {generation.sequence}"
        )
    marks = read_state(files.folder, generation, source.store)
    segments = files.opened(generation.segments, source, before, deadline)
    return Held(
        source.store,
        generation.sequence,
        generation.hash,
        generation.state,
        generation,
        None,
        tuple(Part(segment, each) for segment, each in zip(segments, marks, strict=True)),
        Tail.empty(source.dimension),
        Marks.of(0, None, None),
    )


@dataclass(frozen=True, slots=True)
class Files:
    """How segment files are opened: from where, which are known to be whole, how many bytes may stay mapped."""

    folder: Folder
    verified: Verified
    most_bytes: int | None

    def opened(self, named: Sequence[Named], source: Source, before: Held, deadline: Deadline) -> list[Segment]:
        """The segments, the newest of which stay mapped. Raises: as `from_files`."""
        open_now: dict[str, Segment] = {}
        if before.store == source.store:
            bodies = [part.body for part in before.parts]
            open_now = {body.named.file: body for body in bodies if isinstance(body, Segment)}
        room = self.most_bytes
        resident = set()
        for each in reversed(named):
            room = None if room is None else room - each.size
            if room is None or room >= 0:
                resident.add(each.file)
        segments = [
            held
            if (held := open_now.get(each.file)) is not None and held.resident == (each.file in resident)
            else open_segment(self.folder, each, source.store, source.dimension, resident=each.file in resident)
            for each in named
        ]
        self._check([each for each in named if each.file not in open_now], deadline)
        return segments

    def _check(self, named: Sequence[Named], deadline: Deadline) -> None:
        if not named:
            return
        known = self.verified.known()
        for each in named:
            # One after the other: what was read before a deadline passes need not be read again.
            if (mark := check_sum(self.folder, each, known, deadline)) is not None:
                self.verified.remember([mark])
