"""Every term is one token of a real FTS5 table, unchanged."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.text.analysis import analyse, analyse_query
from agora.text.terms import LONGEST, term

Tokenise = Callable[[Sequence[str]], list[str]]

any_text = st.text(st.characters(exclude_categories=["Cs"]))
WRITTEN = [
    *(
        "ошибки",
        "数据库",
        "データベース",
        "한국어",
        "สวัสดี",
        "مرحبا",
        "שָׁלוֹם",
        "हिन्दी",
        "🚀",
        "👩‍💻",
        "🇮🇹",
        "città",
        "cafe\u0301",
    ),
    *("v1.2.3", "path/to/x.py", "#12", "C++", "_", "-", "'", "\u200b", "\x00", "\n", " ", "\u0301", "ﷺ", "①", "ß", "İ"),
    *("\U0001e900", "𠀀"),
]
written = st.lists(st.sampled_from(WRITTEN)).map("".join)


@given(any_text | written)
def test_fts5_keeps_every_term_of_a_text_as_it_is(tokenise: Tokenise, text: str) -> None:
    terms = analyse(text).terms
    assert tokenise(terms) == terms


@given(any_text | written)
def test_fts5_keeps_every_term_of_a_query_as_it_is(tokenise: Tokenise, text: str) -> None:
    terms = [term for group in analyse_query(text) for term in group.alternatives]
    assert tokenise(terms) == terms


@pytest.mark.parametrize("plane", range(4))
def test_fts5_keeps_the_terms_of_every_character_there_is(tokenise: Tokenise, plane: int) -> None:
    codes = range(plane << 16, (plane + 1) << 16)
    characters = [chr(code) for code in codes if unicodedata.category(chr(code)) not in {"Cs", "Cn"}]
    terms = analyse(" ".join(f"x{character}y {character}" for character in characters)).terms
    assert terms
    assert tokenise(terms) == terms


@given(st.lists(st.text(st.characters(categories=["Ll", "Lo", "Mn", "Mc", "Nd"]), min_size=1, max_size=8), unique=True))
def test_different_words_have_different_terms(words: list[str]) -> None:
    assert len({term(word) for word in words}) == len(words)


def test_every_character_that_sqlite_would_split_at_has_its_own_term() -> None:
    codes = [code for code in range(0x110000) if unicodedata.category(chr(code)) in {"Mn", "Mc", "So"}]
    assert len({term(f"x{chr(code)}") for code in codes}) == len(codes)


def test_long_words_keep_their_identity_in_a_short_term() -> None:
    one, other = "a" * 5000 + "1", "a" * 5000 + "2"
    assert term(one) != term(other)
    assert len(term(one)) <= LONGEST
    assert term("f" * LONGEST) == "f" * LONGEST
