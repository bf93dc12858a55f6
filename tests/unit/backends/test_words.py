from __future__ import annotations

import tracemalloc

import pytest

from agora.backends.words import Cleaner, Skipped, Tail
from agora.redaction.redactor import Redactor


def cleaner(**env: str) -> Cleaner:
    return Cleaner(Redactor(), env)


def test_the_end_of_what_was_written_is_kept_and_no_more() -> None:
    tail = Tail(cleaner())
    for n in range(5_000):
        tail.add(b"line %d\n" % n)
    assert tail.text().endswith("line 4998\nline 4999")
    assert len(tail.text()) <= 2_000
    assert tail.last_line() == "line 4999"
    tail.add(b"x" * 1_000_000)
    assert tail.text() == "x" * 2_000
    assert tail.last_line() == "x" * 200


def test_the_end_takes_the_same_memory_however_much_comes() -> None:
    tail = Tail(cleaner())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(2_000):
            tail.add(b"x" * 1_000)
        after, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
    assert highest - before < 60_000


def test_colours_go_and_what_drives_a_terminal_is_written_out() -> None:
    words = b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m\r\n50%\r100%\x08\xe2\x80\xae\xff"
    assert cleaner().text(words) == "red\n50%\n100%\\u0008\\u202e\ufffd"


def test_values_of_secret_variables_are_not_shown_and_others_are() -> None:
    env = {
        "API_KEY": "correct horse",
        "DB_PASSWORD": "correct horse battery",
        "SHORT_TOKEN": "on",
        "ROOT": "/srv/files",
    }
    clean = cleaner(**env)
    assert clean.text(b"correct horse battery, correct horse, on, /srv/files") == (
        "[REDACTED:secret], [REDACTED:secret], on, /srv/files"
    )


@pytest.mark.parametrize("before", [0, 5_000, 13_000, 15_800, 16_300, 20_000])
def test_a_key_whose_beginning_is_lost_is_not_shown_as_its_rest(before: int) -> None:
    body = b"\n".join(b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7%08d" % n for n in range(80))
    tail = Tail(cleaner())
    tail.add(b"-----BEGIN PRIVATE KEY-----\n" + body + b"\n-----END PRIVATE KEY-----\n")
    tail.add(b"quiet words\n" * (before // 12))
    assert "MIIEvQ" not in tail.text()


def test_many_secrets_that_shrink_to_labels_do_not_uncover_the_rest_of_a_lost_one() -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 70
    tail = Tail(cleaner())
    for _ in range(12):
        tail.add(key + b"-----END PRIVATE KEY-----\n")
    assert "MIIEvQ" not in tail.text()


def test_what_was_skipped_is_counted_and_the_last_of_it_shown_on_one_line() -> None:
    skipped = Skipped(cleaner())
    assert skipped.text() == ""
    skipped.add(b"a banner")
    assert skipped.text() == "[one line on its standard output that are no message; the last: a banner]"
    skipped.add(b"token=ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fX2kLm\x1b[2J" + b" and so on" * 1_000)
    assert skipped.text().startswith("[2 lines on its standard output that are no message; the last: token=[REDACTED:")
    assert len(skipped.text()) < 300


def test_no_secret_among_the_arguments_is_shown() -> None:
    args = ("--api-key", "qwertz-1", "--token=asdfgh-2", "AUTH=yxcvbn-3", "--verbose", "plain-words", "--password")
    said = Cleaner(Redactor(), {}, args).text(b"usage: qwertz-1 asdfgh-2 yxcvbn-3 plain-words --password")
    assert said == "usage: [REDACTED:secret] [REDACTED:secret] [REDACTED:secret] plain-words --password"
