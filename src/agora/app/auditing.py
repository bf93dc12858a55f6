"""What `agora audit` and `agora revert` do: the journal listed and verified, and one writer's changes undone.

Neither opens the store as a server does: the journal is read from a connection that only reads, and a revert moves rows
that have their vectors. So both work where the model is missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from agora.app.clock import SystemClock
from agora.app.files import STORE_FILE
from agora.app.guarding import guard_of
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.errors import NotFound
from agora.maintenance.revert import Reverter
from agora.model.audit import Entries, Entry, Head, Listed, Verified, Wanted, Writer
from agora.model.caller import Caller, Origin
from agora.model.calls import CallEntry
from agora.protocol.context import Connection
from agora.stores.sqlite import audit
from agora.stores.sqlite.audit_revert import SqliteReverting


def listed(loaded: Loaded, wanted: Wanted, *, changes: bool = True, calls: bool = False) -> Listed:
    """The rows of the journal that are wanted, those of the record of calls, or both, by time.

    Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
    """
    path = loaded.settings.home / STORE_FILE
    found = audit.entries(path, wanted) if changes else Entries((), 0)
    called, total = audit.called(path, wanted) if calls else ((), 0)
    rows: list[Entry | CallEntry] = [*found.rows, *called]
    if changes and calls:
        rows.sort(key=lambda row: row.at)
    return Listed(tuple(rows[-wanted.limit :]), found.total + total)


def verified(loaded: Loaded, known: Head | None = None) -> Verified:
    """Whether the journal is whole, and has the head `known` that it had before; from one snapshot.

    Raises: as `listed`.
    """
    return audit.verify(loaded.settings.home / STORE_FILE, known)


def verified_calls(loaded: Loaded, known: Head | None = None) -> Verified:
    """As `verified`, of the record of calls.

    Raises: as `listed`.
    """
    return audit.verify_calls(loaded.settings.home / STORE_FILE, known)


@contextlib.contextmanager
def reverting(loaded: Loaded, writer: Writer, client: str, origin: Origin) -> Iterator[tuple[Reverter, Caller]]:
    """What undoes the changes of `writer`, and as whom, for the length of a block.

    Raises: NotFound if the store has not heard of a name of the writer's; as `listed`.
    """
    settings, path = loaded.settings, loaded.settings.home / STORE_FILE
    missing = audit.unheard(path, writer)
    if missing is not None:
        # A writer that is misspelt must not look like one without changes.
        kind, name, known = missing
        raise NotFound(f"the store has no {kind} {name!r}", hint=f"Its newest: {', '.join(known) or 'none yet'}.")
    clock = SystemClock()
    connection = Connection(
        at_ms=int(clock.now().timestamp() * 1000),
        origin=origin,
        folder=Path.cwd(),
        namespace=settings.namespace.default,
        agent=settings.agent,
        guard=guard_of(settings),
    )
    if not path.exists():
        raise NotFound(f"there is no store in {settings.home}", hint="Name the data folder: --home or AGORA_HOME.")
    with SqliteReverting(
        path, synchronous=settings.store.synchronous, busy_timeout=settings.store.busy_timeout
    ) as store:
        yield Reverter(store, clock, get_logger("agora")), connection.caller(client)
