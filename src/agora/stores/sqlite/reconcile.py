"""What becomes of a version that comes from elsewhere, where this store may hold its id, its text or its key already.

Nothing here is ever overwritten. A version is the same as one here if it has its id, or its text under the same key
(or under none); then its savers join, and the store remembers under which id it came: whatever becomes of that row,
what joined it goes with it. A version of a key takes its place only where the two histories fit: after the
last, if it says that it replaced the last or a version of the last one's text; before the first, if it is older; right
before the version that it says replaced it. Anything else is a conflict, and stays out.

What is of lower authority takes no place of what is of higher, as in a save: it is contested, and stands beside it.

Files need not hold a key's versions in their order, nor stores that bring the past after the present. So a version
whose place is not clear is put off until the rest of its file is in: otherwise the same file would do more the second
time.

Each version comes in its final state. One whose successor is not here (yet) has `superseded_by` 0, which is no row: it
is history all the same, for an old value must never be taken for the current one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from agora.model.caller import Origin, rank
from agora.model.instants import maybe_micros, to_micros
from agora.ports.transfer import Arrival, Version
from agora.stores.sqlite.authority import is_above, level, outranking
from agora.stores.sqlite.standing import NOT_HERE, STANDING, Standing, by_id, one

# As a literal, so that the partial index on texts is known to apply.
_CURRENT = "i.type = 'note' AND i.superseded_by IS NULL AND i.forgotten_at IS NULL AND i.contests IS NULL"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with a version.

    `add`: insert it as number `version`, before `successor` if there is one, in the place of `replaces`; `crowded` if
    a row of its text that only the clock has ended holds its place. `join`: it is `standing`, let its savers join.
    `keep`: it is `standing`, change nothing. `refuse`: it contradicts `standing`. `open`: only as far as is known now,
    for other versions of its key may tell its place. `contests`: number of the row that it stands beside.
    """

    what: Literal["add", "join", "keep", "refuse"]
    standing: Standing | None = None
    reason: str | None = None
    version: int = 1
    successor: Standing | None = None
    replaces: tuple[Standing, ...] = ()
    crowded: bool = False
    open: bool = False
    contests: int | None = None


def decide(
    connection: sqlite3.Connection,
    namespace_id: int,
    arrival: Arrival,
    content_hash: bytes | None,
    now: int,
    origin: Origin = "agent",
) -> Decision:
    """What becomes of `arrival`, whose text has this hash (None if it is purged); only reads.

    `origin` is that of whoever brings it in.
    """
    version = arrival.version
    here = by_id(connection, version.id)
    if here is not None:
        return same_id(here, arrival, content_hash)
    joined = joined_before(connection, version)
    if joined is not None and joined.purged_at is not None:
        return Decision("keep", joined, PURGED)
    if joined is not None and (joined.content_hash != content_hash or _outlives(version, joined, now)):
        joined = None
    look = _Look(connection, namespace_id, version, content_hash, now, joined)
    if version.contests is not None:
        return look.beside()
    if version.key is None:
        return look.without_key()
    decision = look.following() if arrival.follows else look.with_key()
    return look.within_authority(decision, version.origin(origin))


def same_id(here: Standing, arrival: Arrival, content_hash: bytes | None) -> Decision:
    """What becomes of an arrival whose id a row here has."""
    version = arrival.version
    if here.purged_at is not None:
        return Decision("keep", here, PURGED)
    if arrival.follows:
        # The id was made from the text, and says nothing of title or kind.
        return Decision("join", here) if here.forgotten_at is None else Decision("keep", here, FORGOTTEN)
    if content_hash is None:
        return Decision("keep", here, "it was purged there, not here")
    # What became contested here came after what stood and stands: its number is not that of its file.
    number = here.version if here.contests is not None and version.contests is None else version.version
    place = (version.namespace, version.type, version.kind, version.key, number)
    text = (version.title, content_hash)
    if place != here[2:7] or text != (here.title, here.content_hash):
        return Decision("refuse", here, "another text has this id here")
    if (version.forgotten_at is None) == (here.forgotten_at is None):
        return Decision("join", here)
    forgotten, not_forgotten = ("there", "here") if here.forgotten_at is None else ("here", "there")
    return Decision("join", here, f"it was forgotten {forgotten}, not {not_forgotten}")


def joined_before(connection: sqlite3.Connection, version: Version) -> Standing | None:
    """The row that an import has let this version join under an id of its own."""
    found = one(
        connection.execute(f"{STANDING} JOIN aliases a ON a.item_id = i.id WHERE a.public_id = ?", (version.id,))
    )
    return found if found is not None and found.namespace == version.namespace else None


def _outlives(version: Version, joined: Standing, now: int) -> bool:
    """Whether the row left its place because the clock had ended it, while the version still lives: it was renewed."""
    ends, gone = joined.expires_at, joined.forgotten_at
    return ends is not None and gone is not None and ends <= gone and not expired(version, now)


FORGOTTEN = "it was forgotten here, and stays so"
PURGED = "it was purged here, and stays purged"


@dataclass(frozen=True, slots=True)
class _Look:
    """The questions that one version asks of the store."""

    connection: sqlite3.Connection
    namespace_id: int
    version: Version
    content_hash: bytes | None
    now: int
    joined: Standing | None
    """The row with this text that it joined before, under an id of its own."""

    def without_key(self) -> Decision:
        if self.joined is not None and (self._current() or self.joined.forgotten_at is not None):
            return self._with(self.joined)
        if not self._current():
            return Decision("add", successor=self._successor())
        twin = self._twin()
        # A row with a key may yet get a successor, and then this text would be nowhere.
        return (
            Decision("add", crowded=self._crowded())
            if twin is None
            else Decision("join", twin, open=twin.key is not None)
        )

    def _with(self, joined: Standing, *, open: bool = False) -> Decision:  # noqa: A002 - as the field
        if joined.forgotten_at is not None:
            return Decision("keep", joined, FORGOTTEN, open=open)
        return Decision("join", joined, open=open)

    def following(self) -> Decision:
        last = self._last()
        if last is None:
            return Decision("add", replaces=self._and_twin(()))
        if last.content_hash == self.content_hash and last.superseded_by is None:
            if last.forgotten_at is not None:
                return Decision("keep", last, FORGOTTEN)
            if last.live(self.now):
                return Decision("join", last)
        return Decision("add", version=last.version + 1, replaces=self._and_twin((last,)))

    def with_key(self) -> Decision:
        version, last = self.version, self._last()
        if last is None:
            return Decision("add", version=version.version, replaces=self._and_twin(self._replaced()))
        same = self._numbered(version.version)
        if self.content_hash is not None:
            if same is not None and same.content_hash == self.content_hash:
                return Decision("join", same)
            if last.content_hash == self.content_hash and self._current() and last.live(self.now):
                return Decision("join", last, open=True)
        if version.version > last.version and self._fits_after(last):
            replaces = tuple(dict.fromkeys((last, *self._replaced())))
            return Decision("add", version=version.version, replaces=self._and_twin(replaces))
        return self._behind(last, same)

    def _behind(self, last: Standing, same: Standing | None) -> Decision:
        """Where it goes if not after the last: with what it joined before, into the past, or nowhere."""
        version = self.version
        if self.joined is not None and self._current():
            return self._with(self.joined, open=True)
        if same is None and (place := self._between()) is not None:
            before, after = place
            replaces = tuple(old for old in (before, *self._replaced()) if old is not None)
            return Decision("add", version=version.version, successor=after, replaces=tuple(dict.fromkeys(replaces)))
        return Decision("refuse", last, f"the key {version.key!r} has another history here", open=True)

    def beside(self) -> Decision:
        """It was contested where it comes from, and is so here."""
        version = self.version
        if self.joined is not None and (self._current() or self.joined.forgotten_at is not None):
            return self._with(self.joined)
        if self._current():
            same = next((old for old in self._live(self._beside()) if old.content_hash == self.content_hash), None)
            if same is not None:
                return Decision("join", same)
        stands = by_id(self.connection, version.contests)
        if stands is None or stands.namespace != version.namespace or stands.key != version.key:
            stands = None if version.key is None else self._last()
        contests = NOT_HERE if stands is None else stands.row
        return Decision("add", version=version.version, successor=self._successor(), contests=contests)

    def within_authority(self, decision: Decision, origin: Origin) -> Decision:
        """The decision, unless it would hide what is of higher authority."""
        if decision.what != "add":
            return decision
        above = outranking(self.connection, [old.row for old in self._live(decision.replaces)], origin)
        # A row of its text without a key, which it would take in, stays beside it.
        within = tuple(old for old in decision.replaces if old.key is not None or old.row not in above)
        decision = replace(decision, replaces=within)
        after = decision.successor
        if after is None and self._current():
            return self._as_value(decision, origin)
        hidden = next((old for old in within if old.row in above), None)
        if after is None and hidden is not None:
            return Decision("refuse", hidden, "the key has a value of higher authority here", open=True)
        later = None if after is None or not self._current() else level(self.connection, after.row)
        if later is not None and rank(origin) < later:
            return Decision("refuse", after, "the key has a later value of lower authority here", open=True)
        return decision

    def _as_value(self, decision: Decision, origin: Origin) -> Decision:
        """The decision on what would be the value of its key: contested, where a value of higher authority stands."""
        beside, head = self._beside(), self._last()
        stands = [old for old in self._live((head, *beside)) if is_above(self.connection, old.row, origin)]
        settled = tuple(old for old in beside if not is_above(self.connection, old.row, origin))
        if not stands:
            # What came after it contested it, or will.
            earlier = [old for old in settled if old.version < decision.version]
            return replace(decision, replaces=tuple(dict.fromkeys((*decision.replaces, *earlier))))
        same = next((old for old in self._live(beside) if old.content_hash == self.content_hash), None)
        if same is not None:
            return Decision("join", same)
        first = min(stands, key=lambda old: level(self.connection, old.row) or 0)
        number = max(decision.version, 1 + max(old.version for old in (head, *beside) if old is not None))
        return Decision("add", version=number, replaces=settled, contests=first.row)

    def _live(self, rows: Iterable[Standing | None]) -> list[Standing]:
        return [row for row in rows if row is not None and row.live(self.now)]

    def _beside(self) -> tuple[Standing, ...]:
        """What is contested under its key, and has not made way for anything."""
        found = self.connection.execute(
            f"{STANDING} WHERE i.namespace_id = ? AND i.type = ? AND i.key = ? AND i.superseded_by IS NULL"
            " AND i.contests IS NOT NULL ORDER BY i.id",
            (self.namespace_id, self.version.type, self.version.key),
        )
        return tuple(Standing(*row) for row in found)

    def _between(self) -> tuple[Standing | None, Standing] | None:
        """The versions here that this one goes between, if it belongs to the past of its key; the first may be none."""
        number = self.version.version
        after = self._one(
            "i.type = ? AND i.key = ? AND i.contests IS NULL AND i.version > ? ORDER BY i.version, i.id",
            self.version.key,
            number,
        )
        before = self._one(
            "i.type = ? AND i.key = ? AND i.contests IS NULL AND i.version < ? ORDER BY i.version DESC, i.id DESC",
            self.version.key,
            number,
        )
        follows = before is None or (self._goes_after(before) and self._fits_after(before))
        successor = self._successor()
        if successor is not None and successor.version > number:
            return before if follows else None, successor
        if not follows or after is None or to_micros(self.version.created_at) > after.created_at:
            return None
        return before, after

    def _fits_after(self, last: Standing) -> bool:
        if last.superseded_by == NOT_HERE:
            # What came after it is missing here: there is no current version that this one could contradict.
            return True
        known = {replaced.id for replaced in self.version.replaces} | {self.version.supersedes}
        texts = {replaced.content_hash for replaced in self.version.replaces} - {None}
        return last.public_id in known or last.content_hash in texts

    def _replaced(self) -> tuple[Standing, ...]:
        """What it says that it replaced, as far as it is here and nothing nearer has its place."""
        found = [by_id(self.connection, replaced.id) for replaced in self.version.replaces]
        return tuple(old for old in found if old is not None and self._goes_after(old))

    def _goes_after(self, old: Standing) -> bool:
        if old.namespace != self.version.namespace or old.key not in {None, self.version.key}:
            return False
        if old.key is not None and old.contests is None and old.version >= self.version.version:
            return False
        if old.superseded_by in {None, NOT_HERE}:
            return True
        if old.contests is not None:
            return False
        after = one(self.connection.execute(f"{STANDING} WHERE i.id = ?", (old.superseded_by,)))
        return old.key is not None and after is not None and self.version.version < after.version

    def _and_twin(self, replaced: tuple[Standing, ...]) -> tuple[Standing, ...]:
        """`replaced`, and the current note of the same text without a key: one text, one current note."""
        if self.version.type != "note":
            return replaced
        twin = self._twin("AND i.key IS NULL") if self._current() else None
        return replaced if twin is None or twin in replaced else (*replaced, twin)

    def _successor(self) -> Standing | None:
        found = by_id(self.connection, self.version.superseded_by)
        if found is None or found.namespace != self.version.namespace or found.key is None:
            return None
        return found if self.version.key in {None, found.key} else None

    def _current(self) -> bool:
        version = self.version
        superseded = version.superseded_by is not None or version.superseded_at is not None
        return not superseded and version.forgotten_at is None and self.content_hash is not None

    def _last(self) -> Standing | None:
        """The current version of the key, else the newest whose successor is not here."""
        current = self._one(
            "i.type = ? AND i.key = ? AND i.superseded_by IS NULL AND i.contests IS NULL", self.version.key
        )
        if current is not None:
            return current
        return self._one(
            f"i.type = ? AND i.key = ? AND i.superseded_by = {NOT_HERE} AND i.contests IS NULL"
            " ORDER BY i.version DESC, i.id DESC LIMIT 1",
            self.version.key,
        )

    def _numbered(self, number: int) -> Standing | None:
        return self._one(
            "i.type = ? AND i.key = ? AND i.contests IS NULL AND i.version = ? ORDER BY i.id LIMIT 1",
            self.version.key,
            number,
        )

    def _twin(self, condition: str = "") -> Standing | None:
        """The live row with exactly this text: one without a key first, then the oldest."""
        return one(
            self.connection.execute(
                f"{STANDING} WHERE {_CURRENT} AND i.namespace_id = ? AND i.content_hash = ? {condition}"
                " AND (i.expires_at IS NULL OR i.expires_at > ?) ORDER BY i.key IS NOT NULL, i.id LIMIT 1",
                (self.namespace_id, self.content_hash, self.now),
            )
        )

    def _crowded(self) -> bool:
        found = self.connection.execute(
            f"SELECT 1 FROM items i WHERE {_CURRENT} AND i.namespace_id = ? AND i.content_hash = ? AND i.key IS NULL",
            (self.namespace_id, self.content_hash),
        )
        return found.fetchone() is not None

    def _one(self, condition: str, *values: object) -> Standing | None:
        return one(
            self.connection.execute(
                f"{STANDING} WHERE i.namespace_id = ? AND {condition}", (self.namespace_id, self.version.type, *values)
            )
        )


def expired(version: Version, now: int) -> bool:
    """Whether the clock has ended it."""
    ends = maybe_micros(version.expires_at)
    return ends is not None and ends <= now
