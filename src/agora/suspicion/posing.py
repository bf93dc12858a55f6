"""Another role for the agent, a rank that the writer has not, turns of a conversation that was none."""

from __future__ import annotations

from agora.suspicion.rule import G3, G8, Rule

POSES: tuple[Rule, ...] = (
    Rule(
        "new_role",
        (
            "you are now",
            "you're now",
            "from now",
            "pretend",
            "act as",
            "acting as",
            "dan mode",
            "god mode",
            "jailbreak",
            "jailbroken mode",
            "do anything now",
            "jailbr",
            "unrestricted",
            "restrictions",
            "ethics",
            "persona",
            "role of",
            "simulate an ai",
            "dan can",
        ),
        r"\byou(?:'re| are) (?:now|from now on) (?:a|an|the|in|free|no longer|going|not|dan\b|my|called"
        r"|known|acting|playing|unrestricted|connected|being)\b"
        r"|\bfrom now on,? (?:you|(?:always |never |only )?(?:reply|respond|answer|speak|act|ignore|obey))\b"
        r"|\byou (?:will be called|are going to act|will act|are to act|must act) "
        r"|\bpretend (?:to be|you(?:'re| are)|that you|to have)\b"
        r"|\bact(?:ing)? as (?:if you|though you|an? )?(?:(?:un\w+|admin|dan|evil|hacker|another"
        r"|different|jailbroken|superuser|chatgpt)\b)"
        r"|\b(?:dan|god|jailbreak|jailbroken|unrestricted) mode\b|\bdo anything now\b"
        r"|\bdan can (?:do anything|override)\b"
        r"|\bunrestricted (?:ai|assistant|mode|model|chatbot)\b|\bai (?:with no"
        r"|without) (?:\w+ )?(?:restrictions|ethics|filters|rules|limits)\b"
        r"|\bnew persona\b|\bin(?:to)? the role of (?:another|an ai|a different)\b|\bsimulate an ai\b"
        r"|\bfreed from (?:all |any )?(?:limitations|restrictions|rules)\b",
    ),
    Rule(
        "new_role",
        ("modello di ia", "fingi", "sei ora", "ora sei", "d'ora in poi", "nel ruolo di", "comportati come"),
        r"\b(?:ora sei|sei ora) (?:un|una|dan|in)\b|\bd'ora in (?:poi|avanti),? (?:sei|rispond|devi|agi"
        r"|ignora)\w*"
        r"|\bfingi di (?:essere|non)|\bcomportati come (?:un|una|se)\b|\bnel ruolo di un altro modello",
    ),
    Rule(
        "new_role",
        ("теперь ты", "отныне", "притворись", "веди себя как", "роль другой", "сделай что угодно", "ты теперь"),
        r"\b(?:теперь ты|ты теперь|отныне ты|отныне,? (?:отвечай|игнорируй))|\bпритворись"
        r"|\bведи себя как\b|\bроль другой модели|\bдействуй как (?:неограниченн|админ)",
    ),
    Rule(
        "new_role",
        (
            "tu es maintenant",
            "vous êtes maintenant",
            "désormais",
            "fais semblant",
            "ahora eres",
            "a partir de ahora",
            "finge",
            "du bist jetzt",
            "ab sofort",
            "von nun an",
            "tu so, als",
            "rôle d'un autre modèle",
            "sie sind jetzt",
            "en el papel de otro",
            "rolle eines anderen",
        ),
        r"\b(?:tu es|vous êtes) maintenant (?:une?|dan|en)\b|\bdésormais,? (?:tu|vous|réponds|ignore)"
        r"|\bfais semblant d"
        r"|\bahora eres (?:un|una|dan)\b|\ba partir de ahora,? (?:eres|debes|responde|ignora)"
        r"|\bfinge (?:ser|que eres)"
        r"|\b(?:du bist|sie sind) jetzt (?:ein|eine|dan|im)\b|\b(?:ab sofort|von nun an) (?:bist|antworte"
        r"|musst|ignorier)\w*|\btu so, als"
        r"|\brôle d'un autre modèle|\ben el papel de otro modelo|\brolle eines anderen (?:ki|modell)",
    ),
    Rule(
        "false_authority",
        ("developer", "creator", "administrator", "maintainer", "programmer", "owner of"),
        rf"\b(?:i'm|i am|this is) (?:your|the|a|one of your) (?:system )?(?:developers?|creators?"
        rf"|administrators?|maintainer|programmer"
        rf"|owner of (?:this|your))\b{G8}(?:of (?:your|this)|and|running|system|you\b|[,.])"
        r"|\byour (?:developers|creators|programming)\b",
    ),
    Rule(
        "false_authority",
        (
            "as an ai ",
            "<system mode",
            "<admin mode",
            "<developer mode",
            "i'm entering",
            "i'm initiating",
            "i'm activating",
            "i am entering",
            "i am initiating",
            "i am activating",
        ),
        r"\bas an ai (?:language model )?(?:developed|created|trained|made|built) by\b|<(?:system|admin"
        r"|developer) mode>"
        r"|\bi(?:'m| am) (?:entering|initiating|activating) (?:a |an |the )?'?(?:system|maintenance|admin"
        r"|developer|debug"
        r"|safe|diagnostic|security) ?(?:mode|reset|override|upgrade|audit)",
    ),
    Rule(
        "false_authority",
        ("sviluppat", "amministrat", "manutentor"),
        r"\bsono (?:il|lo|un|uno) (?:tuo |vostro )?(?:sviluppator\w+|amministrator\w+|creator\w+|manutentor\w+)"
        r"|\b(?:ia|ai) sviluppata da\b",
    ),
    Rule(
        "false_authority",
        ("разработ", "создатель", "администратор"),
        rf"\bя (?:(?:твой|ваш) )?(?:разработчик|создатель|администратор)\b(?: ваш| тво|{G3}систем|[,.])"
        r"|\bя (?:твой|ваш) (?:разработчик|создатель|администратор)"
        r"|разработанн\w+ (?:компанией )?(?:openai|anthropic)",
    ),
    Rule(
        "false_authority",
        ("développ", "desarroll", "entwickl"),
        r"\bje suis (?:votre|ton|le|un) (?:développeur|administrateur|créateur)|développée? par (?:openai"
        r"|anthropic)"
        r"|\bsoy (?:tu|el|un|su) (?:desarrollador|administrador|creador)|desarrollad[oa] por (?:openai"
        r"|anthropic)"
        r"|\bich bin (?:dein|ihr|der|ein) (?:entwickler|administrator)|\bvon (?:openai|anthropic) entwickelte",
    ),
    Rule(
        "forged_turn",
        (
            "<|",
            "[inst]",
            "[/inst]",
            "<<sys>>",
            "<system",
            "</system",
            "system:",
            "assistant:",
            "developer:",
            "{system",
            "### instr",
            "### system",
            "end of context",
            "end user",
            "user ambig",
            "</notes",
            "</saved",
            "</changes",
            "[/data-",
        ),
        r"<\|(?:im_start|im_end|system|endoftext|assistant|user|start_header_id|eot_id)\|?>|\[/?inst\]"
        r"|<</?sys>>"
        r"|</?system(?:[ _-](?:prompt|message|instructions?))?>(?=[^<]{0,80}\b(?:you|must|always|never"
        r"|ignore|do not)\b)"
        r"|^[ \t#*{\[(]{0,6}(?:system|assistant|developer)\]?\*{0,2}: ?[^\n]{0,80}?\b(?:you (?:must|are"
        r"|may|can|should|will|have)|from now on|ignore|disregard|new instructions|always|never"
        r"|this simulation)\b"
        r"|\bsystem: you (?:must|are|will)\b|^### (?:system|instruction):[ \t]*$|%{2,}end user|</(?:notes"
        r"|saved|changes)[-\d]*>|\[/data-[0-9a-f]{16}\]",
        lines=True,
    ),
)
