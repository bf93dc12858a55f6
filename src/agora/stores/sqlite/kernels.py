"""The first stage of a search: Hamming distances of one code to many, and the nearest by them.

A code is one bit a dimension, packed eight to a byte. Every kernel gives the same whole numbers, so the choice
changes the time of a search and nothing else (`docs/adr/0011-an-exact-index-in-two-stages.md`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agora.errors import ConfigError, MissingExtra

Codes = NDArray[np.uint8]
Distances = NDArray[np.uint16]

_Scan = Callable[[Codes, Codes, Distances], None]
"""Writes the distance of each code to the query; there is at least one code."""

_BLOCK_BYTES = 384 * 1024
"""Codes that numpy works on at once: with two such arrays beside them they just fill a second-level cache of 1 MB."""

_BLOCK_ROWS = 8192
"""Codes a call of a compiled kernel: it answers in float64, and 64 KB of them stay near."""

_SAMPLE = 1024
"""Distances that are sorted to guess how near the last of the nearest is."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One way to count differing bits. Thread-safe.

    `passed_over` says why a kernel that is faster elsewhere was not chosen, one sentence each.
    """

    name: str
    scan: _Scan
    passed_over: tuple[str, ...] = ()

    def distances(self, codes: Codes, query: Codes) -> Distances:
        """The number of differing bits between `query` and each of `codes`, in their order.

        `codes` is C-contiguous, (n, bytes), and may be read-only or mapped; `query` is C-contiguous, (bytes,).
        `bytes` is a multiple of 8 and below 8,192, so that no distance passes 65,535.
        """
        assert codes.dtype == query.dtype == np.uint8
        assert codes.flags.c_contiguous
        assert query.flags.c_contiguous
        width = query.size
        assert codes.shape[1:] == query.shape == (width,)
        assert 0 < width < 8192
        assert width % 8 == 0
        found = np.empty(len(codes), np.uint16)
        if len(codes):
            self.scan(codes, query, found)
        return found


def choose_kernel(name: str | None = None) -> Kernel:
    """The kernel of that name, or the fastest one that is installed and counts right on this machine.

    numkong is never chosen unasked: it counts one code against many more slowly than numpy does.

    Raises: MissingExtra if it is not installed, ConfigError if there is none of that name or it counts wrong.
    """
    if name is not None:
        return _load(name)
    try:
        kernel = _load("simsimd")
        if _is_wide(kernel.name):
            return kernel
        reason = "The kernel simsimd has no code for the wide instructions of this processor."
    except ConfigError as error:
        reason = error.message
    return Kernel("numpy", _numpy, (reason,))


def nearest_of(distances: Distances, limit: int) -> NDArray[np.int64]:
    """Where the `limit` smallest distances are, ascending, and with them all that equal the largest of these.

    Exact whatever the order of `distances`; fast where no regular pattern runs through it.
    """
    count = len(distances)
    if limit <= 0 or count == 0:
        return np.empty(0, np.int64)
    if limit >= count:
        return np.arange(count, dtype=np.int64)
    sample = np.sort(distances[:: max(1, count // _SAMPLE)])
    expected = limit * len(sample) / count
    # Two standard deviations above the expected place: too few hits one time in forty, and then it is tried again.
    place = int(expected + 2 * expected**0.5) + 1
    while True:
        bound = sample[place] if place < len(sample) else np.iinfo(np.uint16).max
        # One comparison and one pass over a byte a row; partitioning everything costs four to ten times as much.
        hits = np.flatnonzero(distances <= bound)
        if len(hits) >= limit:
            break
        place *= 2
    near = distances[hits]
    last = np.partition(near, limit - 1)[limit - 1]
    found: NDArray[np.int64] = hits[near <= last].astype(np.int64, copy=False)
    return found


def _numpy(codes: Codes, query: Codes, found: Distances) -> None:
    words = query.size // 8
    rows = min(len(codes), max(1, _BLOCK_BYTES // query.size))
    flat = codes.reshape(-1).view(np.uint64)
    # The query repeated for a whole block: a row of six words is too short for the processor's wide instructions.
    # One allocation for both, or the C library gives the pages back and gets them anew at every call.
    repeated, differing = np.empty((2, rows * words), np.uint64)
    repeated.reshape(rows, words)[:] = query.view(np.uint64)
    counts = np.empty(rows * words, np.uint8)
    for start in range(0, len(codes), rows):
        block = found[start : start + rows]
        size = len(block) * words
        np.bitwise_xor(flat[start * words : start * words + size], repeated[:size], out=differing[:size])
        np.bitwise_count(differing[:size], out=counts[:size])
        # By columns: summing along rows of six bytes takes three times as long.
        table = counts[:size].reshape(len(block), words)
        block[:] = table[:, 0]
        for word in range(1, words):
            np.add(block, table[:, word], out=block)


def _compiled(cdist: Callable[..., Any], dtype: str) -> _Scan:
    def scan(codes: Codes, query: Codes, found: Distances) -> None:
        asked = query[np.newaxis]
        for start in range(0, len(codes), _BLOCK_ROWS):
            # No `out=`: with it simsimd 6.5.16 takes a reference to None too many, and Python 3.11 aborts in the end.
            tensor = cdist(asked, codes[start : start + _BLOCK_ROWS], "hamming", dtype=dtype)
            found[start : start + _BLOCK_ROWS] = np.asarray(tensor).reshape(-1)

    return scan


# What each calls packed bits. numkong's "u1" takes the number of bytes for the number of bits, "uint1" does not.
_COMPILED = {"simsimd": "bin8", "numkong": "uint1"}


def _load(name: str) -> Kernel:
    if name == "numpy":
        return Kernel(name, _numpy)
    if name not in _COMPILED:
        known = ", ".join(["numpy", *_COMPILED])
        raise ConfigError(f"There is no kernel {name!r}.", hint=f"Name one of {known}, or none.")
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"The kernel {name} cannot be loaded: {error}.",
            hint=f"Install it with `pip install {name}`, or name none: the fastest that is there is used.",
        ) from error
    kernel = Kernel(name, _compiled(module.cdist, _COMPILED[name]))
    _check(kernel)
    return kernel


def _is_wide(name: str) -> bool:
    """Whether a compiled kernel uses more than plain instructions here; with these alone it is slower than numpy."""
    capabilities: dict[str, bool] = importlib.import_module(name).get_capabilities()
    return any(there for kind, there in capabilities.items() if kind != "serial")


def _check(kernel: Kernel) -> None:
    """Compare with numpy on every length of code up to 128 bytes, and on more rows than one block has.

    Raises: ConfigError.
    """
    for width in range(8, 136, 8):
        rows = _BLOCK_ROWS + 3 if width == 8 else 7
        # Multiples of an odd number modulo a prime: as good as random here, and the same everywhere.
        codes = (np.arange(rows * width, dtype=np.uint64) * 40503 % 65521).astype(np.uint8).reshape(rows, width)
        query = codes[rows // 2] ^ np.uint8(0b0101_1010)
        expected = Kernel("numpy", _numpy).distances(codes, query)
        try:
            right = np.array_equal(kernel.distances(codes, query), expected)
        except (TypeError, ValueError) as error:
            raise _unusable(kernel.name, f"refuses packed bits: {error}") from error
        if not right:
            raise _unusable(kernel.name, "counts wrong on this machine")


def _unusable(name: str, why: str) -> ConfigError:
    return ConfigError(
        f"The kernel {name} {why}.",
        hint=f"Name no kernel, or install another release of {name}.",
    )
