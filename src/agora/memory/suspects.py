from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agora.model.fact import Fact
from agora.model.message import Message
from agora.model.note import Note, Saver
from agora.suspicion.known import known_reasons

if TYPE_CHECKING:
    from agora.suspicion.rule import Reason

SAVERS = 50
"""Savers of a note whose names are looked at: as many as an answer names."""


def suspicions(note: Note) -> tuple[Reason, ...]:
    """Why a note looks like instructions to an agent, by whatever of it an answer shows; empty if it does not.

    Worked out when the note is read: so it holds for texts of every age and way, by the rules of this release.
    """
    return known_reasons("\n".join(_texts(note)))


def suspicions_of_fact(fact: Fact) -> tuple[Reason, ...]:
    """As `suspicions`, of whatever an answer shows of a fact."""
    texts = [fact.subject, fact.key, *strings(fact.value), fact.quote or ""]
    return known_reasons("\n".join([*texts, *_savers(fact.savers)]))


def suspicions_of_message(message: Message) -> tuple[Reason, ...]:
    """As `suspicions`, of whatever an answer shows of a message."""
    return suspicions_of_texts(message.content, message.speaker or "", message.agent, *strings(message.metadata))


def suspicions_of_texts(*texts: str) -> tuple[Reason, ...]:
    """As `suspicions`, of texts that are shown together."""
    return known_reasons("\n".join(texts))


def _texts(note: Note) -> Iterator[str]:
    if note.title:
        yield note.title
    yield note.content
    yield from note.tags
    if note.key:
        yield note.key
    yield from strings(note.metadata)
    if note.fact is not None:
        yield from (note.fact.subject, note.fact.key, *strings(note.fact.value))
    yield from _savers(note.savers)


def _savers(savers: tuple[Saver, ...]) -> Iterator[str]:
    yield from dict.fromkeys(name for saver in savers[:SAVERS] for name in _names(saver))


def _names(saver: Saver) -> tuple[str, ...]:
    return saver.agent, saver.session, saver.client, *saver.tags


def strings(value: object) -> Iterator[str]:
    """Every key and every text in metadata, which is nested no deeper than an argument may be."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)
