"""What a compaction writes, when it is worth it, what it leaves behind, and who may do it."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.unit.stores.index.library import Library, soon, units

from agora.errors import IndexUnavailable, StoreError
from agora.ports.vector_index import Among
from agora.stores.sqlite.index import choosing
from agora.stores.sqlite.index.lock import alone
from agora.stores.sqlite.index.segment import Segment

if TYPE_CHECKING:
    from tests.unit.stores.index.conftest import MakeLibrary


def copied(source: Path, target: Path) -> None:
    """Have one database hold what the other does, as a restored backup has it."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target, timeout=30)) as other:
        one.backup(other)


def sizes(library: Library) -> list[int]:
    return [size for (size,) in library.sql("SELECT passages FROM segments ORDER BY id")]


def before_writing(library: Library, act: Callable[[], None]) -> None:
    """Do `act` whenever a compaction is about to write to the store: what others may do then."""
    write = library.index._compaction._writing.write

    def first(job: Any, deadline: Any) -> Any:
        act()
        return write(job, deadline)

    object.__setattr__(library.index._compaction._writing, "write", first)


def test_an_empty_store_has_nothing_to_compact_and_gets_no_folder(library: Library) -> None:
    assert library.compact() is None
    assert library.compact(force=False) is None
    assert not library.files.exists()


def test_a_small_store_is_not_worth_a_file_unless_somebody_asks(library: Library) -> None:
    library.fill(units(choosing._FLUSHED - 1, seed=1))
    assert library.compact(force=False) is None
    assert not library.files.exists()
    done = library.compact()
    assert done is not None
    assert {**done, "seconds": 0} == {"generation": 1, "passages": choosing._FLUSHED - 1, "dropped": 0, "seconds": 0}
    assert 0 <= done["seconds"] < 60
    # Once more there is nothing to do.
    assert library.compact() is None
    assert library.sql("SELECT number, sequence FROM generations") == [(1, choosing._FLUSHED - 1)]


def test_a_tail_is_written_once_it_is_long_enough(library: Library) -> None:
    library.fill(units(100, seed=1))
    library.compact()
    library.fill(units(choosing._FLUSHED - 1, seed=2))
    assert library.compact(force=False) is None
    library.fill(units(1, seed=3))
    assert library.compact(force=False) is not None
    assert library.index.details()["in_tail"] == 0
    library.is_right()


def test_what_is_dead_is_dropped_once_it_is_a_large_enough_share(make_library: MakeLibrary) -> None:
    library = make_library(compact_dead=0.25)
    library.fill(units(4000, seed=1))
    library.compact()
    library.mark(range(1, 1000), forgotten=True)
    assert library.compact(force=False) is None
    library.mark([1000], forgotten=True)
    done = library.compact(force=False)
    assert done is not None
    assert (done["passages"], done["dropped"]) == (3000, 1000)
    assert sizes(library) == [3000]
    library.is_right()


def test_a_long_journal_alone_is_worth_a_new_state_and_no_new_segment(library: Library) -> None:
    library.fill(units(3000, seed=1))
    library.compact()
    (segment,) = library.segments()
    rows = list(range(1, 11))
    for forgotten in (True, False):
        library.mark(rows * (choosing._LAGGING // 20), forgotten=forgotten)
    done = library.compact(force=False)
    assert done is not None
    assert library.segments() == [segment]
    assert library.sql("SELECT number, sequence FROM generations") == [(2, 3000 + choosing._LAGGING)]
    assert library.left() == set()
    library.is_right()


def test_files_grow_geometrically_and_each_passage_is_written_a_few_times_only(make_library: MakeLibrary) -> None:
    library = make_library(exact_below=10**9)
    written, generations = 0, 30
    for number in range(generations):
        library.fill(units(2048, seed=number, dimension=40))
        before = {path.name for path in library.segments()} if library.files.exists() else set()
        assert library.compact(force=False) is not None
        written += sum(size for file, size in library.sql("SELECT file, passages FROM segments") if file not in before)
        assert len(sizes(library)) <= 6
    assert sum(sizes(library)) == 2048 * generations
    assert written < 2048 * generations * 5
    assert max(sizes(library)) <= 65_536
    library.is_right(limits=(10,))
    done = library.compact()
    assert done is not None
    assert sizes(library) == [61_440]
    library.is_right(limits=(10,))


def test_segments_are_cut_at_their_most_and_never_within_a_row(make_library: MakeLibrary) -> None:
    library = make_library()
    many = library.add(units(700, seed=1))
    library.fill(units(65_536 - 350, seed=2))
    library.compact()
    assert sizes(library) == [65_536, 350]
    other = library.add(units(700, seed=3))
    library.compact()
    assert sizes(library) == [65_536, 1050]
    with library.store.read(soon()) as reading:
        for row in (many, other):
            found = [np.array(part.body.spans(np.array([row]))).ravel() for part in library.index._held.parts]
            assert sorted(int(stop - start) for start, stop in found) == [0, 700]
        assert reading.vectors.size() == 65_536 - 350 + 1400


def test_everything_forgotten_leaves_a_generation_without_segments(library: Library) -> None:
    rows = library.fill(units(50, seed=1))
    library.compact()
    library.mark(rows.tolist(), forgotten=True)
    done = library.compact()
    assert done is not None
    assert (done["passages"], done["dropped"]) == (0, 50)
    assert library.segments() == []
    assert library.left() == set()
    library.is_right()
    library.mark(rows.tolist(), forgotten=False)
    library.is_right()


def test_a_query_goes_on_when_all_that_is_not_in_files_yet_is_forgotten_at_once(library: Library) -> None:
    library.fill(units(20, seed=1))
    library.compact()
    later = library.fill(units(3000, seed=2))
    library.is_right()
    library.mark(later.tolist(), forgotten=True)
    library.is_right()
    library.fill(units(5, seed=3))
    library.is_right()


def test_what_a_dead_process_left_behind_goes_and_what_is_not_ours_stays(library: Library) -> None:
    library.fill(units(50, seed=1))
    library.compact()
    for name in ("0" * 32 + ".seg", "1" * 32 + ".state"):
        (library.files / name).write_bytes(b"unfinished")
    (library.files / "README").write_text("mine")
    # Unasked, with nothing else to do.
    assert library.compact(force=False) is None
    assert library.left() == set()
    assert (library.files / "README").read_text() == "mine"


def test_one_process_compacts_at_a_time(make_library: MakeLibrary) -> None:
    library = make_library(patience=0.05)
    library.fill(units(3000, seed=1))
    library.compact()
    library.fill(units(3000, seed=2))
    with alone(library.files / "compact.lock", 0) as mine:
        assert mine
        assert library.compact(force=False) is None
        with pytest.raises(IndexUnavailable, match="another process"):
            library.compact()
        with alone(library.files / "compact.lock", 0) as second:
            assert not second
        library.is_right(limits=(7,))
    assert library.compact(force=False) is not None


def test_many_threads_that_compact_and_save_at_once_lose_nothing(make_library: MakeLibrary) -> None:
    libraries = [make_library() for _ in range(3)]
    failed: list[BaseException] = []

    def work(library: Library, seed: int) -> None:
        try:
            for turn in range(6):
                library.fill(units(150, seed=seed + turn))
                library.compact()
                library.is_right(limits=(9,))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(each, 100 * place)) for place, each in enumerate(libraries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    for library in (*libraries, make_library()):
        library.is_right()
        assert library.problem() is None
    libraries[0].compact()
    assert libraries[0].left() == set()


def test_a_generation_that_was_overtaken_is_thrown_away(library: Library) -> None:
    library.fill(units(100, seed=1))
    library.compact()
    library.fill(units(100, seed=2))
    overtaken = threading.Event()

    def overtake() -> None:
        # Once, somebody puts a backup back right before the files are registered.
        if not overtaken.is_set():
            overtaken.set()
            library.sql("UPDATE generations SET state = 'gone.state', number = 10")

    before_writing(library, overtake)
    done = library.compact()
    assert overtaken.is_set()
    # It was made anew, from what the other one left.
    assert done is not None
    assert done["generation"] == 11
    assert library.left() == set()
    library.is_right()
    assert library.problem() is None


def test_a_store_that_is_replaced_again_and_again_gets_no_generation_and_no_files(library: Library) -> None:
    library.fill(units(100, seed=1))
    library.compact()
    library.fill(units(100, seed=2))

    def overtake() -> None:
        library.sql("UPDATE generations SET state = state || '.gone'")

    before_writing(library, overtake)
    with pytest.raises(IndexUnavailable, match="replaced"):
        library.compact()
    assert {name for name in library.left() if name.endswith(".seg")} == set()
    library.is_right()


def test_files_of_a_past_that_was_replaced_while_they_were_written_are_not_registered(
    tmp_path: Path, make_library: MakeLibrary
) -> None:
    library = make_library()
    library.fill(units(100, seed=1))
    backup = tmp_path / "backup.db"
    copied(library.path, backup)
    library.fill(units(100, seed=2))
    replaced = threading.Event()

    def overtake() -> None:
        if not replaced.is_set():
            replaced.set()
            # The backup had no generation either, and soon as many changes: only their hashes differ.
            copied(backup, library.path)
            library.fill(units(100, seed=3))

    before_writing(library, overtake)
    done = library.compact()
    assert replaced.is_set()
    assert done is not None
    for each in (library, make_library()):
        each.is_right()
        assert each.problem() is None
    assert library.sql("SELECT g.hash = j.hash FROM generations g JOIN journal j USING (sequence)") == [(1,)]
    assert library.left() == set()


@pytest.mark.parametrize("fails_at", ["open", "fsync", "mkdir"])
def test_a_disk_that_refuses_leaves_the_old_generation_and_nothing_else(
    library: Library, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    library.fill(units(100, seed=1))
    if fails_at != "mkdir":
        library.compact()
    library.fill(units(100, seed=2))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        if fails_at == "open":
            opened = os.open
            patch.setattr(
                os,
                "open",
                lambda path, flags, *rest, **named: (
                    full() if flags & os.O_EXCL else opened(path, flags, *rest, **named)
                ),
            )
        else:
            patch.setattr(os, fails_at, full)
        with pytest.raises(IndexUnavailable, match="cannot be written") as caught:
            library.compact()
        assert caught.value.hint
        library.is_right()
    if fails_at != "mkdir":
        assert library.left() == set()
    assert library.compact() is not None
    library.is_right()


def test_a_store_that_refuses_the_registering_leaves_no_file(library: Library) -> None:
    library.fill(units(100, seed=1))
    library.compact()
    library.fill(units(100, seed=2))
    library.sql(
        "CREATE TRIGGER refuse BEFORE INSERT ON generations BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
    )
    with pytest.raises(StoreError, match="refused by the test"):
        library.compact()
    assert library.left() == set()
    library.sql("DROP TRIGGER refuse")
    library.is_right()
    library.compact()
    library.is_right()


def test_a_rebuild_starts_from_the_rows_and_tells_how_far_it_is(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(5000, seed=1))
    library.compact()
    library.mark(range(1, 101), forgotten=True)
    # Behind the back of the index: nothing but a rebuild can know.
    vector = units(1, seed=50)[0].tobytes()
    library.sql("UPDATE vectors SET vector = ? WHERE id = 300", vector)
    told: list[tuple[int, int]] = []
    done = library.store.reindex(lambda done, total: told.append((done, total)))
    assert (done["generation"], done["passages"]) == (2, 4900)
    assert told == [(4900, 4900)]
    assert library.left() == set()
    library.is_right()
    make_library().is_right()


def test_a_rebuild_of_an_empty_store_works(library: Library) -> None:
    assert library.store.reindex()["passages"] == 0
    library.is_right()
    library.fill(units(10, seed=1))
    library.is_right()


def test_an_encoder_that_the_store_has_moved_on_from_leaves_no_file(make_library: MakeLibrary) -> None:
    library = make_library()
    rows = library.fill(units(100, seed=1))
    library.compact()
    library.is_right()
    ((old,),) = library.sql("SELECT file FROM segments")
    # What a move to another encoder does, as far as the index sees it.
    library.sql("UPDATE encoders SET state = 'retired', digest = digest || '-old'")
    library.sql(
        "INSERT INTO encoders (digest, name, dimension, fingerprint, layout, state)"
        " SELECT substr(digest, 1, length(digest) - 4), name, dimension, fingerprint, layout, 'active' FROM encoders"
    )
    library.sql("UPDATE vectors SET encoder_id = 2")
    library.is_right()
    assert library.index.details()["generation"] == 0
    library.compact()
    library.is_right()
    assert library.sql("SELECT encoder_id, number FROM generations") == [(2, 1)]
    assert not (library.files / old).exists()
    assert library.left() == set()
    assert len(rows) == 100


def raw(library: Library) -> bytes:
    return b"".join(path.read_bytes() for path in library.files.iterdir())


@pytest.mark.parametrize("found_in", ["segment", "tail", "leftover", "damaged", "segment, and alive for all it knows"])
def test_after_a_purge_no_file_has_a_byte_of_the_rows(make_library: MakeLibrary, found_in: str) -> None:
    library = make_library()
    vectors = units(3000, seed=1)
    library.fill(vectors)
    if found_in != "tail":
        library.compact()
        assert vectors[41].tobytes() in raw(library)
    else:
        library.fill(units(10, seed=2))
    if found_in == "leftover":
        left = library.files / ("2" * 32 + ".seg")
        left.write_bytes(vectors[41].tobytes())
    if found_in == "damaged":
        path = library.segments()[0]
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.unlink()
        path.write_bytes(content)
    with library.store.read(soon()) as reading:
        before = reading.vectors.nearest(vectors[41], Among((1,), 0), 1).rows.tolist()
    assert before == [42]
    if "alive" not in found_in:
        library.mark([42, 43], forgotten=True)
    library.sql("DELETE FROM vectors WHERE passage_id IN (SELECT id FROM passages WHERE item_id IN (42, 43))")
    index = make_library() if found_in == "damaged" else library
    index.index.purge(index.store._maintaining, np.array([43, 42], dtype=np.int64))
    if library.files.exists():
        assert vectors[41].tobytes() not in raw(library)
        assert vectors[42].tobytes() not in raw(library)
        assert library.left() == set()
    for each in (library, make_library()):
        each.is_right(limits=(5,))
    assert found_in == "tail" or vectors[40].tobytes() in raw(library)


def test_a_purge_leaves_a_row_that_lives_whose_number_was_once_that_of_a_purged_one(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(100, seed=1))
    library.compact()
    library.sql("DELETE FROM vectors WHERE passage_id IN (SELECT id FROM passages WHERE item_id = 43)")
    library.index.purge(library.store._maintaining, np.array([42, 43], dtype=np.int64))
    for each in (library, make_library()):
        each.is_right()
        with each.store.read(soon()) as reading:
            assert reading.vectors.cosines(units(1, seed=5)[0], np.array([42])).scores[0] > -1


def test_a_purge_of_rows_that_no_file_has_changes_nothing(library: Library) -> None:
    library.fill(units(100, seed=1))
    library.index.purge(library.store._maintaining, np.array([5], dtype=np.int64))
    assert not library.files.exists()
    library.compact()
    kept = library.segments()
    library.fill(units(10, seed=2))
    library.index.purge(library.store._maintaining, np.array([105, 9999], dtype=np.int64))
    assert library.segments() == kept
    library.is_right()


def test_a_file_that_cannot_be_deleted_now_is_told_by_a_purge_and_left_by_a_compaction(
    make_library: MakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = make_library(patience=0.05)
    library.fill(units(100, seed=1))
    library.compact()
    (old,) = library.segments()
    library.mark([42], forgotten=True)
    unlink = Path.unlink

    def busy(path: Path, *, missing_ok: bool = False) -> None:
        # As Windows does while another process has it mapped.
        if path.name == old.name:
            raise PermissionError(errno.EACCES, "in use")
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", busy)
        with pytest.raises(IndexUnavailable, match="in use"):
            library.index.purge(library.store._maintaining, np.array([42], dtype=np.int64))
        library.is_right()
        library.fill(units(100, seed=2))
        library.compact()
        assert library.left() == {old.name}
    library.index.purge(library.store._maintaining, np.array([42], dtype=np.int64))
    assert library.left() == set()


def test_memory_is_given_back_when_the_newest_files_are_enough(make_library: MakeLibrary) -> None:
    library = make_library(memory_mb=1)
    library.fill(units(6000, seed=1))
    library.compact()
    library.fill(units(2500, seed=2))
    library.compact(force=False)
    library.is_right(limits=(10,))
    bodies = [part.body for part in library.index._held.parts]
    assert [isinstance(body, Segment) and body.resident for body in bodies] == [False, True]
    assert library.index.details()["bytes_mapped"] == library.segments()[-1].stat().st_size
