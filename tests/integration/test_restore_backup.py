"""`agora restore-backup`, beside processes that go on reading and writing."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.kept import MANY, SOME, copies, ids_in, in_store, whole
from tests.integration.processes import AGORA, RunAgora, Serve, Served, environment
from tests.integration.workers import Start

from agora.stores.sqlite import migrations
from agora.stores.sqlite.alone import alone
from agora.stores.sqlite.migrations import LATEST


def restored(run_agora: RunAgora, file: Path, *options: str) -> dict[str, Any]:
    done = run_agora("restore-backup", str(file), "--yes", "--json", *options)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.slow
def test_twelve_thousand_rows_come_back_and_what_was_there_is_kept(
    run_agora: RunAgora, start: Start, home: Path, large: Path, tmp_path: Path
) -> None:
    home.mkdir()
    shutil.copyfile(large, home / "agora.db")
    file = tmp_path / "b.db"
    assert run_agora("backup", str(file), "--quick").returncode == 0
    (worker,) = start(1, home)
    later = {worker.ask("save", f"later {number}") for number in range(5)}
    told = restored(run_agora, file)
    assert (told["notes"], told["sequence"]) == (MANY, MANY)
    assert worker.ask("count") == [MANY, MANY, MANY]
    (copy,) = copies(home)
    assert told["copy"] == str(copy)
    assert whole(copy) == {"notes": MANY + 5, "sequence": MANY + 5}
    assert later <= ids_in(copy)
    if os.name == "posix":
        assert copy.stat().st_mode & 0o777 == 0o600
    # And back again, from the copy.
    assert restored(run_agora, copy, "--no-copy")["copy"] is None
    assert worker.ask("count") == [MANY + 5] * 3
    assert copies(home) == [copy]
    assert in_store(home) == MANY + 5


def test_processes_that_read_and_write_all_the_time_see_the_old_then_the_new_and_lose_nothing_after(
    run_agora: RunAgora, start: Start, stored: Path, tmp_path: Path
) -> None:
    file, stop = tmp_path / "b.db", tmp_path / "stop"
    assert run_agora("backup", str(file), "--quick").returncode == 0
    first, second, watcher = start(3, stored)
    old = {first.ask("save", f"of the old past {number}") for number in range(20)}
    watcher.tell("counts_seen", str(stop))
    for place, worker in enumerate((first, second)):
        worker.tell("save_until", f"process{place}", str(stop))
    threading.Event().wait(0.5)
    began = time.time()
    told = restored(run_agora, file)
    ended = time.time()
    threading.Event().wait(0.7)
    stop.touch()
    saved = [each for worker in (first, second) for each in worker.answer()]
    seen = watcher.answer()
    kept = ids_in(Path(told["copy"]))
    rest = {public_id for public_id, _ in saved if public_id not in kept}
    live = watcher.ask("everything", "common words")
    assert old | {public_id for public_id, when in saved if when < began} <= kept
    # Whatever was acknowledged is in the copy or in the store: nothing fell between the two.
    after = {public_id for public_id, when in saved if when > ended}
    assert after
    assert after <= rest
    assert not (old | (kept - ids_in(file))) & set(live["semantic"])
    for worker in (first, second, watcher):
        found = worker.ask("everything", "common words")
        assert rest <= set(found["semantic"])
        assert rest <= set(found["lexical"])
        assert worker.ask("count") == [SOME + len(rest)] * 3
    # One step back, and in each snapshot the index, the rows and the journal agree.
    assert all(live == indexed == sequence for live, indexed, sequence in seen)
    sequences = [each[2] for each in seen]
    assert sum(later < earlier for earlier, later in itertools.pairwise(sequences)) == 1
    assert in_store(stored) == SOME + len(rest)


def test_what_a_program_without_tickets_writes_is_in_the_copy_or_in_the_store(
    run_agora: RunAgora, stored: Path, small: Path
) -> None:
    stop, written = threading.Event(), list[str]()

    def work() -> None:
        with closing(sqlite3.connect(stored / "agora.db", isolation_level=None, timeout=30)) as connection:
            while not stop.is_set():
                connection.execute("INSERT INTO meta VALUES (?, 'foreign')", (f"foreign {len(written)}",))
                written.append(f"foreign {len(written)}")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        told = restored(run_agora, small)
        reached = len(written)
        ends = time.monotonic() + 30
        while len(written) < reached + 5:
            assert time.monotonic() < ends
    finally:
        stop.set()
        thread.join(30)
    held = []
    for file in (Path(told["copy"]), stored / "agora.db"):
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            held += [row[0] for row in connection.execute("SELECT key FROM meta WHERE value = 'foreign'")]
    assert sorted(held) == sorted(written)
    assert reached > 5


class Asking:
    """A server that is asked all the time; each answer with the moment at which it was asked for."""

    def __init__(self, server: Served, question: str) -> None:
        self.server = server
        self.answers: list[tuple[float, list[str], int]] = []
        self._question = question
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            asked = time.time()
            found = self.server.call("agora_query", query=self._question, mode="hybrid", top_k=50)
            self.answers.append((asked, [hit["id"] for hit in found["results"]], found["sequence"]))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_no_server_answers_from_the_old_past_once_a_restore_is_done(
    serve: Serve, run_agora: RunAgora, tmp_path: Path
) -> None:
    file = tmp_path / "b.db"
    one, two, other = serve(), serve(), serve()
    kept = [one.call("agora_save", content=f"the gateway times out after {n} seconds")["id"] for n in range(3)]
    # The restored store names files of the index that are gone by then.
    assert run_agora("compact").returncode == 0
    assert run_agora("backup", str(file)).returncode == 0
    gone = [two.call("agora_save", content=f"the gateway needs {n} restarts")["id"] for n in range(4)]
    one.call("agora_forget", ids=kept[:1], dry_run=False)
    assert run_agora("compact").returncode == 0
    asking = [Asking(server, "what about the gateway") for server in (one, two)]
    restored(run_agora, file)
    ended = time.time()
    # The same sequences as those of the old past, with other notes behind them.
    new = [other.call("agora_save", content=f"the gateway has {n} retries")["id"] for n in range(5)]
    for each in asking:
        while not any(set(new) <= set(ids) for _, ids, _ in each.answers):
            assert each.server.process.poll() is None
            assert time.time() < ended + 30
        each.stop()
        late = [ids for asked, ids, _ in each.answers if asked > ended]
        assert late
        assert not any(set(ids) & set(gone) for ids in late)
        assert all(set(kept) <= set(ids) for ids in late)
        assert any(set(ids) & set(gone) for asked, ids, _ in each.answers if asked < ended)
    fresh = serve()
    told = [
        [(hit["id"], hit["score"]) for hit in server.call("agora_query", query=question, top_k=50)["results"]]
        for question in ("what about the gateway", "how many restarts")
        for server in (one, two, other, fresh)
    ]
    assert told[0] == told[1] == told[2] == told[3]
    assert told[4] == told[5] == told[6] == told[7]
    assert {public_id for public_id, _ in told[0]} == {*kept, *new}
    assert fresh.call("agora_status")["health"] == "ok"
    assert [each["id"] for each in two.call("agora_get", ids=[*gone, *new])["notes"]] == new
    assert run_agora("compact").returncode == 0
    assert run_agora("doctor").returncode == 0


@pytest.mark.slow
def test_a_restore_killed_at_any_moment_leaves_the_old_or_the_new_whole(
    start: Start, bulky: Path, tmp_path: Path
) -> None:
    file, stop = tmp_path / "b.db", tmp_path / "stop"
    shutil.copyfile(bulky / "agora.db", file)
    (worker, watcher) = start(2, bulky)
    for number in range(7):
        worker.ask("save", f"newer than the backup {number}")
    watcher.tell("counts_seen", str(stop))
    log, rng, outcomes = bulky / "agora.db-wal", random.Random(6), []  # noqa: S311 - moments of death
    for number in range(6):
        worker.ask("save", f"one more {number}")
        expected, size = worker.ask("count")[0], log.stat().st_size
        command = [*AGORA, "restore-backup", str(file), "--yes", "--no-copy"]
        with subprocess.Popen(command, env=environment(bulky), stdout=subprocess.DEVNULL) as victim:
            ends = time.monotonic() + 60
            # The log grows as soon as pages are on their way.
            while log.stat().st_size < size + 1_000_000 and victim.poll() is None:
                assert time.monotonic() < ends
            threading.Event().wait(rng.uniform(0, 0.25))
            victim.kill()
        found = worker.ask("count")
        assert found in ([expected] * 3, [SOME] * 3)
        outcomes.append(found[0] == SOME)
        assert worker.ask("save", f"after the death {number}").startswith("n_")
        if found[0] == SOME:
            for place in range(7):
                worker.ask("save", f"newer than the backup {number} {place}")
    stop.touch()
    assert all(live == indexed == sequence for live, indexed, sequence in watcher.answer())
    assert in_store(bulky) == worker.ask("count")[0]
    assert False in outcomes


def snapshot(home: Path) -> dict[str, bytes]:
    ours = ("agora.db", "agora.db-wal")
    return {each.name: each.read_bytes() for each in home.iterdir() if each.name.startswith(ours)}


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {LATEST + 1}")


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwritten(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8192 * 60 : 8192 * 62] = b"\xff" * 16384
    file.write_bytes(content)


def altered(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE texts SET content = 'altered' WHERE item_id = 5")


def foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE theirs (a)")


WRONG: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "of a later release": (newer, "store_version", "knows up to"),
    "cut in half": (truncated, "store_corrupt", "no backup that can be used"),
    "with pages overwritten": (overwritten, "store_corrupt", "damaged"),
    "with a text altered": (altered, "store_corrupt", "damaged"),
    "of another program": (foreign, "store_corrupt", "not a store of Agora"),
    "that is no database": (lambda file: file.write_text("x" * 5000), "store_corrupt", "not a database"),
    "that is empty": (lambda file: file.write_bytes(b""), "store_corrupt", "nothing in it"),
    "that is not there": (lambda file: file.unlink(), "invalid_input", "no such file"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_that_cannot_be_used_is_refused_with_nothing_changed(
    run_agora: RunAgora, stored: Path, tmp_path: Path, wrong: str
) -> None:
    file, (spoil, code, words) = tmp_path / "b.db", WRONG[wrong]
    shutil.copyfile(stored / "agora.db", file)
    spoil(file)
    before = snapshot(stored)
    done = run_agora("restore-backup", str(file), "--yes", "--json")
    assert done.returncode == (2 if code == "invalid_input" else 1)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == code
    assert words in error["message"]
    assert snapshot(stored) == before


def test_the_store_itself_is_no_backup_of_itself(run_agora: RunAgora, stored: Path) -> None:
    done = run_agora("restore-backup", str(stored / "agora.db"), "--yes")
    assert done.returncode == 2
    assert "is the store itself" in done.stderr
    assert in_store(stored) == SOME


def test_a_store_of_a_later_release_is_not_overwritten(run_agora: RunAgora, stored: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.db"
    shutil.copyfile(stored / "agora.db", file)
    newer(stored / "agora.db")
    before = snapshot(stored)
    done = run_agora("restore-backup", str(file), "--yes", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "store_version"
    assert snapshot(stored)["agora.db"] == before["agora.db"]
    assert copies(stored) == []


def made_older(store: Path, file: Path) -> None:
    """The notes of a store in a file as a release with schema 2 wrote it."""
    scripts = sorted(Path(migrations.__file__).parent.glob("000[12]_*.sql"))
    with closing(sqlite3.connect(file, isolation_level=None)) as older:
        older.execute("PRAGMA page_size = 8192")
        for script in scripts:
            older.executescript(script.read_text("utf-8"))
        older.execute("ATTACH ? AS newer", (str(store),))
        older.execute("BEGIN")
        # What this release has in another form stays empty: `readers` says who has read what, and no note.
        tables = (
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'fulltext_%'"
            " AND name IN (SELECT name FROM newer.sqlite_master)"
        )
        for (table,) in older.execute(tables).fetchall():
            columns = ", ".join(row[1] for row in older.execute(f"PRAGMA main.table_info({table})"))
            columns = f"rowid, {columns}" if table == "fulltext" else columns
            older.execute(f"DELETE FROM main.{table}")  # noqa: S608 - names from the schema
            select = f"SELECT {columns} FROM newer.{table}"  # noqa: S608 - as above
            older.execute(f"INSERT INTO main.{table} ({columns}) {select}")
        older.execute("DELETE FROM main.meta WHERE key = 'analysis'")
        older.execute(f"PRAGMA main.application_id = {migrations.APPLICATION_ID}")
        older.execute("PRAGMA main.user_version = 2")
        older.execute("COMMIT")


def test_a_backup_of_an_older_release_is_brought_up_to_date_on_its_way_and_left_as_it_is(
    run_agora: RunAgora, start: Start, stored: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.db"
    made_older(stored / "agora.db", file)
    before = file.read_bytes()
    (worker,) = start(1, stored)
    worker.ask("save", "newer than the backup")
    assert restored(run_agora, file)["schema"] == 2
    assert worker.ask("count") == [SOME] * 3
    assert worker.ask("save", "written by a process that was there all the time").startswith("n_")
    assert in_store(stored) == SOME + 1
    assert file.read_bytes() == before


def test_a_backup_with_pages_of_another_size_fits(run_agora: RunAgora, stored: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.db"
    with closing(sqlite3.connect(stored / "agora.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("VACUUM INTO ?", (str(file),))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("DELETE FROM reads")
    assert file.read_bytes()[16:18] == (4096).to_bytes(2, "big")
    restored(run_agora, file)
    assert in_store(stored) == SOME


def test_a_copy_made_by_hand_is_read_with_the_log_beside_it(
    run_agora: RunAgora, start: Start, home: Path, tmp_path: Path
) -> None:
    (worker,) = start(1, home)
    kept = worker.ask("save", "only in the log yet")
    for name in ("agora.db", "agora.db-wal"):
        shutil.copyfile(home / name, tmp_path / name)
    worker.ask("save", "after the copy")
    assert restored(run_agora, tmp_path / "agora.db")["notes"] == 1
    assert worker.ask("everything", "log")["lexical"] == [kept]


def test_a_backup_makes_a_store_where_there_is_none(run_agora: RunAgora, small: Path, home: Path) -> None:
    told = restored(run_agora, small)
    assert (told["copy"], told["notes"]) == (None, SOME)
    assert in_store(home) == SOME
    if os.name == "posix":
        assert home.stat().st_mode & 0o777 == 0o700
        assert (home / "agora.db").stat().st_mode & 0o777 == 0o600
    assert (home / "agora.db").read_bytes()[18:20] == b"\x02\x02"


def beheaded(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"garbage!" * 500)


@pytest.mark.parametrize("damage", [beheaded, truncated, overwritten])
@pytest.mark.parametrize("options", [(), ("--no-copy",)])
def test_a_damaged_store_is_replaced_and_kept_as_it_was(
    run_agora: RunAgora, stored: Path, small: Path, damage: Callable[[Path], None], options: tuple[str, ...]
) -> None:
    damage(stored / "agora.db")
    before = (stored / "agora.db").read_bytes()
    told = restored(run_agora, small, *options)
    assert in_store(stored) == SOME
    # SQLite counts changes on the first page.
    assert [copy.read_bytes()[8192:] for copy in copies(stored)] == ([] if options else [before[8192:]])
    assert (told["copy"] is None) == bool(options)
    assert run_agora("status", "--json").returncode in {0, 1}


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open cannot be replaced there")
def test_a_store_that_is_damaged_under_a_running_process_is_its_store_again_after_a_restore(
    run_agora: RunAgora, start: Start, stored: Path, small: Path
) -> None:
    (worker,) = start(1, stored)
    worker.ask("save", "in the log, which must never be played into the backup")
    beheaded(stored / "agora.db")
    truncated(stored / "agora.db")
    restored(run_agora, small)
    assert worker.ask("count") == [SOME] * 3
    assert worker.ask("save", "and on").startswith("n_")
    assert in_store(stored) == SOME + 1
    assert copies(stored)


def test_a_lock_that_lasts_is_an_error_and_changes_nothing(run_agora: RunAgora, stored: Path, small: Path) -> None:
    with closing(sqlite3.connect(stored / "agora.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        done = run_agora("restore-backup", str(small), "--yes", env={"AGORA_STORE_BUSY_TIMEOUT": "0.5"})
        assert time.monotonic() - began < 20
        other.execute("ROLLBACK")
    assert done.returncode == 1
    assert "locked by another process" in done.stderr
    assert copies(stored) == []
    assert in_store(stored) == SOME


def test_a_restore_keeps_out_of_the_way_of_a_reembed_and_a_repair(
    run_agora: RunAgora, stored: Path, small: Path
) -> None:
    before = snapshot(stored)
    for name in ("reembed.lock", "repair.lock"):
        with alone(stored / name, "something"):
            done = run_agora("restore-backup", str(small), "--yes", "--json")
        assert json.loads(done.stdout)["error"]["code"] == "conflict"
    assert snapshot(stored) == before


def test_nothing_is_restored_where_nobody_can_be_asked(run_agora: RunAgora, stored: Path, small: Path) -> None:
    before = snapshot(stored)
    done = run_agora("restore-backup", str(small))
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert snapshot(stored) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminals there")
@pytest.mark.parametrize("answer", ["n", "y"])
def test_at_a_terminal_both_are_shown_and_the_question_is_asked(
    run_agora: RunAgora, stored: Path, tmp_path: Path, answer: str
) -> None:
    import pty  # noqa: PLC0415 - not on Windows

    file = tmp_path / "b.db"
    assert run_agora("backup", str(file), "--quick").returncode == 0
    with closing(sqlite3.connect(stored / "agora.db")) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('newer', 'than the backup')")
    ours, theirs = pty.openpty()
    command = [*AGORA, "restore-backup", str(file)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(stored)) as process:
        os.close(theirs)
        shown = b""
        for part in terminal(ours):
            shown += part
            if b"[y/N]" in shown and answer:
                os.write(ours, answer.encode() + b"\n")
                answer, given = "", answer
        status = process.wait(30)
    os.close(ours)
    text = shown.decode()
    assert text.count("150 notes") >= 2
    assert "A copy of it is kept" in text
    assert status == (0 if given == "y" else 1)
    with closing(sqlite3.connect(stored / "agora.db")) as connection:
        left = connection.execute("SELECT count(*) FROM meta WHERE key = 'newer'").fetchone()[0]
    assert left == (0 if given == "y" else 1)
    assert len(copies(stored)) == (1 if given == "y" else 0)


def terminal(descriptor: int) -> Iterator[bytes]:
    """What a program writes to its terminal, until it ends."""
    while True:
        try:
            part = os.read(descriptor, 4096)
        except OSError:
            # Linux says so when the other end is closed.
            return
        if not part:
            return
        yield part
