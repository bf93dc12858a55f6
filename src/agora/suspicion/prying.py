"""Demands for the prompt of the agent, or for secrets, in six languages."""

from __future__ import annotations

from agora.suspicion.rule import G1, G2, G3, G5, Rule

_WANTED = (
    r"(?:passwords?|passcode|pass ?phrase|secret keys?|secret code|secrets?|api[ _-]?keys?|credentials?|private keys?"
    r"|access tokens?|login details)\b"
)
_TELL = (
    r"\b(?:reveal|disclose|leak|dump|exfiltrate|confirm|tell|give|show|share|print|output|repeat|provide|write|spell"
    r"|encode|state|say|expose)"
)
_ASK = (
    r"\b(?:(?:reveal|disclose|leak|dump|exfiltrate|confirm|tell|share|repeat|spell|expose|say)(?:ing)?"
    r"|(?:give|show|send|provide|print|write|state)(?: it)?(?: to)? (?:me|us)|print all|provid(?:e|ing) me with)\b"
)

DEMANDS: tuple[Rule, ...] = (
    Rule(
        "reveals_prompt",
        ("prompt", "instruction", "rules", "directive", "istruzioni", "инструкци", "anweisung", "instrucciones"),
        rf"{_TELL}(?:ing|s)?\b{G5}(?:system|initial|hidden|original|entire|secret|internal) ?(?:prompt"
        rf"|instructions)\b"
        rf"|{_TELL}\b{G2}(?:your|above|previous|all|all your) (?:own )?(?:instructions|prompts?|directives)\b"
        rf"|{_TELL} the instructions (?:given|above|so far|you)\b"
        rf"|{_TELL} your (?:initial |system )?(?:prompt|instructions|directives|rules)\b"
        rf"|\b(?:translate|summari[sz]e|convert){G2}(?:your|the above) (?:prompt|instructions|rules)\b"
        rf"|\bwhat (?:are|were|is) your (?:initial |system |original |exact )*(?:instructions|prompt|rules)\b"
        rf"|\b(?:rivela|mostra|stampa|ripeti|dimmi|scrivi){G3}(?:tue istruzioni|prompt di sistema|tuo prompt)"
        rf"|\b(?:покажи|раскрой|выведи|повтори|напиши)(?:те)?{G3}(?:системн\w+ (?:промпт|инструкци)"
        rf"|сво[ийюе]\w* инструкци|твои инструкци)"
        rf"|\b(?:zeig|nenn|wiederhol|gib)\w*{G3}(?:systemprompt|system-prompt|deine anweisungen)"
        rf"|\b(?:muestra|revela|repite|révèle|affiche|répète)\w*{G3}(?:prompt (?:del sistema|système)"
        rf"|tus instrucciones|tes instructions)",
    ),
    Rule(
        "asks_secrets",
        (
            "passw",
            "passc",
            "pass phr",
            "passphr",
            "secret",
            "api",
            "credential",
            "private key",
            "access token",
            "login d",
        ),
        rf"{_ASK}{G5}(?:your|our|all|stored|admin|user'?s?|system|root|master"
        rf"|every) (?:[a-z]+ ){{0,2}}?{_WANTED}"
        rf"|\b(?:reveal|leak|exfiltrate|disclose|dump)(?:ing)?\b{G3}{_WANTED}"
        rf"|\b(?:can|could|would|will|may) (?:you|i|we)\b(?: please)?{G5}(?:the|your|our|that"
        rf"|a) (?:[a-z]+ )?{_WANTED}(?:{G3}(?:for|of|to|in)\b{G3}\w+)?(?:{G5})?[?]"
        rf"|\bwhat(?:'s| is| was| would| are)\b{G1}(?:the|your|our) (?:[a-z]+ ){{0,2}}?{_WANTED}"
        rf"|\b(?:your|the) (?:password|passcode|secret key|secret code) (?:please|now|is needed|to me"
        rf"|with me)\b",
        also=(
            "your",
            "our ",
            "reveal",
            "leak",
            "exfiltrat",
            "disclos",
            "dump",
            "print all",
            "what",
            "can ",
            "could",
            "would",
            "will ",
            "may ",
            " me",
            "us ",
        ),
    ),
    Rule(
        "asks_secrets",
        ("password", "chiave segreta", "parola d'ordine", "credenziali", "codice segreto", "chiavi api"),
        rf"\b(?:qual è|quale è|quali sono|dimmi|dammi|rivela(?:mi)?|conferma(?:re|rmi|mi)?|fornir(?:e|mi)"
        rf"|fornisc\w+|condivid\w+|mostra(?:mi)?|dirmi|darmi|scriv\w+|ripeti|invia)\b{G5}"
        rf"(?:password|chiave segreta|parola d'ordine|credenziali|codice segreto|chiavi api)\b",
    ),
    Rule(
        "asks_secrets",
        ("парол", "секретн", "ключи api", "учётн", "учетн"),
        rf"\b(?:какой|каков|какие|скажи\w*|назови\w*|раскро\w+|подтверд\w+|сообщи\w*|покажи\w*|поделит\w+"
        rf"|дай(?:те)?|сказать|предостав\w+|напиши\w*|выдай\w*){G5}"
        rf"(?:парол\w*|секретн\w+ (?:ключ|код|слов)\w*|учетн\w+ данн\w+|учётн\w+ данн\w+|ключи api)",
    ),
    Rule(
        "asks_secrets",
        ("mot de passe", "clé secrète", "code secret", "identifiants", "clés api"),
        rf"\b(?:quel(?:le)? (?:est|serait)|dis|dites|donne\w*|donner|révèle\w*|révéler|confirme\w*"
        rf"|partage\w*|fourni\w*|montre\w*|dire|indique\w*|écri\w+){G5}"
        rf"(?:mots? de passe|clé secrète|code secret|identifiants|clés api)\b",
    ),
    Rule(
        "asks_secrets",
        ("contraseña", "clave secreta", "código secreto", "credenciales", "palabra secreta"),
        rf"\b(?:cuál (?:es|sería)|dime|dame|revela\w*|confirma\w*|compart\w+|proporcion\w+|muestra\w*"
        rf"|decirme|darme|escrib\w+|di){G5}"
        rf"(?:contraseñas?|clave secreta|código secreto|credenciales|palabra secreta)\b",
    ),
    Rule(
        "asks_secrets",
        ("passwort", "kennwort", "geheimschlüssel", "geheimer schlüssel", "zugangsdaten", "geheimcode", "geheime"),
        rf"\b(?:was (?:ist|wäre)|wie lautet|sag\w*|nenn\w*|verrat\w*|bestätig\w*|teil\w*|gib|geben"
        rf"|zeig\w*|mitteilen|angeben|kannst|können|könnt\w*|schreib\w*){G5}"
        rf"(?:passwort|kennwort|geheimschlüssel|geheime[rn]? schlüssel|zugangsdaten|geheimcode)\b",
    ),
)
