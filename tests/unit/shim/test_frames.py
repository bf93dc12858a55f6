"""What the relay makes of lines; its life with real servers is in tests/integration/shared."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.shim.frames import Call, answered, key_of, lost, read
from agora.shim.words import LEVELS, quoted, value_of, written
from agora.transport.messages import MAX_DEPTH, Refusal, parse

ids = st.integers() | st.text(max_size=600)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain)
def test_what_is_written_is_json_for_the_same_value(value: object) -> None:
    assert json.loads(written(value)) == value
    assert value_of(written(value)) == value


@given(st.text())
def test_what_is_no_json_is_no_value_and_breaks_nothing(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=_refused)
    except ValueError:
        expected = None
    assert value_of(text) == expected


def _refused(name: str) -> None:
    raise ValueError(name)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} and more',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":1,"b":2}}}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * LEVELS + b"]" * LEVELS + b"}}",
        b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"p\xffng"}',
    ],
)
def test_what_the_server_refuses_without_its_id_is_no_call_that_waits(line: bytes) -> None:
    refused = parse(line)
    assert isinstance(refused, Refusal)
    assert refused.answer.id is None
    message = read(line)
    assert message is None or key_of(message["id"]) is None


def test_objects_are_as_deep_as_a_server_takes_them() -> None:
    assert LEVELS == MAX_DEPTH
    deepest = "[" * LEVELS + "]" * LEVELS
    assert value_of(deepest) == json.loads(deepest)
    assert value_of(f"[{deepest}]") is None


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_without_end_breaks_nothing(opening: str) -> None:
    assert value_of(opening * 200_000) is None
    # In an interpreter that has run nothing else, CPython 3.11 raises another error.
    program = f"from agora.shim.frames import read; print(read({opening!r}.encode() * 100_000))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "None\n"


@given(ids, st.sampled_from(["result", "error"]), plain)
def test_the_id_of_an_answer_is_found_wherever_it_stands(request_id: int | str, kind: str, body: object) -> None:
    for frame in (
        {"jsonrpc": "2.0", "id": request_id, kind: body},
        {kind: body, "id": request_id, "jsonrpc": "2.0"},
    ):
        for separators in ((",", ":"), (", ", ": ")):
            line = json.dumps(frame, separators=separators, ensure_ascii=False).encode("utf-8", "replace")
            if b"?" not in line:
                assert answered(line) == key_of(request_id)


@given(ids, plain)
def test_a_question_of_the_server_is_no_answer(request_id: int | str, params: object) -> None:
    for frame in (
        {"jsonrpc": "2.0", "id": request_id, "method": "roots/list", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": params},
        {"id": request_id, "method": "ping"},
    ):
        assert answered(json.dumps(frame, separators=(",", ":")).encode()) is None


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (1, 2), ("a", "b"), ("", 0)])
def test_ids_that_differ_in_kind_or_value_have_different_keys(one: object, other: object) -> None:
    assert key_of(one) != key_of(other)
    assert key_of(one) is not None


@pytest.mark.parametrize("given_id", [None, True, 1.5, [1], {}])
def test_what_is_no_id_has_nokey_of(given_id: object) -> None:
    assert key_of(given_id) is None


@pytest.mark.parametrize("line", [b"", b"\xff\xfe", b"nonsense", b"[1]", b"3", b'{"a":', b'{"a":NaN'])
def test_a_line_that_holds_no_object_is_none(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize(("modern", "request_id"), [(False, 7), (True, 'a"b\u00e9')])
def test_a_call_whose_outcome_is_unknown_is_answered_as_the_tools_answer(modern: bool, request_id: int | str) -> None:
    key = key_of(request_id)
    assert key is not None
    call = Call(key, b"", "tools/call", safe=False, modern=modern)
    call.tries = 1
    answer: dict[str, Any] = json.loads(lost(call))
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", request_id)
    result = answer["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "outcome_unknown"
    assert result["structuredContent"]["error"]["hint"] in result["content"][0]["text"]
    assert result.get("resultType") == ("complete" if modern else None)


def test_a_call_that_no_server_had_is_said_not_to_be_done() -> None:
    answer = json.loads(lost(Call("1", b"", "tools/call", safe=False, modern=False)))
    error = answer["result"]["structuredContent"]["error"]
    assert (error["code"], error["retryable"]) == ("store_unavailable", True)


def test_a_stream_whose_server_is_gone_ends_with_an_error() -> None:
    answer = json.loads(lost(Call(quoted("s"), b"", "subscriptions/listen", safe=False, modern=True)))
    assert (answer["id"], answer["error"]["code"]) == ("s", -32000)
