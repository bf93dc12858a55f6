from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def shown(what: str = "", total: int | None = None) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar on stderr for what is being done, how much of it, and of how much; none if stderr is no terminal.

    It begins with `what`, of `total`.
    """
    if not sys.stderr.isatty():
        yield lambda what, done, total: None  # noqa: ARG005 - nobody looks
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415 - as above

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
