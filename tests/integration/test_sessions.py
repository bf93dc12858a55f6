"""Conversations over stdio and on the command line, with the real program and the packaged model."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from tests.integration.processes import RunAgora, Serve, Served


def said(done: subprocess.CompletedProcess[str]) -> Any:
    """The one JSON document on stdout of a command that worked."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def talk(server: Served, count: int, session: str = "talk") -> list[Any]:
    """So many turns of two speakers; what each append answered."""
    return [
        server.call(
            "session_append",
            session=session,
            role="user" if n % 2 else "assistant",
            content=f"We looked at part {n} of the pump and left it as it is",
        )
        for n in range(1, count + 1)
    ]


def test_what_one_process_appends_another_one_goes_on_with(serve: Serve) -> None:
    first = serve(name="claude-code")
    first.call("remember", key="editor", value="Helix", subject="Ann")
    first.call("session_append", session="talk", role="user", content="The valve of the boiler is brass", speaker="Ann")
    talk(first, 90)
    assert first.end_input()[0] == 0
    second = serve(name="codex")
    found = second.call("session_context", session="talk", max_tokens=1_000, query="what is the valve made of?")
    assert (found["total"], found["strategy"]) == (91, "all")
    assert len(json.dumps(found["messages"], ensure_ascii=False).encode()) <= 4_000
    frame, *rest = found["messages"]
    assert frame["role"] == "system"
    for part in ("- editor: Helix", "Messages 1 to ", "The valve of the boiler is brass"):
        assert part in frame["content"]
    assert rest[-1]["content"] == "We looked at part 90 of the pump and left it as it is"
    assert found["relevant"][0] == {"seq": 1, "speaker": "Ann"}
    (row,) = json.loads(second.request("resources/read", {"uri": "agora://sessions"})["result"]["contents"][0]["text"])[
        "sessions"
    ]
    assert (row["session"], row["messages"]) == ("talk", 91)


def test_of_two_processes_that_replace_one_summary_at_once_one_does(serve: Serve) -> None:
    servers = [serve(name="claude-code"), serve(name="codex")]
    due = talk(servers[0], 13)[-1]["summary_due"]
    answers: list[Any] = [None, None]
    ready = threading.Barrier(2)

    def replace(place: int) -> None:
        ready.wait(20)
        given = {"token": due["token"], "summary": f"They looked at parts 1 to {5 + place}."}
        answers[place] = servers[place].request("tools/call", {"name": "session_summarize", "arguments": given})

    threads = [threading.Thread(target=replace, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    results = [answer["result"] for answer in answers]
    (lost,) = [place for place, result in enumerate(results) if result.get("isError")]
    assert results[lost]["structuredContent"]["error"]["code"] == "summary_outdated"
    found = servers[0].call("session_context", session="talk", form="parts")
    assert (found["summary"]["version"], found["summary"]["text"]) == (2, f"They looked at parts 1 to {6 - lost}.")
    assert found["summary"]["written_by"] == f"agent:{('claude-code', 'codex')[1 - lost]}"


def test_a_conversation_goes_through_the_commands_in_words(run_agora: RunAgora) -> None:
    assert run_agora("session", "list").stdout == "no conversations: `agora session append` begins one\n"
    done = run_agora("session", "append", "talk", "user", "The pump is loud", "--speaker", "Ann")
    assert done.returncode == 0, done.stderr
    assert "not done" not in done.stdout, "a command waits for the model: no later call would make the vectors"
    words = done.stdout.splitlines()[0].split()
    assert (words[0], words[2:6]) == ("appended", ["as", "#1", "of", "talk"])
    assert run_agora("session", "append", "talk", "assistant", "-", stdin=b"Since\nwhen?").returncode == 0
    run_agora("remember", "editor", "Helix", "--subject", "ann")
    shown = run_agora("session", "context", "talk").stdout.splitlines()
    assert shown[:4] == ["What you know about Ann:", "- editor: Helix", "", "newest messages:"]
    assert shown[4].startswith("#1 ")
    assert shown[4].endswith(" Ann (user)")
    assert shown[5] == "   The pump is loud"
    assert shown[7:9] == ["   Since", "   when?"]
    assert shown[9].endswith("0 of 2 messages left out, strategy all")
    listed = run_agora("session", "list").stdout
    assert listed.startswith("talk  2 messages, ")
    assert "messages    2 in 1 conversations" in run_agora("status").stdout
    missing = run_agora("session", "context", "nothing")
    assert missing.returncode == 1
    assert "there is no conversation 'nothing'" in missing.stderr


def test_a_summary_is_replaced_on_the_command_line_and_as_json(serve: Serve, run_agora: RunAgora) -> None:
    server = serve(name="claude-code")
    talk(server, 12)
    done = said(run_agora("session", "append", "talk", "user", "And part 13", "--json", "--metadata", '{"n": 1}'))
    assert done["folded"] == {"first": 1, "last": 6}
    shown = run_agora("session", "context", "talk", "-m", "2000").stdout
    assert "summary of messages 1 to 6, by extractive:" in shown
    assert f"the token: {done['summary_due']['token']}" in shown
    wrong = run_agora("session", "summarize", done["summary_due"]["token"], "They looked at 4711 parts.")
    assert wrong.returncode == 2
    assert "4711" in wrong.stderr
    refused = {"AGORA_REDACTION_MODE": "refuse"}
    better = run_agora(
        "session", "summarize", done["summary_due"]["token"], "-", stdin=b"They looked at 6 parts.", env=refused
    )
    assert better.returncode == 0, better.stderr
    assert better.stdout.startswith("version 2 of the summary of talk in ")
    found = said(run_agora("session", "context", "talk", "--json", "-q", "part 13", "--strategy", "summary"))
    assert "They looked at 6 parts." in found["messages"][0]["content"]
    parts = said(run_agora("session", "context", "talk", "--json", "--parts", "--subject", "Ann"))
    assert parts["summary"]["text"] == "They looked at 6 parts."
    assert parts["last"][-1]["metadata"] == {"n": 1}
    late = run_agora("session", "summarize", done["summary_due"]["token"], "They looked at 6 parts.", "--json")
    assert late.returncode == 1
    assert json.loads(late.stdout)["error"]["code"] == "summary_outdated"
    rows = said(run_agora("session", "list", "--json", "-n", "acme/nothing"))["sessions"]
    assert rows == []


def test_settings_say_when_it_is_summarised_and_how_long_the_summary_may_be(serve: Serve) -> None:
    settings = {
        "AGORA_CONVERSATIONS_FOLD_MESSAGES": "8",
        "AGORA_CONVERSATIONS_SUMMARY_WORDS": "30",
        "AGORA_CONVERSATIONS_SUMMARY_TOKENS": "100",
        "AGORA_CONVERSATIONS_STRATEGY": "summary",
    }
    server = serve(name="claude-code", env=settings)
    *_, done = talk(server, 9)
    assert done["folded"] == {"first": 1, "last": 6}
    assert (done["summary_due"]["max_words"], done["summary_due"]["max_tokens"]) == (30, 100)
    found = server.call("session_context", session="talk", form="parts")
    assert found["strategy"] == "summary"
    assert len(found["summary"]["text"].split()) <= 30
    error = server.refused("session_summarize", token=done["summary_due"]["token"], summary="word " * 31)
    assert "at most 30 words and 100 tokens" in error["reason"]
