"""Every advertised tool takes every advertised argument."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.bench import Bench

from agora.protocol.tools.table import TABLE

pytestmark = pytest.mark.anyio

SAMPLES: dict[str, dict[str, list[Any]]] = {
    "agora_save": {
        "content": ["a text", "x" * 100_000, "数据库 🚀 e\u0301"],
        "title": ["A title", "t" * 300],
        "tags": [[], ["one", "Two words"], ["t" * 64] * 32],
        "namespace": ["shared", "acme/shop", "Größe_1", "n" * 128],
        "kind": ["note", "a" * 32, "how-to"],
        "metadata": [{}, {"n": 1, "deep": {"list": [1, 2.5, None, True, "é"]}, "": ""}],
        "agent": ["somebody", "a" * 128],
        "session": ["s-1", "s" * 256],
        "occurred_at": ["2026-01-01", "today", "3d", "2026-01-01T10:00:00+02:00", "0001-01-02T00:00:00Z"],
        "confidence": [0, 1, 0.5],
        "expires_in": [1, 3600, "30d", "5200w"],
        "key": ["port", "k" * 200],
        "origin": ["agent", "tool", "web"],
    },
    "agora_query": {
        "query": ["text", "?", "x" * 10_000],
        "top_k": [1, 50],
        "namespace": ["shared", "never/used"],
        "tags": [[], ["one"]],
        "agents": [[], ["tester", "nobody"]],
        "kinds": [[], ["note", "bug"]],
        "metadata": [{}, {"n": 1}, {"deep": {"list": []}}],
        "since": ["yesterday", "2020-01-01", "100w"],
        "until": ["now", "today", "2030-12-31T23:59:59Z"],
        "min_score": [0, 1, 0.25],
        "max_tokens": [100, 100_000],
        "mode": ["hybrid", "semantic", "lexical"],
        "explain": [True, False],
    },
    "agora_get": {"ids": [["KNOWN"], ["KNOWN", "KNOWN"], ["n_01J00000000000000000000000"] * 100]},
    "agora_crossref": {
        "query": ["text", "?"],
        "id": ["KNOWN"],
        "agents": [[], ["tester", "nobody"]],
        "since": ["yesterday", "2020-01-01"],
        "namespace": ["shared", "never/used"],
    },
    "agora_forget": {
        "ids": [["KNOWN"]],
        "tags": [["one"]],
        "agent": ["tester"],
        "namespace": ["shared"],
        "before": ["today", "2000-01-01"],
        "dry_run": [True, False],
        "reason": ["", "r" * 500],
    },
    "agora_restore": {"ids": [["KNOWN"]]},
    "agora_status": {},
    "remember": {
        "key": ["port", "k" * 200, "Größe"],
        "value": ["a text", 5432, 0.5, 0, False, [], {}, ["a", 1, None], {"n": {"deep": [1]}}, "x" * 16_000],
        "subject": ["user", "acme/shop", "s" * 200],
        "userId": ["u-1"],
        "namespace": ["shared", "acme/shop"],
        "valid_from": ["2026-01-01", "yesterday", "2020-01-01T00:00:00+02:00"],
        "valid_to": ["2026-12-31", "9998-01-01T00:00:00Z"],
        "expires_in": [1, 3600, "30d"],
        "multi": [True, False],
        "agent": ["somebody"],
        "session": ["s-1"],
    },
    "recall": {
        "subject": ["user", "nobody"],
        "userId": ["user"],
        "key": ["port", "nothing"],
        "namespace": ["shared", "never/used"],
        "as_of": ["today", "2020-01-01", "2030-12-31T23:59:59Z"],
        "known_at": ["now", "yesterday"],
        "include_history": [True, False],
        "max_tokens": [100, 100_000],
        "limit": [1, 500],
    },
    "remember_from": {
        "text": ["a text", "x" * 100_000],
        "subject": ["user"],
        "userId": ["u-1"],
        "namespace": ["shared"],
        "occurred_at": ["yesterday", "2026-01-01"],
        "agent": ["somebody"],
        "session": ["s-1"],
    },
    "session_append": {
        "session": ["talk", "s" * 200, "Größe 1"],
        "role": ["user", "assistant", "system", "tool"],
        "content": ["a text", "x" * 100_000],
        "speaker": ["Ann", "s" * 200],
        "occurred_at": ["yesterday", "2026-01-01T10:00:00+02:00"],
        "metadata": [{}, {"n": 1, "deep": {"list": [1, None]}}],
        "namespace": ["shared"],
        "strategy": ["buffer", "summary", "facts", "semantic", "all"],
        "agent": ["somebody"],
    },
    "session_context": {
        "session": ["talk"],
        "max_tokens": [50, 1_000_000],
        "query": ["text", "?"],
        "namespace": ["acme/shop"],
        "subjects": [[], ["Ann", "nobody"]],
        "strategy": ["buffer", "summary", "facts", "semantic", "all"],
        "form": ["messages", "parts"],
    },
    "session_summarize": {"token": ["TOKEN"], "summary": ["A summary."]},
}
NEEDED: dict[str, dict[str, Any]] = {
    "agora_crossref": {"query": "text"},
    "agora_save": {"content": "a text"},
    "remember": {"key": "port", "value": 5432},
    "remember_from": {"text": "a text"},
    "session_append": {"session": "talk", "role": "user", "content": "a text"},
    "session_context": {"session": "talk"},
    "agora_query": {"query": "text"},
    "agora_forget": {"tags": ["one"]},
}


# An argument that takes the place of another one.
INSTEAD = {
    ("agora_crossref", "id"): "query",
    ("remember", "userId"): "subject",
    ("recall", "userId"): "subject",
    ("remember_from", "userId"): "subject",
}


def with_known(value: object, known: str) -> object:
    if isinstance(value, list):
        return [with_known(item, known) for item in value]
    return known if value == "KNOWN" else value


def test_there_is_a_sample_for_every_argument_there_is() -> None:
    assert {tool.name: set(tool.input["properties"]) for tool in TABLE} == {
        name: set(samples) for name, samples in SAMPLES.items()
    }


async def test_a_summary_takes_a_token_once_and_a_text(bench: Bench, mode: str) -> None:
    (summary,) = SAMPLES["session_summarize"]["summary"]
    async with bench.client(mode=mode) as client:
        for number in range(13):
            done = await bench.ok(client, "session_append", session="talk", role="user", content=f"message {number}")
        given = {"token": done["summary_due"]["token"], "summary": summary}
        assert (await bench.ok(client, "session_summarize", **given))["version"] == 2
        assert (await bench.refused(client, "session_summarize", **given))["code"] == "summary_outdated"


@pytest.mark.parametrize("tool", [name for name in SAMPLES if name != "session_summarize"])
async def test_every_argument_works_alone_and_with_all_others(bench: Bench, mode: str, tool: str) -> None:
    async with bench.client(mode=mode) as client:
        known = (await bench.ok(client, "agora_save", content="known", tags=["one"]))["id"]
        await bench.ok(client, "session_append", session="talk", role="user", content="a text")
        await bench.ok(client, tool, **NEEDED.get(tool, {"ids": [known]} if "ids" in SAMPLES[tool] else {}))
        for name, values in SAMPLES[tool].items():
            for value in values:
                given = NEEDED.get(tool, {}) | {name: with_known(value, known)}
                given.pop(INSTEAD.get((tool, name), ""), None)
                await bench.ok(client, tool, **given)
        together = {
            name: with_known(values[-1], known) for name, values in SAMPLES[tool].items() if (tool, name) not in INSTEAD
        }
        if tool != "agora_restore":
            await bench.ok(client, tool, **together)
