from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agora.errors import AgoraError, ModelAnswerUnusable, SummaryOutdated
from agora.memory.conversations.access import GuardedConversations
from agora.memory.conversations.tokens import Ticket, written
from agora.memory.conversations.wording import newest
from agora.model.caller import Caller, lowest
from agora.model.conversation import SummaryDue, Trouble
from agora.model.deadline import Deadline
from agora.model.message import Message, Summary
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.ports.summarizer import Folded, Summarizer
from agora.text.tokens import cost, window


@dataclass(frozen=True, slots=True)
class Room:
    """What a summary may have at the most."""

    words: int = 200
    tokens: int = 512


BY_RULES = "extractive"
"""`Summary.written_by` of a summary that rules made."""

_LEAST = 6
"""Messages that are folded at a time, at least."""

_AT_ONCE = 120
"""Messages that are folded at a time, at most: what is left is due again at once."""

_ROUNDS = 3
"""Times that one call folds: the rest is left for the next call."""

_SHOWN = 1_000
"""Tokens of the messages that come with `summary_due`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What folding did: the messages that went in, and why it stopped, if it should have gone on."""

    folded: tuple[int, int] | None = None
    problem: Trouble | None = None


class Folding:
    """Keeps the rolling summary up to date: the older half of what it lacks goes in, once that is too much."""

    def __init__(  # noqa: PLR0913 - when it is due, and what it is made by
        self,
        conversations: GuardedConversations,
        summarizer: Summarizer,
        clock: Clock,
        log: Log,
        *,
        messages: int = 12,
        tokens: int = 3_000,
        room: Room = Room(),
        seconds: float = 15.0,
    ) -> None:
        """Due above so many `messages`, or `tokens`, beyond the summary; `seconds` for each time it is made.

        `room`: what the summary may have.
        """
        self._conversations = conversations
        self._summarizer = summarizer
        self._clock = clock
        self._log = log
        self._messages = max(messages, _LEAST)
        self._tokens = tokens
        self._room = room
        self._seconds = seconds

    def fold(self, namespace: str, session: str, caller: Caller, deadline: Deadline) -> Outcome:
        """Fold what is due; never raises, for what the call was for is done."""
        first = last = 0
        problem: Trouble | None = None
        try:
            for _ in range(_ROUNDS):
                span, said = self._once(namespace, session, caller, deadline)
                problem = said or problem
                if span is None:
                    break
                first, last = first or span[0], span[1]
        except SummaryOutdated:
            # Somebody else has just done it.
            pass
        except AgoraError as error:
            self._log.warning("summary not brought up to date", code=error.code, namespace=namespace)
            told = "the summary was not brought up to date, and is due again with the next call"
            problem = Trouble(error.code, f"{told}: {error.message}")
        return Outcome((first, last) if last else None, problem)

    def _once(
        self, namespace: str, session: str, caller: Caller, deadline: Deadline
    ) -> tuple[tuple[int, int] | None, Trouble | None]:
        with self._conversations.read((namespace,), caller, deadline) as reading:
            before = reading.summary(namespace, session)
            start = 1 if before is None else before.last + 1
            count = reading.count(namespace, session)
            live = reading.live(namespace, session, start, count)
            # Of many only the oldest are looked at.
            fresh = reading.messages(namespace, session, start, count, oldest=4 * _AT_ONCE)
            seen = reading.sequence
        taken = fresh[: self._due(fresh, live)]
        if not taken:
            return None, None
        room = self._room
        folded = self._summarizer.fold(before, taken, room.words, room.tokens, deadline.within(self._seconds))
        if folded.problem is not None:
            # Not the problem itself: it may hold words of the model or of its server, and the log holds no texts.
            self._log.warning("summary made by rules, not by the model", namespace=namespace, by=folded.written_by)
        if not (text := bounded(folded.text, room)):
            raise ModelAnswerUnusable("the summary that was made is empty")
        now = self._clock.now()
        summary = Summary(
            *(text, taken[0].seq if before is None else before.first, taken[-1].seq, 0),
            *(folded.written_by, now),
        )
        # It quotes them: it is worth no more than the least of them.
        words = lowest(caller.origin, *(each.origin for each in taken), None if before is None else before.origin)
        self._conversations.summarize(
            *(namespace, session, summary, 0 if before is None else before.version, seen),
            *(replace(caller, origin=words), now, deadline),
        )
        self._log.info("conversation summarised", namespace=namespace, messages=len(taken), by=folded.written_by)
        return (taken[0].seq, taken[-1].seq), _said(folded)

    def _due(self, fresh: Sequence[Message], live: int) -> int:
        """How many of the messages beyond the summary are to be folded now."""
        if live <= _LEAST:
            return 0
        if live <= self._messages and sum(cost(each.content) for each in fresh) <= self._tokens:
            return 0
        return min(max(_LEAST, live // 2), _AT_ONCE)


def due(
    summary: Summary | None,
    namespace: str,
    session: str,
    messages: Callable[[int, int], Sequence[Message]],
    room: Room,
) -> SummaryDue | None:
    """The offer to write a better summary, if rules made the present one. `messages` reads some by their numbers."""
    if summary is None or summary.written_by != BY_RULES:
        return None
    ticket = Ticket(namespace, session, summary.version, summary.first, summary.last)
    quoted = newest(messages(max(summary.first, summary.last - _AT_ONCE), summary.last), _SHOWN)
    text = f"{summary.text}\n\n{quoted}" if quoted else summary.text
    return SummaryDue(written(ticket), summary.first, summary.last, text, room.tokens, room.words)


def bounded(text: str, room: Room) -> str:
    """As much of a summary as it may have: whole lines and words from its beginning."""
    words = 0
    kept: list[str] = []
    for each in text.strip().splitlines():
        found = each.split()
        if words + len(found) > room.words:
            rest = " ".join(found[: room.words - words])
            kept += [f"{rest} …"] if rest else []
            break
        words += len(found)
        kept.append(each)
    return window("\n".join(kept), 0, 0, room.tokens)


def _said(folded: Folded) -> Trouble | None:
    return None if folded.problem is None else Trouble("summary_by_rules", folded.problem)
