from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from agora.errors import AgoraError, DeadlineExceeded, EmbeddingError, InvalidInput, SessionNotFound, SummaryOutdated
from agora.memory.access import require
from agora.memory.conversations import tokens
from agora.memory.conversations.access import GuardedConversations
from agora.memory.conversations.assembling import Parts, Shares, assemble, mark
from agora.memory.conversations.checks import Limits, check_asked, check_draft, check_name, check_summary
from agora.memory.conversations.folding import Folding, Room, due
from agora.memory.conversations.late import LateVectors
from agora.memory.conversations.newest import fitting
from agora.memory.conversations.wording import line
from agora.memory.passages import embed
from agora.model.caller import Caller, lowest
from agora.model.conversation import Context, Kept, SummaryDue, Trouble
from agora.model.deadline import Deadline
from agora.model.message import Message, MessageDraft, Strategy, Summary
from agora.text.analysis import Group, analyse_query

if TYPE_CHECKING:
    from agora.model.fact import Gathered
    from agora.ports.clock import Clock
    from agora.ports.conversations import ConversationReading, ConversationRow, Conversations
    from agora.ports.encoder import Encoder, Vector
    from agora.ports.log import Log
    from agora.ports.records import Embedded
    from agora.ports.summarizer import Summarizer

LISTED = 1_000
"""Conversations in one list, at the most."""

Facts = Callable[[Sequence[str], str, int, Caller, Deadline], str]
"""What is known of these subjects in a namespace, as lines, within so many tokens, for a caller."""

Gather = Callable[["MessageDraft", Caller, Deadline], "Gathered"]
"""Keeps the facts that a message states."""

Unfounded = Callable[[str, Sequence[str], tuple[int, int]], Sequence[str]]
"""Numbers, paths and ids of a text that occur in none of its sources; it may name messages of a range by number."""

_PARTS: Mapping[Strategy, frozenset[str]] = {
    "buffer": frozenset(),
    "summary": frozenset({"summary"}),
    "facts": frozenset({"facts"}),
    "semantic": frozenset({"relevant"}),
    "all": frozenset({"summary", "facts", "relevant"}),
}

ASKED = Shares(facts=0.1, summary=0.12, relevant=0.6)
"""With a question."""

UNASKED = Shares()


class ConversationMemory:
    """Conversations: append, context, summarize, and a list of them.

    Blocking; call it from a worker thread. Every method takes the caller, whose scope bounds what it sees.
    """

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        conversations: Callable[[Deadline], Conversations],
        encoder: Encoder,
        clock: Clock,
        log: Log,
        summarizer: Summarizer,
        unfounded: Unfounded,
        *,
        facts: Facts | None = None,
        gather: Gather | None = None,
        questions: Encoder | None = None,
        default: Strategy = "all",
        fold_messages: int = 12,
        fold_tokens: int = 3_000,
        fold_seconds: float = 15.0,
        room: Room = Room(),  # noqa: B008 - immutable
        limits: Limits = Limits(),  # noqa: B008 - as above
    ) -> None:
        """`conversations` gives the store, which may have to be opened first.

        `gather` keeps the facts of what users say, if they are to be kept. `questions` encodes questions, if another
        than `encoder` should. `default`: the strategy where none was chosen. `room`: what a summary may have, and
        `fold_seconds` that it may take.
        """
        self._conversations = GuardedConversations(conversations)
        self._encoder = encoder
        self._questions = questions or encoder
        self._clock = clock
        self._log = log
        self._unfounded = unfounded
        self._facts = facts
        self._gather = gather
        self._room = room
        self._default: Strategy = default
        self._limits = limits
        self._folding = Folding(
            *(self._conversations, summarizer, clock, log),
            messages=fold_messages,
            tokens=fold_tokens,
            room=room,
            seconds=fold_seconds,
        )
        self._late = LateVectors(encoder, log, limits.model_seconds)
        self._terms: object | None = None

    def append(
        self, draft: MessageDraft, caller: Caller, deadline: Deadline, *, strategy: Strategy | None = None
    ) -> Kept:
        """Append a message; when this returns it is on disk. `strategy` is kept for the conversation, if given.

        A model that is not ready holds nothing up: then the message is kept without vectors, and `problems` says so.
        Nor does anything that follows undo it: neither the summary nor the facts that are taken from it.

        Raises: InvalidInput, PayloadTooLarge; NamespaceDenied; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        check_draft(draft, strategy, self._limits)
        require(caller, (draft.namespace,), "write")
        embedded, problems = self._embed(draft.content, deadline)
        try:
            kept = self._conversations.append(draft, caller, embedded, self._clock.now(), deadline, strategy)
        except EmbeddingError as error:
            if embedded is None:
                raise
            problems = [_without_vectors(error)]
            kept = self._conversations.append(draft, caller, None, self._clock.now(), deadline, strategy)
        self._log.info("message appended", id=kept.id, namespace=draft.namespace)
        outcome = self._folding.fold(draft.namespace, draft.session, caller, deadline)
        problems += [outcome.problem] if outcome.problem is not None else []
        offer: SummaryDue | None = None
        if outcome.folded is not None:
            try:
                with self._conversations.read((draft.namespace,), caller, deadline) as reading:
                    offer = self._due(reading, draft.namespace, draft.session)
            except AgoraError as error:
                # The message is kept; whatever ends the look around must not make it sound otherwise.
                self._log.warning("no look at the summary", code=error.code)
        gathered = self._gathered(draft, caller, deadline, problems)
        return Kept(
            *(kept.id, draft.namespace, draft.session, kept.seq),
            *(outcome.folded, offer, tuple(problems), gathered),
        )

    def context(  # noqa: PLR0913 - what a context depends on
        self,
        namespace: str,
        session: str,
        max_tokens: int,
        query: str | None,
        caller: Caller,
        deadline: Deadline,
        *,
        strategy: Strategy | None = None,
        subjects: Sequence[str] = (),
    ) -> Context:
        """What the next turn of a conversation needs to know, within `max_tokens`.

        `strategy`: for this call alone. `subjects`: whose facts to give before those of the speakers. Without vectors
        words alone find what is relevant, and `problems` says so.

        Raises: InvalidInput, PayloadTooLarge; NamespaceDenied; SessionNotFound; StoreUnavailable.
        """
        check_name("session", session)
        check_asked(max_tokens, query, strategy, self._limits)
        require(caller, (namespace,))
        problems: list[Trouble] = []
        writes = caller.scope.may("write", namespace)
        if writes:
            outcome = self._folding.fold(namespace, session, caller, deadline)
            problems += [outcome.problem] if outcome.problem is not None else []
        asked: Vector | None = None
        query = query.strip() if query else None
        if query:
            # The model may take a while: no snapshot is held open meanwhile.
            asked, more = self._vector_of(query, deadline)
            problems += more
        with self._conversations.read((namespace,), caller, deadline) as reading:
            count = reading.count(namespace, session)
            if count == 0:
                raise _unknown(namespace, session)
            chosen = strategy or reading.strategy(namespace, session) or self._default
            parts = _PARTS[chosen]
            seeks = bool(query) and "relevant" in parts
            if seeks:
                messages = reading.messages(namespace, session, 1, count)
            else:
                messages = fitting(reading, namespace, session, max_tokens, deadline)
            live = reading.live(namespace, session, 1, count)
            vectors = reading.vectors([each.row for each in messages]) if seeks and asked is not None else {}
            summary = reading.summary(namespace, session) if "summary" in parts else None
            offer = self._due(reading, namespace, session) if writes else None
            covered = 0 if summary is None else reading.live(namespace, session, summary.first, summary.last)
        given = Parts(messages, summary)
        if "facts" in parts and self._facts is not None:
            given.facts = self._known(subjects, messages, namespace, caller, deadline, problems)
        if seeks and query and messages:
            deadline.check()
            if asked is not None:
                vectors |= self._late.of(messages, vectors, deadline)
                if missing := sum(each.row not in vectors for each in messages):
                    told = (
                        f"{missing} of {len(messages)} messages have no vectors: these are found by their words alone"
                    )
                    problems.append(Trouble("without_vectors", told))
            groups = analyse_query(query)
            given.relevant = self._ranked(messages, query, groups, asked, vectors)
            given.around = lambda message: _place_of(message.content, groups)
        made = assemble(given, ASKED if given.relevant else UNASKED, max_tokens, mark())
        shown = len(made.last) + len(made.relevant)
        if made.summary is not None and summary is not None:
            inside = sum(summary.first <= each.seq <= summary.last for each in (*made.last, *made.relevant))
            shown += covered - inside
        return Context(
            namespace=namespace,
            session=session,
            strategy=chosen,
            messages=live,
            summary=made.summary,
            facts=made.facts,
            relevant=tuple(made.relevant),
            last=tuple(made.last),
            cut=made.cut,
            omitted=live - shown,
            chat=made.chat,
            tokens=made.tokens,
            summary_due=offer,
            problems=tuple(problems),
        )

    def summarize(self, token: str, summary: str, caller: Caller, deadline: Deadline) -> Summary:
        """Put a summary that an agent wrote in the place of the one that `token` of a `summary_due` names.

        Raises: InvalidInput if it is too long, or names numbers, paths or ids that occur neither in the summary before
        nor in the messages; SummaryOutdated; NamespaceDenied; SessionNotFound; StoreUnavailable.
        """
        ticket = tokens.read(token)
        require(caller, (ticket.namespace,), "write")
        text = summary.strip()
        check_summary(text, self._room)
        with self._conversations.read((ticket.namespace,), caller, deadline) as reading:
            if reading.count(ticket.namespace, ticket.session) == 0:
                raise _unknown(ticket.namespace, ticket.session)
            before = reading.summary(ticket.namespace, ticket.session)
            seen = reading.sequence
            if before is None or (before.version, before.first, before.last) != (
                *(ticket.version, ticket.first, ticket.last),
            ):
                raise SummaryOutdated(f"the summary of {ticket.session!r} is not the one that the token names")
            messages = reading.messages(ticket.namespace, ticket.session, ticket.first, ticket.last)
        sources = [before.text, *(line(each) for each in messages)]
        if invented := list(dict.fromkeys(self._unfounded(text, sources, (ticket.first, ticket.last)))):
            raise InvalidInput(
                "summary",
                f"has what occurs neither in the summary before nor in the messages: {', '.join(invented)}",
                text,
                hint="Write numbers, paths and ids exactly as the messages have them, or leave them out.",
            )
        now = self._clock.now()
        made = Summary(text, ticket.first, ticket.last, 0, f"agent:{caller.agent}", now)
        origin = lowest(caller.origin, before.origin, *(each.origin for each in messages))
        done = self._conversations.summarize(
            *(ticket.namespace, ticket.session, made, ticket.version, seen),
            *(replace(caller, origin=origin), now, deadline),
        )
        self._log.info("summary replaced", namespace=ticket.namespace, version=done.version)
        return done

    def sessions(
        self,
        namespaces: Sequence[str],
        caller: Caller,
        deadline: Deadline,
        most: int = 100,
        *,
        session: str | None = None,
    ) -> tuple[ConversationRow, ...]:
        """The conversations of these namespaces, or those of one name, the ones with the newest messages first.

        Raises: NamespaceDenied; StoreUnavailable.
        """
        with self._conversations.read(namespaces, caller, deadline) as reading:
            found = reading.listed(namespaces, min(most, LISTED), session)
            chosen = {(row.namespace, row.session): reading.strategy(row.namespace, row.session) for row in found}
        return tuple(replace(row, strategy=chosen[row.namespace, row.session] or self._default) for row in found)

    def _embed(self, content: str, deadline: Deadline) -> tuple[Embedded | None, list[Trouble]]:
        if self._encoder.state != "ready":
            self._encoder.warm_up()
            told = "the model is not ready: the message is kept without vectors, which a question makes later"
            return None, [Trouble("warming_up", told)]
        try:
            return embed(self._encoder, None, content, deadline.within(self._limits.append_seconds)), []
        except AgoraError as error:
            deadline.check()
            return None, [_without_vectors(error)]

    def _vector_of(self, query: str, deadline: Deadline) -> tuple[Vector | None, list[Trouble]]:
        try:
            return self._questions.encode_question(query, deadline.within(self._limits.model_seconds)), []
        except (EmbeddingError, DeadlineExceeded) as error:
            deadline.check()
            why = "the model took too long" if isinstance(error, DeadlineExceeded) else error.message
            return None, [Trouble(error.code, f"words alone chose the older messages: {why}")]

    def _ranked(
        self,
        messages: Sequence[Message],
        query: str,
        groups: Sequence[Group],
        asked: Vector | None,
        vectors: Mapping[int, Vector],
    ) -> list[Message]:
        from agora.memory.conversations.ranking import Terms, rank  # noqa: PLC0415 - a start has no use for it

        if self._terms is None:
            self._terms = Terms()
        scores = rank(messages, query, groups, asked, vectors, cast("Terms", self._terms))
        order = sorted(range(len(messages)), key=lambda place: (-float(scores[place]), place))
        return [messages[place] for place in order]

    def _gathered(
        self, draft: MessageDraft, caller: Caller, deadline: Deadline, problems: list[Trouble]
    ) -> Gathered | None:
        """The facts of what a user said, if they are to be kept; never raises, for the message is kept."""
        if self._gather is None or draft.role != "user":
            return None
        try:
            found = self._gather(draft, caller, deadline.within(self._limits.gather_seconds))
        except AgoraError as error:
            self._log.warning("no facts were taken from a message", code=error.code, namespace=draft.namespace)
            problems.append(Trouble(error.code, f"no facts were taken from the message: {error.message}"))
            return None
        problems += [Trouble("facts_by_rules", found.problem)] if found.problem is not None else []
        return found

    def _known(
        self,
        wanted: Sequence[str],
        messages: Sequence[Message],
        namespace: str,
        caller: Caller,
        deadline: Deadline,
        problems: list[Trouble],
    ) -> Callable[[int], str]:
        speakers = (each.speaker for each in reversed(messages) if each.speaker)
        subjects = tuple(dict.fromkeys((*wanted, *speakers)))

        def recall(budget: int) -> str:
            assert self._facts is not None
            try:
                return self._facts(subjects, namespace, budget, caller, deadline)
            except AgoraError as error:
                deadline.check()
                problems.append(Trouble(error.code, f"no facts are given: {error.message}"))
                return ""

        return recall

    def _due(self, reading: ConversationReading, namespace: str, session: str) -> SummaryDue | None:
        summary = reading.summary(namespace, session)
        return due(summary, namespace, session, lambda a, b: reading.messages(namespace, session, a, b), self._room)


def _without_vectors(error: AgoraError) -> Trouble:
    return Trouble(error.code, f"the message is kept without vectors: {error.message}")


def _unknown(namespace: str, session: str) -> SessionNotFound:
    return SessionNotFound(
        f"there is no conversation {session!r} in {namespace}",
        hint="session_append begins one; agora://sessions lists those that there are.",
    )


def _place_of(content: str, groups: Sequence[Group]) -> int:
    """Where the first of a question's rarer words is in a text; 0 if none is."""
    text = content.casefold()
    found = [text.find(group.text) for group in groups if not group.common]
    return min((place for place in found if place >= 0), default=0)
