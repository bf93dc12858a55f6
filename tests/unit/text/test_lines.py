from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from agora.text.lines import BOM, ENDS, Line, LineSplitter, Oversized


def split(chunks: list[bytes], limit: int = 1000) -> list[Line]:
    splitter = LineSplitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b" ", BOM, b"x" * 9, b"x" * 20])),
    st.lists(st.integers(0, 100)),
)
@example([b"x" * 9, b"\r\n", b"a"], [9, 10])
@example([BOM, b"x" * 9, b"x", b"\r\n"], [1, 2, 3])
def test_where_the_chunks_are_cut_makes_no_difference(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    chunks = [data[start:end] for start, end in pairwise(edges)]
    assert split(chunks, 10) == split([data], 10)


def test_lines_lose_their_ends_and_blank_ones_vanish() -> None:
    assert split([b"a\r\n\n  \nb\rc\n"]) == [b"a", b"b\rc"]


def test_the_last_line_needs_no_newline() -> None:
    assert split([b"a\nb"]) == [b"a", b"b"]
    assert split([b"a\n"]) == [b"a"]


def test_a_mark_at_the_start_is_no_part_of_the_line_and_elsewhere_is() -> None:
    assert split([BOM + b"a\n" + BOM + b"b"]) == [b"a", BOM + b"b"]


def test_a_line_at_the_limit_is_kept_and_one_above_is_not() -> None:
    assert split([b"x" * 10 + b"\r\n" + b"y" * 11 + b"\n" + b"z"], 10) == [b"x" * 10, Oversized(10), b"z"]


def test_an_oversized_line_is_not_kept_while_it_arrives() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"x" * 5) == []
    for _ in range(1000):
        assert splitter.feed(b"x" * 1000) == []
    assert sum(map(len, splitter._parts)) == 0
    assert splitter.feed(b"\nnext\n") == [Oversized(10), b"next"]


def test_an_oversized_last_line_is_told_too() -> None:
    assert split([b"x" * 100], 10) == [Oversized(10)]


@given(st.integers(0, 3_000), st.lists(st.integers(0, 3_000), max_size=5))
def test_the_ends_of_an_oversized_line_are_kept_wherever_it_was_cut(length: int, cuts: list[int]) -> None:
    data = bytes(33 + n % 90 for n in range(11 + length))
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    (line,) = split([data[start:end] for start, end in pairwise(edges)], 10)
    assert isinstance(line, Oversized)
    assert (line.head, line.tail) == (data[:ENDS], data[-ENDS:])
