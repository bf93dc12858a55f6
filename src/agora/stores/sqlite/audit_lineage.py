"""What one writer did to a note, and what others did to it since: read from the journal, in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agora.model.audit import Writer
from agora.model.instants import maybe_micros
from agora.stores.sqlite.audit_history import REVERTED, Event, History, Identity
from agora.stores.sqlite.forgetting import REVERTED as MARK

REASON = "reverted"
"""What notes are forgotten for by a revert."""

_FLAGS = frozenset({"forget", "restore", "expire"})

_OPENING = 80


class Item(NamedTuple):
    """A note as it stands."""

    row: int
    public_id: str
    namespace_id: int
    namespace: str
    key: str | None
    version: int
    content_hash: bytes | None
    normal_hash: bytes | None
    supersedes: int | None
    superseded_by: int | None
    forgotten_at: int | None
    expires_at: int | None
    purged_at: int | None
    forget_reason: str | None
    type: str
    title: str


_ITEM = (
    "SELECT i.id, i.public_id, i.namespace_id, n.name, i.key, i.version, i.content_hash, i.normal_hash, i.supersedes,"
    # What ends a fact is drawn from the others of its kind, and drawn anew when one of these is taken back.
    " CASE i.type WHEN 'fact' THEN NULL ELSE i.superseded_by END, i.forgotten_at,"
    " CASE i.type WHEN 'fact' THEN NULL ELSE i.expires_at END, i.purged_at, i.forget_reason,"
    " i.type,"
    f" coalesce(t.title, substr(t.content, 1, {4 * _OPENING}), '')"
    " FROM items i JOIN namespaces n ON n.id = i.namespace_id LEFT JOIN texts t ON t.item_id = i.id"
)


@dataclass(frozen=True, slots=True)
class Flags:
    """Whether a note is forgotten, and whether it was before the writer's last acts; who acted last.

    `reverted`: it was forgotten by a revert before the writer's last acts. `bared`: it is forgotten for that, and but
    for the writer it would have been live when it was.
    """

    now: bool
    before: bool
    by: str | None
    reverted: bool
    bared: bool

    @property
    def changed(self) -> bool:
        """Whether the writer's acts are the last, and made a difference."""
        return self.now != self.before


class Lineage:
    """Questions about notes and the writer, answered anew each time."""

    def __init__(self, connection: sqlite3.Connection, writer: Writer, now: int) -> None:
        self._connection = connection
        self._writer = writer
        self._since = maybe_micros(writer.since)
        self.now = now

    def touched(self) -> list[int]:
        """Every note that the writer saved, forgot, restored or took a saver from, in the order of their making."""
        writer, conditions, values = self._writer, list[str](), list[object]()
        for sql, value in (
            ("a.name = ?", writer.agent),
            ("j.session = ?", writer.session),
            ("c.name = ?", writer.client),
            ("c.token = ?", writer.token),
            ("n.name = ?", writer.namespace),
            ("j.at >= ?", self._since),
        ):
            if value is not None:
                conditions.append(sql)
                values.append(value)
        found = self._connection.execute(
            "SELECT DISTINCT j.item_id FROM journal j JOIN agents a ON a.id = j.agent_id"
            " JOIN clients c ON c.id = j.client_id JOIN namespaces n ON n.id = j.namespace_id"
            " WHERE j.item_id IS NOT NULL AND j.operation IN"
            " ('save', 'merge', 'forget', 'restore', 'withdraw', 'append', 'summarize')"
            f" AND {' AND '.join(conditions)}",
            values,
        )
        # What a revert brought back is whose it was.
        copies = self._connection.execute(
            "SELECT j.item_id FROM journal_payload p JOIN journal j ON j.sequence = p.sequence"
            " WHERE j.operation = 'save' AND instr(p.after, ?)",
            (f'"{REVERTED}"',),
        )
        keyed = self._connection.execute(
            "SELECT id, superseded_by FROM items WHERE (key IS NULL OR contests IS NOT NULL) AND superseded_by > 0"
            " AND type <> 'fact' AND purged_at IS NULL"
        )
        rows = {row for (row,) in (*found, *copies)}
        return sorted(rows | {after for row, after in keyed if row in rows})

    def item(self, row: int) -> Item | None:
        """A note that was not purged; None if there is none."""
        found = self._connection.execute(f"{_ITEM} WHERE i.id = ?", (row,)).fetchone()
        if found is None or found[12] is not None:
            return None
        return _item(found)

    def history(self, row: int) -> History:
        """What was done to a note, first to last; of a copy that a revert made, also to what it is a copy of."""
        events = self._with_merged(row, self._events(row))
        made = next((each for each in events if each.operation == "save"), None)
        if made is None:
            return History(events)
        if made.copy_of is None:
            brought = [self.history(loose) for loose in self._loose(row)]
            return History(events, tuple(each for older in brought for each in older.savings_before(made)))
        source = self._connection.execute("SELECT id FROM items WHERE public_id = ?", (made.copy_of,)).fetchone()
        if source is None:
            return History(events)
        older = self.history(source[0])
        events = [*older.savings_before(made), *(each for each in events if each is not made)]
        return History(events, older.brought, made)

    def _with_merged(self, row: int, events: list[Event]) -> list[Event]:
        """The events with the savings of the note that it came from in the place of what a revert put on this one."""
        found: list[Event] = []
        for each in events:
            source = None
            if each.operation == "merge" and each.copy_of is not None:
                source = self._connection.execute(
                    # What is given back to a note names the note itself.
                    "SELECT id FROM items WHERE public_id = ? AND id < ?",
                    (each.copy_of, row),
                ).fetchone()
            found += [each] if source is None else self.history(source[0]).savings_before(each)
        return found

    def _loose(self, row: int) -> list[int]:
        """Notes whose savers are this one's too: without a key or contested, and it is the same text under a key."""
        found = self._connection.execute(
            "SELECT o.id FROM items i JOIN items o ON o.namespace_id = i.namespace_id AND o.normal_hash = i.normal_hash"
            " WHERE i.id = ? AND i.key IS NOT NULL AND o.superseded_by = i.id AND (o.key IS NULL"
            " OR (o.contests IS NOT NULL AND o.content_hash = i.content_hash)) ORDER BY o.id",
            (row,),
        )
        return [loose for (loose,) in found]

    def _events(self, row: int) -> list[Event]:
        found = self._connection.execute(
            "SELECT j.sequence, j.operation, j.at, n.name, a.name, c.name, c.version, c.token, j.session, j.origin,"
            " p.before, p.after FROM journal j"
            " JOIN agents a ON a.id = j.agent_id JOIN clients c ON c.id = j.client_id"
            " JOIN namespaces n ON n.id = j.namespace_id"
            " LEFT JOIN journal_payload p ON p.sequence = j.sequence"
            " AND j.operation IN ('save', 'merge', 'withdraw', 'forget')"
            " WHERE j.item_id = ? ORDER BY j.sequence",
            (row,),
        )
        return [self._event(each) for each in found]

    def _event(self, found: Sequence[Any]) -> Event:
        sequence, operation, at, namespace, *saver = found[:10]
        before, after = (json.loads(image) if image else {} for image in found[10:])
        event = Event(sequence, operation, False, tuple(saver), before, after)  # noqa: FBT003 - a named tuple's field
        return event._replace(mine=self._is_mine(event, at, namespace))

    def _is_mine(self, event: Event, at: int, namespace: str) -> bool:
        writer = self._writer
        if (event.copy_of is not None or _by_revert(event)) and writer.session is None:
            # A revert run by the same agent is no change to be reverted with the rest; by its session it can be.
            return False
        return (writer.namespace is None or namespace == writer.namespace) and self.is_writer(event.saver, at)

    def owns(self, row: int) -> bool:
        """Whether the writer alone has saved a note, of all whose saving of it stands."""
        return self.history(row).owned

    def moving(self) -> bool:
        """Whether the store is on its way to another encoder."""
        found = self._connection.execute("SELECT 1 FROM encoders WHERE state = 'building'")
        return found.fetchone() is not None

    def flags(self, item: Item) -> Flags:
        """Whether a note is forgotten, and was before the writer's last acts."""
        acts: Sequence[Event] = [each for each in self.history(item.row).events if each.operation in _FLAGS]
        by = acts[-1].agent if acts else None
        # An import brings notes that are forgotten already.
        hidden = acts[0].operation == "restore" if acts else item.forgotten_at is not None
        acts = _before_mine(acts)
        reverted = bool(acts) and _by_revert(acts[-1])
        below = list(acts)
        while below and _by_revert(below[-1]):
            below.pop()
        bared = reverted and _hides(below, hidden) and not _hides(_before_mine(below), hidden)
        return Flags(item.forgotten_at is not None, _hides(acts, hidden), by, reverted, bared)

    def expired(self, item: Item) -> bool:
        """Whether the clock has ended a note."""
        return item.expires_at is not None and item.expires_at <= self.now

    def replaced(self, item: Item) -> Iterator[Item]:
        """What a note took the place of: the version before it, and a note of the same text without a key.

        Nothing of a fact: what holds once it counts as never said is drawn from the others, and none of them changes.
        """
        if item.type == "fact":
            return
        # By the row number, and by the hash of texts: nothing indexes `superseded_by`.
        found = self._connection.execute(
            # A summary comes from the one before it: when it goes, the older one does not come back.
            f"{_ITEM} WHERE i.id = ? AND i.type <> 'summary'"
            f" UNION {_ITEM} WHERE i.namespace_id = ? AND i.normal_hash = ? AND i.key IS NULL"
            " AND i.superseded_by = ? ORDER BY 1",
            (item.supersedes, item.namespace_id, item.normal_hash, item.row),
        ).fetchall()
        yield from map(_item, found)

    def is_writer(self, saver: Identity, at: int) -> bool:
        """Whether a saver of a note, who saved it then, is the writer."""
        agent, client, _, token, session, _ = saver
        wanted = self._writer
        asked = ((wanted.agent, agent), (wanted.client, client), (wanted.token, token), (wanted.session, session))
        return all(name in {None, found} for name, found in asked) and (self._since is None or at >= self._since)


def _before_mine(acts: Sequence[Event]) -> Sequence[Event]:
    """What was done before the writer's last acts."""
    end = len(acts)
    while end and acts[end - 1].mine and acts[end - 1].operation != "expire":
        end -= 1
    return acts[:end]


def _hides(acts: Sequence[Event], hidden: bool) -> bool:
    """Whether a note is forgotten after these acts; `hidden` if it was before them."""
    return acts[-1].operation != "restore" if acts else hidden


def _by_revert(act: Event) -> bool:
    return act.operation == "forget" and MARK in act.after


def _item(found: Sequence[Any]) -> Item:
    return Item(*(*found[:-1], " ".join(found[-1].split())[:_OPENING]))
