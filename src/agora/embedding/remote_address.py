from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from agora.errors import ConfigError

_HINT = "Give the address up to and with /v1, as in http://localhost:11434/v1."
_USUAL = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where an embedding server is: `host` with its port unless that is the scheme's own, and the whole `url`."""

    host: str
    url: str
    loopback: bool


def read_address(given: str) -> Address:
    """The address of `/v1/embeddings` that `given` means, with or without its last parts.

    Raises: ConfigError without a word of what may be a secret in it.
    """
    try:
        parts = urlsplit(given)
        name, port = (parts.hostname or "").lower(), parts.port
        name.encode("ascii")
    except ValueError as error:
        raise ConfigError("embedding.url is no address that can be understood", hint=_HINT) from error
    if parts.scheme not in _USUAL or not name:
        raise ConfigError("embedding.url does not begin with http:// or https:// and a name", hint=_HINT)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            "embedding.url holds a user, a query or a fragment",
            hint="A key belongs into embedding.key, which no log and no error shows. " + _HINT,
        )
    shown = f"[{name}]" if ":" in name else name
    host = shown if port in {None, _USUAL[parts.scheme]} else f"{shown}:{port}"
    path = parts.path.rstrip("/") or "/v1"
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    return Address(host, f"{parts.scheme}://{host}{path}", _is_loopback(name))


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
