from __future__ import annotations

_OPTIONS = {
    "--namespace": "namespace.default",
    "-n": "namespace.default",
    "--agent": "agent",
    "--home": "home",
    "--config": "config",
}

IN_PROCESS = "--in-process"


def parse(arguments: list[str]) -> tuple[dict[str, str], bool] | None:
    """The settings that these arguments of `agora serve` give, and whether `--in-process` is among them.

    None for anything that the command line must see to: help, HTTP, and every mistake, since its words are the
    command line's.
    """
    given: dict[str, str] = {}
    alone = False
    rest = iter(arguments)
    for argument in rest:
        if argument == IN_PROCESS:
            alone = True
            continue
        name, equals, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
        if name not in _OPTIONS:
            return None
        if not equals:
            value = next(rest, "")
        if not value or _OPTIONS[name] in given:
            return None
        given[_OPTIONS[name]] = value
    return given, alone
