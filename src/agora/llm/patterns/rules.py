from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agora.llm.patterns import phrases
from agora.llm.patterns.relations import is_known, is_secret, relation, takes_any_noun

_LIST = re.compile(r",\s+(?:(?:and|e|ed|и)\s+)?|\s+(?:and|e|ed|и)\s+")
_TIMES = re.compile(
    r"^(?:(?:a|the|several|many|some|\d+|two|three|over|about|almost) )*(?:now|years?|months?|weeks?|days?|hours?|"
    r"while|ever|long|first|last|anni|mesi|ora|adesso|sempre|лет|всегда)\b"
)
_OF = re.compile(r"(?P<r>.{2,40}?) (?:of|for) (?P<s>.{2,60})$")
_PARTLY = re.compile(r"(?:больш|част|мног|некотор|нескольк|molt[ie]|alcun|gran parte|parte|tutt[ie])", re.IGNORECASE)
_MANNER = re.compile(r"(?<=[^\W\d_]) (?:(?:[а-яё]+о|очень|теперь)|(?:ora|adesso|sempre|[a-z]+mente))$")
_GENERIC = re.compile(
    r"(?:[Сс]ервиса?|[Сс]ервера?|[Пп]роекта?|[Пп]риложени[ея]|[Сс]лужб[аы]|[Бб]аз[аы](?: данных)?) (?=[A-Za-z«\"А-ЯЁ])"
)
"""What sort of thing it is, before its name; the name alone does not decline."""
_OR = re.compile(r"\s(?:or|either|oppure|o|или|либо)\s")


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule caught, in words. `subject`: None for whoever speaks."""

    subject: str | None
    key: str
    value: str
    rule: str
    ended: bool = False
    multi: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and what it means.

    Its groups: `v` the value, `o` what that replaces, `r` a relation, `y` a purpose, `s` the subject. `key` is a
    template of `{r}` and `{y}`.
    """

    name: str
    pattern: re.Pattern[str]
    key: str
    fits: Callable[[str], bool]
    multi: bool = False
    sure: bool = True
    """Whether any relation may have a bare name for a value: "my sister is Ann", but not "the drawing is Ann"."""

    def read(self, clause: str) -> Iterator[Found]:
        """The facts that this rule finds in `clause`."""
        match = self.pattern.match(clause)
        if match is None:
            return
        groups = match.groupdict()
        if groups.get("r") and "s" not in groups and (related := _OF.match(groups["r"])):
            groups["r"], groups["s"] = related.groups()
        key = self._key(groups.get("r"), groups.get("y"))
        value = phrases.cut(groups["v"])
        if key is None or leaves_open(value):
            return
        subject = groups.get("s")
        if subject is not None:
            subject = phrases.without_article(_GENERIC.sub("", _MANNER.sub("", phrases.trimmed(subject))))
            if not phrases.is_noun(subject, 6) or _PARTLY.match(subject):
                return
        if "r" in groups and not self._holds(key, value):
            return
        values = _LIST.split(value) if self.multi and all(len(v.split()) < 4 for v in _LIST.split(value)) else [value]
        if not all(map(self.fits, values)):
            return
        yield from (Found(subject, key, each, self.name, multi=self.multi) for each in values)
        old = groups.get("o")
        if old and self.multi and self.fits(old := phrases.cut(old)) and old not in values:
            yield Found(subject, key, old, self.name, ended=True, multi=True)

    def _holds(self, key: str, value: str) -> bool:
        if not phrases.begins_well(value):
            return False
        if takes_any_noun(key) and phrases.is_noun(value, 6):
            return True
        indefinite = value.split(" ", 1)[0].lower() in {"a", "an", "un", "una", "uno"}
        return phrases.is_figure(value) or (phrases.is_hard(value) and not indefinite and (self.sure or is_known(key)))

    def _key(self, related: str | None, purpose: str | None) -> str | None:
        filled = {"r": "", "y": ""}
        if related is not None:
            filled["r"] = relation(related)
            if (
                len(filled["r"].split()) > 4
                or not phrases.is_noun(filled["r"])
                or phrases.is_judgement(filled["r"])
                or is_secret(filled["r"])
            ):
                return None
            if any(
                word.endswith("ed") and word not in {"preferred", "shared", "embedded"} for word in filled["r"].split()
            ):
                return None
        if purpose is not None:
            bare = phrases.without_article(phrases.cut(purpose))
            filled["y"] = relation(bare)
            if self.key.startswith("{y}") and not phrases.begins_well(bare):
                return None
            if not phrases.is_noun(bare, 6) or not phrases.begins_well_as_noun(bare) or _TIMES.match(bare):
                return None
        return self.key.format(**filled)


def leaves_open(value: str) -> bool:
    """Whether `value` is a choice between values."""
    return bool(_OR.search(value))


def rule(
    name: str, pattern: str, key: str, fits: Callable[[str], bool], *, multi: bool = False, sure: bool = True
) -> Rule:
    """A `Rule` whose pattern is matched from the beginning of a clause to its end, whatever the letter case."""
    return Rule(name, re.compile(f"(?:{pattern})$", re.IGNORECASE), key, fits, multi, sure)


def applied(rules: Sequence[Rule], clause: str) -> Iterator[Found]:
    """What the first of `rules` that finds something in `clause` finds."""
    for each in rules:
        found = tuple(each.read(clause))
        if found:
            yield from found
            return


def a_thing(value: str) -> bool:
    """Whether `value` can be used, liked, preferred: a short noun phrase, and no definite one out of the blue."""
    return phrases.is_noun(value) and not value.startswith("to ")


def a_name(value: str) -> bool:
    """Whether `value` is a proper name of up to four words."""
    parts = value.split()
    return phrases.is_noun(value, 4) and all(
        part[0].isupper() or part in {"de", "di", "van", "von", "al"} for part in parts
    )


def a_place(value: str) -> bool:
    """Whether `value` begins like the name of a place or an organisation."""
    bare = phrases.without_article(value)
    return phrases.is_noun(value, 6) and (bare[0].isupper() or bare[0].isdigit())


def a_tool(value: str) -> bool:
    """Whether `value` is one name, such as a tool has: Postgres 16, pnpm, ruff format."""
    return phrases.is_noun(value, 4) and phrases.without_article(value) == value and phrases.begins_well_as_noun(value)


def a_value(value: str) -> bool:
    """Whether `value` is a number, a date, a name, an identifier."""
    return phrases.is_hard(value)


def anything(value: str) -> bool:
    """Whether `value` says something at all; the relation has been asked before."""
    return not phrases.is_vague(value)
