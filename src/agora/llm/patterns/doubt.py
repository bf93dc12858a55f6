from __future__ import annotations

import re
from typing import Final

from agora.llm.patterns.vocabulary import words

_WORD = re.compile(r"(?<![\w.@/:-])[^\W\d_]+(?:['’][^\W\d_]+)?(?![.@/:-]?\w)")


GUESSED: Final = {
    "en": words(
        "if unless whether maybe perhaps possibly probably likely presumably apparently supposedly allegedly would",
        "should could might may must shall suppose supposed assume assuming assumed imagine imagining pretend wish",
        "hope hopefully hoping guess guessing seem seems seemed think thinking thought believe believed suspect",
        "suspected wonder wondering doubt unsure consider considering considered propose proposed suggest suggested",
        "say says said saying tells told asked asks claims claimed according reportedly rumour rumor example instance",
        "hypothetically otherwise whenever will going gonna want wants wanted trying planning plans plan expect",
        "expected feels felt looks looked sounds almost nearly feel lets let's let else sometimes ideally",
        "theoretically once i'd we'd i'll we'll you'd it'd till until someday eventually joking kidding",
    ),
    "it": words(
        "se forse magari probabilmente possibilmente eventualmente potrebbe potrei potremmo potrebbero dovrebbe",
        "dovrei dovremmo dovrebbero vorrei vorremmo vorrebbe sarebbe sarei avrebbe avrei avremmo penso pensiamo",
        "pensavo credo crediamo credevo suppongo supponiamo immagino sembra sembrano pare sembrava dice dicono detto",
        "secondo ipotesi qualora purché altrimenti esempio deve devono bisogna occorre sarà spero speriamo dubito",
        "finché quando vuole vogliamo voglio proviamo pensando valutando",
    ),
    "ru": words(
        "если наверное наверно кажется может могут могло возможно вероятно думаю думаем думал полагаю считаю бы вдруг",
        "должен должна должно должны нужно надо следует сказал сказала сказали говорит говорят якобы вроде видимо",
        "допустим предположим например пусть похоже будет буду будем хочу хотим хочет надеюсь скорее либо иначе когда",
        "чтобы хотел хотела попробуем планируем предлагаю сомневаюсь пример",
    ),
}
"""A sentence with one of these states nothing: it is guessed, wished, ordered, planned, conditional, or hearsay."""

DENIED: Final = {
    "en": words("not no never none neither nor nobody nothing cannot nowhere hardly barely"),
    "it": words("non no mai nessuno nessuna niente nulla né neanche nemmeno"),
    "ru": words("не нет ни никогда никто ничего нельзя"),
}
"""A sentence with one of these denies; only the rules about what has ended read it."""

_CONDITIONS = words(
    "if unless whether maybe perhaps possibly probably likely presumably apparently suppose assume assuming when",
    "se forse magari probabilmente если наверное наверно кажется возможно вероятно может",
)

PASSING: Final = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:this|last|next|every|that) (?:morning|afternoon|evening|night|week|"
    r"weekend|month|time|year|day)|ago|just|again|right now|for now|at the moment|ieri|oggi|domani|stasera|"
    r"stamattina|adesso|вчера|сегодня|завтра|сейчас)\b"
)
"""What happened or holds for a moment is no property of a thing."""


def guessed(sentence: str, language: str) -> bool:
    """Whether `sentence` does not say that anything is so: a guess, a wish, a condition, an order, hearsay.

    Words in capitals count only at the beginning: inside they are parts of names ("Free to Be Brave").
    """
    words = _WORD.findall(sentence.replace("’", "'"))
    if not words or not GUESSED[language].isdisjoint(words):
        return bool(words)
    # "Will Harper", "May Fields": a name goes on in capitals; a condition may do so too.
    named = len(words) > 1 and words[1][0].isupper() and words[0].lower() not in _CONDITIONS
    return not named and words[0].lower() in GUESSED[language]


def denied(sentence: str, language: str) -> bool:
    """Whether `sentence` says that something is not so."""
    plain = sentence.replace("’", "'")
    words = _WORD.findall(plain)
    return bool(words) and (
        words[0].lower() in DENIED[language] or not DENIED[language].isdisjoint(words) or "n't" in plain
    )
