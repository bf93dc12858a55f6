from __future__ import annotations

from dataclasses import dataclass

from agora.config.served import read_location

_HINT = "Give the address up to and with /v1, as in http://localhost:11434/v1."


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
    found = read_location("embedding", given, _HINT)
    path = found.path or "/v1"
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    return Address(found.host, f"{found.scheme}://{found.host}{path}", found.loopback)
