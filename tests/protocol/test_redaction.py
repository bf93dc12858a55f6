"""Secrets are taken out of a call before anything else sees it, or the call is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.made_up_secrets import Maker
from tests.protocol.bench import Bench

from agora.app.guarding import guard_of
from agora.config.bounds import LimitSettings
from agora.config.settings import Settings
from agora.errors import AgoraError, InvalidNamespace, PayloadTooLarge, SecretRefused
from agora.model.deadline import Deadline
from agora.protocol.context import Connection
from agora.protocol.redacting import Guard, Mode
from agora.protocol.tools.handlers import Limits, Tools
from agora.protocol.tools.late import LateTools

LIMITS = Limits(LimitSettings().content_bytes, LimitSettings().query_chars, 10)
TOKEN = Maker(1).token().text


class Guarded:
    """The tools of a bench behind a guard of its own, and one connection to them."""

    def __init__(self, bench: Bench, mode: Mode = "redact", allow: tuple[str, ...] = (), *, late: bool = False) -> None:
        self.bench = bench
        guard = guard_of(Settings.model_validate({"redaction": {"mode": mode, "allow": list(allow)}}))
        notes = bench.tools._notes
        tools = Tools(notes, bench.clock, LIMITS, lambda: {"version": "test"}, guard)
        self.tools: Tools = LateTools(lambda _: tools, LIMITS, dict, guard) if late else tools
        self.connection = Connection(at_ms=0, namespace="acme/shop", guard=guard)

    def call(self, tool: str, client: str = "raw", **given: Any) -> dict[str, Any]:
        return self.tools.call(tool, given, self.connection, client=client, deadline=Deadline(20))

    def bytes(self) -> bytes:
        with closing(sqlite3.connect(self.bench.home / "agora.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint")
        return b"".join(file.read_bytes() for file in Path(self.bench.home).iterdir() if file.is_file())


@pytest.mark.parametrize("late", [False, True])
def test_a_saved_secret_is_a_label_and_the_answer_counts_the_kinds(bench: Bench, *, late: bool) -> None:
    guarded = Guarded(bench, late=late)
    saved = guarded.call("agora_save", content=f"use {TOKEN} here", tags=["ops", TOKEN], metadata={"password": "x9!k2"})
    assert saved["redacted"].pop("password") == 1
    assert sum(saved["redacted"].values()) == 2
    (note,) = guarded.call("agora_get", ids=[saved["id"]])["notes"]
    assert note["content"].startswith("use [REDACTED:")
    assert note["content"].endswith("] here")
    assert [tag for tag in note["tags"] if tag.startswith("[redacted:")]
    assert note["metadata"] == {"password": "[REDACTED:password]"}
    assert TOKEN.encode() not in guarded.bytes()


def test_an_answer_says_nothing_of_redaction_where_nothing_was_replaced(bench: Bench) -> None:
    assert "redacted" not in Guarded(bench).call("agora_save", content="no secret at all")


def test_the_same_secret_text_saved_again_is_a_duplicate(bench: Bench) -> None:
    guarded = Guarded(bench)
    first = guarded.call("agora_save", content=f"use {TOKEN} here")
    again = guarded.call("agora_save", content=f"use {TOKEN} here")
    assert (again["status"], again["duplicate_of"]) == ("duplicate", first["id"])
    other = guarded.call("agora_save", content=guarded.call("agora_get", ids=[first["id"]])["notes"][0]["content"])
    assert (other["status"], other.get("redacted")) == ("duplicate", None)


@pytest.mark.parametrize(
    "given",
    [
        {"content": f"use {TOKEN} here"},
        {"content": "x", "title": TOKEN},
        {"content": "x", "tags": ["a", TOKEN]},
        {"content": "x", "metadata": {"deep": [{"why": TOKEN}]}},
        {"content": "x", "metadata": {TOKEN: 1}},
        {"content": "x", "key": TOKEN},
        {"content": "x", "agent": TOKEN},
        {"content": "x", "session": TOKEN},
        {"content": "x", "namespace": TOKEN},
        {"content": "x", "kind": TOKEN},
        {"content": "x", TOKEN: 1},
    ],
    ids=lambda given: str(list(given)[-1])[:12],
)
def test_a_refusal_names_kind_and_place_and_never_the_secret(bench: Bench, given: dict[str, Any]) -> None:
    guarded = Guarded(bench, "refuse")
    before = bench.contents()
    with pytest.raises(SecretRefused) as refused:
        guarded.call("agora_save", **given)
    details = refused.value.details()
    assert details["code"] == "secret_refused"
    assert details["hint"]
    assert "received" not in details
    ((place, kinds),) = details["found"].items()
    assert details["param"] == place
    assert kinds[0] in details["message"]
    assert place.split(".")[0].split("[")[0] in {*given, ""}
    assert TOKEN not in json.dumps(details)
    assert bench.contents() == before


def test_a_question_with_a_secret_is_refused_too_and_one_without_is_not(bench: Bench) -> None:
    guarded = Guarded(bench, "refuse")
    with pytest.raises(SecretRefused, match="query"):
        guarded.call("agora_query", query=TOKEN)
    with pytest.raises(SecretRefused, match="query"):
        guarded.call("agora_crossref", query=TOKEN)
    with pytest.raises(SecretRefused, match="reason"):
        guarded.call("agora_forget", tags=["x"], reason=TOKEN)
    assert guarded.call("agora_query", query="what broke?")["results"] == []


def test_switched_off_a_secret_is_kept_and_the_status_says_so(bench: Bench) -> None:
    guarded = Guarded(bench, "off")
    saved = guarded.call("agora_save", content=TOKEN)
    assert "redacted" not in saved
    assert guarded.call("agora_get", ids=[saved["id"]])["notes"][0]["content"] == TOKEN
    told = guarded.call("agora_status")["redaction"]
    assert told["mode"] == "off"
    assert "not looked for" in told["note"]


def test_the_status_tells_the_mode_and_how_many_patterns_let_secrets_pass(bench: Bench) -> None:
    assert Guarded(bench).call("agora_status")["redaction"] == {"mode": "redact"}
    guarded = Guarded(bench, "refuse", ("a+", "b"))
    assert guarded.call("agora_status")["redaction"] == {"mode": "refuse", "allowed_patterns": 2}


def test_what_an_allowed_pattern_matches_as_a_whole_stays(bench: Bench) -> None:
    guarded = Guarded(bench, "refuse", (TOKEN[:4] + r"\S+",))
    assert guarded.call("agora_save", content=f"example {TOKEN}")["status"] == "created"
    with pytest.raises(SecretRefused):
        guarded.call("agora_save", content="glsa_" + "Ab3" * 12)


def test_the_names_of_client_agent_and_session_have_labels_in_every_mode_but_off(bench: Bench) -> None:
    guarded = Guarded(bench, "refuse")
    saved = guarded.call("agora_save", client=f"editor {TOKEN}", content="x")
    (note,) = guarded.call("agora_get", ids=[saved["id"]])["notes"]
    assert note["client"].startswith("editor [REDACTED:")
    assert note["agent"] == note["client"]
    assert TOKEN.encode() not in guarded.bytes()


def test_a_namespace_that_holds_a_secret_is_refused_by_whatever_way_it_is_named(bench: Bench) -> None:
    guarded = Guarded(bench)
    with pytest.raises(InvalidNamespace) as refused:
        guarded.call("agora_save", content="x", namespace=f"acme/{TOKEN}")
    assert TOKEN not in json.dumps(refused.value.details())
    with pytest.raises(InvalidNamespace) as refused:
        guarded.connection.caller("raw", namespace=f"acme/{TOKEN}")
    assert TOKEN not in json.dumps(refused.value.details())


@pytest.mark.parametrize(
    "given",
    [
        {"content": TOKEN + " x" * 500_000},
        {"content": "x", "title": TOKEN + " x" * 500_000},
        {"content": "x", "tags": [TOKEN, *["x"] * 50_000]},
        {"content": "x", "metadata": {TOKEN: " x" * 500_000}},
        {"content": "x", "metadata": {"a": {str(n): TOKEN for n in range(20_000)}}},
        {"content": "x", TOKEN + " x" * 500_000: 1},
        {"tags": TOKEN, "content": ["x"] * 50_000},
    ],
    ids=["content", "title", "tags", "metadata", "many fields", "name", "two"],
)
def test_what_is_too_much_to_look_at_is_refused_soon_and_quotes_no_secret(bench: Bench, given: dict[str, Any]) -> None:
    for mode in ("redact", "refuse"):
        guarded = Guarded(bench, mode)
        with pytest.raises(AgoraError) as refused:
            guarded.tools.call("agora_save", given, guarded.connection, client="raw", deadline=Deadline(5))
        assert TOKEN[6:] not in json.dumps(refused.value.details())
        assert refused.value.code in {"payload_too_large", "invalid_input"}


def test_much_text_in_arguments_that_are_each_within_their_limits_is_refused_as_a_whole() -> None:
    guard = Guard(most=100)
    checked = guard.arguments({"content": "x" * 60, "title": "y" * 60})
    assert checked.too_much
    assert [len(text) for text in checked.value.values()] == [60, 60]


def test_the_whole_of_a_call_has_a_limit_of_its_own(bench: Bench) -> None:
    tools = Tools(bench.tools._notes, bench.clock, LIMITS, dict, Guard(most=50))
    with pytest.raises(PayloadTooLarge, match="arguments"):
        tools.call("agora_save", {"content": "x" * 60}, bench.connection(), client="raw", deadline=Deadline(5))


@pytest.mark.anyio
async def test_a_client_is_told_in_structured_content_and_in_words(bench: Bench) -> None:
    async with bench.client() as client:
        found = await bench.ok(client, "agora_save", content=f"use {TOKEN} here")
        assert sum(found["redacted"].values()) == 1
        asked = await bench.ok(client, "agora_query", query=f"who used {TOKEN}?")
        assert asked["redacted"] == found["redacted"]
        assert len(asked["results"]) == 1


@pytest.mark.parametrize("mode", ["redact", "refuse"])
def test_a_token_in_the_name_of_a_project_does_not_get_into_its_namespace(tmp_path: Path, mode: Mode) -> None:
    maker = Maker(4)
    tokens = [next(each for each in maker if each.kind == "github") for _ in range(3)]
    folders = [tmp_path / f"shop-{token.text}" for token in tokens[:2]]
    names = [Connection(at_ms=0, folder=folder, guard=Guard(mode)).namespace for folder in folders]
    rooted = Connection(at_ms=0, folder=tmp_path, guard=Guard(mode))
    rooted.root(tmp_path / tokens[2].text)
    for name, token in zip([*names, rooted.namespace], tokens, strict=True):
        assert "redacted-github-token" in name
        assert token.needle.lower() not in name
    assert names[0] != names[1]
    assert Connection(at_ms=0, folder=folders[0], guard=Guard(mode)).namespace == names[0], "the same each time"
    switched_off = Connection(at_ms=0, folder=folders[0], guard=Guard("off"))
    assert tokens[0].needle.lower() in switched_off.namespace


@pytest.mark.parametrize(
    "name", ["xapp-my-awesome-application-v2", "api-key-rotation-2024", "ghs-management-portal-frontend-x"]
)
def test_a_project_that_is_called_something_like_a_token_keeps_its_namespace(name: str) -> None:
    assert Guard().namespace(f"acme/{name}") == f"acme/{name}"
