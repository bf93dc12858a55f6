from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.errors import InvalidInput
from agora.protocol.resources.table import KINDS, before_of, cursor_of, parse, uri_of


@given(st.text(min_size=1).filter(lambda name: not name.startswith("/")), st.integers(1, 2**63 - 1))
def test_every_name_has_a_uri_that_leads_back_to_it(name: str, row: int) -> None:
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
    assert "17" not in cursor_of(17)
    assert before_of(cursor_of(17)) == 17
    assert before_of(None) is None
