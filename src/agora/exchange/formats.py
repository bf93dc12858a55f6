from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from agora.errors import InvalidInput
from agora.exchange.events import Event, Reader
from agora.exchange.foreign import chatgpt, claude_ai, claude_code, mem0, memory_server, rules
from agora.exchange.foreign.reading import ForeignReader
from agora.exchange.native import FORMAT
from agora.exchange.native_reader import NativeReader
from agora.exchange.sources import Source
from agora.model.caller import Origin


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that can be imported, and the highest origin that its texts may have."""

    what: str
    origin: Origin
    recognises: Callable[[bytes, str], bool]
    reader: Callable[[Source], Reader]


def _foreign(read: Callable[[Source], Iterator[Event]]) -> Callable[[Source], Reader]:
    return partial(ForeignReader, read=read)


def _is_native(head: bytes, name: str) -> bool:
    del name
    try:
        first = json.loads(head.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(first, dict) and first.get("format") == FORMAT


def _by_head(recognises: Callable[[bytes], bool]) -> Callable[[bytes, str], bool]:
    return lambda head, name: recognises(head)  # noqa: ARG005 - the name says nothing


FORMATS: dict[str, Format] = {
    "agora": Format("an export of Agora", "user", _is_native, NativeReader),
    "mcp-memory": Format(
        "the file of the reference MCP memory server",
        "agent",
        _by_head(memory_server.recognises),
        _foreign(memory_server.read),
    ),
    "claude-code": Format(
        "a transcript of Claude Code", "agent", _by_head(claude_code.recognises), _foreign(claude_code.read)
    ),
    # What comes from a service on the web was kept where no one here can vouch for it.
    "chatgpt": Format("an export of ChatGPT", "web", _by_head(chatgpt.recognises), _foreign(chatgpt.read)),
    "claude-ai": Format("an export of Claude.ai", "web", _by_head(claude_ai.recognises), _foreign(claude_ai.read)),
    "mem0": Format("an export of mem0", "agent", _by_head(mem0.recognises), _foreign(mem0.read)),
    "rules": Format(
        "rules for agents: CLAUDE.md, AGENTS.md, Cursor rules", "agent", rules.recognises, _foreign(rules.read)
    ),
}
"""Every format by name, in the order in which a file is compared with them."""


def recognise(source: Source) -> str:
    """The name of the format that the file's first bytes have.

    Raises: InvalidInput if it is none of them.
    """
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    for name, form in FORMATS.items():
        if form.recognises(head, source.name):
            return name
    raise InvalidInput(
        "file",
        "is in no format that can be imported" if source.head else "is empty",
        source.name,
        hint=f"Name its format with --format: {', '.join(FORMATS)}.",
    )


def known_format(name: str | None) -> str | None:
    """`name`, if it is that of a format or None.

    Raises: InvalidInput that names the nearest one.
    """
    if name is None or name in FORMATS:
        return name
    near = difflib.get_close_matches(name, FORMATS, n=1)
    reason = f"is no format; did you mean {near[0]!r}?" if near else f"is no format; there are {', '.join(FORMATS)}"
    raise InvalidInput("format", reason, name)
