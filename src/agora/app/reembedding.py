"""What the command `agora reembed` works with: which encoder is meant, the move, and what is to be done after it."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.app.clock import SystemClock
from agora.app.files import STORE_FILE
from agora.app.guarding import guard_of
from agora.app.opening import open_store, require_disk
from agora.config.load import FILE_NAME, Loaded, load_settings
from agora.config.logs import get_logger
from agora.config.settings import EmbeddingSettings
from agora.embedding.choose import SCHEME, choose_encoder, settle
from agora.errors import AgoraError, NotFound
from agora.maintenance.batches import Batches
from agora.maintenance.reembed import Reembed, Say
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder
from agora.ports.vector_index import Progress
from agora.protocol.context import Connection
from agora.stores.sqlite.alone import alone
from agora.stores.sqlite.outlook import outlook_of
from agora.stores.sqlite.store import SqliteStore

LOCK_FILE = "reembed.lock"
"""Name of the file in the data folder by which a second reembed is kept out. It stays; it means nothing by itself."""

_OF_SERVER = ("url", "key")
_OF_MODEL = ("dimension", "query_prefix", "document_prefix", "languages", "max_tokens", "pooling")
_KEY_VARIABLE = "AGORA_EMBEDDING_KEY"

_SECONDS = 30 * 86_400.0
"""Nobody waits for an answer: it takes as long as it takes."""

_PATIENCE = 600.0
"""Seconds that one of its transactions waits for other writers."""

_BATCH = 32
"""Passages that are encoded and kept together, unless more go into one request."""

_SAMPLE = 24
"""Notes that a dry run encodes, about."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The settings of a run: `embedding` for the encoder to come, `configured` as Agora starts by itself."""

    loaded: Loaded
    embedding: EmbeddingSettings
    configured: EmbeddingSettings


def choose(options: Mapping[str, Any], where: Mapping[str, str]) -> Chosen:
    """What `options`, encoder settings by name, make of the configuration; None stands for one that was not given.

    With another model than the configured one, nothing is taken over that the configuration says of its own model, nor
    of the server if the new model needs none. A key of the configuration goes to its own address alone.

    Raises: ConfigError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    plain = load_settings(where)
    loaded = load_settings({**where, **{f"embedding.{name}": value for name, value in given.items()}})
    wanted, configured = loaded.settings.embedding, plain.settings.embedding
    dropped: set[str] = set()
    if wanted.model != configured.model:
        dropped |= {*_OF_MODEL} if wanted.model.startswith(SCHEME) else {*_OF_MODEL, *_OF_SERVER}
    if wanted.url != configured.url and plain.sources["embedding.key"] != _KEY_VARIABLE:
        dropped.add("key")
    fresh = EmbeddingSettings()
    left_out = {name: getattr(fresh, name) for name in dropped - given.keys()}
    return Chosen(loaded, wanted.model_copy(update=left_out), configured)


def reembed(chosen: Chosen, origin: Origin, client: str, progress: Progress, say: Say) -> dict[str, Any]:
    """Move the store to the chosen encoder; what became of it, as plain data.

    Raises: ConfigError, ModelMissing, ModelTampered if there is no such encoder; NotFound if there is no store;
    Conflict if another process is at it; EmbeddingError, EncoderUnavailable, StoreUnavailable: what is done stays.
    """
    settings = chosen.loaded.settings
    require_disk(settings)
    path, log, clock = settings.home / STORE_FILE, get_logger("agora"), SystemClock()
    with _encoder(chosen, path) as encoder, alone(settings.home / LOCK_FILE, "a reembed"):
        settle(encoder, Deadline(chosen.embedding.deadline))
        before = path.stat().st_size
        patience = max(_PATIENCE, settings.store.busy_timeout)
        store = open_store(settings, encoder.fingerprint, clock, log, busy_timeout=patience, readers=2)
        deadline = Deadline(_SECONDS)
        try:
            size = max(_BATCH, chosen.embedding.batch)
            work = Reembed(
                store.reembedding(), encoder, clock, log, batch=size, model_seconds=chosen.embedding.deadline
            )
            at = int(clock.now().timestamp() * 1000)
            connection = Connection(
                at_ms=at, origin=origin, namespace="default", agent=settings.agent, guard=guard_of(settings)
            )
            moved = work.run(connection.caller(client), deadline, progress, say)
            if moved.switched is not None:
                _write_index(store, say)
        finally:
            # Whoever interrupts it does not want to wait for a lock, or for a server.
            deadline.cancel()
            store.close()
        return {
            "old": moved.begun.old,
            "new": encoder.fingerprint.name,
            "needed": moved.begun.needed,
            "resumed": moved.begun.resumed,
            "abandoned": moved.begun.abandoned,
            "versions": moved.begun.versions,
            "passages": None if moved.switched is None else moved.switched.passages,
            "encoded": moved.encoded,
            "cut_anew": moved.cut_anew,
            "deleted": moved.deleted,
            "seconds": moved.seconds,
            "held_seconds": None if moved.switched is None else round(moved.switched.held, 4),
            "bytes_before": before,
            "bytes_after": path.stat().st_size,
            "next": next_steps(chosen) if moved.begun.needed else [],
        }


def outlook(chosen: Chosen) -> dict[str, Any]:
    """What a run has before it and about how long it takes, by encoding a few texts; nothing is changed.

    Raises: as `reembed`, but no Conflict.
    """
    path = chosen.loaded.settings.home / STORE_FILE
    with _encoder(chosen, path) as encoder:
        settle(encoder, Deadline(chosen.embedding.deadline))
        found = outlook_of(path, encoder.fingerprint, _SAMPLE)
        # The first call loads the model, or opens a connection.
        encoder.encode("a", Deadline(chosen.embedding.deadline))
        batches = Batches(encoder, _BATCH, chosen.embedding.deadline)
        spans = [cut.spans for cuts in batches.of(found.sample, Deadline(_SECONDS)) for cut in cuts]
        here, there = sum(map(len, found.cuts)), sum(map(len, spans))
        passages = round(found.passages * there / here) if here else found.passages
        left = max(0, passages - found.done) if found.needed else 0
        return {
            "dry_run": True,
            "old": found.old,
            "new": encoder.fingerprint.name,
            "needed": found.needed,
            "abandons": found.other,
            "versions": found.versions,
            "passages": passages,
            "done": found.done,
            "cut_anew": tuple(spans) != found.cuts,
            "seconds": round(left / batches.rate, 1) if batches.rate else 0.0,
            "bytes_needed": left * encoder.fingerprint.dimension * 4,
            "bytes_free": shutil.disk_usage(path.parent).free,
        }


def next_steps(chosen: Chosen) -> list[str]:
    """What has to be done so that every process uses the encoder that the store has now; a step may have many lines."""
    wanted, configured, loaded = chosen.embedding, chosen.configured, chosen.loaded
    names = ("model", *_OF_SERVER, *_OF_MODEL)
    steps: list[str] = []
    if any(getattr(wanted, name) != getattr(configured, name) for name in names):
        fresh = EmbeddingSettings()
        said = [name for name in names if name == "model" or getattr(wanted, name) != getattr(fresh, name)]
        lines = [
            f"Set the model: write this into {loaded.file or loaded.settings.home / FILE_NAME},",
            "   in place of what stands under [embedding] there:",
            "",
            "    [embedding]",
            *(f"    {name} = {_toml(name, getattr(wanted, name))}" for name in said),
            "",
            "   If AGORA_EMBEDDING_MODEL is set for a client or a server, change it there: it goes before the file.",
        ]
        steps.append("\n".join(lines))
    steps.append(
        "Start running servers again: end the clients that use Agora (Claude Code, Cursor and others), or\n"
        "   `agora serve`, and open them again. Until then they answer saves and queries by meaning with\n"
        "   `embedding_mismatch`; nothing is lost."
    )
    return steps


def _toml(name: str, value: object) -> str:
    if name == "key":
        return f'"${{{_KEY_VARIABLE}}}"'
    if isinstance(value, tuple):
        value = ", ".join(value)
    # A JSON string is a TOML string, and so is a number.
    return json.dumps(value, ensure_ascii=False)


def _write_index(store: SqliteStore, say: Say) -> None:
    say("writes the vector index")
    try:
        store.compact(force=True)
    except AgoraError as error:
        # The store is switched all the same, and whoever asks first builds the index.
        say(f"the vector index was not written, the next query builds it: {error.message}")


@contextlib.contextmanager
def _encoder(chosen: Chosen, path: Path) -> Iterator[Encoder]:
    """The chosen encoder, its files verified, for a store that is there."""
    encoder = choose_encoder(chosen.embedding, get_logger("agora"))
    try:
        encoder.verify()
        if not path.exists():
            raise NotFound(
                f"there is no store at {path}",
                hint="A store is made with the model that is set: write embedding.model, and save a note.",
            )
        yield encoder
    finally:
        encoder.close()
