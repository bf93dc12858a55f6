from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agora.config.settings import LogSettings, Settings
from agora.config.tracebacks import without_words, write_without_words
from agora.errors import ConfigError
from agora.unseen import in_json, shown

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

KEPT_FILES = 40
"""Log files that stay when a process starts, of all processes together."""

_OURS = "agora."


def get_logger(name: str) -> BoundLogger:
    """A structlog logger for the module `name`, usable before `configure_logging` too.

    It never writes to stdout. Events are short constant texts, what varies goes into keywords; what a note or a
    question says is logged at no level, and tracebacks hold no values.
    """
    return cast("BoundLogger", _LateLogger(name))


class _LateLogger:
    """structlog's logger of that name, made when the first record is to be written: importing it costs 50 ms."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: BoundLogger | None = None

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - whatever structlog's logger has
        level = _LEVELS.get(method)
        if self._made is None and level is not None and not logging.getLogger(self._name).isEnabledFor(level):
            return _nothing
        return getattr(self._logger(), method)

    def _logger(self) -> BoundLogger:
        import structlog  # noqa: PLC0415 - as said

        if self._made is None:
            if not structlog.is_configured():
                # structlog's own default would print to stdout, which belongs to the protocol.
                _configure_structlog()
            self._made = structlog.stdlib.get_logger(self._name)
        return self._made


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
}


def _nothing(*_: object, **__: object) -> None:
    """What is called in place of a level that is not written."""


def configure_logging(settings: Settings) -> None:
    """Send every log record and Python warning to stderr and, by setting, to a file in `home/logs`.

    stderr is for people (colours on a terminal only), the file has one JSON object a line. Each process
    writes a file of its own, named by its start and process id, made at the first record; it is put
    aside at `log.max_bytes`. What is there already is deleted, oldest first, until no more than
    `KEPT_FILES` files and three times what one process may write remain. Agora's records are written
    from `log.level` up, those of other libraries from WARNING up. May be called again.

    Raises: ConfigError if the folder cannot be made.
    """
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if (handler.name or "").startswith(_OURS)]:
        root.removeHandler(handler)
        handler.close()
    if "structlog" in sys.modules:
        # Whoever uses it already may have set it up in another way.
        _configure_structlog()
    # There is no stderr in a Windows program without a console.
    if sys.stderr is not None:
        root.addHandler(_to_stderr())
    if settings.log.file and (to_file := _to_file(settings.home / "logs", settings.log)) is not None:
        root.addHandler(to_file)
    level = logging.getLevelNamesMapping()[settings.log.level.upper()]
    logging.getLogger("agora").setLevel(level)
    root.setLevel(max(level, logging.WARNING))
    logging.captureWarnings(capture=True)


def _shared_processors() -> list[Any]:
    import structlog  # noqa: PLC0415 - as in get_logger

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _first_line(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:  # noqa: ANN401 - structlog's form
    """A record of another library without what follows its first line: values, as asyncio and pydantic quote them."""
    event["event"] = str(event["event"]).partition("\n")[0]
    return event


def _legible(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:  # noqa: ANN401 - as above
    """A record whose words drive no terminal; its values are shown as literals anyway."""
    event["event"] = shown(str(event["event"]))
    return event


def _json(event: Any, **options: Any) -> str:  # noqa: ANN401 - structlog's form
    return in_json(json.dumps(event, **options))


def _configure_structlog() -> None:
    import structlog  # noqa: PLC0415 - as in get_logger

    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *_shared_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


class _LateFormatter(logging.Formatter):
    """The formatter that `make` makes, once there is a record."""

    def __init__(self, make: Callable[[], logging.Formatter]) -> None:
        super().__init__()
        self._make = make
        self._made: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        """As `logging.Formatter.format`."""
        if self._made is None:
            self._made = self._make()
        return self._made.format(record)


def _formatter(*last: Any) -> logging.Formatter:  # noqa: ANN401 - structlog's processors have no common type
    import structlog  # noqa: PLC0415 - as in get_logger

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_first_line, *_shared_processors()],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
    )


def _to_stderr() -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.name = f"{_OURS}stderr"
    handler.setFormatter(_LateFormatter(_for_people))
    return handler


def _for_people() -> logging.Formatter:
    import structlog  # noqa: PLC0415 - as in get_logger

    return _formatter(
        _legible,
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
            # What a client sends may hold escape sequences; shown as a literal they do nothing.
            repr_native_str=True,
            exception_formatter=write_without_words,
        ),
    )


def _for_programs() -> logging.Formatter:
    import structlog  # noqa: PLC0415 - as in get_logger

    return _formatter(
        structlog.processors.ExceptionRenderer(without_words),
        structlog.processors.JSONRenderer(_json, ensure_ascii=False),
    )


class _LogFile(logging.handlers.RotatingFileHandler):
    """Goes without a line that a full or read-only disk does not take, says so once, and tries again with the next."""

    _told = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name in logging
        """As `logging.Handler.handleError`, with one line in place of a traceback where the disk is to blame."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        # What is left of the line in the buffer must not come later.
        with contextlib.suppress(OSError, ValueError):
            if self.stream is not None:
                self.stream.close()
        # As `close` leaves it: the next record opens the file anew.
        self.stream = None
        if not self._told:
            self._told = True
            _say(f"the log file {self.baseFilename} cannot be written: {error.strerror or error}")


def _say(what: str) -> None:
    """One line on stderr, for what a log cannot take."""
    if sys.stderr is not None:
        sys.stderr.write(f"agora: {what}\n")


def _to_file(folder: Path, settings: LogSettings) -> logging.Handler | None:
    """The handler of this process's log file; None in a data folder that can only be read, which stderr tells."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if folder.parent.is_dir() and not folder.exists():
            # What is in the data folder can be read all the same.
            _say(f"there is no log file: {folder} cannot be made: {error.strerror or error}")
            return None
        raise ConfigError(
            f"the log folder {folder} cannot be made: {error.strerror or error}",
            hint="Point AGORA_HOME at a folder that can be written, or set AGORA_LOG_FILE=false.",
        ) from error
    _prune(folder, most_bytes=3 * settings.max_bytes * (settings.backups + 1))
    handler = _LogFile(
        folder / f"agora-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}.log",
        maxBytes=settings.max_bytes,
        backupCount=settings.backups,
        encoding="utf-8",
        # A lone surrogate becomes the JSON escape of itself.
        errors="backslashreplace",
        delay=True,
    )
    handler.name = f"{_OURS}file"
    handler.setFormatter(_LateFormatter(_for_programs))
    return handler


def _prune(folder: Path, *, most_bytes: int) -> None:
    """Delete the oldest log files of `folder` until at most `KEPT_FILES` and `most_bytes` remain."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob("agora-*.log*"):
        # Another process may delete the same file at the same time.
        with contextlib.suppress(FileNotFoundError):
            state = path.stat()
            found.append((state.st_mtime, state.st_size, path))
    size = 0
    for kept, (_, length, path) in enumerate(sorted(found, reverse=True)):
        size += length
        if kept >= KEPT_FILES or size > most_bytes:
            # Windows keeps a file that another process has open; a read-only folder keeps all of them.
            with contextlib.suppress(OSError):
                path.unlink()
