"""Any run of appends, summaries, forgetting and restarts leaves a conversation as a list of messages would be."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.conftest import PATIENCE, Desk
from tests.unit.memory.conversations.table import Table

from agora.errors import SummaryOutdated
from agora.memory.conversations.assembling import Parts, Shares, assemble
from agora.model.deadline import Deadline
from agora.model.message import Message, Summary
from agora.model.selection import Selection
from agora.testing import ManualClock
from agora.text.tokens import cost

TEXT = st.text(min_size=1, max_size=300)
SESSIONS = st.sampled_from(("one", "two"))


class Talk(RuleBasedStateMachine):
    """Two processes' worth of stores, and lists of what was said."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="agora-talk-", ignore_cleanup_errors=True)
        self.clock = ManualClock()
        self.desks = [self.opened(), self.opened()]
        self.tables = [Table(desk) for desk in self.desks]
        self.said: dict[str, list[tuple[str, str]]] = {"one": [], "two": []}
        self.gone: set[str] = set()
        self.token: str | None = None

    def opened(self) -> Desk:
        return Desk(Path(self.folder.name), clock=self.clock)

    @rule(which=st.integers(0, 1), session=SESSIONS, texts=st.lists(TEXT.filter(str.strip), min_size=1, max_size=8))
    def append(self, which: int, session: str, texts: list[str]) -> None:
        for text in texts:
            kept = self.tables[which].say(text, session)
            self.said[session].append((kept.id, text))
            assert kept.seq == len(self.said[session])
            self.token = kept.summary_due.token if kept.summary_due else self.token

    @precondition(lambda self: self.token is not None)
    @rule(which=st.integers(0, 1))
    def summarize(self, which: int) -> None:
        assert self.token is not None
        try:
            made = self.tables[which].summarize(self.token, "in few words")
        except SummaryOutdated:
            return
        finally:
            self.token = None
        assert made.written_by == "agent:ann"

    @rule(which=st.integers(0, 1), session=SESSIONS, place=st.integers(0, 30))
    def forget(self, which: int, session: str, place: int) -> None:
        if place >= len(self.said[session]):
            return
        public_id = self.said[session][place][0]
        desk = self.desks[which]
        desk.notes.forget(Selection(("p",), (public_id,)), desk.caller(), Deadline(PATIENCE), dry_run=False)
        self.gone.add(public_id)
        summary = self.tables[1 - which].summary(session)
        assert summary is None or not summary.first <= place + 1 <= summary.last

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.desks[which].close()
        self.desks[which] = self.opened()
        self.tables[which] = Table(self.desks[which])

    @invariant()
    def all_is_as_it_was_said(self) -> None:
        for table in self.tables if hasattr(self, "tables") else ():
            for session, said in self.said.items():
                there = [(each.id, each.content) for each in table.messages(session)]
                assert there == [each for each in said if each[0] not in self.gone]

    def teardown(self) -> None:
        if hasattr(self, "desks"):
            assert self.desks[0].problems() == []
            for desk in self.desks:
                desk.close()
            self.folder.cleanup()


TestTalk = Talk.TestCase
TestTalk.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)


def message(seq: int, content: str, role: str) -> Message:
    at = ManualClock().now()
    return Message(f"m_{seq}", seq, "p", "talk", seq, role, None, content, at, at, {}, "ann", "agent")  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(TEXT, st.sampled_from(("user", "assistant", "system", "tool"))), max_size=25),
    st.integers(1, 2_000),
    st.text(max_size=400),
    st.text(max_size=400),
    st.tuples(*[st.floats(0, 1)] * 3),
    st.randoms(use_true_random=False),
)
def test_a_context_never_costs_more_than_it_may_and_the_oldest_goes_first(
    said: list[tuple[str, str]],
    budget: int,
    summary: str,
    facts: str,
    shares: tuple[float, float, float],
    chance: object,
) -> None:
    messages = [message(n, *each) for n, each in enumerate(said, start=1)]
    relevant = list(messages)
    chance.shuffle(relevant)  # type: ignore[attr-defined]
    stands = Summary(summary, 1, 5, 1, "extractive", ManualClock().now()) if summary else None
    made = assemble(Parts(messages, stands, lambda _: facts, relevant), Shares(*shares), budget, "data-1")
    assert cost(json.dumps([dict(each) for each in made.chat], ensure_ascii=False)) <= budget
    assert made.tokens <= budget
    numbers = [each.seq for each in made.last]
    assert numbers == list(range(numbers[0], len(messages) + 1)) if numbers else True
    quoted = [each.seq for each in made.relevant]
    assert quoted == sorted(set(quoted) - set(numbers))
