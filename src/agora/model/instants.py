"""Instants as whole numbers of microseconds since 1970-01-01T00:00:00Z, exact, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    """Microseconds since the epoch, exact (a float would lose the last digits)."""
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC instant of so many microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=micros)


def maybe(micros: int | None) -> datetime | None:
    """As `from_micros`, passing None through."""
    return None if micros is None else from_micros(micros)


def maybe_micros(instant: datetime | None) -> int | None:
    """As `to_micros`, passing None through."""
    return None if instant is None else to_micros(instant)


NEVER = 2**63 - 1
"""Stands for "no end" where a whole number is needed; later than any instant `datetime` can hold."""
