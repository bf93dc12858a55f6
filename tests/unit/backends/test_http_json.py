"""Messages out of JSON."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from agora.backends.http_json import Message, Unreadable, error_in, is_answer, read, written


def test_the_loop_gets_its_turns_while_a_long_text_is_read() -> None:
    rows = [{"id": i, "name": f"row {i}", "tags": ["a", "b"]} for i in range(40_000)]
    text = json.dumps({"rows": rows})

    def alone() -> float:
        started = time.perf_counter()
        json.loads(text)
        return time.perf_counter() - started

    async def longest_pause() -> float:
        reading = asyncio.create_task(read(text))
        longest, last = 0.0, time.perf_counter()
        while not reading.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        assert (await reading)[0]["rows"] == rows
        return longest

    # A busy machine makes pauses of its own, but not every time; a reader that lets nobody in always makes this one.
    shortest = min(alone() for _ in range(5))
    assert any(asyncio.run(longest_pause()) < shortest / 2 for _ in range(20))


@pytest.mark.parametrize("text", ["", "{", "7", "[]", "[1]", "[{}, 1]", '{"a": NaN}', "[" * 100_000, "1" * 5000])
def test_what_is_no_message_is_not_read(text: str) -> None:
    for given in (text, text.encode(), bytearray(text.encode())):
        with pytest.raises(Unreadable):
            asyncio.run(read(given))


def test_a_list_of_messages_is_taken_apart_and_broken_characters_are_replaced() -> None:
    assert asyncio.run(read(b'\xef\xbb\xbf[{"a": "\xff"}, {}]')) == [{"a": "\ufffd"}, {}]


def test_a_message_is_written_so_that_it_can_be_read_also_with_half_a_character() -> None:
    message: Message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "x",
        "params": {"text": "gr\u00fc\u00dfe \U0001f98a\u2028"},
    }
    assert json.loads(written(message)) == message
    assert written({"half": "\ud800"})


def test_answers_and_errors_are_told_from_requests() -> None:
    error = {"code": -32000, "message": "no"}
    assert is_answer({"id": 1, "result": {}})
    assert is_answer({"id": 1, "error": error})
    assert not is_answer({"id": 1, "method": "x", "result": {}})
    assert not is_answer({"method": "x"})
    assert error_in([{"id": None, "error": error}]) == error
    others: list[list[Message]] = [
        [],
        [{"error": error}, {}],
        [{"error": "no"}],
        [{"error": {}}],
        [{"method": "x", "error": error}],
    ]
    for other in others:
        assert error_in(other) is None
