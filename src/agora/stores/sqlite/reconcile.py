"""What becomes of a version that comes from elsewhere, where this store may hold its id, its text or its key already.

Nothing here is ever overwritten. A version is the same as one here if it has its id, or its text under the same key
(or under none); then its savers join. A version of a key takes its place only where the two histories fit: after the
head, if it says that it replaced the head or a version of the head's text; before the oldest, if it is older; right
before the version that it says replaced it. Anything else is a conflict, and stays out.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agora.ports.transfer import Arrival, Version
from agora.stores.sqlite.instants import maybe_micros, to_micros


class Standing(NamedTuple):
    """A row as it stands in this store."""

    row: int
    public_id: str
    namespace: str
    type: str
    kind: str
    key: str | None
    version: int
    title: str | None
    content_hash: bytes | None
    created_at: int
    supersedes: int | None
    superseded_by: int | None
    forgotten_at: int | None
    expires_at: int | None
    purged_at: int | None

    def ended(self, now: int) -> bool:
        """Whether only the clock or a person took it away; a superseded row may not have ended."""
        return self.forgotten_at is not None or (self.expires_at is not None and self.expires_at <= now)


_SELECT = (
    "SELECT i.id, i.public_id, n.name, i.type, i.kind, i.key, i.version, t.title, i.content_hash, i.created_at,"
    " i.supersedes, i.superseded_by, i.forgotten_at, i.expires_at, i.purged_at"
    " FROM items i JOIN namespaces n ON n.id = i.namespace_id LEFT JOIN texts t ON t.item_id = i.id"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with a version.

    `add`: insert it as number `version`, before `successor` if there is one, in the place of `replaces`; `retired` if
    it ended before it came. `join`: it is `standing`, let its savers join. `keep`: it is `standing`, change nothing.
    `refuse`: it contradicts `standing`.
    """

    what: Literal["add", "join", "keep", "refuse"]
    standing: Standing | None = None
    reason: str | None = None
    version: int = 1
    successor: Standing | None = None
    replaces: tuple[Standing, ...] = ()
    retired: bool = False


def decide(
    connection: sqlite3.Connection, namespace_id: int, arrival: Arrival, content_hash: bytes | None, now: int
) -> Decision:
    """What becomes of `arrival`, whose text has this hash; reads only."""
    version = arrival.version
    here = by_id(connection, version.id)
    if here is not None:
        return _same_id(here, arrival, content_hash)
    look = _Look(connection, namespace_id, version, content_hash, now)
    if version.key is None:
        return look.without_key()
    return look.following() if arrival.follows else look.with_key()


def by_id(connection: sqlite3.Connection, public_id: str | None) -> Standing | None:
    """The row with this id, in whatever namespace and state."""
    return _one(connection.execute(f"{_SELECT} WHERE i.public_id = ?", (public_id,)))


def _same_id(here: Standing, arrival: Arrival, content_hash: bytes | None) -> Decision:
    version = arrival.version
    if here.purged_at is not None:
        return Decision("keep", here, "it was purged here, and stays purged")
    if arrival.follows:
        forgotten = here.forgotten_at is not None
        return Decision("keep", here, "it was forgotten here, and stays so") if forgotten else Decision("join", here)
    mine = (version.namespace, version.type, version.kind, version.key, version.version, version.title)
    if mine[:5] != here[2:7] or (
        content_hash is not None and (content_hash, version.title) != (here.content_hash, here.title)
    ):
        return Decision("refuse", here, "another text has this id here")
    if content_hash is None:
        return Decision("keep", here, "it was purged there, not here")
    if (version.forgotten_at is None) != (here.forgotten_at is None):
        where = ("there", "here") if here.forgotten_at is None else ("here", "there")
        return Decision("join", here, f"it was forgotten {where[0]}, not {where[1]}")
    return Decision("join", here)


@dataclass(frozen=True, slots=True)
class _Look:
    """The questions that one version asks of the store."""

    connection: sqlite3.Connection
    namespace_id: int
    version: Version
    content_hash: bytes | None
    now: int

    def without_key(self) -> Decision:
        if self.content_hash is None or self.version.forgotten_at is not None:
            return Decision("add", successor=self._successor())
        if (successor := self._successor()) is not None:
            return Decision("add", successor=successor)
        held = self._held()
        if held is None or (held.expires_at is not None and held.expires_at <= self.now):
            # One row of a text: where both have ended, the one that comes steps back.
            return Decision("add", retired=held is not None and self._expired())
        return Decision("join", held)

    def following(self) -> Decision:
        head = self._head()
        if head is None:
            return Decision("add", replaces=self._keyless(()))
        if head.content_hash == self.content_hash:
            if head.forgotten_at is not None:
                return Decision("keep", head, "it was forgotten here, and stays so")
            if not head.ended(self.now):
                return Decision("join", head)
        return Decision("add", version=head.version + 1, replaces=self._keyless((head,)))

    def with_key(self) -> Decision:
        version, head = self.version, self._head()
        if head is None:
            return Decision("add", version=version.version, replaces=self._keyless(self._replaced()))
        same = self._numbered(version.version)
        if same is not None and same.content_hash == self.content_hash and self.content_hash is not None:
            return Decision("join", same)
        if head.content_hash == self.content_hash and self._current() and not head.ended(self.now):
            return Decision("join", head)
        if version.version > head.version and self._fits_after(head):
            replaces = dict.fromkeys((head, *self._replaced()))
            return Decision("add", version=version.version, replaces=self._keyless(tuple(replaces)))
        if same is None and (after := self._older_than()) is not None:
            return Decision("add", version=version.version, successor=after, replaces=self._replaced())
        return Decision("refuse", head, f"the key {version.key!r} has another history here")

    def _older_than(self) -> Standing | None:
        """The version here that this one comes right before, if it belongs to the past of its key."""
        successor = self._successor()
        if successor is not None and successor.version > self.version.version:
            return successor
        first = self._one("i.key = ? ORDER BY i.version, i.id LIMIT 1", self.version.key)
        if first is None or first.version <= self.version.version:
            return None
        return first if to_micros(self.version.created_at) <= first.created_at else None

    def _fits_after(self, head: Standing) -> bool:
        known = {replaced.id for replaced in self.version.replaces} | {self.version.supersedes}
        texts = {replaced.content_hash for replaced in self.version.replaces} - {None}
        return head.public_id in known or head.content_hash in texts

    def _replaced(self) -> tuple[Standing, ...]:
        """What it says that it replaced, as far as it is here and nothing nearer has its place."""
        found = [by_id(self.connection, replaced.id) for replaced in self.version.replaces]
        return tuple(old for old in found if old is not None and self._goes_before(old))

    def _goes_before(self, old: Standing) -> bool:
        if old.namespace != self.version.namespace or old.key not in {None, self.version.key}:
            return False
        if old.superseded_by is None:
            return old.key is None or old.version < self.version.version
        after = _one(self.connection.execute(f"{_SELECT} WHERE i.id = ?", (old.superseded_by,)))
        between = after is not None and old.version < self.version.version < after.version
        return old.key is not None and between

    def _keyless(self, replaced: tuple[Standing, ...]) -> tuple[Standing, ...]:
        """`replaced`, and the current row of the same text without a key: one text, one current row."""
        held = self._held() if self._current() else None
        return replaced if held is None or held in replaced else (*replaced, held)

    def _successor(self) -> Standing | None:
        found = by_id(self.connection, self.version.superseded_by)
        if found is None or found.namespace != self.version.namespace or found.key is None:
            return None
        return found if self.version.key in {None, found.key} else None

    def _current(self) -> bool:
        version = self.version
        return version.superseded_by is None and version.forgotten_at is None and self.content_hash is not None

    def _expired(self) -> bool:
        expires = maybe_micros(self.version.expires_at)
        return expires is not None and expires <= self.now

    def _head(self) -> Standing | None:
        return self._one("i.key = ? AND i.superseded_by IS NULL AND i.contests IS NULL", self.version.key)

    def _numbered(self, number: int) -> Standing | None:
        return self._one("i.key = ? AND i.version = ? ORDER BY i.id LIMIT 1", self.version.key, number)

    def _held(self) -> Standing | None:
        """The row that holds this text's place: for a version without a key any that has not ended, else its own."""
        ended = "(i.expires_at IS NOT NULL AND i.expires_at <= ?)"
        key = "1" if self.version.key is None else "i.key IS NULL"
        return self._one(
            f"i.content_hash = ? AND i.superseded_by IS NULL AND i.forgotten_at IS NULL AND i.contests IS NULL"
            f" AND {key} AND (i.key IS NULL OR NOT {ended}) ORDER BY {ended}, i.key IS NOT NULL, i.id LIMIT 1",
            *(self.content_hash, self.now, self.now),
        )

    def _one(self, condition: str, *values: object) -> Standing | None:
        return _one(
            self.connection.execute(
                f"{_SELECT} WHERE i.namespace_id = ? AND i.type = ? AND {condition}",
                (self.namespace_id, self.version.type, *values),
            )
        )


def _one(cursor: sqlite3.Cursor) -> Standing | None:
    found = cursor.fetchone()
    return None if found is None else Standing(*found)
