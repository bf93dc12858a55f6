"""Whether the value beside a telling name is a secret."""

from __future__ import annotations

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
    r"(?i)(?:your|my|the|an?|insert|put|enter|some|change|replace|dummy|fake|sample|example|test|demo|todo|foo|bar|none|null"
    r"|true|false|redacted|secret|password|token|xxx+|placeholder|undefined|nil|default|required|optional|string)"
    r"(?:[_. -]?[a-z]*)*+"
)
_PATH = re.compile(r"(?:~|[A-Za-z]:)?(?:[/\\][\w.@+-]+){2,}[/\\]?")
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
    if len(value) < 5 or is_reference(value) or _is_name(value) or _PATH.fullmatch(value):
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
    if not quoted and _CODE.fullmatch(value[:200]):
        return False
    return 0 < digits_in(value) < len(value) and entropy(value[:_ENOUGH]) >= bits


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
