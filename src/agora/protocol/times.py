"""Instants and durations as callers write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from agora.errors import InvalidInput

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,12})\s*([smhdw])")
_AGO = re.compile(r"(\d{1,12})\s*([smhdw])(?:\s+ago)?")
_LONGEST = 100 * 366 * 86_400
_FORMS = (
    "an ISO 8601 date or time (2026-03-01, 2026-03-01T14:30:00+02:00), today, yesterday, now, or an age like 7d, 12h"
)


def instant(param: str, text: str, now: datetime, edge: Literal["start", "end"] = "start") -> datetime:
    """The aware UTC instant that `text` names; a whole day stands for its first or, at `end`, its last moment.

    A day is a day, and a time without an offset a time, in this machine's time zone, which is the caller's
    over stdio. The end of a day is the start of the next one: comparisons exclude it.

    Raises: InvalidInput for anything else.
    """
    wanted = text.strip().casefold()
    local = now.astimezone()
    days = {"today": 0, "yesterday": 1}
    try:
        if wanted == "now":
            return now
        if wanted in days:
            return _edge(local.date() - timedelta(days=days[wanted]), edge)
        if match := _AGO.fullmatch(wanted):
            return now - timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", wanted):
            return _edge(date.fromisoformat(wanted), edge)
        found = datetime.fromisoformat(text.strip())
        # astimezone() reads a time without an offset as this machine's, daylight saving of that day included.
        return found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(param, f"must be {_FORMS}", text) from None


def seconds(param: str, value: int | str) -> timedelta:
    """The duration of so many seconds, or of a text like 90s, 15m, 12h, 30d, 2w.

    Raises: InvalidInput for anything else, for nothing and for more than a hundred years.
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip().casefold())
        if match is None:
            raise InvalidInput(param, "must be seconds as a number, or a duration like 90s, 15m, 12h, 30d, 2w", value)
        amount = int(match[1]) * _UNITS[match[2]]
    else:
        amount = value
    if not 1 <= amount <= _LONGEST:
        raise InvalidInput(param, "must be between 1 second and 100 years", value)
    return timedelta(seconds=amount)


def written(at: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z, microseconds only where there are any."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _edge(day: date, edge: Literal["start", "end"]) -> datetime:
    if edge == "end":
        day += timedelta(days=1)
    return datetime.combine(day, time()).astimezone(UTC)
