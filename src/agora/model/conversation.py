"""What appending to a conversation and asking for its context give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agora.model.fact import Gathered
from agora.model.message import Message, Strategy, Summary


@dataclass(frozen=True, slots=True)
class SummaryDue:
    """A summary made by rules that whoever reads this may write better: messages `first` to `last`, both included.

    `token` names the version to be replaced. `text` is what to summarise: the summary as it is, and the messages that
    it took in last, as far as they fit.
    """

    token: str
    first: int
    last: int
    text: str
    max_tokens: int
    max_words: int = 200


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that was not done, with a stable `code`; what was asked for itself is done all the same."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that was appended. `folded`: the messages that went into the summary with it, first and last.

    `gathered`: the facts that were taken from it, where they are to be; None where they are not, or could not be.
    `problems`: why it has no vectors yet, why the summary was not brought up to date, or why there are no facts.
    """

    id: str
    namespace: str
    session: str
    seq: int
    folded: tuple[int, int] | None = None
    summary_due: SummaryDue | None = None
    problems: tuple[Trouble, ...] = ()
    gathered: Gathered | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a conversation's next turn needs to know, within a budget.

    `last`: the newest messages, verbatim, in order. `relevant`: older ones that bear on the question, in order. Those
    of which only a part fits are in `cut`, by number, with that part. `omitted`: messages given neither verbatim nor by
    the summary. `chat`: all of it as messages for a model, `role` and `content` each; its JSON costs `tokens`.
    """

    namespace: str
    session: str
    strategy: Strategy
    messages: int
    summary: Summary | None
    facts: str
    relevant: tuple[Message, ...]
    last: tuple[Message, ...]
    cut: Mapping[int, str]
    omitted: int
    chat: tuple[Mapping[str, str], ...]
    tokens: int
    summary_due: SummaryDue | None = None
    problems: tuple[Trouble, ...] = ()
