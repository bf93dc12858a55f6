from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agora.errors import InvalidInput, NotFound
from agora.protocol.context import Calling
from agora.protocol.prompts.filling import Filling
from agora.protocol.prompts.library import Library, language_argument
from agora.protocol.prompts.prompt import Argument, Prompt
from agora.protocol.prompts.template import render

PROMPTS = frozenset({"prompts"})
_BYTES = 2 * 1024 * 1024
"""Longest argument of a prompt, in bytes of UTF-8: a log file, or a whole module."""


class PromptNotFound(NotFound):
    """There is no prompt of that name."""

    code = "prompt_not_found"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt with its arguments in place."""

    description: str
    text: str


class Prompts:
    """The prompts by name, rendered for a caller. Blocking: run it in a worker thread."""

    def __init__(self, library: Library, filling: Filling) -> None:
        self.library = library
        self._filling = filling

    def listed(self) -> tuple[Prompt, ...]:
        """Every prompt, by name."""
        return tuple(self.library.prompts().values())

    def changes(self) -> Callable[[], frozenset[str]]:
        """What answers `prompts` if there are other ones than when it was last asked."""
        last = self.library.mark()

        def changed() -> frozenset[str]:
            nonlocal last
            before, last = last, self.library.mark()
            return frozenset() if before == last else PROMPTS

        return changed

    def render(self, name: str, given: Mapping[str, str], calling: Calling) -> Rendered:
        """The prompt `name` with the arguments that were given.

        Raises: PromptNotFound; InvalidInput for an argument that is missing, unknown or of no use; what the memory
        raises, for prompts that it fills.
        """
        shown = self._shown(name)
        values = _checked(shown, given)
        prompt = self.library.find(name) or shown
        language = values.get(language_argument(prompt))
        prompt = self.library.find(name, language) or prompt
        own = {argument.name for argument in prompt.arguments}
        values = {key: value for key, value in values.items() if key in own}
        filled: dict[str, str] = {}
        if prompt.fills:
            filled = self._filling.fill(prompt.fills, values.get("topic"), language or "en", calling)
        return Rendered(prompt.description, render(prompt.template, values | filled))

    def complete(self, name: str, argument: str, beginning: str) -> tuple[str, ...]:
        """The allowed values of an argument that begin so.

        Raises: PromptNotFound.
        """
        found = next((each for each in self._shown(name).arguments if each.name == argument), None)
        values = () if found is None else found.values
        return tuple(value for value in values if value.startswith(beginning.casefold()))

    def _shown(self, name: str) -> Prompt:
        there = self.library.prompts()
        if name not in there:
            raise PromptNotFound(f"Unknown prompt: {name}"[:300], hint=f"There are: {', '.join(there)}.")
        return there[name]


def _checked(prompt: Prompt, given: Mapping[str, str]) -> dict[str, str]:
    by_name = {argument.name: argument for argument in prompt.arguments}
    for name in sorted(set(given) - set(by_name)):
        allowed = ", ".join(by_name) or "none"
        raise InvalidInput(name, f"unknown argument of {prompt.name}; allowed: {allowed}", given[name])
    return {
        name: value for name, argument in by_name.items() if (value := _value(argument, given.get(name))) is not None
    }


def _value(argument: Argument, given: str | None) -> str | None:
    if given is None or not given.strip():
        # Clients send an empty text for a field that was left blank.
        if argument.required:
            raise InvalidInput(argument.name, "it is required", given)
        return argument.default
    if len(given.encode("utf-8", "surrogatepass")) > _BYTES:
        raise InvalidInput(argument.name, f"it is longer than {_BYTES // 1024} kB", given)
    if not argument.values:
        return given
    value = given.strip().casefold()
    if value not in argument.values:
        raise InvalidInput(argument.name, f"must be one of: {', '.join(argument.values)}", given)
    return value
