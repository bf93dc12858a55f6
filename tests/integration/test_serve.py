"""Agents in processes of their own, on one data folder, with the packaged model."""

from __future__ import annotations

import json
import os
import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.processes import Serve, Served

FIX = (
    "Bug fixed: customers were charged twice because the card provider's webhook was delivered again after our handler"
    " timed out. The handler now stores the event id first and skips ids it has seen."
)
TEXTS = {
    "italian": ("Perché la città è più bella d'inverno: l'errore è già noto.", "errore già noto città"),
    "russian": ("Ошибка при подключении: ёмкость очереди исчерпана.", "ошибки подключения очередь"),
    "chinese": ("数据库连接超时，请增加连接池的大小。", "数据库 连接池"),
    "emoji": ("Deploy 🚀 done by 👩‍💻 and 👨‍👩‍👧‍👦 🇮🇹", "deploy 🚀"),
    "nfc": (unicodedata.normalize("NFC", "Der Schlüssel heißt größer, naïve café"), "Schlüssel café"),
    "nfd": (unicodedata.normalize("NFD", "Der Schlüssel heißt größer, naïve café"), "Schlüssel café"),
    "arabic": ("مرحبا بالعالم: خطأ في الاتصال", "خطأ الاتصال"),
    "odd": ('quotes " \\ back, \u2028 line, \u00a0 space, \ufeff mark, \x1b[31m, \r\n end \t', "quotes back line"),
}


def test_what_one_agent_saves_another_process_finds_by_meaning_with_its_provenance(serve: Serve) -> None:
    b = serve(name="codex")
    assert b.call("agora_query", query="why do shoppers pay two times for one order?")["results"] == []
    a = serve(name="claude-code")
    saved = a.call("agora_save", content=FIX, title="Charged twice", tags=["payments"])
    for noise in (
        "Decision: login sessions are kept in Redis, not in signed cookies.",
        "The integration suite is fast since every worker has a Postgres container of its own.",
        "Makefiles need tabs; the editor config says so.",
    ):
        a.call("agora_save", content=noise)
    found = b.call("agora_query", query="why do shoppers pay two times for one order?", top_k=2)
    hit = found["results"][0]
    assert hit["id"] == saved["id"]
    assert hit["content"] == FIX
    assert (hit["agent"], hit["client"], hit["origin"]) == ("claude-code", "claude-code", "agent")
    assert hit["session"] == a.call("agora_status")["session"]
    assert hit["created_at"].endswith("Z")
    assert hit["tags"] == ["payments"]
    assert found["namespace"] == saved["namespace"]
    assert a.call("agora_status")["pid"] != b.call("agora_status")["pid"]


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_every_script_come_back_byte_for_byte_and_are_found(shared: Served, name: str) -> None:
    content, query = TEXTS[name]
    title = " ".join(content[:20].split())
    saved = shared.call("agora_save", content=content, title=title, tags=["texts"])
    assert saved["status"] == "created"
    (note,) = shared.call("agora_get", ids=[saved["id"]])["notes"]
    assert note["content"].encode() == content.encode()
    assert note["title"] == title
    for mode in ("hybrid", "lexical"):
        found = shared.call("agora_query", query=query, mode=mode, tags=["texts"])["results"]
        # A text in another Unicode form is a near-copy: a hit may stand for both.
        assert found, query
        (match,) = [hit for hit in found[:2] if saved["id"] in (hit["id"], *hit.get("similar", []))]
        assert match["id"] != saved["id"] or match["content"].encode() == content.encode()


def test_both_forms_of_an_accent_find_both(shared: Served) -> None:
    ids = {
        shared.call("agora_save", content=unicodedata.normalize(form, "Éclair über ångström"))["id"]
        for form in ("NFC", "NFD")
    }
    assert len(ids) == 2
    for form in ("NFC", "NFD"):
        found = shared.call("agora_query", query=unicodedata.normalize(form, "über ångström"), mode="lexical")
        hits = {hit["id"] for hit in found["results"]} | {
            same for hit in found["results"] for same in hit.get("similar", [])
        }
        assert ids <= hits


def test_twenty_saves_without_waiting_are_all_answered_and_all_there(shared: Served) -> None:
    posted = [shared.post_call("agora_save", content=f"Pipelined ticket OPS-{n:03}") for n in range(20)]
    ids = [shared.result(request)["id"] for request in posted]
    assert len(set(ids)) == 20
    got = shared.call("agora_get", ids=ids)["notes"]
    assert [note["content"] for note in got] == [f"Pipelined ticket OPS-{n:03}" for n in range(20)]
    with closing(sqlite3.connect(shared.home / "agora.db")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_lone_surrogate_is_answered_and_the_next_call_works(shared: Served) -> None:
    shared.send(
        rb'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"agora_save",'
        rb'"arguments":{"content":"x \ud800 y"}}}'
    )
    answer = shared.answer("s", seconds=1)["result"]
    assert answer["isError"] is True
    error = answer["structuredContent"]["error"]
    assert (error["param"], error["received"]) == ("content", "x \\ud800 y")
    assert "surrogate" in answer["content"][0]["text"]
    assert shared.call("agora_save", content="after the surrogate")["status"] == "created"


def test_numbers_that_only_json_can_spell_are_refused(shared: Served) -> None:
    for given, param in ((b'"confidence":1e400', "confidence"), (b'"metadata":{"n":[1e999]}', "metadata.n[0]")):
        shared.send(
            b'{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"agora_save","arguments":'
            b'{"content":"x",' + given + b"}}}"
        )
        assert shared.answer("n")["result"]["structuredContent"]["error"]["param"] == param


def test_a_request_of_the_stateless_era_is_served_without_a_handshake(serve: Serve) -> None:
    server = serve(name=None)
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": "2026-07-28",
        f"{prefix}clientCapabilities": {},
        f"{prefix}clientInfo": {"name": "modern", "version": "9"},
    }
    discovered = server.request("server/discover", {"_meta": meta})["result"]
    assert "2026-07-28" in discovered["supportedVersions"]
    assert "agora_query" in discovered["instructions"]
    listed = server.request("tools/list", {"_meta": meta})["result"]
    assert [tool["name"] for tool in listed["tools"]][:2] == ["agora_save", "agora_query"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (60_000, "private")
    assert len(json.dumps(listed).encode()) < 25_000
    called = {"name": "agora_save", "arguments": {"content": "stateless"}, "_meta": meta}
    saved = server.request("tools/call", called)["result"]
    assert saved["resultType"] == "complete"
    note = {"name": "agora_get", "arguments": {"ids": [saved["structuredContent"]["id"]]}, "_meta": meta}
    (found,) = server.request("tools/call", note)["result"]["structuredContent"]["notes"]
    assert found["client"] == "modern"
    unknown = server.request("tools/call", {"name": "nope", "arguments": {}, "_meta": meta})
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: nope"}


def test_the_project_is_the_folder_that_the_client_started_the_server_in(
    serve: Serve, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    one, two = serve(), serve(cwd=other)
    saved = one.call("agora_save", content="only here")
    assert saved["namespace"].startswith(f"{project.name}-")
    assert saved["namespace_rule"] == "folder"
    assert len(one.call("agora_query", query="only here")["results"]) == 1
    assert two.call("agora_query", query="only here")["results"] == []
    assert two.call("agora_get", ids=[saved["id"]])["unknown"] == [saved["id"]]


NOISE = """
import builtins, os, sys, warnings

print("printed before anything else, not flushed")
warnings.simplefilter("always")

class Noisy:
    def find_spec(self, name, path=None, target=None):
        if name in {"onnxruntime", "tokenizers", "numpy", "jsonschema"}:
            print("importing", name, flush=True)
            os.write(1, b"raw bytes of an import\\n")
            sys.__stdout__.write("from the first stdout\\n")
            warnings.warn("a dependency complains")
        return None

sys.meta_path.insert(0, Noisy())
"""


def test_only_the_protocol_is_on_stdout_whatever_dependencies_print(serve: Serve, tmp_path: Path) -> None:
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    (noisy / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    source = Path(__file__).parents[2] / "src"
    import_path = {"PYTHONPATH": os.pathsep.join([str(noisy), str(source)])}
    server = serve(env=import_path)
    server.call("agora_save", content="in the middle of the noise")
    server.refused("agora_save", content="")
    assert len(server.call("agora_query", query="noise")["results"]) == 1
    status, _ = server.end_input()
    assert status == 0
    for line in server.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
    log = server.log()
    for words in ("printed before", "importing onnxruntime", "raw bytes of an import", "a dependency complains"):
        assert words in log
