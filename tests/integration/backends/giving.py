"""An MCP server with tools, resources and prompts of every odd kind: `python giving.py [HABIT ...]`.

Standard library only. Habits: `silent` answers no list of resources or prompts; `fussy` refuses them. The tool `more`
adds a resource and a prompt and tells of both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

HIDDEN = "\u200b\x1b[31m"
"""Characters that nobody sees, and that colour a terminal."""

READ = {"type": "object", "properties": {"text": {"type": "string", "description": f"What{HIDDEN} to look for"}}}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "search_text",
        "title": f"Search{HIDDEN}",
        "description": f"Finds{HIDDEN} " + "it " * 1000,
        "inputSchema": READ,
    },
    {"name": "get_number", "inputSchema": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    {"name": "odd name/\u0441\u043b\u043e\u0432\u043e", "inputSchema": {"type": "object"}},
    {"name": "write_" + "long_" * 20, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "get_blocks", "inputSchema": {"type": "object"}},
    {
        "name": "get_structured",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "required": ["n"]},
    },
    {"name": "more", "inputSchema": {"type": "object"}},
    {"name": "t", "inputSchema": {"type": "object"}},
    {"name": "_t", "inputSchema": {"type": "object"}},
]
PICTURE = "iVBORw0KGgo="
BLOCKS = [
    {"type": "text", "text": f"line\r\nnext{HIDDEN}"},
    {"type": "image", "data": PICTURE, "mimeType": "image/png"},
    {"type": "resource_link", "uri": "file:///a%20b.txt", "name": "a b"},
    {"type": "made-up", "value": 7},
]
RESOURCES: list[dict[str, Any]] = [
    {
        "uri": "file:///a%20b.txt",
        "name": "a b",
        "title": f"The{HIDDEN} file",
        "description": "Words.",
        "mimeType": "text/plain",
    },
    {"uri": "mem://numbers?from=1&to=2#end", "name": "numbers", "mimeType": "application/octet-stream"},
    {"uri": "mem://long", "name": "long"},
]
CONTENTS: dict[str, dict[str, Any]] = {
    "file:///a%20b.txt": {"text": f"Follow me.{HIDDEN}", "mimeType": "text/plain"},
    "mem://numbers?from=1&to=2#end": {"blob": "AAEC", "mimeType": "application/octet-stream"},
    "mem://long": {"text": "long " * 40_000},
    "mem://more": {"text": "more"},
}
PROMPTS: list[dict[str, Any]] = [
    {
        "name": "greet",
        "title": f"Greet{HIDDEN}",
        "description": "Greets somebody.",
        "arguments": [{"name": "who", "description": f"Whom{HIDDEN}", "required": True}],
    },
    {"name": "odd prompt", "description": "An odd one."},
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def call(given: dict[str, Any]) -> dict[str, Any]:
    name, arguments = given["name"], given.get("arguments") or {}
    if name == "get_blocks":
        return {"content": BLOCKS}
    if name == "get_structured":
        return {"content": [{"type": "text", "text": '{"n": 7}'}], "structuredContent": {"n": 7}}
    if name == "more":
        RESOURCES.append({"uri": "mem://more", "name": "more"})
        PROMPTS.append({"name": "more"})
        for kind in ("resources", "prompts"):
            send({"method": f"notifications/{kind}/list_changed"})
    return text(f"{name} {json.dumps(arguments, sort_keys=True)}")


def read(given: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"uri": given["uri"], **CONTENTS[given["uri"]]}]}


def prompt(given: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(given.get("arguments") or {}, sort_keys=True)
    words = {"type": "text", "text": f"{given['name']}{HIDDEN} {arguments}"}
    return {
        "description": "Made.",
        "messages": [{"role": "user", "content": words}, {"role": "assistant", "content": words}],
    }


def page(key: str, rows: list[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Two rows at a time."""
    start = int(given.get("cursor", 0))
    more = {"nextCursor": str(start + 2)} if start + 2 < len(rows) else {}
    return {key: rows[start : start + 2], **more}


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "ping": lambda _: {},
    "tools/list": lambda _: {"tools": TOOLS},
    "tools/call": call,
    "resources/list": lambda given: page("resources", RESOURCES, given),
    "resources/read": read,
    "prompts/list": lambda given: page("prompts", PROMPTS, given),
    "prompts/get": prompt,
    "initialize": lambda given: {
        "protocolVersion": given["protocolVersion"],
        "capabilities": {"tools": {}, "resources": {"listChanged": True}, "prompts": {"listChanged": True}},
        "serverInfo": {"name": "giving", "version": "1"},
    },
}
LISTS = {"resources/list", "prompts/list"}


def main(habits: set[str]) -> None:
    while line := sys.stdin.buffer.readline():
        message = json.loads(line)
        number, method, given = message.get("id"), message.get("method"), message.get("params") or {}
        if number is None or (method in LISTS and "silent" in habits):
            continue
        try:
            if method in LISTS and "fussy" in habits:
                raise KeyError(method)  # noqa: TRY301 - told like every other mistake
            send({"id": number, "result": ANSWERS[method](given)})
        except KeyError as error:
            send({"id": number, "error": {"code": -32602, "message": f"there is no {error}"}})


if __name__ == "__main__":
    main(set(sys.argv[1:]))
