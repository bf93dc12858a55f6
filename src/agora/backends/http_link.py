"""Requests to one address: what is known when one fails, and where a redirect may lead."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import httpx2

import agora
from agora.config.backends import BackendTable

CONNECT_SECONDS = 1.0
"""Seconds at most for name lookup and connection, and again for TLS: an outage is told in about that time."""

_KEEP_SECONDS = 4.0
"""Seconds that an idle connection is kept. Node and uvicorn close after 5: who closes first cuts off no request."""

_REDIRECTS = 5
_SAME_METHOD = frozenset({307, 308})
_FOR_READING = frozenset({301, 302, 303, 307, 308})

_OURS = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that frame a message: a table that sets them would cut messages in the wrong place."""


for _name in ("httpx2", "httpcore2"):
    # They log whole addresses and headers, in which there are keys.
    logging.getLogger(_name).setLevel(logging.WARNING)


class Cut(Exception):
    """A request that got no whole answer: why, and whether anything of it can have arrived."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class WrongTable(Exception):
    """The table cannot be used for a request: which part, and why. Never its value."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part} {reason}")


class Link:
    """A client for the address of one backend, with its headers and its token. On one event loop.

    Neither proxies nor names and passwords of the environment are used; certificates are checked against those of the
    system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Reads certificates and imports the client: make it in a thread.

    Raises: WrongTable.
    """

    def __init__(self, backend: BackendTable) -> None:
        try:
            self._url = httpx2.URL(backend.url)
        except (httpx2.InvalidURL, UnicodeError):
            raise WrongTable("url", "is no address") from None
        if self._url.scheme not in {"http", "https"} or not self._url.host:
            raise WrongTable("url", "is no address that begins with http:// or https://")
        connect = min(CONNECT_SECONDS, backend.start_timeout)
        self._timeout = httpx2.Timeout(None, connect=connect)
        secure = self._url.scheme == "https"
        self._client = httpx2.AsyncClient(
            headers=_headers(backend),
            timeout=self._timeout,
            follow_redirects=False,
            trust_env=False,
            transport=httpx2.AsyncHTTPTransport(
                # Without TLS, no 20 ms for reading the system's certificates; this context would trust nobody.
                verify=httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                limits=httpx2.Limits(
                    max_connections=None,
                    max_keepalive_connections=backend.concurrency + 1,
                    keepalive_expiry=_KEEP_SECONDS,
                ),
                socket_options=_keepalive(),
            ),
        )

    async def request(
        self, method: str, headers: Mapping[str, str | bytes], content: bytes | None = None, *, seconds: float | None
    ) -> httpx2.Response:
        """The answer, its body still to be read and the answer to be closed. `seconds` bounds each wait for bytes.

        A redirect within the same origin is followed if the method stays the same; any other comes back as it is.

        Raises: Cut.
        """
        url = self._url
        for _ in range(_REDIRECTS):
            response = await self._once(method, url, headers, content, seconds)
            following = self._following(method, url, response)
            if following is None:
                return response
            await response.aclose()
            url = following
        raise Cut(f"more than {_REDIRECTS} redirects", sent=False)

    async def close(self) -> None:
        """Close all connections, also those in use."""
        await self._client.aclose()

    async def _once(
        self,
        method: str,
        url: httpx2.URL,
        headers: Mapping[str, str | bytes],
        content: bytes | None,
        seconds: float | None,
    ) -> httpx2.Response:
        sent = False

        async def trace(event: str, _info: Mapping[str, Any]) -> None:
            nonlocal sent
            # Before the first byte: from here on nobody can say what arrived.
            sent = sent or event.endswith("send_request_headers.started")

        timeout = self._timeout if seconds is None else httpx2.Timeout(seconds, connect=self._timeout.connect)
        try:
            request = self._client.build_request(
                method,
                url,
                content=content,
                headers=[
                    (name.encode(), value if isinstance(value, bytes) else value.encode())
                    for name, value in headers.items()
                ],
                timeout=timeout,
                extensions={"trace": trace},
            )
            return await self._client.send(request, stream=True)
        except httpx2.LocalProtocolError:
            # Its text shows headers; h11 refuses them before a byte is written.
            raise Cut("a header cannot be sent: look at `headers`", sent=False) from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError) as error:
            raise Cut(_reason(error), sent=sent) from None

    def _following(self, method: str, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL | None:
        """Where a redirect leads, if it may be followed: headers and bodies were meant for this origin alone."""
        if response.status_code not in (_FOR_READING if method == "GET" else _SAME_METHOD):
            return None
        try:
            to = url.join(response.headers["location"])
        except (KeyError, httpx2.InvalidURL, UnicodeError):
            return None
        same = (to.scheme, to.host, to.port, to.userinfo or url.userinfo) == (
            url.scheme,
            url.host,
            url.port,
            url.userinfo,
        )
        return to.copy_with(userinfo=url.userinfo, fragment=None) if same else None


async def pieces(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """The body as it comes, unpacked.

    Raises: Cut.
    """
    try:
        async with aclosing(response.aiter_bytes()) as body:
            async for piece in body:
                yield piece
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        raise Cut(_reason(error), sent=True) from None


def _headers(backend: BackendTable) -> list[tuple[bytes, bytes]]:
    found = [(b"User-Agent", f"agora/{agora.__version__}".encode())]
    for name, value in backend.headers:
        if name.lower() in _OURS:
            raise WrongTable("headers", f"may not hold {name!r}")
        if not _is_name(name):
            raise WrongTable("headers", f"has {name[:40]!r}, which is no name of a header")
        found = [had for had in found if had[0].lower() != name.lower().encode()]
        found.append((name.encode(), _value(value, f"headers: the value of {name!r}")))
    if backend.bearer_token is not None:
        if any(name.lower() == b"authorization" for name, _ in found):
            raise WrongTable("bearer_token", "and `headers` both say who asks; keep one of them")
        found.append((b"Authorization", b"Bearer " + _value(backend.bearer_token, "bearer_token")))
    return found


def _is_name(name: str) -> bool:
    return bool(name) and name.isascii() and all(mark.isalnum() or mark in "!#$%&'*+-.^_`|~" for mark in name)


def _value(value: str, what: str) -> bytes:
    if any((mark < " " and mark != "\t") or mark == "\x7f" for mark in value):
        raise WrongTable(what, "has characters that a header cannot hold, as a line end")
    return value.strip().encode()


def _keepalive() -> list[tuple[int, int, int]]:
    """Options that let the system notice within two minutes that a server behind an idle stream is gone."""
    found = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for names, seconds in ((("TCP_KEEPIDLE", "TCP_KEEPALIVE"), 60), (("TCP_KEEPINTVL",), 15), (("TCP_KEEPCNT",), 4)):
        option = next((getattr(socket, name) for name in names if hasattr(socket, name)), None)
        if option is not None:
            found.append((socket.IPPROTO_TCP, option, seconds))
    return found


def _reason(error: BaseException) -> str:
    """Why, in the words of the cause: the client's own are often `All connection attempts failed`."""
    if isinstance(error, httpx2.TimeoutException):
        return "no connection in time" if isinstance(error, httpx2.ConnectTimeout) else "nothing came in time"
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            said = getattr(cause, "verify_message", None)
            return (
                f"its certificate is not trusted ({said})"
                if said
                else f"it speaks no TLS ({cause.reason or 'the connection broke off'})"
            )
        if isinstance(cause, socket.gaierror):
            return "its name is not known"
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there"
    return f"{error}" or "the connection broke off"


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what led to it, outermost first."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop(0)
        if one is None or one in found or len(found) > 50:
            continue
        found.append(one)
        left += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
    return found
