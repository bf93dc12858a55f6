"""The one place where secrets are taken out of what callers send, before anything else sees it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from agora.errors import SecretRefused

if TYPE_CHECKING:
    from agora.redaction.redactor import Redactor

Mode = Literal["redact", "refuse", "off"]

_MOST_TEXTS = 10_000
_HEAD = 512
_REMEMBERED = 512
"""Names that are kept with what became of them: a client's own come with every call."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Plain data as it may go on: what was replaced, kind to number, and whether it is too much to look at.

    What is `too_much` has more text than all limits of a call together, and is only good for being refused: it has the
    lengths of what came, and beyond the beginnings dots.
    """

    value: dict[str, Any]
    replaced: Counter[str]
    too_much: bool = False


class Guard:
    """Takes secrets out of what callers send, or refuses it, as the settings say. Thread-safe."""

    def __init__(self, mode: Mode = "redact", allow: Iterable[str] = (), *, most: int = 1_048_576) -> None:
        """`allow`: expressions for what may stay. `most`: characters in one call; what has more is refused anyway."""
        self.mode = mode
        self._allow = tuple(allow)
        self._most = most
        self._names: dict[str, str] = {}

    @cached_property
    def _redactor(self) -> Redactor:
        from agora.redaction.redactor import Redactor  # noqa: PLC0415 - a client's first messages need none

        return Redactor(self._allow)

    def arguments(self, given: Mapping[str, Any]) -> Checked:
        """The arguments of a call.

        Raises: SecretRefused if they hold a secret and the mode is `refuse`.
        """
        if self.mode == "off":
            return Checked(dict(given), Counter())
        size = 0
        for texts, text in enumerate(_texts(given), start=1):
            size += len(text)
            if texts > _MOST_TEXTS or size > self._most:
                return Checked(self._outline(given), Counter(), too_much=True)
        return self.fields(given)

    def fields(self, given: Mapping[str, Any], *, folded: frozenset[str] = frozenset()) -> Checked:
        """Plain data of any size; what stands under a name of `folded` has lost its case.

        Raises: SecretRefused as `arguments`.
        """
        if self.mode == "off":
            return Checked(dict(given), Counter())
        cleaned = self._redactor.data(given, folded)
        if cleaned.counts and self.mode == "refuse":
            raise SecretRefused(cleaned.places)
        return Checked(cleaned.value, cleaned.counts)

    def kept(self, text: str) -> tuple[str, Counter[str]]:
        """A text of somebody else that is kept, with labels for secrets, and how many there were of which kind.

        Nobody can be refused for it, so labels take their place in the mode `refuse` too.
        """
        return (text, Counter()) if self.mode == "off" else self._redactor.text(text)

    def is_secret(self, name: str, value: object) -> bool:
        """Whether a value is a secret for the name that it has, as one called `password` may be."""
        return self.mode != "off" and bool(self._redactor.data({name: value}, frozenset()).counts)

    def name(self, text: str, *, folded: bool = False) -> str:
        """A name that a program, a file or a setting has, with labels for secrets: nobody could be refused for it.

        `folded`: its case is lost, as that of a tag.
        """
        if self.mode == "off" or not text:
            return text
        key = f"{folded:d}{text}"
        if (known := self._names.get(key)) is not None:
            return known
        clean, _ = self._redactor.text(text, folded=folded)
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        if len(text) <= _HEAD:
            self._names[key] = clean
        return clean

    def namespace(self, name: str) -> str:
        """A namespace that was made of the name of a folder or a repository, in which nobody looks for a secret.

        What stands in the place of one may stand in a namespace, and digits of a SHA-256 keep two such names apart.
        """
        if self.mode == "off" or sum(map(str.isdigit, _MADE.sub("", name))) < _DIGITS:
            # A session that starts need not load the rules for that.
            return name
        # In small letters and with few digits, more names look like a token than tokens do.
        found = [
            each
            for each in self._redactor.find(name, folded=True)
            if sum(map(str.isdigit, name[each.start : each.end])) >= _DIGITS
        ]
        if not found:
            return name
        parts, at = [], 0
        for each in found:
            parts += [name[at : each.start], f"redacted-{each.kind}"]
            at = each.end
        clean = "".join([*parts, name[at:]])[:_NAMESPACE].rstrip("-./")
        return f"{clean}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"

    def details(self) -> dict[str, Any]:
        """For the status: the mode, in words too where nothing is looked for."""
        found: dict[str, Any] = {"mode": self.mode}
        if self._allow:
            found["allowed_patterns"] = len(self._allow)
        if self.mode == "off":
            found["note"] = "secrets are not looked for: they are kept, indexed and shown as they come"
        return found

    def _outline(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """`given` with the lengths that it has, and text only as far as an error shows it."""
        budget = 256

        def cut(text: str) -> str:
            head = self._redactor.text(text[:_HEAD])[0]
            return head + "." * (len(text) - len(head))

        def outlined(value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON
            nonlocal budget
            if isinstance(value, str):
                budget -= 1
                return cut(value) if budget > 0 else "." * len(value)
            if depth > _DEEPEST or not isinstance(value, dict | list):
                return value if isinstance(value, int | float | None) else "."
            if isinstance(value, list):
                return [outlined(inner, depth + 1) for inner in value]
            return {outlined(key, depth): outlined(inner, depth + 1) for key, inner in value.items()}

        return {cut(name): outlined(value, 0) for name, value in given.items()}


_DEEPEST = 64
_DIGITS = 2
_NAMESPACE = 128 - 7
_MADE = re.compile("-[0-9a-f]{6}$")
"""The digits that a folder's namespace has of its path."""


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Every text in plain data, keys too."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            yield from each
            stack.extend(each.values())
        elif isinstance(each, list | tuple):
            stack.extend(each)
