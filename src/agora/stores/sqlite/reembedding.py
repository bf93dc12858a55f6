from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.profile import Fingerprint
from agora.ports.reembedding import Begun, Cut, Switched, Text
from agora.stores.sqlite import fulltext, incoming, journal, leftovers
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.fulltext import Prepared
from agora.stores.sqlite.journal import Change
from agora.stores.sqlite.ledger import Ledger, Target
from agora.stores.sqlite.migrations import check_version

_Ready = Mapping[int, tuple[Prepared, ...]]


class SqliteReembedding:
    """Moves one store to one encoder; implements `agora.ports.reembedding.Reembedding`.

    The encoder is `building` until the switch. As long as it cuts every text as it is cut, its vectors belong to the
    passages that are there. Else it gets a layout of its own, whose full text grows in the spare tables; the switch
    exchanges their names with those of the current ones.
    """

    def __init__(self, database: Database, fingerprint: Fingerprint) -> None:
        self._database = database
        self._fingerprint = fingerprint
        self._digest = fingerprint.digest()
        self._ledger = Ledger(self._digest)

    def begin(self, deadline: Deadline) -> Begun:
        """As `Reembedding.begin`."""
        old, needed, resumed, abandoned = self._database.write(self._look, deadline)
        deleted = self.clean(deadline)
        if needed:
            self._database.write(self._go_on if resumed else self._insert, deadline)
        with self._database.read(deadline) as connection:
            versions = connection.execute("SELECT count(*) FROM texts").fetchone()[0]
        return Begun(old, needed, resumed, abandoned, versions, deleted)

    def _look(self, connection: sqlite3.Connection) -> tuple[str, bool, bool, str | None]:
        """What the store is and was on its way to; what it was on its way to elsewhere is given up."""
        digest, old = connection.execute("SELECT digest, name FROM encoders WHERE state = 'active'").fetchone()
        others = "state = 'building' AND digest <> ?"
        abandoned = connection.execute(f"SELECT name FROM encoders WHERE {others}", (self._digest,)).fetchone()
        connection.execute(f"UPDATE encoders SET state = 'retired' WHERE {others}", (self._digest,))
        resumed = connection.execute("SELECT 1 FROM encoders WHERE state = 'building'").fetchone() is not None
        return old, digest != self._digest, resumed, abandoned and abandoned[0]

    def _insert(self, connection: sqlite3.Connection) -> None:
        fingerprint = json.dumps(asdict(self._fingerprint), sort_keys=True)
        connection.execute(
            "INSERT INTO encoders (digest, name, dimension, fingerprint, layout, state)"
            " SELECT ?, ?, ?, ?, layout, 'building' FROM encoders WHERE state = 'active'",
            (self._digest, self._fingerprint.name, self._fingerprint.dimension, fingerprint),
        )

    def _go_on(self, connection: sqlite3.Connection) -> None:
        if Target.of(connection, self._digest).own:
            incoming.begin_spare(connection)

    def left(self, deadline: Deadline) -> int:
        """As `Reembedding.left`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            self._ledger.read_on(connection)
            return self._ledger.left

    def waiting(self, most: int, characters: int, deadline: Deadline) -> tuple[Text, ...]:
        """As `Reembedding.waiting`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            return self._waiting(connection, self._ledger.read_on(connection), most, characters)

    def _waiting(self, connection: sqlite3.Connection, target: Target, most: int, characters: int) -> tuple[Text, ...]:
        while self._ledger.rows:
            asked = self._ledger.first(most)
            found = incoming.texts(connection, target, asked, characters)
            # Purged since the ledger was written.
            self._ledger.drop([row for row in asked if row not in found])
            if texts := tuple(text for text in found.values() if text is not None):
                return texts
            if not self._ledger.rows:
                self._ledger.read_on(connection)
        return ()

    def keep(self, cuts: Sequence[Cut], deadline: Deadline) -> None:
        """As `Reembedding.keep`."""
        ready = self._prepared(cuts)
        self._ledger.drop(self._database.write(lambda connection: self._write(connection, cuts, ready), deadline))

    def _write(self, connection: sqlite3.Connection, cuts: Sequence[Cut], ready: _Ready) -> list[int]:
        """The rows that are done."""
        target = Target.of(connection, self._digest)
        return [cut.text.row for cut in cuts if incoming.store(connection, target, cut, ready.get(cut.text.row))]

    def _prepared(self, cuts: Sequence[Cut]) -> _Ready:
        """Index terms for a layout of its own, made before the lock is taken."""
        if self._ledger.target is None or not self._ledger.target.own:
            return {}
        return {
            cut.text.row: fulltext.prepare(cut.text.title, cut.text.content, cut.spans)
            for cut in cuts
            if cut.text.findable
        }

    def cut_anew(self, deadline: Deadline) -> None:
        """As `Reembedding.cut_anew`."""

        def run(connection: sqlite3.Connection) -> None:
            target = Target.of(connection, self._digest)
            if not target.own:
                incoming.begin_spare(connection)
                connection.execute(
                    "UPDATE encoders SET layout = 1 + max((SELECT max(layout) FROM encoders),"
                    " (SELECT ifnull(max(layout), 0) FROM passages)) WHERE id = ?",
                    (target.encoder_id,),
                )

        self._database.write(run, deadline)

    def switch(
        self,
        rest: Callable[[Sequence[Text]], Sequence[Cut]],
        most: int,
        caller: Caller,
        now: datetime,
        deadline: Deadline,
    ) -> Switched | None:
        """As `Reembedding.switch`."""
        if self._missed(deadline):
            return None
        began = 0.0
        done: list[int] = []

        def run(connection: sqlite3.Connection) -> int | None:
            nonlocal began
            began = time.monotonic()
            target = self._ledger.read_on(connection)
            if self._ledger.rows:
                cuts = rest(self._waiting(connection, target, most, incoming.CHARACTERS))
                done.extend(self._write(connection, cuts, self._prepared(cuts)))
            if self._ledger.left > len(done):
                return None
            return self._exchange(connection, target, caller, to_micros(now))

        sequence = self._database.write(run, deadline)
        held = time.monotonic() - began
        self._ledger.drop(done)
        if sequence is None:
            return None
        with self._database.read(deadline) as connection:
            passages = connection.execute(
                "SELECT count(*) FROM vectors WHERE encoder_id = (SELECT id FROM encoders WHERE state = 'active')"
            ).fetchone()[0]
        return Switched(sequence, passages, held)

    def _missed(self, deadline: Deadline) -> bool:
        """Whether a second walk over the store, made once, finds anything that waits."""
        if self._ledger.verified:
            return False
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            self._ledger.walk_again(connection)
            target = self._ledger.target
            if target is None or not target.own or incoming.is_whole(connection, target):
                return bool(self._ledger.rows)
        # Somebody repaired the store, or damaged it. The words are made anew from the texts; no vector is.
        self._database.write(incoming.renew_spare, deadline)
        self._ledger.verified = False
        return True

    def _exchange(self, connection: sqlite3.Connection, target: Target, caller: Caller, now: int) -> int:
        """One encoder for the other, and what hangs on it; the sequence of the change."""
        old_id, old = connection.execute("SELECT id, name FROM encoders WHERE state = 'active'").fetchone()
        connection.execute("UPDATE encoders SET state = 'retired' WHERE id = ?", (old_id,))
        connection.execute("UPDATE encoders SET state = 'active' WHERE id = ?", (target.encoder_id,))
        if target.own:
            incoming.exchange(connection)
        # Without these rows the old index's files belong to nothing, and its next upkeep deletes them.
        connection.execute("DELETE FROM segments WHERE encoder_id = ?", (old_id,))
        connection.execute("DELETE FROM generations WHERE encoder_id = ?", (old_id,))
        change = Change(
            at=now,
            namespace_id=None,
            namespace=None,
            operation="reembed",
            item_id=None,
            public_id=None,
            content_hash=b"",
            before={"encoder": old},
            after={"encoder": self._fingerprint.name, "digest": self._digest},
        )
        return journal.append(connection, change, ensure_actor(connection, caller, now))

    def clean(self, deadline: Deadline) -> int:
        """As `Reembedding.clean`."""
        return leftovers.clean(self._database, deadline)
