"""Index files against the rows, byte by byte: what `agora doctor` asks. Nothing is changed."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agora.errors import EmbeddingMismatch, StoreCorrupt
from agora.model.deadline import Deadline
from agora.ports.vector_index import Passages, Rows
from agora.stores.sqlite.index.columns import Mask, expanded, signs
from agora.stores.sqlite.index.folder import Folder, places
from agora.stores.sqlite.index.generation import Generation, find, read_state
from agora.stores.sqlite.index.held import Files, Held, applied, from_files
from agora.stores.sqlite.index.layout import Named
from agora.stores.sqlite.index.segment import check_sum, open_segment
from agora.stores.sqlite.index.tail import in_pieces
from agora.stores.sqlite.index.verified import Verified
from agora.stores.sqlite.index.view import Part
from agora.stores.sqlite.opening import Reader, open_to_read
from agora.stores.sqlite.rules import Problem
from agora.stores.sqlite.source import SqliteSource

__all__ = ["index_problems", "places"]

_HINT = "Run `agora reindex`: it makes the index anew from the notes, which are whole."
_SECONDS = 86_400.0
_TRIES = 5
_BLOCK = 4096
_EXAMPLES = 3


def index_problems(folder: Path, connection: sqlite3.Connection) -> list[Problem]:
    """Everything that is wrong with the index files in `folder`, as of the transaction under way on `connection`.

    Codes: `index_damaged` for files that are missing, cut short or changed; `index_stale` for files of another past of
    the store; `index_differs` for whole files that do not hold what the rows say. Empty for a store that has no files
    yet. Reads every file and every vector: about a second for a hundred thousand passages.
    """
    problems: list[Problem] = []
    with contextlib.ExitStack() as stack:
        for _ in range(_TRIES):
            source, generation = begun(connection)
            problems = [] if generation is None else list(_wrong(folder, source, generation))
            if not problems:
                break
            # A compaction that ended since the transaction began has deleted the files that it replaced.
            connection = stack.enter_context(_another(connection))
            _, newest = begun(connection)
            if newest == generation:
                break
    return problems


def begun(connection: sqlite3.Connection) -> tuple[SqliteSource, Generation | None]:
    """The transaction under way on `connection`, and the generation of the store's own index in it.

    A store without an encoder has no `head`, and no generation either.
    """
    digest, dimension = connection.execute(
        "SELECT digest, dimension FROM encoders WHERE state = 'active' LIMIT 1"
    ).fetchone() or ("", 0)
    source = SqliteSource(connection, digest, dimension, lambda: EmbeddingMismatch("the store has no active encoder"))
    if not digest:
        return source, None
    source.look()
    return source, find(connection, source.encoder_id)


@contextlib.contextmanager
def _another(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A connection to the same file, in a transaction of its newest snapshot."""
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    with contextlib.closing(open_to_read(path, Reader)[0]) as fresh:
        fresh.execute("BEGIN")
        yield fresh


def _wrong(folder: Path, source: SqliteSource, generation: Generation) -> Iterator[Problem]:
    files, deadline = Files(Folder(folder), Verified(folder, None), None), Deadline(_SECONDS)
    if source.hash_at(generation.sequence) != generation.hash:
        message = f"the index is of another past of the store than its journal, as of change {generation.sequence}"
        yield Problem("index_stale", message, _HINT)
        return
    damage = list(_damage(files, source, generation, deadline))
    if damage:
        shown = f"{'; '.join(damage[:_EXAMPLES])}{'; …' if len(damage) > _EXAMPLES else ''}"
        yield Problem("index_damaged", f"{len(damage)} files of the index cannot be used: {shown}", _HINT)
        return
    held = applied(from_files(source, generation, files, Held.nothing(source.dimension), deadline), source, deadline)
    wrong, surplus = _compared(held, source)
    if wrong:
        shown = ", ".join(map(str, wrong[:_EXAMPLES])) + (", …" if len(wrong) > _EXAMPLES else "")
        message = f"{len(wrong)} rows whose passages in the index are not those of the store: {shown}"
        yield Problem("index_differs", message, _HINT)
    if surplus:
        yield Problem("index_differs", f"{surplus} passages in the index that the store does not have", _HINT)


def _damage(files: Files, source: SqliteSource, generation: Generation, deadline: Deadline) -> Iterator[str]:
    """What is wrong with each file by itself."""
    parts: tuple[str | Named, ...] = (generation.state, *generation.segments)
    for file in parts:
        try:
            if isinstance(file, str):
                read_state(files.folder, generation, source.store)
            else:
                open_segment(files.folder, file, source.store, source.dimension, resident=True)
                check_sum(files.folder, file, set(), deadline)
        except StoreCorrupt as error:
            yield error.message
        except FileNotFoundError as error:
            yield f"{Path(error.filename).name} is missing"
        except OSError as error:
            yield f"{file if isinstance(file, str) else file.file}: {error.strerror or error}"


def _compared(held: Held, source: SqliteSource) -> tuple[list[int], int]:
    """Rows that the index does not hold as the store does; passages that only the index holds."""
    wrong: list[int] = []
    right = 0
    for piece in in_pieces(source.everything(), source.dimension, _BLOCK):
        rows, lengths = np.unique(piece.rows, return_counts=True)
        agrees = np.zeros(len(rows), dtype=np.bool_)
        for part in held.all():
            agrees |= _agreeing(part, piece, rows, lengths)
        wrong += rows[~agrees].tolist()
        right += int(lengths[agrees].sum())
    return wrong, max(0, held.live() - right - _held_of(held, wrong))


def _agreeing(part: Part, piece: Passages, rows: Rows, lengths: Rows) -> Mask:
    """Which of `rows` the part holds exactly as `piece`, which has all their passages, does."""
    starts, stops = part.body.spans(rows)
    whole: Mask = (stops - starts) == lengths
    slots = expanded(starts[whole], stops[whole])
    at = np.flatnonzero(np.repeat(whole, lengths))
    columns, alive = part.body.columns(), part.marks.alive
    same = columns.numbers[slots] == piece.numbers[at]
    same &= columns.namespaces[columns.places[slots]] == piece.namespaces[at]
    same &= part.marks.ends()[slots] == piece.expires[at]
    same &= (columns.matrix[slots].view(np.uint32) == piece.vectors[at].view(np.uint32)).all(axis=1)
    same &= (columns.codes[slots] == signs(piece.vectors[at])).all(axis=1)
    if alive is not None:
        same &= alive[slots]
    owners = np.repeat(np.arange(len(rows)), lengths)[at]
    differing = np.zeros(len(rows), dtype=np.bool_)
    differing[owners[~same]] = True
    return whole & ~differing


def _held_of(held: Held, rows: list[int]) -> int:
    """Live passages that the index holds of `rows`."""
    found, wanted = 0, np.array(rows, dtype=np.int64)
    for part in held.all():
        slots = expanded(*part.body.spans(wanted))
        found += len(slots) if part.marks.alive is None else int(part.marks.alive[slots].sum())
    return found
