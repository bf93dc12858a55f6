"""What moves a store from one encoder to another: new vectors beside the old, one switch, old ones gone.

Until the switch, queries and saves of every process go on with the old encoder; what they change meanwhile is found
by the journal. Everything is committed as it is made, so that a move that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.ports.encoder import Vector


@dataclass(frozen=True, slots=True)
class Begun:
    """A move as it begins or goes on.

    `needed` is false if the store has this encoder already. `abandoned` names another encoder that the store was on its
    way to. `versions` counts the texts of the store, whatever their state, `deleted` vectors that nothing needed.
    """

    old: str
    needed: bool
    resumed: bool
    abandoned: str | None
    versions: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Text:
    """One version of an item that waits for its vectors, from one snapshot.

    `shared`: its passages as queries have them, which the new encoder has to cut alike; None where it has a layout of
    its own. `made`: passages whose vectors are there already, from before it got that layout: then the text needs
    neither cutting nor encoding.
    """

    row: int
    id: str
    title: str | None
    content: str
    findable: bool
    """Neither superseded nor forgotten."""
    shared: tuple[Span, ...] | None = None
    made: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """A text's passages and one vector for each, in order; None where the vectors are there already."""

    text: Text
    spans: tuple[Span, ...]
    vectors: tuple[Vector, ...] | None


@dataclass(frozen=True, slots=True)
class Switched:
    """The store has the new encoder. `held` is how long writers could not write for it, in seconds."""

    sequence: int
    passages: int
    held: float


class Reembedding(Protocol):
    """The move of one store to one encoder. For one thread at a time, in one process at a time."""

    def begin(self, deadline: Deadline) -> Begun:
        """Begin, or go on with what was begun; leftovers of other moves are deleted.

        Raises: StoreUnavailable.
        """
        ...

    def left(self, deadline: Deadline) -> int:
        """How many texts wait, those that were saved meanwhile included.

        Raises: StoreUnavailable.
        """
        ...

    def waiting(self, most: int, characters: int, deadline: Deadline) -> tuple[Text, ...]:
        """The first texts that wait, at most `most`, and no more once `characters` are reached; empty if none does.

        Raises: StoreUnavailable.
        """
        ...

    def keep(self, cuts: Sequence[Cut], deadline: Deadline) -> None:
        """Write passages and vectors in one transaction; what was purged meanwhile is left out.

        Raises: StoreUnavailable.
        """
        ...

    def cut_anew(self, deadline: Deadline) -> None:
        """Give the new encoder a layout of its own: it does not cut every text as it is cut now.

        Vectors that were made so far stay. Raises: StoreUnavailable.
        """
        ...

    def switch(
        self,
        rest: Callable[[Sequence[Text]], Sequence[Cut]],
        most: int,
        caller: Caller,
        now: datetime,
        deadline: Deadline,
    ) -> Switched | None:
        """Let the store have the new encoder, in one transaction, if nothing waits.

        Of what waits then, at most `most` texts are given to `rest`, inside the transaction; if that was all, the
        store is switched, else None comes back and what `rest` made is kept. What `rest` raises undoes everything.

        Raises: StoreUnavailable, and what `rest` raises.
        """
        ...

    def clean(self, deadline: Deadline) -> int:
        """Delete what no encoder of the store needs, a little at a time, and give the space back; vectors deleted.

        Raises: StoreUnavailable.
        """
        ...
