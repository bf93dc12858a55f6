"""What the readers of other tools' files share: lines, whole texts, and values of whatever type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agora.errors import InvalidInput
from agora.exchange.events import Broken, Event
from agora.exchange.sources import LINE, Source

_BOM = b"\xef\xbb\xbf"
_WHOLE = 1 << 26


@dataclass(frozen=True, slots=True)
class ForeignReader:
    """A reader made of a function; implements `agora.exchange.events.Reader`."""

    source: Source
    read: Callable[[Source], Iterator[Event]]
    problems: tuple[str, ...] = ()

    def events(self) -> Iterator[Event]:
        """As `Reader.events`."""
        return self.read(self.source)


def objects(source: Source) -> Iterator[tuple[str, dict[str, Any] | Broken]]:
    """The JSON object on each line with its place, or why there is none; blank lines are nothing."""
    for number, raw in source.lines():
        place = f"line {number}"
        text = raw.removeprefix(_BOM) if number == 1 else raw
        if not text.strip():
            continue
        try:
            if len(raw) > LINE:
                yield place, Broken(place, f"is longer than {LINE} bytes")
                continue
            found = json.loads(text.decode("utf-8"))
        except UnicodeDecodeError as error:
            yield place, Broken(place, f"is not UTF-8 at byte {error.start}")
        except json.JSONDecodeError as error:
            yield place, Broken(place, f"is not JSON: {error.msg} at character {error.pos}")
        except (ValueError, RecursionError) as error:
            yield place, Broken(place, f"is not JSON that can be read: {error}")
        else:
            yield place, found if isinstance(found, dict) else Broken(place, "is no JSON object")


def whole_text(source: Source) -> str:
    """The text of a file that is small enough to be written by hand.

    Raises: InvalidInput.
    """
    parts, length = [], 0
    for chunk in source.chunks():
        parts.append(chunk)
        length += len(chunk)
        if length > _WHOLE:
            raise InvalidInput("file", f"has more than {_WHOLE} bytes", source.name)
    try:
        return b"".join(parts).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("file", f"is not UTF-8 at byte {error.start}", source.name) from None


def text_or_none(value: object) -> str | None:
    """A text with something in it, else None."""
    return value if isinstance(value, str) and value.strip() else None


def from_seconds(value: object) -> str | None:
    """An instant that was given in seconds since 1970, as ISO 8601."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def filled(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
