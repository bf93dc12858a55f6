from __future__ import annotations

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings


def doctor(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Check settings, folder, model and store; changes nothing."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.administration import diagnose  # noqa: PLC0415 - `agora --help` must not pay for it

        checks = diagnose(settings(home, config))
    failed = [check for check in checks if not check["ok"]]
    if json_wanted:
        output.as_json({"health": "ok" if not failed else "damaged", "checks": checks})
    else:
        output.checks(checks)
    if failed:
        raise typer.Exit(1)
