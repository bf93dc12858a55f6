from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from agora.text.languages import STOP_WORDS
from agora.text.normal import folded, visible
from agora.text.scripts import HAN, KANA

_NEAR = 0.9
"""Share of common words or word triples from which two texts are near-duplicates."""

_SHORT = 64
"""Words up to which single words are compared: beyond it one changed word leaves over .9 of the triples."""

_LONG = 20_000
"""Characters beyond which only a text equal in content counts: comparing longer ones would cost too much."""

_LENGTHS = 0.7
"""Texts of more different lengths cannot share nine tenths of their words."""

_NEGATIONS = frozenset(
    word
    for line in (
        "not no never none neither nor without cannot non mai senza nessuno nessuna né не ни нет никогда без",
        "nicht kein keine keinen keiner nie niemals ohne ne pas jamais aucun aucune sans nunca sin ningún ni",
        "não sem nem niet geen nooit zonder inte ej ikke nie bez değil δεν μη لا لم لن ليس غير לא אין नहीं",
    )
    for word in line.split()
)
_SWITCHES = frozenset(
    word
    for line in (
        "true false yes off enable enabled disable disabled allow allowed deny denied before after",
        "abilitato disabilitato включено включён отключено отключён выключено",
    )
    for word in line.split()
)
"""Words that turn a statement round without denying it."""

_PIECE = re.compile(
    "(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\\s<>\"']+)"
    "|(?P<negated>[不没沒無无未非勿别].?|.?(?:ない|なかった|ません)|ไม่.?|[않없못].?)"
    f'|(?P<word>[^\\s"`“”«»()\\[\\]{{}}<>,;|*=…{HAN}{KANA}]+)'
)
_EDGES = ".:!?_'’‘~-"
_CODE = re.compile(r"\d|[/\\@_]|\w[.]\w|::|[a-z][A-Z]|^[A-Z]{2,}$|[^\W_]#|\+\+")
_WORD = re.compile(f"[{HAN}{KANA}]|[^\\W{HAN}{KANA}]+")


def content_hash(text: str) -> bytes:
    """SHA-256 of the exact UTF-8 bytes: equal only for the same text, NFC and NFD differ."""
    return hashlib.sha256(text.encode()).digest()


def normal_hash(text: str) -> bytes:
    """SHA-256 of the text as it reads: NFKC, case folded, white space collapsed and stripped."""
    return hashlib.sha256(" ".join(folded(text).split()).encode()).digest()


def slots(text: str) -> frozenset[str]:
    """The parts of `text` that make otherwise equal texts different facts.

    Numbers, versions, dates, ids, hashes, paths, URLs, addresses, names from code; negations with the word
    they deny, and words such as "enabled" that turn a statement round. Case folded, except in paths and URLs.
    """
    return frozenset(_slots(text))


def near_duplicates(a: str, b: str) -> bool:
    """Whether two texts state the same in nearly the same words.

    They have the same slots in the same order, and nine tenths in common: of their words, in order, up to 64
    words, of their word triples beyond. In a short text a word of content may be missing from one side, not
    replaced by another. Texts beyond 20,000 characters must be equal but for case and white space. Symmetric.
    """
    shorter, longer = sorted((a, b), key=len)
    if a == b or len(shorter) < _LENGTHS * len(longer):
        return a == b
    if len(longer) > _LONG or not (_words(a) and _words(b)):
        return normal_hash(a) == normal_hash(b)
    return _cached_slots(a) == _cached_slots(b) and _same_words(_words(a), _words(b))


def _same_words(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    if min(len(a), len(b)) > _SHORT:
        return _jaccard(frozenset(_triples(a)), frozenset(_triples(b))) >= _NEAR
    return _jaccard(frozenset(a), frozenset(b)) >= _NEAR and _same_sentence(a, b)


def _slots(text: str) -> tuple[str, ...]:
    """The slots in the order in which they stand: "from 1 to 2" is not "from 2 to 1"."""
    found: list[str] = []
    denied = ""
    for piece in _PIECE.finditer(visible(text)):
        raw = piece.group()
        word = _trimmed(raw) if piece.lastgroup == "word" else raw.rstrip(".,;:!?)")
        lower = folded(word)
        if denied:
            found.append(f"{denied} {lower}")
            denied = ""
        if piece.lastgroup == "negated" or lower in _SWITCHES:
            found.append(lower)
        elif lower in _NEGATIONS or lower.endswith(("n't", "n’t")):
            denied = lower
        elif piece.lastgroup == "url" or _CODE.search(word):
            found.append(word if "/" in word or "\\" in word else lower)
    return (*found, denied) if denied else tuple(found)


def _trimmed(word: str) -> str:
    bare = word.strip(_EDGES)
    # A sign belongs to its number, a dot to its folder: -5, .env, ~/x.
    lead = word[: len(word) - len(word.lstrip(_EDGES))][-1:]
    return lead + bare if lead in {"-", ".", "~"} and (bare[:1].isdigit() or lead != "-") else bare


@lru_cache(maxsize=64)
def _cached_slots(text: str) -> tuple[str, ...]:
    return _slots(text)


@lru_cache(maxsize=64)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(folded(text)))


def _triples(words: tuple[str, ...]) -> zip[tuple[str, str, str]]:
    return zip(words, words[1:], words[2:], strict=False)


def _jaccard(a: frozenset[object], b: frozenset[object]) -> float:
    return len(a & b) / len(a | b)


def _same_sentence(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether the words stand in the same order, and none of content was exchanged for another."""
    common = _common_in_order(a, b)
    if common < _NEAR * (len(a) + len(b) - common):
        return False
    return not ((set(a) - set(b) - STOP_WORDS) and (set(b) - set(a) - STOP_WORDS))


def _common_in_order(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for left in a:
        new = [0]
        for place, right in enumerate(b):
            new.append(row[place] + 1 if left == right else max(new[place], row[place + 1]))
        row = new
    return row[-1]
