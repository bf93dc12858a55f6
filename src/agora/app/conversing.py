"""Conversations as the settings want them: who summarises, whose facts a context has, which facts are taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from agora.config.settings import Settings
from agora.memory.conversations.checks import Limits
from agora.memory.conversations.folding import Room
from agora.memory.conversations.service import ConversationMemory, Facts, Gather
from agora.memory.facts import FactMemory
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.fact import USER, Gathered, Recollection
from agora.model.message import Message, MessageDraft, Summary
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.language_model import LanguageModel
from agora.ports.log import Log
from agora.ports.summarizer import Folded, Summarizer
from agora.stores.sqlite.store import SqliteStore
from agora.text.sameness import name_of
from agora.text.tokens import cost

_SUBJECTS = 12
"""Subjects whose facts a context has; of more, those who spoke last."""

_FACTS = 50
"""Facts of one of them that are looked at."""

_PATIENCE = 15.0
"""Seconds that a summary, or the facts of a message, may take at the least."""

_MORE = 1.25
"""Of a model's own time, for a call that asks it: a fifth of what there is stays for the rules (`llm/waiting.py`)."""

_LEAST = 12
"""Tokens below which a profile is nothing but its heading."""


def make_conversations(  # noqa: PLR0913, PLR0917 - the parts it is made of
    settings: Settings,
    store: SqliteStore,
    encoder: Encoder,
    questions: Encoder,
    clock: Clock,
    log: Log,
    facts: FactMemory,
    summarizer: Summarizer,
) -> ConversationMemory:
    """The conversations in the store."""
    kept, wanted = store.conversations(), settings.conversations
    seconds = _PATIENCE if settings.model.adapter == "none" else max(_PATIENCE, _MORE * settings.model.timeout)
    return ConversationMemory(
        *(lambda _: kept, encoder, clock, log, summarizer, _unfounded),
        facts=known_of(facts),
        gather=_gathering(facts) if settings.model.extract_from_conversations else None,
        questions=questions,
        default=wanted.strategy,
        fold_messages=wanted.fold_messages,
        fold_tokens=wanted.fold_tokens,
        fold_seconds=seconds,
        room=Room(wanted.summary_words, wanted.summary_tokens),
        limits=Limits(
            content_bytes=settings.limits.content_bytes,
            query_chars=settings.limits.query_chars,
            model_seconds=settings.embedding.deadline,
            gather_seconds=seconds,
        ),
    )


def make_summarizer(model: LanguageModel | None, max_tokens: int, redact: Callable[[str], str]) -> Summarizer:
    """What makes summaries: the extractive rules, or a model for which they stand in; otherwise as `make_extractor`."""
    if model is None:
        return _Extractive()
    from agora.llm.writing import ModelSummarizer  # noqa: PLC0415 - most have no model

    return ModelSummarizer(model, _Extractive(), redact, _unfounded, max_tokens)


def known_of(facts: FactMemory) -> Facts:
    """What is known of subjects and of the user, each as lines for a system prompt, within a budget together.

    Facts of the conversation's namespace, and of `shared` if the caller may read it.
    """

    def known(subjects: Sequence[str], namespace: str, budget: int, caller: Caller, deadline: Deadline) -> str:
        searched = caller.scope.searched() if namespace == caller.scope.own else (namespace,)
        blocks, left = list[str](), budget
        for subject in {name_of(each): each for each in (*subjects[:_SUBJECTS], USER)}.values():
            if left < _LEAST:
                break
            wanted = Recollection(searched, subject, max_tokens=left, limit=_FACTS)
            if (block := facts.recall(wanted, caller, deadline).profile) is not None:
                blocks.append(block)
                left -= cost(block + "\n")
        return "\n".join(blocks)

    return known


def _gathering(facts: FactMemory) -> Gather:
    def gather(draft: MessageDraft, caller: Caller, deadline: Deadline) -> Gathered:
        return facts.remember_from(
            draft.content,
            draft.namespace,
            caller,
            deadline,
            subject=draft.speaker or USER,
            at=draft.occurred_at,
        )

    return gather


def _unfounded(text: str, sources: Sequence[str], covers: tuple[int, int] | None = None) -> tuple[str, ...]:
    from agora.llm.grounding import unfounded  # noqa: PLC0415 - nothing of it is needed before the first summary

    return unfounded(text, sources, covers)


class _Extractive:
    """The rules, loaded at the first summary; implements `Summarizer`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Summarizer | None = None

    def fold(
        self, before: Summary | None, messages: Sequence[Message], words: int, tokens: int, deadline: Deadline
    ) -> Folded:
        """As `Summarizer.fold`."""
        with self._lock:
            if self._made is None:
                from agora.llm.extractive import ExtractiveSummarizer  # noqa: PLC0415 - see above

                self._made = ExtractiveSummarizer()
        return self._made.fold(before, messages, words, tokens, deadline)
