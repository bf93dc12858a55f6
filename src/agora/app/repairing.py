"""`agora doctor --repair`: everything that is derived, made anew from the notes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agora.app.checking import Row, cache_damage, diagnose, failures
from agora.app.clock import SystemClock
from agora.app.files import CACHE_FILE, STORE_FILE
from agora.app.opening import open_store, require_disk
from agora.app.reembedding import LOCK_FILE as REEMBED_LOCK
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.embedding.choose import choose_encoder, settle
from agora.errors import AgoraError, ConfigError, EmbeddingError, IndexUnavailable, StoreCorrupt
from agora.memory.passages import embed
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.profile import Fingerprint
from agora.ports.encoder import Encoder
from agora.stores.sqlite.alone import alone
from agora.stores.sqlite.profile import mismatch_of, profile_of
from agora.stores.sqlite.repairing import mending
from agora.stores.sqlite.repairing.copying import copy_aside, require_room

LOCK = "repair.lock"
"""Name of the file in the data folder by which one process at a time repairs."""

INDEX_CODES = {"index_damaged", "index_stale", "index_differs"}

_BATCH = 256
"""Notes whose vectors go in together: a process that has the store open loads its index anew after each batch."""

_SECONDS = 3_600.0
"""Seconds that the model may take for one note: nobody waits for an answer."""

Told = Callable[[str, int, int | None], None]
"""Told what is being done, how much of it is done, and of how much."""


@dataclass(slots=True)
class Repair:
    """What a repair found, did and left: rows as `diagnose` has them, sentences, and the copy made before."""

    before: list[Row]
    after: list[Row]
    done: list[str] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)
    copy: Path | None = None

    @property
    def clean(self) -> bool:
        """Whether every check holds now."""
        return not failures(self.after)


def repair(
    loaded: Loaded,
    told: Told = lambda what, done, total: None,  # noqa: ARG005 - nobody is told
    choose: Callable[[], Encoder] | None = None,
) -> Repair:
    """Check everything, make anew what is derived and wrong, check again.

    Notes, provenance and journal are never changed. Before anything else is, a copy of the store is made beside it.
    Other processes may go on; their writes wait while a transaction of the repair is under way. `choose` gives the
    encoder, if another than the one that is set should make the vectors.

    Where notes themselves cannot be read, nothing is changed and the way out is left.

    Raises: StoreUnavailable without room for a copy or behind a lock that lasts, StoreVersion, Conflict if another
    repair is under way. Nothing is changed then.
    """
    settings = loaded.settings
    require_disk(settings)
    told("checking", 0, None)
    before = diagnose(loaded)
    found = Repair(before, before)
    codes = {str(row.get("code")) for row in failures(before)}
    of_store = mending.repairable(codes)
    if settings.home.exists():
        mending.clear(settings.home / STORE_FILE)
    if not of_store and "cache_damaged" not in codes:
        return found
    if of_store - INDEX_CODES:
        require_room(settings.home / STORE_FILE)
    with alone(settings.home / REEMBED_LOCK, "a reembed"), alone(settings.home / LOCK, "a repair"):
        if of_store:
            _Repairing(loaded, found, told, choose).run(of_store)
        if "cache_damaged" in codes:
            _cache(settings.home / CACHE_FILE, found)
    told("checking again", 0, None)
    found.after = diagnose(loaded)
    return found


class _Repairing:
    def __init__(self, loaded: Loaded, found: Repair, told: Told, choose: Callable[[], Encoder] | None) -> None:
        self._settings = loaded.settings
        self._path = loaded.settings.home / STORE_FILE
        self._found = found
        self._told = told
        self._choose = choose or self._chosen
        self._clock = SystemClock()
        self._log = get_logger("agora.repair")

    def run(self, codes: set[str]) -> None:
        done: list[str] = []
        made = 0
        if codes - INDEX_CODES:
            if (mended := self._mended(codes)) is None:
                return
            done = mended
            made = self._vectors() if mending.lacking(self._path) else 0
        if made or done or codes & INDEX_CODES:
            self._index()
        self._log.info("store repaired", found=sorted(codes), done=self._found.done)

    def _mended(self, codes: set[str]) -> list[str] | None:
        """What was made anew in the store, a copy of which lies beside it then; None if it cannot be read."""
        found, path = self._found, self._path
        self._told("copying", 0, None)
        found.copy = copy_aside(path, self._clock.now())
        self._told("making anew what follows from the notes", 0, None)
        try:
            done = mending.mend(path, codes, self._fingerprint, self._now())
        except BaseException as error:
            # Nothing was changed.
            found.copy.unlink(missing_ok=True)
            found.copy = None
            if not isinstance(error, StoreCorrupt):
                raise
            found.left.append(error.details())
            return None
        found.done += done
        return done

    def _fingerprint(self) -> Fingerprint | None:
        """Of the encoder that is set, for a store that has lost its own."""
        encoder = self._encoder()
        if encoder is None:
            return None
        with closing(encoder):
            return encoder.fingerprint

    def _vectors(self) -> int:
        """How many vectors were made of those that are missing; what keeps others from it is left."""
        encoder = self._encoder()
        if encoder is None:
            return 0
        made = 0
        with closing(encoder):
            mismatch = mismatch_of(self._path, encoder.fingerprint)
            if mismatch is not None:
                self._leave(mismatch)
                return 0
            try:
                made = self._fill(encoder)
            except EmbeddingError as error:
                self._leave(error)
        return made

    def _fill(self, encoder: Encoder) -> int:
        total, done, made, last = mending.lacking(self._path), 0, 0, 0
        while batch := mending.next_lacking(self._path, last, _BATCH):
            embedded = []
            for note in batch:
                embedded.append((note, embed(encoder, note.title, note.content, Deadline(_SECONDS))))
                done += 1
                self._told("making vectors", done, total)
            made += mending.fill(self._path, embedded, self._now())
            last = batch[-1].row
        self._found.done.append(f"made {made} vectors of {total} notes")
        return made

    def _encoder(self) -> Encoder | None:
        """The encoder that is set, ready to be used; None if it cannot be, which is left then."""
        try:
            encoder = self._choose()
            encoder.verify()
            settle(encoder, Deadline(self._settings.embedding.deadline))
        except AgoraError as error:
            self._leave(error)
            return None
        return encoder

    def _chosen(self) -> Encoder:
        return choose_encoder(self._settings.embedding, self._log, partial(profile_of, self._path))

    def _leave(self, error: AgoraError) -> None:
        hint = f"{error.hint} Then run `agora doctor --repair` again.".lstrip()
        row = {"code": error.code, "message": f"vectors were not made: {error.message}", "hint": hint}
        if row not in self._found.left:
            self._found.left.append(row)

    def _index(self) -> None:
        """Build the vector index anew, whichever it is."""
        profile = profile_of(self._path)
        if profile is None:
            return
        settings = self._settings
        try:
            store = open_store(settings, profile, self._clock, self._log)
            with closing(store):
                built = store.reindex(lambda done, total: self._told("building the vector index", done, total))
        except (IndexUnavailable, ConfigError) as error:
            # Everything else is done by now, and stays.
            row = {"code": error.code, "message": f"the vector index was not built: {error.message}"}
            self._found.left.append(row | {"hint": f"{error.hint} Then run `agora reindex`.".lstrip()})
            return
        self._found.done.append(f"built the vector index anew: {built['passages']} passages")

    def _now(self) -> int:
        return to_micros(self._clock.now())


def _cache(path: Path, found: Repair) -> None:
    """Delete the cache if it is damaged: it fills again."""
    if cache_damage(path) is None:
        return
    try:
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    except OSError as error:
        hint = "End the processes that use it, and delete it."
        message = f"{path} cannot be deleted: {error.strerror or error}"
        found.left.append({"code": "cache_damaged", "message": message, "hint": hint})
    else:
        found.done.append(f"deleted the damaged cache {path}")
