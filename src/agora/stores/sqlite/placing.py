"""What becomes of a fact or a message that comes from elsewhere; of everything else, as `reconcile` has it.

A fact is one statement among others of its key: which of them holds is drawn from all, so none contradicts another. The
same statement under another id joins the one that is here. A message has its number in its conversation: another one
that has this number here contradicts it, and stays out.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from agora.model.caller import Origin
from agora.model.instants import maybe_micros, to_micros
from agora.ports.transfer import Arrival, Version
from agora.stores.sqlite import reconcile
from agora.stores.sqlite.facts import slots
from agora.stores.sqlite.reconcile import FORGOTTEN, PURGED, Decision, joined_before, same_id
from agora.stores.sqlite.standing import STANDING, Standing, by_id, one
from agora.text.sameness import name_of, same

_STATED = (
    "SELECT 1 FROM facts f JOIN fact_slots l ON l.id = f.slot_id WHERE f.item_id = ? AND l.subject = ? AND l.key = ?"
    " AND f.same = ? AND f.valid_from = ? AND f.valid_to IS ? AND f.multi = ?"
)
_EQUAL = (
    f"{STANDING} JOIN facts f ON f.item_id = i.id WHERE f.slot_id = ? AND f.same = ? AND f.valid_from = ?"
    " AND f.valid_to IS ? AND f.multi = ? AND i.content_hash = ? AND i.forgotten_at IS NULL AND i.purged_at IS NULL"
    " ORDER BY i.id LIMIT 1"
)
_NUMBERED = (
    f"{STANDING} WHERE i.namespace_id = ? AND i.type = 'message' AND i.session = ? AND i.seq = ?"
    " AND i.superseded_by IS NULL"
)


def decide(
    connection: sqlite3.Connection,
    namespace_id: int,
    arrival: Arrival,
    content_hash: bytes | None,
    now: int,
    origin: Origin = "agent",
) -> Decision:
    """As `reconcile.decide`, of whatever type the version is."""
    version = arrival.version
    if version.type not in {"fact", "message"}:
        return reconcile.decide(connection, namespace_id, arrival, content_hash, now, origin)
    known = _known(connection, arrival, content_hash)
    if known is not None:
        return known
    if content_hash is None:
        return _skeleton(connection, namespace_id, version)
    place = _numbered if version.type == "message" else _stated
    return place(connection, namespace_id, version, content_hash)


def slot_of(connection: sqlite3.Connection, namespace_id: int, version: Version) -> int | None:
    """The slot that a fact is of, if it is here."""
    if version.fact is None:
        return None
    return slots.find(connection, namespace_id, name_of(version.fact.subject), name_of(version.fact.key))


def _known(connection: sqlite3.Connection, arrival: Arrival, content_hash: bytes | None) -> Decision | None:
    """What becomes of one that has been here, under its id or the id of what it joined; None if it has not."""
    version = arrival.version
    here = by_id(connection, version.id)
    if here is not None:
        found = same_id(here, arrival, content_hash)
        if found.what == "join" and not _is_as_told(connection, here.row, version):
            return Decision("refuse", here, "something else has this id here")
        return found
    joined = joined_before(connection, version)
    if joined is None or (joined.purged_at is None and joined.content_hash != content_hash):
        return None
    if joined.purged_at is not None:
        return Decision("keep", joined, PURGED)
    return Decision("join", joined) if joined.forgotten_at is None else Decision("keep", joined, FORGOTTEN)


def _skeleton(connection: sqlite3.Connection, namespace_id: int, version: Version) -> Decision:
    # It is of use only where something else is said of the key, which may be further down in the file.
    needed = version.fact is not None and slot_of(connection, namespace_id, version) is None
    return Decision("add", open=needed)


def _stated(connection: sqlite3.Connection, namespace_id: int, version: Version, content_hash: bytes) -> Decision:
    slot, fact = slot_of(connection, namespace_id, version), version.fact
    if slot is None or fact is None or version.forgotten_at is not None or fact.reverted:
        return Decision("add")
    bounds = (to_micros(fact.valid_from), maybe_micros(fact.valid_to), fact.multi)
    twin = one(connection.execute(_EQUAL, (slot, same(fact.value), *bounds, content_hash)))
    return Decision("add") if twin is None else Decision("join", twin)


def _numbered(connection: sqlite3.Connection, namespace_id: int, version: Version, content_hash: bytes) -> Decision:
    there = one(connection.execute(_NUMBERED, (namespace_id, version.session, version.seq)))
    if there is None:
        return Decision("add")
    if there.content_hash == content_hash and _is_as_told(connection, there.row, version):
        return _forgotten_apart(there, version)
    reason = f"the conversation {version.session!r} has another message {version.seq} here"
    return Decision("refuse", there, reason)


def _forgotten_apart(there: Standing, version: Version) -> Decision:
    told = Decision("join", there)
    if (version.forgotten_at is None) == (there.forgotten_at is None):
        return told
    return replace(told, reason=FORGOTTEN if there.forgotten_at is not None else "it was forgotten there, not here")


def _is_as_told(connection: sqlite3.Connection, row: int, version: Version) -> bool:
    """Whether a row of the same text is the same statement, or the same message."""
    fact = version.fact
    if fact is None:
        found = connection.execute(
            "SELECT 1 FROM items WHERE id = ? AND session IS ? AND seq IS ? AND speaker IS ? AND kind = ?",
            (row, version.session, version.seq, version.speaker, version.kind),
        )
        return found.fetchone() is not None
    bounds = (to_micros(fact.valid_from), maybe_micros(fact.valid_to), fact.multi)
    values = (row, name_of(fact.subject), name_of(fact.key), same(fact.value), *bounds)
    return connection.execute(_STATED, values).fetchone() is not None
