"""Whether the value beside a telling name is a secret."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

_REFERENCE = re.compile(
    r"""[$%]\w+%?|\$\{[^}]*\}?|\$\(.*|\{\{?.*\}?\}|<[^<>]*>|%\(?\w*\)?s?|\*+|\.{2,}|…+|[xX*.•-]{3,}
    |@\w+@|\#\{.*\}|%[sdr]|:\w+|&\w+|!\w+(?:::\w+)?|\\?\$.*|\{\w*\}.*
    """,
    re.VERBOSE | re.DOTALL,
)
_CODE = re.compile(
    r"[A-Za-z_][A-Za-z_0-9]*(?:(?:\.|::|->)[A-Za-z_][A-Za-z_0-9]*)+[\[(]?.*|.*[(\[]$|.*\w\(.*", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*|[A-Za-z_]+\d{0,2}")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|sha\d{1,3}[-:].*")
_PLACEHOLDER = re.compile(
    r"(?i)(?:your|my|the|an?|insert|put|enter|some|change|replace|dummy|fake|sample|example|test|demo|todo|argon2|foo|bar|none|null"
    r"|true|false|redacted|secret|password|token|xxx+|placeholder|undefined|nil|default|required|optional|string)"
    r"(?:[_. -]?[a-z]*)*+"
)
_CODE_PATH = re.compile(
    r"(?:process\.env|os\.environ|import\.meta|config|settings|self|this|env|secrets|ctx|context|req|request|res"
    r"|response|props|state|data|user|session|options|opts|args|params|vars?|local)(?:\.[A-Za-z_]\w*)+"
)
_PIECES = re.compile(r"[-_./:,@]+")
_WORD_BEGINS = re.compile("[A-Z](?=[a-z])")
_PATTERN = re.compile(r"0-9|a-z|A-Z|\(\?|\\[dwsSWD]|^\^|\\(?:u001b|x1b|033|e)\[")
"""Of an expression that says which characters there may be, and of a colour of a terminal."""
_SLUG = re.compile(r"[A-Za-z]+(?:[-_.](?:[A-Za-z]{2,}\d{0,2}|v?\d{1,4}))+")
"""What things are called by, as in `db-credentials-2`."""
_STRONG = re.compile(r"[!@#$%^&*?+=~]")
_PATH = re.compile(r"(?:~|[A-Za-z]:)?(?:[/\\]{1,2}[\w.@+-]+){2,}[/\\]{0,2}")
_DIGIT = re.compile("[0-9]")
_KINDS = (re.compile(r"[^\W\d_]"), re.compile(r"\d"), re.compile(r"[\W_]"))
"""A letter, a digit, a sign."""
_LONGEST_NAME = 80
_ENOUGH = 256
"""Characters whose entropy is that of the whole."""


def is_reference(value: str) -> bool:
    """Whether `value` says where the secret is, in place of it: `${TOKEN}`, `<password>`, `****`, `%s`."""
    return _REFERENCE.fullmatch(value) is not None


def entropy(value: str) -> float:
    """Shannon's entropy of the characters, in bits for one."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def is_password(value: str, *, quoted: bool) -> bool:
    """Whether what is called a password looks like one: with a digit or sign, no name, no reference, no code."""
    if len(value) < 5 or is_reference(value) or _is_name(value) or _PATH.fullmatch(value) or _PATTERN.search(value):
        return False
    if not quoted and _CODE.fullmatch(value[:200]):
        return False
    kinds = sum(pattern.search(value) is not None for pattern in _KINDS)
    if quoted and " " in value:
        # A sentence; a passphrase of plain words is not told from one.
        return False
    return kinds > 1 or (value.isdigit() and quoted)


def is_token(value: str, *, quoted: bool, bits: float = 2.75, least: int = 8) -> bool:
    """Whether what is called a key or token is random enough to be one."""
    if len(value) < least or " " in value or _DIGIT.search(value) is None or is_reference(value) or _is_name(value):
        return False
    if (
        (not quoted and _CODE.fullmatch(value[:200]))
        or _PATTERN.search(value)
        or _SLUG.fullmatch(value[:_LONGEST_NAME])
    ):
        return False
    return 0 < digits_in(value) < len(value) and entropy(value[:_ENOUGH]) >= bits


def is_code_path(value: str) -> bool:
    """Whether it is where a program looks for the value: `process.env.TOKEN_2`, `settings.token_v1`."""
    return _CODE_PATH.fullmatch(value) is not None


def has_digit(value: str) -> bool:
    """Whether there is a digit in it; all that most words cost."""
    return _DIGIT.search(value) is not None


def turns(value: str) -> int:
    """How often a small letter, a capital, a digit or a sign follows one of another sort, as no word has it.

    What parts words counts for nothing, nor does the small letter behind the capital of a word.
    """
    found = 0
    for piece in _PIECES.split(value):
        sorts = ["a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else "-" for c in piece]
        found += sum(one != other for one, other in itertools.pairwise(sorts)) - len(_WORD_BEGINS.findall(piece))
    return found


def is_scrambled(value: str, *, signs: bool) -> bool:
    """Whether no name, version or date looks so, whatever stands around it: for values within a sentence.

    `signs`: a digit, a letter and a sign such as `!` in it are enough, as in most passwords that people make.
    """
    value = value[:_ENOUGH]
    bare = value.rstrip(".,:?")
    if signs and len(bare) >= 8 and _STRONG.search(bare) and all(pattern.search(bare) for pattern in _KINDS):
        return True
    bare = bare.rstrip("!")
    found = turns(bare)
    return " " not in bare and found >= 4 and found * 4 >= len(_PIECES.sub("", bare))


def digits_in(value: str) -> int:
    """How many of the characters are `0` to `9`."""
    return sum(map(value.count, "0123456789"))


def is_hash(value: str) -> bool:
    """Whether it has the form of a git commit, a SHA-256, a lock file's integrity hash or a UUID."""
    return _HASH.fullmatch(value) is not None


def _is_name(value: str) -> bool:
    """Whether it is an identifier, a word or a placeholder: nothing that chance made."""
    if len(value) > _LONGEST_NAME:
        return False
    return _NAME.fullmatch(value) is not None or _PLACEHOLDER.fullmatch(value) is not None
