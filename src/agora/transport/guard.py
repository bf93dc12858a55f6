"""What an HTTP request must bring before the protocol sees it: a path, a Host, an Origin, a token, a size.

Each class is an ASGI application around another. They look at headers alone, so a request that is refused
costs no memory, no session and no thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agora.transport.address import PATH, Listener, is_loopback
from agora.transport.auth import TOKEN_FILE, Token, Tokens
from agora.transport.options import Log

TOKEN_KEY = "agora.token"  # noqa: S105 - the name of an entry
"""Where the ASGI scope of a request holds its `Token`; None if the server asks for none."""

_AUTHORITY = re.compile(rb"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_HTTP_PORT = 80


def refusal(
    status: int, code: str, message: str, hint: str, *, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An answer that says why there is none: a JSON-RPC error without an id, which clients show in words."""
    retryable = status in {429, 503}
    data = {"code": code, "message": message, "hint": hint, "retryable": retryable}
    error = {"code": -32600, "message": f"{message}. {hint}", "data": data}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=status, headers=headers)


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Every value of one header, in order; `name` in lower case."""
    return [value for key, value in scope["headers"] if key == name]


class OwnAddress:
    """Lets a request pass that was meant for this server and that no foreign web page made.

    `Host` must be a loopback name or the bound address with the bound port, or one of `hosts`: a page whose name
    was pointed at this machine (DNS rebinding) sends its own. `Origin`, which browsers send, must be absent,
    one of `origins`, or such an address with `http://` before it.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: Listener,
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
        log: Log,
        paths: Collection[str] = (PATH,),
    ) -> None:
        """`paths` are those at which there is something."""
        self._app = app
        self._paths = frozenset(paths)
        self._host = listener.host.encode()
        self._port = listener.port
        self._hosts = frozenset(name.encode() for name in hosts)
        self._origins = frozenset(origin.encode() for origin in origins)
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refused(scope)
        if answer is None:
            await self._app(scope, receive, send)
        else:
            self._log.debug("refused a request with %s", answer.status_code)
            await answer(scope, receive, send)

    def _refused(self, scope: Scope) -> JSONResponse | None:
        if not self._known(header_values(scope, b"host")):
            return refusal(
                403,
                "host_refused",
                "This server does not answer to the Host of the request",
                f"Use the address it listens at, port {self._port}, or add the name to http.hosts in agora.toml.",
            )
        if not all(self._welcome(origin.lower()) for origin in header_values(scope, b"origin")):
            return refusal(
                403,
                "origin_refused",
                "Pages of this Origin may not use this server",
                "Add the origin to http.origins in agora.toml if it is yours.",
            )
        if scope["path"] not in self._paths:
            return refusal(404, "not_found", "There is nothing at this path", f"The endpoint is {PATH}.")
        return None

    def _known(self, hosts: Sequence[bytes]) -> bool:
        if len(hosts) != 1:
            return False
        host = hosts[0].lower()
        name = host.rpartition(b":")[0] if re.search(rb":[0-9]+$", host) else host
        return self._own(host) or host in self._hosts or name in self._hosts

    def _own(self, authority: bytes) -> bool:
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        host = found["six"] or found["name"]
        return int(found["port"] or _HTTP_PORT) == self._port and (host == self._host or is_loopback(host.decode()))

    def _welcome(self, origin: bytes) -> bool:
        scheme, _, authority = origin.partition(b"://")
        return origin in self._origins or (scheme == b"http" and self._own(authority))


class BearerToken:
    """Lets a request pass that shows one of `tokens`, and leaves it in the scope; without `tokens`, every request."""

    def __init__(self, app: ASGIApp, tokens: Tokens | None, log: Log) -> None:
        self._app = app
        self._tokens = tokens
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token: Token | None = None
        if self._tokens is not None:
            shown = header_values(scope, b"authorization")
            token = self._tokens.shown(shown)
            if token is None:
                self._log.debug("refused a request with 401")
                what = "The bearer token is not one of this server's" if shown else "A bearer token is needed"
                answer = refusal(
                    401,
                    "unauthorized",
                    what,
                    "Send `Authorization: Bearer TOKEN`; `agora token` prints the token on the server's machine,"
                    f" where the file `{TOKEN_FILE}` in the data folder holds it.",
                    headers={"WWW-Authenticate": 'Bearer realm="agora"'},
                )
                await answer(scope, receive, send)
                return
        await self._app({**scope, TOKEN_KEY: token}, receive, send)


class BodySize:
    """Lets a request pass whose body, as declared, has at most `limit` bytes; who declares none is counted later."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        sizes = header_values(scope, b"content-length") if scope["type"] == "http" else []
        if any(int(size) > self._limit for size in sizes):
            answer = refusal(
                413,
                "payload_too_large",
                f"The body is larger than {self._limit} bytes",
                "Send less at a time, or raise limits.line_bytes in agora.toml.",
            )
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)
