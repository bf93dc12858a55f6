"""Summaries without a language model: the sentences of a conversation that say most, verbatim, by message number."""

from __future__ import annotations

from collections.abc import Sequence

from agora.llm import extractive_lines as form
from agora.llm.extractive_choosing import Budget, Choice, lines
from agora.llm.extractive_files import files_named
from agora.llm.extractive_overruling import standing
from agora.llm.extractive_pieces import Source
from agora.llm.extractive_weighing import weigh
from agora.model.deadline import Deadline
from agora.model.message import Message, Summary
from agora.ports.summarizer import Folded

WRITTEN_BY = "extractive"

DECISIONS, OPEN, FILES = 0.2, 0.1, 0.06
"""Shares of the budget that these have before everything competes: one decision counts more than many facts."""

MOST = 800
"""Pieces that compete; of more, those that weigh most."""

_BYTES_PER_TOKEN = 4
"""As in `agora.text.tokens.cost`."""


class ExtractiveSummarizer:
    """A `Summarizer` that quotes. The same input gives the same text, everywhere; it holds no state."""

    def fold(
        self, before: Summary | None, messages: Sequence[Message], words: int, tokens: int, deadline: Deadline
    ) -> Folded:
        """The summary of all that `before` covers and of `messages`, in at most so many words and tokens.

        Words are what blanks separate, signs and references included. Every quote is a slice of its message. A budget
        too small for the first line gives an empty text.

        Raises: DeadlineExceeded, Cancelled.
        """
        deadline.check()
        new = [_source(message) for message in messages]
        roles = {source.who: source.role for source in new if source.who is not None}
        old = form.read(before, roles) if before is not None else form.Before()
        sources = [*old.sources, *new]
        first, last = _range(before, messages)
        head = form.range_line(first, last)
        budget = Budget(words - len(head.split()), tokens * _BYTES_PER_TOKEN - len(head.encode()))
        if not budget.holds(0, 0) or last == 0:
            return Folded("", WRITTEN_BY)
        weighed = weigh(sources, len(old.sources), last, deadline.check)
        deadline.check()
        found = sorted(weighed.candidates, key=lambda one: (-one.weight * len(one.bag), one.order))[:MOST]
        found = standing(found, sources)
        deadline.check()
        whole = Budget(budget.words, budget.size)
        listed = files_named(old.files, new, Budget(int(FILES * whole.words), int(FILES * whole.size)))
        for line in (form.FILES, *listed) if listed else ():
            budget.spend(len(line.split()), len(line.encode()) + 1)
        choice = Choice(sources, weighed.worth, whole, budget)
        choice.take([one for one in found if one.section == "decisions"], DECISIONS)
        choice.take([one for one in found if one.section == "open"], OPEN)
        choice.take(found, 1.0)
        return Folded(form.written(head, lines(sources, choice.taken), listed), WRITTEN_BY)


def _source(message: Message) -> Source:
    return Source(
        text=message.content,
        seq=message.seq,
        who=form.label(message.speaker, message.role),
        role=message.role,
        at=message.at,
    )


def _range(before: Summary | None, messages: Sequence[Message]) -> tuple[int, int]:
    """The first and last message that the summary covers; 0 for none at all."""
    ends = [message.seq for message in messages]
    if before is not None:
        ends += [before.first, before.last]
    return (min(ends), max(ends)) if ends else (0, 0)
