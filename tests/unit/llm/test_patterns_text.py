"""What holds of any text: quotes are slices, nothing raises, time and number are bounded."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agora.errors import Cancelled, DeadlineExceeded
from agora.llm.patterns.extractor import MOST, PatternExtractor
from agora.llm.patterns.phrases import LONGEST_VALUE
from agora.model.deadline import Deadline

PIECES = [
    "I",
    "we",
    "my",
    "the",
    "port",
    "is",
    "are",
    "no longer",
    "use",
    "for",
    "to",
    "from",
    "over",
    "prefer",
    "5432",
    "3.11",
    "Ada",
    "Turin",
    "'s",
    "of",
    "was",
    "written",
    "by",
    "in",
    "that",
    "non",
    "uso",
    "più",
    "è",
    "la",
    "porta",
    "мы",
    "больше",
    "не",
    "используем",
    "порт",
    "—",
    "для",
    '"',
    "'",
    "“",
    "(",
    ")",
    "<",
    "{{",
    "```",
    "\n",
    "\n\n",
    ".",
    ". ",
    "?",
    ",",
    ";",
    ":",
    "!",
    "…",
    "\t",
    "**",
    "> ",
    "- ",
    "\u0301",
    "\x00",
    "\u2028",
    "\ud800",
    "İ",
]
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_every_quote_is_a_slice_of_the_text_and_the_same_text_gives_the_same(text: str) -> None:
    extraction = PatternExtractor().extract(text, Deadline(60))
    assert extraction == PatternExtractor().extract(text, Deadline(60))
    assert extraction.extracted_by == "patterns"
    assert extraction.problem is None
    for fact in extraction.facts:
        assert fact.quote in text
        assert fact.quote.strip()
        assert fact.key.strip()
        assert str(fact.value).strip()
        assert len(str(fact.value)) <= LONGEST_VALUE


def test_the_quote_is_the_sentence_as_it_stands_even_over_two_lines() -> None:
    sentence = "From now on the port of the big old billing service  is\n8081."
    [fact] = PatternExtractor().extract(f"Hello there.\n{sentence} Bye.", Deadline(30)).facts
    assert fact.quote == sentence
    assert (fact.subject, fact.key, fact.value) == ("big old billing service", "port", 8081)


HOSTILE = {
    "one letter": "a",
    "a verb": "is ",
    "quotation marks": '"',
    "apostrophes": "' ",
    "initials": "A. ",
    "full stops": ". ",
    "new lines": "\n",
    "fences": "```\n",
    "opening brackets": "(",
    "purposes": "We use " + "for " * 90 + ". ",
    "moves": "We moved " + "from to " * 45 + ". ",
    "relations": "The " + "of " * 120 + "is. ",
    "relative clauses": "The " + "that is " * 48 + ". ",
    "passives": "A " + "is used by " * 34 + ". ",
    "possessives": "A" + "'s a" * 95 + ". ",
    "preferences": "I prefer " + "to for in over " * 25 + ". ",
    "values to cut": "My port is " + "A and " * 60 + ". ",
    "lists": "I like " + "a, " * 120 + ". ",
    "negations": "We not " + "any not " * 45 + "more. ",
    "Italian": "La porta " + "di è non " * 40 + ". ",
    "Russian": "Порт " + "для — у " * 45 + ". ",
    "facts": "The port is 81.\n",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    before = time.process_time()
    PatternExtractor().extract(text, Deadline(250))
    # A tenth of it is what it takes; backtracking over 100 kB would take minutes.
    assert time.process_time() - before < 5


def test_a_text_gives_a_bounded_number_of_facts() -> None:
    text = "\n".join(f"The port of box{n} is {n}." for n in range(1, 3 * MOST))
    assert len(PatternExtractor().extract(text, Deadline(60)).facts) == MOST


def test_a_value_too_long_to_be_one_is_left_out() -> None:
    assert PatternExtractor().extract(f"Our server is box-{'7' * 250}.", Deadline(30)).facts == ()


def test_a_fact_said_twice_is_found_once() -> None:
    [fact] = PatternExtractor().extract("The port is 81. I repeat, yes. The port is 81!", Deadline(30)).facts
    assert fact.quote == "The port is 81."


def test_a_value_that_comes_back_is_found_again() -> None:
    found = PatternExtractor().extract("The port is 80. The port is 81. The port is 80.", Deadline(30)).facts
    assert [fact.value for fact in found] == [80, 81, 80]


def test_the_rule_that_found_a_fact_is_told() -> None:
    [fact] = PatternExtractor().extract("I live in Turin.", Deadline(30)).facts
    assert fact.about == {"rule": "home"}


def test_a_call_that_is_taken_back_or_late_stops() -> None:
    deadline = Deadline(30)
    deadline.cancel()
    with pytest.raises(Cancelled):
        PatternExtractor().extract("The port is 81.", deadline)
    with pytest.raises(DeadlineExceeded):
        PatternExtractor().extract("The port is 81.", Deadline(0))
