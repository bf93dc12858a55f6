from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agora.model.allowance import Allowances
from agora.model.caller import Caller
from agora.model.note import Draft, Saved
from agora.ports.records import Embedded, VectorsNeeded
from agora.stores.sqlite import fulltext, heads, journal, reads
from agora.stores.sqlite.actors import ensure_actor, ensure_namespace
from agora.stores.sqlite.allowance import Owner, charge, size_of
from agora.stores.sqlite.heads import Head
from agora.stores.sqlite.instants import maybe_micros
from agora.stores.sqlite.journal import Actor, Change, Operation
from agora.stores.sqlite.rows import canonical, digest, metadata_of
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

        Raises: VectorsNeeded if a row must be inserted and `embedded` is None; RateLimited, QuotaExceeded.
        """
        namespace_id = ensure_namespace(connection, self.draft.namespace, self.now)
        actor = ensure_actor(connection, self.caller, self.now)
        twin = heads.same(connection, namespace_id, self.draft, self.now)
        if self.allowances is not None:
            size = 0 if twin is not None else size_of(self.draft)
            agent = Owner("agent", actor.agent_id, actor.agent)
            namespace = Owner("namespace", namespace_id, self.draft.namespace)
            charge(connection, agent, self.allowances.agent, size, self.now)
            charge(connection, namespace, self.allowances.namespace, size, self.now)
        if twin is not None:
            return self._merge(connection, namespace_id, twin, actor)
        if self.embedded is None:
            raise VectorsNeeded
        return self._insert(connection, namespace_id, actor, self.embedded)

    def _merge(self, connection: sqlite3.Connection, namespace_id: int, twin: Head, actor: Actor) -> Saved:
        """One row, one more saver: tags are joined, gaps are filled, nothing the first saver said is lost."""
        before = mutable(connection, twin.row)
        self._add_saver(connection, twin.row, actor)
        expires = _later(before["expires_at"], maybe_micros(self.draft.expires_at))
        self._set_metadata(connection, twin.row, {**self.draft.metadata, **before["metadata"]})
        connection.execute(
            "UPDATE items SET updated_at = max(updated_at, ?), expires_at = ?,"
            " confidence = coalesce(confidence, ?) WHERE id = ?",
            (self.now, expires, self.draft.confidence, twin.row),
        )
        after = mutable(connection, twin.row)
        sequence = self._record(connection, namespace_id, "merge", twin, actor, before, after)
        return Saved(
            twin.public_id,
            "duplicate",
            self.draft.namespace,
            twin.version,
            sequence,
            duplicate_of=twin.public_id,
        )

    def _insert(self, connection: sqlite3.Connection, namespace_id: int, actor: Actor, embedded: Embedded) -> Saved:
        draft = self.draft
        heads.retire_expired(connection, namespace_id, self.draft.namespace, draft.content, self.now, actor)
        head = heads.of_key(connection, namespace_id, draft.key, self.now) if draft.key is not None else None
        twin = heads.of_text(connection, namespace_id, draft.content, self.now) if draft.key is not None else None
        # A row of the same text without a key becomes history too: one text, one current row.
        replaced = [old for old in (head, twin if twin and twin.key is None else None) if old is not None]
        for old in replaced:
            # The old head leaves its place before the new one takes it; it gets its successor's number below.
            connection.execute(
                "UPDATE items SET superseded_by = 0, superseded_at = ? WHERE id = ?", (self.now, old.row)
            )
            fulltext.remove(connection, old.row, namespace_id, "note")
        # What the savers of the same text gave goes on with it; of a version with another text nothing does.
        kept = mutable(connection, twin.row) if twin in replaced and twin is not head else None
        row = self._insert_item(connection, namespace_id, head.version + 1 if head else 1, replaced, kept)
        for old in replaced:
            connection.execute("UPDATE items SET superseded_by = ? WHERE id = ?", (row, old.row))
            if old is not head:
                _copy_savers(connection, old.row, row)
            self._record(
                connection,
                namespace_id,
                "supersede",
                old,
                actor,
                {"superseded_by": None},
                {"superseded_by": self.public_id},
            )
        self._add_saver(connection, row, actor)
        self._set_metadata(connection, row, {**(kept["metadata"] if kept else {}), **draft.metadata})
        insert_passages(connection, row, embedded)
        fulltext.add(connection, row, namespace_id, "note", self.text)
        new = Head(
            row,
            self.public_id,
            draft.key,
            head.version + 1 if head else 1,
            content_hash(draft.content),
            live=True,
        )
        sequence = self._record(connection, namespace_id, "save", new, actor, None, mutable(connection, row))
        return Saved(
            self.public_id,
            "updated" if replaced else "created",
            draft.namespace,
            new.version,
            sequence,
            supersedes=replaced[0].public_id if replaced else None,
        )

    def _insert_item(
        self,
        connection: sqlite3.Connection,
        namespace_id: int,
        version: int,
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
            expires = _later(kept["expires_at"], expires)
            confidence = kept["confidence"] if confidence is None else confidence
        row = connection.execute(
            "INSERT INTO items (public_id, type, namespace_id, kind, key, version, content_hash, normal_hash,"
            " confidence, session, occurred_at, created_at, updated_at, effective_at, expires_at, supersedes)"
            " VALUES (?, 'note', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.public_id, namespace_id, draft.kind, draft.key, version),
                *(content_hash(draft.content), normal_hash(draft.content)),
                *(confidence, self.caller.session, occurred),
                *(now, now, now if occurred is None else occurred, expires),
                replaced[0].row if replaced else None,
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
        identity = (row, actor.agent_id, actor.client_id, actor.session, actor.origin)
        connection.execute(
            "INSERT INTO savers (item_id, agent_id, client_id, session, origin, n, first_at, last_at, given)"
            " VALUES (?, ?, ?, ?, ?, (SELECT coalesce(max(n) + 1, 0) FROM savers WHERE item_id = ?), ?, ?, ?)"
            " ON CONFLICT (item_id, agent_id, client_id, session, origin)"
            " DO UPDATE SET times = times + 1, last_at = excluded.last_at",
            (*identity, row, self.now, self.now, canonical(given)),
        )
        n = connection.execute(
            "SELECT n FROM savers WHERE item_id = ? AND agent_id = ? AND client_id = ? AND session = ? AND origin = ?",
            identity,
        ).fetchone()[0]
        connection.executemany(
            "INSERT INTO item_tags VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            ((row, tag, n) for tag in draft.tags),
        )

    def _set_metadata(self, connection: sqlite3.Connection, row: int, metadata: Mapping[str, Any]) -> None:
        connection.execute("UPDATE texts SET metadata = ? WHERE item_id = ?", (canonical(metadata), row))
        connection.executemany(
            "INSERT INTO item_metadata VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            ((row, key, digest(value)) for key, value in metadata.items()),
        )

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


def _later(one: int | None, other: int | None) -> int | None:
    """Of two expiries the later, and none is later than any: neither saver may lose what it was promised."""
    return None if one is None or other is None else max(one, other)


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


def mutable(connection: sqlite3.Connection, row: int) -> dict[str, Any]:
    """The fields of an item that a later change may touch, for the journal's images."""
    confidence, expires_at, metadata, public_id = connection.execute(
        "SELECT i.confidence, i.expires_at, t.metadata, i.public_id FROM items i JOIN texts t ON t.item_id = i.id"
        " WHERE i.id = ?",
        (row,),
    ).fetchone()
    tags = connection.execute("SELECT DISTINCT tag FROM item_tags WHERE item_id = ? ORDER BY tag", (row,))
    return {
        "metadata": metadata_of(public_id, metadata),
        "confidence": confidence,
        "expires_at": expires_at,
        "tags": [tag for (tag,) in tags],
    }


def _copy_savers(connection: sqlite3.Connection, source: int, target: int) -> None:
    for table, columns in (
        ("savers", "n, agent_id, client_id, session, origin, first_at, last_at, times, given"),
        ("item_tags", "tag, saver"),
    ):
        connection.execute(
            f"INSERT INTO {table} (item_id, {columns}) SELECT ?, {columns} FROM {table} WHERE item_id = ?",
            (target, source),
        )
