from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agora.llm.patterns import doubt, english, italian, named, phrases, russian
from agora.llm.patterns.rules import Found, applied
from agora.llm.patterns.sentences import sentences
from agora.model.deadline import Deadline
from agora.model.fact import Extracted
from agora.ports.extractor import Extraction

MOST = 100
"""Facts of one text."""

_LABEL = re.compile(
    r"(?:(?:user |project )?(?:decision|decided|note|update|updated|fyi|config|configuration|fact|correction|"
    r"reminder|preference|info|remember|convention|context|user|me|decisione|nota|aggiornamento|convenzione|"
    r"promemoria|preferenza|решение|решено|заметка|обновление|важно|запомни|ps|p\.s\.))(?: \([^()]{1,40}\))?:\s+",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:by the way|btw|also|actually|yes|yeah|yep|ok|okay|so|well|and|but|oh|sure|thanks|great|right|fyi|for the "
    r"record|just so you know|for your information|from now on|as of (?:today|now)|note that|please note(?: that)?|"
    r"remember(?: that)?|keep in mind that|in (?:this|our) (?:project|repo|repository|team)|for this project|these "
    r"days|currently|now|a proposito|comunque|allora|sì|inoltre|tra l['’]altro|da ora in poi|d['’]ora in poi|"
    r"ricorda che|nota che|in questo progetto|adesso|ora|кстати|также|да|итак|вообще|ещё|еще|на самом деле|"
    r"запомни(?: что)?|учти|теперь|отныне|в этом проекте|сейчас)(?:,\s*(?:che |что )?|\s+)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hi|hello|hey|ciao|salve|buongiorno|привет|здравствуйте)(?: [^\W\d_]+)?(?: there)?[,!.]\s+", re.IGNORECASE
)
_CLAUSES = re.compile(
    r",\s+(?=(?:I (?:live|work|use|prefer|speak)|my)\b)|,?\s+(?:and|but)\s+(?=(?:I|we|my|our|I'm|you can call|"
    r"everyone calls)\b)|,?\s+(?:e|ma|ed)\s+(?=(?:il mio|la mia|il nostro|la nostra|vivo|abito|lavoro|uso|usiamo|"
    r"preferisco|mi chiamo|ho|sono|non|parlo)\b)|(?:,\s+(?:(?:и|а|но)\s+)?|\s+(?:и|а|но)\s+)(?=(?:я|мы|мой|моя|наш|"
    r"наша|меня|живу|работаю|использую|используем|предпочитаю)\b)"
)
_CONTRAST = re.compile(r"(?:,|\s[—–-])\s(?:and not|not|e non|non|а не|не)\s.*$|\s(?:and not|e non)\s.*$")
_EMPHASIS = re.compile(r"(?<![\w*/])\*([^\s*][^*]{0,80})\*(?![\w*])")
_DROPPED = re.compile(
    r",?\s(?:(?:and )?not (?P<en>[^,]{1,60}?)(?:,? any ?more)?|(?:e )?non (?:più )?(?P<it>[^,]{1,60})|"
    r"(?:а )?(?:больше )?не (?P<ru>[^,]{1,60}?)(?: больше)?)$"
)
"""The other half of "we use X, not Y" and of "not Y any more"."""
_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)

_ENDED: Final = (
    (
        re.compile(r"\b(?:no longer|not)\b(?P<between>.*?)\s*,?\s*\b(?:any ?more|any longer)\b", re.IGNORECASE),
        r"\g<between>",
    ),
    (re.compile(r"\bno longer ", re.IGNORECASE), ""),
    (re.compile(r"\b(?:non|Non) (?P<verb>\S+(?: \S+)??) più\b"), r"\g<verb>"),
    (re.compile(r"\b(?:больше|Больше)(?: уже)? не "), ""),
    (re.compile(r"\b(?:не|Не) (?P<verb>\S+) больше\b"), r"\g<verb>"),
)
_AUXILIARY: Final = (
    (re.compile(r"\b(I|[Ww]e|[Tt]hey) (?:do not|don['’]t) "), r"\1 not "),
    (re.compile(r"\b(?:does not|doesn['’]t) (?P<verb>\w+?)(?P<es>(?<=[sxh])|)(?= )"), r"not \g<verb>s"),
    (re.compile(r"\b(is|are|was|am)n['’]t\b"), r"\1 not"),
    (re.compile(r"\b([Ww]e|[Tt]hey)['’]re not\b"), r"\1 are not"),
    (re.compile(r"\bI['’]m not\b"), "I am not"),
)


_STOPS = re.compile("using|usare|использовать")
_STOPPED: Final = (
    (re.compile(r"\b(I|[Ww]e|[Tt]hey)(?:['’]ve| have)? (?:stopped|quit|given up) using\b"), r"\1 use"),
    (re.compile(r"(?: has)? (?:stopped|quit|given up) using\b"), " uses"),
    (re.compile(r"\b(?:[Hh]o|[Aa]bbiamo) smesso di usare\b"), "usiamo"),
    (re.compile(r"\b(?:[Пп]ерестал[аи]?) использовать\b"), "используем"),
)


class PatternExtractor:
    """Finds what a text states plainly, by rules for English, Italian and Russian. No model, no state, thread-safe.

    Precision comes before recall: a sentence that asks, guesses, orders, denies, quotes or waits to be filled in gives
    nothing, and neither does one that no rule knows. Time grows with the length of the text; at most `MOST` facts.
    """

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        """The facts of `text`, in its order; every quote is the sentence as it stands there.

        Raises: DeadlineExceeded, Cancelled.
        """
        facts: list[Extracted] = []
        last: dict[tuple[str | None, str, str | None], tuple[str, bool]] = {}
        for sentence in sentences(text):
            deadline.check()
            for found in _read(sentence):
                # Said again is found once; but after another value it is news that the first one is back.
                place = (found.subject, found.key, found.value if found.multi else None)
                if last.get(place) == (found.value, found.ended):
                    continue
                last[place] = (found.value, found.ended)
                fact = Extracted(
                    subject=found.subject,
                    key=found.key,
                    value=phrases.typed(found.key, found.value),
                    quote=sentence,
                    ended=found.ended,
                    multi=found.multi,
                    about={"rule": found.rule},
                )
                facts.append(fact)
                if len(facts) == MOST:
                    return Extraction(tuple(facts), "patterns")
        return Extraction(tuple(facts), "patterns")


def _read(sentence: str) -> Iterator[Found]:
    plain = _opened(_EMPHASIS.sub(r"\1", sentence.replace("**", "")).rstrip("\"'”’»)* "))
    languages = ("ru",) if _CYRILLIC.search(plain) else ("en", "it") if italian.CUE.search(plain) else ("en",)
    for language in languages:
        for part in plain.split("; "):
            if not doubt.guessed(part, language):
                for clause in _CLAUSES.split(part):
                    yield from _stated(clause.strip(" ,"), language)


def _opened(sentence: str) -> str:
    """`sentence` without label, greeting and words that only lead up to what it says, and without its last mark."""
    sentence = sentence.rstrip("! ").removesuffix(".")
    for opening in (_LABEL, _OPENING, _OPENING, _LABEL):
        match = opening.match(sentence)
        if match and match.end() < len(sentence):
            sentence = sentence[match.end() :]
    return sentence


def _stated(clause: str, language: str) -> Iterator[Found]:
    whole, clause = clause, " ".join(_CONTRAST.sub("", clause).split())
    positive = clause
    for pattern, plain in _STOPPED if _STOPS.search(clause) else ():
        positive = pattern.sub(plain, positive, count=1)
    for pattern, plain in (*_AUXILIARY, *_ENDED) if doubt.denied(clause, language) else ():
        positive = pattern.sub(plain, positive, count=1)
    positive = " ".join(positive.split())
    if doubt.denied(positive, language):
        return
    for each in _facts(positive, language):
        if positive == clause:
            yield each
            dropped = _DROPPED.search(whole) if each.multi else None
            old = phrases.cut(next(filter(None, dropped.groups()))) if dropped else ""
            if phrases.is_noun(old, 4):
                yield Found(each.subject, each.key, old, each.rule, ended=True, multi=True)
        elif not each.ended:
            yield Found(each.subject, each.key, each.value, each.rule, ended=True, multi=each.multi)


def _facts(clause: str, language: str) -> Iterator[Found]:
    if language == "ru":
        yield from applied(russian.RULES, clause)
    elif language == "it":
        yield from applied(italian.RULES, clause)
    else:
        own = _own(clause)
        yield from own or named.found(clause)


def _own(clause: str) -> tuple[Found, ...]:
    if not english.CUE.match(clause):
        return ()
    found = [each for rules in (english.RULES, english.ROLES, english.BESIDE) for each in applied(rules, clause)]
    greeted = _GREETING.match(clause)
    if not found and greeted:
        found = list(applied(english.RULES, clause[greeted.end() :]))
    return tuple(found)
