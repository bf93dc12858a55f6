from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agora.errors import AgoraError, NoteNotFound
from agora.memory.access import Guarded, concealed, require
from agora.memory.authority import require_user
from agora.memory.keys import key_of
from agora.memory.passages import embed
from agora.memory.ranking import VERSION, weights_for
from agora.memory.search import search
from agora.memory.suspects import suspicions
from agora.model.caller import Caller
from agora.model.crossref import CrossReference, Read, Topic
from agora.model.deadline import Deadline
from agora.model.note import Draft, Note, Related, Saved
from agora.model.query import Answer, Filter, Mode, Query
from agora.model.selection import Forgotten, Pinned, Restored, Selection
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.log import Log
from agora.ports.records import Embedded, Records, State, VectorsNeeded
from agora.ports.result_cache import ResultCache
from agora.text.analysis import analyse_query
from agora.text.guess import language_of
from agora.text.identity import normal_hash

if TYPE_CHECKING:
    from agora.memory.crossref import Question

_RELATED = 5
_RELATED_COSINE = 0.55
"""MiniLM's cosine of paraphrases starts about here; below it "related" is noise (ADR 5)."""


_IDS = "Ids look like n_01J…; a note of another namespace is visible once that namespace is named."

_PURGE_UNFINISHED = {
    "code": "purge_unfinished",
    "message": "a purge did not come to its end: bytes of purged notes may still be in the data folder",
    "hint": "Run `agora purge --yes` once more. A server that runs does so by itself within ten minutes.",
}


@dataclass(frozen=True, slots=True)
class Got:
    """Notes asked for by id, in the order asked; ids that are not visible, and ids of what is gone, by how it went."""

    notes: tuple[Note, ...]
    history: dict[str, tuple[Note, ...]]
    unknown: tuple[str, ...]
    forgotten: tuple[str, ...]
    expired: tuple[str, ...]
    purged: tuple[str, ...]
    sequence: int | None


class Notes:
    """The semantic memory: save, query, get, forget and restore notes.

    Blocking; call it from a worker thread. Every method takes the caller, whose scope bounds what it sees.
    """

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        records: Records,
        encoder: Encoder,
        clock: Clock,
        log: Log,
        *,
        model_seconds: float,
        cache: ResultCache | None = None,
        questions: Encoder | None = None,
    ) -> None:
        """`questions` encodes queries, if another than `encoder` should: one that remembers them."""
        self._records = Guarded(lambda _: records)
        self._encoder = encoder
        self._questions = questions or encoder
        self._cache = cache
        self._profile: str | None = None
        self._clock = clock
        self._log = log
        self._model_seconds = model_seconds

    def save(self, draft: Draft, caller: Caller, deadline: Deadline) -> Saved:
        """Save a note; when this returns it is on disk and every process finds it.

        Raises: NamespaceDenied; WarmingUp if the model is not ready in time (nothing is written);
        EmbeddingMismatch; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        require(caller, (draft.namespace,), "write")
        with self._records.read(caller, deadline) as reading:
            # The same text again needs no vector, and so no model.
            known = reading.same_text(draft, caller.origin)
            if not known:
                # Before the model is asked for what would be refused: a flood must not cost it anything.
                reading.require_room(draft, caller)
        if (mismatch := self._records.mismatch(deadline)) is not None:
            # Before the model is loaded for nothing.
            raise mismatch
        embedded = None if known else self._embed(draft, deadline)
        try:
            saved = self._records.save(draft, caller, embedded, self._clock.now(), deadline)
        except VectorsNeeded:
            # Forgotten or expired between the look and the write.
            embedded = self._embed(draft, deadline)
            saved = self._records.save(draft, caller, embedded, self._clock.now(), deadline)
        self._log.info("note saved", id=saved.id, status=saved.status, namespace=saved.namespace)
        saved = concealed(caller, saved)
        if embedded is None:
            return saved
        try:
            return replace(saved, related=self._related(draft, saved, embedded, caller, deadline))
        except AgoraError as error:
            # It is saved. Whatever ends the look around, the deadline too, must not make it sound otherwise.
            self._log.warning("no related notes were looked up", id=saved.id, code=error.code)
            return saved

    def query(self, query: Query, caller: Caller, deadline: Deadline) -> Answer:
        """The notes that answer `query`, best first, from one snapshot that holds every acknowledged change.

        Raises: NamespaceDenied; WarmingUp, EmbeddingMismatch unless the mode is lexical; StoreUnavailable.
        """
        require(caller, query.filter.namespaces)
        key, state = None, None
        if self._cache is not None:
            with self._records.read(caller, deadline) as reading:
                state, sequence = reading.state(query.filter.namespaces), reading.sequence
            key = self._key(query, state, caller)
            known = self._cache.get(key, state.now)
            if known is not None:
                # What the key names has not changed, so the answer is the one that this snapshot gives too.
                answer = replace(known[0], sequence=sequence, cached=known[1])
                self._given(
                    caller, [hit.note.id for hit in answer.hits], answer.namespaces, sequence, state.now, deadline
                )
                return concealed(caller, answer)
        # The model may take a while: no snapshot is held open meanwhile.
        vector = None
        if query.mode != "lexical":
            if (mismatch := self._records.mismatch(deadline)) is not None:
                # Before the model is loaded, or a server asked, for nothing.
                raise mismatch
            vector = self._questions.encode_question(query.text, self._for_model(deadline))
        groups = () if query.mode == "semantic" else analyse_query(query.text)
        weights = weights_for(query.mode, reads=self._reads(query.text))
        deadline.check()
        with self._records.read(caller, deadline) as reading:
            answer = search(reading, query, weights, vector, groups, self._log)
            after, sequence = reading.state(query.filter.namespaces), reading.sequence
        if self._cache is not None:
            # Under the key of the snapshot that it was made from, which may be a later one than the look-up's.
            if key is None or state is None or (after.store, after.sequences) != (state.store, state.sequences):
                key = self._key(query, after, caller)
            self._cache.put(key, answer, after.now, after.next_expiry)
        self._given(caller, [hit.note.id for hit in answer.hits], answer.namespaces, sequence, after.now, deadline)
        return concealed(caller, answer)

    def crossref(self, topic: Topic, caller: Caller, deadline: Deadline) -> CrossReference:
        """What different agents know about `topic`, which names a question or a note, and what others changed.

        Raises: as `query`; NoteNotFound if the topic is a note that the caller may not see.
        """
        from agora.memory import crossref  # noqa: PLC0415 - a server that starts has no use for it

        require(caller, topic.namespaces)
        now = self._clock.now()
        # What this process answered before counts as read, however short ago.
        self._records.settle_reads(deadline)
        question = self._question(topic, caller, now, deadline)
        deadline.check()
        with self._records.read(caller, deadline) as reading:
            found, sequence = crossref.cross_reference(reading, topic, question, caller, now), reading.sequence
        shown = [stated.note.id for position in found.positions for stated in position.notes]
        self._given(caller, shown, found.namespaces, sequence, now, deadline)
        return concealed(caller, found)

    def get(self, ids: Sequence[str], caller: Caller, deadline: Deadline) -> Got:
        """The whole notes with these ids; superseded versions too, marked as such."""
        with self._records.read(caller, deadline) as reading:
            found, sequence = reading.by_id(ids, caller.scope.visible()), reading.sequence
            now = self._clock.now()
            missing = [public_id for public_id in ids if public_id not in found]
            gone = reading.purged(missing, caller.scope.visible()) if missing else frozenset[str]()
            notes, history = [], {}
            unknown, forgotten, expired, purged = list[str](), list[str](), list[str](), list[str]()
            for public_id in dict.fromkeys(ids):
                if public_id not in found:
                    (purged if public_id in gone else unknown).append(public_id)
                    continue
                note = found[public_id][1]
                # Expiry first: a note that is both cannot be restored. What a fact said stays in its history.
                if note.fact is None and note.expires_at is not None and note.expires_at <= now:
                    expired.append(public_id)
                elif note.forgotten_at is not None:
                    forgotten.append(public_id)
                else:
                    notes.append(note)
                    if note.key is not None:
                        history[public_id] = reading.history(note)
            got = Got(
                tuple(notes),
                history,
                tuple(unknown),
                tuple(forgotten),
                tuple(expired),
                tuple(purged),
                sequence if caller.scope.grants.whole else None,
            )
        self._given(caller, [note.id for note in notes], (), sequence, now, deadline)
        return got

    def forget(self, selection: Selection, caller: Caller, deadline: Deadline, *, dry_run: bool) -> Forgotten:
        """Hide the selected notes from every query until they are restored; a dry run only says which."""
        done = self._records.forget(selection, caller, self._clock.now(), deadline, dry_run=dry_run)
        if not dry_run:
            self._log.info("notes forgotten", count=done.count, namespaces=list(selection.namespaces))
        return concealed(caller, done)

    def restore(self, ids: Sequence[str], caller: Caller, deadline: Deadline) -> Restored:
        """Bring forgotten notes back.

        Raises: NoteNotFound if none of the ids is visible to the caller.
        """
        done = self._records.restore(ids, caller, self._clock.now(), deadline)
        if len(done.unknown) == len(set(ids)):
            raise NoteNotFound(f"no note with id {', '.join(done.unknown)}", hint=_IDS)
        self._log.info("notes restored", count=len(done.restored))
        return concealed(caller, done)

    def pin(self, ids: Sequence[str], caller: Caller, deadline: Deadline, *, pinned: bool) -> Pinned:
        """Pin notes of the user's, or unpin them.

        Raises: AuthorityRequired unless the caller is the user; NoteNotFound if none of the ids is visible to it.
        """
        require_user(caller, "pin notes" if pinned else "unpin notes")
        done = self._records.pin(ids, caller, self._clock.now(), deadline, pinned=pinned)
        if len(done.unknown) == len(set(ids)):
            raise NoteNotFound(f"no note with id {', '.join(done.unknown)}", hint=_IDS)
        self._log.info("notes pinned" if pinned else "notes unpinned", count=len(done.changed))
        return concealed(caller, done)

    def status(self, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """Counts of what the caller may see, the state of store, index and model, and every problem by name."""
        problems = []
        model = self._questions.details()
        if model.get("error"):
            problems.append({"code": "model_failed", "message": model["error"]})
        if (mismatch := self._records.mismatch(deadline)) is not None:
            problems.append(mismatch.details())
        store = self._records.details(deadline)
        if store.pop("purge_unfinished"):
            problems.append(_PURGE_UNFINISHED)
        problems += store.pop("conditions", ())
        about = store.pop("index")
        if about["problem"]:
            problems.append({"code": "index_problem", "message": about["problem"]})
        counts, sequence = self._records.counts(caller, deadline)
        # Of the caller's namespaces: the whole index's size would tell of the others.
        told = ("kind", "generation", "kernel", "passed_over", "problem", "rebuilt")
        shown = {name: about[name] for name in told if name in about}
        index = {**shown, "sequence": sequence, "passages": counts.pop("passages")}
        return {
            **counts,
            "index": index,
            "store": store,
            "model": model,
            "cache": None if self._cache is None else self._cache.details(),
            "ranking": VERSION,
            "problems": problems,
        }

    def _embed(self, draft: Draft, deadline: Deadline) -> Embedded:
        return embed(self._encoder, draft.title, draft.content, self._for_model(deadline))

    def _question(self, topic: Topic, caller: Caller, now: datetime, deadline: Deadline) -> Question:
        from agora.memory import crossref  # noqa: PLC0415 - as above

        text = topic.query
        if text is None:
            with self._records.read(caller, deadline) as reading:
                text = crossref.subject_text(crossref.subject_of(reading, topic, caller, now))
        if (mismatch := self._records.mismatch(deadline)) is not None:
            raise mismatch
        mode: Mode = "semantic" if topic.query is None else "hybrid"
        weights = weights_for(mode, reads=self._reads(text))
        if topic.query is None:
            # A note beside notes is no question, to encoders that tell the two apart.
            return crossref.Question(
                self._encoder.encode(text, self._for_model(deadline)), (), weights, crossref.NEAR_FLOOR
            )
        vector = self._questions.encode_question(text, self._for_model(deadline))
        return crossref.Question(vector, analyse_query(text), weights, crossref.FLOOR)

    def _given(
        self,
        caller: Caller,
        ids: Iterable[str],
        namespaces: tuple[str, ...],
        sequence: int,
        now: datetime,
        deadline: Deadline,
    ) -> None:
        """Log what an answer gives away, behind the answer: it neither waits for that nor fails with it."""
        session, agent = caller.reader
        read = Read(session, agent, tuple(dict.fromkeys(ids)), namespaces, sequence, now, caller.identity)
        self._records.log_read(read, self._not_logged, deadline)

    def _not_logged(self, error: AgoraError) -> None:
        self._log.warning("reads were not logged", code=error.code)

    def _reads(self, text: str) -> bool:
        """Whether the encoder was trained on the language of `text`."""
        return not self._encoder.languages or language_of(text) in self._encoder.languages

    def _key(self, query: Query, state: State, caller: Caller) -> bytes:
        """What the answer to `query` in `state` is kept under, for callers with the same rights."""
        if self._profile is None:
            self._profile = self._encoder.fingerprint.digest()
        return key_of(query, state, self._profile, caller.scope.grants.mark)

    def _for_model(self, deadline: Deadline) -> Deadline:
        # The model has its own, shorter deadline; a cancelled call must still stop it.
        return deadline.within(self._model_seconds)

    def _related(
        self, draft: Draft, saved: Saved, embedded: Embedded, caller: Caller, deadline: Deadline
    ) -> tuple[Related, ...]:
        where = Filter(tuple(dict.fromkeys((draft.namespace, *caller.scope.visible()))))
        with self._records.read(caller, deadline) as reading:
            near = reading.vectors.nearest(embedded.vectors[0], reading.among(where), _RELATED + 1)
            notes = reading.by_row(near.rows.tolist())
        mine = normal_hash(draft.content)
        return tuple(
            Related(
                note.id,
                round(float(score), 4),
                note.title or _opening(note.content),
                note.savers[0].agent,
                note.savers[0].origin,
                note.namespace,
                normal_hash(note.content) == mine,
                suspicions(note),
            )
            for row, score in zip(near.rows.tolist(), near.scores.tolist(), strict=True)
            if (note := notes.get(row)) and note.id != saved.id and score >= _RELATED_COSINE
        )[:_RELATED]


def _opening(text: str) -> str:
    line = " ".join(text[:200].split())
    return line if len(line) <= 80 else line[:79] + "…"
