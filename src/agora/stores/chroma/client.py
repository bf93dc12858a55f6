from __future__ import annotations

import contextlib
import importlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agora.errors import ConfigError, IndexUnavailable, MissingExtra
from agora.ports.encoder import Vector
from agora.ports.vector_index import Passages, Rows

COLLECTION = "knowledge"
_NEXT = "knowledge-next"

_GRAPH = {"space": "cosine", "ef_construction": 200, "ef_search": 400, "max_neighbors": 32, "sync_threshold": 100}
"""Recall of these is in docs/indexes.md: with Chroma's own (100, 100, 16) the ranks beyond the first hundred suffer.

After as many changes as `sync_threshold` says Chroma writes what changed in the graph. The newer ones it adds to the
graph again whenever it is opened, a millisecond each; its default of 1000 would cost every command a second.
"""

_VALUES = 500
"""Values in one filter: Chroma makes a statement of it, and SQLite has a limit."""

_INSTALL = "Run: pip install 'agora-memory[chroma]'"

Where = dict[str, Any]


def load() -> ModuleType:
    """Chroma, imported at the first use: that takes a second.

    Raises: MissingExtra, ConfigError if its own settings stop it.
    """
    # It must not write where the protocol or a command's output goes.
    logging.getLogger("chromadb").addHandler(logging.NullHandler())
    logging.getLogger("chromadb").propagate = False
    try:
        with warnings.catch_warnings():
            # Of its own code and that of what it imports: nobody here can do anything about them.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("chromadb")
    except ModuleNotFoundError as error:
        if error.name == "chromadb":
            raise missing() from error
        raise ConfigError(f"chromadb is installed in part only: {error}", hint=_INSTALL) from error
    except Exception as error:
        # It reads variables without a prefix (MIGRATIONS, ENVIRONMENT, …) as it is imported.
        raise ConfigError(
            f"chromadb cannot be loaded: {error}",
            hint="It takes settings from the environment and from a file `.env` in the working folder: take away those"
            " that it complains about.",
        ) from error


def missing() -> MissingExtra:
    """What to say where Chroma is not installed."""
    return MissingExtra("index.url asks for Chroma, which is not installed", hint=_INSTALL)


class Knowledge:
    """One collection of passages: ids `row:number`, our own vectors, and what filters need."""

    def __init__(self, client: Client, collection: Any) -> None:  # noqa: ANN401 - chromadb has no types here
        self._client = client
        self._collection = collection
        self.id = str(collection.id)

    def count(self) -> int:
        """Number of passages."""
        with self._client.asked():
            return int(self._collection.count())

    def upsert(self, passages: Passages, start: int, stop: int) -> None:
        """Put in the passages of this slice, over those with the same id."""
        with self._client.asked():
            self._collection.upsert(
                ids=_ids(passages, start, stop),
                embeddings=passages.vectors[start:stop],
                metadatas=_metadata(passages, start, stop),
            )

    def unchanged(self, passages: Passages, start: int, stop: int) -> bool:
        """Whether this slice is there already: a row never changes but in its expiry."""
        ids = _ids(passages, start, stop)
        with self._client.asked():
            found = self._collection.get(ids=ids, include=["metadatas"])
        there = dict(zip(found["ids"], found["metadatas"], strict=True))
        return all(there.get(each) == data for each, data in zip(ids, _metadata(passages, start, stop), strict=True))

    def of(self, rows: Sequence[int]) -> list[str]:
        """Ids of the passages of these rows that are there."""
        found: list[str] = []
        for start in range(0, len(rows), _VALUES):
            with self._client.asked():
                where = {"row": {"$in": list(rows[start : start + _VALUES])}}
                found += self._collection.get(where=where, include=[])["ids"]
        return found

    def delete(self, ids: Sequence[str]) -> None:
        """Take out these passages."""
        for start in range(0, len(ids), _VALUES):
            with self._client.asked():
                self._collection.delete(ids=list(ids[start : start + _VALUES]))

    def query(self, vector: Vector, limit: int, where: Where | None = None) -> tuple[Rows, float]:
        """The row of each of the nearest passages, best first, and the similarity of the last one."""
        with self._client.asked():
            found = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=limit, where=where, include=["distances"]
            )
        rows = np.array([int(each.partition(":")[0]) for each in found["ids"][0]], dtype=np.int64)
        return rows, 1.0 - float(found["distances"][0][-1]) if len(rows) else -1.0

    def prove(self, *, every: bool) -> None:
        """Have Chroma read the graph, and with `every` look up each passage in it.

        Raises: IndexUnavailable if something is missing.
        """
        with self._client.asked():
            found = self._collection.get(limit=1, include=["embeddings"])["embeddings"]
        if len(found):
            # Chroma turns the ids that a filter lets through into nodes of the graph before it searches.
            self.query(np.asarray(found[0], dtype=np.float32), 1, {"row": {"$gte": 0}} if every else None)


class Client:
    """Chroma on one folder, in this process, until it is closed.

    Raises: IndexUnavailable from every method, and from those of its collections, when Chroma fails: `failed` is true
    from then on, and nothing that it says later counts.
    """

    def __init__(self, folder: Path) -> None:
        chroma = load()
        self.failed = False
        self._folder = folder
        # Each setting that matters is given: a variable of that name, or a `.env` somewhere, must not change it.
        settings = chroma.config.Settings(
            _env_file=None,
            chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
            is_persistent=True,
            persist_directory=str(folder),
            allow_reset=False,
            anonymized_telemetry=False,
            chroma_otel_collection_endpoint="",
            migrations="apply",
            migrations_hash_algorithm="md5",
        )
        with self.asked():
            self._client = chroma.PersistentClient(path=str(folder), settings=settings)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Turn whatever Chroma raises in the block into IndexUnavailable."""
        try:
            yield
        except Exception as error:
            # It has no one class for its errors: its own, ValueError, RuntimeError, those of the driver.
            raise self._unavailable(error) from error
        except BaseException as error:
            # A panic of its compiled part is a BaseException.
            if type(error).__name__ != "PanicException":
                raise
            raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> IndexUnavailable:
        self.failed = True
        return IndexUnavailable(
            f"Chroma failed on {self._folder}: {error}",
            hint="Saves and lexical queries work. If it stays like this, look whether the disk is full, and run"
            " `agora reindex`.",
        )

    def create(self) -> Knowledge:
        """The collection, empty."""
        return self._made(COLLECTION)

    def get(self, wanted: str) -> Knowledge:
        """The collection with the id `wanted`. Raises: IndexUnavailable if another one is there."""
        with self.asked():
            found = Knowledge(self, self._client.get_collection(COLLECTION, embedding_function=None))
        if found.id != wanted:
            self.failed = True
            raise IndexUnavailable(f"the collection in {self._folder} is another one")
        return found

    def create_next(self) -> Knowledge:
        """An empty collection beside the present one."""
        return self._made(_NEXT)

    def take_next(self) -> None:
        """Put the collection beside in the place of the present one."""
        with self.asked():
            self._client.delete_collection(COLLECTION)
            self._client.get_collection(_NEXT, embedding_function=None).modify(name=COLLECTION)

    def drop_next(self) -> None:
        """Give the collection beside up, if there is one."""
        with self.asked():
            if _NEXT in {each.name for each in self._client.list_collections()}:
                self._client.delete_collection(_NEXT)

    def close(self) -> None:
        """Let the files go, as far as Chroma lets them go."""
        with self.asked():
            self._client.close()

    def _made(self, name: str) -> Knowledge:
        with self.asked():
            return Knowledge(
                self,
                self._client.create_collection(name, embedding_function=None, configuration={"hnsw": dict(_GRAPH)}),
            )


def _ids(passages: Passages, start: int, stop: int) -> list[str]:
    pairs = zip(passages.rows[start:stop].tolist(), passages.numbers[start:stop].tolist(), strict=True)
    return [f"{row}:{number}" for row, number in pairs]


def _metadata(passages: Passages, start: int, stop: int) -> list[dict[str, int]]:
    # Chroma keeps whole numbers of 64 bits and compares them exactly.
    columns: list[NDArray[np.int64]] = [passages.rows, passages.numbers, passages.namespaces, passages.expires]
    names = ("row", "number", "namespace", "expires")
    return [
        dict(zip(names, each, strict=True)) for each in zip(*(c[start:stop].tolist() for c in columns), strict=True)
    ]
