"""One POST to an embedding server: in time, repeated where that may help, and never a word of the key in an error."""

from __future__ import annotations

import email.utils
import random
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agora.embedding.remote_address import Address
from agora.embedding.remote_refusal import out_of_reach, refusal
from agora.errors import AgoraError, DeadlineExceeded, EmbeddingError, EncoderUnavailable
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    import httpx2

_SLICE = 0.05
"""Seconds between two looks at the deadline of a call that waits: a cancelled call is gone after that."""

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 8.0
"""Seconds that the first repetition waits at most, doubled for each further one, and where that ends."""

_LARGEST = 256 * 1024 * 1024
"""Bytes of an answer at most; 2,048 vectors of 3,072 numbers are about 130 MB of JSON."""

_BUSY = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said: status, content type in lower case, seconds that it asks to wait, and the body."""

    status: int
    kind: str
    wait: float | None
    body: bytes


class Endpoint:
    """Where vectors are asked for; keeps its connections open. Thread-safe, and made without connecting."""

    def __init__(self, address: Address, key: SecretStr | None, *, timeout: float, retries: int) -> None:
        self._address = address
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None

    def post(self, body: bytes, deadline: Deadline) -> Reply:
        """The server's answer with status 200.

        Busy servers and broken connections are asked again after a random time that doubles, or after what they
        ask for, while there is time. A request that got no answer in its time is not: the next would get none either.

        Raises: EncoderUnavailable, EmbeddingError, Cancelled.
        """
        for attempt in range(self._retries + 1):
            if deadline.remaining() == 0:
                self._stop(deadline, deadline)
            try:
                reply = self._attempt(body, deadline)
            except _Broken as broken:
                failure: EmbeddingError = out_of_reach(self._address, broken.reason, self._key)
                wait = None
            else:
                if reply.status == 200:
                    return reply
                failure, wait = refusal(self._address, reply.status, reply.kind, reply.body, self._key), reply.wait
                if reply.status not in _BUSY or not isinstance(failure, EncoderUnavailable):
                    raise failure
            delay = _delay(attempt, wait)
            # Who asks for more time than there is gets no second request that could only fail.
            if attempt == self._retries or delay >= deadline.remaining():
                if deadline.remaining() == 0:
                    self._stop(deadline, deadline, failure)
                raise failure
            self._pause(delay, deadline)
        raise AssertionError("the last attempt returns or raises")

    def prepare(self) -> None:
        """Import the client and make it: 0.1 s that the first request need not wait for."""
        self._opened()

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _attempt(self, body: bytes, deadline: Deadline) -> Reply:
        """One request, in a thread of its own: neither a name lookup nor a read that hangs can be interrupted.

        The thread ends by itself: its timeouts are those of the request, and it looks at the deadline too.
        """
        limit = deadline.within(self._timeout)
        done = threading.Event()
        found: list[Reply | Exception] = []

        def work() -> None:
            try:
                found.append(self._send(body, limit))
            except Exception as error:  # noqa: BLE001 - outermost frame of the thread; the caller raises it
                found.append(error)
            finally:
                done.set()

        threading.Thread(target=work, name="agora-encoder", daemon=True).start()
        while not done.wait(min(_SLICE, limit.remaining())):
            if limit.remaining() == 0:
                self._stop(deadline, limit)
        if isinstance(found[0], Reply):
            return found[0]
        raise self._read(found[0], deadline, limit)

    def _read(self, error: Exception, deadline: Deadline, limit: Deadline) -> Exception:
        """What to raise for what happened in the thread."""
        import httpx2  # noqa: PLC0415 - only who asks a server needs it

        if isinstance(error, AgoraError | httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            if isinstance(error, EmbeddingError):
                return error
            self._stop(deadline, limit)
        refused = httpx2.LocalProtocolError, httpx2.UnsupportedProtocol
        if isinstance(error, httpx2.TransportError) and not isinstance(error, refused):
            return _Broken(f"{error}" or type(error).__name__)
        # Neither the text nor the traceback: both may show headers.
        return EmbeddingError(
            f"the embedding server {self._address.host} cannot be asked: {type(error).__name__}",
            hint="Look at embedding.url and embedding.key.",
        )

    def _stop(self, deadline: Deadline, limit: Deadline, last: EmbeddingError | None = None) -> None:
        """Raise what ends a call whose time is over, or which was taken back."""
        try:
            deadline.check()
        except DeadlineExceeded as error:
            said = f"; at last: {last.message}" if last else ""
            raise EncoderUnavailable(
                f"the embedding server {self._address.host} did not answer within the {deadline.seconds:g} s of this"
                f" call{said}",
                hint="Try again; if it is always so slow, raise embedding.deadline.",
            ) from error
        raise EncoderUnavailable(
            f"the embedding server {self._address.host} did not answer within {limit.seconds:g} s",
            hint="See whether it is loading a model or overloaded; raise embedding.timeout if it needs the time.",
        )

    def _pause(self, seconds: float, deadline: Deadline) -> None:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            if deadline.remaining() == 0:
                self._stop(deadline, deadline)
            time.sleep(min(_SLICE, left))

    def _send(self, body: bytes, limit: Deadline) -> Reply:
        client = self._opened()
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key.get_secret_value()}"
        seconds = max(0.001, limit.remaining())
        with client.stream("POST", self._address.url, content=body, headers=headers, timeout=seconds) as response:
            chunks, size = [], 0
            for chunk in response.iter_bytes():
                # A timeout counts from the last byte; a server that drips would never meet one.
                limit.check()
                size += len(chunk)
                if size > _LARGEST:
                    raise EmbeddingError(
                        f"the embedding server {self._address.host} answers more than {_LARGEST >> 20} MiB",
                        hint="Lower embedding.batch.",
                    )
                chunks.append(chunk)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            wait = _wait(response.headers.get("retry-after"), lambda: datetime.now(UTC))
            return Reply(response.status_code, kind, wait, b"".join(chunks))

    def _opened(self) -> httpx2.Client:
        import httpx2  # noqa: PLC0415 - only who asks a server needs it

        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(
                    # The key and the texts go to the address that was configured, and to no other.
                    follow_redirects=False,
                    # A proxy of the environment is for other machines.
                    trust_env=not self._address.loopback,
                    # Without TLS, no 20 ms for reading the system's certificates; this context would trust nobody.
                    verify=self._address.url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                )
            return self._client


class _Broken(Exception):
    """A connection that could not be made, or that broke."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _delay(attempt: int, wait: float | None) -> float:
    """Seconds before the next attempt: between none and all of a time that doubles, or more if the server says so."""
    most = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)
    spread = random.uniform(0, most)  # noqa: S311 - keeps clients apart, hides nothing
    return spread if wait is None else wait + min(spread, _FIRST_WAIT)


def _wait(header: str | None, now: Callable[[], datetime]) -> float | None:
    """Seconds that a `Retry-After` asks for, as a number or as a date; None without one that can be read."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now()).total_seconds())
