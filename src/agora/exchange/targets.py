from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from agora.errors import InvalidInput


@contextlib.contextmanager
def opened(path: str, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Where an export is written to: a file that appears whole at the end, or standard output for `-`.

    Gzipped if the name ends in `.gz`. What was there before stays until then, and stays if anything fails.

    Raises: InvalidInput if there is a file already and `replace` is not given, or none can be made.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if not replace and target.exists():
        raise InvalidInput("file", "is there already", path, hint="Add --force to replace it.")
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        # Notes are private: nobody else may read the file, not even while it is written.
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise InvalidInput("file", f"cannot be written: {error.strerror}", path) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            if target.name.endswith(".gz"):
                # Neither name nor time in it: equal contents make equal files.
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
