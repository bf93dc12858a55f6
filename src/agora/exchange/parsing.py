"""Lines of Agora's own format (`native`), read strictly: a line is taken as it was written or not at all."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, get_args

import numpy as np

from agora.model.caller import Origin
from agora.model.fact import Value
from agora.model.message import Strategy
from agora.model.profile import Span
from agora.ports.encoder import Vector
from agora.ports.transfer import Covered, Giver, Replaced, Stated, Version
from agora.text.ids import is_id
from agora.unseen import without

T = TypeVar("T")

TYPES = {"note": "n", "fact": "f", "message": "m", "summary": "s"}
"""What this release can take in, and how their ids begin."""

_BROKEN = re.compile("[\ud800-\udfff\0]")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MOST = 2**62
_VALUE = 16_384
"""Bytes of the longest value that a fact may have."""
_DEEPEST = 32
"""Levels of lists and objects in it."""
_NAMED = 600
"""Characters of a subject or a key: 200 as they were given, of which NFC may make three times as many."""


class BadLine(ValueError):
    """Why a line cannot be taken, in words."""


def parsed(text: bytes) -> dict[str, Any]:
    """The JSON object of a line.

    Raises: BadLine.
    """
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise BadLine(f"is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"is not JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise BadLine(f"is not JSON that can be read: {error}") from None
    if not isinstance(found, dict):
        raise BadLine("is no JSON object")
    # Only an escape can bring half of a character, or a NUL.
    if b"\\u" in text and any(_BROKEN.search(each) for each in _strings(found)):
        raise BadLine("holds half of a character, or a NUL")
    return found


def version_of(record: Mapping[str, Any], dimension: int) -> Version:
    """The version that a record holds; its vectors have `dimension` numbers.

    Raises: BadLine naming the field and the reason.
    """
    fields = _Fields(record, "")
    found = Version(
        id=fields.take("id", _id),
        type=fields.take("type", _one_of(tuple(TYPES))),
        namespace=fields.take("namespace", _name),
        kind=fields.take("kind", _kind),
        key=fields.maybe("key", _name),
        version=fields.take("version", _count),
        title=fields.maybe("title", _text),
        content=fields.maybe("content", _name),
        metadata=fields.maybe("metadata", _object) or {},
        confidence=fields.maybe("confidence", _share),
        session=fields.maybe("session", _text),
        seq=fields.maybe("seq", _whole),
        speaker=fields.maybe("speaker", _text),
        occurred_at=fields.maybe("occurred_at", _instant),
        created_at=fields.take("created_at", _instant),
        updated_at=fields.take("updated_at", _instant),
        expires_at=fields.maybe("expires_at", _instant),
        supersedes=fields.maybe("supersedes", _id),
        superseded_by=fields.maybe("superseded_by", _id),
        superseded_at=fields.maybe("superseded_at", _instant),
        replaces=tuple(_replaced(each) for each in fields.maybe("replaces", _list) or ()),
        forgotten_at=fields.maybe("forgotten_at", _instant),
        forget_reason=fields.maybe("forget_reason", _text),
        purged_at=fields.maybe("purged_at", _instant),
        contests=fields.maybe("contests", _id),
        pinned_at=fields.maybe("pinned_at", _instant),
        fact=fields.maybe("fact", _stated),
        summary=fields.maybe("summary", _covered),
        strategy=fields.maybe("strategy", _one_of(get_args(Strategy))),
        savers=tuple(_giver(each) for each in fields.take("savers", _list)),
        passages=tuple(_passage(each, dimension) for each in fields.maybe("passages", _list) or ()),
    )
    fields.no_more()
    _check(found)
    return found


def _check(version: Version) -> None:
    if (version.content is None) != (version.purged_at is not None):
        raise BadLine("content: must be there unless the version was purged")
    _check_type(version)
    if version.content is not None and not version.savers:
        raise BadLine("savers: there must be one at least")
    identities = [(each.agent, each.client, each.client_version, each.token, each.session, each.origin)
                  for each in version.savers]  # fmt: skip
    if len(set(identities)) < len(identities):
        raise BadLine("savers: the same one twice")
    if version.contests is not None and version.key is None and version.content is not None:
        raise BadLine("contests: needs a key")
    if version.key is None and version.version != 1:
        raise BadLine("version: must be 1 without a key")
    size = len(version.content or "")
    if any(not 0 <= span.start <= span.stop <= size for span, _ in version.passages):
        raise BadLine("passages: must lie within the content")


def _check_type(version: Version) -> None:
    if not is_id(version.id, TYPES[version.type]):
        raise BadLine(f"id: must begin with {TYPES[version.type]}_ for a {version.type}")
    if version.type == "fact":
        _check_fact(version)
    parts = {"fact": version.fact, "summary": version.summary}
    for name, part in parts.items():
        if part is not None and version.type != name:
            raise BadLine(f"{name}: is for the type of this name")
        if part is None and version.type == name and version.content is not None:
            raise BadLine(f"{name}: must be there unless it was purged")
    if version.type == "message" and version.content is not None and not (version.session and version.seq):
        raise BadLine("seq: a message needs a session and a number in it")
    if version.type == "summary" and version.content is not None and version.key is None:
        raise BadLine("key: a summary needs the name of its conversation")


def _check_fact(version: Version) -> None:
    drawn = (version.expires_at, version.superseded_by, version.superseded_at, version.supersedes, version.contests)
    if version.key is not None or any(each is not None for each in drawn):
        raise BadLine("fact: has its key, and what ends it, in the field of this name alone")
    if version.fact is not None and (version.fact.value is None) != (version.content is None):
        raise BadLine("fact.value: must be there unless it was purged")


def _stated(record: Any) -> Stated:  # noqa: ANN401 - JSON
    fields = _Fields(record, "fact.")
    found = Stated(
        subject=fields.take("subject", _named),
        key=fields.take("key", _named),
        value=fields.maybe("value", _value),
        valid_from=fields.take("valid_from", _instant),
        valid_to=fields.maybe("valid_to", _instant),
        expires_at=fields.maybe("expires_at", _instant),
        multi=fields.maybe("multi", _flag) or False,
        quoted=fields.maybe("quoted", _flag) or False,
        reverted=fields.maybe("reverted", _flag) or False,
        rank=fields.maybe("rank", _whole),
    )
    fields.no_more()
    if found.valid_to is not None and found.valid_to < found.valid_from:
        raise BadLine("fact.valid_to: must not be before valid_from")
    return found


def _covered(record: Any) -> Covered:  # noqa: ANN401 - JSON
    fields = _Fields(record, "summary.")
    found = Covered(fields.take("first", _count), fields.take("last", _count), fields.take("written_by", _name))
    fields.no_more()
    if found.last < found.first:
        raise BadLine("summary.last: must not be before first")
    return found


def _replaced(record: Any) -> Replaced:  # noqa: ANN401 - JSON
    fields = _Fields(record, "replaces.")
    found = Replaced(fields.take("id", _id), fields.maybe("sha256", _digest))
    fields.no_more()
    return found


def _giver(record: Any) -> Giver:  # noqa: ANN401 - JSON
    fields = _Fields(record, "savers.")
    found = Giver(
        agent=fields.take("agent", _name),
        client=fields.take("client", _name),
        client_version=fields.maybe("client_version", _text) or "",
        token=fields.maybe("token", _text) or "",
        session=fields.take("session", _text),
        origin=fields.take("origin", _one_of(get_args(Origin))),
        first_at=fields.take("first_at", _instant),
        last_at=fields.take("last_at", _instant),
        times=fields.take("times", _count),
        given=fields.maybe("given", _object) or {},
        tags=tuple(dict.fromkeys(map(_name, fields.maybe("tags", _list) or ()))),
    )
    fields.no_more()
    return found


def _passage(record: Any, dimension: int) -> tuple[Span, Vector]:  # noqa: ANN401 - JSON
    fields = _Fields(record, "passages.")
    span, raw = Span(fields.take("start", _whole), fields.take("stop", _whole)), fields.take("vector", _text)
    fields.no_more()
    try:
        vector = np.frombuffer(base64.b64decode(raw, validate=True), dtype="<f4").astype(np.float32)
    except (binascii.Error, ValueError):
        raise BadLine("passages.vector: must be float32 numbers in base64") from None
    if len(vector) != dimension or not abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) < 1e-3:
        raise BadLine(f"passages.vector: must be {dimension} numbers of length 1")
    return span, vector


class _Fields:
    """The fields of one object, each taken once."""

    def __init__(self, record: Any, place: str) -> None:  # noqa: ANN401 - JSON
        if not isinstance(record, Mapping):
            raise BadLine(f"{place.rstrip('.')}: must hold objects")
        self._left = {name: value for name, value in record.items() if name != "record" or place}
        self._place = place

    def take(self, name: str, check: Callable[[Any], T]) -> T:
        if name not in self._left:
            raise BadLine(f"{self._place}{name}: is missing")
        value = self._left.pop(name)
        try:
            return check(value)
        except BadLine as error:
            raise BadLine(f"{self._place}{name}: {error}") from None

    def maybe(self, name: str, check: Callable[[Any], T]) -> T | None:
        return self.take(name, check) if name in self._left else None

    def no_more(self) -> None:
        if self._left:
            # Dropped in silence, it would be lost.
            raise BadLine(f"{self._place}{min(self._left)}: is a field that this release does not know")


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    if not isinstance(value, str):
        raise BadLine("must be a text")
    return value


def _name(value: Any) -> str:  # noqa: ANN401 - JSON
    if not _text(value).strip():
        raise BadLine("must not be blank")
    return str(value)


def _named(value: Any) -> str:  # noqa: ANN401 - JSON
    found = _name(value)
    if not without(found).strip():
        raise BadLine("must not be blank")
    if " ".join(found.split()) != found:
        # It would end a line of a profile and begin another.
        raise BadLine("must be one line, with single blanks and none at its ends")
    if len(found) > _NAMED:
        raise BadLine(f"must have at most {_NAMED} characters")
    return found


def _id(value: Any) -> str:  # noqa: ANN401 - JSON
    if not any(is_id(_text(value), prefix) for prefix in TYPES.values()):
        raise BadLine("must be the id of a note, a fact, a message or a summary")
    return str(value)


def _kind(value: Any) -> str:  # noqa: ANN401 - JSON
    if not _KIND.fullmatch(_text(value)):
        raise BadLine("must be a lower-case letter and then at most 31 lower-case letters, digits, - or _")
    return str(value)


def _one_of(known: tuple[T, ...]) -> Callable[[Any], T]:
    def check(value: Any) -> T:  # noqa: ANN401 - JSON
        if value not in known:
            raise BadLine(f"must be one of {', '.join(map(str, known))}, it is {str(value)[:40]!r}")
        return known[known.index(value)]

    return check


def _whole(value: Any) -> int:  # noqa: ANN401 - JSON
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise BadLine("must be a whole number, and not negative")
    return value


def _count(value: Any) -> int:  # noqa: ANN401 - JSON
    if _whole(value) < 1:
        raise BadLine("must be 1 or more")
    return int(value)


def _share(value: Any) -> float:  # noqa: ANN401 - JSON
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadLine("must be a number between 0 and 1")
    return float(value)


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    if not isinstance(value, dict):
        raise BadLine("must be an object")
    _finite(value)
    return value


def _value(value: Any) -> Value:  # noqa: ANN401 - JSON
    if value is None or not isinstance(value, str | int | float | bool | list | dict):
        raise BadLine("must be a text, a number, true or false, a list or an object")
    if isinstance(value, str) and not without(value).strip():
        raise BadLine("must not be blank")
    if _depth(value) > _DEEPEST:
        raise BadLine(f"must not be nested more than {_DEEPEST} levels deep")
    _finite(value)
    if len(json.dumps(value, ensure_ascii=False).encode()) > _VALUE:
        raise BadLine(f"must have at most {_VALUE} bytes")
    found: Value = value
    return found


def _flag(value: Any) -> bool:  # noqa: ANN401 - JSON
    if not isinstance(value, bool):
        raise BadLine("must be true or false")
    return value


def _finite(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise BadLine("holds a number that is not finite")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite(inner)


def _depth(value: object) -> int:
    level, found = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        found += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return found


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(value, list):
        raise BadLine("must be a list")
    return value


def _digest(value: Any) -> bytes:  # noqa: ANN401 - JSON
    if not re.fullmatch("[0-9a-f]{64}", _text(value)):
        raise BadLine("must be a SHA-256 in hexadecimal")
    return bytes.fromhex(value)


def _instant(value: Any) -> datetime:  # noqa: ANN401 - JSON
    text = _text(value)
    try:
        found = datetime.fromisoformat(text)
        utc = found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise BadLine("must be an instant in ISO 8601") from None
    if found.tzinfo is None:
        raise BadLine("must have an offset from UTC")
    return utc


def _strings(value: object) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list):
            left += each


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
