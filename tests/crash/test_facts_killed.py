"""Processes that die while they remember: what was acknowledged is there, and nothing is there by half."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.crash.failpoints import Point
from tests.crash.victims import victims
from tests.fact_desk import FactDesk, facts_agree

from agora.testing import FakeEncoder

KILLS = int(os.environ.get("RANDOM_KILLS", "15"))

POINTS = {
    "the lock is taken": Point("BEGIN IMMEDIATE", when="after"),
    "before the item": Point("INSERT INTO items"),
    "before the statement": Point("INSERT INTO facts"),
    "after the statement": Point("INSERT INTO facts", when="after"),
    "before its source": Point("INSERT INTO savers"),
    "before its vector": Point("INSERT INTO vectors"),
    "before the journal": Point("INSERT INTO journal "),
    "before the old one is replaced": Point("UPDATE facts SET replaced_at"),
    "before queries lose the old one": Point("UPDATE items SET superseded_by"),
    "after queries lost the old one": Point("UPDATE items SET superseded_by", when="after"),
    "before the journal's second entry": Point("INSERT INTO journal ", nth=2),
    "before the commit": Point("COMMIT"),
    "after the commit": Point("COMMIT", when="after"),
}


def whole(folder: Path) -> None:
    """No statement without its item, text, source, vector and journal entry, and none of these without it."""
    with closing(sqlite3.connect(folder / "agora.db", isolation_level=None, timeout=20)) as connection:
        numbers = connection.execute(
            "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM texts), (SELECT count(*) FROM facts),"
            " (SELECT count(DISTINCT item_id) FROM savers), (SELECT count(DISTINCT item_id) FROM passages),"
            " (SELECT count(*) FROM journal WHERE operation = 'save')"
        ).fetchone()
        assert len(set(numbers)) == 1, numbers
        head, entries = connection.execute("SELECT max(sequence), count(*) FROM journal").fetchone()
        assert head == entries
        orphans = connection.execute(
            "SELECT count(*) FROM fact_slots l WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.slot_id = l.id)"
        ).fetchone()
        assert orphans == (0,)


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
def test_a_process_that_dies_while_it_remembers_leaves_the_old_value_or_the_new(tmp_path: Path, point: Point) -> None:
    with victims(tmp_path) as start:
        victim = start("ann")
        victim.ask("listen")
        victim.ask("open")
        kept = [victim.ask("remember", f"key {number}", number) for number in range(3)]
        old = victim.ask("remember", "port", 1)
        victim.dies(point, "remember", "port", 2)
    desk = FactDesk(tmp_path, encoder=FakeEncoder(16, piece=40))
    done = point == POINTS["after the commit"]
    assert desk.states("port") == ([(1, "superseded"), (2, "current")] if done else [(1, "current")])
    assert [desk.recall(key=f"key {number}").facts[0].fact.id for number in range(3)] == kept
    whole(tmp_path)
    facts_agree(desk)
    # Whoever tells it again is told what became of the first time.
    again = desk.remember("port", 2)
    assert again.status == ("corroborated" if done else "superseded")
    assert old in [each.fact.id for each in desk.recall(key="port", include_history=True).history]
    assert desk.values("port") == [2]
    facts_agree(desk)
    assert desk.problems() == []
    desk.store.close()


@pytest.mark.slow
@pytest.mark.timeout(120 + 10 * KILLS)
def test_processes_killed_at_random_while_they_remember_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(29)  # noqa: S311 - repeatable
    acknowledged: dict[str, tuple[str, Any]] = {}
    under_way: set[Any] = set()
    for number in range(KILLS):
        with victims(tmp_path) as start:
            victim = start(f"agent{number}")
            victim.ask("open")
            victim.tell("remember_without_end", number)
            said = [victim.next() for _ in range(chance.randint(1, 40))]
            # Somewhere within a change, which takes a few milliseconds.
            threading.Event().wait(chance.uniform(0, 0.02))
            said += victim.kill()
        acknowledged |= {each["id"]: (each["key"], each["done"]) for each in said if "done" in each}
        under_way |= {each["begin"] for each in said[-1:] if "begin" in each}
        desk = FactDesk(tmp_path, encoder=FakeEncoder(16, piece=40))
        found = desk.recall(include_history=True, limit=100)
        stored = {each.fact.id: (each.fact.key, each.fact.value) for each in (*found.facts, *found.history)}
        assert acknowledged.items() <= stored.items()
        assert {stored[public_id][1] for public_id in stored.keys() - acknowledged.keys()} <= under_way
        keys = [each.fact.key for each in found.facts]
        assert sorted(keys) == sorted({key for key, _ in stored.values()})
        whole(tmp_path)
        facts_agree(desk)
        assert desk.problems() == []
        desk.store.close()
