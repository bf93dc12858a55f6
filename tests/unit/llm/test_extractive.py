from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.llm.extractive_talks import ENGLISH, ITALIAN, RUSSIAN, fold, message, quotes, section, talk

from agora.errors import Cancelled
from agora.llm.extractive import ExtractiveSummarizer
from agora.model.deadline import Deadline
from agora.ports.summarizer import Summarizer

Said = Sequence[tuple[str, str]]


def test_a_summary_has_its_sections_in_order_and_quotes_with_message_and_speaker() -> None:
    made: Summarizer = ExtractiveSummarizer()
    text = made.fold(None, talk(ENGLISH), 200, 512, Deadline(60)).text
    assert text.split("\n") == [
        "Messages 1 to 7:",
        "Decisions:",
        "- We decided to keep the journal in SQLite. (#3, user)",
        "Open:",
        "- Still need to test the backup on Windows. (#5, user)",
        "Facts:",
        "- The store listens on port 5433. (#3, user)",
        "- The schema lives in src/agora/store.py, and tests/test_store.py covers it. (#4, assistant)",
        "- Elena measured 42 ms for a query on 3 March. (#5, user)",
        "- ValueError: bad header in segment 7 (#6, tool)",
        "Files:",
        "- src/agora/store.py (#4)",
        "- tests/test_store.py (#4)",
    ]


@pytest.mark.parametrize(
    ("said", "decision", "left", "fact"),
    [
        (
            ITALIAN,
            "- Abbiamo deciso di usare Redis per la cache. (#2, user)",
            "- Resta da verificare il backup di giovedì. (#4, user)",
            "- Il server sta a Milano e risponde sulla porta 6380. (#2, user)",
        ),
        (
            RUSSIAN,
            "- Мы решили хранить журнал в PostgreSQL. (#2, user)",
            "- Осталось проверить восстановление базы. (#4, user)",
            "- Сервер стоит в Казани и слушает порт 5434. (#2, user)",
        ),
    ],
)
def test_decisions_open_points_and_facts_are_known_in_italian_and_russian(
    said: Said, decision: str, left: str, fact: str
) -> None:
    text = fold(talk(said)).text
    assert section(text, "Decisions:") == [decision]
    assert section(text, "Open:") == [left]
    assert fact in section(text, "Facts:")


@pytest.mark.parametrize("said", [ENGLISH, ITALIAN, RUSSIAN])
def test_greetings_and_thanks_leave_no_line(said: Said) -> None:
    numbers = {number for number, _ in quotes(fold(talk(said)).text)}
    assert 1 not in numbers
    assert len(said) not in numbers


@pytest.mark.parametrize(
    "text", ["Hi, I'm Anna from Graz.", "Ok, we decided on Kotlin.", "Yes, use Postgres.", "Thanks, build 812 works."]
)
def test_what_stands_behind_a_greeting_or_a_yes_is_not_lost_with_it(text: str) -> None:
    assert quotes(fold([message(1, text)]).text) == [(1, text)]


@pytest.mark.parametrize("text", ["Thanks, Anna!", "Great job, everyone!", "Ciao Anna!", "Спасибо, Анна!", "Ok."])
def test_a_greeting_with_a_name_is_a_greeting(text: str) -> None:
    assert quotes(fold([message(1, text)]).text) == []


def test_nothing_worth_a_line_leaves_the_range_alone() -> None:
    assert fold(talk([("user", "Hi!"), ("assistant", "Hello!"), ("user", "Thank you!")])).text == "Messages 1 to 3:"


def test_a_speaker_is_named_and_a_tool_is_not() -> None:
    text = fold(
        [message(1, "Boris lives in Kazan.", speaker="Anna"), message(2, "Pytest 9.1 ran.", "tool", "Anna")]
    ).text
    assert "(#1, Anna)" in text
    assert "(#2, tool)" in text


def test_code_and_logs_are_not_quoted_but_their_errors_and_commands_are() -> None:
    said = (
        "I ran it in Berlin with 8 workers:\n"
        "```sh\n$ agora serve --http 8080\nlistening\n```\n"
        "2026-03-02 10:00:00 INFO started worker Alpha\n"
        "2026-03-02 10:00:01 ERROR disk /dev/sda1 is full\n"
        "    total = price * Quantity\n"
    )
    text = fold([message(1, said)]).text
    found = [quote for _, quote in quotes(text)]
    assert "$ agora serve --http 8080" in found
    assert "2026-03-02 10:00:01 ERROR disk /dev/sda1 is full" in found
    assert not any("Alpha" in quote or "Quantity" in quote or quote == "listening" for quote in found)


def test_the_blanks_before_an_error_are_not_quoted() -> None:
    text = fold([message(1, "```\n        KeyError: 'port 80'  \n```")]).text
    assert quotes(text) == [(1, "KeyError: 'port 80'")]


def test_a_decision_and_an_open_point_come_before_facts_that_say_more() -> None:
    said = [
        message(n, f"Elena{n} paid {n}75 euros in Oslo{n} on 2026-03-1{n}, 7:0{n}, port {n}90.") for n in range(1, 16)
    ]
    said += [message(16, "We decided to keep it simple."), message(17, "Need to call them back soon.")]
    text = fold(said, words=120).text
    assert section(text, "Decisions:") == ["- We decided to keep it simple. (#16, user)"]
    assert section(text, "Open:") == ["- Need to call them back soon. (#17, user)"]


def test_what_a_user_says_comes_before_what_assistants_say_to_everything() -> None:
    said = [
        (
            "assistant",
            "Certainly! Here is an overview of 12 options for Rome. Let me know if you need more about Rome.",
        ),
        ("user", "My sister Marta moves to Turin on 14 May."),
    ]
    assert quotes(fold(talk(said), words=18).text) == [(2, "My sister Marta moves to Turin on 14 May.")]


def test_a_sentence_beyond_measure_is_quoted_in_part_with_the_ellipsis_outside() -> None:
    rest = ", and then ".join(f"they looked at one more of the usual places near town {n}" for n in range(30))
    text = fold([message(1, f"We met at the harbour, {rest}, and Olga paid 75 euros.")], words=60).text
    (line,) = section(text, "Facts:")
    assert line.startswith("- …")
    assert "Olga paid 75 euros. (#1, user)" in line


def test_neighbours_are_one_quote() -> None:
    text = fold([message(1, "Elena leads the Lyon office. It has 14 desks.")]).text
    assert section(text, "Facts:") == ["- Elena leads the Lyon office. It has 14 desks. (#1, user)"]


def test_the_last_question_stays_open_until_something_follows() -> None:
    asked = fold([message(1, "Anna prefers Kotlin."), message(2, "Which region should host the Frankfurt replica?")])
    assert section(asked.text, "Open:") == ["- Which region should host the Frankfurt replica? (#2, user)"]
    later = fold([message(3, "Frankfurt is fine, region eu-central-1 it is.")], asked)
    assert section(later.text, "Open:") == []


def test_files_carry_the_messages_that_name_them() -> None:
    said = [message(n, f"Look at src/app/main.py line {n}, run {n}.") for n in range(1, 6)]
    assert section(fold(said).text, "Files:") == ["- src/app/main.py (#1, …, #4, #5)"]


def test_the_same_talk_gives_the_same_text_in_another_process() -> None:
    program = (
        "from tests.unit.llm.extractive_talks import ENGLISH, ITALIAN, RUSSIAN, fold, rolled, talk\n"
        "said = [*ENGLISH, *ITALIAN, *RUSSIAN] * 3\n"
        "print(ascii(rolled(talk(said)).text))\n"
    )
    root = Path(__file__).parents[3]
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            cwd=root,
            env={
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": f"{root / 'src'}{';' if sys.platform == 'win32' else ':'}{root}",
            },
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_a_cancelled_call_ends() -> None:
    deadline = Deadline(60)
    deadline.cancel()
    with pytest.raises(Cancelled):
        ExtractiveSummarizer().fold(None, talk(ENGLISH), 200, 512, deadline)


def test_fifty_messages_take_a_moment() -> None:
    said = [
        message(n, f"Step {n}: Elena moved the job of node {n} to Lyon, where it took {n * 7} ms in run {n}. " * 4)
        for n in range(1, 51)
    ]
    fold(said)
    spent = []
    for _ in range(5):
        began = time.thread_time()
        fold(said)
        spent.append(time.thread_time() - began)
    # 15 ms where it was measured; the rest is for slower machines.
    assert min(spent) < 0.2
