"""Resources and prompts of backends: their lists, read once a session and again when the backend says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from agora.errors import AgoraError
from agora.router import listing

if TYPE_CHECKING:
    from agora.ports.backends import Session
    from agora.router.link import Link

Offered = Literal["resources", "prompts"]
Rows = Sequence[Mapping[str, Any]]

LIST_SECONDS: Final = 2.0
"""Seconds that a client's list waits for a backend; one that answers later is in the next list."""

_PAGE_SECONDS = 15.0

CHANGED: Mapping[str, Offered] = {
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}
"""What a backend says of its lists, by its notifications."""


class Offers:
    """The lists of one backend. Used by the event loop alone, but for `versions` and `trouble`."""

    def __init__(self) -> None:
        self.versions: dict[Offered, int] = {"resources": 0, "prompts": 0}
        """Each grows when that list is another than somebody was given."""
        self.troubles: dict[Offered, str] = {}
        self._session: Session | None = None
        self._reading: dict[Offered, tuple[float, asyncio.Task[Rows]]] = {}
        self._last: dict[Offered, Rows] = {}

    @property
    def trouble(self) -> str | None:
        """Why a list could not be read when that was last tried; None if it could."""
        return next(iter(self.troubles.copy().values()), None)

    async def rows(self, link: Link, kind: Offered) -> Rows:
        """The list, from the session that there is, else from a new one; empty if it takes longer than `LIST_SECONDS`.

        What is wrong then stands in `trouble`.
        """
        loop = asyncio.get_running_loop()
        if kind not in self._reading or (self._session is not None and link.session is not self._session):
            task = loop.create_task(self._read(link, kind))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._reading[kind] = loop.time(), task
        began, task = self._reading[kind]
        try:
            async with asyncio.timeout(max(0.0, began + LIST_SECONDS - loop.time())):
                return await asyncio.shield(task)
        except TimeoutError:
            self.troubles[kind] = f"its list of {kind} has not come within {LIST_SECONDS:g} s"
        except AgoraError as error:
            self._reading.pop(kind, None)
            self.troubles[kind] = f"its list of {kind} could not be read: {error.message}"
        return ()

    def forget(self, kind: Offered) -> None:
        """The backend has said that this list is another now."""
        self._reading.pop(kind, None)
        self.versions[kind] += 1

    async def _read(self, link: Link, kind: Offered) -> Rows:
        task = asyncio.current_task()
        session = await link.ready()
        if session is not self._session:
            # What an earlier session listed is read anew; this reading goes on.
            self._session = session
            self._reading = {each: (began, read) for each, (began, read) in self._reading.items() if read is task}
        rows = await listing.rows(link.table.name, session, kind, _PAGE_SECONDS)
        late = self.troubles.pop(kind, None) is not None
        before, self._last[kind] = self._last.get(kind), rows
        if late or (before is not None and before != rows):
            self.versions[kind] += 1
        return rows
