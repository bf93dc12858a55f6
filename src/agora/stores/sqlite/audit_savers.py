"""Savers taken from a note, and given back: what they gave goes and comes with them, and the journal tells of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agora.model.caller import rank
from agora.model.instants import from_micros
from agora.ports.transfer import Giver
from agora.stores.sqlite import fields, fulltext, givers, journal
from agora.stores.sqlite.audit_history import GIVEN_BACK, REVERTED, WITHDRAWN, Coming, Event, Identity
from agora.stores.sqlite.audit_lineage import Item
from agora.stores.sqlite.authority import is_pinned, level
from agora.stores.sqlite.facts import settling
from agora.stores.sqlite.journal import Actor, Change, Operation

_SAVERS = (
    "SELECT s.n, a.name AS agent, c.name AS client, c.version AS client_version, c.token, s.session, s.origin,"
    " s.first_at, s.last_at, s.times, s.given FROM savers s JOIN agents a ON a.id = s.agent_id"
    " JOIN clients c ON c.id = s.client_id WHERE s.item_id = ? ORDER BY s.n"
)
_NAMES = ("n", "agent", "client", "client_version", "token", "session", "origin", "first_at", "last_at", "times")

Image = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Savers:
    """The savers of notes, in one write transaction."""

    connection: sqlite3.Connection
    actor: Actor
    now: int

    def withdraw(self, item: Item, savings: Sequence[Event], others: Sequence[Event], *, titled: bool) -> bool:
        """Take the savers that made `savings` from a note, with the tags, metadata and expiry that they gave.

        `others`: the savings that still count; `titled`: the title is of those that do not. False, and nothing done,
        if no saver would be left.
        """
        going = {each.saver for each in savings}
        known = self._known(item.row)
        kept = [each for each in known if _identity(each) not in going]
        if not kept:
            return False
        before, highest = self._image(item.row), level(self.connection, item.row)
        for each in known:
            if _identity(each) in going:
                self._delete(item.row, each["n"])
        self._arrange(item.row, [each["n"] for each in kept])
        wanted = _without(before, savings, others, kept)
        if titled:
            # The title is that of whoever came first.
            wanted["title"] = kept[0]["given"].get("title")
        lower = level(self.connection, item.row)
        if lower != highest:
            # What those of higher origin had given is not the note's any more: what the next ones gave is.
            wanted |= _given_by([each for each in kept if rank(each["origin"]) == lower])
            fields.raise_tags(self.connection, item.row)
        self._set(item, before, wanted)
        after = self._image(item.row) | {
            WITHDRAWN: [each.sequence for each in savings],
            "savers": [each for each in known if _identity(each) in going],
        }
        self._record("withdraw", item, before, after)
        settling.settle_of(self.connection, item.row, self.actor, self.now)
        if lower != highest and is_pinned(self.connection, item.row):
            # Only what is the user's is pinned.
            self.connection.execute("DELETE FROM pins WHERE item_id = ?", (item.row,))
            image = fields.mutable(self.connection, item.row)
            self._record("unpin", item, image | {"pinned": True}, image | {"pinned": False})
        return True

    def give_back(self, item: Item, coming: Coming) -> None:
        """Make savers that were withdrawn savers again, where they were, with what they gave."""
        before = self._image(item.row)
        order = [_identity(each) for each in self._known(item.row)]
        for saver in map(dict, coming.withdrawal.after["savers"]):
            identity = _identity(saver)
            if identity not in coming.savers:
                continue
            place = saver.pop("n")
            givers.put(self.connection, item.row, _giver(saver))
            if identity not in order:
                order.insert(place, identity)
        numbers = {_identity(each): each["n"] for each in self._known(item.row)}
        self._arrange(item.row, [numbers[each] for each in order])
        fields.lower_tags(self.connection, item.row)
        self._set(item, before, _with(before, coming.withdrawal.before, coming.withdrawal.after))
        marks = {"imported": {REVERTED: item.public_id}, GIVEN_BACK: list(coming.sequences)}
        self._record("merge", item, before, self._image(item.row) | marks)
        settling.settle_of(self.connection, item.row, self.actor, self.now)

    def _known(self, row: int) -> list[dict[str, Any]]:
        found = []
        for *values, given in self.connection.execute(_SAVERS, (row,)).fetchall():
            tags = self.connection.execute(
                "SELECT tag FROM item_tags WHERE item_id = ? AND saver = ? ORDER BY tag", (row, values[0])
            )
            tagged = [tag for (tag,) in tags]
            found.append(dict(zip(_NAMES, values, strict=True)) | {"given": json.loads(given), "tags": tagged})
        return found

    def _delete(self, row: int, n: int) -> None:
        self.connection.execute("DELETE FROM item_tags WHERE item_id = ? AND saver = ?", (row, n))
        self.connection.execute("DELETE FROM savers WHERE item_id = ? AND n = ?", (row, n))

    def _arrange(self, row: int, numbers: Sequence[int]) -> None:
        """Number the savers anew, in this order of their numbers so far: there is always one with the number 0."""
        moved = [(-1 - new, row, old) for new, old in enumerate(numbers)]
        for table, column in (("savers", "n"), ("item_tags", "saver")):
            # By way of numbers that nobody has.
            self.connection.executemany(f"UPDATE {table} SET {column} = ? WHERE item_id = ? AND {column} = ?", moved)
            self.connection.execute(
                f"UPDATE {table} SET {column} = -1 - {column} WHERE item_id = ? AND {column} < 0", (row,)
            )

    def _image(self, row: int) -> Image:
        [title] = self.connection.execute("SELECT title FROM texts WHERE item_id = ?", (row,)).fetchone()
        return fields.mutable(self.connection, row) | {"title": title}

    def _set(self, item: Item, before: Image, wanted: Image) -> None:
        execute, row = self.connection.execute, item.row
        fields.set_fields(self.connection, row, wanted["metadata"], wanted["confidence"], wanted["expires_at"])
        execute("UPDATE items SET updated_at = max(updated_at, ?) WHERE id = ?", (self.now, row))
        if wanted["title"] == before["title"]:
            return
        [type_, content] = execute(
            "SELECT i.type, t.content FROM items i JOIN texts t ON t.item_id = i.id WHERE i.id = ?", (row,)
        ).fetchone()
        # The vectors stay as they are: making others takes the model.
        execute("UPDATE texts SET title = ? WHERE item_id = ?", (wanted["title"], row))
        if item.superseded_by is None and item.forgotten_at is None:
            fulltext.remove(self.connection, row, item.namespace_id, type_)
            fulltext.put_back(self.connection, row, item.namespace_id, type_, wanted["title"], content)

    def _record(self, operation: Operation, item: Item, before: Image, after: Image) -> None:
        change = Change(
            *(self.now, item.namespace_id, item.namespace, operation, item.row, item.public_id),
            content_hash=item.content_hash or b"",
            before=before,
            after=after,
        )
        journal.append(self.connection, change, self.actor)


def _without(
    image: Image, savings: Sequence[Event], others: Sequence[Event], kept: Sequence[Mapping[str, Any]]
) -> Image:
    """What a note has without what `savings` gave it; what the savers that stay had given in vain is there then."""
    found = dict(image)
    theirs = {
        key for each in savings for key in each.after.get("metadata", {}).keys() - each.before.get("metadata", {})
    }
    metadata = {key: value for key, value in image["metadata"].items() if key not in theirs}
    for saver in kept:
        metadata = fields.joined(metadata, saver["given"].get("metadata", {}))
    found["metadata"] = metadata
    if any(each.before.get("confidence") is None and each.after.get("confidence") is not None for each in savings):
        confidences = (saver["given"].get("confidence") for saver in kept)
        found["confidence"] = next((each for each in confidences if each is not None), None)
    # What a later saver was promised is not kept: only where there is none, the expiry goes back.
    prolonging = [each for each in savings if each.before and each.before["expires_at"] != each.after["expires_at"]]
    if prolonging and all(each.sequence < prolonging[0].sequence for each in others):
        found["expires_at"] = prolonging[0].before["expires_at"]
    return found


def _given_by(savers: Sequence[Mapping[str, Any]]) -> Image:
    """The metadata and the confidence of a note that these alone have saved, as they have given them."""
    metadata: dict[str, Any] = {}
    confidence = None
    for saver in savers:
        metadata = fields.joined(metadata, saver["given"].get("metadata", {}))
        confidence = saver["given"].get("confidence") if confidence is None else confidence
    return {"metadata": metadata, "confidence": confidence}


def _with(image: Image, whole: Mapping[str, Any], reduced: Mapping[str, Any]) -> Image:
    """What a note has with what made `whole` of `reduced`, where nothing else has changed it since."""
    found = dict(image)
    for name in ("confidence", "expires_at", "title"):
        if image[name] == reduced[name]:
            found[name] = whole[name]
    metadata = dict(image["metadata"])
    for key in whole["metadata"].keys() | reduced["metadata"].keys():
        if metadata.get(key) != reduced["metadata"].get(key):
            continue
        metadata.pop(key, None)
        if key in whole["metadata"]:
            metadata[key] = whole["metadata"][key]
    found["metadata"] = metadata
    return found


def _identity(saver: Mapping[str, Any]) -> Identity:
    return tuple(saver[name] for name in ("agent", "client", "client_version", "token", "session", "origin"))


def _giver(saver: Mapping[str, Any]) -> Giver:
    times = {name: from_micros(saver[name]) for name in ("first_at", "last_at")}
    return Giver(**{**saver, **times, "tags": tuple(saver["tags"])})
