"""A process dies while it follows, builds or compacts Chroma: whoever comes next answers as the default index does."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.crash.failpoints import Point
from tests.integration.chroma_process import Process, starting
from tests.integration.chroma_worker import answers

from agora.app.checking import diagnose, failures
from agora.config.load import load_settings
from agora.stores.chroma.checking import examine as examine_chroma
from agora.stores.sqlite.examine import examine, snapshot
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock

pytest.importorskip("chromadb")

Start = Callable[[str], Process]

CHROMA = "agora.stores.chroma"
CLIENT = f"{CHROMA}.client:Client"
KNOWLEDGE = f"{CHROMA}.client:Knowledge"
FOLLOWER = f"{CHROMA}.following:Follower"
FOLDER = f"{CHROMA}.folder"
MANY = 600
"""More than one batch."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as one:
        yield one


def problems(folder: Path) -> set[str]:
    """Codes of what the doctor finds in the store and in Chroma's folder."""
    store = folder / "agora.db"
    with snapshot(store) as source:
        found = examine_chroma(folder / "chroma", owned=True, source=source).code
    return {each.code for each in examine(store)} | ({found} if found else set())


def answers_as_the_default_does(process: Process, folder: Path) -> list[str]:
    """Ids of everything; the default index, beside it, gives the same answers."""
    found = process.ask("everything", "note")
    assert found["semantic"] == found["lexical"]
    encoder = FakeEncoder()
    plain = SqliteStore(folder / "agora.db", encoder.fingerprint, ManualClock())
    try:
        assert process.ask("answers") == json.loads(json.dumps(answers(plain, encoder)))
    finally:
        plain.close()
    ids: list[str] = found["semantic"]
    return ids


def survived(start: Start, folder: Path, live: set[str]) -> None:
    """The next process has everything, goes on, and leaves nothing for the doctor to find."""
    # Whatever lies there, the doctor can look at it: what it names, the next query builds anew.
    assert problems(folder) <= {"index_damaged", "index_behind"}
    heir = start("heir")
    assert set(answers_as_the_default_does(heir, folder)) == live
    added = heir.ask("save", "one note more, after the accident")
    heir.ask("forget", [min(live)])
    heir.ask("compact")
    assert set(answers_as_the_default_does(heir, folder)) == live - {min(live)} | {added}
    heir.ask("close")
    assert problems(folder) == set()
    assert not {path.name for path in (folder / "chroma").iterdir() if path.name.endswith(("-journal", ".new"))}


FOLLOWING = {
    "about to say that files may change": Point(function=f"{FOLLOWER}.changing"),
    "a new mark lies beside the old one": Point(function=f"{FOLDER}:_put"),
    "took out what is forgotten": Point(function=f"{KNOWLEDGE}.delete", when="after"),
    "put in some of what is new": Point(function=f"{KNOWLEDGE}.upsert", when="after"),
    "applied, and has not said so": Point(function=f"{CHROMA}.applying:apply", when="after"),
    "said so": Point(function=f"{FOLLOWER}.settled", when="after"),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_death_while_changes_are_followed_changes_no_answer(start: Start, tmp_path: Path, name: str) -> None:
    victim, writer = start("victim"), start("writer")
    writer.ask("save_quickly", "first", 150)
    live = set(answers_as_the_default_does(victim, tmp_path))
    gone = sorted(live)[:40]
    assert writer.ask("forget", gone) == 40
    writer.ask("save_quickly", "second", 150)
    after = set(writer.ask("query", "note", "lexical"))
    victim.dies(FOLLOWING[name], "everything", "note")
    assert not after & set(gone)
    with_new = {each for each in everything(tmp_path) if each not in gone}
    survived(start, tmp_path, with_new)


def everything(folder: Path) -> list[str]:
    """Ids of all live notes, by the rows."""
    plain = SqliteStore(folder / "agora.db", FakeEncoder().fingerprint, ManualClock())
    try:
        with plain._database.apart() as connection:
            found = connection.execute("SELECT public_id FROM items WHERE forgotten_at IS NULL").fetchall()
    finally:
        plain.close()
    return [public_id for (public_id,) in found]


BUILDING = {
    "everything deleted": Point(function=f"{FOLDER}:Folder.clear", when="after"),
    "one batch is in": Point(function=f"{KNOWLEDGE}.upsert", when="after"),
    "all is in": Point(function=f"{FOLLOWER}._agrees"),
}


@pytest.mark.parametrize("name", BUILDING)
def test_a_death_while_the_index_is_built_changes_no_answer(start: Start, tmp_path: Path, name: str) -> None:
    victim = start("victim")
    victim.ask("save_quickly", "first", MANY)
    victim.dies(BUILDING[name], "everything", "note")
    survived(start, tmp_path, set(everything(tmp_path)))


COMPACTING = {
    "a collection beside": Point(function=f"{CLIENT}.create_next", when="after"),
    "some of it is built": Point(function=f"{KNOWLEDGE}.upsert", when="after"),
    "it is built": Point(function=f"{CHROMA}.compacting:Compaction._catch_up", nth=2),
    "the old one is gone": Point(function="chromadb.api.client:Client.delete_collection", when="after"),
    "it took its place": Point(function=f"{CLIENT}.take_next", when="after"),
    "it was said": Point(function=f"{FOLLOWER}.reopen"),
    "the old graph is deleted": Point(function=f"{FOLDER}:Folder.clear", when="after"),
    "it is open again": Point(function=f"{CLIENT}.__init__", when="after"),
}


@pytest.mark.parametrize("name", COMPACTING)
def test_a_death_while_the_graph_is_built_anew_changes_no_answer(start: Start, tmp_path: Path, name: str) -> None:
    victim = start("victim")
    victim.ask("save_quickly", "first", MANY)
    ids = answers_as_the_default_does(victim, tmp_path)
    assert victim.ask("forget", ids[:80]) == 80
    victim.dies(COMPACTING[name], "compact")
    survived(start, tmp_path, set(ids[80:]))


def test_a_death_while_it_is_closed_costs_nothing(start: Start, tmp_path: Path) -> None:
    victim = start("victim")
    victim.ask("save_quickly", "first", 150)
    ids = answers_as_the_default_does(victim, tmp_path)
    victim.dies(Point(function=f"{FOLDER}:Folder.closed"), "close")
    assert problems(tmp_path) == set()
    survived(start, tmp_path, set(ids))


@pytest.mark.slow
def test_deaths_at_random_in_the_middle_of_everything_change_no_answer(start: Start, tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - repeatable
    live: set[str] = set()
    unsure: set[str] = set()
    for number in range(6):
        victim = start(f"victim {number}")
        victim.tell("churn_without_end", number)
        said = [victim.line() for _ in range(chance.randint(2, 40))]
        threading.Event().wait(chance.uniform(0, 0.3))
        victim.kill()
        assert victim.process.stdout is not None
        said += [line.decode().strip() for line in victim.process.stdout if line.endswith(b"\n")]
        for what, public_id in map(json.loads, said):
            live |= {public_id} if what == "saved" else set()
            unsure |= {public_id} if what == "forget" else set()
            if what == "forgot":
                live.discard(public_id)
                unsure.discard(public_id)
        assert problems(tmp_path) <= {"index_damaged", "index_behind"}
        heir = start(f"heir {number}")
        found = set(answers_as_the_default_does(heir, tmp_path))
        assert live - unsure <= found
        assert found == set(everything(tmp_path))
        live |= found
        heir.ask("close")
        assert problems(tmp_path) == set()
    loaded = load_settings({"home": str(tmp_path), "index.url": "chroma://"}, env={})
    # That the model is not the one that is set is so on purpose.
    assert [row for row in failures(diagnose(loaded)) if row["name"] != "model"] == []
