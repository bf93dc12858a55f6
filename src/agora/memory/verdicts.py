"""Which anchors notes share, and whether those who speak of a key or an anchor say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from agora.model.caller import Origin, rank
from agora.model.crossref import Held, Shared, Verdict, by_authority
from agora.model.note import Note, Saver
from agora.text.anchors import Anchor, Kind, anchors, joined
from agora.text.claims import Claim, Value, claims, compare
from agora.text.identity import near_duplicates
from agora.text.tokens import window

VALUE_TOKENS = 40
"""Of a text that is a value as a whole: enough to see what changed."""

_ORDER = ("contested", "differ", "superseded", "agree", "single source")

Subject = tuple[Kind, str, str]
"""Kind and value of an anchor, and the namespace it means something in: #12 is another issue in another project."""


@dataclass(frozen=True, slots=True)
class Known:
    """A live note with what it names and what it claims; claims are those of its content alone."""

    note: Note
    savers: tuple[Saver, ...]
    named: tuple[Anchor, ...]
    claims: tuple[Claim, ...]

    @property
    def sources(self) -> frozenset[str]:
        """Agents that say so without having it from here."""
        return frozenset(saver.agent for saver in self.savers if saver.echo_of is None)


@dataclass(frozen=True, slots=True)
class _Said:
    agent: str
    origin: Origin
    note: Note
    claim: Claim
    at: datetime


def known(note: Note, agents: Sequence[str]) -> Known:
    """What `note` says; of its savers those in `agents`, all if none are named."""
    savers = tuple(saver for saver in note.savers if not agents or saver.agent in agents)
    named = anchors(f"{note.title}\n{note.content}" if note.title else note.content)
    return Known(note, savers, named, claims(note.content))


def time_of(note: Note) -> datetime:
    """When what a note tells happened, else when it was saved."""
    return note.occurred_at or note.created_at


def independent(group: Iterable[Known]) -> int:
    """Agents that speak for themselves; an echo of what is not here any more still is one voice."""
    return max(1, len(frozenset().union(*(each.sources for each in group))))


class Anchored:
    """Notes by what they name together."""

    def __init__(self, notes: Sequence[Known]) -> None:
        self._whole = joined((anchor.kind, anchor.value) for each in notes for anchor in each.named)
        found: dict[Subject, dict[str, Known]] = defaultdict(dict)
        for each in notes:
            for anchor in each.named:
                found[self._subject(anchor, each.note)][each.note.id] = each
        self._groups = {subject: tuple(group.values()) for subject, group in found.items() if len(group) > 1}

    def with_note(self, public_id: str) -> frozenset[str]:
        """Ids of the notes that name something that the note `public_id` names."""
        groups = ({each.note.id for each in group} for group in self._groups.values())
        return frozenset().union(*(ids for ids in groups if public_id in ids))

    def shared(self) -> list[Shared]:
        """The anchors that at least two notes name, most agents first, then most notes."""
        found = [
            Shared(kind, value, _ids(group), _agents(group), independent(group))
            for (kind, value, _), group in self._groups.items()
        ]
        return sorted(found, key=lambda each: (-len(each.agents), -len(each.ids), each.kind, each.value))

    def verdicts(self) -> Iterator[Verdict]:
        """One for each anchor on which there is one: most notes that name a file do not speak of the same."""
        for subject, group in self._groups.items():
            said = [
                _Said(saver.agent, saver.origin, each.note, claim, time_of(each.note))
                for each in group
                for claim in each.claims
                if claim.anchor is not None and self._subject(claim.anchor, each.note) == subject
                for saver in each.savers
                if saver.echo_of is None
            ]
            verdict = _verdict(subject[0], subject[1], group, list(_by_attribute(said)))
            if verdict is not None:
                yield verdict

    def _subject(self, anchor: Anchor, note: Note) -> Subject:
        kind, value = self._whole.get((anchor.kind, anchor.value), (anchor.kind, anchor.value))
        return kind, value, note.namespace if value.startswith("#") else ""


def on_keys(notes: Sequence[Known], history: Mapping[str, Sequence[Note]]) -> Iterator[Verdict]:
    """One verdict for each key; `history` holds the versions of a keyed note, oldest first, by its id."""
    told = set[tuple[str, str]]()
    for each in notes:
        key = each.note.key
        if key is None:
            continue
        versions = history.get(each.note.id, ())
        current = [version for version in versions if version.superseded_by is None]
        count = independent((each,))
        if each.note.contests is not None or any(version.contests is not None for version in current):
            if (each.note.namespace, key) not in told:
                told.add((each.note.namespace, key))
                yield _contested(key, current, [other for other in notes if other.note in current])
            continue
        older = [version for version in versions if version.contests is None and version.version < each.note.version]
        if older:
            old, new = _changed(older[-1], each.note)
            yield Verdict("key", key, "superseded", count, (older[-1].id, each.note.id), (old, new))
        else:
            yield Verdict("key", key, "agree" if count > 1 else "single source", count, (each.note.id,))


def _contested(key: str, current: Sequence[Note], found: Sequence[Known]) -> Verdict:
    stands = sorted(current, key=lambda note: (rank(note.origin), note.contests is not None, note.version))
    values = tuple(_value(note, None, None) for note in stands)
    return Verdict("key", key, "contested", independent(found), tuple(note.id for note in stands), values)


def ordered(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """What needs attention first: differences, then changes."""
    return sorted(verdicts, key=lambda v: (_ORDER.index(v.verdict), -v.independent, -len(v.ids), v.kind, v.value))


def _verdict(kind: str, value: str, group: Sequence[Known], attributes: Sequence[Sequence[_Said]]) -> Verdict | None:
    count, ids = independent(group), _ids(group)
    if count == 1:
        return Verdict(kind, value, "single source", 1, ids)
    differing = [said for said in attributes if _differ(said)]
    if differing:
        return Verdict(kind, value, "differ", count, ids, tuple(held for said in differing for held in _held(said)))
    agreed = [said for said in attributes if _agree(said)]
    if agreed:
        return Verdict(kind, value, "agree", count, ids, tuple(held for said in agreed for held in _held(said)))
    return Verdict(kind, value, "agree", count, ids) if _same_words(group) else None


def _by_attribute(said: Sequence[_Said]) -> Iterator[list[_Said]]:
    """What each agent said last of each attribute; the newest of the same time is the one that sorts last."""
    last: dict[tuple[tuple[str, ...], str], dict[str, _Said]] = defaultdict(dict)
    for each in sorted(said, key=lambda s: (s.at, s.claim.value.plain)):
        last[each.claim.attribute, each.claim.value.dimension][each.agent] = each
    for key in sorted(last):
        yield [last[key][agent] for agent in sorted(last[key])]


def _differ(said: Sequence[_Said]) -> bool:
    # The same row saved by both is one statement, and equal to itself.
    return any(compare(one.claim.value, other.claim.value) == "differ" for one, other in combinations(said, 2))


def _agree(said: Sequence[_Said]) -> bool:
    return any(compare(one.claim.value, other.claim.value) == "equal" for one, other in combinations(said, 2))


def _held(said: Sequence[_Said]) -> Iterator[Held]:
    values: dict[str, list[_Said]] = defaultdict(list)
    for each in said:
        values[each.claim.value.plain].append(each)
    for plain in sorted(values, key=lambda plain: min((s.at, plain) for s in values[plain])):
        those = values[plain]
        yield Held(
            " ".join(those[0].claim.attribute),
            min(s.claim.value.text for s in those),
            tuple(sorted({s.note.id for s in those})),
            tuple(sorted({s.agent for s in those})),
            by_authority(s.origin for s in those),
            min(s.at for s in those),
        )


def _same_words(group: Sequence[Known]) -> bool:
    """Whether two agents, each for itself, say the same as a whole."""
    if any(len(each.sources) > 1 for each in group):
        return True
    return any(
        len(one.sources | other.sources) > 1 and near_duplicates(one.note.content, other.note.content)
        for one, other in combinations(group, 2)
    )


def _changed(old: Note, new: Note) -> tuple[Held, Held]:
    """The older and the newer value: of the one attribute that differs, if it is one, else the texts."""
    before = {(claim.attribute, claim.value.dimension): claim.value for claim in claims(old.content)}
    after = {(claim.attribute, claim.value.dimension): claim.value for claim in claims(new.content)}
    moved = [key for key in before.keys() & after.keys() if compare(before[key], after[key]) == "differ"]
    if len(moved) == 1:
        name = " ".join(moved[0][0])
        return _value(old, name, before[moved[0]]), _value(new, name, after[moved[0]])
    return _value(old, None, None), _value(new, None, None)


def _value(note: Note, attribute: str | None, value: Value | None) -> Held:
    text = window(note.content, 0, 0, VALUE_TOKENS) if value is None else value.text
    agents = tuple(dict.fromkeys(saver.agent for saver in note.savers))
    origins = by_authority(saver.origin for saver in note.savers)
    return Held(attribute, text, (note.id,), agents, origins, note.created_at)


def _ids(group: Sequence[Known]) -> tuple[str, ...]:
    return tuple(sorted(each.note.id for each in group))


def _agents(group: Sequence[Known]) -> tuple[str, ...]:
    return tuple(sorted({saver.agent for each in group for saver in each.savers}))
