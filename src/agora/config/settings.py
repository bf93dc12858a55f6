from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import platformdirs
from pydantic import BaseModel, BeforeValidator, Field, SecretStr, StringConstraints, field_validator

from agora.config.access import KEY as ACCESS
from agora.config.access import AccessTable
from agora.config.backends import KEY as BACKENDS
from agora.config.backends import BackendTable
from agora.config.bounds import LimitSettings, QuotaSettings, RedactionSettings
from agora.config.conversations import ConversationSettings
from agora.config.facts import FactSettings
from agora.config.gateway import GatewaySettings
from agora.config.language_model import ModelSettings
from agora.config.project import canonical_namespace
from agora.config.sections import Seconds, Section, Whole, lower, number, secret
from agora.errors import InvalidNamespace


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Host = Annotated[str, BeforeValidator(lower), Field(pattern=r"^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?$")]
Language = Annotated[str, BeforeValidator(lower), Field(pattern=r"^[a-z]{2,3}$")]
Verbatim = Annotated[str, StringConstraints(strip_whitespace=False)]
Website = Annotated[str, BeforeValidator(lower), Field(pattern=r"^[a-z][a-z0-9+.-]*://[^/\s*]+$")]


class StoreSettings(Section):
    """The record store."""

    synchronous: Annotated[Literal["normal", "full"], BeforeValidator(lower)] = Field(
        default="normal",
        description="`normal` survives a crash of Agora; `full` also keeps the last saves in a power cut.",
    )
    busy_timeout: Seconds = Field(
        default=10.0, le=600, description="Seconds to wait for another process that is writing."
    )
    readers: Whole = Field(default=4, ge=1, le=32, description="Connections that read at the same time.")
    network_file_system: Annotated[Literal["refuse", "allow"], BeforeValidator(lower)] = Field(
        default="refuse",
        description="`allow` opens a store on a network file system, which gets damaged once two machines use it.",
    )


class IndexSettings(Section):
    """The vector index: derived from the notes, built anew at any time by `agora reindex`."""

    url: str = Field(
        default="sqlite",
        min_length=1,
        description="Which index: `sqlite`, Agora's own beside the store, or `chroma://` with or without the path of a"
        " folder (needs the extra `chroma`).",
    )
    memory_mb: Whole | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Megabytes of vectors that a process keeps in memory; the rest is read on demand, with the same"
        " answers. None for no limit.",
    )
    compact_seconds: Seconds = Field(
        default=60.0, le=86_400, description="Seconds between two looks of a server whether its index wants compacting."
    )
    compact_dead: float = Field(
        default=0.2, gt=0, le=1, description="Share of dead vectors from which on the index is compacted."
    )


class EmbeddingSettings(Section):
    """The model that turns texts into vectors."""

    model: str = Field(
        default="all-MiniLM-L6-v2-int8",
        min_length=1,
        description="Name of a model in the package, path of a folder or file that holds one, or `openai:` and the name"
        " of a model that the server at `embedding.url` has.",
    )
    threads: Whole = Field(default=1, ge=1, le=256, description="Processor threads for one text.")
    deadline: Seconds = Field(
        default=20.0, le=600, description="Seconds a call waits for the model before it gives up."
    )
    url: str | None = Field(
        default=None, min_length=1, description="Where an `openai:` model is, as in `http://localhost:11434/v1`."
    )
    key: Annotated[SecretStr | None, BeforeValidator(secret)] = Field(
        default=None, description="Key that the server of an `openai:` model asks for."
    )
    dimension: Whole | None = Field(
        default=None, ge=1, le=65_536, description="Length of its vectors; by default the model or the server is asked."
    )
    timeout: Seconds = Field(default=10.0, le=600, description="Seconds that one request to the server may take.")
    retries: Whole = Field(
        default=3, ge=0, le=20, description="Times that a request is repeated when the server is busy or out of reach."
    )
    batch: Whole = Field(default=32, ge=1, le=2_048, description="Passages in one request to the server.")
    query_prefix: Verbatim | None = Field(
        default=None, max_length=1_000, description="What the model wants before a question, blanks included."
    )
    document_prefix: Verbatim | None = Field(
        default=None, max_length=1_000, description="What the model wants before a text that is to be found."
    )
    languages: Annotated[tuple[Language, ...], BeforeValidator(_listed)] = Field(
        default=(), description="Languages that the model reads, as in `en, it`; none for what the model says, or any."
    )
    max_tokens: Whole | None = Field(
        default=None,
        ge=16,
        le=1_000_000,
        description="Tokens that the model reads at once; by default its own, or 256.",
    )
    pooling: Annotated[Literal["mean", "cls"] | None, BeforeValidator(lower)] = Field(
        default=None,
        description="How a folder's graph makes one vector of many, if its files do not say: `mean`, `cls`.",
    )


class NamespaceSettings(Section):
    """Where notes go when the call names no namespace."""

    default: str | None = Field(
        default=None, description="Namespace of calls that name none, in place of the project's own."
    )

    @field_validator("default")
    @classmethod
    def _canonical(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            return canonical_namespace(value)
        except InvalidNamespace as error:
            raise ValueError(error.reason) from error


class CacheSettings(Section):
    """Answers and vectors of questions that were asked before. Never stale: see ADR 8."""

    enabled: bool = Field(default=True, description="Whether answers and vectors of questions are kept.")
    entries: Whole = Field(default=1_000, ge=1, le=1_000_000, description="Answers kept in memory (L1).")
    seconds: Seconds = Field(default=300.0, le=86_400, description="Seconds an answer stays in memory.")
    disk_entries: Whole = Field(
        default=10_000, ge=0, le=10_000_000, description="Answers kept in `cache.db` (L2); 0 for no file."
    )
    disk_seconds: Seconds = Field(default=86_400.0, le=31_536_000, description="Seconds an answer stays on disk.")


class LogSettings(Section):
    """What Agora writes about its own work, to stderr and to `logs` in the data folder."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lower)] = Field(
        default="info", description="Least level that is written: `debug`, `info`, `warning` or `error`."
    )
    file: bool = Field(default=True, description="Whether to write files beside stderr.")
    max_bytes: Whole = Field(
        default=5_000_000, ge=10_000, le=1_000_000_000, description="Size at which a log file is put aside."
    )
    backups: Whole = Field(default=3, ge=1, le=100, description="Files put aside that each process keeps.")


class ToolSettings(Section):
    """The tools that clients see."""

    profile: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        default=("all",),
        min_length=1,
        description="Which tools are offered: `all`, `core` (save, query, get, forget, status) or a list of names.",
    )


class PromptSettings(Section):
    """The prompts that clients offer to their users."""

    folder: Path | None = Field(
        default=None,
        description="Folder with prompts of your own, one Markdown file each; by default `prompts` in the data folder.",
    )
    language: Annotated[Literal["en", "it"], BeforeValidator(lower)] = Field(
        default="en", description="Language of the prompts where a call names none: `en` or `it`."
    )


class ServerSettings(Section):
    """`agora serve` and the server that its sessions share."""

    drain: Seconds = Field(
        default=1.0, le=60, description="Seconds that running calls get to finish when the server ends."
    )
    shared: bool = Field(
        default=True,
        description="Whether the sessions of a data folder share one server process; otherwise each has its own.",
    )
    idle_seconds: Seconds = Field(
        default=900.0, le=31_536_000, description="Seconds after its last session at which the shared server ends."
    )


class HttpSettings(Section):
    """`agora serve --http`."""

    hosts: Annotated[tuple[Host, ...], BeforeValidator(_listed)] = Field(
        default=(),
        description="Names, with or without a port, that clients may call this machine by, beside loopback ones.",
    )
    origins: Annotated[tuple[Website, ...], BeforeValidator(_listed)] = Field(
        default=(), description="Origins, as in `https://app.example.com`, whose web pages may use the server."
    )
    sessions: Whole = Field(default=1_000, ge=1, le=100_000, description="Sessions that are open at the same time.")
    sse: bool = Field(
        default=False, description="Whether HTTP+SSE is served too, at `/sse`: the transport of 2024-11-05, deprecated."
    )
    rate: Annotated[float, BeforeValidator(number), Field(gt=0, le=100_000, allow_inf_nan=False)] = Field(
        default=100.0,
        description="Requests a second that each token may make; ten seconds' worth may come at once.",
    )
    idle_seconds: Seconds = Field(
        default=1_800.0, le=604_800, description="Seconds after its last request at which a session ends."
    )


class Settings(Section):
    """Every setting of one run, frozen. Built by `agora.config.load.load_settings`; tests may build it too.

    No folder is created here: `home` is a path, and the application makes it when it opens the store.
    """

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("agora", appauthor=False),
        description="Data folder: the store, the logs and `agora.toml`.",
    )
    agent: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="Name that calls carry as their agent when they give none; else the client's name.",
    )
    namespace: NamespaceSettings = NamespaceSettings()
    store: StoreSettings = StoreSettings()
    index: IndexSettings = IndexSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    model: ModelSettings = ModelSettings()
    limits: LimitSettings = LimitSettings()
    quota: QuotaSettings = QuotaSettings()
    redaction: RedactionSettings = RedactionSettings()
    cache: CacheSettings = CacheSettings()
    facts: FactSettings = FactSettings()
    conversations: ConversationSettings = ConversationSettings()
    log: LogSettings = LogSettings()
    tools: ToolSettings = ToolSettings()
    prompts: PromptSettings = PromptSettings()
    server: ServerSettings = ServerSettings()
    http: HttpSettings = HttpSettings()
    gateway: GatewaySettings = GatewaySettings()
    backends: tuple[BackendTable, ...] = Field(
        default=(), description="Other MCP servers: the tables `[[backends]]`, see docs/gateway.md."
    )
    access: tuple[AccessTable, ...] = Field(
        default=(), description="Who may do what in which namespaces: the tables `[[access]]`, see docs/access.md."
    )


class Setting(NamedTuple):
    """One row of the table that help, documentation and `agora config` are made from."""

    key: str
    """Dotted, as in `store.readers`."""
    variable: str
    """Name in the environment, as in `AGORA_STORE_READERS`."""
    default: str
    """As shown to a reader."""
    help: str


def _walk(model: type[BaseModel], prefix: str = "") -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        key = prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _walk(field.annotation, f"{key}.")
            continue
        if key in {ACCESS, BACKENDS}:
            # A list of tables has no place in a table of values, nor in a variable.
            continue
        variable = "AGORA_" + key.replace(".", "_").upper()
        default = "the platform's per-user data folder" if key == "home" else plain(field.default)
        yield Setting(key, variable, _written(default), field.description or "")


def plain(value: object) -> str | int | float | None:
    """`value` as JSON and a terminal can show it; a secret as stars."""
    if isinstance(value, SecretStr):
        return "********"
    if isinstance(value, tuple):
        return ", ".join(value) or None
    return value if value is None or isinstance(value, int | float) else str(value)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


SETTINGS: tuple[Setting, ...] = tuple(_walk(Settings))
"""Every setting, in the order of the documentation."""

SECTIONS: frozenset[str] = frozenset(setting.key.partition(".")[0] for setting in SETTINGS if "." in setting.key)
"""Names of the tables in `agora.toml`."""


def value_of(settings: Settings, key: str) -> Any:  # noqa: ANN401 - settings are of many types
    """The value of the dotted `key`."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def settings_table() -> str:
    """Every setting as a Markdown table; `docs/configuration.md` holds it word for word."""
    lines = ["| setting | default | environment | what it does |", "|---|---|---|---|"]
    lines += [f"| `{row.key}` | {row.default} | `{row.variable}` | {row.help} |" for row in SETTINGS]
    return "\n".join(lines) + "\n"
