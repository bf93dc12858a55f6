"""Agora in this process, for programs that are agents themselves: `from agora import Memory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agora import __version__
from agora.app.agora import Agora
from agora.app.warming import warm
from agora.config.load import load_settings
from agora.memory.notes import Got
from agora.model.caller import Caller
from agora.model.conversation import Context, Kept
from agora.model.deadline import Deadline
from agora.model.fact import Gathered, Recalled, Remembered, Value
from agora.model.message import Role, Strategy, Summary
from agora.model.note import Saved
from agora.model.query import Answer, Mode
from agora.model.selection import Forgotten, Restored
from agora.ports.conversations import ConversationRow
from agora.protocol import arguments, fact_arguments
from agora.protocol.context import namespace_argument
from agora.protocol.tools.conversations import message_draft, session_name, subjects_of
from agora.protocol.tools.conversations_table import BUDGET
from agora.protocol.tools.facts_table import FACTS
from agora.protocol.tools.handlers import check
from agora.protocol.tools.table import CALLABLE

CLIENT = "agora-python"
"""What provenance calls this program by, beside the name of its agent."""

_DEEP = 64
"""Levels of lists and objects that are looked at: more than any argument may have."""

When = datetime | date | str
"""An instant: a `datetime` (without a zone, of this machine's), a day, or a text as in `2026-03-01`, `today`, `7d`."""

Lasting = timedelta | int | str
"""A time: a `timedelta`, seconds, or a text as in `15m`, `12h`, `30d`."""


class Memory:
    """The memory that all agents of this machine share, open in this process until it is closed.

    What it takes is checked as by the tools of the same names: secrets are replaced, limits hold. Every method blocks,
    and may be called from any thread. It finds what others have saved, in whatever process, and they what it saves.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        namespace: str | None = None,
        agent: str = "python",
        *,
        session: str | None = None,
        config: str | Path | None = None,
    ) -> None:
        """Open the data folder `home`, by default the one that `agora` uses; it is made if there is none.

        `namespace`: where calls save and look that name none, by default the project of the working folder. `agent` and
        `session` are the provenance of what is saved. `config` names the configuration file.

        Raises: ConfigError, InvalidNamespace, ModelMissing, ModelTampered, EmbeddingError, StoreUnavailable,
        StoreCorrupt, StoreVersion.
        """
        options = {"home": str(home) if home else None, "config": str(config) if config else None}
        loaded = load_settings({name: value for name, value in options.items() if value is not None})
        own = None if namespace is None else namespace_argument(namespace)
        # Nobody else reads what is in it, whatever the files' own modes are.
        loaded.settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._agora = Agora(loaded)
        self._connection = self._agora.connection(folder=Path.cwd(), namespace=own)
        self._who = {"agent": agent, "session": session}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish the accepted writes and let the files go; a second call does nothing."""
        self._agora.close()

    def save(  # noqa: PLR0913 - what a note may have, each by its name
        self,
        content: str,
        *,
        title: str | None = None,
        tags: Sequence[str] = (),
        kind: str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        occurred_at: When | None = None,
        confidence: float | None = None,
        expires_in: Lasting | None = None,
        namespace: str | None = None,
    ) -> Saved:
        """Save a note; when this returns it is on disk, and every process finds it.

        Raises: InvalidInput, SecretRefused; NamespaceDenied; WarmingUp; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        given: dict[str, Any] = {
            "content": content,
            "title": title,
            "tags": tags,
            "kind": kind,
            "key": key,
            "metadata": metadata,
        }
        given |= {"occurred_at": occurred_at, "confidence": confidence, "expires_in": expires_in}
        checked, caller = self._checked("agora_save", given, namespace)
        draft = arguments.draft(checked, caller.scope.own, self._now(), self._agora.tools.limits.content_bytes)
        return self._agora.notes.save(draft, caller, self._deadline())

    def query(  # noqa: PLR0913 - what narrows a question, each by its name
        self,
        text: str,
        *,
        top_k: int | None = None,
        tags: Sequence[str] = (),
        agents: Sequence[str] = (),
        kinds: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        since: When | None = None,
        until: When | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        mode: Mode | None = None,
        namespace: str | None = None,
    ) -> Answer:
        """The notes and facts that answer a question, best first.

        Raises: InvalidInput, NamespaceDenied; WarmingUp, EmbeddingMismatch unless the mode is lexical;
        StoreUnavailable.
        """
        given: dict[str, Any] = {
            "query": text,
            "top_k": top_k,
            "tags": tags,
            "agents": agents,
            "kinds": kinds,
            "metadata": metadata,
        }
        given |= {"since": since, "until": until, "min_score": min_score, "max_tokens": max_tokens, "mode": mode}
        checked, caller = self._checked("agora_query", given, namespace)
        limit = self._agora.tools.limits.query_chars
        wanted = arguments.query(checked, _searched(caller, namespace), self._now(), limit)
        return self._agora.notes.query(wanted, caller, self._deadline())

    def get(self, *ids: str) -> Got:
        """Notes and facts by id, whole, with the history of a note's key; which of the ids there are none of.

        Raises: InvalidInput; StoreUnavailable.
        """
        checked, caller = self._checked("agora_get", {"ids": ids})
        return self._agora.notes.get(checked["ids"], caller, self._deadline())

    def forget(self, *ids: str, reason: str | None = None) -> Forgotten:
        """Hide notes and facts from every query and recall, until they are restored.

        Raises: InvalidInput; NamespaceDenied; StoreUnavailable.
        """
        checked, caller = self._checked("agora_forget", {"ids": ids, "reason": reason})
        selection = arguments.selection(checked, caller.scope.visible(), self._now())
        return self._agora.notes.forget(selection, caller, self._deadline(), dry_run=False)

    def restore(self, *ids: str) -> Restored:
        """Bring back what was forgotten.

        Raises: InvalidInput; NoteNotFound if there is none of them; NamespaceDenied; StoreUnavailable.
        """
        checked, caller = self._checked("agora_restore", {"ids": ids})
        return self._agora.notes.restore(checked["ids"], caller, self._deadline())

    def remember(  # noqa: PLR0913 - what a fact may have, each by its name
        self,
        key: str,
        value: Value,
        subject: str | None = None,
        *,
        valid_from: When | None = None,
        valid_to: When | None = None,
        expires_in: Lasting | None = None,
        multi: bool | None = None,
        namespace: str | None = None,
    ) -> Remembered:
        """Keep what holds of a subject, by default of `user`, and learn what became of what held before.

        Raises: InvalidInput, SecretRefused; NamespaceDenied; WarmingUp; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        given: dict[str, Any] = {"key": key, "value": value, "subject": subject, "multi": multi}
        given |= {"valid_from": valid_from, "valid_to": valid_to, "expires_in": expires_in}
        checked, caller = self._checked("remember", given, namespace)
        draft = fact_arguments.draft(checked, caller.scope.own, self._now())
        return self._agora.facts.remember(draft, caller, self._deadline())

    def recall(  # noqa: PLR0913 - what narrows a recall, each by its name
        self,
        subject: str | None = None,
        *,
        key: str | None = None,
        as_of: When | None = None,
        known_at: When | None = None,
        include_history: bool = False,
        max_tokens: int | None = None,
        limit: int | None = None,
        namespace: str | None = None,
    ) -> Recalled:
        """What holds of a subject, by default of all, now or at another time; with it the profile.

        `max_tokens` is the profile's, by default of the settings.

        Raises: InvalidInput, NamespaceDenied; StoreUnavailable.
        """
        given: dict[str, Any] = {"subject": subject, "key": key, "as_of": as_of, "known_at": known_at, "limit": limit}
        given |= {"include_history": include_history, "max_tokens": max_tokens}
        checked, caller = self._checked("recall", given, namespace)
        wanted = fact_arguments.recollection(
            checked,
            _searched(caller, namespace),
            self._now(),
            profile_tokens=max_tokens or self._agora.settings.facts.profile_tokens,
            limit=FACTS,
        )
        return self._agora.facts.recall(wanted, caller, self._deadline())

    def remember_from(
        self, text: str, subject: str | None = None, *, occurred_at: When | None = None, namespace: str | None = None
    ) -> Gathered:
        """Keep the facts that a text states plainly, each with the words that state it; often there are none.

        Raises: as `remember`; PayloadTooLarge.
        """
        given: dict[str, Any] = {"text": text, "subject": subject, "occurred_at": occurred_at}
        checked, caller = self._checked("remember_from", given, namespace)
        said = fact_arguments.saying(checked, self._now(), self._agora.tools.limits.content_bytes)
        return self._agora.facts.remember_from(
            said.text, caller.scope.own, caller, self._deadline(), subject=said.subject, at=said.at
        )

    def append(  # noqa: PLR0913 - what a message may have, each by its name
        self,
        session: str,
        role: Role,
        content: str,
        *,
        speaker: str | None = None,
        occurred_at: When | None = None,
        metadata: Mapping[str, Any] | None = None,
        strategy: Strategy | None = None,
        namespace: str | None = None,
    ) -> Kept:
        """Append a message to a conversation; when this returns it is on disk, with its number.

        `strategy`: what contexts of this conversation are made of from now on.

        Raises: InvalidInput, SecretRefused; NamespaceDenied; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        given: dict[str, Any] = {"session": session, "role": role, "content": content, "speaker": speaker}
        given |= {"occurred_at": occurred_at, "metadata": metadata, "strategy": strategy}
        checked, caller = self._checked("session_append", given, namespace)
        draft = message_draft(checked, caller.scope.own, self._now())
        warm(self._agora.encoder, self._agora.settings.embedding.deadline)
        return self._agora.conversations.append(draft, caller, self._deadline(), strategy=checked.get("strategy"))

    def context(
        self,
        session: str,
        max_tokens: int | None = None,
        *,
        query: str | None = None,
        subjects: Sequence[str] = (),
        strategy: Strategy | None = None,
        namespace: str | None = None,
    ) -> Context:
        """What a conversation's next turn needs to know; `chat` is all of it, as messages for a model.

        Raises: InvalidInput, NamespaceDenied, SessionNotFound; StoreUnavailable.
        """
        given: dict[str, Any] = {"session": session, "max_tokens": max_tokens, "query": query, "subjects": subjects}
        checked, caller = self._checked("session_context", given | {"strategy": strategy}, namespace)
        return self._agora.conversations.context(
            *(caller.scope.own, session_name(checked), checked.get("max_tokens", BUDGET), checked.get("query")),
            *(caller, self._deadline()),
            strategy=checked.get("strategy"),
            subjects=subjects_of(checked),
        )

    def summarize(self, token: str, summary: str) -> Summary:
        """Put a summary in the place of the one that the token of a `summary_due` names.

        Raises: InvalidInput if it is too long, or has numbers, paths or ids that nobody wrote; SummaryOutdated;
        NamespaceDenied; StoreUnavailable.
        """
        checked, caller = self._checked("session_summarize", {"token": token, "summary": summary})
        return self._agora.conversations.summarize(checked["token"], checked["summary"], caller, self._deadline())

    def sessions(self, *, limit: int = 100, namespace: str | None = None) -> tuple[ConversationRow, ...]:
        """The conversations, those with the newest messages first.

        Raises: NamespaceDenied; StoreUnavailable.
        """
        caller = self._connection.caller(CLIENT, __version__, namespace=namespace, **self._who)
        searched = _searched(caller, namespace)
        return self._agora.conversations.sessions(searched, caller, self._deadline(), limit)

    def _checked(
        self, tool: str, given: Mapping[str, Any], namespace: str | None = None
    ) -> tuple[dict[str, Any], Caller]:
        """The arguments of a tool, without secrets and within its limits, and who gives them."""
        plain = {name: _plain(value) for name, value in given.items() if value is not None or name == "value"}
        wanted = plain if namespace is None else plain | {"namespace": namespace}
        checked = check(CALLABLE[tool], wanted, self._agora.guard, self._agora.tools.limits).value
        who = self._who | ({"session": arguments.name(checked["session"])} if tool == "session_append" else {})
        named = CALLABLE[tool].place(checked)
        return checked, self._connection.caller(CLIENT, __version__, namespace=named, **who)

    def _now(self) -> datetime:
        return self._agora.clock.now()

    def _deadline(self) -> Deadline:
        return Deadline(self._agora.tools.limits.call_seconds)


def _searched(caller: Caller, namespace: str | None) -> tuple[str, ...]:
    return caller.scope.searched() if namespace is None else (caller.scope.own,)


def _plain(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - whatever a caller gives
    if depth > _DEEP:
        # A list that holds itself has no end; as far as this it is refused for being too deep.
        return None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, depth + 1) for key, inner in value.items()}
    return [_plain(each, depth + 1) for each in value] if isinstance(value, list | tuple) else value
