"""Batches of arrivals on their way into the store, and those whose place only the rest of their file tells.

A file may hold the versions of a key in any order, and a store may have another past of it. So what contradicts the
store where it stands in the file may fit in once the rest is there. It is put off until then, and given again for as
long as that brings one more version of its key in. What is left contradicts the store as it then is, and would do so
again: the same file once more changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agora.exchange.report import Report
from agora.memory.passages import embed
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.records import VectorsNeeded
from agora.ports.transfer import Arrival, Incoming, Outcome

BATCH = 200
"""Versions in one transaction."""

_BYTES = 1 << 20
"""Text in one transaction: what is embedded before anything of it is kept."""

PUT_OFF = 64 << 20
"""Characters of text in memory that wait for the rest of their file."""


@dataclass(slots=True)
class Taking:
    """Takes the arrivals of one file in, a batch a transaction, and tells the report what became of each."""

    incoming: Incoming
    encoder: Encoder
    clock: Clock
    caller: Caller
    report: Report
    about: Mapping[str, Any]
    """Where it came from, for the journal's payload."""
    most: int
    """Characters that may wait, in all."""
    _batch: list[Arrival] = field(default_factory=list)
    _size: int = 0
    _waiting: list[Arrival] = field(default_factory=list)
    _waiting_size: int = 0
    _early: int = 0

    def add(self, arrival: Arrival, deadline: Deadline) -> bool:
        """Whether a batch went in with it.

        Raises: as `Incoming.add`, but for VectorsNeeded.
        """
        went = self._append(arrival, deadline)
        if self._waiting_size > self.most:
            self._early += len(self._waiting)
            self._settle(deadline)
        return went

    def finish(self, deadline: Deadline) -> None:
        """Take in the rest, and decide about what was put off; as `add` raises."""
        self._flush(deadline)
        self._settle(deadline)
        if self._early:
            self.report.problems.append(
                f"the place of {self._early} versions was decided before the rest of the file was read, for more than"
                f" {self.most} characters waited for it: import the file again until that changes nothing"
            )

    def _append(self, arrival: Arrival, deadline: Deadline) -> bool:
        self._batch.append(arrival)
        self._size += len(arrival.version.content or "")
        if len(self._batch) < BATCH and self._size < _BYTES:
            return False
        self._flush(deadline)
        return True

    def _give(self, arrivals: Iterable[Arrival], deadline: Deadline) -> None:
        for arrival in arrivals:
            self._append(arrival, deadline)
        self._flush(deadline)

    def _settle(self, deadline: Deadline) -> None:
        """Decide about everything that waits."""
        # What has no key tells no place of what has one, but may find its text superseded by it.
        without_key = [each for each in self._waiting if each.version.key is None]
        waiting = [each for each in self._waiting if each.version.key is not None]
        backward = True
        while waiting:
            # From the newest to the oldest, and back: each may tell the place of the one before it, or after it.
            self._waiting = []
            self._give(sorted(waiting, key=_place, reverse=backward), deadline)
            backward = not backward
            moved = Counter(map(_key, waiting)) - Counter(map(_key, self._waiting))
            waiting = [each for each in self._waiting if _key(each) in moved]
            stuck = [replace(each, waits=False) for each in self._waiting if _key(each) not in moved]
            self._give(sorted(stuck, key=_place), deadline)
        self._give((replace(each, waits=False) for each in without_key), deadline)
        self._waiting, self._waiting_size = [], 0

    def _flush(self, deadline: Deadline) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        if not batch:
            return
        settled = self.incoming.settled(batch, self.clock.now(), deadline)
        try:
            outcomes = self._add(self._embedded(batch, settled, deadline), deadline)
        except VectorsNeeded:
            # Something that was here a moment ago is gone, or waits for something else in this batch.
            outcomes = self._add(self._embedded(batch, frozenset(), deadline), deadline)
        for arrival, outcome in zip(batch, outcomes, strict=True):
            if outcome.fate == "put off":
                self._waiting.append(arrival)
                self._waiting_size += len(arrival.version.content or "")
            else:
                self.report.took(arrival.version, outcome)

    def _add(self, batch: Sequence[Arrival], deadline: Deadline) -> Sequence[Outcome]:
        return self.incoming.add(batch, self.caller, self.about, self.clock.now(), deadline)

    def _embedded(self, batch: Sequence[Arrival], settled: frozenset[str], deadline: Deadline) -> list[Arrival]:
        return [
            each
            if each.embedded is not None or each.version.content is None or each.version.id in settled
            else replace(each, embedded=embed(self.encoder, each.version.title, each.version.content, deadline))
            for each in batch
        ]


def _key(arrival: Arrival) -> tuple[str, str]:
    return arrival.version.namespace, arrival.version.key or ""


def _place(arrival: Arrival) -> tuple[str, str, int]:
    return (*_key(arrival), arrival.version.version)
