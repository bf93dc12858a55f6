"""An MCP server that does what a file says: `python puppet.py SCRIPT [PORT]`, over HTTP with a port.

The script is read again at each request: `pages` of tools (or `tools`), and `answers` by the name of a tool, each with
any of these: `result`, `raw` (a result as text, sent as it stands), `error`, `echo` (the arguments come back), `calls`
(how many calls this process has had), `stderr`, `late` (seconds), `never`, `dies`, `progress` (steps), `changed` (says
that the tools have changed). Each request is a line in SCRIPT.log. No process lives for longer than two minutes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LIFE = 120.0

Send = Callable[[str], None]

_calls = 0
_writing = threading.Lock()


def script() -> dict[str, Any]:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - quick to start
        return dict(json.load(file))


def note(message: dict[str, Any]) -> None:
    told = {"pid": os.getpid(), "method": message.get("method"), "id": message.get("id")}
    line = json.dumps(told | {"params": message.get("params")})
    with _writing, open(sys.argv[1] + ".log", "a", encoding="utf-8") as file:  # noqa: PTH123 - as above
        file.write(line + "\n")


def answer(number: Any, result: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result})


def listed(params: dict[str, Any]) -> dict[str, Any]:
    wanted = script()
    pages = wanted.get("pages") or [wanted.get("tools", [])]
    cursor = params.get("cursor")
    if "endless" in wanted:
        page = int(cursor or 0)
        tools = [{"name": f"{wanted['endless']}_{page}"}] if wanted["endless"] else []
        return {"tools": tools, "nextCursor": str(page + 1)}
    page = int(cursor or 0)
    return {"tools": pages[page]} | ({"nextCursor": str(page + 1)} if page + 1 < len(pages) else {})


def call(number: Any, params: dict[str, Any], send: Send) -> None:
    global _calls  # noqa: PLW0603 - what a session remembers
    _calls += 1
    wanted = script().get("answers", {}).get(params.get("name"), {"echo": True})
    if "stderr" in wanted:
        sys.stderr.write(wanted["stderr"] + "\n")
        sys.stderr.flush()
    if wanted.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if wanted.get("never"):
        return
    before(params, wanted, send)
    if "error" in wanted:
        send(json.dumps({"jsonrpc": "2.0", "id": number, "error": wanted["error"]}))
    elif "raw" in wanted:
        send(f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, "result": {wanted["raw"]}}}')
    elif wanted.get("calls"):
        send(answer(number, {"content": [{"type": "text", "text": f"call {_calls} of {os.getpid()}"}]}))
    elif "result" in wanted:
        send(answer(number, wanted["result"]))
    else:
        given = json.dumps(params.get("arguments"), sort_keys=True)
        send(answer(number, {"content": [{"type": "text", "text": given}]}))


def before(params: dict[str, Any], wanted: dict[str, Any], send: Send) -> None:
    """What comes before the answer to a call."""
    if wanted.get("late"):
        threading.Event().wait(float(wanted["late"]))
    if wanted.get("changed"):
        send(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    token = (params.get("_meta") or {}).get("progressToken")
    for step in range(wanted.get("progress", 0)):
        told = {"progressToken": token, "progress": step + 1, "message": f"step {step + 1}"}
        send(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}))


def handle(message: dict[str, Any], send: Send) -> None:
    note(message)
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if number is None:
        return
    if method == "initialize":
        about = {"name": "puppet", "version": "1"}
        send(
            answer(
                number,
                {
                    "protocolVersion": params.get("protocolVersion"),
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": about,
                },
            )
        )
    elif method == "tools/list":
        send(answer(number, listed(params)))
    elif method == "tools/call":
        call(number, params, send)
    elif method == "ping":
        send(answer(number, {}))
    else:
        send(json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": f"no {method}"}}))


def by_stdio() -> None:
    def send(text: str) -> None:
        with _writing:
            sys.stdout.buffer.write(text.encode() + b"\n")
            sys.stdout.buffer.flush()

    for line in sys.stdin.buffer:
        threading.Thread(target=handle, args=(json.loads(line), send), daemon=True).start()


class Http(BaseHTTPRequestHandler):
    """Streamable HTTP with JSON answers; a session that it did not begin itself is one that it does not know."""

    protocol_version = "HTTP/1.1"
    sessions: frozenset[str] = frozenset()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        begins = message.get("method") == "initialize"
        session = uuid.uuid4().hex if begins else str(self.headers.get("Mcp-Session-Id"))
        if begins:
            Http.sessions |= {session}
        elif session not in Http.sessions:
            self._reply(
                404, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}'
            )
            return
        said: list[str] = []
        handle(message, said.append)
        self._reply(200 if said else 202, said[-1] if said else "", session if begins else None)

    def do_GET(self) -> None:
        self._reply(405, "")

    def do_DELETE(self) -> None:
        self._reply(405, "")

    def _reply(self, status: int, text: str, session: str | None = None) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def by_http(port: int) -> None:
    with ThreadingHTTPServer(("127.0.0.1", port), Http) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    end = threading.Timer(LIFE, os._exit, [1])
    end.daemon = True
    end.start()
    if len(sys.argv) > 2:
        by_http(int(sys.argv[2]))
    else:
        by_stdio()
