"""Agora's transport and protocol layer over stdio, with tools that do nothing."""

from __future__ import annotations

import sys
from typing import Any

from agora.protocol.context import Connection
from agora.protocol.server import make_server
from agora.protocol.tools.handlers import Arguments, Limits, Tools
from agora.testing import SilentLog
from agora.transport.serve import run_stdio


class Nothing(Tools):
    """Answers every call with nothing, at once."""

    def __init__(self) -> None:
        self.limits = Limits(content_bytes=1_000, query_chars=1_000, call_seconds=60)

    def call(self, name: str, given: Arguments, connection: Connection, **calling: Any) -> dict[str, Any]:
        """Nothing."""
        del name, given, connection, calling
        return {}


connection = Connection(at_ms=0, namespace="bench")
sys.exit(run_stdio(lambda: make_server(Nothing(), connection, SilentLog())))
