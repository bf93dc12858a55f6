"""The summary by rules and the check of an agent's, as they are put together."""

from __future__ import annotations

import pytest
from tests.conftest import PATIENCE, Desk

from agora.errors import InvalidInput
from agora.llm.extractive import ExtractiveSummarizer
from agora.llm.grounding import unfounded
from agora.memory.conversations.service import ConversationMemory
from agora.model.conversation import Kept
from agora.model.deadline import Deadline
from agora.model.message import MessageDraft
from agora.testing import SilentLog
from agora.text.tokens import cost

SAID = (
    "We decided to keep the queue in Postgres, not in Redis.",
    "TODO: rotate the key of the staging server before Friday.",
    "The worker reads its settings from /etc/worker/main.toml.",
    "Retries are capped at 7, after 90 seconds each.",
    "Who looks at the failing build?",
    "The build fails since commit 4f2c9ab.",
    "Nothing else today.",
)


@pytest.fixture
def memory(desk: Desk) -> ConversationMemory:
    store = desk.store.conversations()
    return ConversationMemory(lambda _: store, desk.encoder, desk.clock, SilentLog(), ExtractiveSummarizer(), unfounded)


def say(memory: ConversationMemory, desk: Desk, number: int) -> list[Kept]:
    kept = []
    for n in range(number):
        desk.clock.advance(minutes=1)
        draft = MessageDraft("p", "talk", "user", f"{SAID[n % len(SAID)]} Round {n}.", "Ann")
        kept.append(memory.append(draft, desk.caller(), Deadline(PATIENCE)))
    return kept


def test_rules_summarise_a_long_conversation_within_the_limits_and_say_what_they_cover(
    memory: ConversationMemory, desk: Desk
) -> None:
    kept = say(memory, desk, 60)
    assert all(each.problems == () for each in kept)
    found = memory.context("p", "talk", 2_000, None, desk.caller(), Deadline(PATIENCE))
    assert found.summary is not None
    assert found.summary.first == 1
    assert 60 - found.summary.last <= 12
    assert "Postgres" in found.summary.text
    assert cost(found.summary.text) <= 512
    assert len(found.summary.text.split()) <= 200
    assert found.summary_due is not None
    assert found.chat[0]["content"].count(f"essages 1 to {found.summary.last}:") == 1
    assert desk.problems() == []


def test_an_agents_summary_is_held_against_the_messages_that_it_covers(memory: ConversationMemory, desk: Desk) -> None:
    due = next(each.summary_due for each in say(memory, desk, 14) if each.summary_due)
    for lie in ("Retries are capped at 12.", "Settings are in /etc/other.toml.", "It fails since commit 0badc0d."):
        with pytest.raises(InvalidInput) as refused:
            memory.summarize(due.token, lie, desk.caller(), Deadline(PATIENCE))
        assert refused.value.param == "summary"
    told = f"Messages {due.first} to {due.last}: the queue stays in Postgres; retries are capped at 7 (#4)."
    assert memory.summarize(due.token, told, desk.caller(), Deadline(PATIENCE)).text == told
