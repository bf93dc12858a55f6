"""A real HTTP server on loopback with `/v1/embeddings`, which misbehaves as it is told to."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from agora.model.deadline import Deadline
from agora.testing import FakeEncoder

PATIENCE = 30.0

Answer = Callable[["Handler", "Asked"], None]


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    client: tuple[str, int]

    @property
    def texts(self) -> list[str]:
        found: list[str] = self.body["input"]
        return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Small answers in two packets would otherwise wait for each other.
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        with self.server.owner.lock:
            self.server.owner.connections.append(self.connection)

    def do_POST(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, json.loads(self.rfile.read(length)), self.client_address)
        with owner.lock:
            owner.requests.append(asked)
        owner.arrived.put(asked)
        try:
            answer = owner.script.get_nowait()
        except queue.Empty:
            answer = owner.usual
        answer(self, asked)

    def send(
        self, status: int, body: bytes | object, kind: str = "application/json; charset=utf-8", **headers: str
    ) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """A test reads what was asked, not a log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A client that goes away while the server hangs is what these tests are about.
    owner: EmbeddingServer

    def handle_error(self, *_: object) -> None:
        """The other end went away: that is what some tests do."""


class EmbeddingServer:
    """Serves from `__enter__` to `__exit__`: vectors made of words, unless `script` holds another answer."""

    def __init__(self, dimension: int = 64, port: int = 0) -> None:
        self.encoder = FakeEncoder(dimension)
        self.requests: list[Asked] = []
        self.arrived: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        self.script: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.connections: list[socket.socket] = []
        self.released = threading.Event()
        self.usual: Answer = vectors
        self._port = port

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", self._port), Handler)
        self._server.owner = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        # Its threads would go on answering on connections that stay open.
        with self.lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def then(self, *answers: Answer) -> None:
        """Answer the next requests so, one each."""
        for answer in answers:
            self.script.put(answer)

    def rows(self, texts: list[str]) -> list[dict[str, Any]]:
        """What a well-behaved server puts into `data`."""
        made = [self.encoder.encode(text, Deadline(PATIENCE)).tolist() for text in texts]
        # Not of unit length: whoever reads them has to see to that.
        return [
            {"object": "embedding", "index": number, "embedding": [3 * value for value in row]}
            for number, row in enumerate(made)
        ]


def vectors(handler: Handler, asked: Asked) -> None:
    handler.send(200, {"object": "list", "data": handler.server.owner.rows(asked.texts), "model": asked.body["model"]})


def shuffled(handler: Handler, asked: Asked) -> None:
    handler.send(200, {"data": handler.server.owner.rows(asked.texts)[::-1]})


def data(change: Callable[[list[dict[str, Any]]], object]) -> Answer:
    """Whatever `change` makes of the right rows."""
    return lambda handler, asked: handler.send(200, {"data": change(handler.server.owner.rows(asked.texts))})


def status(number: int, body: object = None, kind: str = "application/json", **headers: str) -> Answer:
    content = {"error": {"message": "not now", "code": None}} if body is None else body
    return lambda handler, _: handler.send(number, content, kind, **headers)


def raw(body: bytes, kind: str = "application/json") -> Answer:
    return lambda handler, _: handler.send(200, body, kind)


def hang(handler: Handler, asked: Asked) -> None:
    """No answer before the test is over."""
    del asked
    handler.server.owner.released.wait(PATIENCE)
    handler.close_connection = True


def drip(handler: Handler, asked: Asked) -> None:
    """One byte now and then, so that no read ever waits long."""
    del asked
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.owner.released.wait(0.03):
        handler.wfile.write(b" ")
    handler.close_connection = True


def truncated(handler: Handler, asked: Asked) -> None:
    """Half of the body that was announced."""
    body = json.dumps({"data": handler.server.owner.rows(asked.texts)}).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def dropped(handler: Handler, asked: Asked) -> None:
    """The connection is closed without a word."""
    del asked
    handler.close_connection = True
