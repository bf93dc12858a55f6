"""One MCP client over standard input and output, served by this process alone."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agora.cli.quick import SWITCH_SECONDS
from agora.errors import AgoraError

OPEN_AFTER_SECONDS = 0.05
"""So long after it can be spoken to a server opens its store: the client's first messages are answered before."""


def serve_stdio(options: Mapping[str, str], *, reason: str = "") -> int:
    """The exit status of a server for the client at the other end of the process's pipes.

    `options` maps settings to what the command line gave; `reason` is why there is no shared server,
    for the status. A store that cannot be opened fails each call with the
    reason; if there was no call, that is raised at the end.

    Raises: ConfigError; what opening the store and the model raises.
    """
    # Before anything else is imported: what prints on import must not reach the protocol's stream.
    from agora.transport.stdio import claim_stdio  # noqa: PLC0415 - not at the top, as said

    claim_stdio()
    # The imports make a hundred thousand objects that stay: collecting among them costs an eighth of the start.
    gc.disable()
    sys.setswitchinterval(SWITCH_SECONDS)
    _fewer_arenas()
    return _serve(options, reason)


def _fewer_arenas() -> None:
    """Let glibc keep two heaps and not eight for each core: calls run in many threads, each rarely."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - nothing else at the start needs it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 2)


_M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def _serve(options: Mapping[str, str], reason: str) -> int:
    from agora.app.agora import Agora  # noqa: PLC0415 - after the streams are claimed
    from agora.config.load import load_settings  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging, get_logger  # noqa: PLC0415 - as above
    from agora.protocol.lifecycle import Lifecycle, State  # noqa: PLC0415 - as above
    from agora.protocol.server import make_server  # noqa: PLC0415 - as above
    from agora.transport.options import ConnectionOptions  # noqa: PLC0415 - as above
    from agora.transport.serve import run_stdio  # noqa: PLC0415 - as above

    loaded = load_settings(options)
    configure_logging(loaded.settings)
    agora = Agora(loaded, late=True, server=lambda: {"shared": False, **({"reason": reason} if reason else {})})
    lifecycle = Lifecycle(agora.log, "stdio")
    connection = agora.connection(folder=Path.cwd(), lifecycle=lifecycle)
    log = get_logger("agora.serve")

    def opened() -> None:
        gc.freeze()
        gc.enable()

    def on_ready() -> None:
        lifecycle.move(State.LISTENING)
        log.debug("listening", namespace=connection.namespace, rule=connection.rule)
        asyncio.get_running_loop().call_later(OPEN_AFTER_SECONDS, agora.open_soon, opened)
        agora.start_maintenance()

    def on_stop() -> None:
        lifecycle.move(State.SHUTDOWN)
        if not lifecycle.served:
            # Nobody was told what is wrong with the store: whoever started this must be.
            with suppress(AgoraError):
                agora.open_now()
        agora.close()

    status = run_stdio(
        lambda: make_server(agora.services(), connection, agora.log),
        on_ready=on_ready,
        on_stop=on_stop,
        options=ConnectionOptions(drain_seconds=loaded.settings.server.drain),
        max_line_bytes=loaded.settings.limits.line_bytes,
    )
    if agora.failure is not None and not lifecycle.served:
        raise agora.failure
    return status
