"""Lists by which `agora.text.claims` tells a plain statement of a value from anything else."""

from __future__ import annotations

from decimal import Decimal
from typing import Final


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


COPULAS: Final = frozenset(_words("is are equals = : è sono ist sind est sont es son é são это равен равно"))
"""Between an attribute and its value, in the present."""

NOUNS: Final = frozenset(
    _words(
        "port ports timeout ttl limit version size retries attempts interval threshold concurrency replicas",
        "workers threads dimension porta versione limite versión порт версия таймаут лимит",
    )
)
"""Attributes whose value follows without a copula: "port 5432", "timeout of 30 s"."""

BETWEEN: Final = frozenset(_words("set to of now currently the a an exactly still at impostato impostata"))
"""May stand between a copula or an attribute and the value."""

FILLERS: Final = frozenset(
    _words(
        "set now currently exactly still use uses using used listens listening runs running has have",
        "configured config setting value file function class module method fyi note confirmed usa ascolta",
        "uses: requires",
    )
)
"""Words of content that say nothing about which attribute is meant."""

DOUBTS: Final = frozenset(
    _words(
        "not no never none neither nor without cannot except unless if when whenever should shall might may",
        "could would can must want wants wanted need needs try tried tries maybe perhaps probably possibly",
        "likely about around roughly approximately approx circa almost nearly least most more less than over",
        "under between from was were had old older previous previously former formerly before after until",
        "since ago earlier yesterday tomorrow later will planned plan plans plans: proposal proposed suggest",
        "suggested todo change changed changes changing raise raised lower lowered increase increased",
        "decrease decreased bumped bump instead rather or either versus vs example eg e.g e.g. sometimes",
        "often usually seems seem think thought assume assumed unknown unclear up maximum minimum failed",
        "fails fail wrong incorrect invalid stale outdated deprecated claims said says non mai senza se",
        "quando forse circa era erano prima dopo oppure o vecchio vecchia dovrebbe potrebbe cambiato nicht",
        "kein keine nie ohne wenn falls vielleicht etwa war waren vorher oder alt sollte könnte pas jamais",
        "sans si quand peut-être environ était avant après ou ancien devrait pourrait nunca sin cuando quizás",
        "era antes después viejo debería podría não sem talvez antigo не ни нет никогда без если когда может",
        "возможно примерно около был была было раньше или старый должен",
    )
)
"""A sentence with one of these makes no claim: denied, guessed, wished, conditional, or of another time."""

SWITCHES: Final = {
    **dict.fromkeys(_words("true enabled on yes abilitato abilitata attivo включено включён включен"), "on"),
    **dict.fromkeys(
        _words("false disabled off disabilitato disabilitata отключено отключён отключен выключено"), "off"
    ),
}

_SECOND, _MINUTE, _HOUR = Decimal(1000), Decimal(60_000), Decimal(3_600_000)
UNITS: Final = {
    **dict.fromkeys(_words("ms msec millisecond milliseconds millisecondi мс"), ("time", Decimal(1))),
    **dict.fromkeys(_words("s sec secs second seconds secondi secondo sekunden сек секунд секунды"), ("time", _SECOND)),
    **dict.fromkeys(_words("min mins minute minutes minuti minuto minuten мин минут минуты"), ("time", _MINUTE)),
    **dict.fromkeys(_words("h hr hrs hour hours ore ora stunden час часа часов"), ("time", _HOUR)),
    **dict.fromkeys(_words("d day days giorni giorno tage день дня дней"), ("time", 24 * _HOUR)),
    # A megabyte is sometimes one and sometimes the other: these two never meet.
    **{unit: ("bytes by 1000", Decimal(1000) ** n) for n, unit in enumerate(("b", "kb", "mb", "gb", "tb"))},
    **{unit: ("bytes by 1024", Decimal(1024) ** n) for n, unit in enumerate(("", "kib", "mib", "gib", "tib")) if unit},
    "%": ("percent", Decimal(1)),
    "percent": ("percent", Decimal(1)),
}
"""Units, folded: what is measured, and by how much to multiply."""
