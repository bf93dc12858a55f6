"""Words by which a sentence tells what it is: a decision, an open point, an end of one, a greeting. Three languages.

Patterns of phrases are for lower-cased text.
"""

from __future__ import annotations

import re
from typing import Final


def _any(*alternatives: str) -> re.Pattern[str]:
    # Of lower-cased text: to ignore case would take four times as long.
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)")


_SETTLED = (
    r"decided|decision|we agreed|agreed (?:on|to|that)|(?:have|has|we|i) chose|chosen|settled on|opted for|approved",
    r"from now on|switch(?:ed|ing) to|we moved? to|(?:ho|abbiamo|è stato|hanno) deciso|decis[oaie] (?:di|che|per)",
    r"(?:is|are|was|were) (?:changed|moved|raised|lowered|renamed|switched|replaced)|decisione|decidiamo|concordato",
    r"siamo d['’]accordo|(?:ho|abbiamo) scelto|scegliamo|sceglieremo|adottiamo|approvat[oa]|passiamo a",
    r"d['’]ora in poi|решил[аио]?|решено|решение|договорились|выбрал[аио]?|выбираем|выбрано|согласовал[аио]?",
    r"согласовано|утвердил[аио]?|утверждено|остановились на|переходим на|перешли на|отныне|с этого момента",
)
DECISION: Final = _any(
    *_SETTLED,
    r"(?:we|i)(?:['’]ll| will| are going to|['’]re going to) (?:use|go with|keep using|switch to|adopt|move to|drop)",
    r"(?:we|i)(?:['’]ll| will) stick (?:with|to)|going with|let['’]s (?:use|go with|keep using|switch to)",
    r"let['’]s stick (?:with|to)|useremo|userò|будем (?:использовать|делать|хранить|держать)|буду использовать",
)
"""That something was settled."""

FIRM_DECISION: Final = _any(*_SETTLED)
"""The same, of which an assistant's explanations ("let's use the second equation") are not full."""

OPEN: Final = _any(
    r"todo|fixme|tbd|need(?:s|ed)? to|have to|has to|next steps?|still (?:need|open|have|missing|to|unclear)",
    r"remaining|left to|pending|blocked|open (?:question|issue|point)s?|to be (?:decided|done|fixed|confirmed)",
    r"unclear|unresolved|figure out|follow[- ]up",
    r"(?:have|has|had) ?n[o'’]t (?:yet )?(?:decided|chosen|fixed|done|tested|heard)|not (?:yet )?decided|not yet",
    r"remember to|waiting (?:for|on)|da fare|resta(?:no)?|rimane|rimangono|manca(?:no)?|bisogna|dobbiamo|devo",
    r"occorre|prossim[oi] pass[oi]|in sospeso|da (?:decidere|verificare|controllare|completare|chiarire)|ancora da",
    r"non (?:\w+ )?ancora|non abbiamo (?:ancora )?deciso|нужно|надо|осталось|оста[её]тся|следующи[йе] шаги?",
    r"предстоит|ещ[её] не|пока не|не реш(?:ено|или)|под вопросом|необходимо|доделать|жд[её]м|открытый вопрос",
)
"""That something is left to do or to settle."""

FIRM_OPEN: Final = _any(
    r"todo|fixme|tbd|next steps?|still (?:need|open|missing)|pending|blocked|open (?:question|issue)s?|not yet",
    r"da fare|resta(?:no)? da|in sospeso|prossimo passo|осталось|следующий шаг|ещ[её] не|под вопросом",
)
"""The same, of which an assistant's advice ("you need to") is not full."""

UNDECIDED: Final = _any(
    r"(?:have|has|had) ?(?:not|n['’]t) (?:yet )?(?:decided|chosen|agreed)|not (?:yet )?(?:been )?decided|undecided",
    r"(?:to|must) decide|no decision|before (?:we|i) decide|non (?:ho|abbiamo) (?:ancora )?deciso|da decidere",
    r"не решил[аи]?|не решено|решить|нет решения",
)
"""That what reads like a decision is none."""

CLOSED: Final = _any(
    r"done|fixed|finished|completed|resolved|solved|merged|closed|deployed|shipped|works now|passed|tested",
    r"fatt[oaie]|finit[oaie]|risolt[oaie]|completat[oaie]|chius[oaie]|testat[oaie]|corrett[oaie]|сделан[оаы]?",
    r"готов[оаы]?|исправлен[оаы]?|исправил[аи]?|заверш[её]н[оаы]?|закрыт[оаы]?|закрыл[аи]?|протестирован[оаы]?",
)
"""That an open point is open no more."""

CHANGE: Final = _any(
    r"instead|no longer|now|changed?|moved?|switch(?:ed|ing)?|replaced?|rather|actually|not any ?more|correction",
    r"renamed|raised|lowered|increased|decreased|updated?|new|invece|ora|adesso|non più|cambiat[oaie]",
    r"spostat[oaie]|passiamo|anzi|correzione|nuov[oaie]|aggiornat[oaie]|вместо|теперь|больше не|изменил[аи]?",
    r"изменили|изменен[оаы]?|перенесли|перенес[её]н[оаы]?|переходим|поправка|нов(?:ый|ая|ое|ые)",
)
"""That what is said takes an older statement's place."""

COURTESY: Final = re.compile(
    r"(?:\W*(?:hi|hey|hello|thanks?|thank you|thx|cheers|bye|goodbye|see you|take care|good (?:morning|evening"
    r"|night|luck)"
    r"|welcome|you['’]re welcome|no problem|sure|ok(?:ay)?|great|awesome|wow|cool|nice|yes|yeah|yep|no|right"
    r"|exactly|indeed"
    r"|congrats|congratulations|sounds (?:good|great)|that['’]s (?:great|awesome|amazing|nice|cool|so \w+)|got it"
    r"|perfect"
    r"|ciao|salve|buon ?giorno|buona ?sera|grazie|prego|va bene|certo|perfetto|ottimo|a presto|arrivederci|sì"
    r"|esatto|figurati"
    r"|привет|здравствуйте|добрый (?:день|вечер)|доброе утро|спасибо|пожалуйста|хорошо|отлично|ладно|понял[аи]?"
    r"|пока|да|ага|супер"
    r")(?!\w))+(?P<rest>(?:\W+\w+){0,5})\W*",
    re.IGNORECASE,
)
"""A greeting, thanks or applause, with a few words after it."""

ASSENT: Final = re.compile(
    r"\W*(?:yes|yeah|yep|no|ok(?:ay)?|sure|right|exactly|sì|esatto|certo|да|нет|ага|хорошо|ладно)(?!\w)", re.IGNORECASE
)
"""The same that answers something: what follows may be the answer."""

BOILERPLATE: Final = re.compile(
    r"\W*(?:certainly|of course|absolutely|great question|good (?:idea|question)|i['’]d be (?:happy|glad)"
    r"|i (?:can|could) help"
    r"|happy to help|glad to help|i hope (?:this|that|you)|let me know|feel free|please (?:let|feel|share"
    r"|provide)|here(?:['’]s| is| are)"
    r"|would you like|do you (?:want|need)|if you (?:need|have any|want|['’]d like)|i understand|i['’]m (?:here"
    r"|sorry|glad)"
    r"|by following|this (?:will|should) help|remember(?:,| that)|it['’]s (?:great|important|always)"
    r"|that['’]s (?:a )?(?:great|good|wonderful)"
    r"|se (?:hai|vuoi)|fammi sapere|spero che|ecco|volentieri|posso aiutar|vuoi che"
    r"|если (?:у вас|хотите|нужн)|дайте знать|надеюсь|конечно|вот |могу помочь|рад помочь|хотите)",
    re.IGNORECASE,
)
"""How assistants begin a sentence that says nothing of the matter."""

_MONTHS_AND_DAYS = """
    january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday gennaio febbraio marzo aprile
    maggio giugno luglio agosto settembre ottobre novembre dicembre lunedì martedì mercoledì giovedì venerdì sabato
    domenica января февраля марта апреля мая июня июля августа сентября октября ноября декабря понедельник вторник
    среда среду четверг пятница пятницу субботу суббота воскресенье январь февраль март апрель май июнь июль август
    сентябрь октябрь ноябрь декабрь"""
_NEARNESS = """
    yesterday today tomorrow tonight weekend week month year last next ago ieri oggi domani stasera settimana mese
    anno scorso scorsa prossimo prossima fa вчера сегодня завтра неделе неделю неделя месяц году год прошлый прошлой
    прошлом назад"""
DATES: Final = frozenset(_MONTHS_AND_DAYS.split()) - {"may", "march", "mar"}
NEAR_DATES: Final = frozenset(_NEARNESS.split())
"""Words that place something in time beside today."""
