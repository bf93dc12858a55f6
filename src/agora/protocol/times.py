"""Instants and durations as callers write them."""

from __future__ import annotations

import re
import time as clock
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Literal

from agora.errors import InvalidInput

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,12})\s*([smhdw])")
_AGO = re.compile(r"(\d{1,12})\s*([smhdw])(?:\s+ago)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{8}")
# A week is no instant, though Python reads it as its Monday.
_WEEK = re.compile(r"\d{4}-?w")
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
    days = {"today": 0, "yesterday": 1}
    try:
        if wanted == "now":
            return now
        if wanted in days:
            return _edge(now.astimezone().date() - timedelta(days=days[wanted]), edge)
        if match := _AGO.fullmatch(wanted):
            return now - timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        if _DAY.fullmatch(wanted):
            return _edge(date.fromisoformat(wanted), edge)
        if not _WEEK.match(wanted):
            return _utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidInput(param, f"must be {_FORMS}", text)


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
    return _utc(datetime.combine(day, time()))


def _utc(at: datetime) -> datetime:
    """`at` in UTC; without an offset it is this machine's time, daylight saving of that day included."""
    if at.tzinfo is None:
        if at.year >= 1971:
            # Not `astimezone`: a midnight that the clocks jump over would become 23:00 of the day before.
            whole = datetime.fromtimestamp(at.replace(microsecond=0).timestamp(), UTC)
            return whole.replace(microsecond=at.microsecond)
        # Windows knows no local time before 1970: the standard offset holds everywhere, the same on every system.
        at = at.replace(tzinfo=timezone(timedelta(seconds=-clock.timezone)))
    return at.astimezone(UTC)
