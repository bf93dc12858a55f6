from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.llm.extractive_talks import ENGLISH, ITALIAN, RUSSIAN, message, quotes, summary

from agora.llm.extractive import ExtractiveSummarizer
from agora.model.deadline import Deadline
from agora.model.message import Message
from agora.text.tokens import cost

SENTENCES = [text for said in (ENGLISH, ITALIAN, RUSSIAN) for _, text in said]
WORDS_IN_DOUBT = "Anna Graz 42 7,500 decided TODO port … . ! ? ; : , - — ( ) (#3, user) src/a.py #12 ``` $ решили порт"
WORDS = st.sampled_from(
    [*WORDS_IN_DOUBT.split(" "), "\n", "\n- ", "\u2028", "\x85", "\u00a0", "🙂", "数据库", "Facts:", "Messages 1 to 3:"]
)
TEXTS = st.one_of(
    st.sampled_from(SENTENCES),
    st.lists(WORDS, max_size=40).map(" ".join),
    st.text(max_size=80),
)
ROLES = st.sampled_from(["user", "assistant", "system", "tool"])
SPEAKERS = st.one_of(st.none(), st.sampled_from(["Anna", "Boris Ivanov", "x) (#1, y", "\n", "…"]), st.text(max_size=30))


@st.composite
def talks(draw: st.DrawFn) -> list[Message]:
    said = draw(st.lists(st.tuples(TEXTS, ROLES, SPEAKERS), min_size=1, max_size=12))
    return [message(n, *each) for n, each in enumerate(said, 1)]


@settings(max_examples=200, deadline=None)
@given(talks(), st.integers(0, 220), st.integers(0, 520), st.text(max_size=200))
def test_no_summary_is_beyond_its_budget(said: list[Message], words: int, tokens: int, free: str) -> None:
    before = None
    for start in range(0, len(said), 4):
        made = ExtractiveSummarizer().fold(before, said[start : start + 4], words, tokens, Deadline(60))
        assert len(made.text.split()) <= words
        assert cost(made.text) <= tokens
        assert made.text == "" or made.text.startswith(f"Messages 1 to {min(start + 4, len(said))}:")
        before = summary(made.text + free, 1, min(start + 4, len(said)))


@settings(max_examples=200, deadline=None)
@given(talks())
def test_every_quote_is_a_slice_of_its_message(said: list[Message]) -> None:
    before = None
    for start in range(0, len(said), 3):
        made = ExtractiveSummarizer().fold(before, said[start : start + 3], 200, 512, Deadline(60))
        for number, quote in quotes(made.text):
            assert quote in said[number - 1].content
        before = summary(made.text, 1, min(start + 3, len(said)))


@settings(max_examples=100, deadline=None)
@given(talks())
def test_every_line_has_the_form(said: list[Message]) -> None:
    text = ExtractiveSummarizer().fold(None, said, 200, 512, Deadline(60)).text
    first, *lines = text.splitlines()
    assert first == f"Messages 1 to {len(said)}:"
    heads = [line for line in lines if not line.startswith("- ")]
    order = ["Decisions:", "Open:", "Facts:", "Files:"]
    assert heads == [head for head in order if head in heads]
    assert all(line.endswith(")") and "(#" in line for line in lines if line.startswith("- "))
