from __future__ import annotations

from agora.suspicion.disguise import bare, hides, undone
from agora.suspicion.rule import Reason
from agora.suspicion.rules import RULES


def reasons(text: str) -> tuple[Reason, ...]:
    """Why a text looks like instructions to an agent; empty if it does not.

    Telemetry, not a gate: a clever attack is not found, and a text about attacks may be. Hidden text is named first,
    the others in the order of the rules. The same text gives the same answer, and none raises. Time is linear in its
    length: 2,000 characters take half a millisecond, the 128 kB of the longest note at worst less than 0.1 seconds.
    """
    found: list[Reason] = ["hidden_text"] if hides(text) else []
    plain = bare(text)
    _match(plain, found)
    if (latin := undone(plain)) is not None:
        _match(latin, found)
    return tuple(found)


def _match(plain: str, found: list[Reason]) -> None:
    line = " ".join(plain.split())
    for rule in RULES:
        seen = plain if rule.lines else line
        if rule.reason not in found and rule.may_match(seen) and rule.matches(seen):
            found.append(rule.reason)
