from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.session import CLIENT, Config, Home, Json, errors_as_status, origin, quiet
from agora.errors import AgoraError

_EVERY = 10.0
"""Seconds between two lines about the progress where there is no terminal."""


def reembed(
    model: Annotated[
        str | None,
        typer.Option(help="The model to move to, as in embedding.model. Default: the one that is configured."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Where an `openai:` model is, as in embedding.url. A key comes from AGORA_EMBEDDING_KEY."),
    ] = None,
    dimension: Annotated[int | None, typer.Option(help="Length of its vectors, as in embedding.dimension.")] = None,
    query_prefix: Annotated[str | None, typer.Option(help="As embedding.query_prefix.")] = None,
    document_prefix: Annotated[str | None, typer.Option(help="As embedding.document_prefix.")] = None,
    languages: Annotated[str | None, typer.Option(help="As embedding.languages: `en, it`.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="As embedding.max_tokens.")] = None,
    pooling: Annotated[str | None, typer.Option(help="As embedding.pooling: mean or cls.")] = None,
    batch: Annotated[int | None, typer.Option(help="Passages in one request, as in embedding.batch.")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads, as in embedding.threads.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much there is to do, by encoding a few texts; change nothing.")
    ] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Move the store to another embedding model.

    Servers may run meanwhile. What was stopped goes on where it was.
    """
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.reembedding import choose, outlook  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.config.logs import configure_logging  # noqa: PLC0415 - as above

        where = {name: str(path) for name, path in (("home", home), ("config", config)) if path is not None}
        options = {
            "model": model,
            "url": url,
            "dimension": dimension,
            "query_prefix": query_prefix,
            "document_prefix": document_prefix,
            "languages": languages,
            "max_tokens": max_tokens,
            "pooling": pooling,
            "batch": batch,
            "threads": threads,
        }
        chosen = choose(options, where)
        configure_logging(quiet(chosen.loaded))
        done = outlook(chosen) if dry_run else _moved(chosen)
    if json_wanted:
        output.as_json(done)
    elif dry_run:
        _show_outlook(done)
    else:
        _show(done)


def _moved(chosen: Any) -> dict[str, Any]:  # noqa: ANN401 - Chosen, without importing it here
    from agora.app.reembedding import reembed as move  # noqa: PLC0415 - `agora --help` must not pay for it

    told = _Told()
    try:
        with _progress(told) as progress:
            return move(chosen, origin(), CLIENT, progress, told.say)
    except KeyboardInterrupt:
        told.say(f"stopped at {told.done}; the same command goes on from there")
        raise
    except AgoraError:
        if told.total:
            told.say(f"stopped at {told.done}; the same command goes on from there")
        raise


class _Told:
    """What was said about the progress last."""

    def __init__(self) -> None:
        self.say: Callable[[str], None] = lambda words: print(f"reembed: {output.printable(words)}", file=sys.stderr)
        self.done = "the beginning"
        self.total = 0

    def note(self, done: int, total: int) -> None:
        """Remember it."""
        self.done, self.total = f"{done:,} of {total:,} notes", total


@contextlib.contextmanager
def _progress(told: _Told) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr if that is a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        last = time.monotonic()

        def line(done: int, total: int) -> None:
            nonlocal last
            told.note(done, total)
            if time.monotonic() - last >= _EVERY:
                last = time.monotonic()
                told.say(told.done)

        yield line
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - slow to import

    columns = (TextColumn("notes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(done: int, total: int) -> None:
            told.note(done, total)
            bar.update(task, completed=done, total=total)

        # The bar writes what is said above itself.
        yield move


def _show_outlook(found: Mapping[str, Any]) -> None:
    if not found["needed"]:
        output.line(f"the store has the model {found['new']} already: nothing to do")
        return
    output.line(f"from {found['old']} to {found['new']}")
    done = f", {found['done']:,} of them done" if found["done"] else ""
    cut = ", cut anew: the model reads less, or more, at once" if found["cut_anew"] else ""
    print(f"{found['versions']:,} notes, every version counted: about {found['passages']:,} passages{done}{cut}")
    print(f"about {_duration(found['seconds'])}, going by a few of them")
    print(
        f"about {found['bytes_needed'] / 1e6:,.0f} MB more on the disk until the old vectors are deleted,"
        f" {found['bytes_free'] / 1e6:,.0f} MB are free"
    )
    if found["abandons"]:
        output.line(f"an unfinished move to {found['abandons']} would be given up")
    print("nothing has changed: this was a dry run", file=sys.stderr)


def _show(done: Mapping[str, Any]) -> None:
    if not done["needed"]:
        output.line(f"the store has the model {done['new']} already: nothing to do")
        if done["deleted"]:
            print(f"deleted {done['deleted']:,} vectors that were left over")
        return
    output.line(f"moved from {done['old']} to {done['new']}")
    print(
        f"{done['passages']:,} passages of {done['versions']:,} notes, every version counted;"
        f" {done['encoded']:,} encoded in {_duration(done['seconds'])}"
    )
    print(f"writers waited {done['held_seconds'] * 1000:,.0f} ms for the switch, queries not at all")
    before, after = done["bytes_before"] / 1e6, done["bytes_after"] / 1e6
    print(f"{done['deleted']:,} old vectors deleted; the store has {after:,.1f} MB, it had {before:,.1f}")
    print("\nWhat to do now:\n")
    for number, step in enumerate(done["next"], start=1):
        first, *rest = step.split("\n")
        output.line(f"{number}. {first}")
        for each in rest:
            output.line(each)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
