"""Which rows a purge takes: a forgotten note with the older versions of its text, or one forgotten version alone."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from agora.errors import Conflict, NoteNotFound
from agora.model.instants import maybe_micros
from agora.model.purge import Condemned, Doomed, Unwanted
from agora.stores.sqlite.authority import outranking
from agora.stores.sqlite.facts import skeletons
from agora.stores.sqlite.rows import blocks, namespace_ids, notes_by_row, places

_SHOWN = 20
_OPENING = 80

# A row of which only the clock was the end, and that made way for the same text, was never forgotten by anybody.
_FORGOTTEN = (
    "i.forgotten_at IS NOT NULL AND (i.type = 'fact'"
    " OR NOT (i.forget_reason IS 'expired' AND ifnull(i.expires_at <= :now, 0)))"
)
# A fact that has ended, or whose place another one took, is history: only its own expiry says that it is kept no more.
_EXPIRY = (
    "(CASE i.type WHEN 'fact' THEN (SELECT f.expires_at FROM facts f WHERE f.item_id = i.id) ELSE i.expires_at END)"
)
_EXPIRED = f"(i.type = 'fact' OR i.superseded_by IS NULL) AND ifnull({_EXPIRY} <= :now, 0)"


def condemn(connection: sqlite3.Connection, wanted: Unwanted, now: int) -> Condemned:
    """As `agora.ports.purging.Purging.condemn`, in the caller's transaction."""
    inside = namespace_ids(connection, wanted.namespaces)
    gone: list[str] = []
    named = bool(wanted.ids)
    chosen = _named(connection, wanted, inside, gone, now) if named else _matching(connection, wanted, inside, now)
    groups = _grouped(connection, chosen, inside, now)
    above = [group[0] for group in groups if outranking(connection, group, wanted.origin)]
    groups = tuple(group for group in groups if group[0] not in above)
    protected = tuple(note.id for note in notes_by_row(connection, above).values())
    repeated_by = _repeated_by(connection, groups)
    shown, last = _shown(connection, groups), _last_change(connection)
    return Condemned(groups, shown, tuple(gone), repeated_by, protected, last)


def is_condemned(connection: sqlite3.Connection, row: int, now: int) -> bool:
    """Whether a row is still forgotten or expired, and not yet purged."""
    found = connection.execute(
        f"SELECT 1 FROM items i WHERE i.id = :row AND i.purged_at IS NULL AND ({_FORGOTTEN} OR {_EXPIRED})",
        {"row": row, "now": now},
    )
    return found.fetchone() is not None


def older_versions(connection: sqlite3.Connection, row: int) -> list[int]:
    """Versions of its key that a current row has superseded, newest first; none of a row that is history itself."""
    found = connection.execute(
        "SELECT old.id FROM items i JOIN items old ON old.namespace_id = i.namespace_id AND old.type = i.type"
        " AND old.key = i.key WHERE i.id = ? AND i.superseded_by IS NULL AND i.contests IS NULL"
        " AND old.superseded_by IS NOT NULL AND old.contests IS NULL AND old.purged_at IS NULL"
        " ORDER BY old.version DESC, old.id DESC",
        (row,),
    )
    return [old for (old,) in found]


def attached(connection: sqlite3.Connection, row: int, now: int) -> list[int]:
    """Rows that go with one, for they say what it says: statements equal to a fact, summaries that cover a message.

    Of a conversation's summaries, each of which came from the one before it, all go.
    """
    summaries = connection.execute(
        "SELECT s.id FROM items m JOIN items s ON s.namespace_id = m.namespace_id AND s.type = 'summary'"
        " AND s.key = m.session AND s.purged_at IS NULL WHERE m.id = ? AND m.type = 'message' AND EXISTS"
        " (SELECT 1 FROM items x JOIN summaries c ON c.item_id = x.id AND m.seq BETWEEN c.first AND c.last"
        " WHERE x.namespace_id = m.namespace_id AND x.type = 'summary' AND x.key = m.session AND x.purged_at IS NULL)"
        " ORDER BY s.id DESC",
        (row,),
    )
    return [*(summary for (summary,) in summaries), *skeletons.equal_to(connection, row, now)]


def _matching(connection: sqlite3.Connection, wanted: Unwanted, inside: Sequence[int], now: int) -> list[int]:
    values = {"now": now, "before": maybe_micros(wanted.before)}
    since = {_FORGOTTEN: "i.forgotten_at", _EXPIRED: _EXPIRY}
    states = [
        f"{state}{'' if wanted.before is None else f' AND {since[state]} < :before'}"
        for state in ((_FORGOTTEN, _EXPIRED) if wanted.expired else (_FORGOTTEN,))
    ]
    listed = ",".join(map(str, inside))
    found = connection.execute(
        f"SELECT i.id FROM items i WHERE i.namespace_id IN ({listed}) AND i.purged_at IS NULL"
        f" AND ({' OR '.join(f'({state})' for state in states)}) ORDER BY i.id",
        values,
    )
    return [row for (row,) in found]


def _named(
    connection: sqlite3.Connection, wanted: Unwanted, inside: Sequence[int], gone: list[str], now: int
) -> list[int]:
    chosen: list[int] = []
    unknown, live, ended = list[str](), list[str](), list[str]()
    before = maybe_micros(wanted.before)
    for public_id in dict.fromkeys(wanted.ids):
        found = connection.execute(
            f"SELECT i.id, i.namespace_id, i.purged_at IS NOT NULL, {_FORGOTTEN}, {_EXPIRED},"
            f" coalesce(i.forgotten_at, {_EXPIRY}) FROM items i WHERE i.public_id = :id",
            {"id": public_id, "now": now},
        ).fetchone()
        if found is None or found[1] not in inside:
            unknown.append(public_id)
            continue
        row, _, purged, forgotten, expired, since = found
        if purged:
            gone.append(public_id)
        elif forgotten or (expired and wanted.expired):
            chosen += [row] if before is None or since < before else []
        else:
            (ended if expired else live).append(public_id)
    if unknown:
        raise NoteNotFound(
            f"no note with id {', '.join(unknown)} in {', '.join(wanted.namespaces)}",
            hint="Nothing was purged. Name the namespace that it lies in with -n.",
        )
    if live:
        raise Conflict(
            f"not forgotten: {', '.join(live)}",
            hint=f"Nothing was purged. Forget first what should go: `agora forget {live[0]} --yes`.",
        )
    if ended:
        raise Conflict(
            f"expired, not forgotten: {', '.join(ended)}",
            hint="Nothing was purged. Add --expired to purge what has expired too.",
        )
    return chosen


def _grouped(
    connection: sqlite3.Connection, chosen: Sequence[int], inside: Sequence[int], now: int
) -> tuple[tuple[int, ...], ...]:
    """Note by note: the chosen row, older versions of its key, what these replaced without a key, what goes with it."""
    keyless: dict[int, list[int]] = defaultdict(list)
    for row, successor in connection.execute(
        f"SELECT id, superseded_by FROM items WHERE namespace_id IN ({places(inside)}) AND key IS NULL"
        " AND type = 'note' AND superseded_by > 0 AND purged_at IS NULL",
        tuple(inside),
    ):
        keyless[successor].append(row)
    current = dict(
        pair
        for block in blocks(list(chosen))
        for pair in connection.execute(
            f"SELECT id, superseded_by IS NULL FROM items WHERE id IN ({places(block)})", tuple(block)
        )
    )
    taken: set[int] = set()
    groups: dict[int, tuple[int, ...]] = {}
    # Heads first: what hangs on one goes with it, whether or not it was chosen too.
    for row in sorted(chosen, key=lambda row: not current[row]):
        if row in taken:
            continue
        versions = [row, *older_versions(connection, row)]
        every = (*versions, *_replaced(versions, keyless, current[row]), *attached(connection, row, now))
        group = [each for each in every if each not in taken]
        taken.update(group)
        groups[row] = tuple(group)
    return tuple(groups[row] for row in sorted(groups))


def _replaced(versions: Iterable[int], keyless: dict[int, list[int]], current: bool) -> list[int]:
    # A version that is history itself goes alone: what it replaced is the history of the current one.
    return [old for version in versions for old in keyless.get(version, ())] if current else []


def _shown(connection: sqlite3.Connection, groups: Sequence[Sequence[int]]) -> tuple[Doomed, ...]:
    first = groups[:_SHOWN]
    notes = notes_by_row(connection, [group[0] for group in first])
    shown = []
    for group in first:
        note = notes[group[0]]
        title = note.title or " ".join(note.content[: 4 * _OPENING].split())[:_OPENING]
        since = note.forgotten_at or note.expires_at
        assert since is not None, "only what is forgotten or expired is chosen"
        state: Literal["forgotten", "expired"] = "expired" if note.forgotten_at is None else "forgotten"
        by = note.savers[0]
        shown.append(Doomed(note.id, note.namespace, title, by.agent, by.origin, state, since, len(group)))
    return tuple(shown)


def _last_change(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    found = connection.execute("SELECT sequence, hash FROM journal ORDER BY sequence DESC LIMIT 1").fetchone()
    return (0, None) if found is None else (found[0], bytes(found[1]))


def _repeated_by(connection: sqlite3.Connection, groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Ids of rows that stay and say what goes: those whose saver only repeated it, and those of the same words."""
    going = {row for group in groups for row in group}
    if not going:
        return ()
    ids, repeating = set(), set()
    for block in blocks(sorted(going)):
        for public_id, row, other in connection.execute(
            "SELECT i.public_id, o.id, o.public_id FROM items i LEFT JOIN items o ON o.normal_hash = i.normal_hash"
            " AND o.namespace_id IN (SELECT id FROM namespaces) AND o.id <> i.id AND o.purged_at IS NULL"
            f" WHERE i.id IN ({places(block)})",
            tuple(block),
        ):
            ids.add(public_id)
            if row is not None and row not in going:
                repeating.add(other)
    for row, public_id, given in connection.execute(
        "SELECT i.id, i.public_id, s.given FROM savers s JOIN items i ON i.id = s.item_id"
        " WHERE instr(s.given, '\"echo_of\"')"
    ):
        if row not in going and json.loads(given).get("echo_of") in ids:
            repeating.add(public_id)
    return tuple(sorted(repeating))
