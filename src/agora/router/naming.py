"""Names under which a client sees what belongs to other servers, as in `github__search_issues`."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

SEPARATOR: Final = "__"
"""Between the name of a backend and that of what it has. For readers: whose a name is, only the table tells."""

LONGEST: Final = 64
"""Characters of a name that every client accepts, as of the letters, digits, `_` and `-` in it."""

_ACCEPTED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_OTHERS = re.compile(r"[^a-zA-Z0-9_-]")
_DIGITS, _MANY_DIGITS = 8, 32

Owned = tuple[str, str]
"""The name of a backend, and of something that it has."""


def table_of(owned: Iterable[Owned], taken: Collection[str] = ()) -> dict[str, Owned]:
    """A name for each of `owned`, the same whatever their order, and none of `taken`.

    What cannot be told apart by `backend__name`, is longer than `LONGEST` or has other characters gets a hash at its
    end, all of those that are alike: whoever comes later takes nobody's name.
    """
    plain = {pair: SEPARATOR.join(pair) for pair in dict.fromkeys(owned)}
    alike = Counter(plain.values())
    mapped = {pair for pair, name in plain.items() if alike[name] > 1 or name in taken or not _ACCEPTED.fullmatch(name)}
    while True:
        made = _hashed(plain, mapped)
        # A name that somebody chose may look like one that was made.
        claimed = {pair for pair, name in plain.items() if pair not in mapped and name in set(made.values())}
        if not claimed:
            break
        mapped |= claimed
    return {made.get(pair, name): pair for pair, name in sorted(plain.items())}


def _hashed(plain: Mapping[Owned, str], mapped: Collection[Owned]) -> dict[Owned, str]:
    short = {pair: _with_hash(pair, plain[pair], _DIGITS) for pair in mapped}
    alike = Counter(short.values())
    return {
        pair: name if alike[name] == 1 else _with_hash(pair, plain[pair], _MANY_DIGITS) for pair, name in short.items()
    }


def _with_hash(pair: Owned, plain: str, digits: int) -> str:
    digest = hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{_OTHERS.sub('_', plain)[: LONGEST - digits - 1]}_{digest}"
