"""From checked arguments to what the memory takes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agora.errors import InvalidInput, PayloadTooLarge
from agora.model.crossref import Topic
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.model.selection import Selection
from agora.protocol.times import instant, seconds

_METADATA_BYTES = 16_384


def draft(given: Mapping[str, Any], namespace: str, now: datetime, content_bytes: int) -> Draft:
    """The note that the arguments of `agora_save` describe.

    Raises: InvalidInput, PayloadTooLarge.
    """
    content = given["content"]
    size = len(content.encode())
    if size > content_bytes:
        raise PayloadTooLarge(
            "content",
            f"must have at most {content_bytes} bytes, it has {size}",
            content,
            hint="Save what matters of it, or several notes; limits.content_bytes raises the limit.",
        )
    occurred = given.get("occurred_at")
    lives = given.get("expires_in")
    return Draft(
        content=content,
        namespace=namespace,
        title=_one_line(given.get("title")),
        tags=_tags(given.get("tags")),
        kind=given.get("kind", "note"),
        metadata=own_fields(given),
        occurred_at=None if occurred is None else instant("occurred_at", occurred, now),
        confidence=given.get("confidence"),
        expires_at=None if lives is None else now + seconds("expires_in", lives),
        key=name(given.get("key")),
    )


def query(given: Mapping[str, Any], namespaces: Sequence[str], now: datetime, query_chars: int) -> Query:
    """The question that the arguments of `agora_query` ask.

    Raises: InvalidInput, PayloadTooLarge.
    """
    _check_length(given["query"], query_chars)
    since, until = given.get("since"), given.get("until")
    where = Filter(
        namespaces=tuple(namespaces),
        tags=_tags(given.get("tags")),
        agents=tuple(filter(None, map(name, given.get("agents") or ()))),
        kinds=tuple(given.get("kinds") or ()),
        metadata=own_fields(given),
        since=None if since is None else instant("since", since, now, "start"),
        until=None if until is None else instant("until", until, now, "end"),
    )
    if where.since and where.until and where.since >= where.until:
        raise InvalidInput("until", "must be later than since", until)
    return Query(
        text=given["query"],
        filter=where,
        top_k=given.get("top_k", 5),
        mode=given.get("mode", "hybrid"),
        min_score=given.get("min_score"),
        max_tokens=given.get("max_tokens"),
    )


def topic(given: Mapping[str, Any], namespaces: Sequence[str], now: datetime, query_chars: int) -> Topic:
    """What the arguments of `agora_crossref` ask about.

    Raises: InvalidInput unless they name a question or an id, and not both; PayloadTooLarge.
    """
    if ("query" in given) == ("id" in given):
        raise InvalidInput("query", "either query or id is required, not both", given.get("query"))
    if "query" in given:
        _check_length(given["query"], query_chars)
    since = given.get("since")
    return Topic(
        namespaces=tuple(namespaces),
        query=given.get("query"),
        id=given.get("id"),
        agents=tuple(filter(None, map(name, given.get("agents") or ()))),
        since=None if since is None else instant("since", since, now, "start"),
    )


def selection(given: Mapping[str, Any], namespaces: Sequence[str], now: datetime) -> Selection:
    """The notes that the arguments of `agora_forget` select.

    Raises: InvalidInput if they name no condition at all.
    """
    conditions = ("ids", "tags", "agent", "namespace", "before")
    if not any(given.get(condition) for condition in conditions):
        raise InvalidInput("ids", f"at least one of {', '.join(conditions)} is required")
    before = given.get("before")
    return Selection(
        namespaces=tuple(namespaces),
        ids=tuple(given.get("ids") or ()),
        tags=_tags(given.get("tags")),
        agent=name(given.get("agent")),
        before=None if before is None else instant("before", before, now, "start"),
        reason=given.get("reason"),
    )


def name(given: str | None) -> str | None:
    """The one spelling of an agent, a session or a key, so that a name that was saved is found again."""
    return None if given is None else unicodedata.normalize("NFC", given.strip())


def own_fields(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What stands under `metadata`.

    Raises: PayloadTooLarge.
    """
    metadata: Mapping[str, Any] = given.get("metadata") or {}
    size = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size > _METADATA_BYTES:
        reason = f"must have at most {_METADATA_BYTES} bytes as JSON, it has {size}"
        raise PayloadTooLarge("metadata", reason, metadata, hint="What is long belongs into the content.")
    return metadata


def _check_length(query: str, most: int) -> None:
    if len(query) > most:
        raise PayloadTooLarge(
            "query",
            f"must have at most {most} characters, it has {len(query)}",
            query,
            hint="Ask in a sentence or a few words; the model reads about 200 words.",
        )


def _tags(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_folded(tag) for tag in given or ()))


def _folded(tag: str) -> str:
    return unicodedata.normalize("NFC", " ".join(tag.split())).casefold()


def _one_line(given: str | None) -> str | None:
    return (" ".join(given.split()) or None) if given else None
