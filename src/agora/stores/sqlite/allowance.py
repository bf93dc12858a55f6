"""What agents and namespaces have used of what they may save, counted in the transaction that saves.

So several processes share one count, and a save that fails is not counted. Owners are agents that come without a token,
tokens, which have what one agent may, whatever names come with them, and namespaces. Each has a row in `meta`: a moment
and a number of bytes. The moment says how much of an hour's saves is used, as the generic cell rate algorithm keeps it
(ITU-T I.371): every save moves it on by an hour divided by the saves that an hour may have, and it may be at most an
hour ahead. The bytes only grow; they are counted anew from the texts before anybody is refused.
"""

from __future__ import annotations

import sqlite3
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from agora.errors import QuotaExceeded, RateLimited
from agora.model.allowance import Allowance, Allowances
from agora.model.caller import Caller
from agora.model.note import Draft
from agora.ports.transfer import Version
from agora.stores.sqlite.journal import Actor
from agora.stores.sqlite.rows import canonical

HOUR = 3_600_000_000
"""Microseconds in which the saves of an allowance may be made."""

_KEY = "used/{}/{}"
"""Of a row of `meta`: kind and row number of the owner; of a token its name."""

_MINUTE = 60_000_000
_UNKNOWN = -1
"""In place of the bytes where nothing limits them."""

_SIZE = (
    "ifnull(sum(length(CAST(t.content || ifnull(t.title, '') || t.metadata || ifnull("
    "(SELECT f.value FROM facts f WHERE f.item_id = t.item_id), '') AS BLOB))), 0)"
)
_COUNTED = {
    "agent": f"SELECT {_SIZE} FROM savers s JOIN texts t ON t.item_id = s.item_id JOIN clients c ON c.id = s.client_id"
    " WHERE s.agent_id = ? AND s.n = 0 AND c.token = ''",
    "token": f"SELECT {_SIZE} FROM clients c JOIN savers s ON s.client_id = c.id AND s.n = 0"
    " JOIN texts t ON t.item_id = s.item_id WHERE c.token = ?",
    "namespace": f"SELECT {_SIZE} FROM items i JOIN texts t ON t.item_id = i.id WHERE i.namespace_id = ?",
}


_Kind = Literal["agent", "token", "namespace"]
_ROW: dict[_Kind, str] = {
    "agent": "SELECT id FROM agents WHERE name = ?",
    "token": "SELECT ?",
    "namespace": "SELECT id FROM namespaces WHERE name = ?",
}
_SETTING: dict[_Kind, str] = {"agent": "agent", "token": "agent", "namespace": "namespace"}


class Owner(NamedTuple):
    """Whose allowance is meant, by the row of the store and by name; a token has none but its name."""

    kind: _Kind
    row: int | str
    name: str


_FULL: WeakKeyDictionary[sqlite3.Connection, dict[Owner, tuple[int, int]]] = WeakKeyDictionary()
"""When each connection last counted the bytes of an owner that had no room: that takes long, and may be asked often."""


def size_of(text: Draft | Version) -> int:
    """Bytes that a text takes with its title and metadata, and of a fact with its value."""
    fact = text.fact if isinstance(text, Version) else None
    value = "" if fact is None or fact.value is None else canonical(fact.value)
    return sum(len(part.encode()) for part in (text.content or "", text.title or "", canonical(text.metadata), value))


def add(connection: sqlite3.Connection, row: int, size: int) -> None:
    """Count a text that an import brought, which nothing limits, for its namespace and its first saver."""
    connection.execute(
        "UPDATE meta SET value = substr(value, 1, instr(value, ':')) || (substr(value, instr(value, ':') + 1) + ?)"
        " WHERE value NOT LIKE '%:-1' AND key IN ((SELECT 'used/namespace/' || namespace_id FROM items WHERE id = ?),"
        " (SELECT CASE c.token WHEN '' THEN 'used/agent/' || s.agent_id ELSE 'used/token/' || c.token END"
        " FROM savers s JOIN clients c ON c.id = s.client_id WHERE s.item_id = ? AND s.n = 0))",
        (size, row, row),
    )


def charge(connection: sqlite3.Connection, owner: Owner, allowance: Allowance, size: int, now: int) -> None:
    """Count a save of a text of `size` bytes (0 if it is there already) for an owner, in the caller's transaction.

    Raises: RateLimited, QuotaExceeded; then the caller writes nothing.
    """
    busy, used = _charged(connection, owner, allowance, size, now)
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_KEY.format(owner.kind, owner.row), f"{busy}:{used}"),
    )


def charge_all(
    connection: sqlite3.Connection, allowances: Allowances, actor: Actor, namespace: Owner, size: int, now: int
) -> None:
    """Count a save for its token, whatever names come with it, else for its agent, and for its namespace.

    A name that comes with one token uses up nothing of what comes with another, and learns nothing of it.

    Raises: as `charge`.
    """
    name: tuple[_Kind, int | str, str] = ("agent", actor.agent_id, actor.agent)
    own = Owner("token", actor.token, actor.token) if actor.token else Owner(*name)
    charge(connection, own, allowances.agent, size, now)
    charge(connection, namespace, allowances.namespace, size, now)


def foresee(
    connection: sqlite3.Connection, allowances: Allowances, caller: Caller, namespace: str, size: int, now: int
) -> None:
    """Return if a save would be let in now, as far as that can be told without writing.

    Raises: as `charge`.
    """
    every: tuple[tuple[_Kind, str, Allowance], ...] = (
        ("token", caller.token, allowances.agent) if caller.token else ("agent", caller.agent, allowances.agent),
        ("namespace", namespace, allowances.namespace),
    )
    for kind, name, allowance in every:
        found = connection.execute(_ROW[kind], (name,)).fetchone()
        if found is not None:
            _charged(connection, Owner(kind, found[0], name), allowance, size, now)


def _charged(
    connection: sqlite3.Connection, owner: Owner, allowance: Allowance, size: int, now: int
) -> tuple[int, int]:
    """What an owner has used with this save.

    Raises: as `charge`.
    """
    key = _KEY.format(owner.kind, owner.row)
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    busy, used = map(int, found[0].split(":")) if found else (0, _UNKNOWN)
    if allowance.saves is not None:
        # Of a clock that was ahead for a while it is more than an hour ahead: that must lock nobody out.
        busy = (busy if now <= busy <= now + HOUR else now) + HOUR // allowance.saves
        if busy > now + HOUR:
            raise RateLimited(
                f"the {owner.kind} {owner.name!r} has made {allowance.saves:,} saves within an hour, all that it may",
                (busy - now - HOUR) / 1_000_000,
                hint="Wait, then try again. If there is a reason for so many, raise"
                f" quota.{_SETTING[owner.kind]}_saves.",
            )
    return busy, _UNKNOWN if allowance.size is None else _with(connection, owner, used, size, allowance.size, now)


def _with(connection: sqlite3.Connection, owner: Owner, used: int, size: int, most: int, now: int) -> int:
    """The bytes that are used with `size` more of them.

    Raises: QuotaExceeded.
    """
    if used != _UNKNOWN and (not size or used + size <= most):
        return used + size
    full = _FULL.setdefault(connection, {})
    at, used = full.get(owner, (0, 0))
    if not 0 <= now - at < _MINUTE:
        # What was purged since is in the number still; or the store is older than the limit.
        used = int(connection.execute(_COUNTED[owner.kind], (owner.row,)).fetchone()[0])
    if not size or used + size <= most:
        full.pop(owner, None)
        return used + size
    full[owner] = now, used
    raise QuotaExceeded(
        f"the {owner.kind} {owner.name!r} keeps {used / 1e6:,.1f} MB of texts, and with this one it would be more than"
        f" the {most / 1e6:,.1f} MB that it may",
        hint="Forget what nobody needs and purge it (`agora purge --yes`); a minute later there is room. Or raise"
        f" quota.{_SETTING[owner.kind]}_mb.",
    )
