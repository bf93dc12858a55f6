"""Processes killed at moments that nobody chose, in the middle of everything a process does with a store.

What each acknowledged lies in a pipe outside the store. By default a few kills; `RANDOM_KILLS=100` is the long run.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.crash.acts import Acts
from tests.crash.station import Station, cache_agrees, index_agrees, tables_agree, whole
from tests.crash.victims import victims
from tests.integration.processes import Served, serving

from agora.app.checking import diagnose, failures
from agora.app.purging import make_purger
from agora.config.load import load_settings
from agora.model.deadline import Deadline
from agora.stores.sqlite.examine import examine
from agora.testing import SilentLog

KILLS = int(os.environ.get("RANDOM_KILLS", "15"))
SEASON = 30
"""Kills on one folder: every check looks at all that is in it."""

SOON = 5.0
WORDS = [
    f"{first}{last}" for first in ("bar", "den", "fil", "gar", "mon", "pel", "tur") for last in ("ak", "bo", "ic", "un")
]
SHARED = "the same text of everybody"


class Ledger:
    """What the processes said they did, and what each was doing when it died."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.text: dict[str, str] = {}
        self.unsure: set[str] = set()
        """Ids whose last change was under way."""
        self.in_flight: list[dict[str, Any]] = []
        self._heads: dict[str, str] = {}

    def add(self, said: list[dict[str, Any]]) -> None:
        """The whole story of one process; its last word may be that it began something."""
        for each in said:
            if "begin" in each:
                continue
            if each["done"] == "save":
                self.text[each["id"]] = each["text"]
                self.state[each["id"]] = "live"
                if each["key"] is not None:
                    if each["key"] in self._heads:
                        self.state[self._heads[each["key"]]] = "superseded"
                    self._heads[each["key"]] = each["id"]
            else:
                self.state[each["id"]] = {"forget": "forgotten", "restore": "live", "purge": "purged"}[each["done"]]
        last = said[-1] if said else {}
        if last.get("begin") == "save":
            self.in_flight.append(last)
            if last["key"] in self._heads:
                self.unsure.add(self._heads[last["key"]])
        elif "begin" in last:
            self.unsure.add(last["id"])

    def agrees(self, station: Station) -> None:
        """The store has every acknowledged row in its acknowledged state, and of the others at most one of each."""
        rows = station.sql(
            "SELECT public_id, t.content, CASE WHEN purged_at IS NOT NULL THEN 'purged'"
            " WHEN superseded_by IS NOT NULL THEN 'superseded' WHEN forgotten_at IS NOT NULL THEN 'forgotten'"
            " ELSE 'live' END FROM items i LEFT JOIN texts t ON t.item_id = i.id"
        )
        stored = {public_id: state for public_id, _, state in rows}
        lost = [public_id for public_id in self.state if public_id not in stored]
        assert not lost
        wrong = {
            public_id: (state, stored[public_id])
            for public_id, state in self.state.items()
            if public_id not in self.unsure and stored[public_id] != state
        }
        assert not wrong
        texts = [text for _, text, state in rows if state != "purged"]
        assert len(texts) == len(set(texts))

    def strangers(self, station: Station, running: tuple[str, ...] = ()) -> set[str]:
        """Texts in the store that nobody acknowledged, but for those of processes that are running."""
        known, found = set(self.text.values()), {row[0] for row in station.sql("SELECT content FROM texts")}
        return {text for text in found - known if not text.startswith(running)}


@pytest.mark.slow
@pytest.mark.timeout(120 + 20 * KILLS)
def test_processes_killed_at_random_lose_nothing_and_leave_nothing_to_mend(tmp_path: Path) -> None:
    chance = random.Random(17)  # noqa: S311 - repeatable
    for first in range(0, KILLS, SEASON):
        folder = tmp_path / str(first)
        folder.mkdir()
        ledger = Ledger()
        kills = min(SEASON, KILLS - first)
        for number in range(first, first + kills, 2):
            deaths(folder, ledger, chance, number)
        assert len(ledger.state) > 4 * kills
        in_order(folder, ledger)


def deaths(folder: Path, ledger: Ledger, chance: random.Random, number: int) -> None:
    """Two processes work side by side; one is killed, then the other."""
    with victims(folder) as start:
        one, other = start(f"{number}a"), start(f"{number}b")
        for victim in (one, other):
            victim.ask("open")
            victim.tell("work_without_end", number)
        for victim, running in ((one, (f"{number}b",)), (other, ())):
            said = [victim.next() for _ in range(chance.randint(1, 60))]
            # Somewhere within a change, which takes a few milliseconds.
            threading.Event().wait(chance.uniform(0, 0.02))
            ledger.add([*said, *victim.kill()])
            restarted(folder, ledger, running)


def restarted(folder: Path, ledger: Ledger, running: tuple[str, ...]) -> None:
    """A new process finds everything as it must be, and can save at once."""
    acts = Acts(folder, "somebody")
    began = time.monotonic()
    acts.open()
    acts.save("the next save of anybody")
    assert time.monotonic() - began < SOON
    ledger.text.setdefault("next", "the next save of anybody")
    station = acts.station
    tables_agree(station.path)
    index_agrees(station)
    ledger.agrees(station)
    assert ledger.strangers(station, running) <= {each["text"] for each in ledger.in_flight} | {SHARED}
    sure = [each for each, state in ledger.state.items() if state == "live" and each not in ledger.unsure]
    for public_id in random.Random(len(sure)).sample(sure, min(len(sure), 3)):  # noqa: S311 - repeatable
        found = acts.everything(ledger.text[public_id], ("p",), [])
        assert public_id in found["semantic"]
        assert public_id in found["lexical"]
    if not running:
        cache_agrees(station)
    acts.close()


def in_order(folder: Path, ledger: Ledger) -> None:
    """Saves that nobody heard of are done again and are there once; purges are finished; the doctor finds nothing."""
    station = Station(folder)
    for begun in ledger.in_flight:
        saved = station.save(begun["text"], key=begun["key"])
        assert station.ids_of(begun["text"]) == [saved.id]
    cache_file = folder / "cache.db"
    purger = make_purger(station.store.purging(), station.cache, cache_file, station.clock, SilentLog())
    purger.finish()
    # Whatever died in the middle of a purge, no byte is left to be looked for.
    assert purger.unfinished(Deadline(60)) is None
    whole(station)
    station.close()
    # That the model is not the one that is set is so on purpose.
    found = failures(diagnose(load_settings({"home": str(folder)})))
    assert [row for row in found if row["name"] != "model"] == []


@pytest.mark.slow
@pytest.mark.timeout(120 + 10 * KILLS)
def test_servers_killed_with_calls_under_way_lose_nothing_that_they_answered(tmp_path: Path) -> None:
    chance = random.Random(23)  # noqa: S311 - repeatable
    home = tmp_path / "home"
    answered: dict[str, str] = {}
    forgotten: set[str] = set()
    unsure: set[str] = set()
    posted = 0
    with serving(home, tmp_path, tmp_path) as start:
        for number in range(max(3, KILLS // 5)):
            server = start(env={"AGORA_INDEX_COMPACT_SECONDS": "1"})
            still_there(server, answered, forgotten | unsure)
            calls: dict[int, tuple[str, str]] = {}
            for place in range(chance.randint(5, 40)):
                # Texts that have little in common: near copies would be shown as one.
                text = f"{place} {number}: {' '.join(chance.sample(WORDS, 6))}"
                calls[server.post_call("agora_save", content=text)] = ("save", text)
                posted += 1
                if answered and chance.random() < 0.3:
                    chosen = chance.choice(sorted(answered))
                    if chosen not in forgotten | unsure:
                        unsure.add(chosen)
                        calls[server.post_call("agora_forget", ids=[chosen], dry_run=False)] = ("forget", chosen)
            server.answer(chance.choice(sorted(calls)))
            threading.Event().wait(chance.uniform(0, 0.05))
            server.process.kill()
            server.process.wait(20)
            server._reader.join(20)
            for line in server.lines:
                answer = json.loads(line)
                what, subject = calls.get(answer["id"], ("", ""))
                if what == "save":
                    answered[answer["result"]["structuredContent"]["id"]] = subject
                elif what == "forget":
                    unsure.discard(subject)
                    forgotten.add(subject)
            assert examine(home / "agora.db") == []
        assert failures(diagnose(load_settings({"home": str(home)}))) == []
        last = start()
        still_there(last, answered, forgotten | unsure)
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        rows = connection.execute("SELECT content FROM texts").fetchall()
        hidden = connection.execute("SELECT public_id FROM items WHERE forgotten_at IS NOT NULL").fetchall()
    assert len(rows) == len(set(rows)) <= posted
    assert forgotten <= {public_id for (public_id,) in hidden} <= forgotten | unsure


def still_there(server: Served, answered: dict[str, str], hidden: set[str]) -> None:
    """The server starts at once, has all that was answered, and finds it by meaning and by words."""
    assert time.monotonic() - server.started < 3 * SOON
    ids = sorted(set(answered) - hidden)
    for first in range(0, len(ids), 20):
        some = ids[first : first + 20]
        assert [note["id"] for note in server.call("agora_get", ids=some)["notes"]] == some
    for public_id in ids[:: len(ids) // 5 + 1]:
        for mode in ("semantic", "lexical"):
            found = server.call("agora_query", query=answered[public_id], mode=mode, top_k=20)["results"]
            assert public_id in [hit["id"] for hit in found], mode
