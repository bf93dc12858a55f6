"""Facts for the tests of what befalls them: told by somebody, recalled, and what the timeline says of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.conftest import PATIENCE, Desk

from agora.memory.facts import FactMemory
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.model.fact import FactDraft, Recalled, Recollection, Remembered
from agora.ports.extractor import Extraction
from agora.testing import SilentLog


class NothingFound:
    """An extractor for texts without facts."""

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        """Nothing."""
        del text, deadline
        return Extraction((), "nothing")


def memory(desk: Desk) -> FactMemory:
    """The facts of a desk."""
    return FactMemory(desk.store.facts(), desk.encoder, desk.clock, SilentLog(), NothingFound(), model_seconds=PATIENCE)


def tell(
    desk: Desk,
    value: Any,
    agent: str = "ann",
    *,
    key: str = "port",
    subject: str = "db",
    namespace: str = "p",
    origin: Origin = "agent",
    since: float | None = None,
    until: float | None = None,
    lives: float | None = None,
    **fields: Any,
) -> Remembered:
    """Remember a fact; `since`, `until` and `lives` are seconds from now."""
    now = desk.clock.now()
    times = {"valid_from": since, "valid_to": until, "expires_at": lives}
    fields |= {name: now + timedelta(seconds=value) for name, value in times.items() if value is not None}
    draft = FactDraft(namespace, subject, key, value, **fields)
    return memory(desk).remember(draft, desk.caller(agent, namespace, origin=origin), Deadline(PATIENCE))


def recall(desk: Desk, key: str | None = None, *, namespace: str = "p", **wanted: Any) -> Recalled:
    """What is known of the subject."""
    asked = Recollection((namespace,), "db", key, **wanted)
    return memory(desk).recall(asked, desk.caller(namespace=namespace), Deadline(PATIENCE))


def values(desk: Desk, key: str | None = None, **wanted: Any) -> list[Any]:
    """What holds."""
    return sorted((stands.fact.value for stands in recall(desk, key, **wanted).facts), key=str)


def everything(desk: Desk, at: datetime | None = None, known_at: datetime | None = None) -> list[tuple[object, ...]]:
    """What recall says of every statement, without what no two stores have in common."""
    recalled = recall(desk, as_of=at, known_at=known_at, include_history=True, limit=1000)
    return sorted(
        (
            (
                *(stands.fact.id, stands.fact.key, str(stands.fact.value), stands.state, stands.until),
                *(stands.superseded_by, tuple(sorted(each.id for each in stands.contested_by))),
                *(stands.fact.quote, stands.fact.multi, stands.fact.pinned_at, len(stands.fact.savers)),
            )
            for stands in (*recalled.facts, *recalled.history)
        ),
        key=str,
    )
