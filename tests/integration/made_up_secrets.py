"""Secrets that nobody has: random, of many kinds, each with the piece of it that must be found nowhere."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LETTERS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class MadeUp:
    """`text` as it would stand in a note, and `needle`: what of it is secret."""

    kind: str
    text: str
    needle: str


class Maker:
    """Makes secrets, another one each time, the same ones in every run with the same `seed`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - nobody keeps these
        self._kinds: tuple[Callable[[], MadeUp], ...] = (
            lambda: self._token("aws", "AKIA", 16, UPPER),
            lambda: self._token("github", "ghp_", 36),
            lambda: self._token("gitlab", "glpat-", 20),
            lambda: self._token("slack", "xoxb-", 48),
            lambda: self._token("openai", "sk-proj-", 64),
            lambda: self._token("anthropic", "sk-ant-", 60),
            lambda: self._token("stripe", "sk_live_", 24),
            lambda: self._token("google", "AIza", 35),
            lambda: self._token("npm", "npm_", 36),
            lambda: self._token("sendgrid", "SG.", 60),
            self._jwt,
            self._address,
            lambda: self._called("password = '{}'", 14),
            lambda: self._called("API_KEY={}", 32, HEX),
            lambda: self._called("Authorization: Bearer {}", 40),
            lambda: self._called("curl -u deploy:{} https://ci.example", 18),
            self._pem,
        )
        self._turn = 0

    def __iter__(self) -> Iterator[MadeUp]:
        return self

    def __next__(self) -> MadeUp:
        """One of the next kind."""
        self._turn += 1
        return self._kinds[self._turn % len(self._kinds)]()

    def token(self) -> MadeUp:
        """One that is a single short word, as fits into a tag or a name."""
        return self._kinds[self._random.randrange(3)]()

    def _chars(self, length: int, alphabet: str = LETTERS) -> str:
        few = [self._random.choice(alphabet[:10]) for _ in range(2)] if alphabet == HEX else ["7", "q", "Q"]
        some = self._random.choices(alphabet, k=length - len(few))
        return "".join([*some, *(each for each in few if each in alphabet), "4"])[:length].ljust(length, "5")

    def _token(self, kind: str, prefix: str, length: int, alphabet: str = LETTERS) -> MadeUp:
        body = self._chars(length, alphabet)
        return MadeUp(kind, prefix + body, body)

    def _called(self, written: str, length: int, alphabet: str = LETTERS) -> MadeUp:
        body = self._chars(length, alphabet)
        return MadeUp(written.split("{", maxsplit=1)[0].strip(), written.format(body), body)

    def _address(self) -> MadeUp:
        body = self._chars(16)
        return MadeUp("address", f"postgresql://shop:{body}@db.example:5432/main", body)

    def _jwt(self) -> MadeUp:
        def part(text: str) -> str:
            return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

        body = self._chars(43)
        head, claims = part('{"alg":"HS256","typ":"JWT"}'), part('{"sub":"' + self._chars(12) + '"}')
        return MadeUp("jwt", f"{head}.{claims}.{body}", body)

    def _pem(self) -> MadeUp:
        lines = [self._chars(64) for _ in range(6)]
        mark = "PRIVATE " + "KEY-----"
        return MadeUp("pem", "\n".join([f"-----BEGIN RSA {mark}", *lines, f"-----END RSA {mark}"]), lines[2])
