"""Damage to the bytes of a store: named, repaired where the notes allow it, refused in words where they do not."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Desk, MakeDesk
from tests.integration.kept import add, arrival
from tests.integration.processes import RunAgora, Serve, environment
from tests.integration.workers import Start, working
from tests.unit.stores.damage import canonical, damage, kept
from tests.unit.stores.test_repair import broken, codes, repaired

from agora.app.repairing import repair
from agora.config.load import load_settings
from agora.errors import StoreUnavailable
from agora.stores.sqlite.examine import examine
from agora.stores.sqlite.repairing.transplant import FRESH, transplant
from agora.testing import FakeEncoder, ManualClock

PAGE = 8192
DERIVED = ("passages", "vectors", "fulltext_data", "fulltext_content", "fulltext_idx", "fulltext_docsize", "term_stats")
INDEXES = ("items_time", "items_public", "items_text", "vectors_passage", "passages_place", "journal_item")
NOTES = ("items", "texts", "savers", "journal", "journal_payload")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of which every table and index has several pages."""
    folder = tmp_path_factory.mktemp("template")
    desk = Desk(folder, clock=ManualClock())
    arrivals = [
        arrival(desk, number, f"word{number % 37} word{number % 101} of the number {number} " * 6)
        for number in range(700)
    ]
    add(desk, arrivals)
    desk.close()
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    """A copy of the store, of the test's own."""
    folder = tmp_path / "store"
    shutil.copytree(template, folder)
    return folder


def told(desk: Desk) -> dict[str, Any]:
    """Ids and scores of a few queries."""
    asked = ("word3 word50", "the number 77", "word36 of")
    return {
        f"{mode} {text}": [(hit.note.id, hit.score) for hit in desk.query(text, mode=mode).hits]
        for text in asked
        for mode in ("hybrid", "lexical", "semantic")
    }


def told_by(make_desk: MakeDesk, folder: Path) -> dict[str, Any]:
    """The same of a process that opens the store now and closes it."""
    desk = make_desk(folder)
    found = told(desk)
    desk.close()
    return found


@pytest.fixture(scope="module")
def known(template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any]:
    """What the store that is not damaged answers, and its rows."""
    folder = tmp_path_factory.mktemp("known") / "store"
    shutil.copytree(template, folder)
    with closing(Desk(folder, clock=ManualClock())) as desk:
        return told(desk), canonical(desk.path)


def pages_of(path: Path, name: str) -> list[int]:
    """Numbers of the leaf pages of a table or an index, or that of its root where SQLite does not tell them."""
    with closing(sqlite3.connect(path)) as connection:
        with suppress(sqlite3.OperationalError):
            leaves = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
            return [page for (page,) in connection.execute(leaves, (name,))]
        return [connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]]


def overwrite(path: Path, name: str, where: str = "head", content: bytes = b"\xff" * 64) -> None:
    """Bytes of a page in the middle of a table or index replaced: its head, one of its cells, or its very middle."""
    pages = pages_of(path, name)
    start = (pages[len(pages) // 2] - 1) * PAGE
    with path.open("r+b") as file:
        file.seek(start)
        page = file.read(PAGE)
        # A leaf's head: 8 bytes, the number of cells from the fourth on; then two bytes for the place of each.
        (cells,) = struct.unpack_from(">H", page, 3)
        (cell,) = struct.unpack_from(">H", page, 8 + cells // 2 * 2)
        file.seek(start + {"head": 0, "cell": cell, "middle": PAGE // 2}[where])
        file.write(content)


def test_vectors_that_can_be_read_are_kept_when_a_file_is_made_anew(store: Path) -> None:
    path = store / "agora.db"
    overwrite(path, "vectors")
    result = repaired(store)
    assert broken(result) == []
    (made,) = [each for each in result.done if each.endswith("notes") and each.startswith("made")]
    assert 0 < int(made.split()[1]) < 40


PAGES = [
    *((name, "head") for name in (*DERIVED, *INDEXES)),
    *((name, "cell") for name in (*DERIVED, "items_text")),
    *((name, "middle") for name in ("vectors", "fulltext_data", "vectors_passage")),
]


@pytest.mark.parametrize(("name", "where"), PAGES)
def test_a_page_of_what_is_derived_is_made_anew_with_every_answer(
    store: Path, make_desk: MakeDesk, known: tuple[dict[str, Any], Any], name: str, where: str
) -> None:
    path = store / "agora.db"
    before, rows = known
    overwrite(path, name, where)
    found = examine(path)
    # The middle of a page may be free.
    assert found or where == "middle"
    result = repaired(store)
    assert broken(result) == []
    assert (result.copy is None) == (not found)
    assert kept(rows, canonical(path))
    assert told_by(make_desk, store) == before
    assert not path.with_name(path.name + FRESH).exists()


@pytest.mark.parametrize("name", NOTES)
def test_a_page_of_the_notes_is_refused_with_the_way_out_and_nothing_is_changed(store: Path, name: str) -> None:
    path = store / "agora.db"
    overwrite(path, name)
    before = path.read_bytes()
    result = repaired(store)
    assert {"file_damaged", "unreadable"} & codes(result)
    (left,) = result.left
    assert left["code"] == "store_corrupt"
    assert repr(name) in left["message"]
    assert "restore-backup" in left["hint"]
    assert (result.done, result.copy) == ([], None)
    assert path.read_bytes() == before
    assert sorted(each.name for each in store.iterdir() if "repair" in each.name) == ["repair.lock"]


def test_an_index_that_disagrees_with_its_table_is_built_anew_in_place(store: Path, make_desk: MakeDesk) -> None:
    path = store / "agora.db"
    before = told_by(make_desk, store)
    pages = pages_of(path, "items_time")
    with path.open("r+b") as file:
        # The last byte of the page is the last of a row's number.
        file.seek(pages[0] * PAGE - 1)
        byte = file.read(1)
        file.seek(pages[0] * PAGE - 1)
        file.write(bytes([byte[0] ^ 1]))
    assert [problem.code for problem in examine(path)] == ["sql_index_damaged"]
    result = repaired(store)
    assert broken(result) == []
    assert "built the SQL indexes anew" in result.done
    assert not any(each.startswith("made the file anew") for each in result.done)
    assert told_by(make_desk, store) == before


def test_words_and_vectors_damaged_in_bytes_and_rows_at_once_are_made_anew(store: Path, make_desk: MakeDesk) -> None:
    path = store / "agora.db"
    before = told_by(make_desk, store)
    damage(path, "DELETE FROM vectors WHERE id % 3 = 0")
    damage(path, "UPDATE namespace_stats SET passages = 1")
    overwrite(path, "fulltext_data")
    overwrite(path, "vectors")
    overwrite(path, "fulltext_content", "cell")
    assert broken(repaired(store)) == []
    assert told_by(make_desk, store) == before
    with closing(sqlite3.connect(path)) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names from here
            for table in ("items", "passages", "vectors", "fulltext_content", "fulltext_docsize")
        ]
    assert counts[0] == 700
    assert len(set(counts[1:])) == 1


@pytest.mark.parametrize("how", ["cut", "missing", "byte", "state"])
def test_index_files_that_are_damaged_are_named_and_built_anew(store: Path, make_desk: MakeDesk, how: str) -> None:
    desk = make_desk(store)
    before = told(desk)
    desk.store.compact(force=True)
    desk.close()
    (segment,) = (store / "index").glob("*.seg")
    (state,) = (store / "index").glob("*.state")
    file = state if how == "state" else segment
    if how == "missing":
        segment.unlink()
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0x40
        file.write_bytes(content[: len(content) // 2] if how == "cut" else content)
    assert told_by(make_desk, store) == before
    result = repaired(store)
    assert "index_damaged" in {row.get("code") for row in result.before}
    assert broken(result) == []
    assert result.copy is None
    assert told_by(make_desk, store) == before


def test_a_store_cut_short_is_refused_by_every_command_in_words(store: Path, run_agora: RunAgora) -> None:
    path = store / "agora.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for command in (
        ["query", "word3", "--mode", "lexical"],
        ["save", "more"],
        ["status"],
        ["export", "-"],
        ["doctor"],
        ["doctor", "--repair"],
    ):
        done = run_agora(*command, "--home", str(store))
        assert done.returncode == 1, command
        assert "malformed" in done.stdout + done.stderr or "damaged" in done.stdout + done.stderr
        assert len(done.stderr) < 1_000


def test_a_file_that_is_no_database_is_refused_by_doctor_and_repair_alike(tmp_path: Path, run_agora: RunAgora) -> None:
    (tmp_path / "agora.db").write_bytes(b"garbage" * 4000)
    for command in (["doctor"], ["doctor", "--repair"]):
        done = run_agora(*command, "--home", str(tmp_path), "--json")
        assert done.returncode == 1
        rows = json.loads(done.stdout)["checks"]
        assert "store_corrupt" in {row.get("code") for row in rows}
    assert (tmp_path / "agora.db").read_bytes() == b"garbage" * 4000


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with working(tmp_path) as begin:
        yield begin


def test_a_running_process_finds_everything_again_and_saves_beside_a_repair(
    start: Start, make_desk: MakeDesk, tmp_path: Path
) -> None:
    (worker,) = start(1)
    ids = sorted(worker.ask("save_many", "runner", 60)["ids"])
    whole = {"semantic": ids, "lexical": ids}
    assert worker.ask("everything", "common words") == whole
    path = tmp_path / "agora.db"
    for statement in ("DELETE FROM fulltext", "DELETE FROM vectors WHERE id % 2"):
        damage(path, statement)
    assert worker.ask("everything", "common words") != whole
    # Its index was loaded when the vectors were gone.
    (late,) = start(1)
    assert len(late.ask("everything", "common words")["semantic"]) == 30
    worker.tell("save_many", "meanwhile", 40)
    assert broken(repaired(tmp_path)) == []
    ids = sorted([*ids, *worker.answer()["ids"]])
    for each in (worker, late):
        assert each.ask("everything", "common words") == {"semantic": ids, "lexical": ids}
    assert make_desk().problems() == []


def test_a_file_is_made_anew_under_a_process_that_saves(start: Start, make_desk: MakeDesk, tmp_path: Path) -> None:
    (worker,) = start(1)
    ids = worker.ask("save_many", "runner", 80)["ids"]
    worker.ask("close")
    overwrite(tmp_path / "agora.db", "term_stats", content=b"\xff" * 32)
    (worker,) = start(1)
    worker.tell("save_many", "meanwhile", 60)
    result = repaired(tmp_path)
    answer = worker.read()
    assert broken(result) == []
    assert any(each.startswith("made the file anew") for each in result.done)
    if "ok" in answer:
        ids += answer["ok"]["ids"]
    found = worker.ask("everything", "common words")
    assert set(found["semantic"]) >= set(ids)
    assert found["semantic"] == found["lexical"]
    assert make_desk().problems() == []


def test_what_somebody_writes_between_the_reading_and_the_swap_is_never_lost(store: Path) -> None:
    path = store / "agora.db"
    ended = threading.Event()
    written: list[str] = []

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
            while not ended.is_set():
                # As a program would that knows of no turns.
                with suppress(sqlite3.OperationalError):
                    other.execute("INSERT INTO meta VALUES (?, '')", (f"w{len(written)}",))
                    written.append(f"w{len(written)}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(4):
            with suppress(StoreUnavailable):
                transplant(path, 30, lambda _: None)
    finally:
        ended.set()
        thread.join(30)
    with closing(sqlite3.connect(path)) as connection:
        there = {key for (key,) in connection.execute("SELECT key FROM meta")}
    assert written
    assert set(written) <= there


MENDER = """
import sys
from pathlib import Path
from agora.app.repairing import repair
from agora.config.load import load_settings
from agora.testing import FakeEncoder
print("ready", flush=True)
sys.stdin.readline()
repair(load_settings({"home": sys.argv[1]}), choose=FakeEncoder)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fulltext_data", None])
def test_a_repair_that_is_killed_leaves_the_notes_and_can_be_done_again(
    store: Path, make_desk: MakeDesk, name: str | None
) -> None:
    path = store / "agora.db"
    before, rows = told_by(make_desk, store), canonical(path)
    for statement in ("DELETE FROM vectors WHERE id % 2", "DELETE FROM fulltext WHERE rowid % 2"):
        damage(path, statement)
    if name is not None:
        overwrite(path, name)
    for seconds in (0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3):
        with subprocess.Popen(
            [sys.executable, "-c", MENDER, str(store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(None),
        ) as mender:
            assert mender.stdin is not None
            assert mender.stdout is not None
            assert mender.stdout.readline().strip() == b"ready"
            timer = threading.Timer(seconds, mender.kill)
            timer.start()
            mender.stdin.write(b"go\n")
            mender.stdin.flush()
            mender.wait(60)
            timer.cancel()
        assert kept(rows, canonical(path))
    assert broken(repaired(store)) == []
    assert told_by(make_desk, store) == before
    assert not list(store.glob(f"agora.db{FRESH}*"))


@pytest.mark.slow
def test_twelve_thousand_rows_survive_a_repair_and_a_reindex(make_desk: MakeDesk, tmp_path: Path) -> None:
    folder = tmp_path / "large"
    encoder = FakeEncoder(dimension=8)
    desk = make_desk(folder, encoder=encoder)
    add(desk, [arrival(desk, number, f"word{number % 97} text{number % 113} n{number}") for number in range(12_000)])
    path = folder / "agora.db"
    before, rows = told(desk), canonical(path)
    for statement in ("DELETE FROM fulltext_data", "DELETE FROM vectors", "DELETE FROM term_stats"):
        damage(path, statement)
    result = repair(load_settings({"home": str(folder)}), choose=lambda: FakeEncoder(dimension=8))
    assert broken(result) == []
    assert kept(rows, canonical(path))
    assert told(desk) == before
    for table in ("items", "texts", "passages", "vectors", "fulltext_content", "fulltext_docsize"):
        assert desk.sql(f"SELECT count(*) FROM {table}") == [(12_000,)]  # noqa: S608 - names from here
    assert desk.store.reindex()["passages"] == 12_000
    assert desk.problems() == []
    assert told(desk) == before


@pytest.mark.slow
def test_a_server_goes_on_through_a_repair_by_the_command(serve: Serve, home: Path, run_agora: RunAgora) -> None:
    server = serve("--namespace", "acme/shop")
    texts = [
        f"the {thing} listens on port {8000 + number}" for number, thing in enumerate(("gateway", "queue", "cache"))
    ]
    ids = [server.call("agora_save", content=text)["id"] for text in texts]
    asked = {"query": "which port has the queue", "min_score": 0}
    before = server.call("agora_query", **asked)["results"]
    damage(home / "agora.db", "DELETE FROM vectors WHERE id = 2")
    damage(home / "agora.db", "DELETE FROM fulltext WHERE rowid = 2")
    # Beside the server that knows the vectors, one that never saw them.
    late = serve("--namespace", "acme/shop")
    # What was asked before is known from the cache, and not asked again.
    other = asked | {"query": "where does the queue listen"}
    assert ids[1] not in [hit["id"] for hit in late.call("agora_query", **other)["results"]]
    done = run_agora("doctor", "--repair")
    assert done.returncode == 0, done.stdout
    assert "passages without a vector: 2" in done.stdout
    assert "made 1 vectors of 1 notes" in done.stdout
    assert str(next(home.glob("agora.db.before-repair-*"))) in done.stdout
    assert done.stdout.index("before:") < done.stdout.index("done:") < done.stdout.index("now:")
    assert late.call("agora_query", **other)["results"][0]["id"] == ids[1]
    for each in (server, late):
        found = each.call("agora_query", **asked)["results"]
        assert [(hit["id"], hit["score"]) for hit in found] == [(hit["id"], hit["score"]) for hit in before]
        assert each.call("agora_status")["health"] == "ok"
    assert run_agora("doctor").returncode == 0
    said = json.loads(run_agora("doctor", "--repair", "--json").stdout)
    assert (said["health"], said["done"], said["left"], said["copy"]) == ("ok", [], [], None)


def test_what_a_killed_repair_left_goes_with_the_next_one_though_there_is_nothing_to_mend(store: Path) -> None:
    for ending in ("", "-journal"):
        (store / f"agora.db{FRESH}{ending}").write_bytes(b"notes")
    assert broken(repaired(store)) == []
    assert not list(store.glob(f"agora.db{FRESH}*"))
