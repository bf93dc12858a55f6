"""What `agora serve` does first; standard library only, and as little of it as can be."""

from __future__ import annotations

_OPTIONS = {
    "--namespace": "namespace.default",
    "-n": "namespace.default",
    "--agent": "agent",
    "--home": "home",
    "--config": "config",
}


def parse(arguments: list[str]) -> dict[str, str] | None:
    """The settings that these arguments of `agora serve` give; None for anything that the command line must see to.

    That is help, HTTP, and every mistake: its words are the command line's.
    """
    given: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not argument.startswith("--"):
            name, equals, value = argument, "", ""
        if name not in _OPTIONS:
            return None
        if not equals:
            found = next(rest, None)
            if found is None:
                return None
            value = found
        if not value or _OPTIONS[name] in given:
            return None
        given[_OPTIONS[name]] = value
    return given
