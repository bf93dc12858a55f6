from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agora.errors import InvalidInput
from agora.exchange.events import Broken, Event
from agora.exchange.native import FORMAT, FORMAT_VERSION, Sums
from agora.exchange.parsing import BadLine, parsed, version_of
from agora.exchange.sources import LINE, Source

_BOM = b"\xef\xbb\xbf"


class NativeReader:
    """Reads Agora's own format; implements `agora.exchange.events.Reader`."""

    def __init__(self, source: Source) -> None:
        """Read the header.

        Raises: InvalidInput if there is none, or one of a later version of the format.
        """
        self._source = source
        self._lines = source.lines()
        self._sums = Sums()
        self.place = "line 1"
        self._end: dict[str, Any] | None = None
        _, first = next(self._lines, (1, b""))
        self._sums.take(first, version=False)
        self.header = _header(first, source.name)

    @property
    def store(self) -> str:
        """The id of the store that the file was made from."""
        return str(self.header["store"])

    @property
    def profile(self) -> str:
        """The digest of the encoder whose vectors the file may hold."""
        return str(self.header["encoder"]["digest"])

    @property
    def problems(self) -> tuple[str, ...]:
        """As `Reader.problems`."""
        if self._end is None:
            return ("the last line is missing: the file was cut",)
        made = self._sums.end()
        if self._end.get("versions") != made["versions"]:
            return (f"the file had {self._end.get('versions')} versions when it was written, now {made['versions']}",)
        if self._end.get("sha256") != made["sha256"]:
            return ("the file is not as it was written: its SHA-256 differs",)
        return ()

    def events(self) -> Iterator[Event]:
        """As `Reader.events`."""
        dimension = int(self.header["encoder"]["dimension"])
        for number, raw in self._lines:
            self.place = f"line {number}"
            if self._end is not None:
                yield Broken(self.place, "stands after the last line")
                continue
            try:
                record = self._record(raw)
                if record is not None:
                    yield version_of(record, dimension)
            except BadLine as error:
                yield Broken(self.place, str(error))

    def _record(self, raw: bytes) -> dict[str, Any] | None:
        """The record of a line that should hold a version; None for the last line."""
        record: dict[str, Any] = {}
        try:
            if len(raw) > LINE:
                raise BadLine(f"is longer than {LINE} bytes")
            record = parsed(raw)
            if record.get("record") == "end":
                self._end = record
                return None
        finally:
            if self._end is None:
                self._sums.take(raw, version=record.get("record") == "version")
        if record.get("record") != "version":
            raise BadLine(f"is a record of a kind that this release does not know: {str(record.get('record'))[:40]!r}")
        return record


def _header(first: bytes, name: str) -> dict[str, Any]:
    try:
        found = parsed(first.removeprefix(_BOM))
    except BadLine as error:
        raise InvalidInput("file", f"does not begin with the header of an export: line 1 {error}", name) from None
    if found.get("record") != "header" or found.get("format") != FORMAT:
        raise InvalidInput("file", "does not begin with the header of an export", name)
    version = found.get("version")
    if version != FORMAT_VERSION:
        raise InvalidInput(
            "file",
            f"has version {version} of the export format; this release reads version {FORMAT_VERSION}",
            name,
            hint="Install a newer release of Agora: `pip install --upgrade agora-memory`.",
        )
    encoder = found.get("encoder")
    if not isinstance(found.get("store"), str) or not isinstance(encoder, dict):
        raise InvalidInput("file", "has a header that lacks `store` or `encoder`", name)
    if not isinstance(encoder.get("digest"), str) or not isinstance(encoder.get("dimension"), int):
        raise InvalidInput("file", "has a header whose `encoder` lacks `digest` or `dimension`", name)
    return found
