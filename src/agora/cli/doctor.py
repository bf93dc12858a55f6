from __future__ import annotations

from typing import Annotated, Any

import typer

from agora.cli import output, progress
from agora.cli.session import Config, Home, Json, errors_as_status, quiet, settings


def doctor(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Make anew what is derived from the notes and wrong; a copy of the store is made first."
        ),
    ] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Check settings, folder, model and store, or repair.

    With --repair, what can be made anew from the notes is.
    """
    with errors_as_status(json_wanted=json_wanted):
        loaded = settings(home, config)
        if repair:
            clean = _repaired(loaded, json_wanted=json_wanted)
        else:
            from agora.app.checking import diagnose, failures  # noqa: PLC0415 - `agora --help` must not pay for it

            rows = diagnose(loaded)
            clean = not failures(rows)
            if json_wanted:
                output.as_json({"health": _health(clean), "checks": rows})
            else:
                output.checks(rows)
    if not clean:
        raise typer.Exit(1)


def _repaired(loaded: Any, *, json_wanted: bool) -> bool:  # noqa: ANN401 - Loaded, without importing it here
    from agora.app.checking import failures  # noqa: PLC0415 - `agora --help` must not pay for it
    from agora.app.repairing import repair  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging  # noqa: PLC0415 - as above

    configure_logging(quiet(loaded))
    with progress.shown() as told:
        found = repair(loaded, told)
    copy = None if found.copy is None else str(found.copy)
    if json_wanted:
        output.as_json(
            {
                "health": _health(found.clean),
                "checks": found.after,
                "before": found.before,
                "done": found.done,
                "left": found.left,
                "copy": copy,
            }
        )
        return found.clean
    if broken := failures(found.before):
        print("before:")
        output.checks(broken)
    print("done:" if found.done else "nothing was changed")
    for each in found.done:
        output.line(f"      {each}")
    if copy is not None:
        output.line(f"      the store as it was is in {copy}: delete it when you need it no more, it holds your notes")
    for row in found.left:
        output.line(f"left  {row['message']}")
        output.line(f"        {row['hint']}")
    print("now:")
    output.checks(found.after)
    return found.clean


def _health(clean: bool) -> str:
    return "ok" if clean else "damaged"
