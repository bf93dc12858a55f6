"""Results as plain data: the same for tools, `--json` and tests. Absent values are left out, not null."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agora.memory.packing import CONTESTING_SHOWN, METADATA_SHOWN, SAVERS_SHOWN, metadata_size, value_size
from agora.memory.suspects import SAVERS, suspicions
from agora.model.note import Note, Said, Saved
from agora.model.query import Answer, Hit
from agora.model.selection import Forgotten, Pinned, Restored
from agora.protocol.times import written

if TYPE_CHECKING:
    from agora.memory.notes import Got

_VERSIONS = 50
_STATUS_BYTES = 7_650
"""Bounds of what no token budget covers: versions of one note, the status as a whole."""


def note(
    found: Note, content: str | None = None, most_savers: int = SAVERS, now: datetime | None = None
) -> dict[str, Any]:
    """A note with its provenance: the first saver of its origin in place, everyone else under `also_saved_by`.

    `savers` says how many there are when not all of them are shown. Tags that a saver of lower origin gave stand with
    that saver. A fact has its subject, key and value in place of a key, and says if it begins after `now`.
    """
    first, others = found.savers[0], found.savers[1:]
    return filled(
        {
            "id": found.id,
            "type": found.type,
            "title": found.title,
            "content": found.content if content is None else content,
            "agent": first.agent,
            "session": first.session,
            "client": first.client,
            "origin": first.origin,
            "suspicious": looks(found),
            "namespace": found.namespace,
            "created_at": written(found.created_at),
            "occurred_at": written(found.occurred_at),
            "expires_at": written(found.expires_at),
            "tags": list(found.tags),
            "kind": found.kind,
            "metadata": dict(found.metadata) or None,
            "confidence": found.confidence,
            **_said(found.fact, found.key, now),
            "version": found.version if found.key else None,
            "supersedes": found.supersedes,
            "superseded_by": found.superseded_by,
            "contests": found.contests,
            "contested_by": list(found.contested_by[:CONTESTING_SHOWN]) or None,
            "pinned_at": written(found.pinned_at),
            "also_saved_by": [
                filled(
                    {
                        "agent": saver.agent,
                        "session": saver.session,
                        "origin": saver.origin,
                        "at": written(saver.at),
                        "tags": list(saver.tags) or None,
                    }
                )
                for saver in others[:most_savers]
            ]
            or None,
            "savers": len(found.savers) if len(others) > most_savers else None,
        }
    )


def saved(done: Saved) -> dict[str, Any]:
    """What `agora_save` answers."""
    return filled(
        {
            "id": done.id,
            "status": done.status,
            "duplicate_of": done.duplicate_of,
            "supersedes": done.supersedes,
            "contests": done.contests,
            "version": done.version,
            "related": [
                filled(
                    {
                        "id": near.id,
                        "score": near.score,
                        "title": near.title,
                        "agent": near.agent,
                        "origin": near.origin,
                        "suspicious": list(near.suspicious) or None,
                        "namespace": near.namespace,
                        "same_words": near.same_words,
                    }
                )
                for near in done.related
            ],
            "sequence": done.sequence,
        }
    )


def answer(found: Answer, *, explain: bool, now: datetime | None = None) -> dict[str, Any]:
    """What `agora_query` answers."""
    return {
        "results": [_hit(hit, now, explain=explain) for hit in found.hits],
        "omitted": found.omitted,
        "namespaces": list(found.namespaces),
        "mode": found.mode,
        "cached": found.cached,
    } | sequence(found.sequence)


def got(found: Got, now: datetime | None = None) -> dict[str, Any]:
    """What `agora_get` answers."""
    notes = []
    for each in found.notes:
        shaped = note(each, now=now)
        versions = found.history.get(each.id, ())
        if len(versions) > 1:
            shaped["history"] = [
                filled(
                    {
                        "id": version.id,
                        "version": version.version,
                        "agent": version.savers[0].agent,
                        "origin": version.origin,
                        "suspicious": looks(version),
                        "created_at": written(version.created_at),
                        "forgotten_at": written(version.forgotten_at),
                        "superseded_by": version.superseded_by,
                        "contests": version.contests,
                    }
                )
                for version in versions[-_VERSIONS:]
            ]
            if len(versions) > _VERSIONS:
                shaped["history_omitted"] = len(versions) - _VERSIONS
        notes.append(shaped)
    return {
        "notes": notes,
        "unknown": list(found.unknown),
        "forgotten": list(found.forgotten),
        "expired": list(found.expired),
        "purged": list(found.purged),
    } | sequence(found.sequence)


def forgotten(done: Forgotten) -> dict[str, Any]:
    """What `agora_forget` answers; `notes` holds at most 20."""
    return {
        "dry_run": done.dry_run,
        "count": done.count,
        "notes": [
            filled(
                {
                    "id": each.id,
                    "title": each.title or opening(each.content),
                    "agent": each.savers[0].agent,
                    "origin": each.savers[0].origin,
                    "suspicious": looks(each),
                    "namespace": each.namespace,
                    "created_at": written(each.created_at),
                    "tags": list(each.tags) or None,
                }
            )
            for each in done.notes
        ],
        "unknown": list(done.unknown),
        "already_forgotten": list(done.already),
        "kept_for_other_savers": done.shared,
        "protected": list(done.protected),
    } | sequence(done.sequence)


def restored(done: Restored) -> dict[str, Any]:
    """What `agora_restore` answers."""
    return {
        "restored": list(done.restored),
        "restored_as_history": list(done.superseded),
        "not_forgotten": list(done.live),
        "expired": list(done.expired),
        "purged": list(done.purged),
        "duplicates": done.duplicates,
        "protected": list(done.protected),
        "unknown": list(done.unknown),
    } | sequence(done.sequence)


def pinned(done: Pinned) -> dict[str, Any]:
    """What `agora_pin` answers."""
    return {
        "pinned": done.pinned,
        "changed": list(done.changed),
        "already": list(done.already),
        "not_current": list(done.not_current),
        "not_user": list(done.not_user),
        "unknown": list(done.unknown),
    } | sequence(done.sequence)


def status(found: dict[str, Any]) -> dict[str, Any]:
    """What `agora_status` answers: `found` with as many agents and namespaces, largest first, as fit."""
    fitted = dict(found)
    lists = {"agents": "more_agents", "namespaces": "more_namespaces"}
    while _bytes(fitted) > _STATUS_BYTES:
        longest = max(lists, key=lambda name: len(fitted.get(name, {})))
        if not fitted.get(longest):
            break
        names = list(fitted[longest].items())[:-1]
        fitted |= {longest: dict(names), lists[longest]: fitted[lists[longest]] + 1}
    return fitted


def sequence(number: int | None) -> dict[str, Any]:
    """The member `sequence` of an answer, for callers that are told."""
    return {} if number is None else {"sequence": number}


def looks(found: Note) -> list[str] | None:
    """Why a note looks like instructions to an agent; None if it does not."""
    return list(suspicions(found)) or None


def opening(text: str, width: int = 80) -> str:
    """The first words of a text on one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _said(fact: Said | None, key: str | None, now: datetime | None) -> dict[str, Any]:
    if fact is None:
        return {"key": key}
    return {
        "subject": fact.subject,
        "key": fact.key,
        "value": fact.value,
        "valid_from": written(fact.valid_from),
        "valid_to": written(fact.valid_to),
        "upcoming": True if now is not None and fact.valid_from > now else None,
    }


def _hit(hit: Hit, now: datetime | None, *, explain: bool) -> dict[str, Any]:
    shaped = note(hit.note, hit.content, SAVERS_SHOWN, now) | {
        "score": round(hit.score, 4),
        "tokens": hit.tokens,
        "cut": hit.cut,
    }
    if "metadata" in shaped and metadata_size(shaped["metadata"]) > METADATA_SHOWN:
        del shaped["metadata"]
        shaped["metadata_cut"] = True
    if hit.note.fact is not None and value_size(hit.note.fact.value) > METADATA_SHOWN:
        del shaped["value"]
        shaped["value_cut"] = True
    if hit.similar:
        shaped["similar"] = list(hit.similar)
    if explain:
        shaped["explain"] = dict(hit.parts)
    return shaped


def _bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def filled(fields: dict[str, Any]) -> dict[str, Any]:
    """`fields` without those that are None."""
    return {name: value for name, value in fields.items() if value is not None}
