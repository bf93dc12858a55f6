"""Until when a query may find each statement of a slot: drawn anew whenever one of them changes.

`items.superseded_by` names what took a statement's place already, `items.expires_at` the soonest of its own end, of its
expiry and of the beginning of what takes its place, `items.contests` what overrules it. These are derived; what holds
at which instant is `agora.model.timeline`'s to say.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agora.model.instants import NEVER
from agora.model.timeline import Statement, outcome, reached
from agora.stores.sqlite import fulltext, journal
from agora.stores.sqlite.facts import slots
from agora.stores.sqlite.journal import Actor

_STANDING = (
    "SELECT i.id, i.superseded_by, i.expires_at, i.contests, i.forgotten_at IS NULL AND i.purged_at IS NULL,"
    " f.replaced_at FROM facts f JOIN items i ON i.id = f.item_id WHERE f.slot_id = ? AND f.replaced_at > ?"
)


class Ends(NamedTuple):
    """What ends a statement for queries."""

    superseded_by: int | None
    expires_at: int | None
    contests: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """The statements of a slot that were looked at; by row what ends each, and when that begins which replaces it."""

    known: Sequence[Statement]
    ends: Mapping[int, Ends]
    replaced: Mapping[int, int]

    def until(self, row: int) -> int | None:
        """When a statement stops to hold, or did."""
        ended = self.ends[row].expires_at
        return min(NEVER if ended is None else ended, self.replaced[row]) if self.over(row) else ended

    def over(self, row: int) -> bool:
        """Whether another one has its place already."""
        return self.ends[row].superseded_by is not None


def settle(
    connection: sqlite3.Connection,
    slot: int,
    actor: Actor,
    now: int,
    *,
    but: Container[int] = (),
    since: int = slots.ALWAYS,
) -> Settled:
    """Bring the ends of the statements of a slot up to date; each that changes is a change of the journal.

    `but`: rows that are written in this transaction, whose own entries say enough. `since`: where only a statement was
    added, its beginning: nothing changes for what had been replaced by then.
    """
    known = slots.statements(connection, slot, since)
    settled = Settled(known, *ends(known, now))
    for row, (before, after) in _compared(connection, slot, settled, since).items():
        if before != after:
            _write(connection, row, before, after, now)
            if row not in but:
                _record(connection, row, before, after, actor, now)
    return settled


def mend(connection: sqlite3.Connection, slot: int, now: int) -> int:
    """As `settle`, of the rows alone: neither journal nor full text are touched; how many had other ends."""
    known = slots.statements(connection, slot)
    found = _compared(connection, slot, Settled(known, *ends(known, now)), slots.ALWAYS)
    for row, (before, after) in found.items():
        if before != after:
            [at] = connection.execute("SELECT superseded_at FROM items WHERE id = ?", (row,)).fetchone()
            _set(connection, row, after, now if at is None else at)
    return len(found)


def astray(connection: sqlite3.Connection, slot: int, now: int) -> list[int]:
    """Statements of a slot whose ends are not those that they should have."""
    known = slots.statements(connection, slot)
    return list(_compared(connection, slot, Settled(known, *ends(known, now)), slots.ALWAYS, write=False))


def _compared(
    connection: sqlite3.Connection, slot: int, settled: Settled, since: int, *, write: bool = True
) -> dict[int, tuple[Ends, Ends]]:
    """The ends that statements have and should have, where these differ; when they are replaced is written at once."""
    found = {}
    for row, superseded_by, expires_at, contests, there, replaced_at in connection.execute(
        _STANDING, (slot, since)
    ).fetchall():
        before, after = Ends(superseded_by, expires_at, contests), settled.ends[row]
        misplaced = settled.replaced[row] != replaced_at
        if misplaced and write:
            connection.execute("UPDATE facts SET replaced_at = ? WHERE item_id = ?", (settled.replaced[row], row))
        # What is forgotten gets its own ends when it comes back.
        if misplaced or (before != after and there):
            found[row] = (before, after if there else before)
    return found


def settle_of(connection: sqlite3.Connection, row: int, actor: Actor, now: int) -> None:
    """As `settle`, for the slot of an item, if it is a fact."""
    if (slot := slots.of_item(connection, row)) is not None:
        settle(connection, slot, actor, now)


def ends(known: Sequence[Statement], now: int) -> tuple[dict[int, Ends], dict[int, int]]:
    """What ends each statement, and when that begins which takes its place, by its row."""
    present = reached(known, now)
    ever, then = outcome(known, NEVER, now), outcome(known, present, now)
    starts = {each.row: each.start for each in known}
    holds = next(iter(then.holding), None)
    found, replaced = dict[int, Ends](), dict[int, int]()
    for each in known:
        after = ever.replaced.get(each.row)
        replaced[each.row] = NEVER if after is None else starts[after]
        gone = after is not None and starts[after] <= present
        soonest = [each.stop, each.expires, None if after is None or gone else starts[after]]
        found[each.row] = Ends(
            after if gone else None,
            min((end for end in soonest if end is not None), default=None),
            holds if each.row in then.contested else None,
        )
    return found, replaced


def _set(connection: sqlite3.Connection, row: int, after: Ends, now: int) -> None:
    connection.execute(
        "UPDATE items SET superseded_by = ?, superseded_at = ?, expires_at = ?, contests = ? WHERE id = ?",
        (after.superseded_by, None if after.superseded_by is None else now, *after[1:], row),
    )


def _write(connection: sqlite3.Connection, row: int, before: Ends, after: Ends, now: int) -> None:
    _set(connection, row, after, now)
    if (before.superseded_by is None) == (after.superseded_by is None):
        return
    namespace_id, title, content = connection.execute(
        "SELECT i.namespace_id, t.title, t.content FROM items i JOIN texts t ON t.item_id = i.id WHERE i.id = ?", (row,)
    ).fetchone()
    if after.superseded_by is None:
        fulltext.put_back(connection, row, namespace_id, "note", title, content)
    else:
        fulltext.remove(connection, row, namespace_id, "note")


def _record(connection: sqlite3.Connection, row: int, before: Ends, after: Ends, actor: Actor, now: int) -> None:
    operation: journal.Operation = "supersede"
    if after.superseded_by is None and after.contests is not None and before.contests is None:
        operation = "contest"
    was, will_be = _named(connection, before), _named(connection, after)
    journal.append_of(connection, row, operation, actor, now, before=was, after=will_be)


def _named(connection: sqlite3.Connection, ends: Ends) -> dict[str, object]:
    """With ids that outlive the numbers of rows."""

    def id_of(row: int | None) -> str | None:
        found = connection.execute("SELECT public_id FROM items WHERE id = ?", (row,)).fetchone()
        return None if found is None else str(found[0])

    return {
        "superseded_by": id_of(ends.superseded_by),
        "expires_at": ends.expires_at,
        "contests": id_of(ends.contests),
    }
