from __future__ import annotations

import hashlib
import re
from collections import Counter
from datetime import datetime
from typing import Any

from agora.exchange.events import Text
from agora.model.caller import Caller
from agora.model.note import Draft
from agora.ports.transfer import Giver, Version
from agora.protocol import arguments, schemas
from agora.protocol.tools.table import BY_NAME
from agora.text.ids import id_of, new_id

_SAVE = BY_NAME["agora_save"].input
_TITLE = 300
_TAG = 64
_KEY = 200

_DATA_URI = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]{64,}")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{1000,}={0,2}")
"""No language writes a thousand letters without a blank."""
_UNREADABLE = re.compile("[\ud800-\udfff\0]")


class Drafts:
    """Makes versions of the texts of one file of another tool; they pass the same checks as a call of `agora_save`."""

    def __init__(self, format_name: str, file: str, caller: Caller, now: datetime, content_bytes: int) -> None:
        """`caller` imports: its namespace and origin are those of the texts."""
        self._format = format_name
        self._file = file
        self._caller = caller
        self._now = now
        self._content_bytes = content_bytes

    def of(self, text: Text) -> tuple[list[Version], Counter[str]]:
        """The versions that `text` makes, one unless it is too long, and what was left out of it, counted.

        Raises: InvalidInput if it cannot be a note.
        """
        left_out: Counter[str] = Counter()
        content = readable(without_blobs(text.content, left_out), left_out)
        parts = [part for part in split(content, self._content_bytes) if not part.isspace()]
        if not any(parts):
            left_out["empty texts"] += 1
            return [], left_out
        if len(parts) > 1:
            left_out["texts that were cut into parts"] += 1
        return [self._version(text, part, n, len(parts)) for n, part in enumerate(parts, start=1)], left_out

    def _version(self, text: Text, content: str, n: int, parts: int) -> Version:
        title, metadata = text.title, {"source": self._format, "source_file": self._file, **text.metadata}
        if title is not None and len(title) > _TITLE:
            metadata["title"], title = title, title[: _TITLE - 1] + "…"
        if parts > 1:
            metadata |= {"part": n, "parts": parts}
        given: dict[str, Any] = {
            "content": content,
            "title": title,
            "tags": [tag for tag in (self._format, *text.tags) if len(tag) <= _TAG and tag.strip()],
            "kind": text.kind,
            "metadata": metadata,
            "agent": text.agent,
            "session": text.session,
            "occurred_at": text.occurred_at,
            "confidence": text.confidence,
            "key": _key(text.key) if parts == 1 or text.key is None else f"{_key(text.key)} ({n}/{parts})",
        }
        checked = schemas.check(_SAVE, {name: value for name, value in given.items() if value is not None})
        draft = arguments.draft(checked, self._caller.scope.own, self._now, self._content_bytes)
        return self._saved(draft, arguments.name(checked.get("agent")), arguments.name(checked.get("session")))

    def _saved(self, draft: Draft, agent: str | None, session: str | None) -> Version:
        # Without a session of its own a text gets one that is the same the next time it is imported.
        session = session or f"{self._format}:{self._file}"[:256]
        given = {"title": draft.title, "metadata": dict(draft.metadata), "confidence": draft.confidence}
        giver = Giver(
            agent=agent or self._caller.agent,
            client=self._caller.client,
            client_version=self._caller.client_version,
            token=self._caller.token,
            session=session,
            origin=self._caller.origin,
            first_at=self._now,
            last_at=self._now,
            given={name: value for name, value in given.items() if value},
            tags=draft.tags,
        )
        return Version(
            # Made from the text: what was imported once is known again, even if it was forgotten since.
            id=id_of("n", f"{draft.namespace}\0{draft.content}")
            if draft.key is None
            else new_id("n", int(self._now.timestamp() * 1000)),
            namespace=draft.namespace,
            content=draft.content,
            title=draft.title,
            kind=draft.kind,
            key=draft.key,
            metadata=draft.metadata,
            confidence=draft.confidence,
            session=session,
            occurred_at=draft.occurred_at,
            created_at=self._now,
            updated_at=self._now,
            savers=(giver,),
        )


def _key(key: str | None) -> str | None:
    # Here and not in a reader: half a secret at a cut would be known by nothing.
    if key is None or len(key) <= _KEY:
        return key
    return f"{key[: _KEY - 17]} {hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def without_blobs(text: str, left_out: Counter[str]) -> str:
    """`text` with a few words in the place of each base64 blob; each is counted in `left_out`."""

    def short(found: re.Match[str]) -> str:
        blob = found[0]
        if not blob.startswith("data:") and not (re.search(r"\d", blob) and blob.upper() != blob != blob.lower()):
            return blob
        left_out["base64 blobs"] += 1
        return f"[base64, {len(blob)} characters, left out]"

    return _BLOB.sub(short, _DATA_URI.sub(short, text))


def readable(text: str, left_out: Counter[str]) -> str:
    """`text` with U+FFFD for every NUL and every half of a character, which no note may hold; counted."""
    found, times = _UNREADABLE.subn("\ufffd", text)
    if times:
        left_out["characters that cannot be kept"] += times
    return found


def split(text: str, most: int) -> list[str]:
    """`text` in parts of at most `most` bytes, cut at the end of a paragraph, line or word; joined, they are `text`."""
    raw, parts, start = text.encode(), [], 0
    while len(raw) - start > most:
        end = start + most
        while raw[end] & 0xC0 == 0x80:
            # Inside a character.
            end -= 1
        for mark in (b"\n\n", b"\n", b" "):
            if (found := raw.rfind(mark, start + most // 2, end)) >= 0:
                end = found + len(mark)
                break
        parts.append(raw[start:end].decode())
        start = end
    return [*parts, raw[start:].decode()]
