"""What a session remembers for its next server."""

from __future__ import annotations

import json
from typing import Any

from agora.shim.calls import TRIES, Calls
from agora.shim.frames import Call

SAFE = frozenset({"agora_query"})


def noted(calls: Calls, request_id: int, method: str, **params: Any) -> Call:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    call = calls.note(message, json.dumps(message).encode() + b"\n", SAFE)
    assert call is not None
    return call


def answer(request_id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{}}' % request_id


def ids(calls: list[Call]) -> list[str]:
    return [call.key for call in calls]


def test_what_was_set_before_the_handshake_was_answered_is_told_to_the_next_server() -> None:
    calls = Calls()
    noted(calls, 1, "initialize")
    noted(calls, 2, "logging/setLevel", level="error")
    noted(calls, 3, "resources/subscribe", uri="agora://one")
    assert calls.told() == [], "who waits for the first answer is sent as a call"
    for each in (1, 2, 3):
        calls.settle(answer(each))
    assert ids(calls.told()) == ["2", "3"]


def test_a_second_handshake_makes_void_what_was_set_before_it() -> None:
    calls = Calls()
    noted(calls, 1, "initialize")
    noted(calls, 2, "logging/setLevel", level="error")
    second = noted(calls, 3, "initialize")
    noted(calls, 4, "resources/subscribe", uri="agora://one")
    for each in (1, 2, 3, 4):
        calls.settle(answer(each))
    assert ids(calls.told()) == ["4"]
    assert calls.handshake == second.line


def test_the_last_level_and_no_ended_subscription_is_told() -> None:
    calls = Calls()
    noted(calls, 1, "logging/setLevel", level="error")
    noted(calls, 2, "resources/subscribe", uri="agora://one")
    noted(calls, 3, "resources/unsubscribe", uri="agora://one")
    noted(calls, 4, "logging/setLevel", level="debug")
    for each in (1, 2, 3, 4):
        calls.settle(answer(each))
    assert ids(calls.told()) == ["4"]


def test_a_call_that_may_have_been_done_is_given_up_and_one_that_changes_nothing_goes_to_the_next_server() -> None:
    calls = Calls()
    save = noted(calls, 1, "tools/call", name="agora_save")
    query = noted(calls, 2, "tools/call", name="agora_query")
    unsent = noted(calls, 3, "tools/call", name="agora_save")
    save.tries = query.tries = 1
    assert calls.give_up() == [save]
    assert calls.waiting() == [query, unsent]
    query.tries = TRIES
    assert calls.give_up() == [query]
    assert calls.give_up(everything=True) == [unsent]
    assert calls.waiting() == []


def test_a_call_that_the_client_takes_back_waits_no_more() -> None:
    calls = Calls()
    noted(calls, 1, "tools/call", name="agora_query")
    notification: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert calls.note(notification, b"", SAFE) is None
    assert calls.waiting() == []
