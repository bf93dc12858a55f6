"""The journal as an auditor reads it: from a connection that only reads, whatever else goes on with the store."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agora.model.audit import Break, Entries, Entry, Head, Verified, Wanted, Writer
from agora.model.calls import CallEntry
from agora.model.instants import from_micros, to_micros
from agora.stores.sqlite.audit_chain import verified
from agora.stores.sqlite.failures import translated
from agora.stores.sqlite.gateway import called as record
from agora.stores.sqlite.gateway import calls
from agora.stores.sqlite.migrations import is_current, recognise, version_of
from agora.stores.sqlite.opening import Reader, open_to_read

_FROM = (
    "FROM journal j LEFT JOIN namespaces n ON n.id = j.namespace_id LEFT JOIN agents a ON a.id = j.agent_id"
    " LEFT JOIN clients c ON c.id = j.client_id LEFT JOIN items i ON i.id = j.item_id"
)


def entries(path: Path, wanted: Wanted) -> Entries:
    """The rows of the journal of the store at `path` that are wanted; none for a store not yet made.

    Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
    """
    with _reading(path) as connection:
        if connection is None:
            return Entries((), 0)
        where, values = _conditions(wanted)
        total = connection.execute(f"SELECT count(*) {_FROM} WHERE {where}", values).fetchone()[0]
        found = connection.execute(
            "SELECT j.sequence, j.at, j.operation, j.subject, n.name, ifnull(a.name, '?'), ifnull(c.name, '?'),"
            f" ifnull(c.version, ''), ifnull(c.token, ''), j.session, j.origin, i.purged_at IS NOT NULL {_FROM}"
            f" WHERE {where} ORDER BY j.sequence DESC LIMIT ?",
            (*values, wanted.limit),
        ).fetchall()
    rows = (Entry(*(row[0], from_micros(row[1]), *row[2:11], bool(row[11]))) for row in reversed(found))
    return Entries(tuple(rows), total)


def called(path: Path, wanted: Wanted) -> tuple[tuple[CallEntry, ...], int]:
    """The rows of the record of calls that are wanted, newest last, and how many there are in all.

    Raises: as `entries`.
    """
    with _reading(path) as connection:
        if connection is None or not calls.is_there(connection):
            return (), 0
        return record.entries(connection, wanted)


def verify_calls(path: Path, known: Head | None = None) -> Verified:
    """As `verify`, of the record of calls."""
    with _reading(path) as connection:
        if connection is not None:
            return calls.verified(connection, known)
    return Verified(0, None, None if known is None else Break(1, f"the record is missing, up to {known.sequence}"))


def verify(path: Path, known: Head | None = None) -> Verified:
    """As `audit_chain.verified`, of one snapshot of the store at `path`; no rows for a store not yet made.

    Raises: as `entries`.
    """
    with _reading(path) as connection:
        if connection is not None:
            return verified(connection, known)
    return Verified(0, None, None if known is None else Break(1, f"the journal is missing, up to {known.sequence}"))


def unheard(path: Path, writer: Writer) -> tuple[str, str, list[str]] | None:
    """What of `writer` the store at `path` has never heard of: its kind, the name, and the names of that kind it knows.

    The names are the newest ones, a few. Raises: as `entries`.
    """
    asked = {kind: getattr(writer, kind) for kind in _KNOWN}
    with _reading(path) as connection:
        for kind, name in asked.items():
            if name is None:
                continue
            if connection is None:
                return kind, name, []
            has, newest = _KNOWN[kind]
            if connection.execute(has, (name,)).fetchone() is None and not record.has(connection, kind, name):
                return kind, name, [each for (each,) in connection.execute(newest, (_SHOWN,))]
    return None


_KNOWN = {
    **{
        kind: (
            f"SELECT 1 FROM {table} WHERE {name} = ?",
            f"SELECT {name} FROM {table} WHERE {name} <> '' GROUP BY {name} ORDER BY max(id) DESC LIMIT ?",
        )
        for kind, table, name in (
            ("agent", "agents", "name"),
            ("client", "clients", "name"),
            ("token", "clients", "token"),
            ("namespace", "namespaces", "name"),
        )
    },
    "session": (
        "SELECT 1 FROM journal WHERE session = ? LIMIT 1",
        "SELECT session FROM journal WHERE session <> '' GROUP BY session ORDER BY max(sequence) DESC LIMIT ?",
    ),
}
"""How to ask whether there is a name of each kind, and for the newest of them."""

_SHOWN = 10


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """One read transaction; None where there is no store, or a file without anything in it."""
    if not path.exists():
        yield None
        return
    with translated(path), contextlib.closing(open_to_read(path, Reader)[0]) as connection:
        connection.execute("BEGIN")
        recognise(connection)
        is_current(connection)
        yield connection if version_of(connection) else None


def _conditions(wanted: Wanted) -> tuple[str, list[object]]:
    writer = wanted.writer
    given = {
        "a.name = ?": writer.agent,
        "j.session = ?": writer.session,
        "n.name = ?": writer.namespace,
        "j.at >= ?": None if writer.since is None else to_micros(writer.since),
        "j.at < ?": None if wanted.until is None else to_micros(wanted.until),
        "c.name = ?": writer.client,
        "c.token = ?": writer.token,
        "j.operation = ?": wanted.operation,
    }
    held = {sql: value for sql, value in given.items() if value is not None}
    return " AND ".join(held) or "1", list(held.values())
