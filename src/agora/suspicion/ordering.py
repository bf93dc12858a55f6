"""Orders that are to hold for ever, or behind the back of the user."""

from __future__ import annotations

from agora.suspicion.rule import G2, G3, Rule

ORDERS: tuple[Rule, ...] = (
    Rule(
        "standing_order",
        (
            "directive",
            "memory_persist",
            "user_memory=",
            "all later",
            "all future",
            "every future",
            "future session",
            "operating",
            "permanent",
            "remember this",
            "always comply",
            "always obey",
            "tutte le sessioni",
            "всех будущих",
        ),
        rf"\b(?:remember|store|save|keep|persist|record|treat|consider|adopt){G2}(?:this|these|that"
        rf"|the following){G3}as\b{G3}(?:directives?|standing orders?|system (?:rules?|prompts?"
        rf"|instructions?)|permanent (?:rules?|instructions?))\b"
        rf"|\bas the (?:operating|governing|overriding|system) (?:directive|instruction|prompt)\b"
        rf"|\b(?:in|for) (?:all|every|any) (?:future|later|subsequent|coming) (?:sessions?|conversations?"
        rf"|responses?|repl(?:y|ies)|chats?)\b"
        rf"|\[memory_persist\]|\[user_memory=[^\]]{{0,60}}\b(?:admin|never|always|rights|unrestricted)"
        rf"|\byou must (?:always|never) (?:comply|obey|refuse|reveal)|\balways (?:comply|obey) (?:with"
        rf"|all|every)?"
        rf"|\bper tutte le sessioni future|\bво всех будущих (?:сессиях|ответах|разговорах)",
    ),
    Rule(
        "skips_consent",
        (
            "without asking",
            "without telling",
            "without confirm",
            "without inform",
            "never ask",
            "don't tell",
            "not tell",
            "not inform",
            "not mention",
            "don't mention",
            "skip the",
            "safety checks",
            "bypass",
            "senza chiedere",
            "senza avvis",
            "не говори",
            "без подтвержд",
            "sans demander",
            "sin preguntar",
            "ohne den ",
            "keep this secret from",
        ),
        r"\b(?:without (?:asking|telling|informing|notifying|confirming(?: with)?)|(?:do not|don't"
        r"|never) (?:ask|tell|inform|notify|mention (?:this|it) to|alert)) (?:the |your )?(?:user"
        r"|operator|human|owner|developer)s?\b"
        r"|\bskip (?:the |any |all )?(?:approval|confirmation|permission|consent|safety) (?:steps?"
        r"|checks?|prompts?)|\bwithout (?:any )?(?:safety|security) checks\b"
        r"|\bbypass(?:ing)? (?:all |any |the |your )?(?:security|safety|filters?|restrictions"
        r"|guardrails)\b(?: (?:policy|policies|checks|measures))?(?: and| to |[.,;!]|$)"
        r"|\bsenza (?:chiedere|avvisare|avvertire|informare)(?: nulla)? (?:a)?l(?:l')?(?:'?utente"
        r"|'?operatore)|\bне (?:говори|сообщай)(?:те)? (?:об этом )?(?:пользователю|оператору)"
        r"|\bбез подтверждения (?:пользователя|оператора)"
        r"|\bsans (?:demander|prévenir|informer) (?:à )?l'utilisateur|\bsin (?:preguntar|avisar"
        r"|informar) al usuario|\bohne (?:den benutzer|den nutzer) zu (?:fragen|informieren)"
        r"|\bkeep this secret from\b",
    ),
)
