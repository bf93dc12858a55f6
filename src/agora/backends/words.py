"""What a backend says beside the protocol, kept short and fit to be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agora.redaction.redactor import Redactor
from agora.unseen import shown

LAST_WORDS = 2_000
"""Characters of `last_words`."""

_KEPT = 16_384
_UNSURE = 8_192
"""Bytes at the start of what was kept in which the rest of a secret may stand whose beginning is lost."""

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_SECRET_NAME = re.compile(r"token|key|secret|pass|auth|cred", re.IGNORECASE)
_SHORTEST = 6
_LINE = 200


class Cleaner:
    """Makes a backend's own words fit to be shown and logged: no control characters, no secrets."""

    def __init__(self, redactor: Redactor, env: Mapping[str, str], args: Sequence[str] = ()) -> None:
        """`env` and `args` are what its table gives it: programs print their settings, passwords too."""
        self._redactor = redactor
        self._secrets = _secrets([*env.items(), *_options(args)])

    def text(self, words: bytes) -> str:
        """`words` as they may be shown."""
        text = _COLOURS.sub("", words.decode("utf-8", "replace")).replace("\r\n", "\n").replace("\r", "\n")
        for secret in self._secrets:
            text = text.replace(secret, "[REDACTED:secret]")
        return self._redactor.text(shown(text))[0]


def _secrets(named: Iterable[tuple[str, str]]) -> list[str]:
    """The values whose names say that they are secret, the longest first."""
    found = {value for name, value in named if len(value) >= _SHORTEST and _SECRET_NAME.search(name)}
    return sorted(found, key=len, reverse=True)


def _options(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options with their values, as in `--token=x` and `--token x`."""
    for option, value in zip(args, (*args[1:], ""), strict=False):
        name, equals, rest = option.partition("=")
        if equals:
            yield name, rest
        elif option.startswith("-"):
            yield option, value


class Tail:
    """The end of a stream that never stops being read; takes 16 KB however much comes."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._kept = b""
        self._cut = False

    def add(self, chunk: bytes) -> None:
        """Keep the end of what there is now."""
        kept = self._kept + chunk[-_KEPT:]
        self._cut = self._cut or len(chunk) > _KEPT or len(kept) > _KEPT
        self._kept = kept[-_KEPT:]

    def text(self, limit: int = LAST_WORDS) -> str:
        """At most the last `limit` characters, cleaned."""
        text = self._cleaner.text(self._kept)
        if self._cut:
            text = text[len(self._cleaner.text(self._kept[:_UNSURE])) :]
        return text.strip()[-limit:] if limit else ""

    def last_line(self) -> str:
        """The last line that is not blank, at most 200 characters of it; empty if there is none."""
        lines = self.text().splitlines()
        return lines[-1].strip()[:_LINE] if lines else ""


class Skipped:
    """What stood on standard output and was no message: how much, and the last of it."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._last = b""
        self.count = 0

    def add(self, head: bytes) -> None:
        """One more line, of which `head` is the beginning."""
        self.count += 1
        # More than is shown: a secret that is cut off is not known as one.
        self._last = head[: 5 * _LINE]

    def text(self) -> str:
        """One line that says so; empty if there was none."""
        if not self.count:
            return ""
        lines = "one line" if self.count == 1 else f"{self.count} lines"
        last = " ".join(self._cleaner.text(self._last).split())[:_LINE]
        return f"[{lines} on its standard output that are no message; the last: {last}]"
