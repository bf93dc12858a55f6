"""A prompt as its Markdown file says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agora.protocol.prompts.template import names

FILLED = frozenset({"notes", "verdicts", "saved", "changes"})
"""Names that the memory fills in a template."""

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*\n(.*)\Z", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_KEYS = {"name", "title", "description", "arguments"}
_ARGUMENT_KEYS = {"name", "description", "required", "values", "default"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: `values` are the only ones allowed, if there are any."""

    name: str
    description: str
    required: bool = False
    values: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt in one language."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    template: str

    @property
    def fills(self) -> frozenset[str]:
        """What the memory has to tell for it."""
        return FILLED & names(self.template) - {argument.name for argument in self.arguments}


def parse(text: str) -> Prompt:
    """The prompt that a Markdown file with YAML front matter describes.

    Raises: ValueError, with words for whoever wrote the file.
    """
    import yaml  # noqa: PLC0415 - a server that starts has no use for it

    found = _FRONT.match(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    if found is None:
        raise ValueError("it does not begin with front matter between two lines of `---`")
    try:
        head = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise ValueError(f"its front matter is no YAML: {' '.join(str(error).split())}") from error
    _keys(head, _KEYS, "the front matter")
    arguments = head.get("arguments") or []
    if not isinstance(arguments, list):
        raise ValueError("`arguments` is not a list")  # noqa: TRY004 - one kind of error for whoever wrote the file
    made = Prompt(
        _name(head, "name"),
        _words(head, "title"),
        _words(head, "description"),
        tuple(map(_argument, arguments)),
        found[2].strip() + "\n",
    )
    known = {argument.name for argument in made.arguments}
    if len(known) < len(made.arguments):
        raise ValueError("two arguments have one name")
    if unknown := sorted(names(made.template) - known - FILLED):
        raise ValueError(f"it uses {{{{{unknown[0]}}}}}, which is none of its arguments")
    return made


def _argument(given: Any) -> Argument:  # noqa: ANN401 - YAML is Any
    _keys(given, _ARGUMENT_KEYS, "an argument")
    name = _name(given, "name")
    values, default = given.get("values") or [], given.get("default")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"`values` of {name} is not a list of texts (write numbers and yes or no in quotes)")
    if not isinstance(default, str | None) or not isinstance(given.get("required", False), bool):
        raise ValueError(f"`default` of {name} is not a text, or `required` is not true or false")  # noqa: TRY004 - as above
    if default is not None and values and default not in values:
        raise ValueError(f"the default of {name} is none of its values")
    return Argument(name, _words(given, "description"), given.get("required", False), tuple(values), default)


def _keys(given: Any, allowed: set[str], what: str) -> None:  # noqa: ANN401 - YAML is Any
    if not isinstance(given, dict):
        raise ValueError(f"{what} is not a list of keys and values")  # noqa: TRY004 - as above
    if unknown := sorted(map(str, set(given) - allowed)):
        raise ValueError(f"{what} has an unknown key: {unknown[0]}")


def _name(given: dict[str, Any], key: str) -> str:
    name = given.get(key)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"`{key}` must be lower-case letters, digits and _, at most 64: {name!r}")
    return name


def _words(given: dict[str, Any], key: str) -> str:
    words = given.get(key)
    if not isinstance(words, str) or not words.strip():
        raise ValueError(f"`{key}` is missing")
    return words.strip()
