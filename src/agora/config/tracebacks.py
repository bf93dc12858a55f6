"""Tracebacks that hold no word of what was worked on: a log is no place for the contents of a note."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any, TextIO

_LATER = "\nWhile that was handled, or because of it:\n\n"


def without_words(exc_info: Any) -> str:  # noqa: ANN401 - what structlog hands over
    """The traceback of an exception: where it happened and what kind it is, for each in its chain.

    Of what it says only the messages of the system and of SQLite are kept; any other may quote a value.
    """
    return "".join(_lines(exc_info[1], set())).rstrip("\n")


def write_without_words(stream: TextIO, exc_info: Any) -> None:  # noqa: ANN401 - as above
    """Write `without_words` to a stream."""
    stream.write(without_words(exc_info) + "\n")


def _lines(error: BaseException | None, seen: set[int]) -> Iterator[str]:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    before = list(_lines(error.__cause__ or (None if error.__suppress_context__ else error.__context__), seen))
    if before:
        yield from (*before, _LATER)
    if error.__traceback__ is not None:
        yield from ("Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__))
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    told = isinstance(error, OSError) or kind.__module__ == "sqlite3"
    yield f"{name}: {error}\n" if told else f"{name}\n"
    if isinstance(error, BaseExceptionGroup):
        for number, inner in enumerate(error.exceptions, start=1):
            yield f"  {number}:\n"
            yield from (f"  {line}\n" for line in "".join(_lines(inner, seen)).splitlines())
