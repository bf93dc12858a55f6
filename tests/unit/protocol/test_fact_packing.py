from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agora.protocol.tools.fact_packing import cut, packed, size

values = st.one_of(st.text(max_size=400), st.integers(), st.lists(st.text(max_size=30), max_size=30), st.booleans())


def rows(given: list[Any]) -> list[dict[str, Any]]:
    return [{"id": f"f_{n}", "key": "k" * (n % 7), "value": value} for n, value in enumerate(given)]


@given(st.lists(values, max_size=20), st.integers(0, 6_000))
def test_what_is_told_fits_keeps_its_order_and_begins_as_the_whole_does(given: list[Any], room: int) -> None:
    every = rows(given)
    shown, taken = packed(every, room)
    assert taken == sum(size(row) + 1 for row in shown) <= room or not shown
    assert [row["id"] for row in shown] == [row["id"] for row in every[: len(shown)]]
    for row, whole in zip(shown, every, strict=False):
        if "cut" not in row:
            assert row == whole
            continue
        text = whole["value"] if isinstance(whole["value"], str) else json.dumps(whole["value"], ensure_ascii=False)
        assert text.startswith(row["value"].removesuffix("…"))
        assert row["tokens"] * 4 >= size(whole["value"])


@given(st.lists(values, max_size=20))
def test_nothing_is_cut_where_everything_fits(given: list[Any]) -> None:
    every = rows(given)
    room = sum(size(row) + 1 for row in every)
    assert packed(every, room) == (every, room)


def test_the_longest_is_cut_before_a_short_one_is_left_out() -> None:
    every = rows(["x" * 3_000, *["short"] * 10, "y" * 500])
    shown, _ = packed(every, 1_800)
    assert [row["id"] for row in shown if "cut" in row] == ["f_0"]
    assert len(shown) == 12
    less, _ = packed(every, 1_200)
    assert [row["id"] for row in less if "cut" in row] == ["f_0", "f_11"]
    assert abs(len(less[0]["value"]) - len(less[-1]["value"])) <= 1


def test_a_cut_value_is_no_longer_than_it_may_be_whatever_it_is_written_in() -> None:
    for value in ("x" * 900, "数据库" * 300, '"\\\n' * 300, "😀" * 300, {"a": ['"' * 500]}):
        row = {"id": "f_1", "value": value}
        for most in (96, 100, 257, 400):
            short = cut(row, most)
            assert size(short) - size(row) + size(value) <= most
            assert short["value"].endswith("…")
            assert len(short["value"]) > 5
