"""What somebody who writes Italian says of themselves, their project, and of named things."""

from __future__ import annotations

import re
from typing import Final

from agora.llm.patterns.rules import Rule, a_name, a_place, a_thing, a_tool, a_value, anything, rule

_ADVERB = r"(?: (?:ora|adesso|attualmente|sempre|di solito|soprattutto|solo|anche|ancora|già|davvero|molto|tutti))*"
_R = r"(?P<r>[^,;:]{2,60}?)"
_V = r"(?-i:il |lo |la |l['’]|i |gli |le )?(?P<v>.{1,200})"
_Y = r"(?P<y>.{2,80})"
_ART = r"(?:il |lo |la |l['’]|i |gli |le )"
_DI = r"(?:di |del |dello |della |dell['’]|dei |degli |delle )"
_PER = r"(?:per|come)"
_USE = rf"(?:(?:io |noi )?(?:uso|usiamo|utilizzo|utilizziamo|adopero|adoperiamo)){_ADVERB}"
_LIVE = rf"(?:(?:io |noi )?(?:vivo|viviamo|abito|abitiamo|risiedo)){_ADVERB}"
_SWITCHED = rf"(?:siamo passati|siamo passate|sono passat[oa]|abbiamo migrato|ho migrato|siamo migrati){_ADVERB}"
_NOT = r"(?:al posto di|invece di|anziché)"
_S = r"(?P<s>[^,;:]{2,100}?)"
_PORT = r"(?:sulla porta|alla porta)"

CUE: Final = re.compile(
    r"\b(?:è|era|fu|sono|siamo|sia|mi|mio|mia|miei|mie|nostr[oaie]|ho|abbiamo|ci|(?:us|utilizz|adoper)(?:o|a|iamo)|"
    r"preferi\w+|chiam\w+|viv(?:o|e|iamo)|abit(?:o|a|iamo)|risiedo|lavor(?:o|a)|faccio|vengo|parl(?:o|a)|adoro|amo|"
    r"odio|detesto|ascolta|gira|risponde|trova|ha|dipende)\b",
    re.IGNORECASE,
)
"""One of these words is in every clause that one of these rules matches."""

RULES: Final[tuple[Rule, ...]] = (
    rule("name", rf"mi chiamo {_V}", "name", a_name),
    rule("name", rf"(?:chiamami|chiamatemi|(?:tutti )?mi chiamano|(?:puoi|potete) chiamarmi) {_V}", "name", a_name),
    rule("preferred for", rf"(?:io |noi )?(?:preferisco|preferiamo){_ADVERB} (?P<v>.{{1,80}}?)(?: (?:rispetto a|"
                          rf"piuttosto che|invece di) .{{1,80}}?)?"
         rf" per {_Y}", "preferred for {y}", a_thing),
    rule("preference", rf"(?:io |noi )?(?:preferisco|preferiamo){_ADVERB} (?-i:il |lo |la |l['’]|i |gli |le "
                       rf")?(?P<v>.{{1,80}}?) (?:rispetto (?:a|al|alla|allo|ai|agli|alle)|"
         r"piuttosto che|invece di|al posto di|a|al|alla|ai|alle|agli) "
         r"(?P<o>.{1,80})", "preference", a_thing, multi=True),
    rule("preference", rf"(?:io |noi )?(?:preferisco|preferiamo){_ADVERB} {_V}", "preference", a_thing, multi=True),
    rule("used for", rf"{_USE} (?P<v>.{{1,80}}?) {_PER} {_Y}", "used for {y}", a_thing),
    rule("used for", rf"per {_Y} {_USE} {_V}", "used for {y}", a_thing),
    rule("uses", rf"{_USE} (?P<v>.{{1,60}}?) {_NOT} (?P<o>.{{1,60}})", "uses", a_tool, multi=True),
    rule("uses", rf"{_USE} {_V}", "uses", a_tool, multi=True),
    rule("uses", rf"(?:abbiamo|ho) scelto (?P<v>.{{1,60}}?) {_NOT} (?P<o>.{{1,60}})", "uses", a_tool, multi=True),
    rule("uses", rf"(?:abbiamo|ho) sostituito (?P<o>.{{1,60}}?) con {_V}", "uses", a_tool, multi=True),
    rule("used for", rf"{_SWITCHED}(?: da .{{1,60}}?)? (?:a|ad|al|alla) (?P<v>.{{1,60}}?) "
                     rf"per {_Y}", "used for {y}", a_tool),
    rule("uses", rf"{_SWITCHED} (?:da|dal|dalla|dall['’]) ?(?P<o>.{{1,60}}?) (?:a|ad|al|"
                 rf"alla) {_V}", "uses", a_tool, multi=True),
    rule("uses", rf"{_SWITCHED} (?:a|ad|al|alla) {_V}", "uses", a_tool, multi=True),
    rule("home", rf"{_LIVE} (?:a|ad|in|nel|nella) {_V}", "home", a_place),
    rule("home", rf"(?:mi sono trasferit[oa]|ci siamo trasferiti)(?: da .{{1,60}}?)? (?:a|ad|"
                 rf"in) {_V}", "home", a_place),
    rule("employer", rf"(?:io )?lavoro{_ADVERB} (?:per|da|in|alla|presso|all['’]|nella|al) ?{_V}", "employer", a_place),
    rule("occupation", rf"(?:io )?(?:lavoro{_ADVERB} come|faccio (?:il|lo|la|l['’])) ?{_V}", "occupation", a_thing),
    rule("occupation", r"(?:io )?sono un(?:a|o|['’])? ?(?P<v>[^\W\d_]+(?:tore|trice|ista|iere|iera|ologo|ologa|"
                       r"etto|etta|ciante|gnante)"
         r"|ingegnere|medico|avvocato|studente|studentessa|cuoco|cuoca)(?: .*)?", "occupation", anything),
    rule("origin", rf"(?:io )?(?:sono|vengo) (?:originari[oa] )?(?:di|da) {_V}", "origin", a_place),
    rule("born in", rf"(?:io )?sono nat[oa] (?:a|ad|in) {_V}", "born in", a_place),
    rule("birthday", rf"(?:io )?sono nat[oa] il {_V}", "birthday", a_value),
    rule("age", r"(?:io )?ho (?P<v>\d{1,3}) anni", "age", anything),
    rule("languages", rf"(?:io )?parlo{_ADVERB} (?:l['’])?{_V}", "languages", a_tool, multi=True),
    rule("allergies", rf"(?:io )?sono allergic[oa] (?:a|al|alla|alle|ai|agli|all['’]) "
                      rf"?{_V}", "allergies", a_thing, multi=True),
    rule("diet", r"(?:io )?sono (?P<v>vegan[oa]|vegetarian[oa])(?: .*)?", "diet", anything),
    rule("likes", rf"(?:a me )?(?:mi (?:piace|piacciono)|adoro|amo){_ADVERB} {_ART}?{_V}", "likes", a_tool, multi=True),
    rule("dislikes", rf"(?:odio|detesto){_ADVERB} {_ART}?{_V}", "dislikes", a_tool, multi=True),
    rule("changed", rf"{_ART}?{_R} (?:è (?:stat[oa] )?|sono stat[ei] )(?:spostat|cambiat|rinviat|posticipat|"
                    rf"anticipat|impostat|portat)[oaie]"
         rf"(?: da .{{1,40}}?)? (?:a|al|alla|all['’]|in|su) ?{_V}", "{r}", anything),
    rule("own", rf"{_ART}?(?:mio|mia|miei|mie|nostro|nostra|nostri|nostre) {_R} (?:è|sono|si "
                rf"chiama) {_V}", "{r}", anything),
    rule("port of", rf"{_S} (?:ascolta|gira|è in ascolto|risponde) {_PORT} (?P<v>\d{{2,5}})", "port", a_value),
    rule("born in", rf"{_S} (?:è|era) nat[oa] (?:a|ad|in|nel|nella) {_V}", "born in", a_place),
    rule("died in", rf"{_S} (?:è|era) mort[oa] (?:a|ad|in|nel|nella) {_V}", "died in", a_place),
    rule("passive", rf"{_S} (?:è|era|fu|è stat[oa]) scritt[oa] da {_V}", "written by", a_place),
    rule("passive", rf"{_S} (?:è|era|fu|è stat[oa]) fondat[oa] da {_V}", "founded by", a_place),
    rule("passive", rf"{_S} (?:è|era|fu|è stat[oa]) (?:creat|realizzat|inventat)[oa] da {_V}", "created by", a_place),
    rule("written in", rf"{_S} (?:è|era) scritt[oa] in {_V}", "written in", a_place),
    rule("located in", rf"{_S} (?:si trova|ha sede) (?:a|ad|in|nel|nella) {_V}", "located in", a_place),
    rule("lives in", rf"{_S} (?:vive|abita) (?:a|ad|in|nel|nella) {_V}", "home", a_place),
    rule("works for", rf"{_S} lavora (?:per|presso|da|alla|in) {_V}", "employer", a_place),
    rule("uses for", rf"{_S} (?:usa|utilizza) (?P<v>[^,]{{1,80}}?) {_PER} {_Y}", "used for {y}", a_tool),
    rule("uses it", rf"{_S} (?:usa|utilizza) {_V}", "uses", a_tool, multi=True),
    rule("speaks", rf"{_S} parla (?:l['’])?{_V}", "languages", a_tool, multi=True),
    rule("prefers", rf"{_S} preferisce {_V}", "preference", a_tool, multi=True),
    rule("depends on", rf"{_S} dipende da {_V}", "depends on", a_tool, multi=True),
    rule("relation of", rf"{_ART}{_R} {_DI}{_S} (?:è|era|sono) {_V}", "{r}", anything, sure=False),
    rule("the", rf"{_ART}{_R} (?:è|sono|è impostat[oa] a) {_V}", "{r}", anything, sure=False),
)  # fmt: skip
