from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.text.tokens import cost, window

CLUSTERS = [
    "a",
    "b",
    " ",
    "\n",
    ". ",
    "é",
    "e\u0301",
    "x\u0301\u0316\u0308",
    "数",
    "が",
    "か\u3099",
    "สั",
    "น้ำ",
    "क्षि",
    "한",
    "\u1112\u1161\u11ab",
]
CLUSTERS += [
    "🚀",
    "👩\u200d💻",
    "👍🏽",
    "🇮🇹",
    "🏴\U000e0067\U000e0062\U000e007f",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "\r\n",
    "ש\u05b8\u05c1",
]
pieces = st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("数据", 2), ("🚀", 1), ("ошибка", 3)]
)
def test_four_bytes_are_one_token(text: str, tokens: int) -> None:
    assert cost(text) == tokens


@given(pieces, st.integers(-5, 300), st.integers(-5, 300), st.integers(0, 60))
def test_a_window_is_a_part_of_the_text_within_its_cost_and_cuts_no_character(
    parts: list[str], start: int, stop: int, most: int
) -> None:
    text = "".join(parts)
    shown = window(text, start, stop, most)
    assert cost(shown) <= most
    assert shown or most < 1
    if cost(text) <= most:
        assert shown == text
        return
    kept = shown.removeprefix("…").removesuffix("…")
    whole = {"".join(parts[i:j]).strip() for i in range(len(parts)) for j in range(i, len(parts) + 1)}
    assert kept in whole


@given(pieces, st.data())
def test_a_window_holds_the_whole_span_where_that_fits(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    first = data.draw(st.integers(0, len(parts) - 1))
    last = data.draw(st.integers(first + 1, len(parts)))
    span = "".join(parts[first:last])
    start = len("".join(parts[:first]))
    shown = window(text, start, start + len(span), cost(span) + 2)
    assert span.strip() in shown


@pytest.mark.parametrize(
    "cluster", [cluster for cluster in CLUSTERS if len(cluster) > 1 and cluster.strip() == cluster]
)
def test_no_window_cuts_a_character_wherever_its_span_lies(cluster: str) -> None:
    text = f"#{cluster * 30}#"
    for start in range(0, len(text), 3):
        for width in (0, 1, 2, 7):
            for most in (1, 2, 3, 5, 8, 9, 10):
                shown = window(text, start, start + width, most)
                kept = shown.strip("…#")
                assert kept == cluster * (len(kept) // len(cluster))
                assert cost(shown) <= most


def test_a_line_end_of_two_characters_is_not_cut() -> None:
    text = "\r\n".join("ab" * 9)
    shown = [window(text, start, start + 1, most).strip("…") for start in range(len(text)) for most in range(3, 8)]
    assert all("\n" not in one.replace("\r\n", "") for one in shown)


def test_a_window_within_a_sentence_begins_and_ends_with_a_word() -> None:
    words = [f"word{number}" for number in range(200)]
    text = " ".join(words)
    for start in range(600, 700):
        shown = window(text, start, start + 1, 20)
        assert shown.startswith("…")
        assert shown.endswith("…")
        assert set(shown.strip("…").split()) <= set(words)


TEXT = " ".join(f"Sentence number {number} is here." for number in range(200))


def test_a_window_begins_and_ends_with_a_sentence() -> None:
    start = TEXT.index("number 100")
    shown = window(TEXT, start, start + 10, 60)
    assert "number 100" in shown
    assert shown.startswith("…Sentence number")
    assert shown.endswith("is here.…")
    assert cost(shown) > 40


def test_a_window_at_an_end_of_the_text_spends_its_room_on_the_other_side() -> None:
    first, last = window(TEXT, 0, 8, 60), window(TEXT, len(TEXT) - 8, len(TEXT), 60)
    assert first.startswith("Sentence number 0 ")
    assert last.endswith("Sentence number 199 is here.")
    assert min(cost(first), cost(last)) > 45


def test_a_window_smaller_than_its_span_shows_where_it_begins() -> None:
    start = TEXT.index("Sentence number 50")
    shown = window(TEXT, start, len(TEXT), 12)
    assert shown.startswith("…Sentence number 50 is")
    assert shown.endswith("…")


def test_a_window_without_blanks_is_cut_between_characters() -> None:
    text = "数据库连接" * 1000
    shown = window(text, 2500, 2505, 50)
    assert cost(shown) in {49, 50}
    assert shown.strip("…") in text


def test_a_character_beyond_the_budget_leaves_an_ellipsis() -> None:
    text = "a" + "\u0301" * 500
    assert window(text, 0, 10, 5) == "…"
    assert window(text, 0, 10, 0) == ""
    assert window("数据库", 0, 1, 1) == "…"
