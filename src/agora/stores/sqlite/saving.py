from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agora.model.allowance import Allowances
from agora.model.caller import Caller, rank
from agora.model.instants import maybe_micros
from agora.model.note import Draft, Saved
from agora.ports.records import Embedded, VectorsNeeded
from agora.stores.sqlite import fields, fulltext, givers, heads, journal, reads
from agora.stores.sqlite.actors import add_saver, ensure_actor, ensure_namespace
from agora.stores.sqlite.allowance import Owner, charge_all, size_of
from agora.stores.sqlite.authority import is_above, is_pinned, level
from agora.stores.sqlite.heads import Head, Place
from agora.stores.sqlite.journal import Actor, Change, Operation
from agora.text.identity import content_hash, normal_hash


@dataclass(frozen=True, slots=True)
class Save:
    """Everything one save needs inside its transaction, computed before the lock is taken."""

    draft: Draft
    caller: Caller
    public_id: str
    now: int
    text: tuple[fulltext.Prepared, ...]
    embedded: Embedded | None
    allowances: Allowances | None = None

    def __call__(self, connection: sqlite3.Connection) -> Saved:
        """Add the caller to the row of the same text, or insert a row and supersede what it replaces.

        What is of higher authority than the caller is not replaced: the new row is contested, and stands beside it.

        Raises: VectorsNeeded if a row must be inserted and `embedded` is None; RateLimited, QuotaExceeded.
        """
        namespace_id = ensure_namespace(connection, self.draft.namespace, self.now)
        actor = ensure_actor(connection, self.caller, self.now)
        place = heads.place(connection, namespace_id, self.draft, self.caller.origin, self.now)
        if self.allowances is not None:
            size = 0 if place.joins is not None else size_of(self.draft)
            namespace = Owner("namespace", namespace_id, self.draft.namespace)
            charge_all(connection, self.allowances, actor, namespace, size, self.now)
        if place.joins is not None:
            return self._merge(connection, namespace_id, place, place.joins, actor)
        if self.embedded is None:
            raise VectorsNeeded
        return self._insert(connection, namespace_id, place, actor, self.embedded)

    def _merge(
        self, connection: sqlite3.Connection, namespace_id: int, place: Place, twin: Head, actor: Actor
    ) -> Saved:
        """One row, one more saver, whose word counts by its authority.

        Equal to the highest before: tags are joined, gaps are filled, nothing the first saver said is lost. Higher: the
        fields are this saver's. Lower: they stay as they are.
        """
        draft, mine, highest = self.draft, rank(self.caller.origin), level(connection, twin.row)
        before = fields.mutable(connection, twin.row)
        self._add_saver(connection, twin.row, actor)
        ends = maybe_micros(draft.expires_at)
        if mine == highest:
            confidence = draft.confidence if before["confidence"] is None else before["confidence"]
            metadata = fields.joined(before["metadata"], draft.metadata)
            fields.set_fields(connection, twin.row, metadata, confidence, fields.later(before["expires_at"], ends))
        elif highest is None or mine < highest:
            fields.set_fields(connection, twin.row, draft.metadata, draft.confidence, ends)
        if highest is None or mine <= highest:
            fields.lower_tags(connection, twin.row)
            connection.execute("UPDATE items SET updated_at = max(updated_at, ?) WHERE id = ?", (self.now, twin.row))
        self._settle(connection, namespace_id, place, twin, actor)
        after = fields.mutable(connection, twin.row)
        sequence = self._record(connection, namespace_id, "merge", twin, actor, before, after)
        return Saved(
            twin.public_id,
            "duplicate" if twin.contests is None else "contested",
            draft.namespace,
            twin.version,
            sequence,
            duplicate_of=twin.public_id,
            contests=twin.contests,
        )

    def _insert(
        self, connection: sqlite3.Connection, namespace_id: int, place: Place, actor: Actor, embedded: Embedded
    ) -> Saved:
        draft, stands = self.draft, place.stands
        settled = heads.settled_by(connection, place.contested, self.caller.origin, None)
        twin = None
        if stands is None:
            heads.retire_expired(connection, namespace_id, self.draft.namespace, draft.content, self.now, actor)
            twin = self._twin(connection, namespace_id)
        # A row of the same text without a key becomes history too: one text, one current row.
        own = [old for old in (place.head, twin) if old is not None] if stands is None else []
        replaced = own or settled
        for old in (*own, *settled):
            # The old head leaves its place before the new one takes it; it gets its successor's number below.
            connection.execute(
                "UPDATE items SET superseded_by = 0, superseded_at = ? WHERE id = ?", (self.now, old.row)
            )
        # What the savers of the same text gave goes on with it; of a version with another text nothing does.
        kept = None
        if twin is not None and level(connection, twin.row) == rank(self.caller.origin):
            kept = fields.mutable(connection, twin.row)
        row = self._insert_item(connection, namespace_id, place, replaced, kept)
        new = Head(row, self.public_id, draft.key, place.version, content_hash(draft.content), live=True)
        for old in own:
            if old is twin:
                _copy_savers(connection, old.row, row)
            self._supersede(connection, namespace_id, old, new, actor, "supersede")
        pinned = twin is not None and is_pinned(connection, twin.row)
        if pinned:
            connection.execute("INSERT INTO pins VALUES (?, ?)", (row, self.now))
        self._add_saver(connection, row, actor)
        for old in settled:
            if old.content_hash == new.content_hash:
                givers.copy(connection, old.row, row)
            self._supersede(connection, namespace_id, old, new, actor, "settle" if stands is None else "supersede")
        fields.set_metadata(connection, row, fields.joined(draft.metadata, kept["metadata"] if kept else {}))
        fields.lower_tags(connection, row)
        insert_passages(connection, row, embedded)
        fulltext.add(connection, row, namespace_id, "note", self.text)
        after = fields.mutable(connection, row) | ({"pinned": True} if pinned else {})
        if stands is not None:
            beside = {"contested_by": self.public_id}
            self._record(connection, namespace_id, "contest", stands, actor, None, beside)
            after["contests"] = stands.public_id
        sequence = self._record(connection, namespace_id, "save", new, actor, None, after)
        return Saved(
            self.public_id,
            "contested" if stands else "updated" if replaced else "created",
            draft.namespace,
            new.version,
            sequence,
            supersedes=replaced[0].public_id if replaced else None,
            contests=None if stands is None else stands.public_id,
        )

    def _twin(self, connection: sqlite3.Connection, namespace_id: int) -> Head | None:
        """The row of the same text without a key that a save with one takes in."""
        if self.draft.key is None:
            return None
        twin = heads.of_text(connection, namespace_id, self.draft.content, self.now)
        if twin is None or twin.key is not None or is_above(connection, twin.row, self.caller.origin):
            return None
        return twin

    def _settle(
        self, connection: sqlite3.Connection, namespace_id: int, place: Place, kept: Head, actor: Actor
    ) -> None:
        """Let what is contested under the key make way for `kept`, which was said again."""
        if self.draft.key is None:
            return
        operation: Operation = "settle" if kept.contests is None else "supersede"
        for old in heads.settled_by(connection, place.contested, self.caller.origin, kept.row):
            self._supersede(connection, namespace_id, old, kept, actor, operation)

    def _supersede(
        self,
        connection: sqlite3.Connection,
        namespace_id: int,
        old: Head,
        new: Head,
        actor: Actor,
        operation: Operation,
    ) -> None:
        connection.execute(
            "UPDATE items SET superseded_by = ?, superseded_at = ? WHERE id = ?", (new.row, self.now, old.row)
        )
        fulltext.remove(connection, old.row, namespace_id, "note")
        before, after = {"superseded_by": None}, {"superseded_by": new.public_id}
        self._record(connection, namespace_id, operation, old, actor, before, after)

    def _insert_item(
        self,
        connection: sqlite3.Connection,
        namespace_id: int,
        place: Place,
        replaced: list[Head],
        kept: Mapping[str, Any] | None,
    ) -> int:
        draft, now = self.draft, self.now
        occurred, expires, confidence = (
            maybe_micros(draft.occurred_at),
            maybe_micros(draft.expires_at),
            draft.confidence,
        )
        if kept is not None:
            expires = fields.later(kept["expires_at"], expires)
            confidence = kept["confidence"] if confidence is None else confidence
        row = connection.execute(
            "INSERT INTO items (public_id, type, namespace_id, kind, key, version, content_hash, normal_hash,"
            " confidence, session, occurred_at, created_at, updated_at, effective_at, expires_at, supersedes, contests)"
            " VALUES (?, 'note', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.public_id, namespace_id, draft.kind, draft.key, place.version),
                *(content_hash(draft.content), normal_hash(draft.content)),
                *(confidence, self.caller.session, occurred),
                *(now, now, now if occurred is None else occurred, expires),
                replaced[0].row if replaced else None,
                None if place.stands is None else place.stands.row,
            ),
        ).lastrowid
        assert row is not None
        connection.execute("INSERT INTO texts VALUES (?, ?, ?, '{}')", (row, draft.title, draft.content))
        return row

    def _add_saver(self, connection: sqlite3.Connection, row: int, actor: Actor) -> None:
        draft = self.draft
        given: dict[str, Any] = {"title": draft.title, "metadata": dict(draft.metadata), "confidence": draft.confidence}
        given["echo_of"] = reads.echo_of(connection, self.caller, draft.content, self.now)
        given = {name: value for name, value in given.items() if value}
        n = add_saver(connection, row, actor, self.now, given)
        if is_above(connection, row, self.caller.origin):
            fields.keep_tags(connection, row, n, draft.tags)
            return
        fields.add_tags(connection, row, n, draft.tags)

    def _record(  # noqa: PLR0913, PLR0917 - the fields of one journal row
        self,
        connection: sqlite3.Connection,
        namespace_id: int,
        operation: Operation,
        head: Head,
        actor: Actor,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
    ) -> int:
        change = Change(
            at=self.now,
            namespace_id=namespace_id,
            namespace=self.draft.namespace,
            operation=operation,
            item_id=head.row,
            public_id=head.public_id,
            content_hash=head.content_hash,
            before=before,
            after=after,
        )
        return journal.append(connection, change, actor)


def insert_passages(connection: sqlite3.Connection, row: int, embedded: Embedded) -> None:
    """Store the passages of an item and one vector for each."""
    # Looked up here and not remembered: the file may have been replaced since this process opened it.
    encoder_id, layout = connection.execute(
        "SELECT id, layout FROM encoders WHERE digest = ? AND state = 'active'", (embedded.fingerprint.digest(),)
    ).fetchone()
    for n, (span, vector) in enumerate(zip(embedded.spans, embedded.vectors, strict=True)):
        passage = connection.execute(
            "INSERT INTO passages (item_id, layout, n, start, stop) VALUES (?, ?, ?, ?, ?)",
            (row, layout, n, span.start, span.stop),
        ).lastrowid
        connection.execute(
            "INSERT INTO vectors (passage_id, encoder_id, vector) VALUES (?, ?, ?)",
            (passage, encoder_id, vector.astype("<f4").tobytes()),
        )


def _copy_savers(connection: sqlite3.Connection, source: int, target: int) -> None:
    for table, columns in (
        ("savers", "n, agent_id, client_id, session, origin, first_at, last_at, times, given"),
        ("item_tags", "tag, saver"),
    ):
        connection.execute(
            f"INSERT INTO {table} (item_id, {columns}) SELECT ?, {columns} FROM {table} WHERE item_id = ?",
            (target, source),
        )
