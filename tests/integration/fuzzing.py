"""Messages that are nearly right, for whatever carries them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def mutated(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
    """A valid message with some bytes cut, replaced or inserted."""
    message = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(message)))
        end = draw(st.integers(start, min(len(message), start + 8)))
        message[start:end] = draw(st.binary(max_size=8) | st.sampled_from(valid))
    return bytes(message)


@st.composite
def swapped(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
    """A valid message with one member of any depth replaced by any JSON value."""
    message = json.loads(draw(st.sampled_from(valid)))
    at = message
    while isinstance(at, dict) and at:
        key = draw(st.sampled_from(sorted(at)))
        if not isinstance(at[key], dict) or not at[key] or draw(st.booleans()):
            at[key] = draw(JSON)
            break
        at = at[key]
    return json.dumps(message).encode()
