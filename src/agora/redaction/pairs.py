"""Secrets that are known by what stands before them: `password=…`, `Authorization: …`, `curl -u …`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agora.redaction.found import LABEL, Found
from agora.redaction.values import (
    digits_in,
    has_digit,
    is_code_path,
    is_hash,
    is_password,
    is_reference,
    is_scrambled,
    is_token,
    turns,
)

_LOGIN_WORDS = (
    r"pass(?:word|wd|phrase|code|wort)|passw|pwd|senha|contrase[nñ]a|mot[ _]de[ _]passe|kennwort|parola d'ordine|пароль"
    r"|密码|密碼|パスワード"
)
_KEY_WORDS = (
    r"secret(?:[ _-]key)?|client[_-]?srt|token|api[ _.-]?key|access[ _-]?key|account[ _-]?key"
    r"|shared[_-]?access[_-]?key|private[ _-]?key|auth[ _-]?key|encryption[ _-]?key|signing[ _-]?key|master[ _-]?key"
    r"|license[ _-]?key|service[ _-]?key|pre-?shared[ _-]?key|chiave (?:api|segreta)|ключ api|credential|authorization"
)
_VENDOR = (
    r"adafruit|airtable|algolia|asana|beamer|bitbucket|bittrex|cloudflare|codecov|cohere|coinbase|confluent|contentful"
    r"|datadog|discord|droneci|dropbox|etsy|facebook|fastly|finicity|finnhub|flickr|freshbooks|gitter|gocardless|heroku"
    r"|hubspot|intercom|jfrog|kraken|kucoin|launchdarkly|linkedin|looker|mailchimp|mailgun|mapbox|mattermost|meraki"
    r"|messagebird|netlify|relic|nytimes|okta|plaid|private[_-]?ai|rapidapi|sendbird|sentry|snyk|sonar"
    r"|sourcegraph|squarespace|sumo|telegram|travis|twilio|twitch|twitter|typeform|yandex|zendesk"
)
_WORDS = "is|to|è|es|é|ist|est|это"
_VALUE_FOLLOWS = (
    r"(?P<rest>[\w.-]{0,40}+)"
    # For what or whom it is: `password for root: …`.
    r"(?P<whose>(?:[ \t](?:for|of|del|dello|della|di|per|от|для|du|de|pour|für)(?:[ \t][^\s:=,;.\"'`|]{1,40}+){1,3}?)?)"
    r"(?P<between>(?:[\"'`\]\)]|\*\*|\\{1,7}[\"']){0,4}+"
    r"(?:\s{0,40}+(?:=>|:=|\?=|\+=|={1,3}|:{1,2}|：|->|→|,|>)|[ \t]{1,40}+\||[ \t]{1,4}(?:"
    + _WORDS
    + r"):?(?=[ \t])|[ \t]{1,4}+))"
    # A block of YAML, marks of bold letters, quotes that are quoted themselves, and how Python marks a text.
    r"(?P<lead>(?:[ \t]?[|>][+-]?(?=\n))?+(?:[ \t]{1,40}+|\s|\*\*(?!\*)|\\{0,7}[\"'`(]|[bru]{1,2}(?=[\"'])){0,6}+)"
)
_PAIR = re.compile(rf"(?P<name>(?P<password>{_LOGIN_WORDS})|(?P<secret>{_KEY_WORDS}))(?P<vendor>(?!))?{_VALUE_FOLLOWS}")
_VENDOR_PAIR = re.compile(rf"(?P<name>(?P<password>(?!))?(?P<vendor>{_VENDOR})){_VALUE_FOLLOWS}")
_KINDS = (
    (
        (
            *(
                "pass",
                "pwd",
                "senha",
                "contrase",
                "kennwort",
                "parola",
                "парол",
                "密码",
                "密碼",
                "パスワード",
                "secret",
            ),
            *("srt", "token", "key", "chiave", "ключ", "credential", "authoriz"),
        ),
        _PAIR,
    ),
    (tuple(re.findall(r"[a-z]{4,}", _VENDOR)), _VENDOR_PAIR),
)
"""Each expression, and words one of which is in every text that it can match: most texts have none."""

_NOT_THE_VALUE = re.compile(
    r"(?i)(?:.*[_.-])?(?:hash(?:ed)?|digest|checksum|id|ids|name|names|count|len(?:gth)?|type|types|url|uri|endpoint|path"
    r"|file|field|label|format|size|limit|index|policy|prefix|suffix|expir\w*|ttl|age|version|pattern|regex|column|input"
    r"|reset|rules?|strength|min|max|error|exception|required|usage|budget|encryption|method|algorithm|mode|manager"
    r"|provider|helper|stor(?:e|age)|stdin|prompt|class|status|version|refs?|requests?|review|projection|s"
    r"|i[sz](?:ed?|ers?|ing|ation))(?:[_.-].*)?"
)
_PATIENCE = 2048
"""Characters of values inside one word without blanks that are looked at in vain before the rest of it is passed over.

Without a bound a long word in which every tenth character begins a name is read anew from each of them.
"""

_NEAR_LINE = 5
"""Characters between a name and its value on the next line, if nothing else tells that it is one."""
_SAYING = frozenset(_WORDS.split("|"))

_NEXT_NAME = re.compile(r"[^\W\d][\w.-]*[=:]")
_VALUE = re.compile(
    # As far as the next parameter of an address.
    r"[^\s\"'`,;<>(){}\[\]|\\&]{1,512}+(?:&(?![\w.-]{1,40}+=)[^\s\"'`,;<>(){}\[\]|\\&]{0,64}+){0,4}+"
)
_QUOTED = {mark: re.compile(rf"(?:[^{mark}\n\\]|\\[^\n]){{1,4096}}+") for mark in "\"'`"}
_QUOTED_TWICE = {mark: re.compile(rf"[^{mark}\n\\]{{1,4096}}+") for mark in "\"'`"}
"""In a quoted text a quote ends with the mark that has a `\\` before it; in any other that one is part of it."""
_OPTION_LENGTH = 34
"""Characters of an option on a command line before the name in it."""

_HEADER = re.compile(
    r"(?i)(?:authorization|(?:x-[\w-]{0,40})?(?:api-?key|api-?token|auth-?token|token|secret)|cookie)[\"']?\s{0,3}+:\s{0,3}+[\"']?"
    r"(?:(?:basic|bearer|token|oauth|api-?token|apikey|digest|negotiate)\s{1,3}+)?(?P<value>[\w=~@.+/:-]{8,512}+)"
)
_HEADER_WORDS = ("authorization", "key", "token", "secret", "cookie")
_BEARER = re.compile(r"(?i)\b(?P<scheme>bearer|basic)\s{1,3}+(?P<value>[\w=~.+/-]{12,512}+)")
_USER = re.compile(
    r"(?<=\s)(?:-u|--user|--proxy-user)(?:=|[ \t]{0,5}+)"
    r"(?P<both>(?:\"[^\"\n]{0,400}+\"|'[^'\n]{0,400}+'|[^\s\"'\\]{1,400}+){1,6}+)"
)
_TOOL = re.compile(r"curl|wget|http")
_SHORT = re.compile(
    r"\b(?:sshpass[ \t]{1,4}+-p[ \t]{0,4}+|docker[ \t]{1,4}+login\b[^\n|;&]{0,200}?[ \t]-p[ \t]{1,4}+"
    r"|(?:mysql|mariadb)[\w-]{0,20}+[ \t](?:[^\n|;&]{0,200}?[ \t])??-p|redis-cli\b[^\n|;&]{0,200}?[ \t]-a[ \t]{1,4}+)"
    r"(?P<value>\"[^\"\n]{1,200}+\"|'[^'\n]{1,200}+'|[^\s\"'`|;]{1,200}+)"
)
"""Programs that take a password behind an option of one letter."""
_NEAR = 2000
"""Characters between a program that takes `-u user:password` and the option."""
_AWS_SECRET = re.compile(r"(?<![\w+/=-])[0-9A-Za-z+/]{40}(?![\w+/=-])")
_AWS_TURNS = 11
"""Of 40 random characters one in some hundred has fewer; names in code and paths have at most eight or nine."""
_XML = re.compile(r"(?i)<add key=\"(?:ClearText)?Password\"\s{0,3}+value=\"(?P<value>[^\"\n]{4,400}+)\"")


_LONG = 2_000
"""From this length on it pays to know first which characters a text has."""


def pairs(text: str) -> Iterator[Found]:
    """Every secret in `text` that is called one; the name, the operator and the quotes stay."""
    low = text.lower()
    if len(low) != len(text):
        # The one capital letter that is two small ones: places would not agree.
        low = text.replace("İ", "I").lower()
    present = frozenset(low) if len(low) > _LONG else None
    for words, pattern in _KINDS:
        if any((present is None or present.issuperset(word)) and word in low for word in words):
            yield from _named(text, low, pattern)
    yield from _headers(text, low)
    if "curl" in text or "wget" in text or "http" in text:
        yield from _users(text)
    if "sshpass" in text or "login" in text or "mysql" in text or "mariadb" in text or "redis-cli" in text:
        yield from _short(text)
    yield from _marked(text, low)


def _short(text: str) -> Iterator[Found]:
    for match in _SHORT.finditer(text):
        value = match["value"]
        bare = value.strip("\"'")
        if is_password(bare, quoted=True):
            start = match.start("value") + value.index(bare)
            yield Found(start, start + len(bare), "password")


def _named(text: str, low: str, pattern: re.Pattern[str]) -> Iterator[Found]:
    """Every secret behind a name that `pattern` knows; `low` is the text in small letters."""
    at, run, spent = 0, 0, 0
    while match := pattern.search(low, at):
        # The next name may be right behind this one's.
        at = match.end("name")
        if match.end() >= run:
            spent = 0
        elif spent > _PATIENCE:
            # One long word with name after name in it, and none has had a value yet.
            at = run
            continue
        value = _value(text, match)
        if value is None:
            continue
        start, end, kind = value
        if kind is None:
            run, spent = max(run, end), spent + end - start
        else:
            yield Found(start, end, kind)
            at = max(at, end)


def called(name: str, value: str) -> str | None:
    """The kind of `value` if, under this `name`, it is a secret: for fields, whose names stand apart."""
    match = _PAIR.search(f"{name.lower()}: ")
    if match is None or _NOT_THE_VALUE.fullmatch(match["rest"]) or LABEL.search(value):
        return None
    if match["password"]:
        return "password" if is_password(value, quoted=True) else None
    return "secret" if is_token(value, quoted=True) else None


def _value(text: str, match: re.Match[str]) -> tuple[int, int, str | None] | None:
    """Start and end of what follows a name and an operator, and its kind if it is a secret."""
    rest, between, lead = match.group("rest", "between", "lead")
    if (rest and _NOT_THE_VALUE.fullmatch(rest)) or "\n\n" in between + lead:
        return None
    between = between.strip(" \t\"'`])\\*")
    mark = next((c for c in reversed(lead) if c in "\"'`"), None) if lead else None
    if mark and lead.count(mark) == 2:
        # An empty text.
        return None
    quoted = _QUOTED_TWICE if "\\" in lead else _QUOTED
    found = quoted[mark].match(text, match.end()) if mark else _VALUE.match(text, match.end())
    if found is None or (mark is None and text.startswith("(", found.end())):
        # Nothing, or the call of a function.
        return None
    apart = match["between"] + lead
    name = _NEXT_NAME.match(found[0]) if mark is None and apart[-1].isspace() else None
    if name and ("\n" in apart or found[0][name.end() :].strip("=")):
        # The value is empty, and the next name follows: on the next line, or with its value.
        return None
    value = found[0].rstrip() if mark else found[0].rstrip(".,:!?")
    start, end = found.start(), found.start() + len(value)
    labelled = "[REDACTED:" in value and (LABEL.search(value) or value.startswith("[REDACTED:"))
    if labelled or not _is_secret(match, found[0] if mark is None else value, between, quoted=mark is not None):
        return start, end, None
    return start, end, "password" if match["password"] else "secret"


def _is_secret(match: re.Match[str], value: str, between: str, *, quoted: bool) -> bool:
    if not between and _is_option(match):
        between = "="
    word = between.rstrip(":") in _SAYING
    if between == "," or not between or word or between == "|" or match["whose"]:
        # Most are words.
        if not has_digit(value) or match["vendor"] or ("/" in value and match["password"] is None):
            return False
        if between == ",":
            return quoted and _in_list(match, value)
        return (word or not is_hash(value)) and _in_sentence(match, value, quoted=quoted, word=word)
    return _behind_sign(match, value if quoted else value.rstrip(".,:!?"), quoted=quoted)


def _in_list(match: re.Match[str], value: str) -> bool:
    return "\n" not in match["lead"] and not is_hash(value) and is_token(value, quoted=True, bits=3.3, least=16)


def _in_sentence(match: re.Match[str], value: str, *, quoted: bool, word: bool) -> bool:
    if word and quoted and match["password"]:
        return is_password(value, quoted=True)
    return is_scrambled(value, signs=match["password"] is not None) and is_token(value, quoted=quoted, bits=2.5)


def _behind_sign(match: re.Match[str], value: str, *, quoted: bool) -> bool:
    lead = match["lead"]
    if "\n" in lead and lead.lstrip(" \t")[0] not in "|>" and (")" in match["between"] or len(lead) > _NEAR_LINE):
        # The body of a function, more often than a value.
        return is_scrambled(value, signs=match["password"] is not None)
    if match["password"]:
        return is_password(value, quoted=quoted)
    if match["vendor"]:
        return not is_hash(value) and re.fullmatch(r"[\w+/=-]{14,128}", value) is not None and _random(value, quoted)
    # With a `/` or `\\` it may be a path.
    path = "/" in value or ("\\" in value and "\\u" not in value)
    return (not path or re.search(r"[+=]|\d[A-Za-z]\d", value) is not None) and is_token(value, quoted=quoted)


def _is_option(match: re.Match[str]) -> bool:
    """Whether the name is that of an option on a command line."""
    start = match.start("name")
    before = match.string[max(0, start - _OPTION_LENGTH) : start]
    return "-" in before and re.split(r"[\s\"'`(]", before)[-1].startswith("-")


def _random(value: str, quoted: bool) -> bool:
    return digits_in(value) * 10 >= len(value) and is_token(value, quoted=quoted, bits=3.0)


def _headers(text: str, low: str) -> Iterator[Found]:
    for match in _HEADER.finditer(text) if any(word in low for word in _HEADER_WORDS) else ():
        value = match["value"]
        if is_code_path(value):
            continue
        if is_token(value, quoted=True, bits=2.5) or value.lower().startswith("sha256~"):
            yield Found(*match.span("value"), "authorization")
    for match in _BEARER.finditer(text) if "bearer" in low or "basic" in low else ():
        basic = match["scheme"].lower() == "basic"
        if is_token(match["value"], quoted=True, bits=2.75 if not basic else 3.0, least=16 if basic else 12):
            yield Found(*match.span("value"), "authorization")


def _users(text: str) -> Iterator[Found]:
    tools = _TOOL.finditer(text)
    tool, last = next(tools, None), -_NEAR
    for match in _USER.finditer(text):
        while tool is not None and tool.start() < match.start():
            last, tool = tool.start(), next(tools, None)
        if match.start() - last > _NEAR:
            continue
        both = match["both"]
        name, colon, password = both.partition(":")
        bare = password.strip("\"'")
        if not colon or LABEL.search(both):
            continue
        start = match.start("both")
        if not bare:
            # The key is the name: `-u key:`.
            bare = name.strip("\"'")
            if is_token(bare, quoted=True, bits=2.5) or is_password(bare, quoted=True):
                begin = start + both.index(bare)
                yield Found(begin, begin + len(bare), "password")
        elif not is_reference(bare):
            begin = start + len(name) + 1 + password.index(bare)
            yield Found(begin, begin + len(bare), "password")


def _marked(text: str, low: str) -> Iterator[Found]:
    """What is known by a word elsewhere in the text; `low` is the text in small letters."""
    if "aws" in low or "akia" in low or "asia" in low:
        for match in _AWS_SECRET.finditer(text):
            if is_token(match[0], quoted=True, bits=4.2) and turns(match[0]) >= _AWS_TURNS:
                yield Found(*match.span(), "aws-secret-key")
    for match in _XML.finditer(text) if "<add key" in low else ():
        if not is_reference(match["value"]):
            yield Found(*match.span("value"), "password")
