from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from agora.errors import InvalidInput
from agora.model.allowance import Allowances
from agora.model.caller import Caller, rank
from agora.model.fact import Fact, FactDraft, FactStatus, Remembered
from agora.model.instants import NEVER, maybe, maybe_micros, to_micros
from agora.model.timeline import Outcome, Statement, outcome, reached
from agora.ports.records import Embedded, VectorsNeeded
from agora.stores.sqlite import fields, fulltext, journal, reads
from agora.stores.sqlite.actors import add_saver, ensure_actor, ensure_namespace
from agora.stores.sqlite.allowance import Owner, charge_all
from agora.stores.sqlite.facts import rows, settling, slots
from agora.stores.sqlite.journal import Actor
from agora.stores.sqlite.rows import canonical
from agora.stores.sqlite.saving import insert_passages
from agora.text.identity import content_hash, normal_hash
from agora.text.sameness import name_of, same

MOST_VALUES = 250
"""That a key may have at once: each write and each recall of it looks at all of them.

Those of lower authority are not counted: nobody can fill a key for somebody above them.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """What a statement meets in its slot.

    `start`: its beginning. `recorded`: not before anything that its slot holds, whatever the clock says. `known`: the
    others that matter from then on. `joins`: the row of the same value that it only adds a source to. `multi`: whether
    it is one of several values. `beside`: how many others there are then, of the same authority or a higher one.
    """

    slot: int
    start: int
    recorded: int
    since: int
    known: Sequence[Statement]
    at_start: Outcome
    joins: int | None
    multi: bool
    beside: int


@dataclass(frozen=True, slots=True)
class Remember:
    """Everything one `remember` needs inside its transaction, computed before the lock is taken."""

    draft: FactDraft
    caller: Caller
    public_id: str
    now: int
    content: str
    text: tuple[fulltext.Prepared, ...]
    embedded: Embedded | None
    allowances: Allowances | None = None

    def __call__(self, connection: sqlite3.Connection) -> Remembered:
        """Add the caller to the sources of the same statement, or insert one and end what it takes the place of.

        Raises: VectorsNeeded if one must be inserted and `embedded` is None; InvalidInput for one value too many;
        RateLimited, QuotaExceeded.
        """
        draft, now = self.draft, self.now
        namespace_id = ensure_namespace(connection, draft.namespace, now)
        actor = ensure_actor(connection, self.caller, now)
        found = place(connection, namespace_id, draft, self.caller, now)
        if self.allowances is not None:
            texts = (self.content, canonical(draft.value), canonical({}))
            size = 0 if found.joins is not None else sum(len(text.encode()) for text in texts)
            charge_all(connection, self.allowances, actor, Owner("namespace", namespace_id, draft.namespace), size, now)
        if found.joins is not None:
            return self._join(connection, found, found.joins, actor)
        if found.multi and found.beside >= MOST_VALUES:
            raise InvalidInput(
                "value",
                f"is one too many: {draft.key!r} of {draft.subject!r} has {found.beside} values already",
                None,
                hint="Forget some of them, or remember one list or object that holds them all.",
            )
        if self.embedded is None:
            raise VectorsNeeded
        slot = found.slot or slots.ensure(connection, namespace_id, draft.subject, draft.key)
        row = self._insert(connection, namespace_id, slot, found, actor, self.embedded)
        told = {"subject": draft.subject, "key": draft.key, "value": draft.value}
        told |= fields.mutable(connection, row)
        sequence = journal.append_of(connection, row, "save", actor, now, after=told)
        settled = settling.settle(connection, slot, actor, now, but=(row,), since=found.since)
        return self._told(connection, settled, row, found, sequence)

    def _join(self, connection: sqlite3.Connection, found: Place, row: int, actor: Actor) -> Remembered:
        before = fields.mutable(connection, row)
        fields.set_expiry(connection, row, fields.later(before["expires_at"], maybe_micros(self.draft.expires_at)))
        connection.execute("UPDATE items SET updated_at = max(updated_at, ?) WHERE id = ?", (self.now, row))
        self._add_saver(connection, row, actor)
        after = fields.mutable(connection, row)
        sequence = journal.append_of(connection, row, "merge", actor, self.now, before=before, after=after)
        joined = next(each for each in found.known if each.row == row)
        if after != before or rank(self.caller.origin) < joined.rank(NEVER):
            # Its word counts more than before, or for longer.
            settled = settling.settle(connection, found.slot, actor, self.now)
        else:
            settled = settling.Settled(found.known, *settling.ends(found.known, self.now))
        fact = rows.by_row(connection, [row])[row]
        return Remembered(
            *(fact.id, "corroborated", fact.namespace, fact.subject, fact.key, len(fact.savers)),
            sequence=max(sequence, journal.head(connection)),
            stands=self._stands(connection, settled.known, found, row),
            late=settled.over(row),
            until=maybe(settled.until(row)),
        )

    def _insert(
        self,
        connection: sqlite3.Connection,
        namespace_id: int,
        slot: int,
        found: Place,
        actor: Actor,
        embedded: Embedded,
    ) -> int:
        draft, now = self.draft, max(self.now, found.recorded)
        row = connection.execute(
            "INSERT INTO items (public_id, type, namespace_id, kind, content_hash, normal_hash, session, occurred_at,"
            " created_at, updated_at, effective_at) VALUES (?, 'fact', ?, 'fact', ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.public_id, namespace_id, content_hash(self.content), normal_hash(self.content)),
                *(self.caller.session, maybe_micros(draft.valid_from), found.recorded, now, found.start),
            ),
        ).lastrowid
        assert row is not None
        connection.execute("INSERT INTO texts VALUES (?, NULL, ?, '{}')", (row, self.content))
        connection.execute(
            "INSERT INTO facts (item_id, slot_id, value, same, multi, quoted, valid_from, valid_to, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(row, slot, canonical(draft.value), same(draft.value), found.multi, draft.quote is not None),
                *(found.start, maybe_micros(draft.valid_to), maybe_micros(draft.expires_at)),
            ),
        )
        self._add_saver(connection, row, actor)
        insert_passages(connection, row, embedded)
        fulltext.add(connection, row, namespace_id, "note", self.text)
        return row

    def _told(
        self, connection: sqlite3.Connection, settled: settling.Settled, row: int, found: Place, sequence: int
    ) -> Remembered:
        """What the new statement came to."""
        then = outcome(settled.known, found.start, self.now)
        # Before it, at its beginning: what held then and does not any more.
        gone = [each for each in found.at_start.holding if then.replaced.get(each) == row]
        wanted = same(self.draft.value)
        equal = {each.row for each in settled.known if each.same == wanted}
        others = [each for each in then.holding if each != row]
        stands = self._stands(connection, settled.known, found, row)
        status: FactStatus = "stored"
        if row in then.contested:
            status = "contested"
        elif any(each not in equal for each in gone):
            status = "superseded"
        elif gone or row in then.behind:
            status = "corroborated"
        elif row not in then.holding and any(each in equal for each in others):
            # That it has ended; whoever says that it holds is of higher authority.
            status = "contested"
            stands = self._fact(connection, next(each for each in others if each in equal))
        elif others and row in then.holding:
            status = "added"
        counted = [row, *gone, *([then.behind[row]] if row in then.behind else [])]
        facts = rows.by_row(connection, counted)
        sources = {
            (saver.agent, saver.client, saver.session, saver.origin) for f in facts.values() for saver in f.savers
        }
        fact = facts[row]
        return Remembered(
            *(fact.id, status, fact.namespace, fact.subject, fact.key),
            count=len(sources) if status == "corroborated" else len(fact.savers),
            sequence=max(sequence, journal.head(connection)),
            replaced=tuple(facts[each] for each in gone if each not in equal),
            stands=stands if status == "contested" else None,
            late=settled.over(row),
            until=maybe(settled.until(row)),
        )

    def _stands(
        self, connection: sqlite3.Connection, known: Sequence[Statement], found: Place, row: int
    ) -> Fact | None:
        """What remains the value, if the row is contested."""
        then = outcome(known, max(found.start, found.recorded), self.now)
        if row not in then.contested or not then.holding:
            return None
        return self._fact(connection, then.holding[-1])

    def _fact(self, connection: sqlite3.Connection, row: int) -> Fact:
        return rows.by_row(connection, [row])[row]

    def _add_saver(self, connection: sqlite3.Connection, row: int, actor: Actor) -> None:
        given = {"echo_of": echo} if (echo := reads.echo_of(connection, self.caller, self.content, self.now)) else {}
        add_saver(connection, row, actor, self.now, given)


def place(
    connection: sqlite3.Connection, namespace_id: int | None, draft: FactDraft, caller: Caller, now: int
) -> Place:
    """What a statement meets in its slot, which may not be there yet."""
    since = now if draft.valid_from is None else to_micros(draft.valid_from)
    slot = None if namespace_id is None else slots.find(connection, namespace_id, *_names(draft))
    known = [] if slot is None else slots.statements(connection, slot, since)
    recorded = reached(known, now)
    start = recorded if draft.valid_from is None else since
    then = outcome(known, start, now)
    by_row = {each.row: each for each in known}
    held = [by_row[row] for row in (*then.holding, *then.contested, *then.behind)]
    own = rank(caller.origin)
    # What lower authority said beside what holds makes nobody above it have several values.
    multi = draft.multi
    if multi is None:
        multi = any(each.multi for each in held if each.row in then.holding or each.rank(NEVER) <= own)
    stop, wanted = maybe_micros(draft.valid_to), same(draft.value)
    expires = maybe_micros(draft.expires_at)

    def takes(one: Statement) -> bool:
        """Whether nothing of what is said would be lost if it were only one more source of this one."""
        level = one.rank(NEVER)
        # An end that lower authority has set does not end what higher authority says without one.
        until = stop == one.stop or (stop is None and own >= level)
        # Lower authority keeps nothing of higher authority any longer: it stands behind it with its own.
        kept = own <= level or fields.later(one.expires, expires) == one.expires
        return one.same == wanted and one.multi == multi and until and kept

    def ends(one: Statement) -> bool:
        """Whether it has said already that the value ends then; what an end is said of is no word of its own."""
        said = one.same == wanted and one.stop == start == stop and not one.retracted and not one.reverted
        return said and (one.start == one.stop or own >= one.rank(NEVER))

    joins = next((each.row for each in held if takes(each)), None)
    if joins is None and expires is None:
        joins = next((each.row for each in known if ends(each)), None)
    beside = sum(each.rank(NEVER) <= own for each in held)
    return Place(slot or 0, start, recorded, since, known, then, joins, multi, beside)


def _names(draft: FactDraft) -> tuple[str, str]:
    return name_of(draft.subject), name_of(draft.key)
