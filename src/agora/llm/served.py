from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import SecretStr

from agora.errors import (
    AgoraError,
    ConfigError,
    DeadlineExceeded,
    LanguageModelError,
    ModelAnswerUnusable,
    ModelUnavailable,
)
from agora.llm.address import Address
from agora.llm.answer import Answer, value_in
from agora.llm.refusal import Failure, out_of_reach, refusal
from agora.llm.waiting import delay, pause, run
from agora.llm.wire import LIMIT, make_client
from agora.model.deadline import Deadline
from agora.ports.language_model import Asked, Completed
from agora.ports.log import Log

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model that somebody serves, and how to ask for it. `temperature`: None leaves it to the server."""

    model: str
    url: str
    key: SecretStr | None = None
    timeout: float = 30.0
    max_tokens: int = 2_048
    retries: int = 2
    temperature: float | None = 0.0


class Dialect(Protocol):
    """One official library: how it is opened, asked and read. It repeats nothing and waits for nothing."""

    name: str
    address: Address

    def headers(self) -> dict[str, str]:
        """What proves who asks."""
        ...

    def open(self, http: httpx2.Client) -> Any:  # noqa: ANN401 - each library has a client of its own
        """The library's client over `http`. Imports the library, which takes up to a second."""
        ...

    def send(self, client: Any, asked: Asked, max_tokens: int, seconds: float) -> Answer:  # noqa: ANN401 - as above
        """One request, and what came of it. Raises what the library raises."""
        ...


class ServedModel:
    """A language model behind HTTP; implements `agora.ports.language_model.LanguageModel`.

    Making one connects to nothing and imports nothing. There is no other server and no other model if this one fails.
    """

    def __init__(self, dialect: Dialect, wanted: Wanted, log: Log | None = None) -> None:
        self._dialect = dialect
        self._wanted = wanted
        self._log = log
        self._who = f"the language model at {dialect.address.host}"
        self._lock = threading.Lock()
        self._opened: tuple[httpx2.Client, Any] | None = None
        self._counts = {"calls": 0, "failures": 0, "retries": 0, "input_tokens": 0, "output_tokens": 0}
        self._seconds = 0.0
        self._last_error: str | None = None

    @property
    def name(self) -> str:
        """Adapter, model and server: `openai:llama3.2@localhost:11434`."""
        return f"{self._dialect.name}:{self._wanted.model}@{self._dialect.address.host}"

    def complete(self, asked: Asked, deadline: Deadline) -> Completed:
        """As the port says. Never more tokens than the settings allow, whatever `asked` says.

        Raises: ModelUnavailable, ModelAnswerUnusable, DeadlineExceeded, Cancelled.
        """
        deadline.check()
        started = time.monotonic()
        self._count(calls=1)
        try:
            found = self._repeated(asked, deadline)
        except DeadlineExceeded:
            self._settle(Failure(ModelUnavailable("late"), f"{self._who} did not answer within the call's deadline"))
            raise
        finally:
            with self._lock:
                self._seconds += time.monotonic() - started
        if isinstance(found, Completed):
            self._settle(None)
            return found
        # Raised where no other exception is at hand: what the libraries raise holds the headers.
        self._settle(found)
        raise found.error

    def details(self) -> dict[str, Any]:
        """As the port says; `last_error` without any word of the server, which may hold texts."""
        with self._lock:
            found: dict[str, Any] = {"model": self.name, "url": self._dialect.address.base, **self._counts}
            return found | {"seconds": round(self._seconds, 3), "last_error": self._last_error}

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[0].close()

    def _repeated(self, asked: Asked, deadline: Deadline) -> Completed | Failure:
        """Ask until there is an answer, or until asking again cannot help.

        Busy servers and broken connections are asked again while there is time. One that did not answer is not: it
        would work on the same words twice, for an answer that again comes too late.
        """
        for attempt in range(self._wanted.retries + 1):
            found = self._attempt(asked, deadline)
            if isinstance(found, Answer):
                return self._completed(found, asked)
            # Who was taken back meanwhile has no time left: that is the reason, not what the server said.
            deadline.check()
            wait = delay(attempt, found.wait)
            # Who asks for more time than there is gets no second request that could only fail.
            if not found.again or attempt == self._wanted.retries or wait >= deadline.remaining():
                return found
            pause(wait, deadline)
            self._count(retries=1)
        raise AssertionError("the last attempt returns")

    def _attempt(self, asked: Asked, deadline: Deadline) -> Answer | Failure:
        opened = run(self._client, deadline)
        if opened.value is None:
            return self._failure(opened.error, deadline, deadline) if opened.error else self._late(deadline, deadline)
        # The time of a request begins once the library is imported, which may take seconds on a busy machine.
        client, limit = opened.value, deadline.within(self._wanted.timeout)
        most = min(asked.max_tokens, self._wanted.max_tokens)

        def work() -> Answer:
            LIMIT.set(limit)
            return self._dialect.send(client, asked, most, max(0.001, limit.remaining()))

        outcome = run(work, limit)
        if outcome.value is not None:
            return outcome.value
        if outcome.error is not None:
            return self._failure(outcome.error, deadline, limit)
        return self._late(deadline, limit)

    def _failure(self, error: Exception, deadline: Deadline, limit: Deadline) -> Failure:
        """What an exception of the library comes to."""
        import httpx2  # noqa: PLC0415 - only who asks a server needs it

        for each in _causes(error):
            if isinstance(each, DeadlineExceeded | httpx2.TimeoutException):
                return self._late(deadline, limit)
            if isinstance(each, ConfigError):
                return Failure(ModelUnavailable(each.message, hint=each.hint, retryable=False), each.message)
            if isinstance(each, LanguageModelError):
                return Failure(each, each.message)
            if isinstance(each, AgoraError):
                deadline.check()
            if isinstance(each, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
                break
            if isinstance(each, httpx2.TransportError):
                return out_of_reach(self._who, f"{each}" or type(each).__name__, self._wanted.key)
        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response) and not response.is_success:
            key = self._wanted.key
            return refusal(
                self._who, response.status_code, dict(response.headers), response.content, key, datetime.now(UTC)
            )
        # Neither the text nor the traceback: both may show headers.
        brief = f"{self._who} answers what its library cannot read ({type(error).__name__})"
        hint = "Look at model.url, which must lead to the API that model.adapter names."
        return Failure(ModelAnswerUnusable(brief, hint=hint), brief)

    def _late(self, deadline: Deadline, limit: Deadline) -> Failure:
        """Raises: DeadlineExceeded, Cancelled, if the call itself is over."""
        deadline.check()
        brief = f"{self._who} did not answer within {limit.seconds:g} s"
        hint = "See whether it is loading a model or overloaded; raise model.timeout if it needs the time."
        return Failure(ModelUnavailable(brief, hint=hint), brief)

    def _completed(self, answer: Answer, asked: Asked) -> Completed | Failure:
        self._count(input_tokens=answer.input_tokens, output_tokens=answer.output_tokens)
        value, flaw = None, answer.flaw
        if flaw is None and not answer.text.strip():
            flaw = "it is empty"
        if flaw is None and asked.schema is not None:
            value, flaw = value_in(answer.text, asked.schema)
        if flaw is not None:
            error = ModelAnswerUnusable(f"the answer of {self.name} cannot be used: {flaw}")
            return Failure(error, error.message)
        text = answer.text.strip()
        return Completed(text, value, answer.model, answer.input_tokens, answer.output_tokens)

    def _client(self) -> Any:  # noqa: ANN401 - each library has a client of its own
        with self._lock:
            if self._opened is None:
                http = make_client(self._dialect.address, self._dialect.headers())
                self._opened = http, self._dialect.open(http)
            return self._opened[1]

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self._counts[name] += number

    def _settle(self, failure: Failure | None) -> None:
        """Remember how the last request went, and log a change; the server's own words may hold texts."""
        with self._lock:
            changed = (self._last_error is None) != (failure is None)
            self._last_error = None if failure is None else failure.brief
            self._counts["failures"] += failure is not None
        if self._log is None or not changed:
            return
        if failure is None:
            self._log.info("language model answers", model=self.name)
        else:
            self._log.warning("language model fails", model=self.name, code=failure.error.code)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it: the libraries wrap what happens under them."""
    while error is not None:
        yield error
        error = error.__cause__
