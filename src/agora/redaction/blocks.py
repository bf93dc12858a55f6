"""Private keys in blocks of text, and passwords in addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agora.redaction.found import LABEL, Found
from agora.redaction.values import is_reference, is_token

_BEGIN = re.compile(r"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"(?:[0-9A-Za-z+/=\s:,_-]|\\[nr]|(?<=\n)[>|#*])*+")
"""As far as a key may go that has no end, also one that is quoted as mails and comments are."""
_SOLID = re.compile(r"[0-9A-Za-z+/=]{40}")
_PUTTY = re.compile(r"Private-Lines: \d{1,4}\s{1,4}+([0-9A-Za-z+/=\s]{40,}+)")


def private_keys(text: str) -> Iterator[Found]:
    """Every private key in PEM, OpenSSH, PGP or PuTTY form, also one that is cut off before its end."""
    begins = list(_BEGIN.finditer(text)) if "PRIVATE KEY" in text else []
    ends = [match.end() for match in _END.finditer(text)] if begins else []
    done, next_end = 0, 0
    for n, begin in enumerate(begins):
        if begin.start() < done:
            continue
        following = begins[n + 1].start() if n + 1 < len(begins) else len(text)
        while next_end < len(ends) and ends[next_end] <= begin.end():
            next_end += 1
        if next_end < len(ends) and ends[next_end] <= following:
            end = ends[next_end]
            solid = _SOLID.search(text, begin.end(), end)
        else:
            # Cut off: as far as it can be a key.
            match = _BODY.match(text, begin.end(), following)
            end = match.end() if match else begin.end()
            solid = _SOLID.search(text, begin.end(), end)
            end = begin.end() + len(text[begin.end() : end].rstrip())
        if solid:
            yield Found(begin.start(), end, "private-key")
            done = end
    if "Private-Lines: " in text:
        for match in _PUTTY.finditer(text):
            yield Found(match.start(1), match.start(1) + len(match[1].rstrip()), "private-key")


_AUTHORITY = re.compile(r"://([^\s/?#\"'<>\\`|]*+)")
_STORES = re.compile(
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|s?ftp)(?:\+[a-z0-9]{1,20})?"
    r"://[^\s:/?#@\"'<>\\`|]{0,100}:(?P<password>[^\s@:/?#\"'<>\\`|]{0,100}[/?#][^\s@:\"'<>\\`|]{0,100})@(?=[\w.\[-])"
)
"""Of a database people write a password with `/`, `?` or `#` into the address as it is."""
_AS_USER = re.compile(
    r"://(?P<token>[\w.~-]{20,255}+)@(?:[\w-]{1,63}\.){0,3}(?:github|gitlab|bitbucket|azure|visualstudio)\.(?:com|org)\b"
)
_PORT = re.compile(r"\d{1,5}[/?#].*", re.DOTALL)


def address_passwords(text: str) -> Iterator[Found]:
    """The password of every address with one, as in `postgresql://user:password@host`; the rest stays."""
    if "://" not in text:
        return
    for match in _AUTHORITY.finditer(text):
        user, at, _host = match[1].rpartition("@")
        name, colon, password = user.partition(":")
        if not at or not colon or not password or is_reference(password) or LABEL.fullmatch(password):
            continue
        if "[" in name and password.endswith("]"):
            # What an address may have is described: `user[:password]@host`.
            continue
        start = match.start(1) + len(name) + 1
        yield Found(start, start + len(password), "password")
    for match in _STORES.finditer(text):
        if not _PORT.fullmatch(match["password"]) and not is_reference(match["password"]):
            yield Found(*match.span("password"), "password")
    for match in _AS_USER.finditer(text) if "@" in text else ():
        if is_token(match["token"], quoted=True, bits=3.0, least=20):
            yield Found(*match.span("token"), "password")
