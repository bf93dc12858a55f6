"""Exports and imports of a store under test, through the services and real files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.conftest import Desk

from agora.exchange import native, sources, targets
from agora.exchange.exporting import Exporter
from agora.exchange.importing import Importer, Wanted
from agora.exchange.report import Report
from agora.exchange.taking import PUT_OFF
from agora.maintenance.purge import Purger
from agora.model.caller import Caller, Origin
from agora.model.deadline import Deadline
from agora.model.purge import Purged, Unwanted
from agora.ports.transfer import Extract, Giver, Profile, Replaced, Version
from agora.protocol.context import namespace_argument
from agora.testing import SilentLog
from agora.text.identity import content_hash
from agora.text.ids import new_id

LIMIT = 262_144
PATIENCE = 300.0
"""Seconds for a whole file, also of twelve thousand rows beside other tests."""
NOON = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)


def send(
    desk: Desk, file: Path, namespaces: tuple[str, ...] = (), *, read_back: bool = True, **extract: Any
) -> list[bytes]:
    """Export to `file`; its lines."""
    transfer, deadline = desk.store.transfer(), Deadline(PATIENCE)
    wanted = namespaces or transfer.namespaces(deadline)
    with targets.opened(str(file), replace=True) as out:
        caller = desk.caller(also=wanted)
        exporter = Exporter(transfer, desk.clock, SilentLog())
        exporter.run(Extract(wanted, **extract), caller, out, deadline, all_namespaces=not namespaces)
    return lines_of(file) if read_back else []


def lines_of(file: Path) -> list[bytes]:
    """The lines of an export, whether gzipped or not."""
    with sources.opened(str(file)) as [source]:
        return [line for _, line in source.lines()]


def versions_of(lines: list[bytes]) -> list[bytes]:
    """The lines between header and end."""
    assert json.loads(lines[0])["record"] == "header"
    assert json.loads(lines[-1])["record"] == "end"
    return lines[1:-1]


def take(
    desk: Desk,
    file: Path,
    *,
    importer: Origin = "user",
    content_bytes: int = LIMIT,
    put_off: int = PUT_OFF,
    session: str = "s9",
    **wanted: Any,
) -> Report:
    """Import `file`; a namespace is visible once it is named, as on the command line."""

    def callers(namespace: str | None) -> Caller:
        own = namespace_argument(namespace or "p")
        return desk.caller("imp", own, session=session, client="importer", origin=importer)

    with sources.opened(str(file)) as [source]:
        transfer, log = desk.store.transfer(), SilentLog()
        taking = Importer(transfer, desk.encoder, desk.clock, log, content_bytes=content_bytes, put_off=put_off)
        return taking.run(source, callers, Wanted(**wanted), Deadline(PATIENCE))


def version(number: int, content: str, **fields: Any) -> Version:
    """A version that somebody elsewhere made."""
    agent = fields.pop("agent", "eve")
    giver = Giver(agent, "elsewhere", "2", "", "s7", "agent", NOON, NOON)
    made: dict[str, Any] = {
        "id": new_id("n", int(NOON.timestamp() * 1000) + number),
        "namespace": "p",
        "content": content,
        "created_at": NOON,
        "updated_at": NOON,
        "savers": (giver,),
    }
    return Version(**made | fields)


def chain(*texts: str, start: int = 1, key: str = "k", first: int = 1) -> list[Version]:
    """Versions of one key, each replacing the one before it."""
    made = [
        version(first + n, text, key=key, version=start + n, created_at=NOON + timedelta(minutes=first + n))
        for n, text in enumerate(texts)
    ]
    for n, (old, new) in enumerate(pairwise(made)):
        at = new.created_at
        made[n] = replace(made[n], superseded_by=new.id, superseded_at=at)
        made[n + 1] = replace(new, supersedes=old.id, replaces=(Replaced(old.id, content_hash(old.content or "")),))
    return made


def contents(desk: Desk, key: str = "k") -> list[tuple[int, str, bool]]:
    """Number, text and whether it is current, of every version of a key."""
    return desk.sql(
        "SELECT i.version, t.content, i.superseded_by IS NULL FROM items i JOIN texts t ON t.item_id = i.id"
        " WHERE i.key = ? ORDER BY i.version, i.id",
        key,
    )


def purge(desk: Desk, *ids: str) -> Purged:
    """Purge what is forgotten, or of that what `ids` name."""
    purger = Purger(desk.store.purging(), desk.folder, (), desk.clock, SilentLog())
    return purger.purge(purger.condemn(Unwanted(("p",), ids), Deadline(PATIENCE)), desk.caller(), Deadline(PATIENCE))


@dataclass
class Elsewhere:
    """A store of somebody else, on its way out; implements `agora.ports.transfer.Outgoing`."""

    made: list[Version]
    profile: Profile
    store: str = "s_01KF0000000000000000000000"
    sequence: int = 1

    @property
    def counts(self) -> dict[str, int]:
        return {"p": len(self.made)}

    def versions(self) -> Iterator[Version]:
        return iter(self.made)


def write(file: Path, versions: list[Version], *, dimension: int = 64, digest: str = "0" * 64) -> Path:
    """An export that holds `versions`."""
    outgoing = Elsewhere(versions, Profile(digest, "other", dimension))
    lines = [native.line(native.header(outgoing, Extract(("p",)), all_namespaces=True, now=NOON))]
    lines += [native.line(native.record_of(each)) for each in versions]
    file.write_bytes(b"".join([*lines, end_of(lines)]))
    return file


def end_of(lines: list[bytes]) -> bytes:
    """The last line for a header and versions."""
    sums = native.Sums()
    for number, line in enumerate(lines):
        sums.take(line, version=number > 0)
    return native.line(sums.end())


def foreign(folder: Path, name: str, text: str | bytes) -> Path:
    """A file of another tool."""
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def notes_of(desk: Desk, namespace: str = "p") -> list[dict[str, Any]]:
    """Every live note with what an import decides about it, in the order in which they came."""
    names = ("content", "title", "kind", "key", "metadata", "session", "occurred_at", "agent", "origin")
    rows = desk.sql(
        "SELECT t.content, t.title, i.kind, i.key, t.metadata, i.session, i.occurred_at, a.name, s.origin FROM items i"
        " JOIN texts t ON t.item_id = i.id JOIN savers s ON s.item_id = i.id"
        " JOIN agents a ON a.id = s.agent_id JOIN namespaces n ON n.id = i.namespace_id"
        " WHERE s.n = 0 AND n.name = ? AND i.superseded_by IS NULL AND i.forgotten_at IS NULL ORDER BY i.id",
        namespace,
    )
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return [note | {"metadata": json.loads(note["metadata"])} for note in found]
