"""Stores of other releases: an older one is migrated whole or not at all, a newer one is refused in words."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.processes import RunAgora, Serve, environment
from tests.integration.workers import Start, working
from tests.unit.stores.damage import answers, canonical, fill

from agora.errors import StoreVersion
from agora.stores.sqlite.examine import examine, remarks
from agora.stores.sqlite.migrations import APPLICATION_ID, LATEST
from agora.text.analysis import VERSION

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

SCRIPTS = resources.files("agora.stores.sqlite.migrations")
FILES = sorted(entry.name for entry in SCRIPTS.iterdir() if entry.name.endswith(".sql"))
OLDER = range(1, LATEST)
MARKS = {"readers"}
"""Tables that this release has in another form, none of which holds what a note says."""


def older(source: Path, target: Path, version: int) -> None:
    """The rows of a store in a file as the release with that schema made it."""
    with closing(sqlite3.connect(target, isolation_level=None)) as old:
        old.execute("PRAGMA page_size = 8192")
        old.execute("PRAGMA auto_vacuum = INCREMENTAL")
        old.execute("PRAGMA journal_mode = WAL")
        for name in FILES[:version]:
            old.executescript(SCRIPTS.joinpath(name).read_text("utf-8"))
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute(f"PRAGMA user_version = {version}")
        old.execute("ATTACH ? AS new", (str(source),))
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'fulltext%' AND name <> 'meta'"
        for (name,) in old.execute(tables).fetchall():
            old.execute(f"DELETE FROM {name}")  # noqa: S608 - names from the schema
            if name in MARKS:
                continue
            old.execute(f"INSERT INTO {name} SELECT * FROM new.{name}")  # noqa: S608 - as above
        old.execute("INSERT INTO meta SELECT key, value FROM new.meta WHERE key = 'store'")
        words = "rowid, scope, title, body, words"
        old.execute(f"INSERT INTO fulltext ({words}) SELECT {words} FROM new.fulltext")  # noqa: S608 - names from here


@pytest.fixture(params=OLDER)
def old(request: pytest.FixtureRequest, make_desk: MakeDesk, tmp_path: Path) -> tuple[Desk, Path]:
    """A desk on a store of this release, and a folder with the same rows in a store of an older one."""
    desk = make_desk(tmp_path / "new")
    fill(desk)
    folder = tmp_path / "old"
    folder.mkdir()
    older(desk.path, folder / "agora.db", request.param)
    return desk, folder


def test_an_older_store_is_migrated_with_every_row_and_every_answer(
    old: tuple[Desk, Path], make_desk: MakeDesk
) -> None:
    desk, folder = old
    path = folder / "agora.db"
    rows = canonical(path)
    assert rows == canonical(desk.path)
    migrated = make_desk(folder)
    assert canonical(path) == rows
    assert answers(migrated) == answers(desk)
    assert migrated.problems() == []
    assert migrated.sql("PRAGMA user_version") == [(LATEST,)]
    assert migrated.save("and it goes on").id in migrated.found("goes on")


def test_doctor_checks_an_older_store_as_it_is_and_says_what_it_is(old: tuple[Desk, Path], run_agora: RunAgora) -> None:
    _, folder = old
    path = folder / "agora.db"
    before = path.read_bytes()
    assert [each.code for each in examine(path)] == []
    (said,) = remarks(path)
    assert "of an older release" in said
    rows = json.loads(run_agora("doctor", "--home", str(folder), "--json").stdout)["checks"]
    assert said in [row["message"] for row in rows if row.get("warning")]
    assert path.read_bytes() == before


def test_a_damaged_older_store_is_migrated_by_its_repair(old: tuple[Desk, Path], make_desk: MakeDesk) -> None:
    from tests.unit.stores.test_repair import broken, repaired  # noqa: PLC0415 - its fixtures are not wanted here

    desk, folder = old
    told = answers(desk)
    with closing(sqlite3.connect(folder / "agora.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM fulltext")
        connection.execute("DELETE FROM vectors")
    assert {"missing_fulltext", "passage_without_vector"} <= {each.code for each in examine(folder / "agora.db")}
    assert broken(repaired(folder)) == []
    assert answers(make_desk(folder)) == told


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with working(tmp_path) as begin:
        yield begin


def test_four_processes_that_open_an_older_store_at_once_migrate_it_once(
    old: tuple[Desk, Path], start: Start, make_desk: MakeDesk
) -> None:
    desk, folder = old
    workers = start(4, folder, opened=False)
    for worker in workers:
        worker.tell("open")
    for worker in workers:
        worker.answer()
    for number, worker in enumerate(workers):
        worker.ask("save", f"saved by {number} after the migration")
    migrated = make_desk(folder)
    assert migrated.problems() == []
    assert len(migrated.found("after the migration", mode="lexical")) == 4
    assert len(migrated.sql("SELECT id FROM items")) == 4 + len(desk.sql("SELECT id FROM items"))


MIGRATOR = """
import os, signal, sqlite3, sys
from agora.stores.sqlite.migrations import migrate
store = sqlite3.connect(sys.argv[1], isolation_level=None)
left = int(sys.argv[2])
def step(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
store.set_trace_callback(step)
store.execute("BEGIN IMMEDIATE")
migrate(store)
store.execute("COMMIT")
print("done", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal there")
def test_a_migration_that_is_killed_leaves_the_old_store_or_the_new_one(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "new")
    fill(desk)
    told = answers(desk)
    seen = set()
    for step in (*range(1, 30, 4), 45, 70, 100, 1000):
        folder = tmp_path / f"killed{step}"
        folder.mkdir()
        path = folder / "agora.db"
        older(desk.path, path, 1)
        rows = canonical(path)
        done = subprocess.run(
            [sys.executable, "-c", MIGRATOR, str(path), str(step)],
            env=environment(None),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode in {0, -signal.SIGKILL}, done.stderr
        with closing(sqlite3.connect(path)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            seen.add(version)
            assert version in {1, LATEST}
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            assert ("segments" in names) == (version == LATEST)
        assert canonical(path) == rows
        assert [each.code for each in examine(path)] == []
        again = make_desk(folder)
        assert answers(again) == told
        again.close()
    assert seen == {1, LATEST}


COMMANDS = [
    ["save", "x"],
    ["query", "x"],
    ["get", "n_01J00000000000000000000000"],
    ["crossref", "x"],
    ["forget", "n_01J00000000000000000000000", "--yes"],
    ["restore", "n_01J00000000000000000000000"],
    ["export", "-"],
    ["serve"],
    ["doctor"],
    ["doctor", "--repair"],
]


def test_a_newer_store_is_refused_by_every_command_in_words_and_left_alone(run_agora: RunAgora, home: Path) -> None:
    assert run_agora("save", "a note").returncode == 0
    path = home / "agora.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {LATEST + 1}")
    before = path.read_bytes()
    for command in COMMANDS:
        done = run_agora(*command)
        assert done.returncode == 1, (command, done.stderr)
        said = done.stdout + done.stderr
        assert f"the store has schema {LATEST + 1}, this release knows up to {LATEST}" in said, command
        assert "pip install --upgrade" in said
    status = run_agora("status", "--json")
    assert status.returncode == 1
    assert path.read_bytes() == before
    assert not list(home.glob("agora.db.before-repair-*"))


def test_a_server_of_the_release_before_stops_when_its_store_is_migrated(serve: Serve, home: Path) -> None:
    server = serve("--namespace", "acme/shop")
    server.call("agora_save", content="before")
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        connection.execute(f"PRAGMA user_version = {LATEST + 1}")
    for tool, arguments in (("agora_save", {"content": "after"}), ("agora_query", {"query": "before"})):
        error = server.refused(tool, **arguments)
        assert error["code"] == "store_version"
        assert "restart this process" in error["hint"]
    status = server.call("agora_status")
    assert status["health"] == "degraded"
    assert "store_version" in {each["code"] for each in status["problems"]}
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (1,)


def test_words_that_a_later_analysis_made_are_neither_searched_nor_mixed_with_ours(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.save("x")
    desk.sql("UPDATE meta SET value = ? WHERE key = 'analysis'", str(VERSION + 1))
    for call in (lambda: desk.found("x"), lambda: desk.save("y")):
        with pytest.raises(StoreVersion, match="newer release") as caught:
            call()
        assert "doctor --repair" in caught.value.hint
    assert desk.sql("SELECT count(*) FROM items") == [(1,)]


def test_words_that_an_earlier_analysis_made_are_made_anew_when_a_small_store_is_opened(make_desk: MakeDesk) -> None:
    desk = make_desk()
    fill(desk)
    told = answers(desk)
    desk.close()
    desk.sql("UPDATE fulltext SET body = 'of another analysis'")
    desk.sql("UPDATE meta SET value = '0' WHERE key = 'analysis'")
    again = make_desk()
    assert answers(again) == told
    assert again.problems() == []
    assert again.sql("SELECT value FROM meta WHERE key = 'analysis'") == [(str(VERSION),)]


def test_a_store_whose_words_wait_for_a_repair_says_so(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.save("x")
    running = make_desk()
    desk.sql("UPDATE meta SET value = '0' WHERE key = 'analysis'")
    (said,) = running.store.details()["conditions"]
    assert said["code"] == "fulltext_outdated"
    assert "doctor --repair" in said["hint"]
    assert [each.code for each in running.problems()] == ["fulltext_outdated"]


def test_opening_an_older_store_does_not_wait_for_somebody_who_writes_for_long(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.save("x")
    desk.sql("UPDATE meta SET value = '0' WHERE key = 'analysis'")
    with closing(sqlite3.connect(desk.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        opened = threading.Event()

        def work() -> None:
            make_desk()
            opened.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert opened.wait(5)
        thread.join(5)
        other.execute("ROLLBACK")
    assert os.path.exists(desk.path)  # noqa: PTH110 - the one thing asked
