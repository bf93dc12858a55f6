"""Secrets that are known by their own form, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from agora.redaction.formats import FORMATS, Format
from agora.redaction.found import Found

_VOWELS = frozenset("aeiouyAEIOUY")
_LONG = 2_000
_PLAIN = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def tokens(text: str, *, folded: bool = False) -> Iterator[Found]:
    """Every token of a known format in `text`; `folded` takes no notice of the case, nor of `_` that became `-`.

    Linear in the length of the text: a prefix is looked for by `str.find`, what follows it is read once, and no
    expression goes back over what it has read.
    """
    hay = _fold(text) if folded else text
    yield from _tokens(hay, folded=folded)
    if "\\" in text or "%" in text or "\x1b" in text:
        # A token may begin right behind `\n`, `%3D` or a colour.
        apart = _ESCAPE.sub(lambda found: " " * len(found[0]), hay)
        if apart != hay:
            yield from _tokens(apart, folded=folded)


_ESCAPE = re.compile(
    r"\\{1,7}(?:[nrtbfve0]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|033)(?:\[[\d;]{0,20}m)?|\x1b\[[\d;]{0,20}[mK]|%[0-9a-fA-F]{2}"
)


def _tokens(hay: str, *, folded: bool) -> Iterator[Found]:
    # In a long text it pays to know first which characters there are.
    present = frozenset(hay) if len(hay) > _LONG else None
    for prefix, row, letters in _prefixes(folded=folded):
        if present is not None and not letters <= present:
            continue
        at = hay.find(prefix)
        if at < 0:
            continue
        body = _body(row.of, row.least, row.most, folded)
        while at >= 0:
            after = at + len(prefix)
            if (at == 0 or hay[at - 1] not in _PLAIN) and (match := body.match(hay, after)):
                yield Found(at, match.end(), row.kind)
                after = match.end()
            at = hay.find(prefix, after)
    for needle, pattern, kind, fits in _shapes(folded=folded):
        if needle and needle not in hay:
            continue
        for match in pattern.finditer(hay):
            if fits is None or folded or fits(match[match.lastindex or 0]):
                start, end = match.span(match.lastindex or 0)
                yield Found(start, end, kind)


@cache
def _prefixes(*, folded: bool) -> tuple[tuple[str, Format, frozenset[str]], ...]:
    written = [(_fold(row.prefix) if folded else row.prefix, row) for row in FORMATS]
    return tuple((prefix, row, frozenset(prefix)) for prefix, row in written)


@cache
def _body(of: str, least: int, most: int | None, folded: bool) -> re.Pattern[str]:
    ends = "" if most is None else "(?![0-9A-Za-z])"
    of = of.replace("_", "_-") if folded and not of.endswith("-") else of
    return re.compile(f"[{of}]{{{least},{'' if most is None else most}}}+{ends}", re.IGNORECASE if folded else 0)


def _fold(text: str) -> str:
    """As a tag or a namespace is written; of the same length."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text).replace("_", "-")


def _mixed(value: str) -> bool:
    """Whether it has a digit and letters of both cases, as random letters have."""
    return any(c.isdigit() for c in value) and value.upper() != value != value.lower()


def _no_word(value: str) -> bool:
    """Whether what follows the third character has a digit, or no vowel as a name in code would."""
    rest = value[3:]
    return any(map(str.isdigit, rest)) or not _VOWELS.intersection(rest)


Fits = Callable[[str], bool]

_SHAPES: tuple[tuple[str, str, str, Fits | None], ...] = (
    # A needle that must be in the text, the expression, the kind, and a last look at what was found.
    ("eyJ", r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{6,}+(?:\.[\w-]*+)?", "jwt", None),
    ("eyJ", r"(?<![\w-])eyJ[\w-]{16,}+\.[\w-]*+\.[\w-]{8,}+(?:\.[\w-]{8,}+)*+", "jwt", None),
    ("Q~", r"(?<![\w.~-])[\w.~]{3}\dQ~[\w.~-]{30,}+", "azure-client-secret", None),
    ("atlasv1", r"(?<![\w.-])[0-9A-Za-z]{14}\.atlasv1\.[\w-]{40,}+", "terraform-token", None),
    ("T3BlbkFJ", r"(?<![\w-])sk-[\w-]{0,200}T3BlbkFJ[\w-]{16,}+", "openai-key", None),
    ("-us", r"(?<![\w-])[0-9a-f]{32}-us\d{1,2}(?!\w)", "mailchimp-key", None),
    ("", r"(?<![0-9A-Za-z])(?:SK|AC)[0-9a-z]{32}(?![0-9A-Za-z])", "twilio-key", None),
    ("|", r"(?<!\w)\d{15,17}\|[\w-]{27,40}+(?![\w-])", "facebook-token", None),
    (":A", r"(?<!\w)\d{8,10}:A[\w-]{34}(?![\w-])", "telegram-token", None),
    (".", r"(?<![\w.-])[A-Z][\w-]{23,27}+\.[\w-]{6}\.[\w-]{27,40}+", "discord-token", _mixed),
    ("s.", r"(?<![\w.-])s\.[0-9A-Za-z]{24}(?![\w.-])", "hashicorp-vault-token", _mixed),
    ("", r"(?<![\w+/.-])AP[0-9A-F][0-9A-Za-z]{8,}+", "artifactory-key", _no_word),
    ("AKC", r"(?<![\w+/.-])AKC[0-9A-Za-z]{10,}+", "artifactory-key", _no_word),
    ("_mmk", r"(?<!\w)[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk(?!\w)", "maxmind-key", None),
    (
        "A3-",
        r"(?<![\w-])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![\w-])",
        "1password-key",
        None,
    ),
    (".office.com/", r"webhook\.office\.com/(webhookb2/[\w@/-]{60,}+)", "teams-webhook", None),
    ("hooks.slack.com/", r"hooks\.slack\.com/((?:services|workflows|triggers)/[\w+/]{30,}+)", "slack-webhook", None),
    ("/api/webhooks/", r"/api/webhooks/(\d{10,20}/[\w-]{50,}+)", "discord-webhook", None),
    ("sig=", r"[?&]sig=([\w%+/=-]{40,}+)", "azure-sas-signature", None),
)


@cache
def _shapes(*, folded: bool) -> tuple[tuple[str, re.Pattern[str], str, Fits | None], ...]:
    return tuple(
        (
            _fold(needle) if folded else needle,
            re.compile(pattern, re.ASCII | (re.IGNORECASE if folded else 0)),
            kind,
            fits,
        )
        for needle, pattern, kind, fits in _SHAPES
        # Without the case these would be words.
        if not (folded and needle in {"", "s."})
    )
