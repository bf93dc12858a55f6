"""Any run of calls, by two processes' worth of stores and across restarts and deaths, against a plain dictionary.

`MACHINE_RUNS=20` multiplies the number of examples.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, multiple, rule
from tests.crash.failpoints import Point
from tests.crash.station import Station
from tests.crash.victims import Victim
from tests.property.machine import NAMESPACES, Actor, Here, StoreMachine, agents, contents, keys, lives, namespaces

from agora.model.deadline import Deadline
from agora.stores.sqlite.index import view

RUNS = int(os.environ.get("MACHINE_RUNS", "1"))
POINTS = (
    Point("BEGIN IMMEDIATE", when="after"),
    Point("INSERT INTO savers", when="after"),
    Point("INSERT INTO vectors"),
    Point("INSERT INTO journal "),
    Point("COMMIT"),
    Point("COMMIT", when="after"),
)
"""Where a process may die with a save in flight; a save that only adds a saver does not come to all of them."""


class InMemoryMachine(StoreMachine):
    """Both actors with the index that is hard to get wrong: what fails here too is not the index."""

    settings: ClassVar[dict[str, Any]] = {"index": "memory"}


class LongMachine(StoreMachine):
    """A store with so many passages that bits choose who is compared in full, in both stages of every search."""

    settings: ClassVar[dict[str, Any]] = {"exact_below": 0}

    @initialize(target=StoreMachine.ids)
    def fill(self) -> Any:
        found = []
        for number in range(3):
            # Nine hundred passages each, in words that no query has.
            content = " ".join(f"filler{number}x{place} word" for place in range(1600))
            found.append(self.saved(content, NAMESPACES[number // 2], "dee", None, None, number % 2))
        with self.station(0).store.read(Deadline(20)) as reading:
            # Fewer are compared in full, all of them.
            assert reading.vectors.size() > view._WIDER
        self.upkeep(0, "compact by force")
        return multiple(*found)

    def station(self, which: int) -> Station:
        actor = self.actors[which]
        assert isinstance(actor, Here)
        return actor.acts.station


class MortalMachine(StoreMachine):
    """The second actor is another process, which is killed with saves in flight."""

    def opened(self, which: int) -> Actor:
        if which == 0:
            return super().opened(0)
        victim = Victim(self.folder, "actor1")
        victim.ask("listen")
        victim.ask("open", self.settings, self.known.now, self.encoder)
        return victim

    @rule(
        content=contents,
        namespace=namespaces,
        agent=agents,
        key=keys,
        lives=lives,
        point=st.sampled_from(POINTS),
    )
    def kill(self, content: str, namespace: str, agent: str, key: str | None, lives: int | None, point: Point) -> None:
        victim = self.actors[1]
        assert isinstance(victim, Victim)
        intent = self.known.intended(content, namespace, agent, key, lives)
        if intent.joins is not None and "vectors" in point.statement:
            return
        # The transaction that comes next is the save's, and not that of the reads before it.
        victim.ask("settle")
        victim.dies(point, "saved", content, namespace, agent, key, lives)
        with closing(sqlite3.connect(self.folder / "agora.db", isolation_level=None)) as connection:
            last, subject = connection.execute(
                "SELECT max(sequence), (SELECT subject FROM journal ORDER BY sequence DESC LIMIT 1) FROM journal"
            ).fetchone()
        if point == POINTS[-1]:
            # It is there wholly, and nobody was told.
            assert last > self.sequence
            self.sequence = last
            self.known.done(intent, subject)
        assert (last or 0) == self.sequence
        self.actors[1] = self.opened(1)

    def closed(self, which: int) -> None:
        actor = self.actors[which]
        if not isinstance(actor, Victim):
            super().closed(which)
        elif not actor.buried:
            try:
                actor.ask("close")
            finally:
                actor.bury()


def with_settings(machine: type[StoreMachine], examples: int, steps: int) -> Any:
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples * RUNS,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return case


TestStoreMachine = with_settings(StoreMachine, 15, 30)
TestInMemoryMachine = with_settings(InMemoryMachine, 5, 30)
TestLongMachine = with_settings(LongMachine, 1, 20)
TestMortalMachine = with_settings(MortalMachine, 3, 30)
