from __future__ import annotations

import re
from typing import Final

from agora.llm.patterns.vocabulary import words
from agora.text.normal import folded

_SAME = {
    "name": "full name, first name, nome, nome completo, имя, полное имя",
    "nickname": "soprannome, прозвище, ник",
    "port": "port number, porta, порт, номер порта",
    "deadline": "due date, cut-off date, scadenza, data di scadenza, termine, data di consegna, дедлайн, срок, "
    "крайний срок, срок сдачи, дата сдачи",
    "employer": "datore di lavoro, работодатель",
    "occupation": "job, profession, job title, lavoro, professione, mestiere, профессия, должность",
    "home": "home town, hometown, casa, città di residenza, дом, город проживания",
    "birthday": "date of birth, birth date, compleanno, data di nascita, день рождения, дата рождения",
    "birthplace": "place of birth, luogo di nascita, место рождения",
    "age": "età, возраст",
    "email": "e-mail, email address, e-mail address, indirizzo email, indirizzo e-mail, почта, электронная почта",
    "phone": "phone number, telephone number, numero di telefono, telefono, телефон, номер телефона",
    "address": "indirizzo, адрес",
    "time zone": "timezone, fuso orario, часовой пояс",
    "language": "lingua, linguaggio, язык",
    "programming language": "linguaggio di programmazione, язык программирования",
    "capital": "capital city, capitale, столица",
    "author": "writer, autore, autrice, автор",
    "director": "regista, direttore, direttrice, режиссёр, режиссер, директор",
    "founder": "fondatore, fondatrice, основатель, основательница",
    "owner": "proprietario, proprietaria, titolare, владелец, владелица",
    "manager": "responsabile, boss, capo, начальник, руководитель, менеджер",
    "spouse": "wife, husband, moglie, marito, жена, муж, супруг, супруга",
    "son": "figlio, сын",
    "daughter": "figlia, дочь",
    "mother": "mom, mum, madre, mamma, мать, мама",
    "father": "dad, padre, papà, отец, папа",
    "dog": "cane, собака, пёс",
    "cat": "gatto, gatta, кот, кошка",
    "version": "versione, версия",
    "host": "hostname, host name, хост, имя хоста",
    "database": "db, base di dati, база данных, бд",
    "branch": "default branch, main branch, ramo principale, основная ветка",
    "headquarters": "head office, sede, sede centrale, штаб-квартира",
    "budget": "бюджет",
    "team": "squadra, команда",
    "editor": "text editor, code editor, редактор",
    "timeout": "time-out, таймаут, тайм-аут",
    "limit": "limite, лимит",
    "population": "popolazione, население",
    "currency": "valuta, moneta, валюта",
    "color": "colour, colore, цвет",
    "license": "licence, licenza, лицензия",
    "diet": "dieta, диета",
    "nationality": "nazionalità, национальность",
    "religion": "religione, религия",
    "ceo": "chief executive officer, amministratore delegato, генеральный директор",
    "president": "presidente, президент",
    "mayor": "sindaco, мэр",
    "goal": "obiettivo, цель",
    "stack": "tech stack, technology stack, стек",
    "operating system": "os, sistema operativo, операционная система",
    "password manager": "gestore di password, менеджер паролей",
    "hobby": "passatempo, хобби",
    "genre": "genere, жанр",
    "official language": "lingua ufficiale, официальный язык, государственный язык",
    "package manager": "gestore di pacchetti, менеджер пакетов",
}
_CANONICAL: Final = {folded(word.strip()): key for key, words in _SAME.items() for word in (key, *words.split(","))}
DATES: Final = frozenset({"deadline", "birthday"})
"""Relations whose value stays as written, even where it is a number."""

_PREFERRED = re.compile(
    r"^(?:favou?rite|preferred|favorit[oai]|preferit[oaie]|любим(?:ый|ая|ое|ые)) (.+)|^(.+) (?:preferit[oaie]|"
    r"favorit[oaie])$"
)
_LEADING = re.compile(
    r"^(?:the|a|an|our|my|your|its|current|actual|new|latest|present|il|lo|la|l['’]|i|gli|le|un|uno|una|un['’]|"
    r"attuale|nuov[oa]|mi[oa]|nostr[oa]|текущ\w+|нов(?:ый|ая|ое)|наш\w?|мо[йяё])(?:\s+|(?<=['’]))"
)
_TRAILING = re.compile(r" (?:attuale|nuov[oa]|corrente)$")

SOFT: Final = words(
    "home occupation diet hobby genre language religion nationality color goal team stack currency time zone",
    "deadline editor database license branch host name budget operating system package manager role industry",
    "field sport position instrument style theme default mode policy strategy convention pronouns blood type",
    "handle framework",
)
"""Relations whose last word shows that any short noun phrase is a value."""


def relation(words: str) -> str:
    """The key of a relation as it is written in `words`: the same for what this table knows to mean the same."""
    key = " ".join(folded(words).replace("’", "'").split()).strip(" ,;:'\"«»")
    while (bare := _LEADING.sub("", key, count=1)) != key and bare:
        key = bare
    key = _TRAILING.sub("", key)
    key = re.sub(r"'s name$", "", key)
    if key in _CANONICAL:
        return _CANONICAL[key]
    if preferred := _PREFERRED.match(key):
        return f"preferred {relation(preferred[1] or preferred[2])}"
    return key


def is_secret(key: str) -> bool:
    """Whether a value of this relation is not for everybody to recall."""
    return key.rsplit(None, 1)[-1] in _SECRET


def takes_any_noun(key: str) -> bool:
    """Whether the value of this relation need not look like a name, a number or a date."""
    words = key.split()
    return key.startswith("preferred ") or words[-1] in SOFT or words[0] in {"type", "kind", "name", "sort", "genre"}


_SECRET: Final = words(
    "password passphrase passcode secret token pin credential credentials segreto пароль токен секрет пин-код"
)
_KNOWN: Final = frozenset(_SAME) | words(
    "coach chair chairman chairwoman chairperson leader lead maintainer server broker registry provider url",
    "endpoint bucket region library tool vendor client customer contact mascot slogan motto codename captain king",
    "queen ruler head governor secretary minister chancellor broadcaster publisher developer creator inventor",
    "composer producer singer performer designer architect teacher doctor dentist sponsor successor predecessor",
    "birthplace residence flag anthem sister brother friend roommate landlord username login domain namespace",
    "cluster key cache queue frontend backend runtime compiler linter formatter shell terminal browser keyboard",
    "laptop phone car school university company street",
)


def is_known(key: str) -> bool:
    """Whether `key` is a relation that one thing has to another, so that a bare name is a value of it."""
    return key in _KNOWN or key.rsplit(maxsplit=1)[-1] in _KNOWN or takes_any_noun(key)
