"""The ordered table of changes, written in the same transaction as the rows it tells of.

Format 1. Each row is chained to the one before it: `hash` is the SHA-256 of the canonical JSON array

    [format, sequence, at, namespace, operation, subject, agent, client, version, token, session, origin,
     commitment, previous hash]

with names rather than row numbers, hashes in hexadecimal and the previous hash of the first row empty. Contents are
not in the chain: `commitment` is the SHA-256 of nonce, content hash, before and after, framed by their lengths. The
nonce lies with the payload, so a purged payload leaves the chain whole and nothing to test a guessed text against.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

FORMAT = 1
# fmt: off
Operation = Literal[
    "save", "merge", "withdraw", "supersede", "contest", "settle", "pin", "unpin",
    "forget", "restore", "expire", "purge", "reembed", "repair", "append", "summarize",
]
# fmt: on
"""`contest`: a text of lower authority came to stand beside this one. `settle`: this one stood so, and made way."""

MAKING = "('save', 'append', 'summarize')"
"""As SQL: what makes an item."""

SAVING = "('save', 'merge', 'append', 'summarize')"
"""As SQL: what makes an item, or gives it one more saver."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Row numbers and names of who makes a change, looked up once per transaction."""

    agent_id: int
    client_id: int
    agent: str
    client: str
    client_version: str
    token: str
    session: str
    origin: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one item, before it has a sequence; of the store as a whole where nothing names an item."""

    at: int
    namespace_id: int | None
    namespace: str | None
    operation: Operation
    item_id: int | None
    public_id: str | None
    content_hash: bytes
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


def append(connection: sqlite3.Connection, change: Change, actor: Actor) -> int:
    """The sequence of the change, now the last of the journal and of its namespace, if it has one."""
    last = connection.execute("SELECT sequence, hash FROM journal ORDER BY sequence DESC LIMIT 1").fetchone()
    # A number once given never comes back, even when the journal's end was cut off: the gap has to stay visible.
    ever = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    sequence, previous = (ever[0] if ever else 0) + 1, last[1] if last else b""
    nonce, before, after = os.urandom(16), _image(change.before), _image(change.after)
    sealed = commitment(nonce, change.content_hash, before, after)
    link = chain(
        [
            *(FORMAT, sequence, change.at, change.namespace, change.operation, change.public_id),
            *(actor.agent, actor.client, actor.client_version, actor.token, actor.session, actor.origin),
            *(sealed.hex(), previous.hex()),
        ]
    )
    connection.execute(
        "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(sequence, FORMAT, change.at, change.namespace_id, change.operation, change.public_id),
            *(change.item_id, actor.agent_id, actor.client_id, actor.session, actor.origin),
            *(sealed, previous, link),
        ),
    )
    connection.execute(
        "INSERT INTO journal_payload VALUES (?, ?, ?, ?, ?)",
        (sequence, nonce, change.content_hash, before, after),
    )
    if change.namespace_id is not None:
        connection.execute(
            "INSERT INTO namespace_seq VALUES (?, ?)"
            " ON CONFLICT (namespace_id) DO UPDATE SET sequence = excluded.sequence",
            (change.namespace_id, sequence),
        )
    return sequence


def append_of(  # noqa: PLR0913 - the fields of one journal row
    connection: sqlite3.Connection,
    row: int,
    operation: Operation,
    actor: Actor,
    at: int,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> int:
    """As `append`, of a change of the item with this row number; what names the item is looked up."""
    namespace_id, namespace, public_id, content_hash = connection.execute(
        "SELECT i.namespace_id, n.name, i.public_id, i.content_hash FROM items i"
        " JOIN namespaces n ON n.id = i.namespace_id WHERE i.id = ?",
        (row,),
    ).fetchone()
    change = Change(at, namespace_id, namespace, operation, row, public_id, content_hash, before, after)
    return append(connection, change, actor)


def chain(fields: list[Any]) -> bytes:
    """The hash of one journal row, as the head of this module defines it."""
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()).digest()


def head(connection: sqlite3.Connection) -> int:
    """The sequence of the last change in this snapshot; 0 for an empty journal."""
    found = connection.execute("SELECT max(sequence) FROM journal").fetchone()[0]
    return 0 if found is None else int(found)


def commitment(nonce: bytes, content: bytes, before: str | None, after: str | None) -> bytes:
    """What binds a journal row to its payload, as the head of this module defines it."""
    digest = hashlib.sha256()
    for part in (nonce, content, (before or "").encode(), (after or "").encode()):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def _image(fields: Mapping[str, Any] | None) -> str | None:
    return None if fields is None else json.dumps(fields, ensure_ascii=False, sort_keys=True)
