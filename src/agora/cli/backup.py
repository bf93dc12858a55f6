from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agora.cli import output, progress
from agora.cli.session import Config, Home, Json, errors_as_status, is_interactive, quiet, settings
from agora.errors import InvalidInput


def backup(
    file: Annotated[Path, typer.Argument(help="File to write: one file, with everything in it.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Check only that the file is whole, not every invariant of the store.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Write a checked copy of the store to a file.

    Servers may run meanwhile.
    """
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.backups import write_backup  # noqa: PLC0415 - `agora --help` must not pay for it

        with progress.shown() as told:
            done = write_backup(settings(home, config), file, told, replace=force, quick=quick)
    if json_wanted:
        output.as_json(done)
    else:
        output.line(f"wrote {done['file']}: {_counted(done)}, {done['bytes']:,} bytes, in {done['seconds']:.1f} s")
        print("checked: the file is whole" if quick else "checked: every invariant")
        for problem in done["problems"]:
            output.line(f"  {problem['code']}: {problem['message']}")
        if done["problems"]:
            print("  the store itself has these problems: run `agora doctor`")
    if done["problems"]:
        raise typer.Exit(1)


def restore_backup(
    file: Annotated[Path, typer.Argument(help="File that `agora backup` wrote.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    no_copy: Annotated[bool, typer.Option("--no-copy", help="Keep no copy of what the store holds now.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Put a backup in place of all that the store holds.

    Servers may run meanwhile; what they answer from then on is of the backup.
    """
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.backups import restoring  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.config.logs import configure_logging  # noqa: PLC0415 - as above

        loaded = settings(home, config)
        can_ask = not json_wanted and is_interactive()
        if not (yes or can_ask):
            hint = "Nothing was changed. Add --yes to replace what the store holds."
            raise InvalidInput("yes", "is required where nobody can be asked", None, hint=hint)
        configure_logging(quiet(loaded))
        with contextlib.ExitStack() as stack:
            # No bar while a question waits for its answer.
            with progress.shown() as told:
                ready = stack.enter_context(restoring(loaded, file, told))
            if not yes:
                _ask(ready.plan(), keep=not no_copy)
            with progress.shown() as told:
                done = ready.run(told, keep=not no_copy)
    if json_wanted:
        output.as_json(done)
        return
    output.line(f"restored {_counted(done)} from {done['file']} in {done['seconds']:.1f} s")
    if done["copy"]:
        output.line(f"what was there before is in {done['copy']}: delete it when you need it no more")


def _ask(plan: Mapping[str, Any], *, keep: bool) -> None:
    now = plan["now"]
    output.line(f"the backup: {_counted(plan)}, model {plan['model']}, last change {plan['last_change'] or 'none'}")
    if now is None:
        print("the store:  none yet")
    elif "unreadable" in now:
        output.line(f"the store:  cannot be read: {now['unreadable']}")
    else:
        output.line(f"the store:  {_counted(now)}, model {now['model']}, last change {now['last_change'] or 'none'}")
    what = "A copy of it is kept." if keep else "No copy of it is kept."
    if not typer.confirm(f"Replace everything in the store? {what}", default=False):
        print("nothing was changed", file=sys.stderr)
        raise typer.Exit(1)


def _counted(found: Mapping[str, Any]) -> str:
    notes, versions, facts, messages = (
        f"{found[each]:,} {each[: None if found[each] != 1 else -1]}"
        for each in ("notes", "versions", "facts", "messages")
    )
    # Of what it has none of, nothing is said.
    more = [told for told, name in ((facts, "facts"), (messages, "messages")) if found[name]]
    return f"{', '.join([f'{notes} in {versions}', *more])}, sequence {found['sequence']}"
