"""Orders to drop what the agent was told before, in six languages."""

from __future__ import annotations

from agora.suspicion.rule import G1, G2, G3, G5, Rule

_DROP = (
    r"(?<!not )(?<!n't )(?<!never )\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overlook|neglect|disobey"
    r"|do(?:n't| not) (?:listen to|follow|obey|comply with|pay attention to))"
)
_GIVEN = (
    "(?:previous(?:ly)?|prior|preceding|earlier|above|foregoing|initial|original|your|system|safety|security|developer)"
)
_ORDERS = (
    r"(?:instructions?|directives?|orders|rules|guidelines|prompts?|guardrails?|polic(?:y|ies)|commands|restrictions"
    r"|constraints|programming|training|conditioning)\b"
)

OVERRIDES: tuple[Rule, ...] = (
    Rule(
        "override",
        (
            "ignor",
            "disregard",
            "forget",
            "overlook",
            "neglect",
            "disobey",
            "overrid",
            "listen to",
            "follow",
            "obey",
            "comply",
            "attention",
        ),
        rf"{_DROP}(?:{G3}{_GIVEN}{G3}{_ORDERS}"
        r"| (?:all |any |every )?(?:of )?(?:the |these |those |your |my )?(?:above|previous|prior)"
        r"(?: (?:and|text|stuff|messages?)\b|[.,;:!]|$)"
        rf"|{G1}(?:(?:everything|everthing|all|anything|what|whatever)(?: that)?(?: of)?(?: the [a-z]+)?"
        rf" (?:you|you've|i|we|they)\b{G3}(?:told|instructed|said|taught|learned|read|given|got|received)"
        r"|(?:all |any )(?:the |these |those |of |other )*"
        r"(?:(?:instructions|guidelines|directives)\b(?: (?:you|that|and|given)|[.,;:!]|$)|rules\b (?:that )?you\b)))"
        rf"|\boverrid(?:e|ing) (?:all |any |the |your )*(?:safety|security|previous|prior|original|your"
        rf"|all)\b{G2}{_ORDERS}"
        rf"|\bforgotten{G3}(?:rules|instructions)\b"
        rf"|\b(?:new|real|actual) (?:system )?instructions:",
    ),
    Rule(
        "override",
        ("ignora", "dimentica", "istruzioni", "trascura", "scorda"),
        rf"(?<!non )\b(?:ignora(?:re|te)?|dimentica(?:re|te|ti)?|trascura(?:re|te)?|scorda(?:re|te|ti)?"
        rf"|non seguire){G3}"
        rf"(?:(?:istruzioni|regole|direttive|indicazioni|comandi|ordini|prompt)\b(?:{G2}(?:preceden\w+"
        rf"|di sistema|ricevut\w+|sopra|inizial\w+|dat[eai])|[.,;:!]|$)"
        rf"|preceden\w+{G2}(?:istruzioni|regole|direttive|indicazioni|ordini)"
        rf"|(?:tutto|ciò|quello|quanto){G5}(?:detto|scritto|ordinato|istruito|insegnato))"
        rf"|\b(?:tue|vostre) (?:istruzioni|regole)\b(?:[.,;:!]| precedenti)",
    ),
    Rule(
        "override",
        ("игнорир", "забуд", "пренебре", "не следуй", "отмени"),
        rf"(?<!не )\b(?:проигнорируй(?:те)?|игнорируй(?:те)?|игнорировать|забудь(?:те)?|пренебрег\w+"
        rf"|отмени(?:те)?|не следуй(?:те)?){G3}"
        rf"(?:инструкци\w+|указани\w+|правил\w*|команд\w*|директив\w*|приказ\w*|распоряжени\w+"
        rf"|(?:все|всё|то)\b{G3}(?:говорили|сказали|сказано|велели|написано|было|получил\w*))",
    ),
    Rule(
        "override",
        ("ignore", "oublie", "néglige", "instructions", "consignes"),
        rf"(?<!pas )\b(?:ignor(?:e|er|ez|ons)|oubli(?:e|er|ez)|néglige[rz]?|ne (?:suis|suivez) pas){G3}"
        rf"(?:(?:instructions|consignes|directives|règles|ordres|indications)\b(?:{G1}(?:précédent\w*"
        rf"|antérieur\w*|ci-dessus|reçu\w*|du système)|[.,;:!]|$)"
        rf"|précédent\w*{G2}(?:instructions|consignes|directives|règles)|tout ce (?:qu|que){G5}(?:dit"
        rf"|reçu|appris|demandé|instructions))"
        rf"|\b(?:oublie[zr]?|ignore[zr]?) (?:vos|tes) (?:instructions|consignes|règles)",
    ),
    Rule(
        "override",
        ("ignor", "olvid", "instrucciones", "desatiende", "omite"),
        rf"(?<!no )\b(?:ignor(?:a|ar|e|en)|olv[ií]d(?:a|ar|e|ate|ese)|olvíd(?:ate|ese)|desatiende|omite){G5}"
        rf"(?:(?:instrucciones|reglas|directivas|directrices|órdenes"
        rf"|indicaciones)\b(?:{G3}(?:anterior\w*|previas|dadas|que te|arriba|del sistema)|[.,;:!]|$)"
        rf"|anteriores{G1}(?:instrucciones|reglas)|todo lo{G5}(?:dicho|dijeron|dijo|aprendido|anterior))",
    ),
    Rule(
        "override",
        ("ignorier", "missacht", "vergiss", "vergessen sie", "anweisung"),
        rf"\b(?:ignorier(?:e|en|t)|missacht(?:e|en|et)|vergiss(?! nicht)|vergesst(?! nicht)|vergessen sie"
        rf"|übergeh(?:e|en)){G5}"
        rf"(?:anweisungen|anordnungen|regeln|vorgaben|richtlinien|befehle|instruktionen"
        rf"|alles{G5}(?:gesagt|gelernt|mitgeteilt|beigebracht))\b",
    ),
)
