"""The encoder, the store and what stands on them, put together as the settings want it.

Apart from `agora.app.agora` because importing it costs as much as a server's whole start may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from agora.app.conversing import make_conversations, make_summarizer
from agora.app.extracting import make_extractor
from agora.app.files import CACHE_FILE, STORE_FILE
from agora.app.gatewaying import Parts, make_gateway
from agora.app.language_models import LanguageModels
from agora.app.opening import open_store
from agora.app.tables import Reach
from agora.cache.disk import Disk
from agora.cache.embeddings import CachedEncoder
from agora.cache.results import TwoLevelCache
from agora.config.settings import Settings
from agora.embedding.choose import choose_encoder
from agora.memory.conversations.service import ConversationMemory
from agora.memory.facts import FactMemory
from agora.memory.notes import Notes
from agora.memory.profile import Heading
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.extractor import Extractor
from agora.ports.log import Log
from agora.protocol.redacting import Guard
from agora.protocol.tools.conversations import ConversationTools
from agora.protocol.tools.facts import FactTools
from agora.protocol.tools.gateway import GatewayTools
from agora.protocol.tools.handlers import Limits, Tools
from agora.router.gateway import Gateway
from agora.stores.sqlite.profile import profile_of
from agora.stores.sqlite.store import SqliteStore


@dataclass(frozen=True, slots=True)
class Opened:
    """What there is once the length of the vectors is known."""

    store: SqliteStore
    cache: TwoLevelCache | None
    notes: Notes
    facts: FactMemory
    conversations: ConversationMemory
    models: LanguageModels
    tools: Tools
    gateway: Gateway

    def close(self) -> None:
        """Finish the accepted writes and let files and connections go."""
        self.gateway.close()
        self.models.close()
        self.store.close()
        if self.cache is not None:
            self.cache.close()


def make_encoder(settings: Settings, log: Log) -> Encoder:
    """The encoder that is set, its files verified, its model not yet loaded.

    Raises: ModelMissing, ModelTampered, EmbeddingError, ConfigError.
    """
    encoder = choose_encoder(settings.embedding, log, partial(profile_of, settings.home / STORE_FILE))
    encoder.verify()
    return encoder


def assemble(  # noqa: PLR0913, PLR0917 - the parts it is made of
    settings: Settings,
    encoder: Encoder,
    clock: Clock,
    log: Log,
    limits: Limits,
    about: Callable[[], dict[str, Any]],
    guard: Guard,
    reach: Reach,
) -> Opened:
    """The open store and its services, for an encoder that is settled.

    Raises: ConfigError, MissingExtra, StoreUnavailable, StoreCorrupt, StoreVersion.
    """
    models = LanguageModels(settings.model, log)
    store = open_store(settings, encoder.fingerprint, clock, log)
    cache, questions, disk = _caches(settings, encoder, clock, log)
    notes = Notes(
        store, encoder, clock, log, model_seconds=settings.embedding.deadline, cache=cache, questions=questions
    )
    gateway = make_gateway(settings, reach, store, notes, Parts(questions, disk, clock, log, guard))
    by_model: tuple[int, Callable[[str], str]] = settings.model.max_tokens, lambda text: guard.kept(text)[0]
    facts = _facts(settings, store, encoder, clock, log, make_extractor(models.extraction, *by_model), guard)
    conversations = make_conversations(
        *(settings, store, encoder, questions, clock, log, facts),
        make_summarizer(models.summary, *by_model),
    )
    tools = Tools(
        *(notes, clock, limits, about, guard),
        gateway=GatewayTools(gateway),
        facts=FactTools(facts, clock, content_bytes=limits.content_bytes, profile_tokens=settings.facts.profile_tokens),
        conversations=ConversationTools(conversations, clock),
        language_models=models.details,
    )
    return Opened(store, cache, notes, facts, conversations, models, tools, gateway)


def _facts(  # noqa: PLR0913, PLR0917 - the parts it is made of
    settings: Settings,
    store: SqliteStore,
    encoder: Encoder,
    clock: Clock,
    log: Log,
    extractor: Extractor,
    guard: Guard,
) -> FactMemory:
    return FactMemory(
        *(store.facts(), encoder, clock, log, extractor),
        model_seconds=settings.embedding.deadline,
        heading=Heading(settings.facts.heading, settings.facts.heading_many),
        log_read=store.log_read,
        is_secret=guard.is_secret,
    )


def _caches(
    settings: Settings, encoder: Encoder, clock: Clock, log: Log
) -> tuple[TwoLevelCache | None, Encoder, Disk | None]:
    """The cache of answers and the encoder that remembers questions, or none and the plain one by setting."""
    wanted = settings.cache
    if not wanted.enabled:
        return None, encoder, None
    disk = Disk(settings.home / CACHE_FILE, log, entries=wanted.disk_entries) if wanted.disk_entries else None
    results = TwoLevelCache(
        clock, disk, entries=wanted.entries, seconds=wanted.seconds, disk_seconds=wanted.disk_seconds
    )
    questions = CachedEncoder(encoder, clock, disk, entries=wanted.entries, disk_seconds=wanted.disk_seconds)
    return results, questions, disk
