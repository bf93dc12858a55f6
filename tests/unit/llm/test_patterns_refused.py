"""What states nothing: asked, guessed, wished, ordered, denied, quoted, code, template, or of no meaning by itself."""

from __future__ import annotations

import pytest

from agora.llm.patterns.extractor import PatternExtractor
from agora.model.deadline import Deadline

REFUSED = {
    "questions": [
        "Is the port 5432?",
        "The port is 5432, right?",
        "Do we use Redis for caching?",
        "Usiamo Redis per la cache?",
        "Мы используем Redis для кэша?",
    ],
    "orders to the agent": [
        "Use pytest for tests.",
        "Please use Redis for caching.",
        "You should call me Ned.",
        "Let's use Redis for caching.",
        "Usa pytest per i test.",
        "Используй pytest для тестов.",
    ],
    "conditions and guesses": [
        "If the port is 5433, restart.",
        "Maybe the port is 5433.",
        "I think we use Redis for caching.",
        "We might use Redis for caching.",
        "We plan to use Redis for caching.",
        "I would prefer tabs over spaces.",
        "Suppose my name is Ned.",
        "The port is 5433, I think.",
        "We use Redis for caching if the box has memory.",
        "I live in Turin, perhaps.",
        "Usiamo Redis per la cache, credo.",
        "Порт — 5433, кажется.",
        "Se la porta è 5433, riavvia.",
        "Forse usiamo Redis per la cache.",
        "Credo che la porta è 5433.",
        "Если порт 5433, перезапусти.",
        "Наверное, мы используем Redis.",
        "Кажется, порт — 5433.",
        "I think maybe the cache is broken. No, the cache was fine.",
    ],
    "denials": [
        "The port is not 5432.",
        "We don't use Redis for caching.",
        "My name isn't Ned.",
        "No service of ours is written in Go.",
        "Ada never works at Globex.",
        "Non usiamo Redis per la cache.",
        "Мы не используем Redis для кэша.",
    ],
    "what was once": ["We used to use Redis for caching.", "I used to live in Rome.", "Once I lived in Rome."],
    "the words of others": [
        'He wrote: "My name is Ned. I live in Turin. The port is 81."',
        "“The port is 81. My name is Ned.”",
        "'The port is 81. My name is Ned.'",
        "She said the port is 81.",
        "According to Tom, the port is 81.",
        "> The port is 81.",
        "Anna dice che la porta è 81.",
        "Аня сказала, что порт — 81.",
    ],
    "code, logs, tables, headings": [
        "```\nthe port is 81\n```",
        "~~~\nthe port is 81",
        "    the port is 81",
        "`the port is 81`",
        "$ the port is 81",
        "# The port is 81",
        "| the port is 81 | yes |",
        "2026-03-14 12:00:01 the port is 81",
        "INFO: the port is 81",
        "// the port is 81",
        "<p>The port is 81</p>",
    ],
    "template text": [
        "My name is [your name].",
        "My name is <name>.",
        "The port is {{port}}.",
        "The port is ${PORT}.",
        "The port is $PORT.",
        "The port is {port}.",
        "The port is %d.",
        "My name is X.",
        "My name is foo.",
        "The deadline is TBD.",
        "Меня зовут <имя>.",
        "Mi chiamo [nome].",
    ],
    "values that say nothing": [
        "I like it.",
        "I prefer this.",
        "I love you.",
        "We use it for tests.",
        "The port is open.",
        "The cache is broken.",
        "My job is great.",
        "My wife is happy.",
        "The deadline is soon.",
        "Preferisco così.",
        "Il server è lento.",
        "Мне нравится это.",
        "Порт закрыт.",
    ],
    "subjects that say nothing": [
        "It is owned by Tom.",
        "He was born in Turin.",
        "This was written by Tom.",
        "They live in Turin.",
        "Nobody is married to Tom.",
        "Something is stored in Redis.",
        "The file is src/main.py.",
    ],
    "passing events and states": [
        "I'm tired.",
        "I'm a mess.",
        "I work at night.",
        "I live in fear.",
        "Tom was impressed by Ann.",
        "The fix was written by Tom yesterday.",
        "Call me later.",
        "Chiamami domani.",
        "Hi, I'm done.",
        "Thanks a lot, Ann!",
    ],
    "secrets": ["My password is hunter2.", "The API token is abc123.", "Il mio segreto è X42.", "Пароль — 12345."],
    "choices left open": ["We use Redis or Kafka for queues.", "The port is 80 or 81."],
}
CASES = [(why, text) for why, texts in REFUSED.items() for text in texts]


@pytest.mark.parametrize(("why", "text"), CASES, ids=[f"{why}: {text}" for why, text in CASES])
def test_nothing_is_found_in(why: str, text: str) -> None:
    found = PatternExtractor().extract(text, Deadline(30)).facts
    assert found == (), why


def test_prose_around_what_is_refused_is_still_read() -> None:
    text = "The port is 81.\n```\nthe port is 82\n```\n> the port is 83\n\nMaybe the port is 84. I live in Turin."
    found = PatternExtractor().extract(text, Deadline(30)).facts
    assert [(fact.key, fact.value) for fact in found] == [("port", 81), ("home", "Turin")]
