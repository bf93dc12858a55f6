"""A walk over the journal from its first row to its last: each row against its hash, the one before, and its item."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Sequence
from typing import Any

from agora.model.audit import Break, Verified
from agora.stores.sqlite.journal import chain, commitment
from agora.text.identity import content_hash

_ROWS = (
    "SELECT j.format, j.sequence, j.at, j.namespace_id, j.operation, j.subject, j.agent_id, j.client_id, j.session,"
    " j.origin, j.commitment, j.previous_hash, j.hash, p.nonce, p.content, p.before, p.after,"
    " j.item_id, i.public_id, i.namespace_id, i.content_hash, i.purged_at,"
    # A text is read once, with the change that saved it.
    " CASE j.operation WHEN 'save' THEN (SELECT content FROM texts t WHERE t.item_id = j.item_id) END"
    " FROM journal j LEFT JOIN journal_payload p ON p.sequence = j.sequence"
    " LEFT JOIN items i ON i.id = j.item_id ORDER BY j.sequence"
)

_NOTHING = b""
"""In place of the hash of a text that a note came without."""

_Names = tuple[dict[int, str], dict[int, str], dict[int, tuple[Any, ...]]]


def verified(connection: sqlite3.Connection) -> Verified:
    """How far the journal is what was written, in the caller's read transaction; a row at a time is in memory.

    A row is whole if it has the next number, follows from the one before it, and has the hash of its fields; if its
    payload is the one that it commits to, or was taken by a purge of its item; and if its item has its id, its
    namespace and its text.
    """
    names = _names(connection)
    purged = {row for (row,) in connection.execute("SELECT item_id FROM journal WHERE operation = 'purge'")}
    rows, previous = 0, b""
    for row in connection.execute(_ROWS):
        sequence, found = row[1], bytes(row[12])
        reason = _broken(row, rows + 1, previous, names) or _unlike_item(row, purged)
        if reason is not None:
            return Verified(rows, previous or None, Break(min(sequence, rows + 1), reason))
        rows, previous = rows + 1, found
    # AUTOINCREMENT remembers the last number ever given.
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    if last is not None and last[0] > rows:
        return Verified(rows, previous or None, Break(rows + 1, f"the journal's end is missing, up to {last[0]}"))
    return Verified(rows, previous or None)


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


def _unlike_item(row: Sequence[Any], purged: Container[int]) -> str | None:
    """What of a row's item is not as the row says; None if nothing is, or nothing is left to say it of."""
    operation, namespace_id, subject, nonce, content = row[4], row[3], row[5], row[13], row[14]
    item, public_id, item_namespace, exact, purged_at, text = row[17:]
    if item is not None and public_id is None:
        return f"the note {subject} is missing"
    if item is not None and (public_id, item_namespace) != (subject, namespace_id):
        return f"it tells of the note {subject}, and its item is another one"
    if item in purged:
        return None
    if nonce is None:
        return "its payload is missing, and no purge has taken it"
    # An import brings places of notes that were purged elsewhere, without a text.
    if (
        item is not None
        and (purged_at is None or content != _NOTHING)
        and (exact != content or (operation == "save" and _hash(text) != content))
    ):
        return f"the text of the note {subject} is not the one that was {_DONE.get(str(operation), 'there')}"
    return None


def _hash(text: str | None) -> bytes | None:
    return None if text is None else content_hash(text)


_DONE = {"save": "saved", "merge": "saved", "forget": "forgotten", "restore": "restored", "supersede": "replaced"}
