"""Who read what: written behind the answers, bounded, and asked when something is saved."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agora
from agora.errors import AgoraError, StoreUnavailable
from agora.model.crossref import Read
from agora.model.deadline import Deadline
from agora.stores.sqlite import migrations, reads
from agora.stores.sqlite.migrations import APPLICATION_ID, LATEST
from agora.testing import FakeEncoder

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

SOURCE = Path(agora.__file__).parent
NOTE = "The checkout fails because the payment gateway closes idle connections after 30 seconds of silence."


def settled(desk: Desk) -> Desk:
    desk.store.settle_reads(Deadline(20))
    return desk


def logged(desk: Desk) -> list[tuple[object, ...]]:
    return settled(desk).sql(
        "SELECT r.session, r.agent, i.public_id, r.sequence FROM reads r JOIN items i ON i.id = r.item_id ORDER BY r.id"
    )


def echoes(desk: Desk, public_id: str) -> list[tuple[str, str | None]]:
    return [(saver.agent, saver.echo_of) for saver in desk.note(public_id).savers]


def test_a_query_and_a_get_log_what_they_returned_and_move_no_sequence(desk: Desk) -> None:
    one, other = desk.save("alpha one").id, desk.save("beta two").id
    before = desk.sql("SELECT * FROM namespace_seq"), desk.sql("SELECT count(*) FROM journal")
    assert desk.found("alpha", min_score=0.3) == [one]
    assert logged(desk) == [("s1", "ann", one, 2)]
    desk.get(other)
    assert logged(desk) == [("s1", "ann", one, 2), ("s1", "ann", other, 2)]
    assert (desk.sql("SELECT * FROM namespace_seq"), desk.sql("SELECT count(*) FROM journal")) == before
    assert desk.problems() == []


def test_a_read_that_happens_again_is_one_row_and_the_newest(desk: Desk) -> None:
    one, other = desk.save("alpha one").id, desk.save("beta two").id
    for public_id in (one, other, one):
        desk.get(public_id)
    assert [row[2] for row in logged(desk)] == [other, one]


def test_only_queries_move_the_mark_of_what_an_agent_has_seen(desk: Desk) -> None:
    one = desk.save("alpha").id
    desk.get(one)
    assert settled(desk).sql("SELECT * FROM read_marks") == []
    desk.found("nothing that is there", min_score=0.99)
    assert settled(desk).sql("SELECT agent, sequence FROM read_marks") == [("ann", 1)]


def test_what_was_read_before_a_backup_was_put_back_hides_nothing_that_comes_after(desk: Desk) -> None:
    one = desk.save("alpha").id
    ahead = Read("s1", "ann", (one,), ("p",), 60, desk.clock.now())
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as connection:
        reads.write(connection, [ahead])
    assert desk.sql("SELECT sequence FROM read_marks") == [(1,)]
    assert desk.sql("SELECT sequence FROM reads") == [(1,)]


def test_the_log_keeps_the_newest_rows(desk: Desk) -> None:
    one = desk.save("alpha").id
    at = desk.clock.now()
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for n in range(reads.MOST + 5):
            reads.write(connection, [Read(f"s{n}", "ann", (one,), (), 1, at)])
        connection.execute("COMMIT")
        rows = connection.execute("SELECT session FROM reads ORDER BY id").fetchall()
    assert len(rows) == reads.MOST
    assert (rows[0][0], rows[-1][0]) == ("s5", f"s{reads.MOST + 4}")


def test_who_makes_up_names_of_agents_keeps_so_many_marks_and_drops_no_other_one_s(desk: Desk) -> None:
    desk.save("alpha")
    desk.found("alpha")
    at = desk.clock.now()
    with closing(sqlite3.connect(settled(desk).path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for first in range(0, reads.MARKS + 600, 600):
            later = at + timedelta(seconds=first)
            names = (f"made up {number}" for number in range(first, first + 600))
            reads.write(connection, [Read("s", name, (), ("p",), 1, later, "mallory") for name in names])
        connection.execute("COMMIT")
        kept = connection.execute("SELECT token, agent FROM read_marks ORDER BY at").fetchall()
    assert len(kept) == reads.MARKS + 1
    assert kept[0] == ("", "ann")
    assert ("mallory", f"made up {reads.MARKS + 599 - (reads.MARKS + 599) % 600}") in kept
    assert ("mallory", "made up 0") not in kept


def test_a_read_is_dropped_and_counts_no_more_after_thirty_days(desk: Desk) -> None:
    one = desk.save(NOTE, "bob", session="b").id
    desk.get(one)
    assert len(logged(desk)) == 1
    assert echoes(desk, desk.save("Note: " + NOTE, "ann", session="s1").id) == [("ann", one)]
    desk.clock.advance(days=reads.DAYS, seconds=1)
    late = desk.save(NOTE + " Confirmed.", "ann", session="s1").id
    assert echoes(desk, late) == [("ann", None)]
    other = desk.save("another").id
    desk.get(other)
    assert [row[2] for row in logged(desk)] == [other]


def test_whoever_saves_what_its_session_read_is_an_echo(desk: Desk) -> None:
    source = desk.save(NOTE, "ann", session="a").id
    reader = desk.caller("bob", session="b")
    desk.notes.get([source], reader, Deadline(20))
    again = desk.save("Note: " + NOTE, "bob", session="b").id
    assert echoes(desk, again) == [("bob", source)]
    assert desk.save(NOTE, "bob", session="b").id == source
    assert echoes(desk, source) == [("ann", None), ("bob", source)]


@pytest.mark.parametrize(("agent", "session"), [("cat", "c"), ("bob", "other session"), ("cat", "b")])
def test_whoever_did_not_read_it_is_a_source_of_its_own(desk: Desk, agent: str, session: str) -> None:
    source = desk.save(NOTE, "ann", session="a").id
    desk.notes.get([source], desk.caller("bob", session="b"), Deadline(20))
    again = desk.save("Note: " + NOTE, agent, session=session).id
    assert echoes(desk, again) == [(agent, None)]


def test_a_correction_of_what_was_read_and_a_text_of_ones_own_are_no_echoes(desk: Desk) -> None:
    source = desk.save(NOTE, "ann", session="a").id
    desk.notes.get([source], desk.caller("bob", session="b"), Deadline(20))
    for text in (NOTE.replace("30", "60"), "Idle connections are closed by the gateway: set a keep-alive."):
        assert echoes(desk, desk.save(text, "bob", session="b").id) == [("bob", None)]


def test_an_agent_that_repeats_its_own_note_is_no_echo(desk: Desk) -> None:
    source = desk.save(NOTE, "bob", session="b").id
    desk.notes.get([source], desk.caller("bob", session="b"), Deadline(20))
    assert echoes(desk, desk.save("Note: " + NOTE, "bob", session="b").id) == [("bob", None)]


def test_what_an_answer_gave_counts_however_soon_the_save_comes(desk: Desk) -> None:
    for n in range(30):
        text = f"{NOTE} Case {'abcdefghijklmnopqrstuvwxyzABCD'[n]}x."
        source = desk.save(text, "ann", session="a").id
        desk.notes.get([source], desk.caller("bob", session="b"), Deadline(20))
        assert echoes(desk, desk.save("Note: " + text, "bob", session="b").id) == [("bob", source)]


def test_a_read_that_cannot_be_logged_is_told_and_fails_nothing(make_desk: MakeDesk) -> None:
    desk = make_desk(busy_timeout=0.1)
    one = desk.save("alpha").id
    failures: list[AgoraError] = []
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert [note.id for note in desk.get(one).notes] == [one]
        read = Read("s", "ann", (one,), (), 1, desk.clock.now())
        settled(desk)
        desk.store.log_read(read, failures.append)
        settled(desk)
        assert [error.code for error in failures] == ["store_unavailable"]
        other.execute("ROLLBACK")
    desk.store.log_read(read, failures.append)
    assert [row[0] for row in logged(desk)] == ["s"]
    desk.close()
    desk.store.log_read(read, failures.append)
    settled(desk)
    assert isinstance(failures[-1], StoreUnavailable)
    assert "closed" in failures[-1].message


def test_reads_that_come_while_one_is_waiting_are_written_with_it(desk: Desk) -> None:
    ids = [desk.save(f"note number {n}").id for n in range(3)]
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for public_id in ids:
            desk.get(public_id)
        other.execute("ROLLBACK")
    assert {row[2] for row in logged(desk)} == set(ids)


def test_reads_are_written_soon_by_themselves_and_at_the_latest_when_the_store_closes(desk: Desk) -> None:
    one, other = desk.save("alpha").id, desk.save("beta").id
    desk.get(one)
    ends = time.monotonic() + 20
    while not (found := desk.sql("SELECT 1 FROM reads")) and time.monotonic() < ends:
        threading.Event().wait(0.02)
    assert len(found) == 1
    desk.get(other)
    desk.close()
    assert desk.sql("SELECT count(*) FROM reads") == [(2,)]


def first_schema(path: Path) -> None:
    """A store as the first release made it: schema 1 alone."""
    script = (Path(migrations.__file__).parent / "0001_initial.sql").read_text("utf-8")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.executescript(script)
        connection.execute("PRAGMA user_version = 1")


def test_a_store_of_the_first_schema_is_migrated_when_it_is_opened(make_desk: MakeDesk, tmp_path: Path) -> None:
    first_schema(tmp_path / "agora.db")
    desk = make_desk()
    assert desk.sql("PRAGMA user_version") == [(LATEST,)]
    assert LATEST >= 2
    one = desk.save("alpha").id
    assert desk.found("alpha") == [one]
    assert len(logged(desk)) == 1
    assert desk.problems() == []


def test_marks_of_an_older_store_are_those_of_this_machine_s_user(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    desk.save("alpha", "bob", session="b")
    desk.found("alpha")
    assert settled(desk).sql("SELECT door, token, agent, sequence FROM read_marks") == [("local", "", "ann", 1)]
    desk.close()
    with closing(sqlite3.connect(tmp_path / "agora.db", isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE readers (agent TEXT NOT NULL, namespace_id INTEGER NOT NULL REFERENCES namespaces,"
            " sequence INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (agent, namespace_id)) STRICT, WITHOUT ROWID"
        )
        connection.execute("INSERT INTO readers SELECT agent, namespace_id, sequence, at FROM read_marks")
        for table in ("read_marks", "fact_slots", "facts", "conversations", "summaries"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 5")
    later = make_desk()
    assert later.sql("SELECT door, token, agent, sequence FROM read_marks") == [("local", "", "ann", 1)]
    assert later.problems() == []


OLD = """
import sys
from pathlib import Path
from agora.errors import AgoraError
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.memory.notes import Notes
from agora.stores.sqlite.migrations import LATEST
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog
assert LATEST == 1
clock, encoder = ManualClock(), FakeEncoder()
caller = Caller(Scope("p", "test"), "ann", "s", "test")
def attempt(work):
    try:
        print("ok", work(), flush=True)
    except AgoraError as error:
        print(error.code, error.hint, flush=True)
try:
    store = SqliteStore(Path(sys.argv[1]), encoder.fingerprint, clock)
except AgoraError as error:
    print(error.code, error.hint, flush=True)
    sys.exit()
notes = Notes(store, encoder, clock, SilentLog(), model_seconds=10)
attempt(lambda: store.details()["schema"])
for line in sys.stdin:
    attempt(lambda: notes.get(["n_x"], caller, Deadline(10)))
    attempt(lambda: store.restore(["n_x"], caller, clock.now(), Deadline(10)))
store.close()
"""


@pytest.fixture
def old_release(tmp_path: Path) -> Path:
    """The package as it is, without the second migration: what it knows ends with schema 1."""
    target = tmp_path / "old" / "agora"
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__", "*.onnx", "000[2-9]_*.sql"))
    return target.parent


def test_an_old_process_is_refused_politely_at_its_start_and_while_it_runs(
    make_desk: MakeDesk, tmp_path: Path, old_release: Path
) -> None:
    path = tmp_path / "agora.db"
    command = [sys.executable, "-c", OLD, str(path)]
    environment = os.environ | {"PYTHONPATH": str(old_release)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == "ok 1\n"
        make_desk(encoder=FakeEncoder()).save("alpha")
        running.stdin.write("go\n")
        running.stdin.close()
        told = running.stdout.readlines()
    assert len(told) == 2
    assert all(line.startswith("store_version ") and "restart" in line for line in told)
    late = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, input="")
    assert late.stdout.startswith("store_version ")
    assert "upgrade" in late.stdout
