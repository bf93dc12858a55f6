"""The prompts there are: those of the package, and those in the user's folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from agora.ports.log import Log
from agora.protocol.prompts.prompt import Argument, Prompt, parse

LANGUAGES = ("en", "it")
_MOST = 200
"""Files of the user's folder that are read."""
_BYTES = 256 * 1024
"""Largest file that is read."""

_WORDS = {
    "en": "Language of the prompt.",
    "it": "Lingua del prompt.",
}


class Library:
    """Prompts by name, each in one language or more; the user's own go before those of the package.

    The user's folder holds files `name.md` (English, or whatever it is written in), and `name.it.md` for Italian. What
    cannot be used is logged and left out; `problems` tells of it.
    """

    def __init__(self, folder: Path | None, language: str, log: Log) -> None:
        """`language` is the one of calls that name none."""
        self._folder = folder
        self._language = language
        self._log = log
        self._lock = threading.Lock()
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._own: dict[str, dict[str, Prompt]] = {}
        self._problems: tuple[str, ...] = ()

    def prompts(self) -> dict[str, Prompt]:
        """Every prompt by name, sorted, in the language of the setting; each has an argument for another language."""
        found = {**_packaged(), **self._owned()}
        return {name: self._shown(found[name]) for name in sorted(found)}

    def find(self, name: str, language: str | None = None) -> Prompt | None:
        """One prompt in a language, or in one that it has."""
        found = self._owned().get(name) or _packaged().get(name)
        return None if found is None else _in(found, language or self._language)

    def problems(self) -> tuple[str, ...]:
        """One sentence for each file of the user's folder that cannot be used."""
        self._owned()
        return self._problems

    def mark(self) -> object:
        """Something that is equal as long as the user's folder is the same: names, sizes and times of its files."""
        return self._state()

    def _shown(self, versions: Mapping[str, Prompt]) -> Prompt:
        prompt = _in(versions, self._language)
        if len(versions) == 1:
            return prompt
        asked = Argument(
            language_argument(prompt),
            _WORDS.get(self._language, _WORDS["en"]),
            values=tuple(sorted(versions)),
            default=self._language if self._language in versions else "en",
        )
        return replace(prompt, arguments=(*prompt.arguments, asked))

    def _owned(self) -> dict[str, dict[str, Prompt]]:
        with self._lock:
            state = self._state()
            if state != self._seen:
                self._own, self._problems = self._read(state)
                self._seen = state
                for problem in self._problems:
                    self._log.warning("prompt left out", problem=problem)
            return self._own

    def _state(self) -> tuple[tuple[str, int, int], ...]:
        if self._folder is None:
            return ()
        try:
            with os.scandir(self._folder) as entries:
                files = sorted(entry.name for entry in entries if entry.name.endswith(".md"))[: _MOST + 1]
            states = [(name, (self._folder / name).stat()) for name in files]
        except OSError:
            # No folder, or a file that goes as we look: the next look sees what is there then.
            return ()
        return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in states)

    def _read(self, state: tuple[tuple[str, int, int], ...]) -> tuple[dict[str, dict[str, Prompt]], tuple[str, ...]]:
        own: dict[str, dict[str, Prompt]] = {}
        problems = [f"only {_MOST} prompts are read"] if len(state) > _MOST else []
        for name, size, _ in state[:_MOST]:
            assert self._folder is not None
            stem, _, language = name.removesuffix(".md").partition(".")
            try:
                if size > _BYTES:
                    raise ValueError(f"it is larger than {_BYTES // 1024} kB")  # noqa: TRY301 - told like the others
                prompt = parse((self._folder / name).read_text("utf-8"))
                if prompt.name != stem:
                    raise ValueError(f"its name is {prompt.name!r}, so the file should be {prompt.name}.md")  # noqa: TRY301 - as above
                if language and language not in LANGUAGES:
                    raise ValueError(f"{language!r} is no language of the prompts: {', '.join(LANGUAGES)}")  # noqa: TRY301 - as above
            except (OSError, ValueError) as error:
                problems.append(f"{name}: {error}")
            else:
                own.setdefault(prompt.name, {})[language or "en"] = prompt
        return own, tuple(problems)


def language_argument(prompt: Prompt) -> str:
    """What the argument for the prompt's own language is called: `language`, unless it has one of that name."""
    taken = {argument.name for argument in prompt.arguments}
    return "prompt_language" if "language" in taken else "language"


def _in(versions: Mapping[str, Prompt], language: str) -> Prompt:
    return versions.get(language) or versions.get("en") or next(iter(versions.values()))


@cache
def _packaged() -> dict[str, dict[str, Prompt]]:
    found: dict[str, dict[str, Prompt]] = {}
    for language in LANGUAGES:
        for file in resources.files("agora.protocol.prompts").joinpath(language).iterdir():
            if file.name.endswith(".md"):
                prompt = parse(file.read_text("utf-8"))
                found.setdefault(prompt.name, {})[language] = prompt
    return found
