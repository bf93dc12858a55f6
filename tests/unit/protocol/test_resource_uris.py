from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.errors import InvalidInput
from agora.protocol.resources.table import KINDS, before_of, cursor_of, parse, uri_of


@given(
    st.text(min_size=1).filter(lambda name: not name.startswith("/")),
    st.from_regex(r"n_[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True),
)
def test_every_name_has_a_uri_that_leads_back_to_it(name: str, row: str) -> None:
    name = name.encode("utf-8", "replace").decode("utf-8")
    uri = uri_of("namespaces", name, cursor=cursor_of(row))
    assert uri.isascii()
    asked = parse(uri)
    assert asked is not None
    assert (asked.kind.name, asked.value, before_of(asked.options["cursor"])) == ("namespaces", name, row)


@given(st.text(max_size=60))
def test_no_text_at_all_breaks_the_reader(text: str) -> None:
    for uri in (text, f"agora://{text}", f"agora://notes/{text}", f"agora://search?{text}"):
        try:
            asked = parse(uri)
        except InvalidInput:
            continue
        assert asked is None or asked.kind in KINDS
    with pytest.raises(InvalidInput):
        before_of(text + "!")


@pytest.mark.parametrize("uri", ["agora://status", "agora://cache/stats", "agora://changes", "agora://search?q=x"])
def test_fixed_ones_have_no_value(uri: str) -> None:
    asked = parse(uri)
    assert asked is not None
    assert asked.value == ""


def test_a_cursor_says_nothing_of_what_it_is() -> None:
    note = "n_01M8MKRP2CC69HXHW522H8C8V1"
    assert note not in cursor_of(note)
    assert before_of(cursor_of(note)) == note
    assert before_of(None) is None


def test_a_cursor_that_counts_rows_is_none_of_ours() -> None:
    for made in ({"before": 17}, {"before": "17"}, {"before": None}, [17]):
        with pytest.raises(InvalidInput):
            before_of(base64.urlsafe_b64encode(json.dumps(made).encode()).decode())
