from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, Self

FORMAT = 1
"""Of the file that holds a mark; one of another format is worth nothing."""

State = Literal["open", "writing", "opening", "closed"]


@dataclass(frozen=True, slots=True)
class File:
    """What a file of Chroma's was when it was last looked at; the checksum is that of a closed index alone."""

    size: int
    modified: int
    crc: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What Chroma's folder holds: which changes of which store, and which files that made.

        {"format": 1, "store": "s_…/1", "sequence": 812, "hash": "…", "after": null, "collection": "…", "built": 640,
         "dead": 12, "keep": null, "state": "open", "files": {"…/header.bin": {"size": 100, …}}, "boot": "…"}

    The rows up to `after` (all rows, if it is None) are as of `sequence`, those above it are not there yet. `built` is
    the sequence at which the database was begun, `dead` counts the ids that were deleted from the collection. `keep`
    are the graphs that stay should the compaction that builds another one beside them not come to its end.

    `writing` stands there while Chroma may change its files, `opening` while it reads them for the first time: a
    process that finds either knows that another one died in between. `closed` covers every file by its checksum. `boot`
    names the run of the machine in which it was written: after a power cut a file may be of the right size and time,
    and have holes.
    """

    store: str
    sequence: int
    hash: str | None
    after: int | None
    built: int
    collection: str = ""
    dead: int = 0
    keep: list[str] | None = None
    state: State = "writing"
    files: dict[str, File] = field(default_factory=dict)
    boot: str | None = None

    @property
    def hashed(self) -> bytes | None:
        """The journal's hash at `sequence`."""
        return None if self.hash is None else bytes.fromhex(self.hash)

    def as_text(self) -> str:
        """The mark as it is kept."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """The mark in `text`; None if there is none that can be read."""
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT:
                return None
            files = {name: File(**each) for name, each in data.pop("files").items()}
            return cls(**data, files=files)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
