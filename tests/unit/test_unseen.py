"""Characters that drive a terminal, turn the writing or are not seen: shown as escapes, and only those."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.unseen import in_json, shown

DRIVES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\x1b[31mb", "a\\u001b[31mb"),
        ("bell\x07 back\x08 del\x7f csi\x9b31m", "bell\\u0007 back\\u0008 del\\u007f csi\\u009b31m"),
        ("\u202eturned\u2066 apart\u2069", "\\u202eturned\\u2066 apart\\u2069"),
        ("zero\u200bwidth soft\u00adhyphen \ufeffmark", "zero\\u200bwidth soft\\u00adhyphen \\ufeffmark"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("filler\u3164 blank\u2800", "filler\\u3164 blank\\u2800"),
        ("line\u2028 and\u2029", "line\\u2028 and\\u2029"),
        ("lone \ud800", "lone \\ud800"),
        ("a joiner\u200dhides, a selector\ufe0fhides", "a joiner\\u200dhides, a selector\\ufe0fhides"),
        ("over\rwritten", "over\\u000dwritten"),
    ],
)
def test_what_is_not_meant_to_be_seen_is_shown_as_its_escape(text: str, seen: str) -> None:
    assert shown(text) == seen


@pytest.mark.parametrize(
    "text",
    ["tab\tand\nline", "👩‍💻 ❤️ 1️⃣ 👨‍👩‍👧", "می‌خواهم", "क्‍ष", "数据库 ошибка é", "葛󠄀"],
)
def test_what_a_reader_needs_stays(text: str) -> None:
    assert shown(text) == text
    assert in_json(text) == text


def test_a_line_end_of_windows_is_a_line_end() -> None:
    assert shown("one\r\ntwo") == "one\ntwo"


def test_no_character_that_drives_or_formats_is_left_by_itself() -> None:
    kept = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in DRIVES and shown(f"a{chr(code)}b") == f"a{chr(code)}b"
    ]
    assert kept == ["\t", "\n"]


@given(st.text(st.characters(exclude_categories=[])))
def test_json_with_escapes_reads_as_the_same_text(text: str) -> None:
    for ascii_only in (False, True):
        written = json.dumps({text: [text]}, ensure_ascii=ascii_only)
        assert json.loads(in_json(written)) == {text: [text]}
    assert not any(unicodedata.category(c) == "Cc" for c in in_json(json.dumps(text, ensure_ascii=False)))


def test_mongolian_selectors_stay_behind_letters_of_that_script_alone() -> None:
    assert shown("\u1820\u180b") == "\u1820\u180b"
    assert shown("a\u180bb\u180f") == "a\\u180bb\\u180f"
