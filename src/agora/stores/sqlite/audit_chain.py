"""A walk over the journal from its first row to its last: each row against its hash, the one before, and its item.

What this finds out, and what nothing can, is told in docs/audit.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Sequence
from typing import Any

from agora.model.audit import Break, Head, Verified
from agora.stores.sqlite.journal import MAKING, chain, commitment
from agora.text.identity import content_hash

_ROWS = (
    "SELECT j.format, j.sequence, j.at, j.namespace_id, j.operation, j.subject, j.agent_id, j.client_id, j.session,"
    " j.origin, j.commitment, j.previous_hash, j.hash, p.nonce, p.content, p.before, p.after, j.item_id{items}"
    " FROM journal j LEFT JOIN journal_payload p ON p.sequence = j.sequence{join} ORDER BY j.sequence"
)

_ALONE = _ROWS.format(items="", join="")
"""The journal alone: it can be read where the notes cannot."""

_WITH_ITEMS = _ROWS.format(
    items=", i.public_id, i.namespace_id, i.content_hash, i.purged_at,"
    # A text is read once, with the change that saved it, and looked for with the one that took it away.
    " CASE WHEN j.operation IN ('save', 'append', 'summarize', 'purge')"
    " THEN (SELECT content FROM texts t WHERE t.item_id = j.item_id) END",
    join=" LEFT JOIN items i ON i.id = j.item_id",
)

_STRANGER = (
    "SELECT public_id FROM items WHERE id NOT IN"
    f" (SELECT item_id FROM journal WHERE operation IN {MAKING} AND item_id IS NOT NULL) LIMIT 1"
)

_OTHER_HEAD = "it is not the change that the head was given of: the journal was written anew, or is another store's"

_NOTHING = b""
"""In place of the hash of a text that a note came without."""

_Names = tuple[dict[int, str], dict[int, str], dict[int, tuple[Any, ...]]]


def verified(connection: sqlite3.Connection, known: Head | None = None, *, items: bool = True) -> Verified:
    """How far the journal is what was written, in the caller's read transaction; a row at a time is in memory.

    A row is whole if it has the next number, follows from the one before it, and has the hash of its fields; if its
    payload is the one that it commits to, or was taken by a purge of its item; and, unless `items` is false, if its
    item has its id, its namespace and its text, or none after a purge; then no item may be there that none saved, and
    no namespace may have had a later change. `known`: a head from before, which has to be there.
    """
    names = _names(connection)
    purged = {row for (row,) in connection.execute("SELECT item_id FROM journal WHERE operation = 'purge'")}
    rows, previous, found_known = 0, b"", known is None
    for row in connection.execute(_WITH_ITEMS if items else _ALONE):
        sequence, found = row[1], row[12]
        reason = _broken(row, rows + 1, previous, names) or _payload_gone(row, purged)
        if reason is None and items:
            reason = _astray(row) or _unlike_item(row, purged)
        if reason is None and known is not None and sequence == known.sequence:
            found_known = found == known.hash
            reason = None if found_known else _OTHER_HEAD
        if reason is not None:
            return Verified(rows, _head(rows, previous), Break(min(sequence, rows + 1), reason))
        rows, previous = rows + 1, found
    # AUTOINCREMENT remembers the last number ever given.
    [last] = connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    [seen] = connection.execute("SELECT max(sequence) FROM namespace_seq").fetchone() if items else (0,)
    ever = max(last or 0, seen or 0, 0 if found_known or known is None else known.sequence)
    if ever > rows:
        return Verified(rows, _head(rows, previous), Break(rows + 1, f"the journal's end is missing, up to {ever}"))
    stranger = connection.execute(_STRANGER).fetchone() if items else None
    if stranger is not None:
        reason = f"missing: the note {stranger[0]} is there, and no change saved it"
        return Verified(rows, _head(rows, previous), Break(rows + 1, reason))
    return Verified(rows, _head(rows, previous))


def _head(rows: int, last: bytes) -> Head | None:
    return Head(rows, last) if rows else None


def _names(connection: sqlite3.Connection) -> _Names:
    return (
        dict(connection.execute("SELECT id, name FROM namespaces").fetchall()),
        dict(connection.execute("SELECT id, name FROM agents").fetchall()),
        {row[0]: row[1:] for row in connection.execute("SELECT id, name, version, token FROM clients")},
    )


def _broken(row: Sequence[Any], expected: int, previous: bytes, names: _Names) -> str | None:
    """What is wrong with a row, its place and its payload; None if nothing is."""
    format_, sequence, at, namespace_id, operation, subject, agent_id, client_id, session, origin = row[:10]
    sealed, before, found, nonce = row[10:14]
    if sequence != expected:
        return f"missing: the next row is {sequence}"
    if before != previous:
        return "it does not follow from the row before it: one was put in, taken out or exchanged"
    namespaces, agents, clients = names
    client = clients.get(client_id, (None, None, None))
    fields = [
        *(format_, sequence, at, namespaces.get(namespace_id), operation, subject),
        *(agents.get(agent_id), *client, session, origin),
    ]
    if not isinstance(sealed, bytes) or chain([*fields, sealed.hex(), previous.hex()]) != found:
        return "changed: its fields are not those that were hashed"
    if nonce is not None and commitment(*row[13:17]) != sealed:
        return "changed: its payload is not the one that it was written with"
    return None


def _payload_gone(row: Sequence[Any], purged: Container[int]) -> str | None:
    """That a row's payload is missing, unless a purge of its item took it."""
    return "its payload is missing, and no purge has taken it" if row[13] is None and row[17] not in purged else None


def _astray(row: Sequence[Any]) -> str | None:
    """That a row leads to another item than it tells of, or to none; None if it does not."""
    namespace_id, subject = row[3], row[5]
    item, public_id, item_namespace = row[17:20]
    if item is None:
        # The number of the item is not hashed: without it nothing would be held against the note.
        return None if subject is None else f"it tells of the note {subject}, and its item is none"
    if public_id is None:
        return f"the note {subject} is missing"
    if (public_id, item_namespace) != (subject, namespace_id):
        return f"it tells of the note {subject}, and its item is another one"
    return None


def _unlike_item(row: Sequence[Any], purged: Container[int]) -> str | None:
    """What of a row's item is not as the row says; None if nothing is, or nothing is left to say it of."""
    operation, subject, content, item = row[4], row[5], row[14], row[17]
    exact, purged_at, text = row[20:]
    if operation == "purge" and (purged_at is None or text is not None):
        return f"the note {subject} was purged, and is there again"
    if item is None or item in purged:
        return None
    # An import brings places of notes that were purged elsewhere, without a text.
    if (purged_at is None or content != _NOTHING) and (
        exact != content or (operation in {"save", "append", "summarize"} and _hash(text) != content)
    ):
        return f"the text of the note {subject} is not the one that was {_DONE.get(str(operation), 'there')}"
    return None


def _hash(text: str | None) -> bytes | None:
    return None if text is None else content_hash(text)


_DONE = {"save": "saved", "merge": "saved", "forget": "forgotten", "restore": "restored", "supersede": "replaced"}
