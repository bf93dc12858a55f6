"""Whether the words before a verb are a subject, and which; how kind and value part."""

from __future__ import annotations

import re
from typing import NamedTuple

from agora.llm.patterns import phrases
from agora.llm.patterns.relations import relation
from agora.llm.patterns.vocabulary import words

_KIND = re.compile(r"the (?P<n>[a-z]+(?: [a-z]+)?) of (?P<v>\S.*)$")
_NO_KIND = words(
    "use need idea concept lot number majority amount matter case help risk cost lack end start beginning middle",
    "rest top bottom side front back edge heart north south east west name",
)
_NEAR = re.compile(r"(?:the |a |an )?[A-Z0-9\"“«]|(?:the|a|an) \w|[a-z][A-Z]")
_PROPER = re.compile(r"(?:[Tt]he |[Aa]n? )?(?:[A-Z0-9\"“«]|[a-z]+[A-Z0-9_/.-])")
_COMMON = re.compile(r"[a-z][\w-]*(?: [a-z][\w-]*){0,4}$")
_HEAD = re.compile(r"[Tt]he ([a-z][\w -]{1,30}?) of ((?:the )?[A-Z0-9].*)$")

ORDERS = words(
    "use make please ensure check note remember do don't set run add remove keep let see try ask tell write read",
    "put take get give go call send look find open close start stop move never always also then first second here",
    "there just only even after before during from in on at by with without for to as like about since because",
    "while and but or so yes no ok what which who how why when where not still however",
)
"""Neither a subject nor a value begins with one of these: orders to the agent, prepositions, adverbs."""

_TIMED = words("when while since although though because whereas")
_LEADING = words(
    "however upon in on at during from after before by with for as over under among until despite unlike like",
    "within then first finally also here there instead today now yes no well",
)
"""With these a sentence may begin before its subject, which then comes after a comma."""

_VAGUE = words("most many several few some all both each every another over about part half none")
_DANGLING = re.compile(
    r" (?:and|or|but|then|thus|also|both|therefore|often|only|even|just|usually|always|who|that|which|to)$"
)
_ADVERB = re.compile(r"[A-Z][a-z]+ly(?:, | [a-z])|[A-Z]{5,} [A-Z]?[a-z]|[A-Z]{8,} ")
_GERUND = re.compile(r"[A-Z][a-z]+ing [a-z]")
_MANNER = re.compile(r" (?!(?:family|assembly|supply|reply|ally|anomaly|fly|monopoly|butterfly)$)[a-z]+ly$")
_REMARK = re.compile(r"^((?:[Tt]he )?[a-z][a-z ]{0,40}) \([^()]{1,40}\)$")
_OUR = re.compile(r"^[Oo]ur (?=\S)")
_MOST_LOWER = 5
"""Words in small letters: a title may have some, a clause has more."""


class Subject(NamedTuple):
    """What a sentence is about: `name`, or the `of` of it ("archive" of a firm) if that is not empty."""

    name: str
    of: str


def subject(before: str) -> Subject | None:
    """The subject that the words `before` a verb name; None if they are anything else, or say more."""
    named = _REMARK.sub(r"\1", _OUR.sub("", phrases.trimmed(before)))
    if ": " in named or not phrases.is_noun(named, 14) or not _begins(named):
        return None
    named = _MANNER.sub("", named)
    after_comma = named.partition(", ")[2]
    if after_comma and not (after_comma[0].isupper() or after_comma[0].isdigit()):
        return None
    if sum(part[0].islower() for part in named.split()) > _MOST_LOWER or _DANGLING.search(named):
        return None
    if not (_NEAR.match(named) or _COMMON.match(named)):
        return None
    head = _HEAD.match(named)
    if head:
        return Subject(phrases.without_article(head[2]), relation(head[1]))
    return Subject(phrases.without_article(named), "")


def _begins(named: str) -> bool:
    first = named.split(" ", 1)[0].rstrip(",").lower()
    if (
        first in _TIMED
        or (first in _LEADING and "," in named)
        or _ADVERB.match(named)
        or (_GERUND.match(named) and "," in named)
    ):
        return False
    return (first not in ORDERS and first not in _VAGUE) or phrases.is_title(named)


def is_named(words_before: str) -> bool:
    """Whether a subject is a proper name or has an article: "Dinner is made by" is none of the two inside a text."""
    return bool(_PROPER.match(words_before)) or words_before.lower().startswith(("the ", "a ", "an ", "our "))


def is_proper(value: str) -> bool:
    """Whether `value` begins as a name, a number or an identifier."""
    return bool(_PROPER.match(value))


def with_kind(key: str, after: str) -> tuple[str, str]:
    """Key and value of the words `after` a verb, with what kind of thing the value is in the key: "born in city"."""
    value = phrases.cut(after)
    kind = _KIND.match(value)
    if kind is None or not _NO_KIND.isdisjoint(kind["n"].split()):
        return key, value
    return f"{key} {kind['n']}", kind["v"]
