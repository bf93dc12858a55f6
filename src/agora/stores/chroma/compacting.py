from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.errors import AgoraError, IndexUnavailable
from agora.model.deadline import Deadline
from agora.ports.vector_index import Source
from agora.stores.chroma.applying import apply, batches
from agora.stores.chroma.client import Knowledge
from agora.stores.chroma.engine import Engine
from agora.stores.chroma.following import Follower

Opening = Callable[[], AbstractContextManager[Source]]

_FEW = 1000
"""Deleted passages below which a graph is not built anew."""

_LAST = 3.0
"""Seconds to wait for the index so as to clear up after a compaction that failed."""


@dataclass(slots=True)
class _Beside:
    """A collection that is being built beside the present one: rows up to `after` are as of the sequence `head`."""

    knowledge: Knowledge
    past: object
    old: list[Path]
    head: int
    after: int = 0
    seconds: float = 0.0


class Compaction:
    """Builds a graph without its dead nodes beside the present one, and puts it in its place.

    Chroma only marks what is deleted: it stays in the graph, takes memory and makes searches longer. Other threads
    search and apply changes between two batches. It may be done in pieces, so that a server can end at any time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turn = threading.Lock()
        self._beside: _Beside | None = None

    def run(self, opening: Opening, share: float | None, seconds: float) -> dict[str, Any] | None:
        """What was done, once it is done; None if there is more to do after `seconds`, or less than `share` was dead.

        With `share` None a single dead node is enough. Raises: as `Engine.search`.
        """
        with self._turn:
            try:
                return self._run(opening, share, time.monotonic() + seconds, Deadline(2 * seconds))
            except BaseException:
                self._give_up()
                raise

    def _run(self, opening: Opening, share: float | None, until: float, deadline: Deadline) -> dict[str, Any] | None:
        began = time.monotonic()
        with opening() as source:
            with self._engine.alone(deadline) as follower:
                self._bring(follower, source, deadline)
                if self._beside is None and not self._begin(follower, source, share):
                    return None
                beside = self._catch_up(follower, source, deadline)
            for block in source.everything(beside.after):
                for start, stop in batches(block):
                    if time.monotonic() >= until:
                        beside.seconds += time.monotonic() - began
                        return None
                    with self._engine.alone(deadline) as follower:
                        self._require_same(follower)
                        follower.changing()
                        beside.knowledge.upsert(block, start, stop)
                        follower.settled()
                    # The last row may have more passages in the next block.
                    beside.after = int(block.rows[stop - 1]) - 1
        with opening() as source, self._engine.alone(deadline) as follower:
            # Both stand at the same change for a moment, which no other thread sees.
            self._bring(follower, source, deadline)
            self._catch_up(follower, source, deadline)
            dropped = follower.mark.dead
            follower.changing()
            follower.client.take_next()
            follower.settled(collection=beside.knowledge.id, dead=0, keep=None)
            self._beside = None
            follower.reopen(without=beside.old)
            passages = follower.knowledge.count()
        seconds = round(beside.seconds + time.monotonic() - began, 3)
        return {"generation": 0, "passages": passages, "dropped": dropped, "seconds": seconds}

    def _bring(self, follower: Follower, source: Source, deadline: Deadline) -> None:
        known = follower.position
        source.begin()
        if not follower.bring(source, known, deadline):
            raise IndexUnavailable("the Chroma index was changed by another process meanwhile")

    def _begin(self, follower: Follower, source: Source, share: float | None) -> bool:
        dead = follower.mark.dead
        if not dead or (share is not None and (dead < _FEW or dead < share * (dead + follower.knowledge.count()))):
            return False
        old = follower.folder.segments()
        follower.changing()
        follower.client.drop_next()
        knowledge = follower.client.create_next()
        follower.settled(keep=[segment.name for segment in old])
        past = follower.position and follower.position.past
        self._beside = _Beside(knowledge, past, old, source.head)
        return True

    def _catch_up(self, follower: Follower, source: Source, deadline: Deadline) -> _Beside:
        """Bring the rows that are there already to the snapshot."""
        beside = self._require_same(follower)
        if beside.head != source.head:
            follower.changing()
            apply(beside.knowledge, source, source.changed(beside.head), deadline)
            follower.settled()
            beside.head = source.head
        return beside

    def _require_same(self, follower: Follower) -> _Beside:
        beside, position = self._beside, follower.position
        if beside is None or position is None or position.past is not beside.past:
            raise IndexUnavailable("the Chroma index was built anew during a compaction", hint="Nothing is to be done.")
        return beside

    def _give_up(self) -> None:
        beside, self._beside = self._beside, None
        # Whoever opens the folder next clears up, if it cannot be done now.
        with contextlib.suppress(AgoraError), self._engine.alone(Deadline(_LAST)) as follower:
            position = follower.position
            if beside and not follower.is_broken and position and position.past is beside.past:
                keep = {each.name for each in beside.old}
                follower.reopen(without=[each for each in follower.folder.segments() if each.name not in keep])
