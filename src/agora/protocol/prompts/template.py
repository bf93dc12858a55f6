"""The part of Mustache that prompts need: `{{name}}`, `{{#name}}…{{/name}}`, `{{^name}}…{{/name}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TAG = re.compile(r"\{\{([#^/]?)\s*([a-z_][a-z0-9_]*)\s*\}\}")
_ALONE = re.compile(r"^[ \t]*(\{\{[#^/]\s*[a-z_][a-z0-9_]*\s*\}\})[ \t]*\n", re.MULTILINE)


def names(template: str) -> frozenset[str]:
    """Every name that the template uses.

    Raises: ValueError for sections that are not closed in the order in which they were opened.
    """
    open_: list[str] = []
    for mark, name in _TAG.findall(template):
        if mark in {"#", "^"}:
            open_.append(name)
        elif mark == "/" and (not open_ or open_.pop() != name):
            raise ValueError(f"{{{{/{name}}}}} closes no section that is open")
    if open_:
        raise ValueError(f"the section {{{{#{open_[-1]}}}}} is not closed")
    return frozenset(name for _, name in _TAG.findall(template))


def render(template: str, values: Mapping[str, str]) -> str:
    """The template with `values` in place; a name without a value, or with an empty one, is empty.

    Values are put in once, as they are: what looks like a tag in them stays text. Where a value that stands between
    `<name>` and `</name>` contains that end mark itself, both marks get a number, so that the value cannot end early.
    """
    # A section's mark alone on its line takes the line with it, as Mustache has it.
    template = _ALONE.sub(r"\1", template)
    for name, value in values.items():
        template = _fenced(template, name, value)
    return _expanded(template, values)


def _fenced(template: str, name: str, value: str) -> str:
    lowered, number = value.casefold(), 1
    if f"</{name}" not in lowered:
        return template
    while f"</{name}-{number}" in lowered:
        number += 1
    return re.sub(rf"(</?){re.escape(name)}(?=[\s>])", rf"\g<1>{name}-{number}", template)


def _expanded(template: str, values: Mapping[str, str]) -> str:
    parts: list[str] = []
    at, hidden, depth = 0, 0, 0
    for tag in _TAG.finditer(template):
        mark, name = tag[1], tag[2]
        shown = bool(values.get(name))
        if not hidden:
            parts.append(template[at : tag.start()])
        if mark in {"#", "^"}:
            depth += 1
            if not hidden and shown is (mark == "^"):
                hidden = depth
        elif mark == "/":
            hidden = 0 if hidden == depth else hidden
            depth -= 1
        elif not hidden:
            parts.append(values.get(name, ""))
        at = tag.end()
    return "".join((*parts, template[at:]))
