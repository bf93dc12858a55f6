"""The index in step with the store: tail and files, snapshots, other processes' generations, deadlines."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.unit.stores.index.library import Library, by_hand, same, soon, units

from agora.errors import Cancelled, DeadlineExceeded, StoreCorrupt, StoreUnavailable
from agora.model.deadline import Deadline
from agora.ports.vector_index import Among
from agora.stores.sqlite.index import held as holding
from agora.stores.sqlite.index.view import IndexView
from agora.stores.sqlite.source import _LOAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import MakeDesk
    from tests.unit.stores.index.conftest import MakeLibrary

FORMS = [{}, {"memory_mb": 0}, {"exact_below": 0}, {"exact_below": 0, "memory_mb": 0, "kernel": "numpy"}]
"""As it is by default, with no file kept mapped, with bits for all but the smallest searches, and all at once."""


@pytest.mark.parametrize("form", FORMS)
def test_answers_are_right_before_and_after_every_step_of_a_life(
    make_library: MakeLibrary, form: dict[str, object]
) -> None:
    one, other = make_library(**form), make_library()
    vectors = units(400, seed=1)
    rows = [one.add(vectors[number * 2 : number * 2 + 1 + number % 2], "pq"[number % 2]) for number in range(60)]
    rows += [one.add(vectors[200 + number : 201 + number], lives=float(number + 1)) for number in range(20)]
    steps: tuple[Callable[[], object], ...] = (
        lambda: None,
        one.compact,
        lambda: one.forget(*rows[10:20]),
        lambda: [one.add(vectors[300 + number : 303 + number]) for number in range(10)],
        other.compact,
        lambda: one.restore(*rows[10:15]),
        lambda: one.clock.advance(seconds=10),
        lambda: other.forget(*rows[:15], *rows[20:40]),
        one.compact,
        lambda: one.restore(*rows[:12]),
        one.compact,
        lambda: one.clock.advance(seconds=60),
        one.compact,
    )
    for seed, step in enumerate(steps):
        step()
        for each in (one, other):
            each.is_right(seed)
            assert each.problem() is None
    make_library(**form).is_right(99)


def test_rows_that_were_compacted_away_come_back_when_restored(library: Library) -> None:
    rows = [library.add(units(2, seed=number)) for number in range(30)]
    library.forget(*rows[5:15])
    done = library.compact()
    assert done is not None
    assert (done["generation"], done["passages"], done["dropped"]) == (1, 40, 0)
    assert library.index.details()["dead"] == 0
    library.restore(*rows[5:15])
    library.is_right()
    assert library.index.details()["in_tail"] == 20
    library.compact()
    library.is_right()


def test_rows_that_a_file_still_has_are_marked_alive_and_not_read_again(library: Library) -> None:
    rows = [library.add(units(2, seed=number)) for number in range(30)]
    library.compact()
    library.forget(*rows[5:15])
    library.is_right()
    assert library.index.details()["dead"] == 20
    library.restore(*rows[5:15])
    library.is_right()
    details = library.index.details()
    assert (details["dead"], details["in_tail"]) == (0, 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_view_keeps_its_snapshot_over_compactions(make_library: MakeLibrary, form: dict[str, object]) -> None:
    library = make_library(**form)
    library.fill(units(300, seed=1), namespaces=2)
    library.compact()
    library.fill(units(50, seed=2), namespaces=2)
    other = make_library()
    with library.store.read(soon()) as reading:
        library.agrees(reading)
        for turn in range(3):
            library.mark(range(1 + turn * 40, 30 + turn * 40), forgotten=True)
            library.fill(units(30, seed=3 + turn), namespaces=3)
            assert other.compact() is not None
            library.agrees(reading, seed=turn)
        # By now not one of the files it began with is named, and where the system allows it they are gone.
    library.is_right()


def test_a_view_does_not_see_what_came_to_the_tail_after_it(library: Library) -> None:
    library.fill(units(10, seed=1))
    library.compact()
    library.fill(units(5, seed=2))
    asked = units(1, seed=3)[0]
    with library.store.read(soon()) as reading:
        library.fill(units(20, seed=4))
        with library.store.read(soon()) as newer:
            assert newer.vectors.size() == 35
        assert reading.vectors.size() == 15
        scores = reading.vectors.cosines(asked, np.arange(1, 36)).scores
        assert (scores[:15] > -1).all()
        assert (scores[15:] == -1).all()
        assert reading.vectors.nearest(asked, Among((1,), 0), 100).rows.max() == 15


def test_another_process_s_files_take_the_place_of_the_tail_at_the_next_query(make_library: MakeLibrary) -> None:
    one, other = make_library(), make_library()
    one.fill(units(200, seed=1))
    one.is_right()
    other.is_right()
    assert one.index.details()["generation"] == 0
    other.compact()
    one.is_right()
    details = one.index.details()
    assert (details["generation"], details["in_tail"], details["in_segments"]) == (1, 0, 200)
    assert details["bytes_mapped"] == sum(path.stat().st_size for path in one.segments())


@pytest.mark.parametrize("times", [1, 3])
def test_files_that_are_replaced_between_the_snapshot_and_their_opening_are_no_damage(
    make_library: MakeLibrary, times: int
) -> None:
    writer, reader = make_library(), make_library()
    writer.fill(units(300, seed=1))
    writer.compact()
    left = list(range(times))
    with reader.store.source(soon()) as source:
        begin = source.begin

        def overtaken() -> None:
            begin()
            if left:
                writer.mark([100 + left.pop()], forgotten=True)
                writer.compact()
                assert writer.left() == set()

        source.begin = overtaken  # type: ignore[method-assign]
        with reader.index.follow(source, soon()) as view:
            assert view.size() == 300 - times
    assert reader.problem() is None
    assert reader.index.details()["generation"] == 1 + times


def test_files_that_both_generations_have_are_opened_once(make_library: MakeLibrary) -> None:
    library, other = make_library(), make_library()
    library.fill(units(5000, seed=1))
    library.compact()
    library.is_right(limits=(5,))
    other.fill(units(2048, seed=2))
    before = library.index._held.parts[0].body
    assert other.compact(force=False) is not None
    library.is_right(limits=(5,))
    assert len(library.index._held.parts) == 2
    assert library.index._held.parts[0].body is before


def test_a_store_without_files_is_loaded_from_its_rows_and_has_no_problem(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(20, seed=1))
    library.is_right()
    assert library.problem() is None
    assert not library.files.exists()
    assert library.index.details() == {
        "kind": "sqlite",
        "generation": 0,
        "in_segments": 20,
        "in_tail": 0,
        "dead": 0,
        "kernel": library.index._kernel.name,
        "passed_over": list(library.index._kernel.passed_over),
        "bytes_mapped": 0,
        "problem": None,
    }


def test_versions_that_were_replaced_take_no_room_for_ever(library: Library) -> None:
    kept = library.add(units(1, seed=1))
    with library.store.read(soon()) as reading:
        old = reading.vectors
    for number in range(holding._WASTE + 60):
        row = library.add(units(1, seed=2 + number))
        with library.store.read(soon()) as reading:
            assert reading.vectors.size() == 2
        library.forget(row)
    last = library.add(units(1, seed=3))
    library.is_right()
    assert library.index.details()["in_tail"] < 100
    with library.store.read(soon()) as reading:
        found = reading.vectors.nearest(units(1, seed=1)[0], Among((1,), 0), 5)
    assert set(found.rows.tolist()) == {kept, last}
    # A view that was handed out before goes on over what it had.
    assert old.size() == 1


def test_damage_in_a_tail_is_told_until_it_is_mended_and_nothing_is_applied_twice(make_library: MakeLibrary) -> None:
    one, other = make_library(), make_library()
    one.add(units(2, seed=1))
    other.is_right()
    row = one.add(units(3, seed=2))
    vector = "SELECT max(v.id), v.vector FROM vectors v JOIN passages p ON p.id = v.passage_id WHERE p.item_id = ?"
    ((number, whole),) = one.sql(vector, row)
    one.sql("UPDATE vectors SET vector = x'00' WHERE id = ?", number)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match="length"), other.store.read(soon()):
            pass
    one.sql("UPDATE vectors SET vector = ? WHERE id = ?", whole, number)
    other.is_right()
    assert other.index.details()["in_tail"] == 3


def test_a_load_that_is_too_slow_gives_up_and_the_next_one_is_right(make_library: MakeLibrary) -> None:
    make_library().fill(units(9000, seed=1))
    library = make_library()
    with library.store.source(soon()) as source:
        late = Deadline(60)
        everything = source.everything

        def first_block_only(after: int = 0):  # type: ignore[no-untyped-def] # noqa: ANN202 - a generator over blocks
            for block in everything(after):
                yield block
                late.cancel()

        source.everything = first_block_only  # type: ignore[method-assign]
        with pytest.raises(Cancelled), library.index.follow(source, late):
            pass
    assert library.index.details()["in_segments"] == 0
    library.is_right(limits=(5,))


def test_a_load_goes_on_where_a_deadline_cut_it_short_whatever_changed_meanwhile(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(9000, seed=1))
    with library.store.source(soon()) as source:
        source.begin()
        loading = holding.Loading(source, most=1000)
        late = Deadline(60)
        everything = source.everything

        def cut_short(after: int = 0):  # type: ignore[no-untyped-def] # noqa: ANN202 - a generator over blocks
            for block in everything(after):
                yield block
                late.cancel()

        source.everything = cut_short  # type: ignore[method-assign]
        with pytest.raises(Cancelled):
            loading.read(source, None, late)
    # Of what was read and of what was not, some goes and some comes.
    library.mark([*range(1, 50), *range(8000, 8050)], forgotten=True)
    library.mark(range(10, 20), forgotten=False)
    library.fill(units(300, seed=2))
    with library.store.source(soon()) as source:
        source.begin()
        assert loading.goes_on(source)
        read: list[int] = []
        everything = source.everything

        def watched(after: int = 0):  # type: ignore[no-untyped-def] # noqa: ANN202 - a generator over blocks
            read.append(after)
            return everything(after)

        source.everything = watched  # type: ignore[method-assign]
        held = holding.applied(loading.read(source, None, soon()), source, soon())
        # Four pieces had been read, each without its last row, which might have gone on.
        assert read == [3996]
        view = IndexView(held.all(), library.index._kernel, 0)
        expected = by_hand(source.connection, library.dimension)
        assert view.size() == len(expected.rows)
        asked = units(1, seed=9)[0]
        same(view.cosines(asked, np.arange(1, 9400)), expected.cosines(asked, np.arange(1, 9400)))


def test_a_load_does_not_go_on_in_another_past_of_the_store(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(10, seed=1))
    with library.store.source(soon()) as source:
        source.begin()
        loading = holding.Loading(source)
    library.sql("UPDATE journal SET hash = x'00' WHERE sequence = 10")
    with library.store.source(soon()) as source:
        source.begin()
        assert not loading.goes_on(source)


def test_a_vector_of_the_wrong_length_is_damage_and_is_told_as_such(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.save("one")
    second = desk.save("two").id
    desk.sql("UPDATE vectors SET vector = zeroblob(8) WHERE id = 2")
    fresh = make_desk()
    for _ in range(2):
        with pytest.raises(StoreCorrupt) as caught:
            fresh.query("one")
        assert "doctor" in caught.value.hint
    desk.forget(second)
    assert len(fresh.found("one")) == 1


def test_who_waits_for_a_load_gives_up_at_its_own_deadline(make_library: MakeLibrary) -> None:
    make_library().fill(units(50, seed=1))
    library = make_library()
    began, finish = threading.Event(), threading.Event()

    def load() -> None:
        with library.store.source(soon()) as source:
            everything = source.everything

            def held_up(after: int = 0):  # type: ignore[no-untyped-def] # noqa: ANN202 - a generator over blocks
                began.set()
                assert finish.wait(60)
                yield from everything(after)

            source.everything = held_up  # type: ignore[method-assign]
            with library.index.follow(source, soon()) as view:
                assert view.size() == 50

    loader = threading.Thread(target=load)
    loader.start()
    try:
        assert began.wait(60)
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded), library.store.read(Deadline(0.1)):
            pass
        assert time.monotonic() - started < 5
    finally:
        finish.set()
        loader.join(60)
    library.is_right()


def test_closing_ends_a_load_that_is_under_way(make_library: MakeLibrary) -> None:
    make_library().fill(units(9000, seed=1))
    library = make_library()
    began, closing = threading.Event(), threading.Event()
    ended: list[BaseException] = []
    late = Deadline(600)

    def load() -> None:
        with library.store.source(soon()) as source:
            everything = source.everything

            def slow(after: int = 0):  # type: ignore[no-untyped-def] # noqa: ANN202 - a generator over blocks
                for block in everything(after):
                    began.set()
                    assert closing.wait(60)
                    yield block

            source.everything = slow  # type: ignore[method-assign]
            try:
                with library.index.follow(source, late):
                    pass
            except Cancelled as error:
                ended.append(error)

    loader = threading.Thread(target=load)
    loader.start()
    assert began.wait(60)
    closer = threading.Thread(target=library.index.close)
    closer.start()
    while late.remaining() > 0:
        closer.join(0.001)
    closing.set()
    closer.join(60)
    loader.join(60)
    assert len(ended) == 1


def test_a_closed_index_refuses(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(20, seed=1))
    library.compact()
    with library.store.read(soon()) as reading:
        library.index.close()
        # What was handed out goes on.
        library.agrees(reading)
    with pytest.raises(StoreUnavailable), library.store.read(soon()):
        pass


def test_namespaces_and_rows_keep_apart_in_files_and_tail(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(220, seed=1), namespaces=11)
    library.compact()
    library.fill(units(110, seed=2), namespaces=11)
    asked = units(1, seed=9)[0]
    with library.store.read(soon()) as reading:
        for spaces in ((3,), (1, 2), tuple(range(1, 10)), tuple(range(1, 12)), (99,)):
            found = reading.vectors.nearest(asked, Among(spaces, 0), 1000)
            assert set(((found.rows - 1) % 220 % 11 + 1).tolist()) == {each for each in spaces if each < 50}
    rows = np.array([1, 5, 221, 300, 999], dtype=np.int64)
    with library.store.read(soon()) as reading:
        found = reading.vectors.nearest(asked, Among(tuple(range(1, 12)), 0, rows), 1000)
    assert set(found.rows.tolist()) == {1, 5, 221, 300}


def test_a_journal_that_grows_under_a_reader_is_applied_in_another_thread(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(500, seed=1))
    library.compact()
    failed: list[BaseException] = []

    def change() -> None:
        try:
            for turn in range(20):
                library.fill(units(60, seed=turn))
                library.mark(range(turn * 10 + 1, turn * 10 + 8), forgotten=True)
                if turn % 5 == 4:
                    library.compact()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failed.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    while thread.is_alive():
        library.is_right(limits=(9,))
    thread.join()
    assert failed == []
    library.is_right()


def test_reading_everything_sorts_nothing_first(library: Library) -> None:
    library.fill(units(50, seed=1))
    for more in ("AND i.id > 3", "AND i.id IN (4, 5)"):
        plan = library.sql(f"EXPLAIN QUERY PLAN {_LOAD} {more} ORDER BY i.id, p.n", 1)
        # A million vectors would be in memory twice before the first came back.
        assert not [step for *_, step in plan if "TEMP B-TREE" in step]
