"""What a note or a question says reaches no log, at the level that tells most."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.processes import RunAgora, Serve
from tests.sentinels import looked_for

SCOPE = "acme/shop"
DEBUG = {"AGORA_LOG_LEVEL": "debug"}
WORDS = (
    *("zephyrine", "ytitled", "xtagged", "wfield", "vvalue", "ukeyed", "treason", "squestion", "rnonsense", "qstray"),
    *("pbroken", "nmethod", "mprompt"),
)
NEEDLES = {word: word.encode() for word in WORDS}


def test_no_word_of_a_call_is_logged_whatever_becomes_of_it(serve: Serve, home: Path) -> None:
    server = serve("--namespace", SCOPE, env=DEBUG)
    saved = server.call(
        "agora_save",
        content="the zephyrine plan",
        title="ytitled",
        tags=["xtagged"],
        metadata={"wfield": "vvalue"},
        key="ukeyed",
    )
    server.call("agora_save", content="the zephyrine plan", key="ukeyed", agent="bob")
    for mode in ("hybrid", "semantic", "lexical"):
        server.call("agora_query", query="squestion about zephyrine", mode=mode, explain=True)
    server.call("agora_get", ids=[saved["id"]])
    server.call("agora_crossref", query="squestion")
    server.call("agora_forget", ids=[saved["id"]], dry_run=False, reason="treason")
    server.call("agora_restore", ids=[saved["id"]])
    # What cannot be done, in every way in which a call can go wrong.
    server.refused("agora_save", content="zephyrine", kind="rnonsense and more")
    server.refused("agora_save", content="zephyrine " * 100_000)
    server.refused("agora_save", content="zephyrine", metadata={"wfield": "v" * 20_000})
    server.refused("agora_query", query="squestion", since="rnonsense")
    server.refused("agora_query", query="squestion", qstray=1)
    server.refused("agora_restore", ids=["n_01J00000000000000000000000"])
    for message in (
        b'{"jsonrpc": "2.0", "id": 901, "method": "tools/call", "params": {"name": "qstray", "arguments": "pbroken"}}',
        b'{"jsonrpc": "2.0", "id": 902, "method": "tools/call", "params": "pbroken zephyrine"}',
        b'{"jsonrpc": "2.0", "id": 903, "method": "prompts/get", "params": {"name": "mprompt", "arguments": 7}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "pbroken"}}',
        b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"pbroken": ["zephyrine"]}}',
        b'{"jsonrpc": "2.0", "id": {"pbroken": 1}, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 904, "method": "nmethod", "params": {"pbroken": 1}}',
        b'{"jsonrpc": "2.0", "method": "notifications/nmethod", "params": 3}',
        b'{"jsonrpc": "2.0", "id": 905, "result": {"pbroken": "zephyrine"}}',
        b"pbroken zephyrine {",
        b"\xff\xfe pbroken",
        b'["pbroken"]',
        b'{"jsonrpc": "2.0", "id": 906, "method": "resources/read", "params": {"uri": "agora://notes/pbroken"}}',
    ):
        server.send(message)
    server.request("ping")
    assert server.end_input()[0] == 0
    told = looked_for(
        home, {"saved": b'"event": "note saved"', "debug": b'"level": "debug"', "id": saved["id"].encode()}
    )
    assert all(any(name.startswith("logs/") for name in files) for files in told.values())
    assert told.keys() == {"saved", "debug", "id"}
    logged = {
        word: files for word, files in looked_for(home, NEEDLES).items() if any(f.startswith("logs/") for f in files)
    }
    assert logged == {}
    assert [word for word in WORDS if word in server.log()] == []


def test_no_word_of_a_command_is_logged(run_agora: RunAgora, home: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = run_agora(*arguments, env=DEBUG)
        assert done.returncode == 0, done.stderr
        # On stderr there is the log, and what the command says to a person.
        assert [word for word in WORDS if word in done.stderr] == []
        return done.stdout

    note = json.loads(
        run("save", "the zephyrine plan", "--title", "ytitled", "-t", "xtagged", "--key", "ukeyed", "--json")
    )["id"]
    run("query", "squestion zephyrine", "--explain")
    run("crossref", "squestion")
    run("get", note)
    run("export", str(tmp_path / "x.jsonl"))
    run("forget", note, "--yes", "--reason", "treason")
    run("import", str(tmp_path / "x.jsonl"), "--json")
    run("purge", note, "--yes", "--json")
    run("doctor")
    told = looked_for(home, {"saved": b'"event": "note saved"', "purged": b'"event": "notes purged"'})
    assert told.keys() == {"saved", "purged"}
    assert looked_for(home, NEEDLES) == {}
