"""A backend for `bench.gateway`: one tool that answers at once and one that takes 0.2 s. Standard library alone."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

WAIT_SECONDS = 0.2
TOOLS = [
    {"name": "nothing", "description": "Answers at once.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "wait", "description": "Answers after 0.2 s.", "inputSchema": {"type": "object", "properties": {}}},
]
_lock = threading.Lock()


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if number is None:
            continue
        if method == "initialize":
            protocol = message["params"]["protocolVersion"]
            about = {"name": "bench", "version": "1"}
            answer(number, {"protocolVersion": protocol, "capabilities": {"tools": {}}, "serverInfo": about})
        elif method == "tools/list":
            answer(number, {"tools": TOOLS})
        elif method == "tools/call" and message["params"]["name"] == "wait":
            threading.Timer(WAIT_SECONDS, answer, (number, result("waited"))).start()
        elif method == "tools/call":
            answer(number, result("nothing"))
        elif method == "ping":
            answer(number, {})
        else:
            write({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}})


def result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": False}


def answer(number: Any, found: dict[str, Any]) -> None:
    write({"jsonrpc": "2.0", "id": number, "result": found})


def write(message: dict[str, Any]) -> None:
    with _lock:
        sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
