"""Addresses and keys of servers that a section of the settings names, checked before anything is sent."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from agora.errors import ConfigError

_USUAL = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Location:
    """Where a server is: `host` with its port unless that is the scheme's own, and the `path` without a last `/`."""

    scheme: str
    host: str
    path: str
    loopback: bool


def read_location(section: str, given: str, hint: str) -> Location:
    """The location that the setting `section.url` means; `hint` says what a good one looks like.

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
        raise ConfigError(f"{section}.url is no address that can be understood", hint=hint)
    if parts.scheme not in _USUAL or not name:
        raise ConfigError(f"{section}.url does not begin with http:// or https:// and a name", hint=hint)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"{section}.url holds a user, a query or a fragment",
            hint=f"A key belongs into {section}.key, which no log and no error shows. {hint}",
        )
    shown = f"[{name}]" if ":" in name else name
    host = shown if port in {None, _USUAL[parts.scheme]} else f"{shown}:{port}"
    return Location(parts.scheme, host, parts.path.rstrip("/"), _is_loopback(name))


def checked_key(section: str, key: SecretStr | None) -> SecretStr | None:
    """The key of the setting `section.key`, if there is one.

    Raises: ConfigError if it cannot stand in a header; the HTTP library would show it in its error.
    """
    if key is None or not key.get_secret_value():
        return None
    if not all("!" <= mark <= "~" for mark in key.get_secret_value()):
        raise ConfigError(
            f"{section}.key holds a blank, a line end or a character outside ASCII, which no key has",
            hint="Copy the key alone, without quotes and without the line end.",
        )
    return key


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
