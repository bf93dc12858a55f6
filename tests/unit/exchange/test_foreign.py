from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Desk
from tests.unit.exchange.ferry import foreign, notes_of, take

from agora.exchange.report import Report

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "formats"


def contents(desk: Desk) -> list[str]:
    return [note["content"] for note in notes_of(desk)]


def at(micros: int | None) -> str | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).isoformat()


def jsonl(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


MEMORY = (
    {"type": "entity", "name": "Ada", "entityType": "Person", "observations": ["Speaks French", "Usa «vim»"]},
    {"type": "entity", "name": "Acme", "entityType": "company", "observations": [], "since": 1999},
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"},
)


def test_a_memory_servers_observations_and_relations_become_notes(desk: Desk, tmp_path: Path) -> None:
    report = take(desk, foreign(tmp_path, "memory.jsonl", jsonl(*MEMORY)))
    assert (report.format, report.counts) == ("mcp-memory", {"created": 4})
    found = notes_of(desk)
    assert [(note["kind"], note["title"], note["content"]) for note in found] == [
        ("observation", "Ada", "Ada: Speaks French"),
        ("observation", "Ada", "Ada: Usa «vim»"),
        ("entity", "Acme", "Acme (company)"),
        ("relation", None, "Ada works at Acme"),
    ]
    assert found[0]["metadata"]["entity_type"] == "Person"
    assert found[2]["metadata"]["more"] == {"since": 1999}
    assert found[3]["metadata"]["relation_type"] == "works_at"
    assert {note["origin"] for note in found} == {"agent"}
    assert len(desk.found("french", mode="lexical", tags=("mcp-memory", "person"))) == 1


def test_a_memory_servers_graph_is_taken_as_one_document_too(desk: Desk, tmp_path: Path) -> None:
    graph = {"entities": list(MEMORY[:2]), "relations": [MEMORY[2]]}
    assert take(desk, foreign(tmp_path, "x.json", json.dumps(graph, indent=2))).counts == {"created": 4}


def test_the_same_memory_grown_adds_only_what_is_new(desk: Desk, tmp_path: Path) -> None:
    take(desk, foreign(tmp_path, "memory.jsonl", jsonl(*MEMORY)))
    grown = MEMORY[0] | {"observations": ["Speaks French", "Usa «vim»", "Left in 2027"]}
    report = take(desk, foreign(tmp_path, "memory.jsonl", jsonl(grown, *MEMORY[1:])), session="s10")
    assert report.counts == {"duplicate": 4, "created": 1}


def test_broken_lines_of_a_memory_server_are_named(desk: Desk, tmp_path: Path) -> None:
    text = (
        jsonl(MEMORY[0])
        + "oops\n\n"
        + jsonl(
            {"type": "entity", "name": "B", "entityType": "x", "observations": ["good", 5, " "]},
            {"type": "entity", "observations": []},
            {"type": "relation", "from": "A"},
            {"type": "thing"},
            [1],
        )
    )
    report = take(desk, foreign(tmp_path, "m.jsonl", text))
    assert [broken["place"] for broken in report.broken] == [
        "line 2", "line 4, observation 2", "line 5", "line 6", "line 7", "line 8",
    ]  # fmt: skip
    assert (report.counts["created"], report.left_out) == (3, {"empty texts": 1})


def test_what_was_imported_and_forgotten_does_not_come_back(desk: Desk, tmp_path: Path) -> None:
    file = foreign(tmp_path, "memory.jsonl", jsonl(MEMORY[2]))
    take(desk, file)
    desk.forget(*desk.found("works"))
    report = take(desk, file)
    assert report.duplicates[0]["reason"] == "it was forgotten here, and stays so"
    assert contents(desk) == []


def test_importing_again_from_another_session_writes_nothing(desk: Desk, tmp_path: Path) -> None:
    file = foreign(tmp_path, "memory.jsonl", jsonl(*MEMORY))
    take(desk, file)
    before = desk.sql("SELECT max(sequence) FROM journal")
    desk.clock.advance(hours=1)
    assert take(desk, file, session="s10").counts == {"duplicate": 4}
    assert desk.sql("SELECT max(sequence) FROM journal") == before


def turn(speaker: str, content: Any, **fields: Any) -> dict[str, Any]:
    common = {"sessionId": "sess-1", "timestamp": "2026-01-05T10:00:00.000Z", "uuid": "u1", "cwd": "/repo"}
    return {"type": speaker, "message": {"role": speaker, "content": content}} | common | fields


def block(type_: str, **fields: Any) -> dict[str, Any]:
    return {"type": type_, **fields}


def test_the_turns_of_a_transcript_become_notes_with_speaker_session_and_time(desk: Desk, tmp_path: Path) -> None:
    answer = turn("assistant", [block("text", text="Because of X."), block("text", text="And Y.")], uuid="u2")
    answer["message"]["model"] = "some-model"
    text = jsonl(
        turn("user", "Why does it fail?", gitBranch="main"), answer, block("summary", summary="About X", leafUuid="l")
    )
    report = take(desk, foreign(tmp_path, "abc.jsonl", text))
    assert (report.format, report.counts) == ("claude-code", {"created": 3})
    question, reply, summary = notes_of(desk)
    assert (question["content"], question["kind"], question["agent"]) == ("Why does it fail?", "message", "user")
    assert (question["session"], at(question["occurred_at"])) == ("sess-1", "2026-01-05T10:00:00+00:00")
    assert question["metadata"] == {
        "source": "claude-code",
        "source_file": "abc.jsonl",
        "speaker": "user",
        "message": "u1",
        "cwd": "/repo",
        "branch": "main",
    }
    assert (reply["content"], reply["agent"]) == ("Because of X.\n\nAnd Y.", "claude-code")
    assert reply["metadata"]["model"] == "some-model"
    assert (summary["content"], summary["kind"], summary["session"]) == ("About X", "summary", "abc")
    assert {note["origin"] for note in (question, reply, summary)} == {"agent"}


def test_what_is_no_conversation_in_a_transcript_is_left_out_and_counted(desk: Desk, tmp_path: Path) -> None:
    caveat = "Caveat: The messages below were generated by the user while running local commands."
    records = [
        turn("user", "kept"),
        turn("assistant", [block("tool_use", name="Bash", input={}), block("thinking", thinking="hm")]),
        turn("user", [block("tool_result", content="out"), block("image", source={"data": "x"})]),
        turn("user", "<command-name>/clear</command-name>"),
        turn("user", caveat),
        turn("user", [block("text", text="[Request interrupted by user]")]),
        turn("user", "meta", isMeta=True),
        turn("assistant", "API Error", isApiErrorMessage=True),
        turn("user", "<system-reminder>do this\nand that</system-reminder>\nwhat I said"),
        turn("user", "  "),
        block("system", content="x"),
        block("file-history-snapshot"),
        block("queue-operation"),
    ]
    report = take(desk, foreign(tmp_path, "x.jsonl", jsonl(*records)))
    assert contents(desk) == ["kept", "what I said"]
    assert report.left_out == {
        "tool calls and results": 2,
        "thinking": 1,
        "attachments": 1,
        "commands and their output": 3,
        "system texts": 4,
        "empty texts": 1,
        "bookkeeping": 2,
    }
    assert report.whole


def test_a_summary_that_a_session_goes_on_from_is_a_summary(desk: Desk, tmp_path: Path) -> None:
    text = jsonl(
        turn("user", "This session is being continued …", isCompactSummary=True), turn("user", "go", isSidechain=True)
    )
    take(desk, foreign(tmp_path, "x.jsonl", text))
    summary, side = notes_of(desk)
    assert (summary["kind"], summary["metadata"]["speaker"]) == ("summary", "assistant")
    assert side["metadata"]["sidechain"] is True


def test_broken_lines_of_a_transcript_are_named(desk: Desk, tmp_path: Path) -> None:
    text = jsonl(
        turn("user", "good"), 42, "text", {"silly": 1}, block("user"), block("user", message="x"), turn("user", [7])
    )
    report = take(desk, foreign(tmp_path, "x.jsonl", text + "{cut"))
    assert [broken["place"] for broken in report.broken] == [f"line {n}" for n in (2, 3, 4, 5, 6, 7, 8)]
    assert contents(desk) == ["good"]


def test_a_web_sessions_loglines_are_a_transcript_too(desk: Desk, tmp_path: Path) -> None:
    document = json.dumps({"loglines": [turn("user", "from the web"), 5]}, indent=1)
    report = take(desk, foreign(tmp_path, "web.json", document))
    assert contents(desk) == ["from the web"]
    assert report.broken == [{"place": "logline 2", "reason": "is no JSON object"}]


def node(name: str, parent: str | None, role: str, *parts: Any, **message: Any) -> dict[str, Any]:
    content = {"content_type": message.pop("content_type", "text"), "parts": list(parts)}
    made = {"id": name, "author": {"role": role}, "content": content, "create_time": 1767949200.5, "metadata": {}}
    return {"id": name, "parent": parent, "children": [], "message": {"recipient": "all", **made, **message}}


def chat(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    mapping = {"root": {"id": "root", "parent": None, "children": [], "message": None}} | {n["id"]: n for n in nodes}
    return {"title": "Chat", "conversation_id": "c1", "create_time": 1767949000.0, "mapping": mapping} | fields


def test_the_shown_branch_of_a_chatgpt_conversation_becomes_notes(desk: Desk, tmp_path: Path) -> None:
    nodes = (
        node("u1", "root", "user", "Which port?"),
        node("a0", "u1", "assistant", "first try"),
        node("a1", "u1", "assistant", "5432.", metadata={"model_slug": "m"}, create_time=None),
    )
    report = take(desk, foreign(tmp_path, "conversations.json", json.dumps([chat(*nodes, current_node="a1")])))
    assert (report.format, report.counts, report.left_out) == ("chatgpt", {"created": 2}, {"other branches": 1})
    question, reply = notes_of(desk)
    assert (question["content"], question["title"], question["session"]) == ("Which port?", "Chat", "c1")
    assert (question["agent"], at(question["occurred_at"])) == ("user", "2026-01-09T09:00:00.500000+00:00")
    assert (reply["content"], reply["agent"]) == ("5432.", "chatgpt")
    assert at(reply["occurred_at"]) == "2026-01-09T08:56:40+00:00"
    assert reply["metadata"] | {"source_file": ""} == {
        "source": "chatgpt", "source_file": "", "speaker": "assistant", "message": "a1", "model": "m",
    }  # fmt: skip
    # Kept by a service on the web: nobody here can vouch for it.
    assert {question["origin"], reply["origin"]} == {"web"}


def test_what_is_no_conversation_in_a_chatgpt_export_is_left_out_and_counted(desk: Desk, tmp_path: Path) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "x"}
    spoken = {"content_type": "audio_transcription", "text": "spoken words"}
    nodes = [
        node("1", "root", "system", "be good"),
        node("2", "1", "user", "x", content_type="user_editable_context"),
        node("3", "2", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        node("4", "3", "assistant", "", content_type="thoughts"),
        node("5", "4", "assistant", "search()", recipient="web.run"),
        node("6", "5", "assistant", "", content_type="code"),
        node("7", "6", "tool", "result"),
        node("8", "7", "user", image, "and this?", spoken, content_type="multimodal_text"),
        node("9", "8", "assistant", ""),
    ]
    report = take(desk, foreign(tmp_path, "c.json", json.dumps({"conversations": [chat(*nodes, current_node="9")]})))
    assert contents(desk) == ["and this?\nspoken words"]
    assert report.left_out == {
        "system texts": 3, "thinking": 1, "tool calls and results": 3, "attachments": 1, "empty texts": 1,
    }  # fmt: skip


def test_odd_conversations_neither_loop_nor_stop_an_import(desk: Desk, tmp_path: Path) -> None:
    loop = chat(node("a", "b", "user", "in a ring"), node("b", "a", "user", "round and round"), current_node="a")
    lost = chat(node("n", "gone", "user", "no current node"), current_node=None)
    odd = chat({"id": "o", "parent": None, "message": {"id": "o", "content": "x"}}, current_node="o")
    report = take(desk, foreign(tmp_path, "c.json", json.dumps([loop, 5, {"title": "x"}, lost, odd])))
    assert sorted(contents(desk)) == ["in a ring", "no current node", "round and round"]
    assert report.counts == {"created": 3, "broken": 3}
    assert [broken["place"] for broken in report.broken] == [
        "conversation 2", "conversation 3", "conversation 5, message o",
    ]  # fmt: skip


def test_an_export_that_breaks_off_gives_the_conversations_before(desk: Desk, tmp_path: Path) -> None:
    text = json.dumps([chat(node("u", "root", "user", f"number {n}"), current_node="u") for n in range(3)])
    report = take(desk, foreign(tmp_path, "c.json", text[: len(text) * 5 // 6]))
    assert contents(desk) == ["number 0", "number 1"]
    assert [broken["place"] for broken in report.broken] == ["after conversation 2"]
    assert not report.whole


def test_the_messages_of_a_claude_ai_export_become_notes(desk: Desk, tmp_path: Path) -> None:
    def message(sender: str, text: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
        times = {"created_at": "2026-01-10T09:00:30.000000Z"}
        return {"uuid": f"m-{sender}", "sender": sender, "text": text, "content": list(blocks)} | times | fields

    messages = [
        message("human", "How?", block("text", text="How?"), attachments=[{"extracted_content": "x"}], files=[{}]),
        message(
            "assistant",
            "rendered, with tools",
            block("thinking", thinking="hm"),
            block("tool_use", name="x"),
            block("text", text="Nightly."),
            block("text", text="With WAL."),
        ),
        message("human", "an older export has no blocks"),
        message("robot", "who?"),
    ]
    conversation = {"uuid": "c9", "name": "Backups", "created_at": "2026-01-10T09:00:00Z", "chat_messages": messages}
    report = take(desk, foreign(tmp_path, "conversations.json", json.dumps([conversation])))
    assert report.format == "claude-ai"
    question, reply, older = notes_of(desk)
    assert (question["content"], question["title"], question["session"], question["agent"]) == (
        "How?", "Backups", "c9", "user",
    )  # fmt: skip
    assert (reply["content"], reply["agent"]) == ("Nightly.\n\nWith WAL.", "claude-ai")
    assert at(reply["occurred_at"]) == "2026-01-10T09:00:30+00:00"
    assert older["content"] == "an older export has no blocks"
    assert report.left_out == {"attachments": 2, "thinking": 1, "tool calls and results": 1}
    assert [broken["place"] for broken in report.broken] == ["conversation 1, message 4"]
    assert {note["origin"] for note in (question, reply, older)} == {"web"}


MEM0 = {
    "id": "mem-1",
    "memory": "Prefers tabs",
    "user_id": "ada",
    "agent_id": "helper",
    "run_id": "run-7",
    "hash": "h",
    "categories": ["Preferences"],
    "metadata": {"type": "preference", "confidence": 0.8, "branch": "main"},
    "created_at": "2026-01-03T08:00:00-08:00",
    "updated_at": "2026-01-04T08:00:00-08:00",
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([MEM0]),
        json.dumps({"count": 1, "results": [MEM0], "next": None}, indent=2),
        json.dumps({"memories": [MEM0]}),
        jsonl(MEM0),
    ],
)
def test_a_memory_of_mem0_becomes_a_note_with_all_its_fields(desk: Desk, tmp_path: Path, text: str) -> None:
    report = take(desk, foreign(tmp_path, "mem0.json", text))
    assert (report.format, report.counts) == ("mem0", {"created": 1})
    [note] = notes_of(desk)
    assert (note["content"], note["kind"], note["agent"], note["session"]) == (
        "Prefers tabs", "preference", "helper", "run-7",
    )  # fmt: skip
    assert at(note["occurred_at"]) == "2026-01-03T16:00:00+00:00"
    assert note["metadata"] == {
        "source": "mem0",
        "source_file": "mem0.json",
        "memory": "mem-1",
        "user_id": "ada",
        "hash": "h",
        "categories": ["Preferences"],
        "type": "preference",
        "confidence": 0.8,
        "branch": "main",
        "updated_at": "2026-01-04T08:00:00-08:00",
    }
    assert note["origin"] == "agent"
    assert desk.sql("SELECT confidence FROM items") == [(0.8,)]
    assert len(desk.found("tabs", tags=("preferences",))) == 1


def test_the_markdown_of_mem0s_export_skill_is_read_too(desk: Desk, tmp_path: Path) -> None:
    text = (
        "---\nid: a1\ncreated_at: 2026-01-03T08:00:00Z\ntype: decision\nconfidence: 0.9\nbranch: \n"
        "files: src/a.py, src/b.py\ncategories: db, ops\n---\nUse WAL.\n\n---\nwith a rule in it\n\n"
        "---\nid: a2\ncreated_at: \ntype: \nconfidence: \nbranch: \nfiles: \ncategories: \n---\nSecond.\n"
    )
    report = take(desk, foreign(tmp_path, "mem0-export.md", text))
    assert (report.format, report.counts) == ("mem0", {"created": 2})
    first, second = notes_of(desk)
    assert (first["content"], first["kind"]) == ("Use WAL.\n\n---\nwith a rule in it", "decision")
    assert first["metadata"]["files"] == ["src/a.py", "src/b.py"]
    assert (second["content"], second["kind"], second["occurred_at"]) == ("Second.", "memory", None)
    assert len(desk.found("wal", tags=("ops", "db"))) == 1


def test_memories_without_a_text_are_broken(desk: Desk, tmp_path: Path) -> None:
    report = take(desk, foreign(tmp_path, "x.json", json.dumps([MEM0, {"id": "x"}, 5, {"memory": " "}])))
    assert [broken["place"] for broken in report.broken] == ["memory 2", "memory 3", "memory 4"]


RULES = """\
Before the first.

# Project

Use tabs.

## Build

```sh
# not a heading
make all
```

## Empty

### Deep

Text.

## Build

Again.
"""


def test_rules_come_by_their_headings(desk: Desk, tmp_path: Path) -> None:
    report = take(desk, foreign(tmp_path, "CLAUDE.md", RULES))
    assert (report.format, report.counts) == ("rules", {"created": 5})
    assert report.left_out == {"headings without text": 1}
    assert [(note["title"], note["key"]) for note in notes_of(desk)] == [
        ("CLAUDE.md", "CLAUDE.md#"),
        ("Project", "CLAUDE.md#Project"),
        ("Project › Build", "CLAUDE.md#Project/Build"),
        ("Project › Empty › Deep", "CLAUDE.md#Project/Empty/Deep"),
        ("Project › Build", "CLAUDE.md#Project/Build (2)"),
    ]
    assert contents(desk)[2] == "## Build\n\n```sh\n# not a heading\nmake all\n```"
    assert {(note["kind"], note["origin"]) for note in notes_of(desk)} == {("rule", "agent")}


def test_an_edited_rule_replaces_what_it_said_before(desk: Desk, tmp_path: Path) -> None:
    take(desk, foreign(tmp_path, "AGENTS.md", RULES))
    report = take(desk, foreign(tmp_path, "AGENTS.md", RULES.replace("tabs", "spaces")))
    assert report.counts == {"duplicate": 4, "updated": 1}
    assert desk.found("use tabs spaces", mode="lexical", kinds=("rule",))[:1] == desk.found("spaces", mode="lexical")
    assert desk.found("tabs", mode="lexical") == []
    back = take(desk, foreign(tmp_path, "AGENTS.md", RULES))
    assert back.counts == {"duplicate": 4, "updated": 1}
    assert len(desk.found("tabs", mode="lexical")) == 1
    assert desk.problems() == []


def test_a_rule_that_was_forgotten_stays_forgotten_until_it_says_something_else(desk: Desk, tmp_path: Path) -> None:
    file = foreign(tmp_path, "AGENTS.md", "# A\n\nold rule\n")
    take(desk, file)
    desk.forget(*desk.found("old rule"))
    assert take(desk, file).duplicates[0]["reason"] == "it was forgotten here, and stays so"
    assert take(desk, foreign(tmp_path, "AGENTS.md", "# A\n\nnew rule\n")).counts == {"updated": 1}
    assert len(desk.found("rule", mode="lexical")) == 1


def test_a_cursor_rule_keeps_its_front_matter(desk: Desk, tmp_path: Path) -> None:
    front = '---\ndescription: "About React"\nglobs:\n  - "**/*.tsx"\n  - src/**\nalwaysApply: true\nempty:\n---\n'
    take(desk, foreign(tmp_path, "react.mdc", front + "No headings here.\n"))
    [note] = notes_of(desk)
    assert (note["content"], note["title"]) == ("No headings here.", "About React")
    assert note["metadata"] == {
        "source": "rules",
        "source_file": "react.mdc",
        "description": "About React",
        "globs": ["**/*.tsx", "src/**"],
        "alwaysApply": True,
    }


def test_a_file_that_only_names_another_one_is_left_out(desk: Desk, tmp_path: Path) -> None:
    report = take(desk, foreign(tmp_path, "CLAUDE.md", "AGENTS.md\n"))
    assert (report.counts, report.left_out) == ({}, {"pointers to other files": 1})


def test_long_headings_make_keys_that_differ(desk: Desk, tmp_path: Path) -> None:
    text = "".join(f"# {'long ' * 50}{n}\n\ntext {n}\n\n" for n in range(2))
    assert take(desk, foreign(tmp_path, "CLAUDE.md", text)).counts == {"created": 2}
    assert len({note["key"] for note in notes_of(desk)}) == 2


@pytest.mark.parametrize("origin", ["tool", "web"])
def test_an_origin_can_be_lowered_for_any_format(desk: Desk, tmp_path: Path, origin: str) -> None:
    take(desk, foreign(tmp_path, "CLAUDE.md", RULES), origin=origin)
    assert {note["origin"] for note in notes_of(desk)} == {origin}


def test_a_text_that_another_agent_saved_gets_the_source_as_a_saver(desk: Desk, tmp_path: Path) -> None:
    kept = desk.save("Ada works at Acme", "ann").id
    report = take(desk, foreign(tmp_path, "m.jsonl", jsonl(MEMORY[2])))
    assert report.duplicates[0]["kept"] == kept
    assert [saver.agent for saver in desk.note(kept).savers] == ["ann", "imp"]


def test_texts_go_to_the_named_namespace(desk: Desk, tmp_path: Path) -> None:
    take(desk, foreign(tmp_path, "m.jsonl", jsonl(*MEMORY)), namespaces=("other/project",))
    assert len(notes_of(desk, "other/project")) == 4


def dry_and_real(desk: Desk, file: Path, **wanted: Any) -> Report:
    """What a dry run says has to be what then happens."""
    foreseen = take(desk, file, dry_run=True, **wanted).as_data()
    done = take(desk, file, **wanted)
    for key in ("counts", "left_out", "broken", "format"):
        assert foreseen[key] == done.as_data()[key]
    return done


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples lie beside the checkout, not in it")
@pytest.mark.parametrize(
    ("pattern", "name", "broken"),
    [
        ("mcp_memory_jsonl/*.jsonl", "mcp-memory", 0),
        ("claude_code_jsonl/*.json*", "claude-code", 6),
        ("chatgpt_export/*.json", "chatgpt", 0),
        ("claude_ai_export/*.json", "claude-ai", 0),
        ("agents_md/*.md", "rules", 0),
        ("cursor_rules/*.mdc", "rules", 0),
    ],
)
def test_files_as_they_are_found_elsewhere_come_in(desk: Desk, pattern: str, name: str, broken: int) -> None:
    files = sorted(SAMPLES.glob(pattern))
    assert files
    reports = [dry_and_real(desk, file) for file in files]
    assert {report.format for report in reports} == {name}
    assert sum(report.counts["broken"] for report in reports) == broken
    assert sum(report.counts["created"] for report in reports) > 0
    assert desk.problems() == []
