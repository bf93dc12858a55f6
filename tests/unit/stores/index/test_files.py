"""Files by themselves: what is written comes back, and what was touched is refused with its reason."""

from __future__ import annotations

import os
import stat
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.unit.stores.index.library import units

from agora.errors import DeadlineExceeded, StoreCorrupt
from agora.model.deadline import Deadline
from agora.model.instants import NEVER
from agora.ports.vector_index import Passages
from agora.stores.boot import boot_id
from agora.stores.sqlite.index.columns import signs
from agora.stores.sqlite.index.folder import Folder
from agora.stores.sqlite.index.generation import Generation, read_state, write_state
from agora.stores.sqlite.index.layout import PAGE, Layout, Named
from agora.stores.sqlite.index.marks import Marks
from agora.stores.sqlite.index.segment import Segment, check_sum, open_segment
from agora.stores.sqlite.index.tail import in_pieces, loaded
from agora.stores.sqlite.index.verified import Verified, mark
from agora.stores.sqlite.index.view import Part
from agora.stores.sqlite.index.writing import Order, write_segment

STORE = "s_01TEST/1"


def soon() -> Deadline:
    return Deadline(30)


def passages(count: int, dimension: int, *, each: int = 1, seed: int = 0) -> Passages:
    """`each` passages a row, in three namespaces; every fifth row expires."""
    rows = np.repeat(np.arange(count // each) * 3 + 5, each).astype(np.int64)
    numbers = np.tile(np.arange(each), count // each).astype(np.int64)
    expires = np.where(rows % 5 == 0, rows * 1000, NEVER)
    return Passages(rows, numbers, rows % 3 + 40, expires, units(len(rows), seed, dimension))


def written(folder: Folder, piece: Passages, store: str = STORE) -> Named:
    folder.make()
    part = Part(loaded(piece), Marks.of(len(piece.rows), None, piece.expires))
    order = Order.of([part], np.empty(0, dtype=np.int64))
    return write_segment(
        folder, store, piece.vectors.shape[1], order, lambda a, b: order.vectors([part], 40, a, b), soon()
    )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "index")


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize(("count", "each"), [(1, 1), (9000, 1), (600, 6)])
def test_what_is_written_is_what_is_read(folder: Folder, count: int, each: int, *, resident: bool) -> None:
    piece = passages(count, 40, each=each)
    named = written(folder, piece)
    assert named.passages == count
    assert named.size == (folder.path / named.file).stat().st_size
    assert check_sum(folder, named, set(), soon()) is not None
    segment = open_segment(folder, named, STORE, 40, resident=resident)
    columns = segment.columns()
    assert columns.rows.tolist() == piece.rows.tolist()
    assert columns.numbers.tolist() == piece.numbers.tolist()
    assert columns.namespaces[columns.places].tolist() == piece.namespaces.tolist()
    assert columns.matrix.tobytes() == piece.vectors.tobytes()
    assert columns.codes.tobytes() == signs(piece.vectors).tobytes()
    assert segment.single is (each == 1)
    assert not columns.matrix.flags.writeable


def test_files_and_folder_are_their_owners_alone(folder: Folder) -> None:
    named = written(folder, passages(10, 40))
    state, _ = write_state(folder, STORE, [(named.file, Marks.of(10, None, None))])
    if os.name == "posix":
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        for name in (named.file, state):
            assert stat.S_IMODE((folder.path / name).stat().st_mode) == 0o600


def test_a_snapshot_outlives_the_deletion_of_its_files(folder: Folder) -> None:
    piece = passages(500, 40)
    named = written(folder, piece)
    segments = [open_segment(folder, named, STORE, 40, resident=resident) for resident in (True, False)]
    if os.name == "posix":
        assert folder.remove({named.file}) == set()
        assert folder.names() == set()
    for segment in segments:
        assert segment.columns().matrix.tobytes() == piece.vectors.tobytes()


def sections(named: Named) -> dict[str, int]:
    """A byte in each part of the file."""
    rows, numbers, places, namespaces, codes, vectors, end = Layout(named.passages, 3, 40).offsets()
    assert end == named.size
    return {
        "magic": 3,
        "count": 17,
        "identity": 45,
        "header sum": 169,
        "rows": rows + 9,
        "numbers": numbers + 1,
        "places": places + 1,
        "namespaces": namespaces + 1,
        "codes": codes + 100,
        "vectors": vectors + 1000,
        "between sections": places - 1,
        "last byte": end - 1,
    }


@pytest.mark.parametrize("place", sections(Named("", 300, Layout(300, 3, 40).offsets()[-1], 0)))
def test_one_flipped_bit_anywhere_is_found(folder: Folder, place: str) -> None:
    named = written(folder, passages(300, 40))
    path = folder.path / named.file
    content = bytearray(path.read_bytes())
    content[sections(named)[place]] ^= 4
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="damaged"):
        check_sum(folder, named, set(), soon())
    if place in {"magic", "count", "identity", "header sum"}:
        with pytest.raises(StoreCorrupt):
            open_segment(folder, named, STORE, 40, resident=True)


@pytest.mark.parametrize("length", [0, 1, 7, 100, PAGE - 1, PAGE, PAGE + 1, 20_000, -4096, -1])
def test_a_file_cut_short_is_refused_by_its_length(folder: Folder, length: int) -> None:
    named = written(folder, passages(300, 40))
    path = folder.path / named.file
    path.write_bytes(path.read_bytes()[: length if length >= 0 else named.size + length])
    with pytest.raises(StoreCorrupt, match="bytes instead of"):
        open_segment(folder, named, STORE, 40, resident=True)


def test_a_longer_file_is_refused_too(folder: Folder) -> None:
    named = written(folder, passages(300, 40))
    with (folder.path / named.file).open("ab") as file:
        file.write(b"\0")
    with pytest.raises(StoreCorrupt, match="bytes instead of"):
        open_segment(folder, named, STORE, 40, resident=True)


def test_the_file_of_another_store_model_or_count_is_refused(folder: Folder) -> None:
    named = written(folder, passages(300, 40))
    for store, dimension, other in (
        ("s_01OTHER/1", 40, named),
        ("s_01TEST/2", 40, named),
        (STORE, 48, named),
        (STORE, 40, Named(named.file, 299, named.size, named.crc)),
    ):
        with pytest.raises(StoreCorrupt, match=r"belongs to another|not the one"):
            open_segment(folder, other, store, dimension, resident=True)


def test_a_header_of_a_later_format_is_named_as_such(folder: Folder) -> None:
    import struct  # noqa: PLC0415 - for this test alone
    import zlib  # noqa: PLC0415 - as above

    named = written(folder, passages(10, 40))
    path = folder.path / named.file
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 8, 2)
    struct.pack_into("<I", content, 168, zlib.crc32(content[:168]))
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="format 2, this release knows 1"):
        open_segment(folder, named, STORE, 40, resident=True)


def test_a_file_that_is_being_read_in_full_stops_at_the_deadline_and_leaves_no_descriptor(folder: Folder) -> None:
    named = written(folder, passages(300, 40))
    for _ in range(50):
        with pytest.raises(DeadlineExceeded):
            check_sum(folder, named, set(), Deadline(0))
    if Path("/proc/self/fd").exists():
        assert not [fd for fd in os.listdir("/proc/self/fd") if named.file in _target(fd)]  # noqa: PTH208 - names


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - as text
    except OSError:
        return ""


def test_no_descriptor_stays_open_once_a_segment_is_let_go(folder: Folder) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("no list of descriptors here")
    named = written(folder, passages(300, 40))
    segments: list[Segment] = [open_segment(folder, named, STORE, 40, resident=on) for on in (True, False)]
    held = [fd for fd in os.listdir("/proc/self/fd") if named.file in _target(fd)]  # noqa: PTH208 - names
    assert held
    segments.clear()
    assert not [fd for fd in os.listdir("/proc/self/fd") if named.file in _target(fd)]  # noqa: PTH208 - names


def states(count: int) -> Marks:
    alive = np.arange(count) % 7 != 0
    return Marks.of(count, alive, np.where(np.arange(count) % 4 == 0, np.arange(count) * 10, NEVER))


def test_marks_come_back_from_a_state_file(folder: Folder) -> None:
    folder.make()
    parts = [("a.seg", states(1001)), ("b.seg", Marks.of(8, None, None)), ("c.seg", states(1))]
    name, crc = write_state(folder, STORE, parts)
    named = tuple(Named(file, marks.count, 0, 0) for file, marks in parts)
    found = read_state(folder, Generation(1, 5, b"", name, crc, named), STORE)
    for (_, expected), marks in zip(parts, found, strict=True):
        assert (marks.count, marks.live, marks.soonest) == (expected.count, expected.live, expected.soonest)
        assert marks.living(50, None) is True or np.array_equal(marks.living(50, None), expected.living(50, None))
        assert marks.ends().tolist() == expected.ends().tolist()


def test_a_state_file_that_was_touched_or_is_of_something_else_is_refused(folder: Folder) -> None:
    folder.make()
    name, crc = write_state(folder, STORE, [("a.seg", states(100))])
    right = Generation(1, 5, b"", name, crc, (Named("a.seg", 100, 0, 0),))
    whole = (folder.path / name).read_bytes()
    for touched in (whole[:-1], whole[:3], b"", whole + b"\0", whole[:200] + b"\x55" + whole[201:]):
        (folder.path / name).write_bytes(touched)
        with pytest.raises(StoreCorrupt, match="damaged"):
            read_state(folder, right, STORE)
    (folder.path / name).write_bytes(whole)
    for other in (
        Generation(1, 5, b"", name, crc, (Named("b.seg", 100, 0, 0),)),
        Generation(1, 5, b"", name, crc, (Named("a.seg", 101, 0, 0),)),
        Generation(1, 5, b"", name, crc, (Named("a.seg", 100, 0, 0), Named("b.seg", 1, 0, 0))),
    ):
        with pytest.raises(StoreCorrupt, match=r"belongs to another|not of the segments"):
            read_state(folder, other, STORE)
    with pytest.raises(StoreCorrupt, match="belongs to another"):
        read_state(folder, right, "s_01OTHER/1")


def test_a_file_is_summed_up_once_in_a_run_of_the_machine_and_again_when_touched(folder: Folder) -> None:
    named = written(folder, passages(300, 40))
    verified = Verified(folder.path, "boot-1")
    first = check_sum(folder, named, verified.known(), soon())
    assert first is not None
    verified.remember([first])
    assert check_sum(folder, named, Verified(folder.path, "boot-1").known(), soon()) is None
    assert check_sum(folder, named, Verified(folder.path, "boot-2").known(), soon()) is not None
    assert check_sum(folder, named, Verified(folder.path, None).known(), soon()) is not None
    path = folder.path / named.file
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        check_sum(folder, named, verified.known(), soon())


def test_a_list_of_whole_files_cut_short_by_a_dying_process_costs_a_read_and_nothing_else(folder: Folder) -> None:
    named = written(folder, passages(300, 40))
    verified = Verified(folder.path, "boot-1")
    found = check_sum(folder, named, set(), soon())
    assert found is not None
    (folder.path / "verified-boot-1").write_text(found[:-3])
    assert check_sum(folder, named, verified.known(), soon()) == found
    verified.remember([found])
    assert check_sum(folder, named, verified.known(), soon()) is None


def test_the_list_of_whole_files_does_not_grow_for_ever(folder: Folder) -> None:
    named = written(folder, passages(300, 40))
    verified = Verified(folder.path, "boot-1")
    Verified(folder.path, "boot-0").remember(["old"])
    found = check_sum(folder, named, set(), soon())
    assert found is not None
    verified.remember([found, *(f"gone{number}.seg 1 2 3 4" for number in range(500))])
    verified.tidy({named.file})
    assert {each for each in verified.known() if each} == {found}
    assert [path.name for path in folder.path.glob("verified-*")] == ["verified-boot-1"]


def test_this_run_of_the_machine_has_one_name_or_none() -> None:
    assert boot_id() == boot_id()
    assert boot_id() is None or "/" not in str(boot_id())


def test_a_mark_tells_files_apart(folder: Folder) -> None:
    folder.make()
    name, file = folder.create(".seg")
    with file:
        first = mark(name, 7, file.fileno())
        file.write(b"x")
        file.flush()
        assert mark(name, 7, file.fileno()) != first


@pytest.mark.parametrize("most", [1, 3, 10, 64, 1000])
def test_pieces_hold_what_came_and_cut_no_row(most: int) -> None:
    whole = passages(600, 8, each=5)
    sizes = np.random.default_rng(1).integers(1, 40, 100)
    blocks, start = [], 0
    for size in sizes.tolist():
        cut = slice(start, start + size)
        blocks.append(
            Passages(whole.rows[cut], whole.numbers[cut], whole.namespaces[cut], whole.expires[cut], whole.vectors[cut])
        )
        start += size
    assert start >= 600
    pieces = list(in_pieces(iter(blocks), 8, most))
    for name in ("rows", "numbers", "namespaces", "expires", "vectors"):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert np.array_equal(joined, getattr(whole, name)), name
    for piece, following in pairwise(pieces):
        assert piece.rows[-1] != following.rows[0]
        assert len(piece.rows) <= max(most, 10)
