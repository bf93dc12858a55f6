from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.errors import AgoraError
from agora.maintenance.residue import found_in, size_of
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.purge import Condemned, Emptied, Purged, Sample, Unwanted
from agora.ports import places
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.ports.places import Place
from agora.ports.purging import Purging

WAIT = 20.0
"""Seconds that all places together may take to become free, behind readers of an older state for one."""

_LEAST = 1.0
"""Seconds that each may take, however long those before it took."""

_SAMPLES = 16
"""Pieces of what goes that are looked for in every file afterwards."""

_OF_STORE = (places.FULL_TEXT, places.FILE, places.LOG, places.INDEX)

Told = Callable[[str], None]
"""Hears the name of the place that is being emptied."""

_AGAIN = "what it holds is not known: run `agora purge` again"


@dataclass(frozen=True, slots=True)
class Outside:
    """A place that is no part of the record store, and how to empty it."""

    place: Place
    empty: Callable[[], object]


class Purger:
    """Takes the bytes of forgotten notes out of every place, and looks whether they are gone.

    Blocking. A purge that is interrupted is finished by the next one: the rows are gone first, in one go with a mark in
    the store, and the mark stays until every place is clean.
    """

    def __init__(
        self,
        store: Purging,
        folder: Path,
        outside: Sequence[Outside],
        clock: Clock,
        log: Log,
        *,
        wait: float = WAIT,
    ) -> None:
        """`folder` is the data folder; `outside` the places in it that are not the store's.

        `wait`: seconds that the places may take to become free, before they are called unclean.
        """
        self._wait = wait
        self._store = store
        self._folder = folder
        self._outside = {each.place.name: each for each in outside}
        self._clock = clock
        self._log = log
        self._left: str | None = None

    def condemn(self, wanted: Unwanted, deadline: Deadline) -> Condemned:
        """What a purge of `wanted` would take.

        Raises: NoteNotFound, Conflict; StoreUnavailable.
        """
        return self._store.condemn(wanted, self._clock.now(), deadline)

    def unfinished(self, deadline: Deadline) -> str | None:
        """What stands for an earlier purge that did not come to its end; None if there is none."""
        return self._store.unfinished(deadline)

    def purge(
        self,
        condemned: Condemned,
        caller: Caller,
        deadline: Deadline,
        told: Told = lambda place: None,  # noqa: ARG005 - told to nobody
    ) -> Purged:
        """Purge what was condemned, and finish what an earlier purge left.

        Raises: StoreUnavailable if the rows cannot be deleted now; nothing, or only whole notes, went then.
        """
        before = size_of(self._folder, places.PLACES)
        samples = self._store.samples(condemned, _SAMPLES, deadline)
        told(places.ROWS.name)
        notes, versions = self._store.erase(condemned, caller, self._clock.now(), deadline)
        emptied = self._finish(samples, told)
        done = Purged(
            notes=notes,
            versions=versions,
            kept=len(condemned.groups) - notes,
            bytes_before=before,
            bytes_after=size_of(self._folder, places.PLACES),
            samples=len(samples),
            places=emptied,
        )
        self._log.info("notes purged", notes=notes, versions=versions, unfinished=done.unfinished)
        return done

    def finish(self) -> tuple[Emptied, ...]:
        """Empty every place once more, for a purge that did not come to its end."""
        return self._finish((), lambda place: None)  # noqa: ARG005 - nobody hears it

    def finish_left(self) -> dict[str, Any] | None:
        """Finish a purge that was there already at the last call: whoever began it had that long to do so.

        None if there was nothing to finish; else plain data: `unclean` names the places that are not clean.
        """
        left, self._left = self._left, self._store.unfinished(Deadline(self._wait))
        if self._left is None or self._left != left:
            return None
        return {"unclean": [each.place for each in self.finish() if each.problem is not None]}

    def _finish(self, samples: Sequence[Sample], told: Told) -> tuple[Emptied, ...]:
        # The rows are gone: from here on there has to be an answer, however long it takes.
        if self._store.remains(Deadline(self._wait)):
            self._store.sweep(self._clock.now(), Deadline(self._wait))
        unfinished = self._store.unfinished(Deadline(self._wait))
        problems: dict[str, str] = {}
        free_by = Deadline(self._wait)
        for place in places.PLACES if unfinished is not None else ():
            if (empty := self._emptying(place, Deadline(max(_LEAST, free_by.remaining())))) is None:
                continue
            told(place.name)
            try:
                empty()
            except AgoraError as error:
                problems[place.name] = f"{error.message}. {error.hint}".strip()
        for name, number in self._store.remains(Deadline(self._wait)).items():
            problems.setdefault(name, f"{number} rows still hold something of a purged note; run `agora doctor`")
        told("every file")
        for name, problem in self._residue(samples).items():
            problems.setdefault(name, problem)
        if unfinished is not None and not problems:
            self._store.finished(unfinished, Deadline(self._wait))
        return tuple(Emptied(place.name, problems.get(place.name)) for place in places.PLACES)

    def _emptying(self, place: Place, deadline: Deadline) -> Callable[[], object] | None:
        """What empties a place; None where the rows were all there was."""
        if place in _OF_STORE:
            return lambda: self._store.empty(place.name, deadline)
        outside = self._outside.get(place.name)
        return None if outside is None else outside.empty

    def _residue(self, samples: Sequence[Sample]) -> Mapping[str, str]:
        """By place, why its files are not clean: what went is in them, and no row that stays explains it."""
        problems: dict[str, str] = {}
        explained: dict[Sample, bool] = {}
        for place in places.PLACES:
            if not place.files:
                continue
            try:
                found = found_in(self._folder, place, samples)
            except OSError as error:
                problems[place.name] = f"a file cannot be read: {error.strerror or error}; {_AGAIN}"
                continue
            for sample, name in found.items():
                if sample not in explained:
                    explained[sample] = self._store.holds(sample, Deadline(self._wait))
                if not explained[sample]:
                    problems[place.name] = f"{name} still holds what was purged; run `agora purge` again"
        return problems
