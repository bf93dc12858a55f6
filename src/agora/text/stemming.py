from __future__ import annotations

import importlib
import threading
from functools import lru_cache
from typing import Final, Protocol, cast

from agora.text.languages import COMMON
from agora.text.scripts import script

LATIN: Final = ("en", "it", "de", "fr", "es", "pt", "nl")

_BY_SCRIPT: Final[dict[str, tuple[str, ...]]] = {
    "latin": LATIN,
    "cyrillic": ("ru",),
    "greek": ("el",),
    "arabic": ("ar",),
    "armenian": ("hy",),
    "devanagari": ("hi",),
    "tamil": ("ta",),
}
_ALGORITHMS: Final = {
    "en": "english",
    "it": "italian",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "pt": "portuguese",
    "nl": "dutch",
    "ru": "russian",
    "el": "greek",
    "ar": "arabic",
    "hy": "armenian",
    "hi": "hindi",
    "ta": "tamil",
}

_SHORTEST, _LONGEST = 3, 28
"""Letters of a word that has a stem: shorter ones have no endings, longer ones are not words."""


def stems(word: str, latin: tuple[str, ...] = LATIN) -> tuple[str, ...]:
    """The Snowball stems of a folded word, without the word itself and without repeats.

    One per plausible language: those of `latin` for a word in Latin script, the one language that Snowball
    has for any other script. Empty for function words, for words with digits and for other scripts.
    A stem that reads like a function word ends in `_`: Italian `note` must not be found by every "not".
    """
    if not _SHORTEST <= len(word) <= _LONGEST or word in COMMON or any(map(str.isdigit, word)):
        return ()
    writing = script(word)
    languages = latin if writing == "latin" else _BY_SCRIPT.get(writing, ())
    found = dict.fromkeys(_stem(word, language) for language in languages)
    return tuple(f"{stem}_" if stem in COMMON else stem for stem in found if stem and stem != word)


@lru_cache(maxsize=8192)
def _stem(word: str, language: str) -> str:
    found: dict[str, _Stemmer] = _own.__dict__
    if language not in found:
        found[language] = _stemmer(language)
    return found[language].stemWord(word)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802  # Snowball's name


def _stemmer(language: str) -> _Stemmer:
    # Taken from its own module: `snowballstemmer.stemmer` hands out PyStemmer's algorithms, of whatever
    # version, where that package happens to be installed, and terms must not depend on it. Imported on first
    # use because the package loads all its 36 algorithms (20 ms).
    name = _ALGORITHMS[language]
    module = importlib.import_module(f"snowballstemmer.{name}_stemmer")
    return cast("_Stemmer", getattr(module, f"{name.capitalize()}Stemmer")())


_own = threading.local()
"""A stemmer keeps the word it works on: every thread has its own."""
