"""Every kind of bad input is refused at once, says what is wrong with what, and leaves no trace."""

from __future__ import annotations

import json
import math
import time
from typing import Any, NamedTuple

import pytest
from tests.protocol.bench import Bench

from agora.config.bounds import LimitSettings
from agora.errors import AgoraError
from agora.model.deadline import Deadline
from agora.protocol.errors import failed

LONGEST = LimitSettings().content_bytes
ID = "n_01J00000000000000000000000"


class Bad(NamedTuple):
    """A call, and what its answer must say: the argument, a part of the reason, the code."""

    tool: str
    given: dict[str, Any]
    param: str
    reason: str
    code: str = "invalid_input"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def save(param: str, reason: str, code: str = "invalid_input", **given: Any) -> Bad:
    return Bad("agora_save", {"content": "x"} | given, param, reason, code)


def query(param: str, reason: str, code: str = "invalid_input", **given: Any) -> Bad:
    return Bad("agora_query", {"query": "x"} | given, param, reason, code)


TABLE = [
    # content
    Bad("agora_save", {}, "content", "is required"),
    save("content", "must not be blank", content=""),
    save("content", "must not be blank", content=" \t\n\u00a0\u2003\u3000"),
    save("content", "must not be blank", content="\u200b\ufeff\u2060\u200d"),
    save("content", "must not be blank", content="\x01\x1b\x7f"),
    save("content", f"at most {LONGEST} bytes, it has 1000000", "payload_too_large", content="x" * 1_000_000),
    save("content", f"bytes, it has {LONGEST + 2}", "payload_too_large", content="é" * (LONGEST // 2 + 1)),
    save("content", "NUL character at position 3", content="abc\0def"),
    save("content", "must be of type string", content=5),
    save("content", "must be of type string", content=None),
    save("content", "must be of type string", content=["x"]),
    save("content", "must be of type string", content={"text": "x"}),
    # other texts of a save
    save("title", "must not be blank", title=" "),
    save("title", "at most 300 characters", title="t" * 301),
    save("title", "NUL", title="a\0"),
    save("tags", "must be of type array", tags="payments"),
    save("tags", "must be of type array", tags={"a": 1}),
    save("tags[1]", "must be of type string", tags=["a", 1]),
    save("tags[0]", "must be of type string", tags=[["a"]]),
    save("tags[1]", "must not be blank", tags=["a", "\u200b"]),
    save("tags[0]", "at most 64 characters", tags=["a" * 65]),
    save("tags[0]", "NUL", tags=["a\0"]),
    save("tags", "at most 32 items", tags=["a"] * 33),
    save("tags", "at most 32 items", tags=[7] * 200_000),
    save("kind", "lower-case", kind="Bug"),
    save("kind", "lower-case", kind="bug\n"),
    save("kind", "lower-case", kind=""),
    save("agent", "must not be blank", agent=""),
    save("agent", "at most 128 characters", agent="a" * 129),
    save("session", "at most 256 characters", session="s" * 257),
    save("key", "must not be blank", key="\t"),
    save("key", "at most 200 characters", key="k" * 201),
    save("namespace", "must not be empty", namespace=""),
    save("namespace", "empty", "invalid_namespace", namespace=" "),
    save("namespace", "may not contain ' '", "invalid_namespace", namespace="two words"),
    save("namespace", "'..'", "invalid_namespace", namespace="../secrets"),
    save("namespace", "longer than 128", "invalid_namespace", namespace="n" * 129),
    save("namespace", "at most 256 characters", namespace="n" * 257),
    save("namespace", "must be of type string", namespace=["shared"]),
    # numbers, times, fields
    save("confidence", "must be between 0 and 1", confidence=99),
    save("confidence", "must be between 0 and 1", confidence=-0.1),
    save("confidence", "must be of type number", confidence="high"),
    save("confidence", "must be of type number", confidence=True),
    save("occurred_at", "must be an ISO 8601", occurred_at="2026-02-30"),
    save("occurred_at", "must be an ISO 8601", occurred_at="last summer"),
    save("occurred_at", "must be an ISO 8601", occurred_at=""),
    save("occurred_at", "must be an ISO 8601", occurred_at="2026-W03"),
    save("occurred_at", "must be of type string", occurred_at=1_700_000_000),
    save("expires_in", "must be between 1 second and 100 years", expires_in=0),
    save("expires_in", "must be between 1 second and 100 years", expires_in=-5),
    save("expires_in", "must be between 1 second and 100 years", expires_in="999999999999w"),
    save("expires_in", "must be between 1 second and 100 years", expires_in=10**4000),
    save("expires_in", "a duration like 90s", expires_in="soon"),
    save("expires_in", "must be of type integer or string", expires_in=True),
    save("expires_in", "must be of type integer or string", expires_in=1.5),
    save("metadata", "must be of type object", metadata=["a"]),
    save("metadata", "must be of type object", metadata='{"a": 1}'),
    save("metadata", "at most 64 keys", metadata={str(n): n for n in range(65)}),
    save("metadata", "at most 16384 bytes", "payload_too_large", metadata={"blob": "x" * 20_000}),
    save("metadata.a[0].b", "NUL", metadata={"a": [{"b": "\0"}]}),
    save("metadata.", "NUL", metadata={"bad\0key": 1}),
    save("metadata", "nested more than 32 levels", metadata=nested(60)),
    # facts
    Bad("remember", {"key": "k", "value": "\u200b\u3000"}, "value", "must not be blank"),
    Bad("remember", {"key": "k", "value": [10**4100]}, "value[0]", "at most 4,000 digits"),
    # unknown arguments
    save("contents", "unknown argument; did you mean 'content'?", contents="y"),
    save("x", "unknown argument; known: content, title", x=1),
    Bad("agora_save", {"content": "x", "u" * 1_000_000: 1}, "u" * 100, "unknown argument"),
    Bad("agora_query", {"query": "x", "limit": 3}, "limit", "unknown argument"),
    Bad("agora_query", {"query": "x", "topk": 3}, "topk", "did you mean 'top_k'?"),
    Bad("agora_status", {"verbose": True}, "verbose", "this tool takes none"),
    # queries
    Bad("agora_query", {}, "query", "is required"),
    query("query", "must not be blank", query=""),
    query("query", "must not be blank", query=" \n"),
    query("query", "NUL", query="a\0b"),
    query("query", "at most 10000 characters, it has 100000", "payload_too_large", query="word " * 20_000),
    query("query", "must be of type string", query=["x"]),
    query("top_k", "must be between 1 and 50", top_k=0),
    query("top_k", "must be between 1 and 50", top_k=1000),
    query("top_k", "must be between 1 and 50", top_k=-1),
    query("top_k", "must be of type integer", top_k=2.5),
    query("top_k", "must be of type integer", top_k="5"),
    query("top_k", "must be of type integer", top_k=True),
    query("top_k", "must be of type integer", top_k=None),
    query("max_tokens", "must be between 100 and 100000", max_tokens=1),
    query("min_score", "must be between 0 and 1", min_score=1.01),
    query("mode", "must be one of hybrid, semantic, lexical", mode="fuzzy"),
    query("explain", "must be of type boolean", explain="yes"),
    query("since", "must be an ISO 8601", since="2026-13-01"),
    query("since", "must be an ISO 8601", since="tomorrow"),
    query("since", "must be an ISO 8601", since="99999999999w"),
    query("until", "must be an ISO 8601", until="9999-12-31"),
    query("until", "must be later than since", since="2026-02-01", until="2026-01-01"),
    query("since", "at most 64 characters", since="2" * 65),
    query("agents[0]", "must not be blank", agents=[""]),
    query("kinds[0]", "lower-case", kinds=["No Kind"]),
    query("metadata", "at most 16384 bytes", "payload_too_large", metadata={"a": "x" * 20_000}),
    query("namespace", "may not contain", "invalid_namespace", namespace="a;b"),
    # ids
    Bad("agora_get", {}, "ids", "is required"),
    Bad("agora_get", {"ids": []}, "ids", "must have at least 1 item"),
    Bad("agora_get", {"ids": ID}, "ids", "must be of type array"),
    Bad("agora_get", {"ids": [ID] * 101}, "ids", "must have at most 100 items"),
    Bad("agora_get", {"ids": ["nonsense"] * 200_000}, "ids", "must have at most 100 items"),
    Bad("agora_get", {"ids": [ID, "17"]}, "ids[1]", "must be the id of a note"),
    Bad("agora_get", {"ids": [ID + "\n"]}, "ids[0]", "must be the id of a note"),
    Bad("agora_get", {"ids": [ID.lower()]}, "ids[0]", "must be the id of a note"),
    Bad("agora_get", {"ids": [17]}, "ids[0]", "must be of type string"),
    Bad("agora_get", {"ids": ["' OR 1=1 --"]}, "ids[0]", "must be the id of a note"),
    Bad("agora_forget", {}, "ids", "at least one of ids, tags, agent, namespace, before is required"),
    Bad("agora_forget", {"tags": [], "dry_run": False}, "ids", "at least one of"),
    Bad("agora_forget", {"reason": "why not", "dry_run": False}, "ids", "at least one of"),
    Bad("agora_forget", {"tags": ["t"], "dry_run": "false"}, "dry_run", "must be of type boolean"),
    Bad("agora_forget", {"tags": ["t"], "dry_run": 0}, "dry_run", "must be of type boolean"),
    Bad("agora_forget", {"tags": ["t"], "reason": "r" * 501}, "reason", "at most 500 characters"),
    Bad("agora_forget", {"before": "whenever", "dry_run": False}, "before", "must be an ISO 8601"),
    Bad("agora_forget", {"ids": ["x"], "dry_run": False}, "ids[0]", "must be the id of a note"),
    Bad("agora_restore", {"ids": ["*"]}, "ids[0]", "must be the id of a note"),
]


def named(bad: Bad) -> str:
    shown = json.dumps(bad.given)
    return f"{bad.tool} {shown if len(shown) < 60 else shown[:60] + '…'}".encode("ascii", "replace").decode()


def check(bad: Bad, error: dict[str, Any]) -> None:
    assert error["code"] == bad.code
    assert error["param"].startswith(bad.param)
    assert bad.reason in error["reason"]
    assert error["retryable"] is False
    assert len(json.dumps(error, ensure_ascii=False)) < 1_500, "what was received comes back abridged"


@pytest.mark.anyio
@pytest.mark.parametrize("bad", TABLE, ids=map(named, TABLE))
async def test_bad_input_is_refused_before_anything_runs(bench: Bench, bad: Bad) -> None:
    async with bench.client() as client:
        await client.list_tools()
        before = bench.contents()
        started = time.monotonic()
        error = await bench.refused(client, bad.tool, **bad.given)
        assert time.monotonic() - started < 1
        check(bad, error)
        assert bench.contents() == before
        assert bench.encoder.texts == 0


@pytest.mark.anyio
async def test_a_connection_of_the_older_era_refuses_the_same_and_goes_on(bench: Bench) -> None:
    async with bench.client(mode="legacy") as client:
        for bad in TABLE:
            check(bad, await bench.refused(client, bad.tool, **bad.given))
        assert (await bench.ok(client, "agora_save", content="still there"))["status"] == "created"


# A well-behaved client cannot even send these.
UNSENDABLE = [
    save("content", "lone surrogate", content="x \ud800 y"),
    save("tags[0]", "lone surrogate", tags=["\udfff"]),
    save("metadata.a", "lone surrogate", metadata={"a": "\udc80"}),
    save("bad\\udc80", "unknown argument", **{"bad\udc80": "\udc80"}),
    save("confidence", "must be a finite number", confidence=math.nan),
    save("confidence", "must be between 0 and 1", confidence=math.inf),
    save("metadata.n", "must be a finite number", metadata={"n": [1e400][0]}),
    save("metadata", "nested more than 32 levels", metadata=nested(5000)),
    save("content", "nested more than 32 levels", content=nested(5000)),
    query("min_score", "must be a finite number", min_score=math.nan),
    query("metadata.n", "must be a finite number", metadata={"n": -math.inf}),
]


@pytest.mark.parametrize("bad", UNSENDABLE, ids=[f"{bad.tool} {bad.param} {bad.reason}" for bad in UNSENDABLE])
def test_what_no_json_can_carry_is_refused_all_the_same(bench: Bench, bad: Bad) -> None:
    before = bench.contents()
    with pytest.raises(AgoraError) as caught:
        bench.tools.call(bad.tool, bad.given, bench.connection(), client="raw", deadline=Deadline(5))
    wire = failed(caught.value).model_dump_json(by_alias=True)
    wire.encode()
    check(bad, json.loads(wire)["structuredContent"]["error"])
    assert "Infinity" not in wire
    assert bench.contents() == before


@pytest.mark.anyio
async def test_what_was_received_is_shown_short_and_as_json(bench: Bench) -> None:
    async with bench.client() as client:
        for given, shown in (
            ({"tags": [["a", True, None]]}, '["a", true, null]'),
            ({"confidence": 99}, 99),
            ({"confidence": "é" * 300}, "é" * 200 + "… (300 characters)"),
            ({"kind": 10**30}, "a whole number of 100 bits"),
            ({"contents": None}, None),
        ):
            error = await bench.refused(client, "agora_save", content="x", **given)
            assert error["received"] == shown


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        '"foo AND (bar*',
        "NEAR(a b, 3) NOT c OR ^d",
        "{title content}: x -y +z",
        "'; DROP TABLE items; --",
        "* ? [ ] \\ % _",
        "!!! ???",
        "🚀",
        "word " * 1_999,
        "数" * 9_999,
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("wanted", ["hybrid", "lexical"])
async def test_a_query_has_no_syntax_that_could_be_wrong(bench: Bench, text: str, wanted: str) -> None:
    async with bench.client() as client:
        saved = await bench.ok(client, "agora_save", content="foo and bar live near the word 数 🚀")
        started = time.monotonic()
        found = await bench.ok(client, "agora_query", query=text, mode=wanted)
        assert time.monotonic() - started < 2
        if "foo" in text:
            assert [hit["id"] for hit in found["results"]] == [saved["id"]]
