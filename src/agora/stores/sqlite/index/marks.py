"""What changes about passages that are written down: which are dead, and when their rows expire."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agora.model.instants import NEVER
from agora.ports.vector_index import Rows
from agora.stores.sqlite.index.columns import Mask


@dataclass(frozen=True, slots=True)
class Marks:
    """One entry a slot, never changed in place: a view keeps the marks it was made with.

    `alive` is None while all are, `expires` is None while no row has an end: the usual case costs nothing.
    """

    count: int
    alive: Mask | None
    expires: NDArray[np.int64] | None
    live: int
    soonest: int

    @staticmethod
    def of(count: int, alive: Mask | None, expires: Rows | None) -> Marks:
        """Marks of so many slots, with what is derived from them."""
        live = count if alive is None else int(np.count_nonzero(alive))
        soonest = NEVER if expires is None or not count else int(expires.min())
        return Marks(count, None if live == count else alive, None if soonest == NEVER else expires, live, soonest)

    def changed(self, slots: Rows, live: Mask, ends: Rows) -> Marks:
        """With other states for these slots: `live` and `ends` are parallel to them."""
        alive, expires = self.alive, self.expires
        if alive is not None or not live.all():
            alive = np.ones(self.count, dtype=np.bool_) if alive is None else alive.copy()
            alive[slots] = live
        if expires is not None or (ends != NEVER).any():
            expires = np.full(self.count, NEVER) if expires is None else expires.copy()
            expires[slots] = ends
        return Marks.of(self.count, alive, expires)

    def extended(self, ends: Rows) -> Marks:
        """With slots added at the end, alive, whose rows expire at `ends`."""
        added = len(ends)
        alive = None if self.alive is None else np.concatenate([self.alive, np.ones(added, dtype=np.bool_)])
        return Marks.of(self.count + added, alive, np.concatenate([self.ends(), ends]))

    def ends(self) -> Rows:
        """When the row of each slot expires."""
        return np.full(self.count, NEVER) if self.expires is None else self.expires

    def living(self, now: int, slots: Rows | None) -> Mask | bool:
        """Which of `slots` (None: of all) may be found at `now`; True where all may."""
        found: Mask | bool = True
        if self.alive is not None:
            found = self.alive if slots is None else self.alive[slots]
        if self.expires is not None and self.soonest <= now:
            ahead = (self.expires if slots is None else self.expires[slots]) > now
            found = ahead if found is True else found & ahead
        return found
