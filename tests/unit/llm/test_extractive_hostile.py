from __future__ import annotations

import time

import pytest
from tests.unit.llm.extractive_talks import fold, message, quotes, summary

from agora.text.tokens import cost

SIZE = 1_000_000

HOSTILE = {
    "one letter": "a" * SIZE,
    "blanks": " " * SIZE,
    "new lines": "\n" * SIZE,
    "full stops": ". " * (SIZE // 2),
    "no blanks, full stops": "." * SIZE,
    "questions": "a? " * (SIZE // 3),
    "names": "Anna Boris " * (SIZE // 11),
    "numbers": "12,345 " * (SIZE // 7),
    "digits": "1" * SIZE,
    "slashes": "a/" * (SIZE // 2),
    "references": "(#1, a) " * (SIZE // 8),
    "bullets": "- " * (SIZE // 2),
    "short lines": "We decided 7.\n" * (SIZE // 14),
    "different lines": "\n".join(f"Anna{n} decided to use port {n} for host{n}." for n in range(SIZE // 45)),
    "greetings": "hi hi " * (SIZE // 6),
    "marks": "e\u0301\u0301" * (SIZE // 3),
    "Chinese": "数据库端口是" * (SIZE // 6),
    "emoji": "👩‍👩‍👧" * (SIZE // 5),
    "fences": "```\n" * (SIZE // 4),
    "brackets": "((((" * (SIZE // 4),
    "dashes": "- - -" * (SIZE // 5),
    "half a pair": "Anna pays \ud800 50 euros. Boris pays 60 euros." * (SIZE // 46),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_is_folded_in_a_moment(name: str) -> None:
    said = [message(n, HOSTILE[name]) for n in range(1, 7)]
    began = time.thread_time()
    made = fold(said)
    again = fold([message(7, HOSTILE[name])], made)
    # 0.6 s at most where it was measured.
    assert time.thread_time() - began < 3
    assert len(again.text.split()) <= 200
    assert cost(again.text) <= 512
    assert all(quote in HOSTILE[name] for _, quote in quotes(again.text))


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - {"half a pair"}))
def test_a_megabyte_of_anything_as_the_summary_before_is_read_in_a_moment(name: str) -> None:
    began = time.thread_time()
    made = fold([message(9, "Elena lives in Oslo.")], summary("Files:\n" + HOSTILE[name], 1, 8))
    assert time.thread_time() - began < 3
    assert made.text.startswith("Messages 1 to 9:")
    assert len(made.text.split()) <= 200
    assert cost(made.text) <= 512


def test_a_sentence_that_cannot_be_encoded_is_left_out_and_the_rest_is_not() -> None:
    text = fold([message(1, "Anna pays \ud800 50 euros. Boris pays 60 euros.")]).text
    assert quotes(text) == [(1, "Boris pays 60 euros.")]


@pytest.mark.parametrize("words", range(12))
def test_a_budget_of_a_few_words_holds(words: int) -> None:
    text = fold([message(1, "We decided to use Kotlin."), message(2, "See src/a.py in Oslo.")], words=words).text
    assert len(text.split()) <= words
    assert text == "" or text.startswith("Messages 1 to 2:")


def test_ten_thousand_messages_are_folded_at_once() -> None:
    said = [
        message(n, f"Node {n} in Oslo answers on port {n + 1000}. It belongs to team {n % 90}.")
        for n in range(1, 10_001)
    ]
    began = time.thread_time()
    text = fold(said).text
    assert time.thread_time() - began < 20
    assert text.startswith("Messages 1 to 10000:")
    assert len(text.split()) > 150
