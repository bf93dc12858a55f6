"""Rules that people write for agents: CLAUDE.md, AGENTS.md, GEMINI.md, Cursor's `.mdc` and `.cursorrules`.

Each section, from a heading to the next one, becomes a note of kind `rule` under a key of file and headings, so that
an edited file replaces what it said before. What stands before the first heading is a section too. The front matter of
a Cursor rule (`description`, `globs`, `alwaysApply`) goes into the metadata of each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from agora.exchange.events import Event, LeftOut, Text
from agora.exchange.foreign.reading import whole_text
from agora.exchange.sources import Source

_NAMES = frozenset({".md", ".mdc", ".markdown", ".cursorrules"})
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*\r?\n?\Z")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_POINTER = re.compile(r"\s*[\w./-]+\.md\s*\Z")


def recognises(head: bytes, name: str) -> bool:
    """Whether a file of this name that begins so holds rules."""
    path = PurePosixPath(name)
    named = path.suffix.lower() in _NAMES or path.name.lower() in _NAMES
    return named or re.search(rb"(?m)^#{1,6}[ \t]+\S", head) is not None


def read(source: Source) -> Iterator[Event]:
    """The sections of a file of rules."""
    text, front = whole_text(source), dict[str, Any]()
    if _POINTER.match(text):
        # Where links cannot be made, the file that should be one holds the other's name.
        yield LeftOut("pointers to other files")
        return
    if found := _FRONT.match(text):
        front, text = _front_matter(found[1]), text[found.end() :]
    seen: set[str] = set()
    for headings, section in _sections(text):
        body = section.split("\n", 1)[1] if headings and "\n" in section else "" if headings else section
        if not body.strip():
            if section.strip():
                yield LeftOut("headings without text")
            continue
        path = " › ".join(headings)
        key = first = unicodedata.normalize("NFC", f"{source.name}#{'/'.join(headings)}")
        times = 1
        while key in seen:
            # Also of a heading that is written so: of two under one key each import would take both for changes.
            times += 1
            key = f"{first} ({times})"
        seen.add(key)
        yield Text(
            f"section {path!r}" if path else "before the first heading",
            section.strip("\r\n"),
            title=path or str(front.get("description") or PurePosixPath(source.name).name),
            kind="rule",
            metadata=front | ({"headings": list(headings)} if headings else {}),
            key=key,
        )


def _sections(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The headings above each section and its text, its own heading included."""
    above: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        marks = _FENCE.match(line)
        if marks and (not fence or (marks[1].startswith(fence) and not line.strip(" \t\r\n`~"))):
            fence = "" if fence else marks[1]
        heading = None if fence or marks else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        yield tuple(name for _, name in above), "".join(lines)
        level = len(heading[1])
        above = [*(each for each in above if each[0] < level), (level, heading[2].strip())]
        lines = [line]
    yield tuple(name for _, name in above), "".join(lines)


def _front_matter(text: str) -> dict[str, Any]:
    """`key: value` lines and lists, as rules have them: no more of YAML than that."""
    found: dict[str, Any] = {}
    name = ""
    for line in text.splitlines():
        if item := re.match(r"\s*-\s+(.+)", line):
            if name and isinstance(found.get(name) or [], list):
                found[name] = [*(found.get(name) or []), _plain(item[1])]
        elif pair := re.match(r"([\w-]+):\s*(.*)", line):
            name = pair[1]
            found[name] = _plain(pair[2])
    return {key: value for key, value in found.items() if value not in ("", [])}


def _plain(text: str) -> str | bool:
    bare = text.strip()
    if bare in {"true", "false"}:
        return bare == "true"
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'" else bare
