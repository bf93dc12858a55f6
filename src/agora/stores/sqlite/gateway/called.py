"""The record of calls as an auditor reads it."""

from __future__ import annotations

import sqlite3

from agora.errors import (
    AccessDenied,
    BackendNotFound,
    BackendUnavailable,
    InvalidInput,
    ReadOnlyBackend,
    ToolNotFound,
    ToolQuarantined,
)
from agora.model.audit import Wanted, Writer
from agora.model.calls import CallCount, CallEntry
from agora.model.instants import from_micros, maybe_micros
from agora.stores.sqlite.gateway.calls import FROM, is_there

UNSENT = tuple(
    error.code
    for error in (
        *(AccessDenied, ReadOnlyBackend, ToolQuarantined, InvalidInput, ToolNotFound, BackendNotFound),
        BackendUnavailable,
    )
)
"""Outcomes of calls that no server ever got."""


def entries(connection: sqlite3.Connection, wanted: Wanted) -> tuple[tuple[CallEntry, ...], int]:
    """The rows that are wanted, newest last, and how many there are in all."""
    where, values = _conditions(wanted.writer)
    for sql, value in (("k.at < ?", maybe_micros(wanted.until)), ("k.operation = ?", wanted.operation)):
        if value is not None:
            where, values = f"{where} AND {sql}", [*values, value]
    total = connection.execute(f"SELECT count(*) {FROM} WHERE {where}", values).fetchone()[0]
    found = connection.execute(
        "SELECT k.sequence, k.at, k.operation, k.namespace, ifnull(a.name, '?'), ifnull(c.name, '?'),"
        " ifnull(c.version, ''), ifnull(c.token, ''), k.session, k.origin, k.backend, k.tool, k.access, k.rule,"
        f" k.matched_by, k.outcome, k.micros, k.cached {FROM} WHERE {where} ORDER BY k.sequence DESC LIMIT ?",
        (*values, wanted.limit),
    ).fetchall()
    rows = (
        CallEntry(*(row[0], from_micros(row[1]), *row[2:16], row[16] / 1_000_000, bool(row[17])))
        for row in reversed(found)
    )
    return tuple(rows), total


def of(connection: sqlite3.Connection, writer: Writer) -> CallCount:
    """How many calls a writer made that reached another server: what they did there, nobody undoes from here."""
    where, values = _conditions(writer)
    found = connection.execute(
        f"SELECT count(*), ifnull(sum(k.access <> 'read'), 0) {FROM} WHERE {where} AND k.operation = 'call'"
        f" AND NOT k.cached AND k.outcome NOT IN ({', '.join('?' * len(UNSENT))})",
        (*values, *UNSENT),
    ).fetchone()
    return CallCount(*found)


def has(connection: sqlite3.Connection, kind: str, name: str) -> bool:
    """Whether a call tells of a namespace or a session of that name; agents and programs have tables of their own."""
    if kind not in {"namespace", "session"} or not is_there(connection):
        return False
    return connection.execute(f"SELECT 1 FROM calls WHERE {kind} = ? LIMIT 1", (name,)).fetchone() is not None


def _conditions(writer: Writer) -> tuple[str, list[object]]:
    given = {
        "a.name = ?": writer.agent,
        "k.session = ?": writer.session,
        "k.namespace = ?": writer.namespace,
        "k.at >= ?": maybe_micros(writer.since),
        "c.name = ?": writer.client,
        "c.token = ?": writer.token,
    }
    held = {sql: value for sql, value in given.items() if value is not None}
    return " AND ".join(held) or "1", list(held.values())
