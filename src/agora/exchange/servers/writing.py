"""Tables in TOML, put at the end of a file that is left as it is."""

from __future__ import annotations

import os
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agora.config.backend_reading import read_tables
from agora.config.backends import KEY, BackendTable
from agora.errors import ConfigError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


_BY_HAND = "Add the tables by hand: --dry-run shows them."


def rendered(name: str, tables: Iterable[Mapping[str, Any]]) -> str:
    """The tables as `[[name]]`, with a blank line before each; tables in them come last, as `[name.key]`.

    What is empty is left out. Characters that cannot be seen are written as escapes.
    """
    lines: list[str] = []
    for table in tables:
        lines += ["", f"[[{name}]]"]
        inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
        lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in inner]
        for key, pairs in inner.items():
            if pairs:
                lines += [
                    f"[{name}.{_key(key)}]",
                    *(f"{_key(each)} = {_value(value)}" for each, value in pairs.items()),
                ]
    return "".join(f"{line}\n" for line in lines)


def appended(old: bytes, text: str) -> bytes:
    """`old` as it is, byte for byte, and `text` after it, with the line ends that `old` has."""
    line_end = b"\r\n" if b"\r\n" in old else b"\n"
    begin = line_end if old and not old.endswith(b"\n") else b""
    if not old.strip():
        text = text.lstrip("\n")
    return old + begin + text.encode("utf-8").replace(b"\n", line_end)


def checked(path: Path, old: bytes, new: bytes) -> tuple[BackendTable, ...]:
    """The backends of the file at `path` with the contents `new`, which otherwise says what `old` says.

    Raises: ConfigError if it would not, or could not be read.
    """
    text = new.decode("utf-8-sig")
    before = tomllib.loads(old.decode("utf-8-sig"))
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path}: no table can be added at its end: {error}; nothing was written",
            hint=f"If the file has `{KEY} = [...]` on one line, write a table [[{KEY}]] for each in its place.",
        ) from error
    found = read_tables(path, text, tables.pop(KEY, []))
    before.pop(KEY, None)
    if repr(tables) != repr(before):
        raise ConfigError(f"{path}: adding tables would change what it says; nothing was written", hint=_BY_HAND)
    return found


def put(path: Path, old: bytes | None, new: bytes) -> None:
    """Replace the file at `path`, whose content is `old` (None: there is none), by `new`, whole or not at all.

    Only the user may read it then. A link stays one, and what it leads to is replaced.

    Raises: ConfigError if it cannot be written, or holds something else than `old` by now.
    """
    target = path.resolve() if path.is_symlink() else path
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(new)
                file.flush()
                os.fsync(file.fileno())
            is_same = (target.read_bytes() if target.exists() else None) == old
            if is_same:
                part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror or error}", hint="Change its permissions, or use --dry-run."
        ) from error
    if not is_same:
        raise ConfigError(f"{path}: was changed meanwhile; nothing was written", hint="Run the command again.")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(int(value) if isinstance(value, float) and value.is_integer() else value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(type(value).__name__)


def _text(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
