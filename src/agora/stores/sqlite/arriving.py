"""Versions from elsewhere, added inside one transaction as `reconcile` decides."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agora.model.caller import RANKS, Caller, rank
from agora.model.instants import maybe_micros, to_micros
from agora.ports.records import VectorsNeeded
from agora.ports.transfer import Arrival, Outcome, Stated, Version
from agora.stores.sqlite import allowance, fulltext, givers, heads, journal
from agora.stores.sqlite.actors import ensure_actor, ensure_namespace
from agora.stores.sqlite.authority import level
from agora.stores.sqlite.facts import settling, slots
from agora.stores.sqlite.fields import joined, later, lower_tags, mutable, set_expiry, set_fields, set_metadata
from agora.stores.sqlite.journal import Actor, Change, Operation
from agora.stores.sqlite.placing import decide
from agora.stores.sqlite.reconcile import Decision, expired
from agora.stores.sqlite.rows import canonical
from agora.stores.sqlite.saving import insert_passages
from agora.stores.sqlite.standing import NOT_HERE, Standing, by_id
from agora.text.identity import content_hash, normal_hash
from agora.text.sameness import name_of, same

_PURGED = b""
"""What the journal commits to for a version without a text."""

Image = dict[str, Any] | None


@dataclass(slots=True)
class Arriving:
    """One batch in one write transaction.

    `prepared` holds index terms by id, made before the lock was taken. `rehearsal`: nothing is indexed, no texts are
    kept and no vectors are needed, for all of it is thrown away.
    """

    connection: sqlite3.Connection
    caller: Caller
    source: Mapping[str, Any]
    now: int
    prepared: Mapping[str, tuple[fulltext.Prepared, ...]] = field(default_factory=dict)
    rehearsal: bool = False
    _fresh: dict[int, Arrival] = field(default_factory=dict)
    _slots: set[int] = field(default_factory=set)
    _added: set[int] = field(default_factory=set)
    _actor: Actor | None = None

    def add(self, arrival: Arrival) -> Outcome:
        """Take one version in.

        Raises: VectorsNeeded.
        """
        if arrival.version.content is None:
            arrival = replace(arrival, version=_skeleton(arrival.version))
        version = arrival.version
        namespace_id = ensure_namespace(self.connection, version.namespace, self.now)
        exact = None if version.content is None else content_hash(version.content)
        decision = decide(self.connection, namespace_id, arrival, exact, self.now, self.caller.origin)
        standing = decision.standing
        if decision.open and arrival.waits:
            return Outcome("put off", version.id)
        if standing is None:
            return self._add(arrival, decision, namespace_id, exact)
        other = None if standing.public_id == version.id else standing.public_id
        if decision.what == "refuse":
            return Outcome("conflict", version.id, standing.public_id, decision.reason)
        if decision.what == "join":
            self._join(arrival, standing, namespace_id)
            # What another tool has under a key gets a new id each time.
            if other is not None and not (arrival.follows and version.key is not None):
                self.connection.execute(
                    "INSERT INTO aliases VALUES (?, ?) ON CONFLICT DO UPDATE SET item_id = excluded.item_id",
                    (version.id, standing.row),
                )
        return Outcome("duplicate", version.id, other, decision.reason)

    def finish(self) -> None:
        """Draw the ends of facts anew and make what is current findable; called once, after the last of the batch."""
        for slot in sorted(self._slots):
            settling.settle(self.connection, slot, self._who(), self.now, but=self._added)
        for row, arrival in self._fresh.items():
            type_, namespace_id, current = self.connection.execute(
                "SELECT type, namespace_id, superseded_by IS NULL AND forgotten_at IS NULL FROM items WHERE id = ?",
                (row,),
            ).fetchone()
            if current:
                fulltext.add(self.connection, row, namespace_id, type_, self._terms(arrival))

    def _terms(self, arrival: Arrival) -> tuple[fulltext.Prepared, ...]:
        version, embedded = arrival.version, arrival.embedded
        assert version.content is not None
        assert embedded is not None
        known = self.prepared.get(version.id)
        return fulltext.prepare(version.title, version.content, embedded.spans) if known is None else known

    def _add(self, arrival: Arrival, decision: Decision, namespace_id: int, exact: bytes | None) -> Outcome:
        version = arrival.version
        if exact is not None and arrival.embedded is None and not self.rehearsal and version.type != "summary":
            raise VectorsNeeded
        # One row of a text: of two that the clock has ended, the one that comes steps back.
        retired = decision.crowded and expired(version, self.now)
        if decision.crowded and not retired and version.content is not None:
            heads.retire_expired(
                self.connection, namespace_id, version.namespace, version.content, self.now, self._who()
            )
        for old in decision.replaces:
            # The old head leaves its place before the new one takes it; it gets its successor's number below.
            self.connection.execute("UPDATE items SET superseded_by = ? WHERE id = ?", (NOT_HERE, old.row))
            if old.superseded_by is None and not self.rehearsal:
                fulltext.remove(self.connection, old.row, namespace_id, old.type)
        self.connection.execute("DELETE FROM aliases WHERE public_id = ?", (version.id,))
        row = self._insert(version, decision, namespace_id, exact, retired=retired)
        self._fill(row, arrival, decision)
        self._added.add(row)
        self._state(row, version, namespace_id)
        for old in decision.replaces:
            self._supersede(old, row, version, namespace_id, contested=decision.contests is not None)
        if decision.successor is not None:
            # Let the version that came after this one point back to it, if it was the one right before.
            self.connection.execute(
                "UPDATE items SET supersedes = ? WHERE id = ? AND supersedes IS NULL AND version = ?",
                (row, decision.successor.row, 1 if version.key is None else decision.version + 1),
            )
        after = {"imported": dict(self.source)} | ({} if exact is None else mutable(self.connection, row))
        after |= self._mark(row, version, decision, namespace_id)
        if decision.successor is not None:
            after["superseded_by"] = decision.successor.public_id
        self._record("save", (row, version.id, exact), namespace_id, version.namespace, None, after)
        updated = any(old.superseded_by is None for old in decision.replaces)
        if decision.contests is not None and not decision.successor:
            return Outcome("contested", version.id, self._id_of(decision.contests))
        return Outcome("history" if decision.successor else "updated" if updated else "created", version.id)

    def _state(self, row: int, version: Version, namespace_id: int) -> None:
        """What a fact, a message or a summary is beside an item."""
        execute, covered = self.connection.execute, version.summary
        if version.fact is not None:
            self._keep(row, version.fact, namespace_id, purged=version.content is None)
        if covered is not None and version.content is not None:
            execute("INSERT INTO summaries VALUES (?, ?, ?, ?)", (row, covered.first, covered.last, covered.written_by))
        if version.type == "message" and version.content is not None:
            execute(
                "INSERT INTO conversations (namespace_id, session, strategy, last) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (namespace_id, session)"
                " DO UPDATE SET last = max(last, excluded.last), strategy = ifnull(strategy, excluded.strategy)",
                (namespace_id, version.session, version.strategy, version.seq),
            )

    def _keep(self, row: int, fact: Stated, namespace_id: int, *, purged: bool) -> None:
        names = (namespace_id, name_of(fact.subject), name_of(fact.key))
        slot = slots.find(self.connection, *names)
        if slot is None and purged:
            # Nothing is said of the key here: it holds nothing back.
            return
        slot = slot or slots.ensure(self.connection, namespace_id, fact.subject, fact.key)
        self._slots.add(slot)
        start = to_micros(fact.valid_from)
        values: tuple[object, ...] = (
            *(row, slot, canonical(fact.value), same(fact.value), fact.multi, fact.quoted, start),
            *(maybe_micros(fact.valid_to), maybe_micros(fact.expires_at), fact.reverted, None),
        )
        if purged:
            values = (row, slot, None, None, fact.multi, False, start, None, None, False, fact.rank or 0)
        self.connection.execute(
            "INSERT INTO facts (item_id, slot_id, value, same, multi, quoted, valid_from, valid_to, expires_at,"
            " reverted, rank) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )

    def _mark(self, row: int, version: Version, decision: Decision, namespace_id: int) -> dict[str, Any]:
        """Remember that a version is contested or pinned; what the journal's image of it says of that."""
        said: dict[str, Any] = {}
        if decision.contests is not None:
            said["contests"] = self._id_of(decision.contests) or version.id
            stands = by_id(self.connection, said["contests"])
            if version.contests is None and stands is not None:
                subject = (stands.row, stands.public_id, stands.content_hash)
                self._record("contest", subject, namespace_id, version.namespace, None, {"contested_by": version.id})
        elif version.key is not None and version.content is not None and decision.successor is None:
            # What was brought in before what it contests.
            self.connection.execute(
                "UPDATE items SET contests = ? WHERE contests = ? AND namespace_id = ? AND type = ? AND key = ?",
                (row, NOT_HERE, namespace_id, version.type, version.key),
            )
        ends = version.expires_at if version.fact is None else version.fact.expires_at
        pinned = version.pinned_at if ends is None and version.content is not None else None
        if pinned is not None and level(self.connection, row) == rank(RANKS[0]):
            self.connection.execute("INSERT INTO pins VALUES (?, ?)", (row, to_micros(pinned)))
            said["pinned"] = True
        return said

    def _id_of(self, row: int) -> str | None:
        found = self.connection.execute("SELECT public_id FROM items WHERE id = ?", (row,)).fetchone()
        return None if found is None else str(found[0])

    def _insert(
        self, version: Version, decision: Decision, namespace_id: int, exact: bytes | None, *, retired: bool
    ) -> int:
        created, occurred = to_micros(version.created_at), maybe_micros(version.occurred_at)
        successor, superseded_at = decision.successor, maybe_micros(version.superseded_at)
        superseded_by = successor.row if successor is not None else None
        if successor is None and (version.superseded_by is not None or superseded_at is not None):
            superseded_by = NOT_HERE
        if superseded_by is not None and superseded_at is None:
            superseded_at = created if successor is None else successor.created_at
        row = self.connection.execute(
            "INSERT INTO items (public_id, type, namespace_id, kind, key, version, content_hash, normal_hash,"
            " confidence, session, seq, speaker, occurred_at, created_at, updated_at, effective_at, expires_at,"
            " superseded_by, superseded_at, forgotten_at, forget_reason, purged_at, contests)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(version.id, version.type, namespace_id, version.kind, version.key, decision.version),
                *(exact, None if version.content is None else normal_hash(version.content), version.confidence),
                *(version.session, version.seq, version.speaker, occurred, created, to_micros(version.updated_at)),
                *(created if occurred is None else occurred, maybe_micros(version.expires_at)),
                *(superseded_by, superseded_at),
                self.now if retired else maybe_micros(version.forgotten_at),
                "expired" if retired else version.forget_reason,
                maybe_micros(version.purged_at),
                decision.contests,
            ),
        ).lastrowid
        assert row is not None
        return row

    def _fill(self, row: int, arrival: Arrival, decision: Decision) -> None:
        """What hangs on an item: savers, text, metadata, passages."""
        version = arrival.version
        for giver in version.savers:
            givers.put(self.connection, row, giver)
        lower_tags(self.connection, row)
        if version.content is None:
            return
        self.connection.execute(
            "INSERT INTO texts VALUES (?, ?, ?, '{}')",
            (row, version.title, "" if self.rehearsal else version.content),
        )
        set_metadata(self.connection, row, version.metadata)
        if arrival.embedded is not None and not self.rehearsal:
            insert_passages(self.connection, row, arrival.embedded)
            if version.type in {"note", "fact"}:
                self._fresh[row] = arrival
        if not self.rehearsal:
            allowance.add(self.connection, row, allowance.size_of(version))
        told = {replaced.id for replaced in version.replaces}
        for old in decision.replaces:
            if old.key is None and old.public_id not in told:
                # A row of the same text that only this store had: what its savers gave goes on with the text.
                same = level(self.connection, old.row) == level(self.connection, row)
                givers.copy(self.connection, old.row, row)
                if same:
                    self._fill_gaps(row, **_given(mutable(self.connection, old.row)))
            elif old.contests is not None and old.content_hash == content_hash(version.content):
                givers.copy(self.connection, old.row, row)

    def _supersede(self, old: Standing, row: int, version: Version, namespace_id: int, *, contested: bool) -> None:
        at = max(to_micros(version.created_at), old.created_at) if old.superseded_at is None else old.superseded_at
        self.connection.execute(
            "UPDATE items SET superseded_by = ?, superseded_at = ? WHERE id = ?", (row, at, old.row)
        )
        # As a save does: what it replaced under its key comes first, a row of its text after that.
        self.connection.execute(
            "UPDATE items SET supersedes = ? WHERE id = ? AND ((supersedes IS NULL AND ?) OR ? = ?)",
            (old.row, row, old.contests is None, old.public_id, version.supersedes),
        )
        self.connection.execute(
            "UPDATE items SET supersedes = NULL WHERE supersedes = ? AND id <> ? AND id = ?",
            (old.row, row, old.superseded_by),
        )
        after = {"superseded_by": version.id}
        subject = (old.row, old.public_id, old.content_hash)
        operation: Operation = "supersede" if old.contests is None or contested else "settle"
        self._record(operation, subject, namespace_id, version.namespace, {"superseded_by": None}, after)

    def _join(self, arrival: Arrival, standing: Standing, namespace_id: int) -> None:
        """Let the savers of a version that is here already join; nothing is written if they all have."""
        version = arrival.version
        before = mutable(self.connection, standing.row)
        unchanged = self.connection.total_changes
        highest, mine = level(self.connection, standing.row), rank(version.origin(self.caller.origin))
        for giver in version.savers:
            givers.put(self.connection, standing.row, giver, once=arrival.follows)
        given = (version.metadata, version.confidence, maybe_micros(version.expires_at))
        if version.fact is not None:
            self._join_fact(version.fact, standing, other=standing.public_id != version.id)
        elif highest is not None and mine < highest:
            lower_tags(self.connection, standing.row)
            set_fields(self.connection, standing.row, *given)
        elif standing.public_id != version.id and mine == highest:
            self._fill_gaps(standing.row, *given)
        if self.connection.total_changes == unchanged:
            return
        if highest is None or mine <= highest:
            self.connection.execute(
                "UPDATE items SET updated_at = max(updated_at, ?) WHERE id = ?",
                (to_micros(version.updated_at), standing.row),
            )
        after = {"imported": dict(self.source)} | mutable(self.connection, standing.row)
        subject = (standing.row, standing.public_id, standing.content_hash)
        self._record("merge", subject, namespace_id, version.namespace, before, after)

    def _join_fact(self, fact: Stated, standing: Standing, *, other: bool) -> None:
        if (slot := slots.of_item(self.connection, standing.row)) is not None:
            self._slots.add(slot)
        [known] = self.connection.execute("SELECT expires_at FROM facts WHERE item_id = ?", (standing.row,)).fetchone()
        ends = later(known, maybe_micros(fact.expires_at))
        if other and ends != known:
            set_expiry(self.connection, standing.row, ends)

    def _fill_gaps(
        self, row: int, metadata: Mapping[str, Any], confidence: float | None, expires_at: int | None
    ) -> None:
        """Add what the row does not have; of two expiries the later, and none is later than any."""
        self.connection.execute(
            "UPDATE items SET confidence = ? WHERE id = ? AND confidence IS NULL AND ? IS NOT NULL",
            (confidence, row, confidence),
        )
        self.connection.execute(
            "UPDATE items SET expires_at = ? WHERE id = ? AND expires_at < ifnull(?, expires_at + 1)",
            (expires_at, row, expires_at),
        )
        known = json.loads(
            self.connection.execute("SELECT metadata FROM texts WHERE item_id = ?", (row,)).fetchone()[0]
        )
        fuller = joined(known, metadata)
        if fuller != known:
            set_metadata(self.connection, row, fuller)

    def _record(
        self,
        operation: Operation,
        subject: tuple[int, str, bytes | None],
        namespace_id: int,
        namespace: str,
        before: Image,
        after: Image,
    ) -> None:
        row, public_id, exact = subject
        change = Change(self.now, namespace_id, namespace, operation, row, public_id, exact or _PURGED, before, after)
        journal.append(self.connection, change, self._who())

    def _who(self) -> Actor:
        if self._actor is None:
            self._actor = ensure_actor(self.connection, self.caller, self.now)
        return self._actor


def _skeleton(version: Version) -> Version:
    """A purged version with nothing but its place: a file may bring more, and no purge would look for it."""
    return replace(
        version,
        kind="purged",
        title=None,
        metadata={},
        confidence=None,
        session=None,
        seq=None,
        speaker=None,
        occurred_at=None,
        expires_at=None,
        forgotten_at=version.forgotten_at or version.purged_at,
        forget_reason=None,
        pinned_at=None,
        summary=None,
        strategy=None,
        savers=(),
        passages=(),
    )


def _given(kept: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kept[name] for name in ("metadata", "confidence", "expires_at")}
