"""Facts: what holds of a subject, from when to when, and since when that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agora.model.caller import Origin
from agora.model.note import Saver

Value = str | int | float | bool | list[Any] | dict[str, Any]
"""What a fact may have for a value: JSON without null, up to 16 kB."""

USER = "user"
"""The subject of what is said of nobody in particular: the person at the other end."""

FactStatus = Literal["stored", "corroborated", "superseded", "contested", "added"]

FactState = Literal["current", "upcoming", "superseded", "ended", "expired", "retracted", "contested"]
"""How a fact stands at an instant. `superseded`: it held until a newer one began. `ended`: its own end has come.
`expired`: it is older than whoever told it wanted it to be kept. `retracted`: it was forgotten or taken back."""


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as it is about to be remembered: validated, namespace resolved, times absolute (UTC, aware).

    `valid_from`: None for now. `multi`: whether the key may have several values at once; None for as it was, and one
    at first. `quote`: the words it was taken from, verbatim.
    """

    namespace: str
    subject: str
    key: str
    value: Value
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    multi: bool | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement that a subject's key has a value, valid in [valid_from, valid_to), and everyone who said so.

    Never changed: what is said later is another statement, and which of them holds when is drawn from all of them.
    """

    id: str
    row: int
    namespace: str
    subject: str
    key: str
    value: Value
    multi: bool
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    recorded_at: datetime
    retracted_at: datetime | None
    quote: str | None
    savers: tuple[Saver, ...]
    """Highest origin first."""
    same: bytes
    """Equal for values that are the same after normalisation, and for no others; empty for one that was purged."""
    pinned_at: datetime | None = None
    reason: str | None = None
    """Why it was retracted."""
    reverted: bool = False
    """Taken back by `agora revert`: it counts as never said."""
    purged_rank: int | None = None
    """Of one that was purged, whose word it was, as `rank` has it: it has neither value nor savers any more, and still
    holds its place among the others."""

    @property
    def origin(self) -> Origin:
        """The highest origin of its savers: how much its word counts."""
        return self.savers[0].origin


@dataclass(frozen=True, slots=True)
class Stands:
    """A fact with how it stands at the instant that was asked for.

    `until`: when it stops to hold, by its own end or by the next one's beginning. `superseded_by`: the next one's id.
    `contested_by`: statements of lower authority that say something else and are newer.
    """

    fact: Fact
    state: FactState
    until: datetime | None = None
    superseded_by: str | None = None
    contested_by: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a `remember` did, in one of five words, with the fact that now carries the value.

    `stored`: there was none. `corroborated`: it was said before; `count` sources now say it. `superseded`: `replaced`
    no longer holds from `valid_from` on. `contested`: what `stands`, of higher authority, remains the value. `added`:
    one more of several values. `late`: a newer one begins later, so this holds until then or not any more. It
    holds from `since` to `until`.
    """

    id: str
    status: FactStatus
    namespace: str
    subject: str
    key: str
    count: int
    sequence: int | None
    replaced: tuple[Fact, ...] = ()
    stands: Fact | None = None
    late: bool = False
    until: datetime | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    """A fact that a text states, with the words that state it.

    `subject`: None for whoever speaks, or whatever the text as a whole is about. `ended`: the text says that it holds
    no longer. `multi`: keys of this kind may have several values. `about`: which rule or model found
    it, for whoever wants to know.
    """

    subject: str | None
    key: str
    value: Value
    quote: str
    ended: bool = False
    multi: bool = False
    about: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a text gave: what became of each fact in it, and those that could not be kept, with the reason.

    `extracted_by` names what looked for them; `problem` says why that was not the model of the settings, if so.
    """

    remembered: tuple[tuple[Extracted, Remembered], ...]
    skipped: tuple[tuple[Extracted, str], ...]
    extracted_by: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Recollection:
    """Which facts to recall: of which subject and key, as they were at `as_of`, by what was known at `known_at`."""

    namespaces: tuple[str, ...]
    subject: str | None = None
    key: str | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    include_history: bool = False
    max_tokens: int = 1000
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Recalled:
    """Facts that hold, those of highest standing first; `history` is what held before or was said and does not hold.

    `profile` is the block for a system prompt, within the token budget; `omitted` counts current facts that were left
    out of `facts`, `unwritten` those that had no room in the profile.
    """

    facts: tuple[Stands, ...]
    history: tuple[Stands, ...]
    profile: str | None
    omitted: int
    unwritten: int
    namespaces: tuple[str, ...]
    as_of: datetime
    known_at: datetime | None
    sequence: int | None
