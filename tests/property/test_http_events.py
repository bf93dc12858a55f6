"""Server-sent events against a slow reader that follows the standard word by word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agora.backends.http_events import Event, EventReader, EventTooLarge

FOX = "🦊".encode()
WORDS = [
    *(b"data", b"event", b"id", b"retry", b"other", b"x", b":", b": ", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r"),
    *(
        b"data: ",
        b"data:a\n",
        b"data: b\r\n",
        b"data: c\r",
        b"id:1\n",
        b"event: e\n",
        b"retry: 10\n",
        b"retry:0123456789\n",
        b"12",
        b"9" * 30,
    ),
    *(
        b"\0",
        b"\xff",
        b"\xc3",
        FOX,
        FOX[:2],
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\x0b",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        "²".encode(),
    ),
]
streams = st.lists(st.sampled_from(WORDS) | st.binary(max_size=3), max_size=40).map(b"".join)


def slow(stream: bytes) -> tuple[list[Event], str, int | None]:
    """https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream, on the whole stream."""
    events: list[Event] = []
    data, kind, last, committed, retry = "", "", "", "", None
    for line in lines_of(stream.decode("utf-8", "replace").removeprefix("\ufeff")):
        if not line:
            committed = last
            if data:
                events.append(Event(kind or "message", data.removesuffix("\n")))
            data = kind = ""
            continue
        colon = line.find(":")
        if colon == 0:
            continue
        field, value = (line, "") if colon < 0 else (line[:colon], line[colon + 1 :])
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data += value + "\n"
        elif field == "id" and "\0" not in value:
            last = value
        elif field == "retry" and value and all(mark in "0123456789" for mark in value):
            retry = int(value) if len(value) < 10 else 10**9
    return events, committed, retry


def lines_of(text: str) -> Iterator[str]:
    """Complete lines; the end of one is CR LF, LF or CR."""
    line, at = "", 0
    while at < len(text):
        if text[at] in "\r\n":
            yield line
            line = ""
            at += 2 if text[at : at + 2] == "\r\n" else 1
        else:
            line += text[at]
            at += 1


def fast(pieces: list[bytes], reader: EventReader | None = None) -> tuple[list[Event], str, int | None]:
    reader = reader or EventReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events, reader.last_id, reader.retry


@example(b"data: a\r\n\r\ndata: b\r\r\n\n", [4, 7, 8, 9])
@example(b"data: a\r\ndata: b\r\n\r\n", [8])
@example(b"\xef\xbb\xbfdata\n\nid: 7\n\ndata:  x\n", [1, 2])
@given(streams, st.lists(st.integers(0, 200), max_size=10))
def test_events_are_those_of_the_standard_wherever_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    pieces = [stream[start:stop] for start, stop in pairwise(places)]
    expected = slow(stream)
    assert fast([stream]) == expected
    assert fast([b"", *pieces, b""]) == expected
    assert fast([bytes([byte]) for byte in stream]) == expected


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), st.sampled_from([b"\r\n", b"\n", b"\r"]))
def test_a_line_of_any_text_comes_as_it_was_sent(text: str, end: bytes) -> None:
    assert fast([b"data: " + text.encode() + end + end])[0] == [Event("message", text)]


def test_an_event_may_be_as_large_as_allowed_and_no_larger() -> None:
    reader = EventReader(largest=100)
    for _ in range(3):
        assert len(reader.feed(b"data:" + b"x" * 40 + b"\n" + b"data:" + b"x" * 40 + b"\n\n")) == 1
    for pieces in (
        [b"data:" + b"x" * 101],
        [b"x" * 60, b"x" * 60],
        [b"data:" + b"x" * 60 + b"\n"] * 2,
        [b"data\n"] * 120,
    ):
        with pytest.raises(EventTooLarge):
            fast(pieces, EventReader(largest=100))


def test_what_is_resumed_keeps_its_place_until_there_is_a_new_one() -> None:
    reader = EventReader("7")
    reader.feed(b"data: x\n\nid: 8\ndata: y\n")
    assert reader.last_id == "7"
    reader.feed(b"\n")
    assert reader.last_id == "8"
