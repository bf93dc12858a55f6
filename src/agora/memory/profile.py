from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agora.memory.suspects import suspicions_of_fact
from agora.model.caller import RANKS, rank
from agora.model.fact import Fact, Stands
from agora.text.facts import line
from agora.text.sameness import name_of
from agora.text.tokens import cost
from agora.unseen import shown

_LONGEST = 300
"""Characters of one line: a value that is longer is for `recall` to give whole."""

_TRUSTED = rank("agent")
"""Only what users and agents have said is put before a model without being asked for."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The words above a profile; `{subject}` is replaced by the subject, `user` being `this user`."""

    one: str = "What you know about {subject}:"
    many: str = "What you know:"


def profile(
    facts: Sequence[Stands], subject: str | None, budget: int, heading: Heading, namespaces: Sequence[str] = ()
) -> tuple[str | None, int]:
    """A block for a system prompt of at most `budget` tokens, and how many facts have no room in it.

    Facts of tools and of the web are not in it, nor what looks like instructions unless the user said it. Of two
    `namespaces` that hold a value of one key the first one's is in it. None if there is nothing to say.
    """
    told = _nearest([each for each in facts if rank(each.fact.origin) <= _TRUSTED], namespaces)
    if not told:
        return None, len(facts)
    subjects = {each.fact.subject for each in told}
    alone = subject or (next(iter(subjects)) if len(subjects) == 1 else None)
    named = "this user" if alone is not None and alone.casefold() == "user" else alone
    lines = [heading.many if named is None else heading.one.replace("{subject}", _one_line(named))]
    spent, written = cost(lines[0] + "\n"), 0
    for each in told:
        text = _line(each, None if alone is not None else each.fact.subject)
        price = cost(text + "\n")
        if spent + price > budget or _looks(each.fact):
            continue
        lines.append(text)
        spent, written = spent + price, written + 1
    return ("\n".join(lines) if written else None), len(facts) - written


def _nearest(told: Sequence[Stands], namespaces: Sequence[str]) -> list[Stands]:
    """`told` without what an earlier of the namespaces has another value for, of no lower authority."""
    if len({each.fact.namespace for each in told}) < 2:
        return list(told)
    of_key: dict[tuple[str, str], list[Fact]] = {}
    for each in told:
        if not each.fact.multi:
            of_key.setdefault((name_of(each.fact.subject), name_of(each.fact.key)), []).append(each.fact)

    def hides(one: Fact, other: Fact) -> bool:
        nearer = namespaces.index(one.namespace) < namespaces.index(other.namespace)
        return nearer and rank(one.origin) <= rank(other.origin) and not _looks(one)

    def hidden(fact: Fact) -> bool:
        beside = () if fact.multi else of_key[name_of(fact.subject), name_of(fact.key)]
        return any(hides(one, fact) for one in beside)

    return [each for each in told if not hidden(each.fact)]


def _looks(fact: Fact) -> bool:
    """Whether a fact of anybody but the user looks like instructions: in a system prompt they would be followed."""
    return fact.origin != RANKS[0] and bool(suspicions_of_fact(fact))


def _line(each: Stands, subject: str | None) -> str:
    text = _one_line(line(subject, each.fact.key, each.fact.value))
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    return f"- {text}{' (contested)' if each.contested_by else ''}"


def _one_line(text: str) -> str:
    """`text` in which nothing begins a line of its own, drives a terminal or is not seen."""
    return shown(" ".join(text.split()))
