from __future__ import annotations

import time

import pytest
from tests.unit.llm.extractive_talks import ENGLISH, ITALIAN, RUSSIAN, rolled, talk

from agora.llm.grounding import MOST, unfounded

ULID = "m_01JABCDEFGHJKMNPQRSTVWXYZ0"
HASH = "3f2a9c1e8b7d4f60a1b2c3d4e5f60718293a4b5c"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It listens on port 5433.", "5433"),
        ("It took 3.5 s.", "3.5"),
        ("On 2026-07-14 it began.", "2026-07-14"),
        ("It starts at 10:45.", "10:45"),
        ("See src/agora/lost.py for it.", "src/agora/lost.py"),
        ("See lib/store.py for it.", "lib/store.py"),
        ("See /etc/agora/agora.conf too.", "/etc/agora/agora.conf"),
        ("See D:\\Team\\Ann\\lost.txt too.", "D:\\Team\\Ann\\lost.txt"),
        ("Fixed in 9c1e8b7d4f.", "9c1e8b7d4f"),
        ("Fixed in OPS-4712.", "OPS-4712"),
        ("Fixed in CVE-2026-1234.", "CVE-2026-1234"),
        ("It needs v2.1.0.", "v2.1.0"),
        ("It needs Python 3.11.4.", "3.11.4"),
        (f"Saved as {ULID}.", ULID),
        ("Saved as 123e4567-e89b-42d3-a456-426614174000.", "123e4567-e89b-42d3-a456-426614174000"),
        ("Write to elena@example.org.", "elena@example.org"),
        ("See https://example.org/guide.", "https://example.org/guide"),
        ("Costs $9,000.", "$9,000"),
        ("Up by 45%.", "45%"),
        ("It runs on an H200.", "H200"),
        ("Порт 5499.", "5499"),
    ],
)
def test_what_no_source_has_is_named_as_the_summary_writes_it(text: str, wrong: str) -> None:
    sources = ["src/agora/store.py listens on port 5432, Python 3.11", "3 July 2026 at 10:30, 4.5 s, 19,000", HASH]
    assert unfounded(text, sources) == (wrong,)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("1000 rows", "1,000 rows"),
        ("1,000 rows", "1000 rows"),
        ("10 000 rows", "10,000 rows"),
        ("10.000 righe", "10 000 righe"),
        ("1,5 s", "1.5 s"),
        ("2.50 euros", "2.5 euros"),
        ("5k rows", "5000 rows"),
        ("5000 rows", "5k rows"),
        ("the 3rd try", "try 3"),
        ("30s", "30 s"),
        ("$50", "50 dollars"),
        ("5-10 retries", "between 5 and 10 retries"),
        ("1920x1080", "1920 by 1080"),
        ("at 10:00", "at 10 am"),
        ("on 2026-05-01", "on 1 May 2026"),
        ("on 2026-05-01", "il 1 maggio 2026"),
        ("on 2026-05-01", "1 мая 2026"),
        ("three tries", "several tries"),
        ("Python 3.11", "Python 3.11.4"),
        ("v1.2.3", "version 1.2.3"),
        ("see store.py", "see src/agora/store.py"),
        ("see src/agora/store.py", "in ./src/agora/store.py:42:7"),
        ("see D:/Team/Ann/a.txt", "D:\\\\Team\\\\Ann\\\\a.txt"),
        ("in 3f2a9c1", HASH),
        (HASH.upper(), HASH),
        (ULID.lower(), ULID),
        ("ops-7 and OPS-7", "OPS-7"),
        ("Elena@Example.org", "mail elena@example.org"),
        ("see https://example.org/guide/", "(https://example.org/guide)."),
        ("and/or, e.g. UTF-8", "utf-8"),
        ("Q3 plans", "plans for quarter 3"),
        ("issue #45", "#45"),
    ],
)
def test_harmless_spellings_are_founded(text: str, source: str) -> None:
    assert unfounded(text, ["nothing here", source]) == ()


def test_a_longer_form_than_the_source_has_is_unfounded() -> None:
    assert unfounded("Python 3.11.4, 3f2a9c1e8b, src/a/store.py", ["Python 3.11, 3f2a9c1, store.py"]) == (
        "3.11.4",
        "3f2a9c1e8b",
        "src/a/store.py",
    )


def test_part_of_a_number_or_name_is_another_one() -> None:
    assert unfounded("543, store.py, OPS-7", ["5432, restore.py, OPS-77"]) == ("543", "store.py", "OPS-7")


def test_digits_of_a_hash_are_no_numbers() -> None:
    assert unfounded("3 of 9 in 2 runs", [HASH, ULID, "123e4567-e89b-42d3-a456-426614174000"]) == ("3", "9", "2")


def test_findings_come_in_order_and_once() -> None:
    assert unfounded("77, then 55, then 77, then src/x.py", []) == ("77", "55", "src/x.py")


def test_list_numbers_and_references_within_the_range_are_the_summary_s_own() -> None:
    text = "Messages 3 to 18:\n1. Began (#3, user)\n2) Went on (#18, #4)\n - 3. Ended, see #5-#7 (#1, …, #9)"
    assert unfounded(text, []) == ("#1",)
    assert unfounded(text, [], covers=(1, 18)) == ("3", "18")
    assert unfounded("Went on (#19, user)", [], covers=(3, 18)) == ("#19",)
    assert unfounded("Went on (#4, user)", []) == ("#4",)


@pytest.mark.parametrize("said", [ENGLISH, ITALIAN, RUSSIAN])
def test_an_extractive_summary_is_founded(said: tuple[tuple[str, str], ...]) -> None:
    messages = talk(said)
    assert unfounded(rolled(messages, 2).text, [message.content for message in messages], (1, len(messages))) == ()


def test_a_summary_with_more_findings_than_anybody_reads_is_cut() -> None:
    assert len(unfounded(" ".join(str(n) for n in range(100, 900)), [])) == MOST


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("a1 " * 6_000, "a1a" * 300_000),
        (" ".join(f"x{n}" for n in range(4_000)), "x1 " * 300_000),
        ("1," * 10_000, "1," * 500_000),
        ("1 000" * 4_000, "1 000" * 200_000),
        ("1.1" * 6_000, "1.1" * 300_000),
        ("/a" * 10_000, "/a" * 500_000),
        ("#" * 20_000, "1" * 1_000_000),
        ("\ud800 7", "\ud800" * 1_000_000),
    ],
)
def test_hostile_texts_take_no_longer_than_others(text: str, source: str) -> None:
    began = time.thread_time()
    unfounded(text, [source])
    # 1.5 s at most where it was measured.
    assert time.thread_time() - began < 15
