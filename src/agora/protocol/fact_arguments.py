"""From checked arguments of the tools of facts to what the memory takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from agora.errors import InvalidInput, PayloadTooLarge
from agora.model.fact import USER, FactDraft, Recollection, Value
from agora.protocol.arguments import name
from agora.protocol.times import instant, seconds
from agora.text.sameness import name_of
from agora.unseen import without

_VALUE_BYTES = 16_384

_MOMENT = timedelta(microseconds=1)


def draft(given: Mapping[str, Any], namespace: str, now: datetime) -> FactDraft:
    """The fact that the arguments of `remember` state.

    Raises: InvalidInput, PayloadTooLarge.
    """
    lives = given.get("expires_in")
    return FactDraft(
        namespace=namespace,
        subject=subject(given) or USER,
        key=_one_line(given["key"]),
        value=_value(given["value"]),
        valid_from=_moment(given, "valid_from", now),
        valid_to=_moment(given, "valid_to", now),
        expires_at=None if lives is None else now + seconds("expires_in", lives),
        multi=given.get("multi"),
    )


def recollection(
    given: Mapping[str, Any], namespaces: Sequence[str], now: datetime, *, profile_tokens: int, limit: int
) -> Recollection:
    """The facts that the arguments of `recall` ask for.

    Raises: InvalidInput.
    """
    known = given.get("known_at")
    return Recollection(
        namespaces=tuple(namespaces),
        subject=subject(given),
        key=None if given.get("key") is None else _one_line(given["key"]),
        as_of=_as_of(given, now),
        known_at=None if known is None else instant("known_at", known, now, "end"),
        include_history=given.get("include_history", False),
        max_tokens=profile_tokens,
        limit=given.get("limit", limit),
    )


def subject(given: Mapping[str, Any]) -> str | None:
    """What the call is about, by either name of the argument; None if it does not say.

    Raises: InvalidInput if the two differ.
    """
    found = [_one_line(given[each]) for each in ("subject", "userId") if each in given]
    if len(set(map(name_of, found))) > 1:
        raise InvalidInput("userId", "is another word for subject, and they differ", found[1], hint="Give one of them.")
    return found[0] if found else None


class Saying(NamedTuple):
    """A text that may state facts: who says it, or what it is about, and when it was said; None for now."""

    text: str
    subject: str
    at: datetime | None


def saying(given: Mapping[str, Any], now: datetime, content_bytes: int) -> Saying:
    """What the arguments of `remember_from` give.

    Raises: InvalidInput, PayloadTooLarge.
    """
    text = given["text"]
    if (size := len(text.encode())) > content_bytes:
        raise PayloadTooLarge(
            "text",
            f"must have at most {content_bytes} bytes, it has {size}",
            text,
            hint="Give it in parts; limits.content_bytes raises the limit.",
        )
    return Saying(text, subject(given) or USER, _moment(given, "occurred_at", now))


def _moment(given: Mapping[str, Any], param: str, now: datetime) -> datetime | None:
    return None if given.get(param) is None else instant(param, given[param], now)


def _as_of(given: Mapping[str, Any], now: datetime) -> datetime | None:
    """The last moment of a day: what changed on it has changed. A time is itself."""
    wanted = given.get("as_of")
    if wanted is None:
        return None
    start, end = instant("as_of", wanted, now), instant("as_of", wanted, now, "end")
    return start if start == end else end - _MOMENT


def _value(value: Value) -> Value:
    if isinstance(value, str) and not without(value).strip():
        raise InvalidInput(
            "value",
            "must not be blank",
            value,
            hint="To say that it holds no more, give the old value with valid_to; agora_forget takes a fact back.",
        )
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > _VALUE_BYTES:
        raise PayloadTooLarge(
            "value",
            f"must have at most {_VALUE_BYTES} bytes as JSON, it has {size}",
            value,
            hint="Keep what one looks up; a long text is a note: agora_save.",
        )
    return value


def _one_line(given: str) -> str:
    return " ".join((name(given) or "").split())
