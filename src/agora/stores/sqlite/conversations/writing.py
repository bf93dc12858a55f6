from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Any

from agora.errors import SummaryOutdated
from agora.model.allowance import Allowances
from agora.model.caller import Caller
from agora.model.instants import from_micros, maybe_micros
from agora.model.message import MessageDraft, Strategy, Summary
from agora.ports.conversations import Appended
from agora.ports.records import Embedded
from agora.stores.sqlite import fields, journal
from agora.stores.sqlite.actors import add_saver, ensure_actor, ensure_namespace
from agora.stores.sqlite.allowance import Owner, charge_all
from agora.stores.sqlite.conversations.reading import current_summary, last_number
from agora.stores.sqlite.journal import Change
from agora.stores.sqlite.rows import canonical
from agora.stores.sqlite.saving import insert_passages
from agora.text.identity import content_hash, normal_hash


@dataclass(frozen=True, slots=True)
class Append:
    """Everything that one append needs inside its transaction."""

    draft: MessageDraft
    caller: Caller
    public_id: str
    now: int
    embedded: Embedded | None
    strategy: Strategy | None
    allowances: Allowances | None

    def __call__(self, connection: sqlite3.Connection) -> Appended:
        """Insert the message under the next number: whoever holds the write lock is the only one who counts.

        Raises: RateLimited, QuotaExceeded.
        """
        draft, now = self.draft, self.now
        namespace_id = ensure_namespace(connection, draft.namespace, now)
        actor = ensure_actor(connection, self.caller, now)
        if self.allowances is not None:
            size = len(draft.content.encode()) + len(canonical(draft.metadata).encode())
            owner = Owner("namespace", namespace_id, draft.namespace)
            charge_all(connection, self.allowances, actor, owner, size, now)
        seq = last_number(connection, namespace_id, draft.session) + 1
        connection.execute(
            "INSERT INTO conversations (namespace_id, session, strategy, last) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (namespace_id, session)"
            " DO UPDATE SET last = excluded.last, strategy = ifnull(excluded.strategy, strategy)",
            (namespace_id, draft.session, self.strategy, seq),
        )
        occurred, digest = maybe_micros(draft.occurred_at), content_hash(draft.content)
        row = connection.execute(
            "INSERT INTO items (public_id, type, namespace_id, kind, content_hash, normal_hash, session, seq, speaker,"
            " occurred_at, created_at, updated_at, effective_at)"
            " VALUES (?, 'message', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.public_id, namespace_id, draft.role, digest, normal_hash(draft.content)),
                *(draft.session, seq, draft.speaker, occurred, now, now, now if occurred is None else occurred),
            ),
        ).lastrowid
        assert row is not None
        connection.execute("INSERT INTO texts VALUES (?, NULL, ?, '{}')", (row, draft.content))
        fields.set_metadata(connection, row, draft.metadata)
        add_saver(connection, row, actor, now, {})
        if self.embedded is not None:
            insert_passages(connection, row, self.embedded)
        change = Change(now, namespace_id, draft.namespace, "append", row, self.public_id, digest)
        return Appended(self.public_id, seq, journal.append(connection, change, actor))


@dataclass(frozen=True, slots=True)
class Summarize:
    """Everything that a new summary needs inside its transaction."""

    namespace: str
    session: str
    summary: Summary
    replaces: int
    seen: int
    caller: Caller
    public_id: str
    now: int

    def __call__(self, connection: sqlite3.Connection) -> Summary:
        """Put the summary in the place of the one that it replaces.

        Raises: SummaryOutdated.
        """
        namespace_id = ensure_namespace(connection, self.namespace, self.now)
        standing = current_summary(connection, namespace_id, self.session)
        version = 0 if standing is None else standing.version
        if version != self.replaces:
            raise SummaryOutdated(
                f"the summary of {self.session!r} is at version {version}, not {self.replaces}: it was changed since"
            )
        self._require_messages(connection, namespace_id)
        actor = ensure_actor(connection, self.caller, self.now)
        head = self._head(connection, namespace_id)
        made = replace(
            self.summary,
            version=1 if head is None else head[2] + 1,
            at=from_micros(self.now),
            origin=self.caller.origin,
        )
        if head is not None:
            # It leaves its place before the new one takes it; it gets its successor's number below.
            connection.execute(
                "UPDATE items SET superseded_by = 0, superseded_at = ? WHERE id = ?", (self.now, head[0])
            )
        row = self._insert(connection, namespace_id, made, None if head is None else head[0])
        add_saver(connection, row, actor, self.now, {})
        if head is not None:
            connection.execute("UPDATE items SET superseded_by = ? WHERE id = ?", (row, head[0]))
            told: tuple[dict[str, Any], dict[str, Any]] = {"superseded_by": None}, {"superseded_by": self.public_id}
            old = Change(self.now, namespace_id, self.namespace, "supersede", head[0], head[1], head[3] or b"", *told)
            journal.append(connection, old, actor)
        digest = content_hash(made.text)
        after = {"first": made.first, "last": made.last, "written_by": made.written_by}
        change = Change(self.now, namespace_id, self.namespace, "summarize", row, self.public_id, digest, None, after)
        journal.append(connection, change, actor)
        return made

    def _require_messages(self, connection: sqlite3.Connection, namespace_id: int) -> None:
        """Return unless a message that it would quote was forgotten since it was made.

        Raises: SummaryOutdated.
        """
        if connection.execute(
            "SELECT 1 FROM journal j CROSS JOIN items m ON m.id = j.item_id WHERE j.sequence > ?"
            " AND j.operation = 'forget' AND m.type = 'message' AND m.namespace_id = ? AND m.session = ?"
            " AND m.seq BETWEEN ? AND ? LIMIT 1",
            (self.seen, namespace_id, self.session, self.summary.first, self.summary.last),
        ).fetchone():
            raise SummaryOutdated(f"a message of {self.session!r} was forgotten since this summary was made of it")

    def _head(self, connection: sqlite3.Connection, namespace_id: int) -> tuple[int, str, int, bytes | None] | None:
        """Row, id, version and hash of what holds the place: the summary that stands, or one that was forgotten."""
        found: tuple[int, str, int, bytes | None] | None = connection.execute(
            "SELECT id, public_id, version, content_hash FROM items WHERE namespace_id = ? AND type = 'summary'"
            " AND key = ? AND superseded_by IS NULL AND contests IS NULL",
            (namespace_id, self.session),
        ).fetchone()
        return found

    def _insert(self, connection: sqlite3.Connection, namespace_id: int, made: Summary, before: int | None) -> int:
        row = connection.execute(
            "INSERT INTO items (public_id, type, namespace_id, kind, key, version, content_hash, normal_hash,"
            " created_at, updated_at, effective_at, supersedes)"
            " VALUES (?, 'summary', ?, 'summary', ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.public_id, namespace_id, self.session, made.version),
                *(content_hash(made.text), normal_hash(made.text), self.now, self.now, self.now, before),
            ),
        ).lastrowid
        assert row is not None
        connection.execute("INSERT INTO texts VALUES (?, NULL, ?, '{}')", (row, made.text))
        connection.execute("INSERT INTO summaries VALUES (?, ?, ?, ?)", (row, made.first, made.last, made.written_by))
        return row
