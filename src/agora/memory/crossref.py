"""What different agents know about a topic: who says what, since when, and whether it agrees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agora.errors import NoteNotFound
from agora.memory.ranking import Ranked, Weights, candidates, rank
from agora.memory.verdicts import Anchored, Known, known, on_keys, ordered, time_of
from agora.model.caller import Caller
from agora.model.crossref import CrossReference, Position, Stated, Topic
from agora.model.note import Note, Saver
from agora.model.query import Filter
from agora.ports.encoder import Vector
from agora.ports.records import Reading
from agora.ports.vector_index import Among
from agora.text.analysis import Group, analyse_query
from agora.text.tokens import cost, window

FLOOR = 0.15
"""Score from which a note belongs to a question. By ADR 5 a first hit with .15 is right once in seven times: what is
compared needs more company than a hit list, and a verdict needs more than company."""

NEAR_FLOOR = 0.55
"""Semantic score from which a note is near another: a cosine of .54, where paraphrases begin (ADR 5)."""

NOTES = 50
"""Notes that are compared, and entries of the timeline, at most."""

LISTED = 30
"""Anchors and verdicts of one answer at most."""

PER_AGENT = 3
CHANGES = 20
_AGENTS = 20
_BUDGET = 2_000
"""Tokens of all texts of the positions together."""

_LEAST, _MOST = 24, 160
_ANCHORS = 16
"""Anchors of a note by which others are looked for."""

_PER_ANCHOR = 20
"""Notes that are looked at for each of them."""

_SUBJECT = 1_000
"""Characters of a note that stand for it when others are looked for: what the encoder reads at once."""


@dataclass(frozen=True, slots=True)
class Question:
    """A topic as the indexes are asked: `floor` is the least score of what belongs to it."""

    vector: Vector | None
    groups: tuple[Group, ...]
    weights: Weights
    floor: float


def subject_of(reading: Reading, topic: Topic, caller: Caller, now: datetime) -> Note:
    """The note that a topic names by its id.

    Raises: NoteNotFound if the caller may not see it, or it is forgotten or expired.
    """
    assert topic.id is not None
    found = reading.by_id([topic.id], caller.scope.visible())
    note = found[topic.id][1] if topic.id in found else None
    if note is None or not _shown(note, now):
        state = "" if note is None else ", it is forgotten or expired"
        raise NoteNotFound(f"no note with id {topic.id}{state}", hint="Ids look like n_01J…; agora_query finds notes.")
    return note


def subject_text(note: Note) -> str:
    """What stands for a note when others are looked for."""
    return f"{note.title}\n{note.content}"[:_SUBJECT] if note.title else note.content[:_SUBJECT]


def cross_reference(
    reading: Reading, topic: Topic, question: Question, caller: Caller, now: datetime
) -> CrossReference:
    """The answer to `topic` in one snapshot.

    Raises: NoteNotFound.
    """
    subject = subject_of(reading, topic, caller, now) if topic.id is not None else None
    if subject is not None and subject.namespace not in topic.namespaces:
        topic = replace(topic, namespaces=(*topic.namespaces, subject.namespace))
    found = {each.note.id: each for each in _relevant(reading, topic, question, subject, now)}
    histories = {
        public_id: [version for version in reading.history(each.note) if _fits(version, topic, now)]
        for public_id, each in found.items()
        if each.note.key is not None
    }
    live = [known(each.note, topic.agents) for each in found.values() if each.note.superseded_by is None]
    anchored = Anchored(live)
    shared = anchored.shared()
    judged = ordered([*on_keys(live, histories), *anchored.verdicts()])
    echoes = {saver.echo_of for each in live for saver in each.savers if saver.echo_of is not None}
    seen = reading.by_id(sorted(echoes), caller.scope.visible()).keys() if echoes else frozenset[str]()
    positions, more = _positions(reading, live, found, seen)
    timeline = _timeline([each.note for each in found.values()], histories.values())
    return CrossReference(
        notes=len(live),
        positions=positions,
        positions_omitted=more,
        timeline=timeline[-NOTES:],
        timeline_omitted=max(0, len(timeline) - NOTES),
        anchors=tuple(shared[:LISTED]),
        anchors_omitted=max(0, len(shared) - LISTED),
        verdicts=tuple(judged[:LISTED]),
        verdicts_omitted=max(0, len(judged) - LISTED),
        changes=reading.changes(topic, caller, CHANGES),
        namespaces=topic.namespaces,
        sequence=reading.sequence,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    note: Note
    row: int
    passage: int
    score: float


def _relevant(reading: Reading, topic: Topic, question: Question, subject: Note | None, now: datetime) -> list[_Found]:
    """What belongs to the topic, at most `NOTES`: the subject and what shares its key or anchors, then the nearest."""
    among = reading.among(Filter(topic.namespaces, agents=topic.agents, since=topic.since))
    ranked = rank(reading, among, question.weights, question.vector, question.groups, candidates(NOTES))
    scored = {each.row: each for each in ranked}
    rows = {} if subject is None else _tied(reading, topic, among, subject, now)
    near = [each.row for each in ranked if each.score >= question.floor][:NOTES]
    notes = reading.by_row([row for row in near if row not in rows])
    rows |= {row: notes[row] for row in near if row in notes}
    return [_found(note, row, scored.get(row)) for row, note in list(rows.items())[:NOTES]]


def _found(note: Note, row: int, ranked: Ranked | None) -> _Found:
    return _Found(note, row, 0, 0.0) if ranked is None else _Found(note, row, ranked.passage, ranked.score)


def _tied(reading: Reading, topic: Topic, among: Among, subject: Note, now: datetime) -> dict[int, Note]:
    """The subject, the current versions of its key, and the live notes that name what it names."""
    # Of a key that is contested there are several.
    current = [version.id for version in reading.history(subject) if version.superseded_by is None]
    found = {
        row: note
        for row, note in reading.by_id([subject.id, *current], topic.namespaces).values()
        if _fits(note, topic, now)
    }
    # An older version is asked about for what its key says now.
    mine = [known(note, ()) for note in {note.id: note for note in (subject, *found.values())}.values()]
    values = list(dict.fromkeys(anchor.value for each in mine for anchor in each.named))
    others: dict[int, Note] = {}
    for value in values[:_ANCHORS]:
        matches = reading.text.matching(analyse_query(value), among, _PER_ANCHOR)
        others |= reading.by_row([row for row in matches.rows.tolist() if row not in others and row not in found])
    # The words of a path are not the path: only what names the same is kept.
    every = Anchored([*mine, *(known(note, ()) for note in others.values())])
    sharing = frozenset().union(*(every.with_note(each.note.id) for each in mine))
    return found | {row: note for row, note in others.items() if note.id in sharing}


def _positions(
    reading: Reading, live: Sequence[Known], found: Mapping[str, _Found], seen: Collection[str]
) -> tuple[tuple[Position, ...], int]:
    said: dict[str, dict[str, Saver]] = defaultdict(dict)
    for each in live:
        for saver in sorted(each.savers, key=lambda saver: saver.at):
            said[saver.agent][each.note.id] = saver
    newest = {
        agent: sorted(
            notes, key=lambda public_id: (notes[public_id].at, found[public_id].score, public_id), reverse=True
        )
        for agent, notes in said.items()
    }
    agents = sorted(sorted(newest), key=lambda agent: said[agent][newest[agent][0]].at, reverse=True)
    shown = {agent: newest[agent][:PER_AGENT] for agent in agents[:_AGENTS]}
    room = max(_LEAST, min(_MOST, _BUDGET // max(1, sum(map(len, shown.values())))))
    return tuple(
        Position(
            agent,
            tuple(_stated(reading, found[public_id], said[agent][public_id], room, seen) for public_id in ids),
            len(newest[agent]) - len(ids),
        )
        for agent, ids in shown.items()
    ), len(agents) - len(shown)


def _stated(reading: Reading, found: _Found, saver: Saver, room: int, seen: Collection[str]) -> Stated:
    content = found.note.content
    # An id tells that there is such a note, and where its writer has read it is not for everybody.
    echo_of = saver.echo_of if saver.echo_of is None or saver.echo_of in seen else "unseen"
    cut = cost(content) > room
    if cut:
        span = reading.span(found.row, found.passage)
        content = window(content, span.start, span.stop, room)
    return Stated(found.note, saver, found.score, content, cut, echo_of)


def _timeline(notes: Iterable[Note], histories: Iterable[Sequence[Note]]) -> tuple[Note, ...]:
    every = {note.id: note for versions in (list(notes), *histories) for note in versions}
    return tuple(sorted(every.values(), key=lambda note: (time_of(note), note.created_at, note.version, note.id)))


def _shown(note: Note, now: datetime) -> bool:
    return note.forgotten_at is None and (note.expires_at is None or note.expires_at > now)


def _fits(note: Note, topic: Topic, now: datetime) -> bool:
    """Whether a note that no index was asked for may be shown, and meets the topic's conditions."""
    by = not topic.agents or any(saver.agent in topic.agents for saver in note.savers)
    return _shown(note, now) and by and (topic.since is None or time_of(note) >= topic.since)
