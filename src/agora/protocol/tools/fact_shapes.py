"""Facts as plain data: the same for tools, `--json` and tests. Absent values are left out, not null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agora.memory.packing import CONTESTING_SHOWN, METADATA_SHOWN, SAVERS_SHOWN
from agora.memory.suspects import suspicions_of_fact
from agora.model.fact import Extracted, Fact, Gathered, Recalled, Remembered, Stands, Value
from agora.model.note import Saver
from agora.protocol.times import written
from agora.protocol.tools.fact_packing import BYTES, cut, packed, size
from agora.protocol.tools.shapes import filled, opening, sequence

_QUOTE = 300
"""Characters of a quote in a list; agora_get has the whole."""

_SHOWN = 20
"""Facts that a new one took the place of, as an answer names them."""

_VERSIONS = 50
"""Statements of one key in the history of a fact."""


def remembered(done: Remembered, value: Value) -> dict[str, Any]:
    """What `remember` answers."""
    return filled(
        {
            "id": done.id,
            "status": done.status,
            "subject": done.subject,
            "key": done.key,
            "value": value,
            "count": done.count,
            "replaced": [beside(each, until=done) for each in done.replaced[:_SHOWN]] or None,
            "stands": None if done.stands is None else beside(done.stands),
            "late": True if done.late else None,
            "until": written(done.until),
        }
    ) | sequence(done.sequence)


def gathered(found: Gathered) -> dict[str, Any]:
    """What `remember_from` answers."""
    last = max((each.sequence for _, each in found.remembered if each.sequence is not None), default=None)
    rows = []
    for said, done in found.remembered:
        row = remembered(done, said.value)
        row.pop("sequence", None)
        rows.append(row | filled({"quote": opening(said.quote, _QUOTE), "ended": True if said.ended else None}))
    return filled(
        {
            "remembered": rows,
            "skipped": [_skipped(said, why) for said, why in found.skipped],
            "extracted_by": found.extracted_by,
            "problem": found.problem,
        }
    ) | sequence(last)


def recalled(found: Recalled, max_tokens: int) -> dict[str, Any]:
    """What `recall` answers: profile, facts and history together within so many tokens."""
    room = max_tokens * BYTES - (0 if found.profile is None else size(found.profile))
    facts, taken = packed([row(each) for each in found.facts], room)
    history, _ = packed([row(each, state=True) for each in found.history], room - taken)
    history, left = list(map(without_value, history)), len(found.history) - len(history)
    return filled(
        {
            "profile": found.profile,
            "facts": facts,
            "history": history if found.history else None,
            "omitted": found.omitted + len(found.facts) - len(facts),
            "history_omitted": left or None,
            "as_of": written(found.as_of),
            "known_at": written(found.known_at),
            "namespaces": list(found.namespaces),
        }
    ) | sequence(found.sequence)


def row(each: Stands, *, state: bool = False) -> dict[str, Any]:
    """A fact, how it stands if `state`, and who says so."""
    fact = each.fact
    gone = each.state == "retracted"
    return filled(
        {
            "id": fact.id,
            "subject": fact.subject,
            "key": fact.key,
            "value": "" if gone else fact.value,
            "state": each.state if state else None,
            "multi": True if fact.multi else None,
            "valid_from": written(fact.valid_from),
            "until": written(each.until),
            "expires_at": written(fact.expires_at),
            "recorded_at": written(fact.recorded_at) if state else None,
            "retracted_at": written(fact.retracted_at) if gone else None,
            "superseded_by": each.superseded_by,
            "count": len(fact.savers),
            "sources": [_source(saver) for saver in fact.savers[:SAVERS_SHOWN]],
            "contested_by": [beside(other) for other in each.contested_by[:CONTESTING_SHOWN]] or None,
            "quote": None if fact.quote is None else opening(fact.quote, _QUOTE),
            "pinned": True if fact.pinned_at else None,
            "suspicious": None if gone else looks(fact),
            "namespace": fact.namespace,
        }
    )


def beside(fact: Fact, *, until: Remembered | None = None) -> dict[str, Any]:
    """A fact as another one names it; its value in short."""
    shown = filled(
        {
            "id": fact.id,
            "value": fact.value,
            "agent": fact.savers[0].agent,
            "origin": fact.origin,
            "since": written(fact.valid_from),
            "until": None if until is None else written(until.since),
            "suspicious": looks(fact),
        }
    )
    return shown if size(fact.value) <= METADATA_SHOWN else cut(shown, METADATA_SHOWN)


def versions(known: Sequence[Stands]) -> list[dict[str, Any]]:
    """What was ever said of a key, oldest first, values in short."""
    rows = [without_value(row(each, state=True)) for each in known[-_VERSIONS:]]
    return [each if size(each.get("value")) <= METADATA_SHOWN else cut(each, METADATA_SHOWN) for each in rows]


def without_value(shown: dict[str, Any]) -> dict[str, Any]:
    """`shown` without a value that was taken back."""
    return {name: each for name, each in shown.items() if name != "value" or shown.get("state") != "retracted"}


def looks(fact: Fact) -> list[str] | None:
    """Why a fact looks like instructions to an agent; None if it does not."""
    return list(suspicions_of_fact(fact)) or None


def _source(saver: Saver) -> dict[str, Any]:
    return filled({"agent": saver.agent, "origin": saver.origin, "at": written(saver.at), "echo_of": saver.echo_of})


def _skipped(said: Extracted, why: str) -> dict[str, Any]:
    fields = {"subject": said.subject, "key": said.key, "value": said.value, "quote": opening(said.quote, _QUOTE)}
    return filled(fields) | {"reason": why}
