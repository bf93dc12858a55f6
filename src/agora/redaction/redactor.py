from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agora.redaction.blocks import address_passwords, private_keys
from agora.redaction.found import LABEL, Found, merged, outside
from agora.redaction.pairs import called, pairs
from agora.redaction.tokens import tokens

_ROUNDS = 6
"""A replaced secret may uncover another; two rounds do for everything but texts made to need more."""

ALLOWED_LENGTH = 128
"""Longer secrets are never let pass: bounds what an allow pattern can cost (see `agora.config.patterns`)."""

_DEEPEST = 64
"""Levels of lists and objects that are looked into. What takes the result refuses half as many."""
_TOO_DEEP = "…"

_PLACES = 20
"""Places that are named; beyond them secrets are only counted."""

_DATA_URI = re.compile(r"data:[\w.+/;=-]{0,80};base64,[0-9A-Za-z+/=]*+")


@dataclass(slots=True)
class Cleaned:
    """Plain data without secrets: how many of which kind were replaced, and which kinds at which place."""

    value: Any = None
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    folded: frozenset[str] = frozenset()


class Redactor:
    """Puts labels such as `[REDACTED:aws-access-key]` in the place of secrets.

    Deterministic, and idempotent: what it returns it leaves as it is. Time is linear in the length of the text.
    Thread-safe. The counts that it returns say how many secrets of which kind were replaced.
    """

    def __init__(self, allow: Sequence[str] = ()) -> None:
        """`allow`: regular expressions; a secret that one of them matches as a whole stays."""
        self._patterns = tuple(allow)

    @cached_property
    def _allow(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, self._patterns))

    def find(self, text: str, *, folded: bool = False) -> list[Found]:
        """Every secret in `text`, in its order; none overlaps another. Labels that stand there already are none.

        `folded`: the text lost its case, as a tag does, so formats are known in any case.
        """
        found = [*private_keys(text), *address_passwords(text), *tokens(text)]
        if folded:
            found += tokens(text, folded=True)
        found += pairs(text)
        if not found:
            return []
        if "[REDACTED:" in text:
            found = outside(found, [match.span() for match in LABEL.finditer(text)])
        if ";base64," in text:
            # Pictures: letters enough for anything to turn up in them.
            found = outside(found, [match.span() for match in _DATA_URI.finditer(text)])
        return [each for each in merged(found) if not self._is_allowed(text[each.start : each.end])]

    def text(self, text: str, *, folded: bool = False) -> tuple[str, Counter[str]]:
        """`text` with a label in the place of each secret, and how many of each kind there were."""
        counts: Counter[str] = Counter()
        for _ in range(_ROUNDS):
            found = self.find(text, folded=folded)
            if not found:
                break
            counts.update(each.kind for each in found)
            text = _replaced(text, found)
        return text, counts

    def data(self, value: Any, folded: frozenset[str] = frozenset()) -> Cleaned:  # noqa: ANN401 - JSON
        """`value`, plain data as of JSON, with every secret in its keys and values replaced.

        A text under a name that calls it a secret, as in `{"password": "…"}`, is taken for one. What is nested too
        deep for anything to take it is cut off there. What stands under a name of `folded` has lost its case.
        """
        cleaned = Cleaned(folded=folded)
        cleaned.value = self._data(value, "", "", 0, cleaned)
        return cleaned

    def _data(self, value: Any, name: str, place: str, depth: int, cleaned: Cleaned) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, str):
            clean, found = self.text(value, folded=name in cleaned.folded)
            if name and not found and (kind := called(name, clean)) and not self._is_allowed(clean):
                clean, found = f"[REDACTED:{kind}]", Counter([kind])
            _note(cleaned, place, found)
            return clean
        if not isinstance(value, Mapping | list | tuple):
            return value
        if depth == _DEEPEST:
            return _TOO_DEEP
        if isinstance(value, Mapping):
            kept: dict[str, Any] = {}
            for key, inner in value.items():
                clean, found = self.text(key)
                own, n = clean, 1
                while own in kept:
                    # Two keys that were secrets, and no field may be lost.
                    n += 1
                    own = f"{clean} ({n})"
                within = f"{place}.{own}" if place else own
                _note(cleaned, within, found)
                kept[own] = self._data(inner, key, within, depth + 1, cleaned)
            return kept
        return [self._data(inner, name, f"{place}[{n}]", depth + 1, cleaned) for n, inner in enumerate(value)]

    def _is_allowed(self, secret: str) -> bool:
        return len(secret) <= ALLOWED_LENGTH and any(pattern.fullmatch(secret) for pattern in self._allow)


def _note(cleaned: Cleaned, place: str, found: Counter[str]) -> None:
    if not found:
        return
    cleaned.counts.update(found)
    if place in cleaned.places or len(cleaned.places) < _PLACES:
        kinds = cleaned.places.setdefault(place, [])
        kinds += [kind for kind in found if kind not in kinds]


def _replaced(text: str, found: Sequence[Found]) -> str:
    parts, at = [], 0
    for each in found:
        parts += [text[at : each.start], f"[REDACTED:{each.kind}]"]
        at = each.end
    return "".join([*parts, text[at:]])
