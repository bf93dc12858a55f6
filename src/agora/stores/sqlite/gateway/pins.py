from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agora.errors import Conflict, StoreCorrupt
from agora.model.backend import ToolDefinition
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.instants import from_micros, to_micros
from agora.model.pins import Pin
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.gateway.calls import approved as record_approval
from agora.stores.sqlite.migrations import check_version

_AFRESH = timedelta(hours=1)
"""A list that shows nothing new is written down so often at most: some servers send theirs all the time."""

_LIFE = timedelta(days=90)
"""What is known of another program under the same name is forgotten when that was not seen for so long."""

MOST_GONE = 5_000
"""Tools of one program that it has no more and that are remembered, those that went last: it can make up new names."""

_COLUMNS = "tool, status, approved, approved_digest, approved_at, approved_by, seen, seen_digest, first_seen, seen_at"
_OF = "backend = ? AND identity = ?"


class SqliteToolPins:
    """Implements `agora.ports.tool_pins.ToolPins`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, backend: str, identity: str, deadline: Deadline) -> dict[str, Pin]:
        """As `ToolPins.known`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            return _read(connection, backend, identity)

    def seen(
        self, backend: str, identity: str, tools: Sequence[ToolDefinition], now: datetime, deadline: Deadline
    ) -> dict[str, Pin]:
        """As `ToolPins.seen`."""
        before = self.known(backend, identity, deadline)
        after = _after(before, tools, now)
        if before and not _is_news(before, after):
            return before

        def run(connection: sqlite3.Connection) -> dict[str, Pin]:
            # Looked at anew: another process may have seen it meanwhile.
            before = _read(connection, backend, identity)
            after = _after(before, tools, now)
            for tool, pin in after.items():
                if pin != before.get(tool):
                    _write(connection, backend, identity, pin)
            for tool in before.keys() - after.keys():
                connection.execute(f"DELETE FROM tool_pins WHERE {_OF} AND tool = ?", (backend, identity, tool))
            connection.execute(
                "DELETE FROM tool_pins WHERE backend = ? AND identity NOT IN"
                " (SELECT identity FROM tool_pins WHERE backend = ? AND seen_at > ?)",
                (backend, backend, to_micros(now - _LIFE)),
            )
            return after

        return self._database.write(run, deadline)

    def approve(
        self, backend: str, identity: str, digests: Mapping[str, str], caller: Caller, now: datetime, deadline: Deadline
    ) -> None:
        """As `ToolPins.approve`."""

        def run(connection: sqlite3.Connection) -> None:
            known = _read(connection, backend, identity)
            for tool, digest in digests.items():
                pin = known.get(tool)
                if pin is None or pin.status != "quarantined" or pin.seen_digest != digest:
                    raise Conflict(
                        f"{backend}: the tool {tool!r} is not what it was when it was shown; nothing was approved",
                        hint="Look again at what has changed: `agora backends diff`.",
                    )
                _write(connection, backend, identity, pin.accepted(caller.agent, now))
                record_approval(connection, backend, tool, digest, caller, now)

        self._database.write(run, deadline)


def _after(before: Mapping[str, Pin], tools: Sequence[ToolDefinition], now: datetime) -> dict[str, Pin]:
    there = {tool.name: tool for tool in tools}
    gone = {name: pin.missed() for name, pin in before.items() if name not in there}
    after = gone
    if len(gone) > MOST_GONE:
        newest = sorted(gone.values(), key=lambda pin: (pin.seen_at, pin.seen.name), reverse=True)
        after = {pin.seen.name: pin for pin in newest[:MOST_GONE]}
    for name, tool in there.items():
        pin = before.get(name)
        after[name] = Pin.first(tool, now) if pin is None else pin.sighted(tool, now)
    return after


def _is_news(before: Mapping[str, Pin], after: Mapping[str, Pin]) -> bool:
    """Whether anything is not as it was, but for when it was seen a short while ago."""
    if before.keys() != after.keys():
        return True
    return any(
        replace(pin, seen_at=before[name].seen_at) != before[name] or pin.seen_at - before[name].seen_at > _AFRESH
        for name, pin in after.items()
    )


def _read(connection: sqlite3.Connection, backend: str, identity: str) -> dict[str, Pin]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM tool_pins WHERE {_OF}", (backend, identity)).fetchall()
    return {row[0]: _pin(backend, row) for row in rows}


def _pin(backend: str, row: Sequence[Any]) -> Pin:
    tool, status, approved, approved_digest, approved_at, by, seen, _, first_seen, seen_at = row
    before = _definition(backend, tool, approved)
    after = before if seen is None else _definition(backend, tool, seen)
    if before.digest() != approved_digest:
        # Somebody wrote to the row: nobody has approved what stands there.
        approved_digest = ""
    if status == "approved" and after.digest() != approved_digest:
        status = "quarantined"
    return Pin(
        status,
        before,
        approved_digest,
        from_micros(approved_at),
        by,
        after,
        after.digest(),
        from_micros(first_seen),
        from_micros(seen_at),
    )


def _definition(backend: str, tool: str, text: str) -> ToolDefinition:
    try:
        found = ToolDefinition.read(backend, json.loads(text))
    except (ValueError, AttributeError, RecursionError):
        found = None
    if found is None or found.name != tool:
        raise StoreCorrupt(f"what is kept of the tool {tool!r} of {backend} cannot be read")
    return found


def _write(connection: sqlite3.Connection, backend: str, identity: str, pin: Pin) -> None:
    same = pin.seen_digest == pin.approved_digest
    connection.execute(
        f"INSERT INTO tool_pins (backend, identity, {_COLUMNS}) VALUES ({', '.join('?' * 12)})"
        " ON CONFLICT (backend, identity, tool) DO UPDATE SET status = excluded.status, approved = excluded.approved,"
        " approved_digest = excluded.approved_digest, approved_at = excluded.approved_at,"
        " approved_by = excluded.approved_by, seen = excluded.seen, seen_digest = excluded.seen_digest,"
        " seen_at = excluded.seen_at",
        (
            *(backend, identity, pin.seen.name, pin.status, _text(pin.approved), pin.approved_digest),
            *(to_micros(pin.approved_at), pin.approved_by, None if same else _text(pin.seen), pin.seen_digest),
            *(to_micros(pin.first_seen), to_micros(pin.seen_at)),
        ),
    )


def _text(tool: ToolDefinition) -> str:
    # In ASCII: half of a surrogate pair is no text for SQLite.
    return json.dumps(tool.details(), separators=(",", ":"))
