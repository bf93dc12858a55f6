"""The move of a store to another encoder.

What waits is encoded, again and again, until so little is left that it can be encoded while the store is switched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from agora.errors import DeadlineExceeded, EncoderUnavailable, WarmingUp
from agora.maintenance.batches import Batches, UnlikeCut
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.log import Log
from agora.ports.reembedding import Begun, Reembedding, Switched
from agora.ports.vector_index import Progress

_TEXTS = 256
_CHARACTERS = 1 << 20
"""Texts, and characters of them, that are in memory at the same time, unless one text has more."""

_ROUNDS = 3
"""Rounds after which what others save meanwhile must get less from each to the next, or they are made to wait."""

_HOLDS = (0.25, 0.9)
"""Seconds for which the last rest may be encoded while nobody else can write: at first, and once that was too short."""

_SHARE = 0.6
"""Share of that time for which texts are planned, by the time that others took: some are longer."""

Say = Callable[[str], None]
"""Told what a person should know while it goes on."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of a move: `encoded` passages in this run, `deleted` vectors, `cut_anew` if texts were."""

    begun: Begun
    switched: Switched | None
    encoded: int
    deleted: int
    cut_anew: bool
    seconds: float


class Reembed:
    """Moves a store to an encoder. Blocking; what is done is kept whenever it stops."""

    def __init__(
        self, work: Reembedding, encoder: Encoder, clock: Clock, log: Log, *, batch: int, model_seconds: float
    ) -> None:
        """`batch`: passages that are encoded and kept together; `model_seconds`: what that may take."""
        self._work = work
        self._clock = clock
        self._log = log
        self._batches = Batches(encoder, batch, model_seconds)
        self._done = 0
        self._cut_anew = False
        self._too_slow = 0

    def run(self, caller: Caller, deadline: Deadline, progress: Progress, say: Say) -> Moved:
        """Move the store, and delete what nothing needs any more; `progress` counts notes, every version for itself.

        Raises: EmbeddingError, EncoderUnavailable, WarmingUp, StoreUnavailable; running it again goes on from there.
        """
        began = time.monotonic()
        begun = self._work.begin(deadline)
        if begun.abandoned is not None:
            say(f"gave up the unfinished move to {begun.abandoned}: its vectors are deleted")
        switched, deleted = None, begun.deleted
        if begun.needed:
            if begun.resumed:
                say("goes on where it was stopped")
            self._log.info("reembed begins", old=begun.old, resumed=begun.resumed, versions=begun.versions)
            switched = self._switched(caller, deadline, progress, say)
            self._log.info("store switched", passages=switched.passages, held=round(switched.held, 4))
            say("the store is switched; deletes the old vectors")
            deleted += self._work.clean(deadline)
        return Moved(
            begun, switched, self._batches.encoded, deleted, self._cut_anew, round(time.monotonic() - began, 3)
        )

    def _switched(self, caller: Caller, deadline: Deadline, progress: Progress, say: Say) -> Switched:
        """Rounds of encoding without a lock, each over what came during the one before, then the switch.

        Where others save as fast as this encodes, some of the rest is encoded while they wait, a fraction of a second
        each time: then it gets less with every turn, however busy they are.
        """
        before, rounds = None, 0
        while True:
            left = self._work.left(deadline)
            try:
                if left and (before is None or 2 * left < before or rounds < _ROUNDS):
                    self._round(left, deadline, progress)
                    before, rounds = left, rounds + 1
                elif (switched := self._try(caller, deadline)) is not None:
                    progress(self._done + left, self._done + left)
                    return switched
                elif left:
                    before = left
                else:
                    # More came in the meantime than fits into one turn: rounds first.
                    before, rounds = None, 0
            except UnlikeCut:
                say("the model cuts long texts in other places: their passages are made anew")
                self._work.cut_anew(deadline)
                self._cut_anew, self._done = True, 0
                before, rounds = None, 0

    def _round(self, left: int, deadline: Deadline, progress: Progress) -> None:
        """Encode as many texts as waited when the round began, and what their batch brings with them."""
        ends = self._done + left
        progress(self._done, ends)
        while self._done < ends and (texts := self._work.waiting(_TEXTS, _CHARACTERS, deadline)):
            for cuts in self._batches.of(texts, deadline):
                self._work.keep(cuts, deadline)
                self._done += len(cuts)
                progress(min(self._done, ends), ends)

    def _try(self, caller: Caller, deadline: Deadline) -> Switched | None:
        hold = _HOLDS[min(self._too_slow // 2, len(_HOLDS) - 1)]
        most = max(1, int(self._batches.rate * hold * _SHARE))
        try:
            return self._work.switch(
                lambda texts: self._batches.all_of(texts, deadline.within(hold)),
                most,
                caller,
                self._clock.now(),
                deadline,
            )
        except (DeadlineExceeded, EncoderUnavailable, WarmingUp) as error:
            # Nothing was written. Without the lock it may take its time, or tell that the encoder is down.
            self._log.info("the rest took too long for a lock", code=error.code, hold=hold)
            self._too_slow += 1
            return None
