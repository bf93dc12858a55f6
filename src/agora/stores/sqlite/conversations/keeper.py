from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime

from agora.errors import EmbeddingMismatch
from agora.model.allowance import Allowances
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.message import MessageDraft, Strategy, Summary
from agora.model.profile import Fingerprint
from agora.ports.conversations import Appended
from agora.ports.records import Embedded
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.conversations.reading import SqliteConversationReading
from agora.stores.sqlite.conversations.writing import Append, Summarize
from agora.stores.sqlite.migrations import check_version
from agora.text.ids import new_id

_DEFAULT: Strategy = "all"


class SqliteConversations:
    """Implements `agora.ports.conversations.Conversations`."""

    def __init__(
        self,
        database: Database,
        fingerprint: Fingerprint,
        mismatch: Callable[[sqlite3.Connection], EmbeddingMismatch],
        allowances: Allowances | None,
        *,
        default: Strategy = _DEFAULT,
    ) -> None:
        """`mismatch` says how the store's profile differs from `fingerprint`. `default`: as the reading has it."""
        self._database = database
        self._fingerprint = fingerprint
        self._digest = fingerprint.digest()
        self._mismatch = mismatch
        self._allowances = allowances
        self._default: Strategy = default

    @contextlib.contextmanager
    def read(self, deadline: Deadline) -> Iterator[SqliteConversationReading]:
        """As `Conversations.read`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            yield SqliteConversationReading(connection, self._digest, self._default)

    def append(
        self,
        draft: MessageDraft,
        caller: Caller,
        embedded: Embedded | None,
        now: datetime,
        deadline: Deadline,
        *,
        strategy: Strategy | None = None,
    ) -> Appended:
        """As `Conversations.append`."""
        micros = to_micros(now)
        job = Append(draft, caller, new_id("m", micros // 1000), micros, embedded, strategy, self._allowances)

        def run(connection: sqlite3.Connection) -> Appended:
            if embedded is not None:
                # Asked of the file and not remembered: another process may have moved the store since.
                active = "SELECT 1 FROM encoders WHERE state = 'active' AND digest = ?"
                if (
                    embedded.fingerprint != self._fingerprint
                    or connection.execute(active, (self._digest,)).fetchone() is None
                ):
                    raise self._mismatch(connection)
            return job(connection)

        return self._database.write(run, deadline)

    def summarize(  # noqa: PLR0913, PLR0917 - as the port
        self,
        namespace: str,
        session: str,
        summary: Summary,
        replaces: int,
        seen: int,
        caller: Caller,
        now: datetime,
        deadline: Deadline,
    ) -> Summary:
        """As `Conversations.summarize`."""
        micros = to_micros(now)
        job = Summarize(namespace, session, summary, replaces, seen, caller, new_id("s", micros // 1000), micros)
        return self._database.write(job, deadline)
