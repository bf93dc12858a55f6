from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agora.model.note import Note


@dataclass(frozen=True, slots=True)
class Selection:
    """Which notes to forget. `ids` are looked up in `namespaces`; without ids, all other conditions hold.

    `agent` selects what that agent alone saved; `before` compares `occurred_at`, else `created_at`.
    """

    namespaces: tuple[str, ...]
    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    agent: str | None = None
    before: datetime | None = None
    reason: str | None = None
    own_only: tuple[str, ...] = ()
    """Of `namespaces` those in which a note goes only if all who saved it came with the token `own_token`."""
    own_token: str | None = None
    """Empty for those who came without one as this machine's user; None is nobody's."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was, or would be, forgotten: how many in all, and at most 20 of them."""

    count: int
    notes: tuple[Note, ...]
    unknown: tuple[str, ...]
    already: tuple[str, ...]
    shared: int
    """Notes that were meant but kept: others saved them too, which the caller's rights or its condition spare."""
    sequence: int | None
    dry_run: bool
    protected: tuple[str, ...] = ()
    """Ids of selected notes of higher authority than the caller's, at most 100: kept."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did with each id.

    `superseded` came back as history: a newer version of its key is the current one.
    `duplicates` maps an id that stays forgotten to the live row that holds the same text. `protected`: a caller of
    higher authority forgot it.
    """

    restored: tuple[str, ...]
    superseded: tuple[str, ...]
    unknown: tuple[str, ...]
    live: tuple[str, ...]
    expired: tuple[str, ...]
    purged: tuple[str, ...]
    duplicates: dict[str, str]
    sequence: int | None
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pinned:
    """What pinning, or unpinning, did with each id.

    `changed` are pinned, or unpinned, now; `already` were. `not_current` are forgotten, expired or superseded,
    `not_user` are not of the user's origin: neither is pinned.
    """

    pinned: bool
    changed: tuple[str, ...]
    already: tuple[str, ...]
    unknown: tuple[str, ...]
    not_current: tuple[str, ...]
    not_user: tuple[str, ...]
    sequence: int | None
