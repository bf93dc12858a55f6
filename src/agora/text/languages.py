from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

# Of our own making: articles, prepositions, pronouns, conjunctions, forms of "to be" and "to have".
_WORDS = {
    "en": """
        a an and are as at be been but by can could did do does for from had has have he her his how i if in
        into is it its me my no not of on or our she should so than that the their them then there these
        they this to us was we were what when where which who why will with would you your""",
    "it": """
        a ai al alla alle anche che chi ci come con cui da dai dal dalla degli dei del della delle dello di
        dove e ed era essere fra gli ha hanno i il in io la le lo loro ma mi nei nel nella non o per perché
        più qual quale quando quello questa questo se si sono su sua suo sul sulla tra un una uno è""",
    "de": """
        aber als am an auch auf aus bei bin bis das dass dem den der des die doch durch ein eine einem einen
        einer er es für hat haben ich ihr im in ist kann kein man mit nach nicht noch nur ob oder sein sich
        sie sind so um und uns vom von vor war warum was wenn werden wie wir wird wo zu zum zur über""",
    "fr": """
        au aux avec ce ces cette comme dans de des du elle en est et il ils je la le les leur lui mais me ne
        nous on ont ou par pas plus pour pourquoi qu quand que qui sa se ses si son sont sur un une vous y à
        être où""",
    "es": """
        a al como con cuando de del desde donde el ella en entre era es esta este está fue ha han hay la las
        le lo los me mi muy más no o para pero por porque que qué se si sin sobre son su sus también un una
        y ya""",
    "pt": """
        a ao aos as com como da das de do dos e ela ele em entre era essa esse esta este está eu foi há isso
        já mais mas me meu muito na nas no nos não o os ou para pela pelo por porque quando que se sem ser
        seu sua são também tem um uma é""",
    "nl": """
        aan als bij dan dat de deze die dit door een en er had heb heeft het hij hoe ik in is je kan maar me
        met mijn naar niet nog of om ook op over te tot uit van voor waar waarom want was wat we wel werd
        wij worden zal ze zich zijn zo zou""",
    "ru": """
        а без бы был была были было в во вот вы да для до его ее если есть же за и из или их к как какой
        когда который ли мы на над не него но ну о об он она они от по под при с со так также там то только
        у уже чем что чтобы эта эти это этот я""",
}
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""Function words by language."""

STOP_WORDS = frozenset().union(*FUNCTION_WORDS.values())
"""Every function word of every language."""

_HOMONYMS = """
    ai bin chi ci come dan der die door dos em era es ha hat hay io man met net op os over par plus pour
    sa ser sin son su sul us van war"""
_CONTENT_ELSEWHERE = frozenset(_HOMONYMS.split())
"""Function words of one language that name things in another: AI, CI, IO, the OS, a door, a war."""

_WEB = frozenset({"http", "https", "www"})

COMMON = STOP_WORDS - _CONTENT_ELSEWHERE | _WEB
"""Words that say little about what a text is about, in any of the languages."""

# Ends of words that one language has and the others hardly; for texts too short to hold function words.
_ENDINGS = {
    "en": "(?:ing|ness|less|able|ally)$",
    "it": "(?:zion[ei]|bil[ei]|ità|aggio|[ae]ndo|tor[ei]|chiave|zza)$",
    "de": "(?:ung|ungen|keit|heit|heiten|schaft|lich|liche[rnsm]?)$|[äöü]",
    "fr": "(?:eux|euse|ité|ités|ée|ées|és)$|[êîûœ]",
    "es": "(?:ci[oó]n|ciones|idad|idades)$|ñ",
    "pt": "(?:ção|ções|ões|dade|dades|agem)$|ã",
    "nl": "(?:heid|heden|lijk|lijke|ingen)$",
}
_ENDING = {language: re.compile(ending) for language, ending in _ENDINGS.items()}

_READ = 400
"""Words that are looked at: enough to decide, and a long text costs no more."""

_LONGEST = 40
"""Characters of what may be a word; a cache must not keep longer data."""


def latin_languages(words: Iterable[str]) -> tuple[str, ...]:
    """The languages whose stems a text in Latin script gets: the likeliest, and English beside it.

    English stays because technical texts in every language are full of English words. Without evidence it is
    English alone; ties go to English, then in the order of `FUNCTION_WORDS`.
    """
    votes = Counter(vote for word in islice(words, _READ) if len(word) <= _LONGEST for vote in _votes(word))
    best = max(_ENDINGS, key=lambda language: votes[language])
    return ("en",) if best == "en" else (best, "en")


@lru_cache(maxsize=8192)
def _votes(word: str) -> tuple[str, ...]:
    lower = word.lower()
    spoken = tuple(language for language in _ENDINGS if lower in FUNCTION_WORDS[language])
    if spoken or len(lower) < 5:
        return spoken
    return tuple(language for language, ending in _ENDING.items() if ending.search(lower))
