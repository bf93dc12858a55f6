"""`${VAR}` in the texts of `agora.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

_VARIABLE = re.compile(r"\$(?P<literal>\$)?\{(?P<name>[^}]*)\}")
_ELSE = ":-"

Missing = Callable[[str], Exception]
"""The error for a variable of that name which is not set."""


def expand(text: str, env: Mapping[str, str], missing: Missing) -> str:
    """`text` with the value of each variable in the place of `${VAR}`, and `${...}` in that of `$${...}`.

    `${VAR:-default}` stands for the default where the variable is not set or is empty, as in a shell. A default ends
    at the first `}`. What a variable holds is not looked into again.

    Raises: what `missing` returns.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["literal"]:
            return match[0][1:]
        name, has_default, default = match["name"].partition(_ELSE)
        value = env.get(name)
        if has_default:
            return value or default
        if value is None:
            raise missing(name)
        return value

    return _VARIABLE.sub(replaced, text)


def variables_in(text: str) -> Iterator[tuple[str, bool]]:
    """Each variable that `text` names, and whether it has to be set: with a default it has not."""
    for match in _VARIABLE.finditer(text):
        if not match["literal"]:
            name, has_default, _ = match["name"].partition(_ELSE)
            yield name, not has_default


def literal(text: str) -> str:
    """`text` written so that `expand` gives it back: no `${…}` in it is a variable."""
    return _VARIABLE.sub(lambda match: f"${match[0]}", text)
