from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agora.cli import output
from agora.cli.progress import shown
from agora.cli.session import CLIENT, Config, Home, Json, errors_as_status, opened_agora, origin, require_known
from agora.errors import AgoraError
from agora.model.deadline import Deadline

_SECONDS = 7 * 86_400.0
"""Nobody waits for an answer: an import may take as long as it takes."""

_SHOWN = 20

Scopes = Annotated[list[str] | None, typer.Option("--namespace", "-n", help="Only this scope; may be given again.")]


def export(
    file: Annotated[str, typer.Argument(help="File to write, gzipped if it ends in .gz; - for standard output.")],
    namespace: Scopes = None,
    since: Annotated[str | None, typer.Option(help="Only what was saved or changed since: date, time, 7d.")] = None,
    include_forgotten: Annotated[
        bool,
        typer.Option("--include-forgotten/--live-only", help="With what was forgotten, superseded, expired, or not."),
    ] = True,
    vectors: Annotated[bool, typer.Option("--vectors", help="With vectors, so that an import needs no model.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Write notes, with history and provenance, to a file."""
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora:
        from agora.exchange import targets  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.ports.transfer import Extract  # noqa: PLC0415 - as above
        from agora.protocol.times import instant  # noqa: PLC0415 - as above

        deadline = Deadline(_SECONDS)
        callers = _callers(agora)
        known = agora.transfer.namespaces(deadline)
        wanted = tuple(dict.fromkeys(callers(name).scope.own for name in namespace or known))
        require_known(wanted, known)
        extract = Extract(
            wanted,
            since=None if since is None else instant("since", since, agora.clock.now()),
            live_only=not include_forgotten,
            vectors=vectors,
        )
        with targets.opened(file, replace=force) as out, shown("exporting") as told:
            end = agora.exporter().run(
                extract, callers(None), out, deadline, all_namespaces=not namespace, progress=partial(told, "exporting")
            )
    told_to = sys.stderr if file == "-" else sys.stdout
    result = {"file": file, "namespaces": list(wanted), "versions": end["versions"], "sha256": end["versions_sha256"]}
    if json_wanted and file != "-":
        output.as_json(result)
    else:
        print(f"exported {end['versions']} versions from {len(wanted)} namespaces to {file}", file=told_to)


def import_(
    files: Annotated[list[str], typer.Argument(help="Files to read, plain, gzipped or zipped; - for standard input.")],
    format_name: Annotated[
        str | None, typer.Option("--format", "-f", help="Format, if it should not be recognised by content.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace", "-n", help="Scope for texts of other tools; of an export, the only scopes to take."
        ),
    ] = None,
    origin: Annotated[
        Literal["tool", "web"] | None, typer.Option(help="Give the texts less authority than their source has.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would come, and change nothing.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Take in notes from exports and from files of other tools."""
    reports: list[dict[str, Any]] = []
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora:
        from agora.exchange import sources  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.exchange.formats import known_format  # noqa: PLC0415 - as above
        from agora.exchange.importing import Wanted  # noqa: PLC0415 - as above

        callers = _callers(agora)
        wanted = Wanted(
            format=known_format(format_name),
            namespaces=tuple(dict.fromkeys(callers(name).scope.own for name in namespace or ())),
            origin=origin,
            dry_run=dry_run,
        )
        importer = agora.importer()
        for file in files:
            with sources.opened(file) as found:
                for source in found:
                    with shown(source.name, source.size) as told:
                        progress = partial(told, source.name)
                        done = importer.run(source, callers, wanted, Deadline(_SECONDS), progress)
                    reports.append(done.as_data())
                    if not json_wanted:
                        _show(reports[-1])
        if not dry_run:
            _settle_index(agora)
    if json_wanted:
        output.as_json({"dry_run": dry_run, "files": reports})
    if not all(report["whole"] for report in reports):
        raise typer.Exit(1)


def _settle_index(agora: Any) -> None:  # noqa: ANN401 - Agora, without importing it here
    """Write what came to the index, if it was much: else every process that starts reads it from the rows."""
    try:
        agora.store.compact(force=False)
    except AgoraError as error:
        # The notes are in the store, whatever became of the files.
        print(f"agora: the vector index was not compacted: {output.printable(error.message)}", file=sys.stderr)


def _callers(agora: Any) -> Callable[[str | None], Any]:  # noqa: ANN401 - Agora, without importing it here
    """Whoever is at this terminal, as somebody who has named a namespace."""
    connection = agora.connection(origin=origin(), folder=Path.cwd(), door="command")
    return lambda name: connection.caller(CLIENT, namespace=name)


def _show(report: dict[str, Any]) -> None:
    """What became of one file, in words."""
    counts, would = report["counts"], "would come" if report["dry_run"] else "came"
    said = [f"{number} {fate}" for fate, number in counts.items() if number]
    head = f"{output.printable(report['file'])} ({report['format']})"
    print(f"{head}: {', '.join(said) or 'nothing'} {would if said else ''}".rstrip())
    if report["left_out"]:
        print(f"  left out: {', '.join(f'{number} {what}' for what, number in report['left_out'].items())}")
    if report["redacted"]:
        print(f"  secrets replaced: {', '.join(f'{number} {kind}' for kind, number in report['redacted'].items())}")
    if report["lowered"]:
        print(f"  {report['lowered']} savers of higher origin than yours were given yours: on a terminal it is `user`")
    if report["dry_run"]:
        for row in report["first"]:
            title = f"{row['title']}: " if "title" in row else ""
            row_head = f"  {row['fate']} [{row['kind']}] {row.get('agent', '?')} {row['at'][:10]}"
            print(f"{row_head} {output.printable(title + row['opening'])}")
    _list("duplicates", [f"duplicate {each['id']}{_other(each)}" for each in report["duplicates"]])
    _list("conflicts", [f"conflict {each['id']}{_other(each)}: {each['reason']}" for each in report["conflicts"]])
    _list("broken", [f"broken {each['place']}: {each['reason']}" for each in report["broken"]])
    for problem in report["problems"]:
        print(f"  {output.printable(problem)}")


def _list(name: str, lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        print(f"  {output.printable(line)}")
    if len(lines) > _SHOWN:
        print(f"  … {len(lines) - _SHOWN} more {name}: --json lists them")


def _other(row: dict[str, Any]) -> str:
    return f" of {row['kept']}" if "kept" in row else ""
