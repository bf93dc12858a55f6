from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import Future
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agora.errors import AgoraError, Cancelled, DeadlineExceeded, StoreUnavailable
from agora.memory.notes import Notes
from agora.model.deadline import Deadline
from agora.model.query import Filter, Query
from agora.model.selection import Selection
from agora.stores.sqlite.connection import _Job
from agora.testing import SilentLog

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk


def cancelled() -> Deadline:
    deadline = Deadline(60)
    deadline.cancel()
    return deadline


@pytest.mark.parametrize(("deadline", "error"), [(Deadline(0), DeadlineExceeded), (cancelled(), Cancelled)])
def test_nothing_is_written_or_read_once_the_deadline_is_over(
    desk: Desk, deadline: Deadline, error: type[AgoraError]
) -> None:
    kept = desk.save("kept").id
    gone = desk.save("gone").id
    desk.forget(gone)
    before = desk.sql("SELECT max(sequence) FROM journal")
    caller, now, store = desk.caller(), desk.clock.now(), desk.store
    with pytest.raises(error):
        desk.notes.save(desk.draft("new"), caller, deadline)
    with pytest.raises(error):
        store.save(desk.draft("kept"), caller, None, now, deadline)
    with pytest.raises(error):
        store.forget(Selection(("p",), (kept,)), caller, now, deadline, dry_run=False)
    with pytest.raises(error):
        store.restore((gone,), caller, now, deadline)
    with pytest.raises(error):
        desk.notes.query(Query("kept", Filter(("p",)), mode="lexical"), caller, deadline)
    with pytest.raises(error):
        desk.notes.get((kept,), caller, deadline)
    assert desk.sql("SELECT max(sequence) FROM journal") == before
    assert desk.found("kept", mode="lexical") == [kept]


def test_a_write_that_waits_for_a_foreign_lock_ends_with_its_deadline_and_writes_nothing(desk: Desk) -> None:
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            desk.notes.save(desk.draft("x"), desk.caller(), Deadline(0.4))
        foreign.execute("ROLLBACK")
    assert desk.sql("SELECT count(*) FROM journal") == [(0,)]
    assert desk.save("x").status == "created"


def test_a_lock_that_lasts_longer_than_the_store_waits_is_named(make_desk: MakeDesk) -> None:
    desk = make_desk(busy_timeout=0.2)
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked") as caught:
            desk.save("x")
        foreign.execute("ROLLBACK")
    assert caught.value.retryable
    assert "Nothing was written" in caught.value.hint


def test_a_write_that_is_taken_back_while_it_waits_for_a_lock_stops_at_once(desk: Desk) -> None:
    deadline = Deadline(60)
    outcome: list[BaseException] = []

    def save() -> None:
        try:
            desk.notes.save(desk.draft("x"), desk.caller(), deadline)
        except AgoraError as error:
            outcome.append(error)

    with closing(sqlite3.connect(desk.path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=save)
        thread.start()
        deadline.cancel()
        thread.join(5)
        assert not thread.is_alive()
        assert [type(error) for error in outcome] == [Cancelled]
        foreign.execute("ROLLBACK")
    assert desk.sql("SELECT count(*) FROM journal") == [(0,)]


def test_a_write_queued_behind_another_is_not_run_after_its_deadline(desk: Desk) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        entered.set()
        assert release.wait(20)
        connection.execute("INSERT INTO meta VALUES ('slow', 'done')")

    def quick(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('quick', 'done')")

    database = desk.store._database
    thread = threading.Thread(target=lambda: database.write(slow, Deadline(20)))
    thread.start()
    assert entered.wait(20)
    with pytest.raises(DeadlineExceeded):
        database.write(quick, Deadline(0.2))
    release.set()
    thread.join(20)
    assert desk.save("the writer lives").status == "created"
    assert desk.sql("SELECT key FROM meta WHERE value = 'done'") == [("slow",)]


def test_a_write_that_runs_when_its_deadline_passes_is_waited_for(desk: Desk) -> None:
    deadline = Deadline(0.3)

    def slow(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO meta VALUES ('slow', 'done')")
        over = threading.Event()
        while deadline.remaining():
            over.wait(0.01)
        return "outcome"

    assert desk.store._database.write(slow, deadline) == "outcome"
    assert desk.sql("SELECT value FROM meta WHERE key = 'slow'") == [("done",)]


def test_a_lock_that_comes_after_the_deadline_is_not_used(desk: Desk) -> None:
    database = desk.store._database
    late = _Job(
        lambda connection: connection.execute("INSERT INTO meta VALUES ('late', 'done')"), Deadline(0), Future()
    )
    with closing(database._opener.open(0.05)) as writer:
        with pytest.raises(DeadlineExceeded):
            database._transact(writer, late)
        assert not writer.in_transaction
    assert desk.sql("SELECT * FROM meta WHERE key = 'late'") == []


def test_a_job_that_times_out_itself_is_a_failure_and_not_awaited_for_ever(desk: Desk) -> None:
    def failing(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('half', 'done')")
        raise TimeoutError

    with pytest.raises(AgoraError):
        desk.store._database.write(failing, Deadline(20))
    assert desk.sql("SELECT * FROM meta WHERE key = 'half'") == []


def test_a_reader_that_waits_for_a_place_ends_with_its_deadline(make_desk: MakeDesk) -> None:
    desk = make_desk(readers=1)
    desk.save("x")
    with desk.store.read(Deadline(5)):
        with pytest.raises(DeadlineExceeded):
            desk.notes.get(("n_x",), desk.caller(), Deadline(0.1))
        deadline = Deadline(60)
        timer = threading.Timer(0.1, deadline.cancel)
        timer.start()
        with pytest.raises(Cancelled):
            desk.notes.get(("n_x",), desk.caller(), deadline)
        timer.join()
    assert desk.get("n_x").unknown == ("n_x",)


class Listening(SilentLog):
    """Ends the deadline at the moment the note is saved."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.warnings: list[str] = []

    def info(self, event: str, **values: object) -> None:
        del values
        if event == "note saved":
            self.deadline.cancel()

    def warning(self, event: str, **values: object) -> None:
        self.warnings.append(f"{event}: {values['code']}")


def test_a_save_that_is_written_is_never_reported_as_failed(desk: Desk) -> None:
    desk.save("something near it")
    deadline = Deadline(60)
    log = Listening(deadline)
    notes = Notes(desk.store, desk.encoder, desk.clock, log, model_seconds=20)
    saved = notes.save(desk.draft("something near it too"), desk.caller(), deadline)
    assert saved.status == "created"
    assert saved.related == ()
    assert log.warnings == ["no related notes were looked up: cancelled"]
    assert saved.id in desk.found("something")
