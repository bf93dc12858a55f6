"""What people and agents say of themselves and of their project, in three languages."""

from __future__ import annotations

from typing import Any

import pytest

from agora.llm.patterns.extractor import PatternExtractor
from agora.model.deadline import Deadline
from agora.model.fact import Extracted

Row = tuple[str, Any, bool, bool]


def facts(text: str) -> tuple[Extracted, ...]:
    return PatternExtractor().extract(text, Deadline(30)).facts


def rows(text: str) -> list[Row]:
    found = facts(text)
    assert all(fact.subject is None for fact in found)
    return [(fact.key, fact.value, fact.multi, fact.ended) for fact in found]


def one(key: str, value: Any) -> list[Row]:
    return [(key, value, False, False)]


def several(key: str, *values: Any) -> list[Row]:
    return [(key, value, True, False) for value in values]


def ended(key: str, value: Any, *, multi: bool = False) -> list[Row]:
    return [(key, value, multi, True)]


STATED: list[tuple[str, list[Row]]] = [
    ("My name is Nora Weiss.", one("name", "Nora Weiss")),
    ("Mi chiamo Nora.", one("name", "Nora")),
    ("Меня зовут Нора.", one("name", "Нора")),
    ("Please call me Ned.", one("name", "Ned")),
    ("Chiamami Ned!", one("name", "Ned")),
    ("Зовите меня Лёша.", one("name", "Лёша")),
    ("Hi there, I'm Ned!", one("name", "Ned")),
    ("The port is 5432.", one("port", 5432)),
    ("the port is now 5433", one("port", 5433)),
    ("La porta è 5433.", one("port", 5433)),
    ("Порт — 5433.", one("port", 5433)),
    ("Порт теперь 5433.", one("port", 5433)),
    ("Порт изменили с 5432 на 5433.", one("port", 5433)),
    ("The port was changed from 5432 to 5433.", one("port", 5433)),
    ("The deadline is Friday.", one("deadline", "Friday")),
    ("Our deadline is 3 May 2026.", one("deadline", "3 May 2026")),
    ("The deadline has been moved to next Monday.", one("deadline", "next Monday")),
    ("La scadenza è venerdì.", one("deadline", "venerdì")),
    ("La scadenza è stata spostata a lunedì.", one("deadline", "lunedì")),
    ("Дедлайн — 5 мая.", one("deadline", "5 мая")),
    ("Дедлайн перенесли на пятницу.", one("deadline", "пятницу")),
    ("I live in Turin.", one("home", "Turin")),
    ("I've moved to Berlin.", one("home", "Berlin")),
    ("Abito a Torino.", one("home", "Torino")),
    ("Я живу в Казани.", one("home", "Казани")),
    ("I work at Globex.", one("employer", "Globex")),
    ("Lavoro per Globex.", one("employer", "Globex")),
    ("Я работаю в Globex.", one("employer", "Globex")),
    ("I'm a data engineer at Globex.", [*one("occupation", "data engineer"), *one("employer", "Globex")]),
    ("Lavoro come infermiera.", one("occupation", "infermiera")),
    ("I'm 41 years old.", one("age", 41)),
    ("Ho 41 anni.", one("age", 41)),
    ("Мне 41 год.", one("age", 41)),
    ("We use pytest for tests.", one("used for tests", "pytest")),
    ("We're using Redis as our cache.", one("used for cache", "Redis")),
    ("Usiamo pytest per i test.", one("used for test", "pytest")),
    ("Мы используем pytest для тестов.", one("used for тестов", "pytest")),
    ("We moved the billing service from MySQL to Postgres.", one("used for billing service", "Postgres")),
    ("My favourite editor is Vim.", one("preferred editor", "Vim")),
    ("Il mio editor preferito è Vim.", one("preferred editor", "Vim")),
    ("Мой любимый редактор — Vim.", one("preferred editor", "Vim")),
    ("I prefer ruff over black for formatting.", one("preferred for formatting", "ruff")),
    ("My wife is Laura.", one("spouse", "Laura")),
    ("My dog's name is Rex.", one("dog", "Rex")),
    ("The minimum Python version is 3.11.", one("minimum python version", "3.11")),
    ("The timeout is 2.5.", one("timeout", 2.5)),
    ("The timeout is 30 seconds.", one("timeout", "30 seconds")),
    ("The default branch is trunk.", one("branch", "trunk")),
    ("Our staging server is box-7.acme.example.", one("staging server", "box-7.acme.example")),
    ("I prefer dark mode.", several("preference", "dark mode")),
    ("Preferisco risposte brevi.", several("preference", "risposte brevi")),
    ("Предпочитаю короткие ответы.", several("preference", "короткие ответы")),
    ("I speak Italian, English and Russian.", several("languages", "Italian", "English", "Russian")),
    ("Parlo italiano e inglese.", several("languages", "italiano", "inglese")),
    ("I love rock climbing.", several("likes", "rock climbing")),
    ("Mi piace il caffè.", several("likes", "caffè")),
    ("Мне нравится кофе.", several("likes", "кофе")),
    ("I'm allergic to peanuts.", several("allergies", "peanuts")),
    ("We switched to pnpm.", several("uses", "pnpm")),
    ("I prefer tabs over spaces.", [*several("preference", "tabs"), *ended("preference", "spaces", multi=True)]),
    ("Preferisco il tè al caffè.", [*several("preference", "tè"), *ended("preference", "caffè", multi=True)]),
    ("Предпочитаю чай вместо кофе.", [*several("preference", "чай"), *ended("preference", "кофе", multi=True)]),
    ("We moved from MySQL to Postgres.", [*several("uses", "Postgres"), *ended("uses", "MySQL", multi=True)]),
    ("Siamo passati da MySQL a Postgres.", [*several("uses", "Postgres"), *ended("uses", "MySQL", multi=True)]),
    ("We use Valkey, not Redis any more.", [*several("uses", "Valkey"), *ended("uses", "Redis", multi=True)]),
    ("We use pnpm instead of npm.", [*several("uses", "pnpm"), *ended("uses", "npm", multi=True)]),
    ("Usiamo pnpm, non npm.", [*several("uses", "pnpm"), *ended("uses", "npm", multi=True)]),
    ("Предпочитаю табы, а не пробелы.", [*several("preference", "табы"), *ended("preference", "пробелы", multi=True)]),
    ("We replaced Jenkins with Drone.", [*several("uses", "Drone"), *ended("uses", "Jenkins", multi=True)]),
    ("Deadline is Friday.", one("deadline", "Friday")),
    ("Мы перешли с MySQL на Postgres.", [*several("uses", "Postgres"), *ended("uses", "MySQL", multi=True)]),
]

ENDED: list[tuple[str, list[Row]]] = [
    ("We no longer use Redis for caching.", ended("used for caching", "Redis")),
    ("We don't use Celery any more.", ended("uses", "Celery", multi=True)),
    ("I've stopped using Emacs.", ended("uses", "Emacs", multi=True)),
    ("The port is no longer 5432.", ended("port", 5432)),
    ("The port isn't 5432 anymore.", ended("port", 5432)),
    ("I no longer live in Rome.", ended("home", "Rome")),
    ("I don't work at Globex any more.", ended("employer", "Globex")),
    ("Ho smesso di usare Emacs.", ended("uses", "Emacs", multi=True)),
    ("Я перестал использовать Emacs.", ended("uses", "Emacs", multi=True)),
    ("Non usiamo più Redis per la cache.", ended("used for cache", "Redis")),
    ("Non uso più Emacs.", ended("uses", "Emacs", multi=True)),
    ("La porta non è più 5432.", ended("port", 5432)),
    ("Non abito più a Roma.", ended("home", "Roma")),
    ("Больше не используем Redis для кэша.", ended("used for кэша", "Redis")),
    ("Мы больше не используем Celery.", ended("uses", "Celery", multi=True)),
    ("Порт больше не 5432.", ended("port", 5432)),
    ("Я больше не живу в Риме.", ended("home", "Риме")),
]


@pytest.mark.parametrize(("text", "expected"), STATED, ids=[text for text, _ in STATED])
def test_a_plain_statement_gives_its_fact(text: str, expected: list[Row]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(("text", "expected"), ENDED, ids=[text for text, _ in ENDED])
def test_what_no_longer_holds_is_said_to_have_ended(text: str, expected: list[Row]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ("The port is 5432.", "Our port is 5433.", "La porta è 5434.", "Порт — 5435.", "The port was moved to 5436."),
        ("The deadline is Friday.", "The due date is 3 May.", "La scadenza è venerdì.", "Крайний срок — 5 мая."),
        ("Call me Ned.", "My name is Ned.", "Mi chiamo Ned.", "Меня зовут Нед."),
        ("I live in Rome.", "I moved to Turin.", "Vivo a Roma.", "Живу в Казани."),
        ("My favorite language is Rust.", "My preferred language is Go.", "Il mio linguaggio preferito è Go."),
        ("My husband is Piero.", "My spouse is Piero.", "Mia moglie è Laura.", "Моя жена — Лаура."),
    ],
    ids=lambda texts: texts[0],
)
def test_the_same_relation_in_other_words_or_languages_has_one_key(texts: tuple[str, ...]) -> None:
    assert len({key for text in texts for key, _, _, _ in rows(text)}) == 1


def test_a_sentence_may_say_two_things() -> None:
    assert rows("My name is Nora and I live in Turin.") == [*one("name", "Nora"), *one("home", "Turin")]
    assert rows("Mi chiamo Nora e vivo a Torino.") == [*one("name", "Nora"), *one("home", "Torino")]
    assert rows("Меня зовут Нора, я живу в Казани.") == [*one("name", "Нора"), *one("home", "Казани")]


def test_a_reason_or_a_contrast_is_no_part_of_the_value() -> None:
    assert rows("We use Postgres for billing because invoices are many.") == one("used for billing", "Postgres")
    assert rows("The port is 8081, not 8080.") == one("port", 8081)
    assert rows("Uso Vim per il codice, non Emacs.") == one("used for codice", "Vim")


def test_labels_greetings_and_list_marks_are_passed_over() -> None:
    for text in ("Note: the port is 81.", "- the port is 81", "FYI the port is 81", "**Decision:** the port is 81."):
        assert rows(text) == one("port", 81)
    assert rows("By the way, I live in Turin.") == one("home", "Turin")
