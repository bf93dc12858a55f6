from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from agora.errors import ConfigError

_HINT = "Give the address of the API, as in http://localhost:11434/v1."
_USUAL = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a model is served: `host` with its port unless that is the scheme's own, and the `base` of its API."""

    host: str
    base: str
    loopback: bool


def read_address(given: str, endings: tuple[str, ...], usual: str) -> Address:
    """The address that `given` means: without `endings`, which the library appends; `usual` in place of no path.

    Raises: ConfigError without a word of what may be a secret in it.
    """
    try:
        parts = urlsplit(given.strip())
        name, port = (parts.hostname or "").lower(), parts.port
        name.encode("ascii")
    except ValueError:
        # What it says holds the address.
        parts, name, port = None, "", None
    if parts is None:
        raise ConfigError("model.url is no address that can be understood", hint=_HINT)
    if parts.scheme not in _USUAL or not name:
        raise ConfigError("model.url does not begin with http:// or https:// and a name", hint=_HINT)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            "model.url holds a user, a query or a fragment",
            hint="A key belongs into model.key, which no log and no error shows. " + _HINT,
        )
    shown = f"[{name}]" if ":" in name else name
    host = shown if port in {None, _USUAL[parts.scheme]} else f"{shown}:{port}"
    path = parts.path.rstrip("/")
    for ending in endings:
        path = path.removesuffix(ending).rstrip("/")
    return Address(host, f"{parts.scheme}://{host}{path or usual}", _is_loopback(name))


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
