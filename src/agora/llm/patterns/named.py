"""What plain English sentences say of named things: subject, relation, value, without knowing the words of either."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from agora.llm.patterns import phrases
from agora.llm.patterns.doubt import PASSING
from agora.llm.patterns.predicates import active, passive
from agora.llm.patterns.relations import DATES, is_known, is_secret, relation, takes_any_noun
from agora.llm.patterns.rules import Found, leaves_open
from agora.llm.patterns.subjects import ORDERS, is_named, subject
from agora.llm.patterns.vocabulary import words

_S = r"(?P<s>\S.{0,118}?)"
_V = r"(?P<v>\S.{0,200})$"
_OFTEN = r"(?:(?:now|currently|originally|mainly|primarily|still|also|mostly|usually|generally) )?"
_ROLE = re.compile(rf"{_S} (?:is|was|are|were) {_OFTEN}(?P<a>an?|the) (?P<r>[^,]{{2,50}}?) of {_V}")
_THAT = re.compile(
    r"[Tt]he (?P<r>[a-z][\w -]{1,50}?) (?:that|which|who|where|in which|to which) (?P<c>\S.{1,118}?) (?:is|are) " + _V
)
_OF = re.compile(rf"(?:The |the )?(?P<r>[^\W\d_][\w' -]{{1,60}}?) (?P<o>of|for|in|on) {_S} (?:is|was|are) {_OFTEN}{_V}")
_OWN = re.compile(rf"{_S}(?:['’]s|(?<=s)['’]) (?P<r>[a-z][\w -]{{1,40}}?) (?:is|was|are) {_OFTEN}{_V}")
_THE = re.compile(rf"(?P<a>[Tt]he )?(?P<r>\w[^,`]{{1,50}}?) (?:is|are) {_OFTEN}(?:set to )?{_V}")
_NAME_OF = re.compile(r"the (.{2,50}?) (?:of|in|for|at) ((?:the )?[A-Z0-9].*)$")
_INSIDE = re.compile(r" (?:in|on|at|with|from) ")
_VERB = re.compile(r"[a-z]+(?:ed|es|s)$|(?:wrote|made|built|sang|won|led|ran|drew|shot|gave|took|began|became|found)$")
_AT_HAND = words(
    "file line test example commit issue bug change request function command task message page step item number value",
    "size amount count price total way time day place person case user kid list",
)
"""Without a word that says which, they are whatever is talked about just now: "the file is a.py"."""
_LOOSE = words(
    "fraction bit lot part piece kind sort type result matter number sign form source mix product reflection",
    "waste couple few variety series set pair way version case sense",
)
"""No roles: "a part of", "a sign of"."""


def found(clause: str) -> Iterator[Found]:
    """What `clause` says of what it names, if it says one plain thing; nothing of passing events."""
    if PASSING.search(clause):
        return
    for read in _READERS:
        facts = tuple(read(clause))
        if facts:
            yield from (fact for fact in facts if not leaves_open(fact.value))
            return


def _role(clause: str) -> Iterator[Found]:
    """Of Italy: "Rome is the capital of Italy"; of Ann: "Ann is a citizen of Italy"."""
    match = _ROLE.match(clause)
    if match is None or (about := subject(match["s"])) is None or about.of or not is_named(match["s"]):
        return
    key, value = relation(match["r"]), phrases.cut(match["v"])
    if not phrases.is_hard(value) or not _is_relation(key) or key.split()[-1] in _LOOSE:
        return
    if match["a"] == "the":
        yield Found(phrases.without_article(value), key, about.name, "the role")
    else:
        yield Found(about.name, f"{key} of", value, "a role", multi=key in {"member", "fan", "friend"})


def _relative(clause: str) -> Iterator[Found]:
    """Of the tower: "the firm that built the tower is X"; of Ann: "the music that Ann plays is X"."""
    match = _THAT.match(clause)
    parts = match["c"].split() if match else []
    if match is None or len(parts) < 2:
        return
    if _VERB.match(parts[0]):
        verb, rest = parts[0], parts[1:]
    else:
        verb, rest = parts[-1], parts[: -2 if parts[-2] in {"was", "were", "is", "are"} else -1]
    about, related, value = subject(" ".join(rest)), relation(match["r"]), phrases.cut(match["v"])
    key = f"{related} {verb}"
    if about is None or about.of or phrases.is_judgement(related) or verb[0].isupper():
        return
    if phrases.is_hard(value) or (phrases.is_noun(value, 4) and takes_any_noun(key)):
        yield Found(about.name, key, value, "relative")


def _of(clause: str) -> Iterator[Found]:
    match = _OF.match(clause)
    if match is None:
        return
    related, rest = match["r"], match["s"]
    if related.lower() == "name" and (inner := _NAME_OF.match(rest)):
        related, rest = inner[1], inner[2]
    key, about, value = relation(related), subject(rest), phrases.cut(match["v"])
    if about is None or about.of or not _is_relation(key) or related.split()[0].lower() in ORDERS:
        return
    if match["o"] != "of" and "'s " in key:
        return
    known = is_known(key)
    if not known and not (clause[:4].lower() == "the " and (match["o"] == "of" or re.search(r"\d", value))):
        return
    if _is_value(key, value, sure=known or (match["o"] == "of" and is_named(about.name))):
        yield Found(about.name, key, value, "relation of")


def _possessive(clause: str) -> Iterator[Found]:
    match = _OWN.match(clause)
    if match is None or (about := subject(match["s"])) is None or about.of or not is_named(match["s"]):
        return
    key, value = relation(match["r"]), phrases.cut(match["v"])
    if _is_relation(key) and not _INSIDE.search(key) and _is_value(key, value, sure=True):
        yield Found(about.name, key, value, "possessive")


def _the(clause: str) -> Iterator[Found]:
    match = _THE.match(clause)
    if match is None:
        return
    key, value = relation(match["r"]), phrases.cut(match["v"])
    if key in _AT_HAND:
        return
    if not match["a"] and not (is_known(key) and (re.match(r"\d", value) or key in DATES)):
        return
    capital = match["r"][0].isupper()
    if phrases.is_noun(match["r"], 5) and _is_relation(key) and _is_value(key, value, sure=is_known(key) or capital):
        yield Found(None, key, value, "the")


def _is_relation(key: str) -> bool:
    return phrases.is_noun(key, 5) and not phrases.is_judgement(key) and not is_secret(key)


def _is_value(key: str, value: str, *, sure: bool) -> bool:
    """Whether `value` is one for `key`. A bare name is none of a relation not `sure`: "the drawing is Tom"."""
    first = value.split(" ", 1)[0] if value else ""
    if first in ORDERS or not phrases.begins_well(value):
        return False
    if phrases.is_hard(value):
        return phrases.is_figure(value) or (sure and first not in {"a", "an"})
    return takes_any_noun(key) and phrases.is_noun(value, 4)


_READERS: Final[tuple[Callable[[str], Iterator[Found]], ...]] = (
    passive,
    _role,
    _relative,
    _possessive,
    _of,
    _the,
    active,
)
