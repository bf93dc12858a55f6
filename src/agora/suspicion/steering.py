"""What the reply of the agent to somebody else is to say or to look like."""

from __future__ import annotations

from agora.suspicion.rule import G3, G8, Rule

_REPLY = r"(?:response|reply|replies|answers?|output|message|elucidation|explanation)\b"
_CODE = (
    r"(?:code|implementation|solution|algorithm|program|codebase|software|script|logic|response|reply|elucidation)\b"
)

STEERS: tuple[Rule, ...] = (
    Rule(
        "steers_reply",
        (
            "your re",
            "your answer",
            "your message",
            "your output",
            "your elucid",
            "your explanation",
            "the output is",
            "your next",
            "by saying",
        ),
        rf"\b(?:add|append|insert|include|includ(?:e|ing)|integrat(?:e|ing)|embed|incorporat(?:e|ing)"
        rf"|mention|weave|place|put|slip|use|replace|introduce|plug|feature|display|employ"
        rf"|apply){G8}(?:{G8})?(?:in|into|to|of|within|for|throughout) your (?:next |final )?{_REPLY}"
        rf"|\b(?:translat(?:e|ing)|encod(?:e|ing)|encrypt(?:ing)?|revers(?:e|ing)|modif(?:y|ying)"
        rf"|enhanc(?:e|ing)|enrich|rewrite|convert|scrambl\w+|misspell|jumble|rearrange|remove|group"
        rf"|alter|adjust|supplement|begin|start|end|finish|preface|conclude|provide|write|present|give"
        rf"|deliver|express|craft|shape|render|code|show|mirror|flip|invert|substitute|transform|format"
        rf"|disguise|cipher){G3}(?:\w+ (?:in|of|from|for|with|between) )?your {_REPLY}"
        rf"|\bin your {_REPLY},? (?:mention|include|add|provide|state|recommend|suggest|say|use|highlight"
        rf"|refer|share|promote)"
        rf"|\bconfirm by saying\b|\byour (?:response|reply|answer) (?:must|should|shall|has to"
        rf"|will) (?:be|start|begin|end|contain|include|only|use|read)"
        rf"|\b(?:indicate|state|say|respond|claim) that the output is\b",
    ),
    Rule(
        "steers_reply",
        (
            "tua risposta",
            "vostra risposta",
            "твой ответ",
            "твоём ответе",
            "твоем ответе",
            "своём ответе",
            "своем ответе",
            "свой ответ",
            "ваш ответ",
            "ta réponse",
            "votre réponse",
            "tu respuesta",
            "su respuesta",
            "deine antwort",
            "deiner antwort",
        ),
        rf"\b(?:aggiungi|inserisci|includi|traduci|codifica|inverti|inizia|termina|scrivi"
        rf"|modifica)(?:re)?\b{G8}(?:tua|vostra) risposta"
        rf"|\b(?:добавь|вставь|включи|переведи|закодируй|начни|закончи|напиши"
        rf"|измени)(?:те)?{G8}(?:тво\w+|сво\w+|ваш\w*) ответ"
        rf"|\b(?:ajoute|insère|inclus|traduis|encode|commence|termine|modifie)[rz]?{G8}(?:ta|votre) réponse"
        rf"|\b(?:añade|agrega|incluye|inserta|traduce|codifica|empieza|termina|modifica)\b{G8}(?:tu"
        rf"|su) respuesta"
        rf"|\b(?:füge|übersetze|kodiere|beginne|beende|schreibe|ändere)\b{G8}(?:deiner?|ihrer?) antwort",
    ),
    Rule(
        "inserts_code",
        (
            "code snippet",
            "code block",
            "code excerpt",
            "code section",
            "code segment",
            "code fragment",
            "snippet of code",
            "piece of code",
            "lines of code",
        ),
        rf"(?:following|below|subsequent|ensuing|next|given|succeeding|this"
        rf"|provided) (?:\w+ )?(?:snippet of code|piece of code|lines of code|code (?:snippet|block"
        rf"|excerpt|section|segment|fragment)){G8}your (?:[a-z]+ ){{0,2}}?{_CODE}"
        rf"|\byour (?:[a-z]+ ){{0,2}}?{_CODE}{G8}(?:following|below|subsequent|ensuing|succeeding|this"
        rf"|provided) (?:snippet of code|piece of code|lines of code|code (?:snippet|block|excerpt"
        rf"|section|segment|fragment))",
    ),
)
