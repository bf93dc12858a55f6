from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agora.memory.access import Guarded, concealed, concealed_changes
from agora.model.browse import Listing, Named, Page
from agora.model.caller import Caller
from agora.model.crossref import Changes, Topic
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    from agora.ports.records import Records


class Browsing:
    """Looks around in the notes without a question: who saved what, what changed, which names there are.

    Blocking; call it from a worker thread. The caller's scope bounds what it sees.
    """

    def __init__(self, records: Callable[[Deadline], Records]) -> None:
        """`records` gives the store, which may have to be opened first."""
        self._records = Guarded(records)

    def page(self, wanted: Listing, caller: Caller, deadline: Deadline) -> Page:
        """Live notes, newest first, a page at a time.

        Raises: NamespaceDenied; StoreUnavailable.
        """
        with self._records.read(caller, deadline) as reading:
            return concealed(caller, reading.page(wanted))

    def names(
        self, kind: Named, beginning: str, caller: Caller, deadline: Deadline, most: int
    ) -> tuple[tuple[str, ...], int]:
        """Names that begin so of what the caller may see, at most `most`, and how many there are."""
        with self._records.read(caller, deadline) as reading:
            return reading.names(kind, beginning, caller.scope.visible(), most)

    def changes(self, topic: Topic, caller: Caller, deadline: Deadline, most: int) -> Changes:
        """What others changed in the topic's namespaces: since its time, or since the caller's agent last read.

        Raises: NamespaceDenied; StoreUnavailable.
        """
        with self._records.read(caller, deadline) as reading:
            return concealed_changes(caller, reading.changes(topic, caller, most))
