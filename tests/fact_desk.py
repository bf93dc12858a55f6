"""A desk whose facts are at hand, and what must be true of the facts of a store whatever happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.conftest import PATIENCE, Desk

from agora.memory.facts import FactMemory
from agora.model.caller import Caller, Origin
from agora.model.deadline import Deadline
from agora.model.fact import Extracted, FactDraft, Gathered, Recalled, Recollection, Remembered
from agora.model.instants import to_micros
from agora.model.query import Filter
from agora.model.timeline import outcome, reached, statement
from agora.ports.extractor import Extraction
from agora.testing import SilentLog


class Scripted:
    """An extractor that finds what it was told to find."""

    def __init__(self) -> None:
        self.facts: tuple[Extracted, ...] = ()

    def extract(self, text: str, deadline: Deadline) -> Extraction:  # noqa: ARG002 - the port's form
        """What it was told to find, whatever the text."""
        return Extraction(self.facts, "scripted")


class FactDesk(Desk):
    """One process's view of a data folder, with the episodic memory."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.extractor = Scripted()
        self.facts = self.memory_of_facts()

    def memory_of_facts(self, **settings: Any) -> FactMemory:
        """The service over this desk's store."""
        return FactMemory(
            *(self.store.facts(), self.encoder, self.clock, SilentLog(), self.extractor),
            model_seconds=PATIENCE,
            **settings,
        )

    def remember(
        self,
        key: str,
        value: Any,
        subject: str = "user",
        *,
        agent: str = "ann",
        namespace: str = "p",
        session: str = "s1",
        origin: Origin = "agent",
        lives: float | None = None,
        **given: Any,
    ) -> Remembered:
        """Remember through the service; `lives` is seconds until it expires."""
        if lives is not None:
            given["expires_at"] = self.clock.now() + timedelta(seconds=lives)
        draft = FactDraft(namespace, subject, key, value, **given)
        caller = self.caller(agent, namespace, session=session, origin=origin)
        return self.facts.remember(draft, caller, Deadline(PATIENCE))

    def recall(self, subject: str | None = "user", key: str | None = None, **asked: Any) -> Recalled:
        """Recall through the service."""
        namespaces = asked.pop("namespaces", ("p",))
        wanted = Recollection(namespaces, subject, key, **asked)
        caller = self.caller(namespace=namespaces[0], also=namespaces[1:])
        return self.facts.recall(wanted, caller, Deadline(PATIENCE))

    def values(self, key: str, subject: str = "user", **asked: Any) -> list[Any]:
        """What holds, oldest first."""
        found = self.recall(subject, key, **asked).facts
        return [each.fact.value for each in sorted(found, key=lambda each: (each.fact.valid_from, each.fact.row))]

    def states(self, key: str, subject: str = "user", **asked: Any) -> list[tuple[Any, str]]:
        """Every value that was ever said with how it stands, oldest first."""
        found = self.recall(subject, key, include_history=True, **asked)
        every = sorted((*found.facts, *found.history), key=lambda each: (each.fact.valid_from, each.fact.row))
        return [(each.fact.value, each.state) for each in every]

    def gather(self, *facts: Extracted, at: datetime | None = None, caller: Caller | None = None) -> Gathered:
        """Remember what a text is said to state."""
        self.extractor.facts = facts
        return self.facts.remember_from("a text", "p", caller or self.caller(), Deadline(PATIENCE), at=at)

    def at(self, seconds: float) -> datetime:
        """So many seconds from now."""
        return self.clock.now() + timedelta(seconds=seconds)


def facts_agree(desk: FactDesk, namespaces: Sequence[str] = ("p",)) -> None:
    """What queries may find is what holds or stands beside it; what is yet to begin may be found, and says so."""
    now = to_micros(desk.clock.now())
    with desk.store.facts().read(Deadline(PATIENCE)) as reading:
        every, _ = reading.of(namespaces, None, None, 100_000)
    slots: dict[tuple[str, str, str], list[Any]] = {}
    for fact in every:
        slots.setdefault((fact.namespace, fact.subject, fact.key), []).append(fact)
    expected: set[int] = set()
    for group in slots.values():
        said = [statement(fact) for fact in group]
        then = outcome(said, reached(said, now), now)
        expected |= {*then.holding, *then.contested, *then.behind}
    with desk.store.read(Deadline(PATIENCE)) as reading:
        among = reading.among(Filter(tuple(namespaces)))
        probe = desk.encoder.encode("anything", Deadline(PATIENCE))
        found = set(reading.vectors.nearest(probe, among, 1_000_000).rows.tolist())
        connection: sqlite3.Connection = reading._connection
        upcoming = {
            row for (row,) in connection.execute("SELECT f.item_id FROM facts f WHERE f.valid_from > ?", (now,))
        }
        facts = {row for (row,) in connection.execute("SELECT item_id FROM facts")}
        searched = {
            row
            for (row,) in connection.execute(
                "SELECT DISTINCT p.item_id FROM fulltext_content f JOIN passages p ON p.id = f.id"
            )
        }
    assert found & facts - upcoming == expected - upcoming
    # What the clock has ended stays in the full text until something else happens to it.
    assert searched >= found
