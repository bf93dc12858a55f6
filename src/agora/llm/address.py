from __future__ import annotations

from dataclasses import dataclass

from agora.config.served import read_location

_HINT = "Give the address of the API, as in http://localhost:11434/v1."


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
    found = read_location("model", given, _HINT)
    path = found.path
    for ending in endings:
        path = path.removesuffix(ending).rstrip("/")
    return Address(found.host, f"{found.scheme}://{found.host}{path or usual}", found.loopback)
