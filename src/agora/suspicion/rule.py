"""What a rule is, and the parts that many patterns have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

Reason = Literal[
    "hidden_text",
    "override",
    "reveals_prompt",
    "asks_secrets",
    "new_role",
    "false_authority",
    "forged_turn",
    "standing_order",
    "skips_consent",
    "steers_reply",
    "inserts_code",
    "encoded_order",
    "sends_away",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern for one reason: a text is searched if it has one of `stems`, and one of `also` if there are any.

    The stems cost next to nothing, and most texts have none of them. `lines` is for patterns that look at the
    beginnings of lines; every other one sees the text on a single line.
    """

    reason: Reason
    stems: tuple[str, ...]
    pattern: str
    lines: bool = False
    also: tuple[str, ...] = ()

    def may_match(self, text: str) -> bool:
        """Whether it is worth a search: all that most texts cost."""
        inside = text.__contains__
        return any(map(inside, self.stems)) and (not self.also or any(map(inside, self.also)))

    def matches(self, text: str) -> bool:
        """Whether it is in a text in lower case."""
        return _compiled(self.pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def gap(most: int) -> str:
    """Pattern of at most so many words, and of what stands between words, within a sentence.

    Everything in it is bounded and a word is taken whole or not at all, so that no text makes a search take more than
    linear time.
    """
    return rf"(?:[^\w.!?]{{1,3}}\w{{1,24}}+){{0,{most}}}?[^\w.!?]{{1,3}}"


G1, G2, G3, G5, G8 = (gap(most) for most in (1, 2, 3, 5, 8))
