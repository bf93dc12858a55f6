from __future__ import annotations

import contextlib
import os
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.errors import InvalidInput
from agora.text.ids import is_id, new_id

NOW = 1_780_000_000_000


def test_an_id_is_its_prefix_and_the_ulid_of_its_time() -> None:
    # The example of the specification: 01ARYZ6S41 is 1469918176385.
    made = new_id("n", 1_469_918_176_385, lambda size: b"\xff" * size)
    assert made.startswith("n_01ARYZ6S41")
    assert len(made) == 28
    assert is_id(made, "n")


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1))
def test_ids_sort_by_time(first: int, second: int) -> None:
    earlier, later = sorted((first, second))
    if earlier < later:
        assert new_id("n", earlier) < new_id("n", later)


def test_ids_of_one_millisecond_sort_as_they_were_made_even_from_the_highest_random_number() -> None:
    made = [new_id("n", NOW, lambda size: b"\xff" * size) for _ in range(1000)]
    assert made == sorted(set(made))
    assert {one[:12] for one in made} == {new_id("n", NOW)[:12]}


def test_ids_of_many_threads_are_all_different_and_each_threads_are_in_order() -> None:
    made: list[list[str]] = []

    def run() -> None:
        made.append([new_id("n", NOW + 1) for _ in range(2000)])

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all(each == sorted(each) for each in made)
    assert len({one for each in made for one in each}) == 16_000


def test_two_threads_at_a_new_millisecond_do_not_both_begin_it() -> None:
    both = threading.Barrier(2)

    def same_for_both(size: int) -> bytes:
        # Only without the lock do two threads get here together.
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)
        return b"\x01" * size

    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(new_id("n", NOW + 3, same_for_both))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(made)) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_continue_the_ids_of_its_parent() -> None:
    new_id("n", NOW + 2)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, new_id("n", NOW + 2).encode())
        os._exit(0)
    mine = new_id("n", NOW + 2)
    theirs = os.read(reader, 100).decode()
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert is_id(theirs, "n")
    assert theirs != mine


@pytest.mark.parametrize(
    "text",
    [
        *("", "n_", "n", "01ARYZ6S410000000000000000", "m_01ARYZ6S410000000000000000"),
        *("n_01aryz6s410000000000000000", "n_81ARYZ6S410000000000000000", "n_01ARYZ6S41000000000000000"),
        *("n_01ARYZ6S41000000000000000I", "n_01ARYZ6S410000000000000000\n", "n_01ARYZ6S4100000000000000000"),
        *("n__01ARYZ6S410000000000000000", " n_01ARYZ6S410000000000000000"),
    ],
)
def test_what_is_no_id_is_not_taken_for_one(text: str) -> None:
    assert is_id("n_01ARYZ6S410000000000000000", "n")
    assert not is_id(text, "n")


@pytest.mark.parametrize("at_ms", [-1, 2**48])
def test_a_time_that_no_ulid_can_hold_is_refused(at_ms: int) -> None:
    with pytest.raises(InvalidInput, match="at_ms"):
        new_id("n", at_ms)
