"""Whose savings of a note stand: what the journal says that was saved, withdrawn and given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

REVERTED = "reverted_from"
"""In what a payload says of an import: a revert did this, from the note of this id."""

WITHDRAWN = "withdrawn"
"""In the payload of a `withdraw`: the sequences of the savings that no longer count."""

GIVEN_BACK = "given_back"
"""In the payload of a `merge`: it saves nothing itself, the savings of these sequences count again."""

EARLIER = "the writer had saved it before then too: its name stays among the savers"
IMPORTED = "the writer's import brought others' names to it: they stay among the savers"
ALONE = "nobody else is among the savers of the note: the writer's name stays"
MOVING = "the store is moving to another encoder, which reads its title now: run the revert again when it has moved"

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
    def agent(self) -> str:
        """Who made it."""
        return self.saver[0]

    @property
    def session(self) -> str:
        """In which session."""
        return self.saver[4]


@dataclass(frozen=True)
class Coming:
    """Savers that a `withdraw` took and that are to be savers again, with the sequences of their savings."""

    withdrawal: Event
    savers: frozenset[Identity]
    sequences: tuple[int, ...]


@dataclass(frozen=True)
class History:
    """Everything that was done to a note, first to last."""

    events: Sequence[Event]

    @cached_property
    def givings(self) -> list[Event]:
        """Every saving of its text, whether it still counts or not."""
        return [each for each in self.events if each.operation in {"save", "merge"} and GIVEN_BACK not in each.after]

    @cached_property
    def standing(self) -> list[Event]:
        """The savings that count."""
        return [each for each in self.givings if self._stands(each)]

    @cached_property
    def owned(self) -> bool:
        """Whether the writer alone has saved it, as far as that counts."""
        return bool(self.standing) and all(each.mine for each in self.standing)

    @cached_property
    def leaving(self) -> list[Event]:
        """Savings that are to count no more, of savers that then are none."""
        staying = {each.saver for each in self.standing if not self._unwanted(each)}
        return [each for each in self.standing if self._unwanted(each) and each.saver not in staying]

    @cached_property
    def stuck(self) -> str | None:
        """Why some saving of the writer has to go on counting; None if none has to."""
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
        by_sequence = {each.sequence: each for each in self.events}
        return [
            Coming(
                by_sequence[sequence],
                frozenset(each.saver for each in savings),
                tuple(each.sequence for each in savings),
            )
            for sequence, savings in found.items()
        ]

    def _unwanted(self, saving: Event) -> bool:
        if "imported" in saving.after:
            # Of whoever brought a file in there is no trace among the savers.
            return False
        return saving.mine or not self._stood(saving)

    @cached_property
    def _turned(self) -> dict[int, list[Event]]:
        """What made each saving count no more, or again; by the saving's sequence."""
        found: dict[int, list[Event]] = defaultdict(list)
        for each in self.events:
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
