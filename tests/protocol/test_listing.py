"""What a client learns of the tools before it calls one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.protocol.bench import Bench

from agora.config.bounds import LimitSettings
from agora.memory.packing import DEFAULT_BUDGET
from agora.protocol.schemas import ID, KIND, NOT_BLANK, READABLE
from agora.protocol.server import INSTRUCTIONS
from agora.protocol.tools.table import BY_NAME, CORE, TABLE
from agora.protocol.tools.tool import Tool

SOURCE = Path(__file__).parents[2] / "src"
NOTES = ["agora_save", "agora_query", "agora_get", "agora_crossref", "agora_forget", "agora_restore", "agora_status"]
FACTS = ["remember", "recall", "remember_from"]
NAMES = [*NOTES, *FACTS, "session_append", "session_context", "session_summarize"]
LIST = """
import json
from agora.protocol.server import _as_listed
from agora.protocol.tools.table import TABLE
tools = map(_as_listed, TABLE)
print(json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]))
"""


def listed_by_a_fresh_process(seed: str) -> bytes:
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed}
    return subprocess.run([sys.executable, "-c", LIST], env=environment, check=True, capture_output=True).stdout


def walk(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def size(tools: list[dict[str, Any]]) -> int:
    return len(json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":")).encode())


def test_the_list_has_the_same_bytes_in_every_process_and_is_small() -> None:
    one, other = listed_by_a_fresh_process("1"), listed_by_a_fresh_process("2")
    assert one == other
    tools = json.loads(one)
    assert [tool["name"] for tool in tools] == NAMES
    assert size([tool for tool in tools if tool["name"] in NOTES]) < 12_000
    assert size([tool for tool in tools if tool["name"] in {*NOTES, *FACTS}]) < 18_000
    assert size(tools) < 22_000
    assert size([tool for tool in tools if tool["name"] in CORE]) < 8 * 1024


def test_the_instructions_are_short_and_name_the_tools_they_speak_of() -> None:
    assert len(INSTRUCTIONS.encode()) < 1_000
    assert "agora_query" in INSTRUCTIONS
    assert "agora_save" in INSTRUCTIONS


@pytest.mark.parametrize("tool", BY_NAME.values(), ids=BY_NAME)
def test_each_schema_is_one_of_2020_12_without_references_and_closed_to_unknown_arguments(tool: Tool) -> None:
    for schema in (tool.input, tool.output):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not any("$ref" in part or "$dynamicRef" in part for part in walk(schema))
    assert tool.input["additionalProperties"] is False
    assert set(tool.input.get("required", ())) <= set(tool.input["properties"])


@pytest.mark.parametrize("tool", BY_NAME.values(), ids=BY_NAME)
def test_each_argument_is_described_and_bounded_and_its_default_is_valid(tool: Tool) -> None:
    for name, rules in tool.input["properties"].items():
        assert len(rules["description"]) > 5, name
        if "default" in rules:
            Draft202012Validator(rules).validate(rules["default"])
        if rules["type"] == "array":
            assert "maxItems" in rules, name
        if rules["type"] == "integer":
            assert {"minimum", "maximum"} <= set(rules), name
    for part in walk(tool.input):
        # Others have no words for whoever meets them.
        assert not isinstance(part.get("pattern"), str) or part["pattern"] in {NOT_BLANK, ID, KIND, READABLE}


@pytest.mark.parametrize("tool", BY_NAME.values(), ids=BY_NAME)
def test_each_description_says_what_comes_back_when_to_use_it_and_where_the_limits_are(tool: Tool) -> None:
    assert tool.title
    assert "Returns" in tool.description
    assert "Limit" in tool.description
    assert any(word in tool.description for word in ("Use it", "when", "worth", "Hide", "undo")), "when to use it"
    assert len(tool.description) < 700


def test_the_limits_that_are_said_are_the_limits_that_hold() -> None:
    limits = LimitSettings()
    assert f"{limits.content_bytes // 1024} kB" in BY_NAME["agora_save"].description
    assert f"{limits.content_bytes // 1024} kB" in BY_NAME["session_append"].description
    assert f"{limits.query_chars:,} characters" in BY_NAME["agora_query"].description
    assert f"{DEFAULT_BUDGET:,} tokens" in BY_NAME["agora_query"].description
    assert BY_NAME["agora_query"].input["properties"]["max_tokens"]["default"] == DEFAULT_BUDGET


def test_the_hints_say_what_the_tools_do() -> None:
    hints = {tool.name: (tool.read_only, tool.destructive, tool.idempotent) for tool in TABLE}
    assert hints == {
        "agora_save": (False, False, False),
        "agora_query": (True, False, True),
        "agora_get": (True, False, True),
        "agora_crossref": (True, False, True),
        "agora_forget": (False, True, True),
        "agora_restore": (False, False, True),
        "agora_status": (True, False, True),
        "remember": (False, False, False),
        "recall": (True, False, True),
        "remember_from": (False, False, False),
        "session_append": (False, False, False),
        "session_context": (False, False, True),
        "session_summarize": (False, False, False),
    }


@pytest.mark.anyio
async def test_tools_that_say_they_only_read_write_nothing_and_idempotent_ones_change_nothing_twice(
    bench: Bench,
) -> None:
    async with bench.client() as client:
        saved = await bench.ok(client, "agora_save", content="a note", tags=["t"])
        for number in range(14):
            # Above twelve messages there is something to summarise, which a context may do too.
            await bench.ok(client, "session_append", session="talk", role="user", content=f"message {number}")
        calls: dict[str, dict[str, Any]] = {
            "agora_query": {"query": "note"},
            "agora_get": {"ids": [saved["id"]]},
            "agora_crossref": {"query": "note"},
            "agora_forget": {"ids": [saved["id"]], "dry_run": False},
            "agora_restore": {"ids": [saved["id"]]},
            "agora_status": {},
            "recall": {"include_history": True},
            "session_context": {"session": "talk"},
        }
        for tool in TABLE:
            if tool.name not in calls:
                continue
            untouched = bench.contents()
            await bench.ok(client, tool.name, **calls[tool.name])
            once = bench.contents()
            await bench.ok(client, tool.name, **calls[tool.name])
            assert not tool.read_only or once == untouched, tool.name
            assert not tool.idempotent or bench.contents() == once, tool.name
