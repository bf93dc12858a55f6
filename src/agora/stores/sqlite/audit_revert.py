"""Undoing one writer's changes: with what forgets, restores and takes in versions, never by changing what was."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from agora.errors import StoreCorrupt
from agora.model.audit import Left, Plan, Step, Writer
from agora.model.caller import Caller, Origin
from agora.model.deadline import Deadline
from agora.model.instants import from_micros, to_micros
from agora.ports.records import Embedded
from agora.ports.transfer import Arrival, Extract, Giver, Replaced, Version
from agora.stores.sqlite import forgetting, fulltext, heads, journal
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.arriving import Arriving
from agora.stores.sqlite.audit_history import ABOVE, ALONE, REVERTED, Identity
from agora.stores.sqlite.audit_lineage import REASON, Item, Lineage
from agora.stores.sqlite.audit_plan import Unit, is_above, plan, units_of
from agora.stores.sqlite.audit_savers import Savers
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.migrations import check_version, is_current, migrate
from agora.stores.sqlite.outgoing import SqliteOutgoing
from agora.stores.sqlite.profile import active
from agora.text.ids import new_id


class SqliteReverting(AbstractContextManager["SqliteReverting"]):
    """Undoes changes in the store at a path; implements `agora.ports.audit.Reverting`. Needs no model.

    A connection to the store as another process's would be; closed at the end of a `with` block.
    """

    def __init__(self, path: Path, *, synchronous: Literal["normal", "full"], busy_timeout: float) -> None:
        """Open the store, which exists.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        self._database = Database(
            path, is_current, migrate, synchronous=synchronous, busy_timeout=busy_timeout, readers=1
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def plan(self, writer: Writer, origin: Origin, now: datetime, deadline: Deadline) -> Plan:
        """As `Reverting.plan`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            return plan(connection, writer, origin, to_micros(now))

    def undo(
        self, steps: Sequence[Step], writer: Writer, caller: Caller, now: datetime, deadline: Deadline
    ) -> tuple[tuple[Step, ...], tuple[Left, ...]]:
        """As `Reverting.undo`."""

        def run(connection: sqlite3.Connection) -> tuple[tuple[Step, ...], tuple[Left, ...]]:
            # What comes back gets the words of this release.
            built = fulltext.built_by(connection)
            fulltext.check_analysis(None if built is None else str(built))
            deed = _Deed(connection, writer, caller, to_micros(now))
            for step in steps:
                deed.undo(step.row, step.undoing)
            return tuple(deed.done), tuple(deed.left)

        return self._database.write(run, deadline)

    def sequence(self, deadline: Deadline) -> int:
        """As `Reverting.sequence`."""
        with self._database.read(deadline) as connection:
            return journal.head(connection)


class _Deed:
    """The steps of one write transaction."""

    def __init__(self, connection: sqlite3.Connection, writer: Writer, caller: Caller, now: int) -> None:
        self._connection = connection
        self._caller = caller
        self._lineage = Lineage(connection, writer, now)
        self._now = now
        self._actor = ensure_actor(connection, caller, now)
        self._savers = Savers(connection, self._actor, now)
        self._under_way: set[int] = set()
        self.done: list[Step] = []
        self.left: list[Left] = []

    def undo(self, row: int, undoing: str | None) -> None:
        """Do what there is to do with a note, if it is of this kind; of any where that is None."""
        if row in self._under_way:
            return
        self._under_way.add(row)
        units, _ = units_of(self._lineage, row)
        for unit in units:
            if undoing in {None, unit.undoing} and self._act(unit):
                self.done.append(unit.step())

    def _act(self, unit: Unit) -> bool:
        item = unit.item
        if is_above(self._connection, unit, self._caller.origin):
            self.left.append(Left(item.public_id, item.namespace, ABOVE))
            return False
        if unit.undoing == "restore":
            return self._restore(item)
        if unit.undoing == "withdraw":
            done = self._savers.withdraw(item, unit.savings, unit.others, titled=unit.titled)
            self.left += [] if done else [Left(item.public_id, item.namespace, ALONE)]
            return done
        if unit.undoing == "give back":
            for coming in unit.coming:
                self._savers.give_back(item, coming)
            return True
        # The whole copies first: a transaction that fails half-way leaves nothing, and one that cannot copy, all.
        copies = [self._version(each) for each in (*((unit.base,) if unit.base else ()), *unit.loose)]
        for each in unit.hide:
            marks = {forgetting.REVERTED: True} if unit.made else {}
            forgetting.hide(self._connection, each.row, REASON, self._actor, self._now, marks)
        for version, embedded in copies:
            self._put(version, embedded, item)
        return True

    def _restore(self, item: Item) -> bool:
        found = forgetting.restore(self._connection, (item.public_id,), (item.namespace,), self._caller, self._now)
        for kept in found.duplicates.values():
            self.left.append(Left(item.public_id, item.namespace, f"it stays forgotten: {kept} holds the same text"))
        self.left += [Left(item.public_id, item.namespace, ABOVE) for _ in found.protected]
        return bool(found.restored or found.superseded)

    def _version(self, earlier: Item) -> tuple[Version, Embedded]:
        """A version that is history, and what it is found by.

        Raises: StoreCorrupt if it has lost its text or its vectors.
        """
        found = _OneVersion(self._connection, self._now).of(earlier.row)
        fingerprint = active(self._connection)
        if found is None or found.content is None or not found.passages or fingerprint is None:
            raise StoreCorrupt(f"the note {earlier.public_id} lacks its text or vectors", hint="Run `agora doctor`.")
        spans, vectors = zip(*found.passages, strict=True)
        return found, Embedded(fingerprint, spans, vectors)

    def _put(self, earlier: Version, embedded: Embedded, item: Item) -> None:
        """Make a copy of `earlier` the current version: of the key of `item`, or a note of its own without one."""
        twin = heads.of_text(self._connection, item.namespace_id, earlier.content or "", self._now)
        if twin is not None and self._lineage.owns(twin.row):
            # A note that goes too must not take the savers of this one with it.
            self.undo(twin.row, None)
        now = from_micros(self._now)
        copy = replace(
            earlier,
            id=new_id("n", self._now // 1000),
            created_at=now,
            updated_at=now,
            version=1 if earlier.key is None else item.version + 1,
            supersedes=None if earlier.key is None else item.public_id,
            superseded_by=None,
            superseded_at=None,
            replaces=() if earlier.key is None else (Replaced(item.public_id, item.content_hash),),
            forgotten_at=None,
            forget_reason=None,
            savers=self._others(earlier.savers),
            passages=(),
        )
        arriving = Arriving(self._connection, self._caller, {REVERTED: earlier.id}, self._now)
        outcome = arriving.add(Arrival(copy, embedded))
        arriving.finish()
        if outcome.fate == "conflict":
            raise StoreCorrupt(f"the note {item.public_id} cannot be replaced: {outcome.reason}")

    def _others(self, savers: Sequence[Giver]) -> tuple[Giver, ...]:
        """The savers without the writer, who may have saved an earlier version too."""
        writes = self._lineage.is_writer
        others = [each for each in savers if not writes(_identity(each), to_micros(each.first_at))]
        return tuple(others or savers)


def _identity(saver: Giver) -> Identity:
    return saver.agent, saver.client, saver.client_version, saver.token, saver.session, saver.origin


class _OneVersion(SqliteOutgoing):
    """A version by its row."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        super().__init__(connection, Extract((), vectors=True), now)

    def of(self, row: int) -> Version | None:
        """The version, with its passages."""
        self._where, self._values = "i.id = ?", [row]
        return next(self.versions(), None)
