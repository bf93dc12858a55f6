from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.purge import Condemned, Sample, Unwanted


class Purging(Protocol):
    """What a record store does for a purge. Thread-safe; other processes may use the store meanwhile.

    `erase` is the deed: when it returns, the rows are gone for every reader. What follows empties the places where
    bytes of deleted rows stay; until `finished` the store remembers that this is still to be done.
    """

    def condemn(self, wanted: Unwanted, now: datetime, deadline: Deadline) -> Condemned:
        """What a purge of `wanted` would take, without taking it.

        Raises: NoteNotFound for an id that does not lie in the namespaces, Conflict for one that is neither
        forgotten nor, if expired ones are wanted, expired.
        """
        ...

    def samples(self, condemned: Condemned, most: int, deadline: Deadline) -> tuple[Sample, ...]:
        """At most `most` pieces of the condemned rows, spread over them; to be taken before they go."""
        ...

    def erase(self, condemned: Condemned, caller: Caller, now: datetime, deadline: Deadline) -> tuple[int, int]:
        """How many notes and versions were turned into skeletons; what was restored meanwhile is left out.

        In several transactions, each of whole notes, so that others can write in between.
        """
        ...

    def unfinished(self, deadline: Deadline) -> str | None:
        """What stands for purges whose rows are gone and whose bytes may not be; None if there are none."""
        ...

    def empty(self, place: str, deadline: Deadline) -> None:
        """Empty a place of the store, by its name in `agora.ports.places`, for good.

        Raises: StoreUnavailable, IndexUnavailable if it cannot be done now.
        """
        ...

    def remains(self, deadline: Deadline) -> Mapping[str, int]:
        """By place, how many rows still hold something of a purged item; places without any are left out."""
        ...

    def sweep(self, now: datetime, deadline: Deadline) -> None:
        """Delete what `remains`; the store then has something unfinished."""
        ...

    def holds(self, sample: Sample, deadline: Deadline) -> bool:
        """Whether a row that stays holds these bytes too."""
        ...

    def finished(self, unfinished: str, deadline: Deadline) -> None:
        """Forget `unfinished`, unless another purge has begun since."""
        ...
