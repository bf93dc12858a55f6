"""What holds of a key at an instant, drawn from all that was ever stated of it.

Statements are taken in the order in which they begin, of two that begin at once the one recorded later last. Each new
value takes the place of those before it, unless these are of higher authority: then it is contested and stands beside
them until they end. So a statement that arrives late holds only until the next one begins, whatever was replaced does
not come back when what replaced it ends, and intervals are half-open: at the hand-over only the newer value holds.

Instants are whole numbers (microseconds since 1970-01-01T00:00:00Z), as the store has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from agora.model.caller import rank
from agora.model.fact import Fact, FactState
from agora.model.instants import NEVER, maybe_micros, to_micros


class Statement(NamedTuple):
    """A fact as far as time, sameness and authority go.

    `same`: None for one whose value was purged, which is equal to none. `voices`: rank of the origin (less is higher)
    and since when, for each source. `retracted`: forgotten, so that it says nothing and yet holds its place;
    `reverted`: taken back, so that it counts as never said.
    """

    row: int
    same: bytes | None
    multi: bool
    start: int
    stop: int | None
    expires: int | None
    recorded: int
    retracted: bool
    reverted: bool
    voices: tuple[tuple[int, int], ...]

    @property
    def order(self) -> tuple[int, int, int]:
        """Its place among the others."""
        return self.start, self.recorded, self.row

    def rank(self, known: int) -> int:
        """Its authority by what was known then: of its highest source."""
        return min((rank for rank, since in self.voices if since <= known), default=self.voices[0][0])

    def speaks(self, at: int, now: int) -> bool:
        """Whether it says anything at `at`; it is kept until `expires` of the clock."""
        ended = self.stop is not None and self.stop <= at
        return not self.retracted and not ended and (self.expires is None or self.expires > now)


def statement(fact: Fact) -> Statement:
    """A fact as far as time, sameness and authority go."""
    return Statement(
        fact.row,
        fact.same,
        fact.multi,
        to_micros(fact.valid_from),
        maybe_micros(fact.valid_to),
        maybe_micros(fact.expires_at),
        to_micros(fact.recorded_at),
        fact.retracted_at is not None,
        fact.reverted,
        tuple((rank(saver.origin), to_micros(saver.at)) for saver in fact.savers),
    )


@dataclass(slots=True)
class Outcome:
    """What the statements of one key come to at an instant.

    `holding`: rows whose values hold, in the order of their beginnings. `contested`: rows of lower authority that say
    something else and are newer. `replaced`: row to the row that took its place; `ranks`: the authority that the value
    of a row has, its own or that of an equal one before it.
    """

    holding: list[int] = field(default_factory=list)
    contested: list[int] = field(default_factory=list)
    replaced: dict[int, int] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)


def outcome(statements: Iterable[Statement], at: int, now: int, known: int = NEVER) -> Outcome:
    """What holds at `at`, by what was recorded up to `known`; what has expired by `now` does not."""
    found = Outcome()
    active: list[Statement] = []
    beside: list[Statement] = []
    for each in sorted((s for s in statements if _counts(s, at, known)), key=lambda s: s.order):
        rank = each.rank(known)
        equal = next((s for s in (*active, *beside) if each.same is not None and s.same == each.same), None)
        if equal is not None and equal.speaks(each.start, now):
            # Said again: the newer one stands for both, with the authority of the higher.
            rank = min(rank, found.ranks[equal.row])
        found.ranks[each.row] = rank
        for group in (active, beside):
            for old in list(group):
                if _gives_way(old, each, found.ranks, now):
                    group.remove(old)
                    found.replaced[old.row] = each.row
        above = [s for s in active if found.ranks[s.row] < rank and s.speaks(each.start, now)]
        overruled = bool(above) and not (each.multi and all(s.multi for s in above))
        (beside if overruled else active).append(each)
    speaking = [s for s in active if s.speaks(at, now)]
    standing = [s for s in beside if s.speaks(at, now)]
    if not speaking and standing:
        # What overruled them has ended: the newest of them holds.
        speaking, standing = [standing[-1]], standing[:-1]
    found.holding = [s.row for s in speaking]
    found.contested = [s.row for s in standing]
    return found


def _counts(each: Statement, at: int, known: int) -> bool:
    return not each.reverted and each.start <= at and each.recorded <= known


def _gives_way(old: Statement, new: Statement, ranks: dict[int, int], now: int) -> bool:
    """Whether `old` holds no longer once `new` begins."""
    if new.same is not None and old.same == new.same:
        return True
    if new.multi:
        return False
    return ranks[old.row] >= ranks[new.row] or not old.speaks(new.start, now)


class Standing(NamedTuple):
    """How a statement stands, until when it holds or held, and the row that takes or took its place."""

    state: FactState
    until: int | None
    after: int | None


def standings(statements: Iterable[Statement], at: int, now: int, known: int = NEVER) -> dict[int, Standing]:
    """How each statement that was recorded by `known` stands at `at`, by its row."""
    every = [s for s in statements if s.recorded <= known]
    then, ever = outcome(every, at, now, known), outcome(every, NEVER, now, known)
    starts = {s.row: s.start for s in every}
    found: dict[int, Standing] = {}
    for each in every:
        after = ever.replaced.get(each.row)
        ends = [end for end in (each.stop, None if after is None else starts[after]) if end is not None]
        found[each.row] = Standing(_state(each, then, at, now), min(ends, default=None), after)
    return found


def _state(each: Statement, then: Outcome, at: int, now: int) -> FactState:
    cases: tuple[tuple[FactState, bool], ...] = (
        ("retracted", each.retracted or each.reverted),
        ("upcoming", each.start > at),
        ("current", each.row in then.holding),
        ("contested", each.row in then.contested),
        ("superseded", each.row in then.replaced),
        ("expired", each.expires is not None and each.expires <= now),
    )
    return next((state for state, holds in cases if holds), "ended")
