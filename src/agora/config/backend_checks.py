"""What a backend's values must be, as they are written and after variables were put in.

Each check gives the problem in words, without the value, which may be a secret; None if there is none.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Names of backends; they stand before tools' names, apart by `__`."""

OWN_NAME = "agora"

_LONGEST_PATTERN = 128
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
_OURS = frozenset(
    {
        *("accept", "connection", "content-length", "content-type", "host", "last-event-id", "mcp-protocol-version"),
        *("mcp-method", "mcp-name", "mcp-session-id", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OUR_PREFIX = "mcp-param-"
_TELLS = frozenset({"authorization", "proxy-authorization", "cookie"})
_SECRET_WORDS = frozenset({"key", "passwd", "pass", "pwd", "pat", "credential", "credentials"})
_SECRET_ENDS = ("token", "secret", "password", "apikey")
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def is_secret_name(name: str) -> bool:
    """Whether what has this name, a variable or a header, is by its name a secret: `GITHUB_TOKEN`, `x-api-key`."""
    words = [word.lower() for word in _BETWEEN_WORDS.split(name)]
    return name.lower() in _TELLS or any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in words)


def of_name(name: str) -> str | None:
    """What is wrong with the name of a backend."""
    if not NAME.fullmatch(name):
        return "has to be 1 to 64 letters of English, digits and . _ -, and begin with a letter or a digit"
    if "__" in name:
        return "may not hold `__`: that stands between a backend's name and a tool's"
    return "is Agora's own name" if name.casefold() == OWN_NAME else None


def of_pattern(pattern: str) -> str | None:
    """What is wrong with a pattern of tools' names."""
    if not pattern or len(pattern) > _LONGEST_PATTERN or pattern != pattern.strip():
        return f"has to be 1 to {_LONGEST_PATTERN} characters, without blanks around them"
    if "," in pattern or not pattern.isprintable():
        return "is more than one: write a list of them"
    return "only knows `*`, for any characters" if set(pattern) & set("?[]{}!") else None


def of_url(url: str, *, secret: bool) -> str | None:
    """What is wrong with an address; `secret`: something goes along that nobody else may read."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if not url.isprintable() or " " in url or parts.scheme not in {"http", "https"}:
        return "has to begin with http:// or https://, and to hold no blanks"
    if parts.username is not None or parts.password is not None:
        return "may not hold a user or a password: write bearer_token or a header"
    if not host or port == 0:
        return "names no host"
    exposed = secret and parts.scheme == "http" and not is_loopback(host)
    return (
        "would send the secret unencrypted over the network: use https, or a host of this machine" if exposed else None
    )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def of_header_name(name: str) -> str | None:
    """What is wrong with the name of a header."""
    if not _HEADER_NAME.fullmatch(name):
        return "is no name of a header"
    return "is set by Agora itself" if is_own_header(name) else None


def is_own_header(name: str) -> bool:
    """Whether Agora itself sets this header."""
    return name.lower() in _OURS or name.lower().startswith(_OUR_PREFIX)


def of_header_value(value: str) -> str | None:
    """What is wrong with the value of a header, or with a bearer token."""
    if not value.strip():
        return "is empty"
    return (
        None if _HEADER_VALUE.fullmatch(value) else "has blanks around it, a line end, or a character that is not ASCII"
    )


def of_variable(name: str) -> str | None:
    """What is wrong with the name of an environment variable."""
    return "is no name of a variable" if not name or "=" in name or "\0" in name else None


def of_command(text: str) -> str | None:
    """What is wrong with a command."""
    if " " in text.strip() and not set(text) & set("/\\"):
        return "holds a blank: what a program is told goes into args"
    return of_argument(text)


def of_argument(text: str) -> str | None:
    """What is wrong with something that a program is given."""
    return "holds a zero byte" if "\0" in text else None
