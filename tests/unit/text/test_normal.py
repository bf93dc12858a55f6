from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.text.analysis import analyse
from agora.text.identity import near_duplicates, normal_hash, slots
from agora.text.normal import folded, nfkc, unaccented

any_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(any_text)
def test_nfkc_is_that_of_unicode_for_any_text_without_a_crowd_of_marks(text: str) -> None:
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


@given(any_text)
def test_canonically_equal_texts_fold_alike(text: str) -> None:
    assert folded(unicodedata.normalize("NFC", text)) == folded(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize(
    ("one", "other"), [("STRASSE", "Straße"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("ǰ", "J\u030c"), ("ﬁ", "FI")]
)
def test_words_that_differ_in_case_alone_fold_alike(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize("crowd", ["\u0301\u0316" * 200_000, "\uff9e\u0316" * 200_000])
def test_a_megabyte_of_combining_marks_is_read_in_linear_time(crowd: str) -> None:
    # `unicodedata.normalize` alone needs minutes for this.
    text = f"before a{crowd} after"
    terms = analyse(text).terms
    assert terms[0] == "before"
    assert "after" in terms
    assert len(normal_hash(text)) == 32
    assert slots(text) == slots(text)
    assert near_duplicates(text[:15_000], text[:14_999] + "\u0301")


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("città", "citta"),
        ("perché", "perche"),
        ("größe", "große"),
        ("łódź", "lodz"),
        ("ёлка", "елка"),
        ("за\u0301мок", "замок"),
        ("άνθρωπος", "ανθρωπος"),
        ("שָׁלוֹם", "שלום"),
        ("مَرْحَبًا", "مرحبا"),
    ],
)
def test_accents_are_taken_off(word: str, plain: str) -> None:
    assert unaccented(nfkc(word)) == plain


@pytest.mark.parametrize("word", ["мой", "київ", "が", "ば", "데이터", "हिन्दी", "น้ำ", "數據"])
def test_a_mark_that_makes_another_letter_stays(word: str) -> None:
    assert unaccented(nfkc(word)) == nfkc(word)


@pytest.mark.parametrize(
    "text", ["co\u00adopera\u00adtion", "\ufeffcooperation", "coopera\u200dtion\ufe0f", "ｃｏｏｐｅｒａｔｉｏｎ"]
)
def test_invisible_characters_and_widths_do_not_matter(text: str) -> None:
    assert folded(text) == "cooperation"
