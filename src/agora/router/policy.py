"""Whether a call to a tool of another MCP server only reads, and whether it is let through.

Fail closed, in this order: what the operator denies, what the operator allows, what the tool says of itself if its
server is trusted, what its name says, and else it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agora.config.backends import BackendTable
from agora.errors import AccessDenied, ReadOnlyBackend
from agora.model.access import fits
from agora.model.backend import ToolDefinition
from agora.router.verbs import Reading, reading, writes
from agora.text.normal import folded

Access = Literal["read", "write"]

Rule = Literal["deny", "allow", "annotation", "name"]
"""What decided: a pattern of the operator, the tool's own annotations, or its name (and the lack of a reading word)."""

_CHOOSERS = frozenset(["action", "command", "http_method", "httpmethod", "method", "mode", "op", "operation", "verb"])
"""Parameters, in lower case, that choose what a tool does."""

_PROGRAMS = frozenset(["cypher", "http_method", "httpmethod", "sql"])
"""Parameters, in lower case, that can ask for a change whatever the tool is called, unless their values are listed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds for the calls of one tool.

    `access` is `read` only where a call may be repeated and its result kept: the operator's `allow` lets a call
    through and says nothing of that. `allowed` is whether it is let through at all, by `rule`. `words` says both.
    """

    access: Access
    allowed: bool
    rule: Rule
    words: str

    @property
    def in_broadcast(self) -> bool:
        """Whether a broadcast may call it: it only reads, or the operator has allowed it."""
        return self.allowed and (self.access == "read" or self.rule == "allow")


def verdict(tool: ToolDefinition, backend: BackendTable) -> Verdict:
    """What holds for calls of `tool`, one of `backend`'s."""
    access, rule, why = _access(tool, backend)
    told = f"It counts as {'reading' if access == 'read' else 'writing'}: {why}."
    # A denied name is denied however it is written; one that is allowed must be exactly that.
    if (pattern := _fitting(map(_bare, backend.deny), _bare(tool.name))) is not None:
        return Verdict(
            access, allowed=False, rule="deny", words=f"The pattern {pattern!r} of `deny` forbids it. {told}"
        )
    if (pattern := _fitting(backend.allow, tool.name)) is not None:
        return Verdict(
            access, allowed=True, rule="allow", words=f"The pattern {pattern!r} of `allow` lets it through. {told}"
        )
    return Verdict(access, access == "read" or not backend.read_only, rule, told)


def refusal(tool: ToolDefinition, backend: BackendTable, found: Verdict) -> AccessDenied:
    """The error for a call that `found` does not let through: it names the rule and what the operator could write."""
    if found.rule == "deny":
        return AccessDenied(
            f"{backend.name}: {tool.name!r} is not to be called: {_lower(found.words)}",
            hint=f"Whoever runs Agora forbade it{_at(backend)}; use another tool, or ask them to change `deny`.",
        )
    ways = [f"`allow = [{_quoted(tool.name)}]` to let it through"]
    if found.rule == "name" and _says_read(tool.annotations):
        ways.append("`trusted = true` to believe what its tools say of themselves: this one says that it only reads")
    return ReadOnlyBackend(
        f"{backend.name} is read-only, and {tool.name!r} may change something. {found.words}",
        hint=f"Whoever runs Agora can write into the table of {backend.name}{_at(backend)}: {', or '.join(ways)}.",
    )


def _access(tool: ToolDefinition, backend: BackendTable) -> tuple[Access, Rule, str]:
    said = tool.annotations
    # That a tool writes is believed whoever says it.
    if said.get("destructiveHint") is True:
        return "write", "annotation", "it says of itself that it may destroy something (destructiveHint)"
    if said.get("readOnlyHint") is False:
        return "write", "annotation", "it says of itself that it does not only read (readOnlyHint)"
    if backend.trusted and _says_read(said):
        return "read", "annotation", "it says so of itself (readOnlyHint), and its server is trusted"
    name = reading(tool.name)
    if name.reads and (why := _asked_to_write(tool.input)):
        name = Reading(why, reads=False)
    return "read" if name.reads else "write", "name", name.why


def _says_read(said: Mapping[str, Any]) -> bool:
    return said.get("readOnlyHint") is True and said.get("destructiveHint") is not True


def _asked_to_write(schema: Mapping[str, Any]) -> str:
    """Which parameter of a tool with a reading name can ask for a change; empty for none."""
    parameters = schema.get("properties")
    if not isinstance(parameters, Mapping):
        return ""
    for name, rules in parameters.items():
        values = _values(rules)
        plain = str(name).lower()
        if plain in _PROGRAMS and not values:
            return f"its parameter {name!r} can ask for a change"
        if plain in _CHOOSERS and (bad := next((value for value in values if writes(value)), None)) is not None:
            return f"its parameter {name!r} can be {bad!r}"
    return ""


def _values(rules: object) -> Sequence[str]:
    """The texts that a parameter can be, if they are listed."""
    if not isinstance(rules, Mapping):
        return ()
    listed = rules.get("enum")
    found = list(listed) if isinstance(listed, list) else []
    if "const" in rules:
        found.append(rules["const"])
    for group in ("anyOf", "oneOf"):
        if isinstance(parts := rules.get(group), list):
            found += [value for part in parts if isinstance(part, Mapping) for value in _listed(part)]
    return [value for value in found if isinstance(value, str)]


def _listed(part: Mapping[str, Any]) -> list[object]:
    values = part.get("enum")
    return [*(values if isinstance(values, list) else ()), *([part["const"]] if "const" in part else ())]


def _fitting(patterns: Iterable[str], name: str) -> str | None:
    return next((pattern for pattern in patterns if fits(pattern, name)), None)


def _bare(name: str) -> str:
    return folded(name).replace("\u200b", "")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _at(backend: BackendTable) -> str:
    return f" ({backend.place})" if backend.place else ""


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]
