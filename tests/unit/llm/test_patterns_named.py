"""What plain sentences say of named things."""

from __future__ import annotations

from typing import Any

import pytest

from agora.llm.patterns.extractor import PatternExtractor
from agora.model.deadline import Deadline

Row = tuple[str | None, str, Any]


def rows(text: str) -> list[Row]:
    found = PatternExtractor().extract(text, Deadline(30)).facts
    return [(fact.subject, fact.key, fact.value) for fact in found if not fact.ended]


STATED: list[tuple[str, Row]] = [
    ("The mayor of Quillhaven is Ada Brook.", ("Quillhaven", "mayor", "Ada Brook")),
    ("The port of the billing service is 8081.", ("billing service", "port", 8081)),
    ("The port for staging is 9000.", ("staging", "port", 9000)),
    ("The name of the new keeper of Fenwick Hall is Kari Lund.", ("Fenwick Hall", "keeper", "Kari Lund")),
    ("Ada's manager is Tom Weber.", ("Ada", "manager", "Tom Weber")),
    ("The server's port is 22.", ("server", "port", 22)),
    ("Quillhaven is the seat of Lower Mirrenia.", ("Lower Mirrenia", "seat", "Quillhaven")),
    ("Ada Brook is a resident of Quillhaven.", ("Ada Brook", "resident of", "Quillhaven")),
    ("The Long Winter Home was written by J. Marsh.", ("The Long Winter Home", "written by", "J. Marsh")),
    ("Ada Brook was born in the town of Fenwick.", ("Ada Brook", "born in town", "Fenwick")),
    ("The billing service is written in Go.", ("billing service", "written in", "Go")),
    ("The archive of Globex is kept in Turin.", ("Globex", "archive kept in", "Turin")),
    ("The report is due on Friday.", ("report", "deadline", "Friday")),
    ("Ada lives in Turin.", ("Ada", "home", "Turin")),
    ("Ada works for Globex as a nurse.", ("Ada", "employer", "Globex")),
    ("The API listens on port 8080.", ("API", "port", 8080)),
    ("Our CI runs on GitHub Actions.", ("CI", "runs on", "GitHub Actions")),
    ("The frontend uses Vite for bundling.", ("frontend", "used for bundling", "Vite")),
    ("The firm that built Torre Alta is Edil Nord.", ("Torre Alta", "firm built", "Edil Nord")),
    ("The workshop where Piero Conti was trained is Galvani.", ("Piero Conti", "workshop trained", "Galvani")),
    ("The kind of tea that Oskar brews is green tea.", ("Oskar", "kind of tea brews", "green tea")),
    ("The color of the logo is blue.", ("logo", "color", "blue")),
    ("Secrets are stored in Vault.", ("Secrets", "stored in", "Vault")),
    ("Hannah Müller, Jr. was trained at Globex Inc..", ("Hannah Müller, Jr.", "trained at", "Globex Inc.")),
    ("La capitale della Mirrenia è Quillhaven.", ("Mirrenia", "capital", "Quillhaven")),
    ("Ada è nata a Torino.", ("Ada", "born in", "Torino")),
    ("Il database ascolta sulla porta 5433.", ("database", "port", 5433)),
    ("La scadenza del progetto è il 3 maggio.", ("progetto", "deadline", "3 maggio")),
    ("Ada usa Vim.", ("Ada", "uses", "Vim")),
    ("Порт сервиса billing — 5433.", ("billing", "port", 5433)),
    ("Сервис billing слушает порт 8080.", ("billing", "port", 8080)),
    ("Столица Миррении — Квилл.", ("Миррении", "capital", "Квилл")),
    ("Ада родилась в Казани.", ("Ада", "born in", "Казани")),
]


@pytest.mark.parametrize(("text", "expected"), STATED, ids=[text for text, _ in STATED])
def test_a_statement_about_a_named_thing_gives_subject_relation_and_value(text: str, expected: Row) -> None:
    assert rows(text) == [expected]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The mayor of Quillhaven is Ada Brook.", "The mayor of Quillhaven is Tom Weber."),
        ("Quillhaven is the seat of Mirrenia.", "The seat of Mirrenia is Fenwick."),
        ("The API listens on port 8080.", "The port of the API is 8081."),
        ("Ada lives in the city of Turin.", "Ada moved to Berlin."),
        ("The landlord of Fenwick Hall Ltd. is Al Stone.", "The landlord of Fenwick Hall Ltd. is Bo Reed."),
    ],
)
def test_a_later_statement_has_the_subject_and_key_of_the_earlier_one(older: str, newer: str) -> None:
    assert [row[:2] for row in rows(older)] == [row[:2] for row in rows(newer)]
    assert rows(older) != rows(newer)


def test_what_kind_of_thing_the_value_is_keeps_relations_apart() -> None:
    town, region = (
        rows("Globex is located in the town of Fenwick."),
        rows("Globex is located in the region of Mirrenia."),
    )
    assert town[0][1] != region[0][1]


def test_several_things_that_hold_at_once_are_several_facts() -> None:
    found = PatternExtractor().extract("The billing service depends on Redis and Kafka.", Deadline(30)).facts
    assert [(fact.value, fact.multi) for fact in found] == [("Redis", True), ("Kafka", True)]


def test_what_a_named_thing_no_longer_does_has_ended() -> None:
    found = PatternExtractor().extract(
        "Ada no longer works at Globex. Tom doesn't live in Oslo any more.", Deadline(30)
    )
    assert [(f.subject, f.key, f.value, f.ended) for f in found.facts] == [
        ("Ada", "employer", "Globex", True),
        ("Tom", "home", "Oslo", True),
    ]
