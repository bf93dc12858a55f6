"""What every command shares: settings from the options, an open Agora, one call, and errors as exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.config.load import Loaded, load_settings
from agora.errors import AgoraError, NotFound
from agora.model.caller import Origin
from agora.model.deadline import Deadline

CLIENT = "agora-cli"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Home = Annotated[
    Path | None, typer.Option(help="Data folder. Default: AGORA_HOME, else the platform's per-user folder.")
]
Config = Annotated[
    Path | None,
    typer.Option(help="Configuration file. Default: AGORA_CONFIG, else agora.toml in the data folder."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Scope: a project, or `shared`. Default: this project."),
]


def settings(home: Path | None, config: Path | None) -> Loaded:
    """The settings of this command.

    Raises: ConfigError.
    """
    options = {"home": str(home) if home else None, "config": str(config) if config else None}
    return load_settings({name: value for name, value in options.items() if value is not None})


def run_tool(
    name: str,
    given: Mapping[str, Any],
    show: Callable[[Mapping[str, Any]], None],
    json_wanted: bool,
    home: Path | None,
    config: Path | None,
    namespace: str | None = None,
    *,
    warm: bool = False,
) -> None:
    """Call a tool in this process and print its result; exits with 1 or 2 on an error.

    `namespace` opens a namespace for tools that have no such argument themselves. `warm` waits for the model first.
    """
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.guarding import guard_of  # noqa: PLC0415 - as above
        from agora.protocol import schemas  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.protocol.tools.table import CALLABLE  # noqa: PLC0415 - as above

        loaded = settings(home, config)
        arguments = {key: value for key, value in given.items() if value is not None}
        # A mistake makes no data folder and waits for no store.
        tool = CALLABLE[name]
        looked = {key: value for key, value in arguments.items() if key not in tool.verbatim}
        clean = guard_of(loaded.settings).arguments(looked).value
        schemas.check(tool.input, {key: clean.get(key, value) for key, value in arguments.items()})
        result = call_here(loaded, name, arguments, namespace, warm=warm)
        if json_wanted:
            output.as_json(result)
        else:
            show(result)
            output.replaced(result)


def call_here(
    loaded: Loaded, name: str, arguments: Mapping[str, Any], namespace: str | None = None, *, warm: bool = False
) -> dict[str, Any]:
    """The result of a tool that is called in this process, with the settings `loaded`.

    `namespace` opens a namespace for tools that have no such argument themselves. `warm` waits for the model first.

    Raises: what opening the store and the tool raise.
    """
    from agora.app.agora import opened  # noqa: PLC0415 - `agora --help` must not pay for it
    from agora.app.warming import warm as waited_for  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging  # noqa: PLC0415 - as above

    configure_logging(quiet(loaded))
    with opened(loaded) as agora:
        connection = agora.connection(origin=origin(), folder=Path.cwd(), door="command")
        if warm:
            waited_for(agora.encoder, loaded.settings.embedding.deadline)
        if namespace is not None:
            connection.caller(CLIENT, namespace=namespace)
        deadline = Deadline(loaded.settings.limits.call_seconds)
        return agora.tools.call(name, arguments, connection, client=CLIENT, deadline=deadline)


@contextmanager
def errors_as_status(*, json_wanted: bool) -> Iterator[None]:
    """Turn Agora's errors into words and an exit status: 2 for a wrong argument or setting, else 1."""
    try:
        yield
    except AgoraError as error:
        raise typer.Exit(output.fail(error, json_wanted=json_wanted)) from None
    except BrokenPipeError:
        # The reader of a pipe went away, as `head` does.
        raise typer.Exit(1) from None


@contextmanager
def opened_agora(home: Path | None, config: Path | None) -> Iterator[Any]:
    """An open `Agora` of the settings that hold here, for the length of a block.

    Raises: ConfigError, and what opening the store and the model raises.
    """
    from agora.app.agora import opened  # noqa: PLC0415 - `agora --help` must not pay for it
    from agora.config.logs import configure_logging  # noqa: PLC0415 - as above

    loaded = settings(home, config)
    configure_logging(quiet(loaded))
    with opened(loaded) as agora:
        yield agora


def is_interactive() -> bool:
    """Whether a person sits at the terminal, who can be asked and who answers for what is written."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def origin() -> Origin:
    """Where texts of this command come from."""
    return "user" if is_interactive() else "agent"


def require_known(wanted: Sequence[str], known: Sequence[str]) -> None:
    """Return if the store has all of the namespaces `wanted`.

    Raises: NotFound.
    """
    for name in wanted:
        if name not in known:
            raise NotFound(f"the store has no namespace {name!r}", hint=f"It has: {', '.join(known) or 'none yet'}.")


def quiet(loaded: Loaded) -> Any:  # noqa: ANN401 - Settings, without importing it here
    """The settings with a log level that keeps a command's own output readable."""
    if loaded.sources["log.level"] != "default":
        return loaded.settings
    return loaded.settings.model_copy(update={"log": loaded.settings.log.model_copy(update={"level": "warning"})})
