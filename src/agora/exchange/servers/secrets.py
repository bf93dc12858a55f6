"""Secrets of servers, kept out of what is written: variables take their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agora.config.backend_checks import is_secret_name
from agora.config.variables import expand, variables_in
from agora.exchange.servers.variables import beside, shell_name
from agora.redaction.redactor import Redactor

_SCHEME = re.compile(r"(?P<scheme>(?i:bearer|basic|token|digest|apikey))[ \t]+(?P<rest>\S.*)", re.DOTALL)
_NO_SECRET = frozenset({"", "true", "false", "none", "null", "yes", "no", "on", "off"})
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)")

Written = tuple[str, list[str]]
"""A text for `agora.toml`, and the variables in it that take the place of secrets."""


@dataclass(slots=True)
class Secrets:
    """Names variables for the secrets of all servers of an import: the same secret has the same variable.

    `kept`: secrets stay as they are. `values` maps each variable to its secret, which nobody is shown.
    """

    redactor: Redactor
    kept: bool = False
    values: dict[str, str] = field(default_factory=dict)

    def in_variable(self, server: str, name: str, written: str) -> Written:
        """What to write for the variable `name` of a child, whose value is `written` in Agora's form."""
        value = _plain(written)
        if self.kept or value is None or not self._is_secret(name, value):
            return self.in_text(server, name, written)
        variable = self._variable(value, shell_name(name), shell_name(server, name))
        return f"${{{variable}}}", [variable]

    def in_header(self, server: str, name: str, written: str) -> Written:
        """What to write for a header; the word before a token stays."""
        value = _plain(written)
        if self.kept or value is None or not self._is_secret(name, value):
            return self.in_text(server, name, written)
        match = _SCHEME.fullmatch(value)
        word = "token" if name.lower() == "authorization" else name
        variable = self._variable(match["rest"] if match else value, shell_name(server, word))
        return (f"{match['scheme']} " if match else "") + f"${{{variable}}}", [variable]

    def in_text(self, server: str, word: str, written: str) -> Written:
        """What to write for a text in which a secret may stand, as in an address; `word` says what it is."""
        value = _plain(written)
        text = written if value is None else value
        found = [] if self.kept else self.redactor.find(text)
        if not found:
            return written, []
        parts, names, at = [], [], 0
        for each in found:
            names.append(self._variable(text[each.start : each.end], shell_name(server, word)))
            parts += [text[at : each.start], f"${{{names[-1]}}}"]
            at = each.end
        parts.append(text[at:])
        if value is not None:
            parts[::2] = [beside(part) for part in parts[::2]]
        return "".join(parts), names

    def in_arguments(self, server: str, written: Sequence[str]) -> list[Written]:
        """What to write for each argument: an option says what the next one is."""
        done: list[Written] = []
        option = None
        for each in written:
            value = _plain(each)
            if option is not None and value is not None and not self.kept and self._called(option, value):
                variable = self._variable(value, shell_name(server, option))
                done.append((f"${{{variable}}}", [variable]))
            else:
                done.append(self.in_text(server, "argument", each))
            match = _OPTION.fullmatch(each)
            option = match["name"] if match else None
        return done

    def _is_secret(self, name: str, value: str) -> bool:
        return value.strip().lower() not in _NO_SECRET and (is_secret_name(name) or self._called(name, value))

    def _called(self, name: str, value: str) -> bool:
        return bool(self.redactor.data({name: value}).counts)

    def _variable(self, value: str, *names: str) -> str:
        """The first of the names that stands for no other value; the last one with a number if all do."""
        number = 1
        while True:
            for name in names:
                if self.values.setdefault(name, value) == value:
                    return name
            number += 1
            names = (f"{names[-1].rstrip('0123456789_')}_{number}",)


def _plain(written: str) -> str | None:
    """The text that Agora reads; None if variables are in it."""
    return None if any(variables_in(written)) else expand(written, {}, KeyError)
