"""Memories of mem0: as its API and its dashboard give them, or as its `export` skill writes them.

JSON: an array of memories, an object with them in `results` or `memories`, or one a line.

    {"id": ..., "memory": "text", "user_id": ..., "agent_id": ..., "run_id": ..., "categories": [...],
     "metadata": {...}, "created_at": ..., "updated_at": ...}

Markdown: blocks of `key: value` between lines of `---`, each followed by the text of one memory. Each memory becomes a
note, of the kind that `metadata.type` names, else `memory`. Every other field is kept in the metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agora.exchange.events import Broken, Event, Text
from agora.exchange.foreign.reading import filled, objects, text_or_none, whole_text
from agora.exchange.json_elements import BadDocument, elements
from agora.exchange.sources import Source

_NAMES = ("results", "memories")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_BLOCK = re.compile(
    r"^---[ \t]*\r?\n(?=id:)(.*?)^---[ \t]*\r?\n(.*?)(?=^---[ \t]*\r?\nid:|\Z)", re.DOTALL | re.MULTILINE
)
_USED = frozenset({"memory", "created_at", "categories", "metadata", "agent_id", "run_id", "id", "score"})


def recognises(head: bytes) -> bool:
    """Whether a file that begins so holds memories of mem0."""
    if re.match(rb"\s*---\s*\n(?:\w+:.*\n)*created_at:", head) and re.match(rb"\s*---\s*\nid:", head):
        return True
    return re.match(rb"\s*[\[{]", head) is not None and re.search(rb'"memory"\s*:\s*"', head) is not None


def read(source: Source) -> Iterator[Event]:
    """The memories of a file."""
    start = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"---"):
        yield from _markdown(whole_text(source))
    elif start.startswith(b"[") or _is_document(start):
        number = 0
        try:
            for _, record in elements(source, _NAMES):
                number += 1
                yield _memory(f"memory {number}", record)
        except BadDocument as error:
            yield Broken(f"after memory {number}", str(error))
    else:
        for place, record in objects(source):
            yield record if isinstance(record, Broken) else _memory(place, record)


def _is_document(start: bytes) -> bool:
    try:
        first = json.loads(start.partition(b"\n")[0])
    except ValueError:
        return True
    return isinstance(first, dict) and any(name in first for name in _NAMES)


def _memory(place: str, record: object) -> Event:
    text = text_or_none(record.get("memory")) if isinstance(record, dict) else None
    if not isinstance(record, dict) or text is None:
        return Broken(place, "has no text (`memory`)")
    own = record.get("metadata")
    metadata: dict[str, Any] = dict(own) if isinstance(own, dict) else {}
    categories = record.get("categories")
    return _text(
        place,
        text,
        record,
        metadata | {name: value for name, value in record.items() if name not in _USED and value is not None},
        [each for each in categories if isinstance(each, str)] if isinstance(categories, list) else [],
    )


def _markdown(text: str) -> Iterator[Event]:
    for number, found in enumerate(_BLOCK.finditer(text), start=1):
        pairs = (line.partition(":") for line in found[1].splitlines() if ":" in line)
        record = {name.strip(): value.strip() for name, _, value in pairs}
        place, content = f"memory {number}", found[2].strip()
        if not content:
            yield Broken(place, "has no text")
            continue
        metadata = {name: value for name, value in record.items() if name not in _USED and value}
        if "files" in metadata:
            metadata["files"] = _listed(metadata["files"])
        yield _text(place, content, record, metadata, _listed(record.get("categories", "")))


def _text(place: str, content: str, record: Mapping[str, Any], metadata: dict[str, Any], categories: list[str]) -> Text:
    kind, confidence = metadata.get("type"), _share(metadata.get("confidence"))
    return Text(
        place,
        content,
        kind=kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "memory",
        tags=tuple(categories),
        metadata=metadata | filled(memory=record.get("id"), categories=categories),
        agent=text_or_none(record.get("agent_id")) or "mem0",
        session=text_or_none(record.get("run_id")),
        occurred_at=text_or_none(record.get("created_at")),
        confidence=confidence,
    )


def _share(value: object) -> float | None:
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1.0
    except ValueError:
        return None
    return found if 0 <= found <= 1 else None


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
