from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agora.errors import AgoraError, InvalidInput
from agora.memory.access import concealed, require
from agora.memory.passages import embed
from agora.memory.profile import Heading, profile
from agora.model.caller import Caller
from agora.model.crossref import Read
from agora.model.deadline import Deadline
from agora.model.fact import (
    USER,
    Extracted,
    Fact,
    FactDraft,
    Gathered,
    Recalled,
    Recollection,
    Remembered,
    Stands,
    Value,
)
from agora.model.instants import NEVER, maybe, to_micros
from agora.model.timeline import Standing, reached, standings, statement
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.extractor import Extractor
from agora.ports.facts import FactReading, Facts
from agora.ports.log import Log
from agora.ports.records import Embedded, VectorsNeeded
from agora.text.facts import rendered
from agora.text.sameness import name_of, same

_SLOTS = 500
"""Subjects with keys that one look reads at most, the best founded: many more than an answer or a profile holds."""

_EVERY = 10_000
"""Keys of a subject among which is looked for what holds no longer."""


_MOMENT = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)

LogRead = Callable[[Read, Callable[[AgoraError], None]], None]


class FactMemory:
    """The episodic memory: what holds of subjects, what held before, and what is ready for a system prompt.

    Blocking; call it from a worker thread. Every method takes the caller, whose scope bounds what it sees.
    """

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        facts: Facts,
        encoder: Encoder,
        clock: Clock,
        log: Log,
        extractor: Extractor,
        *,
        model_seconds: float,
        heading: Heading = Heading(),  # noqa: B008 - immutable
        log_read: LogRead | None = None,
        is_secret: Callable[[str, Value], bool] = lambda key, value: False,  # noqa: ARG005 - nothing is
    ) -> None:
        """`log_read` takes what an answer gives away, so that who repeats it later is known to have read it here.

        `is_secret`: whether the value of such a key is one, though it looks like none in the text that it came from.
        """
        self._facts = facts
        self._encoder = encoder
        self._clock = clock
        self._log = log
        self._extractor = extractor
        self._model_seconds = model_seconds
        self._heading = heading
        self._log_read = log_read
        self._is_secret = is_secret

    def remember(self, draft: FactDraft, caller: Caller, deadline: Deadline) -> Remembered:
        """Keep a fact; when this returns it is on disk, and every process recalls it.

        An end that has come already ends the equal value that held until then.

        Raises: InvalidInput; NamespaceDenied; WarmingUp if the model is not ready in time (nothing is written);
        EmbeddingMismatch; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        require(caller, (draft.namespace,), "write")
        draft = self._with_beginning(draft, deadline)
        with self._facts.read(deadline) as reading:
            known = reading.repeats(draft, caller)
        embedded = None if known else self._embed(draft, deadline)
        now = self._clock.now()
        try:
            found = self._facts.remember(draft, caller, embedded, now, deadline)
        except VectorsNeeded:
            # Forgotten, replaced or ended between the look and the write.
            embedded = self._embed(draft, deadline)
            now = self._clock.now()
            found = self._facts.remember(draft, caller, embedded, now, deadline)
        self._log.info("fact remembered", id=found.id, status=found.status, namespace=found.namespace)
        return concealed(caller, replace(found, since=draft.valid_from or now))

    def remember_from(
        self,
        text: str,
        namespace: str,
        caller: Caller,
        deadline: Deadline,
        *,
        subject: str = USER,
        at: datetime | None = None,
    ) -> Gathered:
        """Keep the facts that `text` states, each with the words that state it; often there are none.

        `subject`: of whom it speaks where it does not say so. `at`: when it was said.

        Raises: as `remember`; what was kept before an error stays.
        """
        require(caller, (namespace,), "write")
        found = self._extractor.extract(text, deadline)
        if found.problem is not None:
            # Not the problem itself: it may hold words of the text.
            self._log.warning("facts found by rules, not by the model", namespace=namespace, by=found.extracted_by)
        kept: list[tuple[Extracted, Remembered]] = []
        skipped: list[tuple[Extracted, str]] = []
        for each in found.facts:
            if self._is_secret(each.key, each.value):
                skipped.append((each, "its value is a secret"))
                continue
            draft = FactDraft(
                namespace, each.subject or subject, each.key, each.value, valid_from=at, quote=each.quote,
                multi=True if each.multi else None,
            )  # fmt: skip
            try:
                wanted = self._ending(draft, deadline) if each.ended else draft
                if wanted is None:
                    skipped.append((each, "nothing holds that this would end"))
                else:
                    kept.append((each, self.remember(wanted, caller, deadline)))
            except InvalidInput as problem:
                skipped.append((each, problem.message))
        return Gathered(tuple(kept), tuple(skipped), found.extracted_by, found.problem)

    def recall(self, wanted: Recollection, caller: Caller, deadline: Deadline) -> Recalled:
        """The facts that hold, best founded first, with a block for a system prompt; what held before if asked for.

        Raises: NamespaceDenied; StoreUnavailable.
        """
        require(caller, wanted.namespaces)
        now = self._clock.now()
        at = wanted.as_of or now
        with self._facts.read(deadline) as reading:
            since = None if wanted.include_history or wanted.known_at is not None else at
            known, left = reading.of(wanted.namespaces, wanted.subject, wanted.key, _SLOTS, since)
            sequence = reading.sequence
        current, history = list[Stands](), list[Stands]()
        for group in _grouped(known):
            for each in _stands(group, wanted.as_of, now, wanted.known_at):
                (current if each.state == "current" else history).append(each)
        current.sort(key=lambda each: _standing(each, wanted.namespaces))
        shown = current[: wanted.limit]
        text, unwritten = profile(current, wanted.subject, wanted.max_tokens, self._heading, wanted.namespaces)
        answer = Recalled(
            tuple(shown),
            tuple(_concealed(each) for each in history) if wanted.include_history else (),
            text,
            len(current) - len(shown) + left,
            unwritten + left,
            wanted.namespaces,
            at,
            wanted.known_at,
            sequence,
        )
        self._given(caller, [each.fact.id for each in answer.facts], sequence, now)
        return concealed(caller, answer)

    def history(self, namespace: str, subject: str, key: str, caller: Caller, deadline: Deadline) -> tuple[Stands, ...]:
        """Everything that was ever said of a subject's key, oldest first, and how each of it stands now.

        Raises: NamespaceDenied; StoreUnavailable.
        """
        require(caller, (namespace,))
        now = self._clock.now()
        with self._facts.read(deadline) as reading:
            known, _ = reading.of((namespace,), subject, key, _SLOTS)
        return tuple(_concealed(each) for group in _grouped(known) for each in _stands(group, None, now, None))

    def subjects(
        self, namespaces: Sequence[str], beginning: str, most: int, caller: Caller, deadline: Deadline
    ) -> tuple[tuple[str, int], ...]:
        """Subjects of facts that hold, with their numbers of keys, by the beginning of their names."""
        require(caller, namespaces)
        with self._facts.read(deadline) as reading:
            return reading.subjects(namespaces, beginning, most)

    def _given(self, caller: Caller, ids: Iterable[str], sequence: int, now: datetime) -> None:
        """Log what an answer gives away, behind the answer: it neither waits for that nor fails with it."""
        if self._log_read is not None:
            session, agent = caller.reader
            # No namespace was read as a whole: what others changed there is still news.
            self._log_read(Read(session, agent, tuple(ids), (), sequence, now, caller.identity), self._not_logged)

    def _not_logged(self, error: AgoraError) -> None:
        self._log.warning("reads were not logged", code=error.code)

    def _embed(self, draft: FactDraft, deadline: Deadline) -> Embedded:
        return embed(self._encoder, None, rendered(draft), deadline.within(self._model_seconds))

    def _with_beginning(self, draft: FactDraft, deadline: Deadline) -> FactDraft:
        """`draft` in UTC, with the beginning that its end needs, if it has none."""
        draft = replace(
            draft,
            valid_from=_utc("valid_from", draft.valid_from),
            valid_to=_utc("valid_to", draft.valid_to),
            expires_at=_utc("expires_at", draft.expires_at),
        )
        if draft.valid_to is None:
            return draft
        if draft.valid_from is not None:
            if draft.valid_from > draft.valid_to:
                raise InvalidInput("valid_to", "must not be before valid_from", draft.valid_to.isoformat())
            return draft
        if draft.valid_to > self._clock.now():
            return draft
        with self._facts.read(deadline) as reading:
            # What ends just then, as somebody has said already, held a moment before.
            now, ends = self._clock.now(), draft.valid_to
            held = _held(reading, draft, ends, now) or (
                _held(reading, draft, ends - _MOMENT, now) if ends > _FIRST else None
            )
        if held is None:
            raise InvalidInput(
                "valid_from",
                "is needed: that time is over, and this value is not known to have held then",
                None,
                hint="Say when it began to hold; or leave out valid_to if it still does.",
            )
        return replace(draft, valid_from=draft.valid_to)

    def _ending(self, draft: FactDraft, deadline: Deadline) -> FactDraft | None:
        """What ends the value that `draft` says holds no longer; None if it does not hold."""
        now = self._clock.now()
        with self._facts.read(deadline) as reading:
            held = _held(reading, draft, draft.valid_from, now)
        if held is None:
            return None
        # What began after this instant, by a clock that was put back since, ends where it began.
        at = draft.valid_from or max(now, held.valid_from)
        return replace(draft, key=held.key, value=held.value, valid_from=at, valid_to=at, multi=held.multi or None)


def _utc(field: str, instant: datetime | None) -> datetime | None:
    # Two instants of one zone are compared by the clock on the wall, which shows one hour twice.
    if instant is None:
        return None
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        hint = "Leave it out if it is meant to be always or never."
        raise InvalidInput(field, "is out of the years 1 to 9999 in UTC", instant.isoformat(), hint=hint) from None


def _grouped(known: Iterable[Fact]) -> list[list[Fact]]:
    groups: dict[tuple[str, str, str], list[Fact]] = {}
    for each in known:
        groups.setdefault((each.namespace, name_of(each.subject), name_of(each.key)), []).append(each)
    return list(groups.values())


def _stands(group: Sequence[Fact], at: datetime | None, now: datetime, known_at: datetime | None) -> list[Stands]:
    """How the statements of one key stand, at present if `at` is None.

    What only says that another one has ended is left out, and what was purged.
    """
    facts = {each.row: each for each in group}
    said = [statement(each) for each in group]
    known = NEVER if known_at is None else to_micros(known_at)
    present = reached(said, to_micros(now)) if at is None else to_micros(at)
    found = standings(said, present, to_micros(now), known)
    beside = tuple(facts[row] for row, each in found.items() if each.state == "contested")
    return [
        _stand(facts[row], each, facts, beside)
        for row, each in found.items()
        if facts[row].valid_from != facts[row].valid_to and not facts[row].reverted and facts[row].purged_rank is None
    ]


def _stand(fact: Fact, each: Standing, facts: dict[int, Fact], beside: tuple[Fact, ...]) -> Stands:
    after = None if each.after is None else facts.get(each.after)
    state = each.state
    if state == "superseded" and after is not None and after.valid_from == after.valid_to and after.same == fact.same:
        # What took its place only says that it holds no longer.
        state, after = "ended", None
    return Stands(
        fact, state, maybe(each.until), None if after is None else after.id, beside if state == "current" else ()
    )


def _standing(each: Stands, namespaces: Sequence[str]) -> tuple[object, ...]:
    """Pinned first, then those that most have said, then the newest."""
    fact = each.fact
    return (
        fact.pinned_at is None,
        -len(fact.savers),
        -to_micros(fact.valid_from),
        namespaces.index(fact.namespace),
        fact.row,
    )


def _concealed(each: Stands) -> Stands:
    """What was forgotten is told of without what it said."""
    if each.state != "retracted":
        return each
    return replace(each, fact=replace(each.fact, value="", quote=None, same=b""))


def _held(reading: FactReading, draft: FactDraft, at: datetime | None, now: datetime) -> Fact | None:
    """The fact with the same value that holds of the subject: under the same key, else the only one under another."""
    known, _ = reading.of((draft.namespace,), draft.subject, None, _EVERY, at or now)
    wanted = same(draft.value)
    held = [
        each.fact
        for group in _grouped(known)
        for each in _stands(group, at, now, None)
        if each.state in {"current", "contested"} and each.fact.same == wanted
    ]
    exact = [fact for fact in held if name_of(fact.key) == name_of(draft.key)]
    return exact[0] if exact else held[0] if len(held) == 1 and draft.quote is not None else None
