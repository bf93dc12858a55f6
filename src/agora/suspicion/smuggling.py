"""Orders in a code, and what is to be sent away."""

from __future__ import annotations

from agora.suspicion.rule import G2, G3, G5, G8, Rule

SMUGGLES: tuple[Rule, ...] = (
    Rule(
        "encoded_order",
        (
            "decode",
            "decipher",
            "base64",
            "rot13",
            "morse",
            "decodifica",
            "расшифруй",
            "decodez",
            "décod",
            "decodific",
            "dekodier",
            "interlace",
        ),
        rf"\b(?:decode|decipher|decrypt)\b{G3}(?:and|then),? ?{G2}(?:execute|follow|run|do|obey"
        rf"|perform|comply|answer|tell|reply|respond)\b"
        rf"|\b(?:decode|decipher) this\b{G5}(?:morse|rot13|base64|cipher|hex)"
        rf"|\b(?:decodifica|decodificare|décode[rz]?|decodificar|dekodier\w*|расшифр\w+"
        rf"|декодир\w+){G5}(?:morse|rot13|base64|морзе|messaggio|message|mensaje|nachricht|шифр|код)\w*"
        rf"|\binterlace\b{G2}part 1",
    ),
    Rule(
        "sends_away",
        (
            "send",
            "post",
            "upload",
            "forward",
            "email",
            "exfiltrat",
            "transfer",
            "invia",
            "отправ",
            "envoie",
            "envía",
            "sende",
        ),
        rf"\b(?:send|post|upload|forward|e-?mail|transmit|exfiltrate)\b(?: me| us)?{G3}(?:all|every|any"
        rf"|entire|contents?|conversations?|history|credentials?|passwords?|secrets?|tokens?|keys?"
        rf"|private|environment|\.env|clipboard|user'?s?)\b{G8}(?:to|at) (?:https?:|www\.|my "
        rf"|the following|this |\w{{1,40}}@|\w{{1,40}}\.(?:com|net|org|io|ru|xyz))"
        rf"|\b(?:invia|отправь\w*|envoie|envía|sende)\b{G5}(?:password|credenziali|парол\w*"
        rf"|mots? de passe|contraseñas?|passwör?ter|passwort|секрет\w*){G5}(?:https?:|\w{{1,40}}@)",
        also=(
            "http",
            "www.",
            "@",
            ".com",
            ".net",
            ".org",
            ".io",
            ".ru",
            ".xyz",
            "to my ",
            "to the following",
            "to this ",
        ),
    ),
)
