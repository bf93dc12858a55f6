from __future__ import annotations

import pytest

from agora.text.languages import COMMON, FUNCTION_WORDS, STOP_WORDS, latin_languages
from agora.text.normal import folded
from agora.text.stemming import stems

SENTENCES = {
    "en": "The server does not answer when there is no route to it",
    "it": "Il server non risponde quando non c'è una rotta per la rete",
    "de": "Der Server antwortet nicht, wenn es keine Route zu dem Netz gibt",
    "fr": "Le serveur ne répond pas quand il n'y a pas de route dans le réseau",
    "es": "El servidor no responde cuando no hay una ruta en la red",
    "pt": "O servidor não responde quando não há uma rota para a rede",
    "nl": "De server geeft geen antwoord als er geen route naar het netwerk is",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language_and_english_stays_beside_it(language: str) -> None:
    assert latin_languages(SENTENCES[language].split()) == ((language, "en") if language != "en" else ("en",))


@pytest.mark.parametrize("text", ["", "PostgreSQL backup", "12 34", "数据库 ошибка"])
def test_without_evidence_it_is_english(text: str) -> None:
    assert latin_languages(text.split()) == ("en",)


@pytest.mark.parametrize(
    ("title", "language"), [("Configurazioni errate", "it"), ("Neue Einstellungen", "de"), ("Instalación", "es")]
)
def test_endings_tell_the_language_of_a_title(title: str, language: str) -> None:
    assert latin_languages(title.split())[0] == language


def test_function_words_are_folded_and_single() -> None:
    assert all(word == folded(word) and word.isalpha() for word in STOP_WORDS)
    assert set(FUNCTION_WORDS) == {"en", "it", "ru", "de", "fr", "es", "pt", "nl"}
    assert "ai" not in COMMON


@pytest.mark.parametrize(
    ("word", "stem"),
    [("retries", "retri"), ("configurazioni", "configur"), ("ошибки", "ошибк"), ("datenbanken", "datenbank")],
)
def test_every_plausible_language_gives_its_stem(word: str, stem: str) -> None:
    assert stem in stems(word)


def test_only_the_named_languages_stem_a_latin_word() -> None:
    assert stems("configurazioni", ("en",)) == ()
    assert stems("configurazioni", ("it",)) == ("configur",)
    assert stems("ошибки", ("it",)) == ("ошибк",)


def test_a_stem_that_reads_like_a_function_word_is_told_from_it() -> None:
    assert "not" not in stems("note")
    assert set(stems("note", ("it",))) & set(stems("nota", ("it",))) == {"not_"}


@pytest.mark.parametrize(("plural", "singular"), [("doors", "door"), ("wars", "war"), ("bins", "bin"), ("nets", "net")])
def test_a_word_that_is_a_function_word_only_elsewhere_has_its_plain_stem(plural: str, singular: str) -> None:
    assert singular in stems(plural)


@pytest.mark.parametrize("word", ["this", "della", "это", "werden"])
def test_a_function_word_has_no_stem(word: str) -> None:
    assert stems(word) == ()


@pytest.mark.parametrize("word", ["py311", "ab", "x" * 40, "数据", "데이터", ""])
def test_what_is_no_word_of_a_known_language_has_no_stem(word: str) -> None:
    assert stems(word) == ()
