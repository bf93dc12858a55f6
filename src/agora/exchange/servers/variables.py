"""Variables as clients write them, in the form that `agora.toml` has for them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agora.config.variables import literal
from agora.exchange.servers.reading import Dialect

_BRACES = (
    r"\$\{(?P<name>[A-Za-z_]\w*)(?P<default>:-[^}]*)?\}|\$\{(?P<kind>[A-Za-z]+):(?P<id>[^}]+)\}|\$\{(?P<slash>/)\}"
)
_PATTERNS = {
    "braces": re.compile(_BRACES),
    "dollar": re.compile(_BRACES + r"|\$(?P<bare>[A-Za-z_]\w*)"),
}
_DOLLAR = "${:-$}"
"""A dollar sign that begins no variable: the default of a variable that has no name."""
_FOLDERS = frozenset({"workspaceFolder", "workspaceRoot", "cwd", "CLAUDE_PROJECT_DIR"})


class NotTaken(Exception):
    """Why a server cannot be taken over, in words. Never leaves this package: it is a row of the answer."""


@dataclass(slots=True)
class Translator:
    """Puts texts of one file into Agora's form. `asked`: variables for what the client would ask its user."""

    dialect: Dialect
    folder: Path | None
    """The project that `${workspaceFolder}` stands for."""
    asked: dict[str, None] = field(default_factory=dict)

    def text(self, written: str) -> str:
        """`written` so that Agora puts in what the client would.

        Raises: NotTaken for a variable that only the client has.
        """
        if self.dialect == "none":
            return literal(written)
        parts = list(self._parts(written))
        if not any(is_variable for _, is_variable in parts):
            return literal("".join(part for part, _ in parts))
        # What stands before a variable must not become a part of it.
        return "".join(part if is_variable else beside(part) for part, is_variable in parts)

    def _parts(self, written: str) -> Iterator[tuple[str, bool]]:
        """Each piece of the text, and whether it is a variable."""
        at = 0
        for match in _PATTERNS[self.dialect].finditer(written):
            yield written[at : match.start()], False
            yield self._variable(match)
            at = match.end()
        yield written[at:], False

    def _variable(self, match: re.Match[str]) -> tuple[str, bool]:
        found = match.groupdict()
        name = found["name"] or found.get("bare")
        if found["slash"] or name == "pathSeparator":
            return os.sep, False
        if name in _FOLDERS:
            if self.folder is None:
                raise NotTaken(f"needs the folder of a project ({match[0]}), and the file is for no project")
            return str(self.folder), False
        if name == "userHome":
            return str(Path.home()), False
        if name is not None:
            return f"${{{name}{found['default'] or ''}}}", True
        if found["kind"] == "env":
            return f"${{{found['id']}}}", True
        if found["kind"] == "input":
            variable = shell_name(found["id"])
            self.asked[variable] = None
            return f"${{{variable}}}", True
        raise NotTaken(f"needs {match[0]}, which only its client knows")


def beside(part: str) -> str:
    """A text without variables as it has to stand in one with variables."""
    return part.replace("$", _DOLLAR) if "${" in part or part.endswith("$") else part


def shell_name(*words: str) -> str:
    """A name for a variable that every shell can set, and that is no setting of Agora's."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", "_".join(words)).strip("_").upper()
    if not name or name[0].isdigit() or name.startswith("AGORA"):
        return f"MCP_{name}".rstrip("_")
    return name
