"""The HTTP client under the official libraries: what may leave in it, and how much may come back."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from agora.errors import ModelAnswerUnusable
from agora.llm.address import Address
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    import httpx2

_LARGEST = 8 * 1024 * 1024
"""Bytes of an answer at most: far beyond what 200,000 tokens take."""

_SENT = frozenset({"host", "content-type", "content-length", "accept", "connection", "user-agent", "anthropic-version"})
"""Headers of the libraries that leave. Others tell of this machine, or come from variables that no setting names."""

LIMIT: ContextVar[Deadline] = ContextVar("LIMIT")
"""By when the request that this thread makes must be over."""


def make_client(address: Address, own: dict[str, str]) -> httpx2.Client:
    """A client for `address` that sends `own` headers, and of those that a library adds only harmless ones.

    A body larger than 8 MiB is ModelAnswerUnusable, one that drips beyond `LIMIT` is DeadlineExceeded: a timeout counts
    from the last byte, and such a server would never meet one.
    """
    import httpx2  # noqa: PLC0415 - only who asks a server needs it

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, stream: httpx2.SyncByteStream) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for chunk in self._stream:
                LIMIT.get().check()
                size += len(chunk)
                if size > _LARGEST:
                    raise ModelAnswerUnusable(f"{address.host} answers more than {_LARGEST >> 20} MiB")
                yield chunk

        def close(self) -> None:
            self._stream.close()

    def before(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _SENT]:
            del request.headers[name]
        # Compressed, a small answer could be a large one.
        request.headers.update({"accept-encoding": "identity", **own})

    def after(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelAnswerUnusable(f"{address.host} answers compressed, which was not asked for")
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = Bounded(response.stream)

    return httpx2.Client(
        # The key and the texts go to the address that was configured, and to no other.
        follow_redirects=False,
        # A proxy of the environment is for other machines.
        trust_env=not address.loopback,
        # Without TLS, no 20 ms for reading the system's certificates; this context would trust nobody.
        verify=address.base.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        event_hooks={"request": [before], "response": [after]},
    )
