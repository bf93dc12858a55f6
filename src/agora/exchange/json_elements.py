from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterator
from typing import Any

from agora.exchange.sources import Source

_SPACE = " \t\r\n"
_LONGEST = 1 << 28
"""Characters of one element: more is a mistake or an attack."""
_EDGE = 16
"""A fault this near to the end of what was read may be gone when more is read."""


class BadDocument(ValueError):
    """Why a JSON document cannot be read on."""


def elements(source: Source, names: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Each element of the array that a JSON document is, one after the other, with an empty name.

    Of a document that is an object, the elements of the arrays with one of `names`, with that name. One element is in
    memory at a time.

    Raises: BadDocument where it is broken: what came before has been given.
    """
    text = _Text(source)
    if text.next() == "[":
        yield from (("", value) for value in text.array())
    else:
        yield from text.object(names)
    if text.next():
        raise BadDocument("there is something after the end of the document")


class _Text:
    """The text of a document, read as far as the next value needs it."""

    def __init__(self, source: Source) -> None:
        self._chunks = source.chunks()
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)
        self._text = ""
        self._at = 0
        self._done = False

    def next(self) -> str:
        """The next character that is no white space, not taken yet; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._fill():
                return ""

    def array(self) -> Iterator[Any]:
        """The elements of the array that begins here."""
        self._take("[")
        if self.next() == "]":
            self._take("]")
            return
        while True:
            yield self._value()
            if self._take(",]") == "]":
                return

    def object(self, names: Collection[str]) -> Iterator[tuple[str, Any]]:
        """The elements of the arrays with these names in the object that begins here."""
        self._take("{")
        if self.next() == "}":
            self._take("}")
            return
        while True:
            name = self._value()
            self._take(":")
            if name in names and self.next() == "[":
                yield from ((name, value) for value in self.array())
            else:
                self._value()
            if self._take(",}") == "}":
                return

    def _take(self, expected: str) -> str:
        found = self.next()
        if not found or found not in expected:
            raise BadDocument(f"{found or 'the end'!r} where one of {expected!r} should be")
        self._at += 1
        return found

    def _value(self) -> Any:  # noqa: ANN401 - JSON
        self.next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos > len(self._text) - _EDGE or error.msg.startswith("Unterminated string")
                if not cut or not self._fill():
                    raise BadDocument(error.msg) from None
            except (ValueError, RecursionError) as error:
                raise BadDocument(str(error)) from None
            else:
                # A number at the end of what was read may go on, by a point or an exponent too.
                if isinstance(value, str | dict | list) or end < len(self._text) - _EDGE or self._done:
                    self._at = end
                    return value
                self._fill()

    def _fill(self) -> bool:
        """Read as much again as there is; whether there was any more."""
        if self._done:
            return False
        self._text, self._at = self._text[self._at :], 0
        wanted = len(self._text) + 1
        if wanted > _LONGEST:
            raise BadDocument(f"one element has more than {_LONGEST} characters")
        parts, length = [self._text], 0
        while length < wanted and not self._done:
            chunk = next(self._chunks, b"")
            self._done = not chunk
            try:
                parts.append(self._decode(chunk, final=self._done))
            except UnicodeDecodeError as error:
                self._done = True
                raise BadDocument(f"it is not UTF-8: {error.reason}") from None
            length += len(parts[-1])
        self._text = "".join(parts)
        return length > 0


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
