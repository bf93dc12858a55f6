"""What the timeline of a key must agree with: each statement asked about every other one, by the words of the docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agora.model.timeline import Statement


@dataclass(frozen=True)
class Slow:
    """All statements of a key, looked at from one instant. It is cubic, and says one thing at a time."""

    every: Sequence[Statement]
    at: int
    now: int
    known: int

    def begun(self) -> list[Statement]:
        """What had been said by then and never taken back, and has begun; in order."""
        found = [s for s in self.every if s.recorded <= self.known and not s.reverted and s.start <= self.at]
        return sorted(found, key=lambda s: (s.start, s.recorded, s.row))

    def authority(self, one: Statement) -> int:
        """Of its highest source of those known by then."""
        return min(rank for rank, since in one.voices if since <= self.known)

    def silent(self, one: Statement, at: int) -> bool:
        """Forgotten, over or expired."""
        over = one.stop is not None and at >= one.stop
        return one.retracted or over or (one.expires is not None and self.now >= one.expires)

    def takes_the_place(self, new: Statement, old: Statement) -> bool:
        """Of two in their order."""
        if not self.silent(old, new.start) and self.authority(old) < self.authority(new):
            return False
        if new.same is not None and new.same == old.same:
            return True
        empty = new.stop is not None and new.stop <= new.start
        return not new.multi and not empty

    def replaced(self) -> set[int]:
        """Rows that do not hold any more, whatever else ends."""
        begun = self.begun()
        return {
            old.row
            for place, old in enumerate(begun)
            if any(self.takes_the_place(new, old) for new in begun[place + 1 :])
        }

    def speaking(self) -> list[Statement]:
        """What is left and says something now."""
        gone = self.replaced()
        return [s for s in self.begun() if s.row not in gone and not self.silent(s, self.at)]

    def holding(self) -> list[int]:
        """Rows that hold."""
        held: list[Statement] = []
        for each in self.speaking():
            above = [h for h in held if self.authority(h) < self.authority(each)]
            if any(not (h.multi and each.multi) for h in above) or any(h.same == each.same for h in held):
                continue
            held.append(each)
        return [h.row for h in held]

    def contested(self) -> list[int]:
        """Rows that say something else than what holds."""
        values = {s.same for s in self.every if s.row in self.holding()}
        return [s.row for s in self.speaking() if s.same not in values]
