"""What holds of a key at an instant, drawn from all that was ever stated of it.

Statements are taken in the order in which they begin, of two that begin at once the one recorded later last. Each new
value takes the place of those before it, unless these are of higher authority: then it is contested and stands beside
them until they end. So a statement that arrives late holds only until the next one begins, whatever was replaced does
not come back when what replaced it ends, and intervals are half-open: at the hand-over only the newer value holds.

An equal value takes the place of the one before it too, and brings its own end. One of lower authority does not: it
stands behind the higher one for as long as that holds, and then for itself. What begins and ends at once holds never:
all it can say is that an equal value has ended.

Instants are whole numbers (microseconds since 1970-01-01T00:00:00Z), as the store has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agora.model.caller import RANKS, rank
from agora.model.fact import Fact, FactState
from agora.model.instants import NEVER, maybe_micros, to_micros

_LOWEST = len(RANKS)


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
    voices = tuple((rank(saver.origin), to_micros(saver.at)) for saver in fact.savers)
    purged = fact.purged_rank is not None
    return Statement(
        fact.row,
        None if purged else fact.same,
        fact.multi,
        to_micros(fact.valid_from),
        maybe_micros(fact.valid_to),
        maybe_micros(fact.expires_at),
        to_micros(fact.recorded_at),
        purged or fact.retracted_at is not None,
        fact.reverted,
        ((fact.purged_rank, to_micros(fact.recorded_at)),) if fact.purged_rank is not None else voices,
    )


@dataclass(slots=True)
class Outcome:
    """What the statements of one key come to at an instant.

    `holding`: rows whose values hold, in the order of their beginnings. `contested`: rows that say something else than
    what holds of higher authority. `behind`: rows of lower authority that say the same as one that holds, with that
    one. `replaced`: row to the row that took its place.
    """

    holding: list[int] = field(default_factory=list)
    contested: list[int] = field(default_factory=list)
    behind: dict[int, int] = field(default_factory=dict)
    replaced: dict[int, int] = field(default_factory=dict)


def reached(statements: Iterable[Statement], now: int) -> int:
    """The present of a key: `now`, or the last instant at which something was recorded if the clock has gone back.

    Else what is said after a clock was put back would give way again once the clock is where it was.
    """
    return max([now, *(each.recorded for each in statements)])


def outcome(statements: Iterable[Statement], at: int, now: int, known: int = NEVER) -> Outcome:
    """What holds at `at`, by what was recorded up to `known`; what has expired by `now` does not.

    Statements that were replaced at `at` or before may be left out: it makes no difference to the others.
    """
    found = Outcome()
    ranks: dict[int, int] = {}
    there: dict[int, Statement] = {}
    alike: dict[bytes, list[Statement]] = {}
    for each in sorted((s for s in statements if _counts(s, at, known)), key=lambda s: s.order):
        ranks[each.row] = each.rank(known)
        equal = [] if each.same is None else alike.setdefault(each.same, [])
        # One of several values takes the place of an equal one alone.
        never = each.stop is not None and each.stop <= each.start
        for old in list(equal) if each.multi or never else list(there.values()):
            if ranks[old.row] >= ranks[each.row] or not old.speaks(each.start, now):
                found.replaced[old.row] = each.row
                del there[old.row]
                if old.same is not None:
                    alike[old.same].remove(old)
        there[each.row] = each
        equal.append(each)
    _weigh(found, [each for each in there.values() if each.speaks(at, now)], ranks)
    return found


def _weigh(found: Outcome, speaking: Iterable[Statement], ranks: Mapping[int, int]) -> None:
    """Which of those that say something hold: lower authority gives way to higher, unless both are of several."""
    values: dict[bytes, int] = {}
    said: dict[int, bytes] = {}
    highest, highest_alone = _LOWEST, _LOWEST
    for each in speaking:
        rank = ranks[each.row]
        if each.same is not None and each.same in values:
            found.behind[each.row] = values[each.same]
        elif (highest_alone if each.multi else highest) < rank:
            found.contested.append(each.row)
            said[each.row] = each.same or b""
        else:
            found.holding.append(each.row)
            if each.same is not None:
                values[each.same] = each.row
            highest = min(highest, rank)
            if not each.multi:
                highest_alone = min(highest_alone, rank)
    for row in [row for row in found.contested if said[row] in values]:
        # Another one that says the same holds as one of several.
        found.contested.remove(row)
        found.behind[row] = values[said[row]]


def _counts(each: Statement, at: int, known: int) -> bool:
    return not each.reverted and each.start <= at and each.recorded <= known


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
        state = _state(each, then, at, now)
        found[each.row] = Standing(state, min(ends, default=None), then.behind.get(each.row, after))
    return found


def _state(each: Statement, then: Outcome, at: int, now: int) -> FactState:
    cases: tuple[tuple[FactState, bool], ...] = (
        ("retracted", each.retracted or each.reverted),
        ("upcoming", each.start > at),
        ("current", each.row in then.holding),
        ("contested", each.row in then.contested),
        ("superseded", each.row in then.replaced or each.row in then.behind),
        ("expired", each.expires is not None and each.expires <= now),
    )
    return next((state for state, holds in cases if holds), "ended")
