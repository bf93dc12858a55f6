from __future__ import annotations

import hashlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.text.identity import content_hash, near_duplicates, normal_hash, slots

any_text = st.text(st.characters(exclude_categories=["Cs"]))
SENTENCE = (
    "We raised the pool timeout of the billing service because nightly backups hold the connections for very long"
)


def test_the_content_hash_is_that_of_the_exact_bytes() -> None:
    assert content_hash("città\n") == hashlib.sha256("città\n".encode()).digest()
    assert content_hash(unicodedata.normalize("NFC", "città")) != content_hash(unicodedata.normalize("NFD", "città"))


@pytest.mark.parametrize("text", ["citta\u0300  E\tPAESE", " Città e paese\n", "ＣＩＴＴÀ e\u00a0paese"])
def test_the_normal_hash_ignores_form_case_and_white_space(text: str) -> None:
    assert normal_hash(text) == normal_hash("città e paese")
    assert normal_hash(text) != normal_hash("citta e paese")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ticket OPS-00001 is done.", {"ops-00001"}),
        ("port 5432, not 5433!", {"5432", "5433", "not 5433"}),
        ("see src/agora/x.py and C:\\Temp", {"src/agora/x.py", "C:\\Temp"}),
        ("ask me@example.org (https://Example.org/a?b=1).", {"me@example.org", "https://Example.org/a?b=1"}),
        ("version v1.2.3 of 2024-05-01", {"v1.2.3", "2024-05-01"}),
        ("commit d670460b4b at **3.11** `getUser`", {"d670460b4b", "3.11", "getuser"}),
        ("set DB_POOL_MAX=20 and DEBUG", {"db_pool_max", "20", "debug"}),
        ("offset -5 or 5", {"-5", "5"}),
        ("don't retry", {"don't retry"}),
        ("non usare, не трогать, nicht gut, never again", {"non usare", "не трогать", "nicht gut", "never again"}),
        ("the flag is enabled", {"enabled"}),
        ("不支持", {"不支"}),
        ("plain words without", {"without"}),
        ("nothing special here", set()),
    ],
)
def test_slots_are_what_makes_two_texts_different_facts(text: str, found: set[str]) -> None:
    assert slots(text) == found


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("ticket OPS-00001 is closed", "ticket OPS-00002 is closed"),
        (f"{SENTENCE} on port 5432", f"{SENTENCE} on port 5433"),
        (f"{SENTENCE} from 30 to 60", f"{SENTENCE} from 60 to 30"),
        (f"{SENTENCE} and we retry", f"{SENTENCE} and we never retry"),
        (f"{SENTENCE}: use nginx not caddy", f"{SENTENCE}: use caddy not nginx"),
        (f"{SENTENCE}, this is enabled", f"{SENTENCE}, this is disabled"),
        (
            f"{SENTENCE} when customers write many emails, said Alice",
            f"{SENTENCE} when customers write many emails, said Bob",
        ),
        (f"{SENTENCE} so billing calls mail and web", f"{SENTENCE} so mail calls billing and web"),
        (" ".join([SENTENCE] * 8) + " 3.10", " ".join([SENTENCE] * 8) + " 3.11"),
        ("数据库支持备份", "数据库不支持备份"),
        ("cats sleep", "dogs run"),
        ("!!!", "???"),
        ("", "word"),
        ("word " * 6000, "word " * 5999 + "other"),
    ],
)
def test_different_facts_are_never_near_duplicates(a: str, b: str) -> None:
    assert not near_duplicates(a, b)
    assert not near_duplicates(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (SENTENCE, f"{SENTENCE.capitalize().replace('billing', 'Billing')}!"),
        (f"{SENTENCE} indeed", SENTENCE),
        (f"{SENTENCE} every night", f"{SENTENCE} every night".replace("the pool", "a pool")),
        (" ".join(f"{word}{number}" for number in range(8) for word in SENTENCE.split()), None),
        ("città", "CITTA\u0300"),
        ("?!", "?!"),
        ("word " * 6000, "WORD  " * 6000),
    ],
)
def test_nearly_the_same_words_are_near_duplicates(a: str, b: str | None) -> None:
    other = f"{a} indeed" if b is None else b
    assert near_duplicates(a, other)
    assert near_duplicates(other, a)


def test_a_long_text_may_differ_in_a_tenth_of_its_word_triples() -> None:
    words = [f"{left}{right}" for left in "abcdefghij" for right in "klmnopqrst"]
    one_changed = ["zzz", *words[1:50], "yyy", *words[51:]]
    many_changed = ["zzz" if place % 10 == 0 else word for place, word in enumerate(words)]
    assert near_duplicates(" ".join(words), " ".join(one_changed))
    assert not near_duplicates(" ".join(words), " ".join(many_changed))


def test_a_long_text_may_not_exchange_two_numbers() -> None:
    words = " ".join(f"{left}{right}" for left in "abcdefghij" for right in "klmnopqrst")
    assert not near_duplicates(f"{words} from 30 to 60", f"{words} from 60 to 30")


@given(any_text, any_text)
def test_near_duplication_is_symmetric_and_needs_equal_slots(a: str, b: str) -> None:
    assert near_duplicates(a, a)
    assert near_duplicates(a, b) == near_duplicates(b, a)
    if near_duplicates(a, b) and normal_hash(a) != normal_hash(b):
        assert slots(a) == slots(b)


@given(st.integers(0, 99_999), st.integers(0, 99_999))
def test_texts_that_differ_in_a_number_alone_are_never_near_duplicates(a: int, b: int) -> None:
    assert near_duplicates(f"{SENTENCE} {a:05}", f"{SENTENCE} {b:05}") == (a == b)
