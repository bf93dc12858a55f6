"""Conversations as plain data: the same for tools, `--json` and tests. Absent values are left out, not null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agora.memory.packing import METADATA_SHOWN, metadata_size
from agora.memory.suspects import suspicions_of_message, suspicions_of_texts
from agora.model.conversation import Context, Kept, SummaryDue, Trouble
from agora.model.message import Message, Summary
from agora.protocol.times import written
from agora.protocol.tools import fact_shapes
from agora.protocol.tools.fact_packing import BYTES, size
from agora.protocol.tools.shapes import filled

if TYPE_CHECKING:
    from agora.ports.conversations import ConversationRow


def kept(done: Kept) -> dict[str, Any]:
    """What `session_append` answers."""
    facts = [] if done.gathered is None else fact_shapes.gathered(done.gathered)["remembered"]
    return filled(
        {
            "id": done.id,
            "session": done.session,
            "seq": done.seq,
            "folded": None if done.folded is None else {"first": done.folded[0], "last": done.folded[1]},
            "summary_due": None if done.summary_due is None else _due(done.summary_due),
            "remembered": facts or None,
            "problems": _problems(done.problems),
        }
    )


def context(found: Context, max_tokens: int, *, parts: bool) -> dict[str, Any]:
    """What `session_context` answers: every text once, in the messages for a model or, if `parts`, apart.

    The text of a `summary_due` is given if it fits what the messages leave of `max_tokens`.
    """
    offer = None if found.summary_due is None else _due(found.summary_due)
    if offer is not None and size(offer) > (max_tokens - found.tokens) * BYTES:
        del offer["text"]
    return filled(
        {
            "session": found.session,
            "strategy": found.strategy,
            "total": found.messages,
            "messages": None if parts else [dict(each) for each in found.chat],
            "tokens": found.tokens,
            "omitted": found.omitted,
            "facts": found.facts if parts and found.facts else None,
            "summary": None if found.summary is None else _summary(found.summary, parts=parts),
            "relevant": [_message(each, found, parts=parts) for each in found.relevant] or None,
            "last": [_message(each, found, parts=parts) for each in found.last],
            "summary_due": offer,
            "problems": _problems(found.problems),
        }
    )


def summarized(session: str, done: Summary) -> dict[str, Any]:
    """What `session_summarize` answers."""
    return {
        "session": session,
        "version": done.version,
        "range": [done.first, done.last],
        "written_by": done.written_by,
    }


def listed(rows: Sequence[ConversationRow]) -> list[dict[str, Any]]:
    """Conversations in a list."""
    return [
        filled(
            {
                "session": row.session,
                "namespace": row.namespace,
                "messages": row.messages,
                "strategy": row.strategy,
                "first_at": written(row.first_at),
                "last_at": written(row.last_at),
                "suspicious": list(suspicions_of_texts(row.session)) or None,
            }
        )
        for row in rows
    ]


def _due(offer: SummaryDue) -> dict[str, Any]:
    return {
        "token": offer.token,
        "range": [offer.first, offer.last],
        "text": offer.text,
        "max_words": offer.max_words,
        "max_tokens": offer.max_tokens,
    }


def _summary(found: Summary, *, parts: bool) -> dict[str, Any]:
    return filled(
        {
            "range": [found.first, found.last],
            "text": found.text if parts else None,
            "version": found.version,
            "written_by": found.written_by,
            "origin": found.origin,
            "at": written(found.at),
            "suspicious": list(suspicions_of_texts(found.text)) or None,
        }
    )


def _message(message: Message, found: Context, *, parts: bool) -> dict[str, Any]:
    """A message: its number, who said it and what is to be known of it; with its text and the rest in `parts`."""
    cut = found.cut.get(message.seq)
    marks: dict[str, Any] = {
        "cut": True if cut is not None else None,
        "suspicious": list(suspicions_of_message(message)) or None,
    }
    if not parts:
        return filled({"seq": message.seq, "speaker": message.speaker, **marks})
    fields = dict(message.metadata)
    shown = metadata_size(fields) <= METADATA_SHOWN
    return filled(
        {
            "id": message.id,
            "seq": message.seq,
            "role": message.role,
            "speaker": message.speaker,
            "content": message.content if cut is None else cut,
            "at": written(message.at),
            "agent": message.agent,
            "origin": message.origin,
            "metadata": fields if fields and shown else None,
            "metadata_cut": None if shown else True,
            **marks,
        }
    )


def _problems(found: Sequence[Trouble]) -> list[dict[str, str]] | None:
    return [{"code": each.code, "message": each.message} for each in found] or None
