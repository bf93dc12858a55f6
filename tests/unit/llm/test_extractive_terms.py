from __future__ import annotations

from agora.llm.extractive_terms import terms


def test_a_capital_letter_makes_a_name_but_for_the_first_word_of_a_sentence() -> None:
    assert list(terms("Apples from Graz", opens=True)) == [("word", "apple"), ("name", "graz")]
    assert list(terms("Apples from Graz", opens=False)) == [("name", "apples"), ("name", "graz")]
    assert list(terms("Anna lives", opens=True, known=frozenset({"anna"}))) == [("name", "anna"), ("word", "live")]


def test_numbers_are_compared_without_signs_of_thousands_and_currency() -> None:
    assert list(terms("$7,500 or 7500", opens=False)) == [("number", "7500"), ("number", "7500")]


def test_paths_addresses_and_commits_are_one_term() -> None:
    found = list(terms("See ./src/app.py, mail Ann@example.org about 3f2a9c1e", opens=True))
    assert [term for kind, term in found if kind == "file"] == ["src/app.py", "ann@example.org", "3f2a9c1e"]


def test_prose_with_signs_is_words() -> None:
    assert list(terms("follow-up and/or red,green", opens=True)) == [
        ("word", "follow"),
        ("word", "red"),
        ("word", "green"),
    ]
