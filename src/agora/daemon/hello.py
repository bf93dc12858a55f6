"""The one line that each side says before a client's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agora.errors import ConfigError

PROTOCOL = 1
"""Version of these two lines; `agora.shim.reaching.PROTOCOL` is the other side's."""

LIMIT = 1 << 20
"""Bytes of the first line: an environment may hold long values."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a process says of itself: a client's session, or with `command` a wish about the server.

    `options` are settings that its command line gave, `env` its `AGORA_*` variables, `cwd` where it works. `open`: a
    server has served it before, which is gone.
    """

    version: str
    pid: int
    cwd: str
    home: str
    options: Mapping[str, str]
    env: Mapping[str, str]
    command: str | None = None
    arguments: Mapping[str, Any] | None = None
    token: str = ""
    open: bool = False


def read(line: bytes) -> Hello:
    """What the line says.

    Raises: ConfigError for a line of another program, or of a release that says it in another way.
    """
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "agora" not in said:
        raise ConfigError("what connected is no client of Agora", hint="Start `agora serve`.")
    if said["agora"] != PROTOCOL:
        raise ConfigError(
            f"the server speaks version {PROTOCOL} of its own protocol, the client {said['agora']!r}",
            hint="Install one release of Agora for both, then run `agora server restart`.",
        )
    try:
        return Hello(
            version=_text(said["version"]),
            pid=int(said["pid"]),
            cwd=_text(said["cwd"]),
            home=_text(said["home"]),
            options=_texts(said.get("options", {})),
            env=_texts(said.get("env", {})),
            command=None if said.get("command") is None else _text(said["command"]),
            arguments=said.get("arguments"),
            token=_text(said.get("token", "")),
            open=said.get("open") is True,
        )
    except (KeyError, TypeError, ValueError):
        raise ConfigError("the client's first line cannot be used", hint="Start `agora serve`.") from None


def answer(said: Mapping[str, Any]) -> bytes:
    """The server's line."""
    return json.dumps({"agora": PROTOCOL, **said}).encode("ascii") + b"\n"


def older(one: str, other: str) -> bool:
    """Whether release `one` came before `other`; what is no number counts as none."""
    return _release(one) < _release(other)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else -1 for part in version.split("."))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError
    return {_text(name): _text(item) for name, item in value.items()}
