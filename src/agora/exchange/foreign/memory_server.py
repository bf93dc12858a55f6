"""The reference MCP memory server: a graph of entities with observations, and relations between them.

One line a piece, as the server keeps it in `memory.jsonl`:

    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks French", ...]}
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"}

or one object with `entities` and `relations`, as its `read_graph` answers. Each observation becomes a note that names
its entity, so that it can be understood alone, and each relation a note; an entity without observations too. Fields
that are not known are kept in the metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agora.exchange.events import Broken, Event, LeftOut, Text
from agora.exchange.foreign.reading import objects, text_or_none
from agora.exchange.json_elements import BadDocument, elements
from agora.exchange.sources import Source

_ENTITY = frozenset({"type", "name", "entityType", "observations"})
_RELATION = frozenset({"type", "from", "to", "relationType"})


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is a memory server's."""
    if re.match(rb'\s*\{\s*"(?:entities|relations)"\s*:\s*\[', head):
        return True
    try:
        return _is_piece(json.loads(head.partition(b"\n")[0]))
    except ValueError:
        return False


def read(source: Source) -> Iterator[Event]:
    """The notes of a memory server's file."""
    if not _in_lines(source.head):
        yield from _document(source)
        return
    for place, record in objects(source):
        yield from [record] if isinstance(record, Broken) else _piece(place, record, record.get("type"))


def _in_lines(head: bytes) -> bool:
    try:
        return _is_piece(json.loads(head.partition(b"\n")[0]))
    except ValueError:
        # A document over several lines, or a broken first line.
        return b'"entities"' not in head[:4096]


def _is_piece(record: object) -> bool:
    return isinstance(record, dict) and record.get("type") in {"entity", "relation"}


def _document(source: Source) -> Iterator[Event]:
    numbers = {"entities": 0, "relations": 0}
    singular = {"entities": "entity", "relations": "relation"}
    try:
        for name, record in elements(source, numbers):
            numbers[name] += 1
            place = f"{singular[name]} {numbers[name]}"
            if isinstance(record, dict):
                yield from _piece(place, record, singular[name])
            else:
                yield Broken(place, "is no JSON object")
    except BadDocument as error:
        yield Broken(f"after {numbers['entities']} entities, {numbers['relations']} relations", str(error))


def _piece(place: str, record: Mapping[str, Any], type_: object) -> Iterator[Event]:
    if type_ == "entity":
        yield from _entity(place, record)
    elif type_ == "relation":
        yield _relation(place, record)
    else:
        yield Broken(place, "is neither an entity nor a relation")


def _entity(place: str, record: Mapping[str, Any]) -> Iterator[Event]:
    name, entity_type = text_or_none(record.get("name")), record.get("entityType", "")
    observations = record.get("observations", [])
    if name is None or not isinstance(entity_type, str) or not isinstance(observations, list):
        yield Broken(place, "an entity needs a name, a type and a list of observations")
        return
    more = {key: value for key, value in record.items() if key not in _ENTITY}
    metadata = {"entity": name, "entity_type": entity_type, **({"more": more} if more else {})}
    tags = (entity_type,) if entity_type.strip() else ()
    if not observations:
        kind = f" ({entity_type})" if entity_type else ""
        yield Text(place, f"{name}{kind}", title=name, kind="entity", tags=tags, metadata=metadata)
    for number, observation in enumerate(observations, start=1):
        if not isinstance(observation, str):
            yield Broken(f"{place}, observation {number}", "is no text")
        elif not observation.strip():
            yield LeftOut("empty texts")
        else:
            content = f"{name}: {observation}"
            yield Text(place, content, title=name, kind="observation", tags=tags, metadata=metadata)


def _relation(place: str, record: Mapping[str, Any]) -> Event:
    ends = [text_or_none(record.get(name)) for name in ("from", "relationType", "to")]
    if None in ends:
        return Broken(place, "a relation needs `from`, `to` and `relationType`")
    source, relation, target = map(str, ends)
    more = {key: value for key, value in record.items() if key not in _RELATION}
    metadata = {"from": source, "to": target, "relation_type": relation, **({"more": more} if more else {})}
    return Text(place, f"{source} {relation.replace('_', ' ')} {target}", kind="relation", metadata=metadata)
