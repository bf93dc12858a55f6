"""What `agora doctor` says of Chroma's folder, and what a repair makes of it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.chroma_shelf import Shelf, add, agrees, fill, forget
from tests.integration.processes import run_command

from agora.app.checking import Row, diagnose
from agora.app.repairing import repair
from agora.config.load import Loaded, load_settings
from agora.stores.chroma.checking import BEHIND, Finding, examine
from agora.stores.sqlite.examine import snapshot
from agora.stores.sqlite.rules import KINDS, SURROUNDINGS
from agora.testing import InMemoryIndex, ManualClock

chromadb = pytest.importorskip("chromadb")

MARK = "agora-index.json"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """A store with an index that was closed in order, some of it dead; tests work on copies."""
    shelf = Shelf(tmp_path_factory.mktemp("full"), ManualClock())
    store = shelf.open()
    first, *_ = fill(store, 40)
    agrees(store)
    forget(store, first)
    agrees(store)
    store.close()
    return shelf


@pytest.fixture
def shelf(full: Shelf, tmp_path: Path) -> Shelf:
    return full.copied(tmp_path / "home")


def found(shelf: Shelf, *, owned: bool = True) -> Finding:
    with snapshot(shelf.home / "agora.db") as source:
        return examine(shelf.home / "chroma", owned=owned, source=source)


def settings(shelf: Shelf, url: str = "chroma://") -> Loaded:
    return load_settings({"home": str(shelf.home), "index.url": url}, env={})


def row(loaded: Loaded) -> Row:
    """The doctor's row about the index."""
    (told,) = [each for each in diagnose(loaded) if each["name"] == "vector index"]
    return told


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def edited(shelf: Shelf, **changes: Any) -> None:
    """The mark, otherwise."""
    path = shelf.home / "chroma" / MARK
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


def not_closed(shelf: Shelf, **changes: Any) -> None:
    """As a process that was killed leaves it: the database is not among what has a checksum."""
    files = json.loads((shelf.home / "chroma" / MARK).read_text("utf-8"))["files"]
    del files["chroma.sqlite3"]
    edited(shelf, state="open", files=files, **changes)


def sql(shelf: Shelf, statement: str) -> None:
    """Change Chroma's database as it would be if Chroma had lost something."""
    not_closed(shelf)
    with closing(sqlite3.connect(shelf.home / "chroma/chroma.sqlite3", isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount


def no_database(shelf: Shelf) -> None:
    not_closed(shelf)
    (shelf.home / "chroma/chroma.sqlite3").write_bytes(b"no database" * 1000)


def graph(shelf: Shelf, name: str) -> Path:
    (path,) = (shelf.home / "chroma").glob(f"*/{name}")
    return path


def flip(path: Path) -> None:
    """Another byte, at the same time and of the same size."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


WRONG: dict[str, tuple[Callable[[Shelf], object], str, str]] = {
    "mark missing": (lambda s: (s.home / "chroma" / MARK).unlink(), "index_damaged", "no readable mark"),
    "mark of nothing": (lambda s: (s.home / "chroma" / MARK).write_text("[]"), "index_damaged", "no readable mark"),
    "database missing": (
        lambda s: (s.home / "chroma/chroma.sqlite3").unlink(),
        "index_damaged",
        "chroma.sqlite3 is missing",
    ),
    "a bit of the database": (
        lambda s: flip(s.home / "chroma/chroma.sqlite3"),
        "index_damaged",
        "sqlite3 is not as it was left",
    ),
    "a bit of the graph": (lambda s: flip(graph(s, "data_level0.bin")), "index_damaged", "not as it was left"),
    "ids missing": (lambda s: graph(s, "index_metadata.pickle").unlink(), "index_damaged", "pickle is missing"),
    "no database": (
        no_database,
        "index_damaged",
        "cannot be read",
    ),
    "a start of the machine": (
        lambda s: not_closed(s, boot="before"),
        "index_damaged",
        "the machine was started anew",
    ),
    "never got through": (lambda s: edited(s, state="opening"), "index_damaged", "did not get through"),
    "no collection": (lambda s: sql(s, "DELETE FROM collections"), "index_damaged", "missing in the database"),
    "another collection": (lambda s: edited(s, collection="c0"), "index_damaged", "another collection"),
    "another store": (lambda s: edited(s, store="s_01OTHER/1"), "index_stale", "another store"),
    "another past": (lambda s: edited(s, hash="00" * 32), "index_stale", "another past"),
    "an entry missing": (
        lambda s: sql(s, "DELETE FROM embeddings WHERE embedding_id = '7:3'"),
        "index_differs",
        "1 entries are missing or wrong, 0 are too many: 7:3",
    ),
    "an entry too many": (
        lambda s: sql(s, "UPDATE embeddings SET embedding_id = '700:3' WHERE embedding_id = '7:3'"),
        "index_differs",
        "1 entries are missing or wrong, 1 are too many: 7:3, 700:3",
    ),
    "a namespace wrong": (
        lambda s: sql(
            s,
            "UPDATE embedding_metadata SET int_value = 9 WHERE key = 'namespace'"
            " AND id = (SELECT id FROM embeddings WHERE embedding_id = '9:0')",
        ),
        "index_differs",
        "9:0",
    ),
}


def test_a_whole_folder_is_as_the_store_is_and_is_left_as_it_was(shelf: Shelf) -> None:
    before = content(shelf.home / "chroma")
    assert found(shelf).code is None
    assert "is as the store is" in found(shelf).message
    assert content(shelf.home / "chroma") == before
    not_closed(shelf)
    assert found(shelf).code is None


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_changes_nothing_and_is_mended(shelf: Shelf, name: str) -> None:
    harm, code, words = WRONG[name]
    harm(shelf)
    before = content(shelf.home / "chroma")
    told = found(shelf)
    assert told.code == code
    assert words in told.message
    assert KINDS[code].repair is not None
    assert content(shelf.home / "chroma") == before
    store = shelf.open()
    store.reindex()
    agrees(store)
    store.close()
    assert found(shelf).code is None


def test_the_doctor_tells_it_and_a_repair_builds_the_index_anew(tmp_path: Path) -> None:
    def run(*arguments: str, status: int = 0) -> Any:
        done = run_command([*arguments, "--json"], tmp_path / "home", tmp_path, env={"AGORA_INDEX_URL": "chroma://"})
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    def about(rows: list[Row]) -> Row:
        (told,) = [each for each in rows if each["name"] == "vector index"]
        return told

    public_id = run("save", "The ferry leaves at noon")["id"]
    assert "is as the store is" in about(run("doctor")["checks"])["message"]
    with (tmp_path / "home/chroma/chroma.sqlite3").open("ab") as file:
        file.write(b"x")
    told = about(run("doctor", status=1)["checks"])
    assert (told["ok"], told["code"]) == (False, "index_damaged")
    assert "doctor --repair" in told["hint"]
    done = run("doctor", "--repair")
    assert (done["health"], done["left"], done["copy"]) == ("ok", [], None)
    assert done["done"] == ["built the vector index anew: 1 passages"]
    assert about(done["checks"])["ok"] is True
    (hit,) = run("query", "when does the boat go", "--mode", "semantic")["results"]
    assert hit["id"] == public_id
    # Whoever went back to the default is not told of Chroma's folder.
    default = run_command(["doctor", "--json"], tmp_path / "home", tmp_path)
    assert about(json.loads(default.stdout)["checks"])["message"].startswith("Agora's own, compares with ")


def test_a_collection_that_is_not_there_yet_or_far_behind_is_a_warning(shelf: Shelf) -> None:
    store = shelf.open(InMemoryIndex())
    add(store, 5000)
    assert "is 1 changed note behind" in found(shelf).message
    for number in range(BEHIND):
        add(store, 6000 + number)
    store.close()
    told = row(settings(shelf))
    assert (told["ok"], told["warning"], told["code"]) == (True, True, "index_behind")
    assert "1,001 changed notes behind" in told["message"]
    assert told["hint"] == SURROUNDINGS["index_behind"].hint
    shutil.rmtree(shelf.home / "chroma")
    told = row(settings(shelf))
    assert (told["ok"], told["warning"], told["code"]) == (True, True, "index_missing")
    assert not (shelf.home / "chroma").exists()


def test_a_half_built_collection_is_a_warning_and_what_it_lacks_no_damage(shelf: Shelf) -> None:
    not_closed(shelf)
    edited(shelf, after=20)
    with closing(sqlite3.connect(shelf.home / "chroma/chroma.sqlite3", isolation_level=None)) as connection:
        connection.execute("DELETE FROM embeddings WHERE CAST(embedding_id AS INTEGER) > 21")
    assert found(shelf).code == "index_behind"
    assert "only half built" in found(shelf).message


def test_a_collection_that_waits_for_changes_is_not_compared_with_rows_that_changed_since(shelf: Shelf) -> None:
    store = shelf.open(InMemoryIndex())
    with closing(sqlite3.connect(shelf.home / "agora.db")) as connection:
        (public_id,) = connection.execute("SELECT public_id FROM items WHERE id = 9").fetchone()
    forget(store, public_id)
    add(store, 5000)
    store.close()
    assert found(shelf).code is None
    assert "is 2 changed notes behind" in found(shelf).message


def test_a_folder_that_somebody_uses_is_told_with_the_process_and_not_read(shelf: Shelf) -> None:
    store = shelf.open()
    agrees(store)
    # As at any moment in which Chroma writes.
    edited(shelf, state="opening")
    told = found(shelf)
    store.close()
    assert told.code is None
    assert "in use by process " in told.message


def test_a_foreign_database_is_named_and_left_alone(shelf: Shelf, tmp_path: Path) -> None:
    shutil.copytree(shelf.home / "chroma", tmp_path / "foreign")
    (tmp_path / "foreign" / MARK).unlink()
    before = content(tmp_path / "foreign")
    url = f"chroma:///{str(tmp_path / 'foreign').lstrip('/')}"
    told = row(settings(shelf, url))
    assert (told["ok"], told["code"]) == (False, "index_foreign")
    assert str(tmp_path / "foreign") in told["message"]
    done = repair(settings(shelf, url))
    assert "index_foreign" in {each.get("code") for each in done.after}
    assert content(tmp_path / "foreign") == before


def test_a_store_that_is_not_there_yet_has_nothing_to_compare(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, ManualClock())
    assert found(shelf).message.endswith("none yet")
    shelf.open(InMemoryIndex()).close()
    assert found(shelf).message.endswith("none yet")
    assert not (tmp_path / "chroma").exists()
