"""Headers against what the SDK's server checks them with."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import (
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)

from agora.backends.http_headers import MessageHeaders, wrapped

scalars = st.text() | st.booleans() | st.integers(-(2**60), 2**60) | st.none() | st.lists(st.none(), max_size=1)
ends = st.sampled_from(["Region", "X-y", "a.b"])
leaves = st.builds(lambda end: {"type": "string", "x-mcp-header": end}, ends) | st.just({"type": "string"})
schemas = st.recursive(
    leaves,
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
        lambda found: {"type": "object", "properties": found}
    ),
    max_leaves=6,
).filter(lambda schema: "properties" in schema and find_invalid_x_mcp_header(schema) is None)
arguments = st.recursive(scalars, lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)).filter(
    lambda found: isinstance(found, dict)
)


@given(st.text(st.characters(codec="utf-8")))
def test_every_text_is_wrapped_as_the_sdk_wraps_it_and_read_as_it_was(text: str) -> None:
    assert decode_header_value(wrapped(text)) == text
    if text:
        assert wrapped(text) == encode_header_value(text)


@given(schemas, arguments)
def test_arguments_are_repeated_where_the_sdk_repeats_them(schema: dict[str, Any], given_: dict[str, Any]) -> None:
    headers = MessageHeaders()
    headers.protocol = "2026-07-28"
    headers.learn({"tools": [{"name": "tool", "inputSchema": schema}, {"name": 7}, None]})
    message = {"method": "tools/call", "params": {"name": "tool", "arguments": given_}}
    found = {name: value for name, value in headers.of(message).items() if name.startswith("mcp-param-")}
    expected = {
        f"{name}".replace("Mcp-Param-", "mcp-param-"): decode_header_value(value)
        for name, value in mcp_param_headers(x_mcp_header_map(schema), given_).items()
    }
    assert {name: decode_header_value(str(value)) for name, value in found.items()} == expected


def test_nothing_odd_in_a_list_of_tools_or_a_message_does_harm() -> None:
    headers = MessageHeaders()
    headers.protocol = "2026-07-28"
    odds: tuple[Any, ...] = (None, [], {"tools": 7}, {"tools": [{"name": "t", "inputSchema": {"properties": [1]}}]})
    for odd in odds:
        headers.learn(odd)
    deep: dict[str, Any] = {}
    schema = deep
    for _ in range(5000):
        schema["properties"] = {"a": {"x-mcp-header": "A"}}
        schema = schema["properties"]["a"]
    headers.learn({"tools": [{"name": "deep", "inputSchema": deep}]})
    odds = (None, [], {"name": 7}, {"name": "deep", "arguments": 7}, {"name": "deep", "_meta": 7})
    for params in odds:
        assert headers.of({"method": "tools/call", "params": params})["mcp-method"] == "tools/call"
