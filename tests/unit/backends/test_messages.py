from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.backends.messages import LARGE, answered_id, messages

NOTE = {"jsonrpc": "2.0", "method": "notifications/message"}
ANSWER = {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize(
    ("line", "found", "clean"),
    [
        (json.dumps(NOTE).encode(), [NOTE], True),
        (json.dumps([NOTE, ANSWER]).encode(), [NOTE, ANSWER], True),
        (json.dumps([NOTE, 3, {}, ANSWER]).encode(), [NOTE, ANSWER], False),
        (b"[]", [], False),
        (b"{}", [], False),
        (b'{"jsonrpc": "2.0"}', [], False),
        (b'{"jsonrpc": "1.0", "id": 1, "result": {}}', [], False),
        (b'{"level": "info", "id": 1}', [], False),
        (b"Listening on port 80", [], False),
        (b'"text"', [], False),
        (b"null", [], False),
        (b"{" * 100_000, [], False),
        (b"[" * 100_000, [], False),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b"}", [], False),
        (b'{"jsonrpc": "2.0", "id": NaN, "result": [Infinity]}', [{**ANSWER, "id": None, "result": [None]}], True),
        (
            b'{"jsonrpc": "2.0", "id": 7, "result": {"\xff": "\xc3"}}',
            [{**ANSWER, "result": {"\ufffd": "\ufffd"}}],
            True,
        ),
    ],
)
def test_only_what_is_json_rpc_comes_out_of_a_line(line: bytes, found: list[dict[str, Any]], *, clean: bool) -> None:
    assert messages(line) == (found, clean)


def test_a_large_line_reads_as_a_small_one_does() -> None:
    rows = {"rows": [{"n": n, "deep": {"a": [n]}} for n in range(5_000)]}
    line = json.dumps({**ANSWER, "result": rows}).encode()
    assert len(line) > LARGE
    assert messages(line) == ([{**ANSWER, "result": rows}], True)


SEPARATORS = st.sampled_from([(",", ":"), None])
IDS = st.integers(-(10**17), 10**17) | st.text(max_size=30)


@given(IDS, st.sampled_from(["result", "error"]), st.permutations(["jsonrpc", "id", "payload"]), SEPARATORS)
def test_an_answer_is_known_by_its_ends_wherever_its_id_stands(
    number: int | str, kind: str, order: list[str], separators: tuple[str, str] | None
) -> None:
    values = {"jsonrpc": "2.0", "id": number, "payload": {"id": 99, "text": "x" * 3_000, "result": 3}}
    message = {(kind if key == "payload" else key): values[key] for key in order}
    line = json.dumps(message, separators=separators).encode()
    assert answered_id(line[:1_000], line[-1_000:]) == number


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {"text": "x" * 3_000}},
        {"method": "sampling/createMessage", "params": {"text": "x" * 3_000}, "jsonrpc": "2.0", "id": 5},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"text": "x" * 3_000, "id": 5}},
        {"jsonrpc": "2.0", "result": {"text": "x" * 3_000, "id": 5}},
        {"jsonrpc": "2.0", "id": None, "result": {"text": "x" * 3_000}},
        {"result": "x" * 3_000 + '","id":5}'},
        ["x" * 3_000, {"jsonrpc": "2.0", "id": 5, "result": {}}],
    ],
)
def test_what_is_no_answer_is_taken_for_none(message: object) -> None:
    line = json.dumps(message).encode()
    assert answered_id(line[:1_000], line[-1_000:]) is None
