"""`agora backup`, beside processes that go on reading and writing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.kept import SOME, copies, ids_in, in_store, whole
from tests.integration.processes import AGORA, RunAgora, environment
from tests.integration.workers import Start

from agora.stores.sqlite.migrations import LATEST


def test_a_backup_is_one_file_for_its_owner_that_says_what_it_holds(
    run_agora: RunAgora, stored: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.db"
    done = run_agora("backup", str(file), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["seconds"] > 0
    assert told["last_change"].endswith("Z")
    assert {name: told[name] for name in ("file", "bytes", "notes", "versions", "sequence", "schema")} == {
        "file": str(file),
        "bytes": file.stat().st_size,
        "notes": SOME,
        "versions": SOME,
        "sequence": SOME,
        "schema": LATEST,
    }
    assert (told["checked"], told["problems"], told["model"]) == ("full", [], "fake")
    assert whole(file) == {"notes": SOME, "sequence": SOME}
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.db", "home", "project"]
    shown = run_agora("backup", str(file), "--quick", "--force")
    assert f"150 notes in 150 versions, sequence 150, {file.stat().st_size:,} bytes" in shown.stdout
    assert "the file is whole" in shown.stdout
    assert in_store(stored) == SOME


def test_a_backup_beside_busy_writers_is_one_moment_and_keeps_nobody_waiting(
    start: Start, run_agora: RunAgora, stored: Path, tmp_path: Path
) -> None:
    workers = start(2, stored)
    stop = tmp_path / "stop"
    for place, worker in enumerate(workers):
        worker.tell("save_until", f"process{place}", str(stop))
    files = [tmp_path / f"b{number}.db" for number in range(3)]
    moments = []
    for file in files:
        began = time.time()
        done = run_agora("backup", str(file), "--quick")
        assert done.returncode == 0, done.stderr
        moments.append((began, time.time()))
    stop.touch()
    saved = [each for worker in workers for each in worker.answer()]
    assert len(saved) > 50
    for file, (began, ended) in zip(files, moments, strict=True):
        whole(file)
        held = ids_in(file)
        assert {public_id for public_id, when in saved if when < began} <= held
        assert not held & {public_id for public_id, when in saved if when > ended}
    gaps = sorted(when for _, when in saved)
    assert max(later - earlier for earlier, later in itertools.pairwise(gaps)) < 2


def test_a_backup_replaces_nothing_that_it_should_not(run_agora: RunAgora, stored: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("precious")
    (tmp_path / "live.db").write_text("another store")
    (tmp_path / "live.db-wal").write_text("its log")
    (tmp_path / "link.db").symlink_to(stored / "agora.db")
    before = (stored / "agora.db").read_bytes()
    ours = "Agora itself uses"
    wrong = {
        "there.db": "is there already",
        "project": "is a folder",
        "nowhere/b.db": "folder does not exist",
        "live.db": "is a store in use",
        "link.db": ours,
        "home/agora.db": ours,
        "home/agora.db-wal": ours,
        "home/cache.db": ours,
        "home/agora.lock": ours,
    }
    for name, reason in wrong.items():
        done = run_agora("backup", str(tmp_path / name), *([] if name == "there.db" else ["--force"]))
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr
    assert (tmp_path / "there.db").read_text() == "precious"
    assert (tmp_path / "live.db").read_text() == "another store"
    assert (stored / "agora.db").read_bytes() == before
    assert run_agora("backup", str(tmp_path / "there.db"), "--force", "--quick").returncode == 0
    assert whole(tmp_path / "there.db")["notes"] == SOME


def test_without_a_store_there_is_nothing_to_back_up(run_agora: RunAgora, home: Path, tmp_path: Path) -> None:
    done = run_agora("backup", str(tmp_path / "b.db"), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "store_unavailable"
    assert not home.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["project"]


def test_what_is_wrong_with_a_store_is_told_and_backed_up_all_the_same(
    run_agora: RunAgora, stored: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(stored / "agora.db")) as connection, connection:
        connection.execute("UPDATE term_stats SET passages = 999 WHERE term = (SELECT min(term) FROM term_stats)")
    done = run_agora("backup", str(tmp_path / "b.db"), "--json")
    assert done.returncode == 1
    assert [each["code"] for each in json.loads(done.stdout)["problems"]] == ["term_statistics"]
    assert ids_in(tmp_path / "b.db") == ids_in(stored / "agora.db")
    # It is no backup to put back, though.
    before = (stored / "agora.db").read_bytes()
    refused = run_agora("restore-backup", str(tmp_path / "b.db"), "--yes")
    assert refused.returncode == 1
    assert "damaged" in refused.stderr
    assert (stored / "agora.db").read_bytes() == before


def limited(bytes_: int, *command: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command whose files may not grow beyond `bytes_`, as on a full disk."""
    import resource  # noqa: PLC0415 - not on Windows

    return subprocess.run(
        command,
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_)),
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits there")
def test_a_disk_that_is_full_leaves_no_backup_and_no_other_content(bulky: Path, tmp_path: Path) -> None:
    env, file = environment(bulky), tmp_path / "b.db"
    before = (bulky / "agora.db").read_bytes()
    done = limited(4_000_000, *AGORA, "backup", str(file), env=env, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "cannot be written" in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home"]
    shutil.copyfile(bulky / "agora.db", file)
    with closing(sqlite3.connect(bulky / "agora.db")) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('newer', 'than the backup')")
    before = (bulky / "agora.db").read_bytes()
    for options in ([], ["--no-copy"]):
        # The copy does not fit, then the log does not.
        done = limited(4_000_000, *AGORA, "restore-backup", str(file), "--yes", *options, env=env, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert (bulky / "agora.db").read_bytes() == before
        assert copies(bulky) == []
        assert not list(bulky.glob("*.part"))


@pytest.mark.slow
def test_a_backup_killed_at_any_moment_leaves_none_or_a_whole_one(bulky: Path, tmp_path: Path) -> None:
    outcomes = set()
    for number in range(6):
        file = tmp_path / f"b{number}.db"
        command = [*AGORA, "backup", str(file), "--quick"]
        with subprocess.Popen(command, env=environment(bulky), stdout=subprocess.DEVNULL) as victim:
            ends = time.monotonic() + 60
            while not (parts := list(tmp_path.glob(f"b{number}.db.*.part"))) and victim.poll() is None:
                assert time.monotonic() < ends
            # From the first page on to well beyond the last.
            threading.Event().wait(number * 0.06)
            victim.kill()
        outcomes.add(file.exists())
        if file.exists():
            assert whole(file)["notes"] == SOME
        for part in parts:
            part.unlink(missing_ok=True)
    assert False in outcomes
    assert in_store(bulky) == SOME


def test_what_killed_backups_left_goes_after_a_day(run_agora: RunAgora, stored: Path, tmp_path: Path) -> None:
    names = ("b.db.0123abcd.part", "b.db.01234567.part", "b.db.old.part", "other.db.0123abcd.part")
    for name in names:
        (tmp_path / name).write_text("half")
    long_ago = time.time() - 90_000
    for name in set(names) - {"b.db.01234567.part"}:
        os.utime(tmp_path / name, (long_ago, long_ago))
    assert run_agora("backup", str(tmp_path / "b.db"), "--quick").returncode == 0
    assert {each.name for each in tmp_path.iterdir() if each.is_file()} == {"b.db", *names[1:]}
    assert in_store(stored) == SOME
