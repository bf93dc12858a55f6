"""Tokens and what the access tables give them, over HTTP: real tokens, a real file, a real server."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.clients import PATIENCE, HttpServer, run
from tests.integration.http.wire import call_modern, message, modern, open_session, post, rpc

TABLES = """\
[[access]]
tokens = "boss"
namespaces = "*"
rights = "admin"

[[access]]
tokens = ["ci", "gone"]
namespaces = ["{own}", "team-*"]
rights = "write"

[[access]]
any = true
namespaces = "shared"
rights = "read"
"""
NAMESPACES = ("acme/web", "shared", "team-a", "vault")
WORDS = ("the gateway answers 502 when the queue is full", "raise QUEUE_MAX in src/gateway.py")


def word(namespace: str) -> str:
    return f"zq{namespace.replace('/', '').replace('-', '')}"


class Tokens:
    """One client for each token of a server."""

    def __init__(self, server: HttpServer, secrets_by_name: dict[str, str]) -> None:
        self.server = server
        self._secrets = secrets_by_name
        self.ids: dict[str, list[str]] = {}

    def client(self, name: str) -> httpx2.Client:
        shown = {"Authorization": f"Bearer {self._secrets[name]}"}
        return httpx2.Client(base_url=self.server.origin, headers=shown, timeout=PATIENCE)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    home = tmp_path_factory.mktemp("home")
    made = {name: secrets.token_urlsafe(32) for name in ("boss", "ci", "other")}
    lines = f"{made['boss']} name=boss\n{made['ci']} name=ci namespace=acme/web\n{made['other']} name=other\n"
    (home / "token").write_text(lines, "utf-8")
    (home / "token").chmod(0o600)
    (home / "agora.toml").write_text(TABLES, "utf-8")
    with HttpServer(home) as server:
        found = Tokens(server, made)
        with found.client("boss") as boss:
            for namespace in NAMESPACES:
                mark = word(namespace)
                found.ids[namespace] = [
                    call_modern(
                        boss,
                        "agora_save",
                        content=f"{text} {mark}",
                        title=f"{mark} title {number}",
                        tags=[mark],
                        key=f"{mark}-key-{number}",
                        namespace=namespace,
                        agent=f"{mark}-agent",
                        session=f"{mark}-session",
                        metadata={mark: mark},
                    )["id"]
                    for number, text in enumerate(WORDS)
                ]
        yield found


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agora_status", {}),
    ("agora_query", {"query": "gateway queue", "explain": True, "top_k": 50}),
    *(("agora_query", {"query": "gateway queue", "namespace": name}) for name in NAMESPACES),
    ("agora_crossref", {"query": "gateway queue"}),
    *(("agora_crossref", {"query": "gateway queue", "namespace": name}) for name in NAMESPACES),
    ("agora_forget", {"tags": [word("vault")]}),
    *(("agora_forget", {"namespace": name}) for name in NAMESPACES),
)
READS = (
    "agora://status",
    "agora://cache/stats",
    "agora://changes?since=7d",
    *(f"agora://namespaces/{name}" for name in NAMESPACES),
    *(f"agora://agents/{word(name)}-agent" for name in NAMESPACES),
    *(f"agora://sessions/{word(name)}-session" for name in NAMESPACES),
    *(f"agora://search?q=gateway&namespace={name}" for name in NAMESPACES),
)
COMPLETED = ("agora://agents/{name}{?cursor}", "agora://sessions/{id}{?cursor}", "agora://namespaces/{name}{?cursor}")


@pytest.mark.parametrize(("name", "readable"), [("ci", {"acme/web", "shared", "team-a"}), ("other", {"shared"})])
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_no_byte_of_what_a_token_may_not_see_comes_back(
    tokens: Tokens, name: str, readable: set[str], era: str
) -> None:
    hidden_ids = [public_id for space in NAMESPACES if space not in readable for public_id in tokens.ids[space]]
    hidden_words = [word(space) for space in NAMESPACES if space not in readable]
    with tokens.client(name) as http:
        session = {} if era == "modern" else {"Mcp-Session-Id": open_session(http)}

        def ask(method: str, **params: Any) -> str:
            body, headers = modern(method, **params) if era == "modern" else (rpc(method, **params), session)
            return post(http, body, headers).text

        # `team-a` is reached once it is named.
        asked = [("tools/call", {"name": tool, "arguments": given}) for tool, given in CALLS]
        asked += [("resources/read", {"uri": uri}) for uri in READS]
        asked += [("resources/list", {}), ("prompts/list", {}), ("tools/list", {})]
        asked += [("prompts/get", {"name": "recall_context", "arguments": {"topic": "gateway queue"}})]
        asked += [("prompts/get", {"name": "session_handoff", "arguments": {}})]
        for template in COMPLETED:
            ref = {"type": "ref/resource", "uri": template}
            argument = {"name": "id" if "{id}" in template else "name", "value": ""}
            asked += [("completion/complete", {"ref": ref, "argument": argument})]
        said = ""
        for method, params in asked:
            answer = ask(method, **params)
            given = json.dumps(params)
            for mark in hidden_words:
                assert mark in given or mark not in answer, (method, params)
            for public_id in hidden_ids:
                assert public_id not in answer, (method, params)
            said += answer
        for space in readable:
            assert word(space) in said, "what may be read is found by the same calls"
        # Ids that were guessed are as unknown as those that never were.
        answer = ask("tools/call", name="agora_get", arguments={"ids": hidden_ids})
        assert not any(mark in answer for mark in hidden_words)


def test_the_numbers_of_all_calls_are_for_those_who_may_see_everything(tokens: Tokens) -> None:
    with tokens.client("ci") as http:
        answer = http.get("/metrics")
        assert answer.status_code == 403
        assert message(answer)["error"]["data"]["code"] == "access_denied"
    with tokens.client("boss") as http:
        assert "agora_calls_total" in http.get("/metrics").text


def test_a_session_of_one_token_is_of_no_use_to_another(tokens: Tokens) -> None:
    with tokens.client("boss") as boss, tokens.client("other") as other:
        session = open_session(boss)
        body = rpc("tools/call", name="agora_query", arguments={"query": "gateway", "namespace": "vault"})
        answer = post(other, body, {"Mcp-Session-Id": session})
        assert answer.status_code == 404
        assert word("vault") not in answer.text


def test_a_table_that_names_no_token_of_the_file_is_told_in_the_log(tokens: Tokens) -> None:
    tokens.server.wait_for_log("an access table names a token that there is not.*gone")


def test_somebody_without_a_token_has_what_is_for_all(tmp_path: Path) -> None:
    (tmp_path / "agora.toml").write_text(TABLES, "utf-8")
    with HttpServer(tmp_path, "--no-auth") as server, server.http() as http:
        answer = post(http, *modern("tools/call", name="agora_query", arguments={"query": "x"}))
        assert message(answer)["result"]["structuredContent"]["namespaces"] == ["shared"]
        status = call_modern(http, "agora_status")
        assert status["access"]["who"] == "HTTP without a token"


def test_the_command_shows_what_a_token_may(tokens: Tokens) -> None:
    home = tokens.server.home
    code, out, _ = run(home, ["access", "--token", "ci", "--json"])
    found = json.loads(out)
    rights = {row["namespace"]: (row["rights"], row["named_first"]) for row in found["namespaces"]}
    assert code == 0
    assert rights == {
        "acme/web": ("write", False),
        "shared": ("read", False),
        "team-a": ("write", True),
        "vault": (None, False),
    }
    assert found["unknown_tokens"] == ["gone"]
    assert [table["table"] for table in found["access"]["given_by"]] == [2, 3]
    code, out, _ = run(home, ["access", "--token", "ci", "team-zzz", "Vault"])
    assert out.splitlines()[-3:] == [
        "team-zzz  write, once it is named",
        "vault     nothing",
        "note: there is no token named gone, of which a table speaks",
    ]
    code, _, err = run(home, ["access", "--token", "cj"])
    assert (code, "There are: boss, ci, other." in err) == (2, True)
