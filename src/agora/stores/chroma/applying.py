from __future__ import annotations

from collections.abc import Iterator

from agora.errors import DeadlineExceeded, IndexUnavailable
from agora.model.deadline import Deadline
from agora.ports.vector_index import Changed, Passages, Source
from agora.stores.chroma.client import Knowledge

_ROWS = 200
"""Rows whose passages are read at once."""

BATCH = 500
"""Passages between two looks at the deadline; other calls come in between two batches of a compaction."""


def apply(knowledge: Knowledge, source: Source, changed: Changed, deadline: Deadline) -> int:
    """Bring these rows to the snapshot of `source`; how many passages were taken out.

    Doing it again, or the half of it, changes nothing: a process may die in the middle.

    Raises: IndexUnavailable, DeadlineExceeded, Cancelled.
    """
    dead = knowledge.of(changed.rows[~changed.live].tolist())
    knowledge.delete(dead)
    live = changed.rows[changed.live]
    for first in range(0, len(live), _ROWS):
        passages = source.passages(live[first : first + _ROWS])
        for start, stop in batches(passages):
            deadline.check()
            # Another saver of the same text, or a new tag, is a change too, and the graph need not know of it.
            if not knowledge.unchanged(passages, start, stop):
                knowledge.upsert(passages, start, stop)
    return len(dead)


def batches(passages: Passages) -> Iterator[tuple[int, int]]:
    """The slices in which passages go to Chroma."""
    for start in range(0, len(passages.rows), BATCH):
        yield start, min(start + BATCH, len(passages.rows))


def still_time(deadline: Deadline, done: int, total: int) -> None:
    """Return if a build may go on.

    Raises: IndexUnavailable that says how far it is, Cancelled.
    """
    deadline.tell(f"building the Chroma index: {done} of {total} passages")
    try:
        deadline.check()
    except DeadlineExceeded as error:
        raise being_built(done, total) from error


def being_built(done: int, total: int) -> IndexUnavailable:
    """What to say while an index is not whole yet."""
    return IndexUnavailable(
        f"the Chroma index is being built: {done} of {total} passages are in it",
        hint="Ask again in a few seconds: it goes on where it is. Lexical queries (`mode: lexical`) work meanwhile."
        " `agora reindex` builds it without a deadline.",
    )
