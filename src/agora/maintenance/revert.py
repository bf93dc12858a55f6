from __future__ import annotations

from collections.abc import Callable

from agora.model.audit import ORDER, Left, Plan, Reverted, Step, Writer
from agora.model.caller import Caller, Origin
from agora.model.deadline import Deadline
from agora.ports.audit import Reverting
from agora.ports.clock import Clock
from agora.ports.log import Log

BATCH = 100
"""Steps that go in one transaction: others write in between."""

Told = Callable[[int, int], None]
"""Hears how many steps are done, and of how many."""


class Reverter:
    """Undoes one writer's changes, a batch of whole notes at a time.

    Blocking. What is done is known by the state of the notes alone: one that is interrupted is gone on with by running
    it again, and one that was run to its end finds nothing to do.
    """

    def __init__(self, store: Reverting, clock: Clock, log: Log, *, batch: int = BATCH) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._batch = batch

    def plan(self, writer: Writer, origin: Origin, deadline: Deadline) -> Plan:
        """What a revert by somebody of this origin would do now, and what it would leave.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        return self._store.plan(writer, origin, self._clock.now(), deadline)

    def revert(
        self,
        writer: Writer,
        caller: Caller,
        deadline: Deadline,
        told: Told = lambda done, of: None,  # noqa: ARG005 - told to nobody
    ) -> Reverted:
        """Undo what there is to undo of `writer`, as `caller`.

        Raises: as `plan`; the batches before are done then.
        """
        planned = self.plan(writer, caller.origin, deadline)
        done: list[Step] = []
        left: list[Left] = []
        seen = 0
        for undoing in ORDER:
            steps = [step for step in planned.steps if step.undoing == undoing]
            for start in range(0, len(steps), self._batch):
                part = steps[start : start + self._batch]
                now_done, now_left = self._store.undo(part, writer, caller, self._clock.now(), deadline)
                done += now_done
                left += now_left
                seen += len(part)
                told(seen, len(planned.steps))
        stays = self.plan(writer, caller.origin, deadline)
        known = {each.id for each in left}
        left += [each for each in stays.left if each.id not in known]
        known |= {each.id for each in left}
        left += [Left(each.id, each.namespace, _CHANGED) for each in stays.steps if each.id not in known]
        if done:
            self._log.info("changes reverted", steps=len(done), left=len(left))
        return Reverted(tuple(done), tuple(left), self._store.sequence(deadline), stays.calls)


_CHANGED = "it was changed while the revert ran: run it again"
