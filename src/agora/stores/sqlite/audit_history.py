"""Whose savings of a note stand: what the journal says that was saved, withdrawn and given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from agora.model.caller import Origin

REVERTED = "reverted_from"
"""In what a payload says of an import: a revert did this, from the note of this id."""

WITHDRAWN = "withdrawn"
"""In the payload of a `withdraw`: the sequences of the savings that no longer count."""

GIVEN_BACK = "given_back"
"""In the payload of a `merge`: it saves nothing itself, the savings of these sequences count again."""

EARLIER = "the writer had saved it before then too: its name stays among the savers"
IMPORTED = "the writer's import brought others' names to it: they stay among the savers"
ALONE = "nobody else is among the savers of the note: the writer's name stays"
ABOVE = "it is of higher origin than who reverts: do it as the user, on a terminal"
MOVING = "the store is moving to another encoder, which reads its title now: run the revert again when it has moved"

_GIVING = frozenset({"save", "merge", "append", "summarize"})
_SAVINGS = _GIVING | {"withdraw"}

Identity = tuple[str, ...]
"""Agent, client, its version, token, session, origin: what makes a saver of a note one and not another."""


class Event(NamedTuple):
    """One change of a note: `mine` if the writer made it. The images are empty for what has none."""

    sequence: int
    operation: str
    mine: bool
    saver: Identity
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def copy_of(self) -> str | None:
        """The id of the note that it is a copy of, if a revert made it, or put that one's savers on it."""
        found = self.after.get("imported", {}).get(REVERTED) if self.operation in _GIVING else None
        return None if found is None else str(found)

    @property
    def agent(self) -> str:
        """Who made it."""
        return self.saver[0]

    @property
    def origin(self) -> Origin:
        """The origin of who made it."""
        return _origin(self.saver)


@dataclass(frozen=True)
class Coming:
    """Savers that a `withdraw` took and that are to be savers again, with the sequences of their savings."""

    withdrawal: Event
    savers: frozenset[Identity]
    sequences: tuple[int, ...]

    @property
    def origins(self) -> frozenset[Origin]:
        """The origins of these savers."""
        return frozenset(map(_origin, self.savers))


def _origin(saver: Identity) -> Origin:
    return cast("Origin", saver[-1])


@dataclass(frozen=True)
class History:
    """Everything that was done to a note, first to last; `copied` apart, if it is a copy that a revert made.

    A copy is whose the note was that it is a copy of: the savings of that one come before its own. `brought` are the
    savings of notes without a key whose text was put under the key of this one: their savers are its savers too, and
    it is theirs no more.
    """

    events: Sequence[Event]
    brought: tuple[Event, ...] = ()
    copied: Event | None = None

    def savings_before(self, later: Event) -> list[Event]:
        """What was saved and withdrawn before another note took over the savers of this one."""
        every = (*self.brought, *self.events)
        return [each for each in every if each.operation in _SAVINGS and each.sequence < later.sequence]

    @cached_property
    def givings(self) -> list[Event]:
        """Every saving of its text, whether it still counts or not."""
        every = (*self.brought, *self.events)
        return [each for each in every if each.operation in _GIVING and GIVEN_BACK not in each.after]

    @cached_property
    def standing(self) -> list[Event]:
        """The savings that count."""
        return [each for each in self.givings if self._stands(each)]

    @cached_property
    def owned(self) -> bool:
        """Whether the writer alone has saved it, as far as that counts."""
        if self.copied is not None and self.copied.mine:
            return not self.joined
        brought = {each.sequence for each in self.brought}
        own = [each for each in self.standing if each.sequence not in brought]
        return bool(own) and all(each.mine for each in own)

    @cached_property
    def joined(self) -> list[str]:
        """Other agents who saved the text of a copy after it was made, as far as that counts."""
        since = 0 if self.copied is None else self.copied.sequence
        return list(dict.fromkeys(each.agent for each in self.standing if each.sequence > since and not each.mine))

    @cached_property
    def leaving(self) -> list[Event]:
        """Savings that are to count no more, of savers that then are none."""
        staying = {each.saver for each in self.standing if not self._unwanted(each)}
        return [each for each in self.standing if self._unwanted(each) and each.saver not in staying]

    @cached_property
    def stuck(self) -> str | None:
        """Why something of the writer has to stay; None if nothing has to."""
        if self.copied is not None and self.copied.mine:
            return f"{', '.join(self.joined)} saved the same text since: it is theirs too"
        going = {each.sequence for each in self.leaving}
        of_writer = [each for each in self.standing if each.mine and each.sequence not in going]
        if not of_writer:
            return None
        return IMPORTED if any("imported" in each.after for each in of_writer) else EARLIER

    @cached_property
    def coming(self) -> list[Coming]:
        """Savers whose savings somebody else made, and the writer withdrew."""
        found: dict[int, list[Event]] = defaultdict(list)
        for each in self.givings:
            if not each.mine and not self._stands(each) and self._stood(each):
                found[self._turned[each.sequence][-1].sequence].append(each)
        by_sequence = {each.sequence: each for each in (*self.brought, *self.events)}
        return [
            Coming(
                by_sequence[sequence],
                frozenset(each.saver for each in savings),
                tuple(each.sequence for each in savings),
            )
            for sequence, savings in found.items()
        ]

    @cached_property
    def titling(self) -> frozenset[int]:
        """The savings that gave the note its title."""
        return frozenset(each.sequence for each in self.events if each.operation == "save")

    def _unwanted(self, saving: Event) -> bool:
        if "imported" in saving.after:
            # Of whoever brought a file in there is no trace among the savers.
            return False
        return saving.mine or not self._stood(saving)

    @cached_property
    def _turned(self) -> dict[int, list[Event]]:
        """What made each saving count no more, or again; by the saving's sequence."""
        found: dict[int, list[Event]] = defaultdict(list)
        for each in (*self.brought, *self.events):
            for sequence in each.after.get(WITHDRAWN if each.operation == "withdraw" else GIVEN_BACK, ()):
                found[sequence].append(each)
        return dict(found)

    def _stands(self, saving: Event) -> bool:
        turns = self._turned.get(saving.sequence)
        return not turns or turns[-1].operation != "withdraw"

    def _stood(self, saving: Event) -> bool:
        """Whether it counted before the writer's last acts."""
        turns = list(self._turned.get(saving.sequence, ()))
        while turns and turns[-1].mine:
            turns.pop()
        return not turns or turns[-1].operation != "withdraw"
