"""The record of calls of other servers' tools, a chain of its own beside the journal's.

Format 1. `hash` of each row is the SHA-256 of the canonical JSON array

    ["calls", format, sequence, at, operation, namespace, agent, client, version, token, session, origin, backend, tool,
     access, rule, matched by, outcome, microseconds, cached, commitment, previous hash]

with names rather than row numbers, hashes in hexadecimal and the previous hash of the first row empty. Arguments are
nowhere: `commitment` is the SHA-256 of nonce and arguments, and a purge takes the nonces, which are outside the chain.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from agora.model.audit import Break, Head, Verified
from agora.model.caller import Caller
from agora.model.calls import CallRow
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.journal import chain
from agora.stores.sqlite.migrations import expected, version_of

FORMAT = 1

_NAME = 200
"""Characters of a name that are kept: others give these names, and one may be as long as they like."""

FROM = "FROM calls k LEFT JOIN agents a ON a.id = k.agent_id LEFT JOIN clients c ON c.id = k.client_id"
_ROWS = (
    "SELECT k.format, k.sequence, k.at, k.operation, k.namespace, a.name, c.name, c.version, c.token, k.session,"
    " k.origin, k.backend, k.tool, k.access, k.rule, k.matched_by, k.outcome, k.micros, k.cached, k.commitment,"
    " k.previous_hash, k.hash"
    f" {FROM} ORDER BY k.sequence"
)


class SqliteCallLog:
    """Implements `agora.ports.call_log.CallLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, call: CallRow, deadline: Deadline) -> None:
        """As `CallLog.record`."""
        self._database.write(lambda connection: append(connection, "call", call), deadline)


def append(connection: sqlite3.Connection, operation: Literal["call", "approve"], call: CallRow) -> None:
    """Make this the last row, inside the caller's write transaction."""
    at, caller = to_micros(call.at), call.caller
    actor = ensure_actor(connection, caller, at)
    last = connection.execute("SELECT hash FROM calls ORDER BY sequence DESC LIMIT 1").fetchone()
    # A number once given never comes back, even when the end was cut off: the gap has to stay visible.
    ever = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'calls'").fetchone()
    sequence, previous = (ever[0] if ever else 0) + 1, last[0] if last else b""
    nonce = os.urandom(16)
    sealed = hashlib.sha256(nonce + call.arguments).digest()
    told = [
        *(_plain(each) for each in (call.backend, call.tool, call.access, call.rule, call.matched_by, call.outcome)),
        round(max(0.0, call.seconds) * 1_000_000),
        int(call.cached),
    ]
    link = _link(
        [
            *(FORMAT, sequence, at, operation, caller.scope.own),
            *(actor.agent, actor.client, actor.client_version, actor.token, actor.session, actor.origin),
            *told,
        ],
        sealed,
        previous,
    )
    connection.execute(
        f"INSERT INTO calls VALUES ({', '.join('?' * 21)})",
        (
            *(sequence, FORMAT, at, operation, caller.scope.own, actor.agent_id, actor.client_id),
            *(actor.session, actor.origin, *told, sealed, nonce, previous, link),
        ),
    )


def approved(
    connection: sqlite3.Connection, backend: str, tool: str, digest: str, caller: Caller, at: datetime
) -> None:
    """Record that somebody approved what a tool says of itself now."""
    row = CallRow(at, caller, backend, tool, "write", "approval", "", "ok", 0.0, arguments=digest.encode())
    append(connection, "approve", row)


def is_there(connection: sqlite3.Connection) -> bool:
    """Whether the store's schema has the record at all: an older one is read as it is."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone() is not None


def verified(connection: sqlite3.Connection, known: Head | None = None) -> Verified:
    """How far the record of calls is what was written, in the caller's read transaction; a row at a time is in memory.

    A row is whole if it has the next number, follows from the one before it, and has the hash of its fields. `known`: a
    head from before, which has to be there.
    """
    if not is_there(connection):
        if "calls" in expected(version_of(connection)):
            return Verified(0, None, Break(1, "the record is missing altogether"))
        return _ended(0, b"", 0 if known is None else known.sequence)
    rows, previous, found_known = 0, b"", known is None
    for row in connection.execute(_ROWS):
        sequence, found = row[1], row[-1]
        reason = _broken(row, rows + 1, previous)
        if reason is None and known is not None and sequence == known.sequence:
            found_known = found == known.hash
            reason = None if found_known else "it is not the call that the head was given of"
        if reason is not None:
            return Verified(rows, _head(rows, previous), Break(min(sequence, rows + 1), reason))
        rows, previous = rows + 1, found
    # AUTOINCREMENT remembers the last number ever given.
    [last] = connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'calls'").fetchone()
    return _ended(rows, previous, max(last or 0, 0 if found_known or known is None else known.sequence))


def _ended(rows: int, previous: bytes, ever: int) -> Verified:
    if ever > rows:
        return Verified(rows, _head(rows, previous), Break(rows + 1, f"the record's end is missing, up to {ever}"))
    return Verified(rows, _head(rows, previous))


def _head(rows: int, last: bytes) -> Head | None:
    return Head(rows, last) if rows else None


def _broken(row: Sequence[Any], expected: int, previous: bytes) -> str | None:
    *fields, sealed, before, found = row
    if row[1] != expected:
        return f"missing: the next row is {row[1]}"
    if before != previous:
        return "it does not follow from the row before it: one was put in, taken out or exchanged"
    if not isinstance(sealed, bytes) or _link(fields, sealed, before) != found:
        return "changed: its fields are not those that were hashed"
    return None


def _link(fields: Sequence[Any], sealed: bytes, previous: bytes) -> bytes:
    return chain(["calls", *fields, sealed.hex(), previous.hex()])


def _plain(name: str) -> str:
    return name[:_NAME].encode("utf-8", "backslashreplace").decode("utf-8")
