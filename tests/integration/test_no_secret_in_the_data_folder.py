"""A hundred secrets go in by every way that there is, and none is in any byte of the data folder."""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.made_up_secrets import MadeUp, Maker
from tests.integration.processes import PATIENCE, RunAgora, Serve, Served
from tests.sentinels import files_below, looked_for

SCOPE = "acme/shop"
LOUD = {"AGORA_LOG_LEVEL": "debug"}


class Sent:
    """Hands out secrets and keeps what must be found nowhere."""

    def __init__(self) -> None:
        self._maker = Maker(7)
        self.needles: list[str] = []

    def text(self) -> str:
        """Words around a secret of the next kind."""
        made = next(self._maker)
        return f"deploy {len(self.needles)} failed with {self._kept(made)}"

    def token(self) -> str:
        """A secret that is one short word."""
        return self._kept(self._maker.token())

    def _kept(self, made: MadeUp) -> str:
        self.needles.append(made.needle)
        return made.text


def every_form(secrets: Iterable[str]) -> dict[str, bytes]:
    """Each secret as bytes: as it is, folded, in UTF-16, and in base64 wherever it may begin."""
    found: dict[str, bytes] = {}
    for secret in secrets:
        raw = secret.encode()
        forms = {"utf-8": raw, "folded": secret.casefold().encode(), "utf-16": secret.encode("utf-16-le")}
        for shift in range(3):
            # The characters at both ends depend on what stands beside.
            coded = base64.b64encode(b"\0" * shift + raw)
            forms[f"base64 {shift}"] = coded[4 : len(coded) - 4]
        found |= {f"{secret} {name}": form for name, form in forms.items()}
    return found


def files_of_other_tools(sent: Sent, folder: Path) -> list[Path]:
    """One file of each format with a secret in everything that becomes a part of a note."""

    def turn(text: str) -> dict[str, Any]:
        return {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}, "create_time": 1e9}

    made: dict[str, Any] = {
        "memory.json": {
            "entities": [{"name": sent.token(), "entityType": sent.token(), "observations": [sent.text()]}],
            "relations": [{"from": "a", "to": sent.token(), "relationType": "uses"}],
        },
        "transcript.jsonl": {
            "type": "user",
            "message": {"role": "user", "content": sent.text()},
            "sessionId": sent.token(),
            "cwd": f"/x/{sent.token()}",
            "uuid": "u",
            "timestamp": "2026-01-01T00:00:00Z",
        },
        "chatgpt.json": [
            {
                "title": sent.text(),
                "create_time": 1e9,
                "conversation_id": sent.token(),
                "current_node": "n",
                "mapping": {"n": {"id": "n", "parent": None, "children": [], "message": turn(sent.text())}},
            }
        ],
        "claude.json": [
            {
                "uuid": "c",
                "name": sent.text(),
                "chat_messages": [{"uuid": "m", "sender": "human", "text": sent.text()}],
            }
        ],
        "mem0.json": {
            "results": [
                {
                    "id": "m",
                    "memory": sent.text(),
                    "categories": [sent.token()],
                    "metadata": {"note": sent.text(), "password": sent.token()},
                    "agent_id": sent.token(),
                    "run_id": sent.token(),
                }
            ]
        },
        "CLAUDE.md": f"# Rules\n\n{sent.text()}\n\n## {sent.token()}\n\nNever use {sent.token()}.\n",
        f"{sent.token()}.md": f"# Rules\n\n{sent.text()}\n",
    }
    written = []
    for name, content in made.items():
        written.append(folder / name)
        text = content if isinstance(content, str) else json.dumps(content)
        written[-1].write_text(text, encoding="utf-8")
    return written


def by_tools(server: Served, sent: Sent) -> None:
    for number in range(20):
        everything: dict[str, Any] = {
            "title": sent.text(),
            "tags": [sent.token(), "deploy"],
            "metadata": {"why": sent.text(), sent.token(): 1, "deep": [{"token": sent.token()}]},
            "key": f"deploy {sent.token()}",
            "agent": sent.token(),
            "session": sent.token(),
        }
        given: dict[str, Any] = everything if number % 4 == 0 else {"tags": ["deploy"], "title": f"deploy {number}"}
        done = server.call("agora_save", content=sent.text(), **given)
        assert sum(done["redacted"].values()) >= 1
    for mode in ("hybrid", "semantic", "lexical"):
        asked = server.call("agora_query", query=sent.text(), mode=mode, tags=["deploy"], agents=[sent.token()])
        assert sum(asked["redacted"].values()) >= 2
    assert server.call("agora_query", query=f"why did deploy 3 fail {sent.token()}")["results"]
    assert server.call("agora_query", query="deploy", metadata={"a": sent.text()})["redacted"]
    assert server.call("agora_crossref", query=sent.text(), agents=[sent.token()])["redacted"]
    given = {"tags": [sent.token()], "agent": sent.token(), "reason": sent.text(), "dry_run": False}
    assert server.call("agora_forget", **given)["redacted"]
    one = server.call("agora_save", content="a note to forget")["id"]
    assert server.call("agora_forget", ids=[one], reason=sent.text(), dry_run=False)["count"] == 1


def by_mistakes(server: Served, sent: Sent) -> None:
    """Calls that are refused, and say why: what they quote has no secret either."""
    for given in (
        {"namespace": f"acme/{sent.token()}"},
        {"kind": sent.token()},
        {"expires_in": sent.token()},
        {"occurred_at": sent.token()},
        {sent.token(): 1},
        {"tags": sent.text()},
        {"title": sent.text() + " x" * 300},
        {"content": sent.text() + " x" * 300_000},
    ):
        error = json.dumps(server.refused("agora_save", **{"content": "x"} | given))
        assert not [needle for needle in sent.needles if needle in error], error


def by_uris_and_prompts(server: Served, sent: Sent) -> None:
    for uri in (f"agora://search?q={sent.token()}", f"agora://agents/{sent.token()}", f"agora://notes/{sent.token()}"):
        server.request("resources/read", {"uri": uri})
    server.request("prompts/get", {"name": "recall_context", "arguments": {"topic": sent.text()}})
    reference = {"type": "ref/resource", "uri": "agora://agents/{agent}"}
    server.request("completion/complete", {"ref": reference, "argument": {"name": "agent", "value": sent.token()}})
    server.request(sent.token(), {})
    server.send(f"no JSON {sent.token()}".encode())


def by_commands(run_agora: RunAgora, sent: Sent, folder: Path) -> None:
    extra = ("--title", sent.text(), "-t", sent.token(), "--key", sent.token(), "--agent", sent.token())
    metadata = json.dumps({"a": sent.text()})
    done = run_agora("save", sent.text(), *extra, "--session", sent.token(), "--metadata", metadata, env=LOUD)
    assert done.returncode == 0, done.stderr
    assert "secrets were replaced by labels: " in done.stderr
    done = run_agora("save", "-", stdin=sent.text().encode(), env=LOUD)
    assert done.returncode == 0, done.stderr
    assert run_agora("query", sent.text(), "--agent", sent.token(), env=LOUD).returncode == 0
    assert run_agora("crossref", sent.text(), env=LOUD).returncode == 0
    assert run_agora("forget", "-t", sent.token(), "--yes", "--reason", sent.text(), env=LOUD).returncode == 0
    broken = run_agora("save", "x", "--metadata", f'{{"a": {sent.token()}}}', env=LOUD)
    assert broken.returncode == 2
    assert sent.needles[-1] not in broken.stdout + broken.stderr
    files = files_of_other_tools(sent, folder)
    done = run_agora("import", *map(str, files), "-n", SCOPE, "--json", env=LOUD)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = json.loads(done.stdout)["files"]
    assert len(reports) == len(files)
    for report in reports:
        assert report["redacted"], report
        assert report["counts"]["created"] >= 1, report
    assert not [needle for needle in sent.needles if needle in done.stdout]


def an_export(run_agora: RunAgora, sent: Sent, folder: Path) -> Path:
    """An export of a store that kept its secrets, with vectors, as releases before this one wrote them."""
    off = {"AGORA_REDACTION_MODE": "off", "AGORA_HOME": str(folder / "elsewhere"), "AGORA_AGENT": sent.token()}
    for text in (sent.text(), sent.text()):
        extra = ("--title", sent.text(), "-t", sent.token(), "--key", sent.token(), "--session", sent.token())
        metadata = json.dumps({"a": sent.text(), "password": sent.token()})
        done = run_agora("save", text, *extra, "--metadata", metadata, "-n", "acme/old", env=off)
        assert done.returncode == 0, done.stderr
    assert run_agora("save", sent.text(), "-n", f"acme/{sent.token()}", env=off).returncode == 0
    assert run_agora("export", str(folder / "old.jsonl"), "--vectors", env=off).returncode == 0
    found = looked_for(folder / "elsewhere", every_form(sent.needles))
    # The look can find something: without redaction every one of them is in the store.
    assert {name.split()[0] for name in found} == set(sent.needles)
    return folder / "old.jsonl"


def settled(home: Path) -> None:
    """Until the cache, which is written behind the answers, has something in it."""
    ends = time.monotonic() + PATIENCE
    while not any(name.startswith("cache.db") for name in files_below(home)):
        assert time.monotonic() < ends
        threading.Event().wait(0.05)


@pytest.mark.slow
def test_a_hundred_secrets_by_every_way_leave_no_byte_in_the_data_folder(
    serve: Serve, run_agora: RunAgora, home: Path, tmp_path: Path
) -> None:
    sent = Sent()
    export = an_export(run_agora, sent, tmp_path)
    server = serve("--namespace", SCOPE, name=f"client {sent.token()}", env=LOUD)
    by_tools(server, sent)
    by_mistakes(server, sent)
    by_uris_and_prompts(server, sent)
    by_commands(run_agora, sent, tmp_path)
    done = run_agora("import", str(export), "--json", env=LOUD)
    report = json.loads(done.stdout)["files"][0]
    assert report["counts"]["broken"] == 1, "the namespace that is a secret"
    assert report["counts"]["created"] == 2
    settled(home)
    assert len(sent.needles) >= 100

    needles = every_form(sent.needles)
    assert looked_for(home, needles) == {}
    files = files_below(home)
    assert {"agora.db", "cache.db"} <= files
    assert any(name.startswith("logs/") for name in files)
    assert "agora.db-wal" in files
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        kept = connection.execute("SELECT count(*) FROM texts WHERE content LIKE '%[REDACTED:%'").fetchone()[0]
        assert kept >= 30, "the notes themselves are there"
    assert server.call("agora_status")["redaction"] == {"mode": "redact"}
    assert server.end_input()[0] == 0
    assert looked_for(home, needles) == {}
