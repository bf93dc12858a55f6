"""A TOML file: its text, its tables, and the line on which each of its keys stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agora.errors import ConfigError

Keys = tuple[str | int, ...]
"""Where a value stands: names of tables and keys, and the number of a table in a list of tables."""

_PLACE = re.compile(r"\s*\(at line (?P<line>\d+), column \d+\)|\s*\(at end of document\)")


def read_toml(path: Path, *, unreadable: str) -> tuple[str, dict[str, Any]]:
    """Text and tables of the file at `path`; `unreadable` is the hint if it cannot be read.

    Raises: FileNotFoundError, NotADirectoryError; ConfigError, whose message begins with file and line.
    """
    try:
        # Windows editors put a byte order mark before the text.
        text = path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise cannot_be_read(path, error, unreadable) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text", hint="Save the file as UTF-8.") from error
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, error) from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deep", hint="Write tables in place of nested lists.") from error


def cannot_be_read(path: Path, error: OSError, hint: str) -> ConfigError:
    """That the file at `path` cannot be read, and why."""
    return ConfigError(f"{path}: cannot be read: {error.strerror or error}", hint=hint)


def _not_toml(path: Path, text: str, error: tomllib.TOMLDecodeError) -> ConfigError:
    message = str(error)
    place = _PLACE.search(message)
    line = (place and place["line"]) or text.count("\n") + 1
    return ConfigError(
        f"{path}:{line}: is no valid TOML: {_PLACE.sub('', message)}",
        hint='A text value needs quotes, as in level = "info".',
    )


# Together they match any text of TOML, so that nothing inside a text or a comment is taken for structure.
_TOKEN = re.compile(
    r'(?P<text>"""(?:\\[\s\S]|[^\\])*?"{3,5}'
    r"|'''[\s\S]*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*')"
    r"|(?P<blank>[ \t\r]+|#[^\n]*)"
    r"|(?P<end>\n)"
    r"|(?P<mark>\[\[|\]\]|[\[\]{}=.])"
    r"|(?P<word>[^\s\"'\[\]{}=.#]+|.)"
)


class Lines:
    """The line of each key in a text that is valid TOML. Keys inside a value have the line where the value begins."""

    def __init__(self, text: str) -> None:
        self._lines = dict(reversed([*_lines(text)]))

    def of(self, *keys: str | int) -> int | None:
        """The line of the key, or of the nearest table above it that has one; None if none has."""
        for end in range(len(keys), 0, -1):
            if keys[:end] in self._lines:
                return self._lines[keys[:end]]
        # A table that has no header of its own begins with what is first in it.
        return min((line for known, line in self._lines.items() if known[: len(keys)] == keys), default=None)


def _lines(text: str) -> Iterator[tuple[Keys, int]]:
    """Each key and table with its line, in the order of the file."""
    table: Keys = ()
    counts: dict[Keys, int] = {}
    for line, statement in _statements(text):
        opening = statement[0]
        if opening in {"[", "[["}:
            table = _resolved(_names(statement[1:]), counts, is_list=opening == "[[")
            yield table, line
        else:
            yield (*table, *_names(statement)), line


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """What stands before `=` or inside the brackets of each line that sets a key or opens a table."""
    line, start, depth, in_value = 1, 1, 0, False
    statement: list[str] = []
    for match in _TOKEN.finditer(text):
        kind, found = match.lastgroup, match[0]
        if kind == "end":
            if depth == 0:
                if statement:
                    yield start, statement
                statement, in_value = [], False
        elif in_value:
            if kind == "mark":
                depth += found.count("[") + found.count("{") - found.count("]") - found.count("}")
        elif found == "=":
            in_value = True
        elif kind != "blank" and found not in {"]", "]]"}:
            start = start if statement else line
            statement.append(found)
        line += found.count("\n")
    if statement:
        yield start, statement


def _names(tokens: list[str]) -> tuple[str, ...]:
    return tuple(_unquoted(each) for each in tokens if each != ".")


def _unquoted(key: str) -> str:
    return str(tomllib.loads(f"key = {key}")["key"]) if key[0] in "\"'" else key


def _resolved(names: tuple[str, ...], counts: dict[Keys, int], *, is_list: bool) -> Keys:
    """The table that a header names: where a name is that of a list, the last table of the list."""
    keys: Keys = ()
    for name in names[:-1]:
        keys = (*keys, name)
        if keys in counts:
            keys = (*keys, counts[keys] - 1)
    keys = (*keys, names[-1])
    if is_list:
        counts[keys] = counts.get(keys, 0) + 1
        return (*keys, counts[keys] - 1)
    return keys
