"""Errors about a backend that is reached by HTTP, in words that hold none of its secrets."""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from agora.config.backends import BackendTable
from agora.errors import BackendError, BackendProtocolError, BackendUnavailable, OutcomeUnknown
from agora.ports.backends import SessionForgotten

_SHOWN = 300
"""Characters of the server's own words at most."""

_SHORTEST_SECRET = 6
"""Characters from which a part of a header counts as a secret: shorter ones stand in every text."""

_LONG = 16
"""Characters from which a part of a path may be a key."""

_NO_SUCH_SESSION = re.compile(
    r"\b(no|not|in?valid|missing|unknown|expired|terminated|closed|without|bad)\b.{0,60}\bsession\b"
    r"|\bsession\b.{0,60}\b(no|not|in?valid|missing|unknown|expired|terminated|closed|required)\b"
    r"|\bnot (yet )?initiali[sz]ed\b",
    re.IGNORECASE | re.DOTALL,
)
"""How servers say with status 400 that they know no such session; in use are the words of the SDKs and of FastMCP."""


class Wording:
    """What goes wrong with one backend, as errors. Nothing of its address but scheme, host and port is shown."""

    def __init__(self, backend: BackendTable) -> None:
        self._name = backend.name
        self._token = backend.bearer_token is not None
        self.origin = origin(backend.url)
        self._secrets = _secrets(backend)

    def plain(self, text: str) -> str:
        """`text` on one line, short, printable, and without the secrets of the table."""
        # Before it is cut: half a secret is one too.
        for secret in self._secrets:
            text = text.replace(secret, "********")
        line = " ".join("".join(mark if mark.isprintable() else " " for mark in text[: 8 * _SHOWN]).split())
        return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"

    def unreachable(self, reason: str) -> BackendUnavailable:
        """The message did not leave: there is no connection to the server."""
        return BackendUnavailable(
            self._name,
            f"{self.origin} cannot be reached: {self.plain(reason)}",
            hint=f"See whether the server runs, and look at `url` of the backend {self._name!r}.",
        )

    def forgotten(self) -> SessionForgotten:
        """The server lives, and the session does not."""
        return SessionForgotten(self._name, "it knows the session no longer", hint="Try again: a new one is begun.")

    def unavailable(self, reason: str, hint: str | None = None) -> BackendUnavailable:
        """The message was not dealt with, and could not be."""
        return BackendUnavailable(self._name, self.plain(reason), hint=hint)

    def unknown(self, reason: str) -> OutcomeUnknown:
        """The message left, and nobody knows what became of it."""
        return OutcomeUnknown(self._name, self.plain(reason))

    def wrong(self, reason: str, hint: str | None = None) -> BackendProtocolError:
        """What came is not what the protocol asks for."""
        return BackendProtocolError(self._name, self.plain(reason), hint=hint)

    def too_large(self, largest: int) -> BackendProtocolError:
        """An answer of more than `largest` bytes."""
        return self.wrong(
            f"it sends more than {largest >> 20} MiB at once, which is not read",
            "Ask for less at a time. What the call asks for may have happened.",
        )

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes, *, first: bool) -> BackendError:
        """The error for a status that is none of success, where the body is no answer; `first` for `initialize`."""
        said = f": {words}" if (words := _words(headers, body)) else ""
        where = f"the backend {self._name!r}"
        if status in {401, 403}:
            asks = f"; it asks for {asked}" if (asked := headers.get("www-authenticate")) else ""
            shown = "refuses what it is shown" if self._token else "wants to know who asks"
            return self.unavailable(
                f"{self.origin} {shown} (status {status}){asks}{said}",
                f"Set `bearer_token` or `headers` of {where}, best as ${{VARIABLE}}, to what this server accepts.",
            )
        if status in {429, 503}:
            wait = wait_asked(headers.get("retry-after"))
            later = f"in {math.ceil(wait)} s" if wait else "later"
            return BackendUnavailable(
                self._name,
                self.plain(f"it is busy (status {status}){said}"),
                hint=f"Try again {later}.",
                retry_after=wait or 0.0,
            )
        if 300 <= status < 400:
            to = origin(headers.get("location", ""))
            return self.wrong(
                f"it sends to {to or 'another address'} (status {status}), which is not followed",
                f"Set `url` of {where} to the final address, if you trust it: the token would go there too.",
            )
        if status >= 500:
            return self.unknown(f"it failed (status {status}){said}")
        if first and status in {404, 405}:
            return self.wrong(
                f"there is no MCP server with Streamable HTTP at this address (status {status}){said}",
                f"Look at the path in `url` of {where}; the older transport HTTP+SSE is not supported.",
            )
        hint = "Send less in one call." if status == 413 else f"Look at `url` and `headers` of {where}."
        return self.wrong(f"it refuses the message (status {status}){said}", hint)


def no_such_session(error: Mapping[str, Any] | None, body: bytes) -> bool:
    """Whether an answer with status 400 says that the session is not, or no longer, known."""
    message = error.get("message") if error else None
    text = message if isinstance(message, str) else body[:4096].decode("utf-8", "replace")
    return _NO_SUCH_SESSION.search(text) is not None


def origin(url: str) -> str:
    """Scheme, host and port of an address; empty for something else. The rest of one may hold secrets."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not parts.scheme or not host:
        return ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{'' if port is None else f':{port}'}"


def wait_asked(header: str | None) -> float | None:
    """Seconds that a `Retry-After` asks for, as a number or as a date; None without one that can be read."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(header)
            seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _secrets(backend: BackendTable) -> tuple[str, ...]:
    """Texts of the table that no error may repeat, longest first."""
    found = {backend.bearer_token}
    with suppress(ValueError):
        parts = urlsplit(backend.url)
        found |= {parts.username, parts.password, parts.query, *re.split("[&=]", parts.query)}
        # Some services have no other key than a part of the path.
        found |= {part for part in parts.path.split("/") if len(part) >= _LONG}
    found |= {unquote_plus(text) for text in found if text}
    for _, value in backend.headers:
        found |= {value, *value.split()}
    return tuple(sorted({text for text in found if text and len(text) >= _SHORTEST_SECRET}, key=len, reverse=True))


def _words(headers: Mapping[str, str], body: bytes) -> str:
    """What the server says of its refusal; nothing of a web page."""
    if "html" in headers.get("content-type", "").lower():
        return "a web page"
    text = body[:4096].decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message", "detail", "error_description"):
        while isinstance(found, dict) and name in found:
            found = found[name]
    return found if isinstance(found, str) else ""
