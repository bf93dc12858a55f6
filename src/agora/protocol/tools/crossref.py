"""What `agora_crossref` answers, as plain data. Absent values are left out, apart from `last_read`."""

from __future__ import annotations

from typing import Any

from agora.model.crossref import Changes, CrossReference, Held, Position, Shared, Stated, Verdict, by_authority
from agora.model.note import Note
from agora.protocol.times import written
from agora.protocol.tools.shapes import filled, looks, opening, sequence
from agora.suspicion.known import known_reasons

_IDS = 10
_AGENTS = 10
"""Ids and agents that one anchor or verdict names; `notes` counts all."""


def answer(found: CrossReference) -> dict[str, Any]:
    """Always with the same names, however little there is."""
    return {
        "notes": found.notes,
        "positions": [_position(each) for each in found.positions],
        "positions_omitted": found.positions_omitted,
        "timeline": [_event(each) for each in found.timeline],
        "timeline_omitted": found.timeline_omitted,
        "anchors": [_anchor(each) for each in found.anchors],
        "anchors_omitted": found.anchors_omitted,
        "verdicts": [_verdict(each) for each in found.verdicts],
        "verdicts_omitted": found.verdicts_omitted,
        "changed_by_others": changes(found.changes),
        "namespaces": list(found.namespaces),
    } | sequence(found.sequence)


def changes(found: Changes) -> dict[str, Any]:
    """What others changed, newest first, as plain data."""
    return {
        "last_read": written(found.last_read),
        "count": found.count,
        "changes": [
            filled(
                {
                    "id": each.id,
                    "change": each.operation,
                    "agent": each.agent,
                    "client": each.client,
                    "session": each.session,
                    "origin": each.origin,
                    "suspicious": _reads_like(each.title, each.agent),
                    "namespace": each.namespace,
                    "at": written(each.at),
                    "title": None if each.title is None else opening(each.title),
                    "sequence": each.sequence,
                }
            )
            for each in found.newest
        ],
    }


def _position(position: Position) -> dict[str, Any]:
    return {
        "agent": position.agent,
        "notes": [_stated(each) for each in position.notes],
        "omitted": position.omitted,
    }


def _stated(stated: Stated) -> dict[str, Any]:
    note, saver = stated.note, stated.saver
    return filled(
        {
            "id": note.id,
            "title": note.title,
            "content": stated.content,
            "cut": stated.cut,
            "score": round(stated.score, 4),
            "client": saver.client,
            "session": saver.session,
            "origin": saver.origin,
            "suspicious": looks(note),
            "saved_at": written(saver.at),
            "occurred_at": written(note.occurred_at),
            "namespace": note.namespace,
            "key": note.key,
            "contests": note.contests,
            "contested_by": list(note.contested_by[:_IDS]) or None,
            "echo_of": stated.echo_of,
        }
    )


def _event(note: Note) -> dict[str, Any]:
    return filled(
        {
            "at": written(note.occurred_at or note.created_at),
            "id": note.id,
            "agents": list(dict.fromkeys(saver.agent for saver in note.savers))[:_AGENTS],
            "origins": list(by_authority(saver.origin for saver in note.savers)),
            "suspicious": looks(note),
            "title": note.title or opening(note.content),
            "key": note.key,
            "version": note.version if note.key else None,
            "superseded_by": note.superseded_by,
            "contests": note.contests,
        }
    )


def _anchor(anchor: Shared) -> dict[str, Any]:
    return filled(
        {
            "kind": anchor.kind,
            "value": anchor.value,
            "suspicious": _reads_like(anchor.value, *anchor.agents),
            "notes": len(anchor.ids),
            "ids": list(anchor.ids[:_IDS]),
            "agents": list(anchor.agents[:_AGENTS]),
            "independent": anchor.independent,
        }
    )


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return filled(
        {
            "kind": verdict.kind,
            "value": verdict.value,
            "suspicious": _reads_like(verdict.value),
            "verdict": verdict.verdict,
            "independent": verdict.independent,
            "notes": len(verdict.ids),
            "ids": list(verdict.ids[:_IDS]),
            "values": [_held(each) for each in verdict.values[:_IDS]] or None,
        }
    )


def _held(held: Held) -> dict[str, Any]:
    return filled(
        {
            "attribute": held.attribute,
            "value": held.value,
            "agents": list(held.agents[:_AGENTS]),
            "origins": list(held.origins),
            "suspicious": _reads_like(held.value, *held.agents),
            "ids": list(held.ids[:_IDS]),
            "at": written(held.at),
        }
    )


def _reads_like(*shown: str | None) -> list[str] | None:
    """Why a row that shows no more than this of a note looks like instructions; None if it does not."""
    return list(known_reasons("\n".join(text for text in shown if text))) or None
