"""The one place where it is decided what a caller may read and write.

The services of the memory hold no record store but a `Guarded` one. Whatever they read comes through `Guarded.read`,
which refuses namespaces that the caller may not read and lets no note of another one out; whatever they change goes
through its `save`, `forget`, `restore` and `pin`; of the journal it hands out a `Tail`. What counts beyond the caller's
namespaces leaves by `concealed` and `shown_status`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from agora.errors import AgoraError, EmbeddingMismatch, NamespaceDenied
from agora.model.access import Right
from agora.model.browse import Event, Listing, Named, Page
from agora.model.caller import Caller, Origin
from agora.model.crossref import Changes, CrossReference, Read, Topic
from agora.model.deadline import Deadline
from agora.model.fact import Recalled, Remembered
from agora.model.note import Draft, Note, Saved
from agora.model.profile import Span
from agora.model.query import Answer, Filter
from agora.model.selection import Forgotten, Pinned, Restored, Selection
from agora.ports.kept_results import KeptResult, KeptResults
from agora.text.ids import is_id, new_id

if TYPE_CHECKING:
    from agora.ports.records import Embedded, Reading, Records, State
    from agora.ports.text_index import TextView
    from agora.ports.vector_index import Among, VectorView

T = TypeVar("T", Answer, CrossReference, Saved, Forgotten, Restored, Pinned, Page, Remembered, Recalled)

_WAY_OUT = "`agora access` on the server's machine shows what the [[access]] tables of agora.toml allow to whom."


def require(caller: Caller, namespaces: Iterable[str], right: Right = "read") -> None:
    """Return if the caller has that right in all of `namespaces`, of which there is at least one.

    Raises: NamespaceDenied. Whether there is such a namespace, or anything in it, makes no difference.
    """
    scope, asked = caller.scope, False
    for namespace in namespaces:
        asked = True
        if not scope.may(right, namespace):
            raise _denied(caller, namespace, right)
    if not asked:
        raise _denied(caller, scope.own, right)


def _denied(caller: Caller, namespace: str, right: Right) -> NamespaceDenied:
    scope, visible = caller.scope, caller.scope.visible()
    if not visible and not scope.grants.given:
        return NamespaceDenied(
            f"{scope.grants.who} may not use the memory at all",
            hint=f"No [[access]] table gives it anything: whoever runs the server can add one. {_WAY_OUT}",
        )
    seen = f"Visible here: {', '.join(sorted(visible)) or 'none until one is named'}."
    if scope.may("read", namespace):
        return NamespaceDenied(
            f"namespace {namespace!r} may be read by this caller, but this takes the right {right!r} in it",
            hint=f"Whoever runs the server can give it. {_WAY_OUT}",
        )
    return NamespaceDenied(
        f"namespace {namespace!r} is outside what this caller may see",
        hint=f"{seen} {_WAY_OUT}" if scope.grants.tables else seen,
    )


class Tail:
    """Some changes of the journal in their order, looked at once for all who listen: each is shown its own.

    `head` is the journal's last sequence, `last` that of the last of these changes, and `head` if there are none.
    """

    def __init__(self, head: int, events: Sequence[Event]) -> None:
        self.head = head
        self.last = events[-1].sequence if events else head
        self._events = tuple(events)

    def __len__(self) -> int:
        """How many there are, whoever may know of them: for the watch, which tells nobody."""
        return len(self._events)

    def of(self, caller: Caller) -> tuple[Event, ...]:
        """Those that the caller may know of; changes of the store as a whole are for all who see anything."""
        visible = frozenset(caller.scope.visible())
        return tuple(
            event for event in self._events if visible and (event.namespace is None or event.namespace in visible)
        )


def concealed(caller: Caller, answer: T) -> T:
    """`answer` without what counts all namespaces, unless the caller may see all of them."""
    if caller.scope.grants.whole:
        return answer
    if isinstance(answer, CrossReference):
        return replace(answer, sequence=None, changes=concealed_changes(caller, answer.changes))
    return replace(answer, sequence=None)


def concealed_changes(caller: Caller, changes: Changes) -> Changes:
    """As `concealed`, for changes."""
    if caller.scope.grants.whole:
        return changes
    return replace(changes, newest=tuple(replace(change, sequence=None) for change in changes.newest))


_OWN_STATUS = (
    *("health", "version", "notes", "facts", "statements", "messages", "conversations"),
    *("agents", "more_agents", "namespaces", "more_namespaces"),
    *("redaction", "session"),
)
_OF_INDEX = ("kind", "kernel", "passages")
_OF_MODEL = ("model", "state", "dimension")
_OF_PROBLEM = ("code", "hint")


def shown_status(caller: Caller, status: Mapping[str, Any]) -> dict[str, Any]:
    """A status with the caller's rights in it; without what tells of others, if the caller may not see everything.

    Then problems are named by their code alone: messages hold numbers, paths and ids.
    """
    access = {"access": caller.scope.grants.details()}
    if caller.scope.grants.whole:
        return {**status, **access}
    found = {name: status[name] for name in _OWN_STATUS if name in status}
    for name, kept in (("index", _OF_INDEX), ("model", _OF_MODEL)):
        if name in status:
            found[name] = {each: status[name][each] for each in kept if each in status[name]}
    codes = {problem["code"]: problem for problem in status.get("problems", ())}
    found["problems"] = [{each: problem[each] for each in _OF_PROBLEM if each in problem} for problem in codes.values()]
    return {**found, **access}


class Guarded:
    """A record store as the services of the memory reach it: each call says for whom it is."""

    def __init__(self, records: Callable[[Deadline], Records]) -> None:
        """`records` gives the store, which may have to be opened first."""
        self._records = records

    @contextlib.contextmanager
    def read(self, caller: Caller, deadline: Deadline) -> Iterator[Reading]:
        """One read transaction in which nothing is found that the caller may not read.

        Raises: NamespaceDenied if there is nothing that the caller may read; as `Records.read`.
        """
        if not (visible := caller.scope.visible()):
            raise _denied(caller, caller.scope.own, "read")
        with self._records(deadline).read(deadline) as reading:
            yield _Reading(reading, caller, frozenset(visible))

    def counts(self, caller: Caller, deadline: Deadline) -> tuple[dict[str, Any], int]:
        """Numbers of rows that the caller may see, zero for one who may see none, and the sequence they are of."""
        with self._records(deadline).read(deadline) as reading:
            return reading.counts(caller.scope.visible()), reading.sequence

    def events(self, since: int | None, most: int, deadline: Deadline) -> Tail:
        """As `Records.events`, for whoever listens to be shown its own."""
        return Tail(*self._records(deadline).events(since, most, deadline))

    def mismatch(self, deadline: Deadline) -> EmbeddingMismatch | None:
        """As `Records.mismatch`."""
        return self._records(deadline).mismatch

    def save(self, draft: Draft, caller: Caller, embedded: Embedded | None, now: datetime, deadline: Deadline) -> Saved:
        """As `Records.save`.

        Raises: NamespaceDenied without the right to write.
        """
        require(caller, (draft.namespace,), "write")
        return self._records(deadline).save(draft, caller, embedded, now, deadline)

    def forget(
        self, selection: Selection, caller: Caller, now: datetime, deadline: Deadline, *, dry_run: bool
    ) -> Forgotten:
        """As `Records.forget`; who may write but not administer forgets only what came with the same token.

        Raises: NamespaceDenied.
        """
        require(caller, selection.namespaces)
        closed = [name for name in selection.namespaces if not caller.scope.may("write", name)]
        if closed and not selection.ids:
            raise _denied(caller, closed[0], "write")
        self._none_in(closed, selection.ids, caller, "write", deadline)
        selection = replace(
            selection,
            own_only=tuple(name for name in selection.namespaces if not caller.scope.may("admin", name)),
            own_token=caller.scope.grants.identity,
        )
        return self._records(deadline).forget(selection, caller, now, deadline, dry_run=dry_run)

    def restore(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline) -> Restored:
        """As `Records.restore`.

        Raises: NamespaceDenied if one of them is in a namespace that the caller may read and not administer.
        """
        self._require_admin(ids, caller, deadline)
        return self._records(deadline).restore(ids, caller, now, deadline)

    def pin(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline, *, pinned: bool) -> Pinned:
        """As `Records.pin`.

        Raises: NamespaceDenied as `restore`.
        """
        self._require_admin(ids, caller, deadline)
        return self._records(deadline).pin(ids, caller, now, deadline, pinned=pinned)

    def log_read(self, read: Read, failed: Callable[[AgoraError], None], deadline: Deadline) -> None:
        """As `Records.log_read`."""
        self._records(deadline).log_read(read, failed)

    def settle_reads(self, deadline: Deadline) -> None:
        """As `Records.settle_reads`."""
        self._records(deadline).settle_reads(deadline)

    def details(self, deadline: Deadline) -> dict[str, Any]:
        """As `Records.details`: of the whole store, for `shown_status` to cut."""
        return self._records(deadline).details()

    def _require_admin(self, ids: Sequence[str], caller: Caller, deadline: Deadline) -> None:
        """Return if all of `ids` that the caller may read are where it may administer."""
        closed = [name for name in caller.scope.visible() if not caller.scope.may("admin", name)]
        require(caller, caller.scope.visible())
        self._none_in(closed, ids, caller, "admin", deadline)

    def _none_in(
        self, closed: Sequence[str], ids: Sequence[str], caller: Caller, right: Right, deadline: Deadline
    ) -> None:
        """Return if none of `ids` is in the namespaces `closed`, in which the caller lacks `right`."""
        if not closed:
            return
        with self.read(caller, deadline) as reading:
            for name in closed:
                if reading.by_id(ids, (name,)) or reading.purged(ids, (name,)):
                    raise _denied(caller, name, right)


class GuardedResults:
    """Long results of other servers' tools as callers reach them: whoever may read their namespace may read them."""

    def __init__(self, results: Callable[[Deadline], KeptResults]) -> None:
        """`results` gives what keeps them, which may have to be opened first."""
        self._results = results

    def keep(  # noqa: PLR0913 - whose result it is, and for how long
        self,
        content: bytes,
        backend: str,
        tool: str,
        caller: Caller,
        now: datetime,
        deadline: Deadline,
        *,
        hours: float,
    ) -> KeptResult:
        """Keep a result, its secrets taken out, in the caller's own namespace; it says by which id it is found.

        Raises: NamespaceDenied; as `KeptResults.keep`.
        """
        require(caller, (caller.scope.own,))
        id_ = new_id("r", int(now.timestamp() * 1000))
        result = KeptResult(id_, caller.scope.own, backend, tool, now, now + timedelta(hours=hours), content)
        self._results(deadline).keep(result, deadline)
        return result

    def fetch(self, id_: str, caller: Caller, now: datetime, deadline: Deadline) -> KeptResult | None:
        """The result of that id. None if there is none, if it has expired, and if the caller may not read it.

        Raises: as `KeptResults.fetch`.
        """
        found = self._results(deadline).fetch(id_, now, deadline) if is_id(id_, "r") else None
        return found if found is not None and found.namespace in caller.scope.visible() else None


class _Reading:
    """A reading for one caller; implements `agora.ports.records.Reading`."""

    def __init__(self, reading: Reading, caller: Caller, visible: frozenset[str]) -> None:
        self._reading = reading
        self._caller = caller
        self._visible = visible

    @property
    def sequence(self) -> int:
        """As `Reading.sequence`. It counts everybody's changes: what leaves the memory goes through `concealed`."""
        return self._reading.sequence

    @property
    def vectors(self) -> VectorView:
        """As `Reading.vectors`; it is asked with what `among` made."""
        return self._reading.vectors

    @property
    def text(self) -> TextView:
        """As `Reading.text`; it is asked with what `among` made."""
        return self._reading.text

    def state(self, namespaces: Sequence[str]) -> State:
        """As `Reading.state`."""
        self._require(namespaces)
        return self._reading.state(namespaces)

    def among(self, where: Filter) -> Among:
        """As `Reading.among`."""
        self._require(where.namespaces)
        return self._reading.among(where)

    def same_text(self, draft: Draft, origin: Origin = "agent") -> bool:
        """As `Reading.same_text`."""
        self._require((draft.namespace,))
        return self._reading.same_text(draft, origin)

    def require_room(self, draft: Draft, caller: Caller) -> None:
        """As `Reading.require_room`."""
        self._require((draft.namespace,))
        self._reading.require_room(draft, caller)

    def by_row(self, wanted: Sequence[int]) -> dict[int, Note]:
        """As `Reading.by_row`: the row of another namespace does not exist."""
        found = self._reading.by_row(wanted)
        return {row: note for row, note in found.items() if note.namespace in self._visible}

    def span(self, row: int, passage: int) -> Span:
        """As `Reading.span`."""
        return self._reading.span(row, passage)

    def by_id(self, ids: Sequence[str], namespaces: Sequence[str]) -> dict[str, tuple[int, Note]]:
        """As `Reading.by_id`."""
        self._require(namespaces)
        return self._reading.by_id(ids, namespaces)

    def purged(self, ids: Sequence[str], namespaces: Sequence[str]) -> frozenset[str]:
        """As `Reading.purged`."""
        self._require(namespaces)
        return self._reading.purged(ids, namespaces)

    def history(self, note: Note) -> tuple[Note, ...]:
        """As `Reading.history`."""
        self._require((note.namespace,))
        return self._reading.history(note)

    def changes(self, topic: Topic, caller: Caller, most: int) -> Changes:
        """As `Reading.changes`."""
        self._require(topic.namespaces)
        return self._reading.changes(topic, caller, most)

    def page(self, wanted: Listing) -> Page:
        """As `Reading.page`."""
        self._require(wanted.namespaces)
        return self._reading.page(wanted)

    def names(self, kind: Named, beginning: str, namespaces: Sequence[str], most: int) -> tuple[tuple[str, ...], int]:
        """As `Reading.names`."""
        self._require(namespaces)
        return self._reading.names(kind, beginning, namespaces, most)

    def counts(self, namespaces: Sequence[str]) -> dict[str, Any]:
        """As `Reading.counts`."""
        self._require(namespaces)
        return self._reading.counts(namespaces)

    def _require(self, namespaces: Iterable[str]) -> None:
        require(self._caller, namespaces)
