from __future__ import annotations

import re
from typing import Final

from agora.llm.patterns.relations import DATES
from agora.llm.patterns.vocabulary import words
from agora.model.fact import Value

LONGEST_VALUE = 200
"""Characters of a value."""

_PLACEHOLDERS = words(
    "x y z n d v foo bar baz qux foobar todo tbd tba n/a na none null nil undefined example placeholder name",
    "value string xxx yyy something nome valore esempio имя значение пример",
)
_POINTING: Final = words(
    "it its this that these those he him his she her hers they them their theirs me my mine you your yours we us",
    "our ours myself yourself himself herself itself ourselves themselves who whom which what whatever when where",
    "how why there here someone somebody something anything everything anyone everyone everybody nothing nobody",
    "none one ones another other others same all both some any each such so esso questo questa questi queste",
    "quello quella quelli ciò cosa qualcosa qualcuno tutto tutti lui lei loro noi voi io tu mio mia suo sua",
    "stessa qui lì là dove это этот эта эти то тот та те он она оно они его её ее их мне меня мой я мы вы ты нас",
    "вас что кто где как всё все там тут здесь такой такая который которая которые",
)
"""What a phrase begins with, or contains, when only its surroundings tell what it means."""

_POSSESSIVE = words("my our your his her their its this that these those some any each such i")

_VAGUE: Final = words(
    "good bad better best worse worst great nice fine ok okay broken slow fast done ready wrong right true false",
    "real hard easy simple clear unclear unknown important different open closed down up gone back off on over",
    "out missing available perfect amazing awesome terrible beautiful sad happy tired busy late early soon",
    "possible impossible full empty enough more less most much many big small huge tiny high low long short new",
    "old strange weird funny crazy correct incorrect stuck flaky dead alive safe unsafe ridiculous stupid",
    "incredible free stable unstable strong weak today tomorrow yesterday tonight always never often very too",
    "really pretty quite just still already also bene male buono buona meglio rotto rotta lento lenta veloce",
    "pronto pronta giusto sbagliato importante nuovo nuova grande piccolo chiaro vuoto pieno difficile facile",
    "interessante noioso così presto tardi troppo molto хорошо плохо хороший плохой лучше сломан медленно быстро",
    "готов готово важно неважно новый новая большой занят свободен понятно ясно пуст скоро поздно трудно сложно",
    "легко интересно так слишком очень",
)
_QUALIFIES = re.compile(
    r"(?!(?:too|very|really|pretty|quite|just|still|already|also|always|never|often|enough|off|on|over|out|down|up|"
    r"gone|back|today|tomorrow|yesterday|tonight|troppo|molto|слишком|очень)\b)\S+ (?!(?:for|to|at|in|on|with|and|"
    r"but|or|than|of|as|by|from|about|now|enough|per|a|di|da|con|для|на|в|с|и)\b)\S"
)
"""A judging word with a noun behind it: "short answers", and not "short of money"."""
_CLAUSE = words(
    "is are was were am be been being has have had do does did can will i you he she they we because that which",
    "who when where while if why how said says sono era erano abbiamo ho hai hanno perché che quando который",
    "которая которые потому был была были",
)
_ARTICLE = re.compile(r"(?:the|a|an|our|my|il|lo|la|i|gli|le|un|uno|una)\s+|(?:l|un)['’]\s*", re.IGNORECASE)
_CUT = re.compile(
    r"\s*(?:;|\((?=[^()]*\)?\s*(?:[,.;]|$))|\s[–—-]\s|:\s|,?\s(?:because|since|although|though|while|whereas|which|"
    r"when|whenever|where|until|instead|rather than|in order|so|so that|but|as long|as well|as of|due to|thanks to|"
    r"now|currently|these days|anyway|too|already|from now on|at least|with (?:my|our)|for now|at the moment|right "
    r"now|by the way|as (?:an?|the|our)|and (?:is|was|are|were|has|have|had|uses|runs|lives|works|depends|listens|"
    r"speaks|requires|supports|owns|can)|and (?:it|we|I|they|he|she|that|then|this|there|my|our|so|not|now)|perché|"
    r"poiché|siccome|invece|quindi|ma|mentre|però|al posto|da quando|adesso|ora|attualmente|e non|anziché|потому|"
    r"так как|поэтому|но|а|вместо|который|которая|которые|где|теперь|сейчас|и не)(?=[\s,.'’]|$)|,\s(?:I|it|he|she|"
    r"we|they|you|there)\b|,\s(?:not|and not|as|to|for|in|on|with|please|thanks|an?|similar|like|including|such|"
    r"especially|mostly|совсем|например|non|не|чтобы|per|come|con)\s).*",
    re.DOTALL,
)
_EDGES = ' \t\n,;:!"“”«»`'
_SINGLE = re.compile(r"^['‘](.+?)['’]?$")
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})$")
_FLOAT = re.compile(r"-?(?:0|[1-9]\d{0,8})\.\d{1,6}$")
_HARD = re.compile(r"\d|[^\W\d_]*[_/\\@#~+][\w.]|\w\.\w|`")
_WORD = re.compile(r"[\w'’.&+#/@:-]+")
_TEXT = words("version name nickname phone release code id key password pin preference")
"""Words of keys whose values look like numbers and are none."""
_SPEAKER = re.compile(r"\bI(?:['’]\w+)?(?=\s|,|$)(?! [A-Z])")
_PARTICLES = words(
    "once last highest lowest largest smallest greatest about above across after against along among around as at",
    "before behind below between beyond by down during for from in inside into like near of off on onto out over",
    "past per since than through to toward under until up upon via with within without also then there here just",
    "only even always never often what which who how why when where not still however stati stato stata state",
    "come con da di per tra fra su in a non no в на из от до для по с о об при как не",
)
_PARTICIPLE = re.compile(r"(?:[a-z]{2,}(?:ing|ed|ly)|(?!sabato)[a-z]{3,}(?:[aiu]t[oai]))$")
_FIGURE = re.compile(
    r"(?!\d{4}s)[~$€£]?-?\d[\d.,:/-]*[%°]?(?: ?[^\W\d_]{1,12})?$|[\w.-]*[\w][/_@\\][\w./@:\\-]+$|\w+(?:\.\w+)+$|"
    r"v?\d+(?:\.\d+)+$|https?://\S+$|`[^`]+`$"
)
_SUPERLATIVE = re.compile(
    r"\b(?:best|worst|most|least|greatest|only|first|last|next|same|whole|main|real|point|problem|thing|answer|"
    r"solution|total|fix|cause|output|error|fact|reason|question|idea|truth|key|result|rest|end|start|beginning|"
    r"part|kind)$"
)


def cut(words: str) -> str:
    """`words` up to where another clause, a reason or a remark begins, without quotation marks around."""
    return trimmed(_CUT.sub("", " " + words.strip(), count=1))


def trimmed(words: str) -> str:
    """`words` without blanks, commas and quotation marks at its edges; a full stop stays ("Acme Inc.")."""
    bare = words.strip(_EDGES)
    quoted = _SINGLE.match(bare)
    return quoted[1] if quoted else bare


def without_article(words: str) -> str:
    """`words` without an article that is not part of a name: "the billing service", not "The Hague"."""
    found = _ARTICLE.match(words)
    if not found:
        return words
    rest = words[found.end() :]
    title = words[0].isupper() and found.group().lower().strip() in {"the", "a", "an", "la", "il", "le", "i", "lo"}
    big = [word for word in _WORD.findall(rest) if len(word) > 3 or word[0].isupper()]
    whole = bool(big) and all(word[0].isupper() or word[0].isdigit() for word in big) and not rest.isupper()
    return words if title and whole else rest


def is_vague(words: str) -> bool:
    """Whether `words` say nothing by themselves: empty, a pronoun, a judgement, a place of template text."""
    low = words.lower()
    first = low.split(None, 1)[0].strip(",.'’") if low.strip() else ""
    alone = without_article(words).lower().strip(".…")
    return (
        not any(c.isalnum() for c in words)
        or len(words) > LONGEST_VALUE
        or (first in _POINTING and not is_title(words))
        or (first.split("'")[0] in {"i", "it", "that", "we", "you", "he", "she"} and not is_title(words))
        or (low == words and first in _VAGUE and not _QUALIFIES.match(low))
        or alone in _VAGUE
        or alone in _POINTING
        or alone in _PLACEHOLDERS
    )


def is_title(words: str) -> bool:
    """Whether `words` begin like a name of several words, which any word may begin: "One World", but not "My Redis"."""
    parts = words.split(None, 2)
    return len(parts) > 1 and parts[0][0].isupper() and parts[1][0].isupper() and parts[0].lower() not in _POSSESSIVE


def is_noun(words: str, most: int = 8) -> bool:
    """Whether `words` may be a noun phrase: short, without verb, pronoun or clause in it, and not vague."""
    parts = words.split()
    low = {part.strip(",.").replace("’", "'").split("'")[0] for part in parts if part[:1].islower()}
    if words.count("(") != words.count(")"):
        return False
    if _SPEAKER.search(words) and not (is_title(words) and parts[0].lower() not in _PARTICLES):
        return False
    return len(parts) <= most and not is_vague(words) and low.isdisjoint(_CLAUSE) and low.isdisjoint(_POINTING)


def is_hard(words: str) -> bool:
    """Whether `words` name something in particular: with a number, a capital, or the shape of an identifier."""
    if not is_noun(words, 10):
        return False
    parts = [part for part in without_article(words).split() if any(c.isalnum() for c in part)]
    hard = [bool(_HARD.search(part)) or any(c.isupper() for c in part) for part in parts]
    return any(hard) and (hard[0] or len(parts) <= 4)


def begins_well(words: str) -> bool:
    """Whether `words` do not begin with a preposition, an adverb, a participle or a verb."""
    first = words.split(" ", 1)[0].strip(",") if words else ""
    return first not in _PARTICLES and not _PARTICIPLE.match(first)


def begins_well_as_noun(words: str) -> bool:
    """Whether `words` do not begin with a preposition or an adverb; what one likes may be a gerund."""
    return words.split(" ", 1)[0] not in _PARTICLES and " for " not in words


def is_figure(words: str) -> bool:
    """Whether `words` are a number, with a unit at most, or an identifier, a path, an address: a value of anything."""
    return bool(_FIGURE.match(words))


def is_judgement(relation: str) -> bool:
    """Whether a relation is no property: "the best", "the problem", "the point"."""
    return bool(_SUPERLATIVE.search(relation))


def typed(key: str, words: str) -> Value:
    """`words` as a number where they are nothing else; versions, dates, names and leading zeros stay text."""
    if key in DATES or not _TEXT.isdisjoint(key.split()):
        return words
    if _INTEGER.match(words):
        return int(words)
    return float(words) if _FLOAT.match(words) else words
