"""From a checked call of a tool of facts to the memory and back to plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.note import Note
from agora.ports.clock import Clock
from agora.protocol import fact_arguments
from agora.protocol.times import written
from agora.protocol.tools import fact_shapes
from agora.protocol.tools.facts_table import BUDGET, FACTS

if TYPE_CHECKING:
    from agora.memory.facts import FactMemory

_COUNTED = 10_000
"""Subjects that the status counts."""


class FactTools:
    """Answers the tools of facts. Blocking: run it in a worker thread."""

    def __init__(self, facts: FactMemory, clock: Clock, *, content_bytes: int, profile_tokens: int) -> None:
        """`content_bytes`: of the longest text that facts are taken from. `profile_tokens`: of a profile."""
        self.memory = facts
        self._clock = clock
        self._content_bytes = content_bytes
        self._profile_tokens = profile_tokens

    def remember(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `remember`."""
        draft = fact_arguments.draft(given, caller.scope.own, self._clock.now())
        return fact_shapes.remembered(self.memory.remember(draft, caller, deadline), draft.value)

    def recall(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `recall`: of its budget at most half is the profile's."""
        budget = given.get("max_tokens", BUDGET)
        searched = (caller.scope.own,) if given.get("namespace") else caller.scope.searched()
        wanted = fact_arguments.recollection(
            given,
            searched,
            self._clock.now(),
            profile_tokens=min(self._profile_tokens, budget // 2),
            limit=FACTS,
        )
        return fact_shapes.recalled(self.memory.recall(wanted, caller, deadline), budget)

    def remember_from(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `remember_from`."""
        said = fact_arguments.saying(given, self._clock.now(), self._content_bytes)
        found = self.memory.remember_from(
            said.text, caller.scope.own, caller, deadline, subject=said.subject, at=said.at
        )
        return fact_shapes.gathered(found)

    def add_history(
        self, notes: Sequence[Note], rows: Sequence[dict[str, Any]], caller: Caller, deadline: Deadline
    ) -> None:
        """Tell of the facts among `notes`, in the row of each, how they stand and what else was said of their keys."""
        for note, row in zip(notes, rows, strict=True):
            if note.fact is None:
                continue
            known = self.memory.history(note.namespace, note.fact.subject, note.fact.key, caller, deadline)
            # What only says that another has ended is not in it.
            mine = next((each for each in known if each.fact.id == note.id), None)
            row["state"] = "ended" if mine is None else mine.state
            if mine is not None and mine.until is not None:
                row["until"] = written(mine.until)
            if len(known) > 1:
                row["history"] = fact_shapes.versions(known)

    def summary(self, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """What the status says of facts: of how many subjects there are how many keys that hold a value."""
        visible = caller.scope.visible()
        found = self.memory.subjects(visible, "", _COUNTED, caller, deadline) if visible else ()
        return {"subjects": len(found), "keys": sum(keys for _, keys in found)}
