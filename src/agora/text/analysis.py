from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agora.text.identifiers import take_apart
from agora.text.languages import COMMON, latin_languages
from agora.text.normal import unaccented, visible
from agora.text.scripts import tokens
from agora.text.stemming import LATIN, stems
from agora.text.terms import LONGEST, term

VERSION: Final = 1
"""Raised whenever the same text would give other terms: each store remembers which version built its full text.

A store with another one says so, and is built anew by `agora doctor --repair`, a small one when it is opened.
"""

QUERY_CHARACTERS: Final = 20_000
"""Characters of a query that are read: far beyond any question, and what bounds the time of the worst one."""

_PARTS_OF_A_QUERY = 16
"""Parts of one identifier that become words of a query; a longer path is also told by its whole."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """What the full-text index keeps of a text.

    `terms`: in order, with repeats; each is exactly one token of the index. `length`: words of the text,
    fewer than its terms: a stem is a term of its own and not a word.
    """

    terms: list[str]
    length: int


@dataclass(frozen=True, slots=True)
class Group:
    """One word of a query and the terms that stand for it.

    `text`: the word, folded, to be shown. `alternatives`: terms, most exact first; a text that has any of
    them has the word. `common`: a function word, which says little about what is asked.
    """

    text: str
    alternatives: tuple[str, ...]
    common: bool = False


def analyse(text: str) -> Analysed:
    """The terms by which `text` is found: words, stems, identifiers whole and in parts, bigrams.

    Stems are those of the text's likely language and of English. Canonically equal texts (NFC, NFD) have the
    same terms. Linear in the text's length.
    """
    found = tokens(visible(text))
    languages = latin_languages(found)
    terms: list[str] = []
    length = 0
    for token in found:
        read = _document_terms if len(token) <= LONGEST else _document_terms.__wrapped__
        more, words = read(token, languages)
        terms += more
        length += words
    return Analysed(terms, length)


def analyse_query(text: str, max_groups: int = 64) -> tuple[Group, ...]:
    """The distinct words of a query, in order, each with every term that may stand for it.

    Stems come from every language of the word's script, since a few words do not tell their language. The
    parts of an identifier are words of their own, and each is also matched by the whole: a text with
    `OPS-00001` matches all of that query, one with `OPS-00002` only `ops`. Every character is text, quotes
    and operators too. Of a long query the first `max_groups` words count, function words only where room is
    left; nothing after `QUERY_CHARACTERS` is read.
    """
    kept: dict[str, tuple[int, Group]] = {}
    spare: dict[str, tuple[int, Group]] = {}
    place = 0
    # Cut twice: NFKC makes up to 18 characters of one.
    for token in tokens(visible(text[:QUERY_CHARACTERS])[:QUERY_CHARACTERS]):
        read = _query_groups if len(token) <= LONGEST else _query_groups.__wrapped__
        for group in read(token):
            place += 1
            into = spare if group.common else kept
            if len(into) < max_groups:
                into.setdefault(group.text, (place, group))
        if len(kept) >= max_groups:
            break
    chosen = [*kept.values(), *list(spare.values())[: max_groups - len(kept)]]
    return tuple(group for _, group in sorted(chosen, key=lambda placed: placed[0]))


@lru_cache(maxsize=16384)
def _document_terms(token: str, languages: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """The terms of one token and the number of words in it."""
    found = take_apart(token)
    names = dict.fromkeys(term(name) for name in (*found.wholes, *found.within))
    # A word that occurs twice in a path counts twice; the names of the path and of its files count once.
    words = [form for part in found.parts for form in _forms(part, languages) if form not in names]
    return (*names, *words), len(found.parts)


@lru_cache(maxsize=4096)
def _query_groups(token: str) -> tuple[Group, ...]:
    found = take_apart(token)
    wholes = [term(name) for name in found.wholes]
    return tuple(
        Group(part, tuple(dict.fromkeys((*wholes, *_forms(part, LATIN)))), part in COMMON)
        for part in found.parts[:_PARTS_OF_A_QUERY]
    )


def _forms(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """The terms of one folded word, most exact first: itself, without accents, its stems."""
    # A longer one is data, and a cache must not keep it.
    return _forms_of_word(word, languages) if len(word) <= LONGEST else (term(word),)


@lru_cache(maxsize=8192)
def _forms_of_word(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    stemmed = [form for stem in stems(word, languages) for form in (stem, unaccented(stem))]
    return tuple(dict.fromkeys(term(form) for form in (word, unaccented(word), *stemmed) if form))
