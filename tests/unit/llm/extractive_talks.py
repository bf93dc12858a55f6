"""Conversations for the tests of summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agora.llm.extractive import ExtractiveSummarizer
from agora.model.deadline import Deadline
from agora.model.message import Message, Role, Summary

WORDS, TOKENS = 200, 512
BEGAN = datetime(2026, 3, 2, 9, tzinfo=UTC)

ENGLISH = (
    ("user", "Hi! Good morning, how are you?"),
    ("assistant", "Hello! I'm here to help. What would you like to do?"),
    ("user", "We decided to keep the journal in SQLite. The store listens on port 5433."),
    ("assistant", "Sure. The schema lives in src/agora/store.py, and tests/test_store.py covers it."),
    ("user", "Still need to test the backup on Windows. Elena measured 42 ms for a query on 3 March."),
    ("tool", "```\nTraceback (most recent call last):\nValueError: bad header in segment 7\n```"),
    ("user", "Thanks a lot!"),
)
ITALIAN = (
    ("user", "Ciao, buongiorno!"),
    ("user", "Abbiamo deciso di usare Redis per la cache. Il server sta a Milano e risponde sulla porta 6380."),
    ("assistant", "Certo."),
    ("user", "Resta da verificare il backup di giovedì. La migrazione di Giulia ha richiesto 35 minuti."),
    ("user", "Grazie mille!"),
)
RUSSIAN = (
    ("user", "Привет!"),
    ("user", "Мы решили хранить журнал в PostgreSQL. Сервер стоит в Казани и слушает порт 5434."),
    ("assistant", "Хорошо."),
    ("user", "Осталось проверить восстановление базы. Анна измерила 18 мс на запрос."),
    ("user", "Спасибо!"),
)

_QUOTE = re.compile(r"- (?P<text>.+) \(#(?P<seq>\d+), (?P<who>[^()]+)\)")


def talk(said: Sequence[tuple[str, str]], first: int = 1, speaker: str | None = None) -> list[Message]:
    return [message(first + n, text, role, speaker) for n, (role, text) in enumerate(said)]


def message(seq: int, text: str, role: Role | str = "user", speaker: str | None = None) -> Message:
    at = BEGAN + timedelta(minutes=seq)
    known: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
    return Message(f"m_{seq}", seq, "ns", "s", seq, known[role], speaker, text, at, at, {}, "a", "user")


def fold(
    messages: Sequence[Message], before: Summary | None = None, words: int = WORDS, tokens: int = TOKENS
) -> Summary:
    made = ExtractiveSummarizer().fold(before, messages, words, tokens, Deadline(60))
    assert made.written_by == "extractive"
    assert made.problem is None
    first = before.first if before else messages[0].seq
    return summary(made.text, first, messages[-1].seq)


def summary(text: str, first: int, last: int, written_by: str = "extractive") -> Summary:
    return Summary(text, first, last, 1, written_by, BEGAN)


def rolled(messages: Sequence[Message], step: int = 6) -> Summary:
    made: Summary | None = None
    for start in range(0, len(messages), step):
        made = fold(messages[start : start + step], made)
    assert made is not None
    return made


def quotes(text: str) -> list[tuple[int, str]]:
    """The message number and the words of each quote, ellipses outside of it taken off."""
    found = [_QUOTE.fullmatch(line) for line in text.split("\n")]
    return [(int(each["seq"]), each["text"].strip("…")) for each in found if each]


def section(text: str, heading: str) -> list[str]:
    lines = text.split("\n")
    if heading not in lines:
        return []
    found = []
    for line in lines[lines.index(heading) + 1 :]:
        if not line.startswith("- "):
            break
        found.append(line)
    return found
