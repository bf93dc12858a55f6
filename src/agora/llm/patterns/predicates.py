"""What English verbs say of named things: "was written by", "lives in", "uses X for Y", "is due on"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agora.llm.patterns import phrases, verbs
from agora.llm.patterns.relations import relation
from agora.llm.patterns.rules import Found
from agora.llm.patterns.subjects import is_named, is_proper, subject, with_kind

_S = r"(?P<s>\S.{0,118}?)"
_V = r"(?P<v>\S.{0,200})$"
_OFTEN = r"(?:(?:now|currently|originally|mainly|primarily|still|also|mostly|usually|generally) )?"
_PASSIVE = re.compile(
    rf"{_S} (?:has been|have been|is|was|are|were) {_OFTEN}(?P<p>(?:{verbs.PARTICIPLES}|{verbs.ADJECTIVES}) "
    rf"(?:{verbs.PREPOSITIONS})|(?:famous|known|responsible|used) for) {_V}"
)
_DUE = re.compile(rf"{_S} (?:is|are) (?P<p>due) (?P<v>(?:next |this )?[A-Z\d]\S.{{0,60}})$")
_ACTIVE = re.compile(rf"{_S} {_OFTEN}(?P<p>{verbs.STATIVE}) {_V}")
_GERUND = re.compile(r"[A-Z][a-z]+ing [a-z]")
_SEVERAL = re.compile(r"s$| and ")
_LIST = re.compile(r",\s+(?:and\s+)?|\s+and\s+")
_PORT = re.compile(r"(?:port )?(\d{2,5})$")
_OF_PEOPLE: Final = frozenset({"moved to", "works at", "works for", "lives in", "lived in", "resides in"})
"""Verbs that say much else unless a name follows: "moved to stop it", "lives in fear"."""


def passive(clause: str) -> Iterator[Found]:
    """What a participle or an adjective with its preposition says: "is based in", "was founded by", "is due on"."""
    match = _PASSIVE.match(clause) or _DUE.match(clause)
    if match is None or (about := subject(match["s"])) is None:
        return
    verb, after = match["p"], match["v"]
    if verb.endswith(" to") and not (is_proper(after) or after.startswith("the ")):
        return
    key, value = with_kind(verb, after)
    short = is_named(about.name) and phrases.is_noun(value, 5)
    if short or phrases.is_hard(value) or (key != verb and phrases.is_noun(value)):
        key = f"{about.of} {key}" if about.of else verbs.BARE.get(key, key)
        yield Found(about.name, key, value, "passive")


def active(clause: str) -> Iterator[Found]:
    """What a verb in the third person says: "lives in", "depends on", "uses"."""
    match = _ACTIVE.match(clause)
    if match is None or (about := subject(match["s"])) is None or about.of:
        return
    before, after = match["s"], match["v"]
    plural = match["p"] in verbs.PLURAL
    verb = verbs.PLURAL.get(match["p"], match["p"])
    if not is_named(before) or _GERUND.match(before) or (plural and not _SEVERAL.search(before)):
        return
    port = _PORT.match(phrases.cut(after))
    if port and verb in {"listens on", "runs on"}:
        yield Found(about.name, "port", port[1], "listens")
    elif verb == "uses" and " for " in after:
        yield from _used_for(about.name, *after.split(" for ", 1))
    else:
        yield from _does(about.name, verb, after, plural=plural)


def _used_for(name: str, what: str, purpose: str) -> Iterator[Found]:
    value, aim = phrases.cut(what), phrases.without_article(phrases.cut(purpose))
    if phrases.is_noun(value, 5) and phrases.is_noun(aim, 6) and "," not in what:
        yield Found(name, f"used for {relation(aim)}", value, "uses for")


def _does(name: str, verb: str, after: str, *, plural: bool) -> Iterator[Found]:
    key, value = with_kind(verb, after)
    hard = phrases.is_hard(value)
    if (verb in verbs.EVENTS and not hard) or (verb in _OF_PEOPLE and not plural and not is_proper(value)):
        return
    if not hard and not (phrases.is_noun(value, 5) and (key != verb or phrases.begins_well(value))):
        return
    multi = key in verbs.SEVERAL
    if not plural:
        # Where somebody lives is their home, whether it is said to be a city or not.
        key = verbs.BARE[verb] if verb in {"lives in", "resides in"} else verbs.BARE.get(key, key)
    parts = _LIST.split(value) if multi else [value]
    for part in parts if all(" " not in part for part in parts) else [value]:
        yield Found(name, key, part, "active", multi=multi)
